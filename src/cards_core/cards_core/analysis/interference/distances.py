"""Distances of straight pieces, from each other and from convex bodies: the C code from Python.

Pieces have closed forms; bodies GJK [Gilbert1988] where there is none.
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cards_core.analysis.interference.shapes import Body
from cards_core.codegen.library import load_library
from cards_core.errors import ShapeError
from cards_core.typing import Array

SOURCES = ("interference_distances.c", "interference.c")
"""Files of ``analysis/native``, in this order one program."""


@cache
def library() -> ctypes.CDLL:
    """Return the compiled distances. Raises `CompilationError` where there is no C compiler."""
    folder = Path(__file__).parents[1] / "native"
    text = "".join((folder / name).read_text(encoding="utf-8") for name in SOURCES)
    return load_library("interference", text)


def piece_distances(first: Array, second: Array) -> Array:
    """Return the distances of pairs of straight pieces, shape (n,), [m].

    Args:
        first: Ends of the pieces, shape (n, 2, 3), [m].
        second: Ends of their partners, shape (n, 2, 3), [m].
    """
    a, b = (np.ascontiguousarray(x, dtype=float).reshape(-1, 2, 3) for x in (first, second))
    if len(a) != len(b):
        raise ShapeError(f"{len(a)} pieces and {len(b)} partners (expected: as many)")
    out = np.empty(len(a))
    library().cards_piece_distances(
        ctypes.c_long(len(a)), *(pointer(array) for array in (a, b, out))
    )
    return out


def body_distances(pieces: Array, body: Body) -> Array:
    """Return the distances of straight pieces from a body, shape (n,), [m].

    Negative by the depth in balls, capsules and half-spaces, 0 where another body is touched.

    Args:
        pieces: Ends in coordinates of the body's link, shape (n, 2, 3), [m].
        body: The body.
    """
    count = np.asarray(pieces).size // 6
    local = body.pose.inverse().apply(np.asarray(pieces, dtype=float).reshape(-1, 3))
    local = np.ascontiguousarray(local)
    size, vertices = np.ascontiguousarray(body.size), np.ascontiguousarray(body.vertices)
    out = np.empty(count)
    library().cards_body_distances(
        ctypes.c_long(count),
        pointer(local),
        ctypes.c_int(body.kind),
        pointer(size),
        ctypes.c_double(body.radius),
        pointer(vertices),
        ctypes.c_int(len(vertices)),
        pointer(out),
    )
    return out


def pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    """Return the address of a contiguous array, which the caller keeps alive."""
    return ctypes.c_void_p(array.ctypes.data)
