"""The cables of a robot that touch, and what they may touch."""

from __future__ import annotations

from typing import get_args

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.shapes import ContactGeometry, ContactShape
from cards_core.paths.layout import Indices
from cards_core.robot.elements import Muscle, ViaPoint
from cards_core.robot.model import Robot


def contact_cables(robot: Robot) -> tuple[Indices, ContactCables | None]:
    """Return the muscles with ``contact``, and their cables; None where there are none.

    They touch the capsules, cylinders and spheres among the collision shapes of all links but
    those of their own ends. Frames are the links, in the order of ``robot.links``.

    Raises:
        DescriptionError: Such a muscle whose path is not two via points.
    """
    index = {link.name: i for i, link in enumerate(robot.links)}
    count = len(index)
    shapes = [
        ContactShape(index[link.name], collision.geometry, collision.pose)
        for link in robot.links
        for collision in link.collisions
        if isinstance(collision.geometry, get_args(ContactGeometry))
    ]
    touching = np.array([i for i, m in enumerate(robot.muscles) if m.contact], dtype=np.intp)
    if not len(touching):
        return touching, None
    cables = []
    for muscle in (robot.muscles[i] for i in touching):
        first, second = _ends(robot, muscle)
        links = index.get(first.link, count), index.get(second.link, count)
        touches = tuple(i for i, shape in enumerate(shapes) if shape.link not in links)
        cables.append(ContactCable(links, np.array([first.position, second.position]), touches))
    return touching, ContactCables(count, shapes, cables)


def _ends(robot: Robot, muscle: Muscle) -> tuple[ViaPoint, ViaPoint]:
    points = muscle.via_points
    if len(points) == len(muscle.path) == 2:
        return points[0], points[1]
    raise DescriptionError(
        'contact="true" with a path of more than two points',
        source=robot.source,
        line=muscle.line,
        element=f"muscle '{muscle.name}'",
        expected="two via points: what lies between them is found",
    )
