"""Launch the Stewart-Gough platform 6RFS on six rods: solver, views. Arguments: --show-args."""

from launch import LaunchDescription

from cards_bringup.nodes.launch_description import describe


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return describe("stewart_gough_6rfs")
