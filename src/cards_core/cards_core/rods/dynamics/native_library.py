"""The C library of moving rods and its structures; compiled on first use, then cached."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import numpy as np

from cards_core.codegen.library import load_library
from cards_core.rods.native_library import NativeRod
from cards_core.typing import Array

SOURCES = (
    "rod",
    "dynamics_formula",
    "dynamics_point*",
    "dynamics_rod",
    "dynamics_variation",
    "frames",
    "dynamics_algebra",
    "dynamics_limb",
    "dynamics_rows",
    "dynamics_robot",
    "dynamics_step",
)
"""Files of ``rods/native/``, each using those before it. The name that ends in ``*`` is compiled
for one section and again for 8 side by side."""

ONE = """
#define REAL double
#define NAME(name) name
"""

EIGHT = """
#undef REAL
#undef NAME
#define REAL lanes
#define NAME(name) name##8
"""

WIDTH = 8
"""Rods that are integrated side by side."""

STAGES = 12
"""Stages of one step along a rod; each has a history of its own."""

STATE = 13
"""Position, quaternion, force, moment of a section."""

_double = ctypes.c_double

_doubles = ctypes.POINTER(ctypes.c_double)

_ints = ctypes.POINTER(ctypes.c_int)


class Formula(ctypes.Structure):
    """``struct dynamic_formula``: coefficients of the difference formula."""

    _fields_ = tuple((name, _double) for name in ("c0", "c1", "c2", "d1", "lambda_"))


class Point(ctypes.Structure):
    """``struct dynamic_point``: history of one stage (or of the plate)."""

    _fields_ = (
        ("z", _double * 15),
        ("old", _double * 15),
        ("rate", _double * 15),
        ("q", _double * 4),
        ("turn", _double * 3),
        ("spin", _double * 3),
        ("h", _double * 15),
        ("h_turn", _double * 3),
        ("now", _double * 15),
        ("q_now", _double * 4),
    )


POINT = ctypes.sizeof(Point) // 8
"""Numbers of a point; `AT` tells where they start."""

AT = {name: getattr(Point, name).offset // 8 for name, _ in Point._fields_}

GROUP = 25 * WIDTH + 8
"""Numbers of a ``struct dynamic_group``: vectors, then a flag and two pointers, padded."""

GROUP_POINTS = 25 * WIDTH + 1
"""Where its pointers are."""

STAGE = 45 * WIDTH
"""Numbers of a ``struct dynamic_stage``."""


class Limb(ctypes.Structure):
    """``struct dynamic_limb``."""

    _fields_ = (
        ("rod", NativeRod),
        ("mass", _double),
        ("inertia", _double * 3),
        ("damping", _double),
        ("length", _double),
        ("speed", _double),
        ("scale_length", _double),
        ("scale_force", _double),
        ("start_p", _double * 3),
        ("start_R", _double * 9),
        ("joint_p", _double * 3),
        ("joint_R", _double * 9),
        ("back_p", _double * 3),
        ("back_R", _double * 9),
        ("free", ctypes.c_int * 6),
        ("state", _doubles),
        ("before", _doubles),
        ("keep", _doubles),
        ("nodes", _doubles),
        ("blocks", _doubles),
        ("sides", _doubles),
        ("swaps", _ints),
    )


class Robot(ctypes.Structure):
    """``struct dynamic_robot``."""

    _fields_ = (
        ("formula", Formula),
        ("limbs", ctypes.c_int),
        ("segments", ctypes.c_int),
        ("steps", ctypes.c_int),
        ("held", ctypes.c_int),
        ("follower", ctypes.c_int),
        ("mass", _double),
        ("com", _double * 3),
        ("inertia", _double * 6),
        ("gravity", _double * 3),
        ("wrench", _double * 6),
        ("scale_length", _double),
        ("scale_force", _double),
        ("p", _double * 3),
        ("q", _double * 4),
        ("p_before", _double * 3),
        ("q_before", _double * 4),
        ("p_keep", _double * 3),
        ("q_keep", _double * 4),
        ("plate", Point),
        ("limb", ctypes.POINTER(Limb)),
        ("group", ctypes.c_void_p),
        ("residual", _double),
        ("stiffness", _double * 36),
        ("reduced", _double * 36),
        ("tips", _doubles),
        ("reduced_swaps", ctypes.c_int * 6),
        ("tip_swaps", _ints),
        ("factored", ctypes.c_int),
        ("runs", ctypes.c_long),
        ("variations", ctypes.c_long),
    )


TIP_SIZE = 384
"""Numbers of the workspace ``tips`` per limb."""


@cache
def dynamics_library() -> ctypes.CDLL:
    """Return the library; its functions release the GIL and keep nothing between calls.

    Raises:
        CompilationError: There is no C compiler, or it refused the sources.
    """
    library = load_library("moving rods", source())
    robot = ctypes.POINTER(Robot)
    library.dynamic_rest.argtypes = [robot, ctypes.c_int, ctypes.c_double]
    library.dynamic_step.argtypes = [robot, *[ctypes.c_int] * 3, ctypes.c_double]
    library.dynamic_linearise.argtypes = [robot]
    library.dynamic_fill.argtypes = [robot]
    library.dynamic_fill.restype = None
    return library


def source() -> str:
    """Return the program text of the library."""
    folder = Path(__file__).parent.parent / "native"
    parts: list[str] = []
    for name in SOURCES:
        text = (folder / f"{name.rstrip('*')}.c").read_text(encoding="utf-8")
        parts += [ONE, text, EIGHT, text] if name.endswith("*") else [text]
    return "\n".join(parts)


def aligned(*shape: int) -> Array:
    """Return zeros, aligned for vectors of 8."""
    size = 1
    for extent in shape:
        size *= extent
    raw = np.zeros(size + WIDTH)
    shift = -(raw.ctypes.data // 8) % WIDTH
    return raw[shift : shift + size].reshape(shape)
