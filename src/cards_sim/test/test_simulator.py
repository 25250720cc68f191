"""The simulator's interface: reset, refusals, divergence, pushes, repeatability."""

import dataclasses
import math

import mujoco
import numpy as np
import pytest

from cards_core.errors import CardsError, DescriptionError, ShapeError, UnknownNameError
from cards_core.muscles.command import KINDS
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from cards_core.robot.world import empty_world_with
from cards_sim.errors import SimulationStoppedError
from cards_sim.model import build_model
from cards_sim.simulator import Simulator
from random_robots import random_robot

X, Y, Z = np.eye(3)
ROD = Inertia(2.0, 0.2 * X, np.diag([0.01, 0.03, 0.03]))


def simulator(robot, dt=1e-3, **options):
    return Simulator(robot, dt, muscle_backend="numeric", **options)


def floating():
    """One rod, free in space."""
    joint = Joint("base", "free", WORLD, "rod")
    return Robot("rod", (Link("rod", ROD),), (joint,), gravity=np.zeros(3))


def test_starts_at_home_at_rest():
    joint = Joint("elbow", "revolute", WORLD, "rod", axes=(JointAxis(Y),))
    sim = simulator(Robot("arm", (Link("rod", ROD),), (joint,), home={"elbow": (0.4,)}))
    state = sim.state
    assert (state.time, sim.steps, len(sim.world.contacts)) == (0.0, 0, 0)
    assert state.q.tolist() == [0.4]
    assert state.qd.tolist() == [0.0]
    assert state.tensions.tolist() == []


def test_reset_to_a_given_state_normalises_quaternions():
    sim = simulator(floating())
    sim.reset([1, 2, 3, 1.0001, 0, 0, 0], np.arange(6.0))
    assert sim.state.q.tolist() == [1, 2, 3, 1, 0, 0, 0]
    assert sim.state.qd.tolist() == [0, 1, 2, 3, 4, 5]


def test_state_is_a_copy():
    robot = random_robot(0)
    sim = simulator(robot)
    before = sim.state
    q = before.q.copy()
    sim.step(np.full(4, 10.0))
    np.testing.assert_array_equal(before.q, q)
    assert not np.array_equal(sim.state.q, q)
    assert sim.state.tensions.tolist() == [10.0] * 4
    assert sim.steps == 1


def test_time_is_exact_after_many_steps():
    sim = simulator(floating(), dt=1e-3)
    for _ in range(10000):
        sim.step([])
    assert sim.time == 10.0


# Refusals ------------------------------------------------------------------------------------


def test_invalid_states_and_tensions_are_refused_and_nothing_moves():
    robot = random_robot(1)
    sim = simulator(robot)
    with pytest.raises(ShapeError, match="q has shape"):
        sim.reset([1.0])
    with pytest.raises(ShapeError, match="qd has shape"):
        sim.reset(qd=np.zeros(1))
    with pytest.raises(ShapeError, match="muscle 'muscle0', muscle 'muscle1'"):
        sim.step([1.0])
    with pytest.raises(ShapeError, match="'muscle2' is nan"):
        sim.step([1.0, 1.0, math.nan, 1.0])
    with pytest.raises(ShapeError, match="'muscle3' is inf"):
        sim.step([1.0, 1.0, 1.0, math.inf])
    assert sim.steps == 0
    np.testing.assert_array_equal(sim.state.q, sim.tree.home)


@pytest.mark.parametrize("dt", [0.0, -1e-3, math.nan, math.inf])
def test_senseless_time_step_is_an_error(dt):
    with pytest.raises(CardsError, match="time step"):
        simulator(floating(), dt)


def test_what_mujoco_refuses_is_an_error_of_ours():
    with pytest.raises(DescriptionError, match=r"MuJoCo does not accept it: .*pyramid"):
        build_model(
            empty_world_with(floating()), timestep=1e-3, world_xml="<geom type='pyramid'/>"
        )


# Divergence ----------------------------------------------------------------------------------


def test_divergence_stops_the_world_and_names_the_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    robot = random_robot(2, n_links=3, kinds=("revolute",))
    sim = simulator(robot)
    for _ in range(5):
        sim.step(np.full(4, 1.0))
    before, steps, contacts = sim.state, sim.steps, len(sim.world.contacts)
    with pytest.raises(SimulationStoppedError, match="acceleration") as caught:
        sim.step(np.full(4, 1e14))
    error = caught.value
    assert error.step == 6
    assert error.time == pytest.approx(5e-3)
    assert error.joint in {joint.name for joint in robot.joints}
    assert error.body in {link.name for link in robot.links}
    for text in ("step 6", "t = 0.005 s", error.joint, error.body):
        assert text in str(error)
    # the last good state stays, and nothing moves until a reset
    after = sim.state
    assert (after.time, sim.steps, len(sim.world.contacts)) == (before.time, steps, contacts)
    for name in ("q", "qd", "muscle_lengths", "muscle_rates", "tensions"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    with pytest.raises(SimulationStoppedError) as again:
        sim.step(np.full(4, 1.0))
    assert again.value is error
    sim.reset()
    sim.step(np.full(4, 1.0))
    assert sim.steps == 1
    assert list(tmp_path.iterdir()) == []  # MuJoCo would leave a log file


def test_actuator_states_of_a_step_that_diverged_are_taken_back():
    robot = random_robot(2, n_links=3, kinds=("revolute",))
    winch = Cable(stiffness=1e3, winch_speed=1.0)
    muscles = tuple(dataclasses.replace(m, actuator=winch) for m in robot.muscles)
    sim = simulator(dataclasses.replace(robot, muscles=muscles))
    sim.step(np.full(4, 2.0))
    before = sim.state.actuators
    sim.apply_wrench(robot.links[0].name, 1e14 * X, duration=1.0)
    with pytest.raises(SimulationStoppedError):
        sim.step(np.full(4, 50.0))
    np.testing.assert_array_equal(sim.state.actuators, before)


@pytest.mark.filterwarnings("error")
def test_a_rest_length_whose_square_overflows_is_taken_without_a_warning():
    ends = (ViaPoint(WORLD, np.array([0.5, 0.0, 0.0])), ViaPoint("cart", np.zeros(3)))
    cable = Muscle("cable", ends, actuator=Cable(stiffness=1e4, rest_length=0.4))
    sim = simulator(dataclasses.replace(cart(), muscles=(cable,)))
    sim.step([1e200], np.array([KINDS.index("length")]))
    assert sim.state.tensions[0] == 0.0


def cart():
    """A rod that slides along x."""
    joint = Joint("rail", "prismatic", WORLD, "cart", axes=(JointAxis(X),))
    return Robot("cart", (Link("cart", ROD),), (joint,), gravity=np.zeros(3))


def steps_until_stop(sim, limit=2000):
    for _ in range(limit):
        sim.step([])


def test_huge_velocity_is_noticed():
    sim = simulator(cart())
    sim.apply_wrench("cart", 9e9 * ROD.mass * X, duration=10.0)
    with pytest.raises(SimulationStoppedError, match="joint velocity") as caught:
        steps_until_stop(sim)
    # 1e10 m/s is reached after 1e10 / (9e9 * 1e-3) = 1111.1 steps
    assert caught.value.step == 1112
    assert (caught.value.joint, caught.value.body) == ("rail", "cart")


def test_huge_position_is_noticed():
    sim = simulator(cart())
    sim.reset(qd=np.array([9e9]))
    with pytest.raises(SimulationStoppedError, match="joint position") as caught:
        steps_until_stop(sim)
    assert caught.value.step == 1112
    assert (caught.value.joint, caught.value.body) == ("rail", "cart")


def test_singular_mass_matrix_is_noticed_at_the_start():
    # two rails in the same direction with nothing between them: who moves is not determined
    links = (Link("between"), Link("cart", ROD))
    joints = tuple(
        Joint(f"rail{i}", "prismatic", parent, child, axes=(JointAxis(X),))
        for i, (parent, child) in enumerate([(WORLD, "between"), ("between", "cart")])
    )
    with pytest.raises(SimulationStoppedError, match="mass matrix is singular at joint 'rail"):
        simulator(Robot("redundant", links, joints))


@pytest.mark.parametrize("state", [{"q": [1e11]}, {"qd": [-1e11]}])
def test_huge_start_is_refused(state):
    with pytest.raises(ShapeError, match="'rail' starts at"):
        simulator(cart()).reset(**state)


def test_divergence_of_one_simulator_leaves_others_alone():
    first, second = simulator(floating()), simulator(floating())
    first.apply_wrench("rod", 1e12 * X, duration=1.0)
    with pytest.raises(SimulationStoppedError, match="acceleration"):
        first.step([])
    second.step([])


# Pushes --------------------------------------------------------------------------------------


def test_push_through_the_centre_of_mass():
    sim = simulator(floating())
    sim.apply_wrench("rod", [4.0, 0.0, 0.0], duration=0.1)
    for _ in range(300):
        sim.step([])
    # 0.1 s at 4 N / 2 kg; no rotation
    np.testing.assert_allclose(sim.state.qd, [0.2, 0, 0, 0, 0, 0], atol=1e-12)


def test_push_at_a_point_and_torque():
    # 0.2 m from the centre of mass
    sim = simulator(floating())
    sim.apply_wrench("rod", [0.0, 3.0, 0.0], [0.0, 0.0, 0.5], duration=1e-3, point=[0.4, 0.0, 0.0])
    sim.step([])
    spin = 1e-3 * (0.2 * 3.0 + 0.5) / ROD.tensor[2, 2]
    np.testing.assert_allclose(sim.state.qd[3:], [0, 0, spin], atol=1e-12)
    # the link origin moves with the rotation about the centre of mass of 2 kg
    np.testing.assert_allclose(sim.state.qd[:3], [0, 1.5e-3 - 0.2 * spin, 0], atol=1e-12)
    sim.step([])
    np.testing.assert_allclose(sim.state.qd[5], spin, rtol=1e-6)


def test_a_push_replaces_that_before_on_this_link_and_a_wrong_one_does_not():
    sim = simulator(floating())
    sim.apply_wrench("rod", [400.0, 0.0, 0.0], duration=1.0)
    sim.apply_wrench("rod", [4.0, 0.0, 0.0], duration=0.1)
    for wrong in (0.0, -0.1, math.nan, math.inf):
        with pytest.raises(ShapeError, match="duration of a push in s is"):
            sim.apply_wrench("rod", [400.0, 0.0, 0.0], duration=wrong)
    for _ in range(300):
        sim.step([])
    # the short one of 4 N alone
    np.testing.assert_allclose(sim.state.qd, [0.2, 0, 0, 0, 0, 0], atol=1e-12)


def test_reset_ends_a_push():
    sim = simulator(floating())
    sim.apply_wrench("rod", X, duration=10.0)
    sim.step([])
    sim.reset()
    sim.step([])
    assert not np.any(sim.state.qd)


def test_senseless_pushes_are_refused():
    sim = simulator(floating())
    with pytest.raises(UnknownNameError, match="stick"):
        sim.apply_wrench("stick", X, duration=1.0)
    with pytest.raises(ShapeError, match="force"):
        sim.apply_wrench("rod", [1.0, math.nan, 0.0], duration=1.0)
    with pytest.raises(ShapeError, match="torque"):
        sim.apply_wrench("rod", X, [1.0], duration=1.0)
    with pytest.raises(ShapeError, match="duration"):
        sim.apply_wrench("rod", X, duration=math.inf)
    links = (Link("cross"), Link("rod", ROD))
    joints = tuple(
        Joint(f"j{i}", "revolute", parent, child, axes=(JointAxis(axis),))
        for i, (parent, child, axis) in enumerate([(WORLD, "cross", X), ("cross", "rod", Y)])
    )
    with pytest.raises(CardsError, match="'cross' has no mass"):
        simulator(Robot("gimbal", links, joints)).apply_wrench("cross", X, duration=1.0)


# Repeatability -------------------------------------------------------------------------------


def record(sim, steps=300):
    rng = np.random.default_rng(5)
    rows = []
    for _ in range(steps):
        sim.step(rng.uniform(1.0, 30.0, len(sim.robot.muscles)))
        state = sim.state
        rows.append(np.concatenate([state.q, state.qd, state.muscle_lengths, state.muscle_rates]))
    return np.array(rows)


def test_two_runs_and_a_run_after_a_reset_are_equal_to_the_last_bit():
    robot = random_robot(3, n_links=4)
    first, second = simulator(robot), simulator(robot)
    run = record(first)
    assert run.tobytes() == record(second).tobytes()
    first.apply_wrench(robot.links[1].name, X, duration=0.5)
    record(first, 50)
    first.reset()
    assert run.tobytes() == record(first).tobytes()


def test_reading_the_state_does_not_change_the_run():
    robot = random_robot(4)
    read, unread = simulator(robot), simulator(robot)
    for k in range(100):
        read.step(np.full(4, 5.0 + k))
        unread.step(np.full(4, 5.0 + k))
        assert read.steps == k + 1
        read.link_poses()
        read.muscle_paths()
        read.energy()
    assert read.state.q.tobytes() == unread.state.q.tobytes()


def test_compiled_muscles_give_the_run_of_the_numeric_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    monkeypatch.setenv("CFLAGS", "-O0")
    robot = random_robot(6, n_links=3)
    native = Simulator(robot, muscle_backend="compiled")
    np.testing.assert_allclose(record(native, 50), record(simulator(robot), 50), atol=1e-9)


def test_loose_objects_of_the_world_are_not_part_of_q():
    ball = "<body name='ball' pos='0 0 5'><freejoint/><geom size='.1'/></body>"
    sim = simulator(floating(), world_xml=ball)
    assert sim.state.q.shape == (7,)
    assert sim.state.qd.shape == (6,)
    sim.apply_wrench("rod", 2.0 * X, duration=1e-3)
    sim.step([])
    np.testing.assert_allclose(sim.state.qd, [1e-3, 0, 0, 0, 0, 0], atol=1e-15)
    assert sim.model.nq == 14
    assert mujoco.mj_name2id(sim.model, mujoco.mjtObj.mjOBJ_BODY, "ball") > 0
