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
        guesses: Frequencies to start from, [Hz]; one is returned for each, the nearest that the
            iteration finds. Default: the plate with the rods' mass reduced to it (Guyan); each
            of its six modes is followed to one frequency, and they are returned in order.
            Rods have more of their own.
        tolerance: Relative change of a squared frequency at which the iteration ends.

    Raises:
        RodError: An iteration did not settle; take guesses nearer to the frequency.
    """
    if guesses is None:
        squares, vectors = _pencil(dynamics, 0.0)
        found = [
            _refine(dynamics, square, vector, tolerance)
            for square, vector in zip(squares, vectors, strict=True)
        ]
        return np.sort(_frequency(np.array(found)))
    squares = (2.0 * np.pi * np.asarray(guesses, dtype=float)) ** 2
    return _frequency(np.array([_refine(dynamics, s, None, tolerance) for s in squares]))


def reduced_inertia(dynamics: RobotDynamics) -> Array:
    """Return the inertia of plate and rods as felt by slow motions of the plate, shape (6, 6).

    ``-dS/d(w^2)`` at w = 0, about the plate's origin in world axes, (translation, rotation).
    """
    return -_slope(dynamics, 0.0)[1]


def _refine(
    dynamics: RobotDynamics, square: float, vector: Array | None, tolerance: float
) -> float:
    """Return the squared angular frequency of the mode like `vector`, or next to `square`."""
    guess = square
    for _ in range(ITERATIONS):
        steps, vectors = _pencil(dynamics, square)
        likeness = -np.abs(steps) if vector is None else np.abs(vectors @ vector)
        best = int(np.argmax(likeness))
        vector = vectors[best]
        square += float(steps[best])
        if abs(steps[best]) <= tolerance * max(abs(square), 1e-6):
            return square
    raise RodError(
        f"natural frequency near {_frequency(np.array([guess]))[0]:g} Hz: no end after "
        f"{ITERATIONS} iterations; expected a guess nearer to it"
    )


def _pencil(dynamics: RobotDynamics, square: float) -> tuple[Array, Array]:
    """Return t ascending and unit v (rows, scaled by the inertia) of ``(S + t S') v = 0``."""
    stiffness, slope = _slope(dynamics, square)
    # -S' is an inertia: positive definite
    root = np.linalg.cholesky(-0.5 * (slope + slope.T))
    inverse = np.linalg.inv(root)
    values, vectors = np.linalg.eigh(inverse @ (0.5 * (stiffness + stiffness.T)) @ inverse.T)
    return values, vectors.T


def _slope(dynamics: RobotDynamics, square: float) -> tuple[Array, Array]:
    step = max(1.0, 1e-5 * abs(square))
    here = dynamics.dynamic_stiffness(square)
    above, below = (dynamics.dynamic_stiffness(square + g * step) for g in (1.0, -1.0))
    return here, (above - below) / (2.0 * step)


def _frequency(squares: Array) -> Array:
    return np.asarray(np.sign(squares) * np.sqrt(np.abs(squares)) / (2.0 * np.pi))
