"""Newton's method for a rod robot, with rods cut into as many segments as they need.

A slender rod under load is cut into segments (multiple shooting), one whose steps are too long
for its bends as well. Where the settings leave the number open, it is that of the state that a
solve starts from, and grows and shrinks with what is found.
The arithmetic is in the compiled library; `NativeRobot` is a robot there.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cache
from typing import Any

import numpy as np

from cards_core.errors import RodError, ShapeError
from cards_core.rods.native_library import NativeRod, rod_library
from cards_core.rods.robots.robot import BaseKind, Limb, RodRobot, TipKind
from cards_core.rods.robots.solution import INFO, Solution, SolvedRobot
from cards_core.rods.robots.solver_input import (
    MOST_SEGMENTS,
    State,
    is_follower,
    segments_for,
    shape_text,
)
from cards_core.rods.status import RodStatus
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
        rods = (NativeRod * n)(*(limb.native(gravity) for limb in robot.limbs))
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
        """Set the options of the solver.

        Args:
            tolerance: Largest residual, in the scaled units of the solver.
            max_iterations: Most Newton steps.
            chord: Whether factors of the Jacobian are used again.
            controlled: Indices of the commanded coordinates.
        """
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
        """Write a state; nodes within the rods follow from the wrenches at their starts.

        Args:
            wrenches: Force [N] and moment [Nm] at the start of each rod, shape (limbs, 6).
            q: Joint coordinates, shape (limbs,), [rad] or [m].
            pose: Plate pose, shape (4, 4), world frame, [m].
        """
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
        """Return the maximum scaled residual of a limb with twice as many steps."""
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


STEP_ERROR = 1e-4
"""Scaled residual that a solution may have when its rods are integrated with twice as many steps;
beyond it they are cut into more segments where the settings leave it open."""

CHECK_EVERY = 100
"""Solves in a row, each from the last one, after which that error is looked at again."""


class NewtonSolver:
    """Solves of one robot; buffers and factors are kept from one solve to the next.

    Args:
        solver: Whose robot, settings, base and gravity these are; its lock is held by callers.

    Attributes:
        native: The library's robot with the present number of segments.
        segments: That number.
        owner: The solution whose state and factors `native` holds, or None.
        iterations: Newton steps of all solves so far, failed ones and those of refinement too; a
            linearisation counts as one. Two runs that do the same count the same.
    """

    def __init__(self, solver: SolvedRobot) -> None:
        self._solver, self._settings = solver, solver.settings
        self._natives: dict[int, NativeRobot] = {}
        self.iterations = 0
        self.owner: Solution | None
        self.forget()

    def forget(self) -> None:
        """Reset to the initial state; allocated buffers are kept."""
        self._use(self._settings.segments or 1)
        self.owner = None
        self._fewest = 1  # segments that the steps' error asks for
        self._unchecked = 0

    def at(self, segments: int) -> NativeRobot:
        """Return the library's robot with this number of segments."""
        native = self._natives.get(segments)
        if native is None:
            solver, settings = self._solver, self._settings
            native = NativeRobot(
                solver.robot, solver.base, solver.gravity, segments, settings.steps
            )
            native.set_options(
                settings.tolerance,
                settings.max_iterations,
                settings.policy == "chord",
                solver.controlled,
            )
            self._natives[segments] = native
        return native

    def start(self, start: State) -> None:
        """Load a state into the record.

        What was solved before shows in nothing that follows, except that a solution that is there
        already comes with its factors.

        Raises:
            ShapeError: It is no state, or one of another robot.
        """
        if start is self.owner:
            return
        self.forget()
        if isinstance(start, Solution):
            if self._settings.segments is None and start.segments <= MOST_SEGMENTS:
                self._use(start.segments)
                self._fewest = start.fewest_segments
            if start.record.shape == self.native.record.shape:
                self.native.record[:] = start.record
                return
        try:
            self.native.put(start.base_wrenches, start.q, start.pose)
        except ValueError:
            n = self._solver.robot.n_limbs
            raise ShapeError(
                f"start has {shape_text(start.base_wrenches, 'base_wrenches')}, "
                f"{shape_text(start.q, 'q')}, {shape_text(start.pose, 'pose')}; expected a state "
                f"of '{self._solver.robot.name}': ({n}, 6), ({n},), (4, 4)"
            ) from None
        except AttributeError:  # asked for here alone, where the check costs nothing
            raise ShapeError(
                f"start is of type {type(start).__name__}; expected a state with base_wrenches, "
                "q and pose: a Solution, or a guess (cards_core.rods.robots.initial_guess)"
            ) from None

    def command(self, q: Array | None, pose: Array | None) -> None:
        """Set the given joints, (n,), and the given pose, (4, 4). Raises `ShapeError`."""
        command, n = self.native.command, self._solver.robot.n_limbs
        try:
            if q is not None:
                command[:n] = np.reshape(q, n)
            if pose is not None:
                command[n:] = np.reshape(pose, 16)
        except (ValueError, TypeError):
            raise ShapeError(
                f"{shape_text(q, 'q')} {shape_text(pose, 'pose')}; expected ({n},) and (4, 4)"
            ) from None

    def solve(self, mode: str, wrench: Array | None, frame: str, start: State) -> Solution:
        """Solve from the state loaded with `start`, for the command set with `command`.

        Args:
            mode: ``dgm``, ``igm`` or ``limbs``.
            wrench: External wrench on the plate, (6,), or None.
            frame: ``world`` or ``plate``.
            start: That state, to start from it again with other segments.

        Raises:
            ShapeError: wrench has a wrong shape, or the pose is none.
            UnknownNameError: The frame.
        """
        native = self.native
        try:
            native.set_wrench(wrench, is_follower(frame))
        except (ValueError, TypeError):
            raise ShapeError(f"{shape_text(wrench, 'wrench')}; expected (6,)") from None
        warm = self.owner is not None
        status = self._run(native, mode, warm)
        self.owner = None
        if status < 0:
            raise ShapeError(f"pose is no homogeneous matrix with a rotation:\n{native.command}")
        solution = self.solution(mode)
        if self._settings.segments is None and status in (0, RodStatus.NOT_CONVERGED):
            wanted = max(segments_for(solution.slenderness, self.segments), self._fewest)
            if wanted != self.segments:
                solution = self._recut(wanted, solution, start)
            if solution.converged:
                solution = self._refined(solution, start, warm)
            solution.fewest_segments = self._fewest
        return solution

    def solution(self, mode: str) -> Solution:
        """Return the record as a solution."""
        solution = Solution(self._solver, self.native.record.copy(), self.segments, mode)
        self.owner = solution if solution.converged else None
        return solution

    def _refined(self, solution: Solution, start: State, warm: bool) -> Solution:
        """Cut the rods further where the steps are too long for their bends.

        Looked at after each jump and now and then on the way; a solution that cannot be made
        accurate is none.
        """
        self._unchecked = self._unchecked + 1 if warm else 0
        if self._unchecked % CHECK_EVERY:
            return solution
        error = self.native.step_error()
        if self._fewest > 1 and error < 1e-3 * STEP_ERROR:
            self._fewest -= 1
        while not error <= STEP_ERROR:
            grown = self.segments * min((error / STEP_ERROR) ** 0.125, 4.0) + 1.0
            wanted = min(int(grown), MOST_SEGMENTS)
            finer = self._recut(wanted, solution, start)
            if finer is solution or solution.segments == MOST_SEGMENTS:
                solution.record[-INFO] = RodStatus.NOT_CONVERGED
                solution.__dict__.pop("status", None)
                self.owner = None
                return solution
            solution, self._fewest = finer, wanted
            error = self.native.step_error()
        return solution

    def _recut(self, segments: int, solution: Solution, start: State) -> Solution:
        """Solve again with another number of segments; a failure stays what it was."""
        old, before = self.native, self.segments
        self._use(segments)
        self.owner = None
        native = self.native
        native.command[:] = old.command
        native.set_wrench(old.wrench, solution.external_frame == "plate")
        for state in (solution, start) if solution.converged else (start,):
            if state is solution:
                native.recut(old, solution.record)
            else:
                native.put(state.base_wrenches, state.q, state.pose)
            self._run(native, solution.mode, False)
            again = self.solution(solution.mode)
            if again.converged:
                return again
        self._use(before)
        return solution

    def _run(self, native: NativeRobot, mode: str, warm: bool) -> int:
        """Solve from the record, and count it; returns a status."""
        status = native.solve(MODES[mode], warm)
        self.iterations += max(1, int(native.record[1 - INFO]))
        return status

    def _use(self, segments: int) -> None:
        self.segments, self.native = segments, self.at(segments)
