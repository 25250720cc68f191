"""Executables of this package."""

from cards_core.executable import executable

browser_view = executable("cards_viz.muscles.view_node")
gazebo_markers = executable("cards_viz.gazebo.node")
muscle_markers = executable("cards_viz.rviz.node")
rod_view = executable("cards_viz.rods.view_node")
