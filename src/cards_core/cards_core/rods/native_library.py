"""The C library of rods and rod robots; compiled on first use, then cached."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from cards_core.codegen.library import load_library

SOURCES: tuple[str, ...] = (
    "rod",
    "rod_tangent",
    "rod_calls",
    "frames",
    "robot_frames",
    "robot_limb",
    "robot_blocks",
    "robot_system",
    "robot_solve",
    "robot_calls",
    "plate_step",
)
"""Files of ``native/``, each using those before it."""


class NativeRod(ctypes.Structure):
    """``struct rod`` of ``native/rod.c``: flexibilities, strains at rest, loads of one rod."""

    _fields_ = (
        ("inv_kse", ctypes.c_double * 3),
        ("inv_kbt", ctypes.c_double * 3),
        ("v0", ctypes.c_double * 3),
        ("u0", ctypes.c_double * 3),
        ("force", ctypes.c_double * 3),
        ("moment", ctypes.c_double * 3),
        ("circular", ctypes.c_int),
    )


@cache
def rod_library() -> ctypes.CDLL:
    """Return the library; its functions release the GIL and keep nothing between calls.

    Raises:
        CompilationError: There is no C compiler, or it refused the sources.
    """
    folder = Path(__file__).parent / "native"
    parts = [(folder / f"{name}.c").read_text(encoding="utf-8") for name in SOURCES]
    return load_library("rods", "\n".join(parts))
