"""Launch the snake with 36 cables: host, controller, views. Arguments: --show-args."""

from launch import LaunchDescription

from cards_bringup.nodes.launch_description import describe


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return describe("snake_24")
