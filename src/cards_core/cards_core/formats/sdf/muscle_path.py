"""Read the path of a muscle, origin to insertion, and the surfaces that it wraps over.

A path is made of ``<via_point>``, ``<wrap>`` and ``<pulley>``, a surface is a ``<wrap_surface>``.
What can be seen in the text alone is checked here: names, numbers, order, and points against
surfaces of the same link. `cards_core.formats.sdf.checks` does the rest at the home pose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.formats.locate import mesh_uri
from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import (
    attribute,
    boolean,
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
    PathElement,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.spatial import Pose, rpy_matrix
from cards_core.typing import Vector3

# Wrap surfaces ---------------------------------------------------------------------------------


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


def depth_inside(surface: WrapSurface, point: Vector3, *, closed: bool = False) -> float:
    """Return how deep a point lies inside a surface, [m]; negative outside.

    The distance to the nearest point of a sphere, cylinder or torus; for an ellipsoid the one
    along the ray from its centre. Zero for meshes, whose file is not read here.

    Args:
        surface: The surface.
        point: In coordinates of the surface's link, shape (3,), [m].
        closed: Whether the hole of a torus is closed by flat discs, as for a path around it.

    Raises:
        UnknownNameError: No such shape.
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
            beyond = math.hypot(x, y) - radius
            return tube_radius - math.hypot(max(beyond, 0.0) if closed else beyond, z)
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


# Paths -----------------------------------------------------------------------------------------


SAME_PLACE = 1e-9
"""Points closer than this are at the same place, and points less deep than this are outside of a
surface, [m]."""

MAX_FRICTION = 2.0
"""Largest capstan coefficient: rubber on rubber has 1 to 1.5. The tension grows exponentially with
it, so a slip of the decimal point would overflow."""


@dataclass(frozen=True)
class Names:
    """What a path may refer to.

    Attributes:
        links: Links besides ``world``; None skips this check.
        surfaces: Wrap surfaces by name.
    """

    links: Collection[str] | None
    surfaces: Mapping[str, WrapSurface]


def path_elements(muscle: XmlElement) -> list[XmlElement]:
    """Return the elements of a muscle's path, in order."""
    return list(muscle.children(*PATH_ELEMENTS))


def read_path(muscle: XmlElement, names: Names) -> tuple[PathElement, ...]:
    """Read the path of a muscle.

    Raises:
        DescriptionError: An element is wrong, the path does not run between two points, two
            neighbouring points of one link are at the same place, or an end of a wrap lies
            inside a surface of its own link.
    """
    elements = path_elements(muscle)
    path = [PATH_ELEMENTS[item.tag](item, names) for item in elements]
    for item, element in zip(path[1:], elements[1:], strict=True):
        if isinstance(item, Pulley):
            raise element.error("a pulley after the first element", "the pulley first")
    if len(path) > 1 and isinstance(path[0], Pulley) and isinstance(path[1], Wrap):
        raise elements[1].error("a wrap right after a pulley", "a <via_point> between them")
    points = sum(not isinstance(item, Wrap) for item in path)
    if points < 2:
        raise muscle.error(
            f"has {points} points besides wraps",
            "at least two <via_point>, or a <pulley> and a <via_point>",
        )
    for end, verb in ((0, "starts"), (-1, "ends")):
        if isinstance(path[end], Wrap):
            raise elements[end].error(
                f"the path {verb} with a wrap", "a <via_point> on either side of it"
            )
    for end, name in ((0, "origin"), (-1, "insertion")):
        item = path[end]
        if isinstance(item, ViaPoint) and item.friction > 0.0:
            raise elements[end].error(
                f"friction {item.friction:g} at the {name}, where the muscle does not slide",
                "friction at points and wraps between origin and insertion; that of a winder is "
                "the motor's dry_friction",
            )
    for span in spans(path):
        _check_span(path, elements, span, names)
    return tuple(path)


def spans(path: Iterable[PathElement]) -> Iterator[range]:
    """Yield the pieces of a path from one fixed point to the next, as indices of all elements."""
    start = 0
    for index, item in enumerate(path):
        if index and not isinstance(item, Wrap):
            yield range(start, index + 1)
            start = index


def _check_span(
    path: list[PathElement], elements: list[XmlElement], span: range, names: Names
) -> None:
    first, last = path[span[0]], path[span[-1]]
    assert not isinstance(first, Wrap)
    assert isinstance(last, ViaPoint)
    if first.link == last.link:
        if float(np.linalg.norm(first.position - last.position)) < SAME_PLACE:
            raise elements[span[-1]].error(
                "at the same place as the point before it, on the same link",
                "neighbouring points at different places",
            )
        if isinstance(first, Pulley):
            problem = pulley_problem(first, last.position)
            if problem is not None:
                raise elements[span[-1]].error(*problem)
    for index in span[1:-1]:
        wrap = path[index]
        assert isinstance(wrap, Wrap)
        surface = names.surfaces[wrap.surface]
        for end in (span[0], span[-1]):
            point = path[end]
            assert not isinstance(point, Wrap)
            if point.link == surface.link:
                problem = inside_problem(wrap, surface, point.position)
                if problem is not None:
                    raise elements[end].error(*problem)


def inside_problem(wrap: Wrap, surface: WrapSurface, point: Vector3) -> tuple[str, str] | None:
    """Return problem and expectation if an end of a wrap lies inside the surface, else None.

    Args:
        wrap: The wrap.
        surface: Its surface.
        point: Via point before or after it, in coordinates of the surface's link, [m].
    """
    if wrap.inside and isinstance(surface.geometry, Cylinder | Sphere):
        return None  # within is where the muscle runs
    depth = depth_inside(surface, point, closed=not wrap.goes_through(surface))
    if depth < SAME_PLACE:
        return None
    return (
        f"{1e3 * depth:.3g} mm inside wrap surface '{surface.name}', which the muscle wraps over",
        "a point outside",
    )


def pulley_problem(pulley: Pulley, point: Vector3) -> tuple[str, str] | None:
    """Return problem and expectation if a cable cannot leave the wheel to a point, else None.

    Args:
        pulley: The pulley.
        point: Next point of the path, in coordinates of the pulley's link, [m].
    """
    offset = point - pulley.position
    along = float(pulley.axis @ offset)
    away = float(np.linalg.norm(offset - along * pulley.axis))
    if away < SAME_PLACE:
        return "on the swivel axis of the pulley: the wheel has no plane", "a point beside it"
    depth = pulley.radius - float(np.hypot(along, away - pulley.radius))
    if depth < SAME_PLACE:
        return None
    return f"{1e3 * depth:.3g} mm inside the wheel of the pulley", "a point outside the wheel"


# Elements ------------------------------------------------------------------------------------


def _link(element: XmlElement, names: Names) -> str:
    link = attribute(element, "link")
    if names.links is not None and link != WORLD and link not in names.links:
        raise unknown_name(element, "link", link, [*names.links, WORLD])
    return link


def read_friction(element: XmlElement) -> float:
    """Read the attribute ``friction``, a capstan coefficient; 0 without it."""
    if "friction" not in element.attrib:
        return 0.0
    value = parse_number(attribute(element, "friction"), element, what="friction")
    if not 0.0 <= value <= MAX_FRICTION:
        raise element.error(f"friction {value:g}", f"a capstan coefficient 0 .. {MAX_FRICTION:g}")
    return value


def _read_via_point(element: XmlElement, names: Names) -> ViaPoint:
    check_content(element, _VIA_POINT)
    position = numbers(element, 3, what="numbers x y z")
    return ViaPoint(_link(element, names), position, read_friction(element), element.line)


def _read_wrap(element: XmlElement, names: Names) -> Wrap:
    check_content(element, _WRAP)
    name = attribute(element, "surface")
    if name not in names.surfaces:
        raise unknown_name(element, "wrap surface", name, names.surfaces)
    surface = names.surfaces[name]
    inside = boolean(element.get("inside", "false"), element, what="inside")
    if inside and not isinstance(surface.geometry, Cylinder | Sphere | Torus):
        kind = type(surface.geometry).__name__.lower()
        raise element.error(f"inside a {kind}", "a cylinder, a sphere or a torus for inside wraps")
    side = None
    if "side" in element.attrib:
        side = numbers(element, 3, what="numbers x y z", key="side")
        depth = depth_inside(surface, side)
        if not inside and depth > SAME_PLACE:
            raise element.error(
                f"the side point is {1e3 * depth:.3g} mm inside the surface",
                "a point outside, where the muscle passes",
            )
    free = boolean(element.get("free_ends", "false"), element, what="free_ends")
    return Wrap(name, side, inside, read_friction(element), element.line, free)


def _read_pulley(element: XmlElement, names: Names) -> Pulley:
    check_content(element, _PULLEY)
    axis = numbers(element, 3, what="numbers x y z", key="axis")
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        raise element.error("an axis without direction", "a vector that is not zero")
    # a unit vector stays as it is written, to the last digit
    axis = axis if abs(length - 1.0) < 1e-12 else axis / length
    radius = parse_number(attribute(element, "radius"), element, what="radius")
    if radius <= 0.0:
        raise element.error(f"radius {radius:g} m is not positive", "a length greater than 0")
    position = numbers(element, 3, what="numbers x y z")
    return Pulley(_link(element, names), position, axis, radius, element.line)


PATH_ELEMENTS: Mapping[str, Callable[[XmlElement, Names], PathElement]] = {
    "via_point": _read_via_point,
    "wrap": _read_wrap,
    "pulley": _read_pulley,
}
"""Readers of the elements of a path."""

_VIA_POINT = Content(attributes=frozenset({"link", "friction"}), text=True)
_WRAP = Content(attributes=frozenset({"surface", "side", "inside", "friction", "free_ends"}))
_PULLEY = Content(attributes=frozenset({"link", "axis", "radius"}), text=True)
