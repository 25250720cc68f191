"""Do the sensors agree with the model while somebody moves the robot by hand?

Measured lengths l of a muscle are compared with the model's l(q) over the motion:

    l - mean(l) = slope (l(q) - mean(l(q))) + residual

A slope of 1 is right, -1 is an encoder that counts the other way, anything else a wrong scale
(drum diameter, gear, encoder lines) or a wrong muscle on the channel. If all muscles over a joint
are upside down, it is the joint's sensor. The rest, ``l - l(q)``, in units of the noise expected,
tells about offsets and attachment points. Needs joint sensors; without them lengths are compared
with each other by the estimator.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.estimation import EstimationError, JointEstimator
from cards_core.typing import Array

ENOUGH = 5e-3
"""A muscle must have changed its length by so much to say something about its direction, [m]."""

SLOPE = 0.1
"""Departure from 1 that a slope may have."""

BELIEVED = 4.0
"""Residual that is believed, [sigma]."""

LENGTH_NOISE = 0.5e-3
"""Expected after a good calibration: encoder, wire, and a millimetre wrong here and there, [m]."""


@dataclass(frozen=True)
class MuscleCheck:
    """One muscle.

    Attributes:
        name: Its name.
        travel: How far its length has changed in the model, [m]; NaN without joint sensors.
        slope: Measured over modelled change; NaN if it has not moved enough.
        residual: Root mean square of measured less modelled length, [m].
        sigma: The same in units of the noise expected.
        problem: What is wrong; empty if nothing, or if nothing can be said.
    """

    name: str
    travel: float
    slope: float
    residual: float
    sigma: float
    problem: str

    def as_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        return {
            key: None if isinstance(value, float) and math.isnan(value) else value
            for key, value in asdict(self).items()
        }


def check_with_joints(
    dynamics: Dynamics, q: Array, lengths: Array, noise: float = LENGTH_NOISE
) -> list[MuscleCheck]:
    """Compare lengths with those of measured joints.

    Args:
        dynamics: Of the robot.
        q: Measured coordinates, shape (n, nq).
        lengths: Measured at the same times, shape (n, m), [m].
        noise: Standard deviation expected, [m].
    """
    model = dynamics.batch(q).muscle_lengths
    out = []
    for i, muscle in enumerate(dynamics.robot.muscles):
        x, y = model[:, i], lengths[:, i]
        travel = float(np.ptp(x))
        residual = float(np.sqrt(np.mean((y - x) ** 2)))
        slope = float("nan")
        if travel >= ENOUGH:
            dx = x - x.mean()
            slope = float(dx @ (y - y.mean()) / (dx @ dx))
        sigma = residual / noise
        out.append(
            MuscleCheck(muscle.name, travel, slope, residual, sigma, _problem(slope, sigma))
        )
    return out


def check_without_joints(
    dynamics: Dynamics, times: Array, lengths: Array, q0: Array, noise: float = LENGTH_NOISE
) -> list[MuscleCheck]:
    """Compare lengths with each other, from a known pose on.

    Args:
        dynamics: Of the robot.
        times: Of the samples, shape (n,), [s].
        lengths: Measured, shape (n, m), [m].
        q0: Where the motion begins, shape (nq,).
        noise: Standard deviation expected, [m].
    """
    estimator = JointEstimator(dynamics, noise)
    estimator.begin(q0, std=0.05)
    steps = np.diff(times, prepend=times[0])
    used, squares = [], []
    for dt, row in zip(steps, lengths, strict=True):
        found = estimator.step(row, float(max(dt, 0.0)))
        used.append(found.used & found.plausible)
        state = dynamics.update(found.q, found.qd)
        squares.append((row - state.muscle_lengths) ** 2)
    share = np.mean(used, axis=0)
    residuals = np.sqrt(np.mean(squares, axis=0))
    out = []
    for i, muscle in enumerate(dynamics.robot.muscles):
        problem = ""
        if share[i] < 0.5:
            problem = "disagrees with the other muscles: direction, scale or offset"
        residual = float(residuals[i])
        nothing = float("nan")
        out.append(MuscleCheck(muscle.name, nothing, nothing, residual, residual / noise, problem))
    return out


def joint_hints(dynamics: Dynamics, q: Array, checks: list[MuscleCheck]) -> list[str]:
    """Return joints whose sensor is likelier to be upside down than all muscles over them.

    Args:
        dynamics: Of the robot.
        q: Measured coordinates, shape (n, nq).
        checks: Of `check_with_joints`.
    """
    tree = dynamics.tree
    middle = tree.check_q(q[len(q) // 2])
    jacobian = dynamics.update(middle, np.zeros(tree.nv)).muscle_jacobian
    moved = [np.ptp(q[:, slot]) for slot in tree.velocity_slots]
    # what each joint did to each muscle
    share = np.abs(jacobian) * np.array(moved)
    out = []
    for j, name in enumerate(tree.velocity_names):
        over = [i for i in range(len(checks)) if share[i, j] > 0.5 * share[i].sum() > 0.0]
        known = [checks[i].slope for i in over if not math.isnan(checks[i].slope)]
        if len(known) >= 2 and all(slope < 0.0 for slope in known):
            out.append(
                f"{name}: all {len(known)} muscles that it moves run the other way; turn its "
                "sensor around (negative JOINT_SCALE), not them"
            )
    return out


def start_problem(dynamics: Dynamics, lengths: Array, noise: float = LENGTH_NOISE) -> str:
    """Return why no pose can be told from lengths, in words; empty if one can."""
    try:
        JointEstimator(dynamics, noise).start(lengths)
    except EstimationError as error:
        return str(error)
    return ""


def _problem(slope: float, sigma: float) -> str:
    if slope < -0.5:
        return "runs the other way: turn ENCODER_SIGN, then set the length offset again"
    if abs(slope - 1.0) > SLOPE:  # False for NaN
        return f"changes {slope:.2f} times as much as the model: ENCODER_SCALE, or another muscle"
    if sigma > BELIEVED:
        return "is off: repeat the length offset with a taut muscle; check its attachment points"
    return ""
