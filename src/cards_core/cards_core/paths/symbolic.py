"""CasADi expressions of muscle paths; see `cards_core.muscles.engine` for the formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from cards_core.codegen.expressions import constant, direction
from cards_core.codegen.kernel import Expr, Kernel
from cards_core.paths.layout import FRICTION_MARGIN, ContactSpec, PathLayout
from cards_core.paths.wrapping.closed_symbolic import (
    cylinder_expr,
    pulley_expr,
    sphere_expr,
)
from cards_core.robot.elements import Cylinder, Pulley, Sphere, Wrap

Frames = Callable[[int], tuple[Expr, Expr]]
"""Rotation and position of a frame in the world; the world itself has index ``layout.frames``."""


@dataclass(frozen=True, eq=False)
class PathExpressions:
    """Points of all paths in frame coordinates and in the world, arcs of all contacts."""

    local: list[Expr]
    points: list[Expr]
    arcs: list[Expr]
    angles: list[Expr]


def path_expressions(layout: PathLayout, frames: Frames, rows: Expr | None) -> PathExpressions:
    """Return the points of all paths, with closed forms written out.

    Args:
        layout: The flattened paths.
        frames: Poses of the frames.
        rows: Contacts without a closed form as `GeodesicPaths.solve` gives them, row after row.
    """
    poses = [frames(k) for k in range(layout.frames + 1)]
    local: list[Expr] = [constant(position) for position in layout.point_position]
    points = [
        _world(poses[frame], position)
        for frame, position in zip(layout.point_frame, local, strict=True)
    ]
    arcs: list[Expr] = []
    angles: list[Expr] = []
    geodesic = 0
    for contact in layout.contacts:
        if contact.closed:
            start, end, arc, angle = _closed(contact, poses[contact.frame], points)
            place = contact.placement
        else:
            assert rows is not None  # given wherever there are such contacts
            row = rows[8 * geodesic : 8 * geodesic + 8]
            start, end, arc, angle = row[:3], row[3:6], row[6], row[7]
            place = contact.offset
            geodesic += 1
        for k, point in ((contact.point, start), (contact.point + 1, end)):
            local[k] = constant(place.rotation) @ point + constant(place.translation)
            points[k] = _world(poses[contact.frame], local[k])
        arcs.append(arc)
        angles.append(angle)
    return PathExpressions(local, points, arcs, angles)


def _world(pose: tuple[Expr, Expr], local: Expr) -> Expr:
    return pose[1] + pose[0] @ local


def _closed(
    contact: ContactSpec, pose: tuple[Expr, Expr], points: list[Expr]
) -> tuple[Expr, Expr, Expr, Expr]:
    place = contact.placement
    rotation = pose[0] @ constant(place.rotation)
    origin = _world(pose, constant(place.translation))
    q = rotation.T @ (points[contact.after] - origin)
    element = contact.element
    if isinstance(element, Pulley):
        found = pulley_expr(element.position, element.axis, element.radius, q)
    else:
        p = rotation.T @ (points[contact.before] - origin)
        assert contact.surface is not None
        geometry = contact.surface.geometry
        if isinstance(geometry, Sphere):
            found = sphere_expr(p, q, geometry.radius, contact.side, inside=element.inside)
        else:
            assert isinstance(geometry, Cylinder)  # nothing else has a closed form
            found = cylinder_expr(
                p, q, geometry.radius, geometry.length, contact.side, inside=element.inside
            )
    start, end, arc, angle = found
    return start, end, arc, angle


def geodesic_input(layout: PathLayout) -> Expr:
    """Return the symbol of the contacts without a closed form, or None if there are none."""
    count = len(layout.geodesics)
    return ca.SX.sym("contacts", 8 * count) if count else None


def muscle_lengths(layout: PathLayout, paths: PathExpressions, pieces: list[Expr]) -> list[Expr]:
    """Return the length of every muscle from those of its straight pieces and arcs.

    Args:
        layout: Paths of the m muscles.
        paths: Expressions of the paths, with the lengths of their arcs, [m].
        pieces: Length of each straight piece, [m].

    Returns:
        m expressions, [m].
    """
    lengths = [ca.SX(0.0)] * (len(layout.bounds) - 1)
    for i, length in zip(layout.piece_muscle, pieces, strict=True):
        lengths[i] += length
    for contact, arc in zip(layout.contacts, paths.arcs, strict=True):
        lengths[contact.muscle] += arc
    return lengths


def _tension_factors(
    layout: PathLayout,
    paths: PathExpressions,
    units: list[Expr],
    rates: list[Expr],
    stiffness: Expr,
) -> list[Expr]:
    """Capstan factors of the straight pieces; see `cards_core.paths.numeric`.

    Args:
        layout: The flattened paths.
        paths: Their points and contacts.
        units: Direction of every straight piece.
        rates: Its rate.
        stiffness: Tension times mobility of every muscle, (m, 1).
    """
    factors: list[Expr] = [ca.SX(1.0)] * len(rates)
    contacts = {
        c.point: (c.element.friction, paths.angles[i])
        for i, c in enumerate(layout.contacts)
        if isinstance(c.element, Wrap)
    }
    for i in range(len(layout.bounds) - 1):
        mine = np.flatnonzero(layout.piece_muscle == i).tolist()
        rub: list[Expr] = []
        for before, after in pairwise(mine):
            corner = int(layout.start[before]) + 1
            coefficient, angle = contacts.get(corner, (float(layout.point_friction[corner]), None))
            if coefficient and angle is None:
                u, v = units[before], units[after]
                sine = ca.cross(u, v)
                angle = ca.atan2(ca.sqrt(ca.dot(sine, sine) + 1e-30), ca.dot(u, v))
            rub.append(coefficient * angle if coefficient else None)
        total = sum(share for share in rub if share is not None)
        smooth = ca.fmax(float(layout.friction_speed[i]), FRICTION_MARGIN * stiffness[i] * total)
        behind = ca.SX(0.0)
        sliding: dict[int, Expr] = {}
        for k in reversed(mine):
            sliding[k] = behind
            behind = behind + rates[k]
        exponent = ca.SX(0.0)
        for (before, after), share in zip(pairwise(mine), rub, strict=True):
            if share is not None:
                exponent = exponent + share * ca.tanh(sliding[before] / smooth)
            factors[after] = ca.exp(exponent)
    return factors


def muscle_kernels(layout: PathLayout) -> list[Kernel]:
    """Return the kernels ``muscles`` (everything) and ``motion`` (lengths and rates only)."""
    n, m = layout.frames, len(layout.bounds) - 1
    poses = ca.SX.sym("poses", 16 * n)
    twists = ca.SX.sym("twists", 6 * n)
    tensions = ca.SX.sym("tensions", m)
    rows = geodesic_input(layout)

    def frame(k: int) -> tuple[Expr, Expr]:
        if k == n:
            return ca.SX(ca.DM.eye(3)), ca.SX.zeros(3)
        matrix = ca.reshape(poses[16 * k : 16 * k + 16], 4, 4).T
        return matrix[:3, :3], matrix[:3, 3]

    paths = path_expressions(layout, frame, rows)
    arms: list[Expr] = []
    velocities: list[Expr] = []
    for k, point in zip(layout.point_frame, paths.points, strict=True):
        if k == n:
            arms.append(point)
            velocities.append(ca.SX.zeros(3))
            continue
        arm = frame(k)[0] @ paths.local[len(arms)]
        twist = twists[6 * k : 6 * k + 6]
        arms.append(arm)
        velocities.append(twist[:3] + ca.cross(twist[3:], arm))
    pieces, units, rates = [], [], []
    for a in layout.start:
        length, u = direction(paths.points[a + 1] - paths.points[a])
        pieces.append(length)
        units.append(u)
        rates.append(ca.dot(u, velocities[a + 1] - velocities[a]))
    lengths = muscle_lengths(layout, paths, pieces)
    muscle_rates = [ca.SX(0.0)] * m
    for i, rate in zip(layout.piece_muscle, rates, strict=True):
        muscle_rates[i] += rate
    factors = [ca.SX(1.0)] * len(units)
    told: tuple[Any, ...] = (("tensions", (m,), tensions),)
    if layout.friction:
        mobility = ca.SX.sym("mobility", m)
        told += (("mobility", (m,), mobility),)
        factors = _tension_factors(layout, paths, units, rates, tensions * mobility)
    forces = [ca.SX.zeros(3) for _ in paths.points]
    for a, i, u, factor in zip(layout.start, layout.piece_muscle, units, factors, strict=True):
        pull = tensions[i] * factor * u
        forces[a] += pull
        forces[a + 1] -= pull
    wrenches = [ca.SX.zeros(6) for _ in range(n + 1)]
    for k, arm, force in zip(layout.point_frame, arms, forces, strict=True):
        wrenches[k] += ca.vertcat(force, ca.cross(arm, force))
    state: tuple[Any, ...] = (("poses", (n, 4, 4), poses), ("twists", (n, 6), twists))
    if rows is not None:
        state += (("contacts", (len(layout.geodesics), 8), rows),)
    motion: tuple[Any, ...] = (
        ("lengths", (m,), ca.vertcat(*lengths)),
        ("rates", (m,), ca.vertcat(*muscle_rates)),
    )
    everything = (*motion, ("wrenches", (n + 1, 6), ca.vertcat(*wrenches)))
    return [
        Kernel("muscles", (*state, *told), everything),
        Kernel("motion", state, motion),
    ]
