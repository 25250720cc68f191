"""Joint coordinates from muscle lengths while a robot moves: an extended Kalman filter.

The belief is a pose q, a velocity qd and the covariance P of their errors; the error of q lives in
the tangent space, so quaternions stay of unit length [Sola2018]_. Every step

    predict   q <- q (+) qd dt,  P <- F P F' + Q      (`WhiteAcceleration`)
    update    l = l(q) + noise,  dl/dq = L            (`SensorUpdate`: Joseph form, outliers)
    limits    nearest pose within the joint limits, nearest in the metric of P [Simon2010]_

Least squares on every sample (`ForwardKinematics`) would use nothing of the past, has no velocity,
and a missing muscle moves its answer; here the past fills the gaps.

**Joint sensors**, where a robot has some, are further rows, ``q_i + noise``; a reading that is
lost (NaN) or does not agree with the rest is left out, as lengths are.

**Offsets of the length sensors.** With ``offset_std`` > 0 the belief is (q, qd, b) and a sensor
reads ``l(q) + b + noise``, b constant and of that standard deviation at first. Which directions of
b the robot's motion tells, and which never: `cards_core.estimation.offsets`. In
short: the m - nv directions outside the range of L at any pose; the others only by moving to where
L is another one; and none without redundancy (m = nv) or where moment arms are constant, unless
joint sensors or a known first pose (`JointEstimator.begin`) tell the pose.
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
from cards_core.estimation.kalman_filter import (
    Correction,
    Innovation,
    SensorUpdate,
    WhiteAcceleration,
)
from cards_core.estimation.offsets import offset_observability
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
"""Implausible steps in a row after which the pose is searched again."""

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

RANGE_POSES = 200
"""Random poses that stand for all motions when it is asked which offsets can be told at all."""


@dataclass(frozen=True, eq=False, slots=True)
class Estimate:
    """Result of `JointEstimator.step`; its arrays belong to the caller.

    Attributes:
        q: Coordinates, shape (nq,), within the joint limits.
        qd: Velocities, shape (nv,).
        covariance: Of their errors, shape (2 nv, 2 nv); with offsets those of the offsets behind
            them, shape (2 nv + m, 2 nv + m).
        residuals: How far every muscle is from what the others and the past say, shape (m,),
            [sigma]; NaN where there was no length.
        used: Muscles the estimate is made from, shape (m,).
        suspect: Muscles that disagree for so long that they are kept out, shape (m,).
        nis: Normalised innovation squared; about as large as ``rows``.
        rows: Its degrees of freedom.
        plausible: False: the lengths agree neither with the past nor with each other; q is then
            only a prediction and must not be relied on.
        offsets: Of the length sensors, shape (m,), [m]; zero if they are not estimated.
        joint_residuals, joint_used, joint_suspect: The same of joint sensors, by coordinate,
            shape (nv,); NaN and False where a coordinate has none.
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
    offsets: Array
    joint_residuals: Array
    joint_used: npt.NDArray[np.bool_]
    joint_suspect: npt.NDArray[np.bool_]

    @property
    def std(self) -> Array:
        """Standard deviations of q in the tangent space, shape (nv,)."""
        return np.asarray(np.sqrt(self.covariance.diagonal()[: len(self.qd)]))

    @property
    def offset_std(self) -> Array:
        """Standard deviations of the offsets, shape (m,), [m]; zero if they are not estimated."""
        variances = self.covariance.diagonal()[2 * len(self.qd) :]
        return np.asarray(np.sqrt(variances)) if len(variances) else np.zeros_like(self.offsets)


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
        gate: Residual from which on a length or a joint sensor is not believed, [sigma].
        offset_std: Standard deviation of the constant offsets of the length sensors, [m]; one
            number or one per muscle, 0 for sensors without. All 0: offsets are not estimated.
        joint_noise: Standard deviation of joint sensors, [rad] or [m]; one number or one per
            velocity, infinite where there is no sensor. None: there are none.

    Attributes:
        q, qd, offsets, covariance: The present belief.
        started: Whether there is one.
        suspect, joint_suspect: See `Estimate`.
        restarts: How often the pose had to be searched again.

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
        offset_std: float | Array = 0.0,
        joint_noise: float | Array | None = None,
    ) -> None:
        tree, robot = dynamics.tree, dynamics.robot
        m = len(robot.muscles)
        if not m or not tree.nv:
            raise CardsError(
                f"{robot.name} has {m} muscles and {tree.nv} degrees of freedom: no lengths to "
                "estimate joints from (expected: at least one of both)"
            )
        self._noise = _numbers(length_noise, m, "length_noise", "[m]")
        density = _numbers(acceleration_noise, tree.nv, "acceleration_noise", "[rad/s^1.5]")
        rates = _numbers(rate_noise, m, "rate_noise", "[m/s]")
        if not gate > 0.0:
            raise CardsError(f"gate is {gate} (expected: sigmas > 0)")
        self._dynamics = dynamics
        self._space = TangentSpace(tree)
        self._motion = WhiteAcceleration(self._space, density)
        self._offset_std = _numbers(offset_std, m, "offset_std", "[m]", zero=True)
        self._with_offsets = bool(self._offset_std.any())
        sensors = np.full(tree.nv, np.inf)
        if joint_noise is not None:
            sensors = _numbers(joint_noise, tree.nv, "joint_noise", "[rad] or [m]", infinite=True)
        self._sensed = np.isfinite(sensors)
        # of no meaning where there is no sensor, but finite: such a row takes part as zeros
        sensors = np.where(self._sensed, sensors, 1.0)
        self._update = SensorUpdate(self._noise, rates, sensors, gate, offsets=self._with_offsets)
        self._gate = gate
        self._nv, self._m = tree.nv, m
        self.q = self._space.clip(tree.home)
        self.qd = np.zeros(tree.nv)
        self.offsets = np.zeros(m)
        self.covariance = self._covariance(np.ones(2 * tree.nv) * UNKNOWN**2)
        self.started = False
        self.restarts = 0
        self._forget_muscles()

    @property
    def suspect(self) -> npt.NDArray[np.bool_]:
        """Muscles that are kept out, shape (m,)."""
        return self._kept_out[: self._m]

    @property
    def joint_suspect(self) -> npt.NDArray[np.bool_]:
        """Coordinates whose sensor is kept out, shape (nv,)."""
        return self._kept_out[self._m :]

    def start(
        self,
        lengths: Array,
        *,
        valid: npt.NDArray[np.bool_] | None = None,
        near: Array | None = None,
        joints: Array | None = None,
        allow_unobservable: bool = False,
    ) -> InitialGuess:
        """Begin from lengths alone, or with joint sensors; also to begin again.

        Args:
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            valid: Muscles that may be used, shape (m,).
            near: A guess, shape (nq,); without it home, and random poses besides.
            joints: Readings of joint sensors, shape (nq,), NaN where there is none: the search
                begins there, and what they tell, lengths need not.
            allow_unobservable: Accept coordinates that nothing tells: they stay where the guess
                has them, with a large variance. Accept offsets that no motion tells, too: their
                variances say how far they are known.

        Raises:
            EstimationError: No pose fits, or coordinates cannot be told, or offsets cannot be told
                by any motion within the joint limits; the message names them.
            ShapeError: Not one number per muscle, or per coordinate.
        """
        checked = self._checked(lengths, "lengths")
        read = np.zeros(self._nv, dtype=bool)
        starts = STARTS if near is None else STARTS_BESIDE
        if joints is not None:
            tree = self._dynamics.tree
            at = tree.home if near is None else tree.check_q(near)
            apart = self._apart(joints, at)
            read = np.isfinite(apart)
            near = self._space.clip(self._space.integrate(at, np.where(read, apart, 0.0)))
        noise = self._noise
        if self._with_offsets:
            noise = np.sqrt(noise**2 + self._offset_std**2)
            if not allow_unobservable:
                there = np.isfinite(checked)
                self._refuse_hidden_offsets(there if valid is None else there & valid, read)
        found = find_initial_guess(
            self._dynamics, checked, float(noise.max()), valid=valid, near=near, starts=starts
        )
        names = self._dynamics.tree.velocity_names
        told = {name for name, there in zip(names, read, strict=True) if there}
        if not told.issuperset(found.observability.unobservable) and not allow_unobservable:
            raise EstimationError(
                f"{self._dynamics.robot.name}: {found.statement} (expected: a joint sensor there, "
                "more muscles, or a start in another pose)"
            )
        self._begin_at(found)
        return found

    def _refuse_hidden_offsets(
        self, usable: npt.NDArray[np.bool_], read: npt.NDArray[np.bool_]
    ) -> None:
        """Raise `EstimationError` if no motion within the joint limits tells all offsets."""
        uncertain = self._offset_std[usable] > 0.0
        if not uncertain.any():
            return
        dynamics, rng = self._dynamics, np.random.default_rng(0)
        poses = np.array([dynamics.tree.random(rng) for _ in range(RANGE_POSES)])
        jacobians = dynamics.batch(poses).muscle_jacobian[:, usable]
        seen = offset_observability(
            jacobians[np.isfinite(jacobians).all(axis=(1, 2))],
            [m.name for m, there in zip(dynamics.robot.muscles, usable, strict=True) if there],
            uncertain=uncertain,
            measured=read,
        )
        if not seen:
            raise EstimationError(
                f"{dynamics.robot.name}: no motion tells the offsets of "
                f"{', '.join(seen.unobservable)} from lengths: {seen.rank} of "
                f"{np.count_nonzero(uncertain)} directions can be told (expected: more muscles "
                "than coordinates, with moment arms that change; joint sensors; begin() at a "
                "known pose; or offset_std=0)"
            )

    def _begin_at(self, found: InitialGuess) -> None:
        self.begin(found.q)
        names = [muscle.name for muscle in self._dynamics.robot.muscles]
        out = [names.index(name) for name in found.excluded]
        self.suspect[out] = True
        nv = self._nv
        if self._with_offsets:
            # the same lengths tell pose and offsets together, in the first step
            self.covariance[:nv, :nv] = np.eye(nv) * UNKNOWN**2
            return
        std = found.observability.std
        spread = np.where(np.isfinite(std), std, UNKNOWN)
        self.covariance[:nv, :nv] = np.diag(spread**2)

    def begin(self, q: Array, std: float = 1e-2, rate_std: float = UNKNOWN) -> None:
        """Begin at a known pose at rest, give or take ``std`` [rad] or [m] and ``rate_std``.

        What is known of the pose tells offsets as a joint sensor would, so none are refused.

        Args:
            q: The pose, shape (nq,).
            std: Its standard deviation, [rad] or [m].
            rate_std: Standard deviation of the velocities, [rad/s] or [m/s].
        """
        self.q = self._space.clip(self._dynamics.tree.check_q(q))
        self.qd = np.zeros(self._nv)
        self.offsets = np.zeros(self._m)
        self.covariance = self._covariance(np.repeat([std**2, rate_std**2], self._nv))
        self.started = True
        self._forget_muscles()

    def _covariance(self, variances: Array) -> Array:
        """Return the covariance of q and qd with these variances, and of unknown offsets."""
        if self._with_offsets:
            variances = np.concatenate([variances, self._offset_std**2])
        return np.diag(variances)

    def step(
        self,
        lengths: Array,
        dt: float,
        valid: npt.NDArray[np.bool_] | None = None,
        rates: Array | None = None,
        joints: Array | None = None,
    ) -> Estimate:
        """Return the estimate after the next lengths.

        Args:
            lengths: Of all muscles, shape (m,), [m]; NaN where there is none.
            dt: Since the last step, [s], >= 0.
            valid: Muscles that may be used, shape (m,); all with a finite length without it.
            rates: Their derivatives, shape (m,), [m/s]; NaN where there is none.
            joints: Readings of joint sensors, shape (nq,), [rad] or [m], quaternions as in q; NaN
                where there is no sensor, or none was read.

        Raises:
            EstimationError: Not started.
            ShapeError: Not one number per muscle, or per coordinate.
            CardsError: dt is no time, or joint sensors without ``joint_noise``.
        """
        if not self.started:
            raise EstimationError("the estimator has no pose yet (expected: start(lengths) first)")
        if not (0.0 <= dt < math.inf):
            raise CardsError(f"dt is {dt} (expected: seconds >= 0)")
        m = self._m
        measured = self._checked(lengths, "lengths")
        usable = np.isfinite(measured)
        if valid is not None:
            usable &= valid
        speeds = None if rates is None else self._checked(rates, "rates")
        before, prior = self._motion.move(self.q, self.qd, self.covariance, dt)
        apart = None
        if joints is not None:
            apart = self._apart(joints, before)
            usable = np.concatenate([usable, np.isfinite(apart)])
        use = usable & ~self._kept_out[: len(usable)]
        result = self._corrected(before, prior, Innovation(measured, speeds, apart), use)
        if self._space.limited:
            self._stay_within_limits()
        self._judge(result, usable)
        if not result.plausible:
            self._failed(measured, usable[:m])
        else:
            self._failures, self._next_try = 0, RESTART_AFTER
        read = apart is not None
        return Estimate(
            self.q.copy(),
            self.qd.copy(),
            self.covariance.copy(),
            result.residuals[:m],
            result.used[:m],
            self.suspect.copy(),
            result.nis,
            result.rows,
            result.plausible,
            self.offsets.copy(),
            result.residuals[m:] if read else np.full(self._nv, np.nan),
            result.used[m:] if read else np.zeros(self._nv, dtype=bool),
            self.joint_suspect.copy(),
        )

    def _apart(self, joints: Array, q: Array) -> Array:
        """Return readings of joint sensors less q in the tangent space; NaN without a reading."""
        tree = self._dynamics.tree
        read = np.array(joints, dtype=float)
        if read.shape != (tree.nq,):
            raise ShapeError(
                f"joints has shape {read.shape}, expected ({tree.nq},): one value, or NaN, for "
                f"each of {', '.join(tree.position_names)}"
            )
        if not self._sensed.any():
            raise CardsError("joint sensors without their noise (expected: joint_noise)")
        lost = ~self._sensed
        for node in tree.nodes:
            part = slice(node.q, node.q + node.nq)
            if not np.isfinite(read[part]).all():
                read[part] = q[part]
                lost[node.v : node.v + node.nv] = True
        return np.where(lost, np.nan, tree.difference(tree.check_q(read), q))

    def _corrected(
        self,
        before: Array,
        prior: Array,
        read: Innovation,
        use: npt.NDArray[np.bool_],
    ) -> Correction:
        """Correct (before, self.qd, prior); linearise again where the correction is large.

        Args:
            before: Predicted pose, shape (nq,).
            prior: Its covariance, with that of the other states.
            read: Lengths and rates as they were read; joint sensors less ``before``.
            use: See `SensorUpdate.correct`.
        """
        nv = self._nv
        q, moved = before, None
        for _ in range(MAX_LINEARISATIONS):
            state = self._dynamics.update(q, self.qd)
            jacobian = state.muscle_jacobian
            innovation = Innovation(read.lengths - state.muscle_lengths, None, read.joints)
            if self._with_offsets:
                innovation.lengths -= self.offsets
            if moved is not None:
                # of the prediction `before`, with l(q) linearised at q [Bell1993]_
                innovation.lengths += jacobian @ moved
            if read.rates is not None:
                innovation.rates = read.rates - jacobian @ self.qd
            result = self._update.correct(prior, jacobian, innovation, use)
            error = result.error[:nv]
            q = self._space.integrate(before, error)
            change = error if moved is None else error - moved
            if float(np.abs(change).max()) <= RELINEARISE or not result.plausible:
                break
            moved = error
        self.q = q
        self.qd = self.qd + result.error[nv : 2 * nv]
        if self._with_offsets:
            self.offsets = self.offsets + result.error[2 * nv :]
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
        self.qd = self.qd + shift[nv : 2 * nv]
        if self._with_offsets:
            self.offsets = self.offsets + shift[2 * nv :]
        position = space.position(self.q)
        self.qd = np.where(position <= space.lower, np.maximum(self.qd, 0.0), self.qd)
        self.qd = np.where(position >= space.upper, np.minimum(self.qd, 0.0), self.qd)

    def _forget_muscles(self) -> None:
        sensors = self._m + self._nv
        self._kept_out = np.zeros(sensors, dtype=bool)
        self._failed_in_a_row = np.zeros(sensors, dtype=np.intp)
        self._good_in_a_row = np.zeros(sensors, dtype=np.intp)
        self._failures, self._next_try = 0, RESTART_AFTER

    def _judge(self, result: Correction, usable: npt.NDArray[np.bool_]) -> None:
        """Keep sensors out that fail for long, and let them in again."""
        n = len(usable)
        failures, good_ones = self._failed_in_a_row[:n], self._good_in_a_row[:n]
        if result.used.all():
            failures[:] = 0
            return
        out, size = self._kept_out[:n], np.abs(result.residuals)
        failed = usable & ~result.used & (size > self._gate)
        failures[:] = np.where(failed, failures + 1, 0)
        good = out & usable & (size <= TRUSTED * self._gate)
        good_ones[:] = np.where(good, good_ones + 1, 0)
        out |= failures >= SUSPECT_AFTER
        out &= good_ones < TRUSTED_AFTER

    def _failed(self, lengths: Array, usable: npt.NDArray[np.bool_]) -> None:
        """Search the pose again after some implausible steps, at growing intervals."""
        self._failures += 1
        if self._failures < self._next_try:
            return
        self._next_try = min(2 * self._failures, self._failures + RESTART_PAUSE)
        noise, offsets = self._noise, self.offsets
        block = self.covariance[2 * self._nv :, 2 * self._nv :]
        if self._with_offsets:
            noise = np.sqrt(noise**2 + block.diagonal())
            lengths = lengths - offsets
        try:
            # one search only: this is a step of a loop that cannot wait
            found = find_initial_guess(
                self._dynamics,
                lengths,
                float(noise.max()),
                valid=usable,
                near=self.q,
                starts=0,
                max_excluded=0,
            )
        except EstimationError:
            return  # it stays implausible, which the caller is told
        if found.observability:
            self._begin_at(found)
            if self._with_offsets:  # constants, whatever happened to the robot
                self.offsets = offsets
                self.covariance[2 * self._nv :, 2 * self._nv :] = block
            self.restarts += 1

    def _checked(self, values: Array, name: str) -> Array:
        array = np.asarray(values, dtype=float)
        if array.shape != (self._m,):
            raise ShapeError(
                f"{name} has shape {array.shape}, expected ({self._m},): one value for each of "
                f"{', '.join(muscle.name for muscle in self._dynamics.robot.muscles)}"
            )
        return array


def _numbers(
    value: float | Array,
    size: int,
    name: str,
    unit: str,
    *,
    zero: bool = False,
    infinite: bool = False,
) -> Array:
    try:
        out = np.broadcast_to(np.asarray(value, dtype=float), (size,)).copy()
    except ValueError:
        raise ShapeError(
            f"{name} has shape {np.shape(value)}, expected one number or {size}"
        ) from None
    inside = (out >= 0.0) if zero else (out > 0.0)
    if not (inside & (np.isfinite(out) | infinite)).all():
        wanted = f"numbers {'>=' if zero else '>'} 0"
        raise CardsError(f"{name} is {value} {unit} (expected: {wanted})")
    return out
