"""Single SDF elements from the parts of a robot; `sdf_writer` puts them together."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.formats.sdf.geometry_xml import numbers
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Inertia,
    JointAxis,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_core.spatial import Pose, matrix_quaternion, rpy_matrix
from cards_core.typing import Array


def add_pose(
    parent: ET.Element, pose: Pose, *, relative_to: str | None = None, always: bool = False
) -> None:
    """Add a pose, as roll pitch yaw where these keep all digits, else as a quaternion."""
    if is_identity(pose) and relative_to is None and not always:
        return
    element = ET.SubElement(parent, "pose")
    if relative_to is not None:
        element.set("relative_to", relative_to)
    angles = round_angles(pose)
    if angles is not None:
        element.text = numbers(*pose.translation, *angles)
    else:  # roll and yaw lose digits near a pitch of 90 degrees
        w, x, y, z = matrix_quaternion(pose.rotation)
        element.set("rotation_format", "quat_xyzw")
        element.text = numbers(*pose.translation, x, y, z, w)


def is_identity(pose: Pose) -> bool:
    """Return whether a pose moves nothing, to the last digit."""
    return not pose.translation.any() and np.array_equal(pose.rotation, np.eye(3))


def round_angles(pose: Pose) -> Array | None:
    """Return the shortest roll, pitch, yaw that give the rotation to 1e-15; None if none do.

    A rotation that was written as 0.1 rad is written so again, not as 0.09999999999999998.
    """
    angles = pose.rpy
    for digits in range(17):
        rounded = np.round(angles, digits)
        if np.abs(rpy_matrix(*rounded) - pose.rotation).max() < 1e-15:
            return rounded
    return None


def add_inertia(link: ET.Element, inertia: Inertia) -> None:
    """Add mass, centre of mass and tensor to a link."""
    element = ET.SubElement(link, "inertial")
    add_pose(element, Pose(translation=inertia.com))
    ET.SubElement(element, "mass").text = numbers(inertia.mass)
    tensor = ET.SubElement(element, "inertia")
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        ET.SubElement(tensor, f"i{'xyz'[i]}{'xyz'[j]}").text = numbers(inertia.tensor[i, j])


def add_axis(joint: ET.Element, tag: str, axis: JointAxis) -> None:
    """Add an axis with its limits and damping to a joint; infinite limits are left out."""
    element = ET.SubElement(joint, tag)
    ET.SubElement(element, "xyz").text = numbers(*axis.axis)
    limit = ET.SubElement(element, "limit")
    for name in ("lower", "upper", "effort", "velocity"):
        value = getattr(axis, name)
        if math.isfinite(value):
            ET.SubElement(limit, name).text = numbers(value)
    if axis.damping or axis.friction:
        dynamics = ET.SubElement(element, "dynamics")
        ET.SubElement(dynamics, "damping").text = numbers(axis.damping)
        ET.SubElement(dynamics, "friction").text = numbers(axis.friction)


def add_visual(parent: ET.Element, visual: Visual, base: Path | None) -> None:
    """Add a visual to a link."""
    element = ET.SubElement(parent, "visual", name=visual.name)
    add_pose(element, visual.pose)
    _add_geometry(element, visual.geometry, base)
    material = ET.SubElement(element, "material")
    for tag in ("ambient", "diffuse"):
        ET.SubElement(material, tag).text = numbers(*visual.rgba)


def add_collision(parent: ET.Element, collision: Collision, base: Path | None) -> None:
    """Add a collision to a link."""
    element = ET.SubElement(parent, "collision", name=collision.name)
    add_pose(element, collision.pose)
    _add_geometry(element, collision.geometry, base)
    if collision.friction != 1.0:
        surface = ET.SubElement(element, "surface")
        ode = ET.SubElement(ET.SubElement(surface, "friction"), "ode")
        for tag in ("mu", "mu2"):
            ET.SubElement(ode, tag).text = numbers(collision.friction)


def _add_geometry(parent: ET.Element, geometry: Geometry, base: Path | None) -> None:
    element = ET.SubElement(parent, "geometry")
    values: dict[str, str]
    match geometry:
        case Box():
            tag, values = "box", {"size": numbers(*geometry.size)}
        case Sphere():
            tag, values = "sphere", {"radius": numbers(geometry.radius)}
        case Cylinder() | Capsule():
            tag = "cylinder" if isinstance(geometry, Cylinder) else "capsule"
            values = {
                "radius": numbers(geometry.radius),
                "length": numbers(geometry.length),
            }
        case Ellipsoid():
            tag, values = "ellipsoid", {"radii": numbers(*geometry.radii)}
        case Plane():
            tag = "plane"
            values = {"normal": numbers(*geometry.normal), "size": numbers(*geometry.size)}
        case Mesh():
            tag = "mesh"
            values = {"uri": mesh_location(geometry.uri, base), "scale": numbers(*geometry.scale)}
        case _:
            raise UnknownNameError.of_type("geometry", geometry, get_args(Geometry))
    shape = ET.SubElement(element, tag)
    for name, value in values.items():
        ET.SubElement(shape, name).text = value


def mesh_location(uri: str, base: Path | None) -> str:
    """Return a path relative to the file's folder where the mesh is below it."""
    if base is not None and Path(uri).is_absolute():
        folder = base.resolve()
        if Path(uri).is_relative_to(folder):
            return Path(uri).relative_to(folder).as_posix()
    return uri
