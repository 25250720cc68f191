"""What a drawing node knows of a running robot: states, controller, tracked reference, health.

States come a thousand times a second and are looked at thirty times: their subscriptions are
polled (a few microseconds each), not spun. Which controller runs is read from the ROS graph: it
is the other node that publishes commands of the muscles.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState

from cards_core.formats import load
from cards_core.robot.model import Robot, Tree
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_ros import topics
from cards_ros.loop import HotSubscription, StopFlag
from cards_ros.messages import (
    JointSetError,
    JointStateReader,
    JointStateSample,
    MuscleStateNames,
    NameOrder,
)
from cards_ros.parameters import Parameter
from cards_viz.labels import joint_labels, operational_labels
from cards_viz.muscles.tracking import Tracking
from cards_viz.nodes import PacedNode

DISCOVERY_PERIOD = 0.5
"""Time between two looks at the graph, [s]."""

_HOSTS = (": world", ": boards")  # what simulators and real robots report

FRESH = 3.0
"""Age at which a diagnostic status, sent once a second, no longer counts, [s]."""


class PolledStates:
    """Newest JointState of a topic."""

    def __init__(self, node: Node, topic: str) -> None:
        self._node = node
        self._hot = HotSubscription(node, JointState, topic, topics.DRAWING_QOS)
        self._reader = JointStateReader()

    def take(self) -> JointStateSample | None:
        """Return the newest message if there is a new one."""
        sample = None
        while (data := self._hot.take()) is not None:
            sample = self._reader.read(data)
        return sample

    def close(self) -> None:
        """End the subscription."""
        self._node.destroy_subscription(self._hot.subscription)


@dataclass
class Status:
    """One diagnostic status and when it came, [s] of the monotonic clock."""

    level: int
    message: str
    values: dict[str, str]
    came: float


@dataclass
class _Controller:
    """A node that publishes commands, and what it shows of itself."""

    name: str
    desired: PolledStates
    error: PolledStates
    released: PolledStates
    necessary: PolledStates
    tracking: Tracking | None = None
    last_error: Array | None = field(default=None)

    @classmethod
    def follow(cls, node: Node, name: str) -> _Controller:
        """Subscribe to the topics of a controller."""
        desired, error, released, necessary = (
            PolledStates(node, topic.replace("~", name))
            for topic in (
                topics.DESIRED,
                topics.ERROR,
                topics.RELAXATION,
                topics.NECESSARY_TENSION,
            )
        )
        return cls(name, desired, error, released, necessary)

    def close(self) -> None:
        """Unsubscribe."""
        for topic in (self.desired, self.error, self.released, self.necessary):
            topic.close()


class MuscleWatcher:
    """Follows a robot's topics.

    Args:
        node: Node to subscribe with; its executor must be spun for diagnostics.
        robot: The robot.
        tree: Its coordinates.

    Attributes:
        stamp: Of the last joint states, [ns]; -1 before the first.
        q: Joint coordinates, shape (nq,).
        tensions: shape (m,), [N]; NaN before the first ``muscle_states``.
        states: Actuator states by name, e.g. ``biceps/activation``.
        real_time_factor: Simulated by elapsed time over the last second, None if unknown.
        released: What the controller has released of each muscle, shape (m,), [m]; NaN where it
            commands none; None if it releases nothing.
        necessary: Tensions that the controller finds necessary, likewise, [N].
        problem: Why messages cannot be read, if so.
        controller: Name of the controller that commands the muscles now, None if none does.
    """

    def __init__(self, node: Node, robot: Robot, tree: Tree) -> None:
        self._node = node
        self._tree = tree
        self._joints = PolledStates(node, topics.JOINT_STATES)
        self._muscles = PolledStates(node, topics.MUSCLE_STATES)
        self._joint_order = NameOrder(tree.position_names)
        self._muscle_names = MuscleStateNames([muscle.name for muscle in robot.muscles])
        self._places = {muscle.name: i for i, muscle in enumerate(robot.muscles)}
        self.released: Array | None = None
        self.necessary: Array | None = None
        self.stamp = -1
        self.q = tree.home.copy()
        self.tensions = np.full(len(robot.muscles), np.nan)
        self.states: Mapping[str, float] = {}
        self.real_time_factor: float | None = None
        self.problem = ""
        self.controller: str | None = None
        self._controller: _Controller | None = None
        self._looked = -DISCOVERY_PERIOD
        self._statuses: dict[str, Status] = {}
        self._mark = (0.0, -1)
        node.create_subscription(
            DiagnosticArray, topics.DIAGNOSTICS, self._on_diagnostics, topics.DIAGNOSTICS_QOS
        )

    # States -----------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Take what has come; return whether there are new joint states."""
        now = time.monotonic()
        if now - self._looked >= DISCOVERY_PERIOD:
            self._looked = now
            self._discover()
        self.controller = self._commanding()
        try:
            new = self._take_states()
        except JointSetError as error:
            self.problem = str(error)
            return False
        self._take_tracking()
        self._measure_speed(now)
        return new

    def _take_states(self) -> bool:
        muscles = self._muscles.take()
        if muscles is not None and muscles.effort.size == len(muscles.names):
            self._take_muscles(muscles)
        joints = self._joints.take()
        if joints is None:
            return False
        if joints.position.size != len(joints.names):
            raise JointSetError(
                f"joint_states has {joints.position.size} positions for {len(joints.names)} names"
            )
        self.q = joints.position[self._joint_order.order(joints.names)].copy()
        self.stamp = joints.stamp
        self.problem = ""
        return True

    def _take_muscles(self, sample: JointStateSample) -> None:
        places, states = self._muscle_names.places(sample.names)
        self.tensions = sample.effort[places]
        if sample.position.size == len(sample.names):
            self.states = {name: float(sample.position[place]) for name, place in states}

    @property
    def time(self) -> float:
        """Time of the last state, [s]."""
        return seconds(max(self.stamp, 0))

    def _measure_speed(self, now: float) -> None:
        then, stamp = self._mark
        if stamp < 0 or self.stamp < stamp:
            self._mark = (now, self.stamp)
            self.real_time_factor = None
        elif now - then >= 1.0:
            self.real_time_factor = seconds(self.stamp - stamp) / (now - then)
            self._mark = (now, self.stamp)

    # Controller -------------------------------------------------------------------------------

    def _commanding(self) -> str | None:
        """Name of the controller unless it says that it is disabled or says nothing any more."""
        if self._controller is None:
            return None
        name = self._controller.name
        mine = [s for key, s in self._statuses.items() if key.startswith(f"{name}: ")]
        if mine and all(self._is_old(status) for status in mine):
            return None
        return None if any(status.message == "disabled" for status in mine) else name

    @property
    def known_controller(self) -> str | None:
        """Name of the node that publishes commands, whether enabled or not."""
        return None if self._controller is None else self._controller.name

    @property
    def tracking(self) -> Tracking | None:
        """What the controller tracks, None before its first message."""
        if self._controller is None or self.controller is None:
            return None
        return self._controller.tracking

    def _discover(self) -> None:
        own = (self._node.get_namespace(), self._node.get_name())
        found = [
            (info.node_namespace, info.node_name)
            for topic in topics.COMMAND_TOPICS.values()
            for info in self._node.get_publishers_info_by_topic(
                self._node.resolve_topic_name(topic)
            )
            if (info.node_namespace, info.node_name) != own
        ]
        names = [f"{space.rstrip('/')}/{name}" for space, name in found]
        known = self._controller
        if known is not None and f"{self._prefix()}{known.name}" in names:
            return
        if known is not None:
            known.close()
            self._controller = None
            self.released = self.necessary = None
        # the topics of a controller are in our own namespace, or it is not ours
        ours = [name for name in names if name.startswith(self._prefix())]
        if ours:
            name = ours[0].removeprefix(self._prefix())
            self._controller = _Controller.follow(self._node, name)

    def _prefix(self) -> str:
        return self._node.get_namespace().rstrip("/") + "/"

    def _take_tracking(self) -> None:
        controller = self._controller
        if controller is None:
            return
        if (released := controller.released.take()) is not None:
            self.released = self._by_muscle(released, released.position)
        if (necessary := controller.necessary.take()) is not None:
            self.necessary = self._by_muscle(necessary, necessary.effort)
        error = controller.error.take()
        if error is not None:
            controller.last_error = error.position.copy()
        desired = controller.desired.take()
        if desired is not None and desired.position.size == len(desired.names) > 0:
            joints = set(desired.names) <= set(self._tree.position_names)
            labels = joint_labels(self._tree) if joints else operational_labels(desired.names)
            values = desired.position.copy()
            if joints and desired.names != self._tree.position_names:
                values = self.q.copy()
                place = {name: i for i, name in enumerate(self._tree.position_names)}
                for name, value in zip(desired.names, desired.position, strict=True):
                    values[place[name]] = value
            controller.tracking = Tracking(labels, values)
        if controller.tracking is not None:
            controller.tracking.error = controller.last_error

    def _by_muscle(self, sample: JointStateSample, values: Array) -> Array | None:
        """Return values in the order of the muscles, NaN where there is none; None if unfit."""
        if values.size != len(sample.names) or not set(sample.names) <= self._places.keys():
            return None
        out = np.full(len(self._places), np.nan)
        out[[self._places[name] for name in sample.names]] = values
        return out

    # Health -----------------------------------------------------------------------------------

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        prefix = self._prefix()
        for status in message.status:
            name = f"/{status.name}"
            if not name.startswith(prefix):
                continue  # of another robot
            level = status.level
            self._statuses[name.removeprefix(prefix)] = Status(
                level[0] if isinstance(level, bytes) else int(level),
                status.message,
                {item.key: item.value for item in status.values},
                now,
            )

    @staticmethod
    def _is_old(status: Status) -> bool:
        return time.monotonic() - status.came > FRESH

    def fresh(self) -> dict[str, Status]:
        """Return the statuses that are not old, by name ``<node>: <aspect>``."""
        return {name: s for name, s in self._statuses.items() if not self._is_old(s)}

    @property
    def real_host(self) -> str | None:
        """Name of the host if that is a real robot, None for a simulator or if none is known.

        A host that has fallen silent is still the one to stop.
        """
        hosts = [(s.came, name) for name, s in self._statuses.items() if name.endswith(_HOSTS)]
        if not hosts:
            return None
        node, _, aspect = max(hosts)[1].rpartition(": ")
        return node if aspect == "boards" else None

    @property
    def paused(self) -> bool:
        """Whether a simulator reports that it is paused."""
        return any(
            name.endswith(": world") and status.message == "paused"
            for name, status in self.fresh().items()
        )

    @property
    def stopped(self) -> bool:
        """Whether a host reports an emergency stop."""
        return any(s.message.startswith("emergency stop") for s in self.fresh().values())

    @property
    def trouble(self) -> str:
        """The first error that a node reports, other than an emergency stop."""
        if self.problem:
            return self.problem
        for name, status in sorted(self.fresh().items()):
            if status.level == DiagnosticStatus.ERROR[0] and not status.message.startswith(
                "emergency stop"
            ):
                return f"{name}: {status.message}"
        return ""

    @property
    def control_rate(self) -> float | None:
        """Steps per second that the controller reports, [Hz]."""
        name = self.controller
        status = self.fresh().get(f"{name}: loop")
        try:
            return float(status.values["rate_hz"]) if status is not None else None
        except (KeyError, ValueError):
            return None


MODEL = Parameter("model", "roboy_arm", "Robot: name of a folder in models/, or path of an SDF.")
"""The parameter that every drawing node has."""

WORLD = Parameter(
    "world",
    "",
    "World around the robot: name of a file in worlds/, or path of an SDF; empty: none.",
)
"""The parameter of drawing nodes that draw the world too."""

TERRAIN = Parameter("terrain", "", "Terrain, KIND or KIND:NAME=VALUE,...; empty: nothing.")
"""Another one, as of the simulator."""


class DrawingNode(PacedNode):
    """A `PacedNode` that draws a robot with muscles; it has the parameter ``model`` too.

    Args:
        name, parameters, context, stop: As of `PacedNode`.
        robot: Replaces the parameter ``model``, for tests.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        robot: What is drawn.
        watcher: What is known of the robot.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        context: Context,
        stop: StopFlag,
        robot: Robot | None,
        **node_options: Any,
    ) -> None:
        super().__init__(name, parameters, context, stop, **node_options)
        self.robot = robot or load(self.values["model"])
        self.watcher = MuscleWatcher(self, self.robot, self.robot.tree)
