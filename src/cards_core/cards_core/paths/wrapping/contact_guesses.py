"""First guesses of where a path touches a surface: which side it passes, and where it meets it.

A convex surface is compared with a reference ellipsoid: in the coordinates ``y`` in which the
ellipsoid is the unit sphere, tangents stay tangents and the sphere's closed form gives the guess.
For the same reason the side rule is that of the sphere, see
`cards_core.paths.wrapping.closed_forms`.

A torus with ``inside``, or with a side point closer to its axis than the tube, is a ring that the
path goes through; otherwise the path goes around its outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.paths.wrapping.closed_forms import (
    PLANE_TOLERANCE,
    cylinder_contact,
    sphere_contact,
    takes_longer_arc,
)
from cards_core.paths.wrapping.mesh import HullSurface
from cards_core.paths.wrapping.surfaces import (
    CylinderSurface,
    EllipsoidSurface,
    Surface,
    TorusSurface,
)
from cards_core.typing import Array, Vector3

LIFT = 1e-8
"""Path ends less than this above a surface, relative to its size, are taken to be that high: at a
tangent of zero length the equations of the path are singular."""

TOUCH_TOLERANCE = 1e-9
"""Depth relative to the size at which a path end counts as inside: such a path does not wrap."""

AZIMUTHS = 48
"""Places on a ring that are tried for the first guess."""

SAMPLES = 64
"""Places on a straight line where its height above a ring is looked at first."""

DIRECTIONS = 8
"""In which a path may leave the straight line, that are looked at on bodies that are not round."""

DETOUR_RATIO = 1.3
"""Largest guessed detour of a local minimum that is looked at, relative to the least of all."""

OFF_SIDE = -0.4
"""Cosine of the angle to the side point up to which directions are not looked at."""

SAME_BRANCH = 0.98
"""Cosine of the largest angle between a guess and a solution that counts as the same branch."""

CHORDS = 6
"""Pieces into which a guessed arc is cut to get its length."""

GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True, eq=False)
class Guess:
    """A first guess of a contact.

    Attributes:
        start, end: Where the path meets and leaves the surface, on or close to it, [m].
        length: Of the arc, [m].
        estimate: Length of the whole path, [m].
        primary: Whether the shortest path may be near it.
    """

    start: Vector3
    end: Vector3
    length: float
    estimate: float
    primary: bool = False


@dataclass(frozen=True, eq=False)
class ReferenceEllipsoid:
    """The ellipsoid that a surface is compared with: ``y = (rotation' (x - centre)) / radii``."""

    radii: Vector3
    centre: Vector3
    rotation: Array

    def to_sphere(self, x: Vector3) -> Vector3:
        """Return y."""
        return np.asarray((x - self.centre) @ self.rotation / self.radii)

    def from_sphere(self, y: Vector3) -> Vector3:
        """Return x."""
        return np.asarray(self.centre + (y * self.radii) @ self.rotation.T)


def reference_ellipsoid(surface: Surface) -> ReferenceEllipsoid:
    """Return the reference ellipsoid of a surface.

    Raises:
        UnknownNameError: No such type of surface.
    """
    if type(surface) not in REFERENCE_ELLIPSOIDS:
        raise UnknownNameError.of_type("surface", surface, REFERENCE_ELLIPSOIDS)
    return REFERENCE_ELLIPSOIDS[type(surface)](surface)


def _torus_ellipsoid(surface: TorusSurface) -> ReferenceEllipsoid:
    outer = surface.radius + surface.tube_radius
    return ReferenceEllipsoid(
        np.array([outer, outer, surface.tube_radius]), np.zeros(3), np.eye(3)
    )


REFERENCE_ELLIPSOIDS: Mapping[type[Surface], Callable[[Any], ReferenceEllipsoid]] = {
    EllipsoidSurface: lambda surface: ReferenceEllipsoid(surface.radii, np.zeros(3), np.eye(3)),
    CylinderSurface: lambda surface: ReferenceEllipsoid(
        np.full(3, surface.size), np.zeros(3), np.eye(3)
    ),
    TorusSurface: _torus_ellipsoid,
    HullSurface: lambda surface: ReferenceEllipsoid(
        surface.radii, surface.centre, surface.rotation
    ),
}
"""By type of surface, the function that returns its reference ellipsoid.

Paths can wrap over these types."""


def one_way(surface: Surface) -> bool:
    """Return whether the first guess alone decides where the path goes.

    Args:
        surface: The surface.
    """
    if isinstance(surface, TorusSurface):
        return not surface.closed
    return isinstance(surface, CylinderSurface) or (
        isinstance(surface, EllipsoidSurface) and np.ptp(surface.radii) == 0.0
    )


def lies_inside(surface: Surface, x: Vector3) -> bool:
    """Return whether a path that ends at ``x`` does not wrap over the surface."""
    return surface.height(x) < -TOUCH_TOLERANCE * surface.size


def lifted(surface: Surface, x: Vector3) -> Vector3:
    """Return ``x``, raised off the surface if it lies on it."""
    missing = LIFT * surface.size - surface.height(x)
    if missing <= 0.0:
        return x
    return np.asarray(x + missing * surface.normal(x))


def contact_guesses(surface: Surface, p: Vector3, q: Vector3, side: Vector3 | None) -> list[Guess]:
    """Return guesses of the contact of a path from p to q, in surface coordinates.

    Args:
        surface: What may be in the way.
        p: Start of the path, shape (3,), [m].
        q: End of the path, shape (3,), [m].
        side: Point on whose side the path passes, shape (3,), [m], or None.

    Returns:
        Nothing if the straight line from p to q is the path, or if an end lies inside. On spheres,
        cylinders and in the hole of a torus, one guess. On other bodies the shortest path need not
        be on the side on which the line passes the centre: guesses that leave the line in
        `DIRECTIONS` directions, first the local minima among them (``primary``). Where the side
        point asks for the long way round, the guess of the sphere.
    """
    if lies_inside(surface, p) or lies_inside(surface, q):
        return []
    p, q = lifted(surface, p), lifted(surface, q)
    if isinstance(surface, CylinderSurface):
        return _around_cylinder(surface, p, q, side)
    if isinstance(surface, TorusSurface) and not surface.closed:
        return _through_ring(surface, p, q)
    # any other surface that has a reference ellipsoid: `_around` asks for it
    return _around(surface, p, q, side)


def same_branch(surface: Surface, p: Vector3, a: Vector3, b: Vector3) -> bool:
    """Return whether two start points belong to the same branch of locally shortest paths.

    They do if they are not far apart, seen along the ring's or the cylinder's axis, or from p.

    Args:
        surface: The surface.
        p: Start of the path, frame of the surface, shape (3,), [m].
        a: A start point of an arc, same frame.
        b: Another one.
    """
    if isinstance(surface, CylinderSurface) or (
        isinstance(surface, TorusSurface) and not surface.closed
    ):
        u, v = a[:2], b[:2]
    else:
        ellipsoid = reference_ellipsoid(surface)
        y_p, u, v = ellipsoid.to_sphere(p), ellipsoid.to_sphere(a), ellipsoid.to_sphere(b)
        y_p = y_p / max(float(np.linalg.norm(y_p)), 1e-12)
        u, v = u - float(u @ y_p) * y_p, v - float(v @ y_p) * y_p
    return float(u @ v) > SAME_BRANCH * float(np.linalg.norm(u) * np.linalg.norm(v))


def _around_cylinder(
    surface: CylinderSurface, p: Vector3, q: Vector3, side: Vector3 | None
) -> list[Guess]:
    contact = cylinder_contact(p, q, surface.radius, surface.length, side)
    if not contact.wrapped:
        return []
    return [Guess(contact.start, contact.end, contact.length, 0.0, primary=True)]


def _around(surface: Surface, p: Vector3, q: Vector3, side: Vector3 | None) -> list[Guess]:
    ellipsoid = reference_ellipsoid(surface)
    y_p, y_q = outside(ellipsoid.to_sphere(p)), outside(ellipsoid.to_sphere(q))
    delta = y_q - y_p
    fraction = min(max(-float(y_p @ delta) / max(float(delta @ delta), 1e-300), 0.0), 1.0)
    nearest = y_p + fraction * delta
    y_side = None if side is None else ellipsoid.to_sphere(side)
    longer_arc = y_side is not None and asks_for_longer_arc(y_p, y_q, y_side)
    contact = sphere_contact(y_p, y_q, 1.0, y_side)
    deepest = ellipsoid.from_sphere(nearest)
    if not longer_arc:
        if isinstance(surface, EllipsoidSurface):
            blocked = contact.wrapped
        else:
            blocked = surface.cover(p + fraction * (q - p)) < 0.0
            if not (blocked and contact.wrapped):
                deepest = _deepest(surface, p, q)
                blocked = surface.cover(deepest) < 0.0
        if not blocked:
            return []
    if not contact.wrapped:  # the straight line enters the surface, but not the ellipsoid
        start = surface.project(_outer(surface, deepest))
        straight = float(np.linalg.norm(q - p))
        return [Guess(start, start, 0.05 * surface.size, straight, primary=True)]
    if not (one_way(surface) or longer_arc):
        return _all_round(surface, (p, q), contact.start + contact.end, y_side)
    guess = _mapped(surface, (p, q), contact.start, contact.end, contact.angle)
    return [replace(guess, primary=one_way(surface))]


def passes_side(
    surface: Surface,
    ends: tuple[Vector3, Vector3],
    contact: tuple[Vector3, Vector3],
    side: Vector3,
) -> bool:
    """Return whether an arc is on the side of the straight line on which the side point is.

    Args:
        surface: The surface.
        ends: Of the path, frame of the surface, shape (3,), [m].
        contact: Where the path meets and leaves the surface, likewise.
        side: Point on whose side the path passes, likewise.
    """
    ellipsoid = reference_ellipsoid(surface)
    y_p, y_q, a, b = (ellipsoid.to_sphere(x) for x in (*ends, *contact))
    line = y_q - y_p
    line = line / max(float(np.linalg.norm(line)), 1e-12)
    away = a + b - 2.0 * y_p
    away = away - float(away @ line) * line
    return float(away @ ellipsoid.to_sphere(side)) > 0.0


def asks_for_longer_arc(p: Vector3, q: Vector3, side: Vector3) -> bool:
    """Return whether the line from p to q passes behind the centre, seen from the side point.

    Args:
        p: Start of the path, in the reference ellipsoid's coordinates, shape (3,).
        q: End of the path, likewise.
        side: Side point, likewise.
    """
    p_p, q_q, p_q = float(p @ p), float(q @ q), float(p @ q)
    in_line = p_p * q_q - p_q * p_q <= PLANE_TOLERANCE**2 * p_p * q_q
    return takes_longer_arc(p_p, q_q, p_q, float(p @ side), float(q @ side), in_line=in_line)


def _all_round(
    surface: Surface,
    ends: tuple[Vector3, Vector3],
    middle: Vector3,
    y_side: Vector3 | None,
) -> list[Guess]:
    """Return guesses that leave the straight line in all directions, see `contact_guesses`.

    Args:
        surface: What is in the way.
        ends: Of the path, [m].
        middle: The first direction to look in, in the ellipsoid's coordinates.
        y_side: Side point in the ellipsoid's coordinates, or None.
    """
    ellipsoid = reference_ellipsoid(surface)
    y_p, y_q = (outside(ellipsoid.to_sphere(x)) for x in ends)
    line = y_q - y_p
    line = line / float(np.linalg.norm(line))
    first = middle - float(middle @ line) * line
    first = first / max(float(np.linalg.norm(first)), 1e-12)
    second = np.cross(line, first)
    towards = None if y_side is None else y_side - float(y_side @ line) * line
    if towards is not None:
        towards = towards / max(float(np.linalg.norm(towards)), 1e-12)
    guesses: list[Guess | None] = []
    for k in range(DIRECTIONS):
        phi = 2.0 * math.pi * k / DIRECTIONS
        u = math.cos(phi) * first + math.sin(phi) * second
        if towards is not None and float(u @ towards) <= OFF_SIDE:
            guesses.append(None)
            continue
        a, b = tangent_point(y_p, u), tangent_point(y_q, u)
        angle = math.atan2(float(np.linalg.norm(np.cross(a, b))), float(a @ b))
        guesses.append(_mapped(surface, ends, a, b, angle))
    straight = float(np.linalg.norm(ends[1] - ends[0]))
    detours = [np.inf if g is None else g.estimate - straight for g in guesses]
    limit = DETOUR_RATIO * min(detours)
    out: list[Guess] = []
    for k, guess in enumerate(guesses):
        if guess is None:
            continue
        lowest = detours[k] <= detours[k - 1] and detours[k] < detours[(k + 1) % DIRECTIONS]
        out.append(replace(guess, primary=bool(lowest and detours[k] <= limit)))
    return sorted(out, key=lambda guess: (not guess.primary, guess.estimate))


def tangent_point(y: Vector3, u: Vector3) -> Vector3:
    """Return where the tangent from y meets the unit sphere on the side of u, shape (3,)."""
    norm = float(np.linalg.norm(y))
    towards = y / norm
    across = u - float(u @ towards) * towards
    across = across / max(float(np.linalg.norm(across)), 1e-12)
    return np.asarray(towards / norm + math.sqrt(max(1.0 - 1.0 / norm**2, 0.0)) * across)


def outside(y: Vector3) -> Vector3:
    """Return ``y``, moved away from the centre if it is inside of the unit sphere."""
    norm = float(np.linalg.norm(y))
    if norm >= 1.0:
        return y
    return np.asarray(y / norm) if norm > 1e-9 else np.array([1.0, 0.0, 0.0])


def _outer(surface: Surface, x: Vector3) -> Vector3:
    """Return ``x``, moved off the discs that close a torus."""
    if not isinstance(surface, TorusSurface):
        return x
    rho = math.hypot(x[0], x[1])
    if rho > surface.radius:
        return x
    target = surface.radius + 0.5 * surface.tube_radius
    if rho < 1e-9 * surface.radius:
        return np.array([target, 0.0, x[2]])
    return np.array([x[0] * target / rho, x[1] * target / rho, x[2]])


def _mapped(
    surface: Surface, ends: tuple[Vector3, Vector3], a: Vector3, b: Vector3, angle: float
) -> Guess:
    """Guess from the great circle from a to b, by ``angle``, on the unit sphere."""
    ellipsoid = reference_ellipsoid(surface)
    across = b - float(a @ b) * a
    norm = float(np.linalg.norm(across))
    across = across / norm if norm > 1e-12 else np.zeros(3)
    if angle > math.pi:
        across = -across
    phi = np.linspace(0.0, angle, CHORDS + 1)[:, None]
    points = ellipsoid.from_sphere(np.cos(phi) * a + np.sin(phi) * across)
    chords = np.linalg.norm(np.diff(points, axis=0), axis=1)
    # an arc is longer than its chord by 1 + angle^2 / 24
    length = float(chords.sum()) * (1.0 + (angle / CHORDS) ** 2 / 24.0)
    straight = float(np.linalg.norm(points[0] - ends[0]) + np.linalg.norm(ends[1] - points[-1]))
    start, end = (surface.project(_outer(surface, points[k])) for k in (0, -1))
    return Guess(start, end, length, straight + length)


def _deepest(surface: Surface, p: Vector3, q: Vector3) -> Vector3:
    """Return the point of the segment that lies deepest in the convex hull of the surface."""
    delta = q - p
    fraction = minimum(lambda f: surface.cover(p + f * delta), 0.0, 1.0)[0]
    return np.asarray(p + fraction * delta)


def _through_ring(surface: TorusSurface, p: Vector3, q: Vector3) -> list[Guess]:
    """Guess at the azimuth where the path over the hole's narrowest circle is shortest."""
    if p[2] * q[2] >= 0.0:
        return []
    crossing = p + p[2] / (p[2] - q[2]) * (q - p)
    in_hole = math.hypot(crossing[0], crossing[1]) < surface.radius
    if in_hole and _clearance(surface, p, q) >= 0.0:
        return []
    narrow = surface.radius - surface.tube_radius

    def length(phi: float) -> float:
        x = np.array([narrow * math.cos(phi), narrow * math.sin(phi), 0.0])
        return float(np.linalg.norm(x - p) + np.linalg.norm(q - x))

    step = 2.0 * math.pi / AZIMUTHS
    best = min(range(AZIMUTHS), key=lambda k: length(k * step)) * step
    phi, estimate = minimum(length, best - step, best + step)
    radial = np.array([math.cos(phi), math.sin(phi), 0.0])
    # in the half-plane of this azimuth the tube is a circle, passed on the side of the axis
    flat_p = np.array([float(p @ radial) - surface.radius, p[2], 0.0])
    flat_q = np.array([float(q @ radial) - surface.radius, q[2], 0.0])
    contact = sphere_contact(flat_p, flat_q, surface.tube_radius, np.array([-1.0, 0.0, 0.0]))
    if not contact.wrapped:
        point = narrow * radial
        return [Guess(point, point, 0.1 * surface.tube_radius, estimate, primary=True)]
    start, end = (
        (surface.radius + x[0]) * radial + np.array([0.0, 0.0, x[1]])
        for x in (contact.start, contact.end)
    )
    return [Guess(start, end, contact.length, estimate, primary=True)]


def _clearance(surface: Surface, p: Vector3, q: Vector3) -> float:
    """Return the minimum height of the segment from p to q above the surface, [m]."""

    def height(f: float) -> float:
        return surface.height(p + f * (q - p))

    heights = [height(k / SAMPLES) for k in range(SAMPLES + 1)]
    k = int(np.argmin(heights))
    return minimum(height, max(k - 1, 0) / SAMPLES, min(k + 1, SAMPLES) / SAMPLES)[1]


def minimum(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return where a function with one minimum in an interval is least, and how much it is.

    Args:
        function: The function.
        low: Start of the interval.
        high: End of the interval.
    """
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    f_a, f_b = function(a), function(b)
    for _ in range(45):
        if f_a < f_b:
            high, b, f_b = b, a, f_a
            a = high - GOLDEN * (high - low)
            f_a = function(a)
        else:
            low, a, f_a = a, b, f_b
            b = low + GOLDEN * (high - low)
            f_b = function(b)
    return (a, f_a) if f_a < f_b else (b, f_b)
