"""Common subexpressions, and sums short enough for a compiler's recursion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp
from sympy.simplify.cse_main import tree_cse

from cards_core.dynamics.sympy_backend.constants import Expr

LONGEST_SUM = 200
"""Python's compiler recurses once per term of a sum; longer sums are split."""

FLOAT_DIGITS = 17
"""Decimals of this many digits read back as the same float."""

Replacements = list[tuple[Expr, Expr]]


def common_subexpressions(
    expressions: Sequence[Expr], prefix: str = "x", *, longest: int = LONGEST_SUM
) -> tuple[Replacements, list[Expr]]:
    """Return definitions in the order of use, and the expressions in terms of them.

    Repeated subtrees only: SymPy's search for common parts of sums and products takes time with
    the square of their number.

    Args:
        expressions: What to calculate.
        prefix: Of the names: ``x0``, ``x1``, ...
        longest: Sums with more terms are split.
    """
    names = sp.numbered_symbols(prefix, real=True)
    replacements, reduced = tree_cse(list(expressions), names, order="none")
    out: Replacements = []
    for name, value in replacements:
        out.append((name, _split(value, names, out, longest)))
    return out, [_split(value, names, out, longest) for value in reduced]


def for_lambdify(expressions: Sequence[Expr]) -> tuple[Replacements, list[Expr]]:
    """`common_subexpressions` as the argument ``cse`` of SymPy's ``lambdify``."""
    return common_subexpressions(expressions, "x_")


def with_floats(expression: Expr, memo: dict[Expr, Expr] | None = None) -> Expr:
    """Return an expression with its rational numbers rounded to floats; exponents stay.

    The numerators of exact numbers may be too large for a float where their quotient is not.
    """
    memo = {} if memo is None else memo
    if expression not in memo:
        memo[expression] = _rounded(expression, memo)
    return memo[expression]


def _rounded(expression: Expr, memo: dict[Expr, Expr]) -> Expr:
    if expression.is_Rational:
        small = expression.is_Integer and abs(expression) < 2**53
        return expression if small else sp.Float(expression, FLOAT_DIGITS)
    if expression.is_number:
        return expression.evalf(FLOAT_DIGITS)
    if expression.is_Pow:
        return sp.Pow(with_floats(expression.base, memo), expression.exp)
    if not expression.args:
        return expression
    return expression.func(*(with_floats(part, memo) for part in expression.args))


def _split(value: Expr, names: Iterator[Expr], out: Replacements, longest: int) -> Expr:
    """Split a sum with many terms into named partial sums."""
    while value.is_Add and len(value.args) > longest:
        parts = []
        for first in range(0, len(value.args), longest):
            name = next(names)
            out.append((name, sp.Add(*value.args[first : first + longest], evaluate=False)))
            parts.append(name)
        value = sp.Add(*parts)
    if not value.is_Add and value.args:
        split = [_split(part, names, out, longest) for part in value.args]
        return value.func(*split) if split != list(value.args) else value
    return value
