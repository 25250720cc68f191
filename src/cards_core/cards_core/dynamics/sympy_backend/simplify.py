"""Simplification of expressions, in levels with a time limit: normal form of polynomials.

Expressions of rigid robots are polynomials in ``c_i = cos q_i``, ``s_i = sin q_i``, displacements,
quaternions and parameters, subject to

    s_i^2 = 1 - c_i^2,    w^2 = 1 - x^2 - y^2 - z^2,    sqrt(n)^2 = n

The leading monomials of these relations share no variable, so they are a Groebner basis, and
replacing their left sides until none is left gives the same polynomial for equal expressions
[Cox2015]_ chapter 2: zeros are found, and everything that cancels does.

For reading, products of joints with parallel axes are then written with sums of their angles
(``c_1 c_2 - s_1 s_2 = cos(q_1 + q_2)``), and ``c^2`` as ``1 - s^2``, where that has fewer terms.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import comb
from types import FrameType
from typing import Any

import sympy as sp
from sympy.polys.rings import ring

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.options import Progress, Simplification

_Poly = Any
_Terms = dict[tuple[int, ...], Any]


class NormalForm:
    """Brings expressions to normal form.

    Args:
        quaternions: The symbols (w, x, y, z) of every ball joint.
        parallel: Groups of angles of joints with parallel axes.
    """

    def __init__(
        self,
        quaternions: Sequence[Sequence[Expr]] = (),
        parallel: Sequence[Sequence[Expr]] = (),
    ) -> None:
        self._quaternions = [tuple(item) for item in quaternions]
        self._parallel = [tuple(group) for group in parallel if len(group) > 1]

    def __call__(self, expression: Expr) -> Expr:
        """Return the normal form, written with as few terms as the two rules above allow.

        Expressions with anything else than the functions above are returned as they are.
        """
        expression = sp.sympify(expression)
        if expression.is_Number or expression.is_Symbol:
            return expression
        try:
            return _Reduction(expression, self._quaternions, self._parallel).result()
        except _NotPolynomialError:
            return expression


def is_polynomial(expression: Expr) -> bool:
    """Return whether `NormalForm` understands every function in an expression."""
    try:
        for function in expression.atoms(sp.Function):
            if not isinstance(function, sp.sin | sp.cos):
                return False
            _combination(function.args[0])
    except _NotPolynomialError:
        return False
    return True


class _NotPolynomialError(Exception):
    """An expression that is no polynomial in the known functions."""


class _Reduction:
    """One expression on its way to normal form."""

    def __init__(
        self,
        expression: Expr,
        quaternions: list[tuple[Expr, ...]],
        parallel: list[tuple[Expr, ...]],
    ) -> None:
        self._angles, others, roots = _generators(expression)
        w_symbols = {item[0]: item for item in quaternions}
        for symbol in list(others):
            if symbol in w_symbols:
                others.update(dict.fromkeys(w_symbols[symbol]))
        self._gens: list[Expr] = []
        for angle in self._angles:
            self._gens += [sp.sin(angle), sp.cos(angle)]
        self._others = list(others)
        self._gens += self._others + list(roots)
        if not self._gens:
            self._gens = [sp.Symbol("unused")]
        names = [sp.Dummy() for _ in self._gens]
        self._ring = ring(names, sp.QQ)[0]
        self._slot = {gen: i for i, gen in enumerate(self._gens)}
        self._sine = {angle: 2 * i for i, angle in enumerate(self._angles)}
        self._memo: dict[Expr, _Poly] = {}
        self._groups = [[angle for angle in group if angle in self._sine] for group in parallel]
        self._expression = expression
        # what to replace: slot of the square, and its value
        self._relations: dict[int, _Poly] = {}
        for i in self._sine.values():
            self._relations[i] = 1 - self._ring.gens[i + 1] ** 2
        for w, item in w_symbols.items():
            if w in self._slot:
                x, y, z = (self._ring.gens[self._slot[symbol]] for symbol in item[1:])
                self._relations[self._slot[w]] = 1 - x**2 - y**2 - z**2
        for root in roots:
            self._relations[self._slot[root]] = self._ring(sp.QQ(int(root.base)))

    def result(self) -> Expr:
        """Return the normal form."""
        reduced = self._reduced(self._polynomial(self._expression))
        keyed: dict[Any, Any] = {(m, ()): c for m, c in reduced.terms()}
        for group in self._groups:
            if len(group) > 1:
                summed = self._summed(keyed, group)
                if len(summed) < len(keyed):
                    keyed = summed
        for angle in self._angles:
            keyed = self._swapped(keyed, self._sine[angle])
        parts = [
            self._monomial(m, c) * sp.Mul(*(_wave(*wave) for wave in waves))
            for (m, waves), c in keyed.items()
        ]
        return sp.Add(*parts)

    def _monomial(self, exponents: tuple[int, ...], coefficient: Any) -> Expr:
        factors = [sp.Rational(int(coefficient.numerator), int(coefficient.denominator))]
        factors += [g**e for g, e in zip(self._gens, exponents, strict=True) if e]
        return sp.Mul(*factors)

    # Expression to polynomial ------------------------------------------------------------------

    def _polynomial(self, expression: Expr) -> _Poly:
        found = self._memo.get(expression)
        if found is None:
            found = self._memo[expression] = self._convert(expression)
        return found

    def _convert(self, expression: Expr) -> _Poly:
        gens = self._ring.gens
        if expression in self._slot:
            return gens[self._slot[expression]]
        if expression.is_Rational:
            return self._ring(sp.QQ(int(expression.p), int(expression.q)))
        if expression.is_Add:
            total = self._ring(0)
            for term in expression.args:
                total += self._polynomial(term)
            return total
        if expression.is_Mul:
            product = self._ring(1)
            for factor in expression.args:
                # reduced at once: products of reduced polynomials stay short
                product = self._reduced(product * self._polynomial(factor))
            return product
        if expression.is_Pow:
            base, power = expression.args
            if power.is_Integer and power >= 0:
                return self._reduced(self._polynomial(base) ** int(power))
            if base.is_Integer and power == -sp.Rational(1, 2):
                return self._polynomial(sp.sqrt(base)) * sp.QQ(1, int(base))
        if isinstance(expression, sp.sin | sp.cos):
            cosine, sine = self._wave_polynomial(_combination(expression.args[0]))
            return sine if isinstance(expression, sp.sin) else cosine
        raise _NotPolynomialError

    def _wave_polynomial(self, combination: tuple[tuple[Expr, int], ...]) -> tuple[_Poly, _Poly]:
        """Cosine and sine of an integer combination of angles, by de Moivre."""
        cosine, sine = self._ring(1), self._ring(0)
        for angle, count in combination:
            s, c = (self._ring.gens[self._sine[angle] + i] for i in (0, 1))
            s = s if count > 0 else -s
            for _ in range(abs(count)):
                cosine, sine = cosine * c - sine * s, sine * c + cosine * s
        return cosine, sine

    def _reduced(self, polynomial: _Poly) -> _Poly:
        """Replace squares until none is left."""
        for slot, value in self._relations.items():
            if all(exponents[slot] < 2 for exponents in polynomial):
                continue
            powers = [self._ring(1)]
            rest = self._ring(0)
            extra = self._ring(0)
            for exponents, coefficient in polynomial.terms():
                half, odd = divmod(exponents[slot], 2)
                if half == 0:
                    rest[exponents] = rest.get(exponents, 0) + coefficient
                    continue
                while len(powers) <= half:
                    powers.append(powers[-1] * value)
                low = (*exponents[:slot], odd, *exponents[slot + 1 :])
                extra += powers[half].mul_term((low, coefficient))
            polynomial = rest + extra
        return polynomial

    # Shorter ways to write it ------------------------------------------------------------------

    def _summed(self, keyed: dict[Any, Any], group: list[Expr]) -> dict[Any, Any]:
        """Write products of the sines and cosines of a group as sums of waves."""
        slots = [self._sine[angle] for angle in group]
        out: dict[Any, Any] = {}
        for (exponents, waves), coefficient in keyed.items():
            powers = tuple((exponents[i], exponents[i + 1]) for i in slots)
            rest = list(exponents)
            for i in slots:
                rest[i] = rest[i + 1] = 0
            for (kind, multiples), factor in _fourier(powers):
                wave = (kind, tuple(zip(group, multiples, strict=True)))
                new = waves if not any(multiples) else (*waves, wave)
                key = (tuple(rest), new)
                out[key] = out.get(key, 0) + coefficient * factor
        return {key: value for key, value in out.items() if value != 0}

    def _swapped(self, keyed: dict[Any, Any], sine: int) -> dict[Any, Any]:
        """Write the squares of a cosine as 1 - s^2 if that has fewer terms."""
        out: dict[Any, Any] = {}
        for (exponents, waves), coefficient in keyed.items():
            half, odd = divmod(exponents[sine + 1], 2)
            for k in range(half + 1):
                new = list(exponents)
                new[sine + 1], new[sine] = odd, exponents[sine] + 2 * k
                key = (tuple(new), waves)
                out[key] = out.get(key, 0) + coefficient * comb(half, k) * (-1) ** k
        out = {key: value for key, value in out.items() if value != 0}
        return out if len(out) < len(keyed) else keyed


def _generators(expression: Expr) -> tuple[list[Expr], dict[Expr, None], list[Expr]]:
    """Return angles, other symbols and square roots of integers, sorted by name."""
    angles: set[Expr] = set()
    others: set[Expr] = set()
    roots: set[Expr] = set()
    seen: set[Expr] = set()
    stack = [expression]
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        if isinstance(item, sp.sin | sp.cos):
            angles.update(angle for angle, _ in _combination(item.args[0]))
        elif item.is_Symbol:
            others.add(item)
        elif item.is_Pow and item.base.is_Integer and abs(item.exp) == sp.Rational(1, 2):
            roots.add(sp.sqrt(item.base))
        else:
            stack += item.args
    if any(not root.is_Pow for root in roots):
        raise _NotPolynomialError
    return _sorted(angles), dict.fromkeys(_sorted(others)), _sorted(roots)


def _sorted(items: Iterable[Expr]) -> list[Expr]:
    return sorted(items, key=lambda item: item.sort_key())


def _combination(argument: Expr) -> tuple[tuple[Expr, int], ...]:
    """Angles and integer factors of a sum such as ``q_1 - 2 q_2``."""
    out: list[tuple[Expr, int]] = []
    for term in sp.Add.make_args(argument):
        factor, angle = term.as_coeff_Mul()
        if not (angle.is_Symbol and factor.is_Integer):
            raise _NotPolynomialError
        out.append((angle, int(factor)))
    return tuple(out)


def _wave(kind: str, combination: tuple[tuple[Expr, int], ...]) -> Expr:
    argument = sp.Add(*(count * angle for angle, count in combination))
    return sp.cos(argument) if kind == "c" else sp.sin(argument)


@lru_cache(maxsize=4096)
def _fourier(powers: tuple[tuple[int, int], ...]) -> tuple[tuple[tuple[str, Any], Any], ...]:
    """Product of s_i^a c_i^b as a sum of waves: ((``c`` or ``s``, multiples), factor)."""
    half = sp.QQ(1, 2)
    zero = (0,) * len(powers)
    waves: dict[tuple[str, tuple[int, ...]], Any] = {("c", zero): sp.QQ(1)}
    for i, (sines, cosines) in enumerate(powers):
        unit = tuple(int(k == i) for k in range(len(powers)))
        for factor in "s" * sines + "c" * cosines:
            new: dict[tuple[str, tuple[int, ...]], Any] = {}
            for (kind, multiples), value in waves.items():
                plus = tuple(a + b for a, b in zip(multiples, unit, strict=True))
                minus = tuple(a - b for a, b in zip(multiples, unit, strict=True))
                # of the wave's argument A and the factor's B
                made, signs = {
                    ("c", "c"): ("c", (1, 1)),  # cos A cos B
                    ("s", "c"): ("s", (1, 1)),  # sin A cos B
                    ("c", "s"): ("s", (1, -1)),  # cos A sin B = (sin(A + B) - sin(A - B)) / 2
                    ("s", "s"): ("c", (-1, 1)),  # sin A sin B = (cos(A - B) - cos(A + B)) / 2
                }[kind, factor]
                for argument, sign in zip((plus, minus), signs, strict=True):
                    _add_wave(new, made, argument, half * sign * value)
            waves = new
    return tuple((key, value) for key, value in waves.items() if value != 0)


def _add_wave(
    waves: dict[tuple[str, tuple[int, ...]], Any],
    kind: str,
    multiples: tuple[int, ...],
    value: Any,
) -> None:
    """Add a wave, with the first multiple that is not zero made positive."""
    first = next((k for k in multiples if k), 0)
    if first == 0 and kind == "s":
        return
    if first < 0:
        multiples = tuple(-k for k in multiples)
        value = -value if kind == "s" else value
    key = (kind, multiples)
    waves[key] = waves.get(key, 0) + value


LARGEST_FOR_SIMPLIFY = 400
"""SymPy's ``simplify`` is not tried on expressions with more operations: it takes minutes."""


class Simplifier:
    """Simplifies matrices entry by entry.

    Args:
        level: See `SymbolicOptions`.
        normal_form: Of the robot.
        time_limit: From now, [s].
        progress: Told about every entry.

    Attributes:
        unfinished: Names of quantities with entries that the time did not suffice for.
    """

    def __init__(
        self,
        level: Simplification,
        normal_form: NormalForm,
        time_limit: float = math.inf,
        progress: Progress | None = None,
    ) -> None:
        self._level = level
        self._normal_form = normal_form
        self._progress = progress
        self._deadline = time.monotonic() + time_limit
        self.unfinished: list[str] = []

    def work(self, matrix: Expr, name: str) -> Expr:
        """Bring a matrix to normal form (unless the level is ``none``): for calculating on."""
        return self._each(matrix, name, full=False)

    def final(self, matrix: Expr, name: str) -> Expr:
        """Simplify a matrix for reading."""
        return self._each(matrix, name, full=self._level == "full")

    def scalar(self, expression: Expr, name: str) -> Expr:
        """Simplify one expression for reading."""
        return self.final(sp.Matrix([[expression]]), name)[0, 0]

    def _each(self, matrix: Expr, name: str, *, full: bool) -> Expr:
        if self._level == "none":
            return matrix
        out = matrix.copy()
        rows, columns = matrix.shape
        total = rows * columns
        for k in range(total):
            i, j = divmod(k, columns)
            entry = matrix[i, j]
            if not entry.is_Number:
                out[i, j] = self._entry(entry, name, full=full)
            if self._progress is not None:
                self._progress(name, k + 1, total)
        return out

    def _entry(self, entry: Expr, name: str, *, full: bool) -> Expr:
        """Normal form, and the shortest of what else the time suffices for.

        The normal form is not subject to the time limit: without it expressions grow while they
        are derived, and that takes longer.
        """
        best = self._normal_form(entry)
        if full and not best.is_Atom:
            try:
                with _until(self._deadline):
                    best = shortest(best)
            except _OutOfTimeError:
                if name not in self.unfinished:
                    self.unfinished.append(name)
        return best


def shortest(expression: Expr) -> Expr:
    """Return the shortest of what SymPy makes of an expression, by the number of operations."""
    candidates = [expression, sp.factor_terms(expression)]
    if sp.count_ops(expression) <= LARGEST_FOR_SIMPLIFY:
        more = [sp.simplify(expression), sp.factor_terms(sp.trigsimp(expression))]
        # what is calculated from it must be simple too: no tangents, no sin(q + pi/4)
        candidates += [item for item in more if is_polynomial(item)]
    return min(candidates, key=sp.count_ops)


class _OutOfTimeError(Exception):
    """The time limit of a simplification is over."""


@contextmanager
def _until(deadline: float) -> Iterator[None]:
    """Raise `_OutOfTimeError` at a time, also in the middle of SymPy.

    Only the main thread can be interrupted; in others the time is looked at between entries.
    """
    left = deadline - time.monotonic()
    if left <= 0.0:
        raise _OutOfTimeError
    if math.isinf(left) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise _OutOfTimeError

    before: Any = signal.signal(signal.SIGALRM, ring)
    running = signal.setitimer(signal.ITIMER_REAL, left)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *running)
        signal.signal(signal.SIGALRM, before)
