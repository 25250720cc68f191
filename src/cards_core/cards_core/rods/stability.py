"""Is an equilibrium of a rod stable? Conjugate points, critical loads, soft directions.

A segment from a to b that is held at both ends by wrenches resists small moves of its ends with a
stiffness that follows from the derivative of its end by its start (equation: `held_stiffness`).
Put together like a truss these stiffnesses are, exactly, the second derivative of the potential
energy with everything between the cuts in equilibrium, as long as no segment can buckle between
its own held ends; segments are cut until they are far too short for that ([Wittrick1971]).
So:

* the rod is stable if the assembled matrix, without the held directions of the ends, is positive
  definite; the number of its negative eigenvalues is the number of independent ways to collapse;
* s is a conjugate point if the part from the start to s, held at s, can move without force. Their
  number up to s is the number of negative pivots of the matrix of that part. They are counted
  with multiplicity, which the determinant of the shooting matrix, with its sign changes, misses:
  a straight round rod buckles to all sides at once.

Dead forces only: follower loads and moments that are fixed in space have no potential, and under
them a rod may begin to flutter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, eig_banded

from cards_core.errors import RodError
from cards_core.rods.ends import End, state_of
from cards_core.rods.loads import Loading, Piece, pieces
from cards_core.rods.rod import Rod
from cards_core.rods.shooting import scales, shoot, steps_of, transfer
from cards_core.rods.solution import RodSolution
from cards_core.typing import Array

TURN = 1.5
"""Largest ``sqrt(|n|/EI) h`` and ``|m| h / EI`` of a segment; it could buckle from 2 pi on."""

COMPLIANCE = 1e-9
"""Shear and extension per ``L^2/EI`` that an inextensible rod is given: its stiffness would be
infinite. Critical loads change by the same relative amount."""

NEUTRAL = 1e-6
"""Eigenvalues of this size are zero up to rounding. A round rod that has buckled can turn around
its axis of load without force: it has one, and holds."""

LOWEST = 12
"""How many eigenvalues are computed."""

ANGLE = 0.3
"""Largest turn of an integration step, [rad]."""


@dataclass(frozen=True)
class Stability:
    """Second variation of the energy at an equilibrium.

    Attributes:
        eigenvalues: The lowest, rising, shape (k,): second variation in units of ``EI/L`` over
            the mean square of the move along the rod, moves in units of L, rotations in radians.
        modes: Moves (dp, dphi) of the cuts that belong to the smallest eigenvalue, shape (c, 6),
            [m, rad], of unit mean square.
        s: Arc lengths of the cuts, shape (c,), [m].
    """

    eigenvalues: Array
    modes: Array
    s: Array

    @property
    def min_eigenvalue(self) -> float:
        """Positive: stable; zero: critical; negative: unstable."""
        return float(self.eigenvalues[0])

    @property
    def index(self) -> int:
        """Number of independent directions in which the rod collapses, at most `LOWEST`."""
        return int((self.eigenvalues < -NEUTRAL).sum())

    @property
    def stable(self) -> bool:
        """Whether the equilibrium is stable."""
        return self.index == 0


def stability(solution: RodSolution) -> Stability:
    """Return the second variation at a solution, under its end conditions.

    Raises:
        RodError: A load that has no potential: a follower, or a moment that is fixed in space.
    """
    if not solution.conservative:
        raise RodError(
            "a follower load, or a moment that is fixed in space, has no potential: stability by "
            "energy does not apply"
        )
    rod, length = solution.rod, solution.length
    parts, nodes = _segments(rod, length, solution.parts, solution.nodes[:-1])
    unit = scales(rod, length)[:6]
    cuts = np.array([*(part.start for part in parts), length])
    # each cut stands for the rod half way to its neighbours
    share = 0.5 * (np.diff(cuts, prepend=0.0) + np.diff(cuts, append=length)) / length
    free = [np.eye(6)] * len(cuts)
    free[0] = _moves(solution.ends[0], solution.nodes[0], unit)
    free[-1] = _moves(solution.ends[1], solution.nodes[-1], unit)
    free = [move / math.sqrt(part) for move, part in zip(free, share, strict=True)]
    first = np.cumsum([0, *(move.shape[1] for move in free)])
    band = np.zeros((12, first[-1]))
    for i, (part, state) in enumerate(zip(parts, nodes, strict=True)):
        block = _scaled(held_stiffness(part, state), unit, rod, length)
        basis = block_diag(free[i], free[i + 1])
        _add(band, first[i], basis.T @ block @ basis)
    several = (0, min(LOWEST, first[-1]) - 1)
    values, vectors = eig_banded(band, lower=True, select="i", select_range=several)
    ranges = zip(free, first, first[1:], strict=False)
    mode = np.array([move @ vectors[a:b, 0] for move, a, b in ranges]) * unit
    return Stability(values, mode, cuts)


def conjugate_points(
    rod: Rod,
    length: float,
    pose: Array,
    wrench: Sequence[float] | Array,
    loading: Loading | None = None,
) -> Array:
    """Return the conjugate points of a rod that is clamped at its start.

    One at s means: the part of the rod up to s, clamped at both ends, is at its buckling load.
    None up to the tip means: stable with a clamped tip. Points of higher multiplicity are
    repeated.

    Args:
        rod: The rod.
        length: Unstrained length, [m].
        pose: Pose of the start, shape (4, 4).
        wrench: (n, m) at the start, world axes, shape (6,).
        loading: Loads between the ends.

    Returns:
        Arc lengths, rising, shape (k,), [m], to 1e-10 of the length.

    Raises:
        RodError: Arguments that mean nothing.
    """
    states = [state_of(pose, wrench)]
    whole = pieces(rod, length, loading or Loading())
    for part in whole[:-1]:
        states.append(shoot(part, states[-1], steps_of(part, states[-1], ANGLE)))
    parts, states = _segments(rod, length, whole, states)
    return _conjugate(rod, length, parts, states)


def conjugate_points_of(solution: RodSolution) -> Array:
    """Return the conjugate points of a solution as if its start were clamped, shape (k,), [m]."""
    parts, states = _segments(solution.rod, solution.length, solution.parts, solution.nodes[:-1])
    return _conjugate(solution.rod, solution.length, parts, states)


def held_stiffness(part: Piece, state: Array) -> Array:
    """Return the stiffness of a segment against moves of its two ends.

    With ``dX1 = A dX0 + B dW0`` and ``dW1 = C dX0 + D dW0`` for poses X and (n, m) W, the
    wrenches -W0 and W1 that hold the ends change by::

        [ B^-1 A           -B^-1  ] [dX0]
        [ C - D B^-1 A    D B^-1  ] [dX1]

    Args:
        part: The segment.
        state: State at its start, before the jump, shape (18,).

    Returns:
        Shape (12, 12), in world axes; symmetric but for the moments at the ends, which cancel
        where segments meet.
    """
    _, matrix = transfer(part, state, steps_of(part, state, ANGLE))
    a, b, c, d = matrix[:6, :6], matrix[:6, 6:], matrix[6:, :6], matrix[6:, 6:]
    inverse = np.linalg.inv(b)
    return np.block([[inverse @ a, -inverse], [c - d @ inverse @ a, d @ inverse]])


def _segments(
    rod: Rod, length: float, parts: Sequence[Piece], states: Sequence[Array] | Array
) -> tuple[list[Piece], list[Array]]:
    """Cut pieces until none can buckle between held ends; states at their starts."""
    cut: list[Piece] = []
    at: list[Array] = []
    for part, start in zip(parts, states, strict=False):
        force = float(np.linalg.norm(start[12:15] - part.jump[:3]))
        force += float(np.linalg.norm(part.force)) * part.length
        short = math.sqrt(force / rod.bending_stiffness) * part.length / TURN
        state = start
        for piece in _split(_extensible(part, rod, length), short):
            # along the piece the moment changes by force and load times its length at most
            moment = float(np.linalg.norm(state[15:18] - piece.jump[3:]))
            moment += (force + float(np.linalg.norm(piece.native.moment))) * piece.length
            rate = moment / min(rod.bending_stiffness, float(rod.stiffness_bt[2]))
            rate = max(rate, float(np.linalg.norm(rod.curvature)))
            for segment in _split(piece, rate * piece.length / TURN):
                cut.append(segment)
                at.append(state)
                state = shoot(segment, state, steps_of(segment, state, ANGLE))
    return cut, at


def _add(band: Array, first: int, block: Array) -> None:
    """Add the symmetric part of a block to a lower band: band[i - j, j]."""
    symmetric = 0.5 * (block + block.T)
    for j in range(len(block)):
        band[: len(block) - j, first + j] += symmetric[j:, j]


def _split(part: Piece, share: float) -> list[Piece]:
    """Cut a piece into at least `share` pieces of equal length."""
    count = max(1, math.ceil(share))
    starts = [part.start + part.length * i / count for i in range(count)]
    return [part.part(start, part.length / count) for start in starts]


def _extensible(part: Piece, rod: Rod, length: float) -> Piece:
    if not rod.inextensible:
        return part
    native = rod.native(tuple(part.native.force), tuple(part.native.moment))
    native.inv_kse[:] = (COMPLIANCE * length**2 / rod.bending_stiffness,) * 3
    return Piece(part.start, part.length, native, part.jump)


def _conjugate(rod: Rod, length: float, parts: Sequence[Piece], states: Sequence[Array]) -> Array:
    unit = scales(rod, length)[:6]

    def block(part: Piece, state: Array) -> Array:
        # what is not symmetric belongs to the moments at its ends, which cancel at the cuts
        held = _scaled(held_stiffness(part, state), unit, rod, length)
        return np.asarray(0.5 * (held + held.T))

    found: list[float] = []
    count, corner = 0, np.zeros((0, 0))
    for part, state in zip(parts, states, strict=True):
        held = block(part, state)
        # `corner` is the stiffness that the part before shows at the cut
        pivot = held[:6, :6] + corner if corner.size else None
        after = count + (_negative(pivot) if pivot is not None else 0)
        for k in range(count, after):
            # the k-th point lies in this segment: bisect for where the count passes k
            low, high = 0.0, 1.0
            while (high - low) * part.length > 1e-10 * length:
                middle = 0.5 * (low + high)
                piece = part.part(part.start, middle * part.length)
                if count + _negative(block(piece, state)[:6, :6] + corner) > k:
                    high = middle
                else:
                    low = middle
            found.append(part.start + high * part.length)
        count = after
        corner = held[6:, 6:]
        if pivot is not None:
            corner = corner - held[6:, :6] @ np.linalg.solve(pivot, held[:6, 6:])
    return np.array(found)


def _negative(matrix: Array) -> int:
    return int((np.linalg.eigvalsh(matrix) < 0.0).sum())


def _scaled(matrix: Array, unit: Array, rod: Rod, length: float) -> Array:
    both = np.concatenate([unit, unit])
    return np.asarray(matrix * both * both[:, None] * (length / rod.bending_stiffness))


def _moves(end: End, state: Array, unit: Array) -> Array:
    """Basis, shape (6, f), of the moves in scaled units that the end leaves free."""
    rows = end.rows(state, 1.0)[1][~end.mask, :6] * unit
    if not len(rows):
        return np.eye(6)
    _, _, vectors = np.linalg.svd(rows)
    return np.asarray(vectors[len(rows) :].T)
