"""The attempts of one cold start, in turn; `tracking.cold_start` describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cards_core.rods.robots.guess import Guess
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.cold_guesses import (
    bulge_variants,
    slack_variants,
    straight_guess,
    target_guess,
)
from cards_core.rods.tracking.cold_result import Budget, ColdStart, same
from cards_core.rods.tracking.collapse import describe_direction, plate_lever
from cards_core.rods.tracking.homotopy import follow, solve_target
from cards_core.rods.tracking.judge import Bounds, Judge
from cards_core.rods.tracking.levenberg import Equations, levenberg_marquardt
from cards_core.rods.tracking.path import Target
from cards_core.rods.tracking.reach import limit_reach_finding
from cards_core.rods.tracking.roadmap import Roadmap
from cards_core.rods.tracking.servo import Arrival, Servo
from cards_core.rods.tracking.singular import SINGULAR, weakest_mode

if TYPE_CHECKING:
    from cards_core.rods.robots.solution import Solution
    from cards_core.rods.robots.solver import RodRobotSolver

FREE_MODE = 1e-10
"""Eigenvalue of K, relative to the greatest, that is zero: the plate moves freely."""

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


class ColdSearch:
    """One cold start.

    Args:
        solver: Solver of the robot.
        target: What is wanted.
        budget: Bounds of the work.
        anchor: The home state; None while that itself is sought.
    """

    def __init__(
        self, solver: RodRobotSolver, target: Target, budget: Budget, anchor: Anchor | None
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.target, self.budget, self.anchor = target, budget, anchor
        self.deadline = perf_counter() + budget.seconds
        self.attempts: list[str] = []
        self.unstable: Solution | None = None
        self.outside: Solution | None = None
        self.free: Solution | None = None
        self.collapsed: tuple[Solution, int] | None = None
        self.last: Solution | Guess | None = None
        self.buckled: tuple[int, ...] = ()
        self.start_value = float("nan")
        self._started: set[int] = set()

    def run(self) -> ColdStart:
        """Make the attempts until one succeeds."""
        for name, attempt in self._ladder():
            if not self.attempts or self.attempts[-1] != name:
                self.attempts.append(name)
            for solution in attempt:
                if self._accept(solution):
                    return self._found(solution, name)
                if perf_counter() > self.deadline:
                    break
            if perf_counter() > self.deadline:
                self.attempts.append("out of time")
                break
        return self._failed()

    def _ladder(self) -> Iterator[tuple[str, Iterator[Solution]]]:
        """Return the attempts in the order of their cost."""
        if self.anchor is not None and self.target.by_joints:
            yield "homotopy", self._homotopies(self.anchor)
        if self.anchor is None and self.robot.initial_q is not None:
            yield "initial joints", self._newton({"q": self.robot.initial_q})
            yield "initial joints", self._descend({"q": self.robot.initial_q})
        yield "newton", self._newton({})
        if self.anchor is not None and not self.target.by_joints:
            yield "homotopy", self._homotopies(self.anchor)
        yield "levenberg-marquardt", self._descend({})
        if self.anchor is not None and not self.target.by_joints:
            for ways in (1, 20, self.budget.ways):
                yield "servo" if ways == 1 else "roadmap", self._servo(self.anchor, ways)
        if self.anchor is None or self.target.by_joints:
            yield "load", self._loads()
        for variant in (*slack_variants(), *bulge_variants(self.robot)):
            yield "variants", self._newton(variant)
            yield "variants", self._descend(variant)

    def _guess(self, variant: dict[str, Any]) -> Guess:
        """Return the Hermite guess of the target, or one of its variants."""
        guess = target_guess(self.solver, self.target, variant)
        if not variant:
            self.buckled = guess.buckled
        self.last = guess
        return guess

    # -- attempts

    def _newton(self, variant: dict[str, Any]) -> Iterator[Solution]:
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

    def _descend(self, variant: dict[str, Any]) -> Iterator[Solution]:
        """Levenberg-Marquardt from a guess, then Newton's method."""
        descent = levenberg_marquardt(
            self._equations(), self._guess(variant), iterations=self.budget.iterations
        )
        if not variant:
            self.start_value = descent.singular_value
        if np.isfinite(descent.residual):
            self.last = descent.guess
            yield self._solve(descent.guess)

    def _homotopies(self, anchor: Anchor) -> Iterator[Solution]:
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
                deadline=self.deadline,
            )
            if followed.arrived:
                yield followed.solution

    def _loads(self) -> Iterator[Solution]:
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
                    deadline=self.deadline,
                )
                state, origin = followed.solution, end
                if not followed.arrived:
                    break
            else:
                yield state

    def _servo(self, anchor: Anchor, ways: int) -> Iterator[Solution]:
        """Move the joints until the plate is at the pose, from the nearest of known states.

        First straight from each; where that ends near the pose, with kicks to other sheets.
        """
        judge = self._judge(anchor.solution, 0.0)
        servo = Servo(self.solver, self.target, judge, self._accept)
        assert self.target.pose is not None
        ends: list[Arrival] = []
        for start in anchor.roadmap.nearest(self.target.pose, judge, ways):
            if id(start) in self._started:
                continue
            self._started.add(id(start))
            end = servo.descend(start)
            if end.solution is not None:
                yield end.solution
            if not any(same(end.state, other.state) for other in ends):
                ends.append(end)
            if perf_counter() > self.deadline:
                return
        for end in sorted(ends, key=lambda arrival: arrival.distance)[:KICKED]:
            arrival = servo.kick(end)
            if arrival.solution is not None:
                yield arrival.solution
            if perf_counter() > self.deadline:
                return

    def _judge(self, start: Solution, stop: float) -> Judge:
        """Return a judge that refuses jumps, and stiffness below a share of that at a start."""
        bounds = Bounds(stop_fraction=stop, enforce_limits=False)
        return Judge(self.robot, bounds, float(start.min_eigenvalue))

    def _solve(self, start: Guess | Solution) -> Solution:
        """Newton's method for the target."""
        return solve_target(self.solver, self.target, start)

    def _equations(self) -> Equations:
        target = self.target
        return Equations(self.solver, target.by_joints, target.wrench, target.frame)

    # -- results

    def _accept(self, solution: Solution) -> bool:
        """Tell whether a result is what is wanted; remember the best of the others."""
        if solution.status is not RodStatus.OK or not np.isfinite(solution.q).all():
            return False
        if self._excess(solution) > 1e-9:
            if self.outside is None or self._excess(solution) < self._excess(self.outside):
                self.outside = solution
            return False
        values = solution.eigenvalues
        if abs(values[0]) <= FREE_MODE * abs(values[-1]):
            self.free = self.free or solution
            return False
        if not values[0] > 0.0:
            if self.unstable is None or values[0] > self.unstable.min_eigenvalue:
                self.unstable = solution
            return False
        index = self._held_index(solution)
        if index.any():
            if self.collapsed is None:
                self.collapsed = solution, int(np.argmax(index))
            return False
        return True

    def _held_index(self, solution: Solution) -> npt.NDArray[np.int_]:
        """Return the number of ways in which each rod collapses by itself, shape (n,)."""
        from cards_core.rods.analysis.held_index import held_index

        return held_index(self.solver, solution)

    def _excess(self, solution: Solution) -> float:
        """Largest distance of a joint from its limits; 0 or less inside."""
        robot = self.robot
        return float(np.maximum(robot.q_lower - solution.q, solution.q - robot.q_upper).max())

    def _found(self, solution: Solution, how: str) -> ColdStart:
        """Report a stable equilibrium inside the limits."""
        findings: list[Finding] = []
        others: tuple[Solution, ...] = ()
        limbs = self.robot.limbs
        buckled = range(len(limbs)) if how == "load" else self.buckled
        undeclared = [i for i in buckled if limbs[i].bulge is None]
        if undeclared and how in ("newton", "levenberg-marquardt", "load", "variants"):
            others = self._alternatives(solution, how)
            names = ", ".join(f"'{limbs[i].name}'" for i in undeclared)
            if others or how != "load":
                findings.append(
                    Finding(
                        RodStatus.AMBIGUOUS,
                        f"buckled, and no `bulge` says to which side: {names}. The branch is"
                        f" arbitrary; {len(others)} other stable equilibria were found"
                        " (alternatives)",
                        undeclared[0],
                    )
                )
        if self.anchor is not None and how in ("homotopy", "servo", "roadmap"):
            findings += self.anchor.findings
        value, mode = weakest_mode(self._equations(), solution)
        if value < SINGULAR:
            findings.append(
                Finding(
                    RodStatus.SINGULAR,
                    f"singular here (smallest singular value {value:.1e}): nothing determines"
                    f" {mode}",
                )
            )
        return self._result(solution, RodStatus.OK, how, findings, others=others, value=value)

    def _alternatives(self, solution: Solution, how: str) -> tuple[Solution, ...]:
        """Look for other stable equilibria, buckled to other sides."""
        attempts = (
            [self._loads()] if how == "load" else map(self._newton, bulge_variants(self.robot))
        )
        others: list[Solution] = []
        for attempt in attempts:
            for other in attempt:
                if self._accept(other) and not any(
                    same(other, known) for known in (solution, *others)
                ):
                    others.append(other)
        return tuple(others)

    def _failed(self) -> ColdStart:
        """Say what was found instead."""
        if self.free is not None:
            way = describe_direction(self.free.eigenvector, plate_lever(self.robot))
            finding = Finding(
                RodStatus.SINGULAR,
                f"rank deficient: the plate moves freely, nothing holds it where it {way}",
            )
            return self._result(self.free, finding.status, "", [finding])
        if self.unstable is not None:
            value = self.unstable.min_eigenvalue
            way = describe_direction(self.unstable.eigenvector, plate_lever(self.robot))
            finding = Finding(
                RodStatus.UNSTABLE,
                f"the only equilibrium found is unstable (smallest stiffness {value:.3g}); the"
                f" plate goes: {way}",
            )
            return self._result(self.unstable, finding.status, "", [finding])
        if self.collapsed is not None:
            solution, limb = self.collapsed
            finding = Finding(
                RodStatus.UNSTABLE,
                "the only equilibrium found is unstable: limb"
                f" '{self.robot.limbs[limb].name}' collapses between its base and the plate",
                limb,
            )
            return self._result(solution, finding.status, "", [finding])
        if self.outside is not None:
            found = limit_reach_finding(self.robot, self.outside.q, "this pose")
            assert found is not None
            return replace(self._result(None, found.status, "", [found]), best=self.outside)
        if self.last is not None:
            value, mode = weakest_mode(self._equations(), self.last)
            if value < SINGULAR:
                finding = Finding(
                    RodStatus.SINGULAR,
                    "no equilibrium found; the last attempt ended where the equations are rank"
                    f" deficient (smallest singular value {value:.1e}): nothing determines {mode}",
                )
                return self._result(None, finding.status, "", [finding], value=value)
        tried = ", ".join(dict.fromkeys(self.attempts))
        finding = Finding(
            RodStatus.NOT_CONVERGED,
            f"no equilibrium found (tried: {tried}); that is no proof that there is none",
        )
        return self._result(None, finding.status, "", [finding])

    def _result(
        self,
        solution: Solution | None,
        status: RodStatus,
        how: str,
        findings: list[Finding],
        *,
        others: tuple[Solution, ...] = (),
        value: float = float("nan"),
    ) -> ColdStart:
        """Put the result together."""
        message = ""
        if findings:
            status, message = findings[0].status, findings[0].message
        return ColdStart(
            solution,
            status,
            message,
            how,
            tuple(self.attempts),
            findings=tuple(findings),
            alternatives=others,
            singular_value=value,
            start_value=self.start_value,
        )
