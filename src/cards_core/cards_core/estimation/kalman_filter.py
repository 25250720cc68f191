"""The two steps of a Kalman filter on (q, qd): prediction by a motion model, update by sensors.

**Prediction.** A robot that is not known to be pushed moves with constant velocity and noise,

    q' = qd,    qd' = a,    a white noise of spectral density s^2 per coordinate  [BarShalom2001]_

Over any dt, exactly (two steps of dt/2 give what one of dt gives):

    F = [E  dt E]      Q = s^2 [dt^3/3  dt^2/2]
        [0     E]              [dt^2/2  dt    ]

The error of a quaternion is a rotation vector e in node axes, ``true = estimate exp(e)``. It is
carried along by the motion, and an error of the angular velocity w adds to it [Sola2018]_:

    e' = R(w dt)^T e + J_r(w dt) dt e_w

Offsets b of the length sensors, where they are estimated, stand behind q and qd and stay: they are
constants.

**Update.** With the innovation r = measured - predicted, the error e of (q, qd) or (q, qd, b) and
r = H e + noise(0, R):

    lengths  H = [L 0 E]      rates  H = [0 L 0]      joint sensors  H = [E 0 0]

    S = H P H' + R,   K = P H' S^-1,   e = K r,   P <- (E - K H) P (E - K H)' + K R K'

The last is Joseph's form: symmetric and positive semidefinite for any K that rounding leaves,
which ``P - K H P`` need not be after some hours at 1 kHz [BarShalom2001]_.

**Which length is wrong.** The plain test ``r_i / sqrt(S_ii)`` asks whether muscle i agrees with
the prediction: weakly, since the others, which say more, are not heard. We ask whether i agrees
with the prediction *and all other muscles*; no second filter is needed for that [Baarda1968]_:

    t_i = (S^-1 r)_i / sqrt((S^-1)_ii)                           standard normal if all is well

The muscle with the largest |t_i| beyond the gate is taken out and the rest asked again. If,
instead, the lengths agree with each other and only the prediction does not fit them (the robot was
hit), it is the prediction that is wrong: its covariance grows until it fits. That of the offsets
does not: a blow moves no zero point. A joint sensor is tested as a muscle is.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.special import chdtri

from cards_core.analysis.tangent import TangentSpace
from cards_core.codegen.library import PRODUCT, load_library
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
            covariance: Of the errors of q (in the tangent space), qd and perhaps constants behind
                them, shape (n, n), n >= 2 nv.
            dt: [s], >= 0.
        """
        moved = self.space.integrate(q, qd * dt)
        turned = bool(self.space.balls)
        out = self._turned(qd, covariance, dt) if turned else np.array(covariance, order="C")
        spread = _library().kalman_noise if turned else _library().kalman_predict
        spread(len(out), self._nv, dt, self._variance.ctypes.data, out.ctypes.data)
        return moved, out

    def _turned(self, qd: Array, covariance: Array, dt: float) -> Array:
        nv = self._nv
        transition = np.eye(len(covariance))
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


FALSE_ALARM = 1e-5
"""Probability with which a sum of squares of a sound step is taken for a wrong one."""


@dataclass(eq=False, slots=True)
class Innovation:
    """What sensors read, less what was predicted; NaN where nothing was read.

    Attributes:
        lengths: Of muscles, shape (m,), [m].
        rates: Of muscles, shape (m,), [m/s]; None without rates.
        joints: Of coordinates in the tangent space, shape (nv,), [rad] or [m]; None without
            joint sensors.
    """

    lengths: Array
    rates: Array | None = None
    joints: Array | None = None


@dataclass(eq=False, slots=True)
class Correction:
    """Result of `SensorUpdate.correct`, with n states: 2 nv, and m more with offsets.

    Attributes:
        error: Estimate of e, shape (n,).
        covariance: P after the measurement, shape (n, n).
        residuals: t of every muscle and, if there are joint sensors, of every coordinate behind
            them, shape (m,) or (m + nv,), [sigma]; for those left out against the estimate that
            was made without them; NaN where there was no reading.
        used: Which of these the estimate is made from, same shape.
        nis: Normalised innovation squared r' S^-1 r of those used: chi-square with as many degrees
            of freedom as there are rows.
        rows: Rows that were used: muscles, twice where rates came along, and coordinates.
        surprised: Whether the prediction was wrong and its covariance had to grow.
        plausible: Whether what was used agrees. If not, error is zero and P is that of before.
    """

    error: Array
    covariance: Array
    residuals: Array
    used: npt.NDArray[np.bool_]
    nis: float
    rows: int
    surprised: bool
    plausible: bool


class SensorUpdate:
    """Corrects a belief by lengths, and by rates and joint sensors where they come along.

    Small matrices: the arithmetic is in C, which takes a third of the time of NumPy.

    Args:
        noise: Standard deviation of each length, shape (m,), [m].
        rate_noise: Of each rate, shape (m,), [m/s].
        joint_noise: Of each joint sensor, shape (nv,), [rad] or [m].
        gate: Residual from which on a sensor is left out, [sigma].
        offsets: Whether the offsets of the lengths are states, behind q and qd.
    """

    def __init__(
        self, noise: Array, rate_noise: Array, joint_noise: Array, gate: float, *, offsets: bool
    ) -> None:
        self._m, self._nv = len(noise), len(joint_noise)
        self._gate = gate
        self._offsets = offsets
        self._variances = noise**2, rate_noise**2, joint_noise**2
        dof = np.arange(2 * self._m + self._nv + 1)
        self._workspaces: dict[tuple[bool, bool], _Workspace] = {}
        self._limits = np.array([chdtri(n, FALSE_ALARM) if n else 0.0 for n in dof])

    def correct(
        self,
        covariance: Array,
        jacobian: Array,
        innovation: Innovation,
        use: npt.NDArray[np.bool_],
    ) -> Correction:
        """Return what the measurement makes of a predicted belief.

        Args:
            covariance: P, shape (n, n).
            jacobian: L, shape (m, nv).
            innovation: Measured less predicted.
            use: Sensors to use, muscles and, with joint sensors, coordinates behind them, shape
                (m,) or (m + nv,); none whose length or joint reading is NaN.
        """
        nv = self._nv
        c = self._workspace(len(covariance), innovation)
        full, r_all, variance, sensor = c.h, c.innovation, c.variance, c.sensor
        self._stack(c, jacobian, innovation)
        k = len(r_all)
        known = np.isfinite(r_all)
        used = use.copy()
        outliers_left = max(0, int(np.count_nonzero(used)) - nv)
        surprised = False
        c.prior[:] = prior = covariance
        plausible = False
        for _ in range(len(used) + 2):
            # a row that is not used takes part without saying anything
            row_used = used[sensor] & known
            c.used[:] = row_used
            c.weigh()
            t, nis = c.t, c.nis
            rows = int(np.count_nonzero(row_used))
            worst = int(np.argmax(np.abs(t)))
            plausible = abs(float(t[worst])) <= self._gate and nis <= self._limits[rows]
            if plausible:
                break
            if (
                not surprised
                and nis > self._limits[rows]
                and self._agree(full, r_all, row_used, variance, prior)
            ):
                c.prior[:] = prior = self._grown(prior, nis / rows)
                surprised = True
                continue
            if abs(float(t[worst])) <= self._gate or not outliers_left:
                break
            used[sensor[worst]] = False
            outliers_left -= 1
        # each sensor by its first row
        first = slice(None) if k == len(used) else c.first
        residuals: Array = t[first].copy()
        if not plausible:
            residuals = np.where(known[first], residuals, np.nan)
            none = np.zeros(len(covariance))
            return Correction(none, covariance, residuals, used, nis, rows, surprised, False)
        c.correct()
        after, error = c.after.copy(), c.error.copy()
        if not used.all():
            outside = self._outside(r_all[first], full[first], variance[first], error, after)
            residuals = np.where(used, residuals, outside)
        return Correction(error, after, residuals, used, nis, rows, surprised, True)

    def _workspace(self, states: int, innovation: Innovation) -> _Workspace:
        """Return the workspace for the readings that there are, its H filled but for L."""
        kind = innovation.rates is not None, innovation.joints is not None
        if kind in self._workspaces:
            return self._workspaces[kind]
        m, nv = self._m, self._nv
        sensors = [np.arange(m)]
        variances = [self._variances[0]]
        if kind[0]:
            sensors.append(np.arange(m))
            variances.append(self._variances[1])
        if kind[1]:
            sensors.append(np.arange(m, m + nv))
            variances.append(self._variances[2])
        made = _Workspace(states, np.concatenate(variances), np.concatenate(sensors))
        if self._offsets:
            made.h[:m, 2 * nv :] = np.eye(m)
        if kind[1]:
            made.h[-nv:, :nv] = np.eye(nv)
        self._workspaces[kind] = made
        return made

    def _stack(self, c: _Workspace, jacobian: Array, innovation: Innovation) -> None:
        """Write H and r."""
        m, nv = self._m, self._nv
        c.h[:m, :nv] = jacobian
        c.innovation[:m] = innovation.lengths
        if innovation.rates is not None:
            # d(L qd)/dq is left out: with the q that the lengths give it is below the noise
            c.h[m : 2 * m, nv : 2 * nv] = jacobian
            c.innovation[m : 2 * m] = innovation.rates
        if innovation.joints is not None:
            c.innovation[-nv:] = innovation.joints

    def _grown(self, prior: Array, factor: float) -> Array:
        """Return the covariance of a prediction that was wrong."""
        if not self._offsets:
            return prior * factor
        out, n = prior.copy(), 2 * self._nv
        out[:n, :n] *= factor
        return out

    def _agree(
        self,
        h: Array,
        r: Array,
        used: npt.NDArray[np.bool_],
        variance: Array,
        prior: Array,
    ) -> bool:
        """Return True if some (q, qd) fits the measurements, whatever was predicted."""
        n = 2 * self._nv
        if self._offsets:
            # what is not known of the offsets is noise here, the same at every step
            part = h[used, n:]
            noise = part @ prior[n:, n:] @ part.T
            noise.flat[:: len(noise) + 1] += variance[used]
            root = np.linalg.cholesky(noise)
            matrix = solve_triangular(root, h[used, :n], lower=True)
            right = solve_triangular(root, r[used], lower=True)
        else:
            sigma = np.sqrt(variance)
            matrix, right = (h / sigma[:, None])[used], (r / sigma)[used]
        solution, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=1e-9)
        left = right - matrix @ solution
        dof = len(right) - int(rank)
        # without redundancy everything agrees, and nothing can be said against a muscle
        return dof > 0 and float(left @ left) <= self._limits[dof]

    def _outside(
        self, innovation: Array, h: Array, variance: Array, error: Array, after: Array
    ) -> Array:
        """Residuals of sensors that had no part in the estimate; NaN where nothing was read."""
        if not self._offsets:  # velocities have no part in lengths and joint sensors
            nv = self._nv
            h, after, error = np.ascontiguousarray(h[:, :nv]), after[:nv, :nv], error[:nv]
        spread = np.einsum("ij,jk,ik->i", h, after, h)
        out: Array = (innovation - h @ error) / np.sqrt(variance + spread)
        return out


class _Workspace:
    """Arrays of one update, which C reads and writes, for n states and k rows.

    Args:
        states: n.
        variance: R of every row, shape (k,).
        sensor: Which sensor each row is of, shape (k,).

    Attributes:
        h, innovation, used, prior: H, r, whether a row is used, and P, to be written.
        t, nis: After `weigh`, see `Correction`.
        error, after: After `correct`.
        first: First row of every sensor.
    """

    def __init__(self, states: int, variance: Array, sensor: npt.NDArray[np.intp]) -> None:
        n, k = states, len(variance)
        self.variance, self.sensor = variance, sensor
        self.first = np.unique(sensor, return_index=True)[1]
        self.prior, self.h, self.innovation = np.zeros((n, n)), np.zeros((k, n)), np.zeros(k)
        self.used = np.zeros(k, dtype=np.bool_)
        self.t, self.error, self.after = np.zeros(k), np.zeros(n), np.zeros((n, n))
        self._arrays = {
            "prior": self.prior,
            "h": self.h,
            "innovation": self.innovation,
            "variance": variance,
            "used": self.used,
            "masked": np.zeros((n, k)),
            "hp": np.zeros((k, n)),
            "inverse": np.zeros((k, k)),
            "weighted": np.zeros(k),
            "t": self.t,
            "error": self.error,
            "after": self.after,
            "work": np.zeros(k * k + max(k * k, 3 * n * k)),
        }
        pointers = {name: array.ctypes.data for name, array in self._arrays.items()}
        self._c = _Update(states=n, rows=k, **pointers)
        self._pointer = ctypes.byref(self._c)
        library = _library()
        self._weigh, self._correct = library.kalman_weigh, library.kalman_correct

    @property
    def nis(self) -> float:
        """Normalised innovation squared, r' S^-1 r of the rows that are used."""
        return float(self._c.nis)

    def weigh(self) -> None:
        """Compute t and nis."""
        positive = self._weigh(self._pointer)
        assert positive, "S = H P H' + R is positive definite for any P >= 0"

    def correct(self) -> None:
        """Compute the error and the covariance after it, as `weigh` found the rows."""
        self._correct(self._pointer)


class _Update(ctypes.Structure):
    _fields_ = [
        ("states", ctypes.c_long),
        ("rows", ctypes.c_long),
        *[
            (name, ctypes.c_void_p)
            for name in (
                *("prior", "h", "innovation", "variance", "used", "masked", "hp", "inverse"),
                *("weighted", "t", "error", "after", "work"),
            )
        ],
        ("nis", ctypes.c_double),
    ]


@cache
def _library() -> ctypes.CDLL:
    own = Path(__file__).parent / "native" / "kalman.c"
    source = "\n".join(file.read_text(encoding="utf-8") for file in (PRODUCT, own))
    library = load_library("Kalman filter", source)
    library.kalman_predict.argtypes = library.kalman_noise.argtypes = [
        *[ctypes.c_long] * 2,
        ctypes.c_double,
        *[ctypes.c_void_p] * 2,
    ]
    library.kalman_predict.restype = library.kalman_noise.restype = None
    library.kalman_weigh.argtypes = library.kalman_correct.argtypes = [ctypes.c_void_p]
    library.kalman_weigh.restype = ctypes.c_int
    library.kalman_correct.restype = None
    return library
