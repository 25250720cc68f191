"""The step of muscle relaxation control [Kawaharazuka2025]_.

A robot whose muscles are held at lengths l_target pulls against itself: where model and robot
differ, agonists and antagonists share an inner tension that does no work. At rest, relaxation adds
dl_i >= 0 to the target lengths, one muscle per period, the one that is needed least first, until
nothing is left to release or the robot begins to move. In motion it takes the same away again, the
one that is needed most first.

    l_target = l_ff + dl,      0 <= dl_i < dl_max

`relax` is a pure function of the state, the measurement and the options.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cards_core.control.interface import is_finite
from cards_core.errors import ParameterError, ShapeError
from cards_core.typing import Array

Difference = Callable[[Array, Array], Array]
"""Displacement from the second to the first pose in the tangent space, e.g. `Tree.difference`."""

TIES = ("index", "tension")
"""What decides between muscles that are needed equally."""


@dataclass(frozen=True, kw_only=True)
class RelaxationOptions:
    """Numbers of `relax`; the defaults are the published ones, for a period of 8 ms.

    Attributes:
        dl_plus: Added to one muscle per period at rest, [m].
        dl_minus: Taken from one muscle per period in motion, [m].
        dl_max: A muscle that the next step would bring to it is passed over, [m].
        dtheta_max: Displacement since the targets came to rest from which on nothing more
            is released, [rad] or [m], Euclidean norm over all coordinates.
        resume: Share of `dtheta_max` below which it goes on; 1 is the published rule.
        tension_min: T_min: muscles at or below it are slack enough, [N].
        still: Change of a target length per period above which the robot is in motion, [m].
        hold: How long the targets must have been still before anything is released, [s]. With 0,
            the published rule, the pose that must not change is that of the first period at rest,
            at which a loaded robot may still be settling.
        ties: ``index``: of muscles that are needed equally the first in the description comes
            first, as published where the sort is stable; ``tension``: the one that pulls more.
        period: Between steps, [s].

    Raises:
        ParameterError: A number is out of range.
    """

    dl_plus: float = 3e-5
    dl_minus: float = 3e-5
    dl_max: float = 2e-3
    dtheta_max: float = 0.1
    resume: float = 1.0
    tension_min: float = 30.0
    still: float = 1e-7
    hold: float = 0.0
    ties: str = "index"
    period: float = 0.008

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name in (
            "dl_plus",
            "dl_minus",
            "dl_max",
            "dtheta_max",
            "tension_min",
            "still",
            "period",
        ):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} is {value}; expected a finite number > 0")
        if not 0.0 < self.resume <= 1.0:
            raise ParameterError(f"resume is {self.resume}; expected a share above 0, at most 1")
        if not (math.isfinite(self.hold) and self.hold >= 0.0):
            raise ParameterError(f"hold is {self.hold}; expected a finite time >= 0 in s")
        if not self.dl_max > self.dl_plus:
            raise ParameterError(
                f"dl_max is {self.dl_max} m; expected more than dl_plus {self.dl_plus} m, or "
                "nothing is ever released"
            )
        if self.ties not in TIES:
            raise ParameterError(f"ties is '{self.ties}'; expected one of: {', '.join(TIES)}")


@dataclass(frozen=True, eq=False)
class Relaxation:
    """State of muscle relaxation control between two periods.

    Attributes:
        dl: Released length of every muscle, shape (m,), [m], >= 0.
        targets: l_ff of the last period, shape (m,); None before the first.
        rest: Pose at which the targets came to rest, shape (nq,); None in motion.
        still: For how many periods the targets have been still.
        moving: Whether the targets moved in the last period.
        stopped: Whether the robot has moved by more than allowed, so that dl stays as it is.
        chosen: Muscle that dl changed of in the last period; -1 if none.
    """

    dl: Array
    targets: Array | None = None
    rest: Array | None = None
    still: int = 0
    moving: bool = True
    stopped: bool = False
    chosen: int = -1

    @classmethod
    def none(cls, muscles: int) -> Relaxation:
        """Return the state in which nothing is released, for m muscles."""
        return cls(np.zeros(muscles))


def relax(
    state: Relaxation,
    targets: Array,
    tensions: Array,
    necessary: Array,
    q: Array,
    *,
    options: RelaxationOptions,
    difference: Difference = np.subtract,
) -> Relaxation:
    """Return the state after one period; its `dl` is to be added to the targets.

    Args:
        state: Of the last period.
        targets: l_ff, target lengths without relaxation, shape (m,), [m].
        tensions: Measured, shape (m,), [N].
        necessary: Tensions that the task needs, shape (m,), [N]
            (`cards_core.control.mrc.necessary_tension`).
        q: Estimated pose, shape (nq,).
        options: See there.
        difference: Of two poses, for robots with ball joints.

    Raises:
        ShapeError: Not one number per muscle, or one that is not finite.
    """
    _check(state, targets, tensions, necessary, q)
    last = state.targets
    # the first period has nothing to compare with, and counts as motion
    if last is None or bool(np.any(np.abs(targets - last) > options.still)):
        dl, chosen = _withdrawn(state.dl, tensions, necessary, options)
        return Relaxation(dl, targets.copy(), chosen=chosen)
    still = state.still + 1
    if state.rest is None and still <= round(options.hold / options.period):
        return replace(state, targets=targets.copy(), still=still, moving=False, chosen=-1)
    rest = q.copy() if state.rest is None else state.rest
    moved = float(np.linalg.norm(difference(q, rest)))
    limit = options.dtheta_max * (options.resume if state.stopped else 1.0)
    stopped = moved >= limit
    dl, chosen = state.dl, -1
    if not stopped:
        dl, chosen = _released(state.dl, tensions, necessary, options)
    return Relaxation(dl, targets.copy(), rest, still, False, stopped, chosen)


def withdraw_all(state: Relaxation, options: RelaxationOptions) -> Relaxation:
    """Return the state after one period of switching off: every muscle gives dl_minus back."""
    dl = np.maximum(state.dl - options.dl_minus, 0.0)
    return Relaxation(dl)


def within_bound(state: Relaxation, options: RelaxationOptions) -> Relaxation:
    """Return the state after a muscle that is above dl_max, which was lowered, gave dl_minus back.

    `relax` itself never gets there.
    """
    above = state.dl > options.dl_max
    if not above.any():
        return state
    less = np.maximum(state.dl - options.dl_minus, options.dl_max)
    return replace(state, dl=np.where(above, less, state.dl))


def _check(state: Relaxation, targets: Array, tensions: Array, necessary: Array, q: Array) -> None:
    """Raise `ShapeError` if there is not one finite number per muscle, or the pose is none."""
    size = state.dl.shape
    given = {"targets": targets, "tensions": tensions, "necessary": necessary}
    for name, values in given.items():
        if values.shape != size:
            raise ShapeError(f"{name} has shape {values.shape}, expected {size}")
        if not is_finite(values):
            raise ShapeError(
                f"{name} of muscle {int(np.argmin(np.isfinite(values)))} is not finite"
            )
    if not is_finite(q):
        raise ShapeError("the pose is not finite")


def _order(
    tensions: Array, necessary: Array, options: RelaxationOptions, *, most_first: bool
) -> npt.NDArray[np.intp]:
    key = -necessary if most_first else necessary
    if options.ties == "index":
        return np.argsort(key, kind="stable")
    second = tensions if most_first else -tensions
    return np.lexsort((second, key))


def _withdrawn(
    dl: Array, tensions: Array, necessary: Array, options: RelaxationOptions
) -> tuple[Array, int]:
    for i in _order(tensions, necessary, options, most_first=True):
        if dl[i] > 0.0:
            out = dl.copy()
            out[i] = max(dl[i] - options.dl_minus, 0.0)
            return out, int(i)
    return dl, -1


def _released(
    dl: Array, tensions: Array, necessary: Array, options: RelaxationOptions
) -> tuple[Array, int]:
    for i in _order(tensions, necessary, options, most_first=False):
        if tensions[i] <= options.tension_min or dl[i] + options.dl_plus >= options.dl_max:
            continue
        out = dl.copy()
        out[i] = dl[i] + options.dl_plus
        return out, int(i)
    return dl, -1
