"""Joint coordinates from muscle lengths while a robot moves: an extended Kalman filter.

The belief is a pose q, a velocity qd and the covariance P of their errors; the error of q lives in
the tangent space, so quaternions stay of unit length [Sola2018]_. Every step

    predict   q <- q (+) qd dt,  P <- F P F' + Q          (`motion`: white noise as acceleration)
    correct   l = l(q) + noise,  dl/dq = L                (`length_update`: Joseph form, outliers)
    limits    nearest pose within the joint limits, nearest in the metric of P [Simon2010]_

Least squares on every sample (`ForwardKinematics`) would use nothing of the past, has no velocity,
and a missing muscle moves its answer; here the past fills the gaps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.analysis.tangent import TangentSpace
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.estimation.initial_guess import EstimationError, InitialGuess, find_initial_guess
from cards_core.estimation.length_update import Correction, LengthUpdate
from cards_core.estimation.motion import WhiteAcceleration
from cards_core.typing import Array

GATE = 4.0
"""Residual from which on a length is not believed, [sigma]."""

SUSPECT_AFTER = 5
"""Steps in a row that a muscle has to fail before it is kept out: by chance one step in 16 000
fails per muscle, five in a row once in 1e21."""

TRUSTED_AFTER = 100
"""Steps in a row that a muscle kept out has to stay within the gate's `TRUSTED` to be let in."""

TRUSTED = 0.75
"""Of the gate: three sigma. A sound muscle passes a hundred steps three times in four."""

RESTART_AFTER = 5
"""Implausible steps in a row after which the pose is sought anew."""

RESTART_PAUSE = 250
"""And so many steps later at most again."""

UNKNOWN = 1.0
"""Standard deviation at the start of what lengths do not tell: [rad] or [m], velocities per s."""

RELINEARISE = 0.02
"""Correction from which on l(q) is linearised again at the corrected pose, [rad] or [m]: an arc of
radius 1 departs from its tangent by 0.2 mm there."""

MAX_LINEARISATIONS = 4

STARTS = 24
"""Random poses from which a cold start searches besides home."""

STARTS_BESIDE = 4
"""The same where a guess is given."""


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """Result of `JointEstimator.step`; its arrays belong to the caller.

    Attributes:
        q: Coordinates, shape (nq,), within the joint limits.
        qd: Velocities, shape (nv,).
        covariance: Of their errors, shape (2 nv, 2 nv).
        residuals: How far every muscle is from what the others and the past say, shape (m,),
            [sigma]; NaN where there was no length.
        used: Muscles the estimate is made from, shape (m,).
        suspect: Muscles that disagree for so long that they are kept out, shape (m,).
        nis: Normalised innovation squared; about as large as ``rows``.
        rows: Its degrees of freedom.
        plausible: False: the lengths agree neither with the past nor with each other; q is then
            only a prediction and must not be relied on.
    """

    q: Array
    qd: Array
    covariance: Array
    residuals: Array
    used: npt.NDArray[np.bool_]
    suspect: npt.NDArray[np.bool_]
    nis: float
    rows: int
    plausible: bool

    @property
    def std(self) -> Array:
        """Standard deviations of q in the tangent space, shape (nv,)."""
        nv = len(self.covariance) // 2
        return np.asarray(np.sqrt(self.covariance.diagonal()[:nv]))


class JointEstimator:
    """Follows one robot; one object per robot and thread.

    Args:
        dynamics: Of the robot. Lends its result buffers: call nothing of it between steps that
            you still read.
        length_noise: Standard deviation of a measured length, [m], with what is left of
            calibration errors; one number or one per muscle.
        acceleration_noise: How suddenly the robot moves: what a velocity becomes uncertain by
            within a second unobserved, [rad/s^1.5] or [m/s^1.5]; one number or one per velocity.
            Large follows faster, small smooths more.
        rate_noise: Standard deviation of a measured rate, [m/s], where rates are given.
        gate: Residual from which on a length is not believed, [sigma].

    Attributes:
        q, qd, covariance: The present belief.
        started: Whether there is one.
        suspect: See `Estimate`.
        restarts: How often the pose had to be sought anew.

    Raises:
        CardsError: A number out of range, or a robot without muscles.
    """

    def __init__(
        self,
        dynamics: Dynamics,
        length_noise: float | Array = 2e-4,
        *,
        acceleration_noise: float | Array = 5.0,
        rate_noise: float = 5e-3,
        gate: float = GATE,
    ) -> None:
        tree, robot = dynamics.tree, dynamics.robot
        m = len(robot.muscles)
        if not m or not tree.nv:
            raise CardsError(
                f"{robot.name} has {m} muscles and {tree.nv} degrees of freedom: no lengths to "
                "estimate joints from (expected: at least one of both)"
            )
        self._noise = _positive(length_noise, m, "length_noise", "[m]")
        density = _positive(acceleration_noise, tree.nv, "acceleration_noise", "[rad/s^1.5]")
        rates = _positive(rate_noise, m, "rate_noise", "[m/s]")
        if not gate > 0.0:
            raise CardsError(f"gate is {gate} (expected: sigmas > 0)")
        self._dynamics = dynamics
        self._space = TangentSpace(tree)
        self._motion = WhiteAcceleration(self._space, density)
        self._update = LengthUpdate(m, tree.nv, self._noise, rates, gate)
        self._gate = gate
        self._nv, self._m = tree.nv, m
        self.q = self._space.clip(tree.home)
        self.qd = np.zeros(tree.nv)
        self.covariance = np.eye(2 * tree.nv) * UNKNOWN**2
        self.started = False
        self.restarts = 0
        self._forget_muscles()

    def start(
        self,
        lengths: Array,
        *,
        valid: npt.NDArray[np.bool_] | None = None,
        near: Array | None = None,
        allow_unobservable: bool = False,
    ) -> InitialGuess:
        """Begin from lengths alone; also to begin again.

        Args:
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            valid: Muscles that may be used, shape (m,).
            near: A guess, shape (nq,); without it home, and random poses besides.
            allow_unobservable: Accept coordinates that no length tells; they stay where the guess
                has them, with a large variance.

        Raises:
            EstimationError: No pose fits, or coordinates cannot be told; the message names them.
            ShapeError: Not one number per muscle.
        """
        found = find_initial_guess(
            self._dynamics,
            self._checked(lengths, "lengths"),
            float(self._noise.max()),
            valid=valid,
            near=near,
            starts=STARTS if near is None else STARTS_BESIDE,
        )
        if not found.observability and not allow_unobservable:
            raise EstimationError(
                f"{self._dynamics.robot.name}: {found.statement} (expected: a joint sensor there, "
                "more muscles, or a start in another pose)"
            )
        self._begin_at(found)
        return found

    def _begin_at(self, found: InitialGuess) -> None:
        self.begin(found.q)
        names = [muscle.name for muscle in self._dynamics.robot.muscles]
        out = [names.index(name) for name in found.excluded]
        self.suspect[out] = True
        std = found.observability.std
        spread = np.where(np.isfinite(std), std, UNKNOWN)
        self.covariance[: self._nv, : self._nv] = np.diag(spread**2)

    def begin(self, q: Array, std: float = 1e-2, rate_std: float = UNKNOWN) -> None:
        """Begin at a known pose at rest, give or take ``std`` [rad] or [m] and ``rate_std``."""
        self.q = self._space.clip(self._dynamics.tree.check_q(q))
        self.qd = np.zeros(self._nv)
        self.covariance = np.diag(np.repeat([std**2, rate_std**2], self._nv))
        self.started = True
        self._forget_muscles()

    def step(
        self,
        lengths: Array,
        dt: float,
        valid: npt.NDArray[np.bool_] | None = None,
        rates: Array | None = None,
    ) -> Estimate:
        """Return the estimate after the next lengths.

        Args:
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            dt: Since the last step, [s], >= 0.
            valid: Muscles that may be used, shape (m,); all with a finite length without it.
            rates: Their derivatives, shape (m,), [m/s]; NaN where there is none.

        Raises:
            EstimationError: Not started.
            ShapeError: Not one number per muscle.
            CardsError: dt is no time.
        """
        if not self.started:
            raise EstimationError("the estimator has no pose yet (expected: start(lengths) first)")
        if not (0.0 <= dt < math.inf):
            raise CardsError(f"dt is {dt} (expected: seconds >= 0)")
        measured = self._checked(lengths, "lengths")
        usable = np.isfinite(measured)
        if valid is not None:
            usable &= valid
        if rates is not None:
            measured = np.concatenate([measured, self._checked(rates, "rates")])
        before, prior = self._motion.move(self.q, self.qd, self.covariance, dt)
        result = self._corrected(before, prior, measured, usable & ~self.suspect)
        if self._space.limited:
            self._stay_within_limits()
        self._judge(result, usable)
        if not result.plausible:
            self._failed(measured[: self._m], usable)
        else:
            self._failures, self._next_try = 0, RESTART_AFTER
        return Estimate(
            self.q.copy(),
            self.qd.copy(),
            self.covariance.copy(),
            result.residuals,
            result.used,
            self.suspect.copy(),
            result.nis,
            result.rows,
            result.plausible,
        )

    def _corrected(
        self, before: Array, prior: Array, measured: Array, use: npt.NDArray[np.bool_]
    ) -> Correction:
        """Correct (before, self.qd, prior); linearise again where the correction is large."""
        nv, m = self._nv, self._m
        q, moved = before, None
        for _ in range(MAX_LINEARISATIONS):
            state = self._dynamics.update(q, self.qd)
            jacobian = state.muscle_jacobian
            innovation = measured.copy()
            innovation[:m] -= state.muscle_lengths
            if moved is not None:
                # of the prediction `before`, with l(q) linearised at q [Bell1993]_
                innovation[:m] += jacobian @ moved
            if len(measured) > m:
                innovation[m:] -= jacobian @ self.qd
            result = self._update.correct(prior, jacobian, innovation, use)
            error = result.error[:nv]
            q = self._space.integrate(before, error)
            change = error if moved is None else error - moved
            if float(np.abs(change).max()) <= RELINEARISE or not result.plausible:
                break
            moved = error
        self.q = q
        self.qd = self.qd + result.error[nv:]
        self.covariance = result.covariance
        return result

    def _stay_within_limits(self) -> None:
        space, nv = self._space, self._nv
        position = space.position(self.q)
        inside = np.minimum(np.maximum(position, space.lower), space.upper)
        over = inside != position
        if not over.any():
            return
        # of all poses within the limits the likeliest: what depends on a joint moves along
        block = self.covariance[:nv, :nv][np.ix_(over, over)]
        pull = np.linalg.lstsq(block, (inside - position)[over], rcond=None)[0]
        shift = self.covariance[:, :nv][:, over] @ pull
        self.q = space.clip(space.integrate(self.q, shift[:nv]))
        self.qd = self.qd + shift[nv:]
        position = space.position(self.q)
        self.qd = np.where(position <= space.lower, np.maximum(self.qd, 0.0), self.qd)
        self.qd = np.where(position >= space.upper, np.minimum(self.qd, 0.0), self.qd)

    def _forget_muscles(self) -> None:
        self.suspect = np.zeros(self._m, dtype=bool)
        self._failed_in_a_row = np.zeros(self._m, dtype=np.intp)
        self._good_in_a_row = np.zeros(self._m, dtype=np.intp)
        self._failures, self._next_try = 0, RESTART_AFTER

    def _judge(self, result: Correction, usable: npt.NDArray[np.bool_]) -> None:
        """Keep muscles out that fail for long, and let them in again."""
        if result.used.all():
            self._failed_in_a_row[:] = 0
            return
        size = np.abs(result.residuals)
        failed = usable & ~result.used & (size > self._gate)
        self._failed_in_a_row = np.where(failed, self._failed_in_a_row + 1, 0)
        good = self.suspect & usable & (size <= TRUSTED * self._gate)
        self._good_in_a_row = np.where(good, self._good_in_a_row + 1, 0)
        self.suspect |= self._failed_in_a_row >= SUSPECT_AFTER
        self.suspect &= self._good_in_a_row < TRUSTED_AFTER

    def _failed(self, lengths: Array, usable: npt.NDArray[np.bool_]) -> None:
        """Seek the pose anew after some implausible steps, ever more seldom."""
        self._failures += 1
        if self._failures < self._next_try:
            return
        self._next_try = min(2 * self._failures, self._failures + RESTART_PAUSE)
        noise = float(self._noise.max())
        try:
            # one search only: this is a step of a loop that cannot wait
            found = find_initial_guess(
                self._dynamics, lengths, noise, valid=usable, near=self.q, starts=0, max_excluded=0
            )
        except EstimationError:
            return  # it stays implausible, which the caller is told
        if found.observability:
            self._begin_at(found)
            self.restarts += 1

    def _checked(self, values: Array, name: str) -> Array:
        array = np.asarray(values, dtype=float)
        if array.shape != (self._m,):
            raise ShapeError(
                f"{name} has shape {array.shape}, expected ({self._m},): one value for each of "
                f"{', '.join(muscle.name for muscle in self._dynamics.robot.muscles)}"
            )
        return array


def _positive(value: float | Array, size: int, name: str, unit: str) -> Array:
    try:
        out = np.broadcast_to(np.asarray(value, dtype=float), (size,)).copy()
    except ValueError:
        raise ShapeError(
            f"{name} has shape {np.shape(value)}, expected one number or {size}"
        ) from None
    if not (np.isfinite(out).all() and (out > 0.0).all()):
        raise CardsError(f"{name} is {value} {unit} (expected: numbers > 0)")
    return out
