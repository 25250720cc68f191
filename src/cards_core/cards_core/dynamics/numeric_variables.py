"""Body-space and other quantities of the numeric backend, straight from their definitions.

The same names as `cards_core.dynamics.variables` has for compiled code, by other formulas:
world-frame Jacobians instead of recursions, closed forms instead of automatic differentiation.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cards_core.dynamics.numeric import NumericDynamics
from cards_core.dynamics.variables import body_nodes, chosen
from cards_core.robot.forward_kinematics import Motion, forward_kinematics
from cards_core.robot.model import Tree
from cards_core.typing import Array


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
