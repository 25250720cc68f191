"""From a structure file to its bodies and cables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from cards_core.checks import LARGEST
from cards_core.errors import DescriptionError
from cards_core.robot.elements import WORLD
from cards_core.tensegrity import kinds
from cards_core.tensegrity.assembly import Assembly, assemble
from cards_core.tensegrity.bodies import SAME_PLACE, groups, make_body, names, places
from cards_core.tensegrity.builders import Builder
from cards_core.tensegrity.obstruction import bounding_spheres, near, obstruction
from cards_core.tensegrity.parts import Node, Pair, Part
from cards_core.tensegrity.solids import Rigid
from cards_core.tensegrity.structure import Anchor, Body, Cable, Structure
from cards_core.tensegrity.units import LENGTHS
from cards_core.typing import Vector3
from cards_core.yaml_fields import Field, Place

TIE = 1e-9
"""Relative difference of distances below which the rod that is built first is the nearer."""


def build(path: str | os.PathLike[str], *, length: str = "cm") -> Structure:
    """Read a structure file and return its bodies and cables.

    Args:
        path: Of a YAML file in NASA's format or ours (docs/tensegrity.md).
        length: Unit of length of files in NASA's format, which do not say it: m, dm, cm, mm.

    Raises:
        DescriptionError: A file cannot be read or understood, or there cannot be such a
            structure; with file and line.
    """
    if length not in LENGTHS:
        raise DescriptionError(
            f"unit '{length}'", source=str(path), expected="one of " + ", ".join(LENGTHS)
        )
    assembly = assemble(Path(path), length=length)
    plan = _Plan(assembly)
    plan.stand_on_ground()
    bodies, body_at = plan.bodies()
    cables = plan.cables(body_at)
    return Structure(
        assembly.name,
        assembly.description,
        tuple(bodies),
        tuple(cables),
        plan.node_places(),
        tuple(_notes(cables, plan.doubled(), plan.obstructed)),
        str(path),
    )


class _Plan:
    """Finds the builder of each node and pair; makes bodies, then cables."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.rigids: list[Rigid] = []
        self.cords: list[tuple[Pair, kinds.Cord]] = []
        self.used: set[tuple[str, Place]] = set()  # builders; a file may be read several times
        self.obstructed: list[str] = []
        self.spheres = (np.zeros((0, 3)), np.zeros(0))
        self.node_part = {n: part for part in assembly.root.walk() for n in part.nodes}
        for part in assembly.root.walk():
            self._plan(part)
        self._check_tags()
        if not self.rigids:
            raise DescriptionError(
                "there is no rod, box or sphere",
                source=str(assembly.files[0]),
                expected="pairs with a builder of one of these",
            )
        self.place = places(list(self.node_part))
        self.at_place: dict[int, list[Rigid]] = {}
        for rigid in self.rigids:
            for place in {self.place[node] for node in rigid.nodes}:
                self.at_place.setdefault(place, []).append(rigid)

    # Builders ----------------------------------------------------------------------------------

    def _plan(self, part: Part) -> None:
        for node in part.nodes:
            for builder in self._fitting(node.tags, part):
                if isinstance(builder.kind, kinds.Ball):
                    self._use(builder)
                    name = self._full(node)
                    rigid = Rigid(builder.kind, (node,), name, node.tags, part.path, node.at)
                    self.rigids.append(rigid)
                    break
        for pair in part.pairs:
            found = self._fitting(pair.tags, part)
            for builder in found:
                if not isinstance(builder.kind, kinds.Ball):
                    self._use(builder)
            kind = _first(found)
            if kind is None:
                raise pair.at.error(
                    f"no builder for '{' '.join(pair.tags)}'",
                    "one of the tags in a builder of a rod, box or cable",
                )
            self._make(pair, kind, part)

    def _fitting(self, tags: Sequence[str], part: Part) -> list[Builder]:
        """Return the builders that fit, the last one first."""
        return [
            builder
            for builder in reversed(self.assembly.builders)
            if builder.search.matches(tags, part.tags)
        ]

    def _make(self, pair: Pair, kind: kinds.Rod | kinds.Box | kinds.Cord, part: Part) -> None:
        if isinstance(kind, kinds.Cord):
            if pair.removal is None:
                self.cords.append((pair, kind))
            return
        if pair.removal is not None and pair.removal.edge:
            raise pair.removal.at.error(
                f"the edge '{pair.first.name}', '{pair.second.name}' is a rod or box",
                "an edge of cable: it is replaced by two cables",
            )
        if any(rigid.name == pair.name for rigid in self.rigids):
            raise pair.at.error(f"rod or box '{pair.name}' is there already", "another name")
        nodes = (pair.first, pair.second)
        rigid = Rigid(kind, nodes, pair.name, pair.tags, part.path, pair.at)
        if rigid.length < SAME_PLACE:
            raise pair.at.error(
                f"the rod or box '{pair.name}' has no length", "nodes at different places"
            )
        self.rigids.append(rigid)

    def _use(self, builder: Builder) -> None:
        if builder.at is not None:
            self.used.add(_origin(builder.at))

    def _check_tags(self) -> None:
        for builder in self.assembly.builders:
            if builder.at is not None and _origin(builder.at) not in self.used:
                what = "node" if isinstance(builder.kind, kinds.Ball) else "pair"
                raise builder.at.error(
                    f"no {what} has the tags '{builder.search.text}'",
                    f"tags of {what}s: " + ", ".join(self._known_tags(what)),
                )

    def _known_tags(self, what: str) -> list[str]:
        tags: dict[str, None] = {}
        for part in self.assembly.root.walk():
            for item in part.nodes if what == "node" else part.pairs:
                tags.update(dict.fromkeys(item.tags))
        known = list(tags)
        return known if len(known) <= 20 else [*known[:20], "..."]

    # Bodies ------------------------------------------------------------------------------------

    def stand_on_ground(self) -> None:
        """Move everything so that the lowest point is at its height above the ground."""
        lowest = min(rigid.lowest() for rigid in self.rigids)
        lift = np.array([0.0, 0.0, self.assembly.clearance - lowest])
        self.assembly.root.move(lift)

    def bodies(self) -> tuple[list[Body], dict[int, Body]]:
        """Return the bodies in the order of building, and by the places of their nodes."""
        members = groups(self.rigids, self.place)
        index = {
            self.place[node]: i
            for i, group in enumerate(members)
            for rigid in group
            for node in rigid.nodes
        }
        masses: list[list[Node]] = [[] for _ in members]
        for node in self.node_part:
            if node.mass > 0.0:
                if self.place[node] not in index:
                    raise _loose(node, node.at)
                masses[index[self.place[node]]].append(node)
        named = names(members, self.assembly.name)
        made = [
            make_body(name, group, self.place, points)
            for name, group, points in zip(named, members, masses, strict=True)
        ]
        return made, {place: made[i] for place, i in index.items()}

    def node_places(self) -> Mapping[str, Vector3]:
        """Return the place of every node by its name after its part."""
        return {self._full(node): node.position for node in self.node_part}

    def doubled(self) -> list[tuple[str, str]]:
        """Return the names of rods, boxes and cables that join the same two places."""
        ways = [(r.name, r.nodes) for r in self.rigids if len(r.nodes) == 2]
        ways += [(pair.name, (pair.first, pair.second)) for pair, _ in self.cords]
        first: dict[frozenset[int], str] = {}
        out = []
        for name, nodes in ways:
            other = first.setdefault(frozenset(self.place[node] for node in nodes), name)
            if other is not name:
                out.append((other, name))
        return out

    def _full(self, node: Node) -> str:
        path = self.node_part[node].path
        return f"{path}.{node.name}" if path else node.name

    # Cables ------------------------------------------------------------------------------------

    def cables(self, bodies: Mapping[int, Body]) -> list[Cable]:
        """Return the cables in the order in which NASA's toolkit counts them."""
        out: list[Cable] = []
        known: set[str] = set()
        self.spheres = bounding_spheres(self.rigids)
        for pair, cord in self.cords:
            if pair.name in known:
                raise pair.at.error(f"cable '{pair.name}' is there already", "another name")
            known.add(pair.name)
            out.append(self._cable(len(out), pair, cord, bodies))
        return out

    def _cable(
        self, index: int, pair: Pair, cord: kinds.Cord, bodies: Mapping[int, Body]
    ) -> Cable:
        nodes = (pair.first, pair.second)
        distance = float(np.linalg.norm(nodes[1].position - nodes[0].position))
        if distance < SAME_PLACE:
            raise pair.at.error(f"cable '{pair.name}' has no length", "nodes at different places")
        ends, anchors = [], []
        for node, other, where in zip(nodes, nodes[::-1], cord.anchors, strict=True):
            place = self.place[node]
            if node.pinned:
                if place in self.at_place:
                    raise pair.at.error(
                        f"pinned node '{node.name}' is on a rod, box or sphere",
                        "a node of its own",
                    )
                ends.append(node.position)
                anchors.append(Anchor(WORLD, self._full(node), node.position))
                continue
            if place not in self.at_place:
                raise _loose(node, pair.at)
            rigid = _nearest(self.at_place[place], node)
            mine = rigid.nodes[0 if self.place[rigid.nodes[0]] == place else -1]
            point = node.position
            if where == kinds.EDGE:
                point = rigid.surface(mine, other.position, cord.rotation)
            ends.append(point)
            body = bodies[place]
            anchors.append(Anchor(body.name, self._full(node), point - body.position))
        length = float(np.linalg.norm(ends[1] - ends[0]))
        if length < SAME_PLACE:
            raise pair.at.error(
                f"both ends of cable '{pair.name}' are at one place of the surface",
                "anchor: node, or thinner rods",
            )
        rest = cord.rest_length
        if rest is None:
            rest = length - (cord.pretension or 0.0) / cord.stiffness
        if not rest > 0.0:
            force = cord.pretension or 0.0
            raise pair.at.error(
                f"cable '{pair.name}' of {length:.6g} m has the rest length {rest:.6g} m at the "
                f"pretension {force:g} N and the stiffness {cord.stiffness:g} N/m",
                "a rest length > 0",
            )
        self._check_way(pair, cord, (ends[0], ends[1]))
        limit = cord.actuator.tension_max if cord.actuator else cord.tension_max
        if limit is None:
            limit = cord.stiffness * rest
            if limit >= LARGEST:
                raise pair.at.error(
                    f"cable '{pair.name}' has the largest tension {limit:g} N, stiffness times "
                    "rest length",
                    f"below {LARGEST:g} N: tension_max, or a smaller stiffness",
                )
        return Cable(
            pair.name,
            index,
            pair.tags,
            anchors[0],
            anchors[1],
            distance,
            length,
            rest,
            cord.stiffness,
            cord.damping,
            cord.stiffness * (length - rest),
            limit,
            cord.actuator,
            cord.control,
            cord.contact,
            cord.friction,
            cord.min_length,
            cord.min_rest_length,
        )

    def _check_way(self, pair: Pair, cord: kinds.Cord, ends: tuple[Vector3, Vector3]) -> None:
        """Refuse a cable with contacts that begins within a body; note others that do."""
        touching = {self.place[pair.first], self.place[pair.second]}
        for index in np.flatnonzero(near(*ends, *self.spheres)):
            rigid = self.rigids[index]
            if touching.intersection(self.place[node] for node in rigid.nodes):
                continue
            depth = obstruction(rigid, *ends)
            if depth <= 0.0:
                continue
            text = f"cable '{pair.name}' runs {1e3 * depth:.3g} mm deep through '{rigid.name}'"
            if cord.contact:
                raise pair.at.error(text, "a way that is free as built")
            self.obstructed.append(text)


def _first(found: Sequence[Builder]) -> kinds.Rod | kinds.Box | kinds.Cord | None:
    """Return what a pair becomes: the last builder of a rod or box, else the last of a cable."""

    def of(kind: type | tuple[type, ...]) -> Iterator[kinds.Kind]:
        return (builder.kind for builder in found if isinstance(builder.kind, kind))

    made = next(of((kinds.Rod, kinds.Box)), None) or next(of(kinds.Cord), None)
    assert not isinstance(made, kinds.Ball)
    return made


def _nearest(rigids: Sequence[Rigid], node: Node) -> Rigid:
    """Return the rod, box or sphere whose centre is nearest to its node; the first of several."""
    best, least = rigids[0], math.inf
    for rigid in rigids:
        distance = float(np.linalg.norm(rigid.center - node.position))
        if distance < least * (1.0 - TIE):
            best, least = rigid, distance
    return best


def _loose(node: Node, at: Field) -> DescriptionError:
    return at.error(
        f"node '{node.name}' is on no rod, box or sphere",
        "a node that one of these has, or that is listed under 'pinned'",
    )


def _origin(at: Field) -> tuple[str, Place]:
    return at.document.source, at.place


def _notes(
    cables: Sequence[Cable], doubled: Sequence[tuple[str, str]], obstructed: Sequence[str]
) -> Iterator[str]:
    """Yield what the SDF does not say, and what may be a mistake."""
    within = [cable.name for cable in cables if cable.first.body == cable.second.body]
    wound = [c.actuator for c in cables if c.actuator is not None]
    motors = sum(actuator.type == "motor" and not actuator.rotor for actuator in wound)
    if motors:
        which = "1 cable has" if motors == 1 else f"{motors} cables have"
        yield f"{which} a motor; the SDF has its largest speed as winch_speed"
    tight = [c for c in cables if c.pretension > c.tension_max * (1.0 + 1e-9)]
    if tight:
        worst = max(tight, key=lambda cable: cable.pretension / cable.tension_max)
        more = f", and {len(tight) - 1} more are above theirs" if len(tight) > 1 else ""
        yield (
            f"cable '{worst.name}' has {worst.pretension:.6g} N as built, above its tension_max "
            f"of {worst.tension_max:.6g} N{more}"
        )
    if within:
        yield f"within one body, without effect: {', '.join(within)}"
    if doubled:
        one, other = doubled[0]
        more = f", and {len(doubled) - 1} more pairs" if len(doubled) > 1 else ""
        yield f"'{one}' and '{other}' join the same places, both count{more}"
    shown = list(obstructed[:5])
    if len(obstructed) > 5:
        shown.append(f"{len(obstructed) - 5} more cables run through bodies")
    yield from shown
