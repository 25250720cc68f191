"""States of a robot, merged from the samples of its boards.

A state is complete when every board has sent a newer sample since the last one. A board that falls
silent does not stop the others: then states go on without its values, marked incomplete.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.dynamics.interface import Dynamics, make_dynamics
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_hardware.boards.board import Board
from cards_hardware.boards.layout import Layout
from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.bridge.joint_estimates import JointEstimates
from cards_hardware.protocol.enums import State

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
        self._estimates: JointEstimates | None = None
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
            self._estimates = JointEstimates(self._dynamics, self._estimator, self._on_state)

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
            state = sample.state if sample.state in _PLACE else int(State.BOOT)
            if _PLACE[state] > _PLACE[worst]:
                worst = state
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
