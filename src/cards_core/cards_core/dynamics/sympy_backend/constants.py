"""Numbers of a robot as exact SymPy numbers, or as named parameters with a table of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from cards_core.dynamics.sympy_backend.options import Constants, Parameters
from cards_core.typing import Array, Matrix3, Vector3

Expr = Any
"""A SymPy expression or matrix (SymPy's type information is partial)."""

DIGITS = 12
"""Decimals of up to this many digits are what a user wrote; longer ones are results."""

ULPS = 8
"""A result within this many units in the last place of a short number is that number."""

XYZ = "xyz"


def exact(value: float) -> Expr:
    """Return the shortest of the rational numbers that a float may stand for.

    A decimal of at most `DIGITS` digits or a fraction with a denominator of at most 1000, if within
    `ULPS` roundings, else all digits of the shortest decimal that reads back as the float.
    """
    if value == 0.0:
        return sp.Integer(0)
    margin = ULPS * math.ulp(value)
    for text in (repr(float(value)), f"{value:.{DIGITS}g}"):
        digits = text.partition("e")[0].replace(".", "").strip("-0")
        decimal = Fraction(text)
        if len(digits) <= DIGITS and abs(float(decimal) - value) <= margin:
            return sp.Rational(decimal.numerator, decimal.denominator)
    simple = Fraction(value).limit_denominator(1000)
    if simple and abs(float(simple) - value) <= margin:
        return sp.Rational(simple.numerator, simple.denominator)
    whole = Fraction(repr(float(value)))
    return sp.Rational(whole.numerator, whole.denominator)


_ROOTS = tuple(
    (sign * value, sign * expr)
    for sign in (1, -1)
    for value, expr in (
        (0.5, sp.Rational(1, 2)),
        (math.sqrt(0.5), sp.sqrt(2) / 2),
        (math.sqrt(0.75), sp.sqrt(3) / 2),
        (math.sqrt(1 / 3), sp.sqrt(3) / 3),
        (1.0, sp.Integer(1)),
    )
)


def exact_direction(value: float) -> Expr:
    """Return an entry of a unit vector: 0, 1, 1/2, roots of 2 and 3 within rounding, or `exact`."""
    if abs(value) < 1e-15:
        return sp.Integer(0)
    for number, expr in _ROOTS:
        if abs(value - number) < 1e-15:
            return expr
    return exact(value)


@dataclass(eq=False)
class ConstantTable:
    """Makes the constants of a robot.

    Attributes:
        parameters: Whether masses, lengths and inertias become symbols.
        constants: How floats become exact; see `SymbolicOptions`.
        values: Of the symbols that were made, in order.
        meaning: Of the symbols, with unit.
    """

    parameters: Parameters = "numbers"
    constants: Constants = "decimal"
    values: dict[Expr, Expr] = field(default_factory=dict)
    meaning: dict[Expr, str] = field(default_factory=dict)

    def number(self, value: float) -> Expr:
        """Return a plain number."""
        if self.constants == "binary":
            return sp.Rational(*float(value).as_integer_ratio())
        return exact(float(value))

    def scalar(self, value: float, name: str, meaning: str, *, positive: bool = False) -> Expr:
        """Return a number or a symbol ``name``; what is zero stays zero."""
        number = self.number(value)
        if self.parameters == "numbers" or number == 0:
            return number
        symbol = sp.Symbol(name, positive=True) if positive else sp.Symbol(name, real=True)
        self.values[symbol] = number
        self.meaning[symbol] = meaning
        return symbol

    def vector(self, values: Vector3, name: str, meaning: str) -> Expr:
        """Return a vector; its symbols are ``name`` with x, y, z appended."""
        return sp.Matrix(
            [
                self.scalar(value, name + axis, f"{meaning}, {axis}")
                for value, axis in zip(self._without_dust(values), XYZ, strict=True)
            ]
        )

    def inertia(self, tensor: Matrix3, number: int, text: str) -> Expr:
        """Return an inertia tensor; its symbols are ``I_1xx`` and so on."""
        tensor = self._without_dust(tensor)
        out = sp.zeros(3, 3)
        for i in range(3):
            for j in range(i, 3):
                out[i, j] = out[j, i] = self.scalar(
                    tensor[i, j], f"I_{number}{XYZ[i]}{XYZ[j]}", f"{text}, {XYZ[i]}{XYZ[j]}"
                )
        return out

    def direction(self, values: Array) -> Expr:
        """Return a unit vector or a rotation matrix: always numbers."""
        convert = self.number if self.constants == "binary" else exact_direction
        array = np.asarray(values, dtype=float)
        rows = array.reshape(len(array), -1)
        return sp.Matrix([[convert(float(x)) for x in row] for row in rows])

    def _without_dust(self, values: Array) -> Array:
        """Remove what the rounding of rotations left of zeros."""
        array = np.asarray(values, dtype=float)
        if self.constants == "binary":
            return array
        smallest = max(1e-15 * float(np.abs(array).max(initial=0.0)), 1e-18)
        return np.where(np.abs(array) < smallest, 0.0, array)
