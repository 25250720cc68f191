"""Continuum parallel robots and single rods in motion: rods with mass, a plate with inertia.

Time is replaced by BDF-alpha differences, each instant is then a boundary value problem along the
rods, solved by shooting with the variation propagated along: ``native/dynamics_*.c`` has the
equations. A single rod is a robot with one limb: clamped at its start; free, loaded with a body or
clamped at its tip. The time step decides how finely the rods are cut and integrated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cards_core.checks import finite_array
from cards_core.errors import RodError
from cards_core.rods.dynamics.backward_differences import (
    AT_REST,
    CommandRates,
    DifferenceFormula,
    backward_euler,
    bdf_alpha,
)
from cards_core.rods.dynamics.native_state import NativeState, dynamics_library
from cards_core.rods.robots.limb_failure import strain_findings
from cards_core.rods.robots.robot import (
    Base,
    BaseKind,
    Limb,
    Plate,
    RodRobot,
    Tip,
    TipKind,
    rod_lengths,
    rod_starts,
)
from cards_core.rods.robots.solver_input import expect_robot
from cards_core.rods.rod import Rod
from cards_core.rods.status import Finding
from cards_core.spatial import hat, matrix_quaternion, quaternion_matrix
from cards_core.typing import Array

TOLERANCE = 1e-8
"""Maximum scaled row of the equations (lengths by L, forces by EI/L^2, moments by EI/L)."""


@dataclass(frozen=True, eq=False)
class Instant:
    """State of the robot at one instant.

    Attributes:
        time: [s].
        q: Joint coordinates, shape (n,), [m] or [rad].
        pose: Of the plate, shape (4, 4).
        twist: Velocity of the plate's origin and angular velocity, world axes, shape (6,).
        base_wrenches: Force and moment in the rods at their starts, shape (n, 6), [N], [N m].
        tip_wrenches: The same at their tips.
        iterations: Newton iterations that the instant took.
        residual: Maximum scaled row that was left.
    """

    time: float
    q: Array
    pose: Array
    twist: Array
    base_wrenches: Array
    tip_wrenches: Array
    iterations: int
    residual: float


class RobotDynamics:
    """Time stepping of a rod robot with implicit steps.

    Args:
        robot: Planar robots move in space here; their joints keep them in the plane.
        dt: Step, [s].
        alpha: Of `bdf_alpha`.
        steps: Steps of order 8 along each rod; None: as the time step needs.
        segments: Of multiple shooting, which share the steps; None: as the time step needs, and
            more from where loads and curvature turn out to need them.
        held: The plate's pose is given at every step instead of following from its inertia.
        tolerance: Maximum scaled row; at short steps what rounding leaves, if that is more.

    Raises:
        RodError: No robot, or a value out of its range.
        CompilationError: There is no C compiler.
    """

    _tip_is_plate = False
    """A free rod: the first guess of the plate's pose is where the rod goes."""

    def __init__(
        self,
        robot: RodRobot,
        dt: float,
        *,
        alpha: float = -0.2,
        steps: int | None = None,
        segments: int | None = None,
        held: bool = False,
        tolerance: float = TOLERANCE,
    ) -> None:
        expect_robot(robot)
        self.robot = robot
        self.dt = dt
        self.alpha = alpha
        self.tolerance = tolerance
        self.time = 0.0
        self._formula = bdf_alpha(dt, alpha)
        cut = _discretisation(robot, self._formula, alpha, steps, segments)
        self._prescribed = segments is not None
        self._library = dynamics_library()
        self._q = robot.home_q
        self._base = np.eye(4)
        self._placed: tuple[bytes, bytes] | None = None
        self._lengths = CommandRates(rod_lengths(robot, self._q))
        self._young = 0  # instants since the last restart
        self.native_state = NativeState(robot, *cut, held)
        self._c = self.native_state.c

    @property
    def segments(self) -> int:
        """Of multiple shooting, now."""
        return int(self._c.segments)

    @property
    def steps(self) -> int:
        """Along each segment, now."""
        return int(self._c.steps)

    # -- setting it up -----------------------------------------------------------------------

    def rest(
        self,
        q: Array | None = None,
        *,
        pose: Array | None = None,
        base_wrenches: Array | None = None,
        wrench: Array | None = None,
        frame: str | None = None,
    ) -> Instant:
        """Start at rest, in the equilibrium near a guess (static model with the same rods).

        Args:
            q: Joint coordinates, shape (n,); default: the robot's.
            pose: Of the plate, shape (4, 4): guess, or where it is held.
            base_wrenches: Guess, shape (n, 6); a solution of `RodRobotSolver` has both.
            wrench: On the plate, shape (6,); default: the robot's.
            frame: ``world`` (dead) or ``plate`` (it turns with the plate); default: the robot's.

        Raises:
            RodError: Newton found no equilibrium from there.
        """
        self._set(AT_REST)
        self.time, self._young = 0.0, 0
        self._command(self.robot.home_q if q is None else q, 0.0)
        self._lengths = CommandRates(rod_lengths(self.robot, self._q))
        load = self.robot.wrench if wrench is None else wrench
        self._force(load, self.robot.wrench_frame if frame is None else frame)
        self._pose(self.robot.home_pose if pose is None else pose)
        states = self.native_state.states[0]
        states[...] = 0.0
        if base_wrenches is not None:
            states[:, 0, 7:] = base_wrenches
        self._library.dynamic_fill(self._c)
        if pose is None and self._tip_is_plate:
            self._pose(self._tip_pose())
        held, iterations = self._c.held, 0
        if not held:  # first every rod alone, with the plate where the guess has it
            self._c.held = 1
            iterations = self._library.dynamic_rest(self._c, 50, 1e-3)
            self._c.held = 0
        if iterations >= 0:
            iterations = self._library.dynamic_rest(self._c, 100, self.tolerance)
        if iterations < 0:
            raise RodError(
                f"robot '{self.robot.name}': no equilibrium near the given pose to start from "
                f"(residual {self._c.residual:.3g}); expected pose and base_wrenches of a static "
                "solution"
            )
        return self._instant(iterations)

    def restart(self) -> None:
        """Restart the differences where a load or command jumps, as in a first step."""
        self._young = 0

    # -- stepping ----------------------------------------------------------------------------

    def step(
        self,
        q: Array | None = None,
        *,
        wrench: Array | None = None,
        frame: str = "world",
        pose: Array | None = None,
        base: Array | None = None,
    ) -> Instant:
        """Advance by dt.

        Args:
            q: Joint coordinates at the end of the step, shape (n,); default: as they were.
            wrench: On the plate at the end of the step, shape (6,), about its origin; default: as
                it was.
            frame: ``world`` or ``plate``.
            pose: Of the plate at the end of the step if it is held.
            base: Pose of the whole base in the world at the end of the step, shape (4, 4), for
                robots that are carried or shaken; default: as it was (at first the identity).

        Raises:
            RodError: No solution; everything is as before the step then.
            ShapeError: An argument of the wrong shape or not finite.
        """
        self._set(backward_euler(self.dt) if self._young == 0 else self._formula)
        c, before, segments = self._c, (self._q, self._base), self.segments
        kept = [list(values) for values in (c.wrench, c.p, c.q)], c.follower
        iterations = -1
        try:
            if base is not None:
                self._base = finite_array(base, "base", (4, 4))
            if wrench is not None:
                self._force(wrench, frame)
            if pose is not None:
                self._pose(pose)
            self._command(self._q if q is None else q, self.dt)
            step, linear = self._library.dynamic_step, int(self._young > 1)
            iterations = step(c, linear, int(self._young < 2), 8, self.tolerance)
            while iterations < 0 and not self._prescribed and self.native_state.refine():
                iterations = step(c, 0, 1, 8, self.tolerance)
        finally:
            if iterations < 0:
                (self._q, self._base), ((c.wrench[:], c.p[:], c.q[:]), c.follower) = before, kept
        if iterations < 0:
            if self.segments != segments:
                self.native_state.cut(segments)
            more = "more segments, " if self._prescribed else ""
            raise RodError(
                f"robot '{self.robot.name}': no solution at t = {self.time + self.dt:.6g} s "
                f"(residual {self._c.residual:.3g}); expected {more}a smaller step, or a "
                "slower command or smaller load"
            )
        self._lengths.accept()
        self._young += 1
        self.time += self.dt
        return self._instant(iterations)

    # -- what it is doing --------------------------------------------------------------------

    def dynamic_stiffness(self, square: float) -> Array:
        """Return S with ``dW = S dx`` for vibrations about the equilibrium, shape (6, 6).

        Args:
            square: Squared angular frequency, [rad^2/s^2]; 0 gives the static stiffness.

        Raises:
            RodError: Not right after `rest`, or this is a frequency of a rod with its tip fixed.
        """
        if self._young or self.time:
            raise RodError("dynamic_stiffness while moving; expected a call right after rest")
        self._set(AT_REST)
        self._c.formula.lambda_ = -square
        good = self._library.dynamic_linearise(self._c)
        out = np.array(self._c.stiffness).reshape(6, 6)
        if not good or not np.all(np.isfinite(out)):
            raise RodError(f"dynamic stiffness at w^2 = {square:g}: singular; expected another w")
        return out

    def positions(self) -> Array:
        """Return points of the centre-lines, shape (n, steps + 1, 3), [m]."""
        return self.native_state.positions()

    def strains(self) -> Array:
        """Return the largest equivalent strain of each rod, shape (n,), as `RodShape.strain`."""
        return self.native_state.strains()

    def findings(self) -> tuple[Finding, ...]:
        """Return YIELD for each limb strained beyond its yield strain at this instant."""
        return tuple(strain_findings(self.robot, self.strains()))

    def energy(self) -> dict[str, float]:
        """Return kinetic, elastic and gravitational energy and their sum ``total``, [J].

        ``T = 1/2 integral of rA V.V + w.H ds + plate``, ``U = 1/2 integral of
        (v - v0)' Kse (v - v0) + (u - u0)' Kbt (u - u0) ds``; by the quadrature of the steps.
        """
        return self.native_state.energy()

    def momentum(self) -> Array:
        """Return linear momentum and angular momentum about the world's origin, shape (6,)."""
        return self.native_state.momentum()

    # -- inside ------------------------------------------------------------------------------

    def _set(self, formula: DifferenceFormula) -> None:
        self._formula_now = formula
        c = self._c.formula
        c.c0, c.c1, c.c2, c.d1, c.lambda_ = (
            formula.c0,
            formula.c1,
            formula.c2,
            formula.d1,
            formula.c0**2,
        )

    def _command(self, q: Array, dt: float) -> None:
        if q is not self._q:
            q = finite_array(q, "q", (self.robot.n_limbs,))
        placed = (q.tobytes(), self._base.tobytes())
        if placed != self._placed:  # both are slow
            starts = self._base @ rod_starts(self.robot, q)
            for item, start in zip(self.native_state.limbs, starts, strict=False):
                item.start_p[:] = start[:3, 3].tolist()
                item.start_R[:] = start[:3, :3].ravel().tolist()
            self._placed = placed
        lengths = rod_lengths(self.robot, q)
        rates = self._lengths.propose(self._formula_now, lengths) if dt else np.zeros(len(q))
        for item, length, rate in zip(self.native_state.limbs, lengths, rates, strict=False):
            item.length, item.speed = length, rate
        self._q = q

    def _force(self, wrench: Array, frame: str) -> None:
        if frame not in ("world", "plate"):
            raise RodError(f"wrench in frame {frame!r}; expected 'world' or 'plate'")
        self._c.wrench[:] = finite_array(wrench, "wrench", (6,)).tolist()
        self._c.follower = frame == "plate"

    def _tip_pose(self) -> Array:
        pose = np.eye(4)
        pose[:3, 3] = self.native_state.states[0, 0, -1, :3]
        pose[:3, :3] = quaternion_matrix(self.native_state.states[0, 0, -1, 3:7])
        return pose

    def _pose(self, pose: Array) -> None:
        pose = finite_array(pose, "pose", (4, 4))
        self._c.p[:] = pose[:3, 3]
        self._c.q[:] = matrix_quaternion(pose[:3, :3])

    def _instant(self, iterations: int) -> Instant:
        c = self._c
        pose = np.eye(4)
        pose[:3, :3] = quaternion_matrix(c.q)
        pose[:3, 3] = c.p
        spin = np.array(c.plate.spin)
        arm = pose[:3, :3] @ self.robot.plate.com
        velocity = np.array(c.plate.rate[:3]) - hat(spin) @ arm
        states = self.native_state.states[0]
        return Instant(
            time=self.time,
            q=self._q.copy(),
            pose=pose,
            twist=np.concatenate([velocity, spin]),
            base_wrenches=states[:, 0, 7:].copy(),
            tip_wrenches=states[:, -1, 7:].copy(),
            iterations=int(iterations),
            residual=float(c.residual),
        )


_GROWTH = 4.0
"""A disturbance may grow by exp(_GROWTH) along one segment of the shooting."""

_WAVE, _WAVE_UNDAMPED = 1.6, 0.7
"""Longest step along a rod, in units of the shortest wave that the time step can show / 2 pi.
With longer ones the waves that are shown badly grow in time, the sooner the less alpha damps."""


def _discretisation(
    robot: RodRobot,
    formula: DifferenceFormula,
    alpha: float,
    steps: int | None,
    segments: int | None,
) -> tuple[int, int]:
    """Return segments and steps per segment.

    Waves of bending that the time step can just show have the wave number
    ``k = (rA c0^2/EI)^(1/4)``; disturbances grow along the rod by ``exp(k L/sqrt 2)``.

    Args:
        robot: The robot.
        formula: Differences in place of the time derivatives.
        alpha: Of `bdf_alpha`.
        steps: Along each rod, where that is prescribed.
        segments: Of multiple shooting, where they are prescribed.

    Raises:
        RodError: Less than one step or segment is prescribed.
    """
    wave = _WAVE if alpha > -0.35 else _WAVE_UNDAMPED
    phase = 0.0
    for limb in robot.limbs:
        softness = limb.rod.mass_per_length / limb.rod.bending_stiffness
        phase = max(phase, limb.length * (softness * formula.c0**2) ** 0.25)
    if segments is None:
        segments = max(1, math.ceil(phase / math.sqrt(2.0) / _GROWTH))
    if steps is None:
        steps = max(4, math.ceil(phase / wave))
    if segments < 1 or steps < 1:
        raise RodError(f"segments {segments}, steps {steps}; expected both >= 1")
    return segments, math.ceil(steps / segments)


def single_rod(
    rod: Rod,
    length: float,
    *,
    start: Array | None = None,
    mass: float = 0.0,
    inertia: Array | None = None,
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0),
    feed: bool = False,
) -> RodRobot:
    """Return a rod with a body at its tip as a robot with one limb; the body is its plate.

    Args:
        rod: Section, material, shape at rest, damping.
        length: Unstrained, [m].
        start: Pose of the start, shape (4, 4); z is the tangent. Default: the world's frame.
        mass: Of the body at the tip, [kg]; its centre lies on the tip.
        inertia: Of the body about the tip, shape (3, 3), [kg m^2]; default 0.
        gravity: [m/s^2].
        feed: The start is a guide that the rod is fed out of: q is its length.
    """
    start = np.eye(4) if start is None else np.asarray(start, dtype=float)
    kind = BaseKind.EXTENSIBLE if feed else BaseKind.FIXED
    limits = (1e-3 * length, np.inf) if feed else (0.0, 0.0)
    limb = Limb(
        name="rod",
        rod=rod,
        length=length,
        base=Base(kind, start, np.eye(4), *limits),
        tip=Tip(TipKind.FIXED, np.eye(4), np.eye(4)),
    )
    end = start.copy()
    end[:3, 3] += length * start[:3, 2]
    turning = np.zeros((3, 3)) if inertia is None else np.asarray(inertia, dtype=float)
    plate = Plate("tip", mass, np.zeros(3), turning, end)
    return RodRobot("rod", (limb,), plate, np.asarray(gravity, dtype=float))


class RodDynamics(RobotDynamics):
    """Time stepping of one rod; ``pose`` and ``twist`` of an instant are those of the tip.

    Args:
        rod: A robot of `single_rod`.
        dt: Step, [s].
        tip: ``free`` (with the body that `rod` has there) or ``clamped``: ``step(pose=...)``
            moves it, else it stays.
        alpha, steps, segments, tolerance: As for `RobotDynamics`.
    """

    def __init__(
        self,
        rod: RodRobot,
        dt: float,
        *,
        tip: str = "free",
        alpha: float = -0.2,
        steps: int | None = None,
        segments: int | None = None,
        tolerance: float = TOLERANCE,
    ) -> None:
        if tip not in ("free", "clamped"):
            raise RodError(f"tip {tip!r}; expected 'free' or 'clamped'")
        self._tip_is_plate = tip == "free"
        super().__init__(
            rod,
            dt,
            alpha=alpha,
            steps=steps,
            segments=segments,
            held=tip == "clamped",
            tolerance=tolerance,
        )
