"""Executables of this package."""

from cards_core.executable import executable

bridge = executable("cards_hardware.bridge.node")
