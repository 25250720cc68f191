"""The kernels of the compiled backend."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from cards_core.codegen.expressions import constant
from cards_core.codegen.kernel import Expr, Kernel
from cards_core.dynamics.symbolic.outputs import Outputs
from cards_core.dynamics.symbolic.tree import SymbolicTree
from cards_core.dynamics.variables import DEFAULT, Variable, chosen
from cards_core.errors import UnknownNameError
from cards_core.robot.model import WORLD_NODE, Robot

FRAME = ("y", "R", "J", "Jdot_qd")
"""Quantities of the kernel of a frame."""


def robot_kernels(robot: Robot) -> list[Kernel]:
    """Return the kernels of the compiled backend: update, muscle_bias, link_poses, frames."""
    model = SymbolicTree(robot)
    outputs = Outputs(model)
    kernels = [
        outputs.kernel("update", chosen(DEFAULT)),
        outputs.kernel("muscle_bias", chosen("Ldot_qd")),
        _poses_kernel(model),
    ]
    return kernels + [frame_kernel(robot, frame.name, model) for frame in robot.frames]


def robot_kernel(robot: Robot, name: str) -> Kernel:
    """Return one of ``update``, ``link_poses``, ``jacobian_rate`` and ``frame_NAME``.

    Raises:
        UnknownNameError: There is no such kernel or frame.
    """
    model = SymbolicTree(robot)
    match name:
        case "update":
            return Outputs(model).kernel(name, chosen(DEFAULT))
        case "link_poses":
            return _poses_kernel(model)
        case "jacobian_rate":
            outputs = Outputs(model)
            shape = (len(robot.muscles), model.tree.nv)
            return Kernel(name, outputs.inputs, ((name, shape, outputs.jacobian_rate()),))
        case _ if name.startswith("frame_"):
            return frame_kernel(robot, name.removeprefix("frame_"), model)
    raise UnknownNameError("kernel", name, ("update", "link_poses", "jacobian_rate", "frame_NAME"))


def frame_kernel(robot: Robot, frame: str, model: SymbolicTree | None = None) -> Kernel:
    """Return the kernel of pose, Jacobian and bias of one frame or link.

    Args:
        robot: The robot.
        frame: Name of a frame or link.
        model: Its expressions; made if None.

    Raises:
        UnknownNameError: No frame or link has this name.
    """
    outputs = Outputs(model or SymbolicTree(robot), frame)
    kernel = outputs.kernel(f"frame_{frame}", chosen(FRAME))
    return Kernel(kernel.name, kernel.inputs[:2], kernel.outputs)  # contacts do not matter


def variables_kernel(
    robot: Robot, name: str, variables: Sequence[Variable], frame: str | None
) -> Kernel:
    """Return a kernel of chosen variables.

    Args:
        robot: The description.
        name: Of the kernel.
        variables: Its outputs.
        frame: Frame of the operational ones; None if there are none.
    """
    return Outputs(SymbolicTree(robot), frame).kernel(name, variables)


def _poses_kernel(model: SymbolicTree) -> Kernel:
    rows: list[Expr] = []
    for link in model.robot.links:
        node, offset = model.tree.link_node[link.name]
        rotation, position = constant(offset.rotation), model.point(node, offset.translation)
        if node != WORLD_NODE:
            rotation = model.rotation[node] @ rotation
        matrix = ca.vertcat(ca.horzcat(rotation, position), ca.SX([[0.0, 0.0, 0.0, 1.0]]))
        rows.append(ca.vec(matrix.T))
    poses = ca.vertcat(*rows) if rows else ca.SX.zeros(0)
    return Kernel(
        "link_poses",
        (("q", (model.tree.nq,), model.q),),
        (("link_poses", (len(rows), 4, 4), poses),),
    )
