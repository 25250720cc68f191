"""What the page knows of a rod robot: the topics of the node ``rod_solver``, as a snapshot.

The solver's states come hundreds of times a second and are looked at as often as the page is
drawn: their subscriptions are polled, not spun.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import String

from cards_core.errors import CardsError
from cards_core.rods.robots.robot import RodRobot
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointStateReader
from cards_viz.rods.interface import RodSnapshot
from cards_viz.rods.state_numbers import snapshot_of

COLUMNS = ("x", "y", "z", "curvature", "stress", "strain")
"""Fields of ``~/shapes`` in the order that `RodSnapshot.lines` has them."""

SILENCE = 2.0
"""Time without a state after which the solver counts as gone, [s]."""


class RodMessageError(CardsError):
    """A message that is not of this robot."""


class RodWatcher:
    """Follows the topics of a solver.

    Args:
        node: Node to subscribe with; its executor must be spun for the status.
        robot: The robot.
        solver: Name of the solver's node.

    Attributes:
        lines: Points of the rods, shape (n, k, 6); None before the first.
    """

    def __init__(self, node: Node, robot: RodRobot, solver: str) -> None:
        self._robot = robot
        self._q_names = [f"q/{name}" for name in robot.joint_names]
        self._shapes = HotSubscription(
            node, PointCloud2, topics.ROD_SHAPES.replace("~", solver), topics.DRAWING_QOS
        )
        self._state = HotSubscription(
            node, JointState, topics.ROD_STATE.replace("~", solver), topics.DRAWING_QOS
        )
        node.create_subscription(
            String, topics.ROD_STATUS.replace("~", solver), self._on_status, topics.LATCHED_QOS
        )
        self._reader = JointStateReader()
        self._values: dict[str, float] = {}
        self._stamp = -1
        self._came = -math.inf
        self.lines: Array | None = None
        self._status: dict[str, Any] = {}
        self._problem = ""

    def poll(self) -> bool:
        """Take what has come; return whether there is anything new."""
        shapes = state = None
        while (data := self._shapes.take()) is not None:
            shapes = data
        while (data := self._state.take()) is not None:
            state = data
        try:
            if shapes is not None:
                self.lines = lines_of(deserialize_message(shapes, PointCloud2), self._robot)
            if state is not None:
                self._take_state(state)
        except RodMessageError as error:
            self._problem = str(error)
        return shapes is not None or state is not None

    def _take_state(self, data: bytes) -> None:
        sample = self._reader.read(data)
        values = dict(zip(sample.names, sample.position.tolist(), strict=False))
        missing = [name for name in (*self._q_names, "plate/qw") if name not in values]
        if missing:
            raise RodMessageError(
                f"state without {', '.join(missing)} (expected: one of robot "
                f"'{self._robot.name}'; does rod_solver have the same model?)"
            )
        self._values, self._stamp, self._came = values, sample.stamp, time.monotonic()
        self._problem = ""

    def _on_status(self, message: String) -> None:
        try:
            self._status = dict(json.loads(message.data))
        except (ValueError, TypeError) as error:
            self._problem = f"status is no JSON object: {error}"

    @property
    def known(self) -> bool:
        """Whether there is a state with its shapes."""
        return self._stamp >= 0 and self.lines is not None

    def snapshot(self) -> RodSnapshot:
        """Return the data to show; requires `known`."""
        lines = self.lines if self.lines is not None else np.zeros((self._robot.n_limbs, 2, 6))
        shown = snapshot_of(
            seconds(self._stamp), self._robot.joint_names, self._values, self._status, lines
        )
        return replace(
            shown,
            message=self._problem or shown.message,
            alive=time.monotonic() - self._came < SILENCE,
        )


def lines_of(message: Any, robot: RodRobot) -> Array:
    """Return the points of ``~/shapes``, shape (n, k, 6), in the order of `COLUMNS`.

    Raises:
        RodMessageError: Other fields, or another number of rods.
    """
    names = tuple(field.name for field in message.fields)
    if message.height != robot.n_limbs or names != COLUMNS:
        raise RodMessageError(
            f"shapes of {message.height} rods with fields {', '.join(names)} (expected: "
            f"{robot.n_limbs} rods with {', '.join(COLUMNS)})"
        )
    data = np.frombuffer(message.data, dtype=">f8" if message.is_bigendian else "<f8")
    return data.reshape(message.height, message.width, len(COLUMNS)).astype(float)
