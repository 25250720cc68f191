"""Capstan friction in time: it brings bodies to rest and holds them, however light they are."""

import numpy as np
import pytest

from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_sim.simulator import Simulator


def tug_of_war(mass, friction):
    """A load on a rail, pulled both ways by cables over fixed drums; no gravity."""

    def drum(sign):
        pose = Pose.from_xyz_rpy([0.15 * sign, 0.0, 0.0], [0.5 * np.pi, 0.0, 0.0])
        return WrapSurface(f"drum{sign:+d}", WORLD, Cylinder(0.05, np.inf), pose)

    def cable(sign):
        over = np.array([0.15 * sign, 0.0, 0.2])
        path = (
            ViaPoint(WORLD, np.array([0.3 * sign, 0.0, -0.2])),
            Wrap(f"drum{sign:+d}", side=over, friction=friction),
            ViaPoint("load", np.zeros(3)),
        )
        return Muscle(f"cable{sign:+d}", path, 0.0, 200.0)

    rail = (JointAxis(np.array([1.0, 0.0, 0.0])),)
    return Robot(
        "tug_of_war",
        (Link("load", Inertia(mass, tensor=1e-4 * np.eye(3))),),
        (Joint("rail", "prismatic", WORLD, "load", axes=rail),),
        (cable(1), cable(-1)),
        gravity=np.zeros(3),
        wrap_surfaces=(drum(1), drum(-1)),
    )


def speeds(robot, tensions, *, start, steps=400, backend="compiled"):
    simulator = Simulator(robot, muscle_backend=backend)
    simulator.reset(qd=np.array([start]))
    out = []
    for _ in range(steps):
        simulator.step(tensions)
        out.append(simulator.state.qd[0])
    return np.array(out)


@pytest.mark.parametrize("mass", [0.02, 0.1, 1.0])
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_a_sliding_load_comes_to_rest_and_never_gets_faster(mass, backend):
    v = np.abs(speeds(tug_of_war(mass, 0.3), [50.0, 50.0], start=0.01, backend=backend))
    assert v.max() <= 0.01
    assert v[-1] < 1e-6


def test_a_difference_below_the_capstan_limit_hardly_moves_the_load():
    """The cable that gives way adds a factor exp(mu phi), the one that wins loses it."""
    rough = np.abs(speeds(tug_of_war(1.0, 0.3), [50.0, 60.0], start=0.0))
    smooth = np.abs(speeds(tug_of_war(1.0, 0.0), [50.0, 60.0], start=0.0))
    assert smooth.max() > 0.3
    assert rough.max() < 0.01  # creeps below friction_speed
