"""Parts of a structure while it is put together: nodes, pairs, and how they are looked up.

A part has nodes, pairs of nodes and parts within it. Nodes and parts are found by name or, as in
NASA's toolkit, by tags, in the part itself first and then in the parts within, level by level.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.spatial import axis_rotation
from cards_core.typing import Matrix3, Vector3
from cards_core.yaml_fields import Field

_SELECTION = re.compile(r"(?P<name>[^\[\]]+)\[(?P<which>\*|-?\d+|-?\d*:-?\d*(?::-?\d+)?)\]")


@dataclass(eq=False)
class Node:
    """A named place.

    Attributes:
        name: As written; its words are its tags.
        position: In world axes, shape (3,), [m].
        mass: Of a point mass there, [kg].
        pinned: Whether it is fixed to the world: cables may end there.
        at: Where it is written.
    """

    name: str
    tags: tuple[str, ...]
    position: Vector3
    at: Field
    mass: float = 0.0
    pinned: bool = False


@dataclass(eq=False)
class Removal:
    """That a bond between node and edge takes a pair away.

    Attributes:
        at: Where the bond is written.
        edge: Whether the pair is its edge, or else lies between its nodes, where a rod stays.
    """

    at: Field
    edge: bool


@dataclass(eq=False)
class Pair:
    """Two nodes that a rod, box or cable joins, once builders have been found for its tags."""

    first: Node
    second: Node
    tags: tuple[str, ...]
    name: str
    at: Field
    removal: Removal | None = None

    def joins(self, first: Node, second: Node) -> bool:
        """Tell whether it is between these nodes, in either order."""
        return {self.first, self.second} == {first, second}


@dataclass(eq=False)
class Part:
    """A structure, or one within it.

    Attributes:
        name: Its own; that of the whole structure is empty.
        path: Names from the whole structure to this part, with dots.
        tags: Of its name; what is in it has them, too, for builders.
        group: Name without number of a part that is repeated.
        at: Where it is written.
    """

    name: str
    path: str
    tags: tuple[str, ...]
    at: Field
    group: str = ""
    nodes: list[Node] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    # Everything in it --------------------------------------------------------------------------

    def walk(self) -> Iterator[Part]:
        """Yield the part and those within: the order in which NASA's toolkit counts."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def levels(self) -> Iterator[list[Part]]:
        """Yield the part alone, then the parts in it, then those in these, and so on."""
        level = [self]
        while level:
            yield level
            level = [inner for part in level for inner in part.parts]

    def all_nodes(self) -> Iterator[Node]:
        """Yield every node in it and in the parts within."""
        for part in self.walk():
            yield from part.nodes

    def centroid(self) -> Vector3:
        """Return the mean place of all nodes, shape (3,), [m]; the origin without any."""
        places = [node.position for node in self.all_nodes()]
        return np.mean(places, axis=0) if places else np.zeros(3)

    # Motion ------------------------------------------------------------------------------------

    def move(self, offset: Vector3) -> None:
        """Move all nodes by an offset in world axes, [m]."""
        for node in self.all_nodes():
            node.position = node.position + offset

    def rotate(self, rotation: Matrix3, about: Vector3) -> None:
        """Turn all nodes about a place."""
        for node in self.all_nodes():
            node.position = about + rotation @ (node.position - about)

    def scale(self, factor: float) -> None:
        """Scale the distances of all nodes from their centroid."""
        centre = self.centroid()
        for node in self.all_nodes():
            node.position = centre + factor * (node.position - centre)

    # Looking up --------------------------------------------------------------------------------

    def find_node(self, path: str, at: Field) -> Node:
        """Return a node by its name or tags, after the parts that it is in: ``leg.knee.top``.

        Raises:
            DescriptionError: There is none, or several that fit equally well; with the place
                ``at``.
        """
        *names, last = path.split(".")
        part = self
        for name in names:
            part = part.find_part(name, at)
        for level in part.levels():
            found = [node for inner in level for node in _fitting(inner.nodes, last)]
            if len(found) > 1:
                raise at.error(
                    f"node '{last}' may be any of {len(found)}",
                    "one of them: " + ", ".join(f"'{node.name}'" for node in found[:8]),
                )
            if found:
                return found[0]
        known = [node.name for node in part.all_nodes()]
        raise at.error(_unknown("node", last, known))

    def find_part(self, name: str, at: Field) -> Part:
        """Return a part within by its name or tags, ``v[2]`` of those that are repeated.

        Raises:
            DescriptionError: As `find_node`.
        """
        found = self.find_parts(name, at)
        if len(found) != 1:
            raise at.error(f"'{name}' are {len(found)} parts", "one of them")
        return found[0]

    def find_parts(self, name: str, at: Field) -> list[Part]:
        """Return the parts that a name stands for: ``v``, ``v[2]``, ``v[*]``, ``v[0:6:2]``.

        Raises:
            DescriptionError: There is none, or the name fits others as well.
        """
        match = _SELECTION.fullmatch(name)
        plain = match["name"] if match else name
        for level in self.levels():
            inside = [inner for part in level for inner in part.parts]
            repeated = [part for part in inside if part.group == plain]
            if repeated:
                return _selected(repeated, match["which"] if match else "*", name, at)
            if match:
                continue
            found = _fitting(inside, plain)
            if len(found) > 1:
                raise at.error(
                    f"part '{name}' may be any of {len(found)}",
                    "one of them: " + ", ".join(f"'{part.path}'" for part in found[:8]),
                )
            if found:
                return found
        known = [part.name for part in self.walk() if part is not self]
        known += sorted({part.group for part in self.walk() if part.group})
        raise at.error(_unknown("part", plain, known))


T = TypeVar("T", Node, Part)


def _fitting(items: Sequence[T], name: str) -> list[T]:
    """Return what has the name; without any, what has its words among the tags."""
    exact = [item for item in items if item.name == name]
    if exact:
        return exact
    words = set(name.split())
    return [item for item in items if words and words <= set(item.tags)]


def _selected(parts: list[Part], which: str, name: str, at: Field) -> list[Part]:
    if which == "*":
        return parts
    numbers = [int(text) if text else None for text in which.split(":")]
    if len(numbers) == 1:
        index = numbers[0]
        assert index is not None
        if not -len(parts) <= index < len(parts):
            raise at.error(f"there is no '{name}'", f"0 to {len(parts) - 1}")
        return [parts[index]]
    if numbers[2:] == [0]:
        raise at.error(f"'{name}' has steps of 0", "steps of 1 or more")
    found = parts[slice(*numbers)]
    if not found:
        raise at.error(f"'{name}' is empty", f"some of 0 to {len(parts) - 1}")
    return found


def _unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """Return the words of an unknown name, with those that are near and a few that exist."""
    shown = list(dict.fromkeys(known))
    text = str(UnknownNameError(kind, name, shown))
    return text if len(text) < 400 else text[:400] + " ..."


def quarter_exact_rotation(axis: Vector3, degrees: float) -> Matrix3:
    """Return a rotation about a unit axis; turns by multiples of 90 degrees have no rounding."""
    turns = degrees / 90.0
    rotation = axis_rotation(axis, np.deg2rad(degrees))
    return np.round(rotation, 15) if turns == round(turns) else rotation
