"""From the logs of a run on emulated boards to the numbers of a run in simulation.

The plant logs true states in its own time; the controller logs what the boards measured, stamped
with ROS time. `align` converts the controller's log to the plant's time and replaces measured by
true states, so ``op_error_rms_m`` of the summary has the same meaning as in simulation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_bringup.hil.run import BridgeStatus, HilRun
from cards_bringup.nodes.in_process import InProcessRun
from cards_bringup.nodes.plan import Plan
from cards_core.control import Controller
from cards_core.errors import CardsError
from cards_core.files import replacing
from cards_core.foreign_files import read_arrays
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG
from cards_core.loop.task_tally import units_of
from cards_core.loop.verdict import NOTABLE_SHARE
from cards_core.typing import Array
from cards_hardware.bridge.board_host import LOG_NAME as BRIDGE_LOG
from cards_hardware.hil.plant import HIL_LOG
from cards_hardware.protocol.enums import State

Table = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Alignment:
    """What `align` found.

    Attributes:
        measured_rms: RMS of the controller's own error, position entries or joints, [m] or [rad].
        rows: Controller steps within the run.
    """

    measured_rms: float | None
    rows: int


def align(folder: Path, plan: Plan, overrides: Mapping[str, Mapping[str, Any]]) -> Alignment:
    """Rewrite ``controller.npz``: plant time, true place, true error.

    What the controller saw is kept as ``measured`` and ``measured_error``, its stamps as
    ``stamp``. Of quaternions the measured error stays.

    Args:
        folder: Run folder with ``controller.npz``, ``simulator.npz`` and ``hil.npz``.
        plan: What was run.
        overrides: Node name to parameters beyond the plan's.

    Raises:
        CardsError: A log is missing or holds nothing of the run.
    """
    path = folder / CONTROLLER_LOG
    logs = (path, folder / SIMULATOR_LOG, folder / HIL_LOG)
    controller, plant, hil = (read_arrays(log, expected="a log") for log in logs)
    wall, time = hil["wall"], hil["time"]
    if len(time) < 2:
        raise CardsError(f"{folder}: the plant has logged nothing, no command reached the drives")
    stamp = controller["time"]
    inside = (stamp >= wall[0]) & (stamp <= wall[-1])
    reached = np.interp(stamp, wall, time)
    inside[1:] &= np.diff(reached) > 0.0
    if not inside.any():
        raise CardsError(f"{path}: no step within the time of {folder / HIL_LOG}")
    rows = len(stamp)
    controller = {
        name: values[inside] if values.shape[:1] == (rows,) else values
        for name, values in controller.items()
    }
    controller["stamp"] = controller["time"]
    controller["time"] = reached[inside]
    q, qd = (
        np.column_stack([np.interp(controller["time"], time, column) for column in plant[name].T])
        for name in ("q", "qd")
    )
    tracker = _controller(plan, overrides)
    truth = np.array([tracker.place(*row) for row in zip(q, qd, strict=True)])
    measured, error = controller["actual"], controller["error"]
    controller["measured"], controller["measured_error"] = measured, error
    width = min(truth.shape[1], error.shape[1])
    if error.shape[1] != truth.shape[1]:
        # a quaternion has no difference
        width = units_of(tracker)[0].count("m") if tracker.space == "operational" else 0
    true_error = error.copy()
    true_error[:, :width] += measured[:, :width] - truth[:, :width]
    controller["actual"], controller["error"] = truth, true_error
    with replacing(path) as part, part.open("wb") as out:
        np.savez(out, **controller)  # type: ignore[arg-type]  # its stub knows one option only
    squares = np.sum(error[:, :width] ** 2, axis=1)
    rms = float(np.sqrt(np.mean(squares))) if width else None
    return Alignment(rms, int(inside.sum()))


def _controller(plan: Plan, overrides: Mapping[str, Mapping[str, Any]]) -> Controller:
    (name,) = (node.name for node in plan.nodes if node.role == "controller")
    run = InProcessRun(plan, {name: {**overrides.get(name, {}), "log_dir": ""}}, 0.0, Path())
    return make_control_loop(name, run.parameters(name)).controller


def demo_entries(run: HilRun, *, stopped: bool) -> dict[str, Any]:
    """Bring logs into the form of a simulated run, plot delays, return entries of the summary.

    Args:
        run: The run, after its end.
        stopped: Whether the user ended the run.

    Raises:
        CardsError: A log is missing or holds nothing of the run.
    """
    assert run.plan is not None
    alignment = align(run.folder, run.plan, run.overrides)
    plot(run.folder)
    found = extras(run.folder, run.firmware, run.status, run.bridge, alignment)
    added = findings(run.folder, found, stopped=stopped)
    return {"simulator": "hardware in the loop", "hil": found, **added}


# The extra entries of summary.json ------------------------------------------------------------


def extras(
    folder: Path,
    firmware: str,
    status: Mapping[str, Any],
    bridge: Mapping[str, BridgeStatus],
    alignment: Alignment | None,
) -> dict[str, Any]:
    """Return the entry ``hil`` of ``summary.json``.

    Args:
        folder: Run folder.
        firmware: What ran on the boards.
        status: Last status of the plant.
        bridge: Last status of every aspect of the bridge.
        alignment: What `align` found, if a controller ran.
    """
    hil = read_arrays(folder / HIL_LOG)
    boards = {
        aspect.removeprefix("board "): {key: _number(text) for key, text in item.values.items()}
        for aspect, item in bridge.items()
        if aspect.startswith("board ")
    }
    latency = hil["latency"][np.isfinite(hil["latency"])]
    plant_time = float(status.get("wall_s", math.nan))

    def numbers(key: str) -> list[Any]:
        found = [board.get(key) for board in boards.values()]
        return [value for value in found if isinstance(value, int | float)]

    def total(key: str) -> Any:
        values = numbers(key)
        return sum(values) if values else None

    return {
        "firmware": firmware,
        "state_rate_hz": state_rate(folder, hil),
        "command_to_tension_ms": percentiles(1e3 * latency),
        "state_age_ms": _state_ages(folder, hil),
        "commands": int(latency.size),
        "frames": total("rx_ok"),
        "crc_errors": total("crc_errors"),
        "rx_crc": total("rx_crc"),
        "lost_frames": total("lost_frames"),
        "tx_dropped": total("tx_dropped"),  # by boards: these have no number that could be missing
        "refused": _refused(boards),
        "muscles_out": _muscles_out(boards),
        "tick_late": total("tick_late"),
        "tick_max_us": max(numbers("tick_max_us"), default=None),
        "ticks": status.get("ticks"),
        "ticks_skipped": status.get("ticks_skipped"),
        "drive_frames": status.get("drive_frames"),
        "drive_frames_damaged": status.get("drive_frames_damaged"),
        "plant_load": round(float(status["cpu_s"]) / plant_time, 4) if plant_time > 0.0 else None,
        "speed": _speed(hil),
        "measured_error_rms": alignment.measured_rms if alignment else None,
        "boards": boards,
    }


def findings(folder: Path, hil: Mapping[str, Any], *, stopped: bool) -> dict[str, list[str]]:
    """Return ``failures`` and ``warnings`` of the boards for the verdict, a sentence each.

    Args:
        folder: Run folder.
        hil: What `extras` returned.
        stopped: Whether the user ended the run: the boards then relax as they should.
    """
    failures = [
        f"muscle {name} was taken out by its board: {why}"
        for name, why in hil["muscles_out"].items()
    ]
    warnings = []
    states = _bridge_rows(folder, read_arrays(folder / HIL_LOG))
    if states is not None and len(states["time"]):
        time, state = states["time"] - states["time"][0], states["board_state"]
        driven = np.isin(state, (State.ACTIVE, State.HOLD))
        if stopped and driven.any():
            last = len(driven) - int(np.argmax(driven[::-1]))
            time, state = time[:last], state[:last]
        gone = np.isin(state, (State.RELAX, State.FAULT, State.ESTOP))
        if gone.any():
            first = int(np.argmax(gone))
            failures.append(
                f"a board let its muscles go at t = {time[first]:.3f} s "
                f"({State(int(state[first])).name})"
            )
        held = float(np.mean(state == State.HOLD))
        if held > 0.0:
            warnings.append(f"a board waited for a command in {held:.2%} of the states (HOLD)")
    if hil["speed"] is not None and hil["speed"] < 1.0 - NOTABLE_SHARE:
        warnings.append(f"slower than real time: {hil['speed']:.3g} times")
    if refused := sum(hil["refused"].values()):
        warnings.append(f"{refused} frames were refused by boards")
    return {"failures": failures, "warnings": warnings}


def percentiles(values: Array) -> dict[str, float | int | None]:
    """Return count, p50, p99 and max."""
    if not values.size:
        return {"count": 0, "p50": None, "p99": None, "max": None}
    p50, p99 = np.percentile(values, [50.0, 99.0])
    return {
        "count": int(values.size),
        "p50": round(float(p50), 4),
        "p99": round(float(p99), 4),
        "max": round(float(values.max()), 4),
    }


def state_rate(folder: Path, hil: Table) -> float | None:
    """Return the rate at which the bridge published states during the run, [Hz]."""
    states = _bridge_rows(folder, hil)
    if states is None or len(states["time"]) < 2:
        return None
    span = float(states["time"][-1] - states["time"][0])
    return round((len(states["time"]) - 1) / span, 2)


def _state_ages(folder: Path, hil: Table) -> dict[str, float | int | None] | None:
    states = _bridge_rows(folder, hil)
    return None if states is None else percentiles(1e3 * states["age"])


def _bridge_rows(folder: Path, hil: Table) -> Table | None:
    path = folder / BRIDGE_LOG
    if not path.exists():
        return None
    states = read_arrays(path)
    inside = (states["time"] >= hil["wall"][0]) & (states["time"] <= hil["wall"][-1])
    return {name: states[name][inside] for name in ("time", "age", "board_state")}


def _speed(hil: Table) -> float | None:
    """Return plant time per real time: below 1 where the machine was too slow."""
    passed = float(hil["monotonic"][-1] - hil["monotonic"][0])
    return round(float(hil["time"][-1] - hil["time"][0]) / passed, 5) if passed > 0.0 else None


def _refused(boards: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    out: dict[str, int] = {}
    for board in boards.values():
        for key, value in board.items():
            if key.startswith("refused_") and isinstance(value, int):
                cause = key.removeprefix("refused_")
                out[cause] = out.get(cause, 0) + value
    return out


def _muscles_out(boards: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the muscles that their boards took out during the run, and why."""
    return {
        key.removeprefix("muscle "): str(value)
        for board in boards.values()
        for key, value in board.items()
        if key.startswith("muscle ") and "relaxed" in str(value).split(", ")
    }


def _number(text: str) -> int | float | str | bool | None:
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else None
    return {"True": True, "False": False}.get(text, text)


# What is shown ----------------------------------------------------------------------------------


def lines(hil: Mapping[str, Any]) -> list[str]:
    """Return the lines of the entry ``hil`` for a terminal."""

    def row(label: str, value: Any, unit: str) -> str:
        shown = "unknown" if value is None else f"{value:10.4g}"
        return f"{label:<26} {shown} {unit}".rstrip()

    latency = hil["command_to_tension_ms"]
    return [
        f"{'firmware':<26} {hil['firmware']:>10}",
        row("state rate", hil["state_rate_hz"], "Hz"),
        row("command to tension, median", latency["p50"], "ms"),
        row("command to tension, 99 %", latency["p99"], "ms"),
        row("command to tension, max", latency["max"], "ms"),
        row("damaged frames", hil["crc_errors"], ""),
        row("lost states", hil["lost_frames"], ""),
        row("refused frames", sum(hil["refused"].values()), ""),
        *(
            f"muscle {name} was taken out by its board: {why}"
            for name, why in hil["muscles_out"].items()
        ),
    ]


def plot(folder: Path) -> None:
    """Draw ``latency.png``: command to tension and age of the states, over time and counted."""
    from cards_viz.plots.drawing import save
    from cards_viz.plots.runs import latencies

    hil = read_arrays(folder / HIL_LOG)
    fresh = np.isfinite(hil["latency"])
    series = {"command to drives": (hil["time"][fresh], 1e3 * hil["latency"][fresh])}
    states = _bridge_rows(folder, hil)
    if states is not None and len(states["time"]):
        when = np.interp(states["time"], hil["wall"], hil["time"])
        series["sensors to topic"] = (when, 1e3 * states["age"])
    save(latencies(series), folder / "latency.png")
