"""Loads on one rod: weight, distributed forces and moments, forces at a point.

All are dead loads: fixed in the world, whatever the rod does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cards_core.checks import finite_array
from cards_core.errors import RodError
from cards_core.rods.native_library import NativeRod
from cards_core.rods.rod import Rod
from cards_core.typing import Array, Vector3

Triple = tuple[float, float, float]

ZERO: Triple = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class DistributedLoad:
    """Force and moment per unstrained length between two arc lengths.

    Args:
        force: In world axes, shape (3,), [N/m].
        moment: In world axes, shape (3,), [N].
        start: Arc length of the unstrained rod where it begins, [m].
        end: Where it ends, [m]; None: the tip.
    """

    force: Triple = ZERO
    moment: Triple = ZERO
    start: float = 0.0
    end: float | None = None


@dataclass(frozen=True)
class PointLoad:
    """Force and moment at one section between the ends.

    Args:
        at: Arc length of the unstrained rod, [m].
        force: In world axes, shape (3,), [N].
        moment: In world axes, about the section's centre, shape (3,), [N m].
    """

    at: float
    force: Triple = ZERO
    moment: Triple = ZERO


@dataclass(frozen=True)
class Loading:
    """All loads of a rod between its ends.

    Args:
        gravity: Acceleration in the world, [m/s2]; times the rod's mass it is its weight.
        distributed: Distributed loads; they add where they overlap.
        points: Loads at points.
    """

    gravity: Triple = ZERO
    distributed: tuple[DistributedLoad, ...] = ()
    points: tuple[PointLoad, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A part of a rod under constant load per length.

    Attributes:
        start: Arc length where it starts, [m].
        length: Its unstrained length, [m].
        native: The rod with its load, for the C functions.
        jump: Force and moment of the point loads at its start, shape (6,); n and m fall by it.
    """

    start: float
    length: float
    native: NativeRod
    jump: Array

    @property
    def force(self) -> Vector3:
        """Load per unstrained length, weight included, shape (3,), [N/m]."""
        return np.array(self.native.force)

    def part(self, start: float, length: float) -> Piece:
        """Return a part of the piece; the jump goes with the part that has its start."""
        jump = self.jump if start == self.start else np.zeros(6)
        return Piece(start, length, self.native, jump)


def pieces(rod: Rod, length: float, loading: Loading) -> tuple[Piece, ...]:
    """Cut a rod where its load changes.

    Args:
        rod: The rod.
        length: Its unstrained length, [m].
        loading: Its loads.

    Raises:
        RodError: The length is not positive, or a load lies outside the rod.
    """
    if not (math.isfinite(length) and length > 0.0):
        raise RodError(f"length is {length:g} m; expected a finite positive number")
    spans = [_span(load, length) for load in loading.distributed]
    cuts = {0.0, length}
    for span in spans:
        cuts.update(span)
    for point in loading.points:
        if not 0.0 < point.at < length:
            raise RodError(
                f"point load at {point.at:g} m; expected between 0 and {length:g} m, "
                "without the ends: their loads are part of the end conditions"
            )
        cuts.add(point.at)
    weight = rod.weight(finite_array(loading.gravity, "gravity", (3,), error=RodError))
    out: list[Piece] = []
    for start, end in pairwise(sorted(cuts)):
        force, moment, jump = weight.copy(), np.zeros(3), np.zeros(6)
        for load, (first, last) in zip(loading.distributed, spans, strict=True):
            if first <= start and end <= last:
                force += finite_array(load.force, "distributed force", (3,), error=RodError)
                moment += finite_array(load.moment, "distributed moment", (3,), error=RodError)
        for point in loading.points:
            if point.at == start:
                jump[:3] += finite_array(point.force, "point force", (3,), error=RodError)
                jump[3:] += finite_array(point.moment, "point moment", (3,), error=RodError)
        out.append(Piece(start, end - start, rod.native(force, moment), jump))
    return tuple(out)


def _span(load: DistributedLoad, length: float) -> tuple[float, float]:
    end = length if load.end is None else load.end
    if not 0.0 <= load.start < end <= length:
        raise RodError(
            f"distributed load from {load.start:g} to {end:g} m; expected a part of the rod, "
            f"0 to {length:g} m"
        )
    return load.start, end
