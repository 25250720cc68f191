"""Whether muscles under the impedance law are stable where a sampled controller closes the loop.

The law T = max(T_floor, T0 + K (l - l0) + B (l' - v0)) of `cards_core.muscles.impedance` acts on
lengths that were measured a moment ago. What that costs is the phase of the damping: B w tau,
w = L_i A^-1 L_i' being the inverse of the mass that the muscle feels and tau the delay of the
rate, must stay well below one, whatever K is. A muscle that moves a light link about a small
lever only, such as a biceps that twists the forearm, feels little mass and bears little B.

Here the whole robot is looked at near one pose, all muscles taut, without gravity, friction and
rotors, which all calm it:

    M qdd + D qd + L' T = 0,     l = L q,     T' = (u - T)/t_c

with u held for a period. Per period, with the lengths and tensions of the period before:

    v    <- v + (1 - exp(-2 pi f dt)) ((l - l_before)/dt - v)          rate, low-pass of corner f
    T_d   = K l + B v                                                  law
    s    <- s + k_i dt (T_d - T)                                       tension loop
    u     = T_d + k_p (T_d - T) + s

This is a linear map; it is stable if its eigenvalues are within the unit circle.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from cards_core.checks import finite_number
from cards_core.dynamics import Dynamics
from cards_core.errors import ShapeError
from cards_core.muscles.implicit import joint_damping
from cards_core.robot.model import Robot
from cards_core.typing import Array

LEAST_GROWTH = 0.1
"""Growth from which on a motion counts as one, [1/s]: joints that nothing holds have none, but for
rounding."""


@dataclass(frozen=True)
class SampledLoop:
    """What closes the loop; the defaults are those of the muscle boards.

    Attributes:
        period: dt, [s].
        rate_filter: f, corner of the low-pass of the rate, [Hz].
        proportional: k_p of the tension loop.
        integral: k_i, [1/s].
        lag: t_c of the motor's current loop, [s].
    """

    period: float = 1e-3
    rate_filter: float = 100.0
    proportional: float = 0.25
    integral: float = 80.0
    lag: float = 0.5e-3


@dataclass(frozen=True)
class LoopMotion:
    """The motion of a loop that dies out last, or grows fastest.

    Attributes:
        growth: Of its amplitude, [1/s]; negative: it dies out.
        frequency: [Hz]
        muscle: Index of the muscle whose length takes part most.
    """

    growth: float
    frequency: float
    muscle: int

    @property
    def stable(self) -> bool:
        """Whether it does not grow."""
        return self.growth <= LEAST_GROWTH


def slowest_motion(
    dynamics: Dynamics,
    q: Array,
    stiffness: Array,
    damping: Array,
    loop: SampledLoop | None = None,
) -> LoopMotion | None:
    """Return the motion near a pose that dies out last, or grows fastest.

    Args:
        dynamics: Of the robot; its result buffers are overwritten.
        q: Pose, shape (nq,).
        stiffness: K of every muscle, shape (m,), [N/m]; muscles with K = B = 0 have no part.
        damping: B, shape (m,), [N s/m].
        loop: What closes the loop.

    Returns:
        None if no muscle is under the law.

    Raises:
        ShapeError: Wrong number of gains.
        ParameterError: A number of the loop that makes no sense.
    """
    loop = loop or SampledLoop()
    for name in ("period", "rate_filter", "lag"):
        finite_number(getattr(loop, name), f"{name} of the loop", above=0.0)
    count = len(dynamics.robot.muscles)
    for name, values in (("stiffness", stiffness), ("damping", damping)):
        if np.shape(values) != (count,):
            raise ShapeError(f"{name} has shape {np.shape(values)}, expected ({count},)")
    rows = np.flatnonzero((stiffness > 0.0) | (damping > 0.0))
    if not len(rows):
        return None
    state = dynamics.update(q, np.zeros(dynamics.tree.nv))
    jacobian = state.muscle_jacobian[rows].copy()
    advance, force = _plant(state.mass_matrix.copy(), jacobian, joint_damping(dynamics.tree), loop)
    matrix = _closed(advance, force, jacobian, (stiffness[rows], damping[rows]), loop)
    values, vectors = np.linalg.eig(matrix)
    worst = int(np.argmax(np.abs(values)))
    nv = dynamics.tree.nv
    # without a rate of their own, lengths of slow motions would hide those that swing
    part = np.abs(jacobian @ vectors[nv : 2 * nv, worst]) * np.sqrt(
        np.einsum("ij,jk,ik->i", jacobian, np.linalg.inv(state.mass_matrix), jacobian)
    )
    turn = complex(values[worst])
    return LoopMotion(
        math.log(max(abs(turn), 1e-300)) / loop.period,
        abs(math.atan2(turn.imag, turn.real)) / (2.0 * math.pi * loop.period),
        int(rows[int(np.argmax(part))]),
    )


def gains_of(robot: Robot) -> tuple[Array, Array]:
    """Return K [N/m] and B [N s/m] of every muscle of a description, shape (m,) each."""
    laws = [muscle.control for muscle in robot.muscles]
    gains = np.array([[law.stiffness, law.damping] for law in laws], dtype=float).reshape(-1, 2)
    return gains[:, 0].copy(), gains[:, 1].copy()


def growth_text(motion: LoopMotion, stiffness: Array, damping: Array) -> str:
    """Return what a motion that grows has to do with the gains of its muscle, in words.

    Args:
        motion: As `slowest_motion` found it.
        stiffness: K that it was asked about, shape (m,), [N/m].
        damping: B, shape (m,), [N s/m].
    """
    k, b = stiffness[motion.muscle], damping[motion.muscle]
    return (
        f"K {k:g} N/m and B {b:g} N s/m let it swing at "
        f"{motion.frequency:.0f} Hz, growing by {motion.growth:.0f}/s (expected: less of both)"
    )


def _plant(mass: Array, jacobian: Array, damping: Array, loop: SampledLoop) -> tuple[Array, Array]:
    """Return what a period makes of q, qd and T, and of u, which is held."""
    m, nv = jacobian.shape
    n = 2 * nv + m
    inverse = np.linalg.inv(mass)
    rates = np.zeros((n + m, n + m))
    rates[:nv, nv : 2 * nv] = np.eye(nv)
    rates[nv : 2 * nv, nv : 2 * nv] = -inverse * damping
    rates[nv : 2 * nv, 2 * nv : n] = -inverse @ jacobian.T
    rates[2 * nv : n, 2 * nv : n] = -np.eye(m) / loop.lag
    rates[2 * nv : n, n:] = np.eye(m) / loop.lag
    whole = np.asarray(expm(rates * loop.period))
    return whole[:n, :n], whole[:n, n:]


def _closed(
    advance: Array, force: Array, jacobian: Array, gains: tuple[Array, Array], loop: SampledLoop
) -> Array:
    """Return the map of a period.

    Of: state of the plant, lengths and tensions of the period before, lengths before those,
    rates, integrals.
    """
    (m, nv), n = jacobian.shape, len(advance)
    stiffness, damping = gains
    share = 1.0 - math.exp(-2.0 * math.pi * loop.rate_filter * loop.period)
    places = np.cumsum([0, n, m, m, m, m, m])
    plant, length, tension, earlier, rate, integral = (
        slice(*pair) for pair in itertools.pairwise(places)
    )
    one, size = np.eye(m), int(places[-1])

    def pick(where: slice) -> Array:
        out = np.zeros((m, size))
        out[:, where] = one
        return out

    difference = (pick(length) - pick(earlier)) / loop.period
    filtered = pick(rate) + share * (difference - pick(rate))
    wanted = stiffness[:, None] * pick(length) + damping[:, None] * filtered
    error = wanted - pick(tension)
    summed = pick(integral) + loop.integral * loop.period * error
    told = wanted + loop.proportional * error + summed
    out = np.zeros((size, size))
    out[plant, plant] = advance
    out[plant] += force @ told
    out[length, :nv] = jacobian
    out[tension, 2 * nv : n] = one
    out[earlier] = pick(length)
    out[rate] = filtered
    out[integral] = summed
    return out
