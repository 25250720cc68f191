"""One cold start: the attempts in turn, and what is to be said about what they find.

`tracking.cold_start` describes the attempts, `tracking.cold_attempts` makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cards_core.rods.analysis.held_index import held_index
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import SEVERITY, RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.cold_attempts import Anchor, Attempts
from cards_core.rods.tracking.cold_guesses import bulge_variants, slack_variants
from cards_core.rods.tracking.cold_result import Budget, ColdStart, same
from cards_core.rods.tracking.collapse import describe_direction, plate_lever
from cards_core.rods.tracking.initial import initial_findings
from cards_core.rods.tracking.path import Target
from cards_core.rods.tracking.reach import limit_reach_finding
from cards_core.rods.tracking.singular import SINGULAR, weakest_mode
from cards_core.rods.tracking.strain import yield_findings
from cards_core.rods.tracking.work import Progress, Work

FIRST_WAYS = (1, 20, 120)
"""Ways of the roadmap that are tried before other guesses; more are made when these fail, too."""

SPENT = "budget spent"
"""Last of the attempts where the search ended because it may do no more."""

FREE_MODE = 1e-10
"""Eigenvalue of K, relative to the greatest, that is zero: the plate moves freely."""


class ColdSearch:
    """One cold start.

    Args:
        solver: Solver of the robot.
        target: What is wanted.
        budget: Bounds of the work.
        anchor: The home state; None while that itself is sought.
        progress: Told how much of the work is done.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        budget: Budget,
        anchor: Anchor | None,
        progress: Progress | None = None,
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.target, self.budget, self.anchor = target, budget, anchor
        self.work = Work(solver, budget.work, progress)
        self.tries = Attempts(solver, target, budget, self.work, self._accept)
        self.attempts: list[str] = []
        self.unstable: Solution | None = None
        self.outside: Solution | None = None
        self.free: Solution | None = None
        self.collapsed: tuple[Solution, int] | None = None

    def run(self) -> ColdStart:
        """Make the attempts until one succeeds."""
        self.solver.forget()  # the same search, whatever was solved before
        for name, attempt in self._ladder():
            if not self.attempts or self.attempts[-1] != name:
                self.attempts.append(name)
            for solution in attempt:
                if self._accept(solution):
                    return self._found(solution, name)
                if not self.work.left:
                    break
            if not self.work.left:
                self.attempts.append(SPENT)
                break
        return self._failed()

    def _ladder(self) -> Iterator[tuple[str, Iterator[Solution]]]:
        """Return the attempts in the order of their cost."""
        if self.anchor is not None and self.target.by_joints:
            yield "homotopy", self.tries.homotopies(self.anchor)
        if self.anchor is None and self.robot.initial_q is not None:
            yield "initial joints", self.tries.newton({"q": self.robot.initial_q})
            yield "initial joints", self.tries.descend({"q": self.robot.initial_q})
        yield "newton", self.tries.newton({})
        if self.anchor is not None and not self.target.by_joints:
            yield "homotopy", self.tries.homotopies(self.anchor)
        yield "levenberg-marquardt", self.tries.descend({})
        if self.anchor is not None and not self.target.by_joints:
            for most in FIRST_WAYS:
                ways = min(most, self.budget.ways)
                yield "servo" if ways == 1 else "roadmap", self.tries.servo(self.anchor, ways)
        if self.anchor is None or self.target.by_joints:
            yield "load", self.tries.loads()
        for variant in (*slack_variants(), *bulge_variants(self.robot)):
            yield "variants", self.tries.newton(variant)
            yield "variants", self.tries.descend(variant)
        # not where an equilibrium needs joints outside their limits: that is the answer
        if self.anchor is not None and not self.target.by_joints and self.outside is None:
            few = FIRST_WAYS[-1]
            for most in range(2 * few, self.budget.ways + few, few):
                ways = min(most, self.budget.ways)
                yield "roadmap", self.tries.servo(self.anchor, ways)

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
        buckled = range(len(limbs)) if how == "load" else self.tries.buckled
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
        value, mode = weakest_mode(self.tries.equations(), solution)
        if value < SINGULAR:
            findings.append(
                Finding(
                    RodStatus.SINGULAR,
                    f"singular here (smallest singular value {value:.1e}): nothing determines"
                    f" {mode}",
                )
            )
        if self.anchor is None:
            findings += initial_findings(self.robot, solution, self.solver.base)
        return self._result(solution, RodStatus.OK, how, findings, others=others, value=value)

    def _alternatives(self, solution: Solution, how: str) -> tuple[Solution, ...]:
        """Look for other stable equilibria, buckled to other sides."""
        attempts = (
            [self.tries.loads()]
            if how == "load"
            else map(self.tries.newton, bulge_variants(self.robot))
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
            doubt = "no equilibrium was found inside the limits; that proves nothing"
            found = replace(found, message=f"{found.message} ({doubt})")
            return replace(self._result(None, found.status, "", [found]), best=self.outside)
        if self.tries.last is not None:
            value, mode = weakest_mode(self.tries.equations(), self.tries.last)
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
        """Put the result together; of rods beyond yield it always tells."""
        message = ""
        if solution is not None:
            findings = findings + yield_findings(self.robot, self.solver, solution)
        if findings:
            findings = sorted(findings, key=lambda finding: SEVERITY.index(finding.status))
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
            start_value=self.tries.start_value,
            work=self.work.spent,
            exhausted=self.attempts[-1:] == [SPENT],
        )
