"""Equilibria all over what a robot reaches: places to start from when home is too far.

Random joint coordinates inside the limits are approached from home, as long as the state is stable
and no jump happens; every state on the way is kept. A wanted pose is then sought from the nearest
states first, one of each way, because neighbours on a way lead to the same place.

The ways are the same, whatever was sought before, and are kept for the next search. What it cost
to make them is kept, too, and every search that uses them is charged: whether it finds something
must not depend on who came first.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from cards_core.rods.robots.robot import BaseKind
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.homotopy import follow
from cards_core.rods.tracking.judge import Judge
from cards_core.rods.tracking.path import Target, pose_difference
from cards_core.rods.tracking.servo import pose_weights
from cards_core.typing import Array

OPEN_RANGE = {BaseKind.REVOLUTE: np.pi}
"""Half the range, around home, of joints without limits: [rad], else the length of the rod."""


class Roadmap:
    """States reached from home, by ways.

    Args:
        solver: Solver of the robot.
        home: The equilibrium where all ways begin.
        wrench: On the plate, shape (6,), world frame: that of ``home``.
    """

    def __init__(self, solver: RodRobotSolver, home: Solution, wrench: Array) -> None:
        self._of, self.home, self.wrench = solver, home, wrench
        self._ways: list[tuple[list[Solution], int]] = [([home], 0)]  # states, iterations
        self._ends: list[Array] = []  # drawn once, also where Ctrl-C ends the making of a way
        self._rng = np.random.default_rng(0)
        self._weights = pose_weights(solver)

    @cached_property
    def solver(self) -> RodRobotSolver:
        """One of its own: searches neither see its factors nor count what it does as theirs."""
        of = self._of
        return RodRobotSolver(of.robot, of.settings, base=of.base, gravity=of.gravity)

    def cost(self, index: int, judge: Judge, solves: int = 40) -> int:
        """Return the Newton iterations that a way took; makes the ways up to it first."""
        robot = self._of.robot
        while len(self._ways) <= index:
            if len(self._ends) < len(self._ways):
                self._ends.append(self._rng.uniform(*_ranges(self._of, self.home.q)))
            q = self._ends[-1]
            states: list[Solution] = []
            self.solver.forget()
            begin = self.solver.iterations
            origin = Target(self.home.q, None, self.wrench)
            follow(
                self.solver,
                self.home,
                origin,
                Target(np.where(robot.actuated, q, self.home.q), None, self.wrench),
                judge,
                solves=solves,
                visit=states.append,
            )
            self._ways.append((states, self.solver.iterations - begin))
        return self._ways[index][1]

    def nearest(self, pose: Array, ways: int) -> Iterator[Solution]:
        """Yield the nearest state of each of the first ways, which are made, the nearest first."""
        found = []
        for index, (states, _) in enumerate(self._ways[:ways]):
            if states:
                distances = [self._distance(state, pose) for state in states]
                best = int(np.argmin(distances))
                found.append((distances[best], index, best))
        for _, index, best in sorted(found):
            yield self._ways[index][0][best]

    def _distance(self, state: Solution, pose: Array) -> float:
        return float(np.linalg.norm(pose_difference(state.pose, pose) * self._weights))


def _ranges(solver: RodRobotSolver, q: Array) -> tuple[Array, Array]:
    """Lower and upper ends of the ranges that joints are drawn from."""
    robot = solver.robot
    spans = np.array([OPEN_RANGE.get(limb.base.kind, limb.length) for limb in robot.limbs])
    lower = np.where(np.isfinite(robot.q_lower), robot.q_lower, q - spans)
    upper = np.where(np.isfinite(robot.q_upper), robot.q_upper, q + spans)
    return lower, np.maximum(lower, upper)
