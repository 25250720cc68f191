"""Via points, wrap surfaces, frames and muscles of an imported assembly.

They come from markers (`cards_core.formats.imports.markers`) and from features that the
configuration names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.cad.config import (
    Config,
    JointEntry,
    PathEntry,
    PlaceName,
    tension_of,
    unknown,
)
from cards_core.formats.cad.features import Feature, features_of
from cards_core.formats.cad.links import Layout, MarkedComponent, rename
from cards_core.formats.imports.findings import SAFE, FilePlace, FindingList, NameTable, safe_name
from cards_core.formats.imports.markers import MarkedPoint, muscle_paths
from cards_core.robot.elements import (
    Cylinder,
    Frame,
    Joint,
    Muscle,
    PathElement,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.spatial import Pose, rotation_z_to
from cards_core.typing import Vector3
from cards_core.yaml_fields import Field


@dataclass
class Places:
    """Everything in the assembly that has a name and a place.

    Attributes:
        layout: The links.
        features: Holes, pins, rings and so on by name.
        marked: Marked components.
        source: File, for messages.
        used: Features that something was made of.
    """

    layout: Layout
    features: dict[str, Feature]
    marked: Sequence[MarkedComponent]
    source: str
    used: set[str] = field(default_factory=set)

    def marked_link(self, item: MarkedComponent) -> str:
        """Return the link of a marker. Raises `DescriptionError` if nothing says it."""
        name = None if item.link is None else rename(self.layout, item.link)
        if name is None:
            said = "it is in no link" if item.link is None else f"there is no link '{item.link}'"
            raise DescriptionError(
                said,
                source=self.source,
                element=f"'{item.component.path}'",
                expected="a marker inside the component of its link, or NAME@LINK with one of "
                + ", ".join(self.layout.links),
            )
        return name

    def find(self, where: Field, place: PlaceName) -> tuple[Vector3, str | None]:
        """Return a place in the assembly [m] and its link, None of coordinates."""
        if not isinstance(place, str):
            return place, None
        if place in self.features:
            self.used.add(place)
            item = self.features[place]
            return item.centre, item.link
        for marked in self.marked:
            if place in (marked.name, marked.component.path):
                return marker_position(marked, self.source), self.marked_link(marked)
        known = [item.name for item in self.marked] + list(self.features)
        raise unknown(where, "feature or marker", place, known)

    def locate_joint(self, entry: JointEntry, place: PlaceName) -> Vector3:
        """Return where a joint is, in the assembly [m]."""
        return self.find(entry.where["at"] if entry.where.has("at") else entry.where, place)[0]


def marker_position(item: MarkedComponent, source: str) -> Vector3:
    """Return the point that a marker marks, in the assembly, [m].

    The middle of its hole or ring, else the centroid of its solid, else its single point, else the
    origin of its frame.

    Args:
        item: The marker.
        source: File, for messages.

    Raises:
        DescriptionError: It has several solids or points.
    """
    component = item.component
    if len(item.solids) > 1 or (not item.solids and len(component.points) > 1):
        count = len(item.solids) or len(component.points)
        raise DescriptionError(
            f"has {count} {'solids' if item.solids else 'points'}",
            source=source,
            element=f"'{component.path}'",
            expected="one solid, one point, or a frame",
        )
    if item.solids:
        solid, pose = item.solids[0]
        found = features_of("", "", solid.faces, pose)
        rings = [f for f in found if f.kind in ("torus", "hole")]
        if len(rings) == 1 or (rings and _one_centre(rings)):
            return rings[0].centre
        return pose.apply(solid.centroid)
    if len(component.points):
        return component.pose.apply(component.points[0])
    return component.pose.translation


def _one_centre(rings: Sequence[Feature]) -> bool:
    return all(np.linalg.norm(ring.centre - rings[0].centre) < 1e-6 for ring in rings)


def make_surfaces(places: Places, config: Config) -> list[WrapSurface]:
    """Return the wrap surfaces of markers and of the configuration.

    Raises:
        DescriptionError: A marker without sphere, cylinder or torus, or a name used twice.
    """
    out: list[WrapSurface] = []

    def add(name: str, link: str, feature: Feature, error: DescriptionError) -> None:
        if any(item.name == name for item in out):
            raise error
        geometry: WrapGeometry
        match feature.kind:
            case "sphere" | "socket":
                geometry = Sphere(feature.radius)
            case "torus":
                geometry = Torus(feature.radius, feature.tube_radius)
            case "cylinder" | "hole":
                geometry = Cylinder(feature.radius, feature.length)
        pose = Pose(rotation_z_to(feature.axis), feature.centre)
        local = places.layout.links[link].inverse() @ pose
        out.append(WrapSurface(name, link, geometry, local))

    for item in places.marked:
        if item.marker.kind != "wrap":
            continue
        name = safe_name(item.marker.name)
        element = f"'{item.component.path}'"
        faces = [f for solid, pose in item.solids for f in features_of("", "", solid.faces, pose)]
        chosen = _largest(faces)
        if chosen is None:
            raise DescriptionError(
                "has no whole sphere, cylinder or torus",
                source=places.source,
                element=element,
                expected="a solid ball, cylinder or ring",
            )
        twice = DescriptionError(
            f"a second wrap surface '{name}'",
            source=places.source,
            element=element,
            expected="one of each name",
        )
        add(name, places.marked_link(item), chosen, twice)
    for name, (feature, where) in config.surfaces.items():
        if safe_name(name) != name:
            raise where.error(f"'{name}' is no name", SAFE)
        if feature not in places.features:
            raise unknown(where, "feature", feature, list(places.features))
        places.used.add(feature)
        found = places.features[feature]
        twice = where.error(f"a second wrap surface '{name}'", "one of each name")
        add(name, found.link, found, twice)
    return out


def _largest(found: Sequence[Feature]) -> Feature | None:
    """Return what a wrap marker is: a ring, a ball, or its longest outer cylinder."""
    for kind in ("torus", "sphere", "cylinder"):
        same = [item for item in found if item.kind == kind]
        if same:
            return max(same, key=lambda item: item.radius * max(item.length, item.radius))
    return None


def make_muscles(
    places: Places,
    config: Config,
    joints: Sequence[Joint],
    surfaces: Sequence[WrapSurface],
    findings: FindingList,
) -> tuple[list[Muscle], list[tuple[str, str]]]:
    """Return the muscles of markers and of the configuration, and what was renamed.

    Args:
        places: What has a name and a place.
        config: What the user says.
        joints: Of the robot.
        surfaces: Of the robot.
        findings: Receives what was assumed.

    Raises:
        DescriptionError: A path that is not decided, or names what does not exist.
    """
    points = []
    for item in places.marked:
        own = config.muscles.get(item.marker.muscle)
        if not item.marker.muscle or (own is not None and own.path):
            continue
        link = places.marked_link(item)
        position = np.zeros(3)
        if item.marker.kind == "muscle":
            at = marker_position(item, places.source)
            position = places.layout.links[link].inverse().apply(at)
        points.append(MarkedPoint(item.name, item.marker, link, position))
    paths = muscle_paths(points, joints, places.source)
    for name, entry in config.muscles.items():
        if entry.path:
            paths[name] = tuple(_element(item, places, surfaces) for item in entry.path)
        elif name not in paths:
            raise entry.where.error(
                f"no point 'muscle:{name}' in the file", "a 'path', or markers of that name"
            )
    table = NameTable()
    out, assumed = [], []
    known = {surface.name for surface in surfaces}
    for name, path in paths.items():
        elements = tuple(_safe_wrap(item) for item in path)
        for element in elements:
            if isinstance(element, Wrap) and element.surface not in known:
                raise DescriptionError(
                    f"wraps over '{element.surface}', which is no surface",
                    source=places.source,
                    element=f"muscle '{name}'",
                    expected=f"one of {', '.join(sorted(known)) or 'those there are: none'}",
                )
        (low, high), stated = tension_of(config, name)
        if not stated:
            assumed.append(name)
        out.append(Muscle(table.claim(name, "muscle"), elements, low, high))
    if assumed:
        low, high = tension_of(config, assumed[0])[0]
        findings.warn(
            "tension-assumed",
            f"{len(assumed)} muscles",
            f"nothing states their tension limits; taken as {low:g} to {high:g} N",
            at=FilePlace(places.source),
        )
    return out, list(table.renamed)


def _safe_wrap(item: PathElement) -> PathElement:
    return Wrap(safe_name(item.surface), item.side) if isinstance(item, Wrap) else item


def _element(item: PathEntry, places: Places, surfaces: Sequence[WrapSurface]) -> PathElement:
    if item.surface:
        found = [surface for surface in surfaces if surface.name == item.surface]
        if not found:
            raise unknown(
                item.where["wrap"], "wrap surface", item.surface, [s.name for s in surfaces]
            )
        side = None
        if item.side is not None:
            point = places.find(item.where["side"], item.side)[0]
            side = places.layout.links[found[0].link].inverse().apply(point)
        return Wrap(item.surface, side)
    assert item.place is not None
    position, link = places.find(item.where, item.place)
    name = link or rename(places.layout, item.link)
    if name is None:
        raise unknown(item.where["link"], "link", item.link, list(places.layout.links))
    return ViaPoint(name, places.layout.links[name].inverse().apply(position))


def make_frames(places: Places, config: Config) -> list[Frame]:
    """Return the frames of markers and of the configuration.

    Raises:
        DescriptionError: A name used twice, or a place or link that does not exist.
    """
    out: list[Frame] = []
    for item in places.marked:
        if item.marker.kind != "frame":
            continue
        link = places.marked_link(item)
        at = marker_position(item, places.source)
        pose = Pose(item.component.pose.rotation, at)
        out.append(
            Frame(safe_name(item.marker.name), link, places.layout.links[link].inverse() @ pose)
        )
    for name, entry in config.frames.items():
        if safe_name(name) != name:
            raise entry.where.error(f"'{name}' is no name", SAFE)
        position, found = places.find(entry.where["at"], entry.at)
        own = found or rename(places.layout, entry.link)
        if own is None:
            raise unknown(entry.where["link"], "link", entry.link, list(places.layout.links))
        local = places.layout.links[own].inverse() @ Pose(np.eye(3), position)
        out.append(Frame(name, own, local))
    return out
