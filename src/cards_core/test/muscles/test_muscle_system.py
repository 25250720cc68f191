"""Paths and actuators together, as a host steps them."""

import dataclasses
import math

import numpy as np
import pytest
from actuator_samples import BRAID, HILL, TRIANGLE

from cards_core.muscles.command import (
    EXCITATION,
    FORCE,
    LENGTH,
    NO_COMMAND,
    PRESSURE,
)
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic, SeriesElastic
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot

DT = 1e-3
ACTUATORS = (
    Cable(stiffness=1e4, damping=5.0),
    Pneumatic(**BRAID),
    Hill(**HILL),
    Ligament(stiffness=1000.0, slack_length=0.28),
    Cable(),
    SeriesElastic(spring=TRIANGLE),
)
KINDS = np.array([LENGTH, PRESSURE, EXCITATION, NO_COMMAND, FORCE, FORCE])
VALUES = np.array([0.29, 1e5, 0.4, 0.0, 50.0, 80.0])


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


def slide(*actuators, mass=2.0, path=None):
    """Return a mass on a vertical slide, 0.3 m below the origin of its muscles."""
    path = path or (ViaPoint(WORLD, np.zeros(3)), ViaPoint("mass", np.zeros(3)))
    link = Link("mass", Inertia(mass, np.zeros(3), 0.01 * np.eye(3)))
    axis = JointAxis(np.array([0.0, 0.0, -1.0]))
    muscles = tuple(Muscle(f"m{i}", path, 10.0, 500.0, item) for i, item in enumerate(actuators))
    joint = Joint("slide", "prismatic", WORLD, "mass", axes=(axis,))
    return Robot("slide", (link,), (joint,), muscles, home={"slide": (0.3,)})


def at(position, speed=0.0):
    """Return poses and twists of the mass, and the coordinate with its velocity."""
    poses = np.eye(4)[None].copy()
    poses[0, 2, 3] = -position
    twists = np.zeros((1, 6))
    twists[0, 2] = -speed
    return poses, twists, (np.array([position]), np.array([speed]))


def run(system, steps=40):
    rows = []
    for k in range(steps):
        now = at(0.3 + 0.01 * math.sin(0.2 * k), 2.0 * math.cos(0.2 * k))
        state = system.step(*now, VALUES, KINDS)
        rows.append(np.concatenate([state.lengths, state.rates, state.tensions]))
        rows.append(np.concatenate([state.wrenches.ravel(), system.state_values]))
    return np.concatenate(rows)


def test_wrenches_carry_the_tensions_of_the_actuators():
    # without joints nothing is known of what the muscles move: tensions are those of this instant
    robot = dataclasses.replace(slide(*ACTUATORS), joints=(), home={})
    system = MuscleSystem(robot, DT, "numeric")
    system.reset(at(0.3)[0])
    for _ in range(20):
        state = system.step(*at(0.3), VALUES, KINDS)
        assert state.wrenches[0, 2] == pytest.approx(np.sum(state.tensions))
        np.testing.assert_allclose(state.world_wrench[:3], -state.wrenches[0, :3])
    np.testing.assert_allclose(state.lengths, 0.3)
    # k (l - L0), k (e - e_t/2) beyond the toe, and what an ideal cable is told
    strain = 0.3 / 0.28 - 1.0
    assert state.tensions[0] == pytest.approx(100.0)
    assert state.tensions[3] == pytest.approx(1000.0 * (strain - 0.03))
    assert state.tensions[4] == 50.0
    assert not system.ideal


def test_backends_agree():
    native = MuscleSystem(slide(*ACTUATORS), DT)
    numeric = MuscleSystem(slide(*ACTUATORS), DT, "numeric")
    for system in (native, numeric):
        system.reset(at(0.3)[0])
    assert native.state_names == numeric.state_names
    np.testing.assert_allclose(run(native), run(numeric), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_reset_forgets_what_was_to_the_last_bit(backend):
    system = MuscleSystem(slide(*ACTUATORS), DT, backend)
    system.reset(at(0.3)[0])
    first = run(system)
    system.reset(at(0.4)[0])
    run(system, 7)
    system.reset(at(0.3)[0])
    assert run(system).tobytes() == first.tobytes()


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_ideal_cables_have_what_they_are_told(backend):
    system = MuscleSystem(slide(Cable(), Cable()), DT, backend)
    system.reset(at(0.3)[0])
    assert system.ideal
    assert system.state_names == ()
    state = system.step(*at(0.3, 0.5), np.array([20.0, 30.0]))
    assert state.tensions.tolist() == [20.0, 30.0]
    np.testing.assert_allclose(state.rates, 0.5)
    np.testing.assert_allclose(state.wrenches[0], [0, 0, 50.0, 0, 0, 0], atol=1e-12)


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_a_robot_without_muscles(backend):
    system = MuscleSystem(slide(), DT, backend)
    system.reset(at(0.3)[0])
    state = system.step(*at(0.3), np.zeros(0))
    assert state.tensions.shape == (0,)
    np.testing.assert_array_equal(state.wrenches, np.zeros((1, 6)))


@pytest.mark.parametrize("geometry", [Sphere(0.05), Cylinder(0.05, math.inf)])
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_rest_length_includes_the_arc(geometry, backend):
    """An elastic cable over a surface of the world is wound for its length along the arc."""
    surface = WrapSurface("drum", WORLD, geometry)
    path = (
        ViaPoint(WORLD, np.array([0.0, 0.3, 0.0])),
        Wrap("drum", side=np.array([0.2, 0.0, 0.0])),
        ViaPoint("mass", np.array([0.0, 0.0, 0.0])),
    )
    robot = slide(Cable(stiffness=1e3), path=path)
    robot = dataclasses.replace(
        robot,
        wrap_surfaces=(surface,),
        joints=(
            dataclasses.replace(robot.joints[0], axes=(JointAxis(np.array([0.0, -1.0, 0.0])),)),
        ),
    )
    system = MuscleSystem(robot, DT, backend)
    poses = np.eye(4)[None].copy()
    poses[0, 1, 3] = -0.3
    system.reset(poses)
    # two tangents and the arc that is left of half a turn
    straight = math.sqrt(0.3**2 - 0.05**2)
    length = 2.0 * straight + 0.05 * (math.pi - 2.0 * math.atan2(straight, 0.05))
    assert system.state_values[0] == pytest.approx(length - 10.0 / 1e3, abs=1e-9)
    joints = (np.array([0.3]), np.zeros(1))
    state = system.step(poses, np.zeros((1, 6)), joints, np.zeros(1), np.array([NO_COMMAND]))
    assert state.lengths[0] == pytest.approx(length, abs=1e-9)
    assert state.tensions[0] == pytest.approx(10.0, abs=1e-6)
