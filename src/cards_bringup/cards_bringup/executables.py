"""Executables of this package."""

from cards_core.executable import executable

gazebo_simulator = executable("cards_bringup.gazebo.simulator")
