"""Direct and inverse geometrico-static models of continuum parallel robots.

One Newton method for everything: each limb's wrench at its base w_i, the joint coordinates q and
the plate's pose x are unknowns; limbs and the plate's balance are equations. The limbs are
eliminated one by one, what remains is 6 x 6 (3 x 3 in the plane)::

    dgm    q given, x solved           igm    x given, q solved
    limbs  both given: each rod alone; the wrench of the rods on the plate comes out

Rods are integrated with exact variations (`native/rod.c`), joints are masks over the rows of a
limb (`native/robot_limb.c`), slender rods under load are cut into segments (multiple shooting).
"""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import numpy as np

from cards_core.errors import ShapeError
from cards_core.rods.robots.native_robot import MODES, NativeRobot
from cards_core.rods.robots.robot import (
    PLATE_COORDINATES,
    BaseKind,
    RodRobot,
    SolverSettings,
)
from cards_core.rods.robots.solution import INFO, Blocks, Linear, RobotShapes, Solution
from cards_core.rods.robots.solver_checks import (
    MOST_SEGMENTS,
    check_plane_of_base,
    check_robot,
    controlled_indices,
    expect_robot,
)
from cards_core.rods.robots.solver_input import (
    State,
    guessed,
    is_follower,
    segments_for,
    shape_text,
)
from cards_core.rods.status import RodStatus
from cards_core.typing import Array

STEP_ERROR = 1e-4
"""Scaled residual that a solution may have when its rods are integrated with twice as many steps;
beyond it they are cut into more segments where the settings leave it open."""

EXACT = 1e-11
"""Scaled residual of the solutions that `discretisation_error` compares."""

CHECK_EVERY = 100
"""Solves in a row, each from the last one, after which that error is looked at again."""


class RodRobotSolver:
    """Solves one robot; keeps buffers and factors, allocates nothing while solving.

    Calls exclude each other; solutions may be read from any thread.

    Args:
        robot: The robot.
        settings: Steps, tolerance, policy, segments; default those of the robot.
        base: Pose of the robot in the world, (4, 4); poses of the plate are in the world.
        gravity: [m/s^2] in the world, (3,); default the robot's.

    Raises:
        RodError: No robot, or one without limbs, unusable settings, controlled coordinates that
            do not fit, or a planar robot with something that would bend it out of its plane.
        CompilationError: The C compiler is missing or refused the sources.
    """

    def __init__(
        self,
        robot: RodRobot,
        settings: SolverSettings | None = None,
        *,
        base: Array | None = None,
        gravity: Array | None = None,
    ) -> None:
        expect_robot(robot)
        self.robot = robot
        self.settings = robot.settings if settings is None else settings
        self.base = np.eye(4) if base is None else np.array(base, dtype=float)
        self.gravity = np.array(robot.gravity if gravity is None else gravity, dtype=float)
        self.slots = np.array([PLATE_COORDINATES.index(name) for name in robot.coordinates])
        self.turns = np.array([limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs])
        self.controlled = controlled_indices(robot)
        check_robot(robot, self.settings)
        check_plane_of_base(robot, self.base)
        if robot.planar:  # what keeps the robot in its plane carries the weight normal to it
            self.gravity[2] = 0.0
        self._lock = threading.RLock()
        self._natives: dict[int, NativeRobot] = {}
        self._owner: Solution | None  # the one whose state the buffers hold
        self.forget()

    def dgm(
        self,
        q: Array,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        start: State | None = None,
    ) -> Solution:
        """Solve the direct model: joint coordinates given, plate pose wanted.

        Args:
            q: Joint coordinates, (n,), [m] or [rad]; lengths of extensible limbs.
            wrench: External wrench on the plate about its origin, (6,), [N], [N m]. Of a planar
                robot fx, fy and mz count: what keeps it in its plane carries the rest.
            frame: ``world``: dead load in world axes; ``plate``: turns with the plate.
            start: State to start from. A solution of this solver is the fastest start, the last
                one especially. None: a Hermite guess at the robot's home pose.

        Returns:
            The solution; look at its ``status``. A failed one holds the last iterate.

        Raises:
            ShapeError: q or wrench of the wrong shape, or start is no state.
        """
        with self._lock:
            if start is None:
                home = self.base @ self.robot.home_pose
                start = self._guess(q, home, wrench, frame)
            self._start(start)
            self._command(np.asarray(q), None)
            return self._solve("dgm", wrench, frame, start)

    def igm(
        self,
        pose: Array,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        start: State | None = None,
    ) -> Solution:
        """Solve the inverse model: plate pose given, joint coordinates wanted.

        Robots with fewer actuators follow their controlled coordinates, the others result;
        robots with more take the step of least norm.

        Args:
            pose: Plate pose in the world, (4, 4).
            wrench: External wrench on the plate about its origin, (6,), [N], [N m]; as for `dgm`.
            frame: ``world`` or ``plate``, as for `dgm`.
            start: As for `dgm`; None starts from a Hermite guess at this pose.

        Raises:
            ShapeError: pose is no homogeneous matrix with a rotation, wrench has a wrong shape, or
                start is no state.
        """
        with self._lock:
            if start is None:
                start = self._guess(None, pose, wrench, frame)
            self._start(start)
            self._command(None, np.asarray(pose))
            return self._solve("igm", wrench, frame, start)

    def limbs(
        self,
        q: Array,
        pose: Array,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        start: State | None = None,
    ) -> Solution:
        """Solve each rod alone between given base joints and a given plate pose.

        The plate's balance is not enforced: ``plate_wrench`` and ``stiffness`` say what the rods
        do to it, for a simulator that moves the plate. ``wrench`` enters the stiffness alone.
        """
        with self._lock:
            if start is None:
                start = self._guess(q, pose)
            self._start(start)
            self._command(q, pose)
            return self._solve("limbs", wrench, frame, start)

    def linear(self, solution: Solution) -> Linear:
        """Return the stiffness of the plate and the joints' columns at a solution."""
        n = self.robot.n_limbs
        with self._lock:
            known = solution is self._owner
            self._start(solution)
            native = self._native
            native.set_wrench(solution.external_wrench, solution.external_frame == "plate")
            self._owner = solution if solution.converged else None
            if native.linearise(known):
                bad = np.full((6, 6), np.nan)
                return Linear(bad, np.full((6, n), np.nan), bad[0], bad, np.zeros(n))
            out = native.linear_out.copy()
        joints, values = out[36 : 36 + 6 * n].reshape(6, n), out[36 + 6 * n : 42 + 6 * n]
        count = len(self.slots)
        vectors, signs = out[42 + 6 * n : 78 + 6 * n].reshape(6, 6), out[78 + 6 * n :]
        return Linear(out[:36].reshape(6, 6), joints, values[:count], vectors[:count], signs)

    def linearise(
        self, state: State, *, wrench: Array | None = None, frame: str = "world"
    ) -> Blocks:
        """Return the linearised equations at any state, which need not be a solution.

        With one segment, whatever the settings say.
        """
        with self._lock:
            native = self._at(1)
            self._owner = None
            native.put(state.base_wrenches, state.q, state.pose)
            native.set_wrench(wrench, is_follower(frame))
            A, b, D, r, G, c, E, balance = native.blocks()
        k = self.slots
        return Blocks(A, b, D[:, :, k], r, G[:, k], c[:, k], E[np.ix_(k, k)], balance[k])

    def residual(
        self, state: State, *, wrench: Array | None = None, frame: str = "world"
    ) -> Solution:
        """Evaluate a state without solving: wrenches and residuals as of a solution.

        The status is OK if it is a solution, else NOT_CONVERGED.
        """
        with self._lock:
            self._start(state)
            self._native.set_wrench(wrench, is_follower(frame))
            self._native.residual(MODES["dgm"])
            return self._solution("dgm")

    def discretisation_error(self, solution: Solution) -> float:
        """Return how much a solution changes with twice as many steps along the rods.

        Greatest change of q, of the plate's position [m] and of its orientation [rad]; infinite
        if the finer equations were not solved. Order 8: the error is about what is returned.
        """
        found = []
        for steps in (self.settings.steps, 2 * self.settings.steps):
            settings = replace(
                self.settings, steps=steps, segments=solution.segments, tolerance=EXACT
            )
            solver = RodRobotSolver(self.robot, settings, base=self.base, gravity=self.gravity)
            W, frame = solution.external_wrench, solution.external_frame
            if solution.mode == "igm":
                found.append(solver.igm(solution.pose, wrench=W, frame=frame, start=solution))
            else:
                found.append(solver.dgm(solution.q, wrench=W, frame=frame, start=solution))
        here, finer = found
        if not (here.residual < 100.0 * EXACT and finer.residual < 100.0 * EXACT):
            return math.inf
        change = np.abs(finer.pose - here.pose).max(initial=0.0)
        return float(max(change, np.abs(finer.q - here.q).max()))

    def recorded(self, record: Array, segments: int) -> Solution:
        """Return the solution with this ``record`` and ``segments``, to start from it again.

        Raises:
            ValueError: It is not finite, or no record of this robot.
        """
        if not 1 <= segments <= MOST_SEGMENTS:
            raise ValueError(f"{segments} segments; expected 1 to {MOST_SEGMENTS}")
        with self._lock:
            size = self._at(segments).record.shape
        if record.shape != size or not np.isfinite(record).all():
            raise ValueError(f"record of shape {record.shape}; expected finite numbers {size}")
        return Solution(self, record, segments, "dgm")

    def shapes(self, solution: Solution, points: int = 101) -> RobotShapes:
        """Return centre lines, curvature, stress and strain at equidistant sections.

        Raises:
            ShapeError: Fewer than two points.
        """
        if points < 2:
            raise ShapeError(f"{points} points per rod; expected two or more")
        with self._lock:
            native = self._at(solution.segments)
        return RobotShapes(native.shapes(solution.record, points))

    def strains(self, solution: Solution, points: int = 101) -> Array:
        """Return the greatest strain of each section, (n, points)."""
        return self.shapes(solution, points).strain

    def forget(self) -> None:
        """Solve next as a new solver would: without the segments and factors of what was solved.

        The same calls then give the same bits again; without it the segments of earlier solves
        show in the digits beyond `STEP_ERROR`.
        """
        with self._lock:
            self._use(self.settings.segments or 1)
            self._owner = None
            self._fewest = 1  # segments that the steps' error asks for
            self._unchecked = 0

    def _at(self, segments: int) -> NativeRobot:
        native = self._natives.get(segments)
        if native is None:
            settings = self.settings
            native = NativeRobot(self.robot, self.base, self.gravity, segments, settings.steps)
            native.set_options(
                settings.tolerance,
                settings.max_iterations,
                settings.policy == "chord",
                self.controlled,
            )
            self._natives[segments] = native
        return native

    def _start(self, start: State) -> None:
        """Bring a state into the record; `_owner` is the solution that is there."""
        if start is self._owner:
            return
        self._owner = None
        if isinstance(start, Solution):
            if self.settings.segments is None and start.segments <= MOST_SEGMENTS:
                self._use(start.segments)
            if start.record.shape == self._native.record.shape:
                self._native.record[:] = start.record
                return
        try:
            self._native.put(start.base_wrenches, start.q, start.pose)
        except ValueError:
            n = self.robot.n_limbs
            raise ShapeError(
                f"start has {shape_text(start.base_wrenches, 'base_wrenches')}, "
                f"{shape_text(start.q, 'q')}, {shape_text(start.pose, 'pose')}; expected a state "
                f"of '{self.robot.name}': ({n}, 6), ({n},), (4, 4)"
            ) from None
        except AttributeError:  # asked for here alone, where the check costs nothing
            raise ShapeError(
                f"start is of type {type(start).__name__}; expected a state with base_wrenches, "
                "q and pose: a Solution, or a guess (cards_core.rods.robots.guess)"
            ) from None

    def _guess(
        self, q: Array | None, pose: Array, wrench: Array | None = None, frame: str = "world"
    ) -> State:
        return guessed(
            self.robot,
            q,
            pose,
            base=self.base,
            gravity=self.gravity,
            wrench=wrench,
            frame=frame,
        )

    def _command(self, q: Array | None, pose: Array | None) -> None:
        command, n = self._native.command, self.robot.n_limbs
        try:
            if q is not None:
                command[:n] = np.reshape(q, n)
            if pose is not None:
                command[n:] = np.reshape(pose, 16)
        except (ValueError, TypeError):
            raise ShapeError(
                f"{shape_text(q, 'q')} {shape_text(pose, 'pose')}; expected ({n},) and (4, 4)"
            ) from None

    def _solve(self, mode: str, wrench: Array | None, frame: str, start: State) -> Solution:
        native = self._native
        try:
            native.set_wrench(wrench, is_follower(frame))
        except (ValueError, TypeError):
            raise ShapeError(f"{shape_text(wrench, 'wrench')}; expected (6,)") from None
        warm = self._owner is not None
        status = native.solve(MODES[mode], warm)
        self._owner = None
        if status < 0:
            raise ShapeError(f"pose is no homogeneous matrix with a rotation:\n{native.command}")
        solution = self._solution(mode)
        if self.settings.segments is None and status in (0, RodStatus.NOT_CONVERGED):
            wanted = max(segments_for(solution.slenderness, self._segments), self._fewest)
            if wanted != self._segments:
                solution = self._recut(wanted, solution, start)
            if solution.converged:
                return self._refined(solution, start, warm)
        return solution

    def _refined(self, solution: Solution, start: State, warm: bool) -> Solution:
        """Cut the rods further where the steps are too long for their bends.

        Looked at after each jump and now and then on the way; a solution that cannot be made
        accurate is none.
        """
        self._unchecked = self._unchecked + 1 if warm else 0
        if self._unchecked % CHECK_EVERY:
            return solution
        error = self._native.step_error()
        if self._fewest > 1 and error < 1e-3 * STEP_ERROR:
            self._fewest -= 1
        while not error <= STEP_ERROR:
            grown = self._segments * min((error / STEP_ERROR) ** 0.125, 4.0) + 1.0
            wanted = min(int(grown), MOST_SEGMENTS)
            finer = self._recut(wanted, solution, start)
            if finer is solution or solution.segments == MOST_SEGMENTS:
                solution.record[-INFO] = RodStatus.NOT_CONVERGED
                solution.__dict__.pop("status", None)
                self._owner = None
                return solution
            solution, self._fewest = finer, wanted
            error = self._native.step_error()
        return solution

    def _solution(self, mode: str) -> Solution:
        solution = Solution(self, self._native.record.copy(), self._segments, mode)
        self._owner = solution if solution.converged else None
        return solution

    def _recut(self, segments: int, solution: Solution, start: State) -> Solution:
        """Solve again with another number of segments; a failure stays what it was."""
        old, before = self._native, self._segments
        self._use(segments)
        self._owner = None
        native = self._native
        native.command[:] = old.command
        native.set_wrench(old.wrench, solution.external_frame == "plate")
        for state in (solution, start) if solution.converged else (start,):
            if state is solution:
                native.recut(old, solution.record)
            else:
                native.put(state.base_wrenches, state.q, state.pose)
            native.solve(MODES[solution.mode], False)
            again = self._solution(solution.mode)
            if again.converged:
                return again
        self._use(before)
        return solution

    def _use(self, segments: int) -> None:
        self._segments, self._native = segments, self._at(segments)
