"""Kinematics of a tree as CasADi expressions."""

from __future__ import annotations

from typing import Any, assert_never

import casadi as ca

from cards_core.codegen.expressions import constant
from cards_core.codegen.kernel import Expr
from cards_core.robot.model import WORLD_NODE, Node, Robot
from cards_core.spatial import hat


class SymbolicTree:
    """Kinematics of a tree as expressions of ``q`` and ``qd``.

    Attributes:
        q, qd: SX symbols of shape (nq, 1), (nv, 1).
        local_rotation, local_position: Node frame in its parent's frame.
        rotation, position: Node frame in the world.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.tree = robot.tree
        self.q: Expr = ca.SX.sym("q", self.tree.nq)
        self.qd: Expr = ca.SX.sym("qd", self.tree.nv)
        self.local_rotation: list[Expr] = []
        self.local_position: list[Expr] = []
        self.rotation: list[Expr] = []
        self.position: list[Expr] = []
        for node in self.tree.nodes:
            rotation, position = self._local(node)
            self.local_rotation.append(rotation)
            self.local_position.append(position)
            if node.parent == WORLD_NODE:
                self.rotation.append(rotation)
                self.position.append(position)
            else:
                parent = self.rotation[node.parent]
                self.rotation.append(parent @ rotation)
                self.position.append(self.position[node.parent] + parent @ position)

    def _local(self, node: Node) -> tuple[Expr, Expr]:
        placement = constant(node.placement.rotation)
        position = constant(node.placement.translation)
        if node.kind == "revolute":
            return placement @ _axis_rotation(node.axis, self.q[node.q]), position
        if node.kind == "prismatic":
            return placement, position + placement @ constant(node.axis) * self.q[node.q]
        if node.kind == "ball":
            return placement @ _quaternion_matrix(self.q[node.q : node.q + 4]), position
        assert_never(node.kind)

    def velocity(self, node: Node) -> Expr:
        """Return the node's own velocity coordinates."""
        return self.qd[node.v : node.v + node.nv]

    def coordinate_rate(self) -> Expr:
        """Return dq/dt for constant qd directions: quaternions by ``1/2 quat * (0, w)``."""
        rate = ca.SX.zeros(self.tree.nq)
        for node in self.tree.nodes:
            if node.kind == "ball":
                w, x, y, z = ca.vertsplit(self.q[node.q : node.q + 4])
                a, b, c = ca.vertsplit(self.velocity(node))
                rate[node.q] = -0.5 * (x * a + y * b + z * c)
                rate[node.q + 1] = 0.5 * (w * a + y * c - z * b)
                rate[node.q + 2] = 0.5 * (w * b + z * a - x * c)
                rate[node.q + 3] = 0.5 * (w * c + x * b - y * a)
            else:
                rate[node.q] = self.qd[node.v]
        return rate

    def point(self, node: int, local: Any) -> Expr:
        """Return the world position of a point given in node coordinates."""
        if node == WORLD_NODE:
            return constant(local)
        return self.position[node] + self.rotation[node] @ constant(local)

    def world_axes(self, node: int) -> Expr:
        """Return the node's world joint axes as columns: one, or three for a ball."""
        item = self.tree.nodes[node]
        if item.kind == "ball":
            return self.rotation[node]
        return self.rotation[node] @ constant(item.axis)

    def point_jacobian(self, node: int, local: Any) -> tuple[Expr, Expr]:
        """Return linear and angular world Jacobians of a point, each (3, nv)."""
        linear = ca.SX.zeros(3, self.tree.nv)
        angular = ca.SX.zeros(3, self.tree.nv)
        if node == WORLD_NODE:
            return linear, angular
        point = self.point(node, local)
        for k in self.tree.chains[node]:
            item = self.tree.nodes[k]
            columns = self.world_axes(k)
            if item.kind == "prismatic":
                linear[:, item.v] = columns
                continue
            arm = point - self.position[k]
            for j in range(item.nv):
                angular[:, item.v + j] = columns[:, j]
                linear[:, item.v + j] = ca.cross(columns[:, j], arm)
        return linear, angular


def _axis_rotation(axis: Any, angle: Expr) -> Expr:
    """Rodrigues, entry by entry: ``c E + s K + (1 - c) a a'`` without terms that vanish."""
    c, s = ca.cos(angle), ca.sin(angle)
    k = hat(axis)
    out = ca.SX.zeros(3, 3)
    for i in range(3):
        for j in range(3):
            product = float(axis[i] * axis[j])
            if i != j:
                out[i, j] = (1.0 - c) * product + s * float(k[i, j])
            elif product == 1.0:
                out[i, j] = 1.0
            else:
                out[i, j] = c + (1.0 - c) * product
    return out


def _quaternion_matrix(quaternion: Expr) -> Expr:
    w, x, y, z = (quaternion[i] for i in range(4))
    return ca.vertcat(
        ca.horzcat(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
