"""Checks sensors against the model while somebody moves the robot by hand.

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
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.estimation import EstimationError, JointEstimator
from cards_core.json_values import json_value
from cards_core.typing import Array
from cards_hardware.calibration.procedure import Calibration
from cards_hardware.calibration.recording import Measurement
from cards_hardware.errors import HardwareError

MIN_TRAVEL = 5e-3
"""A muscle must have changed its length by so much to say something about its direction, [m]."""

SLOPE_TOLERANCE = 0.1
"""Departure from 1 that a slope may have."""

MAX_RESIDUAL = 4.0
"""Residual that is believed, [sigma]."""

LENGTH_NOISE = 0.5e-3
"""Expected after a good calibration: encoder, wire, and a millimetre wrong here and there, [m]."""


@dataclass(frozen=True)
class MuscleCheck:
    """Result of the check of one muscle.

    Attributes:
        name: Its name.
        travel: How far its length has changed in the model, [m]; NaN without joint sensors.
        slope: Measured over modelled change; NaN if it has not moved enough.
        residual: Root mean square of measured less modelled length, [m].
        sigma: The same in units of the noise expected.
        problem: What is wrong; empty if nothing, or if nothing can be said.
        checked: Whether it moved enough to tell its direction.
    """

    name: str
    travel: float
    slope: float
    residual: float
    sigma: float
    problem: str
    checked: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it for a report."""
        values: dict[str, Any] = json_value(asdict(self))
        return values


def check_with_joints(
    dynamics: Dynamics, q: Array, lengths: Array, noise: float = LENGTH_NOISE
) -> list[MuscleCheck]:
    """Compare lengths with those of measured joints.

    Args:
        dynamics: Dynamics of the robot.
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
        if travel >= MIN_TRAVEL:
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
        dynamics: Dynamics of the robot.
        times: Times of the samples, shape (n,), [s].
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
        dynamics: Dynamics of the robot.
        q: Measured coordinates, shape (n, nq).
        checks: Results of `check_with_joints`.
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
    """Return why no pose can be told from lengths, in words; empty if one can.

    Args:
        dynamics: Dynamics of the robot.
        lengths: Muscle lengths, shape (m,), [m].
        noise: Standard deviation of a length, [m].
    """
    try:
        JointEstimator(dynamics, noise).start(lengths)
    except EstimationError as error:
        return str(error)
    return ""


def _problem(slope: float, sigma: float) -> str:
    if slope < -0.5:
        return "runs the other way: turn ENCODER_SIGN, then set the length offset again"
    if abs(slope - 1.0) > SLOPE_TOLERANCE:  # False for NaN
        return f"changes {slope:.2f} times as much as the model: ENCODER_SCALE, or another muscle"
    if sigma > MAX_RESIDUAL:
        return "is off: repeat the length offset with a taut muscle; check its attachment points"
    return ""


def check_motion(
    calibration: Calibration, measurement: Measurement, q: Array
) -> tuple[list[MuscleCheck], list[str]]:
    """Compare a motion with the model.

    Args:
        calibration: Whose robot it is.
        measurement: The motion.
        q: Where it began, shape (nq,); needed where joints have no sensors.

    Returns:
        One check per muscle of the robot, and hints.

    Raises:
        HardwareError: Too few valid samples.
    """
    dynamics, layouts = calibration.dynamics, calibration.layouts
    # boards sample at their own times: all are brought to those of the first
    times = measurement.recordings[0].times
    begin = max(recording.times[0] for recording in measurement.recordings)
    end = min(recording.times[-1] for recording in measurement.recordings)
    times = times[(times >= begin) & (times <= end)]
    lengths = np.full((len(times), len(dynamics.robot.muscles)), np.nan)
    positions = np.full((len(times), dynamics.tree.nq), np.nan)
    for layout, recording in zip(layouts, measurement.recordings, strict=True):
        for rows, values, out in (
            (layout.muscle_rows, recording.lengths, lengths),
            (layout.position_rows, recording.positions, positions),
        ):
            for channel, row in enumerate(rows):
                out[:, row] = np.interp(times, recording.times, values[:, channel])
    with_joints = any(len(layout.position_rows) for layout in layouts)
    good = np.isfinite(lengths).all(axis=1)
    if with_joints:
        good &= np.isfinite(positions).all(axis=1)
    if np.count_nonzero(good) < 10:
        raise HardwareError(
            "hardly any sample has all lengths and joints valid (expected: all; ./cards monitor "
            "shows which sensor is missing)"
        )
    if with_joints:
        checks = check_with_joints(dynamics, positions[good], lengths[good])
        hints = joint_hints(dynamics, positions[good], checks)
        still = [check.name for check in checks if check.travel < MIN_TRAVEL]
    else:
        checks = check_without_joints(dynamics, times[good], lengths[good], q)
        problem = start_problem(dynamics, lengths[good][-1])
        hints = (
            [f"from lengths alone no pose can be told at the end: {problem}"] if problem else []
        )
        travel = np.ptp(lengths[good], axis=0)
        still = [check.name for check, by in zip(checks, travel, strict=True) if by < MIN_TRAVEL]
    checks = [replace(check, checked=check.name not in still) for check in checks]
    if still:
        hints.append(
            f"moved less than {MIN_TRAVEL * 1e3:g} mm, directions not checked: {', '.join(still)}"
        )
    return checks, hints
