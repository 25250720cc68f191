"""What a controller is, what it puts out and how its parameters are checked.

A controller is a function of the measured state: ``output = controller.step(t, q, qd)``. It knows
neither ROS nor a simulator; whoever runs it passes the tensions on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

import numpy as np

from cards_core.errors import CardsError
from cards_core.muscles.command import Command
from cards_core.optimize.qp import QP_INFINITY
from cards_core.robot.model import Robot
from cards_core.typing import Array

Setting: TypeAlias = float | Sequence[float] | Array
"""A number for all entries, or one number per entry."""


class ParameterError(CardsError):
    """A controller parameter of the wrong size or outside its range; the message names both."""


class ControlStatus(IntEnum):
    """What happened in a step; the larger, the worse."""

    OK = 0
    """The commanded acceleration is produced, with tensions within their limits."""
    JOINT_LIMIT = 1
    """The task gave way to joint limits, without which it would be met (`CtcOperational` only)."""
    INFEASIBLE = 2
    """Tensions and efforts within the limits cannot produce the commanded acceleration, joint
    limits or not; they produce the one of least weighted residual."""
    FALLBACK = 3
    """The QP solver failed and a substitute was used (`cards_core.optimize.qp.QpMethod`)."""
    INVALID_STATE = 4
    """q, qd, the reference or the dynamics are not finite: tensions at their minimum, motors
    without effort."""


@dataclass(eq=False, slots=True)
class ControlOutput:
    """Result of `Controller.step`. One object per controller, overwritten by every step.

    With m muscles, j joint motors and k task velocities (joint space: k = nv):

    Attributes:
        time: As passed to `Controller.step`, [s].
        tensions: Command, shape (m,), [N]; always finite and within the tension limits.
        efforts: Command of the joint motors, shape (j,), [Nm] or [N]; likewise.
        status: See `ControlStatus`.
        residual: Norm of what the equation of motion (joint space, [Nm] or [N]) or the task
            (operational space, [m/s^2] or [rad/s^2]) lacks; ~0 unless `status` says why. NaN in
            an invalid state.
        iterations: Of the QP solver.
        solve_time: Of the QP including fallbacks, [s].
        desired: Reference y, [m], [rad]; a rotation as quaternion (w, x, y, z).
        desired_dot: Its derivative, shape (k,).
        actual: What `desired` is compared with, same shape.
        actual_dot: Its derivative, shape (k,).
        error: desired - actual, shape (k,); rotations as rotation vector.
        command: Commanded acceleration in the space of the task, shape (k,).
    """

    time: float
    tensions: Array
    efforts: Array
    status: ControlStatus
    residual: float
    iterations: int
    solve_time: float
    desired: Array
    desired_dot: Array
    actual: Array
    actual_dot: Array
    error: Array
    command: Array

    @classmethod
    def empty(cls, muscles: int, motors: int, size: int, velocities: int) -> ControlOutput:
        """Return an output of zeros: m muscles, j motors, ``size`` task coordinates, k rates."""
        k = velocities
        desired, actual = np.zeros(size), np.zeros(size)
        rates = [np.zeros(k) for _ in range(4)]
        return cls(
            time=0.0,
            tensions=np.zeros(muscles),
            efforts=np.zeros(motors),
            status=ControlStatus.OK,
            residual=0.0,
            iterations=0,
            solve_time=0.0,
            desired=desired,
            desired_dot=rates[0],
            actual=actual,
            actual_dot=rates[1],
            error=rates[2],
            command=rates[3],
        )


Load: TypeAlias = Callable[[Array, Array], Array]
"""Joint forces at a state, ``load(q, qd)`` of shape (nv,), [Nm] or [N]; on the side of G."""


class Reference(Protocol):
    """What to track: ``y, yd, ydd = reference(t)``, t in [s] since its start.

    y has `size` entries, with rotations as quaternions (w, x, y, z); yd and ydd have one entry
    per velocity, with angular velocities (joint space: in the axes of the ball joint's child;
    operational space: in world axes). Without rotations all three have `size` entries.
    """

    size: int
    duration: float

    def __call__(self, t: float, /) -> tuple[Array, Array, Array]:
        """Return y, yd, ydd at time ``t``."""
        ...


class HoldPoint:
    """Reference that stays where it is; see `Reference`.

    Args:
        position: y, shape (size,).
        velocities: Entries of yd and ydd, zeros.
    """

    def __init__(self, position: Array, velocities: int) -> None:
        self.size = position.size
        self.duration = 0.0
        self._sample = (position.copy(), np.zeros(velocities), np.zeros(velocities))

    def __call__(self, t: float, /) -> tuple[Array, Array, Array]:
        """Return the same point at all times."""
        return self._sample


class Controller(Protocol):
    """What runs at every tick, in a node, in lockstep or in a plain loop.

    Attributes:
        kind: Name in `make_controller`.
        reference_names: Name of every entry of y, e.g. joint names or ``x``, ``y``, ``z``.
        output: The last output.
        command: The last output as what a host is told: tensions, and efforts where the robot has
            joint motors. Its values are those of `output`, so each step overwrites them.
        relaxed: The command of an emergency stop: least tensions, no efforts.
    """

    kind: str
    reference_names: tuple[str, ...]
    output: ControlOutput
    command: Command
    relaxed: Command

    def step(self, t: float, q: Array, qd: Array) -> ControlOutput:
        """Return the command for the state q, shape (nq,), and qd, shape (nv,), at time t [s]."""
        ...

    def set_reference(self, reference: Reference | None, start: float = 0.0) -> None:
        """Track ``reference(t - start)`` from now on; None: hold the place of the next step."""
        ...

    def set_gains(self, kp: Setting, kd: Setting | None = None) -> None:
        """Set stiffness [1/s^2] and damping [1/s]; kd None is critical damping 2 sqrt(kp)."""
        ...

    def reset(self) -> None:
        """Forget warm starts and the held place, as after a reset of the simulation."""
        ...


# Checked parameters ------------------------------------------------------------------------------


def vector(
    value: Setting, names: Sequence[str], what: str, *, minimum: float = 0.0, strict: bool = False
) -> Array:
    """Return a parameter as a vector with one finite entry per name.

    Args:
        value: One number for all, or one per name.
        names: What the entries belong to, for messages.
        what: Name of the parameter, for messages.
        minimum: Smallest value that is accepted.
        strict: True if ``minimum`` itself is not accepted.

    Raises:
        ParameterError: Wrong size, not a number, not finite or too small.
    """
    wanted = f"expected one number or {len(names)}: {', '.join(names)}"
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"{what} is {value!r}; {wanted}") from None
    if array.ndim > 1 or (array.ndim == 1 and array.size != len(names)):
        raise ParameterError(f"{what} has {array.size} values; {wanted}")
    out = np.empty(len(names))
    out[:] = array
    with np.errstate(invalid="ignore"):
        good = np.isfinite(out) & ((out > minimum) if strict else (out >= minimum))
    if not good.all():
        bad = int(np.argmin(good))
        relation = ">" if strict else ">="
        raise ParameterError(
            f"{what} of '{names[bad]}' is {out[bad]}; expected a finite number "
            f"{relation} {minimum:g}"
        )
    return out


def number(value: float, what: str, *, minimum: float = 0.0, strict: bool = False) -> float:
    """Return a scalar parameter, checked as in `vector`."""
    if np.ndim(value) != 0:
        raise ParameterError(f"{what} is {value!r}; expected one number")
    return float(vector(value, [what], what, minimum=minimum, strict=strict)[0])


class Gains:
    """Stiffness and damping of a second-order error ``edd + kd ed + kp e = 0``.

    Attributes:
        kp: Shape (k,), [1/s^2], >= 0.
        kd: Shape (k,), [1/s], >= 0.
    """

    def __init__(
        self, names: Sequence[str], kp: Setting, kd: Setting | None, *, prefix: str = ""
    ) -> None:
        self._names = tuple(names)
        self._prefix = prefix  # of the parameters' names in messages
        self.kp = np.zeros(len(names))
        self.kd = np.zeros(len(names))
        self.set(kp, kd)

    def set(self, kp: Setting, kd: Setting | None) -> None:
        """Check both, then set both. Raises `ParameterError` and changes nothing."""
        stiffness = vector(kp, self._names, f"{self._prefix}kp")
        damping = 2.0 * np.sqrt(stiffness)
        if kd is not None:
            damping = vector(kd, self._names, f"{self._prefix}kd")
        self.kp[:] = stiffness
        self.kd[:] = damping


def tension_limits(
    robot: Robot, minimum: Setting | None, maximum: Setting | None
) -> tuple[Array, Array]:
    """Return the limits that a controller keeps, shape (m,) each, [N].

    Args:
        robot: Gives the limits of every muscle.
        minimum: Tighter lower limits, [N]; None: those of the muscles.
        maximum: Tighter upper limits, likewise.

    Raises:
        ParameterError: A limit outside those of its muscle (which hosts would refuse), or a
            minimum above the maximum.
    """
    names = [muscle.name for muscle in robot.muscles]
    hard = [
        np.array([muscle.tension_min for muscle in robot.muscles]),
        np.array([muscle.tension_max for muscle in robot.muscles]),
    ]
    # an infinite maximum means "no bound" to the QP
    hard[1] = np.minimum(hard[1], QP_INFINITY)
    low = hard[0] if minimum is None else vector(minimum, names, "tension_min")
    high = hard[1] if maximum is None else vector(maximum, names, "tension_max")
    for what, given in (("tension_min", low), ("tension_max", high)):
        outside = (given < hard[0]) | (given > hard[1])
        if outside.any():
            bad = int(np.argmax(outside))
            raise ParameterError(
                f"{what} of '{names[bad]}' is {given[bad]:g} N; expected a value within the "
                f"muscle's limits {hard[0][bad]:g}..{hard[1][bad]:g} N"
            )
    if np.any(low > high):
        bad = int(np.argmax(low > high))
        raise ParameterError(
            f"tension_min of '{names[bad]}' is {low[bad]:g} N, above its tension_max "
            f"{high[bad]:g} N"
        )
    return low.copy(), high.copy()


def check_reference(reference: Reference, names: Sequence[str], velocities: int) -> None:
    """Refuse a reference of the wrong size.

    Raises:
        ParameterError: y, yd or ydd have not one entry per coordinate and velocity.
    """
    if reference.size != len(names):
        raise ParameterError(
            f"the reference has {reference.size} coordinates; expected {len(names)}: "
            f"{', '.join(names)}"
        )
    y, yd, ydd = reference(0.0)
    if y.shape != (len(names),) or yd.shape != (velocities,) or ydd.shape != (velocities,):
        raise ParameterError(
            f"the reference returned y, yd, ydd of shapes {y.shape}, {yd.shape}, {ydd.shape}; "
            f"expected ({len(names)},), ({velocities},), ({velocities},)"
        )


def is_finite(*arrays: Array) -> bool:
    """Return whether all entries are finite (a dot product is cheaper than ``isfinite().all()``).

    Entries above 1e150 count as not finite.
    """
    return all(math.isfinite(a.dot(a)) for a in arrays)
