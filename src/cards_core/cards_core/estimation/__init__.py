"""Estimation: what a robot does not measure, from what it measures. Pure numbers, no hardware."""

from cards_core.estimation.cold_start import EstimationError, Start, find_start
from cards_core.estimation.joint_estimator import Estimate, JointEstimator
from cards_core.estimation.observability import Observability, observability

__all__ = [
    "Estimate",
    "EstimationError",
    "JointEstimator",
    "Observability",
    "Start",
    "find_start",
    "observability",
]
