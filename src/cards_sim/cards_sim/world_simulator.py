"""A world that MuJoCo moves: models, contacts, wrenches from outside, grasps, and time.

Robots are pulled by their muscles, which are not known here: `cards_sim.simulator.Simulator` turns
the motion of a robot's links into wrenches, and each is a `Puller` of the world it is part of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import mujoco
import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice, finite_array, finite_number
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.formats.mjcf.scene import GRASP
from cards_core.formats.mjcf.writer import merged_links
from cards_core.robot.world import World
from cards_core.spatial import Pose, matrix_quaternion
from cards_core.typing import Array
from cards_sim.errors import SimulationStoppedError
from cards_sim.free_bodies import FreeBodies, Integration
from cards_sim.model import (
    build_model,
    joint_of_coordinate,
    joint_of_velocity,
    possible_grasps,
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


@dataclass(frozen=True, eq=False, slots=True)
class Contact:
    """A point in which two bodies touch.

    Attributes:
        bodies: Their names, ``model::link``; ``world`` for what belongs to no model.
        position: In the world, shape (3,), [m].
        normal: From the first body to the second, unit vector in world axes, shape (3,).
        force: On the second body, in world axes, shape (3,), [N]; minus this acts on the first.
    """

    bodies: tuple[str, str]
    position: Array
    normal: Array
    force: Array


class SeveralSteps(Protocol):
    """Takes several steps in one native call; see `cards_sim.native_steps.NativeSteps`."""

    @property
    def address(self) -> int:
        """Of what the program works on, between `prepare` and `close`."""

    def prepare(self, rows: Array | None = None, *, whole: bool = False) -> None:
        """Tell the program what the robot is told, and whether the last step is to be whole."""

    def close(self, begun: int) -> None:
        """Take over what the program did, after it began some steps."""

    def advance(self, count: int, rows: Array | None) -> int:
        """Prepare, begin up to ``count`` steps, close; return how many were begun."""


class Puller(Protocol):
    """What gives wrenches to the links of a world, once a step.

    Attributes:
        others: MuJoCo's indices of bodies that are not its own but that it pulls at.
    """

    others: npt.NDArray[np.intp]

    def put(self) -> None:
        """Put the coordinates and velocities at time zero into MuJoCo's memory."""

    def begin(self) -> None:
        """Start again with the motion at time zero."""

    def saved(self) -> Array:
        """Return the states of its actuators, a copy."""

    def restore(self, saved: Array) -> None:
        """Take over states of its actuators, after `begin`."""

    def pull(self) -> None:
        """Write the wrenches and joint efforts of this step into MuJoCo's memory."""

    def pull_others(self) -> None:
        """Add the wrenches of this step on `others`, after all pullers wrote theirs."""

    def refresh(self) -> None:
        """Take over the motion of the links."""

    def undo(self) -> None:
        """Go back to before `pull`."""

    def finish(self) -> None:
        """Take over what acted in the step that was done."""

    def native_steps(self) -> SeveralSteps | None:
        """Return what begins several steps natively, if there is anything."""


SAVED = int(
    mujoco.mjtState.mjSTATE_FULLPHYSICS
    | mujoco.mjtState.mjSTATE_WARMSTART
    | mujoco.mjtState.mjSTATE_EQ_ACTIVE
)
"""What is saved of MuJoCo: motion, grasps, and where its solver begins to search."""


@dataclass(frozen=True, eq=False)
class WorldState:
    """A state that a world can begin in again; see `WorldSimulator.save`.

    Attributes:
        physics: MuJoCo's numbers, in the layout of `SAVED`.
        actuators: States of the actuators of every robot.
    """

    physics: Array
    actuators: tuple[Array, ...]


@dataclass(eq=False)
class _Push:
    """A wrench from outside: on a body, at a point in body axes from its centre of mass."""

    body: int
    force: Array
    torque: Array
    lever: Array
    steps: int


_THREE = np.arange(3)


def _is_direct(model: mujoco.MjModel) -> bool:
    """Whether the forces of a contact are three or more successive ones of the constraints.

    As `mj_contactForce` has it for elliptic cones and contacts with friction.
    """
    elliptic = model.opt.cone == int(mujoco.mjtCone.mjCONE_ELLIPTIC)
    return bool(elliptic and (model.geom_condim >= 3).all() and (model.pair_dim >= 3).all())


class _Met:
    """Contacts of the step that is under way; read when somebody asks.

    MuJoCo's memory holds them until the next step begins: what cannot be had later is copied.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, *, direct: bool) -> None:
        self._model = model
        found = data.contact
        rows = found.efc_address
        if direct and rows.min() >= 0:
            self._bodies = model.geom_bodyid[found.geom]
            self._axes = found.frame.reshape(-1, 3, 3).copy()
            self._places = found.pos.copy()
            forces = data.efc_force[rows[:, None] + _THREE]
        else:
            every = np.empty((len(rows), 6))
            for index in range(len(rows)):
                mujoco.mj_contactForce(model, data, index, every[index])
            # no force acts where there is no address, e.g. within a margin
            acting = rows >= 0
            self._bodies = model.geom_bodyid[found.geom[acting]]
            self._axes = found.frame[acting].reshape(-1, 3, 3)
            self._places = found.pos[acting]
            forces = every[acting, :3]
        self._forces = np.einsum("nji,nj->ni", self._axes, forces)

    @cached_property
    def contacts(self) -> tuple[Contact, ...]:
        names = [[self._model.body(body).name for body in pair] for pair in self._bodies]
        columns = zip(names, self._places, self._axes[:, 0], self._forces, strict=True)
        return tuple(
            Contact((first, second), place.copy(), normal.copy(), force.copy())
            for (first, second), place, normal, force in columns
        )

    @cached_property
    def body_forces(self) -> Array:
        """Sums on every body, shape (nbody, 3), [N]."""
        out = np.zeros((self._model.nbody, 3))
        np.subtract.at(out, self._bodies[:, 0], self._forces)
        np.add.at(out, self._bodies[:, 1], self._forces)
        return out


class WorldSimulator:
    """Models that move, touch each other, and are pushed and grasped.

    One step from t to t + dt: the robots' muscles turn link motion at t into wrenches, MuJoCo adds
    gravity, joint limits, contacts and joints between models, and integrates.

    Bodies are named ``model::link``; a model's name alone means its first link.

    Args:
        world: The models.
        dt: Time step, [s].
        integrator: MuJoCo's, or ``midpoint``; see `cards_sim.free_bodies`.
        ground: Height of a ground plane beside the world's models, [m]; none if `None`.
        world_xml: Additional MJCF elements for the world.

    Attributes:
        world, dt: As given.
        combined: The world's models as one tree.
        model, data: MuJoCo's own objects; they have no visuals.
        pullers: The robots; they join themselves.
        warnings: MuJoCo's counters.
        last: Coordinates and velocities of all models before the last step.
        free_bodies: Turned by the midpoint rule; None with MuJoCo's integrators.
        touched: Whether contact forces are, or were just before, other than zero.

    Raises:
        CardsError: The time step is no time.
        DescriptionError: The world cannot be simulated; the message says why.
    """

    def __init__(
        self,
        world: World,
        dt: float = 1e-3,
        *,
        integrator: Integration = "Euler",
        ground: float | None = None,
        world_xml: str = "",
    ) -> None:
        if not (dt > 0.0 and math.isfinite(dt)):
            raise CardsError(f"time step is {dt} s, expected a finite time > 0")
        self.world = world
        self.dt = float(dt)
        self.combined = world.combined()
        self.model = build_model(
            world,
            timestep=dt,
            integrator="Euler" if integrator == "midpoint" else integrator,
            ground=ground,
            world_xml=world_xml,
        )
        self.data = mujoco.MjData(self.model)
        self.free_bodies = FreeBodies(self.model, self.data) if integrator == "midpoint" else None
        self._step2 = mujoco.mj_step2 if self.free_bodies is None else self.free_bodies.step2
        self.pullers: list[Puller] = []
        self._merged = merged_links(self.combined)
        self._grasps = {
            pair: self.model.equality(GRASP.join(pair)).id for pair in possible_grasps(world)
        }
        self.warnings = self.data.warning.number
        self.last: tuple[Array, Array] = (np.zeros(self.model.nq), np.zeros(self.model.nv))
        self._pushes: list[_Push] = []
        # MuJoCo's memory; asking `data` for an array takes longer than copying it
        self._qpos, self._qvel = self.data.qpos, self.data.qvel
        self._met: _Met | None = None
        self._direct = _is_direct(self.model)
        self._no_forces = np.zeros((self.model.nbody, 3))
        self.touched = False
        self._step = 0
        self._stopped: SimulationStoppedError | None = None
        self.reset()

    # Time -------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        """Number of steps since the last reset."""
        return self._step

    @property
    def time(self) -> float:
        """Simulated time, [s]."""
        # a product of whole numbers of steps does not collect rounding errors as a sum does
        return self._step * self.dt

    def reset(self) -> None:
        """Put the world back to time zero: all models at home or where their robots begin.

        Pushes and grasps end.

        Raises:
            SimulationStoppedError: The initial state cannot be simulated.
        """
        self._begin(None)

    def save(self) -> WorldState:
        """Return the present state: motion of all models, grasps, states of actuators.

        What robots are told, pushes, and what cables with friction remember of their sliding are
        no part of it.
        """
        physics = np.empty(mujoco.mj_stateSize(self.model, SAVED))
        mujoco.mj_getState(self.model, self.data, physics, SAVED)
        return WorldState(physics, tuple(puller.saved() for puller in self.pullers))

    def restore(self, state: WorldState) -> None:
        """Put the world back to time zero, in a saved state. Pushes end.

        Args:
            state: As `save` returned it, of this world.

        Raises:
            CardsError: It is of another world; nothing changes.
            SimulationStoppedError: The state is impossible.
        """
        sizes = [puller.saved().shape for puller in self.pullers]
        fits = state.physics.shape == (mujoco.mj_stateSize(self.model, SAVED),)
        if not fits or [values.shape for values in state.actuators] != sizes:
            raise CardsError("the saved state is of another world (expected: one of this world)")
        self._begin(state)

    def _begin(self, state: WorldState | None) -> None:
        tree = self.combined.tree
        mujoco.mj_resetData(self.model, self.data)
        # integrating by zero normalises quaternions
        self.data.qpos[: tree.nq] = tree.integrate(tree.home, np.zeros(tree.nv))
        for puller in self.pullers:
            puller.put()
        if state is not None:
            mujoco.mj_setState(self.model, self.data, state.physics, SAVED)
            self.data.time = 0.0
        self._remember()
        self._pushes.clear()
        self._met = None
        self._step = 0
        self._stopped = None
        mujoco.mj_step1(self.model, self.data)
        for puller in self.pullers:
            puller.refresh()
        if np.count_nonzero(self.warnings):
            self._stop()
        for puller in self.pullers:
            puller.begin()
        if state is not None:
            for puller, values in zip(self.pullers, state.actuators, strict=True):
                puller.restore(values)

    def step(self) -> None:
        """Advance by one time step with what the robots were told last.

        Raises:
            SimulationStoppedError: The physics diverged in this step or in an earlier one. The
                state is the last good one.
        """
        self.check_running()
        model, data = self.model, self.data
        self._remember()
        if self._pushes:
            data.xfrc_applied[[push.body for push in self._pushes]] = 0.0
            self._pushes = [push for push in self._pushes if push.steps > 0]
        for puller in self.pullers:
            if puller.others.size:
                data.xfrc_applied[puller.others] = 0.0
        for puller in self.pullers:
            puller.pull()
        for puller in self.pullers:
            if puller.others.size:
                puller.pull_others()
        if self._pushes:
            self._apply_pushes()
        # MuJoCo warns instead of failing; asked twice, so that the cause is found, not what
        # follows from it
        self._step2(model, data)
        self._end_step()

    def advance(self, count: int, rows: Array | None = None) -> int:
        """Advance by some steps with what the robots were told last, natively where that can be.

        Args:
            count: At least 1.
            rows: Takes what all steps but the last led to, where it is that of one robot alone;
                see `Simulator.row_size`.

        Returns:
            How many steps were taken, at least 1: fewer where one has something else to do.

        Raises:
            SimulationStoppedError: As `step`.
        """
        native = self.native_steps(count)
        if native is None:
            self.step()
            return 1
        return self.end_steps(native.advance(count, rows), count)

    def native_steps(self, count: int) -> SeveralSteps | None:
        """Return what begins that many steps natively; None if they have something else to do.

        Raises:
            SimulationStoppedError: As `step`.
        """
        if count == 1 or len(self.pullers) != 1 or self._pushes:
            return None
        native = self.pullers[0].native_steps()
        if native is not None:
            self.check_running()
        return native

    def end_steps(self, begun: int, count: int, *, whole: bool = False) -> int:
        """Do what follows after some of ``count`` steps were begun natively.

        Args:
            begun: How many.
            count: How many were asked for.
            whole: Whether the last of ``count`` was done to its end; its contacts are not known.

        Returns:
            How many steps were taken.

        Raises:
            SimulationStoppedError: As `step`.
        """
        if np.count_nonzero(self.warnings):
            self._step += begun - 1
            self._stop()
        if begun < count:
            # the steps before are whole; the next one has something to tell
            self._step += begun
            self._met, self.touched = None, self.data.ncon > 0
            for puller in self.pullers:
                puller.finish()
                puller.refresh()
            self.step()
            return begun + 1
        if whole:
            self._step += count
            self._met, self.touched = None, False
            for puller in self.pullers:
                puller.finish()
                puller.refresh()
            return count
        self._step += count - 1
        self._end_step()
        return count

    def _end_step(self) -> None:
        """Do what follows the forces of a step: contacts, then kinematics of the new state."""
        model, data = self.model, self.data
        if np.count_nonzero(self.warnings):
            self._stop()
        met = _Met(model, data, direct=self._direct) if data.ncon > 0 else None
        self.touched = met is not None or self._met is not None
        # for whoever reads it and for the next wrench
        mujoco.mj_step1(model, data)
        if np.count_nonzero(self.warnings):
            self._stop()
        self._met = met
        self._step += 1
        for puller in self.pullers:
            puller.finish()
            puller.refresh()

    def _remember(self) -> None:
        q, qd = self.last
        q[:] = self._qpos
        qd[:] = self._qvel

    def check_running(self) -> None:
        """Raise the `SimulationStoppedError` that stopped the world, if one did."""
        if self._stopped is not None:
            raise self._stopped

    # Bodies -----------------------------------------------------------------------------------

    def pose(self, body: str) -> Pose:
        """Return the pose of a link in the world.

        Args:
            body: ``model::link`` or ``model``.

        Raises:
            UnknownNameError: No such model or link.
            CardsError: The link has neither mass nor shape, and no body of its own.
        """
        index = self._body(body)
        rotation = self.data.xmat[index].reshape(3, 3)
        return Pose(rotation.copy(), self.data.xpos[index].copy())

    def velocity(self, body: str) -> Array:
        """Return the velocity of a link's origin and its angular velocity.

        Args:
            body: As in `pose`, with the same errors.

        Returns:
            In world axes, shape (6,), [m/s] and [rad/s].
        """
        found = np.zeros(6)
        mujoco.mj_objectVelocity(
            self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, self._body(body), found, 0
        )
        return np.concatenate([found[3:], found[:3]])

    def object_poses(self) -> dict[str, Pose]:
        """Return the poses of all links of the models that are no robots, by ``model::link``."""
        return {
            name: self.pose(name)
            for model in self.world.objects
            for name in map(model.prefixed, (link.name for link in model.robot.links))
            if name not in self._merged
        }

    def energy(self) -> tuple[float, float]:
        """Return kinetic and potential energy now, [J]; the zero of the latter is MuJoCo's."""
        mujoco.mj_energyPos(self.model, self.data)
        mujoco.mj_energyVel(self.model, self.data)
        potential, kinetic = self.data.energy
        return float(kinetic), float(potential)

    # Contacts and wrenches --------------------------------------------------------------------

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The contacts of the step that led here, with their forces in it."""
        return () if self._met is None else self._met.contacts

    def contact_force(self, body: str) -> Array:
        """Return the sum of contact forces on a link in the step that led here.

        Args:
            body: As in `pose`, with the same errors.

        Returns:
            In world axes, shape (3,), [N].
        """
        force: Array = self.body_forces[self._body(body)].copy()
        return force

    @property
    def body_forces(self) -> Array:
        """Sums of contact forces on MuJoCo's bodies, shape (nbody, 3), [N]; not to be changed."""
        return self._no_forces if self._met is None else self._met.body_forces

    def apply_wrench(
        self,
        body: str,
        force: Array | Sequence[float],
        torque: Array | Sequence[float] = (0.0, 0.0, 0.0),
        *,
        duration: float,
        point: Array | Sequence[float] | None = None,
    ) -> None:
        """Push a link from outside, from the next step on, in place of what pushed it before.

        Args:
            body: ``model::link`` or ``model``.
            force: In world axes, [N].
            torque: In world axes, [Nm].
            duration: > 0, [s], rounded to time steps, at least one.
            point: Where the force acts, in link coordinates, [m]; moves with the link. The
                centre of mass if `None`.

        Raises:
            UnknownNameError: No such model or link.
            CardsError: The link is massless and has no body of its own.
            ShapeError: A value is not a finite vector of three numbers, or the duration is not a
                finite time above zero. The last push goes on.
        """
        index = self._body(body)
        finite_number(duration, "duration of a push in s", above=0.0, error=ShapeError)
        com = self.model.body_ipos[index]
        lever = np.zeros(3) if point is None else finite_array(point, "point", (3,)) - com
        steps = max(1, round(duration / self.dt))
        vectors = finite_array(force, "force", (3,)), finite_array(torque, "torque", (3,))
        push = _Push(index, *vectors, lever, steps)
        self._pushes = [*(other for other in self._pushes if other.body != index), push]

    # Grasps -----------------------------------------------------------------------------------

    @property
    def grasped(self) -> tuple[tuple[str, str], ...]:
        """The pairs of links, of a robot and of an object, that are welded together now."""
        active = self.data.eq_active
        return tuple(pair for pair, index in self._grasps.items() if active[index])

    def grasp(self, link: str, body: str) -> None:
        """Weld an object to a link of a robot as they are now, wherever they are.

        Whether the hand is near enough is the caller's business. The weld holds until `release`
        or `reset`, with the stiffness of the joints between models; contacts between the two stay.

        Args:
            link: Of a robot, ``model::link``.
            body: Of an object, ``model::link`` or ``model``.

        Raises:
            UnknownNameError: No such link, or one of these two does not move.
            CardsError: The two are welded together already.
        """
        pair, index = self._pair(link, body)
        if self.data.eq_active[index]:
            raise CardsError(f"'{pair[0]}' holds '{pair[1]}' already (expected: release it first)")
        relative = self.pose(pair[0]).inverse() @ self.pose(pair[1])
        # anchor in the object, its place in the link, relative rotation; see mjModel.eq_data
        weld = self.model.eq_data[index]
        weld[:3] = 0.0
        weld[3:6] = relative.translation
        weld[6:10] = matrix_quaternion(relative.rotation)
        self.data.eq_active[index] = 1

    def release(self, link: str, body: str) -> None:
        """Undo a grasp; arguments as of `grasp`.

        Raises:
            UnknownNameError: As `grasp`.
            CardsError: The two are not welded together.
        """
        pair, index = self._pair(link, body)
        if not self.data.eq_active[index]:
            held = ", ".join(GRASP.join(item) for item in self.grasped) or "nothing is held"
            raise CardsError(f"'{pair[0]}' does not hold '{pair[1]}' (held: {held})")
        self.data.eq_active[index] = 0

    def hold(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Grasp these pairs, as they are now, and release all others; all or nothing.

        Args:
            pairs: Links of robots and bodies, as of `grasp`; those that are held already stay so.

        Raises:
            UnknownNameError: As `grasp`.
        """
        wanted = dict.fromkeys(self._pair(link, body)[0] for link, body in pairs)
        held = self.grasped
        for pair in held:
            if pair not in wanted:
                self.release(*pair)
        for pair in wanted:
            if pair not in held:
                self.grasp(*pair)

    def _pair(self, link: str, body: str) -> tuple[tuple[str, str], int]:
        pair = (self._full_name(link), self._full_name(body))
        hands = dict.fromkeys(hand for hand, _ in self._grasps)
        check_choice(pair[0], "link of a robot that can grasp", hands)
        if pair not in self._grasps:
            things = dict.fromkeys(thing for _, thing in self._grasps)
            raise UnknownNameError("body that can be grasped", pair[1], things)
        return pair, self._grasps[pair]

    # Inside -----------------------------------------------------------------------------------

    def _full_name(self, body: str) -> str:
        """Return ``model::link`` for a body, for a model alone that of its first link."""
        links: list[str] = []
        for model in self.world.models:
            names = [model.prefixed(link.name) for link in model.robot.links]
            if body in names:
                return body
            if body == model.name:
                return names[0]
            links += names
        raise UnknownNameError("body", body, links)

    def _body(self, body: str) -> int:
        name = self._full_name(body)
        if name in self._merged:
            raise CardsError(
                f"link '{name}' has no mass and no body of its own (expected: the link it carries)"
            )
        return int(self.model.body(name).id)

    def _apply_pushes(self) -> None:
        for push in self._pushes:
            arm = self.data.xmat[push.body].reshape(3, 3) @ push.lever
            applied = self.data.xfrc_applied[push.body]
            applied[:3] += push.force
            applied[3:] += push.torque + np.cross(arm, push.force)
            push.steps -= 1

    def _stop(self) -> None:
        """Find out what went wrong, go back to the state before the step, and raise."""
        kind = int(np.argmax(self.warnings > 0))
        index = int(self.data.warning[kind].lastinfo)
        joint = body = None
        if kind == _W.mjWARN_BADQPOS:
            joint, body = joint_of_coordinate(self.model, index)
        elif kind in (_W.mjWARN_BADQVEL, _W.mjWARN_BADQACC, _W.mjWARN_INERTIA):
            joint, body = joint_of_velocity(self.model, index)
        self._stopped = SimulationStoppedError(
            _PROBLEMS[_W(kind)], step=self._step + 1, time=self.time, joint=joint, body=body
        )
        self.data.qpos[:], self.data.qvel[:] = self.last
        for puller in self.pullers:
            puller.undo()
        self.data.xfrc_applied[:] = 0.0
        self.data.qfrc_applied[:] = 0.0
        mujoco.mj_step1(self.model, self.data)
        for puller in self.pullers:
            puller.refresh()
        raise self._stopped
