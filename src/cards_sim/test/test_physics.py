"""The simulated physics against closed forms, conservation laws and the core's dynamics."""

import dataclasses
import itertools

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.robot.elements import (
    WORLD,
    Box,
    Collision,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    Sphere,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, quaternion_matrix
from cards_sim.simulator import Simulator
from random_robots import random_inertia, random_pose, random_robot, random_rotation

X, Y, Z = np.eye(3)
GRAVITY = 9.81
CUBE = Inertia(2.0, np.zeros(3), 0.05 * np.eye(3))


def simulator(robot, dt=1e-3, **options):
    return Simulator(robot, dt, muscle_backend="numeric", **options)


def slider(**axis):
    """One cube that slides along x."""
    joint = Joint("rail", "prismatic", WORLD, "cart", axes=(JointAxis(X, **axis),))
    return Robot("slider", (Link("cart", CUBE),), (joint,), gravity=np.zeros(3))


# Equation of motion --------------------------------------------------------------------------


def expected_acceleration(robot, q, qd, tensions):
    """``qdd = M^-1 (-L' f - C - G)``."""
    state = make_dynamics(robot, "numeric").update(q, qd)
    forces = -state.muscle_jacobian.T @ tensions - state.coriolis - state.gravity
    return np.linalg.solve(state.mass_matrix, forces)


def check_acceleration(robot, seed):
    sim = simulator(robot)
    rng = np.random.default_rng(seed)
    q, qd = sim.tree.random(rng), rng.normal(size=sim.tree.nv)
    tensions = rng.uniform(0.0, 100.0, len(robot.muscles))
    sim.reset(q, qd)
    sim.step(tensions)
    expected = expected_acceleration(robot, q, qd, tensions)
    scale = np.abs(expected).max() + 1.0
    np.testing.assert_allclose(sim.data.qacc / scale, expected / scale, rtol=0.0, atol=1e-9)
    # semi-implicit Euler: the new velocity moves the coordinates
    velocity = qd + sim.dt * expected
    np.testing.assert_allclose(sim.state.qd / scale, velocity / scale, rtol=0.0, atol=1e-12)
    moved = sim.tree.integrate(q, sim.dt * sim.state.qd)
    np.testing.assert_allclose(sim.state.q, moved, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_muscles_act_as_generalised_forces_minus_l_transposed_f(seed):
    check_acceleration(random_robot(seed, n_links=5, n_muscles=6), seed)


@pytest.mark.parametrize("seed", range(10))
def test_motors_act_as_generalised_forces_on_their_joints(seed):
    """``qdd = M^-1 (-L' f + S tau - C - G)`` of a random tree with motors at random joints."""
    robot = random_robot(seed, n_links=5, n_muscles=3)
    rng = np.random.default_rng(seed)
    driven = [joint.name for joint in robot.joints if joint.axes and rng.random() < 0.6]
    joints = (dataclasses.replace(j, motor=j.name in driven) for j in robot.joints)
    robot = dataclasses.replace(robot, joints=tuple(joints))
    sim = simulator(robot)
    q, qd = sim.tree.random(rng), rng.normal(size=sim.tree.nv)
    tensions = rng.uniform(0.0, 100.0, len(robot.muscles))
    efforts = rng.normal(scale=20.0, size=len(sim.motors))
    sim.reset(q, qd)
    sim.step(np.concatenate([tensions, efforts]))
    # by the names of the coordinates, not by the rows that the simulator used
    forces = np.zeros(sim.tree.nv)
    for name, effort in zip(sim.motors.names, efforts, strict=True):
        forces[sim.tree.velocity_names.index(name)] = effort
    state = make_dynamics(robot, "numeric").update(q, qd)
    mass = state.mass_matrix
    expected = expected_acceleration(robot, q, qd, tensions) + np.linalg.solve(mass, forces)
    scale = np.abs(expected).max() + 1.0
    np.testing.assert_allclose(sim.data.qacc / scale, expected / scale, rtol=0.0, atol=1e-9)
    np.testing.assert_array_equal(sim.state.efforts, efforts)
    # an effort lasts a step: the next one without has none of it
    sim.reset(q, qd)
    sim.step(np.concatenate([tensions, 0.0 * efforts]))
    plain = expected_acceleration(robot, q, qd, tensions)
    np.testing.assert_allclose(sim.data.qacc / scale, plain / scale, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_also_where_massless_links_are_merged_into_their_children(seed):
    rng = np.random.default_rng(seed)
    names = ["a", "b", "arm", "hand"]
    links = tuple(Link(n, random_inertia(rng) if len(n) > 1 else Inertia()) for n in names)
    joints = tuple(
        Joint(
            f"j{i}",
            "revolute",
            [WORLD, *names][i],
            name,
            random_pose(rng),
            random_pose(rng),
            (JointAxis(random_rotation(rng)[:, 0]),),
        )
        for i, name in enumerate(names)
    )
    muscles = tuple(
        Muscle(
            f"m{i}", tuple(ViaPoint(n, rng.uniform(-0.4, 0.4, 3)) for n in (WORLD, "arm", "hand"))
        )
        for i in range(3)
    )
    robot = Robot("merged", links, joints, muscles)
    check_acceleration(robot, seed)
    sim = simulator(robot)
    q = sim.tree.random(rng)
    sim.reset(q)
    poses = make_dynamics(robot, "numeric").link_poses(q)
    np.testing.assert_allclose(sim.link_poses(), poses, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_state_has_muscle_lengths_and_rates_of_the_same_instant(seed):
    robot = random_robot(seed, n_muscles=6)
    sim = simulator(robot)
    rng = np.random.default_rng(seed)
    sim.reset(sim.tree.random(rng), rng.normal(size=sim.tree.nv))
    dynamics = make_dynamics(robot, "numeric")
    for _ in range(3):
        state = sim.state
        core = dynamics.update(state.q, state.qd)
        np.testing.assert_allclose(state.muscle_lengths, core.muscle_lengths, atol=1e-12)
        rates = core.muscle_jacobian @ state.qd
        np.testing.assert_allclose(state.muscle_rates, rates, atol=1e-10)
        np.testing.assert_allclose(sim.link_poses(), dynamics.link_poses(state.q), atol=1e-12)
        ends = [path[[0, -1]] for path in sim.muscle_paths()]
        chord = [np.linalg.norm(b - a) for a, b in ends]
        assert np.all(state.muscle_lengths >= np.array(chord) - 1e-12)
        sim.step(np.full(6, 5.0))


# Energy --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_energy_is_that_of_the_core(seed):
    robot = random_robot(seed)
    sim = simulator(robot)
    dynamics = make_dynamics(robot, "numeric")
    rng = np.random.default_rng(seed)

    def potential(q):
        poses = dynamics.link_poses(q)
        coms = [
            pose[:3] @ [*k.inertia.com, 1.0] for pose, k in zip(poses, robot.links, strict=True)
        ]
        masses = [link.inertia.mass for link in robot.links]
        return -sum(m * robot.gravity @ c for m, c in zip(masses, coms, strict=True))

    for _ in range(3):
        q, qd = sim.tree.random(rng), rng.normal(size=sim.tree.nv)
        sim.reset(q, qd)
        kinetic, height = sim.energy()
        mass_matrix = dynamics.update(q, qd).mass_matrix
        assert kinetic == pytest.approx(0.5 * qd @ mass_matrix @ qd, rel=1e-10)
        assert height == pytest.approx(potential(q), rel=1e-10, abs=1e-10)


def energy_error(robot, dt, duration, tension):
    """Largest change of kinetic + potential energy + work stored by constant tensions."""
    sim = simulator(robot, dt)
    rng = np.random.default_rng(0)
    sim.reset(sim.tree.random(rng, span=0.3), 0.5 * rng.normal(size=sim.tree.nv))
    tensions = np.full(len(robot.muscles), tension)
    total = []
    for _ in range(round(duration / dt)):
        total.append(sum(sim.energy()) + tensions @ sim.state.muscle_lengths)
        sim.step(tensions)
    return np.abs(np.array(total) - total[0]).max()


@pytest.mark.parametrize("tension", [0.0, 20.0])
def test_energy_error_of_a_passive_tree_halves_with_the_time_step(tension):
    # a muscle of constant tension f stores the energy f l
    robot = random_robot(2, n_links=3, n_muscles=2, kinds=("revolute", "universal", "ball"))
    coarse, middle, fine = (energy_error(robot, dt, 0.4, tension) for dt in (8e-4, 4e-4, 2e-4))
    assert coarse / middle == pytest.approx(2.0, abs=0.2)
    assert middle / fine == pytest.approx(2.0, abs=0.1)


def test_semi_implicit_euler_keeps_the_energy_of_a_pendulum_over_many_swings():
    link = Link("rod", Inertia(1.0, -0.5 * Z, np.diag([0.08, 0.08, 0.001])))
    joint = Joint("pivot", "revolute", WORLD, "rod", axes=(JointAxis(X),))
    sim = simulator(Robot("pendulum", (link,), (joint,)))
    sim.reset([1.0])
    start = sum(sim.energy())
    error = []
    for _ in range(20000):
        sim.step([])
        error.append(sum(sim.energy()) - start)
    swing = 9.81 * 0.5 * (1.0 - np.cos(1.0))  # energy exchanged in every swing, J
    assert np.abs(error).max() < 3e-3 * swing
    # it goes to and fro with the swings but does not grow
    early, late = np.array(error[:5000]), np.array(error[-5000:])
    assert np.abs(late).max() == pytest.approx(np.abs(early).max(), rel=0.02)


def test_joint_damping_is_implicit_and_friction_holds():
    sim = simulator(slider(damping=3.0))
    sim.reset(qd=np.array([1.0]))
    for _ in range(100):
        sim.step([])
    expected = (1.0 + 3.0 * sim.dt / CUBE.mass) ** -100
    assert sim.state.qd[0] == pytest.approx(expected, rel=1e-12)

    held = dataclasses.replace(slider(friction=5.0), gravity=np.array([2.0, 0.0, 0.0]))
    sim = simulator(held)  # 4 N of weight along the rail, 5 N of dry friction
    for _ in range(1000):
        sim.step([])
    assert abs(sim.state.q[0]) < 5e-3  # MuJoCo's dry friction creeps; free, it would be 1 m away
    sim = simulator(dataclasses.replace(held, gravity=np.array([4.0, 0.0, 0.0])))
    for _ in range(1000):
        sim.step([])
    assert sim.state.qd[0] == pytest.approx((8.0 - 5.0) / CUBE.mass, rel=1e-2)


# Momentum ------------------------------------------------------------------------------------


def two_bodies(com, attachment):
    """Two free bodies of different mass, a muscle between them, no gravity."""
    rng = np.random.default_rng(3)
    links = tuple(Link(n, dataclasses.replace(random_inertia(rng), com=com)) for n in "ab")
    joints = tuple(Joint(f"free_{n}", "free", WORLD, n) for n in "ab")
    points = (ViaPoint("a", com + attachment), ViaPoint("b", com - attachment))
    home = {"free_b": (1.0, 0.5, 0.3, 1.0, 0.0, 0.0, 0.0)}
    muscle = Muscle("cable", points, 0.0, 100.0)
    return Robot("pair", links, joints, (muscle,), gravity=np.zeros(3), home=home)


def momentum(sim):
    """Linear and angular momentum of the bodies about the world's origin."""
    linear, angular = np.zeros(3), np.zeros(3)
    state = sim.state
    for i, link in enumerate(sim.robot.links):
        q, qd = state.q[7 * i : 7 * i + 7], state.qd[6 * i : 6 * i + 6]
        rotation = quaternion_matrix(q[3:])
        spin = rotation @ qd[3:]
        arm = rotation @ link.inertia.com
        p = link.inertia.mass * (qd[:3] + np.cross(spin, arm))
        linear += p
        angular += np.cross(q[:3] + arm, p) + rotation @ link.inertia.tensor @ qd[3:]
    return linear, angular


def momentum_drift(dt, com, attachment, spin=0.0):
    """Largest change of linear and of angular momentum in 0.4 s."""
    sim = simulator(two_bodies(com, attachment), dt)
    qd = np.zeros(12)
    qd[3:6] = spin
    qd[:3] = -np.cross(qd[3:6], com)  # a free joint has the velocity of the link origin
    sim.reset(qd=qd)
    linear, angular = momentum(sim)
    drift = np.zeros(2)
    for _ in range(round(0.4 / dt)):
        sim.step([5.0])
        now = momentum(sim)
        change = [np.linalg.norm(now[0] - linear), np.linalg.norm(now[1] - angular)]
        drift = np.maximum(drift, change)
    assert np.abs(sim.state.qd).max() > 0.5  # the muscle did move them
    return drift


ASIDE = np.array([0.0, 0.15, 0.1])


def test_muscle_between_centres_of_mass_keeps_linear_and_angular_momentum():
    linear, angular = momentum_drift(1e-3, 0.1 * X, np.zeros(3))
    assert linear < 1e-9
    assert angular < 1e-9


def test_muscle_that_spins_the_bodies_keeps_linear_momentum():
    drifts = [momentum_drift(dt, np.zeros(3), ASIDE, spin=1.0) for dt in (2e-3, 1e-3, 5e-4)]
    for coarse, fine in itertools.pairwise(drifts):
        assert coarse[0] < 1e-9
        # the rotation of an asymmetric body is integrated to first order
        assert coarse[1] / fine[1] == pytest.approx(2.0, abs=0.25)


def test_momentum_error_of_bodies_with_an_offset_centre_of_mass_is_of_first_order():
    # velocity of the link origin is what is integrated, and the centre of mass turns about it
    drifts = [momentum_drift(dt, 0.1 * X, ASIDE, spin=1.0) for dt in (2e-3, 1e-3, 5e-4)]
    for coarse, fine in itertools.pairwise(drifts):
        np.testing.assert_allclose(coarse / fine, 2.0, atol=0.25)


# Falling, limits, contacts -------------------------------------------------------------------


def test_free_fall_is_the_sum_of_the_steps():
    joint = Joint("base", "free", WORLD, "cube")
    sim = simulator(Robot("cube", (Link("cube", CUBE),), (joint,)))
    n = 200
    for _ in range(n):
        sim.step([])
    assert sim.state.q[2] == pytest.approx(-GRAVITY * sim.dt**2 * n * (n + 1) / 2, rel=1e-12)
    assert sim.state.qd[2] == pytest.approx(-GRAVITY * sim.dt * n, rel=1e-12)
    assert sim.time == n * sim.dt


def test_joint_limit_stops_a_muscle():
    cable = Muscle("cable", (ViaPoint(WORLD, 5.0 * X), ViaPoint("cart", np.zeros(3))), 0, 1000)
    robot = dataclasses.replace(slider(lower=-0.2, upper=0.3), muscles=(cable,))
    sim = simulator(robot)
    for _ in range(3000):
        sim.step([500.0])
    assert 0.3 < sim.state.q[0] < 0.31  # the limit is stiff, not rigid
    assert abs(sim.state.qd[0]) < 1e-3


def test_box_falls_on_the_ground_and_stays_there():
    hull = Collision("hull", Box(np.full(3, 0.2)))
    link = Link("cube", CUBE, collisions=(hull,))
    robot = Robot(
        "cube",
        (link,),
        (Joint("base", "free", WORLD, "cube"),),
        home={"base": (0.0, 0.0, 0.5, 1.0, 0.0, 0.0, 0.0)},
    )
    sim = simulator(robot, ground=-1.0)
    assert len(sim.world.contacts) == 0
    for _ in range(2000):
        sim.step([])
    assert sim.state.q[2] == pytest.approx(-0.9, abs=2e-3)
    assert len(sim.world.contacts) >= 3
    assert np.abs(sim.state.qd).max() < 1e-3


def test_links_that_are_apart_at_home_collide_later():
    hull = (Collision("hull", Sphere(0.1)),)
    links = tuple(Link(name, CUBE, collisions=hull) for name in ("left", "right"))
    joints = tuple(
        Joint(f"rail_{link.name}", "prismatic", WORLD, link.name, axes=(JointAxis(X),))
        for link in links
    )
    cable = Muscle("cable", (ViaPoint("left", np.zeros(3)), ViaPoint("right", np.zeros(3))))
    home = {"rail_left": (-0.5,), "rail_right": (0.5,)}
    robot = Robot("pair", links, joints, (cable,), gravity=np.zeros(3), home=home)
    sim = simulator(robot)
    for _ in range(2000):
        sim.step([20.0])
    left, right = sim.state.q
    assert right - left == pytest.approx(0.2, abs=0.01)
    assert len(sim.world.contacts) == 1


def test_links_that_overlap_at_home_never_collide():
    hull = (Collision("hull", Sphere(0.3)),)
    names = ("upper", "wrist", "hand")
    links = tuple(Link(name, CUBE, collisions=hull) for name in names)
    joints = tuple(
        Joint(name + "_joint", "revolute", parent, name, Pose(np.eye(3), 0.1 * X), axes=(axis,))
        for parent, name, axis in zip(
            (WORLD, *names), names, (JointAxis(Y), JointAxis(Z), JointAxis(Y)), strict=False
        )
    )
    sim = simulator(Robot("overlap", links, joints))
    for _ in range(200):
        sim.step([])
        assert len(sim.world.contacts) == 0
