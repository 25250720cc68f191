"""Search for an equilibrium of a rod robot when no state near it is known.

For a plate pose, these methods (`search_methods`) are tried in order until one gives a stable
equilibrium with all joints inside their limits. Their names in `SearchResult` are in brackets.

1. Hermite guess of every rod, then Newton's method, for the whole robot at once or first for each
   rod alone (``newton``).
2. Homotopy: the equilibrium at the home pose is followed along the straight line to the pose
   (``homotopy``). A few solves, each from a neighbour: cheaper than the next method, and on the
   branch of home.
3. Hermite guess, then Levenberg-Marquardt, then Newton (``levenberg-marquardt``).
4. Inverse kinematics by damped least squares: the joints move, along stable equilibria, until the
   plate is at the pose; first from home (``servo``), then from states sampled all over what the
   robot reaches (``roadmap``).
5. Load continuation: the plate without its weight, which is then restored together with a small
   push to the side (``load``).
6. Hermite guesses with slack, and bulging to other sides (``variants``).
7. More and more sampled states, until the budget is spent; not if an equilibrium was found whose
   joints are outside their limits.

For joint coordinates the homotopy comes first: of the many equilibria at given joints it finds the
one that the robot reaches from home without a jump. The search is bounded (:class:`Budget`) in
iterations, not in seconds: the result depends neither on the machine's load nor on earlier solves.
If nothing is found the result says so; that does not prove that there is no equilibrium.

``initial`` of a description gives a plate pose, joint coordinates, or both. One of them is
prescribed (the pose, if given), the other one tells which of the many equilibria is meant. The
search begins near it, but ends elsewhere if there is no equilibrium near. That is no error, since
the coordinates may be a rough estimate, but it is reported (AMBIGUOUS).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from weakref import WeakKeyDictionary

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.robots.limb_failure import limb_morse_index, yield_findings
from cards_core.rods.robots.robot import BaseKind, RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import SEVERITY, Finding, RodStatus
from cards_core.rods.tracking.commands import (
    checked_joints,
    checked_pose,
    checked_wrench,
    limit_reach_finding,
    quantity,
    reach_findings,
)
from cards_core.rods.tracking.continuation import (
    Progress,
    WorkCounter,
    describe_direction,
    plate_lever,
)
from cards_core.rods.tracking.inverse_kinematics import SampledStates
from cards_core.rods.tracking.levenberg_marquardt import SINGULAR, weakest_mode
from cards_core.rods.tracking.search_methods import (
    Budget,
    HomeState,
    SearchMethods,
    bulge_variants,
    same_equilibrium,
    slack_variants,
)
from cards_core.rods.tracking.targets import Target, pose_difference
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of `find_equilibrium`.

    Attributes:
        solution: The equilibrium; None if none was found inside the limits.
        status: OK; AMBIGUOUS, SINGULAR, UNSTABLE (a solution is given, with reserve); UNREACHABLE,
            NOT_CONVERGED, LIMIT, NOT_FINITE, INVALID (None).
        message: In words; empty if OK.
        how: Name of the method that succeeded.
        attempts: Names of all methods tried.
        time_s: Time taken, [s].
        work: Newton iterations made.
        findings: All findings.
        best: Equilibrium that is not acceptable (outside limits), if only such were found.
        alternatives: Other stable equilibria, for buckled rods without a declared bulge.
        singular_value: Smallest singular value of the scaled Jacobian at the solution; 0 where the
            model has a singular point, as with straight parallel rods without load.
        start_value: The same at the first guess; NaN if Newton's method succeeded from it.
        exhausted: Whether the search ended because its budget was spent.
    """

    solution: Solution | None
    status: RodStatus
    message: str = ""
    how: str = ""
    attempts: tuple[str, ...] = ()
    time_s: float = 0.0
    work: int = 0
    findings: tuple[Finding, ...] = ()
    best: Solution | None = None
    alternatives: tuple[Solution, ...] = ()
    singular_value: float = float("nan")
    start_value: float = float("nan")
    exhausted: bool = False

    def with_findings(self, more: Iterable[Finding]) -> SearchResult:
        """Return a copy with findings added; the most serious one sets status and message."""
        own = {item.message for item in self.findings}
        added = tuple(item for item in more if item.message not in own)
        if not added or self.solution is None:
            return self
        findings = sorted((*self.findings, *added), key=lambda f: SEVERITY.index(f.status))
        if SEVERITY.index(findings[0].status) >= SEVERITY.index(self.status):
            return replace(self, findings=tuple(findings))
        lead = findings[0]
        return replace(self, findings=tuple(findings), status=lead.status, message=lead.message)


_HOMES: WeakKeyDictionary[object, dict[Budget, tuple[SearchResult, HomeState | None]]] = (
    WeakKeyDictionary()
)


def find_equilibrium(
    solver: RodRobotSolver,
    *,
    pose: Array | None = None,
    q: Array | None = None,
    wrench: Array | None = None,
    frame: str = "world",
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Find an equilibrium at a plate pose (inverse model) or at joint coordinates (direct model).

    Args:
        solver: Solver of the robot.
        pose: Plate pose, shape (4, 4); exclusive with ``q``.
        q: Joint coordinates, shape (n,).
        wrench: On the plate, shape (6,); default the robot's own.
        frame: Of the wrench.
        budget: Bounds of the work.
        progress: Called now and then with the iterations made and those allowed.

    Raises:
        RodError: The solver is something else, e.g. a robot.
        ValueError: Neither or both of pose and q are given.
    """
    _expect_solver(solver)
    if (pose is None) == (q is None):
        raise ValueError("give either a pose or joint coordinates")
    begin = perf_counter()
    robot = solver.robot
    if wrench is None:
        wrench, frame = robot.wrench, robot.wrench_frame
    load = checked_wrench(wrench, frame)
    command = checked_pose(robot, pose, solver.base) if q is None else checked_joints(robot, q)
    for value in (command, load):
        if isinstance(value, Finding):
            return SearchResult(None, value.status, value.message, findings=(value,))
    assert not isinstance(command, Finding)
    assert not isinstance(load, Finding)
    whole = len(robot.controlled) == len(robot.coordinates)
    if q is None and whole and (findings := reach_findings(robot, command, solver.base)):
        return SearchResult(None, findings[0].status, findings[0].message, findings=findings)
    target = Target(
        command if q is not None else None, command if q is None else None, load, frame
    )
    budget = budget or Budget()
    with solver.exclusive():
        home = _home_of(solver, budget)[1]
        found = EquilibriumSearch(solver, target, budget, home, progress).run()
    if found.solution is None or found.status is RodStatus.UNSTABLE:
        lost = found.solution is None and q is None
        here = reach_findings(robot, command, solver.base) if lost else ()
        hints = _hints(robot, here)
        if found.exhausted:
            hints.append(f"the search ended after its budget of {budget.work} iterations")
        found = replace(found, message="; ".join([found.message, *hints]))
    return replace(found, time_s=perf_counter() - begin)


def _hints(robot: RodRobot, here: tuple[Finding, ...]) -> list[str]:
    """Return other possible reasons for a failure: rods too short, doubtful units."""
    hints = [f"with the plate just there, {finding.message}" for finding in here[:1]]
    return hints + [f"doubtful in the description: {note}" for note in robot.notes[:1]]


def home_equilibrium(solver: RodRobotSolver, budget: Budget | None = None) -> SearchResult:
    """Return the equilibrium at the home pose (or home joints) of the robot, searched only once.

    Raises:
        RodError: The solver is something else, e.g. a robot.
    """
    _expect_solver(solver)
    with solver.exclusive():
        return _home_of(solver, budget or Budget())[0]


def _expect_solver(solver: object) -> None:
    """Raise an error if the argument is not a solver."""
    if not hasattr(solver, "igm"):
        raise RodError(
            f"solver is of type {type(solver).__name__}; expected a RodRobotSolver, as "
            "RodRobotSolver(robot) makes it"
        )


def _home_of(solver: RodRobotSolver, budget: Budget) -> tuple[SearchResult, HomeState | None]:
    """Return the search result at home, and the state that further searches start from."""
    homes = _HOMES.setdefault(solver, {})
    known = homes.get(budget)
    if known is None:
        begin, target = perf_counter(), home_target(solver)
        found = EquilibriumSearch(solver, target, budget, None).run()
        found = replace(found, time_s=perf_counter() - begin)
        home = None
        if found.solution is not None and found.solution.min_eigenvalue > 0.0:
            samples = SampledStates(solver, found.solution, target.wrench)
            ambiguous = tuple(f for f in found.findings if f.status is RodStatus.AMBIGUOUS)
            home = HomeState(found.solution, target, samples, ambiguous)
        known = homes[budget] = (found, home)
    return known


def home_target(solver: RodRobotSolver) -> Target:
    """Return the target that the robot starts with: its initial pose, else its joints."""
    robot = solver.robot
    wrench = np.array(robot.wrench, dtype=float)
    if robot.initial_pose is None and robot.initial_q is not None:
        return Target(robot.home_q, None, wrench, robot.wrench_frame)
    return Target(None, solver.base @ robot.home_pose, wrench, robot.wrench_frame)


FIRST_SAMPLES = (1, 20, 120)
"""Joint samples that are tried before other guesses; more are made if these fail, too."""

SPENT = "budget spent"
"""Last entry of `SearchResult.attempts` if the budget ended the search."""

FREE_MODE = 1e-10
"""Eigenvalue of K, relative to the largest, that counts as zero: the plate moves freely."""


class EquilibriumSearch:
    """One search.

    Args:
        solver: Solver of the robot.
        target: Pose or joints, and the wrench.
        budget: Bounds of the search.
        home: The home state; None while that itself is searched.
        progress: Called with the iterations made and those allowed.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        budget: Budget,
        home: HomeState | None,
        progress: Progress | None = None,
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.target, self.budget, self.home = target, budget, home
        self.work = WorkCounter(solver, budget.work, progress)
        self.methods = SearchMethods(solver, target, budget, self.work, self._accept)
        self.attempts: list[str] = []
        self.unstable: Solution | None = None
        self.outside: Solution | None = None
        self.free: Solution | None = None
        self.collapsed: tuple[Solution, int] | None = None

    def run(self) -> SearchResult:
        """Try the methods until one succeeds."""
        self.solver.forget()  # the same search, whatever was solved before
        for name, solutions in self._ordered_methods():
            if not self.attempts or self.attempts[-1] != name:
                self.attempts.append(name)
            for solution in solutions:
                if self._accept(solution):
                    return self._found(solution, name)
                if not self.work.left:
                    break
            if not self.work.left:
                self.attempts.append(SPENT)
                break
        return self._failed()

    def _ordered_methods(self) -> Iterator[tuple[str, Iterator[Solution]]]:
        """Yield names and solutions of the methods, the cheapest first."""
        if self.home is not None and self.target.by_joints:
            yield "homotopy", self.methods.homotopies(self.home)
        if self.home is None and self.robot.initial_q is not None:
            yield "initial joints", self.methods.newton({"q": self.robot.initial_q})
            yield "initial joints", self.methods.descend({"q": self.robot.initial_q})
        yield "newton", self.methods.newton({})
        if self.home is not None and not self.target.by_joints:
            yield "homotopy", self.methods.homotopies(self.home)
        yield "levenberg-marquardt", self.methods.descend({})
        if self.home is not None and not self.target.by_joints:
            for most in FIRST_SAMPLES:
                samples = min(most, self.budget.samples)
                name = "servo" if samples == 1 else "roadmap"
                yield name, self.methods.inverse_kinematics(self.home, samples)
        if self.home is None or self.target.by_joints:
            yield "load", self.methods.load_continuation()
        for variant in (*slack_variants(), *bulge_variants(self.robot)):
            yield "variants", self.methods.newton(variant)
            yield "variants", self.methods.descend(variant)
        # not where an equilibrium needs joints outside their limits: that is the answer
        if self.home is not None and not self.target.by_joints and self.outside is None:
            few = FIRST_SAMPLES[-1]
            for most in range(2 * few, self.budget.samples + few, few):
                samples = min(most, self.budget.samples)
                yield "roadmap", self.methods.inverse_kinematics(self.home, samples)

    def _accept(self, solution: Solution) -> bool:
        """Tell whether a solution is acceptable; remember the best of the others."""
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
        index = limb_morse_index(self.solver, solution)
        if index.any():
            if self.collapsed is None:
                self.collapsed = solution, int(np.argmax(index))
            return False
        return True

    def _excess(self, solution: Solution) -> float:
        """Largest distance of a joint from its limits; 0 or less inside."""
        robot = self.robot
        return float(np.maximum(robot.q_lower - solution.q, solution.q - robot.q_upper).max())

    def _found(self, solution: Solution, how: str) -> SearchResult:
        """Report a stable equilibrium inside the limits."""
        findings: list[Finding] = []
        others: tuple[Solution, ...] = ()
        limbs = self.robot.limbs
        buckled = range(len(limbs)) if how == "load" else self.methods.buckled
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
        if self.home is not None and how in ("homotopy", "servo", "roadmap"):
            findings += self.home.findings
        value, mode = weakest_mode(self.methods.equations(), solution)
        if value < SINGULAR:
            findings.append(
                Finding(
                    RodStatus.SINGULAR,
                    f"singular here (smallest singular value {value:.1e}): nothing determines"
                    f" {mode}",
                )
            )
        if self.home is None:
            findings += _initial_findings(self.robot, solution, self.solver.base)
        return self._result(solution, RodStatus.OK, how, findings, others=others, value=value)

    def _alternatives(self, solution: Solution, how: str) -> tuple[Solution, ...]:
        """Look for other stable equilibria, buckled to other sides."""
        attempts = (
            [self.methods.load_continuation()]
            if how == "load"
            else map(self.methods.newton, bulge_variants(self.robot))
        )
        others: list[Solution] = []
        for attempt in attempts:
            for other in attempt:
                if self._accept(other) and not any(
                    same_equilibrium(other, known) for known in (solution, *others)
                ):
                    others.append(other)
        return tuple(others)

    def _failed(self) -> SearchResult:
        """Report what was found instead."""
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
        if self.methods.last is not None:
            value, mode = weakest_mode(self.methods.equations(), self.methods.last)
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
    ) -> SearchResult:
        """Put the result together; rods beyond yield are always reported."""
        message = ""
        if solution is not None:
            findings = findings + yield_findings(self.robot, self.solver, solution)
        if findings:
            findings = sorted(findings, key=lambda finding: SEVERITY.index(finding.status))
            status, message = findings[0].status, findings[0].message
        return SearchResult(
            solution,
            status,
            message,
            how,
            tuple(self.attempts),
            findings=tuple(findings),
            alternatives=others,
            singular_value=value,
            start_value=self.methods.start_value,
            work=self.work.spent,
            exhausted=self.attempts[-1:] == [SPENT],
        )


_FAR_SHARE = 0.05
"""Distance, as a share of a rod's length, beyond which a hint is one to another equilibrium."""

_FAR_ANGLE = 0.1
"""The same for angles, [rad]."""


def _initial_findings(robot: RodRobot, solution: Solution, base: Array) -> list[Finding]:
    """Return AMBIGUOUS for joints or a plate that are not where the description has them.

    Args:
        robot: The robot.
        solution: Equilibrium at its start.
        base: Pose of the robot in the world, (4, 4).
    """
    findings: list[Finding] = []
    if robot.initial_q is not None:
        far = np.array(
            [
                _FAR_ANGLE if limb.base.kind is BaseKind.REVOLUTE else _FAR_SHARE * limb.length
                for limb in robot.limbs
            ]
        )
        away = np.abs(solution.q - robot.initial_q)
        worst = int(np.argmax(away / far))
        if away[worst] > far[worst]:
            limb = robot.limbs[worst]
            kind, name = limb.base.kind, limb.base.joint or limb.name
            findings.append(
                Finding(
                    RodStatus.AMBIGUOUS,
                    f"`initial.q` is not the equilibrium that was found: '{name}' is"
                    f" {quantity(kind, solution.q[worst])} there, {quantity(kind, away[worst])}"
                    f" away from the {quantity(kind, robot.initial_q[worst])} of the description."
                    " This start may be another branch than the one meant (expected: the"
                    " joint coordinates of an equilibrium at the initial pose)",
                    worst,
                    float(away[worst]),
                )
            )
    if robot.initial_q is None and robot.initial_pose is None:
        return findings  # the plate's pose in the SDF is a guess then
    step = pose_difference(base @ robot.home_pose, solution.pose)
    way, turn = float(np.linalg.norm(step[:3])), float(np.linalg.norm(step[3:]))
    if way > _FAR_SHARE * float(robot.lengths.mean()) or turn > _FAR_ANGLE:
        whose = "`initial.pose`" if robot.initial_pose is not None else "the plate's pose (SDF)"
        findings.append(
            Finding(
                RodStatus.AMBIGUOUS,
                f"{whose} is not the equilibrium that was found: the plate stands"
                f" {1e3 * way:.1f} mm and {np.degrees(turn):.1f} deg away from it. This start may"
                " be another branch than the one meant (expected: the plate's pose in an"
                " equilibrium at the initial joint coordinates)",
                None,
                way,
            )
        )
    return findings
