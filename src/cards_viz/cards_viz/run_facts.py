"""From the logs of a run to the facts that `cards_core.loop.verdict` judges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cards_core.control.interface import ControlStatus
from cards_core.loop.task_tally import TaskTally
from cards_core.loop.verdict import HostFacts, TaskFacts
from cards_core.muscles.command import GateCondition
from cards_core.robot.elements import Muscle
from cards_core.trajectories import Tolerance
from cards_viz.run_log import ControllerLog, SimulatorLog, not_finite

NEAR_FULL = 0.999
"""Share of the greatest tension from which on a muscle is at its limit."""


def host_facts(log: SimulatorLog, muscles: Sequence[Muscle] = ()) -> HostFacts:
    """Return what a host did.

    Args:
        log: Of the host.
        muscles: Of the robot, in the order of the columns; empty: it is not known which tensions
            are the greatest.
    """
    time = log.time
    steps = np.diff(time, prepend=time[0])
    watchdog = log.gate == GateCondition.WATCHDOG
    stopped = log.gate == GateCondition.STOPPED
    limits = np.array([muscle.tension_max for muscle in muscles])
    full = {}
    if muscles and log.tensions.shape[1] == len(muscles):
        shares = np.mean(log.tensions >= NEAR_FULL * limits, axis=0)
        full = {m.name: float(s) for m, s in zip(muscles, shares, strict=True) if s > 0.0}
    return HostFacts(
        steps=len(time),
        watchdog=int(watchdog.sum()),
        watchdog_time=_first(time, watchdog),
        watchdog_duration=float(steps[watchdog].sum()),
        stopped=int(stopped.sum()),
        stopped_time=_first(time, stopped),
        refused=int(log.refused[-1]),
        behind=float(log.behind.max()),
        duration=float(time[-1]),
        saturated=full,
        not_finite=tuple(f"simulator log: {text}" for text in not_finite(log)),
    )


def task_facts(
    log: ControllerLog, error_units: Sequence[str], *, paced: bool, reached: float
) -> TaskFacts:
    """Return what a controller did.

    Args:
        log: Of the controller.
        error_units: ``m`` or ``rad`` of every entry of the error.
        paced: Whether an answer could come too late.
        reached: Time at the end of the run, [s].
    """
    tally = TaskTally(error_units)
    rows = zip(
        log.time.tolist(), log.status.tolist(), log.error, log.tolerance_length.tolist(),
        log.tolerance_angle.tolist(), log.remaining.tolist(), strict=True,
    )  # fmt: skip
    for time, status, error, length, angle, remaining in rows:
        tally.add(time, ControlStatus(status), error, Tolerance(length, angle), remaining)
    return tally.facts(
        missed=int(log.missed_deadlines[-1]) if paced else 0,
        reached=reached,
        not_finite=tuple(f"controller log: {text}" for text in not_finite(log)),
    )


def _first(time: np.ndarray, where: np.ndarray) -> float:
    return float(time[np.argmax(where)]) if where.any() else np.nan
