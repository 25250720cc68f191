"""Names of what varies in a point set, and the coordinates q that follow from their values.

A *coordinate* is an entry of q that belongs to a revolute or prismatic joint, or one component of
the rotation of a ball joint, ``JOINT.rx``, ``.ry``, ``.rz``: the rotation vector r [rad] by which
the joint is turned from home, in the axes of the moved body, ``quat = quat_home * exp(r)``. A
quaternion's own entries cannot vary one at a time, a rotation vector's can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot.model import Node, Tree
from cards_core.typing import Array


class PointSetError(CardsError):
    """A grid, sample, ray or file of points that cannot be meant: the message says why."""


ROTATION_SUFFIXES = ("rx", "ry", "rz")
"""Of the components of a ball joint's rotation vector."""


@dataclass(frozen=True)
class Coordinate:
    """Something that a grid, a range or a fixed value can be given for.

    Attributes:
        name: As in results.
        unit: ``m`` or ``rad``.
        q: Entry of q; for a rotation the first of the quaternion.
        v: Entry of qd that belongs to it, the direction of a ray along it.
        component: 0, 1, 2 of a rotation vector; -1 for a plain entry of q.
    """

    name: str
    unit: str
    q: int
    v: int
    component: int = -1


class Coordinates:
    """All coordinates of a tree, by name.

    Attributes:
        tree: The robot's.
        all: In the order of q.
        balls: Name of each ball joint to the first entry of its quaternion in q.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        found: list[Coordinate] = []
        self.balls: dict[str, int] = {}
        for node in tree.nodes:
            if node.kind == "ball":
                self.balls[node.name] = node.q
            found += _of_node(node)
        self.all = tuple(found)
        self._by_name = {coordinate.name: coordinate for coordinate in found}

    def find(self, name: str) -> Coordinate:
        """Return a coordinate by its name, or by the end of it if only one name ends so.

        ``x`` finds ``platform_x``, ``rz`` finds ``wrist.rz``.

        Raises:
            UnknownNameError: There is none; the message lists all.
            PointSetError: Several names end so.
        """
        if name in self._by_name:
            return self._by_name[name]
        ends = [c for c in self.all if c.name.endswith((f"_{name}", f".{name}"))]
        if len(ends) == 1:
            return ends[0]
        if ends:
            raise PointSetError(
                f"coordinate '{name}' may be {' or '.join(c.name for c in ends)} "
                "(expected: one of these names in full)"
            )
        for ball in self.balls:
            if name in {f"{ball}.{c}" for c in "wxyz"} | {ball}:
                raise PointSetError(
                    f"'{name}' is part of a quaternion, which has no entry that could be given "
                    f"alone (expected: {ball}.rx, {ball}.ry, {ball}.rz, the rotation vector "
                    "[rad] from home)"
                )
        raise UnknownNameError("coordinate", name, self._by_name)

    def find_values(self, values: Mapping[str, float]) -> dict[Coordinate, float]:
        """Return values by coordinate.

        Raises:
            UnknownNameError: See `find`.
            PointSetError: A value is not finite, or a coordinate is there twice.
        """
        out: dict[Coordinate, float] = {}
        for name, value in values.items():
            coordinate = self.find(name)
            if not np.isfinite(value):
                raise PointSetError(f"the value of '{name}' is {value} (expected: a number)")
            if coordinate in out:
                raise PointSetError(f"'{coordinate.name}' is given twice (expected: once)")
            out[coordinate] = float(value)
        return out

    def compose(
        self,
        columns: Sequence[Coordinate],
        values: Array,
        fixed: Mapping[Coordinate, float],
        quaternions: Mapping[int, Array] | None = None,
    ) -> Array:
        """Return q of points: home, but for what varies and what is fixed.

        Args:
            columns: Coordinates that vary, k of them.
            values: Their values, shape (n, k).
            fixed: Coordinates with one value for all points.
            quaternions: First entry in q to quaternions, shape (n, 4): balls that are given so.

        Returns:
            Shape (n, nq).
        """
        count = len(values)
        q = np.tile(self.tree.home, (count, 1))
        turned: dict[int, Array] = {}
        given = [(c, values[:, i]) for i, c in enumerate(columns)]
        given += [(c, np.full(count, value)) for c, value in fixed.items()]
        for coordinate, column in given:
            if coordinate.component < 0:
                q[:, coordinate.q] = column
            else:
                vectors = turned.setdefault(coordinate.q, np.zeros((count, 3)))
                vectors[:, coordinate.component] = column
        for start, vectors in turned.items():
            block = q[:, start : start + 4]
            q[:, start : start + 4] = quaternion_products(block, rotations(vectors))
        for start, rows in (quaternions or {}).items():
            q[:, start : start + 4] = rows
        return q

    def move(self, q: Array, velocities: Array) -> Array:
        """Move every row of q along a tangent vector; see `Tree.integrate`.

        Args:
            q: Shape (n, nq).
            velocities: Shape (n, nv), velocity times time.
        """
        out = q.copy()
        for node in self.tree.nodes:
            v = velocities[:, node.v : node.v + node.nv]
            if node.kind == "ball":
                block = slice(node.q, node.q + 4)
                out[:, block] = quaternion_products(q[:, block], rotations(v))
            else:
                out[:, node.q] += v[:, 0]
        return out


def rotations(vectors: Array) -> Array:
    """Return the quaternions of rotation vectors, shape (n, 3) [rad]; result (n, 4)."""
    angle = np.linalg.norm(vectors, axis=1)
    # np.sinc(x) = sin(pi x) / (pi x), exact where the angle vanishes
    scale = 0.5 * np.sinc(angle / (2.0 * np.pi))
    return np.column_stack([np.cos(0.5 * angle), scale[:, None] * vectors])


def quaternion_products(a: Array, b: Array) -> Array:
    """Return the Hamilton products a * b of rows, shape (n, 4), with length 1."""
    aw, ax, ay, az = a.T
    bw, bx, by, bz = b.T
    out = np.column_stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )
    return np.asarray(out / np.linalg.norm(out, axis=1, keepdims=True))


def _of_node(node: Node) -> list[Coordinate]:
    if node.kind == "ball":
        return [
            Coordinate(f"{node.name}.{suffix}", "rad", node.q, node.v + k, k)
            for k, suffix in enumerate(ROTATION_SUFFIXES)
        ]
    unit = "rad" if node.kind == "revolute" else "m"
    return [Coordinate(node.name, unit, node.q, node.v)]
