"""Rewrite a robot so that SDFormat can state it: planar and free joints, links without mass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, JointKind, Link
from cards_core.robot.inertia import inertia_problem
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

DUMMY_RATIO = 1e-6
"""Mass and moments of an added link, relative to those of the link it carries."""

_FALLBACK = Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))  # a robot without any mass


def prepare_for_sdf(robot: Robot) -> Robot:
    """Return an equivalent robot that SDFormat can state and simulators accept.

    * ``planar`` becomes prismatic, prismatic, revolute; ``free`` between links becomes three
      prismatic joints and a ball joint. The joints carry the names that `Tree` gives to the
      coordinates, so q keeps its layout and its names.
    * The links between them, and links without mass, get `DUMMY_RATIO` of the mass and of the mean
      principal moment of the next link below with mass: M changes by about this ratio.
    * ``free`` from the world stays: SDFormat states it by the absence of a joint.

    Raises:
        DescriptionError: A link has mass, but not the inertia of a rigid body.
    """
    links = list(robot.links)
    joints: list[Joint] = []
    home = dict(robot.home)
    taken = {link.name for link in links} | {joint.name for joint in robot.joints}
    for joint in robot.joints:
        steps = _steps(joint)
        if not steps:
            joints.append(joint)
            continue
        values = home.pop(joint.name, None)
        parent = joint.parent
        for index, (name, kind, axis, count) in enumerate(steps):
            last = index == len(steps) - 1
            child = joint.child if last else _unused(f"{name}_link", taken)
            if not last:
                links.insert(_position(links, joint.child), Link(child))
            joints.append(
                dataclasses.replace(
                    joint,
                    name=name,
                    kind=kind,
                    parent=parent,
                    child=child,
                    parent_to_joint=joint.parent_to_joint if index == 0 else Pose(),
                    joint_to_child=joint.joint_to_child if last else Pose(),
                    axes=() if axis is None else (axis,),
                    motor=joint.motor and axis is not None,
                )
            )
            if values is not None:
                home[name], values = tuple(values[:count]), values[count:]
            parent = child
    ready = dataclasses.replace(robot, joints=tuple(joints), links=tuple(links), home=home)
    return dataclasses.replace(ready, links=_with_mass(ready))


def _steps(joint: Joint) -> list[tuple[str, JointKind, JointAxis | None, int]]:
    """Return (name, kind, axis, number of coordinates) of the joints that replace one."""
    name = joint.name
    if joint.kind == "planar":
        kinds: tuple[JointKind, ...] = ("prismatic", "prismatic", "revolute")
        return [
            (f"{name}_{i + 1}", kind, axis, 1)
            for i, (kind, axis) in enumerate(zip(kinds, joint.axes, strict=True))
        ]
    if joint.kind == "free" and joint.parent != WORLD:
        linear: list[tuple[str, JointKind, JointAxis | None, int]] = [
            (name + suffix, "prismatic", JointAxis(axis), 1)
            for suffix, axis in zip(("_x", "_y", "_z"), np.eye(3), strict=True)
        ]
        return [*linear, (name, "ball", None, 4)]
    return []


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _position(links: list[Link], name: str) -> int:
    return next(i for i, link in enumerate(links) if link.name == name)


def _with_mass(robot: Robot) -> tuple[Link, ...]:
    """Return the links; those without mass get a small part of what they carry."""
    below: dict[str, list[str]] = {}
    above: dict[str, str] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint.child)
        above[joint.child] = joint.parent
    inertias = {link.name: link.inertia for link in robot.links}
    out = []
    for link in robot.links:
        inertia = link.inertia
        if inertia.mass == 0.0 and not np.any(inertia.tensor):
            carried = _carried(link.name, inertias, below, above)
            mean = float(np.trace(carried.tensor)) / 3.0 or 1e-2 * carried.mass
            inertia = Inertia(
                DUMMY_RATIO * carried.mass, np.zeros(3), DUMMY_RATIO * mean * np.eye(3)
            )
        problem = inertia_problem(inertia)
        if problem is not None:
            raise DescriptionError(
                f"not the inertia of a rigid body: {problem}",
                source=robot.source,
                line=link.line,
                element=f"link '{link.name}'",
                expected="a valid inertia; repair_robot() gives the nearest",
            )
        out.append(dataclasses.replace(link, inertia=inertia))
    return tuple(out)


def _carried(
    name: str,
    inertias: Mapping[str, Inertia],
    below: Mapping[str, list[str]],
    above: Mapping[str, str],
) -> Inertia:
    """Return the inertia of the next link with mass: below (breadth first), else above."""
    level, seen = list(below.get(name, [])), {name}
    while level:
        for child in level:
            if inertias[child].mass > 0.0:
                return inertias[child]
        seen.update(level)
        level = [g for child in level for g in below.get(child, []) if g not in seen]
    here = above.get(name)
    while here is not None and here in inertias and here not in seen:
        if inertias[here].mass > 0.0:
            return inertias[here]
        seen.add(here)
        here = above.get(here)
    return _FALLBACK
