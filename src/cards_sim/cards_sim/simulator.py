"""A robot in a simulated world: the muscle engine pulls the links that MuJoCo moves.

No ROS here: `cards_sim`'s node is a shell around `Simulator` and `cards_core.loop.pacing.Pacer`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, CompilationError, ShapeError
from cards_core.formats.mjcf.writer import merged_links
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.muscles.system import MuscleSystem
from cards_core.paths.contacts.of_robot import with_mesh_files
from cards_core.robot.elements import Link
from cards_core.robot.model import Robot
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.robot.world import World, WorldModel, empty_world_with
from cards_core.spatial import Pose
from cards_core.typing import Array
from cards_sim.free_bodies import Integration
from cards_sim.model import at_centres_of_mass, link_at
from cards_sim.native_steps import NativeSteps
from cards_sim.world_simulator import WorldSimulator


class Simulator:
    """A robot in a world with gravity, joint limits and contacts.

    One step from t to t + dt: the muscles turn link motion at t and the commands into one wrench
    per link, the motors of joints give the efforts they are told, MuJoCo adds everything else and
    integrates. Joint damping and dry friction come from the description.

    Args:
        robot: The description.
        dt: Time step, [s].
        world: What else there is: the robot is put into it, as ``robot.name``, where its own file
            puts it. Gravity is then the world's. None: the robot is alone.
        integrator: MuJoCo's, or ``midpoint``; see `cards_sim.free_bodies`.
        ground: Height of a ground plane, [m]; none if `None`.
        world_xml: Additional MJCF elements for the world.
        muscle_backend: Backend of the muscle engine.

    Attributes:
        robot, tree, dt: As given; the tree lays out q and qd.
        name: Of the robot in its world; empty where it is alone.
        world: What it is part of: objects, contacts, grasps, time.
        muscles: Paths and actuator models.
        motors: Joints with a motor of their own.
        model, data: MuJoCo's own objects, of the whole world; they have no visuals.

    Raises:
        DescriptionError: The robot cannot be simulated; the message says why.
    """

    name: str

    def __init__(
        self,
        robot: Robot,
        dt: float = 1e-3,
        *,
        world: World | None = None,
        integrator: Integration = "Euler",
        ground: float | None = None,
        world_xml: str = "",
        muscle_backend: Literal["compiled", "numeric"] = "compiled",
    ) -> None:
        whole = empty_world_with(robot) if world is None else world.with_robot(robot)
        simulator = WorldSimulator(
            whole, dt, integrator=integrator, ground=ground, world_xml=world_xml
        )
        self._join(simulator, whole.models[-1], muscle_backend)
        simulator.reset()

    @classmethod
    def within(cls, world: WorldSimulator, name: str) -> Simulator:
        """Return a robot of a world that may hold several; the world is reset.

        Args:
            world: The world.
            name: Of the model in it.

        Raises:
            UnknownNameError: There is no such model.
            CardsError: It is simulated already.
        """
        robot = cls.__new__(cls)
        robot._join(world, world.world.model(name), "compiled")
        world.reset()
        return robot

    def _join(
        self,
        world: WorldSimulator,
        placed: WorldModel,
        muscle_backend: Literal["compiled", "numeric"],
    ) -> None:
        if any(
            isinstance(other, Simulator) and other.name == placed.name for other in world.pullers
        ):
            raise CardsError(f"'{placed.name}' is simulated already (expected: one of each)")
        self.world = world
        self.name = placed.name
        self.robot = robot = placed.robot
        self.dt = world.dt
        self.tree = robot.tree
        self.model, self.data = world.model, world.data
        self._placed = placed
        self._merged = merged_links(robot)
        self._touches = any(muscle.contact for muscle in robot.muscles)
        names = [link.name for link in robot.links]
        self._rows = np.array([i for i, x in enumerate(names) if x not in self._merged], np.intp)
        self._bodies = np.array(
            [self.model.body(placed.prefixed(names[i])).id for i in self._rows], np.intp
        )
        self._coms = np.zeros((len(names), 3))
        self._coms[self._rows] = self.model.body_ipos[self._bodies]
        relocated = at_centres_of_mass(robot, dict(zip(names, self._coms, strict=True)))
        near = world.world.neighbours(placed.name) if self._touches else ()
        self.muscles = MuscleSystem(
            robot,
            self.dt,
            muscle_backend,
            engine_robot=relocated,
            surroundings=world.world.surroundings(placed.name),
            neighbours=[self._at_centre(other, link) for other, link in near],
        )
        own = [(placed, link) for link in robot.links]
        self.muscles.engine.keeps_twists = self._keep_twists([*own, *near])
        self.motors = motors_of(self.tree)
        n, m, k = len(robot.links), len(robot.muscles), len(self.motors)

        # views of MuJoCo's memory; the layout of the sensors is that of `to_mjcf`, that of the
        # coordinates is that of `World.combined`
        before = world.world.models[: world.world.models.index(placed)]
        q0 = sum(other.robot.tree.nq for other in before)
        v0 = sum(other.robot.tree.nv for other in before)
        first, total = sum(len(other.robot.links) for other in before), len(world.combined.links)
        data, sensors = self.data, self.data.sensordata
        self._q = data.qpos[q0 : q0 + self.tree.nq]
        self._qd = data.qvel[v0 : v0 + self.tree.nv]
        self._joints = (self._q, self._qd)
        poses = sensors[12 * first : 12 * (first + n)]
        self._sensed_poses = poses.reshape(n, 4, 3).transpose(0, 2, 1)
        twists = 12 * total + 6 * first
        self._twists = sensors[twists : twists + 6 * n].reshape(n, 6)

        # of what else its cables touch
        index = {link.name: i for i, link in enumerate(world.combined.links)}
        names_near = [other.prefixed(link.name) for other, link in near]
        self._near_rows = np.array([index[name] for name in names_near], dtype=np.intp)
        self.others = np.array([self.model.body(name).id for name in names_near], dtype=np.intp)
        self._all_poses = sensors[: 12 * total].reshape(total, 4, 3).transpose(0, 2, 1)
        self._all_twists = sensors[12 * total : 18 * total].reshape(total, 6)

        # what pulls at the links, in MuJoCo's memory if its bodies are in the same order
        self._applied: Array | None = None
        body = int(self._bodies[0]) if self._bodies.size else 0
        if np.array_equal(self._bodies, np.arange(body, body + len(names))):
            self._applied = data.xfrc_applied[body : body + len(names)]

        # of frames at the centres of mass, parallel to the link frames
        self._poses = np.zeros((n, 4, 4))
        self._poses[:, 3, 3] = 1.0
        self._told: tuple[Array, npt.NDArray[np.intp] | None] = (np.zeros(m + k), None)
        self._impedance: ImpedanceLaw | None = None
        self._given = (np.zeros(m), np.zeros(k))
        self._tensions = np.zeros(m)
        self._efforts = np.zeros(k)
        # MuJoCo's degrees of freedom are laid out as the tree's velocities
        self._joint_forces = data.qfrc_applied[v0 : v0 + self.tree.nv]
        self._last_actuators = self.muscles.actuators.state.copy()
        # lengths and rates of the muscles now, once somebody asked for them
        self._motion: tuple[Array, Array] | None = None
        self._start = (self.tree.home, np.zeros(self.tree.nv))
        self.views = {
            "q": self._q,
            "qd": self._qd,
            "sensed": poses,
            "twists": self._twists,
            "poses": self._poses,
            "applied": self._applied,
            "last_actuators": self._last_actuators,
            "all_sensed": sensors[: 12 * total],
            "all_twists": self._all_twists,
            "all_applied": data.xfrc_applied,
            "near_rows": self._near_rows,
            "near_bodies": self.others,
        }
        self._native: NativeSteps | None = None
        self._native_suits = NativeSteps.suits(self)
        world.pullers.append(self)

    # State ------------------------------------------------------------------------------------

    def reset(self, q: Array | Sequence[float] | None = None, qd: Array | None = None) -> None:
        """Reset the world, and everything in it, to time zero.

        Args:
            q: Joint coordinates, shape (nq,); the home pose if `None`.
            qd: Joint velocities, shape (nv,); at rest if `None`.

        Raises:
            ShapeError: Wrong number of values, or values that are not finite or huge.
            SimulationStoppedError: The initial state cannot be simulated.
        """
        self.begin_at(q, qd)
        self.world.reset()

    def begin_at(self, q: Array | Sequence[float] | None = None, qd: Array | None = None) -> None:
        """Say where the robot is after the next reset of its world.

        Args:
            q: Joint coordinates, shape (nq,); the home pose if `None`.
            qd: Joint velocities, shape (nv,); at rest if `None`.

        Raises:
            ShapeError: Wrong number of values, or values that are not finite or huge.
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
        self._start = (start, velocity.copy())

    @property
    def time(self) -> float:
        """Simulated time, [s]."""
        return self.world.time

    @property
    def state(self) -> RobotState:
        """State now, as a copy."""
        if self._motion is None:
            lengths, rates = self.muscles.engine.motion(self._poses, self._twists)
            self._motion = (lengths.copy(), rates.copy())
        lengths, rates = self._motion
        contact_forces = np.zeros((len(self.robot.links), 3))
        if self.world.touched:
            contact_forces[self._rows] = self.world.body_forces[self._bodies]
        return RobotState(
            self.time,
            self._q.copy(),
            self._qd.copy(),
            muscle_lengths=lengths.copy(),
            muscle_rates=rates.copy(),
            tensions=self._tensions.copy(),
            efforts=self._efforts.copy(),
            actuators=self.muscles.state_values.copy(),
            temperatures=self.muscles.temperatures,
            contact_forces=contact_forces,
        )

    def contact_wrenches(self) -> dict[str, Array]:
        """Return the contact forces of the step that led here, by link that is touched.

        Each is force and moment on the link about its origin, in world axes, (6,), [N] and [Nm].
        """
        own = {self._placed.prefixed(self.robot.links[i].name): int(i) for i in self._rows}
        found: dict[str, Array] = {}
        for contact in self.world.contacts:
            for body, sign in zip(contact.bodies, (-1.0, 1.0), strict=True):
                if body not in own:
                    continue
                name = self.robot.links[own[body]].name
                force = sign * contact.force
                arm = contact.position - self.world.pose(body).translation
                wrench = found.setdefault(name, np.zeros(6))
                wrench += np.concatenate([force, np.cross(arm, force)])
        return found

    @property
    def steps(self) -> int:
        """Number of steps since the last reset."""
        return self.world.steps

    @property
    def place(self) -> Pose:
        """Pose of the robot's axes in the world."""
        return self._placed.pose

    def link_poses(self) -> Array:
        """Return link-to-world matrices, shape (n_links, 4, 4), in the order of robot.links."""
        poses = self._poses.copy()
        poses[:, :3, 3] -= np.einsum("nij,nj->ni", poses[:, :3, :3], self._coms)
        if self._merged:
            # links that are no MuJoCo body (massless, between two joints) are on the way anyway
            exact = make_dynamics(self.robot, "numeric").link_poses(self._q)
            for row, link in enumerate(self.robot.links):
                if link.name in self._merged:
                    poses[row] = self._placed.pose.matrix @ exact[row]
        return poses

    def muscle_paths(self) -> list[Array]:
        """Return the path of every muscle in the world, arrays of shape (k, 3), [m]."""
        return self.muscles.engine.path_points(self._poses)

    def energy(self) -> tuple[float, float]:
        """Return kinetic and potential energy of the world now, [J]; see `WorldSimulator`."""
        return self.world.energy()

    # Motion -----------------------------------------------------------------------------------

    def step(
        self,
        commands: Array | Sequence[float],
        kinds: npt.NDArray[np.intp] | None = None,
        *,
        impedance: ImpedanceLaw | None = None,
    ) -> None:
        """Advance the world by one time step; other robots in it do what they were told last.

        Args:
            commands: As of `tell`.
            kinds: As of `tell`.
            impedance: As of `tell`.

        Raises:
            ShapeError: Wrong number of commands, or one that is not finite; nothing moves.
            SimulationStoppedError: The physics diverged in this step or in an earlier one. The
                state is the last good one.
        """
        self.world.check_running()
        self.tell(commands, kinds, impedance=impedance)
        self.world.step()

    def tell(
        self,
        commands: Array | Sequence[float],
        kinds: npt.NDArray[np.intp] | None = None,
        *,
        impedance: ImpedanceLaw | None = None,
    ) -> None:
        """Say what muscles and motors do in the next steps of the world.

        Args:
            commands: What every muscle is told, in the order of robot.muscles, then the efforts of
                the motors, shape (m + k,). Limits are the business of `MuscleCommand`.
            kinds: Codes of `cards_core.muscles.command.KINDS`, shape (m + k,), of which those of
                the muscles count; tensions [N] if None.
            impedance: The law of muscles that are under it, with its set-points.

        Raises:
            ShapeError: Wrong number of commands, or one that is not finite.
        """
        values = np.asarray(commands, dtype=float)
        m = self._tensions.size
        wanted = (m + self._efforts.size,)
        if values.shape != wanted or np.count_nonzero(np.isfinite(values)) != values.size:
            self._refuse(values)
        self._told = (values, None if kinds is None else kinds[:m])
        self._impedance = impedance

    def apply_wrench(
        self,
        link: str,
        force: Array | Sequence[float],
        torque: Array | Sequence[float] = (0.0, 0.0, 0.0),
        *,
        duration: float,
        point: Array | Sequence[float] | None = None,
    ) -> None:
        """Push a link of the robot from outside, in place of what pushed it before.

        See `WorldSimulator.apply_wrench`.

        Args:
            link: Name of the link within the robot.
            force: In world axes, [N].
            torque: In world axes, [Nm].
            duration: > 0, [s], rounded to time steps, at least one.
            point: Where the force acts, in link coordinates, [m]; the centre of mass if `None`.

        Raises:
            UnknownNameError: No such link.
            CardsError: The link is massless and has no body of its own.
            ShapeError: A value is not a finite vector of three numbers, or the duration is not a
                finite time above zero. The last push goes on.
        """
        self.robot.link(link)
        if link in self._merged:
            raise CardsError(f"link '{link}' has no mass to push; push the link it carries")
        name = self._placed.prefixed(link)
        self.world.apply_wrench(name, force, torque, duration=duration, point=point)

    @property
    def told(self) -> tuple[Array, npt.NDArray[np.intp] | None, ImpedanceLaw | None]:
        """Values, kinds and law of the last `tell`."""
        return (*self._told, self._impedance)

    @property
    def efforts(self) -> Array:
        """Efforts of the motors of joints in the last step, shape (k,), [Nm] or [N]."""
        return self._efforts

    @property
    def row_parts(self) -> tuple[int, ...]:
        """Sizes of what a row of `WorldSimulator.advance` holds.

        q, qd, lengths, rates and tensions of the muscles, published states of the actuators.
        """
        tree, m = self.tree, len(self.robot.muscles)
        return tree.nq, tree.nv, m, m, m, len(self.muscles.state_names)

    @property
    def row_size(self) -> int:
        """Numbers in such a row."""
        return sum(self.row_parts)

    # Puller -----------------------------------------------------------------------------------

    def put(self) -> None:
        """Put the coordinates and velocities at time zero into MuJoCo's memory."""
        start, velocity = self._start
        # integrating by zero normalises quaternions
        self._q[:] = self.tree.integrate(start, np.zeros(self.tree.nv))
        self._qd[:] = velocity
        self._told = (np.zeros_like(self._told[0]), None)
        self._impedance = None
        self._tensions[:] = 0.0
        self._efforts[:] = 0.0

    def begin(self) -> None:
        """Start again with the motion at time zero."""
        self.muscles.reset(self._poses)

    def saved(self) -> Array:
        """Return the states of the actuators, a copy."""
        return self.muscles.actuators.state.copy()

    def restore(self, saved: Array) -> None:
        """Take over states of the actuators, after `begin`."""
        self.muscles.actuators.state[:] = saved

    def pull(self) -> None:
        """Write the wrenches and joint efforts of this step into MuJoCo's memory."""
        values, kinds = self._told
        m = self._tensions.size
        values, efforts = values[:m], values[m:]
        self._last_actuators[:] = self.muscles.actuators.state
        muscles = self.muscles.step(
            self._poses,
            self._twists,
            self._joints,
            values,
            kinds,
            motion=self._motion,
            impedance=self._impedance,
        )
        if efforts.size:
            self._joint_forces[self.motors.rows] = efforts
        if self._applied is not None:
            self._applied[:] = muscles.wrenches
        else:
            self.data.xfrc_applied[self._bodies] = muscles.wrenches[self._rows]
        self._given = (muscles.tensions, efforts)

    def pull_others(self) -> None:
        """Add what the cables do to links of other models, after all robots wrote theirs."""
        np.add.at(self.data.xfrc_applied, self.others, self.muscles.engine.neighbour_wrenches)

    def refresh(self) -> None:
        """Take over the motion of the links."""
        self._poses[:, :3] = self._sensed_poses
        if self.others.size:
            engine = self.muscles.engine
            engine.neighbour_poses[:, :3] = self._all_poses[self._near_rows]
            engine.neighbour_twists[:] = self._all_twists[self._near_rows]
        self._motion = None

    def undo(self) -> None:
        """Go back to before `pull`."""
        self.muscles.actuators.state[:] = self._last_actuators

    def finish(self) -> None:
        """Take over what acted in the step that was done."""
        self._tensions[:], self._efforts[:] = self._given

    def native_steps(self) -> NativeSteps | None:
        """Return what begins several steps natively; None if the next has something else to do."""
        law = self._impedance
        if not self._native_suits or not (law is None or not law.any_active or law.plain):
            return None
        if self._native is None:
            try:
                self._native = NativeSteps(self)
            except CompilationError:
                self._native_suits = False
                return None
        if self.motors.rows.size:
            self._joint_forces[self.motors.rows] = self._told[0][self._tensions.size :]
        return self._native

    def begun_natively(self, begun: int) -> None:
        """Take over what acted, after `native_steps` began some steps."""
        native = self._native
        assert native is not None
        if begun > 1:  # of the last whole step, in case that the one after it failed
            self._tensions[:] = native.last_tensions
        self._given = (native.tensions, self._told[0][self._tensions.size :])

    # Inside -----------------------------------------------------------------------------------

    def _keep_twists(self, links: Sequence[tuple[WorldModel, Link]]) -> bool:
        """Return whether MuJoCo's step moves links without a change of their twists.

        Those of free bodies whose frame is at their centre of mass.
        """
        for model, link in links:
            if [j.kind for j in model.robot.joints if j.child == link.name] != ["free"]:
                return False
            if self.model.body_ipos[self.model.body(model.prefixed(link.name)).id].any():
                return False
        return True

    def _at_centre(self, other: WorldModel, link: Link) -> Link:
        """Return a link of another model with shapes and mass relative to its centre of mass."""
        com = self.model.body_ipos[self.model.body(other.prefixed(link.name)).id]
        return link_at(with_mesh_files(link, other.robot.source), com)

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


def robots_within(world: WorldSimulator) -> dict[str, Simulator]:
    """Return the robots of a world by name, all of them at their homes.

    Args:
        world: The world, of which no robot is simulated yet.

    Raises:
        DescriptionError: A robot cannot be simulated; the message says why.
    """
    return {model.name: Simulator.within(world, model.name) for model in world.world.driven}
