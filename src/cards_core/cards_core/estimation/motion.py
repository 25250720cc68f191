"""How a robot that is not known to be pushed moves: with constant velocity and noise on it.

    q' = qd,    qd' = a,    a white noise of spectral density s^2 per coordinate  [BarShalom2001]_

Over any dt, exactly (two steps of dt/2 give what one of dt gives):

    F = [E  dt E]      Q = s^2 [dt^3/3  dt^2/2]
        [0     E]              [dt^2/2  dt    ]

The error of a quaternion is a rotation vector e in node axes, ``true = estimate exp(e)``. It is
carried along by the motion, and an error of the angular velocity w adds to it [Sola2018]_:

    e' = R(w dt)^T e + J_r(w dt) dt e_w
"""

from __future__ import annotations

import math

import numpy as np

from cards_core.analysis.tangent import TangentSpace
from cards_core.spatial import hat, quaternion_matrix, rotation_exp
from cards_core.typing import Array


class WhiteAcceleration:
    """Motion with white noise as acceleration.

    Args:
        space: Of the robot's coordinates.
        density: Root s of the spectral density, shape (nv,), [rad/s^1.5] or [m/s^1.5]: after a
            second without measurements a velocity is uncertain by s.
    """

    def __init__(self, space: TangentSpace, density: Array) -> None:
        self.space = space
        self._nv = len(density)
        self._variance = density * density
        self._diagonal = np.arange(self._nv)

    def move(self, q: Array, qd: Array, covariance: Array, dt: float) -> tuple[Array, Array]:
        """Return q and the covariance after dt.

        Args:
            q: Coordinates, shape (nq,).
            qd: Velocities, shape (nv,): they stay.
            covariance: Of the errors of q (in the tangent space) and qd, shape (2 nv, 2 nv).
            dt: [s], >= 0.
        """
        moved = self.space.integrate(q, qd * dt)
        if self.space.balls:
            out = self._turned(qd, covariance, dt)
        else:
            # F P F', block by block: the identities need no products
            nv = self._nv
            out = covariance.copy()
            out[:nv] += dt * covariance[nv:]
            out[:, :nv] += dt * out[:, nv:]
        i, j = self._diagonal, self._diagonal + self._nv
        out[i, i] += self._variance * (dt * dt * dt / 3.0)
        out[i, j] += self._variance * (dt * dt / 2.0)
        out[j, i] += self._variance * (dt * dt / 2.0)
        out[j, j] += self._variance * dt
        return moved, out

    def _turned(self, qd: Array, covariance: Array, dt: float) -> Array:
        nv = self._nv
        transition = np.eye(2 * nv)
        transition[self._diagonal, self._diagonal + nv] = dt
        for _, v in self.space.balls:
            turn = qd[v : v + 3] * dt
            transition[v : v + 3, v : v + 3] = quaternion_matrix(rotation_exp(turn)).T
            transition[v : v + 3, nv + v : nv + v + 3] = dt * right_jacobian(turn)
        out: Array = transition @ covariance @ transition.T
        return out


def right_jacobian(theta: Array) -> Array:
    """Return J_r of SO(3), shape (3, 3): exp(theta + d) = exp(theta) exp(J_r d) for small d."""
    angle = float(np.linalg.norm(theta))
    cross = hat(theta)
    if angle < 1e-3:  # the next terms are 1e-13
        first, second = 0.5 - angle * angle / 24.0, 1.0 / 6.0 - angle * angle / 120.0
    else:
        first = (1.0 - math.cos(angle)) / angle**2
        second = (angle - math.sin(angle)) / angle**3
    out: Array = np.eye(3) - first * cross + second * (cross @ cross)
    return out
