"""The quantities of a symbolic model by the names that compiled code has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy as sp

from cards_core.checks import check_choice
from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.variables import VARIABLES, Variable, array_shape

_Value = Callable[[SymbolicModel], list[Expr]]


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity of a model.

    Attributes:
        variable: Name, title (also of the exported function), shape and text.
        latex: Symbol.
        value: Makes its matrices: one, or one for each muscle.
        velocity: It depends on qd.
    """

    variable: Variable
    latex: str
    value: _Value
    velocity: bool = False

    @property
    def name(self) -> str:
        """As in equations."""
        return self.variable.name

    @property
    def text(self) -> str:
        """What it is, with its shape."""
        words, shape = self.variable.text, ", ".join(map(str, self.variable.shape))
        if words.split(maxsplit=1)[0].isalpha():  # no formula, such as dL/dq
            words = words[:1].upper() + words[1:]
        return f"{words} ({shape})" if shape else words

    def shape(self, model: SymbolicModel) -> tuple[int, ...]:
        """Return the shape of its array for a robot."""
        m, bodies = len(model.muscle_names), len(model.kinematics.bodies)
        return array_shape(self.variable, model.tree.nv, m, bodies)

    def exists(self, model: SymbolicModel) -> bool:
        """Whether a robot has it: muscles, or an operational frame."""
        if self.variable.operational:
            return model.robot.operational_frame is not None
        return "m" not in self.variable.shape or bool(model.muscle_names)


_ENERGY = Variable("U", "potential_energy", (), "Potential energy")
_MATRIX = Variable(
    "C_matrix", "coriolis_matrix", ("nv", "nv"), "Coriolis matrix of Christoffel symbols, C = . qd"
)

_ALL = (
    Quantity(_ENERGY, "U", lambda m: [sp.Matrix([[m.potential_energy]])]),
    Quantity(VARIABLES["M"], "M", lambda m: [m.mass_matrix]),
    Quantity(VARIABLES["C"], "C", lambda m: [m.coriolis], velocity=True),
    Quantity(_MATRIX, r"\bar C", lambda m: [m.coriolis_matrix], velocity=True),
    Quantity(VARIABLES["G"], "G", lambda m: [m.gravity]),
    Quantity(VARIABLES["l"], "l", lambda m: [m.muscle_lengths]),
    Quantity(VARIABLES["L"], "L", lambda m: [m.muscle_jacobian]),
    Quantity(VARIABLES["Ldot_qd"], r"\dot L\dot q", lambda m: [m.muscle_bias], velocity=True),
    Quantity(VARIABLES["dL_dq"], r"\partial L", lambda m: m.jacobian_gradient),
    Quantity(VARIABLES["y"], "y", lambda m: [m.frame().position]),
    Quantity(VARIABLES["R"], "R", lambda m: [m.frame().rotation]),
    Quantity(VARIABLES["J"], "J", lambda m: [m.frame().jacobian]),
    Quantity(VARIABLES["Jdot_qd"], r"\dot J\dot q", lambda m: [m.frame().bias], velocity=True),
    Quantity(VARIABLES["W"], "W", lambda m: [m.body.jacobian]),
    Quantity(VARIABLES["V"], "V", lambda m: [m.body.muscle_jacobian]),
    Quantity(VARIABLES["M_b"], "M_b", lambda m: [m.body.mass_matrix]),
    Quantity(VARIABLES["C_b"], "C_b", lambda m: [m.body.coriolis], velocity=True),
    Quantity(VARIABLES["G_b"], "G_b", lambda m: [m.body.gravity]),
)

QUANTITIES = {quantity.name: quantity for quantity in _ALL}
"""By name, in the order of a document."""

USUAL = ("M", "C", "G", "l", "L", "y", "J", "Jdot_qd")
"""What is exported without being asked for."""


def select(model: SymbolicModel, names: Iterable[str] | None = None) -> list[Quantity]:
    """Return quantities by name (default: `USUAL`), without those the robot does not have.

    Raises:
        UnknownNameError: No quantity has this name.
    """
    chosen = list(USUAL if names is None else names)
    for name in chosen:
        check_choice(name, "quantity", QUANTITIES)
    return [q for q in QUANTITIES.values() if q.name in chosen and q.exists(model)]
