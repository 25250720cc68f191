"""The parts of an MJCF file that are neither bodies nor joints, which `mjcf.writer` puts together.

They are shapes, contacts, sensors, constraints between models, and muscles: sites for drawing,
and on demand spatial tendons that wrap as MuJoCo can. MuJoCo wraps over one sphere or infinite
cylinder at a time, between two sites. A wrap over another shape, or over one surface of several in
a row, is left out of the tendon with a comment in its place. A pulley becomes the site where its
cable enters; the ends of a finite cylinder are lost. `cards_core.formats.mjcf.approximation` makes
a robot for which nothing of this happens.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.mjcf.friction import FrictionRule
from cards_core.formats.sdf.elements import THIN, mesh_path, numbers, rotation_to
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Link,
    Mesh,
    Muscle,
    Plane,
    Pulley,
    Sphere,
    Torus,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.robot.world import ModelJoint, ModelJointKind
from cards_core.spatial import Pose, matrix_quaternion
from cards_core.typing import Vector3

# Shapes, contacts, sensors ---------------------------------------------------------------------


MESH_SUFFIXES = (".stl", ".obj", ".msh")
"""Mesh files that MuJoCo reads."""

BELOW = 1.0
"""How far the ground of a height field reaches down below its lowest point, [m]."""

VISUAL_GROUP = "1"
COLLISION_GROUP = "3"


def pose_attributes(pose: Pose) -> dict[str, str]:
    """Return the attributes ``pos`` and ``quat`` of a pose."""
    return {
        "pos": numbers(*pose.translation),
        "quat": numbers(*matrix_quaternion(pose.rotation)),
    }


def add_posed(parent: ET.Element, tag: str, name: str, pose: Pose) -> ET.Element:
    """Add an element with a name and a pose relative to its parent.

    Args:
        parent: Element that it is added to.
        tag: Tag of the new element.
        name: Name of the new element.
        pose: Pose in the frame of the parent, [m].

    Returns:
        The new element.
    """
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

    Raises:
        UnknownNameError: A shape of an unknown kind.
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
        case HeightField():
            shape = {"type": "hfield", "hfield": _height_asset(assets, geometry)}
            # heights are relative to the lowest in MuJoCo
            low = np.array([0.0, 0.0, float(geometry.heights.min())])
            pose = pose @ Pose(translation=low)
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


def _height_asset(assets: ET.Element, field: HeightField) -> str:
    rows, columns = field.heights.shape
    low, high = float(field.heights.min()), float(field.heights.max())
    rise = high - low if high > low else 1.0  # of a flat one, which is at zero of it
    # MuJoCo's first row of an element is the last along y
    shares = ((field.heights[::-1] - low) / rise).ravel().tolist()
    attributes = {
        "nrow": str(rows),
        "ncol": str(columns),
        "size": numbers(0.5 * field.size[0], 0.5 * field.size[1], rise, BELOW),
        "elevation": " ".join(map(repr, shares)),
    }
    for other in assets:
        if other.tag == "hfield" and attributes.items() <= other.attrib.items():
            return str(other.get("name"))
    name = f"height field {len(assets)}"
    ET.SubElement(assets, "hfield", attributes, name=name)
    return name


def add_ground(world: ET.Element, height: float, friction: Mapping[str, str]) -> None:
    """Add a horizontal plane at a height in [m]; `friction` are the attributes for it.

    Args:
        world: The element ``worldbody``.
        height: z of the plane, [m].
        friction: Attributes of its friction.
    """
    attributes = {"type": "plane", "size": "10 10 0.1", "rgba": "0.85 0.85 0.85 1", **friction}
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
    body: ET.Element,
    assets: ET.Element,
    robot: Robot,
    link: Link,
    friction: FrictionRule,
    *,
    moving: bool,
    visuals: bool = True,
) -> None:
    """Add the visuals, which touch nothing, if they are wanted, and the collisions of a link.

    The geoms weigh nothing: the inertia is that of the description.

    Args:
        body: The ``<body>`` or ``<worldbody>`` of the link.
        assets: The ``<asset>`` that takes meshes and height fields.
        robot: The robot.
        link: The link.
        friction: Friction of the collisions.
        moving: Whether the body moves.
        visuals: Whether visuals are wanted.

    Raises:
        DescriptionError: A collision that MuJoCo cannot have: an unreadable mesh, or a plane or
            height field that moves.
    """
    for visual in link.visuals if visuals else ():
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
        if isinstance(geometry, Plane | HeightField) and moving:
            kind = "plane" if isinstance(geometry, Plane) else "height field"
            problem = f"a {kind} on a link that moves"
            expected = "a box, or a link that is fixed to the world"
            raise _collision_error(robot, link, collision, problem, expected)
        attributes = shape_attributes(geometry, collision.pose, assets, robot, thin_plane=False)
        attributes |= {"group": COLLISION_GROUP, "mass": "0"}
        ET.SubElement(body, "geom", attributes | friction.of(link, collision, moving=moving))


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


def add_contacts(
    root: ET.Element,
    robot: Robot,
    merged: frozenset[str],
    exclude: Collection[tuple[str, str]],
    friction: FrictionRule,
) -> None:
    """Exclude collisions of links joined by a joint, and of the given pairs of links.

    Pairs of shapes whose friction their geoms cannot say are written, too.

    Args:
        root: The ``<mujoco>`` element.
        robot: The robot.
        merged: Links that are part of the world.
        exclude: Further pairs of links that do not collide.
        friction: Friction of the collisions.

    Raises:
        UnknownNameError: ``exclude`` has a link that the robot has not.
    """
    # MuJoCo leaves out parent and child only where the parent moves: a base fixed to the world
    # would collide with the first link of the arm
    touching = {link.name for link in robot.links if link.collisions}
    pairs = {tuple(sorted(pair)) for pair in _neighbours(robot, merged)}
    for pair in exclude:
        for name in pair:
            robot.link(name)
        pairs.add(tuple(sorted(pair)))
    pairs = {pair for pair in pairs if set(pair) <= touching}
    unlike = list(friction.pairs(robot, {(first, second) for first, second in pairs}))
    if pairs or unlike:
        contact = ET.SubElement(root, "contact")
        for first, second in sorted(pairs):
            ET.SubElement(contact, "exclude", body1=first, body2=second)
        for attributes in unlike:
            ET.SubElement(contact, "pair", attributes)


def add_sensors(root: ET.Element, robot: Robot, merged: frozenset[str]) -> None:
    """Add the frame sensors described at `cards_core.formats.mjcf.writer.to_mjcf`.

    Args:
        root: The ``<mujoco>`` element.
        robot: The robot.
        merged: Links that are part of the world.
    """
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


# Constraints between models ----------------------------------------------------------------------


GRASP = ">"
"""Between the names of the two links of a grasp, in the name of its weld."""

_ENDS = ("parent", "child")


def add_constraint_sites(
    bodies: Mapping[str, ET.Element], robot: Robot, joints: Sequence[ModelJoint]
) -> None:
    """Mark the frames of joints that close loops, on both bodies.

    Args:
        bodies: The ``<body>`` of each link.
        robot: The robot, for its file's name in messages.
        joints: The joints that close loops.

    Raises:
        DescriptionError: A joint's link is no body of its own.
    """
    # sites, because what MuJoCo joins by bodies depends on its reference coordinates, not on home
    for joint in joints:
        places = (joint.parent_to_joint, joint.child_to_joint)
        for end, link, pose in zip(_ENDS, (joint.parent, joint.child), places, strict=True):
            if link not in bodies:
                raise DescriptionError(
                    f"its {end} '{link}' has neither mass nor shape",
                    source=robot.source,
                    line=joint.line,
                    element=f"joint '{joint.name}'",
                    expected="a link with mass",
                )
            add_posed(bodies[link], "site", f"{joint.name} {end}", pose)
            if joint.axis is not None:
                further = pose @ Pose(translation=joint.axis)
                add_posed(bodies[link], "site", f"{joint.name} {end} axis", further)


def add_constraints(
    root: ET.Element, joints: Sequence[ModelJoint], grasps: Sequence[tuple[str, str]]
) -> None:
    """Add the joints that close loops, and a weld for each grasp, which is not active.

    Args:
        root: The ``<mujoco>`` element.
        joints: The joints that close loops; their sites exist, see `add_constraint_sites`.
        grasps: Pairs of links.

    Raises:
        UnknownNameError: No such kind of joint.
    """
    equality = ET.SubElement(root, "equality")
    for joint in joints:
        sites = {f"site{i + 1}": f"{joint.name} {end}" for i, end in enumerate(_ENDS)}
        match joint.kind:
            case "fixed":
                ET.SubElement(equality, "weld", sites, name=joint.name)
            case "ball":
                ET.SubElement(equality, "connect", sites, name=joint.name)
            case "revolute":
                ET.SubElement(equality, "connect", sites, name=joint.name)
                # a second point of the axis, 1 m away
                sites = {key: f"{site} axis" for key, site in sites.items()}
                ET.SubElement(equality, "connect", sites, name=f"{joint.name} axis")
            case _:
                raise UnknownNameError(
                    "kind of joint between models", joint.kind, get_args(ModelJointKind)
                )
    for first, second in grasps:
        ends = {"body1": first, "body2": second}
        ET.SubElement(equality, "weld", ends, name=f"{first}{GRASP}{second}", active="false")


# Muscles ---------------------------------------------------------------------------------------


WRAP_GROUP = "4"
"""Group of the geoms that tendons wrap over; MuJoCo's viewer hides it at first."""

_DRAWN_RADII = 10.0
"""Half the drawn length of an infinite cylinder, in radii."""


def add_sites(body: ET.Element, robot: Robot, link: str, *, sides: bool = False) -> None:
    """Mark the via points and pulleys on a link; with ``sides`` also where wraps pass.

    Args:
        body: The ``<body>`` of the link.
        robot: The robot.
        link: Name of the link.
        sides: Mark sides of wraps too.
    """
    for muscle in robot.muscles:
        for index, item in enumerate(muscle.path):
            if not isinstance(item, Wrap):
                if item.link == link:
                    _add_site(body, f"{muscle.name} {index}", item.position)
            elif sides and robot.wrap_surface(item.surface).link == link:
                side = _side(item, robot.wrap_surface(item.surface))
                if side is not None:
                    _add_site(body, f"{muscle.name} {index}", side)


def add_frames(body: ET.Element, robot: Robot, link: str) -> None:
    """Mark the frames on a link by sites of their names.

    Args:
        body: The ``<body>`` of the link.
        robot: The robot.
        link: Name of the link.
    """
    for frame in robot.frames:
        if frame.link == link:
            add_posed(body, "site", frame.name, frame.pose).set("group", "4")


def add_wrap_geoms(body: ET.Element, robot: Robot, link: str) -> None:
    """Add the surfaces of a link that MuJoCo wraps over; they touch and weigh nothing.

    Args:
        body: The ``<body>`` of the link.
        robot: The robot.
        link: Name of the link.

    Raises:
        UnknownNameError: A wrap surface of an unknown kind.
    """
    for surface in robot.wrap_surfaces:
        match surface.geometry:
            case Sphere(radius):
                shape = {"type": "sphere", "size": numbers(radius)}
            case Cylinder(radius, length):
                half = 0.5 * length if math.isfinite(length) else _DRAWN_RADII * radius
                shape = {"type": "cylinder", "size": numbers(radius, half)}
            case Ellipsoid() | Torus() | Mesh():
                continue
            case _:
                raise UnknownNameError.of_type(
                    "wrap surface", surface.geometry, get_args(WrapGeometry)
                )
        if surface.link == link:
            shape |= pose_attributes(surface.pose)
            shape |= {"contype": "0", "conaffinity": "0", "group": WRAP_GROUP, "mass": "0"}
            name = _geom_name(surface.name)
            ET.SubElement(body, "geom", shape, name=name, rgba="0.3 0.5 0.8 0.3")


def add_tendons(root: ET.Element, robot: Robot, notes: Mapping[str, str]) -> None:
    """Add one spatial tendon per muscle, of the muscle's name.

    Args:
        root: The ``<mujoco>`` element.
        robot: The robot.
        notes: Muscle to a comment in its tendon.
    """
    if not robot.muscles:
        return
    tendons = ET.SubElement(root, "tendon")
    for muscle in robot.muscles:
        tendon = ET.SubElement(tendons, "spatial", name=muscle.name, width="0.003")
        if muscle.name in notes:
            _note(tendon, notes[muscle.name])
        for index, item in enumerate(muscle.path):
            if not isinstance(item, Wrap):
                if isinstance(item, Pulley):
                    _note(tendon, "the wheel of a pulley is left out")
                ET.SubElement(tendon, "site", site=f"{muscle.name} {index}")
                continue
            surface = robot.wrap_surface(item.surface)
            problem = _problem(muscle, index, surface)
            if problem:
                _note(tendon, f"wrap over '{surface.name}' left out: {problem}")
                continue
            geom = ET.SubElement(tendon, "geom", geom=_geom_name(surface.name))
            if _side(item, surface) is not None:
                geom.set("sidesite", f"{muscle.name} {index}")


def mesh_notes(robot: Robot) -> list[str]:
    """Return which visuals `add_geoms` leaves out, a line each."""
    return [
        f"{link.name}: visual '{visual.name}' left out: MuJoCo does not read "
        f"'{Path(visual.geometry.uri).name}' (expected: a file in {', '.join(MESH_SUFFIXES)})"
        for link in robot.links
        for visual in link.visuals
        if isinstance(visual.geometry, Mesh) and _unreadable(visual.geometry, robot)
    ]


def tendon_notes(robot: Robot) -> list[str]:
    """Return what tendons and actuators cannot do of what the muscles do, a line each."""
    notes = []
    for muscle in robot.muscles:
        for index, item in enumerate(muscle.path):
            problem = ""
            if isinstance(item, Pulley):
                problem = "the wheel of its pulley is left out"
            elif isinstance(item, Wrap):
                surface = robot.wrap_surface(item.surface)
                problem = _problem(muscle, index, surface)
                problem = problem and f"wrap over '{surface.name}' left out: {problem}"
                if not problem and isinstance(surface.geometry, Cylinder):
                    endless = math.isinf(surface.geometry.length)
                    problem = "" if endless else f"cylinder '{surface.name}' becomes endless"
            if problem:
                notes.append(f"{muscle.name}: {problem}")
        if any(getattr(item, "friction", 0.0) for item in muscle.path) or muscle.friction:
            notes.append(f"{muscle.name}: friction along its path is left out")
        if muscle.contact:
            notes.append(f"{muscle.name}: it is straight, and touches nothing on its way")
        if not muscle.takes_tension:
            notes.append(f"{muscle.name}: a passive {muscle.kind} has no force")
        elif muscle.kind != Cable.kind or getattr(muscle.actuator, "stiffness", None) is not None:
            kind = "elastic cable" if muscle.kind == Cable.kind else muscle.kind
            notes.append(f"{muscle.name}: its {kind} becomes an ideal source of tension")
    return notes


def add_actuators(root: ET.Element, robot: Robot) -> None:
    """Add one actuator per muscle that takes a tension, then one per motor of a joint.

    The control of a muscle is its tension, [N], which pulls (``gear`` is -1); that of a motor its
    effort, [Nm] or [N]. Both are limited as in the description.
    """
    motors = motors_of(robot.tree)
    pulled = [muscle for muscle in robot.muscles if muscle.takes_tension]
    if not pulled and not len(motors):
        return
    actuators = ET.SubElement(root, "actuator")
    for muscle in pulled:
        element = ET.SubElement(actuators, "general", name=muscle.name, tendon=muscle.name)
        element.set("gear", "-1")
        _limit(element, muscle.tension_min, muscle.tension_max)
    for name, effort in zip(motors.names, motors.efforts, strict=True):
        element = ET.SubElement(actuators, "general", name=f"{name} motor", joint=name)
        _limit(element, -effort, effort)


def _limit(element: ET.Element, low: float, high: float) -> None:
    if math.isfinite(low) or math.isfinite(high):
        element.set("ctrllimited", "true")
        element.set("ctrlrange", numbers(max(low, -1e9), min(high, 1e9)))


def _problem(muscle: Muscle, index: int, surface: WrapSurface) -> str:
    """Return why MuJoCo cannot wrap here; empty if it can."""
    if not isinstance(surface.geometry, Sphere | Cylinder):
        return "MuJoCo wraps over spheres and cylinders only"
    if any(isinstance(muscle.path[i], Wrap) for i in (index - 1, index + 1)):
        return "MuJoCo wraps over one surface between two points"
    return ""


def _side(wrap: Wrap, surface: WrapSurface) -> Vector3 | None:
    """Return where MuJoCo's side site goes, in link coordinates: within the geom for inside."""
    if wrap.inside:
        return np.array(surface.pose.translation)
    return wrap.side


def _add_site(body: ET.Element, name: str, position: Vector3) -> None:
    attributes = {"size": "0.004", "rgba": "0.8 0.1 0.1 1"}
    ET.SubElement(body, "site", attributes, name=name, pos=numbers(*position))


def _geom_name(surface: str) -> str:
    return f"wrap {surface}"


def _note(parent: ET.Element, text: str) -> None:
    parent.append(ET.Comment(f" {text} ".replace("--", "- -")))
