"""Fit via points and wrap radii, so that moment arms, torques and force closure are as wanted.

`read_specification` reads what is wanted, `MuscleFit` finds it, `FitResult` says how far it came.
"""

from cards_core.analysis.muscle_fit.fit import MuscleFit
from cards_core.analysis.muscle_fit.reading import read_specification
from cards_core.analysis.muscle_fit.result import FitResult

__all__ = ["FitResult", "MuscleFit", "read_specification"]
