"""Direct and inverse geometrico-static models of continuum parallel robots.

One Newton method for everything: each limb's wrench at its base w_i, the joint coordinates q and
the plate's pose x are unknowns; limbs and the plate's balance are equations. The limbs are
eliminated one by one, what remains is 6 x 6 (3 x 3 in the plane)::

    dgm    q given, x solved           igm    x given, q solved
    limbs  both given: each rod alone; the wrench of the rods on the plate comes out

Rods are integrated with exact variations (`native/rod.c`), joints are masks over the rows of a
limb (`native/robot_limb.c`), slender rods under load are cut into segments (`newton_solver.py`).
"""

from __future__ import annotations

import math
import threading
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np

from cards_core.errors import ShapeError
from cards_core.rods.robots.newton_solver import MODES, NewtonSolver
from cards_core.rods.robots.robot import (
    PLATE_COORDINATES,
    BaseKind,
    RodRobot,
    SolverSettings,
)
from cards_core.rods.robots.solution import Blocks, Linear, RobotShapes, Solution
from cards_core.rods.robots.solver_input import (
    MOST_SEGMENTS,
    State,
    check_plane_of_base,
    check_robot,
    checked_guess,
    controlled_indices,
    expect_robot,
    is_follower,
)
from cards_core.typing import Array

EXACT = 1e-11
"""Scaled residual of the solutions that `discretisation_error` compares."""


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
        self._newton = NewtonSolver(self)

    def dgm(
        self,
        q: Array,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        start: State | None = None,
    ) -> Solution:
        """Solve the direct model: joint coordinates given, plate pose unknown.

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
            self._newton.start(start)
            self._newton.command(np.asarray(q), None)
            return self._newton.solve("dgm", wrench, frame, start)

    def igm(
        self,
        pose: Array,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        start: State | None = None,
    ) -> Solution:
        """Solve the inverse model: plate pose given, joint coordinates unknown.

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
            self._newton.start(start)
            self._newton.command(None, np.asarray(pose))
            return self._newton.solve("igm", wrench, frame, start)

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

        Args:
            q: Base joint coordinates, shape (n,), [m] or [rad].
            pose: Pose of the plate, shape (4, 4), [m].
            wrench: Load on the plate about its origin, shape (6,), [N] and [N m]; zero if None.
            frame: ``world`` or ``plate``: axes of the wrench.
            start: Initial guess; found if None.
        """
        with self._lock:
            if start is None:
                start = self._guess(q, pose)
            self._newton.start(start)
            self._newton.command(q, pose)
            return self._newton.solve("limbs", wrench, frame, start)

    def linear(self, solution: Solution) -> Linear:
        """Return the stiffness of the plate and the joints' columns at a solution."""
        n = self.robot.n_limbs
        with self._lock:
            known = solution is self._newton.owner
            self._newton.start(solution)
            native = self._newton.native
            native.set_wrench(solution.external_wrench, solution.external_frame == "plate")
            self._newton.owner = solution if solution.converged else None
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

        Args:
            state: The state.
            wrench: Load on the plate about its origin, shape (6,), [N] and [N m]; zero if None.
            frame: ``world`` or ``plate``: axes of the wrench.
        """
        with self._lock:
            native = self._newton.at(1)
            self._newton.owner = None
            self._newton.iterations += 1
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

        Args:
            state: The state.
            wrench: Load on the plate about its origin, shape (6,), [N] and [N m]; zero if None.
            frame: ``world`` or ``plate``: axes of the wrench.
        """
        with self._lock:
            self._newton.start(state)
            self._newton.native.set_wrench(wrench, is_follower(frame))
            self._newton.native.residual(MODES["dgm"])
            return self._newton.solution("dgm")

    def discretisation_error(self, solution: Solution) -> float:
        """Return how much a solution changes with twice as many steps along the rods.

        Maximum change of q, of the plate's position [m] and of its orientation [rad]; infinite
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
            size = self._newton.at(segments).record.shape
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
            native = self._newton.at(solution.segments)
        return RobotShapes(native.shapes(solution.record, points))

    def strains(self, solution: Solution, points: int = 101) -> Array:
        """Return the maximum strain of each section, (n, points)."""
        return self.shapes(solution, points).strain

    @property
    def iterations(self) -> int:
        """Newton iterations so far, over all solves: a measure of work that no clock enters."""
        return self._newton.iterations

    def exclusive(self) -> AbstractContextManager[object]:
        """Return a lock for solves that belong together: other threads wait."""
        return self._lock

    def forget(self) -> None:
        """Solve next as a new solver would: without the factors of what was solved last.

        The same calls then give the same bits again.
        """
        with self._lock:
            self._newton.forget()

    def _guess(
        self, q: Array | None, pose: Array, wrench: Array | None = None, frame: str = "world"
    ) -> State:
        return checked_guess(
            self.robot,
            q,
            pose,
            base=self.base,
            gravity=self.gravity,
            wrench=wrench,
            frame=frame,
        )
