"""Estimation: what a robot does not measure, from what it measures. Pure numbers, no hardware."""

from cards_core.estimation.excitation import ExcitingMotion, plan_exciting_motion
from cards_core.estimation.initial_guess import (
    EstimationError,
    InitialGuess,
    Observability,
    find_initial_guess,
    observability,
)
from cards_core.estimation.joint_estimator import Estimate, JointEstimator
from cards_core.estimation.joint_tracker import JointTracker
from cards_core.estimation.length_calibration import LengthCalibration, calibrate_lengths
from cards_core.estimation.offsets import (
    OffsetObservability,
    offset_bound,
    offset_observability,
)

__all__ = [
    "Estimate",
    "EstimationError",
    "ExcitingMotion",
    "InitialGuess",
    "JointEstimator",
    "JointTracker",
    "LengthCalibration",
    "Observability",
    "OffsetObservability",
    "calibrate_lengths",
    "find_initial_guess",
    "observability",
    "offset_bound",
    "offset_observability",
    "plan_exciting_motion",
]
