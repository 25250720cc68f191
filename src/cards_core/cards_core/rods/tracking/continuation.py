"""Continuation: a known equilibrium followed along the line to a target, each step tested.

`follow` takes steps whose length adapts: it grows while steps are accepted and shrinks where one
is refused. A tracker moves a robot and must avoid doubtful states; this only searches for a state,
so its steps may be centimetres long. Work is counted in Newton iterations of the solver, never in
seconds: the same search then ends at the same place on every machine, whatever its load.

`StepAcceptance` tests whether an equilibrium may follow the last one on the same branch. A trial
is refused if it is not converged or not finite, needs joints outside their limits, is at or beyond
collapse, or is not the neighbour of the last state. For the last test the change is predicted with
the Jacobians of the last state,

    |dx| <= |J| |dq| + |K^-1| |dF|            (joints given)
    |dq| <= |pinv(J)| (|dx| + |K^-1| |dF|)    (pose given)

and a trial that moved ten times as far is on another branch, where half a step does not cause half
the change.

Collapse: the plate's stiffness at fixed joints, K (6 x 6), is positive definite where a small push
on the plate causes a small motion. Its smallest eigenvalue falls to zero at a fold, as the square
root of the distance that is left::

    lambda^2 = a (f_fold - f)   =>   f_fold = f + lambda^2 / slope,   slope = -d(lambda^2)/df

so two accepted steps tell where the fold is (`FoldPrediction`), long before the smallest
eigenvalue is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cards_core.checks import readable
from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.commands import limit_reach_finding
from cards_core.rods.tracking.targets import (
    Target,
    interpolate,
    pose_difference,
    step_sizes,
    target_distance,
)
from cards_core.typing import Array

WARN_FRACTION = 0.05
"""Smallest eigenvalue relative to the start below which NEAR_LIMIT is reported."""

STOP_FRACTION = 0.01
"""Smallest eigenvalue relative to the start below which motion stops."""


@dataclass
class FoldPrediction:
    """Follows the smallest eigenvalue along a command and predicts where it vanishes.

    Attributes:
        fraction: Of the command at the last accepted state, 0..1.
        eigenvalue: Smallest eigenvalue there.
        slope: Fall of the squared eigenvalue per fraction; <= 0 while it rises.
    """

    fraction: float
    eigenvalue: float
    slope: float = 0.0

    def accept(self, fraction: float, eigenvalue: float) -> None:
        """Record an accepted state."""
        way = fraction - self.fraction
        if way > 0.0:
            squares = self.eigenvalue * abs(self.eigenvalue) - eigenvalue * abs(eigenvalue)
            self.slope = squares / way
        self.fraction, self.eigenvalue = fraction, eigenvalue

    @property
    def way_left(self) -> float:
        """Fraction of the command between the last state and the fold; inf if none is ahead."""
        if self.slope <= 0.0:
            return float("inf")
        return self.eigenvalue * abs(self.eigenvalue) / self.slope


def plate_lever(robot: RodRobot) -> float:
    """Return the mean distance of the plate's joints from its origin, at least 0.02 m."""
    levers = [float(np.linalg.norm(limb.tip.joint_pose[:3, 3])) for limb in robot.limbs]
    return max(0.02, float(np.mean(levers)))


def describe_direction(eigenvector: Array, lever: float) -> str:
    """Describe how the plate would move along an eigenvector.

    Args:
        eigenvector: Shape (6,), [translation m, rotation rad] in world axes; its sign has no
            meaning.
        lever: Weight of a rotation, [m], see `plate_lever`.
    """
    weights = [float(x) for x in eigenvector[:3]] + [lever * float(x) for x in eigenvector[3:]]
    largest = max(weights, key=abs)
    if not abs(largest) > 0.0:
        return "in no direction"
    parts = []
    for index in sorted(range(6), key=lambda i: -abs(weights[i])):
        if abs(weights[index]) < 0.35 * abs(largest):
            break
        sign = "+" if weights[index] * largest > 0.0 else "-"
        verb = "slides along" if index < 3 else "turns about"
        parts.append(f"{verb} {sign}{'xyz'[index % 3]}")
    return " and ".join(parts)


def describe_margin(eigenvalue: float, reference: float) -> str:
    """Return an eigenvalue as text, with its ratio to the start value."""
    if not reference > 0.0:
        return f"{eigenvalue:.3g}"
    share = readable(100.0 * eigenvalue / reference, 2)
    return f"{eigenvalue:.3g}, {share} % of its value at the start"


JUMP_FACTOR = 10.0
"""A change greater than the predicted one by this factor is a jump."""

SLACK_LENGTH, SLACK_ANGLE = 2e-4, np.radians(0.05)
"""Changes that are never a jump, [m] and [rad]: what curvature and tolerances explain."""


@dataclass(frozen=True)
class Bounds:
    """When a step is refused.

    Attributes:
        warn_fraction: Smallest eigenvalue, relative to the start, that raises NEAR_LIMIT.
        stop_fraction: The same that stops the motion.
        jump_factor: Change, relative to the prediction, that is a change of branch.
        enforce_limits: Whether a pose that needs joints outside their limits is refused.
    """

    warn_fraction: float = WARN_FRACTION
    stop_fraction: float = STOP_FRACTION
    jump_factor: float = JUMP_FACTOR
    enforce_limits: bool = True


class StepAcceptance:
    """Accepts or refuses a trial as successor of the last accepted state.

    Args:
        robot: The robot.
        bounds: When a step is refused.
        reference: Smallest eigenvalue of K at the start.
    """

    def __init__(self, robot: RodRobot, bounds: Bounds, reference: float) -> None:
        self.robot = robot
        self.bounds = bounds
        self.reference = reference
        self._sizes = step_sizes(robot)
        self._lower, self._upper = robot.q_lower - 1e-9, robot.q_upper + 1e-9
        ends = (self._lower, self._upper)
        if not bounds.enforce_limits:
            ends = (np.full(robot.n_limbs, -np.inf), np.full(robot.n_limbs, np.inf))
        self._limits = [one.tolist() for one in (*ends, self._sizes)]
        bend = [float(np.mean(limb.rod.stiffness_bt[:2])) for limb in robot.limbs]
        self._plate_lever = plate_lever(robot)
        self._moment_scale = robot.lengths / np.array(bend)
        self._greatest_scale = float(self._moment_scale.max())
        self._lever = max(
            float(np.linalg.norm(limb.tip.joint_pose[:3, 3])) for limb in robot.limbs
        )

    @property
    def _floor(self) -> float:
        """Smallest eigenvalue below which motion stops."""
        return self.bounds.stop_fraction * max(self.reference, 0.0)

    def refuse(
        self, last: Solution, trial: Solution, target: Target, load: Array | None = None
    ) -> Finding | None:
        """Return why a trial may not follow the last state, or None if it may.

        Args:
            last: The last accepted state.
            trial: Result of the solver for the next step.
            target: Its target.
            load: Change of the wrench on the plate in this step, shape (6,).
        """
        if trial.status is not RodStatus.OK:
            return Finding(RodStatus.NOT_CONVERGED, "no equilibrium found near the last state")
        if self._clearly_good(last, trial):
            return None
        if not (np.isfinite(trial.q).all() and np.isfinite(trial.pose).all()):
            return Finding(RodStatus.NOT_CONVERGED, "the solver returned numbers not finite")
        if self.bounds.enforce_limits and not target.by_joints:
            outside = (trial.q < self._lower) | (trial.q > self._upper)
            worse = np.abs(trial.q - last.q) > 0.0
            if (outside & worse).any() and not self._returning(last, trial):
                finding = limit_reach_finding(self.robot, trial.q, "the next step")
                if finding is not None:
                    return finding
        eigenvalue = trial.min_eigenvalue
        if not eigenvalue > self._floor and not eigenvalue > last.min_eigenvalue:
            status = RodStatus.NEAR_LIMIT if eigenvalue > 0.0 else RodStatus.UNSTABLE
            return Finding(status, self.describe(trial))
        return self._collapsed(last, trial) or self._jump(last, trial, load)

    def _collapsed(self, last: Solution, trial: Solution) -> Finding | None:
        """Return UNSTABLE if a rod has become unstable by itself, with the plate held.

        K has a pole there, which a step can jump over; the determinant of the limb's own
        equations changes its sign.
        """
        changed = np.flatnonzero(trial.linear.limb_signs != last.linear.limb_signs)
        if not changed.size:
            return None
        limb = int(changed[0])
        return Finding(
            RodStatus.UNSTABLE,
            f"unstable: limb '{self.robot.limbs[limb].name}' collapses between its base and the"
            " plate, even if that is held",
            limb,
        )

    def warn(self, solution: Solution) -> Finding | None:
        """Return NEAR_LIMIT or UNSTABLE for an accepted state, or None."""
        eigenvalue = solution.min_eigenvalue
        if not eigenvalue > 0.0:
            return Finding(RodStatus.UNSTABLE, self.describe(solution))
        if self.reference > 0.0 and eigenvalue < self.bounds.warn_fraction * self.reference:
            return Finding(RodStatus.NEAR_LIMIT, self.describe(solution))
        return None

    def describe(self, solution: Solution) -> str:
        """Describe how stable a state is and how the plate would collapse."""
        margin = describe_margin(solution.min_eigenvalue, self.reference)
        way = describe_direction(solution.eigenvector, self._plate_lever)
        if solution.min_eigenvalue > 0.0:
            return f"close to collapse: smallest stiffness {margin}; the plate would go: {way}"
        return f"unstable: smallest stiffness {margin}; the plate goes: {way}"

    def _returning(self, last: Solution, trial: Solution) -> bool:
        """Tell whether a state outside the limits comes nearer to them."""

        def excess(q: Array) -> float:
            return float(np.maximum(self._lower - q, q - self._upper).max())

        return excess(trial.q) < excess(last.q)

    def _jump(self, last: Solution, trial: Solution, load: Array | None) -> Finding | None:
        """Return BRANCH_CHANGED if the trial is no neighbour of the last state."""
        dq = trial.q - last.q
        dx = pose_difference(last.pose, trial.pose)
        turn = float(np.linalg.norm(dx[3:]))
        ends = float(np.linalg.norm(dx[:3])) + self._lever * turn + float(np.abs(dq).max())
        dm = np.linalg.norm(trial.base_wrenches[:, 3:] - last.base_wrenches[:, 3:], axis=1)
        bend = dm * self._moment_scale
        allowed = self.bounds.jump_factor * (6.0 * ends / self.robot.lengths + 4.0 * turn) + 0.3
        worst = int(np.argmax(bend - allowed))
        if bend[worst] > allowed[worst]:
            return Finding(
                RodStatus.BRANCH_CHANGED,
                f"limb '{self.robot.limbs[worst].name}' jumped to another shape: the moment at"
                f" its base changed by {bend[worst]:.2g} EI/L in one small step",
                worst,
            )
        return self._far(last, dq, dx, load)

    def _clearly_good(self, last: Solution, trial: Solution) -> bool:
        """Tell by a few cheap tests that nothing is wrong: most steps need no more.

        NaN fails all of them.
        """
        joints = 0.0  # maximum change as a part of a step, so are `way` and `turn`
        for q, before, low, high, size in zip(
            trial.q.tolist(), last.q.tolist(), *self._limits, strict=True
        ):
            if not low <= q <= high:
                return False
            joints = max(joints, abs(q - before) / size)
        if not trial.min_eigenvalue > self._floor:
            return False
        if trial.linear.limb_signs.tolist() != last.linear.limb_signs.tolist():
            return False
        bend = np.abs(trial.base_wrenches[:, 3:] - last.base_wrenches[:, 3:]).max()
        if not bend * self._greatest_scale < 0.15:  # less than 0.3 / sqrt(3) in each component
            return False
        change = np.abs(trial.pose - last.pose)
        way, turn = float(change[:3, 3].max()) / 5e-3, float(change[:3, :3].max()) / 0.035
        plate = max(way, turn)
        if not way + turn < math.inf:
            return False
        small = plate < 0.05 and joints < 0.05
        return small or (plate < 1.5 * joints and joints < 1.5 * plate)

    def _far(self, last: Solution, dq: Array, dx: Array, load: Array | None) -> Finding | None:
        """Compare the change with its prediction by the kinematic Jacobian, where it is large."""
        size_q = np.abs(dq) / self._sizes
        size_x = np.array([np.linalg.norm(dx[:3]) / 5e-3, np.linalg.norm(dx[3:]) / 0.035])
        larger, smaller = float(size_x.max()), float(size_q.max())
        if larger < smaller:
            larger, smaller = smaller, larger
        if larger < 3.0 * smaller or larger < 0.1:
            return None
        jacobian = np.asarray(last.jacobian)
        if not np.isfinite(jacobian).all():
            return None
        give = np.zeros(6)  # of the plate to the change of load
        if load is not None and load.any():
            give = np.abs(np.linalg.pinv(last.stiffness)) @ np.abs(load)
        if float(size_x.max()) > float(size_q.max()):  # the plate moved more than the joints
            predicted = np.abs(jacobian) @ np.abs(dq) + give
            slack = np.r_[np.full(3, SLACK_LENGTH), np.full(3, SLACK_ANGLE)]
            excess = np.abs(dx) - (self.bounds.jump_factor * predicted + slack)
            if (excess > 0.0).any():
                return Finding(
                    RodStatus.BRANCH_CHANGED,
                    f"the plate jumped by {1e3 * np.linalg.norm(dx[:3]):.1f} mm and"
                    f" {np.degrees(np.linalg.norm(dx[3:])):.1f} deg to another equilibrium",
                )
            return None
        inverse = np.linalg.pinv(jacobian)
        predicted = np.abs(inverse) @ (np.abs(dx) + give)
        slack_q = self._sizes / 25.0
        excess = np.abs(dq) - (self.bounds.jump_factor * predicted + slack_q)
        worst = int(np.argmax(excess))
        if excess[worst] > 0.0:
            return Finding(
                RodStatus.BRANCH_CHANGED,
                f"limb '{self.robot.limbs[worst].name}': its joint jumped by {dq[worst]:.3g} for"
                " a small step of the plate: another equilibrium",
                worst,
            )
        return None


Progress = Callable[[int, int], None]
"""Called with the iterations made and those allowed, now and then."""

REPORTS = 200
"""Number of progress reports: drawing one takes as long as an iteration."""


class WorkCounter:
    """Counts the Newton iterations of one search and limits them.

    Args:
        solver: Does the work; nobody else may use it meanwhile.
        limit: Iterations after which nothing new is begun.
        progress: Called some `REPORTS` times on the way to the limit.
    """

    def __init__(
        self, solver: RodRobotSolver, limit: int, progress: Progress | None = None
    ) -> None:
        self._solver, self.limit, self._progress = solver, limit, progress
        self._begin = solver.iterations
        self._reported = 0

    @property
    def spent(self) -> int:
        """Iterations so far."""
        return self._solver.iterations - self._begin

    @property
    def left(self) -> bool:
        """Whether something new may be begun."""
        spent = self.spent
        left = spent < self.limit
        if self._progress is not None and (
            not left or spent - self._reported > self.limit / REPORTS
        ):
            self._reported = spent
            self._progress(min(spent, self.limit), self.limit)
        return left

    def charge(self, iterations: int) -> None:
        """Count iterations of another solver, made for this search or an earlier one."""
        self._begin -= iterations


FIRST_STEP = 4.0
"""First step, in steps of a tracker."""

LARGEST_STEP = 16.0
"""Maximum step, in steps of a tracker."""


@dataclass(frozen=True, eq=False)
class ContinuationResult:
    """Where a continuation ended.

    Attributes:
        solution: The last equilibrium.
        fraction: Part of the line that was covered; 1 if the end was reached.
        solves: Solves made.
        refusal: Why it ended before, in words.
    """

    solution: Solution
    fraction: float
    solves: int
    refusal: str = ""

    @property
    def arrived(self) -> bool:
        """Whether the end was reached."""
        return self.fraction >= 1.0


def follow(
    solver: RodRobotSolver,
    start: Solution,
    origin: Target,
    target: Target,
    acceptance: StepAcceptance,
    *,
    solves: int = 200,
    work: WorkCounter | None = None,
    visit: Callable[[Solution], object] | None = None,
) -> ContinuationResult:
    """Follow an equilibrium from one target to another.

    Args:
        solver: Solver of the robot.
        start: Equilibrium of ``origin``.
        origin: Where to begin; of the same kind (joints or pose) as ``target``.
        target: Where to go.
        acceptance: Refuses a step that is no neighbour of the last state, or collapses.
        solves: Maximum number of solves.
        work: No solve is begun once its limit is reached.
        visit: Called with every accepted state.
    """
    unit = 1.0 / max(target_distance(solver.robot, origin, target).steps, 1.0)
    step, smallest, largest = FIRST_STEP * unit, unit / 64.0, LARGEST_STEP * unit
    solution, fraction, count, refusal = start, 0.0, 0, ""
    last = origin
    while fraction < 1.0 and count < solves and (work is None or work.left):
        goal = min(1.0, fraction + step)
        point = interpolate(origin, target, goal)
        trial = solve_target(solver, point, solution)
        count += 1
        finding = acceptance.refuse(solution, trial, point, np.asarray(point.wrench) - last.wrench)
        if finding is None:
            solution, fraction, last = trial, goal, point
            if visit is not None:
                visit(trial)
            step = min(largest, 1.7 * step)
            continue
        refusal = finding.message
        step *= 0.4
        if step < smallest:
            break
    return ContinuationResult(solution, fraction, count, "" if fraction >= 1.0 else refusal)


def solve_target(
    solver: RodRobotSolver, target: Target, start: InitialGuess | Solution
) -> Solution:
    """Solve for a target, starting from a neighbour.

    Args:
        solver: Solver of the robot.
        target: Joint coordinates (direct model) or a plate pose (inverse model), with its wrench.
        start: The neighbour.

    Returns:
        The solution, which may not have converged.
    """
    if target.q is not None:
        return solver.dgm(target.q, wrench=target.wrench, frame=target.frame, start=start)
    assert target.pose is not None
    return solver.igm(target.pose, wrench=target.wrench, frame=target.frame, start=start)
