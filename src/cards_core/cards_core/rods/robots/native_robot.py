"""A rod robot in the compiled library: its parameters, buffers and calls."""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import Any

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.native_library import NativeRod, rod_library
from cards_core.rods.robots.robot import BaseKind, Limb, RodRobot, TipKind
from cards_core.typing import Array

BASE = {
    BaseKind.FIXED: 0,
    BaseKind.PRISMATIC: 1,
    BaseKind.REVOLUTE: 2,
    BaseKind.EXTENSIBLE: 3,
}
TURN = {
    TipKind.FIXED: 0,
    TipKind.PRISMATIC: 0,
    TipKind.REVOLUTE: 1,
    TipKind.CYLINDRICAL: 1,
    TipKind.PLANAR: 1,
    TipKind.UNIVERSAL: 2,
    TipKind.SPHERICAL: 3,
}
"""The numbers of ``native/robot_limb.c``: how a joint lets the rod's tip turn."""

MODES = {"dgm": 0, "igm": 1, "limbs": 2}

NUMBERS = 59
"""Doubles that describe a limb to ``robot_new``."""


@cache
def _library() -> ctypes.CDLL:
    library = rod_library()
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    for name, result, arguments in (
        ("robot_record_size", integer, (integer, integer)),
        ("robot_new", pointer, (integer,) * 4 + (pointer,) * 4),
        ("robot_free", None, (pointer,)),
        ("robot_set_plate", None, (pointer, pointer)),
        (
            "robot_set_options",
            None,
            (pointer, ctypes.c_double, integer, integer, integer, pointer),
        ),
        ("robot_set_wrench", None, (pointer, pointer, integer)),
        ("robot_fill_nodes", None, (pointer,)),
        ("robot_residual", None, (pointer, integer)),
        ("robot_recut", None, (pointer, pointer, pointer)),
        ("robot_step_error", ctypes.c_double, (pointer,)),
        ("robot_add_step", None, (pointer, pointer, ctypes.c_double)),
        ("robot_linearise", integer, (pointer, integer, pointer)),
        ("robot_blocks", None, (pointer, pointer)),
        ("robot_shapes", None, (pointer, pointer, integer, pointer)),
        ("robot_solve", integer, (pointer, integer, integer)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def describe_limb(limb: Limb, base: Array) -> Array:
    """Return the numbers of a limb, shape (59,), of a robot whose base has this pose (4, 4)."""
    joint = base @ limb.base.joint_pose
    frames = [joint, joint @ limb.base.attach, limb.tip.joint_pose, np.linalg.inv(limb.tip.attach)]
    section = limb.rod.section
    head = [
        BASE[limb.base.kind],
        TURN[limb.tip.kind],
        *limb.tip.kind.free[:3],
        limb.length,
        *section.half_width,
        section.round,
        limb.rod.material.young,
        limb.rod.material.shear_modulus * section.torsion_radius,
    ]
    parts = [np.array(head, dtype=float)]
    for frame in frames:
        parts += [frame[:3, 3], frame[:3, :3].ravel()]
    return np.concatenate(parts)


class NativeRobot:
    """One robot with one number of segments; not for two threads at once.

    Attributes:
        record: The state and what belongs to it; the library reads and writes it.
        command: q and pose (4, 4) of the next solve.
        size: Unknowns of a limb.
        handle: For the library.
    """

    def __init__(
        self, robot: RodRobot, base: Array, gravity: Array, segments: int, steps: int
    ) -> None:
        self.library = _library()
        n = robot.n_limbs
        self.limbs, self.segments, self.planar = n, segments, robot.planar
        self.stride = 6 + 15 * (segments - 1)
        self.size = 3 + 4 * (segments - 1) if robot.planar else 6 + 9 * (segments - 1)
        rods = (NativeRod * n)(
            *(limb.rod.native(limb.rod.weight(gravity)) for limb in robot.limbs)
        )
        numbers = np.stack([describe_limb(limb, base) for limb in robot.limbs])
        self.record = np.zeros(self.library.robot_record_size(n, segments))
        self.command = np.zeros(n + 16)
        self.state = self.record[: n * (self.stride + 1) + 12]
        self.handle = self.library.robot_new(
            n, segments, steps, int(robot.planar), ctypes.addressof(rods), _at(numbers),
            _at(self.record), _at(self.command),
        )  # fmt: skip
        if not self.handle:
            raise RodError(f"robot '{robot.name}': no memory for {n} limbs, {segments} segments")
        weakref.finalize(self, self.library.robot_free, self.handle)
        plate = np.array([robot.plate.mass, *robot.plate.com, *gravity])
        self.library.robot_set_plate(self.handle, _at(plate))
        self.wrench = np.zeros(6)
        self._wrench = _at(self.wrench)
        self.linear_out = np.zeros(36 + 6 * n + 42 + n)
        self._linear = _at(self.linear_out)

    def set_options(
        self, tolerance: float, max_iterations: int, chord: bool, controlled: Array
    ) -> None:
        """Set tolerance, most steps, policy, and indices of the commanded coordinates."""
        indices = np.ascontiguousarray(controlled, dtype=np.intc)
        self.library.robot_set_options(
            self.handle, tolerance, max_iterations, int(chord), len(indices), _at(indices)
        )

    def set_wrench(self, wrench: Array | None, follower: bool) -> None:
        """Set the external wrench on the plate."""
        self.wrench[:] = 0.0 if wrench is None else wrench
        self.library.robot_set_wrench(self.handle, self._wrench, follower)

    def solve(self, mode: int, warm: bool) -> int:
        """Solve from the record; returns a status."""
        return int(self.library.robot_solve(self.handle, mode, warm))

    def put(self, wrenches: Array, q: Array, pose: Array) -> None:
        """Write a state; nodes within the rods follow from the wrenches at their starts."""
        n, stride = self.limbs, self.stride
        state = self.state
        state[: n * stride].reshape(n, stride)[:, :6] = wrenches
        if self.planar:  # nothing would ever take away what points out of the plane
            state[: n * stride].reshape(n, stride)[:, 2:5] = 0.0
        state[n * stride : n * (stride + 1)] = q
        state[-12:-9] = pose[:3, 3]
        state[-9:] = pose[:3, :3].ravel()
        if self.segments > 1:
            self.library.robot_fill_nodes(self.handle)

    def residual(self, mode: int) -> None:
        """Evaluate the record."""
        self.library.robot_residual(self.handle, mode)

    def recut(self, other: NativeRobot, record: Array) -> None:
        """Write the state of a record of the same robot with other segments."""
        self.library.robot_recut(other.handle, _at(record), self.handle)

    def step_error(self) -> float:
        """Return the greatest scaled residual of a limb with twice as many steps."""
        return float(self.library.robot_step_error(self.handle))

    def add_step(self, step: Array, factor: float = 1.0) -> None:
        """Move the record by a step: limbs x size, dq, dx (6)."""
        step = np.ascontiguousarray(step, dtype=float)
        self.library.robot_add_step(self.handle, _at(step), factor)

    def linearise(self, known: bool) -> int:
        """Linearise at the record into `linear_out`; returns a status.

        Args:
            known: The record is what the last solve left there.
        """
        return int(self.library.robot_linearise(self.handle, known, self._linear))

    def blocks(self) -> list[Array]:
        """Return A, b, D, r, G, c (stacked by limb), E and the balance; dx and G have six rows."""
        n, k = self.limbs, self.size
        shapes = [(k, k), (k,), (k, 6), (k,), (6, k), (6,)]
        sizes = [int(np.prod(shape)) for shape in shapes]
        out = np.empty(n * sum(sizes) + 42)
        self.library.robot_blocks(self.handle, _at(out))
        limbs = out[:-42].reshape(n, sum(sizes))
        ends = np.cumsum([0, *sizes])
        parts = [
            limbs[:, first:last].reshape(n, *shape)
            for first, last, shape in zip(ends[:-1], ends[1:], shapes, strict=True)
        ]
        return [*parts, out[-42:-6].reshape(6, 6), out[-6:]]

    def shapes(self, record: Array, points: int) -> Array:
        """Return the sections of a record of the same layout, (n, points, 6)."""
        out = np.empty((self.limbs, points, 6))
        self.library.robot_shapes(self.handle, _at(record), points, _at(out))
        return out


def _at(values: np.ndarray[Any, Any]) -> int:
    """Address of a contiguous array, which the caller keeps alive."""
    return int(values.ctypes.data)
