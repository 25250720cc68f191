"""Read ``<wrap_surface>``, and tell how deep a point lies inside a surface."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.formats.sdf.include import mesh_uri
from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import (
    attribute,
    known_names,
    numbers,
    parse_number,
    unknown_name,
)
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Ellipsoid,
    Mesh,
    Sphere,
    Torus,
    WrapGeometry,
    WrapSurface,
)
from cards_core.spatial import Pose, rpy_matrix
from cards_core.typing import Vector3


def read_wrap_surface(
    element: XmlElement,
    name: str,
    *,
    links: Collection[str] | None = None,
    base: Path | None = None,
) -> WrapSurface:
    """Read one ``<wrap_surface>``.

    Args:
        element: The element.
        name: Its name, known to be unique.
        links: Names of links that exist besides ``world``; None skips this check.
        base: Folder that mesh files are relative to.

    Raises:
        DescriptionError: An unknown link, shape or attribute, or a size that is not positive.
    """
    check_content(element, _SURFACE)
    link = attribute(element, "link")
    if links is not None and link != WORLD and link not in links:
        raise unknown_name(element, "link", link, [*links, WORLD])
    shapes = list(element.children(*SHAPES))
    if len(shapes) != 1:
        raise element.error(f"holds {len(shapes)} shapes", f"one of {known_names(SHAPES)}")
    shape = shapes[0]
    accepted, read = SHAPES[shape.tag]
    check_content(shape, Content(attributes=frozenset(accepted.split())))
    return WrapSurface(name, link, read(shape, base), _pose(element), element.line)


def depth_inside(surface: WrapSurface, point: Vector3) -> float:
    """Return how deep a point lies inside a surface, [m]; negative outside.

    The distance to the nearest point of a sphere, cylinder or torus; for an ellipsoid the one
    along the ray from its centre. Zero for meshes, whose file is not read here.

    Args:
        surface: The surface.
        point: In coordinates of the surface's link, shape (3,), [m].
    """
    x, y, z = (float(v) for v in surface.pose.inverse().apply(point))
    match surface.geometry:
        case Sphere(radius):
            return radius - math.hypot(x, y, z)
        case Cylinder(radius, length):
            return min(radius - math.hypot(x, y), 0.5 * length - abs(z))
        case Ellipsoid(radii):
            scaled = float(np.linalg.norm(np.array([x, y, z]) / radii))
            if scaled == 0.0:
                return float(np.min(radii))
            return math.hypot(x, y, z) * (1.0 / scaled - 1.0)
        case Torus(radius, tube_radius):
            return tube_radius - math.hypot(math.hypot(x, y) - radius, z)
        case Mesh():
            return 0.0
        case _:
            raise UnknownNameError.of_type(
                "wrap surface", surface.geometry, get_args(WrapGeometry)
            )


def _pose(element: XmlElement) -> Pose:
    """Return the pose in the attribute ``pose``; the identity without it."""
    if "pose" not in element.attrib:
        return Pose()
    values = numbers(element, 6, what="numbers x y z roll pitch yaw", key="pose")
    return Pose(rpy_matrix(*(float(a) for a in values[3:])), values[:3])


# Shapes --------------------------------------------------------------------------------------


def _length(element: XmlElement, name: str) -> float:
    value = parse_number(attribute(element, name), element, what=name)
    if value <= 0.0:
        raise element.error(f"{name} {value:g} m is not positive", "a length greater than 0")
    return value


def _cylinder(element: XmlElement, base: Path | None) -> Cylinder:
    length = _length(element, "length") if "length" in element.attrib else math.inf
    return Cylinder(_length(element, "radius"), length)


def _ellipsoid(element: XmlElement, base: Path | None) -> Ellipsoid:
    radii = numbers(element, 3, key="radii")
    if not (radii > 0.0).all():
        raise element.error("radii that are not positive", "three lengths greater than 0")
    return Ellipsoid(radii)


def _torus(element: XmlElement, base: Path | None) -> Torus:
    radius, tube_radius = _length(element, "radius"), _length(element, "tube_radius")
    if tube_radius >= radius:
        raise element.error(
            f"tube_radius {tube_radius:g} m, radius {radius:g} m leave no hole",
            "a tube_radius smaller than the radius",
        )
    return Torus(radius, tube_radius)


def _mesh(element: XmlElement, base: Path | None) -> Mesh:
    factors = np.ones(3)
    if "scale" in element.attrib:
        factors = numbers(element, 3, key="scale")
        if not factors.all():
            raise element.error("a scale of zero", "three numbers that are not zero")
    return Mesh(mesh_uri(attribute(element, "uri"), element, base), factors)


SHAPES: Mapping[str, tuple[str, Callable[[XmlElement, Path | None], WrapGeometry]]] = {
    "sphere": ("radius", lambda element, base: Sphere(_length(element, "radius"))),
    "cylinder": ("radius length", _cylinder),
    "ellipsoid": ("radii", _ellipsoid),
    "torus": ("radius tube_radius", _torus),
    "mesh": ("uri scale", _mesh),
}
"""Shapes that muscles wrap over: accepted attributes and reader."""

_SURFACE = Content(many=frozenset(SHAPES), attributes=frozenset({"name", "link", "pose"}))
