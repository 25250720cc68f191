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
from typing import Protocol

import numpy as np

from cards_core.errors import ShapeError, UnknownNameError
from cards_core.rods.robots.guess import hermite_guess
from cards_core.rods.robots.native_robot import MODES, NativeRobot
from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind, RodRobot, SolverSettings
from cards_core.rods.robots.solution import Blocks, Linear, RobotShapes, Solution
from cards_core.rods.robots.solver_checks import MOST_SEGMENTS, check_robot, controlled_indices
from cards_core.rods.status import RodStatus
from cards_core.typing import Array

FRAMES = ("world", "plate")
"""Frames of an external wrench: dead in world axes, or following the plate."""

LONGEST_SEGMENT = 4.0
"""Slenderness ``L sqrt(|n| / EI)`` that a segment may have: errors grow by its exponential."""

MANY_SEGMENTS = 6.0
"""Slenderness from which on rods are cut into segments where the settings leave it open."""


class State(Protocol):
    """Anything to start from: a `Solution`, a `Guess`."""

    @property
    def q(self) -> Array:
        """Joint coordinates, (n,)."""

    @property
    def pose(self) -> Array:
        """Plate pose, (4, 4)."""

    @property
    def base_wrenches(self) -> Array:
        """n, m at the rod starts, (n, 6), world axes."""


class RodRobotSolver:
    """Solves one robot; keeps buffers and factors, allocates nothing while solving.

    Calls exclude each other; solutions may be read from any thread.

    Args:
        robot: The robot.
        settings: Steps, tolerance, policy, segments; default those of the robot.
        base: Pose of the robot in the world, (4, 4); poses of the plate are in the world.
        gravity: [m/s^2] in the world, (3,); default the robot's.

    Raises:
        RodError: No limbs, unusable settings, controlled coordinates that do not fit, or a
            planar robot with joints across its plane.
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
        self.robot = robot
        self.settings = robot.settings if settings is None else settings
        self.base = np.eye(4) if base is None else np.array(base, dtype=float)
        self.gravity = np.array(robot.gravity if gravity is None else gravity, dtype=float)
        self.slots = np.array([PLATE_COORDINATES.index(name) for name in robot.coordinates])
        self.turns = np.array([limb.base.kind is BaseKind.REVOLUTE for limb in robot.limbs])
        self.controlled = controlled_indices(robot)
        check_robot(robot, self.settings)
        self._lock = threading.RLock()
        self._natives: dict[int, NativeRobot] = {}
        self._segments = self.settings.segments or 1
        self._native = self._at(self._segments)
        self._owner: Solution | None = None

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
            wrench: External wrench on the plate about its origin, (6,), [N], [N m].
            frame: ``world``: dead load in world axes; ``plate``: turns with the plate.
            start: State to start from. A solution of this solver is the fastest start, the last
                one especially. None: a Hermite guess at the robot's home pose.

        Returns:
            The solution; look at its ``status``. A failed one holds the last iterate.

        Raises:
            ShapeError: q or wrench of the wrong shape.
        """
        with self._lock:
            if start is None:
                start = hermite_guess(self.robot, self.robot.home_pose, np.asarray(q, dtype=float))
            self._start(start)
            self._command(q, None)
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
            wrench: External wrench on the plate about its origin, (6,), [N], [N m].
            frame: ``world`` or ``plate``, as for `dgm`.
            start: As for `dgm`; None starts from a Hermite guess at this pose.

        Raises:
            ShapeError: pose is no homogeneous matrix with a rotation, or wrench has a wrong shape.
        """
        with self._lock:
            if start is None:
                start = hermite_guess(self.robot, np.asarray(pose, dtype=float), wrench=wrench)
            self._start(start)
            self._command(None, pose)
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
                start = hermite_guess(
                    self.robot, np.asarray(pose, dtype=float), np.asarray(q, dtype=float)
                )
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
            native.set_wrench(wrench, _follower(frame))
            A, b, D, r, G, c, E, balance = native.blocks()
        k = self.slots
        return Blocks(A, b, D[:, :, k], r, G[:, k], c[:, k], E[np.ix_(k, k)], balance[k])

    def residual(
        self, state: State, *, wrench: Array | None = None, frame: str = "world"
    ) -> Solution:
        """Evaluate a state without solving: wrenches and residuals as of a solution."""
        with self._lock:
            self._start(state)
            self._native.set_wrench(wrench, _follower(frame))
            self._native.residual(MODES["dgm"])
            return self._solution("dgm")

    def discretisation_error(self, solution: Solution) -> float:
        """Return how much a solution changes with twice as many steps along the rods.

        Greatest change of q, of the plate's position [m] and of its orientation [rad]; infinite
        if the finer equations were not solved. Order 8: the error is about what is returned.
        """
        settings = replace(
            self.settings, steps=2 * self.settings.steps, segments=solution.segments
        )
        finer = RodRobotSolver(self.robot, settings, base=self.base, gravity=self.gravity)
        W, frame = solution.external_wrench, solution.external_frame
        if solution.mode == "igm":
            other = finer.igm(solution.pose, wrench=W, frame=frame, start=solution)
        else:
            other = finer.dgm(solution.q, wrench=W, frame=frame, start=solution)
        if not other.converged:
            return math.inf
        change = np.abs(other.pose - solution.pose).max(initial=0.0)
        return float(max(change, np.abs(other.q - solution.q).max()))

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
        self._native.put(start.base_wrenches, start.q, start.pose)

    def _command(self, q: Array | None, pose: Array | None) -> None:
        command, n = self._native.command, self.robot.n_limbs
        try:
            if q is not None:
                command[:n] = np.reshape(q, n)
            if pose is not None:
                command[n:] = np.reshape(pose, 16)
        except (ValueError, TypeError):
            raise ShapeError(
                f"{_shape(q, 'q')} {_shape(pose, 'pose')}; expected ({n},) and (4, 4)"
            ) from None

    def _solve(self, mode: str, wrench: Array | None, frame: str, start: State) -> Solution:
        native = self._native
        try:
            native.set_wrench(wrench, _follower(frame))
        except (ValueError, TypeError):
            raise ShapeError(f"{_shape(wrench, 'wrench')}; expected (6,)") from None
        status = native.solve(MODES[mode], self._owner is not None)
        self._owner = None
        if status < 0:
            raise ShapeError(f"pose is no homogeneous matrix with a rotation:\n{native.command}")
        solution = self._solution(mode)
        if self.settings.segments is None and status in (0, RodStatus.NOT_CONVERGED):
            wanted = _segments(solution.slenderness, self._segments)
            if wanted != self._segments:
                return self._recut(wanted, solution, start)
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
        state = solution if solution.converged else start
        native.put(state.base_wrenches, state.q, state.pose)
        native.command[:] = old.command
        native.set_wrench(old.wrench, solution.external_frame == "plate")
        native.solve(MODES[solution.mode], False)
        again = self._solution(solution.mode)
        if again.converged:
            return again
        self._use(before)
        return solution

    def _use(self, segments: int) -> None:
        self._segments, self._native = segments, self._at(segments)


def _segments(slenderness: float, now: int) -> int:
    """How many segments rods of this slenderness want, with `now` at present."""
    if not slenderness > (MANY_SEGMENTS if now == 1 else 0.8 * MANY_SEGMENTS):
        return 1
    wanted = min(math.ceil(min(slenderness, 1e6) / LONGEST_SEGMENT), MOST_SEGMENTS)
    return now if now == wanted + 1 else wanted


def _shape(values: Array | None, name: str) -> str:
    return "" if values is None else f"{name} has shape {np.asarray(values).shape}"


def _follower(frame: str) -> bool:
    if frame not in FRAMES:
        raise UnknownNameError("frame of a wrench", frame, FRAMES)
    return frame == "plate"
