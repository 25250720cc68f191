"""Holes, pins, balls, sockets and rings of bodies, and the joints that they suggest.

CAD programs split a hole into two or more faces; those of one axis, radius and kind are one
feature. Features have names, ``BODY#hole2``, which a configuration can use.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cards_core.formats.cad.assembly import Face
from cards_core.spatial import Pose
from cards_core.typing import Vector3

FeatureKind = Literal["hole", "cylinder", "sphere", "socket", "torus"]

SAME_PLACE = 2e-5
"""Distance of two axes that are meant to be one, [m]."""

SAME_AXIS = 1e-3
"""Angle between two axes that are meant to be one, [rad]."""

CLEARANCE = 1e-3
"""Largest difference of the radii of a pin and its hole, [m]."""

WHOLE = 0.95 * 2.0 * np.pi
"""Angle from which a cylinder counts as a hole or pin and not as a rounded edge, [rad]."""

SMALL_HOLE = 0.012
"""Diameter up to which the report lists holes as places for via points, [m]."""


@dataclass(frozen=True, eq=False)
class Feature:
    """A hole, pin, ball, socket or ring of a body.

    Attributes:
        name: ``BODY#kindN``.
        kind: ``hole`` and ``socket`` are inside, ``cylinder`` and ``sphere`` outside.
        link: Name of the link.
        centre: Assembly coordinates, shape (3,), [m].
        axis: Unit vector, assembly axes.
        radius, tube_radius, length: As in `Face`, [m].
        angle: Covered by the faces together, [rad].
    """

    name: str
    kind: FeatureKind
    link: str
    centre: Vector3
    axis: Vector3
    radius: float
    tube_radius: float = 0.0
    length: float = 0.0
    angle: float = 2.0 * np.pi


def features_of(body: str, link: str, faces: Iterable[Face], pose: Pose) -> list[Feature]:
    """Return the features of a body.

    Args:
        body: Its path, for their names.
        link: Whose it is.
        faces: Of its solid.
        pose: Of its component in the assembly.
    """
    merged: list[Feature] = []
    places: dict[tuple[int, ...], list[int]] = {}  # a plate may have thousands of holes
    for face in faces:
        kind: FeatureKind
        match face.kind:
            case "cylinder":
                kind = "hole" if face.concave else "cylinder"
            case "sphere":
                kind = "socket" if face.concave else "sphere"
            case "torus":
                kind = "torus"
        new = Feature(
            "",
            kind,
            link,
            pose.apply(face.centre),
            pose.rotation @ face.axis,
            face.radius,
            face.tube_radius,
            face.length,
            face.angle,
        )
        numbers = (*new.centre, *new.axis, new.radius, new.tube_radius, new.length, new.angle)
        if not np.isfinite(numbers).all():
            continue  # of a damaged face
        near = [i for cell in _cells(new) for i in places.get(cell, ())]
        for i in near:
            if _same_surface(merged[i], new):
                merged[i] = _joined(merged[i], new)
                break
        else:
            # the axis, or the centre, stays where it is when more faces come
            places.setdefault(_cells(new)[0], []).append(len(merged))
            merged.append(new)
    counts: Counter[str] = Counter()
    out = []
    for item in merged:
        # rounded edges are parts of cylinders and tori
        if item.kind in ("hole", "cylinder") and item.angle < WHOLE:
            continue
        counts[item.kind] += 1
        out.append(replace(item, name=f"{body}#{item.kind}{counts[item.kind]}"))
    return out


def _cells(item: Feature) -> list[tuple[int, ...]]:
    """Return the cells of a grid that a feature's place is in, and those around it."""
    place = item.centre
    if item.kind in ("hole", "cylinder"):
        place = place - (place @ item.axis) * item.axis
    x, y, z = (int(v) for v in np.floor(place / (10.0 * SAME_PLACE)))
    around = itertools.product((0, -1, 1), repeat=3)  # the cell itself comes first
    return [(x + i, y + j, z + k) for i, j, k in around]


def _same_surface(a: Feature, b: Feature) -> bool:
    if a.kind != b.kind or abs(a.radius - b.radius) > 1e-7:
        return False
    if a.kind in ("sphere", "socket"):
        return bool(np.linalg.norm(a.centre - b.centre) < SAME_PLACE)
    if np.linalg.norm(np.cross(a.axis, b.axis)) > SAME_AXIS:
        return False
    if a.kind == "torus":
        near = float(np.linalg.norm(a.centre - b.centre))
        return near < SAME_PLACE and abs(a.tube_radius - b.tube_radius) < 1e-7
    if axis_distance(a.centre, a.axis, b.centre) > SAME_PLACE:
        return False
    along = abs(float((b.centre - a.centre) @ a.axis))
    return along <= 0.5 * (a.length + b.length) + SAME_PLACE


def _joined(a: Feature, b: Feature) -> Feature:
    """Return the feature of two faces: side by side around the axis, or one behind the other."""
    if a.kind not in ("hole", "cylinder"):
        return replace(a, angle=min(a.angle + b.angle, 2.0 * np.pi))
    shift = float((b.centre - a.centre) @ a.axis)
    low = min(-0.5 * a.length, shift - 0.5 * b.length)
    high = max(0.5 * a.length, shift + 0.5 * b.length)
    area = a.angle * a.length + b.angle * b.length
    return replace(
        a,
        centre=a.centre + 0.5 * (low + high) * a.axis,
        length=high - low,
        angle=min(area / max(high - low, 1e-12), 2.0 * np.pi),
    )


def axis_distance(point: Vector3, axis: Vector3, other: Vector3) -> float:
    """Return the distance of a point from an axis, [m].

    Args:
        point: On the axis, shape (3,), [m].
        axis: Its unit vector.
        other: The point, shape (3,), [m].
    """
    d = other - point
    return float(np.linalg.norm(d - (d @ axis) * axis))


# Joints ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Candidate:
    """A joint that two features of different links suggest.

    Attributes:
        kind: ``revolute`` for a pin in a hole, ``ball`` for a ball in a socket, ``fixed`` where
            two links have several parallel axes in common, as bolts have.
        links: Names of the two links.
        at: Where, assembly coordinates, shape (3,), [m].
        axis: Unit vector, assembly axes.
        features: Names of the features.
        clearance: Radius of the hole minus that of the pin, [m].
    """

    kind: Literal["revolute", "ball", "fixed"]
    links: tuple[str, str]
    at: Vector3
    axis: Vector3
    features: tuple[str, str]
    clearance: float


def joint_candidates(features: Sequence[Feature]) -> list[Candidate]:
    """Return the joints that coaxial cylinders and concentric spheres suggest.

    A pin and a hole suggest one if their axes coincide, the hole is wider by at most `CLEARANCE`
    and they overlap; so does a ball in a socket. One suggestion for every pair of links and axis,
    that with the longest overlap. Nothing says that the joint is there: somebody must confirm it.
    """
    found: list[tuple[float, Candidate]] = []
    for inner, outer in (("cylinder", "hole"), ("sphere", "socket")):
        pins = [item for item in features if item.kind == inner]
        holes = [item for item in features if item.kind == outer]
        if not holes:
            continue
        radii = np.array([hole.radius for hole in holes])
        centres = np.array([hole.centre for hole in holes])
        for pin in pins:
            # most pairs are out by their radii or the distance from the pin's axis
            d = centres - pin.centre
            along = np.zeros(len(d)) if inner == "sphere" else d @ pin.axis
            off = np.linalg.norm(d - along[:, None] * pin.axis, axis=1)
            fits = np.abs(radii - pin.radius) <= CLEARANCE + SAME_PLACE
            for i in np.flatnonzero(fits & (off <= 2.0 * CLEARANCE)):
                found.extend(_match(pin, holes[i]))
    found.sort(key=lambda pair: -pair[0])
    kept: list[Candidate] = []
    for _, item in found:
        if not any(_same_joint(item, other) for other in kept):
            kept.append(item)
    return [_bolted(item, kept) for item in kept]


def _match(pin: Feature, hole: Feature) -> list[tuple[float, Candidate]]:
    clearance = hole.radius - pin.radius
    if pin.link == hole.link or not -SAME_PLACE <= clearance <= CLEARANCE:
        return []
    links, names = (pin.link, hole.link), (pin.name, hole.name)
    if pin.kind == "sphere":
        if np.linalg.norm(pin.centre - hole.centre) > SAME_PLACE:
            return []
        return [(pin.radius, Candidate("ball", links, hole.centre, hole.axis, names, clearance))]
    if np.linalg.norm(np.cross(pin.axis, hole.axis)) > SAME_AXIS:
        return []
    if axis_distance(hole.centre, hole.axis, pin.centre) > max(SAME_PLACE, clearance):
        return []
    middle = float((pin.centre - hole.centre) @ hole.axis)
    low = max(middle - 0.5 * pin.length, -0.5 * hole.length)
    high = min(middle + 0.5 * pin.length, 0.5 * hole.length)
    if high - low <= SAME_PLACE:
        return []
    at = hole.centre + 0.5 * (low + high) * hole.axis
    return [(high - low, Candidate("revolute", links, at, hole.axis, names, clearance))]


def _same_joint(a: Candidate, b: Candidate) -> bool:
    if set(a.links) != set(b.links) or (a.kind == "ball") != (b.kind == "ball"):
        return False
    if a.kind == "ball":
        return bool(np.linalg.norm(a.at - b.at) < CLEARANCE)
    parallel = np.linalg.norm(np.cross(a.axis, b.axis)) < SAME_AXIS
    return bool(parallel) and axis_distance(a.at, a.axis, b.at) < CLEARANCE


def _bolted(item: Candidate, all_of_them: Sequence[Candidate]) -> Candidate:
    others = [
        other
        for other in all_of_them
        if other is not item and set(other.links) == set(item.links) and other.kind != "ball"
    ]
    return replace(item, kind="fixed") if item.kind == "revolute" and others else item
