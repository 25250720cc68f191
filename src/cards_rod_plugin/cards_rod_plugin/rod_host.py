"""Hosts a robot of rods in a simulator: moves or pulls the plate, moves the base joints.

No ROS and no Gazebo here: `node` puts topics around `RodHost`, the ports are the simulator's.

=========== ====================================================================================
kinematic   the plate is put, by its velocity, where the simulation has its equilibrium: as slow as
            the commands, blind to what it meets on the way
dynamic     the plate is a body of the simulator, with its mass, contacts and loads; the rods pull
            it with the wrench of `PlateCoupling`; commands move the base joints
=========== ====================================================================================

The bodies between rods and plate (hinges, sliders and balls that turn with the rods' ends) weigh
little and nothing depends on where they stand; they are moved to be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cards_core.errors import CardsError, UnknownNameError
from cards_core.rods.robots.robot import BaseKind, RodRobot, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.spatial import rotation_log
from cards_core.typing import Array, Vector3
from cards_muscle_plugin.ports import KNOWN, Bodies, JointPort
from cards_rod_plugin.hosted_rods import HostedRods
from cards_rod_plugin.plate_coupling import CoupledRodSimulation, PlateCoupling
from cards_rod_plugin.ports import PlatePort, RodModelPort

KINDS = (TipKind.REVOLUTE, TipKind.PRISMATIC, TipKind.SPHERICAL)
"""Joints that are moved; bodies at others stay as the physics has them."""

_ALONG = 1e-3  # of a unit vector: a tangent so near the axis shows no angle


class TipJoints:
    """Moves the plate's joints to where the rods' ends are.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: RodRobot) -> None:
        self._limbs = robot.limbs
        self._ports: list[tuple[int, JointPort]] = []

    def start(self, model: RodModelPort) -> None:
        """Look up the joints; those that the simulator does not have are left out."""
        self._ports = []
        for i, limb in enumerate(self._limbs):
            if limb.tip.joint and limb.tip.kind in KINDS:
                port = model.joint(limb.tip.joint)
                if port is not None:
                    self._ports.append((i, port))

    def put(self, pose: Array, lines: Array) -> None:
        """Move them.

        Args:
            pose: Of the plate, shape (4, 4).
            lines: Centre lines, shape (n, points, 3), in the same axes, [m].
        """
        for i, port in self._ports:
            tip, line = self._limbs[i].tip, lines[i]
            joint = pose @ tip.joint_pose
            turn = joint[:3, :3]
            tangent = 3.0 * line[-1] - 4.0 * line[-2] + line[-3]
            tangent = turn.T @ (tangent / max(float(np.linalg.norm(tangent)), 1e-12))
            place = turn.T @ (line[-1] - joint[:3, 3])
            port.put(coordinates(tip.kind, tip.attach, place, tangent))


def coordinates(kind: TipKind, attach: Array, place: Vector3, tangent: Vector3) -> list[float]:
    """Return the coordinates of a joint of `KINDS`, of a ball joint as a rotation vector.

    What turns about the tangent itself cannot be seen in a centre line and is left out.

    Args:
        kind: Of the joint.
        attach: Rod tip in the joint frame at zero, shape (4, 4).
        place: Of the rod's end in the joint frame, shape (3,), [m].
        tangent: Unit vector of the rod at its end in the joint frame, shape (3,).
    """
    rest = attach[:3, 2]
    if kind is TipKind.PRISMATIC:
        return [float(place[2] - attach[2, 3])]
    if kind is TipKind.REVOLUTE:
        cross = float(rest[0] * tangent[1] - rest[1] * tangent[0])
        dot = float(rest[:2] @ tangent[:2])
        return [math.atan2(cross, dot) if math.hypot(cross, dot) > _ALONG else 0.0]
    axis = np.cross(rest, tangent)
    sine, cosine = float(np.linalg.norm(axis)), float(rest @ tangent)
    if sine < 1e-9:
        return [0.0, 0.0, 0.0]
    return list((math.atan2(sine, cosine) / sine * axis).tolist())


Coupling = Literal["kinematic", "dynamic"]
BaseJoints = Literal["commands", "world"]

HUGE = 1e6
"""Positions and velocities beyond this mean that the physics diverged, [m, m/s, rad/s]."""


@dataclass(frozen=True)
class HostOptions:
    """How rods and world act on each other.

    Attributes:
        coupling: See the module.
        base_joints: Who moves the base joints that the world has: the ``commands``, or the
            ``world``, from which they are then read. Lengths of rods are always commanded.
        joint_speed: Fastest motion of a commanded joint with dynamic coupling, [m/s] or [rad/s].
        theta: Of `PlateCoupling`.
    """

    coupling: Coupling = "kinematic"
    base_joints: BaseJoints = "commands"
    joint_speed: float = 0.5
    theta: float = 0.55


class RodHost:
    """Moves or pulls the plate of one robot in the simulator.

    Args:
        hosted: The robot.
        simulation: The robot under command.
        model: Its model in the simulator.
        options: How.

    Attributes:
        lag: Distance of the plate from where it was put, [m]; kinematic. Contacts make it grow.
        q: Joint coordinates that act on the rods, shape (n,).

    Raises:
        CardsError: The coupling does not suit the robot.
    """

    def __init__(
        self,
        hosted: HostedRods,
        simulation: CoupledRodSimulation,
        model: RodModelPort,
        options: HostOptions | None = None,
    ) -> None:
        self.hosted, self.simulation = hosted, simulation
        self.options = options or HostOptions()
        robot = hosted.robot
        self._model = model
        self._base = hosted.base
        self._turn = hosted.base[:3, :3]
        self._plate: PlatePort | None = None
        self._bodies: Bodies | None = None
        self._joints: list[tuple[int, JointPort]] = []
        self._tips = TipJoints(robot)
        self._pose, self._twist = np.eye(4), np.zeros(6)
        self._goal: Array | None = None
        self.lag = 0.0
        self.q = np.array(simulation.reference.q)
        self._coupling: PlateCoupling | None = None
        if self.options.coupling == "dynamic":
            solver = RodRobotSolver(robot)
            self._coupling = PlateCoupling(robot, solver, theta=self.options.theta)
        if self.options.base_joints == "world" and not self._world_joints():
            raise CardsError(
                f"base_joints is 'world', but {robot.name} has no base joint in the world: its "
                "rods change their lengths (expected: commands)"
            )

    def _world_joints(self) -> list[tuple[int, str]]:
        """Return index and name of the base joints that the world has."""
        movable = (BaseKind.PRISMATIC, BaseKind.REVOLUTE)
        limbs = enumerate(self.hosted.robot.limbs)
        return [(i, limb.base.joint) for i, limb in limbs if limb.base.kind in movable]

    # Start ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Look up plate and joints; before the first step and after every reset.

        Raises:
            UnknownNameError: The simulator does not have one of them.
        """
        robot = self.hosted.robot
        self._plate = self._model.link(robot.plate.link, moving=True)
        if self._plate is None:
            raise UnknownNameError(
                "link in the simulator", robot.plate.link, self._model.link_names()
            )
        plate = (self._plate, self._pose, self._twist)
        self._bodies = self._model.bodies([plate], [], [(0, self._plate)])
        self._joints = []
        for i, name in self._world_joints():
            joint = self._model.joint(name)
            if joint is None:
                raise UnknownNameError("joint in the simulator", name, ())
            self._joints.append((i, joint))
        self._tips.start(self._model)
        self._goal, self.lag = None, 0.0
        self.q = np.array(self.simulation.reference.q)
        if self._coupling is not None:
            self._coupling.start(self.simulation.reference)
        self.simulation.show(None)

    # Steps ------------------------------------------------------------------------------------

    def step(self, now: float, dt: float, patience: float = math.inf) -> None:
        """Act on the step that begins.

        Args:
            now: Time, [s].
            dt: Length of the step, [s].
            patience: As of `RodSimulation.step`, [s].

        Raises:
            CardsError: The state of the world makes no sense, or the rods cannot follow it.
        """
        plate, bodies = self._plate, self._bodies
        if plate is None or bodies is None or bodies.read() != KNOWN:
            return  # a simulator may need a step before it knows
        if self._coupling is None:
            self.simulation.step(now, patience)
            self._put(plate, dt)
        else:
            self._pull(bodies, self._coupling, now, dt, patience)

    def _put(self, plate: PlatePort, dt: float) -> None:
        """Give the plate the velocity that brings it to the equilibrium in one step."""
        solution = self.simulation.reference
        now, wanted = self._pose, self._base @ solution.pose
        if self._goal is not None:
            self.lag = math.dist(self._goal[:3, 3].tolist(), now[:3, 3].tolist())
        self._goal = wanted
        if not math.isfinite(now.sum()):
            raise CardsError(self._nowhere())
        turn = now[:3, :3]
        # the physics adds gravity to the velocity before it moves the plate
        speed = (wanted[:3, 3] - now[:3, 3]) / dt - dt * self.hosted.gravity
        spin = rotation_log(turn.T @ wanted[:3, :3]) / dt
        plate.move([*(turn.T @ speed).tolist(), *spin.tolist()])
        self._put_joints(solution.q)

    def _pull(
        self, plate: Bodies, rods: PlateCoupling, now: float, dt: float, patience: float
    ) -> None:
        """Apply the rods' wrench, and the load, to the plate."""
        twist = self._twist
        if not self._pose[:3, 3] @ self._pose[:3, 3] + twist @ twist < HUGE * HUGE:
            raise CardsError(self._nowhere())
        turn = self._turn
        pose = np.eye(4)
        pose[:3, :3] = turn.T @ self._pose[:3, :3]
        pose[:3, 3] = turn.T @ (self._pose[:3, 3] - self._base[:3, 3])
        inner = np.concatenate([turn.T @ twist[:3], turn.T @ twist[3:]])
        simulation = self.simulation
        self._read_joints()
        simulation.step(now, patience)
        rods.follow(pose, inner)
        self.q = self._next_q(dt)
        wrench, step = rods.wrench(dt, self.q, simulation.world_wrench)
        if not math.isfinite(wrench.sum()):
            raise CardsError(f"no finite wrench of the rods at t = {now:g} s")
        simulation.show(step)
        plate.pull((turn @ wrench.reshape(2, 3, 1)).reshape(1, 6))
        self._put_joints(self.q)

    def _next_q(self, dt: float) -> Array:
        reach = self.options.joint_speed * dt
        wanted = self.q + np.clip(self.simulation.reference.q - self.q, -reach, reach)
        if self.options.base_joints == "world":
            places = [i for i, _ in self._joints]
            wanted[places] = self.q[places]
        return wanted

    def _put_joints(self, q: Array) -> None:
        if self.options.base_joints == "commands":
            for i, joint in self._joints:
                joint.put([float(q[i])])

    def _read_joints(self) -> None:
        if self.options.base_joints == "world":
            for i, joint in self._joints:
                if (found := joint.read()) is not None:
                    self.q[i] = found[0][0]

    def draw(self, lines: Array) -> None:
        """Turn the bodies between rods and plate with the rods' ends.

        Args:
            lines: Centre lines in the model's axes, shape (n, points, 3), [m].
        """
        self._tips.put(self.simulation.state.pose, lines)

    def _nowhere(self) -> str:
        return (
            f"no sensible state of plate '{self.hosted.robot.plate.link}': the physics diverged; "
            "reset the world, and use a smaller time step or less load"
        )
