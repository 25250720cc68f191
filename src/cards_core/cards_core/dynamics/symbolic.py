"""CasADi expressions of M, C, G, l, L, Jacobians and poses of a tree.

Body-coordinate recursions (Newton-Euler and composite rigid bodies, [Featherstone2008]_ chapters
5 and 6), so that the generated code has few operations; the numeric backend uses world-frame
Jacobians instead, which makes the comparison of the two a real check.

Muscle rows use Plücker coordinates of the joint axes: for a segment with unit vector u through a
point P and a revolute joint with world axis a through o, ``L = +-(a . (P x u) + (o x a) . u)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from cards_core.description.model import Robot
from cards_core.kinematics.paths import tree_layout
from cards_core.kinematics.tree import WORLD_NODE, Node, Tree
from cards_core.spatial import hat

Expr = Any
"""A CasADi SX expression (casadi has no type information)."""

LENGTH_FLOOR = 1e-12
"""Segments shorter than this [m] have no direction: they add neither force nor Jacobian."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """One function to generate: named inputs and outputs, each with its NumPy shape.

    Attributes:
        inputs, outputs: (name, shape, expression); matrices are given transposed, because CasADi
            stores columns first and NumPy rows first.
    """

    name: str
    inputs: tuple[tuple[str, tuple[int, ...], Expr], ...]
    outputs: tuple[tuple[str, tuple[int, ...], Expr], ...]


class SymbolicTree:
    """Kinematics of a tree as expressions of ``q`` and ``qd``.

    Attributes:
        q, qd: SX symbols of shape (nq, 1), (nv, 1).
        local_rotation, local_position: Node frame in its parent's frame.
        rotation, position: Node frame in the world.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.tree = Tree(robot)
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
        return placement @ _quaternion_matrix(self.q[node.q : node.q + 4]), position

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
        cross = _hat(arm) @ _hat(h)
        mass[p] = mass[p] + mass[i]
        moment[p] = moment[p] + h + mass[i] * arm
        tensor[p] = (
            tensor[p]
            + rotation @ tensor[i] @ rotation.T
            - cross
            - cross.T
            - mass[i] * (_hat(arm) @ _hat(arm))
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


def inverse_dynamics(model: SymbolicTree, *, with_velocity: bool, with_gravity: bool) -> Expr:
    """Return the joint forces at qdd = 0 by recursive Newton-Euler: C, G, or their sum."""
    nodes = model.tree.nodes
    zero = ca.SX.zeros(3)
    base = -constant(model.robot.gravity) if with_gravity else zero
    omega: list[Expr] = []
    alpha: list[Expr] = []
    accel: list[Expr] = []
    for i, node in enumerate(nodes):
        root = node.parent == WORLD_NODE
        w_p = zero if root else omega[node.parent]
        al_p = zero if root else alpha[node.parent]
        a_p = base if root else accel[node.parent]
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
        omega.append(w)
        alpha.append(al)
        accel.append(a)
    force = [zero] * len(nodes)
    torque = [zero] * len(nodes)
    out = ca.SX.zeros(model.tree.nv)
    for i in reversed(range(len(nodes))):
        node = nodes[i]
        body = node.inertia
        com, tensor = constant(body.com), constant(body.tensor)
        w, al = omega[i], alpha[i]
        pull = body.mass * (accel[i] + ca.cross(al, com) + ca.cross(w, ca.cross(w, com)))
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


def muscle_kinematics(model: SymbolicTree, rows: Expr | None) -> tuple[Expr, Expr]:
    """Return muscle lengths (m, 1) and the muscle Jacobian L (m, nv).

    Args:
        model: Kinematics.
        rows: Contacts without a closed form (see `cards_core.muscles.symbolic`), or None.
    """
    # imported here because that module builds on this one
    from cards_core.muscles.symbolic import muscle_lengths, path_expressions

    tree = model.tree
    layout = tree_layout(tree)
    world = len(tree.nodes)
    identity = ca.SX(ca.DM.eye(3)), ca.SX.zeros(3)
    paths = path_expressions(
        layout, lambda k: identity if k == world else (model.rotation[k], model.position[k]), rows
    )
    jacobian = ca.SX.zeros(len(layout.bounds) - 1, tree.nv)
    axes = [model.world_axes(k) for k in range(len(tree.nodes))]
    moments: list[Expr] = []
    for k in range(len(tree.nodes)):
        columns = [ca.cross(model.position[k], axes[k][:, j]) for j in range(axes[k].shape[1])]
        moments.append(ca.horzcat(*columns))
    pieces: list[Expr] = []
    for row, first in zip(layout.piece_muscle, layout.start, strict=True):
        node_a, node_b = layout.point_frame[first : first + 2]
        if node_a == node_b:
            # in node coordinates it is a number where both are via points
            pieces.append(direction(paths.local[first + 1] - paths.local[first])[0])
            continue
        a, b = paths.points[first], paths.points[first + 1]
        length, u = direction(b - a)
        pieces.append(length)
        line = ca.cross(a, u)
        chain_a = set(tree.chains[node_a]) if node_a != world else set()
        chain_b = set(tree.chains[node_b]) if node_b != world else set()
        for k in sorted(chain_a ^ chain_b):
            sign = 1.0 if k in chain_b else -1.0
            joint = tree.nodes[k]
            for j in range(joint.nv):
                axis = axes[k][:, j]
                if joint.kind == "prismatic":
                    value = ca.dot(axis, u)
                else:
                    value = ca.dot(axis, line) + ca.dot(moments[k][:, j], u)
                jacobian[row, joint.v + j] += sign * value
    lengths = muscle_lengths(layout, paths, pieces)
    return ca.vertcat(*lengths) if lengths else ca.SX.zeros(0), jacobian


def robot_kernels(robot: Robot) -> list[Kernel]:
    """Return the kernels of the compiled backend: update, muscle_bias, link_poses, frames."""
    from cards_core.muscles.symbolic import geodesic_input

    model = SymbolicTree(robot)
    nv, nq, m = model.tree.nv, model.tree.nq, len(robot.muscles)
    q, qd = model.q, model.qd
    state: tuple[Any, ...] = (("q", (nq,), q), ("qd", (nv,), qd))
    layout = tree_layout(model.tree)
    rows = geodesic_input(layout)
    if rows is not None:
        state += (("contacts", (len(layout.geodesics), 8), rows),)
    lengths, jacobian = muscle_kinematics(model, rows)
    rates = jacobian @ qd
    kernels = [
        Kernel(
            "update",
            state,
            (
                ("mass_matrix", (nv, nv), mass_matrix(model)),
                (
                    "coriolis",
                    (nv,),
                    inverse_dynamics(model, with_velocity=True, with_gravity=False),
                ),
                (
                    "gravity",
                    (nv,),
                    inverse_dynamics(model, with_velocity=False, with_gravity=True),
                ),
                ("muscle_lengths", (m,), lengths),
                ("muscle_jacobian", (m, nv), jacobian.T),
            ),
        ),
        Kernel(
            "muscle_bias",
            state,
            (("muscle_bias", (m,), ca.jtimes(rates, q, model.coordinate_rate())),),
        ),
        Kernel("link_poses", (("q", (nq,), q),), (_pose_output(model),)),
    ]
    return kernels + [frame_kernel(robot, frame.name, model) for frame in robot.frames]


def frame_kernel(robot: Robot, frame: str, model: SymbolicTree | None = None) -> Kernel:
    """Return the kernel of pose, Jacobian and bias of one frame or link.

    Raises:
        UnknownNameError: No frame or link has this name.
    """
    model = model or SymbolicTree(robot)
    node, pose = model.tree.locate(frame)
    linear, angular = model.point_jacobian(node, pose.translation)
    jacobian = ca.vertcat(linear, angular)
    bias = ca.jtimes(jacobian @ model.qd, model.q, model.coordinate_rate())
    rotation = constant(pose.rotation)
    if node != WORLD_NODE:
        rotation = model.rotation[node] @ rotation
    nq, nv = model.tree.nq, model.tree.nv
    return Kernel(
        f"frame_{frame}",
        (("q", (nq,), model.q), ("qd", (nv,), model.qd)),
        (
            ("position", (3,), model.point(node, pose.translation)),
            ("rotation", (3, 3), rotation.T),
            ("jacobian", (6, nv), jacobian.T),
            ("bias", (6,), bias),
        ),
    )


def _pose_output(model: SymbolicTree) -> tuple[str, tuple[int, ...], Expr]:
    rows = []
    for link in model.robot.links:
        node, offset = model.tree.link_node[link.name]
        rotation, position = constant(offset.rotation), model.point(node, offset.translation)
        if node != WORLD_NODE:
            rotation = model.rotation[node] @ rotation
        matrix = ca.vertcat(ca.horzcat(rotation, position), ca.SX([[0.0, 0.0, 0.0, 1.0]]))
        rows.append(ca.vec(matrix.T))
    count = len(rows)
    return ("link_poses", (count, 4, 4), ca.vertcat(*rows) if rows else ca.SX.zeros(0))


def direction(delta: Expr) -> tuple[Expr, Expr]:
    """Length and unit vector of a segment; safe, with zero derivative, at zero length."""
    square = ca.dot(delta, delta)
    length = ca.sqrt(ca.fmax(square, LENGTH_FLOOR**2))
    # divided by infinity a vanishing segment has no direction, and none that changes
    return length, delta / ca.if_else(square > LENGTH_FLOOR**2, length, ca.inf)


def constant(values: Any) -> Expr:
    """Constants as SX; structural zeros let CasADi drop the products."""
    return ca.SX(ca.DM(np.asarray(values, dtype=float)))


def _hat(v: Expr) -> Expr:
    return ca.skew(v)


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
