"""Launch any robot, by name or path: robot:=robots/MyRobot. Arguments: --show-args."""

from launch import LaunchDescription

from cards_bringup.nodes.launch_description import describe_any


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return describe_any()
