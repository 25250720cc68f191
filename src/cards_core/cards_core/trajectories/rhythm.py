"""Rhythmic motion: coordinates that follow coupled phase oscillators.

The open-loop pattern generator of [Ijspeert2007]_ with frequency v, amplitudes R and a > 0:

    theta_i' = 2 pi v + w sum_j r_j/R_mean sin(theta_j - theta_i - (p_j - p_i))
    r_i''    = a (a/4 (R_i - r_i) - r_i')
    y_i      = c_i + r_i cos(theta_i)

p are the phases that the coordinates settle to, R_mean is the mean of the R. All begin with
theta = p, r = r' = 0, so y begins at the centre c at rest; R becomes zero early enough that y
returns there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cards_core.trajectories.base import (
    Reference,
    Sample,
    TrajectoryError,
    check_duration,
    check_number,
    check_vector,
)
from cards_core.typing import Array

FADE = 40.0
"""How long the amplitudes take to vanish, times a: (1 + 20) exp(-20) = 4e-8 of them is left."""

MOST = 2000.0
"""Maximum product of a rate and the duration: it is integrated in advance, in a second or so."""

TOLERANCE = 1e-10
"""Relative error of the oscillators."""


class Rhythm(Reference):
    """Coordinates that swing in one rhythm, with a lag between them.

    Args:
        centre: c, shape (n,), [rad] or [m].
        amplitude: R, shape (n,), not negative; zero for a coordinate that stays.
        frequency: v, > 0, [Hz].
        duration: [s]; more than `FADE`/a.
        phases: p, shape (n,), [rad]; default: all zero. A coordinate with a larger one leads.
        convergence: a, > 0, [1/s]: amplitudes come and go with a time constant of 2/a.
        coupling: w, >= 0, [1/s].
        begin: Phases at time zero, shape (n,), [rad]; default: p.

    Raises:
        TrajectoryError: A value does not fit.
    """

    def __init__(
        self,
        centre: Sequence[float] | Array,
        amplitude: Sequence[float] | Array,
        frequency: float,
        duration: float,
        *,
        phases: Sequence[float] | Array | None = None,
        convergence: float = 10.0,
        coupling: float = 4.0,
        begin: Sequence[float] | Array | None = None,
    ) -> None:
        self._centre = check_vector(centre, "centre")
        n = self._centre.size
        self._amplitude = check_vector(amplitude, "amplitude", n)
        if np.any(self._amplitude < 0.0) or not np.any(self._amplitude):
            raise TrajectoryError("amplitude is negative, or all zero (expected: one above zero)")
        self._phases = np.zeros(n) if phases is None else check_vector(phases, "phases", n)
        start = self._phases if begin is None else check_vector(begin, "begin", n)
        self._rate = 2.0 * math.pi * _positive(frequency, "frequency")
        self._convergence = _positive(convergence, "convergence")
        self._coupling = check_number(coupling, "coupling")
        if self._coupling < 0.0:
            raise TrajectoryError(f"coupling is {self._coupling:g}, expected 0 or more")
        end = check_duration(duration)
        for what, value in (
            ("frequency", frequency),
            ("convergence", self._convergence),
            ("coupling", self._coupling),
        ):
            if value * end > MOST:
                raise TrajectoryError(
                    f"{what} times duration is {value * end:g}, expected at most {MOST:g}"
                )
        self._fade = end - FADE / self._convergence
        if not self._fade > 0.0:
            raise TrajectoryError(
                f"duration is {end:g} s, expected more than the {FADE / self._convergence:g} s "
                "that the amplitudes take to vanish; a larger convergence makes them faster"
            )
        super().__init__(n, end, (0.0, self._fade, end))
        self._mean = float(self._amplitude.mean())
        state = np.concatenate([start, np.zeros(2 * n)])
        # here: Gazebo's Python has no SciPy, and reads other trajectories
        from scipy.integrate import solve_ivp

        self._pieces = []
        for low, high, share in ((0.0, self._fade, 1.0), (self._fade, end, 0.0)):
            found = solve_ivp(
                self._derivative,
                (low, high),
                state,
                "DOP853",
                dense_output=True,
                rtol=TOLERANCE,
                atol=TOLERANCE,
                max_step=0.1 / _positive(frequency, "frequency"),
                args=(share,),
            )
            state = found.y[:, -1]
            self._pieces.append((found.sol, share))

    def _lags(self, theta: Array) -> Array:
        """Return theta_j - theta_i - (p_j - p_i) in row i and column j."""
        ahead = theta - self._phases
        out: Array = ahead - ahead[:, None]
        return out

    def _derivative(self, _: float, state: Array, share: float) -> Array:
        theta, r, rate = state.reshape(3, -1)
        pull = np.sin(self._lags(theta)) @ r
        a = self._convergence
        return np.concatenate(
            [
                self._rate + self._coupling / self._mean * pull,
                rate,
                a * (a / 4.0 * (share * self._amplitude - r) - rate),
            ]
        )

    def __call__(self, t: float) -> Sample:
        """See `Reference`."""
        if not 0.0 <= t < self.duration:
            return self._centre.copy(), np.zeros(self.size), np.zeros(self.size)
        solution, share = self._pieces[int(t >= self._fade)]
        state = solution(t)
        theta, r, rate = state.reshape(3, -1)
        theta_rate, _, acceleration = self._derivative(t, state, share).reshape(3, -1)
        # how fast the phases' rates change, as r and the lags do
        lags, relative = self._lags(theta), theta_rate - theta_rate[:, None]
        change = np.sin(lags) @ rate + (np.cos(lags) * relative) @ r
        theta_acceleration = self._coupling / self._mean * change
        c, s = np.cos(theta), np.sin(theta)
        return (
            self._centre + r * c,
            rate * c - r * s * theta_rate,
            (acceleration - r * theta_rate**2) * c
            - (2.0 * rate * theta_rate + r * theta_acceleration) * s,
        )


def _positive(value: float, what: str) -> float:
    number = check_number(value, what)
    if not number > 0.0:
        raise TrajectoryError(f"{what} is {number:g}, expected more than 0")
    return number
