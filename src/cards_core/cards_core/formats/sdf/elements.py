"""The parts of a robot as text and elements of XML files.

`cards_core.formats.sdf.writer` puts the SDF elements together: those of links and joints, and
those of wrap surfaces and muscles for our plugin block. The MJCF and URDF writers share what makes
text of numbers, and mesh files and the orientation of planes.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cards_core.errors import CardsError, UnknownNameError
from cards_core.parameters.declaration import groups_of, parameters_of
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Inertia,
    JointAxis,
    Mesh,
    Muscle,
    PathElement,
    Plane,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Visual,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, matrix_quaternion, rpy_matrix
from cards_core.typing import Array, Matrix3, Vector3

# Shared with MJCF and URDF ---------------------------------------------------------------------


THIN = 1e-3
"""Thickness of the box that is drawn where a format has no plane, [m]."""


def numbers(*values: float) -> str:
    """Return values separated by blanks, with all digits (reading gives the same floats)."""
    # adding 0.0 turns -0.0 into 0.0; repr is the shortest text that reads back exactly
    return " ".join(repr(float(v) + 0.0).removesuffix(".0") for v in values)


def mesh_path(uri: str, robot: Robot) -> str:
    """Return the file of a mesh.

    ``file://`` is removed, ``model://<name>/..`` is looked up beside the folder of the robot's
    own file, and relative paths are relative to that file. Other schemes (``package://``,
    ``https://``) are left as they are: nothing is resolved or downloaded here.
    """
    folder = Path(robot.source).resolve().parent if robot.source else Path()
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return str(folder / uri)
    if scheme == "file":
        return rest
    if scheme == "model":
        return str(folder.parent / rest)
    return uri


def rotation_to(normal: Vector3) -> Matrix3:
    """Return a rotation that takes the z axis to the direction of ``normal``."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


# Links and joints ------------------------------------------------------------------------------


def add_pose(
    parent: ET.Element, pose: Pose, *, relative_to: str | None = None, always: bool = False
) -> None:
    """Add a pose, as roll pitch yaw where these keep all digits, else as a quaternion.

    Args:
        parent: Element that it is added to.
        pose: The pose, [m].
        relative_to: Frame of the pose; None: the default of the parent.
        always: Add an identity too; else it is left out.
    """
    if pose.is_identity and relative_to is None and not always:
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
    """Add an axis with its limits and damping to a joint; infinite limits are left out.

    Args:
        joint: The ``<joint>``.
        tag: ``axis`` or ``axis2``.
        axis: Direction, limits and damping, SI units.
    """
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
    """Add a visual to a link.

    Args:
        parent: The ``<link>``.
        visual: The visual.
        base: Folder of the file: paths of meshes below it are written relative to it; None: none
            are.
    """
    element = ET.SubElement(parent, "visual", name=visual.name)
    add_pose(element, visual.pose)
    _add_geometry(element, visual.geometry, base)
    material = ET.SubElement(element, "material")
    for tag in ("ambient", "diffuse"):
        ET.SubElement(material, tag).text = numbers(*visual.rgba)


def add_collision(parent: ET.Element, collision: Collision, base: Path | None) -> None:
    """Add a collision to a link.

    Args:
        parent: The ``<link>``.
        collision: The collision.
        base: As of `add_visual`.
    """
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
        case HeightField():
            raise CardsError(
                "a height field has no place in an SDF without a file "
                "(expected: cards_core.formats.sdf.terrain, which writes one)"
            )
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


# Wrap surfaces and muscles ---------------------------------------------------------------------


def add_wrap_surface(block: ET.Element, surface: WrapSurface, base: Path | None) -> None:
    """Add a wrap surface to the block.

    Args:
        block: The ``<plugin>`` with the muscles.
        surface: The surface.
        base: As of `add_visual`.

    Raises:
        UnknownNameError: A surface of an unknown kind.
    """
    element = ET.SubElement(block, "wrap_surface", name=surface.name, link=surface.link)
    if not surface.pose.is_identity:
        angles = round_angles(surface.pose)
        angles = surface.pose.rpy if angles is None else angles
        element.set("pose", numbers(*surface.pose.translation, *angles))
    match surface.geometry:
        case Sphere(radius):
            ET.SubElement(element, "sphere", radius=numbers(radius))
        case Cylinder(radius, length):
            shape = ET.SubElement(element, "cylinder", radius=numbers(radius))
            if math.isfinite(length):
                shape.set("length", numbers(length))
        case Ellipsoid(radii):
            ET.SubElement(element, "ellipsoid", radii=numbers(*radii))
        case Torus(radius, tube_radius):
            sizes = {"radius": numbers(radius), "tube_radius": numbers(tube_radius)}
            ET.SubElement(element, "torus", sizes)
        case Mesh(uri, scale):
            place = mesh_location(uri, base)
            ET.SubElement(element, "mesh", uri=place, scale=numbers(*scale))
        case _:
            raise UnknownNameError.of_type(
                "wrap surface", surface.geometry, get_args(WrapGeometry)
            )


def add_muscle(block: ET.Element, muscle: Muscle) -> None:
    """Add a muscle to the block; what is at its default is left out."""
    element = ET.SubElement(block, "muscle", name=muscle.name, type=muscle.kind)
    if muscle.friction_speed != Muscle.friction_speed:
        element.set("friction_speed", numbers(muscle.friction_speed))
    if muscle.contact:
        element.set("contact", "true")
    if muscle.friction != Muscle.friction:
        element.set("friction", numbers(muscle.friction))
    if math.isfinite(muscle.tension_max):
        limits = (numbers(muscle.tension_min), numbers(muscle.tension_max))
        ET.SubElement(element, "tension", min=limits[0], max=limits[1])
    for tag, values in (("parameters", muscle.actuator), ("control", muscle.control)):
        group = ET.Element(tag)
        _fill(group, values)
        if group.attrib or len(group):
            element.append(group)
    for item in muscle.path:
        _add_path_element(element, item)


def _fill(element: ET.Element, values: Any) -> None:
    """Write the parameters that differ from their defaults, groups as child elements."""
    for spec in parameters_of(type(values)):
        value = getattr(values, spec.name)
        if value is None or value == spec.default:
            continue
        if isinstance(value, bool):
            element.set(spec.name, str(value).lower())
        else:
            element.set(spec.name, value if isinstance(value, str) else numbers(value))
    for group in groups_of(type(values)):
        inner = getattr(values, group.name)
        if inner is not None and inner != group.default:
            _fill(ET.SubElement(element, group.name), inner)


def _add_path_element(muscle: ET.Element, item: PathElement) -> None:
    match item:
        case ViaPoint():
            element = ET.SubElement(muscle, "via_point", link=item.link)
            element.text = numbers(*item.position)
        case Wrap():
            element = ET.SubElement(muscle, "wrap", surface=item.surface)
            if item.side is not None:
                element.set("side", numbers(*item.side))
            if item.inside:
                element.set("inside", "true")
            if item.free_ends:
                element.set("free_ends", "true")
        case Pulley():
            sizes = {"axis": numbers(*item.axis), "radius": numbers(item.radius)}
            element = ET.SubElement(muscle, "pulley", {"link": item.link} | sizes)
            element.text = numbers(*item.position)
            return
        case _:
            raise UnknownNameError.of_type("path element", item, get_args(PathElement))
    if item.friction:
        element.set("friction", numbers(item.friction))
