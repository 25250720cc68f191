"""Bounds of gains that come from the control period.

Computed torque leaves the error ``edd = -Kp e - Kd ed`` where time is continuous. A controller
measures once per period T; what it commands acts a period later at the latest, and is held for a
period. That sampled double integrator has, with a = Kp T^2 and b = Kd T, the characteristic
polynomial

    z^3 - 2 z^2 + (1 + a/2 + b) z + a/2 - b

Its roots are within the unit circle (Jury's criterion) if and only if

    a < c (1 - c),      c = b - a/2

So the two gains are judged together: kp is below 1/(4 T^2), and beside it kd lies between two
bounds that are below 1/T. Critical damping, kd = 2 sqrt(kp), bears sqrt(kp) T < 0.42. Where
commands act at once, as in lockstep, twice the kd would be stable. Without kp nothing swings, so
kd may be zero, too. The model counts as exact, and tensions as without limits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cards_core.errors import ParameterError
from cards_core.typing import Array

SHORTEST_PERIOD = 1e-6
"""Of the states of any host, [s]; it bounds gains as long as the period is not known."""

_ROUNDING = 1e-12
"""Of entries of matrices, to the largest entry."""


def kp_bound(period: float) -> float:
    """Return the bound of a stiffness for a control period [s], [1/s^2]."""
    return 0.25 / period**2


def kd_range(kp: float, period: float) -> tuple[float, float]:
    """Return the bounds of a damping [1/s] beside a stiffness [1/s^2] below `kp_bound`."""
    a = kp * period**2
    root = math.sqrt(1.0 - 4.0 * a)
    return (0.5 * a + 2.0 * a / (1.0 + root)) / period, 0.5 * (a + 1.0 + root) / period


def check_stable(kp: Array, kd: Array, period: float, names: Sequence[str], prefix: str) -> None:
    """Refuse gains with which a sampled error grows; see the module.

    Args:
        kp: Stiffness, [1/s^2], shape (k,) or (k, k).
        kd: Damping, [1/s], likewise.
        period: T, [s].
        names: What the k entries belong to, for messages.
        prefix: Put before the names of the parameters in messages.

    Raises:
        ParameterError: The message has the bounds.
    """
    most, why = kp_bound(period), f"for a control period of {1e3 * period:g} ms"
    if kp.ndim == kd.ndim == 1:
        for name, p, d in zip(names, kp.tolist(), kd.tolist(), strict=True):
            low, high = kd_range(min(p, most), period)
            if not ((p < most and low < d < high) or p == d == 0.0):
                right = f"beside this kp a kd above {low:g} and below {high:g}"
                raise ParameterError(
                    f"{prefix}kp {p:g} 1/s^2 and {prefix}kd {d:g} 1/s of '{name}' let the error "
                    f"grow; expected {right if p < most else f'a kp below {most:g}'}, {why}"
                )
        return
    p, d = (np.diag(g) if g.ndim == 1 else g for g in (kp, kd))
    p_unit, d_unit = (g / (np.abs(g).max() or 1.0) for g in (p, d))
    if np.abs(p_unit @ d_unit - d_unit @ p_unit).max() <= _ROUNDING:
        # both have the axes of a sum of them, and along each axis they are numbers
        axes = np.linalg.eigh(p_unit + math.pi * d_unit)[1]
        along = [np.einsum("ij,ik,kj->j", axes, g, axes) for g in (p_unit, d_unit)]
        p_axes, d_axes = (
            np.where(np.abs(unit) > _ROUNDING, unit * np.abs(g).max(), 0.0)
            for unit, g in zip(along, (p, d), strict=True)
        )
        lines = [f"direction ({', '.join(f'{x:.3g}' for x in axis)})" for axis in axes.T + 0.0]
        check_stable(p_axes, d_axes, period, lines, prefix)
        return
    # the roots are those of the whole polynomial; a direction without kp has a root at one, and
    # one without both a second, which stay there and may be anywhere near by rounding
    one = np.eye(len(names))
    a, b = p * period**2, d * period
    turn = np.eye(3 * len(names), k=-len(names))
    turn[: len(names)] = np.hstack([2.0 * one, -one - 0.5 * a - b, b - 0.5 * a])
    roots = np.linalg.eigvals(turn)
    ranks = [
        np.linalg.matrix_rank(g, _ROUNDING, hermitian=True) for g in (p_unit, p_unit + d_unit)
    ]
    free = 2 * len(names) - sum(ranks)
    growth = float(np.abs(roots[np.argsort(np.abs(roots - 1.0))[free:]]).max())
    if growth >= 1.0:
        raise ParameterError(
            f"{prefix}kp and {prefix}kd, as matrices, let the error grow by a factor "
            f"{growth:.10g} per period; expected eigenvalues of kp well below {most:g} 1/s^2, and "
            f"of kd well below {1.0 / period:g} 1/s and above {1.5 * period:g} s kp, {why}"
        )
