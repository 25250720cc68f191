"""Cable function analysis: what each muscle is for."""

from cards_core.analysis.cable_function.analysis import (
    WithoutMuscles,
    analyse_cable_function,
    tension_ranges,
)
from cards_core.analysis.cable_function.result import CableFunction

__all__ = ["CableFunction", "WithoutMuscles", "analyse_cable_function", "tension_ranges"]
