"""Numbers of an imported robot that look as if they were in other units: degrees, millimetres.

Nobody can tell a wrong unit from a strange robot, so these are warnings, ``units-doubtful``, and
nothing is changed. Points of muscles are compared by `cards_core.formats.sdf.checks.unit_warning`,
which every command uses that loads a robot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import PurePath

import numpy as np

from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.sdf.checks import body_lengths, longest, sliding, unit_warning
from cards_core.robot.elements import (
    WORLD,
    Joint,
    JointAxis,
    Mesh,
    Pulley,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.typing import Vector3

CODE = "units-doubtful"
"""Of all these findings."""

TURNS = 4.0 * math.pi
"""Largest limit of an angle that is not suspect, [rad]: two turns."""

NO_LIMIT = 1e4
"""Larger ones stand for none in many files, [rad]."""

FAR = 20.0
"""A joint this many sizes of the rest of the robot away is suspect."""

LEAST = 2.0
"""Nearer ones are not, [m]."""

LARGE = 100.0
"""Farther ones are suspect whatever the rest is, [m]."""

DRAWN_FAR = 100.0
"""A mesh this many sizes of the robot long is suspect."""

HEAVY = 1e4
"""Total mass beyond which densities or lengths are suspect, [kg]."""


def doubtful_units(robot: Robot, findings: FindingList, *, points: bool = True) -> None:
    """Warn of limits, places and masses that look as if they were in other units.

    Args:
        robot: As it was imported.
        findings: Takes the warnings.
        points: Look at points of muscles, too.
    """
    warning = unit_warning(robot) if points else None
    if warning is not None:
        subject = f"muscle '{warning.muscle}'"
        findings.warn(CODE, subject, warning.text, at=FilePlace(robot.source, warning.line))
    for joint in robot.joints:
        for axis in _angles(joint):
            text = _degrees(axis)
            if text:
                _warn(robot, joint, text, findings)
    _distant(robot, findings)
    mass = sum(link.inertia.mass for link in robot.links)
    if mass > HEAVY:
        findings.warn(
            CODE,
            f"robot '{robot.name}'",
            f"all links together weigh {mass:.4g} kg: lengths in millimetres, masses in grams, or "
            "densities in another unit?",
            at=FilePlace(robot.source),
        )


def _warn(robot: Robot, joint: Joint, text: str, findings: FindingList) -> None:
    findings.warn(CODE, f"joint '{joint.name}'", text, at=FilePlace(robot.source, joint.line))


# Angles ----------------------------------------------------------------------------------------


def _angles(joint: Joint) -> tuple[JointAxis, ...]:
    """Return the axes that turn."""
    return joint.axes[sliding(joint) :]


def _degrees(axis: JointAxis) -> str:
    ends = [abs(end) for end in (axis.lower, axis.upper)]
    if not any(TURNS < end < NO_LIMIT for end in ends):
        return ""
    low, high = (math.radians(end) for end in (axis.lower, axis.upper))
    return (
        f"limits {axis.lower:.4g} .. {axis.upper:.4g} rad reach {max(ends) / math.tau:.3g} turns: "
        f"in degrees? In radians they would be {low:.4g} .. {high:.4g}"
    )


# Places ----------------------------------------------------------------------------------------


def _distant(robot: Robot, findings: FindingList) -> None:
    """Warn of joints far from everything else; of several that are, all are named."""
    lengths = _lengths(robot)
    placed = sorted((_reach(joint), joint.name) for joint in robot.joints)
    far: set[str] = set()
    for index, (length, name) in enumerate(placed):
        rest = max([lengths, *(other for other, _ in placed[:index])])
        if far or length > LARGE or (length > LEAST and length > FAR * rest > 0.0):
            far.add(name)
    near = max([lengths, *(length for length, name in placed if name not in far)])
    for joint in robot.joints:
        if joint.name in far:
            text = (
                f"it is {_reach(joint):.4g} m from the frames of the links that it joins, and the "
                f"rest of the robot measures {near:.3g} m: in millimetres?"
            )
            _warn(robot, joint, text, findings)


def doubtful_mesh(robot: Robot, mesh: Mesh, edges: Vector3) -> str:
    """Return what is doubtful about the size of a mesh; empty if nothing is.

    Args:
        robot: As it was imported.
        mesh: A shape of one of its links.
        edges: Of the box around what is in the file, in the file's unit, shape (3,).
    """
    extent = float(np.max(np.abs(edges * mesh.scale)))
    lengths = [*body_lengths(robot), *_points(robot), *(_reach(joint) for joint in robot.joints)]
    rest = longest(lengths)
    if not extent > max(DRAWN_FAR * rest, LEAST) or rest == 0.0:
        return ""
    return (
        f"mesh '{PurePath(mesh.uri).name}' is {extent:.4g} m long, and the joints and muscles of "
        f"the robot measure {rest:.3g} m: in millimetres? Its scale would be 0.001 then"
    )


def _reach(joint: Joint) -> float:
    """Return how far a joint is from the frames of its links, [m]; a base may be anywhere."""
    above, below = (
        float(np.linalg.norm(pose.translation))
        for pose in (joint.parent_to_joint, joint.joint_to_child)
    )
    if joint.parent == WORLD:
        return 0.0 if joint.kind == "fixed" else below
    return max(above, below)


def _lengths(robot: Robot) -> float:
    """Return the largest length that is not that of a joint's place, [m]; 0 if there is none."""
    return longest([*body_lengths(robot), *_others(robot)])


def _others(robot: Robot) -> Iterator[float]:
    """Yield how far shapes and points of muscles are from the origins of their links, [m]."""
    for link in robot.links:
        poses = [item.pose for item in link.visuals] + [item.pose for item in link.collisions]
        yield from (float(np.linalg.norm(pose.translation)) for pose in poses)
    yield from _points(robot)


def _points(robot: Robot) -> Iterator[float]:
    """Yield how far points of muscles are from the origins of their links, [m]."""
    for muscle in robot.muscles:
        for item in muscle.path:
            if isinstance(item, ViaPoint | Pulley):
                yield float(np.linalg.norm(item.position))
