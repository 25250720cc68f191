"""All paths over one convex surface between two points: minima and saddles.

Rays from the start p touch the surface along its horizon, a closed curve. Each goes on as a
geodesic, up to where its tangent plane holds the end q. The angle there from the geodesic to q is
a function of the ray's azimuth, and its zeros are the paths. Between rays a zero is bracketed;
where the angle comes near zero its extremum is looked for, so that two zeros are found until they
meet and end.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from cards_core.paths.wrapping.contact_guesses import (
    GOLDEN,
    Guess,
    minimum,
    outside,
    reference_ellipsoid,
    tangent_point,
)
from cards_core.paths.wrapping.geodesic import MAX_STEPS, initial_state, step
from cards_core.paths.wrapping.mesh import HullSurface
from cards_core.paths.wrapping.path_newton import start_towards
from cards_core.paths.wrapping.surfaces import Surface, TorusSurface
from cards_core.typing import Vector3

RAYS = 32
"""Azimuths of the first rays."""

RAY_STEP = 2.0
"""Integration step of a ray's geodesic, relative to that of a path."""

CLOSE = 1e-4
"""Angle [rad] by which a ray may miss: Newton's method does the rest."""

DIP = 0.5
"""Angle [rad] below which an extremum is looked for."""

MOST_PATHS = 9
"""How many are looked for."""

SECTIONS, MOST_STEPS, HALVINGS = 12, 20, 50
"""Most iterations: to an extremum, to a zero, to the horizon of a torus."""


def shoot(surface: Surface, p: Vector3, q: Vector3) -> list[Guess]:
    """Return all paths over a convex surface, as guesses to within `CLOSE`.

    Args:
        surface: The surface.
        p: Start of the path, outside, frame of the surface, shape (3,), [m].
        q: End of the path, likewise.
    """
    width = 2.0 * math.pi / RAYS
    angles = [_miss(surface, p, q, k * width)[0] for k in range(RAYS)]
    found: list[Guess] = []

    def add(a: float, at_a: float, b: float, at_b: float) -> None:
        found.append(_zero(surface, p, q, (a, at_a), (b, at_b)))

    for k, now in enumerate(angles):
        if len(found) + 2 > MOST_PATHS:
            break
        before, after = angles[k - 1], angles[(k + 1) % RAYS]
        # symmetric paths lie on a ray, where the angle is 0
        if (now < 0.0) != (after < 0.0) and abs(now - after) < math.pi:
            add(k * width, now, (k + 1) * width, after)
        dips = before * now > 0.0 < now * after and abs(now) <= min(abs(before), abs(after), DIP)
        if not dips:
            continue
        middle, angle = _extremum(surface, p, q, k * width, now)
        if angle * now < 0.0:
            add((k - 1) * width, before, middle, angle)
            add(middle, angle, (k + 1) * width, after)
    return found


def _zero(
    surface: Surface,
    p: Vector3,
    q: Vector3,
    first: tuple[float, float],
    second: tuple[float, float],
) -> Guess:
    """Return the path between two azimuths whose angles, given beside them, differ in sign."""
    (a, at_a), (b, at_b) = first, second
    for k in range(MOST_STEPS):
        middle = k % 3 == 2 or not at_a - at_b
        c = 0.5 * (a + b) if middle else (a * at_b - b * at_a) / (at_b - at_a)
        angle, guess = _miss(surface, p, q, c)
        if not abs(angle) > CLOSE:
            break
        if (angle > 0.0) == (at_a > 0.0):
            a, at_a = c, angle
        else:
            b, at_b = c, angle
    return guess


def _extremum(
    surface: Surface, p: Vector3, q: Vector3, azimuth: float, angle: float
) -> tuple[float, float]:
    """Return azimuth and angle where it is nearest to zero or beyond, by golden sections.

    Args:
        surface: The surface.
        p: Start of the path.
        q: End of the path.
        azimuth: Of the ray between whose neighbours that is.
        angle: Of this ray.
    """
    width = 2.0 * math.pi / RAYS
    low, high, sign, now = azimuth - width, azimuth + width, math.copysign(1.0, angle), angle
    for _ in range(SECTIONS):
        if now * angle < 0.0:
            break
        a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        at_a, at_b = (_miss(surface, p, q, x)[0] for x in (a, b))
        if sign * at_a < sign * at_b:
            azimuth, now, high = a, at_a, b
        else:
            azimuth, now, low = b, at_b, a
    return azimuth, now


def _miss(surface: Surface, p: Vector3, q: Vector3, azimuth: float) -> tuple[float, Guess]:
    """Return by how much a ray's geodesic misses q, NaN if it never points there, and a guess."""
    start = start_towards(surface, horizon(surface, p, azimuth), 0.0, p)
    state = initial_state(start.point, start.tangent)
    nowhere = math.nan, Guess(start.point, start.point, 0.0, 0.0)
    if not float(surface.normal(start.point) @ (q - start.point)) < 0.0:
        return nowhere
    h, length = RAY_STEP * surface.step, 0.0
    for _ in range(MAX_STEPS):
        ahead = step(surface, state, h)
        if float(surface.normal(ahead[:3]) @ (q - ahead[:3])) >= 0.0:
            break
        state, length = ahead, length + h
        if state[10] > 2.0 * math.pi:
            return nowhere
    else:
        return nowhere
    low, high, piece = 0.0, h, h
    for _ in range(MOST_STEPS):
        t, d = ahead[3:6], q - ahead[:3]
        n, k_t, tau, _ = surface.curvature(ahead[:3], t)
        b = np.cross(n, t)
        level = float(n @ d)
        if abs(level) < 1e-9 * surface.size:
            break
        low, high = (piece, high) if level < 0.0 else (low, piece)
        slope = k_t * float(t @ d) + tau * float(b @ d)
        newton = piece - level / slope if slope else low
        piece = newton if low < newton < high else 0.5 * (low + high)
        ahead = step(surface, state, piece)
    t, d = ahead[3:6], q - ahead[:3]
    b = np.cross(surface.normal(ahead[:3]), t)
    guess = Guess(start.point, ahead[:3], length + piece, 0.0)
    return math.atan2(float(b @ d), float(t @ d)), guess


def horizon(surface: Surface, p: Vector3, azimuth: float) -> Vector3:
    """Return where a ray from a point touches a convex surface.

    Args:
        surface: The surface, not a cylinder.
        p: The point, outside, frame of the surface, shape (3,), [m].
        azimuth: Which of the rays, once around for 0 to 2 pi.
    """
    if isinstance(surface, TorusSurface):
        return _torus_horizon(surface, p, azimuth)
    ellipsoid = reference_ellipsoid(surface)
    y = outside(ellipsoid.to_sphere(p))
    x = ellipsoid.from_sphere(tangent_point(y, _across(y / np.linalg.norm(y), azimuth)))
    return _hull_horizon(surface, p, x) if isinstance(surface, HullSurface) else x


def _across(axis: Vector3, azimuth: float) -> Vector3:
    """Return a unit vector at right angles to an axis."""
    u = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    u = u / np.linalg.norm(u)
    return np.asarray(math.cos(azimuth) * u + math.sin(azimuth) * np.cross(axis, u))


def _torus_horizon(surface: TorusSurface, p: Vector3, azimuth: float) -> Vector3:
    """The planes ``n.x = h(n)`` hold the hull; those with ``n.p > h`` are a convex cone of n."""
    axis = surface.normal(p)
    across = _across(axis, azimuth)
    low, high, n = 0.0, math.pi, axis
    for _ in range(HALVINGS):
        beta = 0.5 * (low + high)
        n = math.cos(beta) * axis + math.sin(beta) * across
        if float(n @ p) > surface.radius * math.hypot(n[0], n[1]) + surface.tube_radius:
            low = beta
        else:
            high = beta
    ring = np.array([n[0], n[1], 0.0]) / max(math.hypot(n[0], n[1]), 1e-12)
    return np.asarray(surface.radius * ring + surface.tube_radius * n)


def _hull_horizon(surface: HullSurface, p: Vector3, x: Vector3) -> Vector3:
    """Newton's method for the angle at which the least level along the ray is zero, from x's."""
    axis = surface.centre - p
    reach = float(np.linalg.norm(axis)) + 2.0 * surface.size
    axis = axis / np.linalg.norm(axis)
    ahead = float((x - p) @ axis)
    across = x - p - ahead * axis
    off = float(np.linalg.norm(across))
    across, angle, low, high = across / off, math.atan2(off, ahead), 0.0, math.pi
    for _ in range(40):
        ray = reach * (math.cos(angle) * axis + math.sin(angle) * across)
        share, least = minimum(partial(_level, surface, p, ray), 0.0, 1.0)
        x = p + share * ray
        if abs(least) < 1e-10 * surface.size:
            break
        low, high = (angle, high) if least < 0.0 else (low, angle)
        turned = share * reach * (math.cos(angle) * across - math.sin(angle) * axis)
        angle -= least / float(surface.gradient(x) @ turned)
        if not low < angle < high:
            angle = 0.5 * (low + high)
    return x


def _level(surface: Surface, start: Vector3, delta: Vector3, share: float) -> float:
    return surface.cover(start + share * delta)
