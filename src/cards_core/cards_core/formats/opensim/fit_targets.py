"""What a fit of via points is asked for where an import had to change paths.

Muscles over joints with functions of a coordinate, and those with conditional or moving points,
have other lengths here than in the file. `fit_targets` writes a specification for
``./cards fit-muscles`` (``docs/fit_muscles.md``) that asks for the file's own lengths and moment
arms,

    r = -dl/dq        by central differences of the polyline with its splines and conditions,

along each coordinate that such a muscle crosses, the others at their defaults. Muscles that wrap
in the file are left out: their polylines are not their paths.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cards_core.formats.opensim.joints import CoordinateMap
from cards_core.formats.opensim.kinematics import active, body_poses, length, polyline, values
from cards_core.formats.opensim.source import SourceModel, SourceMuscle

LEAST_ERROR = 1e-3
"""Largest error of a length, [m], that asks for no fit."""

VALUES = 9
"""Values of each coordinate, without the outermost `MARGIN` of its range at both ends."""

MARGIN = 0.02

STEP = 1e-3
"""Step of central differences, [rad] or [m]."""

TOLERANCE = 0.002
"""Of lengths and moment arms, [m]."""

FARTHEST = 0.05
"""How far a via point may move, [m], but `SHARE` of the muscle's length at most."""

SHARE = 0.2


def fit_targets(
    source: SourceModel,
    coordinates: Mapping[str, CoordinateMap],
    muscles: Mapping[str, str],
    errors: Mapping[str, float],
    crossed: Mapping[str, list[str]],
) -> tuple[str, list[str]]:
    """Return the specification, empty if no muscle needs one, and our names of its muscles.

    Args:
        source: The file as data.
        coordinates: OpenSim's coordinate to ours.
        muscles: OpenSim's muscle to our name.
        errors: Largest error of the length by OpenSim's muscle, [m].
        crossed: Coordinates that a muscle's length may depend on, by OpenSim's muscle.
    """
    points: list[str] = []
    arms: list[str] = []
    lengths: list[str] = []
    names = []
    for muscle in source.muscles:
        ours = [name for name in crossed.get(muscle.name, []) if name in coordinates]
        ours = [name for name in ours if coordinates[name].angle is None]
        if errors.get(muscle.name, 0.0) <= LEAST_ERROR or muscle.wraps or not ours:
            continue
        name = muscles[muscle.name]
        names.append(name)
        reach = min(FARTHEST, SHARE * _length(source, muscle, {}))
        points.append(f"  - {{muscle: {name}, distance: {reach:.4g}}}\n")
        for coordinate in ours:
            place = f"muscle: {name}, joint: {coordinates[coordinate].joint}"
            at, arm, long = _curve(source, muscle, coordinate, coordinates[coordinate].scale)
            end = f", tolerance: {TOLERANCE:g}}}\n"
            arms.append(f"  - {{{place}, at: {_list(at)},\n     values: {_list(arm)}{end}")
            lengths.append(f"  - {{{place}, at: {_list(at)},\n     values: {_list(long)}{end}")
    if not names:
        return "", []
    return (
        f"# Lengths and moment arms of {source.path.name}, for ./cards fit-muscles\n"
        f"format: muscle_fit/1\npoints:\n{''.join(points)}"
        f"moment_arms:\n{''.join(arms)}lengths:\n{''.join(lengths)}"
    ), names


def _list(numbers: list[float]) -> str:
    return f"[{', '.join(f'{number:.7g}' for number in numbers)}]"


def _length(source: SourceModel, muscle: SourceMuscle, free: Mapping[str, float]) -> float:
    q = values(source, free)
    return length(polyline(muscle, q, body_poses(source, q)))


def _active(source: SourceModel, muscle: SourceMuscle, free: Mapping[str, float]) -> list[bool]:
    q = values(source, free)
    return [active(point, q) for point in muscle.points]


def _curve(
    source: SourceModel, muscle: SourceMuscle, coordinate: str, scale: float
) -> tuple[list[float], list[float], list[float]]:
    """Return our coordinate, the moment arm about it and the length, at `VALUES` of it."""
    item = source.coordinates[coordinate]
    room = MARGIN * (item.upper - item.lower)
    at, arms, lengths = [], [], []

    def around(value: float) -> list[dict[str, float]]:
        return [{coordinate: value + STEP}, {coordinate: value - STEP}]

    for planned in np.linspace(item.lower + room, item.upper - room, VALUES).tolist():
        value = planned
        ahead, behind = (_active(source, muscle, end) for end in around(value))
        if ahead != behind:  # a point comes or goes, and the length may jump: look beside it
            value += 3.0 * STEP
        longer, shorter = (_length(source, muscle, end) for end in around(value))
        at.append(value * scale)
        arms.append(-(longer - shorter) / (2.0 * STEP) / scale)
        lengths.append(_length(source, muscle, {coordinate: value}))
    return at, arms, lengths
