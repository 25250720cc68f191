"""The few functions that actuator models are written in, so that one text serves all evaluators.

A model calls ``m.exp``, ``m.where`` and so on: with `NumpyArithmetic` on arrays over the muscles
of one type (the reference), with `DualArithmetic` on arrays with their derivative along one
direction, with the CasADi counterpart in `symbolic` on one muscle at a time.
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
        """Return ``x`` where the condition holds, else ``y``.

        Args:
            condition: Elementwise, shape (n,).
            x: Shape (n,).
            y: Shape (n,).
        """


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


class Dual:
    """Values and their derivatives along one direction (forward differentiation), elementwise.

    Attributes:
        value: Array.
        slope: Array, or 0.0 for a constant.
    """

    __array_ufunc__ = None  # arrays leave operators to this class

    def __init__(self, value: Any, slope: Any = 0.0) -> None:
        self.value = value
        self.slope = slope

    @staticmethod
    def of(x: Any) -> Dual:
        """Return x, or x as a constant."""
        return x if isinstance(x, Dual) else Dual(x)

    def __add__(self, other: Any) -> Dual:
        other = Dual.of(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Any) -> Dual:
        other = Dual.of(other)
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = Dual.of(other)
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)

    def __truediv__(self, other: Any) -> Dual:
        other = Dual.of(other)
        value = self.value / other.value
        return Dual(value, (self.slope - value * other.slope) / other.value)

    def __rsub__(self, other: Any) -> Dual:
        return Dual.of(other) - self

    def __rtruediv__(self, other: Any) -> Dual:
        return Dual.of(other) / self

    def __pow__(self, power: int) -> Dual:
        return Dual(self.value**power, power * self.value ** (power - 1) * self.slope)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    __radd__ = __add__
    __rmul__ = __mul__

    def __lt__(self, other: Any) -> Any:
        return self.value < Dual.of(other).value

    def __gt__(self, other: Any) -> Any:
        return self.value > Dual.of(other).value

    def __eq__(self, other: object) -> Any:
        return self.value == Dual.of(other).value

    __hash__ = None  # type: ignore[assignment]  # as arrays


class DualArithmetic:
    """The functions on `Dual`; kinks have the slope of the side that is taken."""

    @staticmethod
    def exp(x: Real, /) -> Real:
        """See `Arithmetic`."""
        value = np.exp(Dual.of(x).value)
        return Dual(value, value * Dual.of(x).slope)

    @staticmethod
    def log(x: Real, /) -> Real:
        """See `Arithmetic`."""
        x = Dual.of(x)
        return Dual(np.log(x.value), x.slope / x.value)

    @staticmethod
    def sqrt(x: Real, /) -> Real:
        """See `Arithmetic`; the slope at zero is that of a constant."""
        x = Dual.of(x)
        value = np.sqrt(x.value)
        return Dual(value, 0.5 * x.slope / np.where(value > 0.0, value, np.inf))

    @staticmethod
    def tanh(x: Real, /) -> Real:
        """See `Arithmetic`."""
        value = np.tanh(Dual.of(x).value)
        return Dual(value, (1.0 - value * value) * Dual.of(x).slope)

    @staticmethod
    def asinh(x: Real, /) -> Real:
        """See `Arithmetic`."""
        x = Dual.of(x)
        return Dual(np.arcsinh(x.value), x.slope / np.sqrt(1.0 + x.value * x.value))

    @staticmethod
    def minimum(x: Real, y: Real, /) -> Real:
        """See `Arithmetic`."""
        return DualArithmetic.where(Dual.of(x) < y, x, y)

    @staticmethod
    def maximum(x: Real, y: Real, /) -> Real:
        """See `Arithmetic`."""
        return DualArithmetic.where(Dual.of(x) > y, x, y)

    @staticmethod
    def where(condition: Real, x: Real, y: Real, /) -> Real:
        """See `Arithmetic`."""
        x, y = Dual.of(x), Dual.of(y)
        value = np.where(condition, x.value, y.value)
        return Dual(value, np.where(condition, x.slope, y.slope))


DUAL: Arithmetic = DualArithmetic()


def clip(m: Arithmetic, x: Real, low: Real, high: Real) -> Real:
    """Return x limited to low .. high; ``high`` wins where they cross.

    Args:
        m: Functions of real arguments.
        x: Shape (n,).
        low: Shape (n,) or a number.
        high: Shape (n,) or a number.
    """
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

    Args:
        m: Functions of real arguments.
        residual: Returns value and slope at x, shape (n,) each.
        start: Initial guess, shape (n,).
        iterations: Number of Newton iterations.
    """
    other = start - residual(start)[0]
    bracket = (m.minimum(start, other), m.maximum(start, other))
    return increasing_root(m, residual, start, bracket, iterations)
