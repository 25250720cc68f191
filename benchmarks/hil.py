"""``./cards bench hil``: the whole chain for minutes at full rate; what is lost, how memory grows.

The robot follows its reference on the emulated boards, then holds its end. Measured are the jitter
at each stage of the chain, lost states, and the memory of every process over time.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.hil.results import extras, findings
from cards_bringup.hil.run import HilRun
from cards_bringup.nodes.supervisor import Supervisor
from cards_core.errors import CardsError
from cards_core.loop.verdict import Verdict
from cards_core.typing import Array
from cards_hardware.bridge.board_host import LOG_NAME as BRIDGE_LOG
from cards_hardware.hil.rig import Rig

MEMORY_PERIOD = 2.0
"""How often memory is looked at, [s]."""

SETTLED = 0.2
"""Fraction of the run after which memory must no longer grow: caches and buffers are complete."""

EDGES_MS = (0.0, 0.5, 1.0, 1.5, 1.8, 1.9, 2.1, 2.2, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0)
"""Edges of the histogram of times between states, [ms]; the period is 2 ms."""


@dataclass
class Memory:
    """Resident memory of processes over time.

    Attributes:
        times: When it was looked at, [s].
        rows: Process to its memory then, [MB].
    """

    times: list[float] = field(default_factory=list)
    rows: dict[str, list[float]] = field(default_factory=dict)

    def look(self, processes: dict[str, int]) -> None:
        """Add a row."""
        self.times.append(time.monotonic())
        for name, number in processes.items():
            self.rows.setdefault(name, []).append(resident(number))

    def summary(self) -> dict[str, dict[str, float | None]]:
        """Return per process first, settled, last and largest memory [MB], and its growth.

        The growth, [MB] per minute, is the slope of a line through all that was seen once the
        run had settled.
        """
        out: dict[str, dict[str, float | None]] = {}
        times = np.array(self.times)
        for name, row in self.rows.items():
            values = np.array(row)
            then = times[-len(values) :]
            settled = (then >= then[0] + SETTLED * (then[-1] - then[0])) & np.isfinite(values)
            t, y = then[settled], values[settled]
            slope = float(np.polyfit(t - t[0], y, 1)[0]) * 60.0 if len(t) > 2 else None
            out[name] = {
                "first_mb": _rounded(values[0]),
                "settled_mb": _rounded(y[0]) if len(y) else None,
                "last_mb": _rounded(y[-1]) if len(y) else None,
                "max_mb": _rounded(np.nanmax(values)) if np.isfinite(values).any() else None,
                "growth_mb_per_min": None if slope is None else round(slope, 4),
            }
        return out


def resident(process: int) -> float:
    """Return the resident memory of a process, [MB]; NaN if it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{process}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024.0
    return float("nan")


def bench_hil(
    robot: str, minutes: float, firmware: str, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run the chain for some minutes.

    Args:
        robot: A robot with a node list and boards.
        minutes: Time after the first command.
        firmware: See `cards_bringup.hil.options.FIRMWARES`.
        say: Told what is done.

    Returns:
        The figures; see the module. ``stopped`` says why the run ended too early, if it did.

    Raises:
        CardsError: A part does not start.
    """
    memory = Memory()
    processes: list[Callable[[], dict[str, int]]] = []

    def ready(rig: Rig, nodes: Supervisor) -> None:
        processes.append(lambda: {**rig.process_ids, **nodes.process_ids})

    begin = time.monotonic()
    due, told = 0.0, 0.0

    def on_time(reached: float) -> None:
        nonlocal due, told
        now = time.monotonic()
        if now >= due:
            due = now + MEMORY_PERIOD
            memory.look(processes[0]())
        if now >= told:
            told = now + 30.0
            say(f"{reached:.0f} of {60.0 * minutes:.0f} s")

    folder = Path(tempfile.mkdtemp(prefix="cards-soak-"))
    stopped = None
    try:
        # the bridge's log has one row per state; that of the controller would say no more
        overrides = {"hardware": {"log_dir": str(folder), "model": robot}}
        given = {"rviz": "false", "view": "false", "headless": "true"}
        run = HilRun(
            given, robot, robot, overrides, 60.0 * minutes, folder, firmware, log_every=20
        )
        try:
            run.run(on_time, say, ready)
        except CardsError as error:
            if not run.status.get("commanded_s"):
                raise
            stopped = str(error)  # what was measured until then is worth more than nothing
        hil = extras(folder, firmware, run.status, run.bridge, None)
        found = findings(folder, hil, stopped=False)
        verdict = Verdict.of(
            [*([stopped] if stopped else []), *found["failures"]], found["warnings"]
        )
        hil["commands"] = run.status.get("commands")  # the plant's log has every 20th tick only
        intervals = _state_intervals(folder)
    finally:
        if stopped is None:
            shutil.rmtree(folder, ignore_errors=True)  # else its logs say what happened
    boards = hil.pop("boards")
    return {
        "robot": robot,
        "minutes": minutes,
        "ran_s": run.status.get("commanded_s"),
        "stopped": stopped,
        **verdict.entries(),
        "wall_s": round(time.monotonic() - begin, 1),
        **hil,
        "lost_states": hil["lost_frames"],
        "state_interval_ms": _histogram(intervals),
        "device_tick_us": run.status.get("device_tick_us"),
        "command_to_tension_ms": run.status.get("command_to_drive_ms"),
        "tick_interval_ms": run.status.get("tick_interval_ms"),
        "boards": boards,
        "memory": memory.summary(),
    }


def _state_intervals(folder: Path) -> Array:
    """Return the times between the stamps of states that were published, [ms]."""
    with np.load(folder / BRIDGE_LOG, allow_pickle=False) as log:
        active = log["active"] > 0.0
        intervals: Array = 1e3 * np.diff(log["time"][active])
    return intervals


def _histogram(values: Array) -> dict[str, Any]:
    edges = np.array([*EDGES_MS, np.inf])
    counts, _ = np.histogram(values, edges)
    names = [f"{low:g}..{high:g}" for low, high in itertools.pairwise(edges)]
    p50, p99 = np.percentile(values, [50.0, 99.0]) if len(values) else (np.nan, np.nan)
    return {
        "count": len(values),
        "p50": _rounded(p50),
        "p99": _rounded(p99),
        "max": _rounded(values.max()) if len(values) else None,
        "histogram": dict(zip(names, counts.tolist(), strict=True)),
    }


def _rounded(value: Any) -> float | None:
    return round(float(value), 3) if np.isfinite(value) else None
