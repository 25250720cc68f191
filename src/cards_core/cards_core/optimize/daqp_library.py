"""DAQP's C functions, for native programs that solve a quadratic program in place.

The package `daqp` is one library: its Python class ``Model`` and the C functions behind it, which
it exports. ``native/daqp.c`` calls these; the structures that it hands them differ between
releases, so only releases whose structures were compared are used, and their settings are read
through both ways before the first solve.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.typing import Array

SOURCE = Path(__file__).parent / "native" / "daqp.c"
"""C text of ``cards_daqp_solve`` and ``cards_daqp_release``, on a `DaqpProgram`."""

RELEASES = ("0.11.0",)
"""Releases of the package whose structures are those of the C text."""

FUNCTIONS = {
    "set_up": "setup_daqp_main",
    "update": "daqp_update_ldp",
    "solve": "daqp_solve",
    "allocate_settings": "allocate_daqp_settings",
    "free_iterates": "free_daqp_workspace",
    "free_data": "free_daqp_ldp",
}
"""Member of `DaqpProgram` and the library's function that it points at."""

_WHOLE = ("cycle_tol", "iter_limit", "eq_reduction", "presolve")
_SETTINGS = (
    *("primal_tol", "dual_tol", "zero_tol", "pivot_tol", "progress_tol"),
    *("cycle_tol", "iter_limit"),
    *("fval_bound", "eps_prox", "eta_prox", "rho_soft", "rel_subopt", "abs_subopt"),
    *("sing_tol", "refactor_tol", "time_limit", "w_soft", "eq_reduction", "presolve"),
)


class LibraryUnknownError(CardsError):
    """DAQP's C functions cannot be called: absent, or of a release that is not known."""


class _Settings(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int if name in _WHOLE else ctypes.c_double) for name in _SETTINGS]


class _Problem(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("n", "m", "ms")),
        *((name, ctypes.c_void_p) for name in ("H", "f", "A", "upper", "lower")),
        *((name, ctypes.c_void_p) for name in ("sense", "break_points")),
        *((name, ctypes.c_int) for name in ("levels", "type")),
    ]


class DaqpProgram(ctypes.Structure):
    """``daqp_t`` of the C text: a program, its arrays and its workspace."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in FUNCTIONS),
        ("problem", _Problem),
        *((name, ctypes.c_void_p) for name in ("no_sense", "x", "multipliers")),
        *((name, ctypes.c_double) for name in ("primal_tol", "sing_tol")),
        *((name, ctypes.c_int) for name in ("iteration_limit", "iterations")),
        ("work", ctypes.c_void_p),
    ]


@cache
def daqp_functions() -> dict[str, int]:
    """Return the addresses of the library's functions, by the names of `FUNCTIONS`.

    Raises:
        LibraryUnknownError: The package is absent or of another release, or its library exports
            no such functions or has other structures.
    """
    try:
        release, module = version("daqp"), importlib.import_module("daqp")
    except (ImportError, PackageNotFoundError):
        raise LibraryUnknownError("the Python package daqp is not installed") from None
    if release not in RELEASES:
        raise LibraryUnknownError(
            f"daqp {release} is not known (expected: {' or '.join(RELEASES)})"
        )
    try:
        library = ctypes.CDLL(str(module.__file__))
        addresses = {
            name: int(ctypes.cast(library[symbol], ctypes.c_void_p).value or 0)
            for name, symbol in FUNCTIONS.items()
        }
        defaults = _Settings()
        library.daqp_default_settings(ctypes.byref(defaults))
    except (OSError, AttributeError) as error:
        raise LibraryUnknownError(f"daqp {release} has no C functions: {error}") from None
    theirs: dict[str, Any] = module.Model().settings
    if {name: getattr(defaults, name) for name in _SETTINGS} != theirs:
        raise LibraryUnknownError(f"daqp {release} has other settings than those known")
    return addresses


def daqp_program(
    hessian: Array,
    gradient: Array,
    matrix: Array,
    bounds: tuple[Array, Array],
    settings: tuple[float, float, int],
) -> tuple[DaqpProgram, Array, Sequence[Any]]:
    """Return a program whose data are the present contents of arrays at every solve.

    Args:
        hessian: H, shape (n, n); read when the solver starts cold.
        gradient: g, shape (n,).
        matrix: A, shape (p, n).
        bounds: Lower and upper ones, of the first variables, which have bounds, and then of the p
            rows, one array each.
        settings: DAQP's ``primal_tol``, ``sing_tol`` and ``iter_limit``.

    Returns:
        The program, its solution x of shape (n,), and what must be kept as long as it is used.

    Raises:
        LibraryUnknownError: See `daqp_functions`.
    """
    low, up = bounds
    n, m = gradient.size, low.size
    x, multipliers, sense = np.zeros(n), np.zeros(m), np.zeros(m, dtype=np.intc)
    arrays = (hessian, gradient, matrix, low, up, x, multipliers, sense)
    if not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("the arrays of a program must be contiguous")
    problem = _Problem(
        n=n,
        m=m,
        ms=m - len(matrix),  # slacks, which come last, have no bounds
        H=hessian.ctypes.data,
        f=gradient.ctypes.data,
        A=matrix.ctypes.data if matrix.size else None,
        upper=up.ctypes.data,
        lower=low.ctypes.data,
    )
    primal, pivot, iterations = settings
    program = DaqpProgram(
        **daqp_functions(),
        problem=problem,
        no_sense=sense.ctypes.data,
        x=x.ctypes.data,
        multipliers=multipliers.ctypes.data,
        primal_tol=primal,
        sing_tol=pivot,
        iteration_limit=iterations,
    )
    return program, x, arrays
