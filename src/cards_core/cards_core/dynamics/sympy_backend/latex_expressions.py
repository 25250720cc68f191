"""Expressions as LaTeX, in lines that fit a page.

SymPy's printer writes one line of any length. Here sums are broken between terms, also those in
brackets, and long numbers are rounded for the eye.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr

DIGITS = 8
"""Digits of numbers that are neither short decimals nor short fractions."""

LINE = 78
"""Characters of mathematics that fit on a line of a page."""


class LatexExpressions:
    """Writes expressions.

    Args:
        names: Symbol to its LaTeX, where that is not what SymPy would write.
    """

    def __init__(self, names: Mapping[Expr, str]) -> None:
        self._names = names

    def write(self, expression: Expr) -> str:
        """Return an expression in one line."""
        terms = [self._signed(term) for term in _terms(expression)]
        return _joined(terms)

    def lines(self, expression: Expr, width: int = LINE) -> list[str]:
        """Return an expression in lines; each but the first starts with its sign."""
        terms: list[tuple[str, str]] = []
        for term in _terms(expression):
            signed = self._signed(term)
            if _width(signed[1]) > width:
                terms += self._bracketed(term) or [signed]
            else:
                terms.append(signed)
        out: list[str] = []
        line: list[tuple[str, str]] = []
        length = 0
        for sign, body in terms:
            if line and length + _width(body) + 2 > width:
                out.append(_joined(line, first=not out))
                line, length = [], 0
            line.append((sign, body))
            length += _width(body) + 2
        return [*out, _joined(line, first=not out)]

    def _bracketed(self, term: Expr) -> list[tuple[str, str]]:
        """The terms of a product with one sum, the first and last with what stands around it."""
        sums = [factor for factor in term.args if factor.is_Add] if term.is_Mul else []
        if len(sums) != 1:
            return []
        factors = sorted((x for x in term.args if x != sums[0]), key=_rank)
        before = sp.Mul(*(x for x in factors if _rank(x) < 4))
        after = sp.Mul(*(x for x in factors if _rank(x) == 4))
        sign, head = ("+", "") if before == 1 else self._signed(before)
        head = rf"{head} \, \bigl(" if head and head != "1" else r"\bigl("
        inner = [self._signed(part) for part in _terms(sums[0])]
        first = _joined(inner[:1])
        tail = r"\bigr)" if after == 1 else rf"\bigr) \, {self._product(after)}"
        inner[0] = (sign, f"{head}{first}")
        inner[-1] = (inner[-1][0], f"{inner[-1][1]}{tail}")
        return inner

    def _signed(self, term: Expr) -> tuple[str, str]:
        if term.could_extract_minus_sign() and not term.is_Add:
            return "-", self._product(-term)
        return "+", self._product(term)

    def _product(self, term: Expr) -> str:
        """A product, with what has negative powers below a fraction line."""
        if term.is_Rational:
            return number(term)
        coefficient, rest = term.as_coeff_Mul(rational=True)
        powers = [factor.as_base_exp() for factor in sorted(rest.as_ordered_factors(), key=_rank)]
        over = [(base, power) for base, power in powers if not power.is_negative]
        alone = len(over) == 1 and coefficient == 1
        above = [self._power(base, power, alone=alone) for base, power in over]
        below = [
            self._power(base, -power, alone=False) for base, power in powers if power.is_negative
        ]
        split = coefficient.q != 1 and _is_short(coefficient)
        if below and split:
            below.insert(0, str(coefficient.q))
            coefficient = sp.Integer(coefficient.p)
        if coefficient != 1 or not above:
            above.insert(0, number(coefficient))
        top, bottom = (r" \, ".join(part) for part in (above, below))
        return rf"\frac{{{top}}}{{{bottom}}}" if below else top

    def _power(self, base: Expr, power: Expr, *, alone: bool) -> str:
        if power == sp.Rational(1, 2):
            return rf"\sqrt{{{self.write(base)}}}"
        if base.is_Add or base.is_Mul:
            text = self.write(base)
            if not (alone and power == 1):
                text = rf"\left({text}\right)"
        else:
            text = self._atom(base)
        if power == 1:
            return text
        if base.is_Symbol and text.startswith(r"\dot"):
            text = f"{{{text}}}"
        return f"{text}^{{{self.write(power)}}}"

    def _atom(self, expression: Expr) -> str:
        if expression.is_Symbol:
            return symbol(expression, self._names)
        if expression.is_Rational:
            return number(expression)
        if isinstance(expression, sp.sin | sp.cos):
            name = "sin" if isinstance(expression, sp.sin) else "cos"
            return rf"\{name}\left({self.write(expression.args[0])}\right)"
        if expression.is_Pow:
            return self._product(expression)
        return str(sp.latex(expression))


def _rank(factor: Expr) -> int:
    """Order of factors: parameters, coordinates, sums, waves, velocities."""
    base = factor.as_base_exp()[0]
    if not base.is_Symbol:
        return 2
    return {"q": 1, "c": 3, "s": 3, "qd": 4}.get(str(base).partition("_")[0], 0)


def symbol(item: Expr, names: Mapping[Expr, str]) -> str:
    """Return the LaTeX of a symbol: ``qd_1`` is a rate, ``r_1_2x`` has two indices."""
    if item in names:
        return names[item]
    letter, _, index = str(item).partition("_")
    if not index:
        digits = letter.lstrip("abcdefghijklmnopqrstuvwxyz")
        stem = letter[: len(letter) - len(digits)]
        return f"{stem}_{{{digits}}}" if digits and stem else letter
    index = re.sub(r"(?<=\d)([xyz]+)$", r"\\mathrm{\1}", index.strip("_"))
    index = ",".join(_escaped(part) for part in index.split("_"))
    return rf"\dot{{q}}_{{{index}}}" if letter == "qd" else f"{letter}_{{{index}}}"


def number(value: Expr) -> str:
    """Return a rational number: a short fraction, a decimal, or `DIGITS` of its digits."""
    if value.is_Integer:
        return str(value) if len(str(value)) <= DIGITS + 4 else _rounded(value)
    if _is_short(value):
        sign = "-" if value < 0 else ""
        return rf"{sign}\frac{{{abs(value.p)}}}{{{value.q}}}"
    return _rounded(value)


def _is_short(value: Expr) -> bool:
    return bool(value.q < 1000 and abs(value.p) < 1000)


def _rounded(value: Expr) -> str:
    text = f"{float(value):.{DIGITS}g}"
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _terms(expression: Expr) -> list[Expr]:
    return list(expression.as_ordered_terms()) if expression.is_Add else [expression]


def _joined(terms: list[tuple[str, str]], *, first: bool = True) -> str:
    text = " ".join(f"{sign} {body}" for sign, body in terms)
    return text[2:] if first and text.startswith("+ ") else text


def _width(text: str) -> int:
    """About how many characters wide a formula is."""
    top = re.sub(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{(?:[^{}]|\{[^{}]*\})*\}", r"\1", text)
    return len(re.sub(r"\\[a-zA-Z]+|[{}_^\\, ]", "", top)) + top.count(" ") // 2


def _escaped(text: str) -> str:
    if text.startswith(r"\mathrm") or re.fullmatch(r"\d+(\\mathrm\{[xyz]+\})?", text):
        return text
    return r"\mathrm{" + text.replace("_", r"\_") + "}"
