"""Tangents and arcs of a circle: what sphere, cylinder and pulley have in common.

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
from typing import NamedTuple

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
