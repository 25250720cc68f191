"""The muscles of one robot in Gazebo: motion of its links in, wrenches on its links out.

Joint motors, where the robot has any, are driven beside the muscles.

No ROS and no Gazebo here: `node` puts topics around `GazeboHost`, `gazebo` provides the ports.

One step from t to t + dt: `read` has the state at t, `step` applies the wrenches of the muscles,
the simulator moves the links, `read` takes the state at t + dt.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError, UnknownNameError
from cards_core.loop.host import Host
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.elements import WORLD, Joint
from cards_core.robot.free_joints import FreeJoints
from cards_core.robot.joint_coordinates import joint_position, joint_slices, joint_velocity
from cards_core.robot.motors import motors_of
from cards_core.robot.state import RobotState
from cards_core.spatial import quaternion_log
from cards_core.stamps import seconds
from cards_core.typing import Array
from cards_muscle_plugin.hosted_robot import HostedRobot
from cards_muscle_plugin.ports import (
    KNOWN,
    Bodies,
    JointPort,
    LinkPort,
    MeasuredJoint,
    ModelPort,
)
from cards_muscle_plugin.surroundings import Surroundings

DEFAULT_DT = 1_000_000
"""Time step until the simulator says another, [ns]."""

HUGE = 1e6
"""Coordinates and velocities beyond this mean that the physics diverged, [rad, m, rad/s, m/s].
Said before they are NaN: DART, as Debian builds it, ends the whole simulator there."""


class GazeboHost(Host):
    """A robot that is pulled by muscles.

    Args:
        hosted: The robot.
        model: Its model in the simulator.
        command_timeout: Time without a valid command after which tensions decay, [s].
        decay_time: How long they take to decay to the minimum, [s].
        initial_positions: Joint coordinates at time zero, shape (nq,); home if None. A free
            link's part of it is not used: the simulator places models.
        log_path: ``.npz`` to write with one row per step; none if None.

    Attributes:
        hosted: The robot.
        muscles: Paths and actuator models.
        motors: Joints with a motor of their own.
        q, qd: Joint coordinates and velocities, shape (nq,) and (nv,).
        tensions: Applied in the step that led here, shape (m,), [N].
        efforts: Of the motors in that step, shape (k,), [Nm] or [N].
        known: Whether the state has been read; False at the start and after a reset.

    Raises:
        CardsError: The muscles cannot be made; the message says why.
        OSError: The log cannot be written there.
    """

    def __init__(
        self,
        hosted: HostedRobot,
        model: ModelPort,
        *,
        command_timeout: float,
        decay_time: float = 0.0,
        initial_positions: Array | None = None,
        log_path: Path | None = None,
    ) -> None:
        self.hosted = hosted
        robot, tree = hosted.robot, hosted.tree
        self._dt = DEFAULT_DT
        self.muscles = self._make_muscles(seconds(self._dt))
        super().__init__(
            robot,
            self.muscles.state_names,
            command_timeout=command_timeout,
            decay_time=decay_time,
            log_path=log_path,
        )
        self._model = model
        self._start = tree.home if initial_positions is None else tree.check_q(initial_positions)
        self._slices = joint_slices(tree)
        self.motors = motors_of(tree)
        count, m = len(robot.links), len(robot.muscles)
        self._row = {link.name: index for index, link in enumerate(robot.links)} | {WORLD: count}
        # the last row is the world
        self._all_poses = np.tile(np.eye(4), (count + 1, 1, 1))
        self._all_twists = np.zeros((count + 1, 6))
        self._poses, self._twists = self._all_poses[:-1], self._all_twists[:-1]
        self.q = np.array(tree.home)
        self.qd = np.zeros(tree.nv)
        self.tensions = np.zeros(m)
        self.efforts = np.zeros(len(self.motors))
        self._stamp = 0
        self._state: RobotState | None = None
        self.known = False
        self._rested = False
        self._fixed: list[tuple[int, LinkPort]] = []
        self._bodies: Bodies | None = None
        self._near: list[tuple[str, LinkPort]] = []
        self._near_bodies: Bodies | None = None
        self._driven: list[tuple[slice, JointPort]] = []
        self._computed: list[Joint] = []
        self._take_joints([])

    def _make_muscles(self, dt: float) -> MuscleSystem:
        around = self.hosted.surroundings or Surroundings()
        near = [link for _, link in around.moving]
        return MuscleSystem(
            self.hosted.muscle_robot, dt, surroundings=around.fixed, neighbours=near
        )

    # Start and end ----------------------------------------------------------------------------

    def start(self) -> None:
        """Look up links and joints, have them measured, and put the joints to the start.

        Called before the first step and after every reset of the simulator, which forgets what
        was asked to be measured.

        Raises:
            UnknownNameError: A link or joint of the robot is not in the simulator.
            CardsError: A link of another model that its cables may touch is not there.
        """
        robot = self.hosted.robot
        touched = self._touched_links()
        self._computed = [] if self._model.static else self._joints_from_poses()
        needed = touched | {link for joint in self._computed for link in _ends(joint)}
        self._take_joints(self._computed)
        self._fixed, moved, pulled = [], [], []
        for link in robot.links:
            if link.name in needed:
                moving = link.name in self.hosted.moving
                port = self._model.link(link.name, moving=moving)
                if port is None:
                    raise UnknownNameError(
                        "link in the simulator", link.name, self._model.link_names()
                    )
                row = self._row[link.name]
                if not moving:
                    self._fixed.append((row, port))
                    continue
                moved.append((port, self._all_poses[row], self._all_twists[row]))
                if link.name in touched:
                    pulled.append((row, port))
        self._near = self._neighbours()
        self._join_neighbours()
        measured: list[MeasuredJoint] = []
        self._driven = []
        computed = {joint.name for joint in self._computed}
        for joint in robot.joints:
            if joint.name in self._slices and not self._model.static:
                axes = self._model.joint(joint.name) if joint.kind != "free" else None
                if axes is not None and joint.name not in computed:
                    positions, velocities = self._slices[joint.name]
                    measured.append((axes, self.q[positions], self.qd[velocities]))
                elif axes is None and joint.kind != "free":
                    known = (info.name for info in self._model.joints())
                    raise UnknownNameError("joint in the simulator", joint.name, known)
                if axes is not None and joint.motor:
                    rows = self._slices[joint.name][1]
                    first = int(np.searchsorted(self.motors.rows, rows.start))
                    part = slice(first, first + rows.stop - rows.start)
                    self._driven.append((part, axes))
        self._bodies = self._model.bodies(moved, measured, pulled)
        self.put_to_start()

    def put_to_start(self) -> None:
        """Put the joints to the initial positions, at rest; `read` has them after the next step.

        A paused simulator does it as well.
        """
        self.known = self._rested = False
        if self._model.static:
            return
        for joint in self.hosted.robot.joints:
            if joint.kind == "free" or joint.name not in self._slices:
                continue
            port = self._model.joint(joint.name)
            if port is not None:
                values = self._start[self._slices[joint.name][0]]
                # as a rotation vector, which is how the physics engine has a ball joint
                port.put((quaternion_log(values) if joint.kind == "ball" else values).tolist())

    def reset(self) -> None:
        """Forget all commands and actuator states, release the emergency stop; then `start`."""
        super().reset()
        self.tensions[:] = self.efforts[:] = 0.0
        self._stamp, self._state = 0, None
        self.start()

    def _touched_links(self) -> set[str]:
        """Links that a muscle is attached to, wraps over or may touch."""
        engine = self.muscles.engine
        names = [link.name for link in self.hosted.robot.links]
        rows = engine.layout.point_frame.tolist()
        if engine.contacts is not None:
            rows += [shape.link for shape in engine.contacts.shapes]
        return {names[index] for index in rows if index < len(names)}

    def _neighbours(self) -> list[tuple[str, LinkPort]]:
        """Links of other models that the cables may touch, in the order of the engine."""
        found = []
        around = self.hosted.surroundings or Surroundings()
        for model, link in around.moving:
            name = f"{model}::{link.name}"
            port = self._model.neighbour(model, link.name)
            if port is None:
                raise CardsError(self._gone(name))
            found.append((name, port))
        return found

    def _join_neighbours(self) -> None:
        """Have the neighbours read into the engine there is now."""
        engine = self.muscles.engine
        places = zip(engine.neighbour_poses, engine.neighbour_twists, strict=True)
        ports = (port for _, port in self._near)
        links = [(port, *place) for port, place in zip(ports, places, strict=True)]
        self._near_bodies = self._model.bodies(links, [], []) if links else None

    def _gone(self, name: str) -> str:
        return (
            f"'{name}', which cables of '{'::'.join(self._model.path)}' may touch, is not in the "
            "world (expected: every model of the world's file, as long as Gazebo runs)"
        )

    def _joints_from_poses(self) -> list[Joint]:
        """Joints whose coordinates the simulator does not tell as we have them."""
        return [joint for joint in self.hosted.robot.joints if joint.kind in ("ball", "free")]

    def _take_joints(self, joints: list[Joint]) -> None:
        """Divide the joints that are computed into free bodies, taken at once, and others."""
        free = [joint for joint in joints if FreeJoints.fits(joint)]
        self._single = [joint for joint in joints if not FreeJoints.fits(joint)]
        self._free = FreeJoints(free)
        slices = [self._slices[joint.name] for joint in free]
        self._free_rows = np.array([self._row[joint.child] for joint in free], dtype=int)
        self._free_q = _indices([positions for positions, _ in slices], 7)
        self._free_qd = _indices([velocities for _, velocities in slices], 6)

    # Steps ------------------------------------------------------------------------------------

    def read(self, stamp: int) -> bool:
        """Take over the state of the simulator.

        Args:
            stamp: Its time, [ns].

        Returns:
            Whether the state is known; a simulator may need a step before it is.

        Raises:
            CardsError: The state is not finite or huge: the physics diverged.
        """
        if not self.known:
            for row, link in self._fixed:
                if not link.read_pose(self._all_poses[row]):
                    return False
        if self._bodies is None or self._bodies.read() != KNOWN:
            return False
        if not self._read_neighbours():
            return False
        if self._free_rows.size:
            rows = self._free_rows
            self.q[self._free_q], self.qd[self._free_qd] = self._free.coordinates(
                self._all_poses[rows], self._all_twists[rows]
            )
        for joint in self._single:
            ends = [self._row[link] for link in _ends(joint)]
            poses, twists = self._all_poses[ends], self._all_twists[ends]
            positions, velocities = self._slices[joint.name]
            self.q[positions] = joint_position(joint, *poses)
            self.qd[velocities] = joint_velocity(joint, *poses, *twists)
        if not self.q.dot(self.q) + self.qd.dot(self.qd) < HUGE * HUGE:
            raise CardsError(self._nowhere())
        self._stamp, self._state = stamp, None
        self.known = True
        if not self._rested:
            self.muscles.reset(self._poses)
            self._rested = True
        return True

    def _read_neighbours(self) -> bool:
        if self._near_bodies is None:
            return True
        unknown = self._near_bodies.read()
        if unknown != KNOWN:
            if self.known:
                raise CardsError(self._gone(self._near[unknown][0]))
            return False
        engine = self.muscles.engine
        for i, (name, _) in enumerate(self._near):
            pose, twist = engine.neighbour_poses[i], engine.neighbour_twists[i]
            if not np.abs(pose).max() + np.abs(twist).max() < HUGE:
                raise CardsError(f"no sensible state of '{name}': the physics diverged")
        return True

    @property
    def stamp(self) -> int:
        """Time of the present state, [ns]."""
        return self._stamp

    @property
    def _present(self) -> RobotState:
        if self._state is None:
            lengths, rates = self.muscles.engine.motion(self._poses, self._twists)
            self._state = RobotState(
                seconds(self._stamp),
                self.q.copy(),
                self.qd.copy(),
                muscle_lengths=lengths.copy(),
                muscle_rates=rates.copy(),
                tensions=self.tensions.copy(),
                efforts=self.efforts.copy(),
                actuators=self.muscles.state_values.copy(),
                temperatures=self.muscles.temperatures,
            )
        return self._state

    def step(self, dt: int) -> None:
        """Apply the wrenches of the muscles and the efforts of the motors for the coming step.

        Args:
            dt: Length of the step, [ns].

        Raises:
            CardsError: The muscles give no finite force.
        """
        if dt != self._dt:
            self._change_step(dt)
        m = self.tensions.size
        values, kinds = self.gate.values(seconds(self.stamp)), self.gate.kinds
        muscles = self.muscles.step(
            self._poses,
            self._twists,
            (self.q, self.qd),
            values[:m],
            kinds[:m],
            impedance=self.gate.impedance,
        )
        self.tensions[:] = muscles.tensions
        self.efforts[:] = values[m:]
        wrenches, others = muscles.wrenches, self.muscles.engine.neighbour_wrenches
        if not math.isfinite(wrenches.sum() + others.sum()):
            raise CardsError(self._no_force(wrenches, others))
        assert self._bodies is not None  # `read` has been there
        self._bodies.pull(wrenches)
        for (_, link), wrench in zip(self._near, others.tolist(), strict=True):
            if any(wrench):
                link.add_wrench(wrench)
        for part, joint in self._driven:
            joint.drive(self.efforts[part].tolist())

    @property
    def dt(self) -> float:
        """Time step, [s]."""
        return seconds(self._dt)

    def _change_step(self, dt: int) -> None:
        """Make the actuator models for another time step; their states start at rest."""
        self._dt = dt
        before = self.muscles.engine
        self.muscles = self._make_muscles(seconds(dt))
        self.muscles.engine.neighbour_poses[:] = before.neighbour_poses
        self.muscles.engine.neighbour_twists[:] = before.neighbour_twists
        self._join_neighbours()
        self.muscles.reset(self._poses)

    def _nowhere(self) -> str:
        tree = self.hosted.tree
        bad = [n for n, x in zip(tree.position_names, self.q, strict=True) if not abs(x) < HUGE]
        bad += [n for n, x in zip(tree.velocity_names, self.qd, strict=True) if not abs(x) < HUGE]
        return (
            f"no sensible state of {', '.join(dict.fromkeys(bad)) or 'the joints'}: the physics "
            "diverged; reset the world, and use a smaller time step, more inertia or smaller "
            "tensions"
        )

    def _no_force(self, wrenches: Array, others: Array) -> str:
        robot = self.hosted.robot
        bad = [m.name for m, f in zip(robot.muscles, self.tensions, strict=True) if not _finite(f)]
        if not bad:
            names = [*(link.name for link in robot.links), *(name for name, _ in self._near)]
            links = zip(names, [*wrenches, *others], strict=True)
            bad = [f"on link {name}" for name, wrench in links if not _finite(wrench)]
        return (
            f"no finite force of {', '.join(bad)} at t = {seconds(self.stamp):g} s (expected: a "
            "path whose neighbouring points stay apart, and links that move at finite speed)"
        )


def _ends(joint: Joint) -> tuple[str, str]:
    return joint.parent, joint.child


def _indices(slices: list[slice], width: int) -> Array:
    """Return where rows of a table go in a vector, shape (n, width)."""
    first = np.array([part.start for part in slices], dtype=int)
    return np.asarray(first[:, None] + np.arange(width))


def _finite(values: Array | float) -> bool:
    return bool(np.all(np.isfinite(values)))
