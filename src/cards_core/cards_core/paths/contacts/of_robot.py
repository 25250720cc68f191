"""The cables of a robot that touch, and what they may touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.shapes import ContactGeometry, ContactShape, Hull, holds
from cards_core.paths.layout import Indices
from cards_core.paths.wrapping.mesh import mesh_path, mesh_vertices
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import Collision, Link, Mesh, Muscle, ViaPoint
from cards_core.robot.model import Robot


def contact_cables(
    robot: Robot, surroundings: Sequence[Collision] = (), neighbours: Sequence[Link] = ()
) -> tuple[Indices, ContactCables | None]:
    """Return the muscles with ``contact``, and their cables; None where there are none.

    They touch the collision shapes of all links but those of their own ends, and of the
    surroundings those that do not hold an end of theirs. Frames are the links, in the order of
    ``robot.links``, then the neighbours.

    Args:
        robot: The description.
        surroundings: What does not move, in world coordinates.
        neighbours: Links of other models, which move; all their shapes are touched.

    Raises:
        DescriptionError: Such a muscle whose path is not two via points, or a shape that cables
            cannot touch.
    """
    index = {link.name: i for i, link in enumerate(robot.links)}
    count = len(robot.links) + len(neighbours)
    touching = np.array([i for i, m in enumerate(robot.muscles) if m.contact], dtype=np.intp)
    if not len(touching):
        return touching, None
    shapes = [
        ContactShape(index[link.name], _geometry(robot, link.name, collision), collision.pose)
        for link in robot.links
        for collision in link.collisions
    ]
    shapes += [
        ContactShape(len(robot.links) + i, _geometry(robot, link.name, collision), collision.pose)
        for i, link in enumerate(neighbours)
        for collision in link.collisions
    ]
    shapes += [
        ContactShape(count, _geometry(robot, "surroundings", collision), collision.pose)
        for collision in surroundings
    ]
    cables = []
    for muscle in (robot.muscles[i] for i in touching):
        ends = _ends(robot, muscle)
        links = index.get(ends[0].link, count), index.get(ends[1].link, count)
        fixed = [end.position for end, link in zip(ends, links, strict=True) if link == count]
        touches = tuple(
            i
            for i, shape in enumerate(shapes)
            if (
                shape.link not in links
                if shape.link < count
                else not any(holds(shape, point) for point in fixed)
            )
        )
        places = np.array([end.position for end in ends])
        cables.append(
            ContactCable(
                (links[0], links[1]),
                places,
                touches,
                muscle.friction,
                muscle.friction_speed,
                (isinstance(muscle.actuator, Cable) and muscle.actuator.stiffness) or 0.0,
            )
        )
    inertias = [link.inertia for link in (*robot.links, *neighbours)]
    return touching, ContactCables(count, shapes, cables, inertias)


def with_mesh_files(link: Link, source: str | None) -> Link:
    """Return a link with the paths of its collision meshes, for the cables of another robot.

    Args:
        link: The link.
        source: File of its robot, from which its meshes are looked for.
    """

    def found(shape: Collision) -> Collision:
        mesh = shape.geometry
        if isinstance(mesh, Mesh) and (path := mesh_path(mesh.uri, source)) is not None:
            return replace(shape, geometry=Mesh(str(path), mesh.scale))
        return shape

    return replace(link, collisions=tuple(map(found, link.collisions)))


def _geometry(robot: Robot, link: str, collision: Collision) -> ContactGeometry:
    """Return the shape as cables touch it: of a mesh its convex hull, as bodies do."""
    shape = collision.geometry
    if isinstance(shape, ContactGeometry):
        return shape
    problem = f"a {type(shape).__name__.lower()}"
    if isinstance(shape, Mesh):
        try:
            path = mesh_path(shape.uri, robot.source)
            if path is None:
                raise ValueError("no such file")
            return Hull(mesh_vertices(path.read_bytes(), shape.uri) * shape.scale)
        except (OSError, ValueError) as error:
            problem = f"mesh '{shape.uri}': {error}"
    known = ", ".join(sorted({*(kind.__name__ for kind in get_args(ContactGeometry)), "Mesh"}))
    raise DescriptionError(
        f"cables with contact cannot touch its shape '{collision.name}', {problem}",
        source=robot.source,
        element=f"link '{link}'",
        expected=f"one of {known}",
    )


def _ends(robot: Robot, muscle: Muscle) -> tuple[ViaPoint, ViaPoint]:
    points = muscle.via_points
    if len(points) == len(muscle.path) == 2:
        return points[0], points[1]
    raise robot.error(
        muscle,
        'contact="true" with a path of more than two points',
        "two via points: what lies between them is found",
    )
