"""Launch the planar 3-PFR robot of rods: solver, views. Arguments: --show-args."""

from launch import LaunchDescription

from cards_bringup.nodes.launch_description import describe


def generate_launch_description() -> LaunchDescription:
    """Return what ``ros2 launch`` starts."""
    return describe("planar_3pfr")
