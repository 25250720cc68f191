"""Muscles as coloured rods, for viewers whose lines are too thin to tell colours: Gazebo's GUI.

A rod is a cylinder between two neighbouring points of a drawn muscle. Its number stays with the
place in the muscle, so that a viewer can move what it already shows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.spatial import Pose, matrix_quaternion
from cards_core.typing import Array, Vector3
from cards_viz.colormap import TensionScale
from cards_viz.muscle_lines import APART
from cards_viz.scene import Scene, SceneFrame, rotation_z_to


@dataclass(frozen=True, eq=False)
class Rod:
    """A cylinder along the z axis of its frame.

    Attributes:
        number: From 1.
        position: Centre, shape (3,), [m].
        quaternion: Orientation (w, x, y, z), shape (4,).
        length: [m].
        diameter: [m].
        rgb: Colour, each 0..1.
    """

    number: int
    position: Vector3
    quaternion: Array
    length: float
    diameter: float
    rgb: tuple[float, float, float]


class MuscleRods:
    """Makes rods of the frames of a scene.

    Args:
        scene: Geometry of the robot.
        origin: Pose of the robot's world in the viewer's.
    """

    def __init__(self, scene: Scene, origin: Pose | None = None) -> None:
        self._scene = scene
        self._origin = Pose() if origin is None else origin
        self._shown: frozenset[int] = frozenset()

    def forget(self) -> None:
        """Take it that nothing is shown: the viewer is another one."""
        self._shown = frozenset()

    def update(
        self, frame: SceneFrame, tensions: Array, scale: TensionScale
    ) -> tuple[list[Rod], list[int]]:
        """Return what to show now, and the numbers of shown rods that have to go.

        Those without length have none: where a muscle passes a surface without touching it.

        Args:
            frame: Of the moment to draw.
            tensions: Shape (m,), [N].
            scale: Range of the colours.
        """
        origin = self._origin
        start, end = origin.apply(frame.segments[:, 0]), origin.apply(frame.segments[:, 1])
        along = end - start
        lengths = np.linalg.norm(along, axis=1)
        rgb = (scale.colors(tensions) / 255.0)[self._scene.segment_muscle]
        rods = [
            Rod(
                i + 1,
                0.5 * (start[i] + end[i]),
                matrix_quaternion(rotation_z_to(along[i] / lengths[i])),
                float(lengths[i]),
                2.2 * self._scene.radius,
                tuple(rgb[i].tolist()),
            )
            for i in np.flatnonzero(lengths > APART).tolist()
        ]
        now = frozenset(rod.number for rod in rods)
        gone = sorted(self._shown - now)
        self._shown = now
        return rods, gone
