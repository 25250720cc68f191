"""References for the controllers: what to track, as functions of time."""

from cards_core.trajectories.base import (
    Hold,
    Reference,
    Tolerance,
    TrajectoryError,
    as_reference,
    tolerance_of,
)
from cards_core.trajectories.compose import Sequence, Stack, rotation_spline, with_approach
from cards_core.trajectories.curves import Circle, Flower
from cards_core.trajectories.library import from_dict, load_references
from cards_core.trajectories.limits import JointLimits, LimitError, check_limits, first_violation
from cards_core.trajectories.live import LiveReference, TrajectoryPoint, from_joint_trajectory
from cards_core.trajectories.polynomial import PiecewisePolynomial, PointToPoint
from cards_core.trajectories.rhythm import Rhythm
from cards_core.trajectories.rotation import EulerRotation
from cards_core.trajectories.sampled import SampledReference, read_traj, write_traj
from cards_core.trajectories.splines import (
    caspr_times,
    cubic_average_spline,
    cubic_spline,
    linear_spline,
    parabolic_blend,
    quintic_spline,
    spline,
)

__all__ = [
    "Circle",
    "EulerRotation",
    "Flower",
    "Hold",
    "JointLimits",
    "LimitError",
    "LiveReference",
    "PiecewisePolynomial",
    "PointToPoint",
    "Reference",
    "Rhythm",
    "SampledReference",
    "Sequence",
    "Stack",
    "Tolerance",
    "TrajectoryError",
    "TrajectoryPoint",
    "as_reference",
    "caspr_times",
    "check_limits",
    "cubic_average_spline",
    "cubic_spline",
    "first_violation",
    "from_dict",
    "from_joint_trajectory",
    "linear_spline",
    "load_references",
    "parabolic_blend",
    "quintic_spline",
    "read_traj",
    "rotation_spline",
    "spline",
    "tolerance_of",
    "with_approach",
    "write_traj",
]
