"""All boards of a robot as one: states in the robot's order, commands for all of its muscles.

A command goes to all boards or to none. If one board stops obeying, none is commanded any more; an
emergency stop of one stops all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError, ParameterError
from cards_core.loop.host import BOARD_TICK, refuse_unstable
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_hardware.boards.board import Board
from cards_hardware.boards.events import BoardEvent
from cards_hardware.boards.layout import (
    IMPEDANCE,
    BoardLayout,
    Layout,
    MuscleImpedance,
    check_impedance,
)
from cards_hardware.boards.line_thread import BoardCommand, CommandCounts, LineThread
from cards_hardware.boards.status import BoardStatus
from cards_hardware.boards.transport import host_us
from cards_hardware.bridge.states import HardwareState, StateMerger
from cards_hardware.errors import HardwareError, ProtocolError
from cards_hardware.protocol.enums import EstopReason, ParameterId, State


@dataclass(frozen=True)
class HardwareStatus:
    """Status of the robot.

    Attributes:
        boards: In the order of the layout.
        connected: Whether all boards have a session.
        armed: Whether commands pass.
        problem: Why the robot cannot be used now; empty if it can.
        commands: What became of them.
        scheduled: How the thread that keeps the lines is scheduled: ``fifo``, ``nice``,
            ``normal``, or empty while there is none.
    """

    boards: tuple[BoardStatus, ...]
    connected: bool
    armed: bool
    problem: str
    commands: CommandCounts = field(default_factory=CommandCounts)
    scheduled: str = ""


class Hardware:
    """The boards of a robot.

    The constructor opens nothing. `take` and `command` belong to one thread; the rest may be
    called by any.

    Args:
        robot: The model; gives the order of muscles and joints.
        layout: The boards.
        dynamics: Dynamics of the robot, for what is computed from q; made where it is needed.
        estimator: Estimates joints from muscle lengths; made where the layout has no joints.
        on_state: Called by a reader thread after a complete new state, and by any thread after
            the state of a board changed.
        on_event: Called by any thread with what happened on boards.
        reconnect: Whether lost boards are looked for; they are not armed by that.

    Attributes:
        boards: In the order of the layout.
        lines: Keeps the lines of all of them.
    """

    def __init__(
        self,
        robot: Robot,
        layout: Layout,
        *,
        dynamics: Dynamics | None = None,
        estimator: Any = None,
        on_state: Callable[[], None] | None = None,
        on_event: Callable[[BoardEvent], None] | None = None,
        reconnect: bool = True,
    ) -> None:
        self.robot = robot
        self.layout = layout
        self._on_state = on_state
        self._states = StateMerger(
            robot, layout, dynamics=dynamics, estimator=estimator, on_state=on_state
        )
        self._on_event = on_event
        self._armed = self._opened = False
        self._clearing = False
        self.lines = LineThread()
        self.boards = tuple(
            self._board(item, i, reconnect) for i, item in enumerate(layout.boards)
        )

    def _board(self, layout: BoardLayout, index: int, reconnect: bool) -> Board:
        return Board(
            layout,
            on_sample=lambda sample: self._states.sampled(index, sample),
            on_event=self._on_event,
            on_change=self._changed,
            reconnect=reconnect,
            thread=self.lines,
        )

    # Session ----------------------------------------------------------------------------------

    def open(self) -> None:
        """Open all ports, identify all boards, load their limits. Arms nothing.

        Raises:
            HardwareError: A port or board is not as it must be; all are closed again.
        """
        self._states.prepare()
        try:
            for board in self.boards:
                board.open()
            self._check_unique()
            self._opened = True
        except CardsError:
            self.close()
            raise

    def close(self) -> None:
        """Close all ports; an armed robot is disarmed first."""
        self._armed = self._opened = False
        for board in self.boards:
            board.close()
        self._states.reset()

    def _check_unique(self) -> None:
        seen: dict[str, Board] = {}
        for board in self.boards:
            uid = board.ident.uid if board.ident else ""
            other = seen.setdefault(uid, board)
            if other is not board:
                raise HardwareError(
                    f"boards '{other.layout.name}' at {other.link.port} and "
                    f"'{board.layout.name}' at {board.link.port} have the same serial number "
                    f"{uid}: both ports lead to one board?"
                )

    def take(self) -> HardwareState | None:
        """Return the newest state that was not taken yet, or None; never waits."""
        return self._states.take(self.boards)

    # Arming and stopping ----------------------------------------------------------------------

    def arm(self) -> None:
        """Arm all boards; if one refuses, none stays armed.

        Raises:
            HardwareError: A board is not connected or refuses, or the boards have zero points of
                different calibrations; the message says why.
        """
        self._armed = False
        self._check_calibration()
        try:
            for board in self.boards:
                board.arm()
            self._armed = True
            if not all(board.armed for board in self.boards):
                self._changed()
                raise HardwareError(f"not armed: {self._problem() or 'stopped meanwhile'}")
        except CardsError:
            self._armed = False
            for board in self.boards:
                if board.armed:
                    with contextlib.suppress(CardsError):  # the others, whatever this one says
                        board.disarm()
            raise

    def _check_calibration(self) -> None:
        """Refuse boards whose zero points were not found together."""
        if len(self.boards) < 2 or any(board.problem for board in self.boards):
            return  # nothing to compare, or arming says what is wrong
        numbers = {b.layout.name: b.get_parameter(ParameterId.CALIBRATION) for b in self.boards}
        if len(set(numbers.values())) > 1:
            told = ", ".join(f"{name}: {number}" for name, number in numbers.items())
            raise HardwareError(
                f"not armed: the boards' zero points are of different calibrations ({told}; "
                f"expected: one number): ./cards calibrate {self.robot.name}"
            )

    def relax(self) -> None:
        """Lower all tensions to the safe ones; commands pass no more. Raises `HardwareError`."""
        self._all("relax")

    def disarm(self) -> None:
        """Switch the drives of all boards off. Raises `HardwareError`."""
        self._all("disarm")

    def clear(self) -> None:
        """Clear latched faults and emergency stops of all boards; arms nothing.

        Raises:
            HardwareError: The cause is still there on a board, or somebody stopped meanwhile; an
                emergency stop that is left on one stops the others again.
        """
        stops = [board.stops for board in self.boards]  # what comes later is not to be cleared
        self._clearing = True
        try:
            self._all("clear", stops=stops)
        finally:
            self._clearing = False
            self._changed()
        stopped = [b.layout.name for b in self.boards if b.estop_ordered or b.state == State.ESTOP]
        if stopped:
            raise HardwareError(f"emergency stop while boards were cleared: {', '.join(stopped)}")

    def _all(self, what: str, **each: Sequence[int]) -> None:
        """Ask every board, also if one fails; then raise what the first one raised.

        Args:
            what: Method of the boards.
            each: Its arguments, one for every board.
        """
        self._armed = False
        errors = []
        for i, board in enumerate(self.boards):
            try:
                getattr(board, what)(**{name: values[i] for name, values in each.items()})
            except CardsError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def estop(self, reason: int = EstopReason.OPERATOR) -> None:
        """Stop all boards at once. From any thread, at any time, also before `open`.

        Never waits. A board that is not there gets it as the first thing when it comes back.
        """
        self._armed = False
        for board in self.boards:
            board.estop(reason)

    @property
    def estop_pending(self) -> bool:
        """Whether a board has not been sent an emergency stop yet because it is not there."""
        return any(board.estop_pending for board in self.boards)

    def _changed(self) -> None:
        """The state of a board changed (any thread)."""
        if self._armed and not all(board.armed for board in self.boards):
            self._armed = False  # the others see no more commands and let go by themselves
        # also while not armed: drives may be on all the same, or somebody arm next. Boards
        # are cleared one after the other: one that waits for it must not stop the first again
        if not self._clearing and any(board.state == State.ESTOP for board in self.boards):
            for board in self.boards:
                if board.state != State.ESTOP and not board.estop_ordered:
                    board.estop(EstopReason.OTHER_BOARD)
        if self._on_state is not None:
            self._on_state()

    # Commands ---------------------------------------------------------------------------------

    def command(self, kind: CommandKind, values: Array, slew: float | None = None) -> None:
        """Command muscles, on all boards or on none.

        Never waits. The command goes out when all lines are free; a newer one replaces it until
        then, and if it gets too old none of its boards is told anything.

        Args:
            kind: ``force`` [N], ``length`` [m] or ``pressure`` [Pa].
            values: In the robot's order, shape (m,); NaN: nothing is said to this muscle.
            slew: Largest change of tensions, [N/s]; None for the limits of the layout.

        Raises:
            HardwareError: The robot is not armed, a board cannot be reached or does not take this
                kind of command, or the values cannot be sent; no board was told anything.
        """
        made = host_us()
        self._check_armed()
        if kind not in ("force", "length", "pressure"):
            raise HardwareError(
                f"boards take no {kind} commands (expected: force, length or pressure)"
            )
        values = self._checked(values)
        for board in self.boards:
            board.commands.check_kind(kind)
        parts = []
        for board in self.boards:
            part = values[board.layout.muscle_rows]
            try:
                if kind == "force":
                    parts.append(board.commands.tensions(part, slew))
                elif kind == "length":
                    parts.append(board.commands.lengths(part))
                else:
                    parts.append(board.commands.pressures(part))
            except ProtocolError as error:
                raise HardwareError(f"board '{board.layout.name}': {error}") from None
        self._send(parts, made)

    def impedance(self, lengths: Array, rates: Array, tensions: Array) -> None:
        """Command set-points of the muscle impedance law; as `command`.

        T = max(T_floor, T0 + K (l - l0) + B (dl/dt - v0)) on the board, with K, B and T_floor of
        the layout or as changed since.

        Args:
            lengths: l0 in the robot's order, shape (m,), [m]; NaN: nothing is said to this muscle.
            rates: v0, shape (m,), [m/s]; a number for every muscle with a length.
            tensions: T0, shape (m,), [N]; likewise.

        Raises:
            HardwareError: As `command`.
        """
        made = host_us()
        self._check_armed()
        columns = [self._checked(values) for values in (lengths, rates, tensions)]
        for board in self.boards:
            board.commands.check_kind("impedance")
        parts = []
        for board in self.boards:
            rows = board.layout.muscle_rows
            try:
                parts.append(board.commands.impedance(*(values[rows] for values in columns)))
            except ProtocolError as error:
                raise HardwareError(f"board '{board.layout.name}': {error}") from None
        self._send(parts, made)

    def _send(self, parts: Sequence[BoardCommand], made: int) -> None:
        """Send a command to all boards, or to none if one cannot listen."""
        refused = self.lines.command(parts, made)
        if refused is not None:
            board = self.boards[refused]
            raise HardwareError(
                f"not commanded: board '{board.layout.name}': {board.problem or 'not armed'}; no "
                "board was told anything"
            )

    # Gains of the impedance law ---------------------------------------------------------------

    def change_impedance(self, gains: Mapping[str, Array]) -> None:
        """Change gains of the muscles' impedance law on all boards, or on none.

        All numbers are checked before the first is sent, as hosts check them: also gains that make
        the robot swing up at home are refused (`cards_core.loop.host.refuse_unstable`). If a
        board does not take its own, those that have theirs are told what they had before. While no
        port is open the gains wait for `open`. They act upon the set-points that follow, without a
        jump of the tension.

        Args:
            gains: Some of ``stiffness`` [N/m], ``damping`` [N s/m] and ``tension_floor`` [N], of
                all muscles in the robot's order, shape (m,) each.

        Raises:
            ParameterError: A name, a size or a number does not fit, the gains are not stable, or
                those of a muscle on no board are not the model's.
            HardwareError: A board is not there or does not take it. No gain has changed then.
        """
        law = ImpedanceLaw(self.robot.muscles)
        for name, told in self.impedance_gains().items():  # NaN on no board
            np.copyto(law.gains[name], told, where=~np.isnan(told))
        law.check(gains)
        gains = {name: np.asarray(values, dtype=float) for name, values in gains.items()}
        laws = [self._laws_with(item, gains) for item in self.boards]
        self._check_undriven(gains, law.gains)
        refuse_unstable(self.robot, {**law.gains, **gains}, BOARD_TICK)
        if self._opened:
            lost = [board for board in self.boards if not board.connected]
            if lost:
                name, problem = lost[0].layout.name, lost[0].problem or "not connected"
                raise HardwareError(f"no gain changed: board '{name}': {problem}")
        before = [board.impedance for board in self.boards]
        for i, board in enumerate(self.boards):
            try:
                board.change_impedance(laws[i], send=self._opened)
            except CardsError as error:
                for j in range(i):
                    with contextlib.suppress(CardsError):  # if lost: as above, when it is back
                        self.boards[j].change_impedance(before[j])
                    self.boards[j].change_impedance(before[j], send=False)
                raise HardwareError(f"no gain changed: {error}") from error

    def impedance_gains(self, *, ask: bool = False) -> dict[str, Array]:
        """Return the gains of the impedance law, in the robot's order; NaN on no board.

        Args:
            ask: Ask the boards, which must be connected, rather than say what they were told.

        Raises:
            HardwareError: A board does not answer.
        """
        out = {name: np.full(len(self.robot.muscles), np.nan) for name in IMPEDANCE}
        for board in self.boards:
            laws = board.read_impedance() if ask else board.impedance
            for name, values in out.items():
                values[board.layout.muscle_rows] = [getattr(law, name) for law in laws]
        return out

    def _laws_with(self, board: Board, gains: Mapping[str, Array]) -> tuple[MuscleImpedance, ...]:
        """Return the laws of a board with new gains, which are checked."""
        out = []
        layout = board.layout
        for row, (name, law, limits) in enumerate(
            zip(layout.muscles, board.impedance, layout.limits, strict=True)
        ):
            at = layout.muscle_rows[row]
            given = {gain: float(values[at]) for gain, values in gains.items()}
            try:
                out.append(check_impedance(asdict(law) | given, limits))
            except CardsError as error:
                text = f"muscle '{name}' of board '{layout.name}': {error}"
                raise ParameterError(text) from None
        return tuple(out)

    def _check_undriven(self, gains: Mapping[str, Array], model: Mapping[str, Array]) -> None:
        """Refuse gains of muscles that no board drives, unless they are those of the model."""
        for at in self._states.passive:
            muscle = self.robot.muscles[at]
            for name, values in gains.items():
                own = model[name][at]
                if values[at] != own:
                    raise ParameterError(
                        f"{name} of muscle '{muscle.name}' is {values[at]:g}, but no board drives "
                        f"it (expected: {own:g}, as in the model)"
                    )

    def _check_armed(self) -> None:
        if not self._armed:
            raise HardwareError(f"not commanded: {self._problem() or 'the robot is not armed'}")

    def _checked(self, values: Array) -> Array:
        """Return values of all muscles, NaN for passive ones."""
        values = np.asarray(values, dtype=float)
        count = len(self.robot.muscles)
        if values.shape != (count,):
            raise HardwareError(
                f"command of shape {values.shape}, expected ({count},): one value per muscle of "
                f"{self.robot.name}"
            )
        passive = self._states.passive
        if len(passive) and not np.isnan(values[passive]).all():
            names = [self.robot.muscles[i].name for i in passive]
            raise HardwareError(f"passive muscles cannot be commanded: {', '.join(names)}")
        return values

    # Rest -------------------------------------------------------------------------------------

    def status(self) -> HardwareStatus:
        """Return the status of the robot."""
        boards = tuple(board.status() for board in self.boards)
        return HardwareStatus(
            boards,
            all(board.connected for board in self.boards),
            self._armed and all(board.armed for board in self.boards),
            self._problem(),
            self.lines.command_counts(),
            self.lines.scheduled,
        )

    def _problem(self) -> str:
        for board in self.boards:
            if board.problem:
                return f"board '{board.layout.name}': {board.problem}"
        return self._states.problem
