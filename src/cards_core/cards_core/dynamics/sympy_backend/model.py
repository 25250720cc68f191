"""All quantities of a robot as SymPy expressions, derived when they are first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sympy as sp

from cards_core.dynamics.sympy_backend.bodies import BodySpace
from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.kinematics import SymbolicKinematics
from cards_core.dynamics.sympy_backend.lagrange import Lagrange
from cards_core.dynamics.sympy_backend.muscles import MusclePaths
from cards_core.dynamics.sympy_backend.options import SymbolicOptions
from cards_core.robot.model import WORLD_NODE, Robot


@dataclass(frozen=True, eq=False)
class SymbolicFrame:
    """A frame as expressions; see `cards_core.dynamics.interface.OperationalState`."""

    position: Expr
    rotation: Expr
    jacobian: Expr
    bias: Expr


class SymbolicModel:
    """A robot's equations: ``M qdd + C + G = -L' f``, with f >= 0 pulling and ``L = dl/dq``.

    Args:
        robot: The description.
        options: How it is written.

    Attributes:
        q, qd: Symbols of the coordinates (nq) and velocities (nv).
        tree: Names and layout of both.
        muscle_names: Of the rows of l and L.

    Raises:
        DescriptionError: The joints do not form a tree.
        CardsError: The robot is too large, or a muscle wraps.
    """

    def __init__(self, robot: Robot, options: SymbolicOptions | None = None) -> None:
        self.robot = robot
        self.options = options or SymbolicOptions()
        self.tree = robot.tree
        self.kinematics = SymbolicKinematics(self.tree, self.options)
        self.lagrange = Lagrange(self.kinematics, robot.gravity)
        self.muscles = MusclePaths(self.kinematics, self.options.muscles)
        self.body = BodySpace(self.kinematics, self.lagrange, self.muscles)
        self.q = self.kinematics.q
        self.qd = self.kinematics.qd
        self.muscle_names = self.muscles.names
        self._frames: dict[str, SymbolicFrame] = {}

    @property
    def parameters(self) -> dict[Expr, Expr]:
        """Parameter symbols that were used so far and their values; empty for plain numbers."""
        return self.kinematics.constants.values

    @property
    def meaning(self) -> dict[Expr, str]:
        """What the parameters are, with units."""
        return self.kinematics.constants.meaning

    @property
    def unfinished(self) -> list[str]:
        """Quantities that the time limit left unsimplified, so far."""
        return self.kinematics.simplify.unfinished

    @property
    def mass_matrix(self) -> Expr:
        """M, (nv, nv)."""
        return self.lagrange.mass_matrix

    @property
    def coriolis(self) -> Expr:
        """C(q, qd), (nv, 1)."""
        return self.lagrange.coriolis

    @property
    def coriolis_matrix(self) -> Expr:
        """Christoffel form with ``C = matrix qd`` and ``dM/dt - 2 matrix`` skew, (nv, nv)."""
        return self.lagrange.coriolis_matrix

    @property
    def gravity(self) -> Expr:
        """G, (nv, 1): the gradient of the potential energy."""
        return self.lagrange.gravity

    @property
    def potential_energy(self) -> Expr:
        """U."""
        return self.lagrange.potential_energy

    @property
    def kinetic_energy(self) -> Expr:
        """T."""
        return self.lagrange.kinetic_energy

    @property
    def muscle_lengths(self) -> Expr:
        """l, (m, 1)."""
        return self.muscles.lengths

    @property
    def muscle_jacobian(self) -> Expr:
        """L, (m, nv)."""
        return self.muscles.jacobian

    @property
    def jacobian_gradient(self) -> list[Expr]:
        """dL/dq: for every muscle the matrix of dL_j / dq_k, row j and column k, (nv, nv)."""
        return self.muscles.gradient

    @property
    def muscle_bias(self) -> Expr:
        """dL/dt qd, (m, 1)."""
        return self.muscles.bias

    def frame(self, name: str | None = None) -> SymbolicFrame:
        """Return pose, Jacobian and bias of a frame or link (default: the operational frame).

        Raises:
            UnknownNameError: No frame or link has this name, or there is no operational frame.
        """
        name = self.robot.frame_name(name)
        if name not in self._frames:
            self._frames[name] = self._make_frame(name)
        return self._frames[name]

    def _make_frame(self, name: str) -> SymbolicFrame:
        node, pose = self.tree.locate(name)
        k = self.kinematics
        number = len(self._frames) + 1
        position = k.point(node, pose.translation, f"e_{number}", f"origin of frame {name} [m]")
        position = k.simplify.final(position, f"position of {name}")
        rotation = k.constants.rotation(pose.rotation)
        angular = sp.zeros(3, self.tree.nv)
        if node != WORLD_NODE:
            rotation = k.simplify.final(k.rotation[node] * rotation, f"rotation of {name}")
            angular = k.rotation[node] * k.angular_jacobian(node)
        linear = k.linear_jacobian(position, f"J of {name}")
        jacobian = k.simplify.final(linear.col_join(angular), f"J of {name}")
        qd = sp.Matrix(self.qd)
        bias = k.simplify.final(k.rate(jacobian) * qd, f"dJ/dt qd of {name}")
        return SymbolicFrame(position, rotation, jacobian, bias)

    @cached_property
    def link_poses(self) -> list[Expr]:
        """Link-to-world matrices, (4, 4), in the order of robot.links."""
        out = []
        for link in self.robot.links:
            frame = self.frame(link.name)
            top = frame.rotation.row_join(frame.position)
            out.append(top.col_join(sp.Matrix([[0, 0, 0, 1]])))
        return out
