"""The numbers of a run: `summarise` makes the content of ``summary.json``.

Definitions, with e_k the error vector of controller step k of K and d its size:

===================== ========================================================================
sim_time_s            simulation time of the last step; runs begin at zero
joint_error_max_rad   max |e_ki| over all steps and entries of the error that are angles
joint_error_rms_rad   sqrt(sum e_ki^2 / (K d)) over them, d of them
joint_error_max_m     likewise over entries that are lengths, of joints that slide
joint_error_rms_m
op_error_max_m        max over k of the distance |e_k|, position entries only
op_error_rms_m        sqrt(sum |e_k|^2 / K)
tension_min_N, _max_N extremes of the tensions that acted (none acts at time zero)
effort_max            maximum size of an effort of a joint motor; only where there are motors
qp_infeasible_steps   steps with status INFEASIBLE or worse (`cards_core.control.ControlStatus`)
control_rate_hz       controller steps per second of simulation time
loop_p50_us, _p99_us  percentiles of the duration of a controller step
trajectory_sha256     SHA-256 of the q of all steps as little-endian float64 in C order
verdict               ``ok``, ``failed`` or ``stopped``, see `cards_core.loop.verdict`
failures, warnings    why, and what else deserves attention: a sentence each
===================== ========================================================================

A number that does not exist for a run (an operational error of a joint-space controller, anything
of a controller where none ran) is null; so is one that values that are not finite would decide,
and ``failures`` says so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from cards_core.control.interface import ControlStatus
from cards_core.errors import DescriptionError
from cards_core.foreign_files import typed
from cards_core.json_values import json_value
from cards_core.loop.host import ANSWERED_MODES
from cards_core.loop.task_tally import POSITIONS, TaskTally
from cards_core.loop.verdict import Ending, HostFacts, TaskFacts, Verdict, judge
from cards_core.muscles.command import GateCondition
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import Muscle
from cards_core.trajectories import Tolerance
from cards_core.typing import Array
from cards_viz.runs.log import ControllerLog, RunLogError, SimulatorLog, not_finite

Space = Literal["joint", "operational"]

SUMMARY = "summary.json"
"""File of a run folder that has these numbers."""

KEYS = (
    "robot",
    "controller",
    "mode",
    "sim_time_s",
    "wall_time_s",
    "joint_error_max_rad",
    "joint_error_rms_rad",
    "joint_error_max_m",
    "joint_error_rms_m",
    "op_error_rms_m",
    "op_error_max_m",
    "tension_min_N",
    "tension_max_N",
    "qp_infeasible_steps",
    "control_rate_hz",
    "loop_p50_us",
    "loop_p99_us",
    "missed_deadlines",
    "trajectory_sha256",
    "verdict",
    "failures",
    "warnings",
)
"""Keys of ``summary.json`` that are always there, in this order."""


SILENCE = 0.5
"""Time that a controller may be silent at the end of a run, [s]."""


@dataclass(frozen=True)
class RunInfo:
    """What the logs do not know.

    Attributes:
        controller: Node name of the controller, e.g. ``ctc_joint``; ``none`` without one.
        mode: How time advanced, see `cards_core.loop.host.MODES`.
        wall_time_s: Duration of the run, [s].
        space: Space of the controller's error: joint coordinates or an operational frame.
        axes: Names of the controlled coordinates (``reference_names`` of the controller); empty:
            joint names, or x y z.
        duration_s: Time that the run was to take, [s]; 0: until the user ends it.
        stopped: Whether the user ended it.
        failures: What went wrong and is not in the logs, a sentence each; a run with any failed.
        warnings: What else deserves attention and is not in the logs.
        refusal: Why the last of the refused commands was refused, if that is known.
        extra: More entries for ``summary.json``, e.g. the gains.
    """

    controller: str
    mode: str
    wall_time_s: float
    space: Space = "joint"
    axes: tuple[str, ...] = ()
    duration_s: float = 0.0
    stopped: bool = False
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, metadata: Mapping[str, Any]) -> RunInfo:
        """Build from a plain mapping; keys that are no attribute go to `extra`.

        Raises:
            RunLogError: A key is missing or its value makes no sense.
        """
        data = {k: v.item() if isinstance(v, np.generic) else v for k, v in metadata.items()}
        for key in ("controller", "mode", "wall_time_s"):
            if key not in data:
                given = ", ".join(map(str, data)) or "none"
                raise RunLogError("run metadata", f"missing '{key}'", f"it beside {given}")
        known = {item.name: data.pop(item.name) for item in fields(cls) if item.name in data}
        operational = "operational" in str(known["controller"])
        space = known.setdefault("space", "operational" if operational else "joint")
        if space not in get_args(Space):
            raise RunLogError("run metadata", f"space '{space}'", " or ".join(get_args(Space)))
        for key in ("wall_time_s", "duration_s"):
            seconds = known.get(key, 0.0)
            if not isinstance(seconds, int | float) or not 0.0 <= seconds < math.inf:
                raise RunLogError("run metadata", f"{key} is {seconds!r}", "seconds, 0 or more")
        if isinstance(known.get("axes"), str):
            known["axes"] = list(known["axes"])
        try:
            info = typed(known, cls, "run metadata", "as a run writes it")
        except DescriptionError as error:
            place = f"{error.element}: " if error.element else ""
            raise RunLogError("run metadata", f"{place}{error.problem}", error.expected) from None
        clash = [key for key in (*info.extra, *data) if key in KEYS]
        if clash:
            raise RunLogError("run metadata", f"{', '.join(clash)} is computed", "another key")
        return replace(info, extra={**info.extra, **data})


def trajectory_sha256(q: Array) -> str:
    """Return the SHA-256 (hex) of ``q``, shape (T, nq), as little-endian float64, C order."""
    return hashlib.sha256(np.ascontiguousarray(q, dtype="<f8").tobytes()).hexdigest()


def verdict_of(
    simulator: SimulatorLog,
    controller: ControllerLog | None,
    info: RunInfo,
    *,
    muscles: Sequence[Muscle] = (),
    error_units: Sequence[str] = (),
) -> Verdict:
    """Return the verdict on a run.

    Args:
        simulator: Log of the simulator.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.
        muscles: Of the robot, in the order of the log's columns.
        error_units: ``m`` or ``rad`` of every entry of the controller's error; an error of unknown
            units is not judged.
    """
    reached = float(simulator.time[-1])
    # a run that something ended is not also too short
    wanted = 0.0 if info.failures else info.duration_s
    step = float(np.median(np.diff(simulator.time))) if len(simulator.time) > 1 else 0.0
    ending = Ending(reached, wanted, info.stopped, step=step)
    task = None
    if controller is not None:
        late = info.mode not in ANSWERED_MODES
        task = _task_facts(controller, error_units, late=late, reached=reached)
    host = _host_facts(simulator, muscles, info.refusal)
    # boards have watchdogs of their own, which know how late is too late
    real_time = info.mode == "realtime" and "hil" not in info.extra
    found = judge(host, task, ending, real_time=real_time)
    warnings = [*info.warnings, *found.warnings]
    if controller is not None and reached - controller.time[-1] > SILENCE:
        warnings.append(
            f"the controller's log ends at t = {controller.time[-1]:.3f} s, "
            f"the simulator's at t = {reached:.3f} s"
        )
    return Verdict.of((*info.failures, *found.failures), warnings, stopped=info.stopped)


def summarise(
    robot: str,
    simulator: SimulatorLog,
    controller: ControllerLog | None,
    info: RunInfo,
    *,
    muscles: Sequence[Muscle] = (),
    error_units: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the content of ``summary.json``: `KEYS`, then extras.

    Args:
        robot: Name of the robot.
        simulator: Log of the simulator.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.
        muscles: See `verdict_of`.
        error_units: See `verdict_of`.
    """
    out: dict[str, Any] = dict.fromkeys(KEYS)
    acted = simulator.tensions[simulator.time > 0.0]
    out |= {
        "robot": robot,
        "controller": info.controller,
        "mode": info.mode,
        "sim_time_s": _rounded(simulator.time[-1]),
        "wall_time_s": _rounded(info.wall_time_s),
        "tension_min_N": json_value(acted.min()) if acted.size else None,
        "tension_max_N": json_value(acted.max()) if acted.size else None,
        "trajectory_sha256": trajectory_sha256(simulator.q),
    }
    if simulator.efforts.size:
        out["effort_max"] = json_value(np.abs(simulator.efforts).max())
    if controller is not None:
        out |= _of_controller(controller, info, error_units)
    verdict = verdict_of(simulator, controller, info, muscles=muscles, error_units=error_units)
    out |= verdict.entries()
    out["simulator_rows"] = len(simulator.time)
    return out | dict(info.extra)


def position_entries(names: Sequence[str], width: int) -> int:
    """Return how many leading entries of an operational error are positions, [m].

    Args:
        names: Names of the controlled coordinates, may be empty.
        width: Number of entries of the error.
    """
    count = sum(name in POSITIONS for name in names) if names else 3
    return min(count, width)


def _of_controller(
    log: ControllerLog, info: RunInfo, error_units: Sequence[str]
) -> dict[str, Any]:
    """Entries that come from the controller's log."""
    error = log.error
    out: dict[str, Any] = {}
    if info.space == "joint":
        for unit in ("rad", "m"):
            entries = error[:, np.array(error_units[: error.shape[1]]) == unit]
            if entries.size:
                out[f"joint_error_max_{unit}"] = json_value(np.max(np.abs(entries)))
                out[f"joint_error_rms_{unit}"] = json_value(np.sqrt(np.mean(entries**2)))
    else:
        positions = position_entries(info.axes, error.shape[1])
        if positions:
            distance = np.linalg.norm(error[:, :positions], axis=1)
            out["op_error_rms_m"] = json_value(np.sqrt(np.mean(distance**2)))
            out["op_error_max_m"] = json_value(distance.max())
    span = log.time[-1] - log.time[0]
    p50, p99 = np.percentile(log.loop_us, [50.0, 99.0])
    out |= {
        "qp_infeasible_steps": int(np.sum(log.status >= ControlStatus.INFEASIBLE)),
        "joint_limit_steps": int(np.sum(log.status == ControlStatus.JOINT_LIMIT)),
        "control_rate_hz": _rounded((len(log.time) - 1) / span) if span > 0.0 else None,
        "loop_p50_us": _rounded(p50, 2),
        "loop_p99_us": _rounded(p99, 2),
        "missed_deadlines": int(log.missed_deadlines[-1]),
    }
    return out


def _rounded(value: Any, digits: int = 6) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None


NEAR_FULL = 0.999
"""Share of the maximum tension from which on a muscle is at its limit."""

NEAR_NONE = 1e-4
"""Share of the largest tension of the run up to which a cable is slack."""


def _is_ideal_cable(muscle: Muscle) -> bool:
    """Return whether its tension is commanded; elastic cables may hang, as in a tensegrity."""
    return isinstance(muscle.actuator, Cable) and muscle.actuator.stiffness is None


def _host_facts(log: SimulatorLog, muscles: Sequence[Muscle] = (), refusal: str = "") -> HostFacts:
    """Return what a host did.

    Args:
        log: Of the host.
        muscles: Of the robot, in the order of the columns; empty: it is not known which tensions
            are the largest.
        refusal: Why the last refused command was refused, if that is known.
    """
    time = log.time
    accepted = float(log.accepted[-1])
    steps = np.diff(time, prepend=time[0])
    watchdog = log.gate == GateCondition.WATCHDOG
    stopped = log.gate == GateCondition.STOPPED
    limits = np.array([muscle.tension_max for muscle in muscles])
    full, slack = {}, {}
    if muscles and log.tensions.shape[1] == len(muscles):
        acted = log.tensions[time > 0.0]
        shares = np.mean(log.tensions >= NEAR_FULL * limits, axis=0)
        full = {m.name: float(s) for m, s in zip(muscles, shares, strict=True) if s > 0.0}
        if len(acted):
            shares = np.mean(acted <= NEAR_NONE * acted.max(), axis=0)
            slack = {
                muscle.name: float(share)
                for muscle, share in zip(muscles, shares, strict=True)
                if share > 0.0 and _is_ideal_cable(muscle)
            }
    return HostFacts(
        steps=len(time),
        watchdog=int(watchdog.sum()),
        watchdog_time=_first(time, watchdog),
        watchdog_duration=float(steps[watchdog].sum()),
        stopped=int(stopped.sum()),
        stopped_time=_first(time, stopped),
        refused=int(log.refused[-1]),
        accepted=int(accepted) if math.isfinite(accepted) else None,
        refusal=refusal,
        behind=float(log.behind.max()),
        duration=float(time[-1]),
        saturated=full,
        slack=slack,
        not_finite=tuple(f"simulator log: {text}" for text in not_finite(log)),
    )


def _task_facts(
    log: ControllerLog, error_units: Sequence[str], *, late: bool, reached: float
) -> TaskFacts:
    """Return what a controller did.

    Args:
        log: Of the controller.
        error_units: ``m`` or ``rad`` of every entry of the error.
        late: Whether an answer could come too late.
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
        missed=int(log.missed_deadlines[-1]) if late else 0,
        reached=reached,
        not_finite=tuple(f"controller log: {text}" for text in not_finite(log)),
    )


def _first(time: np.ndarray, where: np.ndarray) -> float:
    return float(time[np.argmax(where)]) if where.any() else np.nan
