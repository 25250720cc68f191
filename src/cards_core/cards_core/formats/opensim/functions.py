"""Functions of one coordinate: constant, linear, splines, polynomials.

`SimmSpline` is the cubic spline of Forsythe, Malcolm and Moler: its third derivatives at the ends
are those of the cubics through the first and the last four points. Outside its points every spline
goes on along its tangent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.interpolate import CubicSpline

from cards_core.formats.opensim.fields import number, sequence
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.typing import Array

Line: TypeAlias = tuple[float, float]
"""(a, b) of ``a q + b``."""


class Function(ABC):
    """A function of one coordinate."""

    @abstractmethod
    def __call__(self, q: float) -> float:
        """Return the value at a coordinate."""

    @property
    def line(self) -> Line | None:
        """(a, b) if the function is ``a q + b`` everywhere, else None."""
        return None


@dataclass(frozen=True)
class Linear(Function):
    """``a q + b``."""

    a: float
    b: float

    def __call__(self, q: float) -> float:
        """See `Function`."""
        return self.a * q + self.b

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        return self.a, self.b


class Spline(Function):
    """A cubic spline with tangents beyond its ends.

    Args:
        x: Increasing, shape (n,), n >= 2.
        y: Shape (n,).
        natural: Zero curvature at the ends; else `SimmSpline`'s condition.
    """

    def __init__(self, x: Array, y: Array, *, natural: bool = False) -> None:
        self._x, self._y = x, y
        if len(x) == 2:
            slope = float((y[1] - y[0]) / (x[1] - x[0]))
            self._slopes = (slope, slope)
            self._spline: Any = None
            return
        ends: Any = "natural" if natural else _simm_ends(x, y)
        self._spline = spline = CubicSpline(x, y, bc_type=ends)
        self._slopes = float(spline(x[0], 1)), float(spline(x[-1], 1))

    def __call__(self, q: float) -> float:
        """See `Function`."""
        first, last = float(self._x[0]), float(self._x[-1])
        if q < first:
            return float(self._y[0]) + self._slopes[0] * (q - first)
        if q > last:
            return float(self._y[-1]) + self._slopes[1] * (q - last)
        if self._spline is None:
            return float(self._y[0]) + self._slopes[0] * (q - first)
        return float(self._spline(q))

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        if np.ptp(self._y) == 0.0:
            return 0.0, float(self._y[0])
        if len(self._x) == 2:
            slope = self._slopes[0]
            return float(slope), float(self._y[0] - slope * self._x[0])
        return None


def _simm_ends(x: Array, y: Array) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return second derivatives at the ends that give the ends' third derivatives of `SimmSpline`.

    The spline depends linearly on the two second derivatives; its third derivatives in the first
    and the last interval are to be those of the cubics through four points (of zero for n = 3).
    """

    def third(ends: tuple[float, float]) -> Array:
        spline = CubicSpline(x, y, bc_type=((2, ends[0]), (2, ends[1])))
        return np.array([6.0 * spline.c[0, 0], 6.0 * spline.c[0, -1]])

    wanted = np.zeros(2)
    if len(x) > 3:
        wanted = np.array([6.0 * _divided(x[:4], y[:4]), 6.0 * _divided(x[-4:], y[-4:])])
    base = third((0.0, 0.0))
    matrix = np.column_stack([third((1.0, 0.0)) - base, third((0.0, 1.0)) - base])
    first, last = np.linalg.lstsq(matrix, wanted - base, rcond=None)[0]
    return (2, float(first)), (2, float(last))


def _divided(x: Array, y: Array) -> float:
    """Third divided difference of four points."""
    values = y
    for order in range(1, 4):
        values = np.diff(values) / (x[order:] - x[:-order])
    return float(values[0])


class PiecewiseLinear(Function):
    """Straight lines between points; the first and the last go on.

    Args:
        x: Increasing, shape (n,), n >= 2.
        y: Shape (n,).
    """

    def __init__(self, x: Array, y: Array) -> None:
        self._x, self._y = x, y

    def __call__(self, q: float) -> float:
        """See `Function`."""
        i = int(np.clip(np.searchsorted(self._x, q) - 1, 0, len(self._x) - 2))
        x, y = self._x, self._y
        return float(y[i] + (q - x[i]) * (y[i + 1] - y[i]) / (x[i + 1] - x[i]))

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        slopes = np.diff(self._y) / np.diff(self._x)
        if np.ptp(slopes) == 0.0:
            return float(slopes[0]), float(self._y[0] - slopes[0] * self._x[0])
        return None


@dataclass(frozen=True, eq=False)
class Polynomial(Function):
    """``c0 q^n + ... + cn``, the highest power first."""

    coefficients: Array

    def __call__(self, q: float) -> float:
        """See `Function`."""
        return float(np.polyval(self.coefficients, q))

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        if np.any(self.coefficients[:-2]):
            return None
        padded = np.concatenate([[0.0], self.coefficients])
        return float(padded[-2]), float(padded[-1])


@dataclass(frozen=True)
class Scaled(Function):
    """``scale f(q)``."""

    scale: float
    inner: Function

    def __call__(self, q: float) -> float:
        """See `Function`."""
        return self.scale * self.inner(q)

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        inner = self.inner.line
        return None if inner is None else (self.scale * inner[0], self.scale * inner[1])


@dataclass(frozen=True)
class Composed(Function):
    """``outer(inner(q))``: the function of a coordinate that is coupled to another."""

    outer: Function
    inner: Function

    def __call__(self, q: float) -> float:
        """See `Function`."""
        return self.outer(self.inner(q))

    @property
    def line(self) -> Line | None:
        """See `Function`."""
        outer, inner = self.outer.line, self.inner.line
        if outer is None or (inner is None and outer[0] != 0.0):
            return None
        slope, offset = inner or (0.0, 0.0)
        return outer[0] * slope, outer[0] * offset + outer[1]


KINDS = (
    "Constant",
    "LinearFunction",
    "SimmSpline",
    "NaturalCubicSpline",
    "PiecewiseLinearFunction",
    "PolynomialFunction",
    "MultiplierFunction",
)
"""Elements that are functions."""


def function_in(element: XmlElement) -> Function | None:
    """Return the function that is a child of an element, or of its ``<function>``, or None.

    Raises:
        DescriptionError: A function of an unknown kind, or one that is damaged.
    """
    inner = element.child("function")
    if inner is not None:
        kinds = list(inner)
        if len(kinds) > 1:
            raise kinds[1].error("second function", "one function")
        return parse_function(kinds[0]) if kinds else None
    for child in element:
        if child.tag in KINDS:
            return parse_function(child)
        if child.get("name") == "function":
            raise child.error(f"unknown function <{shorten(child.tag)}>", ", ".join(KINDS))
    return None


def parse_function(element: XmlElement) -> Function:
    """Return the function that an element states.

    Raises:
        DescriptionError: Of an unknown kind, or damaged.
    """
    match element.tag:
        case "Constant":
            return Linear(0.0, number(element, "value"))
        case "LinearFunction":
            values = sequence(element, "coefficients")
            if len(values) != 2:
                raise element.error(f"{len(values)} coefficients", "2: slope and offset")
            return Linear(float(values[0]), float(values[1]))
        case "PolynomialFunction":
            values = sequence(element, "coefficients")
            if not 1 <= len(values) <= 50:
                raise element.error(f"{len(values)} coefficients", "1 to 50")
            return Polynomial(values)
        case "SimmSpline" | "NaturalCubicSpline":
            x, y = _points(element)
            return Spline(x, y, natural=element.tag == "NaturalCubicSpline")
        case "PiecewiseLinearFunction":
            return PiecewiseLinear(*_points(element))
        case "MultiplierFunction":
            scaled = function_in(element)
            if scaled is None:
                raise element.error("no function to multiply", "<function>")
            return Scaled(number(element, "scale", 1.0), scaled)
        case _:
            raise element.error(f"unknown function <{shorten(element.tag)}>", ", ".join(KINDS))


def _points(element: XmlElement) -> tuple[Array, Array]:
    x, y = sequence(element, "x"), sequence(element, "y")
    if len(x) != len(y):
        raise element.error(f"{len(x)} numbers in <x>, {len(y)} in <y>", "equally many")
    if len(x) < 2:
        raise element.error(f"{len(x)} points", "at least 2")
    if np.any(np.diff(x) <= 0.0):
        raise element.error("<x> does not increase", "increasing numbers")
    return x, y
