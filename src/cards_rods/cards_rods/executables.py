"""Executables of this package."""

from cards_core.executable import executable

rod_solver = executable("cards_rods.rod_solver")
