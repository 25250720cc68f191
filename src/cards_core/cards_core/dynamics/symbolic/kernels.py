"""The kernels of the compiled backend."""

from __future__ import annotations

from typing import Any

import casadi as ca

from cards_core.codegen.kernel import Expr, Kernel
from cards_core.description.model import Robot
from cards_core.dynamics.symbolic.muscle_rows import muscle_kinematics
from cards_core.dynamics.symbolic.recursions import inverse_dynamics, mass_matrix
from cards_core.dynamics.symbolic.tree import SymbolicTree, constant
from cards_core.errors import UnknownNameError
from cards_core.kinematics.paths import tree_layout
from cards_core.kinematics.tree import WORLD_NODE


def robot_kernels(robot: Robot) -> list[Kernel]:
    """Return the kernels of the compiled backend: update, muscle_bias, link_poses, frames."""
    model = SymbolicTree(robot)
    nv, nq, m = model.tree.nv, model.tree.nq, len(robot.muscles)
    q = model.q
    state, rows = _state(model)
    lengths, jacobian = muscle_kinematics(model, rows)
    rates = jacobian @ model.qd
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


def robot_kernel(robot: Robot, name: str) -> Kernel:
    """Return one of the kernels of `robot_kernels`, or ``jacobian_rate``.

    Raises:
        UnknownNameError: There is no such kernel.
    """
    if name == "jacobian_rate":
        return jacobian_rate_kernel(robot)
    if name.startswith("frame_"):
        return frame_kernel(robot, name.removeprefix("frame_"))
    kernels = {kernel.name: kernel for kernel in robot_kernels(robot)}
    if name not in kernels:
        raise UnknownNameError("kernel", name, kernels)
    return kernels[name]


def jacobian_rate_kernel(robot: Robot) -> Kernel:
    """Return the kernel of the derivative of L along qd, (m, nv): at unit vectors, of dL/dq."""
    model = SymbolicTree(robot)
    state, rows = _state(model)
    _, jacobian = muscle_kinematics(model, rows)
    rate = ca.jtimes(ca.vec(jacobian.T), model.q, model.coordinate_rate())
    shape = (len(robot.muscles), model.tree.nv)
    return Kernel("jacobian_rate", state, (("jacobian_rate", shape, rate),))


def _state(model: SymbolicTree) -> tuple[tuple[Any, ...], Expr | None]:
    """Return the inputs of a kernel, and the symbol of contacts without a closed form."""
    from cards_core.muscles.symbolic import geodesic_input

    layout = tree_layout(model.tree)
    rows = geodesic_input(layout)
    state: tuple[Any, ...] = (
        ("q", (model.tree.nq,), model.q),
        ("qd", (model.tree.nv,), model.qd),
    )
    if rows is not None:
        state += (("contacts", (len(layout.geodesics), 8), rows),)
    return state, rows


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
