"""Muscle lengths, rates and tensions for controllers that need them, from ``muscle_states``.

A host publishes ``joint_states`` first and ``muscle_states`` of the same instant, with the same
stamp, after it. A state is answered when both are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import JointState

from cards_core.errors import UnknownNameError
from cards_core.robot.state import RobotState
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointSetError, JointStateReader
from cards_ros.muscle_state_names import MuscleStateNames

FIELDS = {"muscle_lengths": "position", "muscle_rates": "velocity", "tensions": "effort"}
"""Quantities of `RobotState` that ``muscle_states`` has, and the fields they are in."""


class MuscleInput:
    """The newest ``muscle_states``.

    Args:
        node: The controller's node.
        needs: Quantities of `RobotState` that the controller needs beside time, q and qd.
        muscles: Names of the robot's muscles.

    Attributes:
        subscription: To wait for; None if nothing is needed.
        stamp: Of the newest message, [ns]; -1 before the first.

    Raises:
        UnknownNameError: A quantity is needed that no host publishes.
    """

    def __init__(self, node: Node, needs: Iterable[str], muscles: Sequence[str]) -> None:
        self._needs = tuple(needs)
        for name in self._needs:
            if name not in FIELDS:
                raise UnknownNameError("quantity that hosts publish", name, FIELDS)
        self.subscription: HotSubscription | None = None
        if self._needs:
            self.subscription = HotSubscription(
                node, JointState, topics.MUSCLE_STATES, topics.STATE_QOS
            )
        self._names = MuscleStateNames(muscles)
        self._count = len(muscles)
        self._reader = JointStateReader()
        self.stamp = -1

    def read(self, state: RobotState, stamp: int) -> bool:
        """Take over the newest message; tell whether it is of the wanted instant.

        Args:
            state: Gets the quantities.
            stamp: Of the state, [ns].

        Raises:
            JointSetError: The message does not fit the robot.
        """
        if self.subscription is None:
            return True
        while self.stamp < stamp and (data := self.subscription.take()) is not None:
            sample = self._reader.read(data)
            places, _ = self._names.places(sample.names)
            for name in self._needs:
                values = getattr(sample, FIELDS[name])
                if values.size != len(sample.names):
                    raise JointSetError(
                        f"muscle_states has {values.size} entries in {FIELDS[name]} for "
                        f"{len(sample.names)} names (expected: one for every name)"
                    )
                setattr(state, name, values[places])
            self.stamp = sample.stamp
        return self.stamp == stamp

    def restart(self) -> None:
        """Forget the last message: time went back."""
        self.stamp = -1
