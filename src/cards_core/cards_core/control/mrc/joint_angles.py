"""Joint angles of a robot without joint sensors, from the lengths of its muscles.

An extended Kalman filter (`cards_core.estimation.JointEstimator`) measures the lengths of the
body image, ``l = f(q) + g(q, T) + b``: what the image adds to the geometry of the description is
subtracted from the readings, at the pose that was estimated last. b are constant offsets of the
sensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import ParameterError
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.stamps import is_due, next_due
from cards_core.typing import Array

if TYPE_CHECKING:
    from cards_core.estimation.joint_estimator import Estimate

JOINT_ANGLES = ("measured", "estimated")
"""Where the pose comes from."""

PATIENCE = 5
"""Implausible estimates in a row that are bridged by the prediction, an eighth of a second: a blow
must not make the arm drop."""

STD_MAX = 0.5
"""Standard deviation from which on a coordinate counts as unknown, [rad] or [m]. Without lengths
that tell it, it gets there within a second."""

SILENCE = 0.25
"""How long the predicted pose counts without readings enough, [s]."""

POSES = 50
"""Random poses at which it is asked what lengths tell."""


@dataclass(frozen=True, kw_only=True)
class EstimationNoise:
    """Of the sensors that joint angles are estimated from, and of the motion.

    Attributes:
        lengths: Standard deviation of a length, with errors of the body image, [m].
        offsets: Standard deviation of the constant offsets of length sensors, [m]; 0: none.
        joints: Standard deviation of joint sensors, [rad] or [m]; 0: there are none. Where there
            are, readings that are NaN count as lost.
        acceleration: How suddenly the robot moves: what a velocity becomes uncertain by within a
            second unobserved, [rad/s^1.5] or [m/s^1.5].

    Raises:
        ParameterError: A number is out of range.
    """

    lengths: float = 2e-4
    offsets: float = 0.0
    joints: float = 0.0
    acceleration: float = 1.0

    def __post_init__(self) -> None:
        """Refuse numbers that make no sense."""
        for name, unit in (("lengths", "m"), ("acceleration", "rad/s^1.5")):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ParameterError(
                    f"noise of {name} is {value}; expected a number > 0 in {unit}"
                )
        for name in ("offsets", "joints"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"noise of {name} is {value}; expected a number >= 0")


def noise_parameters() -> list[Parameter]:
    """Return the parameters that an `EstimationNoise` is made of."""
    noise = EstimationNoise()
    return [
        Parameter(
            "length_noise",
            noise.lengths,
            "Standard deviation of a muscle length, with errors of the model, for the estimate.",
            "m",
            lower=1e-6,
            upper=0.1,
        ),
        Parameter(
            "length_offset",
            noise.offsets,
            "Standard deviation of constant offsets of the length sensors; 0: there are none.",
            "m",
            lower=0.0,
            upper=0.1,
        ),
        Parameter(
            "joint_noise",
            noise.joints,
            "Standard deviation of joint sensors that the estimate uses too; 0: there are none.",
            "rad or m",
            lower=0.0,
            upper=1.0,
        ),
        Parameter(
            "acceleration_noise",
            noise.acceleration,
            "Process noise of the estimate: smaller values smooth more, larger ones follow "
            "faster.",
            "rad/s^1.5",
            lower=1e-3,
            upper=1e3,
        ),
    ]


def noise_from(value: ParameterStore) -> EstimationNoise:
    """Return the noise that `noise_parameters` have the values of."""
    return EstimationNoise(
        lengths=value["length_noise"],
        offsets=value["length_offset"],
        joints=value["joint_noise"],
        acceleration=value["acceleration_noise"],
    )


class EstimatedAngles:
    """Estimates the pose at a rate of its own; see the module.

    Args:
        dynamics: Of the robot.
        image: What the lengths of its muscles are believed to be.
        noise: Of the sensors and the motion.

    Attributes:
        offsets: Estimated b, shape (m,), [m]; zero if they are not estimated.
        time: Of the last lengths that were used, [s].

    Raises:
        ParameterError: There are no joint sensors, and at no pose do lengths tell all coordinates
            (rank of dl/dq below nv); the message names those that they do not.
    """

    def __init__(self, dynamics: Dynamics, image: BodyImage, noise: EstimationNoise) -> None:
        # it needs SciPy, which Gazebo's Python, where this module is imported too, may not have
        from cards_core.estimation import JointEstimator, JointTracker

        tree = dynamics.tree
        self._with_joints = noise.joints > 0.0
        if not self._with_joints:
            _refuse_hidden(dynamics, noise.lengths)
        estimator = JointEstimator(
            dynamics,
            noise.lengths,
            acceleration_noise=noise.acceleration,
            offset_std=noise.offsets,
            joint_noise=noise.joints if self._with_joints else None,
        )
        self._tracker = JointTracker(
            estimator, tree, patience=PATIENCE, std_max=STD_MAX, silence=SILENCE
        )
        exact = isinstance(image, GeometricBodyImage) and image.rigid
        self._image = None if exact else image
        self._dynamics = dynamics
        self._still = np.zeros(tree.nv)
        dynamics.jacobian_gradient(tree.home)  # compiled now, not while states come
        self.time = self._next = -np.inf
        self.offsets = np.zeros(len(dynamics.robot.muscles))

    @property
    def problem(self) -> str:
        """Why the pose is not known; empty if it is."""
        return self._tracker.problem

    def step(
        self,
        time: float,
        lengths: Array,
        tensions: Array,
        joints: Array,
        *,
        guess: Array | None,
        period: float,
    ) -> Estimate | None:
        """Return the present estimate, a new one if a period is over; None: it is not known.

        Args:
            time: Of the state, [s].
            lengths: Measured, shape (m,), [m]; NaN where a sensor is lost.
            tensions: Measured, shape (m,), [N]; likewise.
            joints: Readings of joint sensors, shape (nq,); ignored without ``noise.joints``.
            guess: Where the first search begins, shape (nq,); None: at home.
            period: Of the estimates, [s].
        """
        # the same lengths must not count twice; and time that goes back is a robot that was reset
        if time == self.time or (self.time < time and not is_due(time, self._next, period)):
            return self._tracker.estimate
        self.time, self._next = time, next_due(time, self._next, period)
        if self._image is not None:
            lengths = lengths - self._correction(tensions, guess)
        found = self._tracker.step(
            time,
            lengths,
            joints=joints if self._with_joints else None,
            guess=guess,
        )
        if found is not None:
            self.offsets = found.offsets
        return found

    def _correction(self, tensions: Array, guess: Array | None) -> Array:
        """Return what the image adds to the geometry at the pose that is known best."""
        assert self._image is not None
        last = self._tracker.estimate
        q = self._dynamics.tree.home if guess is None else guess
        if last is not None:
            q = last.q
        pulled = np.where(np.isfinite(tensions), tensions, 0.0)
        believed = self._image.evaluate(q, pulled)[0].copy()
        return np.asarray(believed - self._dynamics.update(q, self._still).muscle_lengths)


def _refuse_hidden(dynamics: Dynamics, noise: float) -> None:
    """Raise `ParameterError` if lengths tell all coordinates at no pose."""
    from cards_core.estimation import observability

    tree, rng = dynamics.tree, np.random.default_rng(0)
    poses = np.array([tree.home, *(tree.random(rng) for _ in range(POSES))])
    best = None
    for jacobian in dynamics.batch(poses).muscle_jacobian:
        if not np.isfinite(jacobian).all():
            continue
        seen = observability(jacobian, noise, tree.velocity_names)
        if seen:
            return
        if best is None or seen.rank > best.rank:
            best = seen
    hidden = "anything" if best is None else ", ".join(best.unobservable)
    rank = 0 if best is None else best.rank
    raise ParameterError(
        f"joint_angles is 'estimated', but muscle lengths of {dynamics.robot.name} do not tell "
        f"{hidden}: the rank of dl/dq is {rank} of {tree.nv} (expected: muscles over all joints, "
        "joint sensors with joint_noise, or joint_angles 'measured')"
    )
