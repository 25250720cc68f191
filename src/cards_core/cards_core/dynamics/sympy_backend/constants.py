"""Numbers of a robot as exact SymPy numbers, or as named parameters with a table of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from cards_core.dynamics.sympy_backend.options import Constants, Parameters
from cards_core.spatial import matrix_quaternion
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

    A decimal of at most `DIGITS` digits or a fraction with a denominator of at most 1000, if
    within `ULPS` roundings, else all digits of the shortest decimal that reads back as the float.
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


DENOMINATOR = 10**8
"""Largest denominator of the numbers that general rotations are made of: errors below 1e-16."""


def exact_axis(axis: Vector3) -> Expr:
    """Return a unit vector of exactly unit length, (3, 1).

    Short numbers and roots of 2 and 3 where these fit; else the stereographic projection of two
    rational numbers, ``(2 x, 2 y, 1 - x^2 - y^2) / (1 + x^2 + y^2)``, whose length is exactly 1:
    what cancels for unit vectors must do so for these, or expressions fill with rounding.
    """
    simple = sp.Matrix([_direction_entry(float(x)) for x in axis])
    if simple.dot(simple) == 1:
        return simple
    pole = int(np.argmax(np.abs(axis)))
    sign = 1 if axis[pole] > 0 else -1
    x, y = (
        _simple_rational(float(axis[(pole + k) % 3]) / (1.0 + abs(float(axis[pole]))))
        for k in (1, 2)
    )
    out = sp.zeros(3, 1)
    scale = 1 + x * x + y * y
    out[pole] = sign * (2 - scale) / scale
    out[(pole + 1) % 3] = 2 * x / scale
    out[(pole + 2) % 3] = 2 * y / scale
    return out


def exact_rotation(rotation: Matrix3) -> Expr:
    """Return a rotation matrix that is exactly orthogonal, (3, 3).

    Entries as in `exact_axis` where these fit; else that of a quaternion of rational numbers,
    divided by its square.
    """
    simple = sp.Matrix(3, 3, lambda i, j: _direction_entry(float(rotation[i, j])))
    if simple.T * simple == sp.eye(3):
        return simple
    quaternion = matrix_quaternion(rotation)
    pivot = float(quaternion[np.argmax(np.abs(quaternion))])
    w, x, y, z = (_simple_rational(float(part) / pivot) for part in quaternion)
    square = w * w + x * x + y * y + z * z
    return (
        sp.Matrix(
            [
                [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
            ]
        )
        / square
    )


def _direction_entry(value: float) -> Expr:
    if abs(value) < 1e-15:
        return sp.Integer(0)
    for number, expr in _ROOTS:
        if abs(value - number) < 1e-15:
            return expr
    return exact(value)


def _simple_rational(value: float) -> Expr:
    if abs(value) < 1e-15:
        return sp.Integer(0)
    fraction = Fraction(value).limit_denominator(DENOMINATOR)
    return sp.Rational(fraction.numerator, fraction.denominator)


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
        """Return a number or a symbol ``name``; what is zero stays zero.

        Args:
            value: The number, SI units.
            name: Name of the symbol.
            meaning: What the symbol stands for, with unit.
            positive: Whether the symbol is positive; else real.
        """
        number = self.number(value)
        if self.parameters == "numbers" or number == 0:
            return number
        symbol = sp.Symbol(name, positive=True) if positive else sp.Symbol(name, real=True)
        self.values[symbol] = number
        self.meaning[symbol] = meaning
        return symbol

    def vector(self, values: Vector3, name: str, meaning: str) -> Expr:
        """Return a vector; its symbols are ``name`` with x, y, z appended.

        Args:
            values: Shape (3,), SI units.
            name: Name of the symbols without the axis.
            meaning: What they stand for, with unit.

        Returns:
            Shape (3, 1).
        """
        return sp.Matrix(
            [
                self.scalar(value, name + axis, f"{meaning}, {axis}")
                for value, axis in zip(self._without_rounding_errors(values), XYZ, strict=True)
            ]
        )

    def inertia(self, tensor: Matrix3, number: int, text: str) -> Expr:
        """Return an inertia tensor; its symbols are ``I_1xx`` and so on.

        Args:
            tensor: Inertia tensor, shape (3, 3), [kg m^2].
            number: Number of the body, part of the names.
            text: What the symbols stand for, with unit.

        Returns:
            Shape (3, 3), symmetric.
        """
        tensor = self._without_rounding_errors(tensor)
        out = sp.zeros(3, 3)
        for i in range(3):
            for j in range(i, 3):
                out[i, j] = out[j, i] = self.scalar(
                    tensor[i, j], f"I_{number}{XYZ[i]}{XYZ[j]}", f"{text}, {XYZ[i]}{XYZ[j]}"
                )
        return out

    def axis(self, axis: Vector3) -> Expr:
        """Return a unit vector: always numbers."""
        if self.constants == "binary":
            return sp.Matrix([self.number(float(x)) for x in axis])
        return exact_axis(np.asarray(axis, dtype=float))

    def rotation(self, rotation: Matrix3) -> Expr:
        """Return a rotation matrix: always numbers."""
        if self.constants == "binary":
            return sp.Matrix(3, 3, lambda i, j: self.number(float(rotation[i, j])))
        return exact_rotation(np.asarray(rotation, dtype=float))

    def _without_rounding_errors(self, values: Array) -> Array:
        """Remove what the rounding of rotations left of zeros."""
        array = np.asarray(values, dtype=float)
        if self.constants == "binary":
            return array
        smallest = max(1e-15 * float(np.abs(array).max(initial=0.0)), 1e-18)
        return np.where(np.abs(array) < smallest, 0.0, array)
