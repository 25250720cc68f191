"""One measurement of lengths joins a Gaussian belief; muscles that disagree are left out.

With the innovation r = measured - predicted, the error e of (q, qd) and r = H e + noise(0, R):

    S = H P H' + R,   K = P H' S^-1,   e = K r,   P <- (E - K H) P (E - K H)' + K R K'

The last is Joseph's form: symmetric and positive semidefinite for any K that rounding leaves,
which ``P - K H P`` need not be after some hours at 1 kHz [BarShalom2001]_.

**Who is wrong.** The plain test ``r_i / sqrt(S_ii)`` asks whether muscle i agrees with the
prediction: weakly, since the others, which say more, are not heard. We ask whether i agrees with
the prediction *and all other muscles*; no second filter is needed for that [Baarda1968]_:

    t_i = (S^-1 r)_i / sqrt((S^-1)_ii)                           standard normal if all is well

The muscle with the largest |t_i| beyond the gate is taken out and the rest asked again. If,
instead, the lengths agree with each other and only the prediction does not fit them (the robot was
hit), it is the prediction that is wrong: its covariance grows until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack
from scipy.special import chdtri

from cards_core.typing import Array

FALSE_ALARM = 1e-5
"""Probability with which a sum of squares of a sound step is taken for a wrong one."""


@dataclass(eq=False, slots=True)
class Correction:
    """Result of `LengthUpdate.correct`.

    Attributes:
        error: Estimate of e, shape (2 nv,).
        covariance: P after the measurement, shape (2 nv, 2 nv).
        residuals: t of every muscle, shape (m,), [sigma]; for those left out against the estimate
            that was made without them; NaN where there was no length.
        used: Which muscles the estimate is made from, shape (m,).
        nis: Normalised innovation squared r' S^-1 r of those used: chi-square with as many degrees
            of freedom as there are rows.
        rows: Rows that were used: muscles, twice where rates came along.
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


class LengthUpdate:
    """Corrects a belief by lengths.

    Args:
        muscles, coordinates: m and nv.
        noise: Standard deviation of each length, shape (m,), [m].
        rate_noise: Of each rate, shape (m,), [m/s].
        gate: Residual from which on a muscle is left out, [sigma].
    """

    def __init__(
        self, muscles: int, coordinates: int, noise: Array, rate_noise: Array, gate: float
    ) -> None:
        self._m, self._nv = muscles, coordinates
        self._gate = gate
        self._variance = np.concatenate([noise**2, rate_noise**2])
        dof = np.arange(2 * muscles + 1)
        self._limits = np.array([chdtri(n, FALSE_ALARM) if n else 0.0 for n in dof])

    def correct(
        self,
        covariance: Array,
        jacobian: Array,
        innovation: Array,
        use: npt.NDArray[np.bool_],
    ) -> Correction:
        """Return what the measurement makes of a predicted belief.

        Args:
            covariance: P, shape (2 nv, 2 nv).
            jacobian: L, shape (m, nv).
            innovation: Measured less predicted lengths, shape (m,), [m]; with rates (2 m,), theirs
                behind, [m/s]. NaN where there is none.
            use: Muscles to use, shape (m,); none whose length is NaN.
        """
        m, nv, k = self._m, self._nv, len(innovation)
        full = np.zeros((k, 2 * nv))
        full[:m, :nv] = jacobian
        if k > m:
            # d(L qd)/dq is left out: with the q that the lengths give it is below the noise
            full[m:, nv:] = jacobian
        variance = self._variance[:k]
        known = np.isfinite(innovation)
        used = use.copy()
        outliers_left = max(0, int(np.count_nonzero(used)) - nv)
        surprised = False
        prior = covariance
        plausible = False
        for _ in range(m + 2):
            row_used = self._rows(used, known, k)
            # a row of zeros with no innovation takes part without saying anything
            h = full if row_used.all() else full * row_used[:, None]
            r = np.where(row_used, innovation, 0.0)
            cross = prior @ h.T
            s = h @ cross
            s.flat[:: k + 1] += variance
            inverse = _inverse(s)
            weighted = inverse @ r
            t = weighted / np.sqrt(inverse.diagonal())
            nis = float(r @ weighted)
            rows = int(np.count_nonzero(row_used))
            worst = int(np.argmax(np.abs(t)))
            plausible = abs(float(t[worst])) <= self._gate and nis <= self._limits[rows]
            if plausible:
                break
            if not surprised and nis > self._limits[rows] and self._agree(h, r, row_used):
                prior = prior * (nis / rows)
                surprised = True
                continue
            if abs(float(t[worst])) <= self._gate or not outliers_left:
                break
            used[worst % m] = False
            outliers_left -= 1
        residuals: Array = t[:m]
        if not plausible:
            residuals = np.where(known[:m], residuals, np.nan)
            none = np.zeros(2 * nv)
            return Correction(none, covariance, residuals, used, nis, rows, surprised, False)
        gain = cross @ inverse
        keep = -(gain @ h)
        keep.flat[:: 2 * nv + 1] += 1.0
        after = keep @ prior @ keep.T + (gain * variance) @ gain.T
        after = 0.5 * (after + after.T)
        error: Array = cross @ weighted
        if not used.all():
            residuals = np.where(
                used, residuals, self._outside(innovation[:m], jacobian, error, after)
            )
        return Correction(error, after, residuals, used, nis, rows, surprised, True)

    def _rows(
        self, used: npt.NDArray[np.bool_], known: npt.NDArray[np.bool_], k: int
    ) -> npt.NDArray[np.bool_]:
        return used if k == self._m else np.concatenate([used, used]) & known

    def _agree(self, h: Array, r: Array, used: npt.NDArray[np.bool_]) -> bool:
        """Return True if some (q, qd) fits the measurements, whatever was predicted."""
        sigma = np.sqrt(self._variance[: len(r)])
        matrix, right = (h / sigma[:, None])[used], (r / sigma)[used]
        solution, _, rank, _ = np.linalg.lstsq(matrix, right, rcond=1e-9)
        left = right - matrix @ solution
        dof = len(right) - int(rank)
        # without redundancy everything agrees, and nothing can be said against a muscle
        return dof > 0 and float(left @ left) <= self._limits[dof]

    def _outside(self, innovation: Array, jacobian: Array, error: Array, after: Array) -> Array:
        """Residuals of muscles that had no part in the estimate; NaN where there is no length."""
        nv = self._nv
        spread = np.einsum("ij,jk,ik->i", jacobian, after[:nv, :nv], jacobian)
        out: Array = (innovation - jacobian @ error[:nv]) / np.sqrt(
            self._variance[: self._m] + spread
        )
        return out


def _inverse(matrix: Array) -> Array:
    """Inverse of a symmetric positive definite matrix, by its Cholesky factor."""
    factor, info = lapack.dpotrf(matrix, lower=0, clean=1)
    assert info == 0, "S = H P H' + R is positive definite for any P >= 0"
    half, _ = lapack.dtrtri(factor, lower=0)
    out: Array = half @ half.T
    return out
