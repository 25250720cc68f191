"""References made of references: one after the other, side by side, and with an approach."""

from __future__ import annotations

from bisect import bisect_right
from collections import abc
from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from cards_core.trajectories.base import (
    Reference,
    Sample,
    TrajectoryError,
    check_number,
    check_vector,
)
from cards_core.trajectories.polynomial import DURATION_RATIO, PiecewisePolynomial, quintic
from cards_core.trajectories.rotation import Convention, EulerRotation
from cards_core.trajectories.splines import SplineKind, check_knots, spline
from cards_core.typing import Array

Continuity: TypeAlias = Literal["position", "velocity", "acceleration"]
"""What may not jump where two parts of a `Sequence` meet."""


class Sequence(Reference):
    """One reference after the other.

    Args:
        parts: At least one, all of the same size and finite duration.
        continuity: Highest derivative that must agree where parts meet.
        tolerance: Accepted jump of any coordinate, in its unit (per [s], [s^2]).

    Raises:
        TrajectoryError: Sizes differ, a duration is infinite, or a jump; the message names the
            parts, the coordinate and the two values.
    """

    def __init__(
        self,
        parts: abc.Sequence[Reference],
        *,
        continuity: Continuity = "position",
        tolerance: float = 1e-6,
    ) -> None:
        if not parts:
            raise TrajectoryError("a sequence of no parts, expected at least one")
        if continuity not in get_args(Continuity):
            raise TrajectoryError(
                f"continuity is {continuity!r}, expected one of {get_args(Continuity)}"
            )
        limit = check_number(tolerance, "tolerance")
        starts = [0.0]
        breaks = [0.0]
        for i, part in enumerate(parts):
            if part.size != parts[0].size:
                raise TrajectoryError(
                    f"part {i + 1} has {part.size} coordinates, expected {parts[0].size} as part 1"
                )
            begin = starts[-1]
            starts.append(check_number(begin + part.duration, f"end of part {i + 1}"))
            breaks += [begin + b for b in part.breaks if begin + b > breaks[-1]]
        for i in range(len(parts) - 1):
            _check_joint(parts, i, continuity, limit)
        super().__init__(parts[0].size, starts[-1], breaks)
        self.parts = tuple(parts)
        self._starts = starts[:-1]
        self._inner = starts[1:-1]
        self._durations = [part.duration for part in parts]

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd of the part in charge (fresh arrays, as its own)."""
        i = bisect_right(self._inner, t)
        local = t - self._starts[i]
        # rounding must not push the last instant of a moving part into its hold
        if t <= self.duration and local > self._durations[i]:
            local = self._durations[i]
        return self.parts[i](local)

    def sample(self, times: abc.Sequence[float] | Array) -> Sample:
        """Return y, yd, ydd at ``times`` [s], shape (k,), as arrays of shape (k, size)."""
        instants = np.asarray(times, dtype=float)
        if len(self.parts) == 1 or instants.ndim != 1 or instants.size == 0:
            return self.parts[0].sample(times)
        y, yd, ydd = (np.empty((instants.size, self.size)) for _ in range(3))
        charge = np.searchsorted(self._inner, instants, side="right")
        for i in np.unique(charge).tolist():
            rows = np.flatnonzero(charge == i)
            local = instants[rows] - self._starts[i]
            inside = instants[rows] <= self.duration
            local[inside] = np.minimum(local[inside], self._durations[i])
            y[rows], yd[rows], ydd[rows] = self.parts[i].sample(local)
        return y, yd, ydd


def _check_joint(
    parts: abc.Sequence[Reference], i: int, continuity: Continuity, tolerance: float
) -> None:
    before, after = parts[i](parts[i].duration), parts[i + 1](0.0)
    names = get_args(Continuity)
    for name, a, b in zip(names[: names.index(continuity) + 1], before, after, strict=False):
        jump = np.abs(b - a)
        k = int(np.argmax(jump))
        if not jump[k] <= tolerance:
            raise TrajectoryError(
                f"{name} of coordinate {k + 1} jumps from {a[k]:g} at the end of part {i + 1} to "
                f"{b[k]:g} at the start of part {i + 2}, expected at most {tolerance:g} apart"
            )


class Stack(Reference):
    """Several references side by side, each for some of the coordinates.

    Shorter blocks hold their end while longer ones go on.

    Args:
        blocks: Pairs of indices (of the coordinates, in the order of the block) and reference;
            together the indices are 0..size-1, each once.

    Raises:
        TrajectoryError: Indices are missing, duplicate, or do not fit their reference.
    """

    def __init__(self, blocks: abc.Sequence[tuple[abc.Sequence[int], Reference]]) -> None:
        flat: list[int] = []
        for indices, part in blocks:
            if len(indices) != part.size:
                raise TrajectoryError(
                    f"{len(indices)} indices for a block of {part.size} coordinates"
                )
            flat += [int(k) for k in indices]
        if not flat or sorted(flat) != list(range(len(flat))):
            raise TrajectoryError(
                f"block indices are {flat}, expected every number from 0 to {len(flat) - 1} once"
            )
        duration = max(part.duration for _, part in blocks)
        breaks = sorted({b for _, part in blocks for b in part.breaks})
        super().__init__(len(flat), duration, breaks)
        self._parts = [part for _, part in blocks]
        # position of every coordinate in the blocks laid end to end
        in_order = flat == list(range(len(flat)))
        self._order = None if in_order else np.argsort(np.array(flat))

    def __call__(self, t: float) -> Sample:
        """Return y, yd, ydd as fresh arrays of shape (size,)."""
        samples = [part(t) for part in self._parts]
        if len(samples) == 1:
            y, yd, ydd = samples[0]
        else:
            y, yd, ydd = (np.concatenate(c) for c in zip(*samples, strict=True))
        if self._order is None:
            return y, yd, ydd
        return y[self._order], yd[self._order], ydd[self._order]


def rotation_spline(
    kind: SplineKind,
    times: npt.ArrayLike,
    points: npt.ArrayLike,
    rotations: abc.Sequence[tuple[abc.Sequence[int], Convention]],
    *,
    velocities: npt.ArrayLike | None = None,
    accelerations: npt.ArrayLike | None = None,
    blend_times: float | npt.ArrayLike | None = None,
    caspr_time_step: float | None = None,
) -> Reference:
    """Build a spline in which some triples of coordinates are Euler angles, as CASPR does.

    Args:
        kind: See `splines.spline`.
        times: Knots, shape (k,), [s].
        points: Shape (k, n).
        rotations: Pairs of the indices of the angles (a, b, g) in y and their convention. They
            turn about a fixed axis with the scalar profile of `kind` (see `EulerRotation`); the
            other coordinates are component-wise splines.
        velocities: Shape (k, n); zero for the angles.
        accelerations: Shape (k, n); zero for the angles.
        blend_times: See `splines.parabolic_blend`.
        caspr_time_step: See `splines.linear_spline`.

    Raises:
        TrajectoryError: As `splines.spline` and `EulerRotation`; velocities or accelerations of
            the angles that are not zero, or ``cubic_average_velocity`` with velocities at inner
            knots that are not zero.
    """
    t, p = check_knots(times, points)
    n = p.shape[1]
    full = spline(
        kind,
        t,
        p,
        velocities=velocities,
        accelerations=accelerations,
        blend_times=blend_times,
        caspr_time_step=caspr_time_step,
    )
    blocks: list[tuple[abc.Sequence[int], Reference]] = []
    taken: set[int] = set()
    for indices, convention in rotations:
        k = [int(i) for i in indices]
        if len(k) != 3 or len(set(k)) != 3 or not all(0 <= i < n for i in k):
            raise TrajectoryError(f"rotation indices are {k}, expected 3 different ones below {n}")
        if taken & set(k):
            raise TrajectoryError(f"rotation indices {k} are used by two rotations")
        taken |= set(k)
        if kind == "cubic_average_velocity":
            _check_average_rest(t, p[:, k], k)
        _check_rest(kind, "velocity", velocities, k)
        _check_rest(kind, "acceleration", accelerations, k)
        profile_kind: SplineKind = "cubic" if kind == "cubic_average_velocity" else kind
        profile = spline(
            profile_kind,
            t,
            np.arange(t.size)[:, None],
            blend_times=blend_times,
            caspr_time_step=caspr_time_step,
        )
        blocks.append((k, EulerRotation(t, p[:, k], profile, convention)))
    if not blocks:
        return full
    rest = [i for i in range(n) if i not in taken]
    if rest:
        blocks.insert(0, (rest, full.select(rest)))
    elif len(blocks) == 1 and list(blocks[0][0]) == [0, 1, 2]:
        return blocks[0][1]
    return Stack(blocks)


def _check_rest(
    kind: SplineKind, what: str, values: npt.ArrayLike | None, indices: list[int]
) -> None:
    """Refuse Euler rates that are not zero: a turn about a fixed axis cannot have them."""
    if values is None:
        return
    rows = np.asarray(values, dtype=float)[:, indices]
    if kind == "cubic_average_velocity":
        rows = rows[[0, -1]]
    if np.any(rows != 0.0):
        raise TrajectoryError(
            f"{what} of the rotation {indices} is not zero at a knot, expected rest"
        )


def _check_average_rest(t: Array, angles: Array, indices: list[int]) -> None:
    secants = np.diff(angles, axis=0) / np.diff(t)[:, None]
    if t.size > 2 and np.abs(secants[1:] + secants[:-1]).max() > 1e-12:
        raise TrajectoryError(
            f"average velocities of the rotation {indices} are not zero at the inner knots, "
            "expected another kind (e.g. quintic), which rests there"
        )


def with_approach(
    reference: Reference,
    start: abc.Sequence[float] | Array,
    speed: float,
    *,
    tolerance: float = 1e-3,
) -> Reference:
    """Put a motion from the actual point to the start of a reference before it.

    The motion is a quintic from rest that arrives with the velocity and acceleration at which
    the reference starts; ``duration = 15/8 |start - y(0)| / speed``, so its maximum speed is
    `speed` if the reference starts at rest.

    Args:
        reference: What to track.
        start: Actual point, shape (size,).
        speed: Maximum speed of the Euclidean norm, [unit of y / s], > 0.
        tolerance: Distance up to which no approach is needed, in the unit of y.

    Returns:
        `reference` itself if it starts within the tolerance, else a `Sequence`.

    Raises:
        TrajectoryError: Sizes differ, or a number is not acceptable.
    """
    point = check_vector(start, "start", reference.size)
    pace = check_number(speed, "speed")
    near = check_number(tolerance, "tolerance")
    if pace <= 0.0 or near < 0.0:
        raise TrajectoryError(
            f"speed is {pace:g} and tolerance {near:g}, expected a speed > 0 and a tolerance >= 0"
        )
    y, yd, ydd = reference(0.0)
    distance = float(np.linalg.norm(y - point))
    if distance <= near:
        return reference
    duration = max(DURATION_RATIO * distance / pace, 1e-3)
    zero = np.zeros(reference.size)
    approach = PiecewisePolynomial(
        [0.0, duration], [quintic((point, zero, zero), (y, yd, ydd), duration)]
    )
    out = Sequence([approach, reference], tolerance=1e-6 * (1.0 + float(np.abs(y).max())))
    return out.labelled_as(reference)
