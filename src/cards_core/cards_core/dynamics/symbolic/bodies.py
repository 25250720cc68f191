"""Body-space quantities as expressions; see `cards_core.dynamics.variables`."""

from __future__ import annotations

from typing import assert_never

import casadi as ca
import numpy as np

from cards_core.codegen.expressions import constant, direction
from cards_core.codegen.kernel import Expr
from cards_core.dynamics.symbolic.muscle_rows import tree_paths
from cards_core.dynamics.symbolic.recursions import node_motion
from cards_core.dynamics.symbolic.tree import SymbolicTree
from cards_core.dynamics.variables import body_nodes
from cards_core.robot.model import WORLD_NODE


def body_jacobian(model: SymbolicTree) -> Expr:
    """Return W, (6p, nv), by recursion from parent to child in node axes."""
    tree = model.tree
    linear: list[Expr] = []
    angular: list[Expr] = []
    for i, node in enumerate(tree.nodes):
        if node.parent == WORLD_NODE:
            v, w = ca.SX.zeros(3, tree.nv), ca.SX.zeros(3, tree.nv)
        else:
            back = model.local_rotation[i].T
            arm = ca.skew(model.local_position[i])
            v = back @ (linear[node.parent] - arm @ angular[node.parent])
            w = back @ angular[node.parent]
        if node.kind == "prismatic":
            v[:, node.v] = constant(node.axis)
        elif node.kind == "revolute":
            w[:, node.v] = constant(node.axis)
        elif node.kind == "ball":
            w[:, node.v : node.v + 3] = ca.SX(ca.DM.eye(3))
        else:
            assert_never(node.kind)
        linear.append(v)
        angular.append(w)
    rows = []
    for i in body_nodes(tree):
        com = constant(tree.nodes[i].inertia.com)
        rows += [linear[i] - ca.skew(com) @ angular[i], angular[i]]
    return ca.vertcat(*rows) if rows else ca.SX.zeros(0, tree.nv)


def body_mass(model: SymbolicTree, jacobian: Expr) -> Expr:
    """Return M_b = blkdiag(m E, I) W, (6p, nv)."""
    rows = []
    for k, i in enumerate(body_nodes(model.tree)):
        body = model.tree.nodes[i].inertia
        rows.append(body.mass * jacobian[6 * k : 6 * k + 3, :])
        rows.append(constant(body.tensor) @ jacobian[6 * k + 3 : 6 * k + 6, :])
    return ca.vertcat(*rows) if rows else ca.SX.zeros(0, model.tree.nv)


def body_coriolis(model: SymbolicTree) -> Expr:
    """Return C_b, (6p,): ``m a`` and ``I alpha + w x I w`` of every body at qdd = 0."""
    motion = node_motion(model, with_velocity=True, with_gravity=False)
    rows = []
    for i in body_nodes(model.tree):
        body = model.tree.nodes[i].inertia
        com, tensor = constant(body.com), constant(body.tensor)
        w, al, a = motion[i]
        rows.append(body.mass * (a + ca.cross(al, com) + ca.cross(w, ca.cross(w, com))))
        rows.append(tensor @ al + ca.cross(w, tensor @ w))
    return ca.vertcat(*rows) if rows else ca.SX.zeros(0)


def body_gravity(model: SymbolicTree) -> Expr:
    """Return G_b, (6p,): the weight of every body in its own axes, and no moment."""
    rows = []
    for i in body_nodes(model.tree):
        weight = model.tree.nodes[i].inertia.mass * model.robot.gravity
        rows += [model.rotation[i].T @ constant(weight), ca.SX.zeros(3)]
    return ca.vertcat(*rows) if rows else ca.SX.zeros(0)


def muscle_body_jacobian(model: SymbolicTree, rows: Expr | None) -> Expr:
    """Return V, (m, 6p): for a piece A->B with unit vector u, -u at A's body and +u at B's.

    Args:
        model: Kinematics.
        rows: Contacts without a closed form, or None.
    """
    tree = model.tree
    layout, paths = tree_paths(model, rows)
    world = len(tree.nodes)
    body = {node: k for k, node in enumerate(body_nodes(tree))}
    jacobian = ca.SX.zeros(len(layout.bounds) - 1, 6 * len(body))
    for row, first in zip(layout.piece_muscle, layout.start, strict=True):
        ends = [int(node) for node in layout.point_frame[first : first + 2]]
        if ends[0] == ends[1]:
            continue
        _, u = direction(paths.points[first + 1] - paths.points[first])
        for sign, node, point in ((-1.0, ends[0], first), (1.0, ends[1], first + 1)):
            if node == world:
                continue
            pull = sign * (model.rotation[node].T @ u)
            arm = paths.local[point] - constant(tree.nodes[node].inertia.com)
            column = 6 * body[node]
            jacobian[row, column : column + 6] += ca.vertcat(pull, ca.cross(arm, pull)).T
    return jacobian


def inverse_mass(mass: Expr) -> Expr:
    """Return M^-1 by ``M = U' D U`` from the last row up, which keeps a tree's zeros.

    Not defined (infinity, NaN) where M is not positive definite. [Featherstone2008]_ section 6.5.
    """
    n = mass.shape[0]
    lower, diagonal = ca.SX(mass), [ca.SX(0)] * n
    for k in reversed(range(n)):
        diagonal[k] = lower[k, k]
        for i in reversed(range(k)):
            factor = lower[k, i] / diagonal[k]
            for j in range(i + 1):
                lower[i, j] = lower[i, j] - factor * lower[k, j]
            lower[k, i] = factor
    # unit lower triangle T with M = T' D T; the columns of T^-1 by forward substitution
    columns = np.full((n, n), None)
    for j in range(n):
        for i in range(n):
            value = ca.SX(1.0 if i == j else 0.0)
            for k in range(j, i):
                value = value - lower[i, k] * columns[k, j]
            columns[i, j] = value
    inverse = ca.SX.zeros(n, n)
    for i in range(n):
        for j in range(i + 1):
            value = ca.SX(0)
            for k in range(n):
                # T^-1 is lower triangular: M^-1 = T^-1 D^-1 T^-T
                value = value + columns[i, k] * columns[j, k] / diagonal[k]
            inverse[i, j] = inverse[j, i] = value
    return inverse
