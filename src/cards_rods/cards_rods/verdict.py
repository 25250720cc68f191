"""Verdict on a run of a robot of rods: `judge_rods`.

A run that went through a motion has **failed** if the robot did not follow it: a step was held or
found no stable equilibrium, or the RMS error of the plate is above `SHARE` of the way that the
motion makes (at least `LEAST_LENGTH`, `LEAST_ANGLE`). A robot that somebody moves by hand may be
told to go where it cannot: that is a **warning**. Numbers that are not finite, and an end before
its time, are failures of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.loop.verdict import NOTABLE_SHARE, Ending, Verdict, ending_failures
from cards_core.rods.status import RodStatus, is_good
from cards_core.spatial import rotation_log
from cards_core.trajectories.tolerance import LEAST_ANGLE, LEAST_LENGTH, SHARE
from cards_core.typing import Array


@dataclass(frozen=True)
class RodRun:
    """Facts about a run that its log does not have.

    Attributes:
        played: Whether it went through a motion; else somebody moved the robot.
        wanted_s: Time that it was to take, [s]; 0: until the user ends it.
        stopped: Whether the user ended it.
        failure: What ended it, if something did.
    """

    played: bool = False
    wanted_s: float = 0.0
    stopped: bool = False
    failure: str = ""


def judge_rods(log: Mapping[str, Array], run: RodRun) -> Verdict:
    """Return the verdict on a run.

    Args:
        log: Columns of ``rod_solver.npz``, see `cards_rods.session.columns`; at least one row.
        run: What they do not know.
    """
    time = log["time"]
    gaps = np.diff(time)
    step = float(gaps.max()) if gaps.size else 0.0
    ending = Ending(float(time[-1]), run.wanted_s, run.stopped, run.failure, step)
    failures = ending_failures(ending)
    warnings: list[str] = []
    for name in ("q", "pose", "residual", "min_eigenvalue"):
        bad = ~np.isfinite(log[name])
        if bad.any():
            failures.append(f"{name}: {int(bad.sum())} of {bad.size} values are not finite")
    status = log["status"].astype(int)
    lost = (log["held"] > 0.5) | ~np.array([is_good(RodStatus(value)) for value in status])
    if lost.any():
        first = int(np.argmax(lost))
        text = (
            f"the robot did not follow its command in {int(lost.sum())} of {len(time)} steps, "
            f"first at t = {time[first]:.3f} s ({RodStatus(status[first]).name})"
        )
        (failures if run.played else warnings).append(text)
    if run.played:
        failures += _errors(log)
    yielded = int(np.sum(status == RodStatus.YIELD))
    if yielded:
        warnings.append(f"a rod was strained beyond its yield strain in {yielded} steps")
    if gaps.size:
        left_out = float(np.sum(np.maximum(np.rint(gaps / np.median(gaps)) - 1.0, 0.0)))
        if left_out > NOTABLE_SHARE * (left_out + len(time)):
            warnings.append(f"{left_out:.0f} steps were left out because they came too late")
    return Verdict.of(failures, warnings, stopped=run.stopped)


def _errors(log: Mapping[str, Array]) -> list[str]:
    """Return the errors above their tolerance, of steps that follow a pose."""
    inverse = log["inverse"] > 0.5
    if not inverse.any():
        return []
    targets = log["target_pose"][inverse].reshape(-1, 4, 4)
    way = float(np.linalg.norm(np.ptp(targets[:, :3, 3], axis=0)))
    first = targets[0, :3, :3]
    turn = max(float(np.linalg.norm(rotation_log(t[:3, :3] @ first.T))) for t in targets)
    found = []
    for name, unit, least, size in (
        ("position", "m", LEAST_LENGTH, way),
        ("rotation", "rad", LEAST_ANGLE, turn),
    ):
        values = log[f"{name}_error"][inverse]
        rms = float(np.sqrt(np.mean(values[np.isfinite(values)] ** 2))) if values.size else 0.0
        tolerance = max(least, SHARE * size)
        if rms > tolerance:
            found.append(
                f"RMS {name} error {1e3 * rms:.3g} m{unit}, "
                f"tolerance {1e3 * tolerance:.3g} m{unit}"
            )
    return found
