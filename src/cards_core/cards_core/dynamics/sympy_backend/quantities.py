"""The quantities of a symbolic model by name, for exporters and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.errors import UnknownNameError


@dataclass(frozen=True, eq=False)
class Quantity:
    """One quantity of a model.

    Attributes:
        name: On the command line.
        function: Of the exported Python module.
        latex: Symbol.
        text: What it is, with shape and unit.
        value: Makes its matrix; a list of matrices has one more index, which comes first.
        needs: ``""``, ``muscles`` or ``frame``: without these the robot does not have it.
        velocity: It depends on qd.
    """

    name: str
    function: str
    latex: str
    text: str
    value: Callable[[SymbolicModel], Expr | list[Expr]]
    needs: str = ""
    velocity: bool = False

    @property
    def title(self) -> str:
        """``text`` without shape and unit."""
        return self.text.partition(",")[0]


def _all() -> Iterable[Quantity]:
    yield Quantity(
        "U", "potential_energy", "U", "Potential energy, (1, 1), [J]",
        lambda m: sp.Matrix([[m.potential_energy]]),
    )  # fmt: skip
    yield Quantity("M", "mass_matrix", "M", "Mass matrix, (nv, nv)", lambda m: m.mass_matrix)
    yield Quantity(
        "C", "coriolis", "C", "Coriolis and centrifugal vector, (nv,), [Nm] or [N]",
        lambda m: m.coriolis, velocity=True,
    )  # fmt: skip
    yield Quantity(
        "Cmatrix", "coriolis_matrix", r"\bar C",
        "Coriolis matrix of Christoffel symbols, (nv, nv): C = matrix qd",
        lambda m: m.coriolis_matrix, velocity=True,
    )  # fmt: skip
    yield Quantity(
        "G", "gravity", "G", "Gravity vector, (nv,), [Nm] or [N]", lambda m: m.gravity
    )
    yield Quantity(
        "l", "muscle_lengths", "l", "Muscle lengths, (m,), [m]",
        lambda m: m.muscle_lengths, needs="muscles",
    )  # fmt: skip
    yield Quantity(
        "L", "muscle_jacobian", "L", "Muscle Jacobian dl/dq, (m, nv), [m/rad] or [1]",
        lambda m: m.muscle_jacobian, needs="muscles",
    )  # fmt: skip
    yield Quantity(
        "Ldot", "muscle_bias", r"\dot L\dot q", "Muscle accelerations at qdd = 0, (m,), [m/s^2]",
        lambda m: m.muscle_bias, needs="muscles", velocity=True,
    )  # fmt: skip
    yield Quantity(
        "dL", "jacobian_gradient", r"\partial L", "Gradient of the muscle Jacobian, (m, nv, nv)",
        lambda m: m.jacobian_gradient, needs="muscles",
    )  # fmt: skip
    yield Quantity(
        "y", "position", "y", "Position of the operational frame, (3,), [m]",
        lambda m: m.frame().position, needs="frame",
    )  # fmt: skip
    yield Quantity(
        "R", "rotation", "R", "Rotation of the operational frame to the world, (3, 3)",
        lambda m: m.frame().rotation, needs="frame",
    )  # fmt: skip
    yield Quantity(
        "J", "jacobian", "J",
        "Jacobian of the operational frame, (6, nv): linear, then angular velocity, world axes",
        lambda m: m.frame().jacobian, needs="frame",
    )  # fmt: skip
    yield Quantity(
        "Jdot", "jacobian_bias", r"\dot J\dot q", "Frame acceleration at qdd = 0, (6,)",
        lambda m: m.frame().bias, needs="frame", velocity=True,
    )  # fmt: skip
    yield Quantity(
        "W", "body_jacobian", "W",
        "Body Jacobian, (6 p, nv): velocity of the centre of mass, then angular, body axes",
        lambda m: m.body.jacobian,
    )  # fmt: skip
    yield Quantity(
        "V", "body_muscle_jacobian", "V", "Muscle Jacobian of the bodies, (m, 6 p): L = V W",
        lambda m: m.body.muscle_jacobian, needs="muscles",
    )  # fmt: skip
    yield Quantity(
        "Mb", "body_mass_matrix", "M_b", "Mass matrix of the bodies, (6 p, nv): M = W' M_b",
        lambda m: m.body.mass_matrix,
    )  # fmt: skip
    yield Quantity(
        "Cb", "body_coriolis", "C_b", "Inertial forces of the bodies at qdd = 0, (6 p,)",
        lambda m: m.body.coriolis, velocity=True,
    )  # fmt: skip
    yield Quantity(
        "Gb", "body_gravity", "G_b", "Weights of the bodies, (6 p,): G = -W' G_b",
        lambda m: m.body.gravity,
    )  # fmt: skip


QUANTITIES = {quantity.name: quantity for quantity in _all()}
"""By their name on the command line, in the order of a document."""

USUAL = ("M", "C", "G", "l", "L", "y", "J", "Jdot")
"""What is exported without being asked for."""


def select(model: SymbolicModel, names: Iterable[str] | None = None) -> list[Quantity]:
    """Return quantities by name (default: `USUAL`), without those the robot does not have.

    Raises:
        UnknownNameError: No quantity has this name.
    """
    chosen = set(USUAL if names is None else names)
    for name in chosen - set(QUANTITIES):
        raise UnknownNameError("quantity", name, QUANTITIES)
    lacking = set()
    if not model.muscle_names:
        lacking.add("muscles")
    if model.robot.operational_frame is None:
        lacking.add("frame")
    return [q for q in QUANTITIES.values() if q.name in chosen and q.needs not in lacking]
