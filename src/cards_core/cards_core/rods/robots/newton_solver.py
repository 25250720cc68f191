"""Newton's method for a rod robot, with rods cut into as many segments as they need.

A slender rod under load is cut into segments (multiple shooting), one whose steps are too long
for its bends as well. Where the settings leave the number open, it is that of the state that a
solve starts from, and grows and shrinks with what is found.
"""

from __future__ import annotations

import numpy as np

from cards_core.errors import ShapeError
from cards_core.rods.robots.native_robot import MODES, NativeRobot
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
