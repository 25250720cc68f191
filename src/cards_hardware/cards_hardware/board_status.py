"""Puts together how a board is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cards_hardware.board_data import BoardStatus, flag_words
from cards_hardware.protocol.enums import AckCode, Fault, MuscleFlag, State

if TYPE_CHECKING:
    from cards_hardware.board import Board

_STATES = frozenset(int(item) for item in State)
_COUNTERS = ("rx_ok", "rx_crc", "rx_gap", "tx_dropped", "drive_errors", "tick_late")


def status_of(board: Board) -> BoardStatus:
    """Return the status of a board."""
    telemetry, link, ident, state = board.telemetry, board.link, board.ident, board.state
    latency = telemetry.command_latency.summary()
    fields: dict[str, Any] = {}
    if slow := telemetry.slow:
        fields = _slow_fields(board, slow)
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


def muscle_faults(board: Board) -> dict[str, tuple[str, ...]]:
    """Return the flags of muscles in words, of those that have any."""
    if not board.telemetry.slow:
        return {}
    faults: dict[str, tuple[str, ...]] = _slow_fields(board, board.telemetry.slow)["muscle_faults"]
    return faults


def _slow_fields(board: Board, slow: Any) -> dict[str, Any]:
    flags = tuple(MuscleFlag(int(item)) for item in slow["mflags"])
    names = board.layout.muscles or tuple(f"muscle {i}" for i in range(len(flags)))
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
