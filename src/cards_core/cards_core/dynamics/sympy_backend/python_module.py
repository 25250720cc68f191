"""A robot's equations as a Python module that needs nothing but NumPy."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp
from sympy.printing.pycode import PythonCodePrinter

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.model import SymbolicModel
from cards_core.dynamics.sympy_backend.quantities import Quantity, select
from cards_core.dynamics.sympy_backend.subexpressions import common_subexpressions

_HEAD = '''"""Equations of {name}: M qdd + C + G = -L' f, tension f >= 0 pulls, L = dl/dq; SI.

q, {nq} coordinates: {q}
qd, {nv} velocities: {qd}{muscles}
"""

from math import cos, sin, sqrt

import numpy as np
'''


class _Printer(PythonCodePrinter):  # type: ignore[misc]  # SymPy is untyped here
    """Python with plain names and every rational number as the nearest float."""

    def __init__(self) -> None:
        super().__init__({"fully_qualified_modules": False})

    def _print_Rational(self, value: Expr) -> str:
        # Python divides integers of any size correctly rounded
        return repr(int(value.p) / int(value.q))

    def _print_Integer(self, value: Expr) -> str:
        # alone in a row of results; in sums and products it is as good
        return repr(int(value)) if abs(value) < 2**53 else repr(float(value))

    def _print_Mul(self, value: Expr) -> str:
        coefficient, rest = value.as_coeff_Mul(rational=True)
        if coefficient in (1, -1) or coefficient.is_Integer:
            return str(super()._print_Mul(value))
        body = self.parenthesize(rest, sp.printing.precedence.PRECEDENCE["Mul"])
        return f"{self._print_Rational(coefficient)}*{body}"


def python_module(model: SymbolicModel, quantities: Iterable[str] | None = None) -> str:
    """Return the text of a module with one function per quantity.

    Functions take ``q`` or ``q, qd`` and return an array. Parameter symbols become constants of
    the module, which may be changed.

    Args:
        model: The robot.
        quantities: Names of `QUANTITIES` (default: `USUAL`).

    Raises:
        UnknownNameError: No quantity has this name.
    """
    parts = [_function(quantity, model) for quantity in select(model, quantities)]
    muscles = ""
    if model.muscle_names:
        muscles = f"\n{len(model.muscle_names)} muscles: {_listed(model.muscle_names)}"
    head = _HEAD.format(
        name=_plain(model.robot.name),
        nq=model.tree.nq,
        nv=model.tree.nv,
        q=_listed(model.tree.position_names),
        qd=_listed(model.tree.velocity_names),
        muscles=muscles,
    )
    printer = _Printer()
    constants = [
        f"{name} = {printer.doprint(value)}  # {_plain(model.meaning[name])}\n"
        for name, value in model.parameters.items()
        if any(name in used for _, used in parts)
    ]
    if constants:
        head += "\n" + "".join(constants)
    return "\n\n".join([head, *(text for text, _ in parts)])


def _function(quantity: Quantity, model: SymbolicModel) -> tuple[str, set[Expr]]:
    """Text of a function, and the symbols in it."""
    flat = [entry for matrix in quantity.value(model) for entry in matrix]
    used = set[Expr]().union(*(entry.free_symbols for entry in flat))
    replacements, flat = common_subexpressions(flat, "x")
    printer = _Printer()
    argument = "q, qd" if quantity.velocity else "q"
    lines = [f"def {quantity.variable.title}({argument}):", f'    """Return: {quantity.text}."""']
    lines += _unpacked("q", model.q)
    if quantity.velocity:
        lines += _unpacked("qd", model.qd)
    lines += [f"    {name} = {printer.doprint(expr)}" for name, expr in replacements]
    lines.append("    values = [")
    lines += [f"        {printer.doprint(entry)}," for entry in flat]
    lines += [
        "    ]",
        f"    return np.array(values, dtype=float).reshape({quantity.shape(model)})",
    ]
    return "\n".join(lines) + "\n", used


def _unpacked(name: str, symbols: tuple[Expr, ...]) -> list[str]:
    if not symbols:
        return []
    return [f"    {', '.join(str(item) for item in symbols)}{',' * (len(symbols) == 1)} = {name}"]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(_plain(name) for name in names)


def _plain(text: str) -> str:
    """Names as they are, without what would end a docstring or a comment."""
    return text.replace("\\", "/").replace('"', "'").replace("\n", " ")
