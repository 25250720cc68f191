"""Cables that touch what moves in their world: objects and other robots, which they pull along."""

from dataclasses import replace

import numpy as np
import pytest
from touched_models import SHAPES, body, thing, thrower

from cards_core.dynamics import make_dynamics
from cards_core.muscles.command import NO_COMMAND
from cards_core.muscles.explicit_steps import free_mobility
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import (
    Capsule,
    Inertia,
    Joint,
    Link,
)
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_sim.simulator import Simulator, robots_within
from cards_sim.world_simulator import WorldSimulator


def momentum(world):
    """Linear momentum of all bodies, [N s]."""
    masses = world.model.body_mass
    total = np.zeros(3)
    for i in range(1, world.model.nbody):
        rotation = world.data.xmat[i].reshape(3, 3)
        name = world.model.body(i).name
        twist = world.velocity(name)
        arm = rotation @ world.model.body_ipos[i]
        total += masses[i] * (twist[:3] + np.cross(twist[3:], arm))
    return total


def thrown(simulator, speed=0.6):
    qd = np.zeros(simulator.tree.nv)
    qd[1] = qd[7] = speed
    simulator.reset(qd=qd)
    return np.zeros(len(simulator.robot.muscles))


def passive(simulator):
    """Kinds that command nothing: the cable is a spring."""
    return np.full(len(simulator.robot.muscles), NO_COMMAND)


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_cable_carries_off_a_free_object(kind, friction):
    world = World("w", (WorldModel("thing", thing(SHAPES[kind])),), gravity=np.zeros(3))
    simulator = Simulator(thrower(friction), world=world)
    commands, kinds = thrown(simulator), passive(simulator)
    start, energy = momentum(simulator.world), simulator.energy()[0]
    touched, most = 0, 0.0
    for _ in range(250):  # later the cable is wound up and its ends get into the object
        simulator.step(commands, kinds)
        touched += len(simulator.muscles.engine.contacts.contacts(0)) > 0
        most = max(most, simulator.energy()[0])
        assert np.abs(momentum(simulator.world) - start).max() < 1e-10
    assert touched > 20
    assert simulator.world.velocity("thing")[1] > 0.05
    assert most < 1.001 * energy  # within the error of the step


@pytest.mark.parametrize("kind", SHAPES)
def test_what_cables_do_to_all_bodies_is_in_balance(kind):
    """Forces and moments, with a centre of mass beside the origin of the link."""
    shape = thing(SHAPES[kind], (0.004, -0.006, 0.002))
    world = World("w", (WorldModel("thing", shape),), gravity=np.zeros(3))
    simulator = Simulator(thrower(0.3), world=world)
    commands, kinds = thrown(simulator), passive(simulator)
    data, most = simulator.data, 0.0
    for _ in range(300):
        places = data.xipos.copy()
        simulator.step(commands, kinds)
        force, moment = data.xfrc_applied[:, :3], data.xfrc_applied[:, 3:]
        most = max(most, np.abs(force[simulator.model.body("thing::thing").id]).max())
        assert np.abs(force.sum(axis=0)).max() < 1e-12
        assert np.abs((moment + np.cross(places, force)).sum(axis=0)).max() < 1e-12
    assert most > 0.3


@pytest.mark.parametrize("friction", [0.0, 0.4])
def test_several_steps_natively_are_single_steps_to_the_last_bit(friction):
    world = World("w", (WorldModel("thing", thing(SHAPES["box"])),), gravity=np.zeros(3))
    found = []
    for count in (1, 7):
        simulator = Simulator(thrower(friction), world=world)
        commands, kinds = thrown(simulator), passive(simulator)
        simulator.tell(commands, kinds)
        for _ in range(210 // count):
            taken = simulator.world.advance(count)
            assert taken == count
        assert (simulator._native is not None) == (count > 1)
        assert len(simulator.muscles.engine.contacts.contacts(0)) > 0
        found.append(simulator.data.qpos.tobytes() + simulator.data.qvel.tobytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("held", [False, True])
def test_spinning_bodies_bounce_with_the_energy_that_they_had(count, held):
    """Step by step and natively; the path between their ends bends within every step.

    A body of unequal moments would gain or lose in MuJoCo's step itself. With something fixed to
    one of them its frame is not at its centre of mass, and the energy kept as well as the step is.
    """
    robot = thrower()
    links = tuple(
        replace(link, inertia=Inertia(0.05, np.zeros(3), 2e-5 * np.eye(3))) for link in robot.links
    )
    joints = robot.joints
    if held:
        links += (Link("load", Inertia(1e-3, np.zeros(3), 1e-6 * np.eye(3))),)
        place = Pose(translation=np.array([0.02, 0.0, 0.0]))
        joints += (Joint("mount", "fixed", "right", "load", place),)
    spring = replace(robot.muscles[0], actuator=Cable(stiffness=1000.0, rest_length=0.08))
    robot = replace(robot, links=links, joints=joints, muscles=(spring,))
    simulator = Simulator(robot)
    assert simulator.muscles.engine.keeps_twists is not held
    qd = np.zeros(12)
    qd[:] = -0.2, 0.3, 0.0, 1.0, 5.0, 20.0, -0.2, 0.0, 0.0, -7.0, 8.0, 3.0
    simulator.reset(qd=qd)
    start, slack, pulled = simulator.energy()[0], [], 0
    simulator.tell(np.zeros(1), passive(simulator))
    for _ in range(1000 // count):
        simulator.world.advance(count)
        if simulator.state.muscle_lengths[0] < 0.08:
            slack.append(simulator.energy()[0] / start - 1.0)
        else:
            pulled += 1
    assert pulled > 5
    assert np.abs(slack).max() < (2e-3 if held else 1e-12)


def test_cables_of_two_robots_and_their_rods_pull_at_each_other():
    """The second robot's rod is in the way of the first one's cable; both have cables."""
    second = thrower(shape=Capsule(0.005, 0.1), name="second")  # across the first one's way
    models = (
        WorldModel("first", thrower(), Pose()),
        WorldModel("second", second, Pose(translation=np.array([0.05, 0.06, 0.0]))),
    )
    world = WorldSimulator(World("w", models, gravity=np.zeros(3)))
    robots = robots_within(world)
    first = robots["first"]
    qd = np.zeros(12)
    qd[1] = qd[7] = 0.6
    first.begin_at(qd=qd)
    world.reset()
    start, touched, tight = momentum(world), 0, 0.0
    for robot in robots.values():
        robot.tell(np.zeros(1), passive(robot))
    for _ in range(400):
        world.step()
        touched += len(first.muscles.engine.contacts.contacts(0)) > 0
        tight = max(tight, robots["second"].state.tensions[0])
        assert np.abs(momentum(world) - start).max() < 1e-10
    assert touched > 20
    assert tight > 0.01  # its own cable passes on what its rod feels
    assert world.velocity("second::left")[1] > 0.05


def test_pushes_on_what_a_cable_touches_add_up():
    """A push replaces nothing of what cables do, and ends without a trace."""
    world = World("w", (WorldModel("thing", thing(SHAPES["sphere"])),), gravity=np.zeros(3))
    simulator = Simulator(thrower(), world=world)
    commands, kinds = thrown(simulator), passive(simulator)
    start = momentum(simulator.world)
    for _ in range(120):
        simulator.step(commands, kinds)
    simulator.world.apply_wrench("thing", [0.0, 0.0, 0.3], duration=0.02)
    for _ in range(100):
        simulator.step(commands, kinds)
    given = momentum(simulator.world) - start
    assert given == pytest.approx([0.0, 0.0, 0.3 * 0.02], abs=1e-10)


def test_masses_are_where_forces_refer_to():
    """The engine's frames are at centres of mass: what cables move is that of the dynamics."""
    robot = thrower()
    pairs = [
        body("left", (-0.05, 0, 0), com=(0.01, 0.02, -0.01)),
        body("right", (0.05, 0.01, 0.02), com=(-0.02, 0.01, 0.03)),
    ]
    links, joints = zip(*pairs, strict=True)
    robot = replace(robot, links=links, joints=joints)
    dynamics = make_dynamics(robot, "numeric")
    state = dynamics.update(robot.tree.home, np.zeros(robot.tree.nv))
    expected = state.muscle_jacobian @ np.linalg.solve(state.mass_matrix, state.muscle_jacobian.T)
    simulator = Simulator(robot)
    found = free_mobility(simulator.muscles.engine, simulator._poses)
    assert found == pytest.approx(expected, rel=1e-9)
