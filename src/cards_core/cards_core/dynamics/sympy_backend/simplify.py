"""Levels of simplification, with a time limit and a report of progress."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import sympy as sp

from cards_core.dynamics.sympy_backend.constants import Expr
from cards_core.dynamics.sympy_backend.normal_form import NormalForm, is_polynomial
from cards_core.dynamics.sympy_backend.options import Progress, Simplification

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
