"""What a controller tracks, as far as it can be drawn and plotted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.typing import Array, Vector3
from cards_viz.labels import Labels
from cards_viz.muscles.scene import Scene


@dataclass(eq=False)
class Tracking:
    """What the controller tracks. The arrays must not be changed."""

    labels: Labels
    desired: Array
    error: Array | None = None


_AXES = ("x", "y", "z")


@dataclass(frozen=True, eq=False)
class Tracked:
    """Controlled coordinates that can be plotted.

    Attributes:
        names: Length d.
        units: Length d, ``rad``, ``m`` or empty.
        desired: Shape (d,).
        actual: Shape (d,).
        error: Shape (e,), None if unknown.
        position: Desired origin of the operational frame, shape (3,), [m]; None without one.
    """

    names: Sequence[str]
    units: Sequence[str]
    desired: Array
    actual: Array
    error: Array | None
    position: Vector3 | None


def tracked(tracking: Tracking, scene: Scene, q: Array) -> Tracked | None:
    """Return what there is to draw of a controller's ``desired`` and ``error`` topics.

    Args:
        tracking: Content of the topics.
        scene: Geometry of the robot.
        q: Joint coordinates now, shape (nq,).

    Returns:
        None if the controller tracks no position, or its error is not known yet.
    """
    labels, desired, error = tracking.labels, tracking.desired, tracking.error
    if labels.names == scene.tree.position_names:
        position = scene.end_effector(scene.link_poses(desired))
        return Tracked(labels.names, labels.units, desired, q, error, position)
    count = _position_count(labels)
    if not count or error is None or error.size < count:
        return None
    goal, rest = desired[:count], error[:count]
    # axes that the controller leaves free are drawn where the end effector is
    position = scene.end_effector(scene.link_poses(q))
    if position is not None:
        position = np.array(position)
        for name, value in zip(labels.names[:count], goal, strict=True):
            position[_AXES.index(name)] = value
    return Tracked(labels.names[:count], labels.units[:count], goal, goal - rest, rest, position)


def _position_count(labels: Labels) -> int:
    """Return how many leading coordinates are axes of a position."""
    return sum(name in _AXES for name in labels.names)
