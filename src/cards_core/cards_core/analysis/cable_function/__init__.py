"""Cable function analysis: what each muscle is for."""

from cards_core.analysis.cable_function.analysis import analyse_cable_function
from cards_core.analysis.cable_function.ranges import tension_ranges
from cards_core.analysis.cable_function.result import (
    CableFunction,
    MomentArms,
    Necessity,
    TensionUse,
)
from cards_core.analysis.cable_function.without import WithoutMuscles

__all__ = [
    "CableFunction",
    "MomentArms",
    "Necessity",
    "TensionUse",
    "WithoutMuscles",
    "analyse_cable_function",
    "tension_ranges",
]
