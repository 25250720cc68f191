"""Poses of the bodies and lengths of the paths of a `SourceModel`, as its file states them.

The lengths are those of the polylines through the active path points, without wrapping: what a
conversion of joints and points changes shows there.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.formats.opensim.functions import Composed, Function, Linear
from cards_core.formats.opensim.source import (
    GROUND,
    Axis,
    ConditionalPoint,
    FixedPoint,
    MovingPoint,
    SourceJoint,
    SourceModel,
    SourceMuscle,
    SourcePoint,
)
from cards_core.spatial import Pose, axis_rotation, rotation_log
from cards_core.typing import Array, Vector3

RANGE_TOLERANCE = 1e-5
"""By how much a coordinate may leave the range of a conditional point: OpenSim's."""

STEP = 1e-5
"""Of central differences, [rad] or [m]."""


def free_coordinates(model: SourceModel) -> tuple[str, ...]:
    """Return the coordinates that are neither locked nor coupled, in the order of the joints."""
    return tuple(
        name
        for joint in model.joints
        for name in joint.coordinates
        if name not in model.couplings and not model.coordinates[name].locked
    )


def effective(model: SourceModel, axis: Axis) -> Axis:
    """Return an axis as a function of a free coordinate, or of none: couplings are put in."""
    name, function = axis.coordinate, axis.function
    while name is not None:
        if name in model.couplings:
            coupling = model.couplings[name]
            name, function = coupling.independent, Composed(function, coupling.function)
        elif model.coordinates[name].locked:
            value = function(model.coordinates[name].default)
            return Axis(axis.axis, None, _constant(value))
        else:
            break
    return Axis(axis.axis, name, function)


def _constant(value: float) -> Function:
    return Linear(0.0, value)


def values(model: SourceModel, free: Mapping[str, float]) -> dict[str, float]:
    """Return all coordinates, given some of the free ones; the others are at their defaults.

    Args:
        model: The model.
        free: Coordinate to value.
    """
    out = {name: item.default for name, item in model.coordinates.items()}
    out |= dict(free)
    for name in model.couplings:
        chain = [name]
        while chain[-1] in model.couplings:
            chain.append(model.couplings[chain[-1]].independent)
        value = out[chain[-1]]
        for step in reversed(chain[:-1]):
            value = model.couplings[step].function(value)
        out[name] = value
    return out


def motion(joint: SourceJoint, q: Mapping[str, float]) -> Pose:
    """Return the joint's motion: child frame in parent frame."""
    position = np.zeros(3)
    for axis in joint.translations:
        position = position + axis.function(_at(q, axis.coordinate)) * axis.axis
    rotation = np.eye(3)
    for axis in joint.rotations:
        rotation = rotation @ axis_rotation(axis.axis, axis.function(_at(q, axis.coordinate)))
    return Pose(rotation, position)


def _at(q: Mapping[str, float], name: str | None) -> float:
    return 0.0 if name is None else q[name]


def body_poses(model: SourceModel, q: Mapping[str, float]) -> dict[str, Pose]:
    """Return body-to-ground poses by name.

    Args:
        model: The model.
        q: All coordinates, see `values`.
    """
    out = {GROUND: Pose()}
    waiting = list(model.joints)
    while waiting:
        rest = []
        for joint in waiting:
            if joint.parent in out:
                moved = out[joint.parent] @ joint.parent_frame @ motion(joint, q)
                out[joint.child] = moved @ joint.child_frame.inverse()
            else:
                rest.append(joint)
        waiting = rest
    return out


def inertia_along(model: SourceModel, name: str, value: float) -> float:
    """Return ``sum_b m |dx/dq|^2 + w' I w`` of a free coordinate q, [kg m^2] or [kg].

    Args:
        model: The model.
        name: The coordinate; w is the rotation of a body per change of it, what follows included.
        value: Where; the other free ones are at their defaults.
    """
    ends = (body_poses(model, values(model, {name: value + s})) for s in (-STEP, STEP))
    behind, ahead = ends
    out = 0.0
    for body in model.bodies.values():
        own, a, b = body.inertia, behind[body.name], ahead[body.name]
        way = (b.apply(own.com) - a.apply(own.com)) / (2.0 * STEP)
        turn = rotation_log(a.rotation.T @ b.rotation) / (2.0 * STEP)
        out += float(own.mass * way @ way + turn @ own.tensor @ turn)
    return out


def active(point: SourcePoint, q: Mapping[str, float]) -> bool:
    """Whether a point is on the path."""
    if not isinstance(point, ConditionalPoint):
        return True
    value = q[point.coordinate]
    return point.lower - RANGE_TOLERANCE <= value <= point.upper + RANGE_TOLERANCE


def location(point: SourcePoint, q: Mapping[str, float]) -> Vector3:
    """Return a point in coordinates of its body, [m]."""
    if isinstance(point, FixedPoint | ConditionalPoint):
        return point.position
    assert isinstance(point, MovingPoint)
    return np.array([function(_at(q, name)) for name, function in point.axes])


def polyline(muscle: SourceMuscle, q: Mapping[str, float], poses: Mapping[str, Pose]) -> Array:
    """Return the active points of a path in ground axes, shape (n, 3), [m].

    Args:
        muscle: The muscle.
        q: All coordinates.
        poses: Body-to-ground poses at them.
    """
    return np.array(
        [poses[p.body].apply(location(p, q)) for p in muscle.points if active(p, q)]
    ).reshape(-1, 3)


def length(points: Array) -> float:
    """Return the length of a polyline, [m]; points have shape (n, 3)."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
