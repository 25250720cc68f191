"""The last step of a calibration: samples of a moving robot, of all boards, against the model."""

from __future__ import annotations

import numpy as np

from cards_core.typing import Array
from cards_hardware.calibration import Calibration
from cards_hardware.calibration_check import (
    ENOUGH,
    MuscleCheck,
    check_with_joints,
    check_without_joints,
    joint_hints,
    start_problem,
)
from cards_hardware.calibration_data import Look
from cards_hardware.errors import HardwareError


def check_motion(
    calibration: Calibration, look: Look, q: Array
) -> tuple[list[MuscleCheck], list[str]]:
    """Compare a motion with the model.

    Args:
        calibration: Whose robot it is.
        look: The motion.
        q: Where it began, shape (nq,); needed where joints have no sensors.

    Returns:
        One check per muscle of the robot, and hints.

    Raises:
        HardwareError: Too few valid samples.
    """
    dynamics, layouts = calibration.dynamics, calibration.layouts
    # boards sample at their own times: all are brought to those of the first
    times = look.recordings[0].times
    begin = max(recording.times[0] for recording in look.recordings)
    end = min(recording.times[-1] for recording in look.recordings)
    times = times[(times >= begin) & (times <= end)]
    lengths = np.full((len(times), len(dynamics.robot.muscles)), np.nan)
    positions = np.full((len(times), dynamics.tree.nq), np.nan)
    for layout, recording in zip(layouts, look.recordings, strict=True):
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
        still = [check.name for check in checks if check.travel < ENOUGH]
    else:
        checks = check_without_joints(dynamics, times[good], lengths[good], q)
        problem = start_problem(dynamics, lengths[good][-1])
        hints = (
            [f"from lengths alone no pose can be told at the end: {problem}"] if problem else []
        )
        travel = np.ptp(lengths[good], axis=0)
        still = [check.name for check, by in zip(checks, travel, strict=True) if by < ENOUGH]
    if still:
        hints.append(
            f"moved less than {ENOUGH * 1e3:g} mm, directions not checked: {', '.join(still)}"
        )
    return checks, hints
