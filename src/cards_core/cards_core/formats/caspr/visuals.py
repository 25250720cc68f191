"""Shapes to draw for links of which CASPR knows only points.

A bar from the joint to the ``end_location`` (what CASPR draws), or, for links without an end, a
box around the cables' attachment points; and a small sphere at the centre of mass. Shapes for
drawing only: no collisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cards_core.formats.caspr.bodies import Body
from cards_core.formats.caspr.cables import CableSet
from cards_core.robot.elements import Box, Cylinder, Link, Sphere, Visual
from cards_core.spatial import Pose, axis_rotation
from cards_core.typing import Vector3

_COLOURS = (
    (0.27, 0.45, 0.69, 1.0),
    (0.80, 0.52, 0.25, 1.0),
    (0.40, 0.62, 0.40, 1.0),
    (0.58, 0.45, 0.68, 1.0),
)


def add_visuals(
    links: Sequence[Link], bodies: Sequence[Body], cable_set: CableSet
) -> tuple[Link, ...]:
    """Return the links with shapes made from the bodies' points and the cables' attachments."""
    points: dict[str, list[Vector3]] = {}
    for cable in cable_set.cables:
        for via in cable.path:
            points.setdefault(via.link, []).append(via.position)
    by_name = {body.link: body for body in bodies}
    return tuple(
        replace(link, visuals=_shapes(by_name[link.name], points.get(link.name, [])))
        if link.name in by_name
        else link
        for link in links
    )


def _shapes(body: Body, points: Sequence[Vector3]) -> tuple[Visual, ...]:
    colour = _COLOURS[(body.number - 1) % len(_COLOURS)]
    length = float(np.linalg.norm(body.end))
    shapes: list[Visual] = []
    size = length
    if length > 1e-6:
        pose = Pose(_from_z(body.end / length), 0.5 * body.end)
        shapes.append(Visual("bar", Cylinder(0.03 * length, length), pose, colour))
    elif points:
        low, high = np.min(points, axis=0), np.max(points, axis=0)
        size = max(float(np.max(high - low)), 0.02)
        edges = np.maximum(high - low, 0.05 * size)
        shapes.append(Visual("body", Box(edges), Pose(translation=0.5 * (low + high)), colour))
    if not shapes:
        return ()
    shapes.append(
        Visual("com", Sphere(0.05 * size), Pose(translation=body.com), (0.2, 0.2, 0.2, 1.0))
    )
    return tuple(shapes)


def _from_z(direction: Vector3) -> Vector3:
    """Return the rotation that takes z to a unit vector by the shortest way."""
    cosine = float(direction[2])
    axis = np.array([-direction[1], direction[0], 0.0])
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.eye(3) if cosine > 0 else np.diag([1.0, -1.0, -1.0])
    return axis_rotation(axis / sine, float(np.arctan2(sine, cosine)))
