"""Wrap objects and paths of muscles of an OpenSim document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from cards_core.formats.opensim.fields import (
    flag,
    name_of,
    name_taken,
    number,
    objects,
    placement,
    vector,
    word,
)
from cards_core.formats.opensim.functions import Function, Linear, function_in
from cards_core.formats.opensim.joint_reading import Frames
from cards_core.formats.opensim.source import (
    ConditionalPoint,
    Coordinate,
    FixedPoint,
    MovingPoint,
    PathWrap,
    SourceMuscle,
    SourcePoint,
    WrapObject,
)
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.robot.elements import Cylinder, Ellipsoid, Sphere, Torus, WrapGeometry
from cards_core.spatial import Pose

MAX_POINTS = 200
"""Most points that a path may have."""


def read_wrap_objects(
    carrier: XmlElement, body: str, frames: Frames, known: Mapping[str, WrapObject]
) -> dict[str, WrapObject]:
    """Return the wrap objects of a body, or of its offset frames, by name.

    Args:
        carrier: Body or ground.
        body: Its name.
        frames: Frames of the model.
        known: Those of other bodies; names are used once.

    Raises:
        DescriptionError: An unknown shape, or damaged numbers.
    """
    out: dict[str, WrapObject] = {}
    for holder, owner, base in _holders(carrier, body, frames):
        for item in objects(holder, "WrapObjectSet"):
            name = name_of(item)
            if name in out or name in known:
                raise name_taken(item, (out.get(name) or known[name]).element)
            pose = base @ placement(item, "translation", "xyz_body_rotation")
            out[name] = WrapObject(
                name, owner, _shape(item), pose, _quadrant(item), flag(item, "active", True), item
            )
    return out


def _holders(
    carrier: XmlElement, body: str, frames: Frames
) -> Iterator[tuple[XmlElement, str, Pose]]:
    """Iterate over what carries wrap objects: element, body, pose on the body."""
    yield carrier, body, Pose()
    listed = carrier.child("components")
    for item in listed.children("PhysicalOffsetFrame") if listed is not None else ():
        owner, pose = frames.offsets[f"{body}/{name_of(item)}"]
        yield item, owner, pose


def _shape(item: XmlElement) -> WrapGeometry:
    match item.tag:
        case "WrapSphere":
            return Sphere(number(item, "radius", above=0.0))
        case "WrapCylinder":
            return Cylinder(number(item, "radius", above=0.0), number(item, "length", above=0.0))
        case "WrapEllipsoid":
            radii = vector(item, "dimensions", 3)
            if np.any(radii <= 0.0):
                raise item.error("a semi-axis is not positive", "three numbers greater than 0")
            return Ellipsoid(radii)
        case "WrapTorus":
            tube = number(item, "inner_radius", above=0.0)
            ring = number(item, "outer_radius", above=0.0)
            if not tube < ring:
                raise item.error(
                    f"inner_radius {tube:g} (of the tube), outer_radius {ring:g} (of the ring)",
                    "inner_radius < outer_radius",
                )
            return Torus(ring, tube)
        case _:
            raise item.error(
                f"unknown wrap object <{shorten(item.tag)}>",
                "WrapSphere, WrapCylinder, WrapEllipsoid, WrapTorus",
            )


def _quadrant(item: XmlElement) -> tuple[int, float] | None:
    text = word(item, "quadrant").lower()
    if text in ("", "all", "unassigned"):
        return None
    letter = text.lstrip("+-")
    if letter not in ("x", "y", "z") or len(text) > 2:
        raise item.error(f"quadrant '{shorten(text)}'", "all, x, -x, y, -y, z, -z")
    return "xyz".index(letter), -1.0 if text.startswith("-") else 1.0


def read_muscle(
    element: XmlElement,
    frames: Frames,
    wraps: Mapping[str, WrapObject],
    coordinates: Mapping[str, Coordinate],
) -> SourceMuscle:
    """Return a muscle or ligament with its path.

    Args:
        element: The muscle.
        frames: What its points may be fixed to.
        wraps: Wrap objects, by name.
        coordinates: Coordinates, by name.

    Raises:
        DescriptionError: A path that is missing or damaged, or of an unknown kind.
    """
    path = element.child("GeometryPath")
    if path is None:
        held = element.child("path")
        path = held.child("GeometryPath") if held is not None else None
    if path is None:
        raise element.error("no <GeometryPath>", "<GeometryPath>")
    points = [_point(item, frames, coordinates) for item in objects(path, "PathPointSet")]
    if not 2 <= len(points) <= MAX_POINTS:
        raise path.error(f"{len(points)} path points", f"2 to {MAX_POINTS}")
    found = []
    for item in objects(path, "PathWrapSet"):
        name = word(item, "wrap_object")
        if name not in wraps:
            raise item.error(f"wrap object '{shorten(name)}' does not exist", "one of a body")
        first, last = vector(item, "range", 2, np.array([-1.0, -1.0]))
        start = 0 if first < 1 else int(first) - 1
        end = len(points) - 1 if last < 1 else int(last) - 1
        if not 0 <= start < len(points) or not start <= end < len(points):
            raise item.error(
                f"range {first:g} {last:g} of {len(points)} points", "first <= last, from 1"
            )
        found.append(PathWrap(wraps[name], start, end, item))
    return SourceMuscle(name_of(element), element.tag, tuple(points), tuple(found), element)


def _point(item: XmlElement, frames: Frames, coordinates: Mapping[str, Coordinate]) -> SourcePoint:
    body, pose = frames.find(
        word(item, "socket_parent_frame", "connector_parent_frame_name", "body"), {}, item
    )
    if item.tag == "PathPoint":
        return FixedPoint(body, pose.apply(vector(item, "location", 3)), item)
    if item.tag == "ConditionalPathPoint":
        name = _coordinate(item, ("socket_coordinate", "coordinate"), coordinates)
        if name is None:
            raise item.error("no coordinate", "<socket_coordinate>")
        lower, upper = vector(item, "range", 2)
        position = pose.apply(vector(item, "location", 3))
        return ConditionalPoint(body, position, name, float(lower), float(upper), item)
    if item.tag == "MovingPathPoint":
        if np.abs(pose.matrix - np.eye(4)).max() > 0.0:
            raise item.error("a moving point on an offset frame", "a moving point on a body")
        axes: list[tuple[str | None, Function]] = []
        for letter in "xyz":
            holder = item.child(f"{letter}_location")
            function = function_in(holder) if holder is not None else None
            name = _coordinate(
                item, (f"socket_{letter}_coordinate", f"{letter}_coordinate"), coordinates
            )
            if function is None:
                function = Linear(0.0, 0.0)
            axes.append((name, function))
        return MovingPoint(body, tuple(axes), item)
    raise item.error(
        f"unknown path point <{shorten(item.tag)}>",
        "PathPoint, ConditionalPathPoint, MovingPathPoint",
    )


def _coordinate(
    item: XmlElement, tags: tuple[str, ...], coordinates: Mapping[str, Coordinate]
) -> str | None:
    text = word(item, *tags)
    name = text.split("/")[-1]
    if not name:
        return None
    if name not in coordinates:
        raise item.error(f"coordinate '{shorten(text)}' does not exist", "a coordinate")
    return name
