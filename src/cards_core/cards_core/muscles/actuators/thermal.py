"""Two-node thermal model of a motor: winding and housing.

    C1 c1' = P - (c1 - c2)/R1,   C2 c2' = (c1 - c2)/R1 - (c2 - Ta)/R2

with temperatures c1 (winding), c2 (housing), ambient Ta, and heat P = i^2 R(c1),
R(c1) = R25 (1 + alpha (c1 - 25)). At rest c2 - Ta = P R2 and c1 - Ta = P (R1 + R2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.muscles.actuators.arithmetic import Arithmetic, Real
from cards_core.muscles.actuators.model import Parameters
from cards_core.robot.actuators import Thermal
from cards_core.typing import Array

QUANTITIES = ("winding_temperature", "housing_temperature")
"""Actuator states that are temperatures of a muscle's motor, the hotter one first."""


class MotorTemperatures:
    """Finds the temperatures of the muscles' motors among the actuator states of a host.

    Args:
        muscles: Names of the muscles.
        states: Names of the actuator states, ``muscle/state``.
    """

    def __init__(self, muscles: Sequence[str], states: Sequence[str]) -> None:
        place = {name: i for i, name in enumerate(states)}
        self._count = len(muscles)
        # the better ones last: they replace the others where they are known
        self._found: list[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = []
        for quantity in reversed(QUANTITIES):
            names = [f"{muscle}/{quantity}" for muscle in muscles]
            rows = [row for row, name in enumerate(names) if name in place]
            if rows:
                places = [place[names[row]] for row in rows]
                self._found.append((np.array(rows, np.intp), np.array(places, np.intp)))

    def among(self, states: Array) -> Array | None:
        """Return the temperature of every motor, NaN where none is known, or None for no motor.

        Args:
            states: Values of the actuator states.

        Returns:
            Shape (m,), [degC]; of the winding where it is known, else of the housing.
        """
        if not self._found:
            return None
        out: Array = np.full(self._count, np.nan)
        for rows, places in self._found:
            values = states[places]
            known = ~np.isnan(values)
            out[rows[known]] = values[known]
        return out


def system_matrix(thermal: Thermal) -> Array:
    """Return A of ``c' = A (c - Ta) + (P/C1, 0)``, shape (2, 2), [1/s]."""
    c1, c2 = thermal.winding_heat_capacity, thermal.housing_heat_capacity
    g1, g2 = 1.0 / thermal.winding_resistance, 1.0 / thermal.housing_resistance
    return np.array([[-g1 / c1, g1 / c1], [g1 / c2, -(g1 + g2) / c2]])


def discretise(thermal: Thermal, dt: float) -> tuple[Array, Array]:
    """Return F and b of ``c+ - Ta = F (c - Ta) + b P``: exact for heat constant over the step.

    Args:
        thermal: Parameters.
        dt: Step, [s].
    """
    a = system_matrix(thermal)
    # A is similar to a symmetric matrix: distinct real negative eigenvalues
    middle = 0.5 * (a[0, 0] + a[1, 1])
    half = math.sqrt(0.25 * (a[0, 0] - a[1, 1]) ** 2 + a[0, 1] * a[1, 0])
    slow, fast = middle + half, middle - half
    share = (a - fast * np.eye(2)) / (slow - fast)
    f = math.exp(slow * dt) * share + math.exp(fast * dt) * (np.eye(2) - share)
    b = (
        math.expm1(slow * dt) / slow * share + math.expm1(fast * dt) / fast * (np.eye(2) - share)
    ) @ [1.0 / thermal.winding_heat_capacity, 0.0]
    return f, b


def resistance(m: Arithmetic, p: Parameters, winding: Real) -> Real:
    """Return the resistance of a winding at its temperature [degC], [ohm].

    Args:
        m: Functions of real arguments.
        p: Parameters by name, shape (n,) each.
        winding: Temperature of the winding, shape (n,), [degC].
    """
    # copper only: far below any real temperature the line would reach zero
    return p.resistance * m.maximum(1.0 + p.copper * (winding - 25.0), 0.1)


def advance(p: Parameters, winding: Real, housing: Real, heat: Real) -> list[Real]:
    """Return the temperatures of winding and housing after a step with a heat [W].

    Args:
        p: Parameters by name, shape (n,) each.
        winding: Shape (n,), [degC].
        housing: Shape (n,), [degC].
        heat: Heat in the winding, shape (n,), [W].
    """
    a, b = winding - p.ambient, housing - p.ambient
    return [
        p.ambient + p.f11 * a + p.f12 * b + p.b1 * heat,
        p.ambient + p.f21 * a + p.f22 * b + p.b2 * heat,
    ]


def parameters(thermal: Thermal, dt: float) -> dict[str, float]:
    """Return the numbers of one step."""
    f, b = discretise(thermal, dt)
    return {
        "f11": float(f[0, 0]),
        "f12": float(f[0, 1]),
        "f21": float(f[1, 0]),
        "f22": float(f[1, 1]),
        "b1": float(b[0]),
        "b2": float(b[1]),
        "ambient": thermal.ambient,
        "copper": thermal.copper_coefficient,
    }
