"""Kinematics of a tree as expressions, and M, C and G by recursions in body coordinates.

Newton-Euler and composite rigid bodies, [Featherstone2008]_ chapters 5 and 6, so that the
generated code has few operations; the numeric backend uses world-frame Jacobians instead, which
makes the comparison of the two a real check.
"""

from __future__ import annotations

from typing import Any, assert_never

import casadi as ca
import numpy as np

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


def mass_matrix(model: SymbolicTree) -> Expr:
    """Return M(q) by composite rigid bodies."""
    nodes = model.tree.nodes
    mass: list[Expr] = [n.inertia.mass for n in nodes]
    moment: list[Expr] = [constant(n.inertia.mass * n.inertia.com) for n in nodes]
    tensor: list[Expr] = []
    for n in nodes:
        c = hat(n.inertia.com)
        tensor.append(constant(n.inertia.tensor - n.inertia.mass * c @ c))
    for i in reversed(range(len(nodes))):
        p = nodes[i].parent
        if p == WORLD_NODE:
            continue
        rotation, arm = model.local_rotation[i], model.local_position[i]
        h = rotation @ moment[i]
        cross = ca.skew(arm) @ ca.skew(h)
        mass[p] = mass[p] + mass[i]
        moment[p] = moment[p] + h + mass[i] * arm
        tensor[p] = (
            tensor[p]
            + rotation @ tensor[i] @ rotation.T
            - cross
            - cross.T
            - mass[i] * (ca.skew(arm) @ ca.skew(arm))
        )
    out = ca.SX.zeros(model.tree.nv, model.tree.nv)
    for i, node in enumerate(nodes):
        for j in range(node.nv):
            force, torque = _unit_response(node, j, mass[i], moment[i], tensor[i])
            k = i
            while True:
                item = nodes[k]
                values = _project(item, force, torque)
                for row in range(item.nv):
                    if k == i and row < j:
                        continue
                    out[item.v + row, node.v + j] = values[row]
                    out[node.v + j, item.v + row] = values[row]
                if item.parent == WORLD_NODE:
                    break
                force = model.local_rotation[k] @ force
                torque = model.local_rotation[k] @ torque + ca.cross(
                    model.local_position[k], force
                )
                k = item.parent
    return out


def _unit_response(
    node: Node, j: int, mass: Expr, moment: Expr, tensor: Expr
) -> tuple[Expr, Expr]:
    """Force and torque (about the node origin) of a composite body for a unit acceleration."""
    if node.kind == "prismatic":
        axis = constant(node.axis)
        return mass * axis, ca.cross(moment, axis)
    axis = constant(np.eye(3)[j] if node.kind == "ball" else node.axis)
    return ca.cross(axis, moment), tensor @ axis


def _project(node: Node, force: Expr, torque: Expr) -> list[Expr]:
    """Project a wrench on the node's own motion."""
    if node.kind == "ball":
        return list(ca.vertsplit(torque))
    return [ca.dot(constant(node.axis), force if node.kind == "prismatic" else torque)]


def node_motion(
    model: SymbolicTree, *, with_velocity: bool, with_gravity: bool
) -> list[tuple[Expr, Expr, Expr]]:
    """Return angular velocity, angular and linear acceleration of every node at qdd = 0.

    In node axes. Gravity, if wanted, is an acceleration of the world upwards.

    Args:
        model: Kinematics of the tree.
        with_velocity: Use ``qd`` of the model; else qd = 0.
        with_gravity: Accelerate the world by ``-g``.

    Returns:
        For each node [rad/s], [rad/s^2] and [m/s^2], shape (3, 1) each.
    """
    nodes = model.tree.nodes
    zero = ca.SX.zeros(3)
    base = -constant(model.robot.gravity) if with_gravity else zero
    motion: list[tuple[Expr, Expr, Expr]] = []
    for i, node in enumerate(nodes):
        root = node.parent == WORLD_NODE
        w_p, al_p, a_p = (zero, zero, base) if root else motion[node.parent]
        rotation, arm = model.local_rotation[i], model.local_position[i]
        carried = rotation.T @ w_p
        w, al = carried, rotation.T @ al_p
        a = rotation.T @ (a_p + ca.cross(al_p, arm) + ca.cross(w_p, ca.cross(w_p, arm)))
        if with_velocity:
            rate = model.velocity(node)
            if node.kind == "prismatic":
                a = a + 2.0 * ca.cross(carried, constant(node.axis) * rate)
            else:
                spin = rate if node.kind == "ball" else constant(node.axis) * rate
                w = w + spin
                al = al + ca.cross(carried, spin)
        motion.append((w, al, a))
    return motion


def inverse_dynamics(model: SymbolicTree, *, with_velocity: bool, with_gravity: bool) -> Expr:
    """Return the joint forces at qdd = 0 by recursive Newton-Euler: C, G, or their sum.

    Args:
        model: Kinematics of the tree.
        with_velocity: Include the Coriolis and centrifugal forces C.
        with_gravity: Include the gravity forces G.

    Returns:
        Shape (nv, 1), [Nm] or [N].
    """
    nodes = model.tree.nodes
    motion = node_motion(model, with_velocity=with_velocity, with_gravity=with_gravity)
    zero = ca.SX.zeros(3)
    force = [zero] * len(nodes)
    torque = [zero] * len(nodes)
    out = ca.SX.zeros(model.tree.nv)
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        body = node.inertia
        com, tensor = constant(body.com), constant(body.tensor)
        w, al, a = motion[i]
        pull = body.mass * (a + ca.cross(al, com) + ca.cross(w, ca.cross(w, com)))
        force[i] = force[i] + pull
        torque[i] = torque[i] + tensor @ al + ca.cross(w, tensor @ w) + ca.cross(com, pull)
        for row, value in enumerate(_project(node, force[i], torque[i])):
            out[node.v + row] = value
        if node.parent != WORLD_NODE:
            f = model.local_rotation[i] @ force[i]
            force[node.parent] = force[node.parent] + f
            torque[node.parent] = (
                torque[node.parent]
                + model.local_rotation[i] @ torque[i]
                + ca.cross(model.local_position[i], f)
            )
    return out
