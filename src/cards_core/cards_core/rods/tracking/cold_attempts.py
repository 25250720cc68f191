"""The attempts of a cold start: ways from a guess or from a known state to candidates.

Each yields solutions of the target in the order in which it comes by them; which of them is what
is wanted, `cold_search` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cards_core.rods.robots.guess import Guess
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.cold_guesses import straight_guess, target_guess
from cards_core.rods.tracking.cold_result import Budget, same
from cards_core.rods.tracking.homotopy import follow, solve_target
from cards_core.rods.tracking.judge import Bounds, Judge
from cards_core.rods.tracking.levenberg import Equations, levenberg_marquardt
from cards_core.rods.tracking.path import Target
from cards_core.rods.tracking.roadmap import Roadmap
from cards_core.rods.tracking.servo import Arrival, Servo
from cards_core.rods.tracking.work import Work

KICKED = 8
"""Ends of descents, the nearest to the pose, that are tried with kicks."""


@dataclass(frozen=True, eq=False)
class Anchor:
    """A known equilibrium to start from.

    Attributes:
        solution: The equilibrium, stable.
        target: What it fulfils.
        roadmap: States reached from it.
        findings: What is to be said about it: that its branch is arbitrary.
    """

    solution: Solution
    target: Target
    roadmap: Roadmap
    findings: tuple[Finding, ...] = ()


class Attempts:
    """The ways to a target, and where the last of them ended.

    Args:
        solver: Solver of the robot.
        target: What is wanted.
        budget: Bounds of the work.
        work: What is left of the budget.
        accept: Tells whether a solution is what is wanted.

    Attributes:
        last: The last guess, or where a descent from it ended.
        buckled: Rods that the plain guess has buckled.
        start_value: Smallest singular value at the plain guess; NaN before `descend` went there.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        budget: Budget,
        work: Work,
        accept: Callable[[Solution], bool],
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.target, self.budget, self._accept = target, budget, accept
        self.work = work
        self.last: Solution | Guess | None = None
        self.buckled: tuple[int, ...] = ()
        self.start_value = float("nan")
        self._started: set[int] = set()
        self._ways = 0  # of the roadmap, known to this search

    def _guess(self, variant: dict[str, Any]) -> Guess:
        """Return the Hermite guess of the target, or one of its variants."""
        guess = target_guess(self.solver, self.target, variant)
        if not variant:
            self.buckled = guess.buckled
        self.last = guess
        return guess

    def newton(self, variant: dict[str, Any]) -> Iterator[Solution]:
        """Newton's method from a guess, and from the same with every rod relaxed alone first."""
        guess = self._guess(variant)
        yield self._solve(guess)
        relaxed = self.solver.limbs(
            guess.q,
            guess.pose,
            wrench=self.target.wrench,
            frame=self.target.frame,
            start=guess,
        )
        if relaxed.status is RodStatus.OK:
            yield self._solve(relaxed)

    def descend(self, variant: dict[str, Any]) -> Iterator[Solution]:
        """Levenberg-Marquardt from a guess, then Newton's method."""
        descent = levenberg_marquardt(
            self.equations(), self._guess(variant), iterations=self.budget.iterations
        )
        if not variant:
            self.start_value = descent.singular_value
        if np.isfinite(descent.residual):
            self.last = descent.guess
            yield self._solve(descent.guess)

    def homotopies(self, anchor: Anchor) -> Iterator[Solution]:
        """Follow the home state to the target: first by stable states only, then by any."""
        start = anchor.solution
        if self.target.by_joints:
            origin = replace(anchor.target, q=start.q, pose=None)
        else:
            origin = replace(anchor.target, q=None, pose=start.pose)
        for stop in (0.0, -1e12):
            followed = follow(
                self.solver,
                start,
                origin,
                self.target,
                self._judge(start, stop),
                solves=self.budget.solves,
                work=self.work,
            )
            if followed.arrived:
                yield followed.solution

    def loads(self) -> Iterator[Solution]:
        """Take the plate's weight away, solve, and let it come back with a small push aside.

        The pushes go where the limbs are declared to bulge, else along the plate's axes.
        """
        target = self.target
        weight = self.robot.plate.mass * self.solver.gravity
        if target.frame != "world" or not weight.any():
            return
        q = self.robot.home_q if target.q is None else target.q
        known = target.by_joints or not self.robot.actuated.any()
        guess = straight_guess(self.solver, q) if known else self._guess({})
        lever = guess.pose[:3, :3] @ self.robot.plate.com
        load = np.concatenate([weight, np.cross(lever, weight)])
        light = replace(target, wrench=target.wrench - load)
        start = solve_target(self.solver, light, guess)
        if start.status is not RodStatus.OK:
            return
        declared = [limb.bulge for limb in self.robot.limbs if limb.bulge is not None]
        axes = guess.pose[:3, :2].T
        for side in [np.sum(declared, axis=0)] if declared else [*axes, *-axes]:
            push = 0.02 * float(np.linalg.norm(weight)) * np.append(side, np.zeros(3))
            state, origin = start, light
            for end in (replace(target, wrench=target.wrench + push), target):
                followed = follow(
                    self.solver,
                    state,
                    origin,
                    end,
                    self._judge(start, 0.0),
                    work=self.work,
                )
                state, origin = followed.solution, end
                if not followed.arrived:
                    break
            else:
                yield state

    def servo(self, anchor: Anchor, ways: int) -> Iterator[Solution]:
        """Move the joints until the plate is at the pose, from the nearest of known states.

        First straight from each; where that ends near the pose, with kicks to other sheets.
        """
        judge = self._judge(anchor.solution, 0.0)
        servo = Servo(self.solver, self.target, judge, self._accept)
        assert self.target.pose is not None
        ends: list[Arrival] = []
        while self._ways < ways and self.work.left:
            self.work.charge(anchor.roadmap.cost(self._ways, judge))
            self._ways += 1
        for start in anchor.roadmap.nearest(self.target.pose, min(ways, self._ways)):
            if id(start) in self._started:
                continue
            self._started.add(id(start))
            end = servo.descend(start)
            if end.solution is not None:
                yield end.solution
            if not any(same(end.state, other.state) for other in ends):
                ends.append(end)
            if not self.work.left:
                return
        for end in sorted(ends, key=lambda arrival: arrival.distance)[:KICKED]:
            arrival = servo.kick(end)
            if arrival.solution is not None:
                yield arrival.solution
            if not self.work.left:
                return

    def _judge(self, start: Solution, stop: float) -> Judge:
        """Return a judge that refuses jumps, and stiffness below a share of that at a start."""
        bounds = Bounds(stop_fraction=stop, enforce_limits=False)
        return Judge(self.robot, bounds, float(start.min_eigenvalue))

    def _solve(self, start: Guess | Solution) -> Solution:
        """Newton's method for the target."""
        return solve_target(self.solver, self.target, start)

    def equations(self) -> Equations:
        """Return the equations of the target."""
        target = self.target
        return Equations(self.solver, target.by_joints, target.wrench, target.frame)
