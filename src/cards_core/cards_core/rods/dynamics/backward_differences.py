"""Backward differences (BDF-alpha, implicit Euler) in place of time derivatives."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.errors import RodError
from cards_core.typing import Array


@dataclass(frozen=True)
class DifferenceFormula:
    """``z_t(k) = c0 z(k) + c1 z(k-1) + c2 z(k-2) + d1 z_t(k-1)``; applied twice for z_tt.

    Attributes:
        c0, c1, c2: [1/s].
        d1: Without unit.
    """

    c0: float
    c1: float
    c2: float
    d1: float


AT_REST = DifferenceFormula(0.0, 0.0, 0.0, 0.0)
"""No motion: all derivatives are 0."""


def bdf_alpha(dt: float, alpha: float = -0.2) -> DifferenceFormula:
    """Return the BDF-alpha formula, of second order for every alpha.

    ``c0 = (3/2 + alpha)/(dt (1 + alpha)), c1 = -2/dt, c2 = (1/2 + alpha)/(dt (1 + alpha)),
    d1 = alpha/(1 + alpha)``

    Args:
        dt: Step, [s], > 0.
        alpha: From 0 (BDF2: fast vibrations die at once) to -1/2 (trapezoidal formula: energy is
            kept, but so is every disturbance); -0.2 is a good compromise.

    Source:
        [Till2019].

    Raises:
        RodError: dt is not positive or alpha outside [-1/2, 0].
    """
    _check(dt)
    if not -0.5 <= alpha <= 0.0:
        raise RodError(f"alpha is {alpha!r}; expected -0.5 (no damping) to 0 (BDF2)")
    return DifferenceFormula(
        c0=(1.5 + alpha) / (dt * (1.0 + alpha)),
        c1=-2.0 / dt,
        c2=(0.5 + alpha) / (dt * (1.0 + alpha)),
        d1=alpha / (1.0 + alpha),
    )


def backward_euler(dt: float) -> DifferenceFormula:
    """Return ``z_t = (z(k) - z(k-1))/dt``, which needs no past: for the first step.

    A single step of first order leaves an error of second order in all that follows.

    Raises:
        RodError: dt is not positive.
    """
    _check(dt)
    return DifferenceFormula(1.0 / dt, -1.0 / dt, 0.0, 0.0)


class CommandRates:
    """Rates of commanded lengths, by the same formula as all other rates.

    Args:
        value: The lengths, at rest until now, shape (n,), [m].
    """

    def __init__(self, value: Array) -> None:
        self.value, self.old, self.rate = value.copy(), value.copy(), np.zeros_like(value)
        self._next, self._next_rate = self.value, self.rate

    def propose(self, formula: DifferenceFormula, value: Array) -> Array:
        """Return the rates, shape (n,), [m/s], if these are the next values."""
        self._next = value.copy()
        self._next_rate = (
            formula.c0 * value
            + formula.c1 * self.value
            + formula.c2 * self.old
            + formula.d1 * self.rate
        )
        return self._next_rate

    def accept(self) -> None:
        """Keep the last proposed values: the step was accepted."""
        self.old, self.value, self.rate = self.value, self._next, self._next_rate


def _check(dt: float) -> None:
    if not (math.isfinite(dt) and dt > 0.0):
        raise RodError(f"time step is {dt!r} s; expected a finite number > 0")
