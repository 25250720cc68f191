"""Equilibrium of a single rod: states at its cuts, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cards_core.rods.ends import End
from cards_core.rods.loads import Loading, Piece
from cards_core.rods.rod import Rod
from cards_core.rods.shape import RodShape, pose_matrix, shape_of_pieces
from cards_core.rods.status import RodStatus
from cards_core.typing import Array


@dataclass(frozen=True)
class RodSolution:
    """Equilibrium of a rod, or the best that was found: look at `status`.

    Attributes:
        status: OK, YIELD, AMBIGUOUS, UNSTABLE, NOT_CONVERGED or UNREACHABLE.
        message: The same in words, empty if OK.
        rod: The rod.
        length: Its unstrained length, [m].
        ends: End conditions, start and tip.
        loading: Loads between the ends.
        parts: The segments.
        nodes: States (p, R by rows, n, m) at the cuts, before point loads there, (k, 18).
        residual: Largest scaled residual.
        discretisation: Largest scaled change of a segment when its steps are doubled.
        iterations: Jacobians that were formed.
        steps: Steps of order 8 over the whole rod.
        min_eigenvalue: Of the second variation of the energy (`cards_core.rods.stability`), in
            EI/L; NaN where it was not asked for, does not apply or nothing was found.
    """

    status: RodStatus
    message: str
    rod: Rod
    length: float
    ends: tuple[End, End]
    loading: Loading
    parts: tuple[Piece, ...]
    nodes: Array
    residual: float
    discretisation: float
    iterations: int
    steps: int
    min_eigenvalue: float = math.nan

    @property
    def converged(self) -> bool:
        """Is this an equilibrium?"""
        return self.status not in (RodStatus.NOT_CONVERGED, RodStatus.UNREACHABLE)

    @property
    def conservative(self) -> bool:
        """Do all loads have a potential, so that stability is a question of energy?"""
        moments = [p.native.moment for p in self.parts] + [p.jump[3:] for p in self.parts]
        return all(end.conservative for end in self.ends) and not any(map(any, moments))

    @property
    def start_pose(self) -> Array:
        """Pose of the start, shape (4, 4)."""
        return pose_matrix(self.nodes[0, :3], self.nodes[0, 3:12].reshape(3, 3))

    @property
    def tip_pose(self) -> Array:
        """Pose of the tip, shape (4, 4)."""
        return pose_matrix(self.nodes[-1, :3], self.nodes[-1, 3:12].reshape(3, 3))

    @property
    def start_wrench(self) -> Array:
        """(n, m) at the start, world axes, shape (6,); what holds the start is its opposite."""
        return self.nodes[0, 12:].copy()

    @property
    def tip_wrench(self) -> Array:
        """(n, m) at the tip, world axes, shape (6,): what acts on the tip from outside."""
        return self.nodes[-1, 12:].copy()

    def shape(self, points: int = 101) -> RodShape:
        """Return the rod as sections; each segment is integrated from its own state."""
        chains = [(node, (part,)) for node, part in zip(self.nodes, self.parts, strict=False)]
        return shape_of_pieces(self.rod, chains, points)

    @property
    def energy(self) -> float:
        """Strain energy, [J]."""
        return self.shape(2).energy
