"""NASA's structure files read a second time, by the rules of their toolkit and nothing of ours.

As in the toolkit, pairs are two places, not two nodes: every motion moves nodes and pairs alike,
and what belongs together is found by equal places. Units and axes are the file's (cm, y up).
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

NASA = Path(__file__).resolve().parents[4].parent / "shared" / "ntrt_data"
"""Data of NASA's toolkit, if a folder ``shared`` lies beside the repository."""

needs_nasa_data = pytest.mark.skipif(not NASA.is_dir(), reason=f"NASA's data are not at {NASA}")

DEFAULTS = {
    "rod": ("tgRodInfo", {}),
    "string": ("tgBasicActuatorInfo", {}),
}
ROD = {"radius": 0.5, "density": 1.0, "friction": 1.0}
STRING = {"stiffness": 1000.0, "damping": 10.0, "pretension": 0.0, "max_tension": 1000.0}


class Part:
    def __init__(self, name):
        self.name, self.nodes, self.pairs, self.parts = name, {}, [], []

    def walk(self):
        yield self
        for part in self.parts:
            yield from part.walk()

    def transform(self, function):
        for part in self.walk():
            part.nodes = {name: function(place) for name, place in part.nodes.items()}
            part.pairs = [[function(a), function(b), tags] for a, b, tags in part.pairs]

    def search(self, accept):
        queue = deque([self])
        while queue:
            part = queue.popleft()
            if accept(part):
                return part
            queue.extend(part.parts)
        raise KeyError

    def part(self, path):
        part = self
        for name in path.split("."):
            part = part.search(lambda p, name=name, top=part: p is not top and p.name == name)
        return part

    def node(self, path):
        *names, last = path.split(".")
        part = self.part(".".join(names)) if names else self
        return part.search(lambda p: last in p.nodes).nodes[last]

    def centroid(self):
        return np.mean([place for part in self.walk() for place in part.nodes.values()], axis=0)


def between(a, b, fallback):
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    if np.linalg.norm(a - b) < 1e-5:
        return Rotation.identity()
    if np.linalg.norm(a + b) < 1e-5:
        return Rotation.from_rotvec(math.pi * fallback / np.linalg.norm(fallback))
    return Rotation.align_vectors([b, np.cross(a, b)], [a, np.cross(a, b)])[0]


def about(rotation, centre):
    return lambda place: centre + rotation.apply(place - centre)


def read(path, name, builders):
    part = Part(name)
    text = yaml.safe_load(path.read_text())
    entries = [(key.split("/"), value) for key, value in text.get("substructures", {}).items()]
    for names, entry in entries:
        if "path" in entry:
            part.parts += [read(path.parent / entry["path"], child, builders) for child in names]
    for names, entry in entries:
        for child in names if "rotation" in entry else ():
            inner, turn = part.part(child), entry["rotation"]
            centre = np.array(turn.get("reference", inner.centroid()), dtype=float)
            axis = np.array(turn["axis"], dtype=float)
            vector = math.radians(turn["angle"]) * axis / np.linalg.norm(axis)
            inner.transform(about(Rotation.from_rotvec(vector), centre))
    for names, entry in entries:
        for index, child in enumerate(names):
            inner = part.part(child)
            factor, centre = entry.get("scale", 1.0), inner.centroid()
            inner.transform(lambda p, f=factor, c=centre: c + f * (p - c))
            step = index * np.array(entry.get("offset", [0, 0, 0]), dtype=float)
            step = step + np.array(entry.get("translation", [0, 0, 0]), dtype=float)
            inner.transform(lambda p, step=step: p + step)
    builders += [
        (set(tags.split()), value["class"], value.get("parameters", {}))
        for tags, value in text.get("builders", {}).items()
    ]
    for node, place in text.get("nodes", {}).items():
        part.nodes[node] = np.array(place, dtype=float)
    for tags, pairs in text.get("pair_groups", {}).items():
        part.pairs += [[part.node(a), part.node(b), set(tags.split())] for a, b in pairs]
    for tags, bonds in text.get("bond_groups", {}).items():
        for key, pairs in bonds.items():
            *names, kind = key.split("/")
            for first, second in pairwise(names):
                ends = part.part(first), part.part(second)
                bind(part, ends, kind, set(tags.split()), pairs)
    return part


def bind(part, ends, kind, tags, pairs):
    first, second = ends
    if kind == "node_node":
        own = tags | {first.name, second.name}
        part.pairs += [[first.node(a), second.node(b), own] for a, b in pairs]
        return

    def middle(owner, text):
        return np.mean([owner.node(name) for name in text.split("/")], axis=0)

    one = [middle(first, a) for a, _ in pairs]
    two = [middle(second, b) for _, b in pairs]
    normals = [np.cross(p[1] - p[0], p[2] - p[0]) for p in (one, two)]
    turn = between(normals[1], normals[0], two[1] - two[0])
    centre, start = np.mean(one, axis=0), np.mean(two, axis=0)
    second.transform(lambda p: centre + turn.apply(p - start))
    last = between(turn.apply(two[0] - start), one[0] - centre, normals[0])
    second.transform(about(last, centre))
    ends = [(first if "/" not in a else second, a if "/" not in a else b) for a, b in pairs]
    nodes = [owner.node(name) for owner, name in ends]
    gone = []
    for (a, b), node in zip(pairs, nodes, strict=True):
        owner, text = (first, a) if "/" in a else (second, b)
        edge = [owner.node(name) for name in text.split("/")]
        part.pairs += [[edge[0], node, tags], [node, edge[1], tags]]
        gone += [edge, *([node, other] for other in nodes)]
    for owner in (*first.walk(), *second.walk()):
        owner.pairs = [
            pair for pair in owner.pairs if is_rod(pair) or not any(same(pair, g) for g in gone)
        ]


def is_rod(pair):
    return bool(pair[2] & {"rod", "prism_rod", "superball_rod"})


def same(pair, ends):
    ways = ((0, 1), (1, 0))
    return any(
        np.linalg.norm(pair[0] - ends[i]) < 1e-9 and np.linalg.norm(pair[1] - ends[j]) < 1e-9
        for i, j in ways
    )


def derive(path):
    """Return masses and centres of the bodies, and the cables, in the order of the toolkit."""
    builders = [({tag}, *value) for tag, value in DEFAULTS.items()]
    top = read(path, "", builders)
    rods, cables = [], []
    for part in top.walk():
        for a, b, tags in part.pairs:
            found = [x for x in builders if x[0] <= tags | {part.name}]
            fits = [x for x in found if x[1] == "tgRodInfo"] or found
            (rods if fits[-1][1] == "tgRodInfo" else cables).append((a, b, fits[-1][2]))
    rods = [(a, b, {**ROD, **values}) for a, b, values in rods]
    bodies, left = [], list(range(len(rods)))
    while left:
        group = [left.pop(0)]
        for index in group:  # grows while it is walked
            near = [
                j
                for j in left
                if any(np.linalg.norm(x - y) < 1e-9 for x in rods[index][:2] for y in rods[j][:2])
            ]
            group += near
            left = [j for j in left if j not in near]
        masses = [
            math.pi * v["radius"] ** 2 * np.linalg.norm(b - a) * v["density"]
            for a, b, v in (rods[i] for i in group)
        ]
        centres = [(rods[i][0] + rods[i][1]) / 2 for i in group]
        bodies.append((sum(masses), np.average(centres, axis=0, weights=masses)))
    return bodies, [cable(a, b, {**STRING, **values}, rods) for a, b, values in cables]


def cable(a, b, values, rods):
    """Return both ends, rest length and values of a cable."""

    def surface(place, other):
        mine = [r for r in rods if min(np.linalg.norm(place - r[i]) for i in (0, 1)) < 1e-9]
        start, end, rod = min(mine, key=lambda r: np.linalg.norm((r[0] + r[1]) / 2 - place))
        axis = (end - start) / np.linalg.norm(end - start)
        # the toolkit turns the axis by -90 degrees about its cross product with the cable
        turn = np.cross(axis, (place - other) / np.linalg.norm(place - other))
        turn = turn / np.linalg.norm(turn)
        side = Rotation.from_rotvec(-math.pi / 2 * turn).apply(axis)
        return place + rod["radius"] * side

    ends = surface(a, b), surface(b, a)
    rest = np.linalg.norm(ends[1] - ends[0]) - values["pretension"] / values["stiffness"]
    return *ends, rest, values
