"""Poses, tangent derivatives and Jacobians of a tree as SymPy expressions.

A function of the coordinates is differentiated along velocity k, with dq/dt = N(q) qd,

    X_k f = sum_i N_ik df/dq_i

N is the identity but for ball joints, where the quaternion moves by ``1/2 quat * (0, omega)``
with omega in node axes. Velocities come from nothing else: ``v = X_k p``, ``hat(w) = R' dR/dt``.

Source: [Siciliano2009]_ chapters 2 and 3, [Sola2018]_ for quaternions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import ConstantTable, Expr
from cards_core.dynamics.sympy_backend.options import (
    SymbolicOptions,
    check_size,
    parallel_ancestor,
)
from cards_core.dynamics.sympy_backend.simplify import NormalForm, Simplifier
from cards_core.robot.model import WORLD_NODE, Node, Tree
from cards_core.typing import Vector3


@dataclass(frozen=True, eq=False)
class Body:
    """The links lumped to one node.

    Attributes:
        number: 1, 2, ... in the order of nodes that carry links.
        node: Index of the node.
        links: Names of the links.
        mass, com, tensor: In node axes; the tensor is about the centre of mass.
    """

    number: int
    node: int
    links: tuple[str, ...]
    mass: Expr
    com: Expr
    tensor: Expr


class SymbolicKinematics:
    """Kinematics of a tree as expressions of ``q`` and ``qd``.

    Args:
        tree: Kinematic tree.
        options: How to write it.

    Attributes:
        q, qd: Symbols, nq and nv of them.
        constants: Makes numbers and parameters.
        simplify: Simplifies; used by everything that builds on this.
        rotation, position: Node frames in the world.
        bodies: Of the nodes that carry links.

    Raises:
        CardsError: The robot is too large.
    """

    def __init__(self, tree: Tree, options: SymbolicOptions) -> None:
        check_size(tree, options.size_limit)
        self.tree = tree
        self.constants = ConstantTable(options.parameters, options.constants)
        self.q = sp.symbols(f"q_1:{tree.nq + 1}", real=True)
        self.qd = sp.symbols(f"qd_1:{tree.nv + 1}", real=True)
        self.simplify = Simplifier(
            options.simplification,
            NormalForm(self._quaternions(), self._parallel()),
            options.time_limit,
            options.progress,
        )
        self._directions = [self._direction(k) for k in range(tree.nv)]
        self._local_rotation: list[Expr] = []
        self._angular_jacobians: dict[int, Expr] = {}
        self._centre_jacobians: dict[int, Expr] = {}
        self.rotation: list[Expr] = []
        self.position: list[Expr] = []
        for number, node in enumerate(tree.nodes, start=1):
            rotation, position = self._local(number, node)
            self._local_rotation.append(rotation)
            if node.parent != WORLD_NODE:
                parent = self.rotation[node.parent]
                position = self.position[node.parent] + parent * position
                rotation = parent * rotation
            self.rotation.append(self.simplify.work(rotation, f"rotation of {node.name}"))
            self.position.append(self.simplify.work(position, f"position of {node.name}"))
        self.bodies = self._bodies()

    # Coordinates -------------------------------------------------------------------------------

    def _quaternions(self) -> list[tuple[Expr, ...]]:
        return [self.q[n.q : n.q + 4] for n in self.tree.nodes if n.kind == "ball"]

    def _parallel(self) -> list[list[Expr]]:
        """Angles of joints with parallel axes, without another axis between."""
        groups: dict[int, list[Expr]] = {}
        first: dict[int, int] = {}
        for k, node in enumerate(self.tree.nodes):
            above = parallel_ancestor(self.tree, k)
            first[k] = k if above is None else first[above]
            if node.kind == "revolute":
                groups.setdefault(first[k], []).append(self.q[node.q])
        return list(groups.values())

    def _direction(self, k: int) -> list[tuple[Expr, Expr]]:
        """Column k of N as (coordinate, rate of the coordinate per unit of velocity k)."""
        node = next(n for n in self.tree.nodes if n.v <= k < n.v + n.nv)
        if node.kind != "ball":
            return [(self.q[node.q], sp.Integer(1))]
        w, x, y, z = symbols = self.q[node.q : node.q + 4]
        rates = ((-x, w, z, -y), (-y, -z, w, x), (-z, y, -x, w))[k - node.v]
        return [(symbol, rate / 2) for symbol, rate in zip(symbols, rates, strict=True)]

    def ball_of(self, k: int) -> tuple[int, int] | None:
        """Return first velocity and axis (0, 1, 2) if velocity k belongs to a ball joint."""
        for node in self.tree.nodes:
            if node.kind == "ball" and node.v <= k < node.v + 3:
                return node.v, k - node.v
        return None

    def derivative(self, value: Expr, k: int) -> Expr:
        """Return X_k of an expression or a matrix."""
        total = sp.zeros(*value.shape) if isinstance(value, sp.MatrixBase) else sp.Integer(0)
        for coordinate, rate in self._directions[k]:
            total += rate * value.diff(coordinate)
        return total

    def rate(self, value: Expr) -> Expr:
        """Return the time derivative at qdd = 0: sum_k qd_k X_k."""
        total = sp.zeros(*value.shape) if isinstance(value, sp.MatrixBase) else sp.Integer(0)
        for k in range(self.tree.nv):
            total += self.qd[k] * self.derivative(value, k)
        return total

    # Frames ------------------------------------------------------------------------------------

    def _local(self, number: int, node: Node) -> tuple[Expr, Expr]:
        placement = self.constants.rotation(node.placement.rotation)
        position = self.constants.vector(
            node.placement.translation, f"a_{number}", f"position of {node.name} [m]"
        )
        if node.kind == "revolute":
            axis = self.constants.axis(node.axis)
            return placement * _axis_rotation(axis, self.q[node.q]), position
        if node.kind == "prismatic":
            axis = self.constants.axis(node.axis)
            return placement, position + placement * axis * self.q[node.q]
        if node.kind == "ball":
            return placement * _quaternion_matrix(*self.q[node.q : node.q + 4]), position
        assert_never(node.kind)

    def _bodies(self) -> tuple[Body, ...]:
        out: list[Body] = []
        for index, node in enumerate(self.tree.nodes):
            links = tuple(name for name, (k, _) in self.tree.link_node.items() if k == index)
            if not links:
                continue
            number, of = len(out) + 1, ", ".join(links)
            inertia, make = node.inertia, self.constants
            mass = make.scalar(inertia.mass, f"m_{number}", f"mass of {of} [kg]", positive=True)
            com = make.vector(inertia.com, f"b_{number}", f"centre of mass of {of} [m]")
            tensor = make.inertia(inertia.tensor, number, f"inertia of {of} [kg m^2]")
            out.append(Body(number, index, links, mass, com, tensor))
        return tuple(out)

    def place(self, node: int, local: Expr) -> Expr:
        """Return the world position of a point given in node coordinates."""
        return local if node == WORLD_NODE else self.position[node] + self.rotation[node] * local

    def point(self, node: int, local: Vector3, name: str, meaning: str) -> Expr:
        """Return the world position of a constant point; ``name`` is that of its parameters.

        Args:
            node: Index of the node, or `WORLD_NODE`.
            local: The point in node coordinates, shape (3,), [m].
            name: Name of the parameters without the axis.
            meaning: What they stand for, with unit.

        Returns:
            Shape (3, 1), [m].
        """
        return self.place(node, self.constants.vector(local, name, meaning))

    def linear_jacobian(self, position: Expr, name: str) -> Expr:
        """Return the Jacobian of a world position's velocity, (3, nv)."""
        columns = [self.derivative(position, k) for k in range(self.tree.nv)]
        return self.simplify.work(_joined(columns, 3), name)

    def centre_jacobian(self, body: Body) -> Expr:
        """Return the Jacobian of the world velocity of a body's centre of mass, (3, nv)."""
        if body.number not in self._centre_jacobians:
            self._centre_jacobians[body.number] = self.linear_jacobian(
                self.place(body.node, body.com), f"velocity of body {body.number}"
            )
        return self._centre_jacobians[body.number]

    def angular_jacobian(self, node: int) -> Expr:
        """Return the Jacobian of a node's angular velocity in its own axes, (3, nv).

        ``hat(w) = R' dR/dt`` with ``R = R_p R_l`` of parent and joint is, by the product rule,
        ``w = R_l' w_p + vee(R_l' dR_l/dt)``: the same with far shorter products.
        """
        if node not in self._angular_jacobians:
            local, above = self._local_rotation[node], self.tree.nodes[node].parent
            total = sp.zeros(3, self.tree.nv)
            if above != WORLD_NODE:
                total = local.T * self.angular_jacobian(above)
            for k in range(self.tree.nv):
                spin = local.T * self.derivative(local, k)
                total[:, k] += sp.Matrix([spin[2, 1], spin[0, 2], spin[1, 0]])
            name = f"angular velocity of {self.tree.nodes[node].name}"
            self._angular_jacobians[node] = self.simplify.work(total, name)
        return self._angular_jacobians[node]


def _joined(columns: list[Expr], rows: int) -> Expr:
    return sp.Matrix.hstack(*columns) if columns else sp.zeros(rows, 0)


def _axis_rotation(axis: Expr, angle: Expr) -> Expr:
    """Rodrigues: ``c E + s hat(a) + (1 - c) a a'``."""
    c, s = sp.cos(angle), sp.sin(angle)
    return c * sp.eye(3) + s * axis.hat() + (1 - c) * axis * axis.T


def _quaternion_matrix(w: Expr, x: Expr, y: Expr, z: Expr) -> Expr:
    return sp.Matrix(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
