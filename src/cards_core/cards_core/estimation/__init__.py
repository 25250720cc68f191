"""Estimation: what a robot does not measure, from what it measures. Pure numbers, no hardware."""

from cards_core.estimation.initial_guess import EstimationError, InitialGuess, find_initial_guess
from cards_core.estimation.joint_estimator import Estimate, JointEstimator
from cards_core.estimation.observability import Observability, observability

__all__ = [
    "Estimate",
    "EstimationError",
    "InitialGuess",
    "JointEstimator",
    "Observability",
    "find_initial_guess",
    "observability",
]
