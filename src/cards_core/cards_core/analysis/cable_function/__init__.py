"""Cable function analysis: what each muscle is for."""

from cards_core.analysis.cable_function.analysis import (
    WithoutMuscles,
    analyse_cable_function,
    tension_ranges,
)
from cards_core.analysis.cable_function.result import (
    CableFunction,
    MomentArms,
    Necessity,
    TensionUse,
)

__all__ = [
    "CableFunction",
    "MomentArms",
    "Necessity",
    "TensionUse",
    "WithoutMuscles",
    "analyse_cable_function",
    "tension_ranges",
]
