"""A rod in segments: where it is cut, and states at the cuts from other states."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.ends import End
from cards_core.rods.loads import Piece
from cards_core.rods.rod import Rod
from cards_core.rods.shooting import shoot, steps_of
from cards_core.typing import Array

SEGMENT = 3.0
"""``sqrt(|n|/EI)`` times the length of a segment to which rods are cut."""

FEWEST = 16
"""Segments to begin with: relaxation and Newton's method then converge from far away."""


def cut(
    whole: Sequence[Piece], length: float, slender: float, segments: int | None
) -> tuple[Piece, ...]:
    """Cut pieces into segments of about equal length.

    Args:
        whole: The pieces.
        length: Length of the rod, [m].
        slender: ``sqrt(|n|/EI) L`` as far as it is known.
        segments: Number of segments instead of the one that follows from it.

    Raises:
        RodError: Less than one segment is asked for.
    """
    total = max(FEWEST, math.ceil(slender / SEGMENT)) if segments is None else int(segments)
    if total < 1:
        raise RodError(f"{total} segments; expected at least 1")
    out: list[Piece] = []
    for piece in whole:
        count = max(1, math.ceil(total * piece.length / length - 1e-9))
        for i in range(count):
            first = piece.start + piece.length * i / count
            out.append(piece.part(first if i else piece.start, piece.length / count))
    return tuple(out)


def cuts_of(parts: Sequence[Piece]) -> Array:
    """Return the arc lengths of the ends of segments, shape (k,), [m]."""
    last = parts[-1]
    return np.array([part.start for part in parts] + [last.start + last.length])


def shot(parts: Sequence[Piece], start: End, wrench: Array) -> Array:
    """Return the states at the cuts of the rod that leaves a start with this (n, m)."""
    if wrench.shape != (6,) or not np.isfinite(wrench).all():
        raise RodError(f"guess of shape {wrench.shape}; expected (n, m) at the start, 6 numbers")
    nodes = [np.concatenate([start.pose[:3, 3], start.pose[:3, :3].ravel(), wrench])]
    for part in parts:
        nodes.append(shoot(part, nodes[-1], steps_of(part, nodes[-1], 0.4)))
    return np.array(nodes)


def interpolated(
    parts: Sequence[Piece], nodes: Array, finer: Sequence[Piece], stretch: float = 1.0
) -> Array:
    """Return states at other cuts.

    Args:
        parts: Segments of a solution.
        nodes: States at their ends, shape (k, 18).
        finer: Segments whose ends are wanted.
        stretch: Length of the rod of the solution over that of the other.
    """
    starts = np.array([part.start for part in parts])
    out = []
    for s in cuts_of(finer)[:-1] * stretch:
        i = max(int(np.searchsorted(starts, s * (1.0 + 1e-12), side="right")) - 1, 0)
        state, ahead = nodes[i], s - parts[i].start
        if ahead > 1e-12 * s:
            part = parts[i].part(parts[i].start, ahead)
            state = shoot(part, state, steps_of(part, state, 0.4))
        out.append(state)
    return np.array([*out, nodes[-1]])


def slenderness(rod: Rod, length: float, nodes: Array) -> float:
    """Return ``sqrt(|n|/EI) L`` with the largest force at the cuts."""
    force = float(np.linalg.norm(nodes[:, 12:15], axis=1).max())
    return math.sqrt(force / rod.bending_stiffness) * length
