"""Computed-torque control in joint space with an optimal distribution of the tensions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from cards_core.control.base import QpController
from cards_core.control.interface import Setting, number, ordered_product, vector
from cards_core.control.model import ControlModel
from cards_core.control.qp_parameters import damping, declared, default_of, qp_parameters
from cards_core.optimize.goal_program import GoalProgram
from cards_core.parameters.declaration import Parameter, ParameterStore
from cards_core.robot.motors import motors_of
from cards_core.spatial import quaternion_matrix
from cards_core.typing import Array


class CtcJoint(QpController):
    """Track joint coordinates [Trendel2018]_.

        minimise    1/2 f' Hf f + 1/2 tau' Ht tau,   of all f, tau with the least  s' W s
        subject to  M a_c + C + G + w + J' F = -L' f + S tau + s
                    fmin <= f <= fmax,   |tau| <= taumax
                    a_c = qdd_d + Kd (qd_d - qd) + Kp (q_d - q)

    tau are the efforts of the joint motors, if any (`cards_core.robot.motors`), w is the load
    of muscles that take no command (`cards_core.control.model`), F what links are to exert
    (`set_contact_force`). Where muscles and motors can produce the torque, s is zero and the
    joints obey ``edd + Kd ed + Kp e = 0``. Where they cannot, s is the least torque that is
    missing: the tensions stay continuous and `ControlOutput.status` says ``INFEASIBLE``. How that
    is solved, and why not with a weight for s beside Hf: `cards_core.optimize.goal_program`.

    Rotations of ball joints: q_d - q is the rotation vector from q to q_d in child axes
    (`Tree.difference`), and qd_d, qdd_d of the reference, in the axes of the desired child frame,
    are carried over to the actual one.

    Args:
        model: What the controller knows of the robot.
        kp: Kp, [1/s^2], one number, one per joint velocity, or a symmetric matrix (nv, nv).
        kd: Kd, [1/s], likewise; None is critical damping 2 sqrt(kp).
        solver: ``daqp`` or ``osqp``.
        force_weight: Diagonal of Hf, [1/N^2], > 0, one number or one per muscle; relative sizes
            share the load among the muscles.
        effort_weight: Diagonal of Ht, [1/(Nm)^2] or [1/N^2], > 0, one number or one per motor:
            what the effort of a motor costs beside the tension of a muscle.
        slack_weight: Diagonal of W, one number or one per velocity; only the ratios count: where
            not all torques can be produced, the joint with the larger weight lacks less.
        tension_min, tension_max: Tighter limits than those of the muscles, [N].
        tension_rate: Largest change of a tension per time, [N/s]; None: no limit.
        residual_tolerance: Missing torque above which a step counts as infeasible, relative to the
            torques of that joint, of all muscles and of the motion, added up as magnitudes.

    Raises:
        ParameterError: A parameter of the wrong size or out of range.
        UnknownNameError: No such solver.
    """

    kind = "ctc_joint"
    summary = "computed torque in joint space"
    space = "joint"

    def __init__(
        self,
        model: ControlModel,
        *,
        kp: Setting = 400.0,
        kd: Setting | None = None,
        solver: str = "daqp",
        force_weight: Setting = 1.0,
        effort_weight: Setting = 1.0,
        slack_weight: Setting = 1.0,
        tension_min: Setting | None = None,
        tension_max: Setting | None = None,
        tension_rate: Setting | None = None,
        residual_tolerance: float = 1e-8,
    ) -> None:
        dynamics = model.dynamics
        tree = dynamics.tree
        names = [muscle.name for muscle in dynamics.robot.muscles]
        force = vector(force_weight, names, "force_weight", strict=True)
        motors = motors_of(tree)
        effort = vector(effort_weight, motors.names, "effort_weight", strict=True)
        scale = float(np.mean(force)) if names else 1.0
        slack = vector(slack_weight, tree.velocity_names, "slack_weight", strict=True)
        super().__init__(
            model,
            reference_names=tree.position_names,
            error_names=tree.velocity_names,
            kp=kp,
            kd=kd,
            tension_min=tension_min,
            tension_max=tension_max,
            tension_rate=tension_rate,
        )
        tolerance = number(residual_tolerance, "residual_tolerance", strict=True)
        # in units of force and of torque
        efforts = effort * (self._torque_unit / self._force_unit) ** 2
        weights = np.concatenate([force, efforts]) / scale
        program = GoalProgram(solver, weights, 0, slack, tolerance=tolerance)
        self._use(program, self._torque_unit)
        self._muscle_columns = program.matrix[:, : len(names)]
        program.matrix[motors.rows, len(names) + np.arange(len(motors))] = 1.0
        self._lever = -self._force_unit / self._torque_unit
        self._balls = [(node.q, node.v) for node in tree.nodes if node.kind == "ball"]
        self._compile(CtcJoint, self._lever, rotations=bool(self._balls))

    @classmethod
    def from_parameters(cls, model: ControlModel, parameters: ParameterStore) -> Self:
        """Declare the parameters and return a controller; see `Controller.from_parameters`."""
        tree = model.dynamics.tree
        specs = [
            *qp_parameters(cls, model.commanded, tree.velocity_names),
            Parameter(
                "slack_weight",
                [default_of(cls, "slack_weight")] * tree.nv,
                "Weight of a missing torque; only ratios matter, and only where torques are "
                "infeasible.",
                lower=1e-12,
                length=tree.nv,
                names=tree.velocity_names,
            ),
        ]
        return cls(model, **declared(parameters, specs))

    def change(self, values: Mapping[str, Any]) -> None:
        """Take over gains; see `Controller.change`."""
        self.set_gains(values["kp"], damping(values["kp"], values["kd"]))

    def place(self, q: Array, qd: Array) -> Array:
        """Return the y of a state; see `Controller.place`."""
        return q.copy()

    def _formulate(self, q: Array, qd: Array, acceleration: Array) -> None:
        out, program = self.output, self._program
        velocity, acceleration = self._prepare(q, qd, acceleration)
        out.actual_dot[:] = qd
        self._feedback(velocity, acceleration)
        state = self.dynamics.update(q, qd)
        np.multiply(state.muscle_jacobian.T, self._lever, out=self._muscle_columns)
        torque = program.right
        ordered_product(state.mass_matrix, out.acceleration, torque)
        np.add(torque, state.coriolis, out=torque)
        np.add(torque, state.gravity, out=torque)
        self._add_loads(q, qd, torque)
        np.divide(torque, self._torque_unit, out=torque)

    def _prepare(self, q: Array, qd: Array, acceleration: Array) -> tuple[Array, Array]:
        out = self.output
        out.actual[:] = q
        if self._balls:
            out.error[:] = self.dynamics.tree.difference(out.desired, q)
            return self._carry_over(q, qd, acceleration)
        np.subtract(out.desired, q, out=out.error)
        return out.desired_dot, acceleration

    def _carry_over(self, q: Array, qd: Array, acceleration: Array) -> tuple[Array, Array]:
        """Express the reference's angular rates in the axes of the actual child frames.

        With R_e = R' R_d:  w = R_e w_d,  dw/dt = R_e dw_d/dt - w_actual x w.
        """
        velocity, acceleration = self.output.desired_dot.copy(), acceleration.copy()
        for i, v in self._balls:
            part = slice(v, v + 3)
            actual = quaternion_matrix(q[i : i + 4])
            relative = actual.T @ quaternion_matrix(self.output.desired[i : i + 4])
            velocity[part] = relative @ velocity[part]
            acceleration[part] = relative @ acceleration[part]
            acceleration[part] -= np.cross(qd[part], velocity[part])
        return velocity, acceleration
