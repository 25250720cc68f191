"""RViz markers of a robot of rods: rods in colours, plate, base joints, load.

Namespaces: ``rods`` (LINE_STRIP, id = index of the limb), ``plate`` (TRIANGLE_LIST), ``bases``
(SPHERE_LIST), ``load`` (ARROW), ``joints`` (TEXT_VIEW_FACING, id = index of the limb: the joint
coordinate in degrees or millimetres, where the rod starts at home).

All messages have the same markers with the same numbers of points and texts of the same length, so
one is laid out when the robot is known, and afterwards only numbers in its bytes are overwritten:
0.1 ms instead of 5 ms, which would be a step of the solver that is left out.
"""

from __future__ import annotations

import math

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Vector3
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.errors import CardsError
from cards_core.rods.robots.robot import BaseKind, RodRobot, rod_starts
from cards_core.rods.robots.solution import RobotShapes
from cards_core.stamps import NANOSECONDS
from cards_core.typing import Array
from cards_rods.rod_simulation import RodSimulation
from cards_viz.colors import colors, nice_ceiling

FRAME = "world"

ROD_COLOR = (0.75, 0.14, 0.12)

PLATE_COLOR = (0.55, 0.58, 0.62)

TEXT_COLOR = (0.16, 0.18, 0.22)

BASE_COLOR = (0.28, 0.30, 0.33)

LOAD_COLOR = (0.08, 0.59, 0.35)

_TEXT_HEIGHT = 0.06
"""Height of the letters, as a part of the rods' length."""

_LOAD_LENGTH = 0.25
"""Length of the arrow of the maximum load so far, as a part of the rods' length."""


class RodMarkers:
    """Makes the markers; remembers the scale of the colours, which only grows.

    Args:
        robot: The robot.
        points: Of each centre line.
    """

    def __init__(self, robot: RodRobot, points: int) -> None:
        self._robot = robot
        self._size = float(np.mean(robot.lengths))
        thickest = max(limb.rod.radius for limb in robot.limbs)
        width = 2.0 * max(thickest, 2e-3 * self._size)
        self._corners = _around(np.array([limb.tip.joint_pose[:3, 3] for limb in robot.limbs]))
        self._top = {"curvature": 0.0, "stress": 0.0, "strain": 0.0}
        self._load = 1.0
        n = robot.n_limbs
        self._message = _PackedMarkers(
            [
                *(
                    _marker("rods", i, Marker.LINE_STRIP, ROD_COLOR, (width, 0, 0))
                    for i in range(n)
                ),
                _marker("plate", 0, Marker.TRIANGLE_LIST, PLATE_COLOR, (1, 1, 1)),
                _marker("bases", 0, Marker.SPHERE_LIST, BASE_COLOR, (4 * width,) * 3),
                _marker("load", 0, Marker.ARROW, LOAD_COLOR, (width, 3 * width, 6 * width)),
            ],
            [*[points] * n, 6 * n, n, 2],
            [*[points] * n, 0, 0, 0],
            self._texts(),
        )

    def _texts(self) -> list[Marker]:
        """Return the texts of the joint coordinates, at their final length."""
        robot, height = self._robot, _TEXT_HEIGHT * self._size
        starts = rod_starts(robot, robot.home_q)[:, :3, 3]
        out = []
        for i, start in enumerate(starts.tolist()):
            marker = _marker("joints", i, Marker.TEXT_VIEW_FACING, TEXT_COLOR, (0, 0, height))
            x, y, z = start
            marker.pose.position = Point(x=x, y=y, z=z + height)
            marker.text = _coordinate_text(robot, i, 0.0)
            out.append(marker)
        return out

    def make(self, simulation: RodSimulation, shapes: RobotShapes, by: str, stamp: int) -> bytes:
        """Return the MarkerArray of one state, serialised.

        Args:
            simulation: The robot under command.
            shapes: Of its present solution.
            by: What the colours show: curvature, stress, strain, or none.
            stamp: Time of the state, [ns].
        """
        solution = simulation.solution
        message = self._message
        for place, line in zip(message.points, shapes.positions, strict=False):
            place[:] = line
        for place, rgb in zip(message.colors, self._rgb(shapes, by), strict=False):
            place[:, :3] = rgb
        corners = self._corners @ solution.pose[:3, :3].T + solution.pose[:3, 3]
        for i, value in enumerate(solution.q.tolist()):
            message.write(i, _coordinate_text(self._robot, i, value))
        plate, bases, load = message.points[-3:]
        plate[:] = _fan(corners)
        bases[:] = rod_starts(self._robot, solution.q)[:, :3, 3]
        load[:] = self._arrow(simulation)
        return message.bytes(stamp)

    def _rgb(self, shapes: RobotShapes, by: str) -> Array:
        if by == "none":
            return np.broadcast_to(np.array(ROD_COLOR), shapes.positions.shape)
        values: Array = getattr(shapes, by)
        self._top[by] = max(self._top[by], float(values.max()), 1e-12)
        return colors(values / nice_ceiling(self._top[by])) / 255.0

    def _arrow(self, simulation: RodSimulation) -> Array:
        """Return start and end of the arrow, both at the plate where there is no load."""
        tip, force = simulation.solution.pose[:3, 3], simulation.world_wrench[:3]
        size = float(np.linalg.norm(force))
        self._load = max(self._load, size)
        return np.array([tip - _LOAD_LENGTH * self._size / self._load * force, tip])


def _coordinate_text(robot: RodRobot, index: int, value: float) -> str:
    """Return name and value of a joint coordinate; of one joint always equally many bytes."""
    name = robot.joint_names[index]
    if robot.limbs[index].base.kind is BaseKind.REVOLUTE:
        return f"{name} {math.degrees(value):+7.1f}°"
    return f"{name} {1e3 * value:+8.1f} mm"


class _PackedMarkers:
    """A serialised MarkerArray whose points, colours, stamps and texts can be overwritten.

    Args:
        markers: Without points and colours.
        points, colors: How many each marker has.
        texts: Markers with texts, after the others.

    Attributes:
        points: Views of the points, shapes (count, 3).
        colors: Views of the colours of points, red green blue alpha in 0..1, shapes (count, 4).
    """

    def __init__(
        self,
        markers: list[Marker],
        points: list[int],
        colors: list[int],
        texts: list[Marker],
    ) -> None:
        # numbers that occur nowhere else show where the numbers of each kind are
        for i, marker in enumerate((*markers, *texts)):
            marker.header.stamp = Time(sec=10_000_019 + i, nanosec=1009 + i)
        for i, (marker, p, c) in enumerate(zip(markers, points, colors, strict=True)):
            marker.points = [Point(x=1e6 + i + k / 1024.0, y=0.5, z=0.25) for k in range(p)]
            marker.colors = [ColorRGBA(r=4096.0 + i + k / 1024.0, a=1.0) for k in range(c)]
        shown = [marker.text.encode() for marker in texts]
        for i, (marker, text) in enumerate(zip(texts, shown, strict=True)):
            marker.text = f"~{i:05d}".ljust(len(text), "~")
        self._buffer = bytearray(serialize_message(MarkerArray(markers=[*markers, *texts])))
        self._texts = [
            self._view("<u1", len(text), f"~{i:05d}".encode()) for i, text in enumerate(shown)
        ]
        stamp = np.dtype([("sec", "<i4"), ("nanosec", "<u4")])
        self._stamps = [
            self._view(stamp, 1, np.array([(10_000_019 + i, 1009 + i)], dtype=stamp).tobytes())
            for i in range(len(markers) + len(texts))
        ]
        self.points = [
            self._view("<f8", 3 * p, np.array([1e6 + i, 0.5, 0.25]).tobytes()).reshape(p, 3)
            for i, p in enumerate(points)
        ]
        self.colors = [
            self._view("<f4", 4 * c, np.array([4096.0 + i, 0, 0, 1], "<f4").tobytes()).reshape(
                c, 4
            )
            for i, c in enumerate(colors)
            if c
        ]

    def _view(self, kind: str | np.dtype, count: int, begin: bytes) -> np.ndarray:
        if self._buffer.count(begin) != 1:
            raise CardsError("the layout of MarkerArray messages is not understood")
        return np.frombuffer(self._buffer, kind, count, self._buffer.index(begin))

    def write(self, index: int, text: str) -> None:
        """Replace a text; what is too long is cut, what is too short ends in blanks."""
        place = self._texts[index]
        encoded = text.encode()[: len(place)].ljust(len(place))
        place[:] = np.frombuffer(encoded, "<u1")

    def bytes(self, stamp: int) -> bytes:
        """Return the message with a stamp, [ns]."""
        for place in self._stamps:
            place[0] = divmod(stamp, NANOSECONDS)
        return bytes(self._buffer)


def _around(corners: Array) -> Array:
    """Order points of a plate around their middle, so that they bound a polygon."""
    middle = corners - corners.mean(axis=0)
    _, _, axes = np.linalg.svd(middle)
    return np.asarray(corners[np.argsort(np.arctan2(middle @ axes[1], middle @ axes[0]))])


def _fan(corners: Array) -> Array:
    """Return the triangles between the middle and the sides of a polygon, seen from both sides."""
    middle = np.broadcast_to(corners.mean(axis=0), corners.shape)
    following = np.roll(corners, -1, axis=0)
    front = np.stack([middle, corners, following], axis=1).reshape(-1, 3)
    return np.concatenate([front, front[::-1]])


def _marker(
    namespace: str,
    index: int,
    kind: int,
    color: tuple[float, float, float],
    scale: tuple[float, float, float],
) -> Marker:
    marker = Marker(ns=namespace, id=index, type=kind, action=Marker.ADD)
    marker.header.frame_id = FRAME
    marker.pose.orientation.w = 1.0
    red, green, blue = color
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=1.0)
    marker.scale = Vector3(**dict(zip("xyz", map(float, scale), strict=True)))
    return marker
