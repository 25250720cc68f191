"""Shortest paths over a sphere, a cylinder, through its bore and over a pulley, in closed form.

Tangents and arcs of a circle are what sphere and cylinder have in common.

A path from p over a circle of radius r about the origin to q, with P = |p|, Q = |q|:

    straight pieces   a_p = sqrt(P^2 - r^2),   a_q = sqrt(Q^2 - r^2)
    arc               theta = phi - atan2(a_p, r) - atan2(a_q, r)
    tangent points    t_p = (r/P)^2 p + (r a_p / P^2) n x p
                      t_q = (r/Q)^2 q - (r a_q / Q^2) n x q

with phi the angle from p to q and n the unit normal about which the path turns. It touches if
theta > 0.

Which way round. Without a side point the path takes the shorter one, phi <= pi. With a side point
s the half-line from the centre away from s is closed as well: where the straight line from p to q
crosses it the path takes the other way round, 2 pi - phi, whether the straight line cuts the
circle or not. Length and direction are then continuous everywhere but where an end of the path
crosses that half-line. MuJoCo 4 has the same rule for its side sites.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cards_core.typing import Array, Vector3

CLEAR_RANGE = (0.05, 0.95)
"""Where on the straight line between its neighbours the point of a surface that is not touched may
lie, as a fraction: away from the ends, because a piece of zero length has no direction."""


@dataclass(frozen=True, eq=False)
class Contact:
    """The piece of a path that lies on a surface.

    Without contact ``start`` equals ``end``, a point on the straight line between the neighbours.

    Attributes:
        start, end: Tangent points in the order of the path, shape (3,), [m].
        length: Of the arc between them, [m].
        angle: By which the path's direction turns on the surface, [rad]: what capstan friction
            depends on.
        wrapped: Whether the path touches.
        tangent: Direction of the path at the start, unit vector, shape (3,), for drawing arcs of
            half a turn and more; closed forms of spheres and cylinders give it.
    """

    start: Vector3
    end: Vector3
    length: float = 0.0
    angle: float = 0.0
    wrapped: bool = False
    tangent: Vector3 | None = None

    def row(self, rotation: Array, translation: Vector3) -> Array:
        """Return start, end, length and angle in another frame, shape (8,)."""
        out = np.empty(8)
        out[:3] = rotation @ self.start + translation
        out[3:6] = rotation @ self.end + translation
        out[6], out[7] = self.length, self.angle
        return out


def clear(p: Vector3, q: Vector3, fraction: float) -> Contact:
    """Return the contact of a path that passes a surface without touching it.

    Args:
        p: Point before, [m].
        q: Point after, [m].
        fraction: Where on the line from p (0) to q (1); clamped to `CLEAR_RANGE`.
    """
    t = min(max(fraction, CLEAR_RANGE[0]), CLEAR_RANGE[1])
    point = p + t * (q - p)
    return Contact(point, point)


TOUCH_TOLERANCE = 1e-9
"""A path end that lies deeper in the surface than this, relative to its radius squared, is inside
and does not wrap; one that lies less deep lies on it (the rounding of a point on the surface)."""

PLANE_TOLERANCE = 1e-9
"""Sine of the angle between p and q below which they are in line with the centre and have no plane
of their own."""

RIM_TOLERANCE = 1e-13
"""Path ends nearer to a rim than this, relative to its radius squared, lie on it."""

RIM_STEPS = 2
"""Halley steps for a path over a rim: from the start value used, at most 1e-10 rad remain."""


class Turn(NamedTuple):
    """A path around a circle.

    Attributes:
        angle: Of the arc, [rad].
        straight_p, straight_q: Lengths of the straight pieces, [m].
        along_p, across_p: ``t_p = along_p * p + across_p * (n x p)``.
        along_q, across_q: ``t_q = along_q * q - across_q * (n x q)``.
    """

    angle: float
    straight_p: float
    straight_q: float
    along_p: float
    across_p: float
    along_q: float
    across_q: float


def nearest(p_p: float, p_q: float, q_q: float) -> float:
    """Return where on the line from p (0) to q (1) the point nearest to the origin lies.

    Args:
        p_p: Square of p, [m^2].
        p_q: Scalar product, [m^2].
        q_q: Square of q, [m^2].
    """
    along = p_p - p_q
    square = along + (q_q - p_q)
    return min(max(0.0, along / square), 1.0) if square > 0.0 else 0.0


def turn(p_p: float, q_q: float, angle: float, radius: float) -> Turn | None:
    """Return the path around a circle, None where it does not touch or an end lies inside.

    Args:
        p_p: Squared distance of p from the centre, [m^2].
        q_q: The same of q, [m^2].
        angle: From p to q in the sense of the path, 0 to 2 pi, [rad].
        radius: [m].
    """
    square = radius * radius
    floor = square * (1.0 - TOUCH_TOLERANCE)
    if not (p_p > 0.0 and q_q > 0.0 and p_p >= floor and q_q >= floor):
        return None
    a_p, a_q = math.sqrt(max(p_p - square, 0.0)), math.sqrt(max(q_q - square, 0.0))
    arc = angle - math.atan2(a_p, radius) - math.atan2(a_q, radius)
    if not arc > 0.0:
        return None
    return Turn(
        arc,
        a_p,
        a_q,
        min(square / p_p, 1.0),
        radius * a_p / p_p,
        min(square / q_q, 1.0),
        radius * a_q / q_q,
    )


class Bend(NamedTuple):
    """A path over the rim of a hole.

    Attributes:
        incidence: Angle between the straight pieces and the normal, [rad]; the path turns by
            ``pi - 2 incidence``.
        straight_p, straight_q: Lengths of the straight pieces, [m].
        position: Angle from p to the point on the rim, [rad].
    """

    incidence: float
    straight_p: float
    straight_q: float
    position: float


def bend(p_p: float, q_q: float, angle: float, radius: float) -> Bend | None:
    """Return where a path that has to pass through a circle touches its rim, if it does.

    Two points outside whose straight line misses the circle: the path bends at the point of the
    circle that makes it shortest, where both pieces make the same angle i with the normal. With
    ``w(i) = sqrt(a^2 + r^2 cos(i)^2)`` and ``d(i) = a^2 / (w + r cos i)``, the length of a piece,
    its end lies ``tau(i) = atan2(d sin i, r + d cos i)`` away around the centre, and i solves
    ``tau_p(i) + tau_q(i) = angle``, by Halley's method with ``tau' = d / w`` and
    ``tau'' = r a^2 sin i / w^3``. The start value is exact for p and q equally far away, for
    straight lines that all but touch, and nearly so for small angles.

    Args:
        p_p: Squared distance of p from the centre, [m^2].
        q_q: The same of q, [m^2].
        angle: Between p and q, 0 to pi, [rad].
        radius: [m].
    """
    square = radius * radius
    pp, qq = p_p - square, q_q - square
    if not min(pp, qq) > RIM_TOLERANCE * square:
        return None
    reach = math.atan2(math.sqrt(pp), radius) + math.atan2(math.sqrt(qq), radius)
    if not angle < reach:
        return None
    offset = 0.5 * (radius / math.sqrt(p_p) + radius / math.sqrt(q_q))
    offset += (angle / reach) ** 2 * (math.cos(0.5 * reach) - offset)
    i = math.atan2(math.sin(0.5 * angle), math.cos(0.5 * angle) - offset)
    for step in range(RIM_STEPS + 1):
        i = min(max(i, 0.0), 0.5 * math.pi)
        s, c = math.sin(i), math.cos(i)
        depth = radius * c
        w_p, w_q = math.sqrt(pp + depth * depth), math.sqrt(qq + depth * depth)
        d_p, d_q = pp / (w_p + depth), qq / (w_q + depth)
        position = math.atan2(d_p * s, radius + d_p * c)
        if step == RIM_STEPS:
            break
        excess = position + math.atan2(d_q * s, radius + d_q * c) - angle
        slope = d_p / w_p + d_q / w_q
        curvature = radius * s * (pp / (w_p * w_p * w_p) + qq / (w_q * w_q * w_q))
        i -= excess * slope / (slope * slope - 0.5 * excess * curvature)
    return Bend(i, d_p, d_q, position)


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


def sphere_contact(
    p: Vector3,
    q: Vector3,
    radius: float,
    side: Vector3 | None = None,
    *,
    inside: bool = False,
) -> Contact:
    """Return where the path from p to q touches a sphere centred at the origin.

    The path lies in the plane of p, q and the centre; see the module
    for the formulas and for what ``side`` means. Where p, q and the centre are in line, the plane
    goes through the side point, without one through a fixed direction. A path with an end inside
    the sphere does not touch it.

    With ``inside`` the path has to pass through the sphere: where its straight line misses it, it
    bends in one point of the circle in that plane, see `bend`, as in MuJoCo.

    Args:
        p: Start of the path, shape (3,), [m].
        q: End of the path, shape (3,), [m].
        radius: [m].
        side: Point on whose side of the centre the path passes, shape (3,), [m]; None for the
            shorter way; without effect with ``inside``.
        inside: Whether the path runs through the sphere.
    """
    px, py, pz = p.tolist()
    qx, qy, qz = q.tolist()
    p_p = px * px + py * py + pz * pz
    q_q = qx * qx + qy * qy + qz * qz
    p_q = px * qx + py * qy + pz * qz
    fraction = nearest(p_p, p_q, q_q)
    axis = _cross((px, py, pz), (qx, qy, qz))
    sine = math.sqrt(_square(axis))
    if inside:
        rim = bend(p_p, q_q, math.atan2(sine, p_q), radius)
        if rim is None:
            return clear(p, q, fraction)
        scale = radius / math.sqrt(p_p)
        c = scale * math.cos(rim.position)
        s = scale * math.sin(rim.position) / (sine or 1.0)
        nx, ny, nz = _cross(axis, (px, py, pz))
        point = np.array([c * px + s * nx, c * py + s * ny, c * pz + s * nz])
        return Contact(point, point, 0.0, math.pi - 2.0 * rim.incidence, True)
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


def cylinder_contact(
    p: Vector3,
    q: Vector3,
    radius: float,
    length: float = math.inf,
    side: Vector3 | None = None,
    *,
    inside: bool = False,
) -> Contact:
    """Return where the path from p to q touches a cylinder around the z axis.

    Across the axis the path is the one over a circle, see the module,
    of length ``l = a_p + r theta + a_q``. On the developed surface it is straight: z grows in
    proportion to the length across, the arc is a helix, and

        L = sqrt(l^2 + (q_z - p_z)^2),   arc = r theta L / l,   turning angle = theta l / L

    (arc length times the helix' curvature ``(l / L)^2 / r``).

    A path with an end inside the radius does not touch from outside. With ``inside`` the path has
    to pass through the bore: it touches if its straight line misses the circle, in one point of
    the rim where it bends; the bore is then a ring without length, as in MuJoCo.

    A cylinder of finite length counts only while the middle of the arc lies within it. Where the
    path slips off an end, its length jumps, as that of a real cable does; make the cylinder longer
    than its path wanders, or leave the length out.

    Args:
        p: Start of the path, shape (3,), [m].
        q: End of the path, shape (3,), [m].
        radius: [m].
        length: Along z, centred, [m]; may be infinite.
        side: Point on whose side of the axis the path passes, shape (3,), [m]; None for the
            shorter way; without effect with ``inside``.
        inside: Whether the path runs through the bore.
    """
    px, py, pz = p.tolist()
    qx, qy, qz = q.tolist()
    p_p, q_q = px * px + py * py, qx * qx + qy * qy
    p_q, cross = px * qx + py * qy, px * qy - py * qx
    fraction = nearest(p_p, p_q, q_q)
    angle = math.atan2(abs(cross), p_q)
    sense = -1.0 if cross < 0.0 else 1.0
    rise = qz - pz
    if inside:
        rim = bend(p_p, q_q, angle, radius)
        if rim is None:
            return clear(p, q, fraction)
        across = rim.straight_p + rim.straight_q
        z = pz + rise * rim.straight_p / across
        if abs(z) > 0.5 * length:
            return clear(p, q, fraction)
        scale = radius / math.sqrt(p_p)
        c, s = scale * math.cos(rim.position), sense * scale * math.sin(rim.position)
        point = np.array([c * px - s * py, c * py + s * px, z])
        flat, steep = across * math.cos(rim.incidence), across * math.sin(rim.incidence)
        return Contact(point, point, 0.0, 2.0 * math.atan2(flat, math.hypot(steep, rise)), True)
    if side is not None:
        sx, sy, _ = side.tolist()
        before, after = px * sy - py * sx, qx * sy - qy * sx
        same_ray = p_q > 0.0 and cross * cross <= PLANE_TOLERANCE**2 * p_p * q_q
        if before * after < 0.0 and not same_ray:
            # towards the side; the sign of a vanishing cross product would be left to rounding
            sense = -1.0 if before < 0.0 else 1.0
            if sense * cross < 0.0:
                angle = 2.0 * math.pi - angle
    path = turn(p_p, q_q, angle, radius)
    if path is None:
        return clear(p, q, fraction)
    around = radius * path.angle
    across = path.straight_p + around + path.straight_q
    slope = rise / across
    start_z, end_z = pz + slope * path.straight_p, qz - slope * path.straight_q
    if abs(start_z + end_z) > length:
        return clear(p, q, fraction)
    k, m = path.along_p, sense * path.across_p
    h, n = path.along_q, sense * path.across_q
    start = np.array([k * px - m * py, k * py + m * px, start_z])
    end = np.array([h * qx + n * qy, h * qy - n * qx, end_z])
    stretch = math.sqrt(1.0 + slope * slope)
    scale = sense / (radius * stretch)
    tangent = np.array([-scale * start[1], scale * start[0], slope / stretch])
    return Contact(start, end, around * stretch, path.angle / stretch, True, tangent)


SWIVEL_TOLERANCE = 1e-9
"""Distance of the target from the incoming cable, relative to the wheel's radius, below which the
wheel has no direction to swivel to."""


def pulley_contact(position: Vector3, axis: Vector3, radius: float, target: Vector3) -> Contact:
    """Return the arc of a cable on a wheel that swivels about the incoming cable.

    The cable arrives along ``axis``, meets the wheel at ``position`` and leaves it tangent towards
    ``target``. With b = target - position, e the unit vector of the part of b across the axis, the
    wheel's centre is ``C = position + R e``. In the plane of e and the axis let
    ``x = b . e - R``, ``y = b . axis``, the target seen from C; then

        arc = pi - atan2(y, x) - acos(R / sqrt(x^2 + y^2)),   cos and sin of pi - arc lead to end

    and the derivative of arc length plus distance to the target is the unit vector from ``end`` to
    ``target``, because the point where the cable arrives does not move. CASPR's
    ``base_rotating_pulley`` is the same up to arcs of half a turn; it goes no further.

    A target in line with the axis has no plane: the wheel then keeps a fixed direction. A target
    inside the wheel (nearer to C than R) is met by a radial piece.

    Args:
        position: Where the cable meets the wheel, shape (3,), [m].
        axis: Unit vector in which it arrives, shape (3,).
        radius: Of the wheel, R, [m].
        target: Next point of the path, shape (3,), [m].
    """
    b = target - position
    y = float(b @ axis)
    across = b - y * axis
    distance = math.sqrt(float(across @ across))
    e = across / distance if distance > SWIVEL_TOLERANCE * radius else swivel_rest(axis)
    x = distance - radius
    span = math.hypot(x, y)
    lean = math.atan2(math.sqrt(max(span * span - radius * radius, 0.0)), radius)
    arc = math.pi - math.atan2(y, x) - lean
    end = position + radius * ((1.0 - math.cos(arc)) * e + math.sin(arc) * axis)
    return Contact(position, end, radius * arc, arc, True)


def swivel_rest(axis: Vector3) -> Vector3:
    """Return the unit vector across the axis that the wheel takes without a direction."""
    other = np.zeros(3)
    other[int(np.argmin(np.abs(axis)))] = 1.0
    across = other - float(other @ axis) * axis
    return across / math.sqrt(float(across @ across))
