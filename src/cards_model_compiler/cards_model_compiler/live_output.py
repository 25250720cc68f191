"""What the node ``live_analysis`` publishes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from cards_core.robot.model import Tree
from cards_core.typing import Array
from cards_model_compiler.latest_workers import Outcome
from cards_model_compiler.live_analyses import Analysis, Answer, RobotState
from cards_model_compiler.live_parameters import FORWARD_KINEMATICS, INTERACTION
from cards_ros import topics
from cards_ros.loop import HotPublisher
from cards_ros.messages import JointStateWriter

Latest = Callable[[str], "Outcome[RobotState, Answer] | None"]
"""Returns what an analysis said last, by its name."""


class LiveOutput:
    """Publishers of metrics, joint wrenches and the pose from lengths.

    Args:
        node: The node.
        tree: Of the robot.
        analyses: By name.
    """

    def __init__(self, node: Node, tree: Tree, analyses: Mapping[str, Analysis]) -> None:
        self._columns = {
            name: analysis.columns for name, analysis in analyses.items() if name != INTERACTION
        }
        self._slots = tree.velocity_slots
        self._qd = np.zeros(tree.nq)
        self._sent = {INTERACTION: -1, FORWARD_KINEMATICS: -1}
        names = [
            f"{name}/{column}"
            for name, columns in self._columns.items()
            for column in ("status", *columns, "age")
        ]
        self._metrics_writer = JointStateWriter(names, ("position",))
        self._interaction_writer = JointStateWriter(analyses[INTERACTION].columns, ("effort",))
        self._estimate_writer = JointStateWriter(tree.position_names, ("position", "velocity"))
        self._metrics, self._interaction, self._estimate = (
            HotPublisher(node, JointState, topic, topics.STATE_QOS)
            for topic in (topics.METRICS, topics.INTERACTION, topics.ESTIMATE)
        )

    def refresh(self) -> None:
        """Look who listens."""
        for publisher in (self._metrics, self._interaction, self._estimate):
            publisher.refresh()

    @property
    def unread(self) -> frozenset[str]:
        """Analyses whose answers nobody reads."""
        return frozenset() if self._interaction.wanted else frozenset({INTERACTION})

    def publish(self, state: RobotState, latest: Latest) -> None:
        """Publish what is known now.

        Args:
            state: The newest one; its stamp is that of the metrics.
            latest: What the analyses said last. Wrenches and pose have the stamp of the state
                that they belong to, and are sent once.
        """
        if self._metrics.wanted:
            self._metrics.publish(
                self._metrics_writer.write(state.stamp, self._numbers(state, latest))
            )
        if self._interaction.wanted and (new := self._new(INTERACTION, latest)) is not None:
            stamp, answer = new
            self._interaction.publish(self._interaction_writer.write(stamp, answer.values))
        if self._estimate.wanted and (new := self._new(FORWARD_KINEMATICS, latest)) is not None:
            stamp, answer = new
            if (estimate := answer.detail) is not None:
                self._qd[self._slots] = estimate.qd
                message = self._estimate_writer.write(stamp, estimate.q, self._qd)
                self._estimate.publish(message)

    def _numbers(self, state: RobotState, latest: Latest) -> Array:
        """Of every analysis its status, its columns and the age of its state."""
        out: list[float] = []
        for name, columns in self._columns.items():
            outcome = latest(name)
            if outcome is None or outcome.result is None:
                out += [np.nan] * (len(columns) + 2)
                continue
            age = state.came - outcome.item.came
            out += [float(outcome.result.status), *outcome.result.values.tolist(), age]
        return np.array(out)

    def _new(self, name: str, latest: Latest) -> tuple[int, Answer] | None:
        """Return stamp and answer if it has not been sent."""
        outcome = latest(name)
        if outcome is None or outcome.result is None or outcome.item.number <= self._sent[name]:
            return None
        self._sent[name] = outcome.item.number
        return outcome.item.stamp, outcome.result
