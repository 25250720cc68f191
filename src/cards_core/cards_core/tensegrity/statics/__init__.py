"""Statics of structures: self-stress, mechanisms, prestress, form finding, modes."""

from cards_core.tensegrity.statics.equilibrium import (
    NoPrestressError,
    NotConvergedError,
    StaticsError,
    analyse_equilibrium,
)
from cards_core.tensegrity.statics.force_density import force_density_shape
from cards_core.tensegrity.statics.form_finding import find_equilibrium
from cards_core.tensegrity.statics.modes import Modes, find_modes
from cards_core.tensegrity.statics.prestress import (
    minimal_rest_lengths,
    prestress,
    rest_lengths,
    slack_cables,
)

__all__ = [
    "Modes",
    "NoPrestressError",
    "NotConvergedError",
    "StaticsError",
    "analyse_equilibrium",
    "find_equilibrium",
    "find_modes",
    "force_density_shape",
    "minimal_rest_lengths",
    "prestress",
    "rest_lengths",
    "slack_cables",
]
