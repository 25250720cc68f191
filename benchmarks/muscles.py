"""Measurement behind ``./cards bench muscles``: one step of the muscle engine, beside MuJoCo."""

from __future__ import annotations

import dataclasses
from typing import Any

import mujoco
import numpy as np

from cards_bringup.benchmarks.timing import time_call
from cards_core.dynamics import make_dynamics
from cards_core.formats.mjcf.writer import to_mjcf
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Ellipsoid,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    PathElement,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, axis_rotation

SEGMENTS = 4
"""Number of links of the robot that is measured."""

MUSCLES = 12
WRAPS = 6

REACH = 0.25
"""Length of a link, [m]."""


def wrapped_arm(*geometries: WrapGeometry) -> Robot:
    """Return a chain of hinges with twelve muscles, of which six wrap over a joint.

    Args:
        *geometries: Shapes of the surfaces, used in turn.
    """
    inertia = Inertia(1.0, np.array([0.0, 0.0, -0.5 * REACH]), np.diag([0.006, 0.006, 0.001]))
    links = tuple(Link(f"link{i}", inertia) for i in range(SEGMENTS))
    names = [WORLD, *(link.name for link in links)]
    down = np.array([0.0, 0.0, -REACH])
    joints = tuple(
        Joint(
            f"joint{i}",
            "revolute",
            names[i],
            names[i + 1],
            Pose(translation=down if i else np.zeros(3)),
            axes=(JointAxis(np.array([0.0, 1.0, 0.0])),),
        )
        for i in range(SEGMENTS)
    )
    # cylinders lie along the hinge
    lying = axis_rotation(np.array([1.0, 0.0, 0.0]), 0.5 * np.pi)
    surfaces = tuple(
        WrapSurface(f"surface{k}", names[1 + k % SEGMENTS], geometries[k % len(geometries)])
        for k in range(WRAPS)
    )
    surfaces = tuple(
        dataclasses.replace(s, pose=Pose(rotation=lying))
        if isinstance(s.geometry, Cylinder | Torus)
        else s
        for s in surfaces
    )
    muscles = []
    for k in range(MUSCLES):
        joint = k % SEGMENTS
        side = 0.02 if k % 2 else -0.02
        above = np.array([side, 0.004 * k, -0.6 * REACH if joint else 0.4 * REACH])
        below = np.array([side, 0.003 * k, -0.4 * REACH])
        path: tuple[PathElement, ...] = (ViaPoint(names[joint], above),)
        if k < WRAPS:
            path += (Wrap(f"surface{k}"),)
        path += (ViaPoint(names[joint + 1], below),)
        muscles.append(Muscle(f"muscle{k}", path, 1.0, 100.0))
    return Robot("wrapped_arm", links, joints, tuple(muscles), wrap_surfaces=surfaces)


def bench_muscles() -> dict[str, Any]:
    """Time the engine with twelve muscles and six wraps, and MuJoCo's tendons of the same arm.

    Returns:
        ``engine_step_us``: lengths, rates and wrenches of the closed forms (spheres and
        cylinders), called from Python; ``mujoco_us``: kinematics and tendons in MuJoCo, also
        called from Python (``mj_fwdPosition`` minus that of the same arm without tendons);
        ``geodesic``: the same arm with other surfaces.
    """
    arm = wrapped_arm(Sphere(0.03), Cylinder(0.03, np.inf))
    result: dict[str, Any] = {"muscles": MUSCLES, "wraps": WRAPS}
    result |= {f"engine_step{key}_us": value for key, value in _time_engine(arm).items()}
    result["engine_step_us"] = result.pop("engine_step_median_us")
    with_tendons = _time_mujoco(arm)
    without = _time_mujoco(dataclasses.replace(arm, muscles=()))
    result["mujoco_us"] = with_tendons - without
    result["ratio_to_mujoco"] = result["engine_step_us"] / result["mujoco_us"]
    result["geodesic"] = {
        "ellipsoid_us": _time_engine(wrapped_arm(Ellipsoid(np.array([0.03, 0.04, 0.035]))))[
            "_median"
        ],
        "torus_us": _time_engine(wrapped_arm(Torus(0.02, 0.012)))["_median"],
    }
    return result


def _time_engine(robot: Robot) -> dict[str, float]:
    """Median and 99th percentile of a step along a motion of one millimetre, [us]."""
    dynamics = make_dynamics(robot, "numeric")
    engine = MuscleEngine(robot)
    rng = np.random.default_rng(0)
    q0, direction = rng.uniform(-0.1, 0.1, SEGMENTS), rng.normal(size=SEGMENTS)
    poses = [dynamics.link_poses(q0 + 0.002 * k * direction).copy() for k in range(200)]
    sequence = [*poses, *reversed(poses)]
    twists = rng.normal(size=(SEGMENTS, 6))
    tensions = rng.uniform(1.0, 100.0, MUSCLES)
    index = 0

    def step() -> None:
        nonlocal index
        index = (index + 1) % len(sequence)
        engine.update(sequence[index], twists, tensions)

    timing = time_call(step)
    return {f"_{key}": value for key, value in timing.items()}


def _time_mujoco(robot: Robot) -> float:
    """Median time of mj_fwdPosition, [us]."""
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, timestep=1e-3, tendons=True))
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(0).uniform(-0.1, 0.1, SEGMENTS)
    return time_call(lambda: mujoco.mj_fwdPosition(model, data))["median"]
