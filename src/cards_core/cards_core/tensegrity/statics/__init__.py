"""Statics of structures: self-stress, mechanisms, prestress, form finding, modes."""

from cards_core.tensegrity.statics.equilibrium import (
    EquilibriumAnalysis,
    NoPrestressError,
    NotConvergedError,
    StaticsError,
    analyse_equilibrium,
)
from cards_core.tensegrity.statics.force_density import ForceDensityShape, force_density_shape
from cards_core.tensegrity.statics.form_finding import Equilibrium, find_equilibrium
from cards_core.tensegrity.statics.modes import Modes, find_modes
from cards_core.tensegrity.statics.prestress import (
    Prestress,
    cable_stiffness,
    minimal_rest_lengths,
    prestress,
    rest_lengths,
    slack_cables,
)

__all__ = [
    "Equilibrium",
    "EquilibriumAnalysis",
    "ForceDensityShape",
    "Modes",
    "NoPrestressError",
    "NotConvergedError",
    "Prestress",
    "StaticsError",
    "analyse_equilibrium",
    "cable_stiffness",
    "find_equilibrium",
    "find_modes",
    "force_density_shape",
    "minimal_rest_lengths",
    "prestress",
    "rest_lengths",
    "slack_cables",
]
