"""Shortest path over a cylinder, or through its bore, in closed form."""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.wrapping.circle import PLANE_TOLERANCE, bend, nearest, turn
from cards_core.paths.wrapping.contact import Contact, clear
from cards_core.typing import Vector3


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

    Across the axis the path is the one over a circle, see `cards_core.paths.wrapping.circle`,
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
