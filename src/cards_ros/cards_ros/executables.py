"""Executables of this package."""

from cards_core.executable import executable

controller = executable("cards_ros.file_controller")
