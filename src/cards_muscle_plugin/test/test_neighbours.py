"""Cables of a robot that touch other models, against a simulator of our own."""

from dataclasses import replace

import numpy as np
import pytest
from fake_simulator import DT, FakeSimulator
from neighbour_models import THROWN, around, embedded, written
from test_gazebo_host import Turn
from touched_models import SHAPES, thing, thrower

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.robot.elements import WORLD, Capsule, Collision, Inertia, Joint, JointAxis, Link
from cards_core.spatial import Pose
from cards_muscle_plugin.gazebo_host import GazeboHost
from cards_muscle_plugin.hosted_robot import host_robot
from cards_muscle_plugin.surroundings import VARIABLE, leave_surroundings


def hosted(folder, monkeypatch, shape, friction=0.0):
    """A host with ports of a simulator of our own, and that of the thing."""
    monkeypatch.setenv(VARIABLE, "")
    for name, text in leave_surroundings(folder / "around", {"thrower": around(shape)}).items():
        monkeypatch.setenv(name, text)
    file, block = written(folder, thrower(friction))
    simulator = FakeSimulator(load(file), file=file)
    other = FakeSimulator(thing(shape))
    for one in (simulator, other):
        one.q = one.tree.home.copy()
        one.dynamics = make_dynamics(replace(one.robot, gravity=np.zeros(3)), "numeric")
    simulator.others["thing"] = other
    host = GazeboHost(host_robot(simulator, block), simulator, command_timeout=1.0)
    return simulator, other, host


@pytest.mark.parametrize("friction", [0.0, 0.4])
@pytest.mark.parametrize("kind", SHAPES)
def test_a_cable_carries_off_another_model(tmp_path, monkeypatch, kind, friction):
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    simulator, other, host = hosted(tmp_path, monkeypatch, SHAPES[kind], friction)
    turn = Turn(host)
    simulator.iterate(turn)  # as in Gazebo the first step has no muscles
    simulator.qd[[1, 7]] = THROWN
    host.read(simulator.time)
    step = embedded(simulator.file, SHAPES[kind], simulator.q, simulator.qd)
    start = 0.05 * (simulator.qd[:3] + simulator.qd[6:9])
    tensions, expected, touched = [], [], 0
    for _ in range(200):
        simulator.iterate(turn)
        momentum = 0.05 * (simulator.qd[:3] + simulator.qd[6:9]) + 0.08 * other.qd[:3]
        assert np.abs(momentum - start).max() < 1e-10
        tensions.append(host.tensions[0])
        expected.append(step())
        touched += len(other.last_applied) > 0
    assert touched > 20
    assert other.qd[1] > 0.05
    worst = np.abs(np.subtract(tensions, expected)).max() / np.max(expected)
    print(f"tensions beside the embedded simulator: {worst:.2e} of the largest")
    assert worst < 0.02


def test_a_link_of_its_own_that_holds_no_muscle_is_pulled(tmp_path):
    """A flap on a hinge, in the way of the cable: it swings as the sum of moments asks for."""
    robot = thrower()
    flap = Link(
        "flap",
        Inertia(0.08, np.zeros(3), np.diag([2e-5, 2e-5, 2e-5])),
        collisions=(Collision("c", Capsule(0.005, 0.2)),),
    )
    place = Pose(translation=np.array([0.0, 0.06, -0.02]))
    hinge = Joint(
        "hinge", "revolute", WORLD, "flap", place, axes=(JointAxis(np.array([1.0, 0, 0])),)
    )
    robot = replace(robot, links=(*robot.links, flap), joints=(*robot.joints, hinge))
    file, block = written(tmp_path, robot)
    simulator = FakeSimulator(load(file), file=file)
    simulator.q = simulator.tree.home.copy()
    simulator.dynamics = make_dynamics(replace(simulator.robot, gravity=np.zeros(3)), "numeric")
    host = GazeboHost(host_robot(simulator, block), simulator, command_timeout=1.0)
    turn = Turn(host)
    simulator.iterate(turn)
    simulator.qd[[1, 7]] = THROWN
    host.read(simulator.time)
    for _ in range(130):
        simulator.iterate(turn)
        wrenches = [wrench for _, wrench in simulator.last_applied]
        assert np.abs(np.sum(wrenches, axis=0)[:3]).max() < 1e-12
    assert "flap" in [name for name, _ in simulator.last_applied]
    assert abs(simulator.qd[12]) > 0.5


def test_each_neighbour_is_read_once_per_step_and_pulled_only_if_touched(tmp_path, monkeypatch):
    simulator, other, host = hosted(tmp_path, monkeypatch, SHAPES["box"])
    reads = []
    neighbour = simulator.neighbour

    def counted(model, link):
        port = neighbour(model, link)
        read = port.read_pose
        port.read_pose = lambda pose: reads.append(link) or read(pose)
        return port

    simulator.neighbour = counted
    simulator.iterate(Turn(host), 5)
    assert reads == ["thing"] * 5
    assert other.last_applied == []


def test_a_neighbour_that_is_not_there_is_told(tmp_path, monkeypatch):
    simulator, other, host = hosted(tmp_path, monkeypatch, SHAPES["box"])
    words = r"'thing::thing'.*'thrower'.*not in the world.*expected"
    simulator.others.clear()
    with pytest.raises(CardsError, match=words):
        host.start()
    simulator.others["thing"] = other
    simulator.iterate(Turn(host), 2)
    ((_, port),) = host._near
    port.read_pose = lambda _pose: False  # removed while it runs
    with pytest.raises(CardsError, match=words):
        host.read(simulator.time)
    port.read_pose = lambda pose: pose.fill(1e7) or True
    with pytest.raises(CardsError, match=r"'thing::thing'.*diverged"):
        host.read(simulator.time)


def test_forces_on_a_neighbour_that_are_not_finite_are_told(tmp_path, monkeypatch):
    simulator, _, host = hosted(tmp_path, monkeypatch, SHAPES["box"])
    simulator.iterate(Turn(host), 2)
    engine = host.muscles.engine
    update = engine.update

    def broken(*arguments):
        state = update(*arguments)
        engine.neighbour_wrenches[:] = np.nan
        return state

    monkeypatch.setattr(engine, "update", broken)
    with pytest.raises(CardsError, match="no finite force of on link thing::thing"):
        host.step(DT)
    assert simulator.applied == []


def test_another_step_keeps_what_is_known_of_neighbours(tmp_path, monkeypatch):
    simulator, _, host = hosted(tmp_path, monkeypatch, SHAPES["box"])
    simulator.iterate(Turn(host), 3)
    before = host.muscles.engine.neighbour_poses.copy()
    host.step(2 * DT)
    assert np.array_equal(host.muscles.engine.neighbour_poses, before)
    assert before[0, 1, 3] == pytest.approx(0.06)
