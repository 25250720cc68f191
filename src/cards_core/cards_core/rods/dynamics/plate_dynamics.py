"""A dynamic plate on rods without inertia, stepped at the rate of a rigid body simulator.

The rods follow the plate at once (quasi-static), which is right for slow motions and for plates
that are much heavier than the rods. What they do to the plate is stiff: 400 Hz and more, too fast
for explicit steps of 1 ms. Each step is therefore implicit in the linearised rods::

    (M + (theta dt)^2 K + theta dt D) dv = dt (f + theta C dq - (theta dt K + D) v)
    x <- x + dt (v + theta dv)    v <- v + dv

with the wrench f of rods, weight, gyroscopic terms and external load at the present pose, the
rods' stiffness K (its positive part) and joint columns C, which the solver has from its
elimination: one solve per step. theta = 1/2 is the midpoint rule (second order where K is positive
and the solver's tolerance hides no error; keeps the energy of linear vibrations), 1 the implicit
Euler rule; vibrations of frequency w lose per radian about ``(theta - 1/2) w dt`` of their
amplitude. Rods with mass: `RobotDynamics`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cards_core.checks import finite_array
from cards_core.errors import RodError
from cards_core.rods.dynamics.native_plate import NativePlate
from cards_core.rods.robots.limb_failure import YieldCheck
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.spatial import hat
from cards_core.typing import Array, Matrix3

HALVINGS = 6
"""How often a step may be halved where the rods do not follow."""

LONGEST_MOVE, LARGEST_TURN = 0.02, 0.1
"""Motion of the plate in one solve, [m] and [rad]; faster plates are sub-stepped."""


class PlateStep(NamedTuple):
    """Result of a step, at its end.

    Attributes:
        pose: Of the plate, shape (4, 4).
        twist: Velocity of the plate's origin and angular velocity, world axes, shape (6,).
        solution: The rods at this pose, with their wrenches; the last good one if held.
        status: OK, UNSTABLE (the plate is falling off: K is not positive), HELD or YIELD.
        message: In words; empty if there is nothing to report.
        substeps: Solves that the step took.
    """

    pose: Array
    twist: Array
    solution: Solution
    status: RodStatus
    message: str
    substeps: int


class PlateDynamics:
    """Rigid plate with inertia on quasi-static rods.

    Args:
        robot: Its plate must have mass and inertia.
        solver: Of the same robot.
        theta: From 1/2 to 1, see the module.
        damping: Kelvin-Voigt time tau of the rods, ``D = tau K``, [s]; default: the mean of the
            rods' own.
        drag: Viscous drag on the plate, ``-drag v`` and on its rotation, (2,), [N s/m], [N m s].
        rod_inertia: Inertia of the rods as the plate feels it, in plate axes about its origin,
            shape (6, 6): ``reduced_inertia`` of `cards_core.rods.dynamics.modes` less the plate's
            own. Without gyroscopic terms. Default: none, rods have no mass then.
        accuracy: Error of the plate's speed, [m/s], by which a step is halved: rods that come
            taut are stiffer at its end than their linearisation at its start says.

    Raises:
        RodError: A plate without mass or inertia, or a parameter out of its range.
    """

    def __init__(
        self,
        robot: RodRobot,
        solver: RodRobotSolver,
        *,
        theta: float = 0.55,
        damping: float | None = None,
        drag: tuple[float, float] = (0.0, 0.0),
        rod_inertia: Array | None = None,
        accuracy: float = 5e-3,
    ) -> None:
        if not 0.5 <= theta <= 1.0:
            raise RodError(f"theta is {theta!r}; expected 0.5 (midpoint) to 1 (implicit Euler)")
        if damping is None:
            damping = float(np.mean([limb.rod.damping for limb in robot.limbs] or [0.0]))
        if not accuracy > 0.0:
            raise RodError(f"accuracy is {accuracy!r} m/s; expected a number > 0")
        if not all(math.isfinite(x) and x >= 0.0 for x in (damping, *drag)):
            raise RodError(f"damping {damping!r} s, drag {drag!r}; expected finite numbers >= 0")
        _check_inertia(robot)
        self.robot = robot
        self.solver = solver
        self.theta = theta
        self.damping = damping
        self.accuracy = accuracy
        self.drag = np.repeat(np.asarray(drag, dtype=float), 3)
        mass = _mass_matrix(robot)
        if rod_inertia is not None:
            mass += finite_array(rod_inertia, "rod_inertia", (6, 6))
        self._native = NativePlate(
            robot.plate,
            mass,
            np.asarray(solver.gravity),
            np.asarray(solver.slots),
            theta=theta,
            damping=damping,
            drag=self.drag,
        )
        self.time = 0.0
        free = np.asarray(solver.slots)
        self._block = np.ix_(free, free)
        self.pose = robot.home_pose
        self.twist = np.zeros(6)
        self.q = robot.home_q
        self._solution: Solution | None = None
        self._load = np.zeros(6), "world"
        self._yields = YieldCheck(robot, solver)

    def start(self, solution: Solution, twist: Array | None = None) -> None:
        """Begin at a solution of the solver (of a search, or of the present state).

        Args:
            solution: Converged state of this robot; an equilibrium stays where it is.
            twist: Of the plate, shape (6,); default 0.

        Raises:
            RodError: The solution has not converged.
        """
        if not solution.converged:
            raise RodError(f"start of the plate: {solution!r}; expected a converged solution")
        self.time = 0.0
        self.pose = solution.pose.copy()
        self.q = np.array(solution.q)
        self.twist = np.zeros(6) if twist is None else np.array(twist, dtype=float)
        self._solution = solution
        self._load = np.array(solution.external_wrench), solution.external_frame

    def step(
        self,
        dt: float,
        q: Array | None = None,
        wrench: Array | None = None,
        *,
        frame: str = "world",
    ) -> PlateStep:
        """Advance by dt.

        Args:
            dt: [s].
            q: Joint coordinates at the end of the step, shape (n,); default: unchanged.
            wrench: External wrench on the plate during the step, about its origin, shape (6,);
                default: as it was, at first that of the solution it was started with.
            frame: ``world`` or ``plate``.

        Raises:
            RodError: `start` was not called, or dt is not positive.
            ShapeError: q or wrench of the wrong shape or not finite.
        """
        if self._solution is None:
            raise RodError("PlateDynamics.step before start; expected start(solution) first")
        if not (math.isfinite(dt) and dt > 0.0):
            raise RodError(f"time step is {dt!r} s; expected a finite number > 0")
        target = self.q if q is None else finite_array(q, "q", self.q.shape)
        if wrench is not None:
            if frame not in ("world", "plate"):
                raise RodError(f"wrench in frame {frame!r}; expected 'world' or 'plate'")
            self._load = finite_array(wrench, "wrench", (6,)), frame
        done, part, solves = 0.0, 1.0, 0
        first = self.q
        while done < 1.0 - 1e-12:
            part = min(part, 1.0 - done, self._share(dt))
            goal = first + (done + part) * (target - first)
            solves += 1
            last = part < 2.0 * 0.5**HALVINGS
            if self._advance(part * dt, goal, last):
                done += part
            elif last:
                return self._hold(dt, solves)
            else:
                part *= 0.5
        self.time += dt
        return self._step_result(solves)

    def kinetic_energy(self) -> float:
        """Return the kinetic energy of the plate, [J]."""
        mass, _ = self._native.inertia(self.pose, self.twist)
        return 0.5 * float(self.twist @ mass @ self.twist)

    def frequencies(self) -> Array:
        """Return the natural frequencies of the plate here, [Hz], ascending, (6,) or (3,).

        Of ``K v = (2 pi f)^2 M v``; negative where K is: ``-sqrt(-eigenvalue)``.
        """
        if self._solution is None:
            raise RodError("PlateDynamics.frequencies before start; expected start(solution)")
        free = self._block
        mass, _ = self._native.inertia(self.pose, self.twist)
        stiffness = self._solution.stiffness[free]
        inverse = np.linalg.inv(np.linalg.cholesky(mass[free]))
        values = np.linalg.eigvalsh(inverse @ (0.5 * (stiffness + stiffness.T)) @ inverse.T)
        return np.asarray(np.sign(values) * np.sqrt(np.abs(values)) / (2.0 * np.pi))

    # -- inside ------------------------------------------------------------------------------

    def _share(self, dt: float) -> float:
        """Return the part of a step in which the plate moves little enough for one solve."""
        v = self.twist.tolist()
        move = dt * math.hypot(*v[:3]) / LONGEST_MOVE
        turn = dt * math.hypot(*v[3:]) / LARGEST_TURN
        return 1.0 / max(1.0, math.ceil(max(move, turn)))

    def _advance(self, dt: float, q: Array, last: bool) -> bool:
        """Make one step; a failure changes nothing. Only the last try may be inaccurate."""
        solution = self._solution
        assert solution is not None
        load, frame = self._load
        v, native = self.twist, self._native
        linear = solution.linear
        stiffness = linear.stiffness
        if linear.eigenvalues[0] < 0.0:
            vectors, values = linear.eigenvectors, np.maximum(linear.eigenvalues, 0.0)
            stiffness = (vectors.T * values) @ vectors
        driven = linear.joints @ (q - self.q)
        force = solution.plate_wrench + self.theta * driven
        force += load if frame == "world" else _turned(self.pose[:3, :3], load)
        found = native.advance(dt, self.pose, v, force, stiffness)
        if found is None:
            return False
        change, move, pose = found
        if math.hypot(*move[:3].tolist()) > 2.0 * LONGEST_MOVE:
            return False
        rods = self.solver.limbs(q, pose, start=solution, wrench=load, frame=frame)
        if not rods.converged:
            return False
        if not last:
            expected = solution.plate_wrench - linear.stiffness @ move + driven
            impulse = 0.5 * dt * (rods.plate_wrench - expected)
            square = native.missed(self.pose, v, impulse)
            if square > self.robot.plate.mass * self.accuracy**2:
                return False
        self._solution, self.q, self.pose, self.twist = rods, q, pose, v + change
        return True

    def _hold(self, dt: float, solves: int) -> PlateStep:
        self.twist = np.zeros(6)
        self.time += dt
        message = (
            "the rods do not follow the plate's motion in any smaller step: it is held where it "
            "was, with its velocity set to 0"
        )
        return self._step_result(solves)._replace(status=RodStatus.HELD, message=message)

    def _step_result(self, solves: int) -> PlateStep:
        assert self._solution is not None
        status, message = RodStatus.OK, ""
        if self._solution.linear.eigenvalues[0] <= 0.0:
            status = RodStatus.UNSTABLE
            message = "the rods do not hold the plate here: its stiffness has a value below 0"
        elif findings := self._yields.findings(self._solution):
            status, message = findings[0].status, "; ".join(item.message for item in findings)
        return PlateStep(
            self.pose.copy(), self.twist.copy(), self._solution, status, message, solves
        )


def _mass_matrix(robot: RodRobot) -> Array:
    """Return the plate's mass matrix about its origin, plate axes, shape (6, 6)."""
    plate = robot.plate
    moment = plate.mass * hat(plate.com)
    inertia = plate.inertia - moment @ hat(plate.com)
    return np.block([[plate.mass * np.eye(3), -moment], [moment, inertia]])


def _check_inertia(robot: RodRobot) -> None:
    plate = robot.plate
    lowest = float(np.linalg.eigvalsh(plate.inertia)[0])
    if robot.planar:
        lowest = float(plate.inertia[2, 2])
    if plate.mass <= 0.0 or lowest <= 0.0:
        raise RodError(
            f"plate '{plate.link}' of robot '{robot.name}': mass {plate.mass:g} kg, smallest "
            f"moment of inertia {lowest:g} kg m2; expected both > 0 to move it dynamically"
        )


def _turned(rotation: Matrix3, wrench: Array) -> Array:
    return np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])
