"""Two free bodies in space, tied together by a muscle: what a muscle does to them is internal.

Ten seconds of every muscle type: linear momentum stays to rounding, angular momentum as well as
the integrator keeps it for the same bodies without muscles, passive elements add no energy.
"""

import dataclasses

import numpy as np
import pytest

from cards_core.robot.actuators import (
    Cable,
    Hill,
    Ligament,
    Pneumatic,
    SeriesElastic,
    Spring,
)
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Ellipsoid,
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
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import Robot
from cards_sim.simulator import Simulator

DISTANCE = 0.4
DURATION = 10.0

ACTUATORS = {
    "cable": (Cable(), 1.0),
    "elastic_cable": (Cable(stiffness=60.0, rest_length=0.5), None),
    "damped_cable": (Cable(stiffness=60.0, damping=2.0, rest_length=0.5), None),
    "stiff_cable": (Cable(stiffness=3e6, damping=50.0, rest_length=0.575), None),
    "series_elastic": (
        SeriesElastic(spring=Spring(law="polynomial", stiffness=2000.0)),
        2.0,
    ),
    "pneumatic": (
        Pneumatic(thread_length=0.3, turns=2.0, rest_length=0.27, tendon_length=0.15),
        5.0,
    ),
    "hill_elastic": (
        Hill(max_isometric_force=20.0, optimal_fiber_length=0.15, tendon_slack_length=0.25),
        2.0,
    ),
    "hill_rigid": (
        Hill(
            max_isometric_force=20.0,
            optimal_fiber_length=0.3,
            tendon_slack_length=0.1,
            curves="thelen_2003",
        ),
        2.0,
    ),
    "ligament": (Ligament(stiffness=40.0, slack_length=0.5), None),
}
"""Actuator and tension command [N]; None for elements that are left alone."""

PASSIVE_ELEMENTS = ["elastic_cable", "damped_cable", "stiff_cable", "ligament"]

SURFACES = {
    "none": None,
    "sphere": Sphere(0.05),
    "cylinder": Cylinder(0.05, np.inf),
    "ellipsoid": Ellipsoid(np.array([0.05, 0.04, 0.06])),
}


def two_bodies(actuator, surface=None, friction=0.0):
    """Two free boxes; the surface is on the first, between the muscle's ends at the start.

    Their frames are at their centres of mass: else semi-implicit Euler steps in coordinates whose
    mass matrix depends on q would not even keep the momentum of a lone body.
    """
    tensor = np.diag([0.010, 0.014, 0.018])
    links = tuple(
        Link(name, Inertia(mass, tensor=mass * tensor))
        for name, mass in (("left", 1.0), ("right", 1.5))
    )
    joints = tuple(Joint(f"{link.name}_free", "free", WORLD, link.name) for link in links)
    start = ViaPoint("left", np.array([-0.12, 0.03, 0.02]))
    path = (start, ViaPoint("right", np.array([0.05, 0.02, -0.03])))
    if friction and surface is None:
        turn = ViaPoint("left", np.array([-0.05, 0.06, 0.04]), friction=friction)
        path = (path[0], turn, path[1])
    surfaces = ()
    if surface is not None:
        surfaces = (WrapSurface("bone", "left", surface),)
        path = (path[0], Wrap("bone", friction=friction), path[1])
    muscle = Muscle("muscle", path, 0.5, 50.0, actuator=actuator)
    identity = (1.0, 0.0, 0.0, 0.0)
    return Robot(
        "two_bodies",
        links,
        joints,
        (muscle,),
        wrap_surfaces=surfaces,
        gravity=np.zeros(3),
        home={
            "left_free": (0.0, 0.0, 0.0, *identity),
            "right_free": (DISTANCE, 0.0, 0.0, *identity),
        },
    )


SPIN = np.array([0.02, 0.0, 0.05, 0.6, -0.4, 0.8, -0.02, 0.03, 0.0, -0.5, 0.7, 0.3])


def momenta(simulator):
    """Linear momentum, angular momentum about the world's origin, kinetic energy: own formulas."""
    state = simulator.state
    motion = forward_kinematics(simulator.tree, state.q, state.qd)
    linear, angular, energy = np.zeros(3), np.zeros(3), 0.0
    for link in simulator.robot.links:
        node, pose = simulator.tree.link_node[link.name]
        com = pose.apply(link.inertia.com)
        velocity = motion.point_jacobian(node, com) @ state.qd
        omega = motion.angular_velocity[node]
        rotation = motion.rotation[node] @ pose.rotation
        spin = rotation @ link.inertia.tensor @ rotation.T @ omega
        linear += link.inertia.mass * velocity
        angular += np.cross(motion.point(node, com), link.inertia.mass * velocity) + spin
        energy += 0.5 * link.inertia.mass * velocity @ velocity + 0.5 * omega @ spin
    return linear, angular, energy


def run(robot, tension, *, dt=1e-3, duration=DURATION, every=50, qd=SPIN):
    """Simulate; return momenta and total energy over time, and the fastest rotations."""
    simulator = Simulator(robot, dt)
    simulator.reset(qd=qd)
    kinds = np.full(len(robot.muscles), -1 if tension is None else 0, dtype=np.intp)
    commands = np.full(len(robot.muscles), tension or 0.0)
    bank = simulator.muscles.actuators
    rows, stored, fastest = [momenta(simulator)], [float(np.sum(bank.energy()))], qd.copy()
    for k in range(round(duration / dt)):
        simulator.step(commands, kinds)
        if (k + 1) % every == 0:
            rows.append(momenta(simulator))
            state = simulator.state
            bank._lengths[:] = state.muscle_lengths  # energy of this state, not of the last step
            stored.append(float(np.sum(bank.energy())))
            for spin in (slice(3, 6), slice(9, 12)):
                if np.linalg.norm(state.qd[spin]) > np.linalg.norm(fastest[spin]):
                    fastest[spin] = state.qd[spin]
    linear, angular, energy = (np.array(column) for column in zip(*rows, strict=True))
    return linear, angular, energy + np.array(stored), fastest


def drift_without_muscle(fastest, duration=DURATION):
    """Error of the integrator for the same bodies alone, as fast as the muscle made them."""
    robot = dataclasses.replace(two_bodies(Cable()), muscles=())
    _, angular, _, _ = run(robot, None, qd=fastest, duration=duration)
    return float(np.abs(angular - angular[0]).max())


@pytest.mark.parametrize("name", ACTUATORS)
def test_momentum_with_every_type(name):
    actuator, tension = ACTUATORS[name]
    linear, angular, _, fastest = run(two_bodies(actuator), tension)
    assert np.abs(linear - linear[0]).max() < 1e-9
    error, alone = np.abs(angular - angular[0]).max(), drift_without_muscle(fastest)
    print(f"{name}: angular {error:.2e}, without muscle {alone:.2e} kg m^2/s")
    assert error < 2.0 * alone


@pytest.mark.parametrize("surface", SURFACES)
def test_momentum_with_wrapping_and_friction(surface):
    robot = two_bodies(Cable(), SURFACES[surface], friction=0.2)
    linear, angular, _, fastest = run(robot, 1.0, duration=2.0)
    assert np.abs(linear - linear[0]).max() < 1e-9
    error, alone = np.abs(angular - angular[0]).max(), drift_without_muscle(fastest, 2.0)
    assert error < 2.0 * alone


@pytest.mark.parametrize("name", PASSIVE_ELEMENTS)
def test_passive_elements_add_no_energy(name):
    robot = two_bodies(ACTUATORS[name][0])
    excess = {}
    for dt in (1e-3, 5e-4):
        _, _, energy, _ = run(robot, None, dt=dt, every=20)
        excess[dt] = energy.max() - energy[0]
    print(name, excess, energy[0], energy[-1])
    # what is left is the error of the integrator: it goes away with the step
    assert excess[1e-3] < 0.01 * energy[0]
    assert excess[5e-4] < 0.6 * max(excess[1e-3], 1e-9)


# The midpoint rule ----------------------------------------------------------------------------


def tumbling(count=12, gravity=0.0, seed=4):
    """Return bodies of all shapes, rods and plates among them, and how they spin at 6 rad/s."""
    rng = np.random.default_rng(seed)
    links, spins = [], []
    for i in range(count):
        axes = rng.uniform(0.02, 0.2, 3) if i % 3 else np.array([1e-3, 1e-3, 0.3]) + 0.002 * i
        square = axes**2
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        tensor = 0.2 * turn @ np.diag(square.sum() - square) @ turn.T
        com = rng.uniform(-0.1, 0.1, 3) * (i % 2)
        links.append(Link(f"b{i}", Inertia(1.0, com, tensor)))
        spin = rng.normal(size=3)
        spins.append(np.r_[rng.uniform(-0.1, 0.1, 3), 6.0 * spin / np.linalg.norm(spin)])
    joints = tuple(Joint(f"{link.name}_free", "free", WORLD, link.name) for link in links)
    home = {f"b{i}_free": (3.0 * i, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0) for i in range(count)}
    pull = np.array([0.0, 0.0, -gravity])
    robot = Robot("tumbling", tuple(links), joints, (), gravity=pull, home=home)
    return robot, np.concatenate(spins)


def of_each_body(simulator):
    """Spin about the centre of mass, its energy, velocity and place of the centre."""
    state, out = simulator.state, []
    motion = forward_kinematics(simulator.tree, state.q, state.qd)
    for link in simulator.robot.links:
        node, _ = simulator.tree.link_node[link.name]
        rotation, omega = motion.rotation[node], motion.angular_velocity[node]
        spin = rotation @ link.inertia.tensor @ rotation.T @ omega
        place = motion.point(node, link.inertia.com)
        velocity = motion.point_jacobian(node, link.inertia.com) @ state.qd
        out.append((spin, 0.5 * spin @ omega, velocity, place))
    return [np.array(column) for column in zip(*out, strict=True)]


def test_free_bodies_keep_momentum_and_energy_by_the_midpoint_rule():
    robot, spins = tumbling()
    drift = {}
    for integrator in ("midpoint", "Euler"):
        simulator = Simulator(robot, integrator=integrator)
        simulator.reset(qd=spins)
        spin, energy, velocity, place = of_each_body(simulator)
        size = np.linalg.norm(spin, axis=1)
        worst = np.zeros(4)
        for _ in range(120):
            for _ in range(500):
                simulator.step(np.zeros(0))
            now = of_each_body(simulator)
            way = place + simulator.time * velocity
            found = (
                np.abs(np.linalg.norm(now[0], axis=1) / size - 1.0).max(),
                (np.linalg.norm(now[0] - spin, axis=1) / size).max(),
                np.abs(now[1] / energy - 1.0).max(),
                np.abs(now[3] - way).max(),
            )
            worst = np.maximum(worst, found)
        drift[integrator] = worst
    print(drift)
    assert drift["midpoint"][0] < 1e-5  # inertias are written with seven digits
    assert drift["midpoint"][1] < 6e-3  # h |w|: both ends of a step
    assert drift["midpoint"][2] < 1e-4
    assert drift["midpoint"][3] < 1e-9
    assert drift["Euler"][0] > 0.02
    assert drift["Euler"][2] > 0.02


def test_bodies_turned_by_the_midpoint_rule_fall_as_others():
    robot, spins = tumbling(gravity=9.81)
    simulator = Simulator(robot, integrator="midpoint")
    simulator.reset(qd=spins)
    _, energy, velocity, place = of_each_body(simulator)
    for _ in range(500):
        simulator.step(np.zeros(0))
    t, dt = 0.5, simulator.dt
    way = place + t * velocity - np.array([0.0, 0.0, 0.5 * 9.81 * t * (t + dt)])
    now = of_each_body(simulator)
    assert np.abs(now[3] - way).max() < 1e-9
    assert np.abs(now[1] / energy - 1.0).max() < 1e-4


def test_the_midpoint_rule_with_muscles_and_natively():
    """What muscles do stays internal; a native call of several steps does the same to the bit."""
    robot = two_bodies(ACTUATORS["damped_cable"][0])
    ends = []
    for natively in (False, True):
        simulator = Simulator(robot, integrator="midpoint")
        simulator.reset(qd=SPIN)
        before = momenta(simulator)
        simulator.tell(np.zeros(1), np.full(1, -1, dtype=np.intp))
        for _ in range(200):
            if natively:
                done = simulator.world.advance(50)
                assert done == 50
            else:
                for _ in range(50):
                    simulator.world.step()
        ends.append(np.r_[simulator.state.q, simulator.state.qd])
    linear, angular, _ = momenta(simulator)
    assert np.abs(linear - before[0]).max() < 1e-12
    assert np.abs(angular - before[1]).max() < 2e-4
    assert np.array_equal(*ends)


def test_a_body_that_carries_others_moves_as_mujoco_moves_it():
    arm = Link("arm", Inertia(0.5, np.zeros(3), 1e-3 * np.eye(3)))
    base, other = (Link(n, Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))) for n in ("base", "other"))
    joints = (
        Joint("base_free", "free", WORLD, "base"),
        Joint("other_free", "free", WORLD, "other"),
        Joint("hinge", "revolute", "base", "arm", axes=(JointAxis(np.array([0.0, 0.0, 1.0])),)),
    )
    robot = Robot("floating", (base, other, arm), joints, (), gravity=np.zeros(3))
    assert Simulator(robot, integrator="midpoint").world.free_bodies.count == 1
