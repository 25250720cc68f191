"""The parts of an MJCF file that are neither bodies nor joints: shapes, sites, contacts, sensors.

See `cards_core.formats.mjcf.writer`, which puts them together.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import get_args

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.sdf.geometry_xml import THIN, mesh_path, numbers, rotation_to
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Link,
    Mesh,
    Plane,
    Sphere,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, matrix_quaternion
from cards_core.typing import Vector3

MESH_SUFFIXES = (".stl", ".obj", ".msh")
"""Mesh files that MuJoCo reads."""

VISUAL_GROUP = "1"
COLLISION_GROUP = "3"


def pose_attributes(pose: Pose) -> dict[str, str]:
    """Return the attributes ``pos`` and ``quat`` of a pose."""
    return {
        "pos": numbers(*pose.translation),
        "quat": numbers(*matrix_quaternion(pose.rotation)),
    }


def add_posed(parent: ET.Element, tag: str, name: str, pose: Pose) -> ET.Element:
    """Add an element with a name and a pose relative to its parent."""
    return ET.SubElement(parent, tag, {"name": name} | pose_attributes(pose))


def shape_attributes(
    geometry: Geometry, pose: Pose, assets: ET.Element, robot: Robot, *, thin_plane: bool
) -> dict[str, str]:
    """Return the attributes of a MuJoCo geom of this shape.

    Args:
        geometry: The shape.
        pose: Shape to body.
        assets: A mesh is added here unless it is there already.
        robot: For the place of mesh files.
        thin_plane: Write planes as thin boxes: MuJoCo takes planes on static bodies only.
    """
    match geometry:
        case Box(size):
            shape = {"type": "box", "size": numbers(*(0.5 * size))}
        case Sphere(radius):
            shape = {"type": "sphere", "size": numbers(radius)}
        case Cylinder(radius, length):
            shape = {"type": "cylinder", "size": numbers(radius, 0.5 * length)}
        case Capsule(radius, length):
            shape = {"type": "capsule", "size": numbers(radius, 0.5 * length)}
        case Ellipsoid(radii):
            shape = {"type": "ellipsoid", "size": numbers(*radii)}
        case Plane(normal, (x, y)):
            pose = pose @ Pose(rotation_to(normal))
            shape = {"type": "plane", "size": numbers(0.5 * x, 0.5 * y, 0.1)}
            if thin_plane:
                shape = {"type": "box", "size": numbers(0.5 * x, 0.5 * y, 0.5 * THIN)}
        case Mesh(uri, scale):
            shape = {"type": "mesh", "mesh": _mesh_asset(assets, mesh_path(uri, robot), scale)}
        case _:
            raise UnknownNameError.of_type("geometry", geometry, get_args(Geometry))
    return shape | pose_attributes(pose)


def _mesh_asset(assets: ET.Element, file: str, scale: Vector3) -> str:
    text = numbers(*scale)
    for mesh in assets:
        if mesh.get("file") == file and mesh.get("scale") == text:
            return str(mesh.get("name"))
    name = f"mesh{len(assets)} {Path(file).stem}"
    # shell: thin and open meshes have no volume; the inertia comes from the link anyway
    ET.SubElement(assets, "mesh", name=name, file=file, scale=text, inertia="shell")
    return name


def add_ground(world: ET.Element, height: float) -> None:
    """Add a horizontal plane at a height in [m]."""
    attributes = {"type": "plane", "size": "10 10 0.1", "rgba": "0.85 0.85 0.85 1"}
    ET.SubElement(world, "geom", attributes, name="ground", pos=numbers(0.0, 0.0, height))


def parse_world(robot: Robot, text: str) -> list[ET.Element]:
    """Return the elements of additional world text. Raises `DescriptionError`."""
    try:
        return list(ET.fromstring(f"<worldbody>{text}</worldbody>"))
    except ET.ParseError as error:
        raise DescriptionError(
            f"the additional world text is not well-formed XML: {error}",
            source=robot.source,
            element="world_xml",
            expected="MJCF elements of a <worldbody>, e.g. <geom type='box' size='1 1 .1'/>",
        ) from None


def has_joint(element: ET.Element) -> bool:
    """Return whether an MJCF body has a joint in it."""
    return any(child.tag in ("joint", "freejoint") for child in element.iter())


def add_geoms(
    body: ET.Element, assets: ET.Element, robot: Robot, link: Link, *, moving: bool
) -> None:
    """Add the visuals, which touch nothing, and the collisions of a link.

    The geoms weigh nothing: the inertia is that of the description.
    """
    for visual in link.visuals:
        if _unreadable(visual.geometry, robot):
            note = f" visual '{visual.name}' left out: MuJoCo does not read its mesh "
            body.append(ET.Comment(note.replace("--", "- -")))
            continue
        attributes = shape_attributes(
            visual.geometry, visual.pose, assets, robot, thin_plane=moving
        )
        attributes |= {"contype": "0", "conaffinity": "0", "group": VISUAL_GROUP, "mass": "0"}
        ET.SubElement(body, "geom", attributes, rgba=numbers(*visual.rgba))
    for collision in link.collisions:
        geometry = collision.geometry
        if isinstance(geometry, Mesh) and _unreadable(geometry, robot):
            problem = f"MuJoCo does not read the mesh {geometry.uri}"
            expected = f"a file in {', '.join(MESH_SUFFIXES)} or a primitive shape"
            raise _collision_error(robot, link, collision, problem, expected)
        if isinstance(geometry, Plane) and moving:
            problem = "a plane on a link that moves"
            expected = "a box, or a link that is fixed to the world"
            raise _collision_error(robot, link, collision, problem, expected)
        attributes = shape_attributes(geometry, collision.pose, assets, robot, thin_plane=False)
        attributes |= {"group": COLLISION_GROUP, "mass": "0"}
        # torsional and rolling friction as MuJoCo has them by default
        friction = numbers(collision.friction, 0.005, 0.0001)
        ET.SubElement(body, "geom", attributes, friction=friction)


def _unreadable(geometry: Geometry, robot: Robot) -> bool:
    if not isinstance(geometry, Mesh):
        return False
    path = mesh_path(geometry.uri, robot)
    return "://" in path or not path.lower().endswith(MESH_SUFFIXES)


def _collision_error(
    robot: Robot, link: Link, collision: Collision, problem: str, expected: str
) -> DescriptionError:
    return DescriptionError(
        problem,
        source=robot.source,
        line=link.line,
        element=f"link '{link.name}', collision '{collision.name}'",
        expected=expected,
    )


def _neighbours(robot: Robot, merged: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of links joined by a joint, seen through merged links."""
    joint_of = {joint.child: joint for joint in robot.joints}
    for joint in robot.joints:
        parent = joint.parent
        while parent in merged:
            parent = joint_of[parent].parent
        if parent != WORLD and joint.child not in merged:
            yield parent, joint.child


def add_excludes(
    root: ET.Element,
    robot: Robot,
    merged: frozenset[str],
    exclude: Collection[tuple[str, str]],
) -> None:
    """Exclude collisions of links joined by a joint, and of the given pairs of links."""
    # MuJoCo leaves out parent and child only where the parent moves: a base fixed to the world
    # would collide with the first link of the arm
    touching = {link.name for link in robot.links if link.collisions}
    pairs = {tuple(sorted(pair)) for pair in _neighbours(robot, merged)}
    for pair in exclude:
        for name in pair:
            robot.link(name)
        pairs.add(tuple(sorted(pair)))
    pairs = {pair for pair in pairs if set(pair) <= touching}
    if pairs:
        contact = ET.SubElement(root, "contact")
        for first, second in sorted(pairs):
            ET.SubElement(contact, "exclude", body1=first, body2=second)


def add_sensors(root: ET.Element, robot: Robot, merged: frozenset[str]) -> None:
    """Add the frame sensors described at `cards_core.formats.mjcf.writer.to_mjcf`."""
    sensor = ET.SubElement(root, "sensor")
    names = [WORLD if link.name in merged else link.name for link in robot.links]
    # MuJoCo's "xbody" is the body's own frame, "body" the principal frame at its centre of mass
    pose = [("framexaxis", "xbody"), ("frameyaxis", "xbody"), ("framezaxis", "xbody")]
    pose += [("framepos", "body")]
    twist = [("framelinvel", "body"), ("frameangvel", "body")]
    for kinds in (pose, twist):
        for name in names:
            for kind, frame in kinds:
                ET.SubElement(sensor, kind, objtype=frame, objname=name)
