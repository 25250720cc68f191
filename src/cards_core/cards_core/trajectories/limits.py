"""Check of a joint-space reference against the limits of the joints."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cards_core.errors import ShapeError
from cards_core.robot.model import Tree
from cards_core.trajectories.base import Reference, TrajectoryError, check_number
from cards_core.typing import Array

MAX_SAMPLES = 1_000_000
"""Longer references are sampled more coarsely than asked for."""

_CHUNK = 20_000


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits per joint coordinate.

    Attributes:
        names: Coordinate names.
        lower, upper: Shape (n,), [rad] or [m]; infinite where there are none.
        velocity: Maximum speed, shape (n,), [rad/s] or [m/s]; infinite where there is none.
    """

    names: tuple[str, ...]
    lower: Array
    upper: Array
    velocity: Array

    @classmethod
    def of(cls, tree: Tree) -> JointLimits:
        """Collect the limits of a robot, in the order of its coordinates.

        Raises:
            ShapeError: The robot has ball or free joints: the derivative of their quaternions is
                not their velocity, so a reference for q cannot be checked coordinate by
                coordinate.
        """
        if tree.nq != tree.nv:
            raise ShapeError(
                f"robot '{tree.robot.name}' has {tree.nq} coordinates but {tree.nv} velocities "
                "(ball or free joints), expected revolute and prismatic coordinates only"
            )
        speeds: dict[str, float] = {}
        for joint in tree.robot.joints:
            for i, axis in enumerate(joint.axes):
                suffix = f"_{i + 1}" if len(joint.axes) > 1 else ""
                speeds[joint.name + suffix] = axis.velocity
        velocity = np.array([speeds[name] for name in tree.position_names])
        return cls(tree.position_names, tree.lower.copy(), tree.upper.copy(), velocity)


@dataclass(frozen=True)
class LimitViolation:
    """The first place where a reference leaves the limits.

    Attributes:
        coordinate: Name of the joint coordinate.
        kind: Which limit.
        time: [s], to within the sampling step.
        value, limit: In the unit of the limit.
    """

    coordinate: str
    kind: Literal["lower", "upper", "velocity"]
    time: float
    value: float
    limit: float

    def __str__(self) -> str:
        """Say it in a sentence."""
        what = "velocity" if self.kind == "velocity" else "position"
        return (
            f"{what} of '{self.coordinate}' is {self.value:.6g} at t = {self.time:.6g} s, "
            f"beyond the {self.kind} limit {self.limit:.6g}"
        )


class LimitError(TrajectoryError):
    """A reference that leaves the limits of the joints; `violation` has the numbers."""

    def __init__(self, reference: Reference, violation: LimitViolation) -> None:
        self.violation = violation
        label = f" '{reference.name}'" if reference.name else ""
        super().__init__(f"reference{label}: {violation}")


def first_violation(
    reference: Reference,
    limits: JointLimits,
    *,
    time_step: float = 1e-3,
    tolerance: float = 1e-9,
) -> LimitViolation | None:
    """Return the first violation along a joint-space reference, or None.

    The reference is looked at every `time_step` and at its breaks (knots). Between two looks a
    peak can hide at most ``max|ydd| time_step^2 / 8`` beyond a position limit.

    Args:
        reference: Finite duration, one coordinate for each of the limits.
        limits: See `JointLimits.of`.
        time_step: [s], > 0; coarser if that would be more than `MAX_SAMPLES` looks.
        tolerance: Accepted excess, in the unit of the limit.

    Raises:
        TrajectoryError: Sizes differ, an infinite duration, or a step that is not positive.
    """
    n = len(limits.names)
    if reference.size != n:
        raise TrajectoryError(
            f"reference has {reference.size} coordinates, expected {n}: {', '.join(limits.names)}"
        )
    step = check_number(time_step, "time step")
    if step <= 0.0:
        raise TrajectoryError(f"time step is {step:g} s, expected a number > 0")
    for times in _instants(reference, step):
        y, yd, _ = reference.sample(times)
        excess = np.stack(
            [limits.lower - y, y - limits.upper, np.abs(yd) - limits.velocity], axis=1
        )
        late = excess.max(axis=(1, 2)) > tolerance
        if late.any():
            k = int(np.argmax(late))
            row, j = np.unravel_index(int(np.argmax(excess[k])), (3, n))
            value = yd[k, j] if row == 2 else y[k, j]
            bound = (limits.lower, limits.upper, limits.velocity)[row][j]
            kinds: tuple[Literal["lower", "upper", "velocity"], ...] = (
                "lower",
                "upper",
                "velocity",
            )
            return LimitViolation(
                limits.names[j], kinds[row], float(times[k]), float(value), float(bound)
            )
    return None


def check_limits(reference: Reference, limits: JointLimits, *, time_step: float = 1e-3) -> None:
    """Raise `LimitError` at the first violation, see `first_violation`."""
    violation = first_violation(reference, limits, time_step=time_step)
    if violation is not None:
        raise LimitError(reference, violation)


def _instants(reference: Reference, step: float) -> Iterator[Array]:
    """Yield increasing times in chunks: a grid that includes both ends, and the breaks."""
    duration = check_number(reference.duration, "duration")
    count = int(min(math.ceil(duration / step), MAX_SAMPLES)) + 1
    breaks = np.array(reference.breaks)
    for first in range(0, count, _CHUNK):
        k = np.arange(first, min(first + _CHUNK, count))
        grid = duration * (k / max(count - 1, 1))
        until = math.inf if k[-1] == count - 1 else duration * (k[-1] + 1) / (count - 1)
        inside = breaks[(breaks >= grid[0]) & (breaks < until)]
        yield np.union1d(grid, inside)
