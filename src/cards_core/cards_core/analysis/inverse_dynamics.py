"""Inverse dynamics: the tensions of a motion.

    -L_a' f + S tau = w + L_p' f_p,   w = M qdd + C + G + w_e,   f_min <= f <= f_max

with active muscles a and passive ones p. A passive muscle takes no tension command: the tension
of a ligament follows from its length and rate. A user may also declare muscles passive: an elastic
cable that nobody winds is a spring.

Joints with a motor without effort limit ask nothing of the muscles: the motor gives what they do
not. A motor with a limit is one more actuator of the distribution, ``-effort <= tau <= effort``.

Neither joint damping nor friction is part of C; add them to w_e where they matter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.interaction import JointInteraction
from cards_core.analysis.inverse_kinematics import point_problem, rows_of
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tension_distribution import (
    LeastInteraction,
    TensionDistribution,
    make_tension_distribution,
)
from cards_core.analysis.tension_distribution.base import TensionLimitError
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ShapeError
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.actuators import Cable
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

INSTANT = 1e-9
"""Time step of the actuator models, [s]: so short that nothing is treated as stiff."""


class PassiveMuscles:
    """The muscles of a robot that pull without being told to.

    Args:
        dynamics: Of the robot; gives the lengths at home, to which elastic cables without a rest
            length are wound.
        names: Muscles that are passive besides those that take no tension command.

    Attributes:
        active: Indices of the muscles that take a tension, shape (m_a,).
        passive: Indices of the others, shape (m_p,).

    Raises:
        UnknownNameError: No muscle has this name.
        TensionLimitError: An ideal cable was declared passive: it has no law.
    """

    def __init__(self, dynamics: Dynamics, names: Sequence[str] = ()) -> None:
        robot = dynamics.robot
        for name in names:
            muscle = robot.muscle(name)
            if isinstance(muscle.actuator, Cable) and muscle.actuator.stiffness is None:
                raise TensionLimitError(
                    f"muscle '{name}' is an ideal cable: without a command it has no tension of "
                    "its own (expected: a muscle with a stiffness)"
                )
        passive = [
            i
            for i, muscle in enumerate(robot.muscles)
            if muscle.name in names or "force" not in muscle.actuator.accepted_commands
        ]
        self.passive: npt.NDArray[np.intp] = np.array(passive, dtype=np.intp)
        self.active: npt.NDArray[np.intp] = np.array(
            [i for i in range(len(robot.muscles)) if i not in passive], dtype=np.intp
        )
        self._bank: ActuatorBank | None = None
        if passive:
            tree = dynamics.tree
            # no command: ideal models do not occur here, all others have a state or a law
            self._bank = ActuatorBank(_only(robot, passive), INSTANT, "numeric")
            home = dynamics.update(tree.home, np.zeros(tree.nv)).muscle_lengths
            self._bank.reset(home[self.passive])
            self._rest = self._bank.state.copy()
            self._none = np.full(len(passive), NO_COMMAND)

    def tensions(self, lengths: Array, rates: Array) -> Array:
        """Return the tensions of the passive muscles, shape (m_p,), [N].

        Args:
            lengths: Of all muscles, shape (m,), [m].
            rates: Of all muscles, shape (m,), [m/s].
        """
        if self._bank is None:
            return np.zeros(0)
        self._bank.state[:] = self._rest
        out = self._bank.step(
            lengths[self.passive], rates[self.passive], self._none, np.zeros(len(self.passive))
        )
        return out.copy()


def _only(robot: Robot, rows: Sequence[int]) -> Robot:
    return dataclasses.replace(robot, muscles=tuple(robot.muscles[i] for i in rows))


@dataclass(frozen=True, eq=False, slots=True)
class InverseDynamicsResult:
    """Tensions of one instant.

    Attributes:
        status: As `TensionResult.status`; also NOT_FINITE for NaN in the motion, PATH_NOT_FOUND,
            and OUTSIDE_LIMITS instead of FEASIBLE: the numbers are right, no joint goes there.
        tensions: Of all muscles, shape (m,), [N]; passive ones have the tension of their law.
        needed: w, shape (nv,), [Nm] or [N].
        residual: -L' f + motors - w, shape (nv,).
        motor_forces: Of the joints' motors, shape (nv,), zero without one.
        iterations: Of the distribution.
    """

    status: PointStatus
    tensions: Array
    needed: Array
    residual: Array
    motor_forces: Array
    iterations: int


@dataclass(frozen=True, eq=False)
class InverseDynamicsTrack:
    """A whole motion: status (n,), tensions (n, m), needed (n, nv), residual (n, nv)."""

    status: npt.NDArray[np.uint8]
    tensions: Array
    needed: Array
    residual: Array


class InverseDynamics:
    """Tensions for motions of one robot; one object per thread.

    Args:
        dynamics: Of the robot.
        method: Of `tension_distribution.METHODS`.
        passive: Names of muscles that are passive besides those that take no command.
        interaction_weights: ``least_interaction``: weights of force and moment of every joint,
            shape (n_joints, 6), >= 0; all one without it.

    Attributes:
        muscles: Which muscles are active and passive.
        distribution: The method.

    Raises:
        UnknownNameError: No such method or muscle.
        TensionLimitError: Limits that the method cannot work with.
        ShapeError: Weights of the wrong shape.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        method: str = "least_norm",
        *,
        passive: Sequence[str] = (),
        interaction_weights: Array | None = None,
    ) -> None:
        self._dynamics = dynamics
        tree = self._tree = dynamics.tree
        self.muscles = PassiveMuscles(dynamics, passive)
        muscles = dynamics.robot.muscles
        active = [muscles[i] for i in self.muscles.active]
        motors = motors_of(tree)
        limited = np.isfinite(motors.efforts)
        self._motors, efforts = motors.rows[limited], motors.efforts[limited]
        self._endless = motors.rows[~limited]
        self._demanded = np.setdiff1d(np.arange(tree.nv), self._endless)
        # columns of the limited motors, beside those of the muscles
        self._drive = np.eye(tree.nv)[np.ix_(self._demanded, self._motors)]
        self.distribution: TensionDistribution = make_tension_distribution(
            method,
            np.concatenate([[muscle.tension_min for muscle in active], -efforts]),
            np.concatenate([[muscle.tension_max for muscle in active], efforts]),
            len(self._demanded),
        )
        self._still = np.zeros(tree.nv)
        self._plain = not len(motors) and not len(self.muscles.passive)
        self._interaction = None
        if isinstance(self.distribution, LeastInteraction):
            self._interaction = JointInteraction(dynamics)
            count = len(dynamics.robot.joints)
            weights = np.ones((count, 6)) if interaction_weights is None else interaction_weights
            self._weights = np.asarray(weights, dtype=float)
            good = np.isfinite(self._weights).all() and (self._weights >= 0.0).all()
            if self._weights.shape != (count, 6) or not good:
                names = ", ".join(joint.name for joint in dynamics.robot.joints)
                raise ShapeError(
                    f"interaction weights have shape {self._weights.shape}, expected "
                    f"({count}, 6), finite, >= 0: force and moment of {names}"
                )

    def step(
        self,
        q: Array,
        qd: Array | None = None,
        qdd: Array | None = None,
        external: Array | None = None,
    ) -> InverseDynamicsResult:
        """Return the tensions of one instant.

        Args:
            q: Coordinates, shape (nq,), with unit quaternions.
            qd: Velocities, shape (nv,); zero without them.
            qdd: Accelerations, shape (nv,); zero without them.
            external: w_e, shape (nv,): the load that external forces are. A wrench F that acts on
                a frame is the load ``-J' F`` (`external_load`).
        """
        still = self._still
        qd = still if qd is None else qd
        qdd = still if qdd is None else qdd
        external = still if external is None else external
        # a sum meets every entry
        if not np.isfinite(q.sum() + qd.sum() + qdd.sum() + external.sum()):
            return self._nothing(PointStatus.NOT_FINITE)
        problem = point_problem(self._tree, q)
        if problem is PointStatus.NOT_FINITE:
            return self._nothing(problem)
        before = self._dynamics.path_failures
        state = self._dynamics.update(q, qd)
        if self._dynamics.path_failures != before:
            return self._nothing(PointStatus.PATH_NOT_FOUND)
        needed = state.mass_matrix @ qdd
        needed += state.coriolis
        needed += state.gravity
        needed += external
        jacobian = state.muscle_jacobian
        if self._interaction is not None:
            jacobian = jacobian.copy()
        if self._plain:
            if self._interaction is not None:
                self._set_interaction(q, qd, qdd, np.zeros(0))
            found = self.distribution.solve(-jacobian.T, needed)
            status = found.status if found.status is not PointStatus.FEASIBLE else problem
            return InverseDynamicsResult(
                status, found.tensions, needed, found.residual, still, found.iterations
            )
        pulled = self.muscles.tensions(state.muscle_lengths, jacobian @ qd)
        jacobian = jacobian.copy()
        if self._interaction is not None:
            self._set_interaction(q, qd, qdd, pulled)
        mixed = self._mixed(jacobian, pulled, needed)
        if mixed.status is PointStatus.FEASIBLE:
            mixed = dataclasses.replace(mixed, status=problem)
        return mixed

    def track(
        self,
        q: Array,
        qd: Array | None = None,
        qdd: Array | None = None,
        external: Array | None = None,
    ) -> InverseDynamicsTrack:
        """Return the tensions of a motion: rows of q (n, nq), qd, qdd, external (n, nv).

        Args:
            q: Coordinates, shape (n, nq).
            qd: Velocities, shape (n, nv); zero if None.
            qdd: Accelerations, shape (n, nv); zero if None.
            external: External generalised forces, shape (n, nv), [N] or [Nm]; zero if None.

        Raises:
            ShapeError: Wrong shapes, or numbers of rows that differ.
        """
        tree = self._tree
        points = rows_of(q, tree.nq, "q", tree.position_names)
        n = len(points)
        others = []
        for name, values in (("qd", qd), ("qdd", qdd), ("external", external)):
            rows = None if values is None else rows_of(values, tree.nv, name, tree.velocity_names)
            if rows is not None and len(rows) != n:
                raise ShapeError(f"{name} has {len(rows)} rows, expected {n}, one for every q")
            others.append(rows)
        results = [
            self.step(points[i], *(o if o is None else o[i] for o in others)) for i in range(n)
        ]
        m = len(self._dynamics.robot.muscles)
        return InverseDynamicsTrack(
            np.array([r.status for r in results], dtype=np.uint8),
            np.array([r.tensions for r in results]).reshape(n, m),
            np.array([r.needed for r in results]).reshape(n, tree.nv),
            np.array([r.residual for r in results]).reshape(n, tree.nv),
        )

    def _mixed(self, jacobian: Array, pulled: Array, needed: Array) -> InverseDynamicsResult:
        """Solve with passive muscles or motors."""
        if not np.isfinite(pulled).all():
            return self._nothing(PointStatus.NOT_FINITE)
        active, passive = self.muscles.active, self.muscles.passive
        tensions = np.zeros(len(jacobian))
        tensions[passive] = pulled
        rows = self._demanded
        demand = needed + jacobian.T @ tensions
        matrix = np.hstack([-jacobian[:, rows][active].T, self._drive])
        found = self.distribution.solve(matrix, demand[rows])
        tensions[active] = found.tensions[: len(active)]
        residual = -jacobian.T @ tensions - needed
        motors = np.zeros(len(needed))
        motors[self._motors] = found.tensions[len(active) :]
        motors[self._endless] = -residual[self._endless]
        return InverseDynamicsResult(
            found.status, tensions, needed, residual + motors, motors, found.iterations
        )

    def _set_interaction(self, q: Array, qd: Array, qdd: Array, pulled: Array) -> None:
        """Hand the distribution what the joints carry; ``pulled`` are the passive tensions."""
        assert self._interaction is not None
        assert isinstance(self.distribution, LeastInteraction)
        matrix, offset = self._interaction.linear(q, qd, qdd)
        offset = offset + matrix[:, self.muscles.passive] @ pulled
        # what a motor gives acts along its joint's axis, which `linear` has from the motion
        columns = np.zeros((len(matrix), len(self._motors)))
        columns = np.hstack([matrix[:, self.muscles.active], columns])
        self.distribution.set_interaction(columns, offset, self._weights.ravel())

    def _nothing(self, status: PointStatus) -> InverseDynamicsResult:
        m, nv = len(self._dynamics.robot.muscles), self._tree.nv
        row = np.full(nv, np.nan)
        return InverseDynamicsResult(status, np.full(m, np.nan), row, row, row, 0)


def external_load(dynamics: Dynamics, q: Array, frame: str, wrench: Array) -> Array:
    """Return w_e = -J' F, shape (nv,), of a force and moment that act on the robot.

    Args:
        dynamics: Of the robot.
        q: Coordinates, shape (nq,).
        frame: Name of the frame at whose origin the force acts.
        wrench: F: force [N], then moment [Nm], in world axes, shape (6,).

    Raises:
        UnknownNameError: No frame or link has this name.
    """
    jacobian = dynamics.operational(q, np.zeros(dynamics.tree.nv), frame).jacobian
    return np.asarray(-jacobian.T @ np.asarray(wrench, dtype=float))
