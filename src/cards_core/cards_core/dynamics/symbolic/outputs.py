"""A kernel of the quantities that were asked for; see `cards_core.dynamics.variables`.

Rows of the muscle Jacobian use Plücker coordinates of the joint axes: for a segment with unit
vector u through a point P and a revolute joint with world axis a through o, ``L = +-(a . (P x u) +
(o x a) . u)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, assert_never

import casadi as ca
import numpy as np

from cards_core.codegen.expressions import constant, direction
from cards_core.codegen.kernel import Expr, Kernel
from cards_core.dynamics.symbolic.tree import (
    SymbolicTree,
    inverse_dynamics,
    mass_matrix,
    node_motion,
)
from cards_core.dynamics.variables import Variable, array_shape, body_nodes
from cards_core.errors import CompilationError
from cards_core.paths.layout import PathLayout, tree_layout
from cards_core.paths.symbolic import (
    PathExpressions,
    geodesic_input,
    muscle_lengths,
    path_expressions,
)
from cards_core.robot.model import WORLD_NODE


def tree_paths(model: SymbolicTree, rows: Expr | None) -> tuple[PathLayout, PathExpressions]:
    """Return the muscle paths with the nodes of the tree as frames, as table and expressions.

    Args:
        model: Kinematics.
        rows: Contacts without a closed form (see `cards_core.paths.symbolic`), or None.
    """
    layout = tree_layout(model.tree)
    poses = [*zip(model.rotation, model.position, strict=True)]
    poses.append((ca.SX(ca.DM.eye(3)), ca.SX.zeros(3)))  # the world
    return layout, path_expressions(layout, poses.__getitem__, rows)


def muscle_kinematics(model: SymbolicTree, rows: Expr | None) -> tuple[Expr, Expr]:
    """Return muscle lengths (m, 1) and the muscle Jacobian L (m, nv).

    Args:
        model: Kinematics.
        rows: Contacts without a closed form (see `cards_core.paths.symbolic`), or None.
    """
    tree = model.tree
    layout, paths = tree_paths(model, rows)
    world = len(tree.nodes)
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


LARGEST = 3_000_000
"""Operations above which expressions are not turned into code: it would take hours."""


class Outputs:
    """Expressions of all quantities of one robot, made when they are asked for.

    Args:
        model: Kinematics.
        frame: Frame or link of the operational quantities.

    Attributes:
        inputs: Inputs of a kernel: q, qd and, for wraps without a closed form, their contacts.
    """

    def __init__(self, model: SymbolicTree, frame: str | None = None) -> None:
        self._model = model
        self._frame = frame
        layout = tree_layout(model.tree)
        self._rows = geodesic_input(layout)
        self.inputs: tuple[Any, ...] = (
            ("q", (model.tree.nq,), model.q),
            ("qd", (model.tree.nv,), model.qd),
        )
        if self._rows is not None:
            self.inputs += (("contacts", (len(layout.geodesics), 8), self._rows),)

    def kernel(self, name: str, variables: Sequence[Variable]) -> Kernel:
        """Return a kernel whose outputs are these variables, by their titles."""
        tree = self._model.tree
        bodies = len(body_nodes(tree))
        outputs = []
        for variable in variables:
            shape = array_shape(variable, tree.nv, len(tree.robot.muscles), bodies)
            expression = self._makers[variable.name](self)
            if len(shape) == 2:
                expression = expression.T  # rows first
            outputs.append((variable.title, shape, expression))
        return Kernel(name, self.inputs, tuple(outputs))

    @cached_property
    def _muscles(self) -> tuple[Expr, Expr]:
        return muscle_kinematics(self._model, self._rows)

    @cached_property
    def _mass(self) -> Expr:
        return mass_matrix(self._model)

    @cached_property
    def _bodies(self) -> Expr:
        return body_jacobian(self._model)

    @cached_property
    def _pose(self) -> tuple[int, Any]:
        if self._frame is None:
            raise CompilationError("y, R, J and Jdot_qd belong to a frame, and none was given")
        return self._model.tree.locate(self._frame)

    @cached_property
    def _jacobian(self) -> Expr:
        node, pose = self._pose
        return ca.vertcat(*self._model.point_jacobian(node, pose.translation))

    def _along_motion(self, expression: Expr) -> Expr:
        return ca.jtimes(expression, self._model.q, self._model.coordinate_rate())

    def _gradient(self) -> Expr:
        """All entries of dL/dq, the last index fastest."""
        rate = self.jacobian_rate()
        tree = self._model.tree
        if rate.nnz() and ca.n_nodes(rate) * tree.nv > LARGEST:
            raise CompilationError(
                f"dL_dq of '{tree.robot.name}' would have more than {LARGEST} operations: leave "
                "it out and use jacobian_gradient(q), which evaluates it column by column"
            )
        columns = []
        for k in range(tree.nv):
            unit = ca.SX.zeros(tree.nv)
            unit[k] = 1.0
            columns.append(ca.substitute(rate, self._model.qd, unit).T)
        return ca.vec(ca.vertcat(*columns))

    def jacobian_rate(self) -> Expr:
        """Return the derivative of L along qd, (m nv, 1), row after row."""
        return self._along_motion(ca.vec(self._muscles[1].T))

    def _rotation(self) -> Expr:
        node, pose = self._pose
        rotation = constant(pose.rotation)
        return rotation if node == WORLD_NODE else self._model.rotation[node] @ rotation

    _makers: ClassVar[dict[str, Callable[[Outputs], Expr]]] = {
        "M": lambda s: s._mass,
        "C": lambda s: inverse_dynamics(s._model, with_velocity=True, with_gravity=False),
        "G": lambda s: inverse_dynamics(s._model, with_velocity=False, with_gravity=True),
        "l": lambda s: s._muscles[0],
        "L": lambda s: s._muscles[1],
        "Ldot_qd": lambda s: s._along_motion(s._muscles[1] @ s._model.qd),
        "dL_dq": lambda s: s._gradient(),
        "M_inv": lambda s: inverse_mass(s._mass),
        "M_b": lambda s: body_mass(s._model, s._bodies),
        "C_b": lambda s: body_coriolis(s._model),
        "G_b": lambda s: body_gravity(s._model),
        "W": lambda s: s._bodies,
        "V": lambda s: muscle_body_jacobian(s._model, s._rows),
        "y": lambda s: s._model.point(s._pose[0], s._pose[1].translation),
        "R": lambda s: s._rotation(),
        "J": lambda s: s._jacobian,
        "Jdot_qd": lambda s: s._along_motion(s._jacobian @ s._model.qd),
    }
