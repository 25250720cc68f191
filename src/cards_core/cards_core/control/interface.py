"""What a controller is, what it puts out and how its parameters are checked.

A controller is a function of the state of a robot: ``command = controller.step(state)``. It
knows neither ROS nor a simulator; whoever runs it passes the command on. Its class states what it
needs of the state, what it commands, the space of its references and its parameters, and
`cards_core.control.registry` finds it: a new controller changes nothing that exists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_number
from cards_core.control.contact_force import ContactForces
from cards_core.control.model import ControlModel
from cards_core.control.sampled_gains import SHORTEST_PERIOD, check_stable, kp_bound
from cards_core.errors import CardsError, ParameterError
from cards_core.muscles.command import Command
from cards_core.optimize.qp import QP_INFINITY
from cards_core.parameters.declaration import LARGEST, ParameterStore
from cards_core.robot.actuators import CommandKind
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.trajectories.base import Reference, Sample, Space, as_reference
from cards_core.typing import Array

Setting: TypeAlias = float | Sequence[float] | Array
"""A number for all entries, or one number per entry. Gains of the error may be matrices too."""


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
    """q, qd, the reference or the dynamics are not finite: tensions at their minimum, or on their
    way there (`mrc`), motors without effort."""


@dataclass(frozen=True)
class Signal:
    """A quantity of a controller that others may want to see while it runs.

    Attributes:
        name: Of the quantity, and of the topic ``~/name`` of its node.
        field: Of the JointState that has it: ``position`` [m] or [rad], ``effort`` [N] or [Nm].
        names: What its entries belong to, e.g. muscles.
        read: Returns its present value, one number for each name.
    """

    name: str
    field: Literal["position", "velocity", "effort"]
    names: Sequence[str]
    read: Callable[[], Array]


@dataclass(eq=False, slots=True)
class ControlOutput:
    """How a controller came to its command. One object per controller, overwritten by each step.

    With m muscles, j joint motors and k task velocities (joint space: k = nv):

    Attributes:
        time: Of the state, [s].
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
        acceleration: Commanded in the space of the task, shape (k,), [m/s^2], [rad/s^2].
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
    acceleration: Array

    @classmethod
    def empty(cls, muscles: int, motors: int, size: int, velocities: int) -> ControlOutput:
        """Return an output of zeros: m muscles, j motors, ``size`` task coordinates, k rates.

        Args:
            muscles: m.
            motors: j.
            size: Number of task coordinates.
            velocities: k.
        """
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
            acceleration=rates[3],
        )


class HoldPoint(Reference):
    """Reference that stays where it is, and returns the same arrays at all times.

    Args:
        position: y, shape (size,).
        velocities: Entries of yd and ydd, zeros.
    """

    def __init__(self, position: Array, velocities: int) -> None:
        super().__init__(position.size, 0.0)
        self._sample = (position.copy(), np.zeros(velocities), np.zeros(velocities))

    def __call__(self, t: float) -> Sample:
        """Return the same point at all times."""
        return self._sample


class Controller(ABC):
    """What runs at every tick, in a node, in lockstep or in a plain loop.

    A class states what it is in class variables, and is made from checked parameters by
    `from_parameters`; see `cards_core.control.ctc_joint` for one.

    Attributes:
        kind: Name in `cards_core.control.registry`, and of the node.
        summary: What it does, half a sentence.
        space: What its references are in: ``joint`` or ``operational``.
        needs: Quantities of `RobotState` it uses beside time, q and qd.
        commands: Kinds of commands it gives to muscles; ``effort`` goes to joint motors.
        model: What it knows of the robot; its own, the arrays change with every step.
        reference_names: Name of every entry of y, e.g. joint names or ``x``, ``y``, ``z``.
        error_names: Name of every entry of the error, one per velocity of the reference.
        output: How it came to the last command.
        command: The last command. Its values are overwritten by each step.
        relaxed: The command of an emergency stop, at once: minimum tensions, no efforts.
        allowance: Norm of the error that it leaves on purpose, in the units of its references;
            a run is judged by the reference's tolerance and this.
        signals: Quantities of its own that are worth looking at; its node publishes them.
        needs_joints: Whether q and qd of the states must be numbers.
        reason: Why the last status is what it is, where the status does not say it.
        contact_forces: Of those that take forces: what links are to exert; its node then has
            topics for it.
        native: ``yes`` if usual steps are one call of compiled code, else ``no, `` and the reason.
        compiles: False after `step_in_python`.
        period: From state to state, [s]; None: nobody has said it, see `set_period`.
    """

    period: float | None = None
    allowance: float = 0.0
    signals: tuple[Signal, ...] = ()
    needs_joints: bool = True
    reason: str = ""
    contact_forces: ContactForces | None = None
    native: str = "no, steps of this kind are computed by Python"
    compiles: bool = True
    _native: Any = None

    kind: ClassVar[str]
    summary: ClassVar[str]
    space: ClassVar[Space]
    needs: ClassVar[tuple[str, ...]] = ()
    commands: ClassVar[tuple[CommandKind, ...]] = ("force", "effort")

    reference_names: tuple[str, ...]
    error_names: tuple[str, ...]
    output: ControlOutput
    command: Command
    relaxed: Command

    def __init__(self, model: ControlModel) -> None:
        self.model = model

    @classmethod
    def unsuited(cls, robot: Robot) -> str:
        """Return why this controller cannot drive a robot; empty if it can."""
        muscles = [
            m for m in robot.muscles if set(m.actuator.accepted_commands) & set(cls.commands)
        ]
        motors = "effort" in cls.commands and any(joint.motor for joint in robot.joints)
        if muscles or motors:
            return ""
        return f"no muscle of {robot.name} takes a command of the kind {' or '.join(cls.commands)}"

    @classmethod
    @abstractmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters of this kind and return a controller made of their values.

        Args:
            model: What the controller knows of the robot.
            parameters: Where the values come from.

        Raises:
            ParameterError: A value does not fit; the message names it and what would.
        """

    @abstractmethod
    def step(self, state: RobotState) -> Command:
        """Return the command for a state; the next step overwrites it.

        Never raises on data of the right size: what is not finite gives the `relaxed` command, or
        those that lead there without a jump, and `ControlStatus.INVALID_STATE`.
        """

    @abstractmethod
    def place(self, q: Array, qd: Array) -> Array:
        """Return the y of a state, which a reference would hold, as a new array."""

    @abstractmethod
    def set_reference(self, reference: Reference | None, start: float = 0.0) -> None:
        """Track ``reference(t - start)`` from now on; None: hold the place of the next step."""

    def set_contact_force(
        self,
        link: str,
        force: npt.ArrayLike,
        point: npt.ArrayLike | None = None,
        moment: npt.ArrayLike | None = None,
    ) -> None:
        """Exert a force from now on with a link, beside the reference; it replaces the last one.

        A mass m that a link carries is ``force = -m g``, which points up.

        Args:
            link: Name of a link or frame.
            force: That it exerts on what it touches, in world axes, shape (3,), [N]; zero: none.
            point: Where, in coordinates of the link, shape (3,), [m]; its origin without it.
            moment: Beside the force, in world axes, shape (3,), [Nm]; none without it.

        Raises:
            UnknownNameError: No such link or frame.
            ShapeError: Not three finite numbers. The last force is kept.
            CardsError: This controller takes no forces.
        """
        if self.contact_forces is None:
            raise CardsError(
                f"controller '{self.kind}' takes no contact forces (expected: 'ctc_joint', "
                "'ctc_operational', 'mrc', or another one that does)"
            )
        self.contact_forces.set(link, force, point, moment)

    def step_in_python(self) -> None:
        """Compute all steps from now on in Python, the reference, e.g. to compare."""
        self.compiles = False
        self._not_native("as asked for")

    def _not_native(self, reason: str) -> None:
        self._native = None
        self.native = f"no, {reason}"

    def set_period(self, period: float) -> None:
        """Say the time from state to state [s]; loops do before the first step if they know it.

        Raises:
            ParameterError: The present gains are not stable with it. Nothing is changed then.
        """
        self.period = number(period, "period", strict=True)

    def change(self, values: Mapping[str, Any]) -> None:  # noqa: B027  most have no live ones
        """Take over new values of live parameters.

        Args:
            values: Checked values of all live parameters, by name.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget warm starts and the held place, as after a reset of the simulation."""


# Checked parameters ------------------------------------------------------------------------------


def vector(
    value: Setting,
    names: Sequence[str],
    what: str,
    *,
    minimum: float = 0.0,
    maximum: float = LARGEST,
    strict: bool = False,
) -> Array:
    """Return a parameter as a vector with one finite entry per name.

    Args:
        value: One number for all, or one per name.
        names: What the entries belong to, for messages.
        what: Name of the parameter, for messages.
        minimum: Smallest value that is accepted.
        maximum: Largest size that is accepted.
        strict: True if ``minimum`` itself is not accepted.

    Raises:
        ParameterError: Wrong size, not a number, not finite, too small or too large.
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
        good = (np.abs(out) <= maximum) & ((out > minimum) if strict else (out >= minimum))
    if not good.all():
        bad = int(np.argmin(good))
        relation = ">" if strict else ">="
        most = f" and <= {maximum:g}" if abs(out[bad]) > maximum else ""
        raise ParameterError(
            f"{what} of '{names[bad]}' is {out[bad]}; expected a finite number "
            f"{relation} {minimum:g}{most}"
        )
    return out


def number(value: float, what: str, *, minimum: float = 0.0, strict: bool = False) -> float:
    """Return a scalar parameter, checked as in `vector`.

    Args:
        value: The value.
        what: Name of the parameter, for messages.
        minimum: Smallest value that is accepted.
        strict: True if ``minimum`` itself is not accepted.

    Raises:
        ParameterError: It is not a number, not finite, too small or too large.
    """
    if np.ndim(value) != 0:
        raise ParameterError(f"{what} is {value!r}; expected one number")
    above, at_least = (minimum, -math.inf) if strict else (-math.inf, max(minimum, -LARGEST))
    return finite_number(
        value, what, above=above, at_least=at_least, at_most=LARGEST, error=ParameterError
    )


def gain(value: Setting, names: Sequence[str], what: str, maximum: float) -> Array:
    """Return a gain as a vector, shape (k,), or as a symmetric matrix, shape (k, k).

    Args:
        value: One number for all, one per name, or a matrix, shape (k, k).
        names: What the entries belong to, for messages.
        what: Name of the parameter, for messages.
        maximum: Largest size of an entry.

    Raises:
        ParameterError: As in `vector`; or the matrix has another shape, is not finite, not
            symmetric, or has a negative eigenvalue.
    """
    if np.ndim(value) != 2:
        return vector(value, names, what, maximum=maximum)
    k = len(names)
    try:
        matrix = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError(f"{what} is {value!r}; expected {k} rows of {k} numbers") from None
    if matrix.shape != (k, k):
        shape = " x ".join(map(str, matrix.shape))
        raise ParameterError(f"{what} is a {shape} matrix; expected {k} x {k}: {', '.join(names)}")
    if not (np.abs(matrix) <= maximum).all():
        raise ParameterError(
            f"{what} has an entry that is not finite or too large; expected at most {maximum:g}"
        )
    size = float(np.abs(matrix).max(initial=0.0))
    skew = np.abs(matrix - matrix.T)
    if skew.max(initial=0.0) > 1e-9 * size:
        i, j = divmod(int(np.argmax(skew)), k)
        raise ParameterError(
            f"{what} has {matrix[i, j]:g} for '{names[i]}', '{names[j]}' and {matrix[j, i]:g} for "
            f"'{names[j]}', '{names[i]}'; expected a symmetric matrix"
        )
    matrix = 0.5 * (matrix + matrix.T)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -1e-12 * size:
        raise ParameterError(
            f"{what} has the eigenvalue {least:g}; expected a positive definite matrix (or 0 in "
            "directions without a gain)"
        )
    return np.diagonal(matrix).copy() if k == 1 else matrix


def critical_damping(stiffness: Array) -> Array:
    """Return ``2 sqrt(kp)`` of a vector of stiffnesses or, as a matrix root, of a matrix."""
    if stiffness.ndim == 1:
        return np.asarray(2.0 * np.sqrt(stiffness))
    values, vectors = np.linalg.eigh(stiffness)
    return np.asarray((vectors * (2.0 * np.sqrt(np.maximum(values, 0.0)))) @ vectors.T)


class Gains:
    """Stiffness and damping of a second-order error ``edd + Kd ed + Kp e = 0``.

    Args:
        names: What the k entries belong to, for messages.
        kp: Stiffness, [1/s^2], one number or shape (k,).
        kd: Damping, [1/s], likewise; None: critical, 2 sqrt(kp).
        prefix: Put before the names of the parameters in messages.

    Attributes:
        kp: [1/s^2], >= 0; shape (k,): the diagonal of Kp, or (k, k): Kp.
        kd: [1/s], >= 0; likewise, of Kd.
        period: With which both together are stable, [s]; None: not known, each is bounded alone.
    """

    period: float | None = None

    def __init__(
        self, names: Sequence[str], kp: Setting, kd: Setting | None, *, prefix: str = ""
    ) -> None:
        self._names = tuple(names)
        self._prefix = prefix  # of the parameters' names in messages
        self.set(kp, kd)

    def set(self, kp: Setting, kd: Setting | None) -> None:
        """Check both, then set both. Raises `ParameterError` and changes nothing."""
        self.kp, self.kd = self.checked(kp, kd)

    def checked(self, kp: Setting, kd: Setting | None) -> tuple[Array, Array]:
        """Return what `set` would set. Raises `ParameterError`."""
        stiffness = gain(kp, self._names, f"{self._prefix}kp", kp_bound(SHORTEST_PERIOD))
        damping = critical_damping(stiffness)
        if kd is not None:
            damping = gain(kd, self._names, f"{self._prefix}kd", 1.0 / SHORTEST_PERIOD)
        if self.period is not None:
            check_stable(stiffness, damping, self.period, self._names, self._prefix)
        return stiffness, damping

    def judge(self, period: float) -> None:
        """Raise `ParameterError` if both together are not stable with a control period [s]."""
        check_stable(self.kp, self.kd, period, self._names, self._prefix)

    def stiffen(self, error: Array, out: Array) -> None:
        """Set ``out = Kp error``; the two must not overlap unless Kp is diagonal."""
        _apply(self.kp, error, out)

    def damp(self, rate: Array, out: Array) -> None:
        """Set ``out = Kd rate``; likewise."""
        _apply(self.kd, rate, out)


def _apply(gain: Array, values: Array, out: Array) -> None:
    if gain.ndim == 1:
        np.multiply(values, gain, out=out)
    else:
        ordered_product(gain, values, out)


def ordered_product(matrix: Array, vector: Array, out: Array) -> None:
    """Set ``out = A x``, every sum from the first term to the last.

    BLAS sums in an order that depends on the processor; this one is that of the compiled steps
    (`cards_core.control.native_step`), to the last bit.

    Args:
        matrix: A, shape (r, n).
        vector: x, shape (n,).
        out: Shape (r,); must not overlap with x.
    """
    if vector.size:
        out[:] = np.add.accumulate(matrix * vector, axis=1)[:, -1]
    else:
        out[:] = 0.0


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
    high = hard[1]
    if maximum is not None:
        high = vector(maximum, names, "tension_max", maximum=QP_INFINITY)
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

    Args:
        reference: The reference.
        names: Name of every entry of y.
        velocities: Number of entries of yd and ydd.

    Raises:
        TrajectoryError: It is no reference.
        ParameterError: y, yd or ydd have not one entry per coordinate and velocity.
    """
    reference = as_reference(reference)
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
    for array in arrays:  # noqa: SIM110 (a generator costs as much as the rest)
        if not math.isfinite(array.dot(array)):
            return False
    return True
