"""Analyses of the present state of a robot, one object for each question; no ROS.

Every question has a status, a value of `PointStatus`, and numbers with names. A state that cannot
be used (NaN where nothing is known) is answered with the reason, never with an exception. Each
object has a dynamics backend of its own, so that each may belong to another thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.forward_dynamics import ForwardDynamics
from cards_core.analysis.forward_kinematics import ForwardKinematics
from cards_core.analysis.interaction import JointInteraction
from cards_core.analysis.interference import Interference
from cards_core.analysis.status import PointStatus
from cards_core.analysis.stiffness import joint_stiffness
from cards_core.dynamics.interface import Dynamics
from cards_core.robot.motors import motors_of
from cards_core.typing import Array

LOST = (PointStatus.UNREACHABLE, PointStatus.NOT_CONVERGED, PointStatus.PATH_NOT_FOUND)
"""Statuses of the forward kinematics after which it looks elsewhere."""

SEARCH_PERIOD = 1.0
"""Minimum time between two searches from random starting points, [s]."""

WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
"""Components of a joint's wrench: force [N] and moment [Nm]."""


@dataclass(frozen=True, eq=False)
class RobotState:
    """What is known of a robot at one instant; NaN stands for what is not known.

    Attributes:
        number: Counts the states.
        came: When its newest message came, [s] of the monotonic clock.
        stamp: Of the joint states, or of the muscle states where there are none, [ns].
        time_difference: Stamp of the muscle states minus that of the joint states, [s].
        q: Coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
        lengths: Of the muscles, shape (m,), [m].
        rates: Their derivatives, shape (m,), [m/s].
        tensions: Shape (m,), [N].
        efforts: Of the joint motors, shape (k,), [Nm] or [N].
    """

    number: int
    came: float
    stamp: int
    time_difference: float
    q: Array
    qd: Array
    lengths: Array
    rates: Array
    tensions: Array
    efforts: Array = field(default_factory=lambda: np.zeros(0))


def state_at_home(dynamics: Dynamics) -> RobotState:
    """Return a state at rest at home, without tensions, efforts or time, to try analyses out."""
    tree = dynamics.tree
    still = np.zeros(tree.nv)
    lengths = dynamics.update(tree.home, still).muscle_lengths.copy()
    none = np.zeros(len(lengths))
    efforts = np.zeros(len(motors_of(tree)))
    return RobotState(-1, -math.inf, -1, 0.0, tree.home, still, lengths, none, none, efforts)


@dataclass(frozen=True, eq=False)
class Answer:
    """Result of one analysis.

    Attributes:
        status: Status of the result.
        values: One number per column, shape (n,).
        detail: The whole result.
    """

    status: PointStatus
    values: Array
    detail: Any = None


class Analysis(Protocol):
    """A question about states."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values."""
        ...

    def evaluate(self, state: RobotState) -> Answer:
        """Answer for a state."""
        ...


class ConditionAnalysis:
    """A condition of `cards_core.analysis.conditions.registry` at the present pose.

    Args:
        dynamics: Of the robot, for this object alone.
        name: Of the condition.
        options: Its options, as JSON.

    Attributes:
        condition: The condition.
        columns: All its columns but the status.

    Raises:
        UnknownNameError: No such condition or option.
        ConditionError: The robot or the options do not allow it.
    """

    def __init__(self, dynamics: Dynamics, name: str, options: Mapping[str, Any]) -> None:
        self.condition = make_condition(dynamics, name, options)
        self.columns = tuple(column.name for column in self.condition.columns[1:])

    def evaluate(self, state: RobotState) -> Answer:
        """Answer for the pose of a state."""
        results = self.condition.evaluate(state.q[None])
        values = np.array([float(results[name][0]) for name in self.columns])
        return Answer(PointStatus(int(results["status"][0])), values)

    def words(self, values: Array) -> dict[str, str]:
        """Return what values mean that are indices: the closest pair of ``interference``."""
        if not isinstance(self.condition, Interference):
            return {}
        said = dict(zip(self.columns, values, strict=True))
        return {"pair": self.condition.pair_name(int(said["muscle"]), int(said["other"]))}


class StiffnessAnalysis:
    """Joint stiffness from the measured tensions; detail is a `StiffnessResult`.

    Args:
        dynamics: Of the robot, for this object alone.
        axial_stiffness: EA of all muscles, [N]; None: what their actuators say.
        gravity: Add dG/dq.
    """

    columns = ("eigenvalue_min", "frequency_min")

    def __init__(
        self, dynamics: Dynamics, axial_stiffness: float | None, *, gravity: bool
    ) -> None:
        self._dynamics = dynamics
        self._axial_stiffness = axial_stiffness
        self._gravity = gravity

    def evaluate(self, state: RobotState) -> Answer:
        """Answer for pose and tensions of a state."""
        found = joint_stiffness(
            self._dynamics,
            state.q,
            state.tensions,
            axial_stiffness=self._axial_stiffness,
            gravity=self._gravity,
        )
        least = [
            part[0] if part.size else math.nan for part in (found.eigenvalues, found.frequencies)
        ]
        return Answer(found.status, np.array(least), found)


class InteractionAnalysis:
    """What the joints carry, from the measured tensions; detail is an `InteractionResult`.

    The accelerations are those that tensions and efforts make, ``M^-1 (-L' f + S tau - C - G)``:
    contacts, damping and friction are not known. Robots with motors whose efforts are not known
    are taken to move without acceleration.

    Args:
        dynamics: Of the robot, for this object alone.

    Attributes:
        columns: ``joint/fx`` ... ``joint/mz`` of every joint.
    """

    def __init__(self, dynamics: Dynamics) -> None:
        self._interaction = JointInteraction(dynamics)
        self._motion = ForwardDynamics(dynamics)
        self._motors = motors_of(dynamics.tree).rows
        self._still = np.zeros(dynamics.tree.nv)
        joints = dynamics.robot.joints
        self.columns = tuple(f"{joint.name}/{part}" for joint in joints for part in WRENCH)

    def evaluate(self, state: RobotState) -> Answer:
        """Answer for a state."""
        q, qd, f = state.q, state.qd, state.tensions
        qdd, tau = self._still, state.efforts
        driven = tau.size == self._motors.size
        if driven and np.isfinite(q.sum() + qd.sum() + f.sum() + tau.sum()):
            load = self._still.copy()
            load[self._motors] = -tau
            motion = self._motion.step(q, qd, f, load)
            if motion.status is not PointStatus.FEASIBLE:
                return Answer(motion.status, np.full(len(self.columns), np.nan))
            qdd = motion.qdd
        found = self._interaction.solve(q, qd, qdd, f)
        return Answer(found.status, np.hstack([found.forces, found.moments]).ravel(), found)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Pose from muscle lengths.

    Attributes:
        q: Coordinates, shape (nq,).
        qd: Velocities, shape (nv,).
        residual: max |l(q) - l|, [m].
        differences: From the measured coordinates, shape (nv,), [rad] or [m]; NaN where these are
            not known.
    """

    q: Array
    qd: Array
    residual: float
    differences: Array


class ForwardKinematicsAnalysis:
    """The pose from muscle lengths alone, followed from state to state; detail is an `Estimate`.

    It restarts when time goes back, and searches from random starting points when it is lost.

    Args:
        dynamics: Of the robot, for this object alone.
        tolerance: Residual up to which lengths count as reached, [m].
        starts: Random starting points of a search.
        from_measured: Begin, and search, at the measured coordinates; without it at home.
    """

    columns = ("residual", "difference", "time_difference")

    def __init__(
        self, dynamics: Dynamics, tolerance: float, starts: int, *, from_measured: bool
    ) -> None:
        self._tree = dynamics.tree
        self._tracker = ForwardKinematics(dynamics, tolerance=tolerance, starts=starts)
        self._from_measured = from_measured
        dynamics.jacobian_gradient(dynamics.tree.home)  # compiled now, not while states come
        self._stamp = -1
        self._found = False
        self._searched = -math.inf

    def evaluate(self, state: RobotState) -> Answer:
        """Answer for the lengths of a state."""
        if np.isfinite(state.lengths).all():
            self._start(state)
        result = self._tracker.step(state.lengths, state.rates)
        self._found = result.status not in LOST
        if result.status in (PointStatus.NO_MUSCLES, PointStatus.NOT_FINITE):
            values = np.full(len(self.columns), np.nan)
            return Answer(result.status, values)
        assert result.qd is not None
        differences = np.full(self._tree.nv, np.nan)
        if np.isfinite(state.q).all():
            differences = self._tree.difference(result.q, state.q)
        # of no coordinates there is none that differs
        difference = float(np.abs(differences).max(initial=0.0))
        values = np.array([result.residual, difference, state.time_difference])
        estimate = Estimate(result.q, result.qd, result.residual, differences)
        return Answer(result.status, values, estimate)

    def _start(self, state: RobotState) -> None:
        """Restart the tracker if time went back, or if it is lost and a search is due."""
        back = state.stamp < self._stamp
        self._stamp = state.stamp
        if not back and (self._found or state.came - self._searched < SEARCH_PERIOD):
            return
        self._searched = state.came
        measured = self._from_measured and bool(np.isfinite(state.q).all())
        self._tracker.reset(state.q if measured else None)
