"""Levenberg-Marquardt on the whole robot, for starts that are too far off for Newton's method.

With the blocks of the linearised equations (limb i: wrench w_i at its start, coordinate q_i, plate
step x), every unknown divided by its natural size,

    [A_i  b_i  D_i] [dw_i dq_i dx]' = -r_i          sum(G_i dw_i + c_i dq_i) + E dx = -r_plate
    (J' J + mu I) dz = -J' r

the damping mu falls where the linear model predicts well, and grows ever faster where it does not
[More1978]_. A search solves this a few dozen times, so the equations are solved
dense; the blocks come from the compiled code.

Where the smallest singular value of the Jacobian is zero, its right singular vector is a motion
that no equation resists (`weakest_mode`): a plate that turns freely, or joints without effect. For
joints given, it is a motion of plate and rods at rest; for a pose given, a motion of the joints
that does not move the plate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.initial_guess import InitialGuess
from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind, RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.targets import moved
from cards_core.typing import Array

LARGEST_STEP = 1.0
"""Maximum scaled step of an unknown: lengths of a rod, radians, moments EI/L."""


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of `levenberg_marquardt`.

    Attributes:
        guess: Best state found.
        residual: Its norm, scaled rows.
        iterations: Linearisations made.
        singular_value: Smallest singular value of the scaled Jacobian at the first state: 0 says
            that the start is a singular point.
    """

    guess: InitialGuess
    residual: float
    iterations: int
    singular_value: float


class Equations:
    """The equations of a robot as one vector function of one vector, at a given pose or q.

    Args:
        solver: Gives the linearised blocks.
        by_joints: True if q is given and the pose unknown.
        wrench: On the plate, shape (6,).
        frame: Of the wrench.
    """

    def __init__(
        self,
        solver: RodRobotSolver,
        by_joints: bool,
        wrench: Array,
        frame: str,
    ) -> None:
        self.solver, self.robot = solver, solver.robot
        self.by_joints, self.wrench, self.frame = by_joints, wrench, frame
        robot = self.robot
        self.slots = [PLATE_COORDINATES.index(name) for name in robot.coordinates]
        self.w_unit = _wrench_units(robot)[:, self.slots]
        lengths = robot.lengths
        turns = [limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs]
        self.q_unit = np.where(turns, 1.0, lengths)
        self.q_free = np.flatnonzero(robot.actuated) if not by_joints else np.array([], dtype=int)
        size = float(lengths.mean())
        self.x_unit = np.array([size if slot < 3 else 1.0 for slot in self.slots])
        free = [by_joints or name not in robot.controlled for name in robot.coordinates]
        self.x_free = np.flatnonzero(free)

    def linearise(self, state: InitialGuess | Solution) -> tuple[Array, Array]:
        """Return the residual and the Jacobian by scaled unknowns [w, q, x]."""
        blocks = self.solver.linearise(state, wrench=self.wrench, frame=self.frame)
        n, k = self.robot.n_limbs, len(self.slots)
        rows = n * k
        nq, nx = len(self.q_free), len(self.x_free)
        J = np.zeros((rows + k, rows + nq + nx))
        r = np.concatenate([np.ravel(blocks.r), blocks.r_balance])
        for i in range(n):
            block = slice(i * k, (i + 1) * k)
            J[block, block] = blocks.A[i] * self.w_unit[i]
            J[rows:, block] = blocks.G[i] * self.w_unit[i]
            if nx:
                J[block, rows + nq :] = (blocks.D[i] * self.x_unit)[:, self.x_free]
        for column, i in enumerate(self.q_free):
            J[i * k : (i + 1) * k, rows + column] = blocks.b[i] * self.q_unit[i]
            J[rows:, rows + column] = blocks.c[i] * self.q_unit[i]
        if nx:
            J[rows:, rows + nq :] = (blocks.E * self.x_unit)[:, self.x_free]
        return r, J

    def moved(self, state: InitialGuess, step: Array) -> InitialGuess:
        """Return a state after a scaled step."""
        n, k = self.robot.n_limbs, len(self.slots)
        rows = n * k
        w = state.base_wrenches.copy()
        w[:, self.slots] += step[:rows].reshape(n, k) * self.w_unit
        q = np.array(state.q)
        nq = len(self.q_free)
        q[self.q_free] += step[rows : rows + nq] * self.q_unit[self.q_free]
        pose = state.pose
        if self.x_free.size:
            dx = np.zeros(6)
            chosen = np.array(self.slots)[self.x_free]
            dx[chosen] = step[rows + nq :] * self.x_unit[self.x_free]
            pose = moved(state.pose, dx)
        return InitialGuess(q, pose, w, state.buckled)


def levenberg_marquardt(
    equations: Equations, start: InitialGuess, *, iterations: int = 60, tolerance: float = 1e-4
) -> Descent:
    """Descend from a start until the residual is small enough for Newton's method.

    Args:
        equations: What to solve.
        start: First state.
        iterations: Maximum number of linearisations.
        tolerance: Norm of the scaled residual at which to stop.
    """
    state, smallest = start, _smallest_lengths(equations.robot)
    r, J = equations.linearise(state)
    if not (np.isfinite(r).all() and np.isfinite(J).all()):
        return Descent(state, float("inf"), 1, 0.0)
    singular = float(np.linalg.svd(J, compute_uv=False)[-1])
    cost, growth = float(r @ r), 2.0
    normal, gradient = J.T @ J, J.T @ r
    mu = 1e-3 * float(np.diag(normal).max())
    count = 1
    while count < iterations and cost > tolerance**2:
        count += 1
        step = np.asarray(-np.linalg.solve(normal + mu * np.eye(len(gradient)), gradient))
        largest = float(np.abs(step).max())
        if not np.isfinite(largest):
            mu, growth = mu * growth, 2.0 * growth
            continue
        if largest > LARGEST_STEP:
            step *= LARGEST_STEP / largest
        if largest < 1e-12:
            break
        trial = equations.moved(state, step)
        predicted = -float(step @ (2.0 * gradient + normal @ step))
        if (trial.q < smallest).any():
            gain = -1.0
        else:
            r_trial, J_trial = equations.linearise(trial)
            finite = np.isfinite(r_trial).all() and np.isfinite(J_trial).all()
            with np.errstate(over="ignore"):  # that is infinite, too
                trial_cost = float(r_trial @ r_trial) if finite else float("inf")
            gain = (cost - trial_cost) / max(predicted, 1e-300)
        if gain > 0.0:
            state, r, J, cost = trial, r_trial, J_trial, trial_cost
            normal, gradient = J.T @ J, J.T @ r
            mu = max(mu * max(1.0 / 3.0, 1.0 - (2.0 * gain - 1.0) ** 3), 1e-14)
            growth = 2.0
        else:
            mu, growth = mu * growth, 2.0 * growth
            if mu > 1e12:
                break
    return Descent(state, float(np.sqrt(cost)), count, singular)


def _wrench_units(robot: RodRobot) -> Array:
    """Natural size of the wrench at each rod's start: EI / L^2 and EI / L, shape (n, 6)."""
    rows = []
    for limb in robot.limbs:
        moment = float(np.mean(limb.rod.stiffness_bt[:2])) / limb.length
        rows.append([moment / limb.length] * 3 + [moment] * 3)
    return np.array(rows)


def _smallest_lengths(robot: RodRobot) -> Array:
    """Coordinates below which a state is meaningless: lengths must stay positive."""
    return np.array(
        [
            0.05 * limb.length if limb.base.kind is BaseKind.EXTENSIBLE else -np.inf
            for limb in robot.limbs
        ]
    )


SINGULAR = 1e-8
"""Smallest singular value of the scaled Jacobian that counts as zero."""


def weakest_mode(equations: Equations, state: InitialGuess | Solution) -> tuple[float, str]:
    """Return the smallest singular value of the scaled Jacobian, and its motion in words.

    Returns:
        NaN and an empty text if the equations are not finite there.
    """
    _, J = equations.linearise(state)
    if not np.isfinite(J).all():
        return float("nan"), ""
    _, values, vectors = np.linalg.svd(J)
    return float(values[-1]), describe_mode(equations, vectors[-1])


def describe_mode(equations: Equations, vector: Array) -> str:
    """Describe a motion by the joints, plate coordinates or rods that take part.

    Args:
        equations: The vector has their scaled unknowns.
        vector: Shape (number of unknowns,).
    """
    robot, k = equations.robot, len(equations.slots)
    rows, nq = robot.n_limbs * k, len(equations.q_free)
    joints, plate = vector[rows : rows + nq], vector[rows + nq :]
    motions = np.concatenate([joints, plate])
    names = [f"joint '{robot.joint_names[i]}'" for i in equations.q_free]
    names += [_plate_name(robot.coordinates[i]) for i in equations.x_free]
    forces = np.linalg.norm(vector[:rows].reshape(-1, k), axis=1)
    largest = float(np.abs(motions).max(initial=0.0))
    if largest < 1e-3 * float(forces.max(initial=0.0)):
        taking = [robot.limbs[i].name for i in np.flatnonzero(forces > 0.3 * forces.max())]
        return f"the loads of {', '.join(taking)} (no motion: a stress that nothing determines)"
    order = np.argsort(-np.abs(motions))
    *most, last = [names[i] for i in order if abs(motions[i]) > 0.3 * largest]
    return f"{', '.join(most)} and {last} together" if most else last


def _plate_name(coordinate: str) -> str:
    if coordinate.startswith("r"):
        return f"the plate turning about {coordinate[1]}"
    return f"the plate sliding along {coordinate}"
