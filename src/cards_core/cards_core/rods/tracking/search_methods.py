"""Methods that search for an equilibrium: from a guess, or from a known state.

Each method yields solutions of the target in the order in which it finds them; `initial_search`
decides which of them is acceptable. Guesses are the Hermite guess, its variants, and rods at rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.robots.initial_guess import InitialGuess, hermite_guess
from cards_core.rods.robots.robot import RodRobot, rod_lengths, rod_starts
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.continuation import (
    Bounds,
    StepAcceptance,
    WorkCounter,
    follow,
    solve_target,
)
from cards_core.rods.tracking.inverse_kinematics import (
    DampedLeastSquares,
    DescentEnd,
    SampledStates,
)
from cards_core.rods.tracking.levenberg_marquardt import Equations, levenberg_marquardt
from cards_core.rods.tracking.targets import Target, pose_difference
from cards_core.typing import Array


@dataclass(frozen=True)
class Budget:
    """Bounds of a search, in iterations instead of seconds: see `continuation.WorkCounter`.

    Attributes:
        work: Newton iterations after which nothing new is begun. Robots of six rods make some
            15 000 in a second, so the default is 6 or 7 seconds; most searches need a hundredth.
        solves: Maximum number of solves of one homotopy.
        iterations: Linearisations of one Levenberg-Marquardt descent.
        samples: Joint samples (`SampledStates`), each some 20 solves, made when a pose needs them.
    """

    work: int = 100_000
    solves: int = 200
    iterations: int = 60
    samples: int = 1200

    def __post_init__(self) -> None:
        for name in ("work", "solves", "iterations", "samples"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise RodError(
                    f"budget: {name} is {value!r} (expected: a whole number, 1 or more)"
                )


PERTURBED = 8
"""Number of descents, those that ended nearest to the pose, that are perturbed and continued."""


@dataclass(frozen=True, eq=False)
class HomeState:
    """The home equilibrium, from which searches start.

    Attributes:
        solution: The equilibrium, stable.
        target: The target that it fulfils.
        samples: States reached from it.
        findings: Findings about it: that its branch is arbitrary.
    """

    solution: Solution
    target: Target
    samples: SampledStates
    findings: tuple[Finding, ...] = ()


class SearchMethods:
    """The methods for one target, and the state where the last of them ended.

    Args:
        solver: Solver of the robot.
        target: Pose or joints, and the wrench.
        budget: Bounds of the search.
        work: Counts the work done.
        accept: Tells whether a solution is acceptable.

    Attributes:
        last: The last guess, or where a descent from it ended.
        buckled: Rods that are buckled in the plain guess.
        start_value: Smallest singular value at the plain guess; NaN before `descend` used it.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        budget: Budget,
        work: WorkCounter,
        accept: Callable[[Solution], bool],
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.target, self.budget, self._accept = target, budget, accept
        self.work = work
        self.last: Solution | InitialGuess | None = None
        self.buckled: tuple[int, ...] = ()
        self.start_value = float("nan")
        self._started: set[int] = set()
        self._samples = 0  # charged to this search

    def _guess(self, variant: dict[str, Any]) -> InitialGuess:
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

    def homotopies(self, home: HomeState) -> Iterator[Solution]:
        """Follow the home state to the target: first by stable states only, then by any."""
        start = home.solution
        if self.target.by_joints:
            origin = replace(home.target, q=start.q, pose=None)
        else:
            origin = replace(home.target, q=None, pose=start.pose)
        for stop in (0.0, -1e12):
            followed = follow(
                self.solver,
                start,
                origin,
                self.target,
                self._acceptance(start, stop),
                solves=self.budget.solves,
                work=self.work,
            )
            if followed.arrived:
                yield followed.solution

    def load_continuation(self) -> Iterator[Solution]:
        """Solve without the plate's weight, then restore it with a small push to the side.

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
                    self._acceptance(start, 0.0),
                    work=self.work,
                )
                state, origin = followed.solution, end
                if not followed.arrived:
                    break
            else:
                yield state

    def inverse_kinematics(self, home: HomeState, samples: int) -> Iterator[Solution]:
        """Move the joints until the plate is at the pose, from the nearest of known states.

        First directly from each; where that ends near the pose, with perturbations that lead to
        other solution sheets.
        """
        acceptance = self._acceptance(home.solution, 0.0)
        descents = DampedLeastSquares(self.solver, self.target, acceptance, self._accept)
        assert self.target.pose is not None
        ends: list[DescentEnd] = []
        while self._samples < samples and self.work.left:
            self.work.charge(home.samples.cost(self._samples, acceptance))
            self._samples += 1
        for start in home.samples.nearest(self.target.pose, min(samples, self._samples)):
            if id(start) in self._started:
                continue
            self._started.add(id(start))
            end = descents.descend(start)
            if end.solution is not None:
                yield end.solution
            if not any(same_equilibrium(end.state, other.state) for other in ends):
                ends.append(end)
            if not self.work.left:
                return
        for end in sorted(ends, key=lambda end: end.distance)[:PERTURBED]:
            perturbed = descents.perturb(end)
            if perturbed.solution is not None:
                yield perturbed.solution
            if not self.work.left:
                return

    def _acceptance(self, start: Solution, stop: float) -> StepAcceptance:
        """Return a test that refuses jumps, and stiffness below a share of that at a start."""
        bounds = Bounds(stop_fraction=stop, enforce_limits=False)
        return StepAcceptance(self.robot, bounds, float(start.min_eigenvalue))

    def _solve(self, start: InitialGuess | Solution) -> Solution:
        """Newton's method for the target."""
        return solve_target(self.solver, self.target, start)

    def equations(self) -> Equations:
        """Return the equations of the target."""
        target = self.target
        return Equations(self.solver, target.by_joints, target.wrench, target.frame)


def target_guess(solver: RodRobotSolver, target: Target, variant: dict[str, Any]) -> InitialGuess:
    """Return the Hermite guess at a target; at the home pose if joints are given.

    Args:
        solver: Solver of the robot.
        target: Pose or joints, and the wrench.
        variant: Arguments of `hermite_guess` that differ from those of the plain guess.
    """
    pose = target.pose
    if pose is None:
        pose = solver.base @ solver.robot.home_pose
    chosen: dict[str, Any] = {"q": target.q} | variant
    return hermite_guess(
        solver.robot,
        pose,
        wrench=target.wrench,
        base=solver.base,
        gravity=solver.gravity,
        **chosen,
    )


def slack_variants() -> Iterator[dict[str, Any]]:
    """Yield variants with extensible rods longer than necessary."""
    for slack in (0.02, 0.06):
        yield {"slack": slack}


def bulge_variants(robot: RodRobot) -> Iterator[dict[str, Any]]:
    """Yield variants in which all rods bulge to the same side, one side after the other."""
    starts = rod_starts(robot, robot.home_q)
    for axis in (0, 1) if not robot.planar else (None,):
        for sign in (1.0, -1.0):
            if axis is None:
                sides = [np.cross([0.0, 0.0, sign], start[:3, 2]) for start in starts]
            else:
                sides = [sign * start[:3, axis] for start in starts]
            yield {"bulge": sides, "slack": 0.02}


def straight_guess(solver: RodRobotSolver, q: Array) -> InitialGuess:
    """Return unloaded rods, and the plate at the mean of the poses that fit their tips."""
    robot = solver.robot
    places, turns = [], np.zeros((3, 3))
    for limb, start, length in zip(
        robot.limbs, rod_starts(robot, q), rod_lengths(robot, q), strict=True
    ):
        tip = solver.base @ start
        tip[:3, 3] += length * tip[:3, 2]
        plate = tip @ np.linalg.inv(limb.tip.joint_pose @ limb.tip.attach)
        places.append(plate[:3, 3])
        turns += plate[:3, :3]
    pose = np.eye(4)
    u, _, vt = np.linalg.svd(turns)
    pose[:3, :3] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    pose[:3, 3] = np.mean(places, axis=0)
    return InitialGuess(q.copy(), pose, np.zeros((robot.n_limbs, 6)))


def same_equilibrium(a: Solution, b: Solution) -> bool:
    """Tell whether two solutions are one equilibrium: q, pose and base moments agree."""
    step = pose_difference(a.pose, b.pose)
    scale = 1e-3 * (1.0 + np.abs(a.base_wrenches).max())
    return bool(
        np.abs(step).max() < 1e-4
        and np.abs(a.q - b.q).max() < 1e-4
        and np.abs(a.base_wrenches - b.base_wrenches).max() < scale
    )
