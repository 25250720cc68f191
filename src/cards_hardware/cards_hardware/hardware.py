"""All boards of a robot as one: states in the robot's order, commands for all of its muscles.

A state is complete when every board has sent a newer sample since the last one. A board that
falls silent does not stop the others: then states go on without its values, marked incomplete.
If one board stops obeying, none is commanded any more; an emergency stop of one stops all.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.description.actuators import CommandKind
from cards_core.description.model import Robot
from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.errors import CardsError
from cards_core.kinematics.tree import Tree
from cards_core.typing import Array
from cards_hardware.board import Board
from cards_hardware.board_data import BoardEvent, BoardSample, BoardStatus
from cards_hardware.board_layout import BoardLayout, Layout
from cards_hardware.errors import HardwareError
from cards_hardware.joint_estimate import JointEstimates
from cards_hardware.protocol.enums import EstopReason, State

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
        lengths, rates, tensions, currents: Of muscles, shape (m,), [m], [m/s], [N], [A]. Passive
            muscles have lengths and rates from q and qd.
        complete: Whether every board contributed, and q is known.
        number: Counts states.
        state: Of the boards that in which least is possible, `State`.
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


@dataclass(frozen=True)
class HardwareStatus:
    """How the robot is.

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
        dynamics: Of the robot, for what is computed from q; made where it is needed.
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
        tree = dynamics.tree if dynamics else Tree(robot)
        self._tree = tree
        self._on_state = on_state
        self._on_event = on_event
        self.boards = tuple(
            self._board(item, i, reconnect) for i, item in enumerate(layout.boards)
        )
        driven = np.concatenate([item.muscle_rows for item in layout.boards])
        self._passive = np.setdiff1d(np.arange(len(robot.muscles)), driven)
        self._dynamics = dynamics
        self._estimates: JointEstimates | None = None
        self._estimator = estimator
        self._lock = threading.Lock()
        self._fresh: list[BoardSample | None] = [None] * len(self.boards)
        self._ready: list[BoardSample | None] = []
        self._number = 0
        self._taken: tuple[float, ...] = ()
        self._armed = False

    def _board(self, layout: BoardLayout, index: int, reconnect: bool) -> Board:
        return Board(
            layout,
            on_sample=lambda sample: self._sampled(index, sample),
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
        self._need_models()
        try:
            for board in self.boards:
                board.open()
            self._check_unique()
        except CardsError:
            self.close()
            raise

    def close(self) -> None:
        """Close all ports; an armed robot is disarmed first."""
        self._armed = False
        for board in self.boards:
            board.close()
        with self._lock:
            self._fresh = [None] * len(self.boards)
            self._ready = []

    def _need_models(self) -> None:
        if self._dynamics is None and (len(self._passive) or not self.layout.has_joints):
            self._dynamics = make_dynamics(self.robot)
        if not self.layout.has_joints and self._estimates is None:
            assert self._dynamics is not None
            self._estimates = JointEstimates(self._dynamics, self._estimator)

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

    # States -----------------------------------------------------------------------------------

    def _sampled(self, index: int, sample: BoardSample) -> None:
        """A board has a new sample (its reader thread)."""
        with self._lock:
            self._fresh[index] = sample
            if None in self._fresh:
                return
            self._ready, self._fresh = self._fresh, [None] * len(self._fresh)
        if self._on_state is not None:
            self._on_state()

    def take(self) -> HardwareState | None:
        """Return the newest state that was not taken yet, or None; never waits."""
        with self._lock:
            samples, self._ready = self._ready, []
        if not samples:
            samples = self._remaining()
            if not samples:
                return None
        self._taken = tuple(0.0 if s is None else s.arrival for s in samples)
        return self._combine(samples)

    def _remaining(self) -> list[BoardSample | None]:
        """Return the newest samples without those of silent boards, if any board is silent."""
        now = time.monotonic()
        samples = [board.sample for board in self.boards]
        live = [s if s is not None and now - s.arrival < STALE else None for s in samples]
        if None not in live:
            return []
        times = [0.0 if s is None else s.arrival for s in live]
        before = self._taken or (0.0,) * len(times)
        new = any(t > b for t, b in zip(times, before, strict=True))
        return live if new else []

    def _combine(self, samples: list[BoardSample | None]) -> HardwareState:
        tree, count = self._tree, len(self.robot.muscles)
        q, qd = np.full(tree.nq, np.nan), np.full(tree.nv, np.nan)
        muscles = np.full((4, count), np.nan)
        times = []
        worst = int(State.ACTIVE)
        for board, sample in zip(self.layout.boards, samples, strict=True):
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
            q, qd = self._estimates.step(latest, lengths, rates)
        complete = complete and bool(np.isfinite(q).all())
        if len(self._passive) and complete:
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
        rows = self._passive
        lengths[rows] = state.muscle_lengths[rows]
        rates[rows] = state.muscle_jacobian[rows] @ qd

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
        except CardsError:
            for board in self.boards:
                if board.armed:
                    board.disarm()
            raise
        self._armed = True
        if not all(board.armed for board in self.boards):
            self._changed()
            raise HardwareError(f"not armed: {self._problem() or 'stopped meanwhile'}")

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
        if not hasattr(self, "_armed"):
            return  # while the boards are being made
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
                the values cannot be sent; nothing is sent then.
        """
        if not self._armed:
            raise HardwareError(f"not commanded: {self._problem() or 'the robot is not armed'}")
        if kind not in ("force", "length", "pressure"):
            raise HardwareError(
                f"boards take no {kind} commands (expected: force, length or pressure)"
            )
        values = np.asarray(values, dtype=float)
        count = len(self.robot.muscles)
        if values.shape != (count,):
            raise HardwareError(
                f"command of shape {values.shape}, expected ({count},): one value per muscle of "
                f"{self.robot.name}"
            )
        if len(self._passive) and not np.isnan(values[self._passive]).all():
            names = [self.robot.muscles[i].name for i in self._passive]
            raise HardwareError(f"passive muscles cannot be commanded: {', '.join(names)}")
        for board in self.boards:
            board.check_kind(kind)
        for board in self.boards:
            part = values[board.layout.muscle_rows]
            if kind == "force":
                board.command_tension(part, slew)
            elif kind == "length":
                board.command_lengths(part)
            else:
                board.command_pressures(part)

    # Rest -------------------------------------------------------------------------------------

    def status(self) -> HardwareStatus:
        """Return how the robot is."""
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
        return "" if self._estimates is None else self._estimates.problem
