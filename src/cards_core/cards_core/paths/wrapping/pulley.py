"""Caster pulley at the origin of a muscle."""

from __future__ import annotations

import math

import numpy as np

from cards_core.paths.wrapping.contact import Contact
from cards_core.typing import Vector3

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
