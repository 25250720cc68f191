"""Read ``<link>``: inertia, visuals, collisions, geometry, colour, friction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.locate import mesh_uri
from cards_core.formats.sdf.frames import FrameNode, finite, relative_pose
from cards_core.formats.sdf.schema import check
from cards_core.formats.sdf.values import (
    attribute,
    flag,
    known_names,
    numbers,
    parse_number,
    parse_pose,
    positive,
    required,
    scalar,
    text_of,
)
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Inertia,
    Link,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_core.robot.inertia import inertia_problem, repair_inertia
from cards_core.spatial import Pose
from cards_core.typing import Vector3

GREY = (0.7, 0.7, 0.7, 1.0)
"""Colour of visuals without a material."""


def read_link(node: FrameNode, *, base: Path | None, line: int | None) -> Link:
    """Return the link that a node stands for.

    Args:
        node: Node of kind ``link``.
        base: Folder of the file, for meshes.
        line: Line to record in the link; None: nor are those of its shapes.

    Raises:
        DescriptionError: Something in it is wrong, or would move and is not supported.
    """
    element = node.element
    check(element)
    if not flag(element, "gravity", True):
        raise element.error("<gravity>false</gravity>", "gravity acting on every link")
    if flag(element, "kinematic"):
        raise element.error("<kinematic>true</kinematic>", "links that move by forces")
    _unique_names(element, "visual")
    _unique_names(element, "collision")
    return Link(
        name=node.name,
        inertia=_inertial(element.child("inertial")),
        visuals=tuple(
            _visual(item, shape, node, line=item.line if line else None)
            for item in element.children("visual")
            if (shape := _geometry(item, base)) is not None
        ),
        collisions=tuple(
            _collision(item, shape, node, line=item.line if line else None)
            for item in element.children("collision")
            if (shape := _geometry(item, base)) is not None
        ),
        line=line,
    )


def _unique_names(link: XmlElement, tag: str) -> None:
    seen: set[str] = set()
    for item in link.children(tag):
        check(item)
        name = attribute(item, "name")
        if name in seen:
            raise item.error("the name is given twice", f"unique names of the {tag}s of a link")
        seen.add(name)


def _inertial(element: XmlElement | None) -> Inertia:
    """Return the inertia in link axes; SDFormat's default is 1 kg with the unit tensor."""
    if element is None:
        return Inertia(1.0, np.zeros(3), np.eye(3))
    check(element)
    if element.get("auto", "false").strip().lower() not in ("false", "0"):
        raise element.error("auto inertia is not computed", "<mass> and <inertia> as numbers")
    pose_element = element.child("pose")
    if pose_element is not None:
        check(pose_element)
        if pose_element.get("relative_to"):
            raise pose_element.error(
                "relative_to in an inertial pose", "a pose in link coordinates"
            )
    pose = parse_pose(pose_element)
    mass_element = element.child("mass")
    mass = 1.0
    if mass_element is not None:
        check(mass_element)
        mass = parse_number(text_of(mass_element), mass_element)
        if mass <= 0.0:
            raise mass_element.error(f"{mass:g} kg is not positive", "a mass greater than 0")
    tensor = np.eye(3)
    inertia_element = element.child("inertia")
    if inertia_element is not None:
        check(inertia_element)
        i = {k: scalar(inertia_element, k, 1.0) for k in ("ixx", "iyy", "izz")}
        i |= {k: scalar(inertia_element, k, 0.0) for k in ("ixy", "ixz", "iyz")}
        tensor = np.array(
            [
                [i["ixx"], i["ixy"], i["ixz"]],
                [i["ixy"], i["iyy"], i["iyz"]],
                [i["ixz"], i["iyz"], i["izz"]],
            ]
        )
    at_com = Inertia(mass, np.zeros(3), tensor)
    problem = inertia_problem(at_com)
    if problem is not None:
        raise _invalid_inertia(inertia_element or element, at_com, problem)
    if np.array_equal(pose.rotation, np.eye(3)):
        return Inertia(mass, pose.translation, tensor)
    rotated = pose.rotation @ tensor @ pose.rotation.T
    return Inertia(mass, pose.translation, (rotated + rotated.T) / 2.0)


def _invalid_inertia(element: XmlElement, inertia: Inertia, problem: str) -> DescriptionError:
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    values = repair_inertia(inertia).tensor[np.triu_indices(3)]
    nearest = ", ".join(f"{n} {v:.9g}" for n, v in zip(names, values, strict=True))
    return element.error(
        f"not the inertia of a rigid body: {problem}", f"for example the nearest valid: {nearest}"
    )


# Visuals and collisions ----------------------------------------------------------------------


def _pose_in_link(element: XmlElement, link: FrameNode) -> Pose:
    """Return the pose of a visual or collision in link coordinates."""
    pose_element = element.child("pose")
    if pose_element is None:
        return Pose()
    check(pose_element)
    raw = parse_pose(pose_element)
    name = pose_element.get("relative_to", "")
    if not name:
        return raw
    pose = relative_pose(link.scope.find(name, pose_element, "relative_to"), link) @ raw
    if not finite(pose):
        raise pose_element.error("the pose is not finite", "smaller numbers")
    return pose


def _visual(
    element: XmlElement, geometry: Geometry, link: FrameNode, *, line: int | None
) -> Visual:
    return Visual(
        element.get("name", ""),
        geometry,
        _pose_in_link(element, link),
        _colour(element),
        line,
    )


def _colour(visual: XmlElement) -> tuple[float, float, float, float]:
    """Return the diffuse (else ambient) colour; transparency scales the opacity."""
    transparency = scalar(visual, "transparency", 0.0)
    material = visual.child("material")
    rgba = GREY
    if material is not None:
        check(material)
        colour = material.child("diffuse")
        if colour is None:
            colour = material.child("ambient")
        if colour is not None:
            check(colour)
            values = numbers(colour, 3, 4, what="numbers r g b [a]").tolist()
            if not all(0.0 <= v <= 1.0 for v in values):
                raise colour.error("a colour outside 0..1", "numbers r g b [a] within 0..1")
            rgba = (values[0], values[1], values[2], values[3] if len(values) == 4 else 1.0)
    opacity = rgba[3] * (1.0 - min(max(transparency, 0.0), 1.0))
    return (rgba[0], rgba[1], rgba[2], opacity)


def _collision(
    element: XmlElement, geometry: Geometry, link: FrameNode, *, line: int | None
) -> Collision:
    return Collision(
        element.get("name", ""),
        geometry,
        _pose_in_link(element, link),
        _friction(element),
        line,
    )


def _friction(collision: XmlElement) -> float:
    """Return ``surface/friction/ode/mu``, 1 by default."""
    element = collision
    for tag in ("surface", "friction", "ode"):
        child = element.child(tag)
        if child is None:
            return 1.0
        # <friction> is also a number, in the <dynamics> of a joint
        check(child, tag="surface/friction" if tag == "friction" else tag)
        element = child
    return scalar(element, "mu", 1.0, minimum=0.0)


# Geometry ------------------------------------------------------------------------------------


def _geometry(parent: XmlElement, base: Path | None) -> Geometry | None:
    """Return the shape of a visual or collision; None for ``<empty/>``."""
    element = required(parent, "geometry")
    check(element)
    shapes = [item for item in element if item.tag in SHAPES]
    if len(shapes) != 1:
        raise element.error(f"holds {len(shapes)} shapes", f"one of {known_names(SHAPES)}")
    check(shapes[0])
    for item in shapes[0]:
        if ":" not in item.tag:
            check(item)
    return SHAPES[shapes[0].tag](shapes[0], base)


def _lengths(parent: XmlElement, tag: str, count: int) -> Vector3:
    element = required(parent, tag)
    values = numbers(element, count)
    if not (values > 0.0).all():
        raise element.error("a size that is not positive", f"{count} numbers greater than 0")
    return values


def _plane(element: XmlElement, base: Path | None) -> Plane:
    normal_element, size_element = element.child("normal"), element.child("size")
    normal = np.array([0.0, 0.0, 1.0])
    if normal_element is not None:
        normal = numbers(normal_element, 3, what="numbers x y z")
        length = float(np.linalg.norm(normal))
        if length < 1e-9:
            raise normal_element.error("a normal without direction", "a vector that is not zero")
        normal = normal / length
    size = (1.0, 1.0)
    if size_element is not None:
        width, height = _lengths(element, "size", 2).tolist()
        size = (width, height)
    return Plane(normal, size)


def _mesh(element: XmlElement, base: Path | None) -> Mesh:
    uri = required(element, "uri")
    if not text_of(uri):
        raise uri.error("is empty", "the path of a mesh file")
    scale = element.child("scale")
    factors = np.ones(3) if scale is None else numbers(scale, 3, what="numbers x y z")
    if not factors.all():
        assert scale is not None
        raise scale.error("a scale of zero", "three numbers that are not zero")
    return Mesh(mesh_uri(text_of(uri), uri, base), factors)


SHAPES: Mapping[str, Callable[[XmlElement, Path | None], Geometry | None]] = {
    "box": lambda e, base: Box(_lengths(e, "size", 3)),
    "sphere": lambda e, base: Sphere(positive(e, "radius")),
    "cylinder": lambda e, base: Cylinder(positive(e, "radius"), positive(e, "length")),
    "capsule": lambda e, base: Capsule(positive(e, "radius"), positive(e, "length")),
    "ellipsoid": lambda e, base: Ellipsoid(_lengths(e, "radii", 3)),
    "plane": _plane,
    "mesh": _mesh,
    "empty": lambda e, base: None,
}
"""Readers of the shapes."""
