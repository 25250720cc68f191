"""Body-space and other quantities of the numeric backend, straight from their definitions.

The same names as `cards_core.dynamics.variables` has for compiled code, by other formulas:
world-frame Jacobians instead of recursions, closed forms instead of automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from cards_core.dynamics.variables import body_nodes, chosen
from cards_core.kinematics.forward import Motion, forward_kinematics
from cards_core.kinematics.tree import WORLD_NODE, Tree
from cards_core.spatial import hat
from cards_core.typing import Array, Vector3

if TYPE_CHECKING:
    from cards_core.dynamics.numeric import NumericDynamics


def evaluate(
    dynamics: NumericDynamics,
    emit: str | Iterable[str],
    q: Array,
    qd: Array,
    frame: str | None = None,
) -> dict[str, Array]:
    """Return quantities by name, newly allocated.

    Args:
        dynamics: Of the robot.
        emit: Names of `cards_core.dynamics.variables.VARIABLES`.
        q: Coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
        frame: Frame of y, R, J, Jdot_qd; the operational frame if not given.

    Raises:
        UnknownNameError: A quantity or a frame that does not exist.
    """
    variables = chosen(emit)
    state = dynamics.update(q, qd)
    bodies = body_quantities(dynamics.tree, forward_kinematics(dynamics.tree, q, qd))
    out: dict[str, Array] = {
        "M": state.mass_matrix,
        "C": state.coriolis,
        "G": state.gravity,
        "l": state.muscle_lengths,
        "L": state.muscle_jacobian,
        **bodies,
    }
    names = {variable.name for variable in variables}
    if "V" in names:
        out["V"] = dynamics.muscle_body_jacobian(q)
    if "Ldot_qd" in names:
        out["Ldot_qd"] = dynamics.muscle_bias(q, qd)
    if "dL_dq" in names:
        out["dL_dq"] = dynamics.jacobian_gradient(q)
    if "M_inv" in names:
        out["M_inv"] = np.asarray(np.linalg.inv(state.mass_matrix), dtype=float)
    if any(variable.operational for variable in variables):
        pose = dynamics.operational(q, qd, frame)
        out |= {"y": pose.position, "R": pose.rotation, "J": pose.jacobian, "Jdot_qd": pose.bias}
    return {variable.name: out[variable.name] for variable in variables}


def body_quantities(tree: Tree, motion: Motion) -> dict[str, Array]:
    """Return W, M_b, C_b and G_b at one state."""
    nodes = body_nodes(tree)
    rows = 6 * len(nodes)
    jacobian, mass = np.zeros((rows, tree.nv)), np.zeros((rows, tree.nv))
    coriolis, gravity = np.zeros(rows), np.zeros(rows)
    for k, i in enumerate(nodes):
        body, back = tree.nodes[i].inertia, motion.rotation[i].T
        linear, angular = slice(6 * k, 6 * k + 3), slice(6 * k + 3, 6 * k + 6)
        jacobian[linear] = back @ motion.point_jacobian(i, body.com)
        jacobian[angular] = back @ motion.angular_jacobian[i]
        mass[linear] = body.mass * jacobian[linear]
        mass[angular] = body.tensor @ jacobian[angular]
        omega = back @ motion.angular_velocity[i]
        coriolis[linear] = body.mass * back @ motion.point_bias(i, body.com)
        coriolis[angular] = body.tensor @ (back @ motion.angular_bias[i]) + np.cross(
            omega, body.tensor @ omega
        )
        gravity[linear] = body.mass * back @ tree.robot.gravity
    return {"W": jacobian, "M_b": mass, "C_b": coriolis, "G_b": gravity}


def piece_body_rows(tree: Tree, motion: Motion, node: int, local: Vector3, u: Vector3) -> Array:
    """Return the share of one end of a straight piece in a row of V, shape (6,).

    Args:
        tree: Kinematic tree.
        motion: Of its nodes.
        node: The node that carries the end; not the world.
        local: The end in node coordinates.
        u: Unit vector of the piece in the world, away from the end's neighbour.
    """
    pull = motion.rotation[node].T @ u
    return np.concatenate([pull, np.cross(local - tree.nodes[node].inertia.com, pull)])


def point_gradient(tree: Tree, motion: Motion, node: int, local: Vector3) -> Array:
    """Return the derivative of a point's Jacobian, shape (3, nv, nv).

    Entry [:, j, k] is the derivative of column j along tangent direction k: of two joints the one
    nearer to the world turns what the other one moves, ``w_first x J_second``; within one ball,
    whose axes turn with it, ``w_k x J_j``.
    """
    jacobian = motion.point_jacobian(node, local)
    axes = motion.angular_jacobian[node] if node != WORLD_NODE else np.zeros((3, tree.nv))
    order = [i for i, item in enumerate(tree.nodes) for _ in range(item.nv)]
    gradient = np.zeros((3, tree.nv, tree.nv))
    for j in range(tree.nv):
        for k in range(tree.nv):
            first, second = (k, j) if order[k] <= order[j] else (j, k)
            gradient[:, j, k] = hat(axes[:, first]) @ jacobian[:, second]
    return gradient
