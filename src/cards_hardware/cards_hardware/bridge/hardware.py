"""All boards of a robot as one: states in the robot's order, commands for all of its muscles.

If one board stops obeying, none is commanded any more; an emergency stop of one stops all.

States are merged from the samples of the boards. A state is complete when every board has sent a
newer sample since the last one. A board that falls silent does not stop the others: then states go
on without its values, marked incomplete.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import CardsError
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
from cards_hardware.boards.status import BoardStatus
from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.errors import HardwareError, ProtocolError
from cards_hardware.protocol.enums import EstopReason, State

if TYPE_CHECKING:
    from cards_core.estimation import JointTracker

STALE = 0.02
"""Time after which a board without a new sample is left out of the state, [s]."""

# from the state in which most is possible to that in which least is
_RANK = (
    State.ACTIVE,
    State.ARMED,
    State.HOLD,
    State.RELAX,
    State.DISARMED,
    State.BOOT,
    State.FAULT,
    State.ESTOP,
)
_PLACE = {int(state): place for place, state in enumerate(_RANK)}


@dataclass(slots=True, eq=False)
class HardwareState:
    """State of the whole robot; vectors in the robot's order, NaN where nothing is known.

    Attributes:
        time: When it was measured, host monotonic time [s]; of several boards the newest.
        board_times: The same of every board.
        q: Joint coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
        lengths, rates, tensions, currents: Values of muscles, shape (m,), [m], [m/s], [N], [A].
            Passive muscles have lengths and rates from q and qd.
        complete: Whether every board contributed, and q is known.
        number: Counts states.
        state: The most restrictive state of the boards, `State`.
        estimated: Whether q was estimated from muscle lengths.
    """

    time: float
    board_times: tuple[float, ...]
    q: Array
    qd: Array
    lengths: Array
    rates: Array
    tensions: Array
    currents: Array
    complete: bool
    number: int
    state: State
    estimated: bool


class StateMerger:
    """Merges the samples of all boards into states, and adds what follows from them.

    Args:
        robot: The model; gives the order of muscles and joints.
        layout: The boards.
        dynamics: Dynamics of the robot; made where it is needed.
        estimator: Estimates joints from muscle lengths; made where the layout has no joints.
        on_state: Called by a reader thread after a complete new state.

    Attributes:
        passive: Rows of the muscles that no board drives.
    """

    def __init__(
        self,
        robot: Robot,
        layout: Layout,
        *,
        dynamics: Dynamics | None,
        estimator: Any,
        on_state: Callable[[], None] | None,
    ) -> None:
        self._robot = robot
        self._layout = layout
        self._tree = dynamics.tree if dynamics else robot.tree
        driven = np.concatenate([item.muscle_rows for item in layout.boards])
        self.passive = np.setdiff1d(np.arange(len(robot.muscles)), driven)
        self._dynamics = dynamics
        self._estimates: JointTracker | None = None
        self._estimator = estimator
        self._on_state = on_state
        self._lock = threading.Lock()
        self._number = 0
        self._taken: tuple[float, ...] = ()
        self.reset()

    def reset(self) -> None:
        """Forget samples that were not taken."""
        with self._lock:
            self._fresh: list[BoardSample | None] = [None] * len(self._layout.boards)
            self._ready: list[BoardSample | None] = []

    @property
    def problem(self) -> str:
        """Why joints cannot be estimated; empty if they can."""
        return "" if self._estimates is None else self._estimates.problem

    def prepare(self) -> None:
        """Make the models that are needed, before the first sample comes."""
        if self._dynamics is None and (len(self.passive) or not self._layout.has_joints):
            self._dynamics = make_dynamics(self._robot)
        if not self._layout.has_joints and self._estimates is None:
            assert self._dynamics is not None
            # beside SciPy's optimizers: only for robots that need it
            from cards_core.estimation import JointEstimator, JointTracker

            estimator = self._estimator or JointEstimator(
                self._dynamics, acceleration_noise=50.0, rate_noise=2e-3
            )
            self._estimates = JointTracker(estimator, self._tree)

    def sampled(self, index: int, sample: BoardSample) -> None:
        """Take in a sample of a board; its reader thread.

        Args:
            index: Index of the board.
            sample: Its newest.
        """
        with self._lock:
            self._fresh[index] = sample
            for i, other in enumerate(self._fresh):  # one from before a silence of all is history
                if other is not None and sample.arrival - other.arrival > STALE:
                    self._fresh[i] = None
            if None in self._fresh:
                return
            self._ready, self._fresh = self._fresh, [None] * len(self._fresh)
        if self._on_state is not None:
            self._on_state()

    def take(self, boards: Sequence[Board]) -> HardwareState | None:
        """Return the newest state that was not taken yet, or None; never waits.

        Args:
            boards: In the order of the layout.
        """
        with self._lock:
            samples, self._ready = self._ready, []
        if not samples:
            samples = self._remaining(boards)
            if not samples:
                return None
        self._taken = tuple(0.0 if s is None else s.arrival for s in samples)
        return self._combine(samples)

    def _remaining(self, boards: Sequence[Board]) -> list[BoardSample | None]:
        """Return the newest samples without those of silent boards, if any board is silent."""
        now = time.monotonic()
        samples = [board.sample for board in boards]
        live = [s if s is not None and now - s.arrival < STALE else None for s in samples]
        if None not in live:
            return []
        times = [0.0 if s is None else s.arrival for s in live]
        before = self._taken or (0.0,) * len(times)
        new = any(t > b for t, b in zip(times, before, strict=True))
        return live if new else []

    def _combine(self, samples: list[BoardSample | None]) -> HardwareState:
        tree, count = self._tree, len(self._robot.muscles)
        q, qd = np.full(tree.nq, np.nan), np.full(tree.nv, np.nan)
        muscles = np.full((4, count), np.nan)
        times = []
        worst = int(State.ACTIVE)
        for board, sample in zip(self._layout.boards, samples, strict=True):
            times.append(math.nan if sample is None else sample.time)
            if sample is None:
                continue
            muscles[:, board.muscle_rows] = sample.muscles
            if len(board.joints):
                q[board.position_rows] = sample.joints[0]
                qd[board.velocity_rows] = sample.joints[1]
            if _PLACE.get(sample.state, len(_RANK)) > _PLACE[worst]:
                worst = sample.state if sample.state in _PLACE else int(State.BOOT)
        lengths, rates, tensions, currents = muscles
        latest = max(t for t in times if not math.isnan(t))
        complete = None not in samples
        if self._estimates is not None:
            estimate = self._estimates.step(latest, lengths, rates)
            if estimate is not None:
                q, qd = estimate.q, estimate.qd
        complete = complete and bool(np.isfinite(q).all())
        if len(self.passive) and complete:
            self._add_passive(q, qd, lengths, rates)
        self._number += 1
        return HardwareState(
            time=latest,
            board_times=tuple(times),
            q=q,
            qd=qd,
            lengths=lengths,
            rates=rates,
            tensions=tensions,
            currents=currents,
            complete=complete,
            number=self._number,
            state=State(worst),
            estimated=self._estimates is not None,
        )

    def _add_passive(self, q: Array, qd: Array, lengths: Array, rates: Array) -> None:
        assert self._dynamics is not None
        state = self._dynamics.update(q, qd)
        rows = self.passive
        lengths[rows] = state.muscle_lengths[rows]
        rates[rows] = state.muscle_jacobian[rows] @ qd


@dataclass(frozen=True)
class HardwareStatus:
    """Status of the robot.

    Attributes:
        boards: In the order of the layout.
        connected: Whether all boards have a session.
        armed: Whether commands pass.
        problem: Why the robot cannot be used now; empty if it can.
    """

    boards: tuple[BoardStatus, ...]
    connected: bool
    armed: bool
    problem: str


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
            HardwareError: A board is not connected or refuses; the message says why.
        """
        self._armed = False
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

    def relax(self) -> None:
        """Lower all tensions to the safe ones; commands pass no more. Raises `HardwareError`."""
        self._all("relax")

    def disarm(self) -> None:
        """Switch the drives of all boards off. Raises `HardwareError`."""
        self._all("disarm")

    def clear(self) -> None:
        """Clear latched faults and emergency stops of all boards; arms nothing.

        Raises:
            HardwareError: The cause is still there on a board.
        """
        self._all("clear")

    def _all(self, what: str) -> None:
        """Ask every board, also if one fails; then raise what the first one raised."""
        self._armed = False
        errors = []
        for board in self.boards:
            try:
                getattr(board, what)()
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
            if any(board.state == State.ESTOP for board in self.boards):
                for board in self.boards:
                    if board.state != State.ESTOP:
                        board.estop(EstopReason.OTHER_BOARD)
        if self._on_state is not None:
            self._on_state()

    # Commands ---------------------------------------------------------------------------------

    def command(self, kind: CommandKind, values: Array, slew: float | None = None) -> None:
        """Command muscles; never waits, and an older command that still waits is dropped.

        Args:
            kind: ``force`` [N], ``length`` [m] or ``pressure`` [Pa].
            values: In the robot's order, shape (m,); NaN: nothing is said to this muscle.
            slew: Largest change of tensions, [N/s]; None for the limits of the layout.

        Raises:
            HardwareError: The robot is not armed, a board does not take this kind of command, or
                the values cannot be sent: boards before the one at fault have theirs.
        """
        self._check_armed()
        if kind not in ("force", "length", "pressure"):
            raise HardwareError(
                f"boards take no {kind} commands (expected: force, length or pressure)"
            )
        values = self._checked(values)
        for board in self.boards:
            board.commands.check_kind(kind)
        for board in self.boards:
            part = values[board.layout.muscle_rows]
            try:
                if kind == "force":
                    board.commands.tensions(part, slew)
                elif kind == "length":
                    board.commands.lengths(part)
                else:
                    board.commands.pressures(part)
            except ProtocolError as error:
                raise HardwareError(f"board '{board.layout.name}': {error}") from None

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
        self._check_armed()
        columns = [self._checked(values) for values in (lengths, rates, tensions)]
        for board in self.boards:
            board.commands.check_kind("impedance")
        for board in self.boards:
            rows = board.layout.muscle_rows
            try:
                board.commands.impedance(*(values[rows] for values in columns))
            except ProtocolError as error:
                raise HardwareError(f"board '{board.layout.name}': {error}") from None

    # Gains of the impedance law ---------------------------------------------------------------

    def change_impedance(self, gains: Mapping[str, Array]) -> None:
        """Change gains of the muscles' impedance law on all boards, or on none.

        All numbers are checked before the first is sent. If a board does not take its own, those
        that have theirs are told what they had before. While no port is open the gains wait for
        `open`. They act upon the set-points that follow, without a jump of the tension.

        Args:
            gains: Some of ``stiffness`` [N/m], ``damping`` [N s/m] and ``tension_floor`` [N], of
                all muscles in the robot's order, shape (m,) each.

        Raises:
            HardwareError: A number is not possible, a muscle is on no board, or a board is not
                there or does not take it; no gain has changed.
        """
        laws = [self._laws_with(item, gains) for item in self.boards]
        self._check_undriven(gains)
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
                raise HardwareError(f"muscle '{name}' of board '{layout.name}': {error}") from None
        return tuple(out)

    def _check_undriven(self, gains: Mapping[str, Array]) -> None:
        """Refuse gains of muscles that no board drives, unless they are those of the model."""
        for at in self._states.passive:
            muscle = self.robot.muscles[at]
            for name, values in gains.items():
                own = getattr(ImpedanceLaw((muscle,)), name)[0]
                if values[at] != own:
                    raise HardwareError(
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
            self._armed,
            self._problem(),
        )

    def _problem(self) -> str:
        for board in self.boards:
            if board.problem:
                return f"board '{board.layout.name}': {board.problem}"
        return self._states.problem
