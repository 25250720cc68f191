"""Executables of this package."""

from cards_core.executable import executable

simulator = executable("cards_sim.simulator_node")
