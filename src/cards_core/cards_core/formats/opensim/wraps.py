"""Where on a muscle's path a wrap object of OpenSim goes.

OpenSim tries every segment of the path in the given range and bends the first one that runs
through the object, or else, where a quadrant is given, the one that it lengthens least. Ours
states the segment. So poses over the ranges of the coordinates say which segments are ever bent.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from cards_core.formats.opensim.kinematics import (
    active,
    body_poses,
    free_coordinates,
    location,
    values,
)
from cards_core.formats.opensim.source import (
    PathWrap,
    SourceModel,
    SourceMuscle,
    SourcePoint,
    WrapObject,
)
from cards_core.robot.elements import Cylinder, Ellipsoid, Sphere, Torus
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3

SWEEP = 15
"""Values of each coordinate, the others at their defaults, ..."""

RANDOM = 150
"""... and random poses of all of them, in which paths are looked at."""

LEAST_GAP = 0.05
"""Between the ends of a path over a cylinder, behind it, [rad]."""


@dataclass
class Placement:
    """Wraps of one muscle.

    Attributes:
        segments: Index of the path point before the wraps to these, in their order on the path.
        sides: Name of a wrap object to a point of the side on which the path goes, in coordinates
            of the object, shape (3,), [m], where it is not the middle of the quadrant.
        notes: (wrap object, what there is to say of it).
    """

    segments: dict[int, list[WrapObject]] = field(default_factory=dict)
    sides: dict[str, Vector3] = field(default_factory=dict)
    notes: list[tuple[WrapObject, str]] = field(default_factory=list)


def sample_poses(model: SourceModel) -> list[dict[str, float]]:
    """Return poses (all coordinates): the default, each coordinate swept alone, random ones."""
    names = free_coordinates(model)
    limits = {name: coordinate_range(model, name) for name in names}
    default = values(model, {})
    out = [default]
    for name in names:
        out += [values(model, {name: q}) for q in np.linspace(*limits[name], SWEEP)]
    random = np.random.default_rng(0)
    for _ in range(RANDOM if names else 0):
        out.append(values(model, {n: float(random.uniform(*limits[n])) for n in names}))
    return out


def coordinate_range(model: SourceModel, name: str) -> tuple[float, float]:
    """Return the range of a coordinate, at most pi to both sides of its default.

    Of a default outside of the range, the end of the range that is nearest to it counts.
    """
    item = model.coordinates[name]
    middle = min(max(item.default, item.lower), item.upper)
    return max(item.lower, middle - np.pi), min(item.upper, middle + np.pi)


def place_wraps(
    model: SourceModel,
    muscle: SourceMuscle,
    kept: Sequence[int],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
) -> Placement:
    """Return where the wraps of a muscle go.

    Args:
        model: The model.
        muscle: The muscle.
        kept: Indices of the path points that are converted.
        poses: Coordinates and body poses to look at; the first is the default.
    """
    out = Placement()
    found: dict[int, list[tuple[float, WrapObject]]] = {}
    for wrap in muscle.wraps:
        if not wrap.wrap.active:
            out.notes.append((wrap.wrap, "is not active, left out"))
            continue
        _place(muscle, wrap, kept, poses, found=found, out=out)
    for index, items in found.items():
        out.segments[index] = [wrap for _, wrap in sorted(items, key=lambda item: item[0])]
    return out


def _place(
    muscle: SourceMuscle,
    wrap: PathWrap,
    kept: Sequence[int],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
    *,
    found: dict[int, list[tuple[float, WrapObject]]],
    out: Placement,
) -> None:
    segments = [(a, b) for a, b in itertools.pairwise(kept) if a >= wrap.first and b <= wrap.last]
    inside: set[int] = set()
    counts: dict[int, int] = {}
    along: dict[int, list[float]] = {}
    nearest: tuple[float, int, float] | None = None
    for number, (q, bodies) in enumerate(poses):
        to_wrap = (bodies[wrap.wrap.body] @ wrap.wrap.pose).inverse()
        choice: int | None = None
        lengthening = np.inf
        for a, b in segments:
            p = _local(muscle.points[a], q, bodies, to_wrap)
            r = _local(muscle.points[b], q, bodies, to_wrap)
            state, distance, t = touch(wrap.wrap, p, r)
            fixed = {muscle.points[a].body, muscle.points[b].body} == {wrap.wrap.body}
            if state == "inside":
                if number == 0 or fixed or _held_inside(wrap.wrap, muscle, (a, b), q, bodies):
                    inside.add(a)
                continue
            if not fixed and (nearest is None or distance < nearest[0]):
                nearest = (distance, a, t)
            along.setdefault(a, []).append(t)
            if not all(active(muscle.points[i], q) for i in (a, b)):
                continue
            if state == "through":
                choice = a
                break
            if state == "behind" and distance < lengthening:
                choice, lengthening = a, distance
        if choice is not None:
            counts[choice] = counts.get(choice, 0) + 1
    if inside & set(counts):
        out.notes.append(
            (wrap.wrap, "has an end of the segment inside at the default pose, not wrapped there")
        )
    chosen = {index: n for index, n in counts.items() if index not in inside}
    if not chosen:
        if nearest is None or nearest[1] in inside:
            out.notes.append((wrap.wrap, "is never touched, left out"))
            return
        chosen = {nearest[1]: 0}
    if len(chosen) > 1 and wrap.wrap.quadrant is not None:
        best = max(chosen, key=lambda index: chosen[index])
        share = 1.0 - chosen[best] / sum(chosen.values())
        out.notes.append(
            (wrap.wrap, f"bends several segments; only the usual one is kept ({share:.1%} less)")
        )
        chosen = {best: chosen[best]}
    for index in chosen:
        end = next(b for a, b in segments if a == index)
        side = _side(wrap.wrap, (muscle.points[index], muscle.points[end]), poses)
        if side is not None:
            out.sides[wrap.wrap.name] = side
        found.setdefault(index, []).append((float(np.mean(along[index])), wrap.wrap))


def _side(
    wrap: WrapObject,
    ends: tuple[SourcePoint, SourcePoint],
    poses: Sequence[tuple[Mapping[str, float], Mapping[str, Pose]]],
) -> Vector3 | None:
    """Return a side point of a cylinder that no end gets behind, None: the quadrant's is one.

    The half-plane behind the axis, seen from the side point, lies between both ends. Those move
    with the pose; where one would pass the half-plane that is opposite to the quadrant, another
    within the same gap between the ends leaves the path on its side.
    """
    if wrap.quadrant is None or not isinstance(wrap.geometry, Cylinder) or wrap.quadrant[0] > 1:
        return None
    index, sign = wrap.quadrant
    axis = -sign * np.eye(2)[index]
    behind = np.arctan2(axis[1], axis[0])
    low, high = -np.inf, np.inf
    first: Array | None = None
    for q, bodies in poses:
        to_wrap = (bodies[wrap.body] @ wrap.pose).inverse()
        at = np.array([_local(end, q, bodies, to_wrap) for end in ends])
        if any(_within(wrap, end) for end in at):
            continue
        angles = np.arctan2(at[:, 1], at[:, 0]) - behind
        if first is None:
            first = angles % (2.0 * np.pi)  # the gap begins at the larger one, a turn before
            upper, lower = int(np.argmin(first)), int(np.argmax(first))
        # the nearest branch: ends turn by less than half a turn from the default pose
        angles = first + (angles - first + np.pi) % (2.0 * np.pi) - np.pi
        low, high = max(low, angles[lower] - 2.0 * np.pi), min(high, angles[upper])
    if first is None or low < 0.0 < high or high - low < LEAST_GAP:
        return None
    middle = behind + 0.5 * (low + high)
    return -2.0 * wrap.geometry.radius * np.array([np.cos(middle), np.sin(middle), 0.0])


def _held_inside(
    wrap: WrapObject,
    muscle: SourceMuscle,
    segment: tuple[int, int],
    q: Mapping[str, float],
    bodies: Mapping[str, Pose],
) -> bool:
    """Whether an end that is fixed to the body of the object is inside of it, in every pose."""
    to_wrap = (bodies[wrap.body] @ wrap.pose).inverse()
    for index in segment:
        point = muscle.points[index]
        if point.body == wrap.body and _within(wrap, _local(point, q, bodies, to_wrap)):
            return True
    return False


def _local(
    point: SourcePoint, q: Mapping[str, float], bodies: Mapping[str, Pose], to_wrap: Pose
) -> Vector3:
    return to_wrap.apply(bodies[point.body].apply(location(point, q)))


def _within(wrap: WrapObject, p: Vector3) -> bool:
    shape = wrap.geometry
    match shape:
        case Sphere():
            return bool(np.linalg.norm(p) <= shape.radius)
        case Cylinder():
            return bool(np.hypot(p[0], p[1]) <= shape.radius)
        case Ellipsoid():
            return bool(np.linalg.norm(p / shape.radii) <= 1.0)
        case Torus():
            ring = np.hypot(p[0], p[1]) - shape.radius
            return bool(np.hypot(ring, p[2]) <= shape.tube_radius)
        case _:
            raise AssertionError(shape)


def touch(wrap: WrapObject, p: Vector3, r: Vector3) -> tuple[str, float, float]:
    """Return how a straight segment lies to a wrap object.

    Args:
        wrap: The object.
        p: First end, in coordinates of the object, shape (3,), [m].
        r: Second end.

    Returns:
        ``inside`` (an end is), ``through``, ``behind`` (it misses it on the side that the
        quadrant excludes) or ``free``; the distance of its nearest point from the centre or axis,
        in radii; and where that point is, 0 at p to 1 at r.
    """
    if _within(wrap, p) or _within(wrap, r):
        return "inside", 0.0, 0.5
    shape = wrap.geometry
    if isinstance(shape, Torus):
        crosses = p[2] * r[2] < 0.0
        t = float(p[2] / (p[2] - r[2])) if crosses else 0.5
        at = p + t * (r - p)
        distance = float(np.hypot(at[0], at[1]) / shape.radius)
        return ("through" if crosses else "free"), distance, t
    match shape:
        case Sphere():
            scale: Array = np.full(3, shape.radius)
        case Cylinder():
            scale = np.array([shape.radius, shape.radius, np.inf])
        case Ellipsoid():
            scale = shape.radii
        case _:
            raise AssertionError(shape)
    a, b = p / scale, r / scale
    way = b - a
    square = float(way @ way)
    t = float(np.clip(-(a @ way) / square, 0.0, 1.0)) if square > 0.0 else 0.5
    at = a + t * way
    distance = float(np.linalg.norm(at))
    if distance < 1.0:
        return "through", distance, t
    if wrap.quadrant is not None:
        index, sign = wrap.quadrant
        signs = (sign * p[index] > 0.0, sign * r[index] > 0.0)
        if not any(signs) or (signs[0] != signs[1] and sign * at[index] < 0.0):
            return "behind", distance, t
    return "free", distance, t


def all_poses(model: SourceModel) -> list[tuple[Mapping[str, float], Mapping[str, Pose]]]:
    """Return `sample_poses` with the poses of the bodies."""
    return [(q, body_poses(model, q)) for q in sample_poses(model)]
