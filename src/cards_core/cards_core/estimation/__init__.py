"""Estimation: what a robot does not measure, from what it measures. Pure numbers, no hardware."""

from cards_core.estimation.excitation import plan_exciting_motion
from cards_core.estimation.initial_guess import EstimationError, observability
from cards_core.estimation.joint_estimator import Estimate, JointEstimator
from cards_core.estimation.joint_tracker import JointTracker
from cards_core.estimation.length_calibration import LengthCalibration, calibrate_lengths
from cards_core.estimation.offsets import offset_bound, offset_observability

__all__ = [
    "Estimate",
    "EstimationError",
    "JointEstimator",
    "JointTracker",
    "LengthCalibration",
    "calibrate_lengths",
    "observability",
    "offset_bound",
    "offset_observability",
    "plan_exciting_motion",
]
