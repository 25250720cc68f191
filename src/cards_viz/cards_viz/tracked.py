"""What a controller tracks, in the form that views draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cards_core.robot.model import Robot
from cards_core.typing import Array, Vector3
from cards_viz.colormap import TensionScale, nice_ceiling
from cards_viz.labels import Labels
from cards_viz.scene import Scene

if TYPE_CHECKING:
    from cards_viz.robot_watcher import Tracking

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
    count = position_count(labels)
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


def position_count(labels: Labels) -> int:
    """Return how many of the coordinates, at the beginning, are axes of a position."""
    return sum(name in _AXES for name in labels.names)


def first_scale(robot: Robot) -> TensionScale:
    """Return a colour scale for the time before any tension is known."""
    lower = max((muscle.tension_min for muscle in robot.muscles), default=0.0)
    upper = max((muscle.tension_max for muscle in robot.muscles), default=1.0)
    high = nice_ceiling(max(4.0 * lower, 1.0))
    return TensionScale(0.0, min(high, upper) if upper > 0.0 else high, upper)
