"""A motion that tells the constant offsets of length sensors.

What lengths tell of offsets is decided by the motion (`cards_core.estimation.offsets`): arms that
move by a few tenths of a radian leave some offsets uncertain by half a millimetre after ten
seconds of readings good to 0.2 mm, whatever estimates them, and with these the joints by half a
degree. Poses that are farther apart tell them ten times better.

`plan_exciting_motion` chooses such poses one after the other: of random poses that can be reached
at the given speed the one with the least trace of the Cramer-Rao bound of all readings so far and
on the way there (A-optimal design, greedily [Pukelsheim2006]_). The robot goes from one pose to
the next on a straight line in joint space, with the quintic blend ``10 s^3 - 15 s^4 + 6 s^5``, at
rest at both ends. Every pose on the way must be one that muscles hold within a share of their
largest tensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RequiredWrenches, distances
from cards_core.analysis.status import PointStatus
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError
from cards_core.estimation.initial_guess import EstimationError
from cards_core.estimation.offsets import unexplained
from cards_core.typing import Array

PEAK = 1.875
"""Largest speed of the quintic blend, in distances per duration."""

SAMPLES = 6
"""Poses that stand for the readings between two chosen poses."""

TOLERANCE = 1e-6
"""Of the torques that muscles have to hold, relative: a pose is not worth an argument."""


@dataclass(frozen=True, eq=False, slots=True)
class ExcitingMotion:
    """Result of `plan_exciting_motion`.

    Attributes:
        points: Poses one after the other, the first where it starts, shape (n + 1, nq).
        segment: Time from one to the next, [s].
        bound: Least standard deviation of the offset of every muscle after k segments (the
            Cramer-Rao bound), shape (n + 1, m), [m].
    """

    points: Array
    segment: float
    bound: Array

    @property
    def duration(self) -> float:
        """Of the motion, [s]."""
        return self.segment * (len(self.points) - 1)

    def entry(self) -> dict[str, Any]:
        """Return what a file of trajectories says of it, under a name of its own."""
        first, *others = self.points.tolist()
        return {
            "kind": "quintic",
            "space": "joint",
            "time_definition": "relative",
            "points": [
                {"position": first},
                *({"time": self.segment, "position": point} for point in others),
            ],
        }


def plan_exciting_motion(
    dynamics: Dynamics,
    start: Array,
    *,
    lower: npt.ArrayLike | None = None,
    upper: npt.ArrayLike | None = None,
    duration: float = 10.0,
    segments: int = 8,
    speed: float = 1.0,
    tension_share: float = 0.6,
    length_noise: float = 2e-4,
    offset_std: float = 2e-3,
    rate: float = 40.0,
    candidates: int = 300,
    seed: int = 0,
) -> ExcitingMotion:
    """Return a motion that tells the offsets of the length sensors.

    It knows nothing of what the robot may hit: ``lower`` and ``upper`` are to keep it from that.

    Args:
        dynamics: Of the robot; all of its muscles are measured.
        start: First pose, shape (nq,).
        lower: Of the range of the coordinates, shape (nq,), [rad] or [m]; the joint limits
            without it.
        upper: Likewise.
        duration: Of the motion, [s].
        segments: Poses after the first.
        speed: Largest of every coordinate, [rad/s] or [m/s].
        tension_share: Of the largest tensions that may hold a pose.
        length_noise: Standard deviation of a reading, [m].
        offset_std: Of the offsets before, [m].
        rate: Of the readings, [Hz].
        candidates: Random poses among which each next one is chosen.
        seed: Of these.

    Raises:
        CardsError: A number out of range, a robot with ball joints, or no pose that can be
            reached is held by its muscles.
        ShapeError: The start or a range does not fit the robot.
    """
    for name, value in (
        ("duration", duration),
        ("segments", segments),
        ("speed", speed),
        ("tension_share", tension_share),
        ("length_noise", length_noise),
        ("offset_std", offset_std),
        ("rate", rate),
        ("candidates", candidates),
    ):
        if not (np.isfinite(value) and value > 0.0):
            raise CardsError(f"{name} is {value} (expected: a finite number > 0)")
    tree = dynamics.tree
    if tree.nq != tree.nv:
        raise CardsError(
            f"{dynamics.robot.name} has ball joints, whose poses no straight line joins "
            "(expected: revolute and prismatic joints)"
        )
    low = tree.lower if lower is None else tree.check_q(np.asarray(lower, dtype=float))
    high = tree.upper if upper is None else tree.check_q(np.asarray(upper, dtype=float))
    wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low <= high)))
    if wrong.size:
        k = int(wrong[0])
        raise CardsError(
            f"range of '{tree.position_names[k]}' is {low[k]:g} .. {high[k]:g} (expected: finite "
            "numbers, lower first)"
        )
    rng = np.random.default_rng(seed)
    segment = duration / segments
    reach = speed * segment / PEAK
    s = (np.arange(SAMPLES + 1) + 0.5) / SAMPLES
    s[-1] = 1.0  # where it comes to rest
    blend = 10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5
    weight = segment * rate / SAMPLES
    holding = _Holding(dynamics, tension_share)
    q = tree.check_q(start)
    m = len(dynamics.robot.muscles)
    information = np.eye(m) * (length_noise / offset_std) ** 2
    points, bounds = [q], [np.full(m, offset_std)]
    for _ in range(segments):
        goals = q + reach * rng.uniform(-1.0, 1.0, (candidates, tree.nq))
        # those beyond the range are at its border, and borders are where moment arms differ most
        goals = np.clip(goals, np.maximum(low, q - reach), np.minimum(high, q + reach))
        ways = q + blend[:, None] * (goals - q)[:, None]
        jacobians, held = holding(ways.reshape(-1, tree.nq))
        fit = np.flatnonzero(held.reshape(candidates, -1).all(axis=1))
        if not fit.size:
            raise EstimationError(
                f"muscles of {dynamics.robot.name} hold none of {candidates} poses within "
                f"{reach:.2g} rad of {np.round(q, 2).tolist()}, and all on the way, with "
                f"{tension_share:.0%} of their largest tensions (expected: another start, range "
                "or tension_share)"
            )
        each = jacobians.reshape(candidates, SAMPLES + 1, m, tree.nv)[fit, :SAMPLES]
        gained = unexplained(each.reshape(-1, m, tree.nv)).reshape(len(fit), SAMPLES, m, m)
        after = information + weight * gained.sum(axis=1)
        traces = np.trace(np.linalg.inv(after), axis1=1, axis2=2)
        best = int(np.argmin(traces))
        q, information = goals[fit[best]], after[best]
        points.append(q)
        bounds.append(length_noise * np.sqrt(np.linalg.inv(information).diagonal()))
    return ExcitingMotion(np.array(points), segment, np.array(bounds))


class _Holding:
    """Tells of poses whether muscles hold them against gravity."""

    def __init__(self, dynamics: Dynamics, share: float) -> None:
        self._dynamics = dynamics
        self._actuation = actuation = Actuation(dynamics)
        self._upper = np.maximum(actuation.lower, share * actuation.upper)
        self._scale = actuation.scale(None)

    def __call__(self, poses: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return L of all muscles, shape (k, m, nv), and whether each pose is held, shape (k,)."""
        state = self._dynamics.batch(poses)
        actuation = self._actuation
        status, _ = distances(
            actuation.jacobian(state),
            actuation.lower,
            self._upper,
            RequiredWrenches(actuation.load(state)),
            self._scale,
            tolerance=TOLERANCE,
        )
        held = status == PointStatus.FEASIBLE
        return state.muscle_jacobian, np.asarray(held)
