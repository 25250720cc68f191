"""Results of a solve of a rod robot."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cards_core.rods.robots.robot import BaseKind, RodRobot, SolverSettings
from cards_core.rods.status import RodStatus
from cards_core.typing import Array

INFO = 13
"""Numbers at the end of a record: status, iterations, jacobians, residual, slenderness, time,
external wrench (6), follower; as in ``native/robot_solve.c``."""

_IDENTITY = np.eye(4)


class SolvedRobot(Protocol):
    """The part of a solver that solves and solutions use.

    Attributes:
        robot, settings, base, gravity: See `cards_core.rods.robots.solver.RodRobotSolver`.
        slots: Where the robot's coordinates are among the six of a pose, shape (k,).
        turns: Which joints turn, shape (n,).
        controlled: Which of the coordinates the actuators follow.
    """

    robot: RodRobot
    settings: SolverSettings
    base: Array
    gravity: Array
    slots: Array
    turns: Array
    controlled: Array

    def linear(self, solution: Solution) -> Linear:
        """Return stiffness and joint columns at a solution."""


class Solution:
    """A state of a rod robot and what follows from it.

    All wrenches are (force, moment) in world axes. What the solver has to compute for it (the
    stiffness and what depends on it) is computed when it is asked for, at this very state.
    The arrays are views of one record: copy them before changing them.

    Args:
        solver: Solver that made it.
        record: Numbers of the state as native code returns them.
        segments: Number of segments of each rod.
        mode: ``dgm``, ``igm`` or ``limbs``.

    Attributes:
        solver: The solver.
        record: The state as the library keeps it.
        segments: Of each rod.
        mode: ``dgm``, ``igm`` or ``limbs``.
        fewest_segments: As many of them are there for the accuracy of the steps.
    """

    def __init__(self, solver: SolvedRobot, record: Array, segments: int, mode: str) -> None:
        self.solver = solver
        self.record = record
        self.segments = segments
        self.mode = mode
        self.fewest_segments = 1

    @property
    def limbs(self) -> int:
        """Number of limbs."""
        return self.solver.robot.n_limbs

    @cached_property
    def status(self) -> RodStatus:
        """OK, NOT_CONVERGED, LIMIT (a rod without length), SINGULAR or NOT_FINITE."""
        return RodStatus(int(self.record[-INFO]))

    @property
    def converged(self) -> bool:
        """Whether this is an equilibrium."""
        return bool(self.record[-INFO] == 0.0)

    @property
    def iterations(self) -> int:
        """Newton steps that were made."""
        return int(self.record[1 - INFO])

    @property
    def jacobians(self) -> int:
        """How often the equations were linearised."""
        return int(self.record[2 - INFO])

    @property
    def residual(self) -> float:
        """Maximum scaled residual (lengths by L, forces by EI/L^2, moments by EI/L)."""
        return float(self.record[3 - INFO])

    @property
    def slenderness(self) -> float:
        """Largest ``L sqrt(|n| / EI)`` of a limb: how fast errors grow along the rod."""
        return float(self.record[4 - INFO])

    @property
    def time_s(self) -> float:
        """Time that the solve took in the library, [s]."""
        return float(self.record[5 - INFO])

    @property
    def external_wrench(self) -> Array:
        """Wrench that was applied to the plate, about its origin, (6,), in `external_frame`."""
        return self.record[6 - INFO : 12 - INFO]

    @property
    def external_frame(self) -> str:
        """``world`` (dead) or ``plate`` (follows the plate)."""
        return "plate" if self.record[12 - INFO] else "world"

    @cached_property
    def residuals(self) -> Array:
        """Maximum scaled residual of each limb and of the plate's balance, (n + 1,)."""
        n = self.limbs
        return self.record[-INFO - n - 1 : -INFO]

    @cached_property
    def plate_wrench(self) -> Array:
        """Wrench of all rods on the plate about the plate's origin, (6,)."""
        end = len(self.record) - INFO - self.limbs - 1
        return self.record[end - 6 : end]

    @cached_property
    def tip_wrenches(self) -> Array:
        """n, m at the rods' tips (what the plate exerts on them), (n, 6)."""
        n = self.limbs
        end = len(self.record) - INFO - n - 7
        return self.record[end - 6 * n : end].reshape(n, 6)

    @property
    def _stride(self) -> int:
        return 6 + 15 * (self.segments - 1)

    @cached_property
    def base_wrenches(self) -> Array:
        """n, m at the rods' starts (what the rod exerts on its base), (n, 6)."""
        n, stride = self.limbs, self._stride
        return self.record[: n * stride].reshape(n, stride)[:, :6]

    @cached_property
    def q(self) -> Array:
        """Joint coordinates, (n,), [m] or [rad]."""
        start = self.limbs * self._stride
        return self.record[start : start + self.limbs]

    @cached_property
    def pose(self) -> Array:
        """Pose of the plate in the world, (4, 4)."""
        start = self.limbs * (self._stride + 1)
        pose = _IDENTITY.copy()
        pose[:3, 3] = self.record[start : start + 3]
        pose[:3, :3] = self.record[start + 3 : start + 12].reshape(3, 3)
        return pose

    @property
    def wrench(self) -> Array:
        """The external wrench in world axes, (6,)."""
        if self.external_frame == "world":
            return self.external_wrench
        return np.concatenate(
            [
                self.pose[:3, :3] @ self.external_wrench[:3],
                self.pose[:3, :3] @ self.external_wrench[3:],
            ]
        )

    @cached_property
    def linear(self) -> Linear:
        """Stiffness and joint columns at this state, from the solver."""
        return self.solver.linear(self)

    @property
    def stiffness(self) -> Array:
        """K at fixed q, (6, 6): ``dW = -K dx`` for the wrench W of everything on the plate.

        Not symmetrised: it is symmetric in an equilibrium without external moments. Zero in the
        directions that a planar robot does not have.
        """
        return self.linear.stiffness

    @property
    def eigenvalues(self) -> Array:
        """Of the symmetric part of K, ascending, six or three; mixed units of K."""
        return self.linear.eigenvalues

    @cached_property
    def min_eigenvalue(self) -> float:
        """Smallest of `eigenvalues`; at or below zero the plate is not stable."""
        return float(self.linear.eigenvalues[0])

    @property
    def eigenvector(self) -> Array:
        """Unit vector of the smallest eigenvalue, (6,): [translation, rotation], world axes."""
        vector: Array = self.linear.eigenvectors[0]
        return vector

    @cached_property
    def jacobian(self) -> Array:
        """``dx/dq`` at constant load, (6, n): plate twist per joint rate, world axes."""
        slots = self.solver.slots
        out = np.zeros((6, self.limbs))
        stiffness = self.stiffness[np.ix_(slots, slots)]
        try:
            out[slots] = np.linalg.solve(stiffness, self.linear.joints[slots])
        except np.linalg.LinAlgError:
            out[slots] = np.nan
        return out

    @cached_property
    def condition(self) -> float:
        """Condition number of `jacobian` with lengths divided by the rods' mean length."""
        robot, slots = self.solver.robot, self.solver.slots
        size = float(robot.lengths.mean())
        scaled = self.jacobian * np.where(self.solver.turns, 1.0, size)
        scaled[:3] /= size
        scaled = scaled[slots][:, robot.actuated]
        if not scaled.size or not np.isfinite(scaled).all():
            return float("inf")
        values = np.linalg.svd(scaled, compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0.0 else float("inf")

    def __repr__(self) -> str:
        return (
            f"<Solution {self.status.name}: residual {self.residual:.1e}, "
            f"{self.iterations} iterations, q {np.array2string(self.q, precision=4)}>"
        )


@dataclass(frozen=True, eq=False)
class Linear:
    """The robot linearised about a state, limbs eliminated: ``dW = -K dx + C dq``.

    Attributes:
        stiffness: K, shape (6, 6).
        joints: C, shape (6, n): wrench on the plate per joint coordinate at fixed plate.
        eigenvalues: Of the symmetric part of K, ascending, (6,) or (3,).
        eigenvectors: One per row, (6, 6) or (3, 6).
        limb_signs: Sign of the determinant of each limb's own equations, plate held, (n,). While
            it stays what it is, the rod gains or loses no unstable shape of its own; K alone does
            not tell, it has a pole there. 0 if not known.
    """

    stiffness: Array
    joints: Array
    eigenvalues: Array
    eigenvectors: Array
    limb_signs: Array


@dataclass(frozen=True, eq=False)
class Blocks:
    """The equations linearised at a state, limb by limb, scaled as the residual.

    ::

        A_i dw_i + b_i dq_i + D_i dx = -r_i     sum(G_i dw_i + c_i dq_i) + E dx = -r_balance

    with k = 6 components of wrenches and of dx (translation, rotation vector from the left), or
    k = 3 (x, y, rz) for planar robots; with several segments A_i has more rows and columns.

    Attributes:
        A, b, D, r: Shapes (n, k, k), (n, k), (n, k, k), (n, k).
        G, c: Shapes (n, k, k), (n, k).
        E, r_balance: Shapes (k, k), (k,).
    """

    A: Array
    b: Array
    D: Array
    r: Array
    G: Array
    c: Array
    E: Array
    r_balance: Array


@dataclass(frozen=True, eq=False)
class RobotShapes:
    """The rods of a state, at equidistant sections.

    Attributes:
        table: Shape (n, points, 6): x, y, z, curvature, stress, strain.
    """

    table: Array

    @property
    def positions(self) -> Array:
        """Centre lines in the world, (n, points, 3), [m]."""
        return self.table[:, :, :3]

    @property
    def curvature(self) -> Array:
        """Curvature of bending, (n, points), [1/m]."""
        return self.table[:, :, 3]

    @property
    def stress(self) -> Array:
        """Equivalent stress (tension, bending, torsion; von Mises), (n, points), [Pa]."""
        return self.table[:, :, 4]

    @property
    def strain(self) -> Array:
        """Equivalent strain ``stress / E``, (n, points)."""
        return self.table[:, :, 5]


class ActuatorEfforts:
    r"""Efforts of the base joints of a robot, [N] or [N m]; 0 where nothing is actuated.

    By the principle of virtual work the actuator of joint i carries dV/dq_i, V being the potential
    of rods, weights and loads in equilibrium. With the wrench n, m that the rod exerts on its base
    at its start p, and the joint axis z through o:

    =========== ==========================================================================
    prismatic   -n . z
    revolute    -(m + (p - o) x n) . z
    extensible  W - n . p' - m . w, which feeds rod of strain energy W per length through
                a guide without friction; p' and w are dp/ds and the rotation rate
    =========== ==========================================================================

    The last is more than -n . t: the bent rod pushes its way out of the guide by itself (Bigoni et
    al. 2015, "Eshelby-like forces acting on elastic structures"). New rod is taken from a coil at
    the height of the guide. Positive q pushes in the direction of positive force.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: RodRobot) -> None:
        limbs = robot.limbs
        self._kinds = [limb.base.kind for limb in limbs]
        joints = np.array([limb.base.joint_pose for limb in limbs])
        attached = np.array([limb.base.attach for limb in limbs])
        self._joint_turns = joints[:, :3, :3]
        self._guides = (joints @ attached)[:, :3, :3]
        self._levers = attached[:, :2, 3]
        self._strain = np.array([[limb.rod.strain, limb.rod.curvature] for limb in limbs])
        stiffness = [[limb.rod.stiffness_se, limb.rod.stiffness_bt] for limb in limbs]
        self._give = 1.0 / np.array(stiffness)

    def __call__(self, q: Array, base_wrenches: Array) -> Array:
        """Return the efforts, shape (n,).

        Args:
            q: Joint coordinates, shape (n,).
            base_wrenches: Force and moment of the rods on their bases, about the rods' starts, in
                world axes, shape (n, 6), [N, N m].
        """
        pairs = base_wrenches.reshape(-1, 2, 3)
        at_joints = (pairs @ self._joint_turns).tolist()
        inner = pairs @ self._guides
        strained = inner * self._give
        # energy, less what the wrench does to the strained rod that comes
        feeding = -(inner * (self._strain + 0.5 * strained)).sum(axis=(1, 2))
        out = feeding.tolist()
        for i, kind in enumerate(self._kinds):
            if kind is BaseKind.EXTENSIBLE:
                continue
            (nx, ny, nz), (_, _, mz) = at_joints[i]
            out[i] = 0.0
            if kind is BaseKind.PRISMATIC:
                out[i] = -nz
            elif kind is BaseKind.REVOLUTE:
                (x, y), c, s = self._levers[i].tolist(), math.cos(q[i]), math.sin(q[i])
                out[i] = -(mz + (c * x - s * y) * ny - (s * x + c * y) * nx)
        return np.array(out)
