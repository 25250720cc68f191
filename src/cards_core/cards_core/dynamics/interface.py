"""What every dynamics backend computes, and the one function that makes a backend.

Sign conventions: ``l`` muscle lengths, ``L = dl/dq``, tension ``f >= 0`` pulls, ``tau = -L^T f``;
equation of motion ``M(q) qdd + C(q, qd) + G(q) = -L^T f`` with the *vector* C.
"""

from __future__ import annotations

from typing import Protocol, get_args

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.dynamics.batch import BatchState
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.dynamics.numeric import NumericDynamics
from cards_core.robot.model import Robot, Tree
from cards_core.typing import Array, Backend


class DynamicsState(Protocol):
    """Result of `Dynamics.update`. The arrays are overwritten by the next update: copy to keep.

    With nv velocities and m muscles:

    Attributes:
        mass_matrix: M, shape (nv, nv), [kg m^2] for revolute rows.
        coriolis: C(q, qd) vector, shape (nv,), [Nm] or [N].
        gravity: G(q), shape (nv,), [Nm] or [N].
        muscle_lengths: l, shape (m,), [m].
        muscle_jacobian: L = dl/dq in the tangent space, shape (m, nv), [m/rad] or [1].
    """

    mass_matrix: Array
    coriolis: Array
    gravity: Array
    muscle_lengths: Array
    muscle_jacobian: Array


class OperationalState(Protocol):
    """Result of `Dynamics.operational`. Overwritten by the next call.

    Attributes:
        position: Origin of the frame in the world, shape (3,), [m].
        rotation: Frame to world, shape (3, 3).
        jacobian: J, shape (6, nv): world-frame linear velocity of the origin, then world-frame
            angular velocity, per unit qd.
        bias: dJ/dt qd, shape (6,), [m/s^2] and [rad/s^2].
    """

    position: Array
    rotation: Array
    jacobian: Array
    bias: Array


class Dynamics(Protocol):
    """Kinematics and dynamics of one robot; `numeric` and `compiled` agree to 1e-10.

    The hot calls do not check their arguments: pass float64 arrays of the right size with unit
    quaternions, or call ``tree.check_q`` first.
    """

    robot: Robot
    tree: Tree

    @property
    def path_failures(self) -> int:
        """How often the path of a wrapping muscle had to be guessed so far; not by batches."""
        ...

    @property
    def lost_muscles(self) -> npt.NDArray[np.bool_]:
        """Of which muscles the last `update` had to guess the path, shape (m,).

        Their lengths and rows of L are those of a guess; `batch` gives NaN there.
        """
        ...

    def update(self, q: Array, qd: Array) -> DynamicsState:
        """Compute M, C, G, l, L at q, shape (nq,), and qd, shape (nv,)."""
        ...

    def batch(self, q: Array, qd: Array | None = None, threads: int = 1) -> BatchState:
        """Compute M, C, G, l, L for n states at once.

        Args:
            q: Coordinates, shape (n, nq). A row that is not finite gives NaN throughout.
            qd: Velocities, shape (n, nv); None for zero.
            threads: How many share the work; the results do not depend on it.

        Raises:
            ShapeError: The shapes do not fit.
        """
        ...

    def batch_link_poses(self, q: Array, threads: int = 1) -> Array:
        """Return `link_poses` of n states q, shape (n, nq), as (n, n_links, 4, 4).

        A row that is not finite gives NaN throughout.
        """
        ...

    def jacobian_gradient(self, q: Array) -> Array:
        """Return dL/dq, shape (m, nv, nv): entry [i, j, k] is dL_ij along tangent direction k.

        For coordinates without balls it is the Hessian of l_i, symmetric in j and k. The joint
        stiffness that tensions f cause is ``sum_i f_i dL_i/dq``, [Nm/rad].
        """
        ...

    def operational(self, q: Array, qd: Array, frame: str | None = None) -> OperationalState:
        """Compute pose, Jacobian and bias of a named frame (default: the operational frame).

        Args:
            q: Coordinates, shape (nq,).
            qd: Velocities, shape (nv,).
            frame: Name of a frame or link.

        Raises:
            UnknownNameError: No frame or link has this name.
        """
        ...

    def muscle_bias(self, q: Array, qd: Array) -> Array:
        """Return dL/dt qd, shape (m,), [m/s^2]: the muscle accelerations at qdd = 0."""
        ...

    def link_poses(self, q: Array) -> Array:
        """Return homogeneous link-to-world matrices, shape (n_links, 4, 4), as in robot.links."""
        ...


def make_dynamics(robot: Robot, backend: Backend = "compiled") -> Dynamics:
    """Return a dynamics backend for a robot.

    Args:
        robot: The description.
        backend: ``compiled`` (native code, built on first use and cached) or ``numeric`` (plain
            NumPy, slow, readable: the reference).

    Raises:
        UnknownNameError: No such backend.
    """
    check_choice(backend, "backend", get_args(Backend))
    return NumericDynamics(robot) if backend == "numeric" else CompiledDynamics(robot)
