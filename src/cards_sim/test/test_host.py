"""The host must do what simulator and command gate do, in the right order, and log it."""

import numpy as np
import pytest

from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.muscles.command import CommandRefusedError, command_of
from cards_core.parameters.declaration import ParameterSet
from cards_sim.build import build_host, build_world_host
from cards_sim.host import SimulatorHost
from cards_sim.simulator import Simulator

DT = 1e-3


@pytest.fixture(scope="module")
def robot():
    return load("planar_2r")


def names_of(robot):
    return [muscle.name for muscle in robot.muscles]


def test_steps_are_those_of_the_simulator_and_all_are_logged(robot, tmp_path):
    rng = np.random.default_rng(1)
    commands = rng.uniform(10.0, 100.0, size=(50, 4))
    host = SimulatorHost(
        Simulator(robot, DT), command_timeout=0.1, log_path=tmp_path / "simulator.npz"
    )
    plain = Simulator(robot, DT)
    for k, tensions in enumerate(commands):
        assert host.stamp == k * 1_000_000
        host.submit(command_of(names_of(robot), tensions))
        host.step()
        plain.step(tensions)
        assert host.state.q.tobytes() == plain.state.q.tobytes()
        assert host.state.qd.tobytes() == plain.state.qd.tobytes()
    host.close()
    with np.load(tmp_path / "simulator.npz") as log:
        assert np.array_equal(log["time"], np.arange(1, 51) / 1000.0)  # as published
        assert np.array_equal(log["tensions"], commands)
        assert log["q"][-1].tobytes() == plain.state.q.tobytes()
        assert np.array_equal(log["muscle_lengths"][-1], plain.state.muscle_lengths)
        assert log["muscle_names"].tolist() == names_of(robot)


def test_without_commands_the_tensions_fall_to_the_minimum(robot):
    host = SimulatorHost(Simulator(robot, DT), command_timeout=0.01)
    host.submit(command_of(names_of(robot), [50.0] * 4))
    applied = []
    for _ in range(20):
        host.step()
        applied.append(host.state.tensions.copy())
    times = np.arange(1, 21) * DT
    high = np.array(applied).max(axis=1) > 10.0
    assert high.any()
    assert times[high].max() <= 0.01 + DT + 1e-12
    assert host.gate.stale


def test_reset_goes_back_to_the_initial_positions(robot, tmp_path):
    start = np.array([-0.5, 0.5])
    host = SimulatorHost(
        Simulator(robot, DT),
        command_timeout=0.1,
        initial_positions=start,
        log_path=tmp_path / "simulator.npz",
    )
    for _ in range(5):
        host.step()
    host.gate.estop()
    with pytest.raises(CommandRefusedError):
        host.submit(command_of(names_of(robot), [50.0] * 4))
    host.reset()
    assert host.stamp == 0
    assert np.array_equal(host.state.q, start)
    host.submit(command_of(names_of(robot), [50.0] * 4))
    host.step()
    host.close()
    with np.load(tmp_path / "simulator.npz") as log:
        assert log["time"].tolist() == [DT]


def test_the_number_of_initial_positions_is_checked(robot):
    with pytest.raises(ShapeError, match="joint"):
        SimulatorHost(Simulator(robot, DT), command_timeout=0.1, initial_positions=np.zeros(3))


def test_every_kind_of_command_reaches_its_muscle():
    robot = load("wrap_elbow")
    host = SimulatorHost(Simulator(robot, DT), command_timeout=0.1)
    activations = []
    for excitation in (0.02, 0.6):
        host.reset()
        for _ in range(100):
            host.submit(command_of(["biceps"], [excitation], "excitation"))
            host.step()
        activations.append(host.state.actuators[0])
    np.testing.assert_allclose(activations, [0.02, 0.6], atol=0.02)
    assert host.simulator.muscles.state_names[0] == "biceps/activation"
    with pytest.raises(CommandRefusedError, match="'capsule' takes no force command"):
        host.submit(command_of(names_of(robot), [0.0, 0.0, 0.0]))
    for _ in range(400):  # nobody commands any more: it relaxes
        host.step()
    assert host.gate.stale
    assert host.state.actuators[0] < 0.02


def test_runs_with_wraps_and_actuators_repeat_to_the_last_bit():
    """After other motions, and whoever looks: neither actuators nor geodesics remember."""
    robot = load("wrap_elbow")

    def run(host, steps, look=False):
        rows = []
        for k in range(steps):
            told = [0.5 + 0.4 * np.sin(0.05 * k), 0.2]
            host.submit(command_of(["biceps", "triceps"], told, "excitation"))
            host.step()
            if look:
                host.simulator.muscle_paths()
                host.simulator.link_poses()
            state = host.state
            rows.append(
                np.concatenate(
                    [state.q, state.qd, state.muscle_lengths, state.tensions, state.actuators]
                )
            )
        return np.array(rows)

    host = SimulatorHost(Simulator(robot, DT), command_timeout=0.1)
    first = run(host, 200)
    host.submit(command_of(["biceps"], [700.0]))
    for _ in range(30):
        host.step()
    host.reset()
    assert run(host, 200, look=True).tobytes() == first.tobytes()
    fresh = SimulatorHost(Simulator(robot, DT), command_timeout=0.1)
    assert run(fresh, 200).tobytes() == first.tobytes()


def test_the_log_says_when_the_muscles_were_let_go(robot, tmp_path):
    host = SimulatorHost(
        Simulator(robot), command_timeout=0.0055, log_path=tmp_path / "simulator.npz"
    )
    names = names_of(robot)
    for k in range(20):
        if k < 5:
            host.submit(command_of(names, np.full(len(names), 20.0)))
        if k == 15:
            host.gate.estop()
        if k == 10:
            host.behind = 0.25
            with pytest.raises(CommandRefusedError):
                host.submit(command_of(["nobody"], [1.0]))
        host.step()
    host.close()
    with np.load(tmp_path / "simulator.npz") as log:
        # the last command came at 4 ms and holds for 5.5 ms
        assert log["gate"].tolist() == [0] * 10 + [1] * 5 + [2] * 5
        assert log["refused"].tolist() == [0] * 10 + [1] * 10
        assert log["behind"].tolist() == [0.0] * 10 + [0.25] * 10


# Several robots of one world ---------------------------------------------------------------------


def two_arms(**options):
    return build_world_host(load_world("two_arms"), DT, **options)


def test_robots_of_one_world_step_together():
    world = two_arms()
    assert list(world.robots) == ["left_arm", "right_arm"]
    names = names_of(load("roboy_arm"))
    plain = Simulator(load("roboy_arm"), DT)
    for _ in range(50):
        for host in world.robots.values():
            host.submit(command_of(names, np.full(11, 30.0)))
        world.step()
        plain.step(np.full(11, 30.0))
    assert {host.stamp for host in world.robots.values()} == {world.stamp} == {50_000_000}
    for host in world.robots.values():
        np.testing.assert_allclose(host.state.q, plain.state.q, atol=1e-10)
    world.reset()
    assert world.stamp == 0
    for host in world.robots.values():
        np.testing.assert_array_equal(host.state.q, host.robot.tree.home)


def test_each_robot_of_a_world_has_its_own_gate():
    world = two_arms(command_timeout=0.01)
    names = names_of(load("roboy_arm"))
    for _ in range(30):
        world.robots["left_arm"].submit(command_of(names, np.full(11, 50.0)))
        world.step()
    left, right = (world.robots[name] for name in ("left_arm", "right_arm"))
    assert not left.gate.stale
    assert right.gate.stale
    assert left.state.tensions.min() == 50.0
    assert right.state.tensions.max() < 50.0
    world.estop()
    with pytest.raises(CommandRefusedError):
        left.submit(command_of(names, np.full(11, 50.0)))


def test_a_world_begins_where_it_is_told():
    start = load("roboy_arm").tree.home + 0.05
    world = two_arms(initial_positions={"left_arm": start})
    for _ in range(2):
        np.testing.assert_array_equal(world.robots["left_arm"].state.q, start)
        home = world.robots["right_arm"].robot.tree.home
        np.testing.assert_array_equal(world.robots["right_arm"].state.q, home)
        world.step()
        world.reset()
    with pytest.raises(UnknownNameError, match="left_arm"):
        two_arms(initial_positions={"arm": start})


def test_one_robot_of_several_does_not_step_alone():
    left = two_arms().robots["left_arm"]
    for act in (left.advance, left.step, left.reset):
        with pytest.raises(CardsError, match="'left_arm' shares its world"):
            act()


def test_a_world_without_robots_has_no_hosts():
    with pytest.raises(CardsError, match="'table' has no robot"):
        build_world_host(load_world("table"))


def test_the_parameter_world_puts_the_robot_among_objects():
    given = {"model": "roboy_arm", "world": "table"}
    host = build_host(ParameterSet(given))
    host.step()
    assert "box::link" in host.simulator.world.object_poses()
    assert host.state.contact_forces.shape == (len(host.robot.links), 3)
    with pytest.raises(CardsError, match="has robots of its own: left_arm, right_arm"):
        build_host(ParameterSet(given | {"world": "two_arms"}))
    with pytest.raises(UnknownNameError, match="table"):
        build_host(ParameterSet(given | {"world": "tabel"}))
