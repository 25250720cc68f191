"""How a board is: what is known of it, piece by piece and put together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cards_hardware.board_data import BoardSample, BoardStatus, Ident, flag_words
from cards_hardware.board_inbox import Inbox
from cards_hardware.board_layout import BoardLayout
from cards_hardware.exchange import Exchange
from cards_hardware.protocol.enums import AckCode, Fault, MuscleFlag, State
from cards_hardware.serial_link import SerialLink
from cards_hardware.session import Session
from cards_hardware.telemetry import Telemetry

_STATES = frozenset(int(item) for item in State)
_COUNTERS = ("rx_ok", "rx_crc", "rx_gap", "tx_dropped", "drive_errors", "tick_late")


class BoardView:
    """What is known of a board. Base of `Board`, where its attributes are described."""

    layout: BoardLayout
    link: SerialLink
    reconnects: int
    resets: int
    _session: Session
    _exchange: Exchange
    _inbox: Inbox
    _connected: bool
    _armed: bool
    _problem: str
    _estop: int | None

    @property
    def ident(self) -> Ident | None:
        """Who it said it is."""
        return self._session.ident

    @property
    def sample(self) -> BoardSample | None:
        """Newest STATE_FAST of this session."""
        return self._inbox.telemetry.sample

    @property
    def telemetry(self) -> Telemetry:
        """What it sent, counted and timed."""
        return self._inbox.telemetry

    @property
    def slow(self) -> Mapping[str, Any]:
        """Newest STATE_SLOW of this session; empty before the first."""
        return self.telemetry.slow

    @property
    def connected(self) -> bool:
        """Whether there is a session."""
        return self._connected

    @property
    def armed(self) -> bool:
        """Whether commands go to the board."""
        return self._armed

    @property
    def state(self) -> int | None:
        """State that the board reported last; None without a session."""
        return self._inbox.state if self._connected else None

    @property
    def fault(self) -> int:
        """Bits of `Fault` that the board reported last."""
        return self._inbox.fault

    @property
    def node(self) -> int:
        """Its address."""
        return self._exchange.node

    @property
    def foreign_frames(self) -> int:
        """Frames of other nodes on the line."""
        return self._session.foreign

    @property
    def simulated(self) -> bool:
        """Whether the board says that it is emulated."""
        return self._inbox.simulated

    @property
    def estop_pending(self) -> bool:
        """Whether an emergency stop waits for the line to come back."""
        return self._estop is not None and not self.link.is_open

    @property
    def problem(self) -> str:
        """Why the board cannot be used now; empty if it can."""
        if self._problem:
            return self._problem
        if self._session.doubled:
            return self._session.doubled
        if self._inbox.state == State.ESTOP:
            return "emergency stop: clear it when the cause is gone"
        if self._inbox.state == State.FAULT:
            return f"fault: {'; '.join(flag_words(Fault(self._inbox.fault))) or 'unknown'}"
        return ""

    def status(self) -> BoardStatus:
        """Return how it is."""
        return status_of(self)


def status_of(board: BoardView) -> BoardStatus:
    """Return the status of a board."""
    telemetry, link, ident, state = board.telemetry, board.link, board.ident, board.state
    latency = telemetry.command_latency.summary()
    fields: dict[str, Any] = {}
    if slow := telemetry.slow:
        fields = _slow_fields(board.layout, slow)
    if ident is not None:
        fields["firmware"], fields["uid"] = ident.firmware, ident.uid
        fields["boot_count"] = ident.boot_count
    clock = telemetry.clock
    if clock.ready:
        fields["clock_error"] = clock.error
        fields["clock_drift"], fields["rtt"] = clock.drift, clock.rtt
    fault = Fault(board.fault)
    return BoardStatus(
        name=board.layout.name,
        node=board.node,
        port=link.port,
        connected=board.connected,
        armed=board.armed,
        problem=board.problem,
        state=State(state) if state in _STATES else None,
        fault=fault,
        faults=flag_words(fault),
        frames=telemetry.frames,
        lost_frames=telemetry.lost,
        crc_errors=link.decoder.errors,
        foreign_frames=board.foreign_frames,
        replaced_commands=link.replaced,
        reconnects=board.reconnects,
        resets=board.resets,
        state_age=telemetry.age(),
        state_rate=telemetry.rate if board.connected else 0.0,
        latency_p50=latency.p50,
        latency_p99=latency.p99,
        command_latency=latency,
        sample_delay=telemetry.sample_delay.summary(),
        simulated=board.simulated,
        **fields,
    )


def muscle_faults(layout: BoardLayout, slow: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the flags of muscles in words, of those that have any.

    Args:
        layout: Of the board.
        slow: Its newest STATE_SLOW, empty before the first.
    """
    return _slow_fields(layout, slow)["muscle_faults"] if slow else {}


def _slow_fields(layout: BoardLayout, slow: Mapping[str, Any]) -> dict[str, Any]:
    flags = tuple(MuscleFlag(int(item)) for item in slow["mflags"])
    names = layout.muscles or tuple(f"muscle {i}" for i in range(len(flags)))
    refused = {
        AckCode(code).name.lower(): int(count)
        for code, count in enumerate(slow["refused"], start=1)
        if count
    }
    return {
        "muscle_flags": flags,
        "muscle_faults": {
            name: flag_words(item) for name, item in zip(names, flags, strict=False) if item
        },
        "temperatures": tuple(slow["housing"].tolist()),
        "core_temperatures": tuple(slow["core"].tolist()),
        "tension_limits": tuple(slow["tension_limit"].tolist()),
        "vbus": slow["vbus"],
        "tick_max": slow["tick_max_us"] * 1e-6,
        "refused": refused,
        **{name: int(slow[name]) for name in _COUNTERS},
    }
