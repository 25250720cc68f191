"""Inverse kinematics along stable equilibria: damped least squares, from home or sampled states.

The pose x(q) on the stable branch is a smooth function of the joints. Damped least squares lead it
to a target pose; every step is a solve of the direct model that must be accepted,

    dq = J' (J J' + mu I)^-1 e(x, x*)        e = [(p* - p) / size, log(R* R')]

with q kept inside its limits. Unlike a homotopy along the straight line between two poses, this
can go around what is unstable or outside the limits. Where J loses rank, two inverse solutions
meet and the descent may end just short of the pose, on the wrong sheet; perturbations along the
joint motions that move the plate least, v with |J v| smallest, lead across.

If home is too far away the descent starts from sampled states: random joint coordinates inside the
limits are approached from home as long as the state is stable and does not jump, and every state
on the way is kept. A pose is then searched from the nearest states first, one of each path,
because neighbours on a path lead to the same place. The paths do not depend on earlier searches
and are kept for the next one. What it cost to make them is kept, too, and charged to every search
that uses them: whether it succeeds must not depend on the order of searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.continuation import StepAcceptance, follow
from cards_core.rods.tracking.targets import Target, pose_difference
from cards_core.typing import Array

LARGEST_JOINT_STEP = 0.06
"""Maximum change of a joint in one step: of a rod's length, or [rad]."""

NEAR = 2e-2
"""Distance, scaled as e, from which on the inverse model is tried directly."""

PERTURBATION_RANGE = 0.5
"""Distance, scaled as e, below which a stalled descent is perturbed."""

PERTURBATIONS = (0.03, 0.08, 0.2, 0.4)
"""Sizes of perturbations, in the units of `LARGEST_JOINT_STEP`."""

PERTURBATION_ROUNDS = 2
"""How often the nearest state that perturbations found is perturbed again."""


@dataclass(frozen=True, eq=False)
class DescentEnd:
    """Where a descent ended.

    Attributes:
        solution: Equilibrium at the target pose, or None.
        state: The nearest equilibrium that was found.
        distance: Its scaled distance from the pose.
    """

    solution: Solution | None
    state: Solution
    distance: float


class DampedLeastSquares:
    """Descends to one pose from one or more starts.

    Args:
        solver: Solver of the robot.
        target: Pose and wrench.
        acceptance: Accepts or refuses each step.
        accept: Tells whether an equilibrium at the pose is acceptable.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        acceptance: StepAcceptance,
        accept: Callable[[Solution], bool],
    ) -> None:
        assert target.pose is not None
        robot = solver.robot
        self.solver, self.target, self.acceptance = solver, target, acceptance
        self.accept = accept
        self.pose: Array = target.pose
        self.weights = pose_weights(solver)
        self.slots = [PLATE_COORDINATES.index(name) for name in robot.controlled]
        turns = [limb.base.kind == "revolute" for limb in robot.limbs]
        self.units = np.where(turns, 1.0, robot.lengths)
        self.lower, self.upper = robot.q_lower, robot.q_upper

    def perturb(self, end: DescentEnd, iterations: int = 40) -> DescentEnd:
        """Continue from the end of a descent that came near, on other solution sheets."""
        for _ in range(PERTURBATION_ROUNDS):
            if end.distance > PERTURBATION_RANGE:
                break
            best = end
            for state in self._perturbed(end.state):
                other = self.descend(state, iterations)
                if other.solution is not None:
                    return other
                if other.distance < 0.5 * best.distance:
                    best = other
            if best is end:
                break
            end = best
        return end

    def descend(self, start: Solution, iterations: int = 40) -> DescentEnd:
        """Damped least squares from a start."""
        state, mu, tried = start, 1e-2, np.inf
        error = self._error(state)
        distance = float(np.linalg.norm(error))
        history = [distance]
        for _ in range(iterations):
            if distance < NEAR and distance < 0.25 * tried:
                tried = distance
                final = self._inverse(state)
                if self.accept(final):
                    return DescentEnd(final, state, 0.0)
            J = self._jacobian(state)
            if not np.isfinite(J).all():
                break
            step = J.T @ np.linalg.solve(J @ J.T + mu * np.eye(len(J)), error)
            largest = float(np.abs(step).max())
            if largest < 1e-7:
                break
            step *= min(1.0, LARGEST_JOINT_STEP / largest) * self.units
            trial = self._direct(state, step)
            if trial is not None:
                trial_error = self._error(trial)
                trial_distance = float(np.linalg.norm(trial_error))
                if trial_distance < distance:
                    state, error, distance = trial, trial_error, trial_distance
                    mu = max(0.2 * mu, 1e-10)
                    history.append(distance)
                    if len(history) > 8 and distance > 0.9 * history[-6]:
                        break
                    continue
            mu = max(5.0 * mu, 1e-8)
            if mu > 1e4:
                break
        return DescentEnd(None, state, distance)

    def _perturbed(self, state: Solution) -> Iterator[Solution]:
        """Yield equilibria to both sides along the two joint motions that move the plate least."""
        for vector in np.linalg.svd(self._jacobian(state))[2][:-3:-1]:
            idle = vector / float(np.abs(vector).max()) * self.units
            for size in PERTURBATIONS:
                pieces = int(np.ceil(size / LARGEST_JOINT_STEP))
                for sign in (1.0, -1.0):
                    here = state
                    for _ in range(pieces):
                        there = self._direct(here, sign * size / pieces * idle)
                        if there is None:
                            break
                        here = there
                    if here is not state:
                        yield here

    def _direct(self, state: Solution, step: Array) -> Solution | None:
        """Solve the direct model a step further; None if it is refused."""
        q = np.clip(state.q + step, self.lower, self.upper)
        wrench, frame = self.target.wrench, self.target.frame
        trial = self.solver.dgm(q, wrench=wrench, frame=frame, start=state)
        point = Target(q, None, wrench, frame)
        return trial if self.acceptance.refuse(state, trial, point) is None else None

    def _inverse(self, state: Solution) -> Solution:
        """Solve the inverse model at the pose, from a neighbour."""
        target = self.target
        return self.solver.igm(self.pose, wrench=target.wrench, frame=target.frame, start=state)

    def _error(self, state: Solution) -> Array:
        return np.asarray((pose_difference(state.pose, self.pose) * self.weights)[self.slots])

    def _jacobian(self, state: Solution) -> Array:
        """Scaled Jacobian of the controlled coordinates."""
        return np.asarray((self.weights[:, None] * state.jacobian * self.units)[self.slots])


def pose_weights(solver: RodRobotSolver) -> Array:
    """Return weights of a pose difference, shape (6,): lengths count by the plate's size."""
    levers = [np.linalg.norm(limb.tip.joint_pose[:3, 3]) for limb in solver.robot.limbs]
    size = max(float(np.mean(levers)), 0.05 * float(solver.robot.lengths.mean()))
    return np.array([1.0 / size] * 3 + [1.0] * 3)


OPEN_RANGE = {BaseKind.REVOLUTE: np.pi}
"""Half the range, around home, of joints without limits: [rad], else the length of the rod."""


class SampledStates:
    """States reached from home, on the paths to random joint coordinates.

    Args:
        solver: Solver of the robot.
        home: The equilibrium where all paths begin.
        wrench: On the plate at ``home``, shape (6,), world frame.
    """

    def __init__(self, solver: RodRobotSolver, home: Solution, wrench: Array) -> None:
        self._of, self.home, self.wrench = solver, home, wrench
        self._paths: list[tuple[list[Solution], int]] = [([home], 0)]  # states, iterations
        self._ends: list[Array] = []  # drawn once, even if Ctrl-C interrupts a path
        self._rng = np.random.default_rng(0)
        self._weights = pose_weights(solver)

    @cached_property
    def solver(self) -> RodRobotSolver:
        """A solver of its own: searches neither see its factors nor count its iterations."""
        of = self._of
        return RodRobotSolver(of.robot, of.settings, base=of.base, gravity=of.gravity)

    def cost(self, index: int, acceptance: StepAcceptance, solves: int = 40) -> int:
        """Return the Newton iterations that a path took; makes the paths up to it first.

        Args:
            index: Number of the path; 0 is home, which took none.
            acceptance: Which states count as a continuation of the one before.
            solves: Most solves of one path.
        """
        robot = self._of.robot
        while len(self._paths) <= index:
            if len(self._ends) < len(self._paths):
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
                acceptance,
                solves=solves,
                visit=states.append,
            )
            self._paths.append((states, self.solver.iterations - begin))
        return self._paths[index][1]

    def nearest(self, pose: Array, count: int) -> Iterator[Solution]:
        """Yield the nearest state of each of the first ``count`` paths, the nearest first."""
        found = []
        for index, (states, _) in enumerate(self._paths[:count]):
            if states:
                distances = [self._distance(state, pose) for state in states]
                best = int(np.argmin(distances))
                found.append((distances[best], index, best))
        for _, index, best in sorted(found):
            yield self._paths[index][0][best]

    def _distance(self, state: Solution, pose: Array) -> float:
        return float(np.linalg.norm(pose_difference(state.pose, pose) * self._weights))


def _ranges(solver: RodRobotSolver, q: Array) -> tuple[Array, Array]:
    """Return lower and upper ends of the ranges that joints are drawn from."""
    robot = solver.robot
    spans = np.array([OPEN_RANGE.get(limb.base.kind, limb.length) for limb in robot.limbs])
    lower = np.where(np.isfinite(robot.q_lower), robot.q_lower, q - spans)
    upper = np.where(np.isfinite(robot.q_upper), robot.q_upper, q + spans)
    return lower, np.maximum(lower, upper)
