"""``/tf`` and ``/muscle_markers`` of a recording: what 3-D views need to show a run again.

``/tf`` has the pose of every link in ``world``. With ``/robot_description``, whose frames are
those of the links, RViz and Foxglove draw the robot from it. ``/muscle_markers`` has two markers
in ``world``: namespace ``muscles``, a LINE_LIST coloured by tension, and ``via_points``, a
SPHERE_LIST. Both are those of logged states, at most `RATE` a second, at their times.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cards_core.robot.elements import WORLD
from cards_core.robot.model import Robot
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_viz.colors import TensionScale, first_scale
from cards_viz.muscles.scene import Scene, SceneFrame
from cards_viz.runs.log import SimulatorLog
from cards_viz.runs.recording import Channel, MessageLayout, Messages, Stamps, nanoseconds

RATE = 30.0
"""Maximum rate of the messages, [Hz] of simulated time."""

MOST_FRAMES = 3000
"""Maximum number of messages of a run; longer runs have them less often."""

POINT_COLOR = (0.28, 0.30, 0.33)

LINE_LIST, SPHERE_LIST = 5, 7
"""Types of markers."""


def scene_channels(robot: Robot, log: SimulatorLog) -> list[Channel]:
    """Return the channels ``/tf`` and, for a robot with muscles, ``/muscle_markers``.

    Args:
        robot: The robot that was simulated.
        log: Its log; states that are not finite are left out; no channels without any others.
    """
    rows = drawn_rows(log.time, np.asarray(np.isfinite(log.q).all(axis=1)))
    if not len(rows):
        return []
    scene = Scene(robot, with_shapes=False, backend="numeric")
    scale = first_scale(robot)
    scale.include(log.tensions)
    frames = [scene.frame(log.q[row], log.tensions[row], scale.high) for row in rows]
    stamps = nanoseconds(log.time[rows])
    names = [link.name for link in robot.links]
    poses = np.array([frame.link_poses for frame in frames]).reshape(len(rows), len(names), 4, 4)
    moved = transforms(stamps, names, poses)
    out = [Channel("/tf", "tf2_msgs/msg/TFMessage", stamps, moved.__getitem__)]
    if robot.muscles:
        data = _markers(scene, scale, frames, log.tensions[rows], stamps)
        kind = "visualization_msgs/msg/MarkerArray"
        out.append(Channel("/muscle_markers", kind, stamps, data.__getitem__))
    return out


def drawn_rows(time: Array, good: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
    """Return the rows of a log that are drawn: the first one in every period.

    Args:
        time: Of the rows, increasing, shape (n,), [s].
        good: Which of them can be drawn, shape (n,).
    """
    rows = np.flatnonzero(good)
    if not len(rows):
        return rows
    span = float(time[rows[-1]] - time[rows[0]])
    rate = min(RATE, MOST_FRAMES / span) if span > 0.0 else RATE
    # a row that is late by rounding alone belongs to the period that it begins
    period = np.floor((time[rows] - time[rows[0]]) * rate + 1e-6)
    return rows[np.diff(period, prepend=-1.0) > 0.0]


def transforms(stamps: Stamps, names: list[str], poses: Array) -> Messages:
    """Serialise a series of ``tf2_msgs/msg/TFMessage``.

    Args:
        stamps: Header stamps, shape (n,), [ns].
        names: Of the k frames.
        poses: Of the frames in the world, shape (n, k, 4, 4).
    """
    layout = MessageLayout()
    layout.uint32(len(names))
    columns: list[Array | None] = []
    for k, name in enumerate(names):
        layout.header(WORLD)
        layout.string(name)
        layout.numbers(7)
        quaternions = np.array([matrix_quaternion(pose[:3, :3]) for pose in poses[:, k]])
        wxyz = quaternions.reshape(len(stamps), 4)
        columns.append(np.hstack([poses[:, k, :3, 3], wxyz[:, 1:], wxyz[:, :1]]))
    return layout.fill(len(stamps), columns, stamps)


def _markers(
    scene: Scene, scale: TensionScale, frames: list[SceneFrame], tensions: Array, stamps: Stamps
) -> Messages:
    n = len(frames)
    ends = 2 * len(scene.segment_muscle)
    layout = MessageLayout()
    layout.uint32(2)
    _marker(layout, "muscles", LINE_LIST, ends, coloured=True)
    _marker(layout, "via_points", SPHERE_LIST, len(scene.point_muscle), coloured=False)
    rgb = np.array([scale.colors(row) for row in tensions]).reshape(n, -1, 3) / 255.0
    colors = np.ones((n, ends, 4))
    colors[:, :, :3] = np.repeat(rgb[:, scene.segment_muscle], 2, axis=1)
    segments = np.array([frame.segments for frame in frames]).reshape(n, 3 * ends)
    points = np.array([frame.points for frame in frames]).reshape(n, -1)
    width, size = 2.2 * scene.radius, 3.8 * scene.radius
    same = np.ones((n, 1))
    pose = same * [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    lines = [pose, same * [width, 0.0, 0.0], same * [0.0, 0.0, 0.0, 1.0]]
    spheres = [pose, same * [size, size, size], same * [*POINT_COLOR, 1.0]]
    columns = [*lines, segments, colors.reshape(n, 4 * ends), *spheres, points, None]
    return layout.fill(n, columns, stamps)


def _marker(
    layout: MessageLayout, namespace: str, kind: int, count: int, *, coloured: bool
) -> None:
    """Add a marker; slots: pose, scale, colour, points, and colours of the points."""
    layout.header(WORLD)
    layout.string(namespace)
    layout.uint32(0)  # id
    layout.uint32(kind)
    layout.uint32(0)  # action: add
    layout.numbers(7)  # pose
    layout.numbers(3)  # scale
    layout.numbers(4, "<f4")  # color
    layout.uint32(0)  # lifetime: for ever
    layout.uint32(0)
    layout.flag(False)  # frame_locked
    layout.uint32(count)
    layout.sequence(3 * count)
    layout.uint32(count if coloured else 0)
    layout.sequence(4 * count if coloured else 0, "<f4")
    layout.string("")  # texture_resource
    layout.header("")  # texture
    layout.string("")
    layout.uint32(0)
    layout.uint32(0)  # uv_coordinates
    layout.string("")  # text
    layout.string("")  # mesh_resource
    layout.string("")  # mesh_file
    layout.uint32(0)
    layout.flag(False)  # mesh_use_embedded_materials
