"""Common subexpressions for code, and for readers the short symbols that textbooks write.

``s_1 = sin q_1``, ``c_12 = cos(q_1 + q_2)``, ``d_k = |B - A|`` of the straight pieces of muscles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sympy as sp
from sympy.simplify.cse_main import tree_cse

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.simplify import is_polynomial

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


class Abbreviations:
    """Replaces sines, cosines and square roots by symbols, the same ones every time.

    Attributes:
        waves: Symbol to sine or cosine.
        distances: Symbol to the root it stands for, its inner waves replaced.
        latex: Symbol to its name in LaTeX.
    """

    def __init__(self) -> None:
        self.waves: dict[Expr, Expr] = {}
        self.distances: dict[Expr, Expr] = {}
        self.latex: dict[Expr, str] = {}
        self._of_wave: dict[Expr, Expr] = {}
        self._of_square: dict[Expr, Expr] = {}

    def apply(self, expression: Expr) -> Expr:
        """Return an expression with symbols instead of sines, cosines and roots of expressions."""
        expression = sp.sympify(expression)
        roots = [
            power
            for power in sp.ordered(expression.atoms(sp.Pow))
            if power.exp.is_Rational and power.exp.q == 2 and not power.base.is_number
        ]
        for power in roots:
            if power.base not in self._of_square:
                symbol = sp.Symbol(f"d_{len(self.distances) + 1}", positive=True)
                self._of_square[power.base] = symbol
                self.distances[symbol] = sp.sqrt(self._without_waves(power.base))
        shorter = expression.xreplace(
            {power: self._of_square[power.base] ** (2 * power.exp) for power in roots}
        )
        return self._without_waves(shorter)

    def _without_waves(self, expression: Expr) -> Expr:
        for wave in sp.ordered(expression.atoms(sp.sin, sp.cos)):
            if wave not in self._of_wave and is_polynomial(wave):
                symbol = self._wave_symbol(wave)
                self._of_wave[wave] = symbol
                self.waves[symbol] = wave
        return expression.xreplace(self._of_wave)

    def _wave_symbol(self, wave: Expr) -> Expr:
        letter = "s" if isinstance(wave, sp.sin) else "c"
        terms = []
        for term in sp.Add.make_args(wave.args[0]):
            count, angle = term.as_coeff_Mul()
            terms.append((int(str(angle).partition("_")[2]), int(count)))
        terms.sort(key=lambda item: (item[1] < 0, item[0]))
        wide = any(number > 9 for number, _ in terms)
        name, latex = "", ""
        for number, count in terms:
            sign = "-" if count < 0 else ("+" if latex and (wide or abs(count) > 1) else "")
            factor = f"{abs(count)}\\cdot " if abs(count) > 1 else ""
            latex += f"{sign}{factor}{number}"
            part = f"{abs(count)}x{number}" if abs(count) > 1 else str(number)
            name += ("m" if count < 0 else "_" if name and (wide or abs(count) > 1) else "") + part
        symbol = sp.Symbol(f"{letter}_{name}", real=True)
        self.latex[symbol] = f"{letter}_{{{latex}}}"
        return symbol
