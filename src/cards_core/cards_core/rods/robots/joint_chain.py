"""Composite joints: a joint at the plate made of one or several joints of the SDF.

SDFormat has no cylindrical and no planar joint. Chains of joints stand for them, recognised by
their axes: prismatic + revolute on one line, two prismatic + revolute normal to them; two
revolute joints that cross at a right angle are a universal joint, three that cross a spherical
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.rods.robots.robot import TipKind
from cards_core.typing import Matrix3, Vector3

PARALLEL = 1e-6
"""How far axes may be from one line or from a right angle: sine of the angle, or [m]."""


@dataclass(frozen=True, eq=False)
class Composite:
    """A joint made of one or several joints of the SDF.

    Attributes:
        kind: What it is.
        point: Its origin.
        axes: Its frame, shape (3, 3); z is the joint axis. Of a universal joint x is the axis
            fixed to the plate and y the axis fixed to the rod.
    """

    kind: TipKind
    point: Vector3
    axes: Matrix3


def composite(kinds: list[str], axes: list[tuple[Vector3, list[Vector3]]]) -> Composite | None:
    """Return the joint that joints in a row make; None if it is not a known one.

    Args:
        kinds: SDF kinds, from the plate on.
        axes: Point and axes of each, in one frame.
    """
    if not kinds:
        return Composite(TipKind.FIXED, np.zeros(3), np.eye(3))
    point = axes[0][0]
    if kinds == ["ball"]:
        return Composite(TipKind.SPHERICAL, point, np.eye(3))
    if kinds == ["universal"]:
        return _cardan(point, *axes[0][1])
    lines = [(p, a[0]) for p, a in axes if len(a) == 1]
    slides = [line for kind, line in zip(kinds, lines, strict=False) if kind == "prismatic"]
    hinges = [line for kind, line in zip(kinds, lines, strict=False) if kind == "revolute"]
    if len(slides) + len(hinges) < len(kinds):
        return None
    found: tuple[TipKind, tuple[Vector3, Vector3]] | None = None
    match len(slides), len(hinges):
        case 1, 0:
            found = TipKind.PRISMATIC, slides[0]
        case 0, 1:
            found = TipKind.REVOLUTE, hinges[0]
        case 1, 1:
            if _parallel(slides[0][1], hinges[0][1]):
                found = TipKind.CYLINDRICAL, hinges[0]
        case 2, 1:
            normal = np.cross(slides[0][1], slides[1][1])
            if np.linalg.norm(normal) > PARALLEL and _parallel(normal, hinges[0][1]):
                found = TipKind.PLANAR, hinges[0]
        case 0, 2:
            meeting = _crossing(hinges)
            return None if meeting is None else _cardan(meeting, hinges[0][1], hinges[1][1])
        case 0, 3:
            meeting = _crossing(hinges)
            if meeting is not None:
                return Composite(TipKind.SPHERICAL, meeting, np.eye(3))
    return None if found is None else Composite(found[0], found[1][0], axis_frame(found[1][1]))


def _cardan(point: Vector3, first: Vector3, second: Vector3) -> Composite | None:
    """Return a universal joint, None if its axes are not at a right angle."""
    if abs(first @ second) > PARALLEL:
        return None
    axes = np.column_stack([first, second, np.cross(first, second)])
    return Composite(TipKind.UNIVERSAL, point, axes)


def _crossing(lines: list[tuple[Vector3, Vector3]]) -> Vector3 | None:
    """Return the point that lines (point, direction) have in common.

    None if there is none, or if the lines lie in one plane (three) or are parallel (two).
    """
    spread = np.linalg.svd(np.array([axis for _, axis in lines]))[1]
    if spread[-1] < 1e-3:
        return None
    normal: Matrix3 = np.zeros((3, 3))
    right: Vector3 = np.zeros(3)
    for point, axis in lines:
        across = np.asarray(np.eye(3) - np.outer(axis, axis))
        normal += across
        right += across.dot(point)
    meeting = np.asarray(np.linalg.solve(normal, right), dtype=float)
    away = [np.linalg.norm(np.cross(meeting - point, axis)) for point, axis in lines]
    return meeting if max(away) < PARALLEL else None


def _parallel(a: Vector3, b: Vector3) -> bool:
    return bool(np.linalg.norm(np.cross(_unit(a), _unit(b))) < PARALLEL)


def _unit(vector: Vector3) -> Vector3:
    return np.asarray(vector / np.linalg.norm(vector))


def axis_frame(axis: Vector3) -> Matrix3:
    """Return a rotation that turns z into a unit ``axis``."""
    x, y, z = axis
    if z < 0.0:  # the formula below divides by 1 + z: turn the other way round, then over
        return np.asarray(axis_frame(-axis) @ np.diag([1.0, -1.0, -1.0]))
    k = 1.0 / (1.0 + z)
    return np.array([[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]])
