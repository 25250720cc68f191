"""Write a `Robot` as URDF, for RViz's RobotModel, robot_state_publisher and URDF tools.

URDF knows fixed, revolute, continuous and prismatic joints, and puts every link frame at its
joint. Hence:

- The root link is ``world``.
- Joints of several degrees of freedom become chains of one each, with massless links named
  ``<joint>_1_link`` ... between them.
- Where the joint frame is not the child's link frame, the joint moves a massless link
  ``<joint>_frame`` and the child is fixed to that.

Joint names, against the names of `Tree.position_names` that hosts publish on ``joint_states``:

=================== ============================== ===========================================
joint               URDF joints                    joint_states
=================== ============================== ===========================================
revolute, prismatic ``j``                          the same
universal           ``j_1``, ``j_2``               the same
planar              ``j_1``, ``j_2``, ``j_3``      the same
ball                ``j_rx``, ``j_ry``, ``j_rz``   ``j.w``, ``j.x``, ``j.y``, ``j.z``
free                ``j_x``, ``j_y``, ``j_z``,     ``j_x``, ``j_y``, ``j_z``,
                    ``j_rx``, ``j_ry``, ``j_rz``   ``j.w``, ``j.x``, ``j.y``, ``j.z``
=================== ============================== ===========================================

The angles of ball and free joints are those of ``R = Rx(rx) Ry(ry) Rz(rz)``. Muscles have no
place in URDF; they are drawn by markers.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.formats.sdf.elements import THIN, mesh_path, numbers, rotation_to
from cards_core.formats.sdf.reader import GRAVITY
from cards_core.robot.elements import (
    AXES_PER_KIND,
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Inertia,
    Joint,
    JointAxis,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.spatial import Pose

UNLIMITED = 1e9
"""Written where URDF requires a limit that the robot does not have."""

_UNITS = tuple(JointAxis(axis) for axis in np.eye(3))


def to_urdf(robot: Robot) -> str:
    """Return the robot as URDF text.

    Inertias are written as they are, valid or not. Ellipsoids are drawn as spheres of the same
    volume and planes as thin boxes, because URDF has neither; capsules become three shapes. What
    is left out says `left_out`.

    Raises:
        DescriptionError: The joints do not form a tree.
    """
    tree = robot.tree
    root = ET.Element("robot", name=robot.name)
    ET.SubElement(root, "link", name=WORLD)
    for link in robot.links:
        element = ET.SubElement(root, "link", name=link.name)
        if not link.inertia.is_massless:
            _add_inertial(element, link.inertia)
        for visual in link.visuals:
            _add_shapes(element, visual, f"{link.name} {visual.name}", robot)
        for collision in link.collisions:
            _add_shapes(element, collision, "", robot)
    joint_of = {joint.child: joint for joint in robot.joints}
    for name in tree.link_node:
        if name != WORLD:
            _add_joint(root, joint_of[name])
    ET.indent(root)
    return '<?xml version="1.0"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def left_out(robot: Robot) -> list[str]:
    """Return what URDF has no place for, a line each.

    Args:
        robot: That is written by `to_urdf`.
    """
    tree = robot.tree
    parts = {
        "muscle": len(robot.muscles),
        "frame": len(robot.frames),
        "joint motor": len(motors_of(tree)),
    }
    notes = [
        f"{count} {what}{'' if count == 1 else 's'} left out: URDF has none"
        for what, count in parts.items()
        if count
    ]
    # -9.8, the default of worlds, is near enough to say nothing
    if max(abs(a - b) for a, b in zip(robot.gravity, GRAVITY, strict=True)) > 0.02:
        gravity = " ".join(f"{value:g}" for value in robot.gravity)
        usual = " ".join(f"{value:g}" for value in GRAVITY)
        notes.append(f"gravity {gravity} m/s^2 left out: robots in URDF get {usual}")
    if (tree.home != tree.neutral()).any():
        notes.append("home left out: robots in URDF begin at zero")
    return notes


# Joints --------------------------------------------------------------------------------------


def _elementary(joint: Joint) -> list[tuple[str, str, JointAxis]]:
    """Split a joint into (name, URDF type, axis)."""
    name, a = joint.name, joint.axes
    rotations = [(f"{name}_r{c}", "revolute", u) for c, u in zip("xyz", _UNITS, strict=True)]
    match joint.kind:
        case "revolute" | "prismatic":
            return [(name, joint.kind, a[0])]
        case "universal":
            return [(f"{name}_1", "revolute", a[0]), (f"{name}_2", "revolute", a[1])]
        case "planar":
            kinds = ("prismatic", "prismatic", "revolute")
            return [(f"{name}_{i + 1}", kind, a[i]) for i, kind in enumerate(kinds)]
        case "ball":
            return rotations
        case "free":
            slides = [(f"{name}_{c}", "prismatic", u) for c, u in zip("xyz", _UNITS, strict=True)]
            return slides + rotations
        case "fixed":
            return []
        case _:
            raise UnknownNameError("joint kind", joint.kind, AXES_PER_KIND)


def _add_joint(root: ET.Element, joint: Joint) -> None:
    steps = _elementary(joint)
    if not steps:
        pose = joint.parent_to_joint @ joint.joint_to_child
        _joint_element(root, joint.name, "fixed", (joint.parent, joint.child), pose)
        return
    offset = joint.joint_to_child
    at_child = bool(np.all(offset.rotation == np.eye(3)) and not np.any(offset.translation))
    moved = joint.child if at_child else f"{joint.name}_frame"
    parent, pose = joint.parent, joint.parent_to_joint
    for index, (name, kind, axis) in enumerate(steps):
        last = index == len(steps) - 1
        child = moved if last else f"{joint.name}_{index + 1}_link"
        if child != joint.child:
            ET.SubElement(root, "link", name=child)
        bounded = math.isfinite(axis.lower) or math.isfinite(axis.upper)
        tag = "continuous" if kind == "revolute" and not bounded else kind
        element = _joint_element(root, name, tag, (parent, child), pose)
        ET.SubElement(element, "axis", xyz=numbers(*axis.axis))
        limit = ET.SubElement(element, "limit")
        if tag != "continuous":
            limit.set("lower", numbers(max(axis.lower, -UNLIMITED)))
            limit.set("upper", numbers(min(axis.upper, UNLIMITED)))
        limit.set("effort", numbers(min(axis.effort, UNLIMITED)))
        limit.set("velocity", numbers(min(axis.velocity, UNLIMITED)))
        if axis.damping or axis.friction:
            dynamics = {"damping": numbers(axis.damping), "friction": numbers(axis.friction)}
            ET.SubElement(element, "dynamics", dynamics)
        parent, pose = child, Pose()
    if not at_child:
        _joint_element(root, f"{joint.name}_frame", "fixed", (moved, joint.child), offset)


def _joint_element(
    root: ET.Element, name: str, kind: str, links: tuple[str, str], pose: Pose
) -> ET.Element:
    element = ET.SubElement(root, "joint", name=name, type=kind)
    ET.SubElement(element, "parent", link=links[0])
    ET.SubElement(element, "child", link=links[1])
    element.append(_origin(pose))
    return element


def _origin(pose: Pose) -> ET.Element:
    xyz, rpy = numbers(*pose.translation), numbers(*pose.rpy)
    return ET.Element("origin", xyz=xyz, rpy=rpy)


# Links ---------------------------------------------------------------------------------------


def _add_inertial(element: ET.Element, inertia: Inertia) -> None:
    inertial = ET.SubElement(element, "inertial")
    inertial.append(_origin(Pose(np.eye(3), inertia.com)))
    ET.SubElement(inertial, "mass", value=numbers(inertia.mass))
    entries = {
        f"i{a}{b}": numbers(inertia.tensor["xyz".index(a), "xyz".index(b)])
        for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")
    }
    ET.SubElement(inertial, "inertia", entries)


def _add_shapes(
    element: ET.Element, item: Visual | Collision, material: str, robot: Robot
) -> None:
    tag = "visual" if isinstance(item, Visual) else "collision"
    shapes = _shapes(item.geometry, robot)
    for index, (offset, name, attributes) in enumerate(shapes):
        label = item.name if len(shapes) == 1 else f"{item.name}_{index + 1}"
        shape = ET.SubElement(element, tag, name=label)
        shape.append(_origin(item.pose @ offset))
        geometry = ET.SubElement(shape, "geometry")
        ET.SubElement(geometry, name, attributes)
        if isinstance(item, Visual):
            colour = ET.SubElement(shape, "material", name=f"{material} {index}")
            ET.SubElement(colour, "color", rgba=numbers(*item.rgba))


def _shapes(geometry: Geometry, robot: Robot) -> Sequence[tuple[Pose, str, dict[str, str]]]:
    """Return (pose, URDF element, attributes) of the shapes that make up a geometry."""
    match geometry:
        case Box(size):
            return [(Pose(), "box", {"size": numbers(*size)})]
        case Sphere(radius):
            return [(Pose(), "sphere", {"radius": numbers(radius)})]
        case Cylinder(radius, length):
            return [(Pose(), "cylinder", {"radius": numbers(radius), "length": numbers(length)})]
        case Capsule(radius, length):
            ball = {"radius": numbers(radius)}
            ends = [Pose(np.eye(3), np.array([0.0, 0.0, s * 0.5 * length])) for s in (-1, 1)]
            tube = {"radius": numbers(radius), "length": numbers(length)}
            return [(Pose(), "cylinder", tube), *((end, "sphere", ball) for end in ends)]
        case Ellipsoid(radii):
            return [(Pose(), "sphere", {"radius": numbers(float(np.prod(radii)) ** (1 / 3))})]
        case Plane(normal, (x, y)):
            return [(Pose(rotation_to(normal)), "box", {"size": numbers(x, y, THIN)})]
        case HeightField():
            return []  # URDF has none, and no robot either
        case Mesh(uri, scale):
            path = mesh_path(uri, robot)
            # a path relative to the file has no scheme
            file = f"file://{path}" if "://" not in path and path.startswith("/") else path
            return [(Pose(), "mesh", {"filename": file, "scale": numbers(*scale)})]
        case _:
            raise UnknownNameError.of_type("geometry", geometry, get_args(Geometry))
