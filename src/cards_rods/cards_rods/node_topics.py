"""Topics of the node ``rod_solver``: commands in, states, shapes and markers out.

``~/shapes`` has the centre lines as an organised point cloud, a row of points for each rod.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState, PointCloud2, PointField
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from cards_core.rods.robots.solution import ActuatorEfforts, RobotShapes, Solution
from cards_core.stamps import NANOSECONDS
from cards_core.typing import Array
from cards_rods.markers import FRAME, RodMarkers
from cards_rods.messages import pose_values, state_names, state_values, status_text
from cards_rods.rod_simulation import RodSimulation
from cards_ros import topics
from cards_ros.loop import HotPublisher, HotSubscription
from cards_ros.messages import JointStateReader, JointStateWriter

WORLD = ("", "world")
"""Frames of poses and of loads that keep their direction."""


class RodSubscriptions:
    """Subscriptions of joint commands, plate poses and loads.

    Args:
        node: The node.
        simulation: The robot under command.

    Attributes:
        subscriptions: To wait for.
    """

    def __init__(self, node: Node, simulation: RodSimulation) -> None:
        self._simulation = simulation
        self._joints = HotSubscription(
            node, JointState, topics.ROD_JOINT_COMMAND, topics.COMMAND_QOS
        )
        self._pose = HotSubscription(
            node, PoseStamped, topics.ROD_POSE_COMMAND, topics.COMMAND_QOS
        )
        self._wrench = HotSubscription(node, WrenchStamped, topics.ROD_WRENCH, topics.COMMAND_QOS)
        self.subscriptions = (self._joints, self._pose, self._wrench)
        self._reader = JointStateReader()
        plate = simulation.robot.plate.link
        self._pose_frames = (*WORLD, simulation.robot.name)
        self._plate_frames = tuple(dict.fromkeys(("plate", plate)))

    def take(self) -> int:
        """Carry out the received commands; return their number."""
        count = 0
        # loads first, so that a pose that came with one is solved under it
        for hot, act in (
            (self._wrench, self._on_wrench),
            (self._joints, self._on_joints),
            (self._pose, self._on_pose),
        ):
            while (data := hot.take()) is not None:
                act(data)
                count += 1
        return count

    def _on_joints(self, data: bytes) -> None:
        sample = self._reader.read(data)
        self._simulation.command_joints(sample.names, sample.position)

    def _on_pose(self, data: bytes) -> None:
        message: Any = deserialize_message(data, PoseStamped)
        frame = message.header.frame_id
        if frame not in self._pose_frames:
            self._simulation.refuse("igm", _wrong_frame(frame, self._pose_frames[1:]))
            return
        point, turn = message.pose.position, message.pose.orientation
        self._simulation.command_pose(
            (point.x, point.y, point.z), (turn.w, turn.x, turn.y, turn.z)
        )

    def _on_wrench(self, data: bytes) -> None:
        message: Any = deserialize_message(data, WrenchStamped)
        frame = message.header.frame_id
        if frame not in WORLD and frame not in self._plate_frames:
            self._simulation.refuse("wrench", _wrong_frame(frame, ("world", *self._plate_frames)))
            return
        force, torque = message.wrench.force, message.wrench.torque
        self._simulation.set_wrench(
            (force.x, force.y, force.z, torque.x, torque.y, torque.z),
            "world" if frame in WORLD else "plate",
        )


def _wrong_frame(frame: str, known: tuple[str, ...]) -> str:
    return f"frame_id '{frame}' (expected: {', '.join(known)})"


IDLE_PERIOD = 0.5
"""Shapes of a robot at rest are published this often, [s], for late subscribers."""

STATUS_PERIOD = 0.05
"""Minimum time between two messages of the status, [s]."""


class RodPublishers:
    """Publishers of one robot.

    Args:
        node: The node.
        simulation: The robot under command.
        points: Of each centre line.
    """

    def __init__(self, node: Node, simulation: RodSimulation, points: int) -> None:
        self._node = node
        self._simulation = simulation
        robot = simulation.robot
        self._joints, self._pose, self._wrench, self._state = (
            HotPublisher(node, kind, topic, topics.STATE_QOS)
            for kind, topic in (
                (JointState, topics.JOINT_STATES),
                (PoseStamped, topics.ROD_POSE),
                (WrenchStamped, topics.ROD_PLATE_WRENCH),
                (JointState, topics.ROD_STATE),
            )
        )
        self._shapes = HotPublisher(node, PointCloud2, topics.ROD_SHAPES, topics.STATE_QOS)
        self._markers = HotPublisher(node, MarkerArray, topics.ROD_MARKERS, topics.STATE_QOS)
        self._status = node.create_publisher(String, topics.ROD_STATUS, topics.LATCHED_QOS)
        self._states = node.create_publisher(String, topics.ROD_STATES, topics.LATCHED_QOS)
        self._joint_writer = JointStateWriter(robot.joint_names)
        self._state_writer = JointStateWriter(state_names(robot), ("position",))
        self._solver, self._points = simulation.tracker.solver, points
        self._efforts = ActuatorEfforts(robot)
        self._drawer = RodMarkers(robot, points)
        self._last_shapes: RobotShapes | None = None
        self._shaped: Solution | None = None  # whose shapes those are
        self._drawn: Solution | None = None  # whose shapes were published last
        self._drawn_at = self._status_at = -np.inf
        self._status_said = self._states_said = ""
        self._q, self._q_time = np.array(simulation.solution.q), 0

    def refresh(self) -> None:
        """Check which topics have subscribers."""
        for one in (
            self._joints, self._pose, self._wrench, self._state, self._shapes, self._markers,
        ):  # fmt: skip
            one.refresh()

    def step(self, stamp: int, rate_hz: float, skipped: int) -> None:
        """Publish a step.

        Args:
            stamp: Its time, [ns].
            rate_hz: Steps per second.
            skipped: Steps left out so far.
        """
        simulation, solution = self._simulation, self._simulation.solution
        q = np.array(solution.q)
        elapsed = (stamp - self._q_time) / NANOSECONDS
        rates = (q - self._q) / elapsed if self._q_time and elapsed > 0.0 else np.zeros(q.size)
        self._q, self._q_time = q, stamp
        if self._joints.wanted:
            efforts = self._efforts(q, solution.base_wrenches)
            self._joints.publish(self._joint_writer.write(stamp, q, rates, efforts))
        if self._state.wanted:
            values = state_values(simulation, self._last_shapes, rate_hz, skipped)
            self._state.publish(self._state_writer.write(stamp, values))
        if self._pose.wanted:
            self._pose.publish(_pose_message(stamp, solution.pose))
        if self._wrench.wanted:
            self._wrench.publish(_wrench_message(stamp, solution.plate_wrench))

    def draw(self, stamp: int, now: float, color_by: str) -> None:
        """Publish shapes and markers if they are new, or due to be repeated.

        Args:
            stamp: Time of the state, [ns].
            now: Time by a steady clock, [s].
            color_by: As of `RodMarkers.make`.
        """
        solution = self._simulation.solution
        same = solution is self._drawn
        if same and now - self._drawn_at < IDLE_PERIOD:
            return
        if not (self._shapes.wanted or self._markers.wanted or self._state.wanted):
            return
        shapes = self.shapes()
        self._drawn, self._drawn_at = solution, now
        if self._shapes.wanted:
            self._shapes.publish(shapes_message(shapes, _time(stamp)))
        if self._markers.wanted:
            self._markers.publish(self._drawer.make(self._simulation, shapes, color_by, stamp))

    def shapes(self) -> RobotShapes:
        """Return the shapes of the present state."""
        solution = self._simulation.solution
        if self._last_shapes is None or solution is not self._shaped:
            self._last_shapes = self._solver.shapes(solution, self._points)
            self._shaped = solution
        return self._last_shapes

    def say(self, now: float) -> None:
        """Publish status and saved states if they changed."""
        if now - self._status_at < STATUS_PERIOD:
            return
        self._status_at = now
        if (text := status_text(self._simulation)) != self._status_said:
            self._status_said = text
            self._status.publish(String(data=text))
        if (text := self._simulation.states.text()) != self._states_said:
            self._states_said = text
            self._states.publish(String(data=text))


def _time(stamp: int) -> Time:
    sec, nanosec = divmod(stamp, NANOSECONDS)
    return Time(sec=sec, nanosec=nanosec)


def _pose_message(stamp: int, pose: Array) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = FRAME
    message.header.stamp = _time(stamp)
    x, y, z, qw, qx, qy, qz = pose_values(pose).tolist()
    point, turn = message.pose.position, message.pose.orientation
    point.x, point.y, point.z = x, y, z
    turn.w, turn.x, turn.y, turn.z = qw, qx, qy, qz
    return message


def _wrench_message(stamp: int, wrench: Array) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = FRAME
    message.header.stamp = _time(stamp)
    force, torque = message.wrench.force, message.wrench.torque
    force.x, force.y, force.z, torque.x, torque.y, torque.z = np.asarray(wrench).tolist()
    return message


COLUMNS = ("x", "y", "z", "curvature", "stress", "strain")
"""Fields of a point: world position [m], curvature of bending [1/m], maximum stress [Pa] and
strain along the fibres."""


def shapes_message(shapes: RobotShapes, stamp: Time) -> PointCloud2:
    """Return the message: height = rods, width = points, little-endian float64 `COLUMNS`.

    ``numpy.frombuffer(message.data, "<f8").reshape(message.height, message.width, 6)`` reads it.
    """
    rods, points, columns = shapes.table.shape
    message = PointCloud2(height=rods, width=points, is_dense=True)
    message.header.frame_id = FRAME
    message.header.stamp = stamp
    message.fields = [
        PointField(name=name, offset=8 * i, datatype=PointField.FLOAT64, count=1)
        for i, name in enumerate(COLUMNS)
    ]
    message.point_step = 8 * columns
    message.row_step = 8 * columns * points
    message.data = array("B", np.ascontiguousarray(shapes.table, dtype="<f8").tobytes())
    return message
