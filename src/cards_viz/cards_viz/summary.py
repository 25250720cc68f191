"""The numbers of a run: `summarise` makes the content of ``summary.json``.

Definitions, with e_k the error vector of controller step k of K and d its size:

===================== ========================================================================
sim_time_s            simulation time of the last step; runs begin at zero
joint_error_max_rad   max |e_ki| over all steps and joints
joint_error_rms_rad   sqrt(sum e_ki^2 / (K d))
op_error_max_m        max over k of the distance |e_k|, position entries only
op_error_rms_m        sqrt(sum |e_k|^2 / K)
tension_min_N, _max_N extremes of the tensions that acted (none acts at time zero)
qp_infeasible_steps   steps with status INFEASIBLE or worse (`cards_core.control.ControlStatus`)
control_rate_hz       controller steps per second of simulation time
loop_p50_us, _p99_us  percentiles of the duration of a controller step
trajectory_sha256     SHA-256 of the q of all steps as little-endian float64 in C order
===================== ========================================================================

A number that does not exist for a run (an operational error of a joint-space controller, anything
of a controller where none ran) is null; so is one that values that are not finite would decide,
and ``warnings`` says so.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from cards_core.control.interface import ControlStatus
from cards_core.typing import Array
from cards_viz.run_log import ControllerLog, RunLogError, SimulatorLog, not_finite

Space = Literal["joint", "operational"]

KEYS = (
    "robot",
    "controller",
    "mode",
    "sim_time_s",
    "wall_time_s",
    "joint_error_max_rad",
    "joint_error_rms_rad",
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
)
"""Keys of ``summary.json`` that are always there, in this order."""


@dataclass(frozen=True)
class RunInfo:
    """What the logs do not know.

    Attributes:
        controller: Node name of the controller, e.g. ``ctc_joint``; ``none`` without one.
        mode: ``lockstep``, ``realtime`` or ``as_fast_as_possible``.
        wall_time_s: Duration of the run, [s].
        space: Space of the controller's error: joint coordinates or an operational frame.
        axes: Names of the controlled coordinates (``reference_names`` of the controller); empty:
            joint names, or x y z.
        extra: More entries for ``summary.json``, e.g. the gains.
    """

    controller: str
    mode: str
    wall_time_s: float
    space: Space = "joint"
    axes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_mapping(cls, metadata: Mapping[str, Any]) -> RunInfo:
        """Build from a plain mapping; keys that are no attribute go to `extra`.

        Raises:
            RunLogError: A key is missing or its value makes no sense.
        """
        data = dict(metadata)
        for key in ("controller", "mode", "wall_time_s"):
            if key not in data:
                given = ", ".join(map(str, data)) or "none"
                raise RunLogError("run metadata", f"missing '{key}'", f"it beside {given}")
        controller = str(data.pop("controller"))
        default = "operational" if "operational" in controller else "joint"
        space = data.pop("space", default)
        if space not in get_args(Space):
            raise RunLogError("run metadata", f"space '{space}'", " or ".join(get_args(Space)))
        wall = data.pop("wall_time_s")
        if not isinstance(wall, int | float) or not math.isfinite(wall) or wall < 0:
            raise RunLogError("run metadata", f"wall_time_s is {wall!r}", "seconds, 0 or more")
        extra = dict(data.pop("extra", {}))
        mode, axes = str(data.pop("mode")), tuple(map(str, data.pop("axes", ())))
        clash = [key for key in (*extra, *data) if key in (*KEYS, "warnings")]
        if clash:
            raise RunLogError("run metadata", f"{', '.join(clash)} is computed", "another key")
        return cls(controller, mode, float(wall), space, axes, {**extra, **data})


def trajectory_sha256(q: Array) -> str:
    """Return the SHA-256 (hex) of ``q``, shape (T, nq), as little-endian float64, C order."""
    return hashlib.sha256(np.ascontiguousarray(q, dtype="<f8").tobytes()).hexdigest()


def summarise(
    robot: str, simulator: SimulatorLog, controller: ControllerLog | None, info: RunInfo
) -> dict[str, Any]:
    """Return the content of ``summary.json``: `KEYS`, ``warnings``, then extras.

    Args:
        robot: Name of the robot.
        simulator: Log of the simulator.
        controller: Log of the controller, None where none ran.
        info: What the logs do not know.
    """
    out: dict[str, Any] = dict.fromkeys(KEYS)
    warnings = [f"simulator log: {text}" for text in not_finite(simulator)]
    acted = simulator.tensions[simulator.time > 0.0]
    out |= {
        "robot": robot,
        "controller": info.controller,
        "mode": info.mode,
        "sim_time_s": _rounded(simulator.time[-1]),
        "wall_time_s": _rounded(info.wall_time_s),
        "tension_min_N": _number(acted.min()) if acted.size else None,
        "tension_max_N": _number(acted.max()) if acted.size else None,
        "trajectory_sha256": trajectory_sha256(simulator.q),
    }
    if controller is not None:
        warnings += [f"controller log: {text}" for text in not_finite(controller)]
        out |= _of_controller(controller, info)
    out["warnings"] = warnings
    out["simulator_rows"] = len(simulator.time)
    return out | dict(info.extra)


def position_entries(names: Sequence[str], width: int) -> int:
    """Return how many leading entries of an operational error are positions, [m].

    Args:
        names: Names of the controlled coordinates, may be empty.
        width: Number of entries of the error.
    """
    count = sum(name in ("x", "y", "z") for name in names) if names else 3
    return min(count, width)


def _of_controller(log: ControllerLog, info: RunInfo) -> dict[str, Any]:
    """Entries that come from the controller's log."""
    error = log.error
    out: dict[str, Any] = {}
    if info.space == "joint":
        if error.size:
            out["joint_error_max_rad"] = _number(np.max(np.abs(error)))
            out["joint_error_rms_rad"] = _number(np.sqrt(np.mean(error**2)))
    else:
        positions = position_entries(info.axes, error.shape[1])
        if positions:
            distance = np.linalg.norm(error[:, :positions], axis=1)
            out["op_error_rms_m"] = _number(np.sqrt(np.mean(distance**2)))
            out["op_error_max_m"] = _number(distance.max())
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


def _number(value: Any) -> float | None:
    """Return a float, or None for what JSON has no word for."""
    return float(value) if math.isfinite(value) else None


def _rounded(value: Any, digits: int = 6) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None
