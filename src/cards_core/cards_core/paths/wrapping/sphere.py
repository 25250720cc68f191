"""Shortest path over a sphere, in closed form."""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.wrapping.circle import PLANE_TOLERANCE, nearest, turn
from cards_core.paths.wrapping.contact import Contact, clear
from cards_core.typing import Vector3

_HINT = (0.6180339887498949, 0.7861513777574233, 0.0)
"""Through which the plane of a path goes that has no plane of its own."""

_HINT_SHARE = 1e-6
"""How much of it a side point gets, for the case that the side point has no plane either."""

_Triple = tuple[float, float, float]


def plane_hint(side: Vector3 | None) -> _Triple:
    """Return the point that spans the plane of a path whose ends are in line with the centre."""
    if side is None:
        return _HINT
    x, y, z = side.tolist()
    share = _HINT_SHARE * math.sqrt(x * x + y * y + z * z) or 1.0
    return x + share * _HINT[0], y + share * _HINT[1], z + share * _HINT[2]


def sphere_contact(p: Vector3, q: Vector3, radius: float, side: Vector3 | None = None) -> Contact:
    """Return where the path from p to q touches a sphere centred at the origin.

    The path lies in the plane of p, q and the centre; see `cards_core.paths.wrapping.circle`
    for the formulas and for what ``side`` means. Where p, q and the centre are in line, the plane
    goes through the side point, without one through a fixed direction. A path with an end inside
    the sphere does not touch it.

    Args:
        p: Start of the path, shape (3,), [m].
        q: End of the path, shape (3,), [m].
        radius: [m].
        side: Point on whose side of the centre the path passes, shape (3,), [m]; None for the
            shorter way.
    """
    px, py, pz = p.tolist()
    qx, qy, qz = q.tolist()
    p_p = px * px + py * py + pz * pz
    q_q = qx * qx + qy * qy + qz * qz
    p_q = px * qx + py * qy + pz * qz
    fraction = nearest(p_p, p_q, q_q)
    axis = _cross((px, py, pz), (qx, qy, qz))
    sine = math.sqrt(_square(axis))
    in_line = sine * sine <= PLANE_TOLERANCE**2 * p_p * q_q
    longer_arc = False
    if side is not None:
        sx, sy, sz = side.tolist()
        p_s = px * sx + py * sy + pz * sz
        q_s = qx * sx + qy * sy + qz * sz
        longer_arc = takes_longer_arc(p_p, q_q, p_q, p_s, q_s, in_line=in_line)
    angle = math.atan2(sine, p_q)
    path = turn(p_p, q_q, 2.0 * math.pi - angle if longer_arc else angle, radius)
    if path is None:
        return clear(p, q, fraction)
    if in_line:
        other = _cross((px, py, pz), plane_hint(side))
        axis = axis[0] + other[0], axis[1] + other[1], axis[2] + other[2]
        sine = math.sqrt(_square(axis)) or 1.0
    elif longer_arc:
        sine = -sine
    before, after = path.across_p / sine, path.across_q / sine
    nx, ny, nz = _cross(axis, (px, py, pz))
    mx, my, mz = _cross(axis, (qx, qy, qz))
    k, h = path.along_p, path.along_q
    start = np.array([k * px + before * nx, k * py + before * ny, k * pz + before * nz])
    end = np.array([h * qx - after * mx, h * qy - after * my, h * qz - after * mz])
    tx, ty, tz = _cross(axis, (start[0], start[1], start[2]))
    tangent = np.array([tx, ty, tz]) / (sine * radius)
    return Contact(start, end, radius * path.angle, path.angle, True, tangent)


def takes_longer_arc(
    p_p: float, q_q: float, p_q: float, p_s: float, q_s: float, *, in_line: bool
) -> bool:
    """Return whether the straight line crosses the half-line that a side point closes.

    Args:
        p_p: ``p . p``, [m^2]; and so on for the others, with s the side point.
        q_q: See p_p.
        p_q: See p_p.
        p_s: See p_p.
        q_s: See p_p.
        in_line: Whether p, q and the centre are on one line.
    """
    # signs of (p x s) . (p x q) and (q x s) . (p x q)
    crosses = p_p * q_s < p_q * p_s and p_q * q_s > q_q * p_s
    return crosses and not (in_line and p_q > 0.0)


def _cross(a: _Triple, b: _Triple) -> _Triple:
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def _square(a: _Triple) -> float:
    return a[0] * a[0] + a[1] * a[1] + a[2] * a[2]
