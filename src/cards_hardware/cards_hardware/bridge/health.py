"""Diagnostics of the real robot, published on ``/diagnostics``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
from rclpy.node import Node

from cards_hardware.boards.events import BoardEvent, flag_names, state_word
from cards_hardware.boards.layout import Layout
from cards_hardware.boards.status import BoardStatus
from cards_hardware.bridge.board_host import BoardHost
from cards_hardware.protocol.enums import Fault, MuscleFlag, Severity, State
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.model_topic import ModelTopic

SHOWN = 2.0
"""Time for which something that happened stays in the diagnostics, [s]."""

QUIET = 5.0
"""Time between two lines of the log about the same kind of event of a board, [s]."""

CLOCK_STEP = 0.05
"""Step of the system's clock that is worth a warning, [s]."""

SLOW_STATES = 0.02
"""Age of the states (99 %) that is worth a warning, [s]: what the boards' first watchdog stage is
made for."""

_WORRYING = (State.HOLD, State.RELAX)
_LATCHED = (State.FAULT, State.ESTOP)
_LIMITING = (
    MuscleFlag.TENSION_LIMITED
    | MuscleFlag.SLEW_LIMITED
    | MuscleFlag.RATE_LIMITED
    | MuscleFlag.LENGTH_LOW
    | MuscleFlag.LENGTH_HIGH
    | MuscleFlag.CURRENT_LIMITED
)
"""What a board does all day; shown, but no reason to warn."""


class BridgeView(Protocol):
    """What the node of the bridge knows.

    Attributes:
        reason: Why commands do not pass, if not because nobody asked.
    """

    reason: str

    @property
    def lifecycle_state(self) -> str:
        """Name of the lifecycle state."""
        ...


class BridgeHealth:
    """Reports the statuses ``boards``, one per board, ``commands``, ``loop`` and ``model``.

    Args:
        node: The node that publishes.
        host: The robot.
        layout: Its boards.
        view: What the node knows; often the node itself.
        models: What this and other nodes say of their models.

    Attributes:
        ignored: Commands that came while the node was not active.
        log_failure: Why the log stopped, if it did.
    """

    def __init__(
        self,
        node: Node,
        host: BoardHost,
        layout: Layout,
        view: BridgeView,
        models: ModelTopic,
    ) -> None:
        self._node = node
        self._host = host
        self._view = view
        self._models = models
        self.log_failure = ""
        self._muscles = {board.name: board.muscles for board in layout.boards}
        names = [f"board {board.name}" for board in layout.boards]
        self._diagnostics = Diagnostics(
            node, host.robot.name, ("boards", *names, "commands", "loop", "model")
        )
        now = time.monotonic()
        self._refused_at = now - SHOWN
        self._reason = ""
        self._armed_at = now
        self._accepted = self.ignored = 0
        self._states = self._commands = 0
        self._time = now
        self._logged: dict[tuple[Any, ...], float] = {}
        self._refusals: dict[str, tuple[int, float]] = {}

    # What happens -----------------------------------------------------------------------------

    def refused(self, reason: str) -> None:
        """Note that a command was refused; warns once while refusals go on."""
        now = time.monotonic()
        if now - self._refused_at > SHOWN:
            self._node.get_logger().warning(reason)
        self._refused_at = now
        self._reason = reason

    def armed(self) -> None:
        """Note that the node became active."""
        self._armed_at = time.monotonic()
        self._accepted = self._host.gate.accepted

    def event(self, event: BoardEvent) -> None:
        """Log what happened on a board or on the way to it, the same not over and over."""
        logger = self._node.get_logger()
        key = (event.board, event.code, event.muscle, event.severity)
        now = time.monotonic()
        if event.code is not None and now - self._logged.get(key, -QUIET) < QUIET:
            return
        self._logged[key] = now
        muscle = f", muscle {event.muscle}" if event.muscle else ""
        text = f"board {event.board}{muscle}: {event.text}"
        if event.severity >= Severity.ERROR:
            logger.error(text)
        elif event.severity >= Severity.WARN:
            logger.warning(text)
        else:
            logger.debug(text)

    # What is reported -------------------------------------------------------------------------

    def update(self) -> None:
        """Look at the bridge and publish if something changed or a second is over."""
        now = time.monotonic()
        self._report_boards()
        for board in self._host.status.boards:
            self._report_board(board, now)
        self._report_commands(now)
        self._report_loop(now)
        self._models.report(self._diagnostics["model"], "commands are refused")
        self._diagnostics.update()

    def _report_boards(self) -> None:
        status = self._diagnostics["boards"]
        state, reason = self._view.lifecycle_state, self._view.reason
        boards = self._host.status.boards
        status.values.update(
            lifecycle=state,
            connected=sum(board.connected for board in boards),
            boards=len(boards),
            lines_scheduled=self._host.status.scheduled or "no line is open",
        )
        if self.log_failure:
            status.report(Level.ERROR, self.log_failure)
        elif self._host.gate.stopped:
            status.report(Level.ERROR, "emergency stop: safe tensions until ~/clear")
        elif any(board.connected and board.state == State.ESTOP for board in boards):
            status.report(Level.ERROR, "emergency stop of a board: ~/clear releases it")
        elif reason:
            status.report(Level.ERROR, f"{state}: {reason}")
        elif state == "inactive" and self._host.status.problem:
            status.report(Level.ERROR, f"inactive: {self._host.status.problem}")
        elif self._host.active:
            status.ok(state)
        else:
            status.report(Level.WARN, f"{state}: commands are not obeyed")

    def _report_board(self, board: BoardStatus, now: float) -> None:
        status = self._diagnostics[f"board {board.name}"]
        values = status.values
        values.update(port=board.port, node=board.node, firmware=board.firmware)
        if not board.connected:
            open_ = self._view.lifecycle_state in ("inactive", "active")
            values.update(state="unknown")
            status.report(Level.ERROR if open_ else Level.WARN, board.problem or "not connected")
            return
        values.update(
            state=state_word(board.state),
            simulated=board.simulated,
            faults=_words(board.fault) or "none",
            vbus=board.vbus,
            hottest=_hottest(board.temperatures, self._muscles[board.name]),
            rx_ok=board.rx_ok,
            rx_crc=board.rx_crc,
            rx_gap=board.rx_gap,
            tx_dropped=board.tx_dropped,
            drive_errors=board.drive_errors,
            tick_late=board.tick_late,
            tick_max_us=1e6 * board.tick_max,
            crc_errors=board.crc_errors,
            lost_frames=board.lost_frames,
            reconnects=board.reconnects,
            resets=board.resets,
            rtt_ms=1e3 * board.rtt,
            clock_error_ms=1e3 * board.clock_error,
            state_rate_hz=board.state_rate,
            state_age_ms=1e3 * board.state_age,
            state_delay_p50_ms=1e3 * board.sample_delay.p50,
            state_delay_p99_ms=1e3 * board.sample_delay.p99,
            command_latency_p50_ms=1e3 * board.latency_p50,
            command_latency_p99_ms=1e3 * board.latency_p99,
            heartbeat_gap_max_ms=1e3 * board.line.beat_gap,
            heartbeat_jitter=str(board.line.beat_jitter),
            reply_max_ms=1e3 * board.line.reply,
            replies=str(board.line.replies),
        )
        worrying: list[str] = []
        for muscle, flags in zip(self._muscles[board.name], board.muscle_flags, strict=False):
            key = f"muscle {muscle}"
            if flags:
                values[key] = _words(flags)
            else:
                values.pop(key, None)
            if flags & ~_LIMITING:
                worrying.append(f"{muscle}: {_words(flags & ~_LIMITING)}")
        recent = self._recent_refusals(board, values, now)
        if board.state in _LATCHED or board.fault:
            words = _words(board.fault) or "no fault left"
            status.report(Level.ERROR, f"{state_word(board.state)}: {words}")
        elif worrying:
            status.report(Level.WARN, "; ".join(worrying))
        elif board.state in _WORRYING:
            status.report(Level.WARN, f"{board.state.name}: {board.state.text}")
        elif board.problem:
            status.report(Level.WARN, board.problem)
        elif recent:
            status.report(Level.WARN, f"frames refused: {', '.join(recent)}")
        else:
            status.ok(state_word(board.state))

    def _recent_refusals(
        self, board: BoardStatus, values: dict[str, object], now: float
    ) -> list[str]:
        """Show why frames were refused; return the causes of the last two seconds."""
        recent = []
        for cause, count in board.refused.items():
            key = f"{board.name} {cause}"
            before, since = self._refusals.get(key, (0, now - SHOWN))
            if count != before:
                since = now
                self._refusals[key] = (count, now)
            if count:
                values[f"refused_{cause}"] = count
            if now - since < SHOWN:
                recent.append(cause)
        return recent

    def _report_commands(self, now: float) -> None:
        status, gate = self._diagnostics["commands"], self._host.gate
        status.values.update(accepted=gate.accepted, refused=gate.refused, ignored=self.ignored)
        if gate.stopped:
            status.report(Level.ERROR, "emergency stop: safe tensions until ~/clear")
        elif now - self._refused_at < SHOWN:
            status.report(Level.WARN, f"command refused: {self._reason}")
        elif not self._host.active:
            status.ok("not obeyed")
        elif gate.accepted == self._accepted:
            status.report(Level.WARN, "waiting for the first command")
        elif self._host.stale:
            names = ", ".join(gate.stale_muscles) or "all muscles"
            text = f"no valid command for {gate.timeout:g} s: {names}; the boards' watchdogs act"
            if status.report(Level.ERROR, text):
                self._node.get_logger().warning(text)
        else:
            status.ok()

    def _report_loop(self, now: float) -> None:
        loop, host = self._diagnostics["loop"], self._host
        if now - self._time < 1.0:
            return
        period = now - self._time
        ages, durations = host.ages.summary(), host.durations.summary()
        step, commands = host.clock.error, host.status.commands
        loop.values.update(
            state_rate_hz=(host.states - self._states) / period,
            command_rate_hz=(host.commands - self._commands) / period,
            states_skipped=host.skipped,
            state_age_p50_ms=1e3 * ages.p50,
            state_age_p99_ms=1e3 * ages.p99,
            command_p50_us=1e6 * durations.p50,
            command_p99_us=1e6 * durations.p99,
            commands_replaced=commands.replaced,
            commands_stale=commands.stale,
            commands_withheld=commands.withheld,
        )
        self._time, self._states, self._commands = now, host.states, host.commands
        if abs(step) > CLOCK_STEP:
            loop.report(
                Level.WARN,
                f"the system's clock was set by {step:+.3g} s: stamps keep the old time until the "
                "node is activated again",
            )
        elif ages.p99 > SLOW_STATES:
            loop.report(Level.WARN, f"states are late: 99 % within {1e3 * ages.p99:.1f} ms")
        else:
            loop.ok()


def _words(flags: Fault | MuscleFlag) -> str:
    return ", ".join(flag_names(flags))


def _hottest(housing: Iterable[float], muscles: Iterable[str]) -> str:
    values = np.asarray(list(housing), dtype=float)
    if not np.any(np.isfinite(values)):
        return "unknown"
    i = int(np.nanargmax(values))
    return f"{list(muscles)[i]} {values[i]:.1f} degC"
