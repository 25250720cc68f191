"""Least and greatest tension of every muscle over all distributions of one load: exact programs.

    min and max of f_i  with  -L' f = w,  lower <= f <= upper

Two linear programs a muscle, solved by the simplex method in ``native/tension_ranges.c``.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.analysis.native_library import Rows, pointer
from cards_core.analysis.status import PointStatus
from cards_core.checks import finite_number
from cards_core.codegen.library import load_library
from cards_core.errors import ShapeError
from cards_core.typing import Array

TOLERANCE = 1e-9
"""Largest residual of a scaled row of -L'f = w, relative to the largest scaled load or tension,
that counts as none."""


@cache
def _library() -> ctypes.CDLL:
    file = Path(__file__).parents[1] / "native" / "tension_ranges.c"
    names = ", ".join(f"{status.name} = {status.value}" for status in PointStatus)
    text = f"enum {{ {names} }};\n{file.read_text(encoding='utf-8')}"
    return load_library("tension ranges", text)


def tension_ranges(
    jacobian: Array, load: Array, lower: Array, upper: Array, *, tolerance: float = TOLERANCE
) -> tuple[npt.NDArray[np.uint8], Array, Array]:
    """Return the range of every tension, for n poses.

    Any rank of L is allowed. Rows may also be motors, with negative lower limits.

    Args:
        jacobian: L, shape (n, m, nv).
        load: w, shape (n, nv), [Nm] or [N].
        lower: Least tensions, finite, shape (m,), [N].
        upper: Greatest tensions, may be infinite, shape (m,), [N].
        tolerance: See `TOLERANCE`.

    Returns:
        Statuses, shape (n,): FEASIBLE, INFEASIBLE (no distribution carries the load), NOT_FINITE,
        NOT_CONVERGED. Least and greatest tensions, shape (n, m), [N]; NaN without a distribution,
        infinite where nothing limits a tension.

    Raises:
        ShapeError: Shapes that do not fit, or limits that are no limits.
        CompilationError: There is no C compiler.
        MemoryError: There is no memory for the workspace.
    """
    finite_number(tolerance, "tolerance of tension ranges", at_least=0.0)
    if jacobian.ndim != 3:
        raise ShapeError(f"L has shape {jacobian.shape}, expected (n, m, nv)")
    n, m, nv = jacobian.shape
    lower, upper = (np.ascontiguousarray(x, dtype=float) for x in (lower, upper))
    for name, values, shape in (("load", load, (n, nv)), ("lower", lower, (m,)),
                                ("upper", upper, (m,))):  # fmt: skip
        if values.shape != shape:
            raise ShapeError(f"{name} has shape {values.shape}, expected {shape}")
    if not (np.isfinite(lower).all() and (lower <= upper).all()):
        raise ShapeError(f"limits {lower} to {upper}, expected finite lower ones below the upper")
    rows, loads = Rows(jacobian), Rows(np.asarray(load, dtype=float))
    status = np.empty(n, dtype=np.uint8)
    least, most = np.empty((n, m)), np.empty((n, m))
    good = _library().cards_tension_ranges(
        ctypes.c_long(n),
        ctypes.c_int(nv),
        ctypes.c_int(m),
        *rows.arguments,
        *loads.arguments,
        pointer(lower),
        pointer(upper),
        ctypes.c_double(tolerance),
        *(pointer(values) for values in (status, least, most)),
    )
    if not good:
        raise MemoryError("no memory for the linear programs")
    return status, least, most
