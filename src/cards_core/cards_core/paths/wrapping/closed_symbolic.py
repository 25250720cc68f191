"""The closed forms of sphere, cylinder and pulley as CasADi expressions, without branches.

The same formulas as in `sphere`, `cylinder`, `pulley` and `circle`, where they are explained.
Both sides of every selection are evaluated and differentiated, so every root and every
denominator has a floor; a floor changes a length by less than 1e-12 of the radius.
"""

from __future__ import annotations

import math

import casadi as ca

from cards_core.codegen.expressions import constant
from cards_core.codegen.kernel import Expr
from cards_core.paths.wrapping.closed_forms import (
    CLEAR_RANGE,
    PLANE_TOLERANCE,
    RIM_STEPS,
    RIM_TOLERANCE,
    SWIVEL_TOLERANCE,
    TOUCH_TOLERANCE,
    plane_hint,
    swivel_rest,
)
from cards_core.typing import Vector3

ContactExpr = tuple[Expr, Expr, Expr, Expr]
"""Start (3), end (3), arc length and turning angle; see `contact.Contact`."""

_TINY = 1e-60
"""Floor of squares under a root or in a denominator."""

_SHORT = 1e-13
"""Floor of a straight piece, relative to the radius."""


def sphere_expr(
    p: Expr, q: Expr, radius: float, side: Vector3 | None = None, *, inside: bool = False
) -> ContactExpr:
    """Return the contact with a sphere; arguments as `sphere.sphere_contact`."""
    if inside:
        return _ring_expr(p, q, radius)
    p_p, q_q, p_q = ca.dot(p, p), ca.dot(q, q), ca.dot(p, q)
    nearest = _nearest(p_p, p_q, q_q)
    axis = ca.cross(p, q)
    square = ca.dot(axis, axis)
    angle = ca.atan2(_root(square), p_q)
    in_line = square <= PLANE_TOLERANCE**2 * p_p * q_q
    axis += _only(in_line, ca.cross(p, constant(plane_hint(side))))
    scale = 1.0 / _root(ca.dot(axis, axis))
    if side is not None:
        p_s, q_s = ca.dot(p, constant(side)), ca.dot(q, constant(side))
        # signs of (p x s) . (p x q) and (q x s) . (p x q)
        longer_arc = ca.logic_and(p_p * q_s < p_q * p_s, p_q * q_s > q_q * p_s)
        longer_arc = ca.logic_and(longer_arc, _not_same_ray(in_line, p_q))
        angle = ca.fabs(_only(longer_arc, 2.0 * math.pi) - angle)
        scale = ca.if_else(longer_arc > in_line, -scale, scale)
    first, last = _End(p_p, radius), _End(q_q, radius)
    arc = angle - first.lean - last.lean
    touch = _touch(arc, p_p, q_q, radius)
    arc, scale = _only(touch, arc), _only(touch, scale)
    p_clear, q_clear = _clear(touch, nearest)
    start = (p_clear + _only(touch, first.along)) * p + q_clear * q
    end = p_clear * p + (q_clear + _only(touch, last.along)) * q
    start += (first.across * scale) * ca.cross(axis, p)
    end -= (last.across * scale) * ca.cross(axis, q)
    return start, end, radius * arc, arc


def cylinder_expr(
    p: Expr,
    q: Expr,
    radius: float,
    length: float = math.inf,
    side: Vector3 | None = None,
    *,
    inside: bool = False,
) -> ContactExpr:
    """Return the contact with a cylinder; arguments as `cylinder.cylinder_contact`."""
    if inside:
        return _bore_expr(p, q, radius, length)
    (px, py, pz), (qx, qy, qz) = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    p_p, q_q = px * px + py * py, qx * qx + qy * qy
    p_q, cross = px * qx + py * qy, px * qy - py * qx
    nearest = _nearest(p_p, p_q, q_q)
    angle = ca.atan2(_root(cross * cross), p_q)
    backward = cross < 0.0
    if side is not None:
        sx, sy = float(side[0]), float(side[1])
        before, after = px * sy - py * sx, qx * sy - qy * sx
        in_line = cross * cross <= PLANE_TOLERANCE**2 * p_p * q_q
        apart = ca.logic_and(before * after < 0.0, _not_same_ray(in_line, p_q))
        longer_arc = ca.logic_and(apart, before * cross < 0.0)
        angle = ca.fabs(_only(longer_arc, 2.0 * math.pi) - angle)
        backward = ca.if_else(apart, before, cross) < 0.0
    first, last = _End(p_p, radius), _End(q_q, radius)
    arc = angle - first.lean - last.lean
    around = radius * ca.fmax(arc, 0.0)
    slope = (qz - pz) / (first.straight + around + last.straight)
    start_z, end_z = pz + slope * first.straight, qz - slope * last.straight
    touch = _touch(arc, p_p, q_q, radius)
    if math.isfinite(length):
        touch = ca.logic_and(touch, ca.fabs(start_z + end_z) <= length)
    sense = _only(touch, 1.0 - 2.0 * backward)
    k, h = sense * first.across, sense * last.across
    p_clear, q_clear = _clear(touch, nearest)
    p_start, q_end = p_clear + _only(touch, first.along), q_clear + _only(touch, last.along)
    z = p_clear * pz + q_clear * qz
    start = ca.vertcat(
        p_start * px + q_clear * qx - k * py,
        p_start * py + q_clear * qy + k * px,
        z + _only(touch, start_z),
    )
    end = ca.vertcat(
        p_clear * px + q_end * qx + h * qy,
        p_clear * py + q_end * qy - h * qx,
        z + _only(touch, end_z),
    )
    stretch = ca.sqrt(1.0 + slope * slope)
    return start, end, _only(touch, around * stretch), _only(touch, arc / stretch)


def _bore_expr(p: Expr, q: Expr, radius: float, length: float) -> ContactExpr:
    """Path through a cylinder's bore; see `circle.bend`."""
    (px, py, pz), (qx, qy, qz) = (p[0], p[1], p[2]), (q[0], q[1], q[2])
    p_p, q_q = px * px + py * py, qx * qx + qy * qy
    p_q, cross = px * qx + py * qy, px * qy - py * qx
    angle = ca.atan2(_root(cross * cross), p_q)
    rim = _Rim(p_p, q_q, angle, radius)
    touch, across, rise = rim.touch, rim.straight_p + rim.straight_q, qz - pz
    z = pz + rise * (rim.straight_p / across)
    if math.isfinite(length):
        touch = ca.logic_and(touch, ca.fabs(z) <= 0.5 * length)
    turning = 2.0 * ca.atan2(across * rim.cosine, _root((across * rim.sine) ** 2 + rise * rise))
    scale = radius / _root(p_p)
    x_weight = scale * ca.cos(rim.position)
    y_weight = ca.if_else(cross < 0.0, -scale, scale) * ca.sin(rim.position)
    at = ca.vertcat(x_weight * px - y_weight * py, x_weight * py + y_weight * px, z)
    p_clear, q_clear = _clear(touch, _nearest(p_p, p_q, q_q))
    point = p_clear * p + q_clear * q + _only(touch, at)
    return point, point, ca.SX(0.0), _only(touch, turning)


def _ring_expr(p: Expr, q: Expr, radius: float) -> ContactExpr:
    """Path through a sphere; see `circle.bend`."""
    p_p, q_q, p_q = ca.dot(p, p), ca.dot(q, q), ca.dot(p, q)
    axis = ca.cross(p, q)
    sine = _root(ca.dot(axis, axis))
    rim = _Rim(p_p, q_q, ca.atan2(sine, p_q), radius)
    scale = _only(rim.touch, radius / _root(p_p))
    p_clear, q_clear = _clear(rim.touch, _nearest(p_p, p_q, q_q))
    point = (p_clear + scale * ca.cos(rim.position)) * p + q_clear * q
    point += (scale * ca.sin(rim.position) / sine) * ca.cross(axis, p)
    turning = 2.0 * ca.atan2(rim.cosine, rim.sine)
    return point, point, ca.SX(0.0), _only(rim.touch, turning)


class _Rim:
    """Where a path bends at a circle that it has to pass through: see `circle.Bend`."""

    def __init__(self, p_p: Expr, q_q: Expr, angle: Expr, radius: float) -> None:
        first, last = _End(p_p, radius), _End(q_q, radius)
        reach = first.lean + last.lean
        touch = ca.logic_and(angle < reach, ca.fmin(p_p, q_q) > (1.0 + RIM_TOLERANCE) * radius**2)
        # without contact the iteration gets numbers that do it no harm
        angle = _only(touch, angle)
        pp, qq = (ca.if_else(touch, end.square, radius**2) for end in (first, last))
        offset = 0.5 * radius * (1.0 / ca.sqrt(pp + radius**2) + 1.0 / ca.sqrt(qq + radius**2))
        offset += (angle / reach) ** 2 * (ca.cos(0.5 * reach) - offset)
        i = ca.atan2(ca.sin(0.5 * angle), ca.cos(0.5 * angle) - offset)
        for step in range(RIM_STEPS + 1):
            i = ca.fmin(ca.fmax(i, 0.0), 0.5 * math.pi)
            s, c = ca.sin(i), ca.cos(i)
            depth = radius * c
            w_p, w_q = ca.sqrt(pp + depth * depth), ca.sqrt(qq + depth * depth)
            d_p, d_q = pp / (w_p + depth), qq / (w_q + depth)
            position = ca.atan2(d_p * s, radius + d_p * c)
            if step == RIM_STEPS:
                break
            excess = position + ca.atan2(d_q * s, radius + d_q * c) - angle
            slope = d_p / w_p + d_q / w_q
            curvature = radius * s * (pp / (w_p * w_p * w_p) + qq / (w_q * w_q * w_q))
            i -= excess * slope / (slope * slope - 0.5 * excess * curvature)
        self.touch, self.sine, self.cosine, self.position = touch, s, c, position
        self.straight_p, self.straight_q = d_p, d_q


def pulley_expr(position: Vector3, axis: Vector3, radius: float, target: Expr) -> ContactExpr:
    """Return the contact with a caster pulley; arguments as `pulley.pulley_contact`."""
    v = constant(axis)
    b = target - constant(position)
    y = ca.dot(b, v)
    across = b - y * v
    square = ca.dot(across, across)
    distance = _root(square)
    swivels = square > (SWIVEL_TOLERANCE * radius) ** 2
    e = across * _only(swivels, 1.0 / distance)
    e += _only(ca.logic_not(swivels), constant(swivel_rest(axis)))
    x = distance - radius
    end = _End(x * x + y * y, radius)
    # the middle of the wheel lies in no direction
    x += _only(ca.logic_not(x * x + y * y > _TINY), radius)
    arc = math.pi - ca.atan2(y, x) - end.lean
    leave = constant(position) + radius * ((1.0 - ca.cos(arc)) * e + ca.sin(arc) * v)
    return constant(position), leave, radius * arc, arc


class _End:
    """What one end of a path contributes: see `circle.Turn`."""

    def __init__(self, square: Expr, radius: float) -> None:
        self.square: Expr = ca.fmax(square - radius**2, (_SHORT * radius) ** 2)
        self.straight: Expr = ca.sqrt(self.square)
        self.lean: Expr = ca.atan2(self.straight, radius)
        ratio = radius / (self.square + radius**2)
        self.along: Expr = radius * ratio
        self.across: Expr = self.straight * ratio


def _root(square: Expr) -> Expr:
    return ca.sqrt(ca.fmax(square, _TINY))


def _only(condition: Expr, value: Expr | float) -> Expr:
    """Return the value where the condition holds, zero elsewhere."""
    return ca.if_else(condition, value, 0.0)


def _nearest(p_p: Expr, p_q: Expr, q_q: Expr) -> Expr:
    """Where on the line from p to q the point nearest to the origin lies; `circle.nearest`."""
    along = p_p - p_q
    return ca.fmin(ca.fmax(along / ca.fmax(along + (q_q - p_q), _TINY), 0.0), 1.0)


def _not_same_ray(in_line: Expr, p_q: Expr) -> Expr:
    return ca.logic_not(ca.logic_and(in_line, p_q > 0.0))


def _touch(arc: Expr, p_p: Expr, q_q: Expr, radius: float) -> Expr:
    floor = radius**2 * (1.0 - TOUCH_TOLERANCE)
    return ca.logic_and(arc > 0.0, ca.fmin(p_p, q_q) >= floor)


def _clear(touch: Expr, nearest: Expr) -> tuple[Expr, Expr]:
    """Weights of p and q in the point of a path that does not touch; zero where it does."""
    fraction = ca.fmin(ca.fmax(nearest, CLEAR_RANGE[0]), CLEAR_RANGE[1])
    free = ca.logic_not(touch)
    return _only(free, 1.0 - fraction), _only(free, fraction)
