"""Couples a plate on rods with a rigid body simulator: the wrench for its next step.

A simulator with a step dt adds what acts on the plate and then moves it with the new velocity::

    v' = v + dt M^-1 (w + weight - gyroscopic terms)      x' = x + dt v'

Rods are too stiff for w to be their wrench at the step's beginning: vibrations above some 2 / dt
would grow. `PlateDynamics` takes the step first, implicitly, sub-stepped where rods come taut, and
w is what brings the simulator's plate to the same place::

    w = M (v_wanted - v) / dt - weight + gyroscopic terms      v_wanted = (x_end - x) / dt

Contacts and further loads in the simulator show in the velocity after the step: the difference to
the wanted one is taken over as an impulse on the plate. The
simulator's mass matrix must be near M (within a factor of 2).

While the world moves the plate, its state is the one to report, and the commanded equilibrium is
only a reference: `CoupledRodSimulation`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.dynamics.plate_dynamics import PlateDynamics, PlateStep
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import SEVERITY, Finding, RodStatus
from cards_core.rods.tracking.tracker import TrackingResult
from cards_core.spatial import rotation_log
from cards_core.typing import Array
from cards_rods.rod_simulation import RodSimulation

SAME = 1e-9
"""Difference of poses below which the rods need no other look, [m] and of rotation matrices."""


class PlateCoupling(PlateDynamics):
    """Wrench of quasi-static rods on a plate that a simulator moves.

    Args:
        robot: Spatial, its plate with mass and inertia.
        solver: Of the same robot; nobody else should use it, its last solution is the start.
        theta: As of `PlateDynamics`.

    Raises:
        RodError: A planar robot, or a plate without mass or inertia.
    """

    def __init__(self, robot: RodRobot, solver: RodRobotSolver, *, theta: float = 0.55) -> None:
        if robot.planar:
            raise RodError(
                f"robot '{robot.name}' is planar: nothing would hold its plate in the plane "
                "(expected: coupling kinematic)"
            )
        super().__init__(robot, solver, theta=theta)
        self._wanted: Array | None = None
        self._measured = np.zeros(6)

    def start(self, solution: Solution, twist: Array | None = None) -> None:
        """See `PlateDynamics.start`."""
        super().start(solution, twist)
        self._wanted = None

    def follow(self, pose: Array, twist: Array) -> None:
        """Take over pose and velocity of the plate.

        Args:
            pose: In the model's axes, shape (4, 4).
            twist: Velocity of its origin and angular velocity, model's axes, shape (6,).

        Raises:
            RodError: The rods cannot reach it there.
        """
        if np.abs(pose - self.pose).max() > SAME:
            found = self.solver.limbs(self.q, pose, start=self._solution)
            if not found.converged:
                limb = int(np.argmax(found.residuals[: self.robot.n_limbs]))
                raise RodError(
                    f"the rods do not follow the plate to {np.round(pose[:3, 3], 4).tolist()} m "
                    f"({found.status.name}, limb '{self.robot.limbs[limb].name}'): it was pushed "
                    "too far or too fast"
                )
            self._solution, self.pose = found, pose.copy()
        self.twist = twist.copy() if self._wanted is None else self.twist + twist - self._wanted
        self._measured = twist.copy()

    def wrench(self, dt: float, q: Array, load: Array) -> tuple[Array, PlateStep]:
        """Return the wrench for the step that begins at the state given to `follow`.

        Args:
            dt: [s].
            q: Joint coordinates at the end of the step, shape (n,).
            load: On the plate about its origin, model's axes, shape (6,).

        Returns:
            Force and moment of rods and load about the plate's origin, model's axes, (6,), and the
            state to which the step leads.
        """
        start = self.pose.copy()
        step = self.step(dt, q, load)
        spin = rotation_log(step.pose[:3, :3] @ start[:3, :3].T)
        self._wanted = np.concatenate([step.pose[:3, 3] - start[:3, 3], spin]) / dt
        out = self._native.wrench(dt, start, self._measured, self._wanted)
        return out, step


class CoupledRodSimulation(RodSimulation):
    """As `RodSimulation`; `show` replaces the reported state, not the commanded one.

    Attributes:
        reference: The equilibrium that the commands have led to so far.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._shown: TrackingResult | None = None
        self._step: PlateStep | None = None
        super().__init__(*args, **kwargs)

    @property
    def result(self) -> TrackingResult:
        """Result of the tracker, with the state of the world in place of its own."""
        if self._step is None:
            return self._reference
        if self._shown is None:
            self._shown = _with(self._reference, self._step)
        return self._shown

    @result.setter
    def result(self, result: TrackingResult) -> None:
        self._reference = result
        self._shown = None

    @property
    def reference(self) -> Solution:
        """The equilibrium that the commands have reached."""
        solution = self._reference.solution
        assert solution is not None
        return solution

    @property
    def state(self) -> Solution:
        """The reported state."""
        return self.reference if self._step is None else self._step.solution

    def show(self, step: PlateStep | None) -> None:
        """Report this state from now on; None: the reference again."""
        self._step = step
        self._shown = None


def _with(result: TrackingResult, step: PlateStep) -> TrackingResult:
    """Return a result with the state of the world in place of its own."""
    told: dict[str, Any] = {}
    if step.status is not RodStatus.OK:
        finding = Finding(step.status, step.message)
        if SEVERITY.index(step.status) <= SEVERITY.index(result.status):
            told = {"status": step.status, "message": step.message}
        others = [item for item in result.findings if item.status is not RodStatus.YIELD]
        told["findings"] = (finding, *others)
    return dataclasses.replace(
        result,
        solution=step.solution,
        min_eigenvalue=step.solution.min_eigenvalue,
        eigenvector=step.solution.eigenvector,
        **told,
    )
