"""The first pose, from lengths alone, and which coordinates the lengths tell there.

Lengths do not name one pose. Different poses can have the same lengths (mirror images of a
linkage with few muscles), motions can leave all lengths as they are, and a slack or wrongly zeroed
muscle makes the lengths those of no pose. So least squares
(`cards_core.analysis.forward_kinematics`) runs from home and from random poses, and what it finds
is put in words: `InitialGuess.statement`.

**Observability.** Lengths of one moment tell a small displacement dq by ``dl = L dq``. Directions
in the null space of L change no length: whatever has a part in one of them cannot be known from
lengths at this pose. For the others one set of lengths with independent noise sigma gives the
covariance

    sigma^2 (L' L)^-1                                            [BarShalom2001]_

Coordinates have different units, so the rank is that of L with columns of unit length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cards_core.analysis.forward_kinematics import ForwardKinematics
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.typing import Array

RANK_TOLERANCE = 1e-6
"""Singular value of L with unit columns, relative to the largest, that counts as none: no encoder
resolves a millionth of the motion."""

SHARE = 1e-3
"""Part of a coordinate in a direction that changes no length from which on it is named."""


@dataclass(frozen=True, eq=False, slots=True)
class Observability:
    """What lengths tell at one pose.

    Attributes:
        rank: Of L.
        unobservable: Names of the coordinates that have a part in a motion that changes no length.
        std: Standard deviation of every coordinate from one set of lengths, shape (nv,), [rad] or
            [m]; infinite for the unobservable ones.
        weakest: Motion that changes the lengths least, shape (nv,), of unit length.
        gain: Change of the lengths along it, |L weakest|, [m/rad] or [1].
    """

    rank: int
    unobservable: tuple[str, ...]
    std: Array
    weakest: Array
    gain: float

    def __bool__(self) -> bool:
        """Return True if every coordinate can be told."""
        return not self.unobservable


def observability(
    jacobian: Array, length_noise: float, names: tuple[str, ...] | list[str]
) -> Observability:
    """Return what lengths with the Jacobian L tell.

    Args:
        jacobian: L of the muscles that are measured, shape (k, nv).
        length_noise: Standard deviation of a length, [m].
        names: Of the coordinates, shape (nv,): `Tree.velocity_names`.
    """
    nv = jacobian.shape[1]
    if not nv:
        return Observability(0, (), np.zeros(0), np.zeros(0), math.inf)
    norms = np.linalg.norm(jacobian, axis=0)
    unit = jacobian / np.where(norms > 0.0, norms, 1.0)
    # full: with fewer muscles than coordinates the null space is not in the thin decomposition
    _, values, rows = np.linalg.svd(unit, full_matrices=True)
    values = np.concatenate([values, np.zeros(nv - len(values))])
    kept = values > RANK_TOLERANCE * max(float(values[0]), 1e-300)
    null = rows[~kept]
    hidden = np.linalg.norm(null, axis=0) > SHARE
    # (L'L)^-1 = N^-1 V s^-2 V' N^-1 for L = U s V' N
    scaled = rows[kept] / values[kept, None]
    std = length_noise * np.linalg.norm(scaled, axis=0) / np.where(norms > 0.0, norms, 1.0)
    std[hidden] = math.inf
    _, gains, motions = np.linalg.svd(jacobian, full_matrices=True)
    return Observability(
        rank=int(kept.sum()),
        unobservable=tuple(n for n, h in zip(names, hidden, strict=True) if h),
        std=std,
        weakest=motions[-1],
        gain=float(gains[-1]) if len(gains) == nv else 0.0,
    )


FIT = 5.0
"""Largest residual of a pose that has the lengths, [sigma]."""

MAX_EXCLUDED = 2
"""So many bad muscles are looked for; more are a matter of calibration, not of luck."""

FEW = 4
"""Starting points of a search without some muscles."""

APART = 0.05
"""Distance from which on two poses are different ones, [rad] or [m]."""


class EstimationError(CardsError):
    """Joint coordinates cannot be told from these lengths."""


@dataclass(frozen=True, eq=False, slots=True)
class InitialGuess:
    """A first pose.

    Attributes:
        q: Coordinates, shape (nq,): of the poses that fit, the one nearest to where the search
            began (home, or the given pose).
        others: Other poses that fit as well, shape (n, nq).
        residual: Largest |l(q) - l| of the muscles used, [m].
        excluded: Muscles that had to be left out.
        observability: At q.
        statement: All that in words.
    """

    q: Array
    others: Array
    residual: float
    excluded: tuple[str, ...]
    observability: Observability
    statement: str


def find_initial_guess(
    dynamics: Dynamics,
    lengths: Array,
    length_noise: float,
    *,
    valid: npt.NDArray[np.bool_] | None = None,
    near: Array | None = None,
    starts: int = 24,
    max_excluded: int = MAX_EXCLUDED,
    seed: int = 0,
) -> InitialGuess:
    """Return the pose that has these lengths.

    Args:
        dynamics: Of the robot.
        lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
        length_noise: Standard deviation of a length, [m].
        valid: Muscles that may be used, shape (m,); all with a finite length without it.
        near: Where to search first, shape (nq,); home without it.
        starts: Random poses to search from besides.
        max_excluded: So many bad muscles are looked for.
        seed: Of these.

    Raises:
        EstimationError: No pose has these lengths, or it is open which muscle is wrong.
    """
    usable = np.isfinite(lengths)
    if valid is not None:
        usable &= valid
    rng = np.random.default_rng(seed)
    tree = dynamics.tree
    first = tree.home if near is None else tree.check_q(near)
    begins = [first, *(tree.random(rng) for _ in range(starts))]
    search = _Search(dynamics, lengths, length_noise, begins)
    rows = [int(i) for i in np.flatnonzero(usable)]
    if not rows:
        raise EstimationError(
            f"no muscle of {dynamics.robot.name} has a valid length (expected: one of "
            f"{', '.join(search.names) or 'no muscles at all'})"
        )
    spare = min(max_excluded, len(rows) - tree.nv - 1)
    least: tuple[float, list[Array]] = (np.inf, [first])
    for count in range(max(0, spare) + 1):
        fits: list[tuple[tuple[int, ...], list[Array]]] = []
        for out in combinations(rows, count):
            # there are many sets of muscles to try: few starting points for each
            begin_with = None if count == 0 else FEW
            residual, poses = search.poses([i for i in rows if i not in out], begin_with)
            if count == 0:
                least = (residual, poses)
            if residual <= search.tolerance:
                fits.append((out, poses))
        if len(fits) > 1:
            raise search.ambiguity_error(least[0], [out for out, _ in fits])
        if fits:
            out, poses = fits[0]
            return search.described([i for i in rows if i not in out], poses, out)
    raise search.no_pose_error(*least, rows)


class _Search:
    """Poses with given lengths, and what to say of them."""

    def __init__(
        self, dynamics: Dynamics, lengths: Array, noise: float, begins: list[Array]
    ) -> None:
        self.names = [muscle.name for muscle in dynamics.robot.muscles]
        self.tolerance = FIT * noise
        self._dynamics, self._tree = dynamics, dynamics.tree
        self._lengths, self._noise = lengths, noise
        self._begins = begins

    def poses(self, rows: list[int], count: int | None = None) -> tuple[float, list[Array]]:
        """Return the smallest residual and the different poses that fit, else the nearest.

        Args:
            rows: Of the muscles whose lengths count.
            count: From how many points to search; None for all.
        """
        solver = ForwardKinematics(
            self._dynamics, tolerance=self.tolerance, muscles=[self.names[i] for i in rows]
        )
        found: list[Array] = []
        least, nearest = np.inf, self._begins[0]
        for begin in self._begins[:count]:
            solver.reset(begin)
            result = solver.step(self._lengths[rows])
            if result.residual < least:
                least, nearest = result.residual, result.q
            if result.residual <= self.tolerance and self._is_new(result.q, found):
                found.append(result.q)
        return least, found or [nearest]

    def _is_new(self, q: Array, found: list[Array]) -> bool:
        apart = [float(np.abs(self._tree.difference(q, p)).max(initial=0.0)) for p in found]
        return min(apart, default=np.inf) > APART

    def described(self, rows: list[int], poses: list[Array], out: tuple[int, ...]) -> InitialGuess:
        """Return the first of the poses as a start."""
        tree, q = self._tree, poses[0]
        state = self._dynamics.update(q, np.zeros(tree.nv))
        residual = float(np.abs(state.muscle_lengths - self._lengths)[rows].max())
        seen = observability(state.muscle_jacobian[rows], self._noise, tree.velocity_names)
        excluded = tuple(self.names[i] for i in out)
        parts = [f"fits to {residual * 1e3:.2f} mm"]
        if excluded:
            verb = "disagrees" if len(excluded) == 1 else "disagree"
            parts.append(f"without {' and '.join(excluded)}, which {verb} with the others")
        if not seen:
            hidden = ", ".join(seen.unobservable)
            parts.append(f"rank of L is {seen.rank} of {tree.nv}: no length tells {hidden}")
        elif len(poses) == 2:
            parts.append("another pose has the same lengths; this one is the nearest")
        elif len(poses) > 2:
            parts.append(
                f"{len(poses) - 1} other poses have the same lengths; this one is the nearest"
            )
        others = np.array(poses[1:]).reshape(-1, tree.nq)
        return InitialGuess(q, others, residual, excluded, seen, "; ".join(parts))

    def ambiguity_error(self, residual: float, outs: list[tuple[int, ...]]) -> EstimationError:
        """Return the error where leaving out any of several muscles would help."""
        who = "; or ".join(" and ".join(self.names[i] for i in out) for out in outs)
        return EstimationError(
            f"the lengths of {self._dynamics.robot.name} are those of no pose (off by "
            f"{residual * 1e3:.2f} mm), and it is open which muscle is wrong: the rest would fit "
            f"without {who} (expected: lengths to within {self._noise * 1e3:.2g} mm; see "
            "./cards calibrate)"
        )

    def no_pose_error(
        self, residual: float, poses: list[Array], rows: list[int]
    ) -> EstimationError:
        """Return the error where nothing fits."""
        nearest = self._dynamics.update(poses[0], np.zeros(self._tree.nv)).muscle_lengths
        off = np.abs(nearest - self._lengths)
        worst = sorted(rows, key=lambda i: float(off[i]), reverse=True)[:3]
        names = ", ".join(f"{self.names[i]} ({off[i] * 1e3:.2f} mm)" for i in worst)
        return EstimationError(
            f"no pose of {self._dynamics.robot.name} has these muscle lengths: the nearest is off "
            f"by {residual * 1e3:.2f} mm, most at {names} (expected: lengths to within "
            f"{self._noise * 1e3:.2g} mm; calibrate with ./cards calibrate, or say a larger "
            "length_noise)"
        )
