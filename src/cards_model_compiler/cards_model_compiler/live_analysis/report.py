"""The report of the service ``~/report``: all results about one state, by name, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cards_core.analysis.inverse_dynamics import InverseDynamics
from cards_core.analysis.inverse_kinematics import inverse_kinematics
from cards_core.analysis.status import PointStatus
from cards_core.dynamics.interface import Dynamics
from cards_core.json_values import json_value
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_model_compiler.live_analysis.analyses import (
    Answer,
    ConditionAnalysis,
    ForwardKinematicsAnalysis,
    InteractionAnalysis,
    RobotState,
    StiffnessAnalysis,
)
from cards_model_compiler.live_analysis.parameters import (
    FORWARD_KINEMATICS,
    INTERACTION,
    STIFFNESS,
)
from cards_model_compiler.live_analysis.workers import Outcome

Latest = Mapping[str, "Outcome[RobotState, Answer] | None"]
"""What each analysis said last, by its name."""


class PoseReport:
    """Makes reports; for one thread.

    Args:
        dynamics: Of the robot, for this object alone.
        method: Of the tension distribution.
        stiffness: For the stiffness matrix.
        interaction: For the joint wrenches.
        conditions: Those that run, by name.

    Raises:
        TensionLimitError: Limits of tensions that the method cannot work with.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        method: str,
        stiffness: StiffnessAnalysis,
        interaction: InteractionAnalysis,
        conditions: Mapping[str, ConditionAnalysis],
    ) -> None:
        self._dynamics = dynamics
        self._method = method
        self._inverse = InverseDynamics(dynamics, method)
        self._stiffness = stiffness
        self._interaction = interaction
        self._conditions = conditions

    def make(
        self, state: RobotState, latest: Latest, missing: Mapping[str, str], age: float
    ) -> dict[str, Any]:
        """Return the report about a state.

        Args:
            state: The newest one.
            latest: What the running analyses said last; who is slow said it about an older state.
            missing: Why conditions are not evaluated.
            age: Of the state, [s].
        """
        robot, tree = self._dynamics.robot, self._dynamics.tree
        muscles = [muscle.name for muscle in robot.muscles]
        return {
            "robot": robot.name,
            "time": seconds(state.stamp),
            "age": age,
            "joint_states": {
                "position": by_name(tree.position_names, state.q),
                "velocity": by_name(tree.velocity_names, state.qd),
            },
            "muscle_states": {
                "length": by_name(muscles, state.lengths),
                "rate": by_name(muscles, state.rates),
                "tension": by_name(muscles, state.tensions),
            },
            "lengths": self._lengths(state),
            "tension_distribution": self._distribution(state),
            STIFFNESS: self._stiffness_of(state),
            INTERACTION: self._interaction_of(state),
            FORWARD_KINEMATICS: self._estimate(state, latest.get(FORWARD_KINEMATICS)),
            "conditions": {
                name: self._condition(condition, state, latest.get(name))
                for name, condition in self._conditions.items()
            },
            "missing": dict(missing),
        }

    @staticmethod
    def _condition(
        condition: ConditionAnalysis,
        state: RobotState,
        outcome: Outcome[RobotState, Answer] | None,
    ) -> dict[str, Any]:
        said = spoken(condition.columns, state, outcome)
        if outcome is not None and outcome.result is not None:
            said.update(condition.words(outcome.result.values))
        return said

    def _lengths(self, state: RobotState) -> dict[str, Any]:
        """Lengths that the muscles should have at the measured coordinates."""
        motion = inverse_kinematics(self._dynamics, state.q)
        muscles = [muscle.name for muscle in self._dynamics.robot.muscles]
        return {
            "status": PointStatus(int(motion.status[0])).name,
            "length": by_name(muscles, motion.lengths[0]),
        }

    def _distribution(self, state: RobotState) -> dict[str, Any]:
        """What is needed to hold the pose at rest, and tensions that make it."""
        found = self._inverse.step(state.q)
        names = self._dynamics.tree.velocity_names
        muscles = [muscle.name for muscle in self._dynamics.robot.muscles]
        return {
            "status": found.status.name,
            "method": self._method,
            "needed": by_name(names, found.needed),
            "tension": by_name(muscles, found.tensions),
            "motor": by_name(names, found.motor_forces),
            "residual": by_name(names, found.residual),
        }

    def _stiffness_of(self, state: RobotState) -> dict[str, Any]:
        answer = self._stiffness.evaluate(state)
        found = answer.detail
        parts = ("matrix", "elastic", "tension", "gravity", "eigenvalues", "frequencies")
        return {
            "status": answer.status.name,
            "verdict": found.verdict,
            "coordinates": list(self._dynamics.tree.velocity_names),
            **{name: json_value(getattr(found, name)) for name in parts},
        }

    def _interaction_of(self, state: RobotState) -> dict[str, Any]:
        answer = self._interaction.evaluate(state)
        rows = answer.values.reshape(-1, 6)
        joints = self._dynamics.robot.joints
        return {
            "status": answer.status.name,
            "joints": {
                joint.name: {"force": json_value(row[:3]), "moment": json_value(row[3:])}
                for joint, row in zip(joints, rows, strict=True)
            },
        }

    def _estimate(
        self, state: RobotState, outcome: Outcome[RobotState, Answer] | None
    ) -> dict[str, Any]:
        said = spoken(ForwardKinematicsAnalysis.columns, state, outcome)
        if (
            outcome is not None
            and outcome.result is not None
            and outcome.result.detail is not None
        ):
            names = self._dynamics.tree
            estimate = outcome.result.detail
            said["position"] = by_name(names.position_names, estimate.q)
            said["velocity"] = by_name(names.velocity_names, estimate.qd)
            said["differences"] = by_name(names.velocity_names, estimate.differences)
        return said


def spoken(
    columns: Sequence[str], state: RobotState, outcome: Outcome[RobotState, Answer] | None
) -> dict[str, Any]:
    """Return what an analysis said last, and how much older than ``state`` its state was, [s].

    Args:
        columns: Names of the values of the analysis.
        state: The latest state.
        outcome: Last outcome; None: none yet.

    Returns:
        ``status`` (None without an answer), the values by name, ``age`` [s], and ``error`` if it
        failed.
    """
    if outcome is None:
        return {"status": None}
    age = state.came - outcome.item.came
    if outcome.result is None:
        return {"status": None, "error": str(outcome.error), "age": age}
    values = by_name(columns, outcome.result.values)
    return {"status": outcome.result.status.name, **values, "age": age}


def by_name(names: Sequence[str], values: Array) -> dict[str, float | None]:
    """Return values by name; JSON has neither NaN nor infinity, so these are None."""
    return dict(zip(names, json_value(values), strict=True))
