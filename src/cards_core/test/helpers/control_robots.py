"""Robots with published numbers and an exact plant, for the tests of the controllers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from cards_core.control import ControlModel, ControlStatus
from cards_core.dynamics import make_dynamics
from cards_core.robot.elements import (
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.robot.state import RobotState
from cards_core.spatial import Pose


def at(*xyz: float) -> Pose:
    return Pose(np.eye(3), np.array(xyz, dtype=float))


def straight(name, start, end, low, high):
    """A muscle from (link, point) to (link, point)."""
    path = tuple(ViaPoint(link, np.array(point, dtype=float)) for link, point in (start, end))
    return Muscle(name, path, low, high)


@cache
def planar_2r() -> Robot:
    """CASPR's Example_2R_planar_XZ; cable points there are relative to the centre of mass."""
    com = np.array([0.0, 0.0, 0.5])
    inertia = Inertia(0.1, com, np.diag([0.083333, 0.0, 0.083333]))
    axis = (JointAxis(np.array([0.0, 1.0, 0.0]), -3.1416, 3.1416),)
    joints = (
        Joint("joint_1", "revolute", WORLD, "link_1", axes=axis),
        Joint("joint_2", "revolute", "link_1", "link_2", at(0, 0, 1.0), axes=axis),
    )
    cables = ((0.5, "link_1", 0.1), (1.5, "link_2", 0.1), (-0.5, "link_1", -0.1))
    cables += ((-1.5, "link_2", -0.1),)
    muscles = tuple(
        straight(
            f"cable_{i + 1}", (WORLD, (base, 0, 0)), (link, np.add(com, (x, 0, 0.3))), 10.0, 100.0
        )
        for i, (base, link, x) in enumerate(cables)
    )
    links = (Link("link_1", inertia), Link("link_2", inertia))
    frames = (Frame("tip", "link_2", at(0, 0, 1.0)),)
    return Robot("planar_2r", links, joints, muscles, frames, "tip")


ROBOY_MUSCLES = (
    ("motor0", 0, (0.2889, -0.01069, 0.5763), 3, (0.05492, -0.01783, 0.1084)),
    ("motor1", 0, (0.24, -0.02551, 0.4673), 3, (0.0205, -0.01411, 0.1232)),
    ("motor2", 0, (0.2512, -0.02867, 0.5146), 3, (0.04424, -0.01015, 0.1094)),
    ("motor3", 0, (0.2806, -0.02853, 0.558), 3, (0.04607, -0.01201, 0.1274)),
    ("motor4", 0, (0.3034, 7.361e-16, 0.5961), 3, (0.06348, 0.005441, 0.1036)),
    ("motor5", 0, (0.277, 0.0429, 0.5564), 3, (0.04433, 0.02206, 0.1266)),
    ("motor6", 0, (0.2476, 0.04291, 0.513), 3, (0.04274, 0.01923, 0.1088)),
    ("motor7", 0, (0.2362, 0.05006, 0.4656), 3, (0.01999, 0.02368, 0.1228)),
    ("motor8", 0, (0.2865, 0.02608, 0.5761), 3, (0.05329, 0.02726, 0.1071)),
    ("motor10", 3, (-0.04628, -0.04114, -0.06775), 4, (0.03859, -0.02109, 0.1267)),
    ("motor9", 3, (-0.05341, 0.02757, -0.09094), 4, (0.0406, 0.03544, 0.1295)),
)
"""Name, link, point, link, point; points of moving links are relative to the centre of mass."""


@cache
def roboy_arm() -> Robot:
    """CASPR's RoboyLeftArm."""
    names = (WORLD, "shoulder_link2", "shoulder_link3", "upper_arm", "lower_arm")
    com = ((0, 0, 0), (0, 0, 0), (0, 0, 0), (-0.05912, -0.006673, -0.1688))
    com += ((-0.03277, 0.004782, -0.1547),)
    axes = (
        ((0.05101, -0.9984, 0.02231), 1.2, 1.7, 1.2),
        ((-0.9157, -0.03784, 0.4001), -3.142, 3.142, 0.0),
        ((-0.3986, -0.04084, -0.9162), -0.5, 0.5, 0.0),
        ((0.9171, -0.01288, -0.3984), -1.57, 0.0, -0.5),
    )
    places = ((0.2926, 0.007368, 0.5479), (0, 0, 0), (-0.005238, -0.0005333, -0.01189))
    places += ((-0.1399, -0.01744, -0.277),)
    masses, moments = (0.001, 0.001, 1.0, 1.0), (0.001, 0.001, 0.01, 0.01)
    links = tuple(
        Link(names[i + 1], Inertia(masses[i], np.array(com[i + 1]), moments[i] * np.eye(3)))
        for i in range(4)
    )
    joints = tuple(
        Joint(
            f"joint_{i + 1}",
            "revolute",
            names[i],
            names[i + 1],
            at(*places[i]),
            axes=(JointAxis(np.array(axes[i][0]), axes[i][1], axes[i][2]),),
        )
        for i in range(4)
    )
    muscles = tuple(
        straight(
            name,
            (names[a], np.add(start, com[a])),
            (names[b], np.add(end, com[b])),
            10.0,
            5000.0,
        )
        for name, a, start, b, end in ROBOY_MUSCLES
    )
    frames = (Frame("hand", "lower_arm", at(-0.15492, -0.254225, -0.386772)),)
    home = {f"joint_{i + 1}": (axes[i][3],) for i in range(4)}
    return Robot("roboy_arm", links, joints, muscles, frames, "hand", home=home)


@cache
def bm_arm() -> Robot:
    """CASPR's BMArm; its Euler joint is three revolutes X, Y', Z''."""
    upper = Inertia(
        0.9810187,
        np.array([6.11879e-05, 0.142722, 9.20007e-05]),
        np.array(
            [
                [0.0217208, -7.8453915e-06, -1.3062675e-06],
                [-7.8453915e-06, 2.0494929e-04, -1.1791055e-05],
                [-1.3062675e-06, -1.1791055e-05, 0.0217454],
            ]
        ),
    )
    lower = Inertia(
        0.1313765,
        np.array([1.56661e-07, 0.0801433, -1.28202e-07]),
        np.array(
            [
                [4.9116366e-04, 0.0, 6.5012847e-07],
                [0.0, 1.9877175e-05, 0.0],
                [6.5012847e-07, 0.0, 4.9029819e-04],
            ]
        ),
    )
    links = (Link("a"), Link("b"), Link("upper_arm", upper), Link("lower_arm", lower))
    x, y, z = (JointAxis(unit) for unit in np.eye(3))
    joints = (
        Joint("shoulder_x", "revolute", WORLD, "a", axes=(x,)),
        Joint("shoulder_y", "revolute", "a", "b", axes=(y,)),
        Joint("shoulder_z", "revolute", "b", "upper_arm", axes=(z,)),
        Joint("elbow", "revolute", "upper_arm", "lower_arm", at(0, 0.367, 0), axes=(x,)),
    )
    cables = (
        ((-0.106066, 0.021, -0.106066), "upper_arm", (-0.0248764, 0.2195, 1.8743851e-04)),
        ((-0.106066, 0.021, 0.106066), "upper_arm", (-0.0248764, 0.2545, 1.8743851e-04)),
        ((0.106066, 0.021, -0.106066), "upper_arm", (0.025124, 0.2195, 1.8743851e-04)),
        ((0.106066, 0.021, 0.106066), "upper_arm", (0.025124, 0.2545, 1.8743851e-04)),
        ((0.0, 0.021, 0.25), "lower_arm", (7.6133042e-08, 0.0705005, 0.0249999)),
        ((0.0, 0.021, -0.25), "lower_arm", (7.6133042e-08, 0.0705005, -0.0250003)),
    )
    muscles = tuple(
        straight(f"cable_{i + 1}", (WORLD, a), (link, b), 10.0, 80.0)
        for i, (a, link, b) in enumerate(cables)
    )
    return Robot("bm_arm", links, joints, muscles)


def _corners(x: float, y: float, z: float) -> np.ndarray:
    return np.array([(a * x, b * y, c * z) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])


@cache
def hanging_platform() -> Robot:
    """A free body on eight crossed cables: 6 degrees of freedom, wrench closure at the home."""
    body = Link(
        "platform", Inertia(2.0, np.array([0.01, -0.02, 0.03]), np.diag([0.03, 0.05, 0.04]))
    )
    # crossed so that the cables can turn the body about every axis
    bases, ends = _corners(1.0, 1.2, 1.0), _corners(0.15, 0.1, 0.1)[[1, 2, 3, 0, 7, 4, 5, 6]]
    muscles = tuple(
        straight(f"cable_{i}", (WORLD, bases[i]), ("platform", ends[i]), 5.0, 300.0)
        for i in range(8)
    )
    joints = (Joint("float", "free", WORLD, "platform"),)
    frames = (Frame("tool", "platform", at(0.05, 0.0, -0.1)),)
    return Robot("hanging_platform", (body,), joints, muscles, frames, "tool")


@cache
def ball_arm() -> Robot:
    """A rod on a ball joint with eight cables."""
    rod = Link("rod", Inertia(1.5, np.array([0.0, 0.02, 0.2]), np.diag([0.03, 0.04, 0.01])))
    middle = np.array([0.0, 0.0, 0.3])
    bases = _corners(0.5, 0.5, 0.15) + middle
    ends = _corners(0.08, 0.06, 0.05)[[3, 2, 0, 1, 6, 7, 4, 5]] + middle
    muscles = tuple(
        straight(f"cable_{i}", (WORLD, bases[i]), ("rod", ends[i]), 2.0, 400.0) for i in range(8)
    )
    joints = (Joint("ball", "ball", WORLD, "rod"),)
    return Robot("ball_arm", (rod,), joints, muscles)


class Plant:
    """The robot, integrated by classical Runge-Kutta with the tensions held over each step."""

    def __init__(self, robot: Robot, q, qd=None) -> None:
        self.dynamics = make_dynamics(robot)
        self.tree = self.dynamics.tree
        self.q = np.array(q, dtype=float)
        self.qd = np.zeros(self.tree.nv) if qd is None else np.array(qd, dtype=float)

    def acceleration(self, q, qd, tensions):
        state = self.dynamics.update(q, qd)
        torque = -state.muscle_jacobian.T @ tensions - state.coriolis - state.gravity
        return np.linalg.solve(state.mass_matrix, torque)

    def _move(self, q, step):
        return q + step if self.tree.nq == self.tree.nv else self.tree.integrate(q, step)

    def step(self, tensions, h: float) -> None:
        q, v = self.q, self.qd
        a1 = self.acceleration(q, v, tensions)
        v2 = v + h / 2 * a1
        a2 = self.acceleration(self._move(q, h / 2 * v), v2, tensions)
        v3 = v + h / 2 * a2
        a3 = self.acceleration(self._move(q, h / 2 * v2), v3, tensions)
        v4 = v + h * a3
        a4 = self.acceleration(self._move(q, h * v3), v4, tensions)
        self.q = self._move(q, h / 6 * (v + 2 * v2 + 2 * v3 + v4))
        self.qd = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


class Run:
    """A closed loop: arrays with one row per control step."""

    def __init__(self, controller, plant: Plant, duration: float, h: float = 1e-3) -> None:
        count = round(duration / h)
        out = controller.output
        self.time = h * np.arange(count)
        self.q = np.zeros((count, plant.tree.nq))
        self.qd = np.zeros((count, plant.tree.nv))
        self.error = np.zeros((count, out.error.size))
        self.tensions = np.zeros((count, out.tensions.size))
        self.status = np.zeros(count, dtype=int)
        self.residual = np.zeros(count)
        for k in range(count):
            out = step(controller, self.time[k], plant.q, plant.qd)
            self.q[k], self.qd[k], self.error[k] = plant.q, plant.qd, out.error
            self.tensions[k], self.status[k] = out.tensions, out.status
            self.residual[k] = out.residual
            plant.step(out.tensions, h)
            assert np.abs(plant.qd).max() < 100.0, f"unstable at {self.time[k]} s"

    @property
    def distance(self) -> np.ndarray:
        return np.linalg.norm(self.error, axis=1)

    @property
    def rms(self) -> float:
        return float(np.sqrt(np.mean(self.distance**2)))

    def count(self, status: ControlStatus) -> int:
        return int(np.sum(self.status == status))


class Motion:
    """A reference from functions of time: y, yd, ydd."""

    def __init__(self, size: int, functions: Callable, duration: float = np.inf) -> None:
        self.size, self.duration, self._functions = size, duration, functions

    def __call__(self, t):
        return tuple(np.asarray(x, dtype=float) for x in self._functions(t))


def fixed_point(y, velocities: int) -> Motion:
    """Return a reference that stays at y."""
    zero = np.zeros(velocities)
    return Motion(len(y), lambda t: (y, zero, zero))


def model_of(dynamics) -> ControlModel:
    """Return a control model with the dynamics of a robot whose muscles all take a tension."""
    return ControlModel(dynamics.robot, dynamics=dynamics)


def step(controller, t: float, q, qd):
    """Step a controller and return how it came to its command."""
    command = controller.step(RobotState(t, q, qd))
    assert command is controller.command
    return controller.output
