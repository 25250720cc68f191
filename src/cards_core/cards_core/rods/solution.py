"""The solution of a rod: states, shape, and what follows from them: strains, stresses, energy."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.ends import End, state_of
from cards_core.rods.loads import Loading, Piece, pieces
from cards_core.rods.native_library import rod_library
from cards_core.rods.rod import Rod
from cards_core.rods.status import RodStatus
from cards_core.typing import Array

STEP = 0.2
"""Largest step, as the angle h max(|m|/EI, sqrt(|n|/EI), |u0|) [rad]; the error of order 8 is
then below 1e-11 of the length."""


@dataclass(frozen=True)
class RodShape:
    """A rod as sections along its length.

    Attributes:
        rod: The rod.
        s: Arc lengths of the unstrained rod, shape (k,), [m].
        p: Positions in the world, shape (k, 3), [m].
        R: Orientations, section to world, shape (k, 3, 3).
        n: Forces that the part beyond s exerts on the part before it, world, shape (k, 3), [N].
            At a point load: the value beyond it.
        m: The same for moments, shape (k, 3), [N m].
        energy: Strain energy of the whole rod, [J].
        centroid: Mean position over the unstrained length, shape (3,), [m]: a dead load f per
            length has the potential ``-f L centroid``.
    """

    rod: Rod
    s: Array
    p: Array
    R: Array
    n: Array
    m: Array
    energy: float
    centroid: Array

    @cached_property
    def v(self) -> Array:
        """Derivatives of the position in section axes, shape (k, 3)."""
        local = np.einsum("kji,kj->ki", self.R, self.n)
        return np.asarray(self.rod.strain + local / self.rod.stiffness_se)

    @cached_property
    def u(self) -> Array:
        """Curvatures about d1 and d2 and twist about d3, shape (k, 3), [1/m]."""
        local = np.einsum("kji,kj->ki", self.R, self.m)
        return np.asarray(self.rod.curvature + local / self.rod.stiffness_bt)

    @cached_property
    def curvature(self) -> Array:
        """Size of the bending, sqrt(u1^2 + u2^2), shape (k,), [1/m]."""
        return np.hypot(self.u[:, 0], self.u[:, 1])

    @cached_property
    def bending_stress(self) -> Array:
        """Largest bending stress of each section, shape (k,), [Pa].

        ``E r |u - u0|`` for round sections, ``E (|y|max |u1| + |x|max |u2|)`` for others, which
        a rectangle has in a corner.
        """
        return self.rod.material.young * _bending_strain(self.rod, self.u)

    @cached_property
    def stress(self) -> Array:
        """Equivalent stress after von Mises, shape (k,), [Pa].

        ``sqrt((sigma_axial + sigma_bending)^2 + 3 tau^2)`` of the largest values, exact for
        round sections under bending, tension and torsion, an upper bound for others. The shear
        stress of transverse forces is neglected: it is smaller by the slenderness.
        """
        return equivalent_stress(self.rod, self.v, self.u)

    @cached_property
    def strain(self) -> Array:
        """Equivalent strain ``stress / E``, shape (k,)."""
        return self.stress / self.rod.material.young

    @property
    def max_strain(self) -> float:
        """Largest equivalent strain."""
        return float(self.strain.max())

    @property
    def yields(self) -> bool | None:
        """Is the rod strained beyond its material's yield strain? None: that is not known."""
        limit = self.rod.yield_strain
        return None if limit is None else self.max_strain > limit

    @property
    def tip(self) -> Array:
        """Pose of the last section, shape (4, 4)."""
        return pose_matrix(self.p[-1], self.R[-1])


def equivalent_stress(rod: Rod, v: Array, u: Array) -> Array:
    """Return `RodShape.stress` of sections, shape (k,), [Pa].

    Args:
        rod: The rod.
        v: Derivatives of the position in section axes, shape (k, 3).
        u: Curvatures and twist, shape (k, 3), [1/m].
    """
    shear = rod.material.shear_modulus * rod.section.torsion_radius
    twist = shear * np.abs(u[:, 2] - rod.curvature[2])
    direct = np.abs(v[:, 2] - rod.strain[2]) + _bending_strain(rod, u)
    return np.sqrt((rod.material.young * direct) ** 2 + 3.0 * twist**2)


def _bending_strain(rod: Rod, u: Array) -> Array:
    change = np.abs(u[:, :2] - rod.curvature[:2])
    x, y = rod.section.half_width
    if rod.section.round:
        return np.asarray(x * np.hypot(change[:, 0], change[:, 1]))
    return np.asarray(y * change[:, 0] + x * change[:, 1])


def shape(
    rod: Rod,
    length: float,
    pose: Array,
    wrench: Sequence[float] | Array,
    loading: Loading | None = None,
    *,
    points: int = 101,
) -> RodShape:
    """Integrate a rod whose state at the start is known.

    Args:
        rod: The rod.
        length: Unstrained length, [m].
        pose: Pose of the start in the world, shape (4, 4).
        wrench: Force n and moment m at the start, world axes, shape (6,), [N, N m].
        loading: Loads between the ends.
        points: Sections, equally spaced from start to tip.

    Raises:
        RodError: A bad length or load, values that are not finite, or a shape that is not.
    """
    state = state_of(pose, wrench)
    return shape_of_pieces(rod, ((state, pieces(rod, length, loading or Loading())),), points)


def shape_of_pieces(
    rod: Rod, chains: Sequence[tuple[Array, Sequence[Piece]]], points: int
) -> RodShape:
    """Integrate pieces of a rod, each chain of them from a known state.

    Args:
        rod: The rod.
        chains: States, shape (18,) each, and the pieces that follow them. The state of a chain is
            the one before the point load at its start.
        points: Sections, equally spaced over all pieces.

    Raises:
        RodError: The shape is not finite.
    """
    last = chains[-1][1][-1]
    length = last.start + last.length
    wanted = np.linspace(0.0, length, max(int(points), 2))
    sections = np.empty((len(wanted), 18))
    sums = np.zeros(4)
    done = 0
    for start, parts in chains:
        state = start.copy()
        for part in parts:
            state[12:] -= part.jump
            # values at a cut belong to the piece that begins there
            side: Literal["left", "right"] = "right" if part is last else "left"
            end = part.start + part.length
            until = int(np.searchsorted(wanted, end * (1.0 + 1e-15), side=side))
            here = np.minimum(wanted[done:until], end)
            states = advance(part, np.append(here, end), state, sums)
            sections[done:until] = states[:-1]
            done = until
    if not (np.isfinite(sections).all() and np.isfinite(sums).all()):
        raise RodError("the shape of the rod is not finite: loads far beyond what it can carry")
    return RodShape(
        rod=rod,
        s=wanted,
        p=sections[:, :3],
        R=sections[:, 3:12].reshape(-1, 3, 3),
        n=sections[:, 12:15],
        m=sections[:, 15:],
        energy=float(sums[0]),
        centroid=sums[1:] / length,
    )


def advance(part: Piece, until: Array, state: Array, sums: Array) -> Array:
    """Move a state along a piece and return it at the arc lengths `until`.

    Args:
        part: The piece.
        until: Rising arc lengths of the rod, shape (k,), [m].
        state: State at the start of the piece, shape (18,); at the last section afterwards.
        sums: Strain energy and integral of p, shape (4,); those of the piece are added.

    Returns:
        States, shape (k, 18).
    """
    states = np.empty((len(until), 18))
    lengths = np.diff(until, prepend=part.start)
    rod_library().rod_sections(
        ctypes.byref(part.native),
        len(until),
        ctypes.c_void_p(lengths.ctypes.data),
        ctypes.c_double(STEP),
        ctypes.c_void_p(state.ctypes.data),
        ctypes.c_void_p(states.ctypes.data),
        ctypes.c_void_p(sums.ctypes.data),
    )
    return states


def pose_matrix(p: Array, R: Array) -> Array:
    """Return the homogeneous matrix, shape (4, 4), of a position and an orientation."""
    out = np.eye(4)
    out[:3, :3] = R
    out[:3, 3] = p
    return out


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
