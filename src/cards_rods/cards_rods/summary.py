"""Summary of a run of a robot of rods: the content of ``summary.json``.

===================== ========================================================================
time_s                from the first to the last step
position_error_*_m    distance of the plate from the pose that was told, in steps that follow one,
                      in the coordinates that the robot controls
rotation_error_*_rad  angle likewise
joint_error_max       largest |target - q| in steps that follow joints, [m] or [rad]
min_eigenvalue        smallest eigenvalue of the plate's stiffness, minimum value of the run
margin_min            the same over its value at the start; the robot collapses at 0
status                how many steps had which status
held_steps            steps in which the robot did not follow its command any more
base_force_max_N      maximum force of a rod on its base
residual_max          maximum scaled residual of an accepted equilibrium
step_p50_us, _p99_us  duration of steps that solved something
solves_per_step       mean number of solves in these steps
trajectory_sha256     SHA-256 of q and pose of all steps, little-endian float64, C order
verdict               ``ok``, ``failed`` or ``stopped``, see `judge_rods`
failures, warnings    why, and what else deserves attention: a sentence each
===================== ========================================================================

A run that went through a motion has **failed** if the robot did not follow it: a step was held or
found no stable equilibrium, or the RMS error of the plate is above `TOLERANCE_SHARE` of the way
that the motion makes (at least `LEAST_LENGTH_TOLERANCE`, `LEAST_ANGLE_TOLERANCE`). A robot that
somebody moves by hand may be told to go where it cannot: that is a **warning**. Numbers that are
not finite, and an end before its time, are failures of both.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.json_values import json_value
from cards_core.loop.verdict import NOTABLE_SHARE, Ending, Verdict, ending_failures
from cards_core.rods.status import RodStatus, is_good
from cards_core.spatial import rotation_log
from cards_core.trajectories.base import (
    LEAST_ANGLE_TOLERANCE,
    LEAST_LENGTH_TOLERANCE,
    TOLERANCE_SHARE,
)
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
        log: Columns of ``rod_solver.npz``, see `cards_rods.rod_simulation.log_columns`; at least
            one row.
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
        failures += _tracking_failures(log)
    yielded = int(np.sum(status == RodStatus.YIELD))
    if yielded:
        warnings.append(f"a rod was strained beyond its yield strain in {yielded} steps")
    if gaps.size:
        left_out = float(np.sum(np.maximum(np.rint(gaps / np.median(gaps)) - 1.0, 0.0)))
        if left_out > NOTABLE_SHARE * (left_out + len(time)):
            warnings.append(f"{left_out:.0f} steps were left out because they came too late")
    return Verdict.of(failures, warnings, stopped=run.stopped)


def _tracking_failures(log: Mapping[str, Array]) -> list[str]:
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
        ("position", "m", LEAST_LENGTH_TOLERANCE, way),
        ("rotation", "rad", LEAST_ANGLE_TOLERANCE, turn),
    ):
        values = log[f"{name}_error"][inverse]
        rms = float(np.sqrt(np.mean(values[np.isfinite(values)] ** 2))) if values.size else 0.0
        tolerance = max(least, TOLERANCE_SHARE * size)
        if rms > tolerance:
            found.append(
                f"RMS {name} error {1e3 * rms:.3g} m{unit}, "
                f"tolerance {1e3 * tolerance:.3g} m{unit}"
            )
    return found


Log = Mapping[str, Array]
"""Columns of ``rod_solver.npz``, see `cards_rods.rod_simulation.log_columns`."""


def summarise(
    robot: str, log: Log, metadata: Mapping[str, Any], run: RodRun | None = None
) -> dict[str, Any]:
    """Return the content of ``summary.json``.

    Args:
        robot: Its name.
        log: Of the run.
        metadata: What the log does not know; goes to the summary as it is.
        run: What the log does not know and the verdict needs.

    Raises:
        CardsError: The log has no rows.
    """
    steps = len(log["time"])
    if not steps:
        raise CardsError("the log of the run has no rows (expected: one per step)")
    inverse = log["inverse"] > 0.5
    direct = ~inverse
    solved = log["substeps"] > 0.0
    bases = np.reshape(log["base_wrenches"], (steps, -1, 6))
    joints = np.abs(log["target_q"] - log["q"])
    p50, p99 = np.percentile(log["step_us"][solved], [50.0, 99.0]) if solved.any() else (0.0, 0.0)
    span = float(log["time"][-1] - log["time"][0])
    numbers = {
        "time_s": span,
        "rate_hz": (steps - 1) / span if span > 0.0 else math.nan,
        **_errors("position_error", "m", log["position_error"][inverse]),
        **_errors("rotation_error", "rad", log["rotation_error"][inverse]),
        "joint_error_max": joints[direct].max() if direct.any() else math.nan,
        "min_eigenvalue": log["min_eigenvalue"].min(),
        "margin_min": (log["min_eigenvalue"] / log["start_eigenvalue"]).min(),
        "condition_max": log["condition"].max(),
        "base_force_max_N": np.linalg.norm(bases[..., :3], axis=-1).max(),
        "residual_max": log["residual"].max(),
        "step_p50_us": p50,
        "step_p99_us": p99,
        "solves_per_step": log["substeps"][solved].mean() if solved.any() else math.nan,
        "iterations_mean": log["iterations"][solved].mean() if solved.any() else math.nan,
    }
    names, counts = np.unique(log["status"].astype(int), return_counts=True)
    return {
        "robot": robot,
        "steps": steps,
        **json_value(numbers),
        "held_steps": int(np.sum(log["held"] > 0.5)),
        "status": {
            RodStatus(name).name: int(count) for name, count in zip(names, counts, strict=True)
        },
        "trajectory_sha256": hashlib.sha256(
            np.ascontiguousarray(np.hstack([log["q"], log["pose"]]), dtype="<f8").tobytes()
        ).hexdigest(),
        **judge_rods(log, run or RodRun()).entries(),
        **metadata,
    }


def _errors(name: str, unit: str, values: Array) -> dict[str, float]:
    values = values[np.isfinite(values)]
    if not values.size:
        return {f"{name}_max_{unit}": math.nan, f"{name}_rms_{unit}": math.nan}
    return {
        f"{name}_max_{unit}": float(values.max()),
        f"{name}_rms_{unit}": float(np.sqrt(np.mean(values**2))),
    }
