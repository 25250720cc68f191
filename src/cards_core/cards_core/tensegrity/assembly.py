"""From structure files to one assembled structure: parts in their places, pairs, builders.

The order of everything is that of NASA's toolkit: parts first, all of them; then their rotations;
then per part scale, offset and translation; then builders, nodes, pairs and bonds of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from cards_core.named_files import Confinement, import_confinement, outside
from cards_core.names import EXPECTED, name_problem
from cards_core.tensegrity.builders import Builder, nasa_defaults, read_builders
from cards_core.tensegrity.mating import mate
from cards_core.tensegrity.parts import Node, Pair, Part, Removal, quarter_exact_rotation
from cards_core.tensegrity.tags import split_tags
from cards_core.tensegrity.units import Convention, nasa, read_convention
from cards_core.typing import Vector3
from cards_core.yaml_fields import Document, Field, Place, read_yaml

FORMAT = "tensegrity/1"
"""Value of ``format`` in files of ours."""

NASA_KEYS = ("nodes", "pair_groups", "builders", "substructures", "bond_groups")
OWN_KEYS = (
    "format",
    "units",
    "up",
    "name",
    "description",
    "clearance",
    *NASA_KEYS,
    "point_masses",
    "pinned",
)
PART_KEYS = ("path", "rotation", "translation", "scale", "offset")

KINDS = (".yaml", ".yml")
"""Endings of structure files, which name parts in one another's folders."""

DEPTH = 20
"""Most files within one another."""

PARTS = 10_000
"""Most parts of a structure."""


@dataclass(eq=False)
class Assembly:
    """A structure whose pairs have no builders yet.

    Attributes:
        root: The structure.
        builders: Of all files; the last that fits is the one that counts.
        name: What the file calls it, or the name of the file.
        description: Of the file, or empty.
        clearance: Height of the lowest point above the ground, [m].
        files: That were read.
    """

    root: Part
    builders: list[Builder]
    name: str
    description: str
    clearance: float
    files: tuple[Path, ...]


CLEARANCE = 1e-3
"""Height of the lowest point above the ground where the file says nothing, [m]."""


def assemble(path: Path, *, length: str = "cm") -> Assembly:
    """Read a structure file and those that it names, and put their parts together.

    Args:
        path: Of the file.
        length: Unit of length of files in NASA's format, one of `LENGTHS`.

    Raises:
        DescriptionError: A file cannot be read or understood; with file and line.
    """
    reader = _Reader(length, import_confinement(path.parent, KINDS))
    top = reader.document(path)
    convention = reader.convention(top)
    if not top.has("format"):
        reader.builders += nasa_defaults(convention)
    root = reader.part(path, "", "", (), top)
    clearance = CLEARANCE
    if top.has("clearance"):
        clearance = top["clearance"].number(at_least=0.0) * convention.length
    stem = path.stem if path.stem != "structure" else path.resolve().parent.name
    name = "structure" if name_problem(stem) else stem
    if top.has("name"):
        name = top["name"].name()
    description = top["description"].text() if top.has("description") else ""
    builders = _last_of_each(reader.builders)
    return Assembly(root, builders, name, description, clearance, tuple(reader.documents))


def _last_of_each(builders: list[Builder]) -> list[Builder]:
    """Leave out the earlier copies of builders of a file that is read for several parts."""
    last: dict[tuple[str, Place] | int, Builder] = {}
    for builder in reversed(builders):
        at = builder.at
        last.setdefault(id(builder) if at is None else (at.document.source, at.place), builder)
    return list(reversed(last.values()))


@dataclass(eq=False)
class _Reader:
    length: str
    allowed: Confinement
    builders: list[Builder] = field(default_factory=list)
    documents: dict[Path, Document] = field(default_factory=dict)
    open: list[Path] = field(default_factory=list)
    count: int = 0

    def document(self, path: Path) -> Field:
        """Return a file, read once."""
        if path not in self.documents:
            self.documents[path] = read_yaml(path)
        document = self.documents[path]
        top = Field(document, (), document.data)
        top.mapping()
        if top.has("format"):
            top["format"].text((FORMAT,))
            top.mapping(OWN_KEYS)
        else:
            for key in top.value:
                if key in OWN_KEYS and key not in NASA_KEYS:
                    raise Field(document, (key,), None).error(
                        f"'{key}' is not in NASA's format", f"format: {FORMAT} in this file"
                    )
            top.mapping(NASA_KEYS)
        return top

    def convention(self, top: Field) -> Convention:
        return read_convention(top) if top.has("format") else nasa(self.length)

    def part(self, path: Path, name: str, above: str, tags: tuple[str, ...], at: Field) -> Part:
        """Return the structure of a file as a part."""
        here = path.resolve()
        self.count += 1
        if here in self.open:
            raise at.error(f"'{path}' contains itself", "files that do not")
        if len(self.open) >= DEPTH or self.count > PARTS:
            raise at.error(
                "too many files within one another", f"at most {DEPTH}, and {PARTS} parts"
            )
        self.open.append(here)
        top = self.document(path)
        convention = self.convention(top)
        part = Part(name, f"{above}.{name}" if above else name, tags, at)
        own = top.has("format")
        self._parts(part, top, path, convention, own)
        self.builders += read_builders(top, convention)
        _read_nodes(part, top, convention)
        _read_pairs(part, top)
        _read_bonds(part, top)
        _read_point_masses(part, top)
        for item in top["pinned"].items() if top.has("pinned") else ():
            for node in _nodes_at(part, item.text(), item):
                node.pinned = True
        self.open.pop()
        return part

    # Parts -------------------------------------------------------------------------------------

    def _parts(
        self, part: Part, top: Field, path: Path, convention: Convention, own: bool
    ) -> None:
        if not top.has("substructures"):
            return
        group = top["substructures"]
        entries = [group[key] for key in group.mapping()]
        for entry in entries:
            entry.mapping((*PART_KEYS, "repeat") if own else PART_KEYS)
            if entry.has("path"):
                self._add(part, entry, path)
            elif entry.has("repeat"):
                raise entry["repeat"].error("without 'path'", "it beside the path of the part")
        for entry in entries:
            if entry.has("rotation"):
                for child in _named(part, entry):
                    _rotate(child, entry["rotation"], convention)
        for entry in entries:
            for index, child in enumerate(_named(part, entry)):
                if entry.has("scale"):
                    child.scale(entry["scale"].number(above=0.0))
                for key, factor in (("offset", index), ("translation", 1)):
                    if entry.has(key):
                        child.move(factor * convention.point(_place(entry[key])))

    def _add(self, part: Part, entry: Field, path: Path) -> None:
        """Add the parts that an entry with a path names."""
        source = path.parent / entry["path"].text()
        try:
            there = source.is_file()
        except (OSError, ValueError):  # no path, or a name that is too long
            there = False
        if not there:
            raise entry["path"].error(
                f"'{source}' is no file", f"a structure file, relative to '{path.parent}'"
            )
        if not (
            self.allowed.holds(source) or self.allowed.follows(path.parent, entry["path"].text())
        ):
            raise entry["path"].error(
                outside(str(source), source, "the structure's folder"),
                self.allowed.expected,
            )
        known = {child.name for child in part.parts}
        count = None
        if entry.has("repeat"):
            count = entry["repeat"].whole(at_least=1, at_most=PARTS)
        for name in _names(entry):
            numbered = [name] if count is None else [f"{name}{i}" for i in range(count)]
            for child in numbered:
                _check_name(child, "part", entry)
                if child in known:
                    raise entry.error(f"part '{child}' is there already", "another name")
                known.add(child)
                tags = split_tags(child if count is None else f"{child} {name}")
                made = self.part(source, child, part.path, tags, entry["path"])
                made.group = "" if count is None else name
                part.parts.append(made)


def _names(entry: Field) -> list[str]:
    """Return the names in the key of an entry, ``a/b/c``."""
    names = str(entry.place[-1]).split("/")
    if not all(names):
        raise entry.error(f"'{entry.place[-1]}' has an empty name", "names, a/b/c")
    return names


def _check_name(name: str, kind: str, at: Field) -> None:
    problem = name_problem(name)
    if problem is None and any(character in name for character in ".[]|:"):
        problem = "the name has a character of . [ ] | :"
    if problem:
        raise at.error(f"{kind} '{name}': {problem}", f"{EXPECTED}, no . [ ] | :")


def _named(part: Part, entry: Field) -> list[Part]:
    return [child for name in _names(entry) for child in _parts_at(part, name, entry)]


def _parts_at(part: Part, path: str, at: Field) -> list[Part]:
    """Return the parts that a path with dots names."""
    *names, last = path.split(".")
    for name in names:
        part = part.find_part(name, at)
    return part.find_parts(last, at)


def _place(item: Field) -> Vector3:
    return item.vector(3, "x, y, z")


def _rotate(part: Part, item: Field, convention: Convention) -> None:
    """Turn a part about a place, its centroid without one."""
    item.mapping(("axis", "angle", "reference"))
    axis = convention.direction(_place(item["axis"]))
    norm = float(np.linalg.norm(axis))
    if norm == 0.0:
        raise item["axis"].error("has no direction", "a vector that is not zero")
    about = part.centroid()
    if item.has("reference"):
        about = convention.point(_place(item["reference"]))
    part.rotate(quarter_exact_rotation(axis / norm, item["angle"].number()), about)


# Nodes and pairs -------------------------------------------------------------------------------


def _read_nodes(part: Part, top: Field, convention: Convention) -> None:
    if not top.has("nodes"):
        return
    nodes = top["nodes"]
    for name in nodes.mapping():
        item = nodes[name]
        _check_name(name, "node", item)
        part.nodes.append(Node(name, split_tags(name), convention.point(_place(item)), item))


def _ends(item: Field) -> tuple[Field, Field, str | None]:
    """Return both ends of a pair, and its own name if it has one."""
    items = item.items()
    if len(items) not in (2, 3):
        raise item.error(f"has {len(items)} entries", "2, from and to, and a name if wanted")
    name = items[2].label() if len(items) == 3 else None
    if name is not None:
        _check_name(name, "pair", items[2])
    return items[0], items[1], name


def _read_pairs(part: Part, top: Field) -> None:
    if not top.has("pair_groups"):
        return
    groups = top["pair_groups"]
    for tags in groups.mapping():
        for item in groups[tags].items():
            a, b, name = _ends(item)
            first, second = (part.find_node(end.label(), end) for end in (a, b))
            own = name or f"{a.label()}-{b.label()}"
            _add_pair(part, Pair(first, second, split_tags(tags), _full(part, own), item))


def _full(part: Part, name: str) -> str:
    return f"{part.path}.{name}" if part.path else name


def _add_pair(part: Part, pair: Pair) -> None:
    if not pair.tags:
        raise pair.at.error("is in a group without tags", "tags as key of the group")
    if pair.first is pair.second:
        raise pair.at.error(f"joins '{pair.first.name}' with itself", "two nodes")
    # the toolkit makes both, as long as they are not named alike here
    twice = "format" not in pair.at.document.data
    for other in part.pairs:
        if other.joins(pair.first, pair.second) and not other.removal:
            if twice and other.name != pair.name:
                continue
            raise pair.at.error(
                f"'{pair.first.name}' and '{pair.second.name}' are a pair already, "
                f"in line {other.at.document.line(other.at.place)}",
                "one pair of two nodes",
            )
    part.pairs.append(pair)


def _read_point_masses(part: Part, top: Field) -> None:
    if not top.has("point_masses"):
        return
    masses = top["point_masses"]
    for key in masses.mapping():
        item = masses[key]
        for node in _nodes_at(part, key, item):
            node.mass += item.number(above=0.0)


def _nodes_at(part: Part, path: str, at: Field) -> list[Node]:
    """Return the nodes that ``part.node`` names, of several parts with ``part[*].node``."""
    *names, node = path.split(".")
    inside = _parts_at(part, ".".join(names), at) if names else [part]
    return [child.find_node(node, at) for child in inside]


# Bonds -----------------------------------------------------------------------------------------


def _read_bonds(part: Part, top: Field) -> None:
    """Read ``bond_groups``: tags within bonds or bonds within tags."""
    if not top.has("bond_groups"):
        return
    groups = top["bond_groups"]
    for outer in groups.mapping():
        for inner in groups[outer].mapping():
            item = groups[outer][inner]
            if ("/" in outer) == ("/" in inner):
                what = "bond" if "/" in outer else "tag"
                raise item.error(
                    f"is a {what} within a {what}", "tags: {a/b/node_node: [...]}, or the reverse"
                )
            bond, tags = (outer, inner) if "/" in outer else (inner, outer)
            _read_bond(part, bond, split_tags(tags), item)


def _read_bond(part: Part, bond: str, tags: tuple[str, ...], item: Field) -> None:
    *names, kind = bond.split("/")
    if kind not in ("node_node", "node_edge"):
        raise item.error(f"bond '{kind}'", "node_node or node_edge, as in a/b/node_node")
    chain = [child for name in names for child in _parts_at(part, name, item)]
    if len(chain) < 2:
        raise item.error(f"'{bond}' is a bond of one part", "two parts or more, a/b/node_node")
    for first, second in pairwise(chain):
        if first is second:
            raise item.error(f"part '{first.name}' is bound to itself", "two parts")
        if kind == "node_node":
            _bind_nodes(part, first, second, tags, item)
        else:
            _bind_edges(part, first, second, tags, item)


def _bind_nodes(part: Part, first: Part, second: Part, tags: tuple[str, ...], item: Field) -> None:
    # controllers tell cables by the parts that they join
    joint = (first.name, second.name, f"{first.name}/{second.name}")
    for pair in item.items():
        a, b, name = _ends(pair)
        own = f"{first.name}-{second.name}.{name}"
        if name is None:
            own = f"{first.name}.{a.label()}-{second.name}.{b.label()}"
        made = Pair(
            first.find_node(a.label(), a),
            second.find_node(b.label(), b),
            (*tags, *joint),
            _full(part, own),
            pair,
        )
        _add_pair(part, made)


def _bind_edges(part: Part, first: Part, second: Part, tags: tuple[str, ...], item: Field) -> None:
    """Mate the second part to the first; each edge is replaced by two pairs with a node."""
    pairs = item.items()
    if len(pairs) < 3:
        raise item.error(f"has {len(pairs)} pairs of node and edge", "3 or more")
    points: list[list[Vector3]] = [[], []]
    nodes: list[Node] = []
    edges: list[tuple[Node, Node]] = []
    for pair in pairs:
        ends = pair.items()
        if len(ends) != 2 or sum("/" in end.label() for end in ends) != 1:
            raise pair.error("is no pair of node and edge", "[node, node/node], or the reverse")
        for side, (owner, end) in enumerate(zip((first, second), ends, strict=True)):
            found = [owner.find_node(name, end) for name in end.label().split("/")]
            if len(found) > 2:
                raise end.error("has more than two nodes", "an edge, node/node")
            points[side].append(np.mean([node.position for node in found], axis=0))
            if len(found) == 1:
                nodes.append(found[0])
            else:
                edges.append((found[0], found[1]))
    try:
        mate(second, *points)
    except ValueError as error:
        raise item.error(str(error), "places that span a plane") from None
    for node, edge, pair in zip(nodes, edges, pairs, strict=True):
        _take(first, second, edge, Removal(pair, edge=True))
        for other in nodes:
            _take(first, second, (node, other), Removal(pair, edge=False))
        for a, b in ((edge[0], node), (node, edge[1])):
            own = f"{first.name}-{second.name}.{a.name}-{b.name}"
            _add_pair(part, Pair(a, b, tags, _full(part, own), pair))


def _take(first: Part, second: Part, ends: tuple[Node, Node], removal: Removal) -> None:
    """Mark the pairs between two nodes as taken away; an edge must be one."""
    found: Sequence[Pair] = [
        pair
        for owner in (first, second)
        for inner in owner.walk()
        for pair in inner.pairs
        if pair.joins(*ends) and pair.removal is None
    ]
    if removal.edge and not found:
        names = "' and '".join(node.name for node in ends)
        raise removal.at.error(f"'{names}' are no pair", "an edge: two nodes that a cable joins")
    for pair in found:
        pair.removal = removal
