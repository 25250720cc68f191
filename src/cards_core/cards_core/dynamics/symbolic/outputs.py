"""A kernel of the quantities that were asked for; see `cards_core.dynamics.variables`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca

from cards_core.codegen.expressions import constant
from cards_core.codegen.kernel import Expr, Kernel
from cards_core.dynamics.symbolic.bodies import (
    body_coriolis,
    body_gravity,
    body_jacobian,
    body_mass,
    inverse_mass,
    muscle_body_jacobian,
)
from cards_core.dynamics.symbolic.muscle_rows import muscle_kinematics
from cards_core.dynamics.symbolic.recursions import inverse_dynamics, mass_matrix
from cards_core.dynamics.symbolic.tree import SymbolicTree
from cards_core.dynamics.variables import Variable, array_shape, body_nodes
from cards_core.errors import CompilationError
from cards_core.paths.layout import tree_layout
from cards_core.paths.symbolic import geodesic_input
from cards_core.robot.model import WORLD_NODE

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
