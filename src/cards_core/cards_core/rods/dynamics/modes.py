"""Natural frequencies of rod robots with the mass of their rods: dynamic stiffness method.

A rod that vibrates at the angular frequency w about an equilibrium obeys the static equations
plus terms ``-w^2`` times mass. Integrated along the rod they give the plate's dynamic stiffness
S(w) exactly, without elements: ``S = K - w^2 (M + ...)``, and ``S(w) v = 0`` at the natural
frequencies. Vibrations that leave the plate at rest are not found: there S has no zero. The
nonlinear eigenvalue problem is solved by successive linear ones [Ruhe1973]: with
``S' = dS/d(w^2)`` at the last guess, ``S v = -t S' v`` gives the next.
"""

from __future__ import annotations

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.dynamics.robot_dynamics import RobotDynamics
from cards_core.typing import Array

ITERATIONS = 60


def natural_frequencies(
    dynamics: RobotDynamics, guesses: Array | None = None, *, tolerance: float = 1e-10
) -> Array:
    """Return natural frequencies about the equilibrium that `rest` found, [Hz].

    Args:
        dynamics: After ``rest``; its history is not touched.
        guesses: Frequencies to start from, [Hz]; default: those of the plate with the rods'
            mass reduced to it (Guyan), six of them. One frequency is returned for each, the
            nearest that the iteration finds.
        tolerance: Relative change of a squared frequency at which the iteration ends.

    Raises:
        RodError: An iteration did not settle; take guesses nearer to the frequency.
    """
    if guesses is None:
        guesses = _frequency(_eigenvalues(dynamics, 0.0))
    return np.array([_refine(dynamics, float(guess), tolerance) for guess in guesses])


def reduced_inertia(dynamics: RobotDynamics) -> Array:
    """Return the inertia of plate and rods as felt by slow motions of the plate, shape (6, 6).

    ``-dS/d(w^2)`` at w = 0, about the plate's origin in world axes, (translation, rotation).
    """
    return -_slope(dynamics, 0.0)[1]


def _refine(dynamics: RobotDynamics, guess: float, tolerance: float) -> float:
    square = (2.0 * np.pi * guess) ** 2
    for _ in range(ITERATIONS):
        values = _eigenvalues(dynamics, square)
        step = float(values[np.argmin(np.abs(values))])
        square += step
        if abs(step) <= tolerance * max(abs(square), 1e-6):
            return float(_frequency(np.array([square]))[0])
    raise RodError(
        f"natural frequency near {guess:g} Hz: no end after {ITERATIONS} iterations; expected a "
        "guess nearer to it"
    )


def _eigenvalues(dynamics: RobotDynamics, square: float) -> Array:
    """Return t of ``(S + t S') v = 0`` at w^2 = `square`, ascending."""
    stiffness, slope = _slope(dynamics, square)
    values = np.linalg.eigvals(np.linalg.solve(-slope, stiffness))
    return np.sort(values.real[np.abs(values.imag) < 1e-6 * np.abs(values) + 1e-30])


def _slope(dynamics: RobotDynamics, square: float) -> tuple[Array, Array]:
    step = max(1.0, 1e-5 * abs(square))
    here = dynamics.dynamic_stiffness(square)
    above, below = (dynamics.dynamic_stiffness(square + g * step) for g in (1.0, -1.0))
    return here, (above - below) / (2.0 * step)


def _frequency(squares: Array) -> Array:
    return np.asarray(np.sign(squares) * np.sqrt(np.abs(squares)) / (2.0 * np.pi))
