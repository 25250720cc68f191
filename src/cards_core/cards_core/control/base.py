"""The part that both computed-torque controllers share: reference, QP, output."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from cards_core.control.interface import (
    ControlOutput,
    ControlStatus,
    Gains,
    HoldPoint,
    Reference,
    Setting,
    check_reference,
    is_finite,
    number,
    tension_limits,
    vector,
)
from cards_core.control.qp import QpMethod, QpResult, make_qp_solver
from cards_core.dynamics.interface import Dynamics
from cards_core.typing import Array


class QpController(ABC):
    """Computed torque by a quadratic program whose first m variables are the tensions.

    Attributes:
        kind: Name in `make_controller`.
        dynamics: Model of the robot; the controller's own, its arrays change with every step.
        reference_names: Name of every entry of the reference.
        gains: Stiffness and damping; change them with `set_gains`.
        output: The last output.
        tension_min, tension_max: Limits of the command, shape (m,), [N].
    """

    kind = ""

    def __init__(
        self,
        dynamics: Dynamics,
        *,
        reference_names: Sequence[str],
        velocity_names: Sequence[str],
        kp: Setting,
        kd: Setting | None,
        solver: str,
        variables: int,
        weights: Sequence[float] | Array,
        tension_min: Setting | None,
        tension_max: Setting | None,
        tension_rate: Setting | None,
        residual_tolerance: float,
    ) -> None:
        self.dynamics = dynamics
        self.reference_names = tuple(reference_names)
        self.gains = Gains(velocity_names, kp, kd)
        self.tension_min, self.tension_max = tension_limits(
            dynamics.robot, tension_min, tension_max
        )
        self._tolerance = number(residual_tolerance, "residual_tolerance", strict=True)
        muscles, k = self.tension_min.size, len(velocity_names)
        self.output = ControlOutput.empty(muscles, len(reference_names), k)
        self.output.tensions[:] = self.tension_min
        self._qp = make_qp_solver(solver, variables, weights)
        self._qp.lower_bounds[:muscles] = self.tension_min
        self._qp.upper_bounds[:muscles] = self.tension_max
        names = [muscle.name for muscle in dynamics.robot.muscles]
        self._rate = (
            None
            if tension_rate is None
            else vector(tension_rate, names, "tension_rate", strict=True)
        )
        self._low = self._qp.lower_bounds[:muscles]
        self._up = self._qp.upper_bounds[:muscles]
        self._last_time: float | None = None
        self._reference: Reference | None = None
        self._start = 0.0
        self._scratch = np.zeros(k)

    def set_gains(self, kp: Setting, kd: Setting | None = None) -> None:
        """Set stiffness [1/s^2] and damping [1/s] of the error, one number or one per velocity.

        Args:
            kp: >= 0.
            kd: >= 0; None is critical damping, ``2 sqrt(kp)``.

        Raises:
            ParameterError: Wrong size, not finite or negative; nothing is changed then.
        """
        self.gains.set(kp, kd)

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
        self._qp.reset()
        self._last_time = None
        if isinstance(self._reference, HoldPoint):
            self._reference = None

    def step(self, t: float, q: Array, qd: Array) -> ControlOutput:
        """Compute the tensions for one tick.

        Never raises on data of the right size: a state, reference or model that is not finite
        gives tensions at their minimum and `ControlStatus.INVALID_STATE`.

        Args:
            t: Time, [s].
            q: Joint coordinates, shape (nq,).
            qd: Joint velocities, shape (nv,).

        Returns:
            The controller's one output object; the next step overwrites it.
        """
        out = self.output
        if self._rate is not None:
            self._limit_change(t, self._rate)
        out.time = t
        if not is_finite(q, qd):
            return self._invalid()
        reference = self._reference
        if reference is None:
            reference = HoldPoint(self._place(q, qd), out.error.size)
        y, yd, ydd = reference(t - self._start)
        out.desired[:] = y
        out.desired_dot[:] = yd
        self._formulate(q, qd, ydd)
        self._finish(self._qp.solve())
        if out.status is not ControlStatus.INVALID_STATE:
            self._reference = reference  # the place of an invalid state is not worth holding
        return out

    def _limit_change(self, t: float, rate: Array) -> None:
        """Narrow the QP's bounds to what `tension_rate` lets the last tensions become by t."""
        reach = np.inf if self._last_time is None else t - self._last_time
        self._last_time = t
        if reach == 0.0:  # the same instant again, e.g. after new gains: the same bounds
            return
        if not 0.0 < reach < math.inf:  # first step, or the clock was set back
            self._low[:], self._up[:] = self.tension_min, self.tension_max
            return
        change = rate * reach
        np.maximum(self.output.tensions - change, self.tension_min, out=self._low)
        np.minimum(self.output.tensions + change, self.tension_max, out=self._up)

    @abstractmethod
    def _place(self, q: Array, qd: Array) -> Array:
        """Return the y of a state, for holding it."""

    @abstractmethod
    def _formulate(self, q: Array, qd: Array, acceleration: Array) -> None:
        """Fill the QP and ``actual``, ``error``, ``command`` of the output.

        ``desired`` and ``desired_dot`` are those of the step; ``acceleration`` is ydd.
        """

    def _feedback(self, desired_dot: Array, acceleration: Array) -> None:
        """Set ``command = ydd + kd (yd - actual_dot) + kp error``."""
        out, term = self.output, self._scratch
        np.subtract(desired_dot, out.actual_dot, out=out.command)
        np.multiply(out.command, self.gains.kd, out=out.command)
        np.multiply(out.error, self.gains.kp, out=term)
        np.add(out.command, term, out=out.command)
        np.add(out.command, acceleration, out=out.command)

    def _missing(self, result: QpResult) -> Array:
        """Return the part of the QP's residual that the output reports."""
        return result.residual

    def _finish(self, result: QpResult) -> ControlOutput:
        if result.method is QpMethod.NEAREST_TO_ZERO:
            return self._invalid()
        out = self.output
        out.tensions[:] = result.x[: out.tensions.size]
        missing = self._missing(result)
        out.residual = math.sqrt(missing.dot(missing))
        out.iterations = result.iterations
        out.solve_time = result.solve_time
        if result.method is not QpMethod.SOLVER:
            out.status = ControlStatus.FALLBACK
        elif out.residual > self._tolerance:
            out.status = self._blame(result)
        else:
            out.status = ControlStatus.OK
        return out

    def _blame(self, result: QpResult) -> ControlStatus:
        """Say why the residual is above the tolerance."""
        return ControlStatus.INFEASIBLE

    def _invalid(self) -> ControlOutput:
        out = self.output
        out.tensions[:] = self.tension_min
        out.status = ControlStatus.INVALID_STATE
        out.residual = math.nan
        out.iterations = 0
        out.solve_time = 0.0
        return out
