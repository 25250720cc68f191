"""From a known equilibrium to a pose by moving the joints, never leaving stable equilibria.

The pose x(q) of the stable branch is a smooth function of the joints. Damped least squares lead it
to a wanted pose, every step a solve of the direct model that the judge accepts,

    dq = J' (J J' + mu I)^-1 e(x, x*)        e = [(p* - p) / size, log(R* R')]

with q kept inside its limits. Unlike a homotopy on the straight way between two poses, this can go
round what is unstable or out of limits. Where J loses rank, two inverse solutions meet and the
descent may end just short of the pose, on the wrong sheet; kicks along the joint motions that
move the plate least, v with |J v| smallest, lead across.

MERGED Equilibria all over what a robot reaches: places to start from when home is too far.

Random joint coordinates inside the limits are approached from home, as long as the state is stable
and no jump happens; every state on the way is kept. A wanted pose is then sought from the nearest
states first, one of each way, because neighbours on a way lead to the same place.

The ways are the same, whatever was sought before, and are kept for the next search. What it cost
to make them is kept, too, and every search that uses them is charged: whether it finds something
must not depend on who came first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.acceptance import StepAcceptance
from cards_core.rods.tracking.continuation import follow
from cards_core.rods.tracking.targets import Target, pose_difference
from cards_core.typing import Array

LARGEST_JOINT_STEP = 0.06
"""Greatest change of a joint in one step: of a rod's length, or [rad]."""


NEAR = 2e-2
"""Distance, scaled as e, from which on the inverse model is tried directly."""


PERTURBATION_RANGE = 0.5
"""Distance, scaled as e, below which a stalled descent is kicked."""


PERTURBATIONS = (0.03, 0.08, 0.2, 0.4)
"""Sizes of kicks, as `LARGEST_JOINT_STEP`."""


PERTURBATION_ROUNDS = 2
"""How often the nearest state found by kicks is kicked again."""


@dataclass(frozen=True, eq=False)
class DescentEnd:
    """Where a descent ended.

    Attributes:
        solution: Equilibrium at the wanted pose, or None.
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
        target: Pose and wrench that are wanted.
        judge: Accepts or refuses each step.
        acceptable: Tells whether an equilibrium at the pose is what is wanted.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        target: Target,
        judge: StepAcceptance,
        acceptable: Callable[[Solution], bool],
    ) -> None:
        assert target.pose is not None
        robot = solver.robot
        self.solver, self.target, self.judge = solver, target, judge
        self.acceptable = acceptable
        self.pose: Array = target.pose
        self.weights = pose_weights(solver)
        self.slots = [PLATE_COORDINATES.index(name) for name in robot.controlled]
        turns = [limb.base.kind == "revolute" for limb in robot.limbs]
        self.units = np.where(turns, 1.0, robot.lengths)
        self.lower, self.upper = robot.q_lower, robot.q_upper

    def kick(self, arrival: DescentEnd, iterations: int = 40) -> DescentEnd:
        """Go on from the end of a descent that came near, on other sheets."""
        for _ in range(PERTURBATION_ROUNDS):
            if arrival.distance > PERTURBATION_RANGE:
                break
            best = arrival
            for state in self._kicked(arrival.state):
                other = self.descend(state, iterations)
                if other.solution is not None:
                    return other
                if other.distance < 0.5 * best.distance:
                    best = other
            if best is arrival:
                break
            arrival = best
        return arrival

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
                if self.acceptable(final):
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

    def _kicked(self, state: Solution) -> Iterator[Solution]:
        """Yield equilibria beside a state, on both sides along the joints' two idlest motions."""
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
        """Solve the direct model a step further; None if the judge refuses."""
        q = np.clip(state.q + step, self.lower, self.upper)
        wrench, frame = self.target.wrench, self.target.frame
        trial = self.solver.dgm(q, wrench=wrench, frame=frame, start=state)
        point = Target(q, None, wrench, frame)
        return trial if self.judge.refuse(state, trial, point) is None else None

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

    def cost(self, index: int, judge: StepAcceptance, solves: int = 40) -> int:
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
