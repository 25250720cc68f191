"""Muscle lengths and the muscle Jacobian as expressions.

Rows use Plücker coordinates of the joint axes: for a segment with unit vector u through a point
P and a revolute joint with world axis a through o, ``L = +-(a . (P x u) + (o x a) . u)``.
"""

from __future__ import annotations

import casadi as ca

from cards_core.codegen.expressions import direction
from cards_core.codegen.kernel import Expr
from cards_core.dynamics.symbolic.tree import SymbolicTree
from cards_core.paths.layout import PathLayout, tree_layout
from cards_core.paths.symbolic import PathExpressions, muscle_lengths, path_expressions


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
