"""Where a muscle's length or moment arm jumps as its path takes another way round a surface.

Why it does is in ``docs/wrapping.md``. Along one coordinate a jump is what does not shrink with
the step: of ``l``, beyond the integral of ``dl/dq``, or of ``dl/dq`` itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.workspace.coordinates import Coordinates
from cards_core.dynamics import Dynamics
from cards_core.robot.elements import Wrap
from cards_core.typing import Array

POINTS = 61
"""Poses along each coordinate."""

LENGTH, ARM = 1e-4, 2e-3
"""Smallest jumps of l, [m], and of dl/dq, [m] or [1], that are told."""

HALVINGS = 20
"""Of the step in which a jump may be."""


@dataclass(frozen=True, eq=False)
class ArmJump:
    """A jump of muscle ``muscle`` at ``q`` along the velocity ``coordinate``, in l and dl/dq."""

    muscle: int
    coordinate: int
    q: Array
    length: float
    arm: float


def leap(step: float, lengths: Array, rates: Array) -> Array:
    """Return by how much l differs from the integral of dl/dq from row to row, [m].

    The trapezoidal rule's error where dl/dq has a corner, as at lift-off, is taken off.

    Args:
        step: Of the coordinate, [rad] or [m].
        lengths: l, shape (n, m).
        rates: dl/dq, shape (n, m).
    """
    missed = np.diff(lengths, axis=0) - 0.5 * step * (rates[1:] + rates[:-1])
    return np.maximum(np.abs(missed) - 0.125 * step * np.abs(np.diff(rates, axis=0)), 0.0)


def may_jump(step: float, lengths: Array, rates: Array) -> npt.NDArray[np.bool_]:
    """Return between which rows there may be a jump, shape (n - 1, m); arguments as of `leap`."""

    def stands_out(change: Array, least: float) -> npt.NDArray[np.bool_]:
        beside = np.pad(change, ((1, 1), (0, 0)))
        return np.asarray(change > 2.0 * (beside[:-2] + beside[2:]) + least)

    turn = np.abs(np.diff(rates, axis=0))
    return stands_out(leap(step, lengths, rates), LENGTH) | stands_out(turn, ARM)


def arm_jumps(dynamics: Dynamics, low: Array, high: Array) -> list[ArmJump]:
    """Return the largest jump of every muscle that wraps, along every coordinate that has one.

    The other coordinates stay at home, or as close to it as the range allows.

    Args:
        dynamics: Of the robot.
        low: Least coordinates, shape (nq,), [rad] or [m].
        high: Greatest ones, likewise.
    """
    tree, muscles = dynamics.tree, dynamics.robot.muscles
    wraps = [any(isinstance(item, Wrap) for item in muscle.path) for muscle in muscles]
    out: list[ArmJump] = []
    for one in Coordinates(tree).all:
        if one.component >= 0 or not any(wraps) or not high[one.q] > low[one.q]:
            continue
        q = np.tile(np.clip(tree.home, low, high), (POINTS, 1))
        q[:, one.q] = np.linspace(low[one.q], high[one.q], POINTS)
        state = dynamics.batch(q)
        lengths, rates = state.muscle_lengths, state.muscle_jacobian[:, :, one.v]
        found = may_jump(q[1, one.q] - q[0, one.q], lengths, rates) & wraps
        for i in np.flatnonzero(found.any(axis=0)).tolist():
            jumps = [
                _narrowed(dynamics, q[k : k + 2], i, one.v) for k in np.flatnonzero(found[:, i])
            ]
            worst = max(jumps, key=lambda jump: abs(jump.arm) + jump.length)
            if worst.length > LENGTH or abs(worst.arm) > ARM:
                out.append(worst)
    return out


def _narrowed(dynamics: Dynamics, ends: Array, muscle: int, v: int) -> ArmJump:
    """Return what is left of a change between two poses when their distance is halved often."""
    for _ in range(HALVINGS):
        three = np.array([ends[0], 0.5 * (ends[0] + ends[1]), ends[1]])
        lengths, rates, step = _along(dynamics, three, muscle, v)
        change = np.abs(np.diff(rates, axis=0)) + leap(step, lengths, rates) / step
        first = int(np.argmax(np.nan_to_num(change)))
        ends = three[first : first + 2]
    lengths, rates, step = _along(dynamics, ends, muscle, v)
    length = float(np.nan_to_num(leap(step, lengths, rates))[0, 0])
    return ArmJump(muscle, v, ends[0], length, float(np.nan_to_num(np.diff(rates, axis=0))[0, 0]))


def _along(dynamics: Dynamics, q: Array, muscle: int, v: int) -> tuple[Array, Array, float]:
    """Return l and dl/dq of one muscle, shape (n, 1), and the step from pose to pose."""
    state = dynamics.batch(q)
    row = slice(muscle, muscle + 1)
    step = float(np.abs(q[1] - q[0]).max())
    return state.muscle_lengths[:, row], state.muscle_jacobian[:, row, v], step
