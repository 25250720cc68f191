"""The analyses' C, compiled on first use, then cached; and how arrays are handed to it."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.status import PointStatus
from cards_core.codegen.library import load_library
from cards_core.typing import Array

SOURCES = ("factor", "least_squares", "closure", "dexterity", "required", "zonotope")
"""Files of ``native/`` for `cards_core.analysis.conditions`, each using those before it."""


@cache
def native_library(title: str, *names: str) -> ctypes.CDLL:
    """Return files of ``native/``, in this order one program that knows `PointStatus`.

    Args:
        title: Of the library, for messages.
        names: Of the files, without the suffix.

    Raises:
        CompilationError: There is no C compiler, or it refused the sources.
    """
    folder = Path(__file__).parent / "native"
    statuses = ", ".join(f"{status.name} = {status.value}" for status in PointStatus)
    parts = [f"enum {{ {statuses} }};\n"]
    parts += [(folder / f"{name}.c").read_text(encoding="utf-8") for name in names]
    return load_library(title, "\n".join(parts))


def conditions_library() -> ctypes.CDLL:
    """Return the library of `cards_core.analysis.conditions`.

    Its functions release the GIL, keep nothing between calls and return 0 if memory ran out.

    Raises:
        CompilationError: There is no C compiler, or it refused the sources.
    """
    return native_library("analysis conditions", *SOURCES)


class Rows:
    """An array with one entry per point, as C takes it: a pointer and a stride in doubles.

    Args:
        values: Shape (n, ...), or (1, ...) where all n points share the entry. Views whose inner
            axes are contiguous are used as they are, others are copied.
    """

    def __init__(self, values: Array) -> None:
        inner = values.size // values.shape[0] if values.shape[0] else 0
        contiguous = inner == 0 or (
            values.dtype == np.float64
            and values[0].flags.c_contiguous
            and values.strides[0] % 8 == 0
        )
        self.values = values if contiguous else np.ascontiguousarray(values, dtype=np.float64)
        self.stride = 0 if len(values) == 1 else self.values.strides[0] // 8
        if inner == 0:
            self.stride = 0

    @property
    def arguments(self) -> tuple[ctypes.c_void_p, ctypes.c_long]:
        """Pointer and stride."""
        return ctypes.c_void_p(self.values.ctypes.data), ctypes.c_long(self.stride)


def pointer(values: npt.NDArray[Any]) -> ctypes.c_void_p:
    """Return the address of a contiguous array, which the caller keeps alive."""
    return ctypes.c_void_p(values.ctypes.data)


def run(function: str, *arguments: Any) -> None:
    """Call a function of `conditions_library`.

    Raises:
        MemoryError: The function found no memory for its workspace.
    """
    if not getattr(conditions_library(), function)(*arguments):
        raise MemoryError(f"{function}: no memory for the workspace")
