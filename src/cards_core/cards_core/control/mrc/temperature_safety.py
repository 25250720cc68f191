"""Muscles that are too hot or pull too hard give way, whatever the controller wants.

Every muscle has a length s >= 0 that is added to its target length,

    s' = a_T max(0, T - T_lim)/T_lim + a_C max(0, C - C_soft)/(C_hard - C_soft)
    s' = -a_r                                            where neither is exceeded

within 0 <= s <= s_max. At C_hard a muscle is given up: it latches, and whoever drives the robot
relaxes all of it. A muscle whose temperature is not known is treated as one at C_hard, but does
not latch: its sensor may come back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.errors import ParameterError, ShapeError
from cards_core.typing import Array


@dataclass(frozen=True, kw_only=True)
class TemperatureLimits:
    """Numbers of `protect`.

    Attributes:
        soft: C_soft, temperature from which on a muscle gives way, [degC].
        hard: C_hard, at which it is given up, [degC].
        heat_rate: a_C, lengthening at C_hard, [m/s].
        tension_share: T_lim as a share of the largest tension of each muscle.
        tension_rate: a_T, lengthening at twice T_lim, [m/s].
        recovery_rate: a_r, [m/s].
        largest: s_max, [m].

    Raises:
        ParameterError: A number is out of range.
    """

    soft: float = 60.0
    hard: float = 80.0
    heat_rate: float = 1.25e-4
    tension_share: float = 0.8
    tension_rate: float = 1e-2
    recovery_rate: float = 2.5e-4
    largest: float = 1e-2

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name in ("heat_rate", "tension_rate", "recovery_rate", "largest", "tension_share"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} is {value}; expected a finite number > 0")
        if not (math.isfinite(self.soft) and self.soft < self.hard < math.inf):
            raise ParameterError(
                f"soft is {self.soft} and hard {self.hard} degC; expected soft below hard"
            )


@dataclass(frozen=True, eq=False)
class Protection:
    """How far muscles have given way.

    Attributes:
        given: s of every muscle, shape (m,), [m].
        hot, tense, unknown: Muscles beyond C_soft, beyond T_lim, and without a temperature,
            shape (m,).
        latched: Muscles that have been at C_hard, shape (m,).
    """

    given: Array
    hot: npt.NDArray[np.bool_]
    tense: npt.NDArray[np.bool_]
    unknown: npt.NDArray[np.bool_]
    latched: npt.NDArray[np.bool_]

    @classmethod
    def none(cls, muscles: int) -> Protection:
        """Return the state in which nothing was given way, for m muscles."""
        no = np.zeros(muscles, dtype=np.bool_)
        return cls(np.zeros(muscles), no, no, no, no)


def protect(
    state: Protection,
    tensions: Array,
    temperatures: Array | None,
    *,
    largest: Array,
    limits: TemperatureLimits,
    dt: float,
) -> Protection:
    """Return the state after a time.

    Args:
        state: Before.
        tensions: Measured, shape (m,), [N].
        temperatures: Of the muscles' motors, shape (m,), [degC]; NaN where a sensor is lost. None:
            the robot has none, and only tensions count.
        largest: T_max, shape (m,), [N]; infinite where there is no limit.
        limits: See there.
        dt: Since the last call, [s].

    Raises:
        ShapeError: Not one number per muscle.
    """
    size = state.given.shape
    for name, values in (
        ("tensions", tensions),
        ("temperatures", tensions if temperatures is None else temperatures),
        ("largest", largest),
    ):
        if values.shape != size:
            raise ShapeError(f"{name} has shape {values.shape}, expected {size}")
    latched = state.latched
    unknown = hot = np.zeros(size, dtype=np.bool_)
    # a broken tension sensor is for others to judge
    tense = np.isfinite(tensions) & (tensions > limits.tension_share * largest)
    if temperatures is not None:
        unknown = np.isnan(temperatures)
        latched = latched | (temperatures >= limits.hard)
        hot = unknown | (temperatures > limits.soft)
    rate = np.full(size, -limits.recovery_rate)
    if hot.any() or tense.any():
        rate[hot | tense] = 0.0
        if temperatures is not None:
            known = np.where(unknown, limits.hard, temperatures)[hot]
            rate[hot] += limits.heat_rate * (known - limits.soft) / (limits.hard - limits.soft)
        over = tensions[tense] / (limits.tension_share * largest[tense]) - 1.0
        rate[tense] += limits.tension_rate * over
    given = np.minimum(np.maximum(state.given + rate * dt, 0.0), limits.largest)
    return Protection(given, hot, tense, unknown, latched)
