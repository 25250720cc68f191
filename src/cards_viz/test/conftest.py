"""Robots and runs for the tests, built without files."""

import math

import numpy as np
import pytest

from cards_core.robot.actuators import Hill, Ligament, Pneumatic
from cards_core.robot.elements import (
    WORLD,
    Capsule,
    Cylinder,
    Ellipsoid,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Visual,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rpy_matrix


def make_planar_2r() -> Robot:
    """Two links of 1 m in the x-z plane, four muscles (CASPR: Example_2R_planar_XZ)."""
    inertia = Inertia(0.1, np.array([0.0, 0.0, 0.5]), np.diag([0.083333, 1e-4, 0.083333]))
    bone = Visual("bone", Capsule(0.03, 1.0), Pose(translation=np.array([0.0, 0.0, 0.5])))
    axis = (JointAxis(np.array([0.0, 1.0, 0.0]), -3.1416, 3.1416),)

    def muscle(name: str, x: float, link: str, y: float) -> Muscle:
        ends = (
            ViaPoint(WORLD, np.array([x, 0.0, 0.0])),
            ViaPoint(link, np.array([y, 0.0, 0.8])),
        )
        return Muscle(name, ends, 10.0, 100.0)

    return Robot(
        "planar_2r",
        (Link("lower", inertia, (bone,)), Link("upper", inertia, (bone,))),
        (
            Joint("joint_1", "revolute", WORLD, "lower", axes=axis),
            Joint(
                "joint_2",
                "revolute",
                "lower",
                "upper",
                Pose(translation=np.array([0.0, 0.0, 1.0])),
                axes=axis,
            ),
        ),
        (
            muscle("cable_1", 0.5, "lower", 0.1),
            muscle("cable_2", 1.5, "upper", 0.1),
            muscle("cable_3", -0.5, "lower", -0.1),
            muscle("cable_4", -1.5, "upper", -0.1),
        ),
        frames=(Frame("tip", "upper", Pose(translation=np.array([0.0, 0.0, 1.0]))),),
        operational_frame="tip",
    )


def make_wrap_arm() -> Robot:
    """Two links of 0.3 m that hang along -z, an elbow, muscles over surfaces of every kind."""

    def at(x: float, y: float, z: float) -> np.ndarray:
        return np.array([x, y, z])

    inertia = Inertia(1.0, at(0, 0, -0.15), 0.01 * np.eye(3))
    along_y = rpy_matrix(-np.pi / 2, 0.0, 0.0)
    surfaces = (
        WrapSurface("elbow", "upper", Cylinder(0.03, math.inf), Pose(along_y, at(0, 0, -0.3))),
        WrapSurface("head", WORLD, Sphere(0.04), Pose(translation=at(0, 0, 0))),
        WrapSurface(
            "belly", "upper", Ellipsoid(at(0.03, 0.05, 0.07)), Pose(translation=at(0, 0.2, -0.15))
        ),
        WrapSurface("ring", "upper", Torus(0.05, 0.01), Pose(translation=at(0.2, 0, -0.2))),
        WrapSurface("bead", "fore", Sphere(0.01), Pose(translation=at(0, 0.1, -0.1))),
    )
    hinge = (JointAxis(at(0, 1, 0), -2.5, 2.5),)
    ground = ViaPoint(WORLD, at(0.04, 0, 0.1))
    muscles = (
        # on the right of the elbow (x < 0): wraps when the arm is straight
        Muscle(
            "extensor",
            (
                ViaPoint("upper", at(-0.02, 0, -0.1)),
                Wrap("elbow", side=at(-0.05, 0, -0.3)),
                ViaPoint("fore", at(-0.02, 0, -0.1)),
            ),
            5.0,
            500.0,
            Hill(max_isometric_force=500.0, optimal_fiber_length=0.1, tendon_slack_length=0.1),
        ),
        Muscle(
            "flexor",
            (
                ground,
                Wrap("head"),
                ViaPoint("upper", at(0.04, 0, -0.2)),
                ViaPoint("fore", at(0.02, 0, -0.1)),
            ),
            5.0,
            500.0,
        ),
        Muscle(
            "belly",
            (
                ViaPoint("upper", at(-0.1, 0.21, -0.05)),
                Wrap("belly"),
                ViaPoint("upper", at(0.1, 0.21, -0.2)),
                Wrap("bead"),
                ViaPoint("fore", at(0, 0.1, -0.2)),
            ),
            5.0,
            500.0,
            Ligament(stiffness=1000.0, slack_length=0.3),
        ),
        Muscle(
            "ring",
            (
                Pulley(WORLD, at(0.3, 0, 0.1), at(0, 0, -1), 0.02),
                ViaPoint("upper", at(0.25, 0, -0.1)),
                Wrap("ring", inside=True),
                ViaPoint("fore", at(0.25, 0, -0.1)),
            ),
            5.0,
            500.0,
            Pneumatic(thread_length=0.5, turns=1.5, rest_length=0.4),
        ),
    )
    return Robot(
        "wrap_arm",
        (Link("upper", inertia), Link("fore", inertia)),
        (
            Joint("shoulder", "revolute", WORLD, "upper", axes=hinge),
            Joint(
                "elbow", "revolute", "upper", "fore", Pose(translation=at(0, 0, -0.3)), axes=hinge
            ),
        ),
        muscles,
        frames=(Frame("hand", "fore", Pose(translation=at(0, 0, -0.3))),),
        operational_frame="hand",
        wrap_surfaces=surfaces,
    )


SHOULDER = [
    ("motor0", (0.2889, -0.01069, 0.5763), (0.05492, -0.01783, 0.1084)),
    ("motor1", (0.24, -0.02551, 0.4673), (0.0205, -0.01411, 0.1232)),
    ("motor2", (0.2512, -0.02867, 0.5146), (0.04424, -0.01015, 0.1094)),
    ("motor3", (0.2806, -0.02853, 0.558), (0.04607, -0.01201, 0.1274)),
    ("motor4", (0.3034, 0.0, 0.5961), (0.06348, 0.005441, 0.1036)),
    ("motor5", (0.277, 0.0429, 0.5564), (0.04433, 0.02206, 0.1266)),
    ("motor6", (0.2476, 0.04291, 0.513), (0.04274, 0.01923, 0.1088)),
    ("motor7", (0.2362, 0.05006, 0.4656), (0.01999, 0.02368, 0.1228)),
    ("motor8", (0.2865, 0.02608, 0.5761), (0.05329, 0.02726, 0.1071)),
]
ELBOW = [
    ("motor10", (-0.04628, -0.04114, -0.06775), (0.03859, -0.02109, 0.1267)),
    ("motor9", (-0.05341, 0.02757, -0.09094), (0.0406, 0.03544, 0.1295)),
]


def make_arm() -> Robot:
    """A shoulder of three axes and an elbow, eleven muscles (CASPR: RoboyLeftArm)."""
    upper_com = np.array([-0.05912, -0.006673, -0.1688])
    lower_com = np.array([-0.03277, 0.004782, -0.1547])
    shoulder = np.array([0.2926, 0.007368, 0.5479])
    elbow = np.array([-0.1399, -0.01744, -0.277])
    offset = np.array([-0.005238, -0.0005333, -0.01189])
    axes = [
        ((0.05101, -0.9984, 0.02231), 1.2, 1.7, WORLD, "shoulder_1", shoulder),
        ((-0.9157, -0.03784, 0.4001), -3.142, 3.142, "shoulder_1", "shoulder_2", np.zeros(3)),
        ((-0.3986, -0.04084, -0.9162), -0.5, 0.5, "shoulder_2", "upper_arm", offset),
        ((0.9171, -0.01288, -0.3984), -1.57, 0.0, "upper_arm", "lower_arm", elbow),
    ]
    joints = tuple(
        Joint(
            f"joint_{i}",
            "revolute",
            parent,
            child,
            Pose(translation=at),
            axes=(JointAxis(np.array(axis) / np.linalg.norm(axis), low, high),),
        )
        for i, (axis, low, high, parent, child, at) in enumerate(axes)
    )
    muscles = [
        Muscle(
            name,
            (ViaPoint(WORLD, np.array(a)), ViaPoint("upper_arm", upper_com + b)),
            10.0,
            5000.0,
        )
        for name, a, b in SHOULDER
    ] + [
        Muscle(
            name,
            (ViaPoint("upper_arm", upper_com + a), ViaPoint("lower_arm", lower_com + b)),
            10.0,
            5000.0,
        )
        for name, a, b in ELBOW
    ]
    dummy = Inertia(1e-3, np.zeros(3), np.eye(3) * 1e-3)
    return Robot(
        "test_arm",
        (
            Link("shoulder_1", dummy),
            Link("shoulder_2", dummy),
            Link("upper_arm", Inertia(1.0, upper_com, np.eye(3) * 0.01)),
            Link("lower_arm", Inertia(1.0, lower_com, np.eye(3) * 0.01)),
        ),
        joints,
        tuple(muscles),
        frames=(
            Frame("hand", "lower_arm", Pose(translation=np.array([-0.06554, 0.009563, -0.3094]))),
        ),
        operational_frame="hand",
        home={"joint_0": (1.2,), "joint_3": (-0.5,)},
    )


@pytest.fixture(scope="session")
def planar_2r() -> Robot:
    return make_planar_2r()


@pytest.fixture(scope="session")
def arm() -> Robot:
    return make_arm()


@pytest.fixture(scope="session")
def wrap_arm() -> Robot:
    return make_wrap_arm()


def make_run(
    robot: Robot, *, steps: int = 400, dt: float = 1e-3, space: str = "joint"
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """A smooth made-up run: arrays of a simulator log and of a controller log."""
    from cards_core.dynamics import make_dynamics

    rng = np.random.default_rng(7)
    dynamics = make_dynamics(robot, "numeric")
    n, m = dynamics.tree.nq, len(robot.muscles)
    time = dt * np.arange(steps + 1)
    phase = 2.0 * np.pi * time / time[-1]
    q = dynamics.tree.home + 0.2 * np.sin(phase[:, None] + np.arange(n))
    qd = np.gradient(q, dt, axis=0)
    lengths = np.empty((steps + 1, m))
    rates = np.empty((steps + 1, m))
    for k in range(steps + 1):
        state = dynamics.update(q[k], qd[k])
        lengths[k] = state.muscle_lengths
        rates[k] = state.muscle_jacobian @ qd[k]
    tensions = 30.0 + 15.0 * np.sin(phase[:, None] * 2.0 + np.arange(m))
    simulator = {
        "time": time,
        "q": q,
        "qd": qd,
        "muscle_lengths": lengths,
        "muscle_rates": rates,
        "tensions": tensions,
    }
    if space == "joint":
        actual = q[:-1]
    else:
        rows = zip(q[:-1], qd[:-1], strict=True)
        actual = np.array([dynamics.operational(a, b).position.copy() for a, b in rows])
    error = 1e-3 * rng.normal(size=actual.shape)
    controller = {
        "time": time[:-1],
        "desired": actual + error,
        "desired_dot": np.zeros_like(actual),
        "actual": actual,
        "error": error,
        "tensions": tensions[1:],
        "status": np.zeros(steps, dtype=np.int64),
        "residual": np.zeros(steps),
        "loop_us": rng.lognormal(5.0, 0.3, size=steps),
        "missed_deadlines": np.zeros(steps, dtype=np.int64),
    }
    return simulator, controller


@pytest.fixture(scope="session")
def run_arrays():
    return make_run
