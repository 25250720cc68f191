"""The embedded simulator: MuJoCo moves the links, the muscle engine pulls them.

No ROS here: `cards_sim`'s node is a shell around `Simulator` and `cards_core.loop.pacing.Pacer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.formats.mjcf.writer import Integrator, merged_links
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.typing import Array
from cards_sim.errors import SimulationStoppedError
from cards_sim.model import (
    at_centres_of_mass,
    build_model,
    joint_of_coordinate,
    joint_of_velocity,
)

_W = mujoco.mjtWarning
_PROBLEMS = {
    _W.mjWARN_BADQPOS: "a joint position is NaN, infinite or huge",
    _W.mjWARN_BADQVEL: "a joint velocity is NaN, infinite or huge",
    _W.mjWARN_BADQACC: "a joint acceleration is NaN, infinite or huge",
    _W.mjWARN_INERTIA: "the mass matrix is singular",
    _W.mjWARN_CONTACTFULL: "there are more contacts than MuJoCo has memory for",
    _W.mjWARN_CNSTRFULL: "there are more constraints than MuJoCo has memory for",
    _W.mjWARN_BADCTRL: "a control value is NaN, infinite or huge",
}


@dataclass(eq=False)
class _Push:
    """A wrench from outside: on a body, at a point in body axes from its centre of mass."""

    body: int
    force: Array
    torque: Array
    lever: Array
    steps: int


class Simulator:
    """A robot in a world with gravity, joint limits and contacts.

    One step from t to t + dt: the muscles turn link motion at t and the commands into one wrench
    per link, the motors of joints give the efforts they are told, MuJoCo adds everything else and
    integrates. Joint damping and dry friction come from the description.

    Args:
        robot: The description.
        dt: Time step, [s].
        integrator: See `cards_core.formats.mjcf.writer.to_mjcf`.
        ground: Height of a ground plane, [m]; none if `None`.
        world_xml: Additional MJCF elements for the world.
        muscle_backend: Backend of the muscle engine.

    Attributes:
        robot, tree, dt: As given; the tree lays out q and qd.
        muscles: Paths and actuator models.
        motors: Joints with a motor of their own.
        model, data: MuJoCo's own objects, for viewers and tests.

    Raises:
        DescriptionError: The robot cannot be simulated; the message says why.
    """

    def __init__(
        self,
        robot: Robot,
        dt: float = 1e-3,
        *,
        integrator: Integrator = "Euler",
        ground: float | None = None,
        world_xml: str = "",
        muscle_backend: Literal["compiled", "numeric"] = "compiled",
    ) -> None:
        if not (dt > 0.0 and math.isfinite(dt)):
            raise CardsError(f"time step is {dt} s, expected a finite time > 0")
        self.robot = robot
        self.dt = float(dt)
        self.tree = robot.tree
        self.model = build_model(
            robot, timestep=dt, integrator=integrator, ground=ground, world_xml=world_xml
        )
        self.data = mujoco.MjData(self.model)
        self._merged = merged_links(robot)
        names = [link.name for link in robot.links]
        self._rows = np.array([i for i, x in enumerate(names) if x not in self._merged], np.intp)
        self._bodies = np.array([self.model.body(names[i]).id for i in self._rows], np.intp)
        self._coms = np.zeros((len(names), 3))
        self._coms[self._rows] = self.model.body_ipos[self._bodies]
        relocated = at_centres_of_mass(robot, dict(zip(names, self._coms, strict=True)))
        self.muscles = MuscleSystem(robot, self.dt, muscle_backend, engine_robot=relocated)
        self.motors = motors_of(self.tree)
        n, m, k = len(robot.links), len(robot.muscles), len(self.motors)

        # views of MuJoCo's memory; the layout of the sensors is that of `to_mjcf`
        data, sensors = self.data, self.data.sensordata
        self._q = data.qpos[: self.tree.nq]
        self._qd = data.qvel[: self.tree.nv]
        self._joints = (self._q, self._qd)
        self._sensed_poses = sensors[: 12 * n].reshape(n, 4, 3).transpose(0, 2, 1)
        self._twists = sensors[12 * n : 18 * n].reshape(n, 6)
        self._warnings = data.warning.number

        # of frames at the centres of mass, parallel to the link frames
        self._poses = np.zeros((n, 4, 4))
        self._poses[:, 3, 3] = 1.0
        self._tensions = np.zeros(m)
        self._efforts = np.zeros(k)
        # MuJoCo's degrees of freedom are laid out as the tree's velocities
        self._joint_forces = data.qfrc_applied[: self.tree.nv]
        self._last_q = np.zeros(self.model.nq)
        self._last_qd = np.zeros(self.model.nv)
        self._last_actuators = self.muscles.actuators.state.copy()
        # lengths and rates of the muscles now, once somebody asked for them
        self._motion: tuple[Array, Array] | None = None
        self._pushes: list[_Push] = []
        self.reset()

    # State ------------------------------------------------------------------------------------

    def reset(self, q: Array | Sequence[float] | None = None, qd: Array | None = None) -> None:
        """Put the world back to time zero.

        Args:
            q: Joint coordinates, shape (nq,); the home pose if `None`.
            qd: Joint velocities, shape (nv,); at rest if `None`.

        Raises:
            ShapeError: Wrong number of values, or values that are not finite or huge.
            SimulationStoppedError: The world is impossible from the start.
        """
        tree = self.tree
        start = tree.check_q(np.asarray(tree.home if q is None else q, dtype=float))
        velocity = tree.check_qd(np.asarray(np.zeros(tree.nv) if qd is None else qd, dtype=float))
        for values, names in ((start, tree.position_names), (velocity, tree.velocity_names)):
            for value, name in zip(values, names, strict=True):
                if abs(value) > mujoco.mjMAXVAL:
                    raise ShapeError(
                        f"'{name}' starts at {value:g}, expected at most {mujoco.mjMAXVAL:g}"
                    )
        mujoco.mj_resetData(self.model, self.data)
        # integrating by zero normalises quaternions
        self._q[:] = tree.integrate(start, np.zeros(tree.nv))
        self._qd[:] = velocity
        self._last_q[:] = self.data.qpos
        self._last_qd[:] = self.data.qvel
        self._tensions[:] = 0.0
        self._efforts[:] = 0.0
        self._pushes.clear()
        self._step = 0
        self._stopped: SimulationStoppedError | None = None
        mujoco.mj_step1(self.model, self.data)
        self._refresh()
        if np.count_nonzero(self._warnings):
            self._stop()
        self.muscles.reset(self._poses)

    @property
    def time(self) -> float:
        """Simulated time, [s]."""
        # a product of whole numbers of steps does not collect rounding errors as a sum does
        return self._step * self.dt

    @property
    def state(self) -> RobotState:
        """State now, as a copy."""
        if self._motion is None:
            lengths, rates = self.muscles.engine.motion(self._poses, self._twists)
            self._motion = (lengths.copy(), rates.copy())
        lengths, rates = self._motion
        return RobotState(
            self.time,
            self._q.copy(),
            self._qd.copy(),
            muscle_lengths=lengths.copy(),
            muscle_rates=rates.copy(),
            tensions=self._tensions.copy(),
            efforts=self._efforts.copy(),
            actuators=self.muscles.state_values.copy(),
        )

    @property
    def steps(self) -> int:
        """Number of steps since the last reset."""
        return self._step

    @property
    def contacts(self) -> int:
        """Number of contact points now."""
        return int(self.data.ncon)

    def link_poses(self) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4), in the order of robot.links."""
        poses = self._poses.copy()
        poses[:, :3, 3] -= np.einsum("nij,nj->ni", poses[:, :3, :3], self._coms)
        if self._merged:
            # links that are no MuJoCo body (massless, between two joints) are on the way anyway
            exact = make_dynamics(self.robot, "numeric").link_poses(self._q)
            for row, link in enumerate(self.robot.links):
                if link.name in self._merged:
                    poses[row] = exact[row]
        return poses

    def muscle_paths(self) -> list[Array]:
        """Return the path of every muscle in the world, arrays of shape (k, 3), [m]."""
        return self.muscles.engine.path_points(self._poses)

    def energy(self) -> tuple[float, float]:
        """Return kinetic and potential energy now, [J]; the zero of the latter is MuJoCo's."""
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        potential, kinetic = self.data.energy
        return float(kinetic), float(potential)

    # Motion -----------------------------------------------------------------------------------

    def step(
        self, commands: Array | Sequence[float], kinds: npt.NDArray[np.intp] | None = None
    ) -> None:
        """Advance by one time step.

        Args:
            commands: What every muscle is told, in the order of robot.muscles, then the efforts of
                the motors, shape (m + k,). Limits are the business of `MuscleCommand`.
            kinds: Codes of `cards_core.muscles.command.KINDS`, shape (m + k,), of which those of
                the muscles count; tensions [N] if None.

        Raises:
            ShapeError: Wrong number of commands, or one that is not finite; nothing moves.
            SimulationStoppedError: The physics diverged in this step or in an earlier one. The
                state is the last good one.
        """
        if self._stopped is not None:
            raise self._stopped
        values = np.asarray(commands, dtype=float)
        m = self._tensions.size
        wanted = (m + self._efforts.size,)
        if values.shape != wanted or not np.isfinite(values).all():
            self._refuse(values)
        values, efforts = values[:m], values[m:]
        data = self.data
        self._last_q[:] = data.qpos
        self._last_qd[:] = data.qvel
        self._last_actuators[:] = self.muscles.actuators.state
        if kinds is not None:
            kinds = kinds[:m]
        muscles = self.muscles.step(
            self._poses, self._twists, self._joints, values, kinds, motion=self._motion
        )
        if efforts.size:
            self._joint_forces[self.motors.rows] = efforts
        wrenches = muscles.wrenches
        data.xfrc_applied[self._bodies] = wrenches[self._rows] if self._merged else wrenches
        if self._pushes:
            self._apply_pushes()
        # MuJoCo warns instead of failing; asked twice, so that the cause is found, not what
        # follows from it
        mujoco.mj_step2(self.model, data)
        if np.count_nonzero(self._warnings):
            self._stop()
        # kinematics of the new state, for whoever reads it and for the next wrench
        mujoco.mj_step1(self.model, data)
        if np.count_nonzero(self._warnings):
            self._stop()
        self._tensions[:] = muscles.tensions
        self._efforts[:] = efforts
        self._step += 1
        self._refresh()

    def apply_wrench(
        self,
        link: str,
        force: Array | Sequence[float],
        torque: Array | Sequence[float] = (0.0, 0.0, 0.0),
        *,
        duration: float,
        point: Array | Sequence[float] | None = None,
    ) -> None:
        """Push a link from outside, from the next step on.

        Args:
            link: Name of the link.
            force: In world axes, [N].
            torque: In world axes, [Nm].
            duration: [s], rounded to time steps, at least one.
            point: Where the force acts, in link coordinates, [m]; moves with the link. The
                centre of mass if `None`.

        Raises:
            UnknownNameError: No such link.
            CardsError: The link is massless and has no body of its own.
            ShapeError: A value is not a finite vector of three numbers, or the duration is not
                finite.
        """
        self.robot.link(link)
        if link in self._merged:
            raise CardsError(f"link '{link}' has no mass to push; push the link it carries")
        if not math.isfinite(duration):
            raise ShapeError(f"duration of a push is {duration}, expected a finite time in s")
        body = self.model.body(link).id
        com = self.model.body_ipos[body]
        lever = np.zeros(3) if point is None else _vector(point, "point") - com
        steps = max(1, round(duration / self.dt))
        push = _Push(body, _vector(force, "force"), _vector(torque, "torque"), lever, steps)
        self._pushes.append(push)

    # Inside -----------------------------------------------------------------------------------

    def _refresh(self) -> None:
        self._poses[:, :3] = self._sensed_poses
        self._motion = None

    def _apply_pushes(self) -> None:
        for push in self._pushes:
            arm = self.data.xmat[push.body].reshape(3, 3) @ push.lever
            applied = self.data.xfrc_applied[push.body]
            applied[:3] += push.force
            applied[3:] += push.torque + np.cross(arm, push.force)
            push.steps -= 1
        self._pushes = [push for push in self._pushes if push.steps > 0]

    def _refuse(self, values: Array) -> None:
        muscles = [f"muscle '{muscle.name}'" for muscle in self.robot.muscles]
        names = [*muscles, *(f"motor '{name}'" for name in self.motors.names)]
        if values.shape != (len(names),):
            raise ShapeError(
                f"commands have shape {values.shape}, expected ({len(names)},): one value for "
                f"each of {', '.join(names)}"
            )
        for name, value in zip(names, values, strict=True):
            if not math.isfinite(value):
                raise ShapeError(f"command of {name} is {value}, expected a finite number")

    def _stop(self) -> None:
        """Find out what went wrong, go back to the state before the step, and raise."""
        kind = int(np.argmax(self._warnings > 0))
        index = int(self.data.warning[kind].lastinfo)
        joint = body = None
        if kind == _W.mjWARN_BADQPOS:
            joint, body = joint_of_coordinate(self.model, index)
        elif kind in (_W.mjWARN_BADQVEL, _W.mjWARN_BADQACC, _W.mjWARN_INERTIA):
            joint, body = joint_of_velocity(self.model, index)
        self._stopped = SimulationStoppedError(
            _PROBLEMS[_W(kind)], step=self._step + 1, time=self.time, joint=joint, body=body
        )
        self.data.qpos[:] = self._last_q
        self.data.qvel[:] = self._last_qd
        self.muscles.actuators.state[:] = self._last_actuators
        self.data.xfrc_applied[:] = 0.0
        self._joint_forces[:] = 0.0
        mujoco.mj_step1(self.model, self.data)
        self._refresh()
        raise self._stopped


def _vector(values: Array | Sequence[float], name: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != (3,) or not np.all(np.isfinite(array)):
        raise ShapeError(f"{name} is {values}, expected three finite numbers")
    return array
