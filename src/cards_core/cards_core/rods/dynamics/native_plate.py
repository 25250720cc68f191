"""Calls ``native/plate_step.c``: inertia of a rigid plate and its implicit step on rods."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from cards_core.rods.native_library import rod_library
from cards_core.rods.robots.robot import Plate
from cards_core.typing import Array


class _Plate(ctypes.Structure):
    """``struct plate`` of the C file."""

    _fields_ = (
        ("mass", ctypes.c_double * 36),
        ("kilograms", ctypes.c_double),
        ("com", ctypes.c_double * 3),
        ("inertia", ctypes.c_double * 9),
        ("gravity", ctypes.c_double * 3),
        ("drag", ctypes.c_double * 6),
        ("damping", ctypes.c_double),
        ("theta", ctypes.c_double),
        ("count", ctypes.c_int),
        ("slot", ctypes.c_int * 6),
    )


@cache
def _library() -> ctypes.CDLL:
    library = rod_library()
    number, pointer = ctypes.c_double, ctypes.c_void_p
    for name, result, arguments in (
        ("plate_inertia", None, (pointer,) * 5),
        ("plate_weight", None, (pointer,) * 3),
        ("plate_advance", ctypes.c_int, (pointer, number, *(pointer,) * 7)),
        ("plate_missed", number, (pointer,) * 4),
        ("plate_wrench", None, (pointer, number, *(pointer,) * 4)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class NativePlate:
    """A rigid plate; poses, twists and wrenches as in `plate_dynamics`.

    Not for two threads at once: inputs are copied into buffers of their own.

    Args:
        plate: Mass, centre of mass and inertia.
        mass: Mass matrix about the origin in plate axes, with that of the rods, shape (6, 6).
        gravity: World axes, shape (3,), [m/s^2].
        slots: Which of the six coordinates move.
        theta: Weight of the step's end, 0.5 to 1.
        damping: Of the rods, times their stiffness, [s].
        drag: Viscous drag on each coordinate, shape (6,), [N s/m] and [N m s].
    """

    def __init__(
        self,
        plate: Plate,
        mass: Array,
        gravity: Array,
        slots: Array,
        *,
        theta: float,
        damping: float,
        drag: Array,
    ) -> None:
        self._library = _library()
        self._plate = one = _Plate()
        one.mass[:] = mass.ravel().tolist()
        one.kilograms = plate.mass
        one.com[:] = np.asarray(plate.com, dtype=float).tolist()
        one.inertia[:] = np.asarray(plate.inertia, dtype=float).ravel().tolist()
        one.gravity[:] = np.asarray(gravity, dtype=float).tolist()
        one.drag[:] = drag.tolist()
        one.damping, one.theta = damping, theta
        one.count = len(slots)
        one.slot[: len(slots)] = [int(slot) for slot in slots]
        self._this = ctypes.addressof(one)
        self._pose, self._end = np.zeros((4, 4)), np.zeros((4, 4))
        self._matrix = np.zeros((6, 6))
        self._vectors = np.zeros((4, 6))
        places = (self._pose, self._end, self._matrix, *self._vectors)
        self._at = tuple(int(place.ctypes.data) for place in places)

    def inertia(self, pose: Array, twist: Array) -> tuple[Array, Array]:
        """Return mass matrix, (6, 6), and gyroscopic wrench, (6,), world axes.

        Args:
            pose: Of the plate, shape (4, 4).
            twist: Its velocity, shape (6,).
        """
        self._pose[:], self._vectors[0] = pose, twist
        at_pose, _, at_matrix, at_twist, at_bias, *_ = self._at
        self._library.plate_inertia(self._this, at_pose, at_twist, at_matrix, at_bias)
        return self._matrix.copy(), self._vectors[1].copy()

    def weight(self, pose: Array) -> Array:
        """Return the wrench of gravity for a pose, shape (4, 4); shape (6,)."""
        self._pose[:] = pose
        self._library.plate_weight(self._this, self._at[0], self._at[3])
        weight: Array = self._vectors[0].copy()
        return weight

    def advance(
        self, dt: float, pose: Array, twist: Array, force: Array, stiffness: Array
    ) -> tuple[Array, Array, Array] | None:
        """Return change of the twist, motion and the pose at the end; None if there is no step.

        Args:
            dt: [s].
            pose: Of the plate, shape (4, 4).
            twist: Its velocity, shape (6,).
            force: Wrench of rods, loads and joints, shape (6,), [N] and [N m].
            stiffness: Of the rods, its positive part, shape (6, 6).
        """
        vectors = self._vectors
        self._pose[:], self._matrix[:] = pose, stiffness
        vectors[0], vectors[1] = twist, force
        at_pose, at_end, at_matrix, at_twist, at_force, at_change, at_move = self._at
        found = self._library.plate_advance(
            *(self._this, dt, at_pose, at_twist, at_force, at_matrix, at_change, at_move, at_end)
        )
        return (vectors[2].copy(), vectors[3].copy(), self._end.copy()) if found else None

    def missed(self, pose: Array, twist: Array, impulse: Array) -> float:
        """Return mass times speed squared of what an impulse does to the plate, [N m].

        Args:
            pose: Of the plate, shape (4, 4).
            twist: Its velocity, shape (6,).
            impulse: Shape (6,), [N s] and [N m s].
        """
        self._pose[:], self._vectors[0], self._vectors[1] = pose, twist, impulse
        at_pose, _, _, at_twist, at_impulse, *_ = self._at
        return float(self._library.plate_missed(self._this, at_pose, at_twist, at_impulse))

    def wrench(self, dt: float, pose: Array, measured: Array, wanted: Array) -> Array:
        """Return the wrench that brings a simulator's plate to a twist in one step, shape (6,).

        Args:
            dt: [s].
            pose: Of the plate, shape (4, 4).
            measured: Its velocity now, shape (6,).
            wanted: That at the end of the step, shape (6,).
        """
        self._pose[:], self._vectors[0], self._vectors[1] = pose, measured, wanted
        at_pose, _, _, at_measured, at_wanted, at_out, _ = self._at
        self._library.plate_wrench(self._this, dt, at_pose, at_measured, at_wanted, at_out)
        out: Array = self._vectors[2].copy()
        return out
