"""Computed-torque control of a frame of the robot, e.g. the hand, with optimal tensions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from cards_core.control.base import QpController
from cards_core.control.interface import (
    Controller,
    Gains,
    Setting,
    number,
    ordered_product,
    vector,
)
from cards_core.control.model import ControlModel
from cards_core.control.native_step import TaskParts
from cards_core.control.qp_parameters import (
    damping,
    damping_parameter,
    declared,
    default_of,
    qp_parameters,
    stiffness_parameter,
)
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.optimize.goal_program import GoalProgram, conditioning
from cards_core.optimize.qp import QP_INFINITY
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.model import Robot, Tree
from cards_core.robot.motors import motors_of
from cards_core.spatial import (
    matrix_quaternion,
    quaternion_matrix,
    rotation_log,
)
from cards_core.typing import Array

PULL = 10.0
"""Price of a task out of reach: alone and without bounds, at home, its pull would change a tension
by this many times its range. What regular poses need is below 2; the change of tensions with the
pose, where the task loses rank, grows with it."""

NEAR_SINGULAR = 0.1
"""Share of the task's smallest singular value at typical poses below which it is damped."""

TYPICAL_POSES = 63
"""Random poses within the limits whose median is typical."""

GREATEST_RANGE = 4000.0
"""Range of a tension or an effort that counts in that at most, in its unit: a limit of 1e8 N says
nothing about the robot."""


class CtcOperational(QpController):
    """Track the position, and optionally the orientation, of a frame [Trendel2018]_.

        minimise    1/2 |qdd - qdd_p|^2_Hq + 1/2 f' Hf f + 1/2 tau' Ht tau
        subject to  M qdd + C + G + w + J' F = -L' f + S tau
                    fmin <= f <= fmax,   |tau| <= taumax
                    qdd_lo <= qdd + r <= qdd_hi               least |r|, then
                    J qdd + Jdot qd + s = ydd_d + Kd (yd_d - yd) + Kp (y_d - y)    least s' Wt s

    - tau are the efforts of the joint motors, if any (`cards_core.robot.motors`), w is the
      load of muscles that take no command (`cards_core.control.model`), F what links are to
      exert (`set_contact_force`).
    - qdd_p = Kp_p (q_p - q) - Kd_p qd pulls the motion that the task leaves free to the posture
      q_p, so that the arm does not drift; with zero posture gains the cost is the plain
      ``1/2 qdd' Hq qdd + 1/2 f' Hf f``.
    - The joint limits enter as barriers of second order [Ames2019]_: with h = q - q_lo, h >= 0
      stays so if ``hdd + 2 a hd + a^2 h >= 0``, a the `limit_rate`. Likewise at the upper limit.
    - The equation of motion is exact, and so is the task wherever muscles and joint limits allow
      it. The order is strict: limits yield (r) only to what the muscles can do, the task (s) to
      both, and the cost to all. The program always has a solution.
      How it is solved, and why not by weights: `cards_core.optimize.goal_program`.
    - Near singular poses, such as a stretched arm, what a task asks for grows without bound, and
      tensions would jump from one limit to the other as the pose passes them. A task out of reach
      therefore pulls no more than a price allows, 10 times the tensions' ranges at home, and
      it is damped [Nakamura1986]_ where the smallest singular value of ``W J Hq^-1/2`` is about a
      tenth of its median over random poses or less. At other poses the order is strict.
    - The status is ``OK`` if s is zero, ``JOINT_LIMIT`` if it would be without the joint limits,
      else ``INFEASIBLE``, also where the task is damped. A task with more axes than the joints
      can move, such as ``xyz`` of a tip on a sphere, can be met in some directions only, and is
      not damped: control as many as there are.

    qdd stays a variable: eliminating it by ``qdd = -M^-1 (L' f + C + G)`` leaves 11 instead of
    15 variables for the Roboy arm, but a dense Hessian to form and factor, and took 1.8 times as
    long for tensions that agree to 4e-10 N. The limits are bounds of qdd.

    The rotation error is the rotation vector of ``R_d R'`` in world axes.

    Args:
        model: What the controller knows of the robot.
        frame: Frame to control; None is the robot's operational frame.
        axes: World axes of the controlled position, some of ``xyz``; may be empty if the
            orientation is controlled.
        orientation: True adds the orientation; the reference is then the position followed by a
            quaternion (w, x, y, z), its derivatives end with the angular velocity and
            acceleration in world axes.
        kp: Kp, [1/s^2], one number, one per task velocity, or a symmetric matrix, shape (k, k).
        kd: Kd, [1/s], likewise; None is critical damping 2 sqrt(kp).
        solver: ``daqp`` or ``osqp``.
        acceleration_weight: Diagonal of Hq, [s^4/rad^2], > 0, one number or one per velocity.
        force_weight: Diagonal of Hf, [1/N^2], > 0, one number or one per muscle.
        effort_weight: Diagonal of Ht, [1/(Nm)^2] or [1/N^2], > 0, one number or one per motor.
        task_weight: Diagonal of Wt, one number or one per task velocity; only the ratios count:
            where not all can be done, the one with the larger weight lacks less.
        posture: ``mid`` (middle of the joint ranges; home where there is none), ``home``, or q_p
            of shape (nq,).
        posture_kp: Kp_p, [1/s^2], one number or one per velocity.
        posture_kd: Kd_p, [1/s]; None is critical damping.
        limit_rate: a, [1/s]: how steeply a joint may approach its limit, speed <= a * distance.
        limit_margin: Distance kept from the limits, [rad] or [m], at most 5 % of the range.
        tension_min, tension_max: Tighter limits than those of the muscles, [N].
        tension_rate: Largest change of a tension per time, [N/s]; None: no limit.
        residual_tolerance: |s_i| above which a step does not count as `ControlStatus.OK`, relative
            to the terms of its equation added up as magnitudes, with the joint accelerations that
            the single forces would cause.

    Raises:
        ParameterError: A parameter of the wrong size or out of range.
        UnknownNameError: No such frame, posture or solver, or the robot has no operational frame.
    """

    kind = "ctc_operational"
    summary = "computed torque of a frame, e.g. the hand"
    space = "operational"

    def __init__(
        self,
        model: ControlModel,
        *,
        frame: str | None = None,
        axes: str = "xyz",
        orientation: bool = False,
        kp: Setting = 400.0,
        kd: Setting | None = None,
        solver: str = "daqp",
        acceleration_weight: Setting = 1.0,
        force_weight: Setting = 1e-4,
        effort_weight: Setting = 1e-4,
        task_weight: Setting = 1.0,
        posture: str | Sequence[float] | Array = "mid",
        posture_kp: Setting = 100.0,
        posture_kd: Setting | None = None,
        limit_rate: float = 20.0,
        limit_margin: float = 0.01,
        tension_min: Setting | None = None,
        tension_max: Setting | None = None,
        tension_rate: Setting | None = None,
        residual_tolerance: float = 1e-8,
    ) -> None:
        dynamics = model.dynamics
        tree = dynamics.tree
        name = dynamics.robot.frame_name(frame)
        tree.locate(name)
        self.frame: str = name
        rows = _axis_indices(axes, orientation)
        self._rows, self._positions = _selection(rows), _selection([i for i in rows if i < 3])
        self._orientation = orientation
        self._k = len(rows)
        motors = motors_of(tree)
        m, n = len(dynamics.robot.muscles), tree.nv
        a = m + len(motors)  # actuators
        rates = _error_names(axes, orientation)
        task = vector(task_weight, rates, "task_weight", strict=True)
        super().__init__(
            model,
            reference_names=(*axes, *(f"quaternion_{c}" for c in "wxyz" if orientation)),
            error_names=rates,
            kp=kp,
            kd=kd,
            tension_min=tension_min,
            tension_max=tension_max,
            tension_rate=tension_rate,
        )
        force_unit, unit = self._force_unit, self._acceleration_unit
        self._limits = _Barriers(tree, limit_rate, limit_margin, unit)
        self._posture = _posture(tree, posture)
        self._posture_gains = Gains(tree.velocity_names, posture_kp, posture_kd, prefix="posture_")
        # a barrier has the equation of an error with these gains
        square, twice = limit_rate**2, 2.0 * limit_rate
        barrier = Gains(("joint limits",), square, twice, prefix="limit_rate as ")
        self._sampled += [self._posture_gains, barrier]
        names = [muscle.name for muscle in dynamics.robot.muscles]
        hq = vector(acceleration_weight, tree.velocity_names, "acceleration_weight", strict=True)
        force = vector(force_weight, names, "force_weight", strict=True)
        effort = vector(effort_weight, motors.names, "effort_weight", strict=True)
        torque_unit = self._torque_unit
        hessian = np.concatenate([force * force_unit**2, effort * torque_unit**2, hq * unit**2])
        scale = float(np.max(hessian, initial=0.0)) or 1.0
        self._pull_weight = hq * unit / scale
        self._lever, self._inertia = -force_unit / torque_unit, -unit / torque_unit
        program = GoalProgram(
            solver,
            hessian / scale,
            n,
            task,
            yielding=list(a + np.arange(n)[self._limits.v]),
            price=self._price(hessian / scale, rows),
            regular=self._regular(hessian[a:] / scale, rows, task / np.max(task)),
            tolerance=number(residual_tolerance, "residual_tolerance", strict=True),
        )
        self._use(program, 1.0)
        program.matrix[motors.rows, m + np.arange(len(motors))] = 1.0
        # views that every step writes; rows [motion, task], columns [f, tau, qdd]
        self._motion_f, self._motion_qdd = program.matrix[:n, :m], program.matrix[:n, a:]
        self._task_qdd = program.matrix[n:, a:]
        self._motion, self._task = program.right[:n], program.right[n:]
        self._limits.bind(program.lower_bounds[a:], program.upper_bounds[a:])
        self._pull = program.gradient[a:]
        self._damp = np.zeros(n)
        self._scalar = tree.nq == tree.nv
        rotations = self._orientation or not self._scalar
        self._compile(CtcOperational, self._lever, self._parts(rows), rotations=rotations)

    def _price(self, hessian: Array, rows: list[int]) -> float:
        """Return the price of the task, see `PULL`, from how its multipliers move the robot."""
        tree, unit, m = self.dynamics.tree, self._acceleration_unit, self.tension_min.size
        a = m + len(self.motors)
        still = np.zeros(tree.nv)
        state = self.dynamics.update(tree.home, still)
        efforts = np.zeros((tree.nv, a))
        efforts[:, :m] = self._lever * state.muscle_jacobian.T
        efforts[self.motors.rows, m + np.arange(a - m)] = 1.0
        # accelerations of tensions and efforts
        moved = -np.linalg.pinv(self._inertia * state.mass_matrix) @ efforts
        task = unit * self.dynamics.operational(tree.home, still, self.frame).jacobian[rows]
        cost = np.diag(hessian[:a]) + moved.T @ (hessian[a:, None] * moved)
        change = np.abs(np.linalg.solve(cost, (task @ moved).T))
        tensions = (self.tension_max - self.tension_min) / self._force_unit
        ranges = np.concatenate([tensions, 2.0 * self.motors.efforts / self._torque_unit])
        share = change / np.clip(ranges, 1.0, GREATEST_RANGE)[:, None]
        return PULL / (float(np.max(share, initial=0.0)) or 1.0)

    def _regular(self, hessian: Array, rows: list[int], weights: Array) -> float:
        """Return the conditioning of the task below which it is damped, see `NEAR_SINGULAR`."""
        tree, unit, rng = self.dynamics.tree, self._acceleration_unit, np.random.default_rng(0)
        still, found = np.zeros(tree.nv), []
        for _ in range(TYPICAL_POSES):
            place = self.dynamics.operational(tree.random(rng), still, self.frame)
            found.append(conditioning(unit * place.jacobian[rows], hessian, weights))
        return NEAR_SINGULAR**2 * float(np.median(found))

    def _parts(self, rows: list[int]) -> TaskParts:
        """Return what the compiled step needs beside what `QpController` has."""
        limits = self._limits
        return TaskParts(
            frame=self.frame,
            rows=rows,
            positions=[i for i in rows if i < 3],
            posture=self._posture,
            posture_gains=self._posture_gains,
            pull_weight=self._pull_weight,
            barrier_q=limits.q,
            barrier_v=limits.velocities,
            barrier_low=limits.constant[0],
            barrier_up=limits.constant[1],
            barrier_rate=limits.factors[0],
            barrier_square=limits.factors[1],
            acceleration_unit=self._acceleration_unit,
            inertia=self._inertia,
        )

    @classmethod
    def unsuited(cls, robot: Robot) -> str:
        """Return why this controller cannot drive a robot; see `Controller.unsuited`."""
        if robot.operational_frame is None:
            return f"{robot.name} has no operational frame"
        return super().unsuited(robot)

    @classmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters and return a controller; see `Controller.from_parameters`."""
        robot, tree = model.commanded, model.dynamics.tree
        task = declared(parameters, _task_parameters(robot))
        task["frame"] = task["frame"] or None
        # how many entries the others have depends on the task
        names = _error_names(task["axes"], task["orientation"])
        specs = [*qp_parameters(cls, robot, names), *_posture_parameters(cls, tree, names)]
        return cls(model, **task, **declared(parameters, specs))

    def change(self, values: Mapping[str, Any]) -> None:
        """Take over gains; see `Controller.change`."""
        kp = values["posture_kp"]
        posture = kp, damping(kp, values["posture_kd"])
        self._posture_gains.checked(*posture)  # before anything is changed
        self.set_gains(values["kp"], damping(values["kp"], values["kd"]))
        self.set_posture_gains(*posture)

    @property
    def posture(self) -> Array:
        """q_p, shape (nq,); a copy."""
        return self._posture.copy()

    def set_posture_gains(self, kp: Setting, kd: Setting | None = None) -> None:
        """Set the posture's stiffness [1/s^2] and damping [1/s]; None: 2 sqrt(kp).

        Raises:
            ParameterError: As of `set_gains`; nothing is changed then.
        """
        self._posture_gains.set(kp, kd)

    def place(self, q: Array, qd: Array) -> Array:
        """Return the y of a state; see `Controller.place`."""
        place = self.dynamics.operational(q, qd, self.frame)
        position = place.position[self._positions]
        if self._orientation:
            return np.concatenate([position, matrix_quaternion(place.rotation)])
        return np.array(position)

    def _formulate(self, q: Array, qd: Array, acceleration: Array) -> None:
        out = self.output
        self._prepare(q, qd, acceleration)
        place = self._place
        jacobian = place.jacobian[self._rows]
        np.multiply(jacobian, self._acceleration_unit, out=self._task_qdd)
        ordered_product(jacobian, qd, out.actual_dot)
        self._feedback(out.desired_dot, acceleration)
        np.subtract(out.acceleration, place.bias[self._rows], out=self._task)

        # gradient of 1/2 |qdd - qdd_p|^2 at qdd = 0:  Hq (Kd_p qd - Kp_p (q_p - q))
        gains, pull = self._posture_gains, self._pull
        gains.stiffen(pull, pull)  # these are diagonal
        gains.damp(qd, self._damp)
        np.add(pull, self._damp, out=pull)
        np.multiply(pull, self._pull_weight, out=pull)

        self._limits.write(q, qd)

        # -L' f + S tau - M qdd = C + G + w
        state = self.dynamics.update(q, qd)
        np.multiply(state.muscle_jacobian.T, self._lever, out=self._motion_f)
        np.multiply(state.mass_matrix, self._inertia, out=self._motion_qdd)
        np.add(state.coriolis, state.gravity, out=self._motion)
        self._add_loads(q, qd, self._motion)
        np.divide(self._motion, self._torque_unit, out=self._motion)

    def _prepare(self, q: Array, qd: Array, acceleration: Array) -> tuple[Array, Array]:
        out = self.output
        self._place = place = self.dynamics.operational(q, qd, self.frame)
        if self._orientation:
            self._pose_error(place.position, place.rotation)
        else:
            np.copyto(out.actual, place.position[self._positions])
            np.subtract(out.desired, out.actual, out=out.error)
        if self._scalar:
            np.subtract(q, self._posture, out=self._pull)
        else:
            np.negative(self.dynamics.tree.difference(self._posture, q), out=self._pull)
        return out.desired_dot, acceleration

    def _pose_error(self, position: Array, rotation: Array) -> None:
        """Set ``actual`` and ``error`` of a task with orientation."""
        out, k = self.output, self._k - 3
        out.actual[:k] = position[self._positions]
        out.actual[k:] = matrix_quaternion(rotation)
        np.subtract(out.desired[:k], out.actual[:k], out=out.error[:k])
        out.error[k:] = rotation_log(quaternion_matrix(out.desired[k:]) @ rotation.T)


class _Barriers:
    """Bounds on qdd that keep joints within their limits.

        -2 a qd - a^2 (q - lower)  <=  qdd  <=  -2 a qd + a^2 (upper - q)

    Their distance ``a^2 (upper - lower)`` is always positive.

    Args:
        tree: Gives the limits.
        rate: a, [1/s].
        margin: Distance kept, [rad] or [m].
        unit: Acceleration in whose multiples the bounds are written.

    Attributes:
        v: Velocity indices of the limited joints.
        count: Number of limited joints.
        q, velocities: Their coordinates and velocities, as lists.
        factors: Of qd and of q in the bounds.
        constant: What is added to them, in the lower and in the upper bound.
    """

    def __init__(self, tree: Tree, rate: float, margin: float, unit: float) -> None:
        a = number(rate, "limit_rate", strict=True)
        distance = number(margin, "limit_margin")
        q, v = [], []
        for node in tree.nodes:
            limits = tree.lower[node.q], tree.upper[node.q]
            if node.kind != "ball" and np.isfinite(limits).any():
                q.append(node.q)
                v.append(node.v)
        self.count = len(v)
        self.q, self.velocities = q, v
        self.v, self._q = _selection(v), _selection(q)
        lower, upper = tree.lower[self._q], tree.upper[self._q]
        distances = np.minimum(distance, 0.05 * (upper - lower))
        self._rate, self._square = -2.0 * a / unit, -a * a / unit
        self._low = np.maximum(a * a / unit * (lower + distances), -QP_INFINITY)
        self._up = np.minimum(a * a / unit * (upper - distances), QP_INFINITY)
        self.factors, self.constant = (self._rate, self._square), (self._low, self._up)
        self._term = np.zeros(self.count)
        self._bounds = np.zeros(self.count), np.zeros(self.count)
        self._targets: tuple[Array, Array] | None = None

    def bind(self, low: Array, up: Array) -> None:
        """Set the arrays of bounds of qdd, shape (nv,), that `write` writes into."""
        if isinstance(self.v, slice):
            self._bounds = low[self.v], up[self.v]
        else:
            self._targets = low, up

    def write(self, q: Array, qd: Array) -> None:
        """Write the bounds for a state, [rad/s^2] or [m/s^2] over the unit."""
        term, (low, up) = self._term, self._bounds
        np.multiply(qd[self.v], self._rate, out=term)
        np.multiply(q[self._q], self._square, out=low)
        np.add(term, low, out=term)
        np.add(term, self._low, out=low)
        np.add(term, self._up, out=up)
        if self._targets is not None:
            for target, bound in zip(self._targets, (low, up), strict=True):
                target[self.v] = bound


def _axis_indices(axes: str, orientation: bool) -> list[int]:
    """Return the rows of the 6-row Jacobian that a task controls."""
    if any(c not in "xyz" for c in axes) or len(set(axes)) != len(axes):
        raise ParameterError(f"axes is {axes!r}; expected different letters of 'xyz'")
    rows = ["xyz".index(c) for c in axes] + ([3, 4, 5] if orientation else [])
    if not rows:
        raise ParameterError("axes is empty; expected letters of 'xyz', or orientation: true")
    return rows


def _selection(rows: list[int]) -> slice | list[int]:
    """Return rows as a slice if they are evenly spaced: it indexes without a copy."""
    steps = {b - a for a, b in itertools.pairwise(rows)} or {1}
    step = steps.pop()
    if steps or step < 1:
        return rows
    return slice(rows[0], rows[-1] + 1, step) if rows else slice(0)


def _posture(tree: Tree, posture: str | Sequence[float] | Array) -> Array:
    """Return q_p, shape (nq,); see `CtcOperational`."""
    if isinstance(posture, str):
        if posture not in ("mid", "home"):
            raise UnknownNameError("posture", posture, ("mid", "home", "a list of joint values"))
        bounded = np.isfinite(tree.lower) & np.isfinite(tree.upper)
        middle = 0.5 * (np.where(bounded, tree.lower, 0.0) + np.where(bounded, tree.upper, 0.0))
        return np.where(bounded & (posture == "mid"), middle, tree.home)
    return vector(posture, tree.position_names, "posture", minimum=-np.inf)


def _error_names(axes: str, orientation: bool) -> tuple[str, ...]:
    return (*axes, *(f"rotation_{c}" for c in "xyz" if orientation))


def _task_parameters(robot: Robot) -> list[Parameter]:
    """Return the parameters that say what is controlled."""
    return [
        Parameter(
            "frame",
            robot.operational_frame or "",
            "Frame or link to control.",
            default_text="the model's operational frame",
        ),
        Parameter("axes", "xyz", "World axes of the controlled position, some of xyz."),
        Parameter("orientation", False, "Control the orientation too."),
    ]


def _posture_parameters(
    controller: type[Controller], tree: Tree, error_names: tuple[str, ...]
) -> list[Parameter]:
    """Return the parameters of the weights, the posture and the joint limits."""
    return [
        Parameter(
            "acceleration_weight",
            [default_of(controller, "acceleration_weight")] * tree.nv,
            "Diagonal of Hq.",
            "s^4/rad^2",
            lower=1e-12,
            length=tree.nv,
            names=tree.velocity_names,
        ),
        Parameter(
            "task_weight",
            [default_of(controller, "task_weight")] * len(error_names),
            "Weight of the task residual; only ratios matter, and only where the task is "
            "infeasible or damped.",
            lower=1e-12,
            length=len(error_names),
            names=error_names,
        ),
        Parameter(
            "posture",
            default_of(controller, "posture"),
            "Posture that redundant motion is drawn to: mid (of the joint ranges), home, or "
            "positions.",
            "rad or m",
            choices=("mid", "home"),
            or_vector=True,
            length=tree.nq,
            names=tree.position_names,
        ),
        stiffness_parameter(controller, "posture_kp", tree.velocity_names, "that pull"),
        damping_parameter("posture_kd", tree.velocity_names, "that pull"),
        Parameter(
            "limit_rate",
            default_of(controller, "limit_rate"),
            "Maximum approach rate at a joint limit: speed <= rate * distance.",
            "1/s",
            lower=1e-6,
        ),
        Parameter(
            "limit_margin",
            default_of(controller, "limit_margin"),
            "Distance kept from the limits.",
            "rad or m",
            lower=0.0,
        ),
    ]
