"""The few functions that actuator models are written in, so that one text serves two evaluators.

A model calls ``m.exp``, ``m.where`` and so on: with `NumpyArithmetic` on arrays over the muscles
of one type (the reference), with the CasADi counterpart in `symbolic` on one muscle at a time.
CasADi evaluates both branches of ``where`` and multiplies by 0 or 1, so a branch that is not
taken must be finite too: arguments of logarithms, roots and quotients are limited first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np

Real: TypeAlias = Any
"""An array over the muscles of one type, or one CasADi expression."""


class Arithmetic(Protocol):
    """Functions of real arguments, elementwise."""

    def exp(self, x: Real, /) -> Real:
        """Exponential."""

    def log(self, x: Real, /) -> Real:
        """Natural logarithm."""

    def sqrt(self, x: Real, /) -> Real:
        """Square root."""

    def tanh(self, x: Real, /) -> Real:
        """Hyperbolic tangent."""

    def asinh(self, x: Real, /) -> Real:
        """Inverse of the hyperbolic sine."""

    def minimum(self, x: Real, y: Real, /) -> Real:
        """Return the smaller one."""

    def maximum(self, x: Real, y: Real, /) -> Real:
        """Return the larger one."""

    def where(self, condition: Real, x: Real, y: Real, /) -> Real:
        """``x`` where the condition holds, else ``y``."""


class NumpyArithmetic:
    """The functions on NumPy arrays."""

    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    sqrt = staticmethod(np.sqrt)
    tanh = staticmethod(np.tanh)
    asinh = staticmethod(np.arcsinh)
    minimum = staticmethod(np.minimum)
    maximum = staticmethod(np.maximum)
    where = staticmethod(np.where)


NUMPY: Arithmetic = NumpyArithmetic()


def clip(m: Arithmetic, x: Real, low: Real, high: Real) -> Real:
    """Return x limited to low .. high; ``high`` wins where they cross."""
    return m.minimum(m.maximum(x, low), high)


def increasing_root(
    m: Arithmetic,
    residual: Callable[[Real], tuple[Real, Real, Real]],
    start: Real,
    bracket: tuple[Real, Real],
    iterations: int,
) -> Real:
    """Root of an increasing function in a bracket by Halley's method with bisection.

    Halley's step is Newton's where the curvature is zero, and exact for hyperbolas, the form of
    force-velocity curves. A step that leaves the bracket is replaced by the bracket's middle, so
    that every iterate is inside whatever the function does. The number of iterations is fixed.

    Args:
        m: Evaluator.
        residual: Returns value, slope (> 0) and curvature; the latter may be approximate.
        start: First iterate, inside the bracket.
        bracket: Where the residual is <= 0, and where it is >= 0.
        iterations: Evaluations of the residual.
    """
    x, (low, high) = start, bracket
    for _ in range(iterations):
        value, slope, curvature = residual(x)
        low = m.where(value < 0.0, x, low)
        high = m.where(value > 0.0, x, high)
        # at most twice Newton's step
        better = x - value / m.maximum(slope - 0.5 * value * curvature / slope, 0.5 * slope)
        middle = 0.5 * (low + high)
        x = m.where(better < low, middle, m.where(better > high, middle, better))
    return x


def root_with_unit_slope(
    m: Arithmetic,
    residual: Callable[[Real], tuple[Real, Real, Real]],
    start: Real,
    iterations: int,
) -> Real:
    """Root of a function whose slope is at least 1: one backward Euler step of ``x' = f(x)``.

    With ``residual = x - x0 - dt f(x)`` and f decreasing, the root lies between any ``start`` and
    ``start - residual(start)``.
    """
    other = start - residual(start)[0]
    bracket = (m.minimum(start, other), m.maximum(start, other))
    return increasing_root(m, residual, start, bracket, iterations)
