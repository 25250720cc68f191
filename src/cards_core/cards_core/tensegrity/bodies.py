"""Rods, boxes and spheres that share nodes become one rigid body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from cards_core.robot.elements import Inertia
from cards_core.robot.inertia import inertia_problem
from cards_core.robot.model import add_inertia
from cards_core.spatial import Pose
from cards_core.tensegrity import kinds
from cards_core.tensegrity.parts import Node
from cards_core.tensegrity.solids import Rigid
from cards_core.tensegrity.structure import Body, Solid
from cards_core.typing import Vector3

SAME_PLACE = 1e-9
"""Nodes nearer than this are one place, also if they are of different parts, [m]."""

MASSES = (1e-12, 1e12)
"""Minimum and maximum mass of a body that can be simulated and written, [kg]."""


def places(nodes: Sequence[Node]) -> dict[Node, int]:
    """Return a number for every node; nodes at one place have the same."""
    out: dict[Node, int] = {}
    if not nodes:
        return out
    positions = np.array([node.position for node in nodes])
    for index, node in enumerate(nodes):
        if node in out:
            continue
        near = np.linalg.norm(positions - positions[index], axis=1) < SAME_PLACE
        for other in np.flatnonzero(near).tolist():
            out.setdefault(nodes[other], index)
    return out


def groups(rigids: Sequence[Rigid], place: Mapping[Node, int]) -> list[list[Rigid]]:
    """Return the rigids that hang together by places, each group in the order of building."""
    above: dict[int, int] = {}

    def top(number: int) -> int:
        while above.setdefault(number, number) != number:
            number = above[number]
        return number

    for rigid in rigids:
        first = top(place[rigid.nodes[0]])
        for node in rigid.nodes[1:]:
            above[top(place[node])] = first
    out: dict[int, list[Rigid]] = {}
    for rigid in rigids:
        out.setdefault(top(place[rigid.nodes[0]]), []).append(rigid)
    return list(out.values())


def names(members: Sequence[Sequence[Rigid]], whole: str) -> list[str]:
    """Return a name per group: of the part that has all of it alone, else of its first rigid.

    Args:
        members: The groups.
        whole: Name of the structure, for a body that is all of it.
    """
    if len(members) == 1:
        return [whole]
    common = [_common(rigid.part for rigid in group) for group in members]
    return [
        path if path and common.count(path) == 1 else group[0].name
        for path, group in zip(common, members, strict=True)
    ]


def _common(paths: Iterable[str]) -> str:
    """Return the path of the innermost part that holds all of these."""
    split = [path.split(".") for path in paths]
    out = []
    for step in zip(*split, strict=False):
        if len(set(step)) > 1:
            break
        out.append(step[0])
    return ".".join(out)


def make_body(
    name: str,
    members: Sequence[Rigid],
    place: Mapping[Node, int],
    masses: Sequence[Node],
) -> Body:
    """Return the body of a group.

    Args:
        name: Of the body.
        members: Its rods, boxes and spheres.
        place: As of `places`.
        masses: Its nodes with point masses.

    Raises:
        DescriptionError: The masses make no rigid body, as those of one rod without radius, or
            are out of all proportion.
    """
    total = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    for rigid in members:
        total = add_inertia(total, rigid.inertia())
    for node in masses:
        total = add_inertia(total, Inertia(node.mass, node.position, np.zeros((3, 3))))
    origin = total.com
    inertia = Inertia(total.mass, np.zeros(3), (total.tensor + total.tensor.T) / 2.0)
    if problem := inertia_problem(inertia):
        raise members[0].at.error(f"body '{name}': {problem}", "a mass > 0")
    if not MASSES[0] <= inertia.mass <= MASSES[1]:
        raise members[0].at.error(
            f"body '{name}' has a mass of {inertia.mass:g} kg",
            f"{MASSES[0]:g} to {MASSES[1]:g} kg; units, density and radius that fit",
        )
    solids = tuple(
        Solid(
            rigid.name,
            rigid.tags,
            rigid.geometry,
            Pose(rigid.rotation, rigid.center - origin),
            rigid.inertia().mass,
            rigid.kind.friction,
            rigid.kind.roll_friction,
            rigid.kind.restitution,
            rigid.kind.color,
            tuple(node.name for node in rigid.nodes),
        )
        for rigid in members
    )
    points = tuple((node.position - origin, node.mass) for node in masses)
    return Body(name, origin, inertia, solids, points, _joints(members, place, origin))


def _joints(
    members: Sequence[Rigid], place: Mapping[Node, int], origin: Vector3
) -> tuple[tuple[Vector3, float], ...]:
    """Return the places where several rods meet, with the radius of the thickest."""
    meeting: dict[int, list[tuple[Vector3, float]]] = {}
    for rigid in members:
        if isinstance(rigid.kind, kinds.Rod):
            for node in rigid.nodes:
                found = (node.position - origin, rigid.kind.radius)
                meeting.setdefault(place[node], []).append(found)
    return tuple(
        (rods[0][0], max(radius for _, radius in rods))
        for rods in meeting.values()
        if len(rods) > 1
    )
