"""The part that both computed-torque controllers share: reference, QP, output."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from cards_core.control.contact_force import ContactForces
from cards_core.control.interface import (
    Controller,
    ControlOutput,
    ControlStatus,
    Gains,
    HoldPoint,
    Setting,
    check_reference,
    is_finite,
    number,
    tension_limits,
    vector,
)
from cards_core.control.model import ControlModel
from cards_core.control.native_program import NotNativeError, own_methods
from cards_core.control.native_step import NativeStep, StepParts, TaskParts
from cards_core.dynamics.interface import Dynamics
from cards_core.muscles.command import Command, CommandPart
from cards_core.optimize.goal_program import GoalProgram, GoalResult
from cards_core.optimize.qp import QP_INFINITY, QpMethod
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.trajectories.base import Reference
from cards_core.typing import Array

STANDARD_GRAVITY = 9.81
"""Acceleration that stands for the usual one of a robot without weight, [m/s^2]."""


_COMPILED = "_formulate", "_prepare", "_feedback", "_add_loads", "_finish"
"""Methods of `QpController` that the compiled step repeats."""


class QpController(Controller):
    """Computed torque by a `GoalProgram` whose first variables are tensions and efforts.

    The m tensions come first, then the efforts of the joint motors, within plus and minus the
    limit of each (`cards_core.robot.motors`); robots without motors have none of these.

    The program is written in the robot's own units of force, torque and acceleration, so that
    tolerances of solvers, which are absolute, mean the same for a finger and for a crane. The
    units are powers of two: they change no digit.

    A subclass calls ``super().__init__``, makes the program with `_use` and writes it in
    `_formulate`. Other bounded variables may follow, e.g. accelerations: columns of the matrix,
    with bounds and a weight.

    Forces that links are to exert (`set_contact_force`) ask for ``J_p' F + J_w' M`` beside M, C
    and G; each link has a force of its own. A force from outside, ``-F``, does not move the robot
    then. Without that it leaves, at rest, an error ``y_d - y`` of ``Kp^-1 M^-1 J_p' F`` in joint
    space and of ``Kp^-1 J M^-1 J_p' F`` in an operational space.

    Args:
        model: What the controller knows of the robot.
        reference_names: Name of every entry of y.
        error_names: Name of every entry of the error, k of them.
        kp: Stiffness, [1/s^2]: one number, shape (k,), or a matrix (k, k).
        kd: Damping, [1/s], likewise; None: critical.
        tension_min: Minimum tensions, [N]; None: those of the muscles.
        tension_max: Maximum tensions, [N]; None: those of the muscles.
        tension_rate: Maximum change of a tension, [N/s]; None: no limit.

    Attributes:
        dynamics: Those of the model, with the muscles that take a tension.
        gains: Stiffness and damping; change them with `set_gains`.
        tension_min, tension_max: Limits of the command, shape (m,), [N]. Muscles that pull without
            one, such as Hill-type muscles, are commanded at least what they have at their length.
        tension_rate: Largest change of a tension, shape (m,), [N/s]; None: no limit.
        motors: Joints with a motor of their own.
        native: See `Controller`; `cards_core.control.native_step` has the compiled step.
        step_parts: Of what the steps are made; None where a class has steps of its own.
    """

    contact_forces: ContactForces
    _native: NativeStep | None

    def __init__(
        self,
        model: ControlModel,
        *,
        reference_names: Sequence[str],
        error_names: Sequence[str],
        kp: Setting,
        kd: Setting | None,
        tension_min: Setting | None,
        tension_max: Setting | None,
        tension_rate: Setting | None,
    ) -> None:
        super().__init__(model)
        self.dynamics = dynamics = model.dynamics
        self._load, self._passive = model.load, model.passive
        self.contact_forces = ContactForces(dynamics, 0.0)
        self.reference_names = tuple(reference_names)
        self.error_names = tuple(error_names)
        self.gains = Gains(error_names, kp, kd)
        self._sampled = [self.gains]  # all that the control period bounds
        self.tension_min, self.tension_max = tension_limits(
            dynamics.robot, tension_min, tension_max
        )
        self.motors = motors_of(dynamics.tree)
        muscles, motors, k = self.tension_min.size, len(self.motors), len(error_names)
        self.output = ControlOutput.empty(muscles, motors, len(reference_names), k)
        self.output.tensions[:] = self.tension_min
        units = _units(dynamics, self.tension_max)
        self._force_unit, self._torque_unit, self._acceleration_unit = units
        names = [muscle.name for muscle in dynamics.robot.muscles]
        self.command = self._command(names, self.output.tensions, self.output.efforts)
        self.relaxed = self._command(names, self.tension_min, np.zeros(motors))
        self.tension_rate = (
            None
            if tension_rate is None
            else vector(tension_rate, names, "tension_rate", strict=True)
        )
        self._last_time: float | None = None
        self._reference: Reference | None = None
        self._start = 0.0
        self._scratch = np.zeros(k)
        self.step_parts: StepParts | None = None
        self._native = None

    def _use(self, program: GoalProgram, goal_unit: float) -> None:
        """Set the program, the unit of its goals, and the limits of tensions and efforts in it."""
        muscles, unit = self.tension_min.size, self._force_unit
        self._program, self._goal_unit = program, goal_unit
        self._tensions = program.result.x[:muscles]
        self._low, self._up = program.lower_bounds[:muscles], program.upper_bounds[:muscles]
        self._lowest = self.tension_min / unit
        # no bound is no bound in any unit
        unlimited = self.tension_max >= QP_INFINITY
        self._highest = np.where(unlimited, QP_INFINITY, self.tension_max / unit)
        self._low[:], self._up[:] = self._lowest, self._highest
        driven = slice(muscles, muscles + len(self.motors))
        self._efforts = program.result.x[driven]
        greatest = np.minimum(self.motors.efforts / self._torque_unit, QP_INFINITY)
        program.lower_bounds[driven], program.upper_bounds[driven] = -greatest, greatest

    def _compile(
        self,
        owner: type[QpController],
        lever: float,
        task: TaskParts | None = None,
        *,
        rotations: bool = False,
    ) -> None:
        """Let the usual steps be one call, if they are those of a class.

        Args:
            owner: The class whose NumPy form the compiled one repeats.
            lever: Factor of L' in the rows of the equation of motion.
            task: None: all joints are the task.
            rotations: Whether some are among coordinates or task, so that `_prepare` is called.
        """
        try:
            own_methods(self, owner, _COMPILED)
            self.step_parts = StepParts(
                self.dynamics,
                self.output,
                self.gains,
                self._program,
                len(self.motors),
                (self._force_unit, self._torque_unit, self._goal_unit),
                lever,
                self._loads,
                task,
                self._prepare if rotations else None,
            )
            self._native = NativeStep(self.step_parts)
            self.native = "yes"
        except NotNativeError as error:
            self._not_native(str(error))

    def _command(self, muscles: Sequence[str], tensions: Array, efforts: Array) -> Command:
        """Return tensions and efforts by name; without motors there is no part for them."""
        parts = [CommandPart("force", tuple(muscles), tensions)]
        if len(self.motors):
            parts.append(CommandPart("effort", self.motors.names, efforts))
        # a robot that has motors alone is not told of muscles it has not
        return tuple(part for part in parts if part.names or len(parts) == 1)

    def set_gains(self, kp: Setting, kd: Setting | None = None) -> None:
        """Set stiffness [1/s^2] and damping [1/s] of the error.

        Args:
            kp: >= 0, one number, one per velocity, or a symmetric matrix, shape (k, k).
            kd: Likewise; None is critical damping, ``2 sqrt(kp)``, of a matrix the matrix root.

        Raises:
            ParameterError: Wrong size, not finite, negative or not symmetric, or not stable with
                the control period (`cards_core.control.sampled_gains`); nothing is changed then.
        """
        self.gains.set(kp, kd)

    def set_period(self, period: float) -> None:
        """Say how long a command holds; see `Controller.set_period`."""
        period = number(period, "period", strict=True)
        for gains in self._sampled:
            gains.judge(period)
        self.period = period
        for gains in self._sampled:
            gains.period = period

    def _add_loads(self, q: Array, qd: Array, torque: Array) -> None:
        """Add to a torque what passive muscles and forces to exert ask for."""
        for load in self._loads(q, qd):
            np.add(torque, load, out=torque)

    def _loads(self, q: Array, qd: Array) -> Sequence[Array]:
        """Return the joint forces of passive muscles and of forces to exert, if there are any."""
        exerted = self.contact_forces.torque(q)
        loads = () if self._load is None else (self._load(q, qd),)
        return loads if exerted is None else (*loads, exerted)

    def set_reference(self, reference: Reference | None, start: float = 0.0) -> None:
        """Track ``reference(t - start)`` from the next step on.

        Args:
            reference: None holds the place where the next step finds the robot.
            start: Time of the reference's beginning on the clock of `step`, [s].

        Raises:
            ParameterError: The reference has the wrong number of coordinates.
        """
        if reference is not None:
            check_reference(reference, self.reference_names, self.output.error.size)
        self._start = number(start, "start", minimum=-math.inf)
        self._reference = reference

    def reset(self) -> None:
        """Forget the solver's warm start, the last tensions and the held place."""
        self._program.reset()
        if self._native is not None:
            self._native.reset()
        self._last_time = None
        if isinstance(self._reference, HoldPoint):
            self._reference = None

    def step(self, state: RobotState) -> Command:
        """Return tensions and efforts for a state; see `Controller.step`.

        A state, reference or model that is not finite gives tensions at their minimum, no efforts
        and `ControlStatus.INVALID_STATE`.
        """
        out, t, q, qd = self.output, state.time, state.q, state.qd
        if self.tension_rate is not None or self._passive is not None:
            self._bound_tensions(t, q, qd)
        out.time = t
        if not (math.isfinite(t) and is_finite(q, qd)):
            self._invalid()
            return self.command
        reference = self._reference
        if reference is None:
            reference = HoldPoint(self.place(q, qd), out.error.size)
        y, yd, ydd = reference(t - self._start)
        out.desired[:] = y
        out.desired_dot[:] = yd
        if self._native is not None and self._native.step(q, qd, ydd):
            out.status = ControlStatus.OK
        else:
            self._formulate(q, qd, ydd)
            self._finish(self._program.solve())
        if out.status is not ControlStatus.INVALID_STATE:
            self._reference = reference  # the place of an invalid state is not worth holding
        return self.command

    def _bound_tensions(self, t: float, q: Array, qd: Array) -> None:
        """Set the QP's bounds: passive tensions at q, and what `tension_rate` lets become by t."""
        lowest, rate = self._lowest, self.tension_rate
        if self._passive is not None and is_finite(q, qd):
            lowest = lowest.copy()
            lengths = self.dynamics.update(q, qd).muscle_lengths
            self._passive.raise_to(lowest, lengths, self._force_unit)
            np.minimum(lowest, self._highest, out=lowest)
        reach = np.inf if self._last_time is None else t - self._last_time
        self._last_time = t
        if rate is not None and reach == 0.0:  # the same instant again, e.g. after new gains
            return
        if rate is None or not 0.0 < reach < math.inf:  # or first step, or the clock was set back
            self._low[:], self._up[:] = lowest, self._highest
            return
        tensions, change = self.output.tensions / self._force_unit, rate * reach / self._force_unit
        np.maximum(tensions - change, lowest, out=self._low)
        np.minimum(tensions + change, self._highest, out=self._up)
        # passive tensions rise as fast as the robot moves
        np.maximum(self._low, self._up, out=self._up)

    @abstractmethod
    def _formulate(self, q: Array, qd: Array, acceleration: Array) -> None:
        """Fill the QP and ``actual``, ``error``, ``acceleration`` of the output.

        Its ``desired`` and ``desired_dot`` are those of the step; the argument is ydd.
        """

    @abstractmethod
    def _prepare(self, q: Array, qd: Array, acceleration: Array) -> tuple[Array, Array]:
        """Do the part of `_formulate` that deals with rotations; see `StepParts.prepare`."""

    def _feedback(self, desired_dot: Array, acceleration: Array) -> None:
        """Set ``output.acceleration = ydd + kd (yd - actual_dot) + kp error``."""
        out, term = self.output, self._scratch
        np.subtract(desired_dot, out.actual_dot, out=term)
        self.gains.damp(term, out.acceleration)
        self.gains.stiffen(out.error, term)
        np.add(out.acceleration, term, out=out.acceleration)
        np.add(out.acceleration, acceleration, out=out.acceleration)

    def _finish(self, result: GoalResult) -> None:
        if result.method is QpMethod.NEAREST_TO_ZERO:
            self._invalid()
            return
        out, missing = self.output, result.missing
        np.multiply(self._tensions, self._force_unit, out=out.tensions)
        np.multiply(self._efforts, self._torque_unit, out=out.efforts)
        out.residual = math.sqrt(missing.dot(missing)) * self._goal_unit
        out.iterations = result.iterations
        out.solve_time = result.solve_time
        if result.method is not QpMethod.SOLVER:
            out.status = ControlStatus.FALLBACK
        elif result.attained:
            out.status = ControlStatus.OK
        else:
            out.status = ControlStatus.JOINT_LIMIT if result.limited else ControlStatus.INFEASIBLE

    def _invalid(self) -> None:
        out = self.output
        out.tensions[:] = self.tension_min
        out.efforts[:] = 0.0
        out.status = ControlStatus.INVALID_STATE
        out.residual = math.nan
        out.iterations = 0
        out.solve_time = 0.0


def _units(dynamics: Dynamics, tension_max: Array) -> tuple[float, float, float]:
    """Return units of force [N], joint torque [Nm] and joint acceleration [rad/s^2].

    The force is a thousandth of the usual tension limit, or what carries the weight at home if
    that is less (a limit of 1e8 N says nothing about the robot); where nothing has weight, what
    moves the heaviest joint at 9.81 rad/s^2 or m/s^2. The torque is that force on the longest
    lever; the acceleration is what the force does to the joints, each alone. Solvers keep bounds
    to 1e-7 of these: far below what matters, far above rounding.
    """
    tree = dynamics.tree
    state = dynamics.update(tree.home, np.zeros(tree.nv))
    levers = np.max(np.abs(state.muscle_jacobian), axis=0, initial=0.0)
    lever = float(np.max(levers, initial=0.0))
    limits = tension_max[tension_max < QP_INFINITY]
    forces = [1e-3 * float(np.median(limits))] if limits.size else []
    masses = np.diagonal(state.mass_matrix)
    if lever > 0.0:
        weight = float(np.max(np.abs(state.gravity)))
        forces.append((weight or STANDARD_GRAVITY * float(np.max(masses))) / lever)
    force = _power_of_two(min((f for f in forces if f > 0.0), default=1.0))
    moved = (levers > 0.0) & (masses > 0.0)
    accelerations = force * levers[moved] / masses[moved]
    acceleration = float(np.median(accelerations)) if accelerations.size else 1.0
    return force, _power_of_two(force * lever), _power_of_two(acceleration)


def _power_of_two(x: float) -> float:
    """Return the power of two at or below x; 1 if x is no positive number."""
    return 2.0 ** math.floor(math.log2(x)) if 0.0 < x < math.inf else 1.0
