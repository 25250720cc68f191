"""Snapshots of boards read over their serial ports, without a bridge."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cards_core.robot.model import Robot
from cards_hardware.boards.board import Board
from cards_hardware.boards.events import BoardEvent, flag_names, state_word
from cards_hardware.boards.layout import BAUDRATE, BoardLayout, Layout
from cards_hardware.boards.status import BoardStatus
from cards_hardware.errors import HardwareError
from cards_hardware.monitor.snapshot import (
    EVENTS,
    NAN,
    SERIOUS,
    BoardRow,
    JointRow,
    MuscleRow,
    Snapshot,
)
from cards_hardware.protocol.enums import EventCode, FastFlag, MuscleFlag


class BoardMonitor:
    """Reads boards over their serial ports.

    Args:
        boards: What to open; without muscles and joints whatever answers there.
        robot: For the title and joint limits; None if it does not matter.

    Raises:
        HardwareError: No board answers; one that does is enough.
    """

    def __init__(self, boards: Sequence[BoardLayout], robot: Robot | None = None) -> None:
        self._robot = robot
        self._events: deque[BoardEvent] = deque(maxlen=EVENTS)
        # without limits, so that nothing is written to a board that somebody only looks at
        self._boards = [
            Board(
                replace(layout, limits=()),
                on_event=self._events.append,
                any_node=not layout.muscles and not layout.joints,
            )
            for layout in boards
        ]
        self._limits: dict[str, Mapping[str, Any]] = {}
        self._bounds = _bounds(robot)
        errors = []
        for board in self._boards:
            try:
                board.open()
            except HardwareError as error:
                errors.append(error)
        if len(errors) == len(self._boards):
            self.close()
            raise errors[0]

    @classmethod
    def of_robot(cls, robot: Robot, layout: Layout) -> BoardMonitor:
        """Look at all boards of a robot."""
        return cls(layout.boards, robot)

    @classmethod
    def of_port(cls, port: str, baudrate: int | None = None) -> BoardMonitor:
        """Look at whatever boards are at these ports, separated by commas."""
        return cls(
            [
                BoardLayout(f"board {number}" if "," in port else "board", 1, one, speed)
                for number, one in enumerate(port.split(","), 1)
                for speed in [baudrate or BAUDRATE]
            ]
        )

    def snapshot(self) -> Snapshot:
        """Return how the boards are now."""
        statuses = [board.status() for board in self._boards]
        muscles: list[MuscleRow] = []
        joints: list[JointRow] = []
        for board, status in zip(self._boards, statuses, strict=True):
            muscles += self._muscles(board, status)
            joints += self._joints(board)
        now = time.monotonic()
        title = self._robot.name if self._robot else " ".join(b.layout.port for b in self._boards)
        return Snapshot(
            title=title,
            source="serial line",
            boards=tuple(_board_row(status) for status in statuses),
            muscles=tuple(muscles),
            joints=tuple(joints),
            events=tuple(
                (now - event.time, event.severity, _event_text(event)) for event in self._events
            ),
        )

    def estop(self) -> str:
        """Send every board an emergency stop; one that is away gets it when it comes back."""
        for board in self._boards:
            board.estop()
        return "emergency stop sent to " + ", ".join(b.layout.name for b in self._boards)

    def close(self) -> None:
        """Close the ports."""
        for board in self._boards:
            board.close()

    def _muscles(self, board: Board, status: BoardStatus) -> list[MuscleRow]:
        sample = board.sample
        if sample is None:
            return [MuscleRow(name) for name in board.layout.muscles]
        limits = self._limits_of(board)
        names = board.layout.muscles or [f"muscle {i}" for i in range(len(sample.lengths))]
        out = []
        for i, name in enumerate(names):
            flags = _at(status.muscle_flags, i, MuscleFlag(0))
            out.append(
                MuscleRow(
                    name=name,
                    length=float(sample.lengths[i]),
                    rate=float(sample.rates[i]),
                    tension=float(sample.tensions[i]),
                    current=float(sample.currents[i]),
                    housing=_at(status.temperatures, i, NAN),
                    core=_at(status.core_temperatures, i, NAN),
                    tension_limit=_at(status.tension_limits, i, NAN),
                    length_min=_at(limits.get("length_min", ()), i, NAN),
                    length_max=_at(limits.get("length_max", ()), i, NAN),
                    soft=_at(limits.get("soft", ()), i, 60.0),
                    hard=_at(limits.get("hard", ()), i, 80.0),
                    flags=flag_names(flags),
                    serious=bool(flags & SERIOUS),
                )
            )
        return out

    def _joints(self, board: Board) -> list[JointRow]:
        sample = board.sample
        if sample is None:
            return []
        names = [
            self._bounds[row][0] if row < len(self._bounds) else ""
            for row in board.layout.position_rows
        ] or [f"joint {i}" for i in range(len(sample.positions))]
        rows = [int(row) for row in board.layout.position_rows]
        out = []
        for i, name in enumerate(names):
            _, lower, upper = self._bounds[rows[i]] if rows else ("", -math.inf, math.inf)
            position, velocity = float(sample.positions[i]), float(sample.velocities[i])
            out.append(JointRow(name, position, velocity, lower, upper))
        return out

    def _limits_of(self, board: Board) -> Mapping[str, Any]:
        """Limits that a board has; asked for once in a session."""
        name, sample = board.layout.name, board.sample
        loaded = sample is not None and sample.flags & FastFlag.LIMITS_LOADED
        if not board.connected or not loaded:
            self._limits.pop(name, None)
            return {}
        if name not in self._limits:
            try:
                self._limits[name] = board.get_limits()
            except HardwareError:
                self._limits[name] = {}  # not again: it takes time
        return self._limits[name]


def _board_row(status: BoardStatus) -> BoardRow:
    counters = {
        "damaged": status.crc_errors,
        "lost": status.lost_frames,
        "rx damaged": status.rx_crc,
        "rx lost": status.rx_gap,
        "tx dropped": status.tx_dropped,
        "drive errors": status.drive_errors,
        "late ticks": status.tick_late,
        "reconnects": status.reconnects,
        "resets": status.resets,
        **{f"refused: {cause}": count for cause, count in status.refused.items()},
    }
    who = f"firmware {status.firmware}, {status.uid}" if status.firmware else ""
    return BoardRow(
        name=status.name,
        port=status.port,
        state=state_word(status.state) if status.connected else "unknown",
        connected=status.connected,
        problem=status.problem,
        faults=flag_names(status.fault),
        vbus=status.vbus,
        state_rate=status.state_rate,
        state_age=status.state_age,
        latency_p99=status.latency_p99,
        heartbeat_gap=status.line.beat_gap,
        reply=status.line.reply,
        heartbeat_jitter=str(status.line.beat_jitter),
        replies=str(status.line.replies),
        counters={name: count for name, count in counters.items() if count},
        who=who,
        simulated=status.simulated,
    )


def _event_text(event: BoardEvent) -> str:
    muscle = f" {event.muscle}" if event.muscle else ""
    return f"{event.board}{muscle}: {event.text or _code_text(event.code, event.value)}"


def _code_text(code: int | None, value: int) -> str:
    """Return what an event without a text says."""
    known = None if code is None else _CODES.get(code)
    if known is None:
        return f"event {code}, value {value}"
    if known == EventCode.STATE:
        return f"{state_word(value >> 8)} -> {state_word(value & 255)}"
    what, _, meaning = known.text.partition("; value")
    return f"{what} ({value})" if meaning else what


_CODES = {int(item): item for item in EventCode}


def _bounds(robot: Robot | None) -> list[tuple[str, float, float]]:
    """Return name and limits of every coordinate."""
    if robot is None:
        return []
    tree = robot.tree
    return list(zip(tree.position_names, tree.lower.tolist(), tree.upper.tolist(), strict=True))


def _at(values: Any, index: int, otherwise: Any) -> Any:
    return values[index] if index < len(values) else otherwise
