"""Cables of a robot in Gazebo that touch other models of its world."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from fake_simulator import DT, FakeSimulator
from gazebo_run import GazeboRun, installation
from scipy.optimize import brentq
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from test_gazebo_host import Turn

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.formats import load, write_model
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
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
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_muscle_plugin.gazebo_host import GazeboHost
from cards_muscle_plugin.hosted_robot import host_robot
from cards_muscle_plugin.surroundings import VARIABLE, Surroundings, leave_surroundings
from cards_ros import topics
from cards_ros.diagnostics import Level

Simulator = pytest.importorskip("cards_sim.simulator", reason="mujoco is not installed").Simulator

pytestmark = pytest.mark.serial

SHAPES = {
    "box": Box(np.array([0.03, 0.03, 0.06])),
    "sphere": Sphere(0.02),
    "capsule": Capsule(0.008, 0.06),
}
WATCH = (
    '<model name="watch"><static>true</static><link name="l"/>'
    '<plugin filename="gz-sim-python-system-loader-system" '
    'name="gz::sim::systems::PythonSystemLoader"><module_name>throw_links</module_name>'
    "</plugin></model>"
)

THROWN = 0.6
"""Velocity of both ends of the cable along y, [m/s]."""


def body(name, place, *shapes, mass=0.05):
    inertia = Inertia(mass, np.zeros(3), np.diag([2e-5, 2.5e-5, 3e-5]))
    link = Link(name, inertia, collisions=tuple(Collision("c", shape) for shape in shapes))
    return link, Joint(f"{name}_free", "free", WORLD, name, Pose(translation=np.array(place)))


def thrower(friction=0.0):
    """Two bodies, 10 cm apart along x, and a cable between them that is just taut."""
    links, joints = zip(body("left", (-0.05, 0, 0)), body("right", (0.05, 0, 0)), strict=True)
    ends = (ViaPoint("left", np.array([0.01, 0, 0])), ViaPoint("right", np.array([-0.01, 0, 0])))
    spring = Cable(stiffness=200.0, damping=0.5, rest_length=0.08)
    cable = Muscle(
        "cable", ends, tension_max=100.0, actuator=spring, contact=True, friction=friction
    )
    return Robot("thrower", links, joints, muscles=(cable,))


def thing(shape):
    link, joint = body("thing", (0.003, 0.06, 0.0), shape, mass=0.08)
    return Robot("thing", (link,), (joint,))


def around(shape):
    return Surroundings((), (("thing", thing(shape).links[0]),))


def written(folder, robot):
    """Write a model; its file and the element of the plugin."""
    file = write_model(robot, folder / robot.name)
    text = open(file).read()  # noqa: SIM115
    return file, text[text.index("<plugin") : text.index("</plugin>") + len("</plugin>")]


def embedded(file, shape, q, qd):
    """The same in the embedded simulator: a function that steps and returns the tension."""
    world = World("w", (WorldModel("thing", thing(shape)),), gravity=np.zeros(3))
    simulator = Simulator(replace(load(file), gravity=np.zeros(3)), world=world)
    simulator.reset(q=q, qd=qd)

    def step():
        simulator.step(np.zeros(1), np.array([NO_COMMAND]))
        return simulator.state.tensions[0]

    return step


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


# Real Gazebo --------------------------------------------------------------------------------


@pytest.mark.ros
@pytest.mark.gazebo
@pytest.mark.parametrize(("kind", "friction"), [("capsule", 0.0), ("sphere", 0.0), ("box", 0.3)])
def test_in_gazebo_as_in_the_embedded_simulator(domain, monkeypatch, tmp_path, kind, friction):
    gazebo = installation()
    shape, rows = SHAPES[kind], tmp_path / "rows.txt"
    links = ("thrower::left", "thrower::right", "thing::thing")
    monkeypatch.setenv("THROW_FILE", str(rows))
    monkeypatch.setenv("THROW_LINKS", " ".join(links))
    force = 0.05 * THROWN / 1e-3  # of one step
    monkeypatch.setenv("THROW_BY", f"0 {force} 0 0 {force} 0 0 0 0")
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0], prepend=":")
    for name, text in leave_surroundings(tmp_path / "around", {"thrower": around(shape)}).items():
        monkeypatch.setenv(name, text)
    models = [written(tmp_path, thrower(friction))[0], write_model(thing(shape), tmp_path / "t")]
    text = "".join(f"<include><uri>{file}</uri></include>" for file in models) + WATCH
    options = {"wait_for_command": False, "duration": 0.3, "log_dir": tmp_path}
    with GazeboRun(gazebo, domain, text, gravity=0.0, **options) as run:
        assert run.wait() == 0, run.text()
        assert "Traceback" not in run.text(), run.text()
    table = np.loadtxt(rows)
    moved = table[:, 1:].reshape(len(table), 3, 6)[:, :, :3]
    momentum = np.einsum("l,klj->kj", [0.05, 0.05, 0.08], moved)
    # the first micrometre of what is at rest is no motion to Gazebo: it tells no velocity then
    told = moved[:, 2].any(axis=1)
    assert told.sum() > 150
    off = np.abs(momentum - momentum[0])[told].max()
    print(f"momentum: {off:.1e} N s of {np.abs(momentum[0]).max():.2g}")
    assert moved[-1, 2, 1] > 0.05  # it was carried off
    with np.load(next(tmp_path.glob("**/simulator.npz"))) as log:
        found = {name: log[name] for name in log.files}
    first = int(np.argmax(np.abs(found["qd"]).max(axis=1) > 0.1))
    step = embedded(models[0], shape, found["q"][first], found["qd"][first])
    expected = np.array([step() for _ in found["q"][first + 1 :]])
    seen = found["tensions"][first + 1 :, 0]
    worst = np.abs(seen - expected).max() / expected.max()
    print(f"{kind}: tensions beside the embedded simulator: {worst:.2e} of the largest")
    assert worst < 0.02


def two_cables():
    """A frame that is fixed to the world, and two cables side by side, along x, 40 cm long."""
    frame = Link("frame", Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3)))
    place = Pose(translation=np.array([0.0, 0.0, 0.5]))
    spring = Cable(stiffness=200.0, damping=4.0, rest_length=0.39)
    cables = []
    for name, y in (("left", 0.05), ("right", -0.05)):
        ends = tuple(ViaPoint("frame", np.array([x, y, 0.0])) for x in (-0.2, 0.2))
        cables.append(Muscle(name, ends, tension_max=100.0, actuator=spring, contact=True))
    joint = Joint("mount", "fixed", WORLD, "frame", place)
    return Robot("thrower", (frame,), (joint,), muscles=tuple(cables))


def rod_on_cables():
    across = Pose(np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]))
    inertia = Inertia(0.5, np.zeros(3), np.diag([2e-3, 5e-5, 2e-3]))
    link = Link("thing", inertia, collisions=(Collision("c", Capsule(0.01, 0.2), across),))
    place = Pose(translation=np.array([0.01, 0.0, 0.515]))
    return Robot("thing", (link,), (Joint("thing_free", "free", WORLD, "thing", place),))


def tension_at_rest():
    """4 T sin(alpha) = m g with alpha the slope of the cables, which go under the rod."""
    half, radius = 0.2, 0.01

    def shape(depth):
        away = np.hypot(half, depth)
        slope = np.arctan2(depth, half) + np.arcsin(radius / away)
        return slope, 2.0 * (np.sqrt(away**2 - radius**2) + radius * slope)

    def excess(depth):
        slope, length = shape(depth)
        return 4.0 * 200.0 * (length - 0.39) * np.sin(slope) - 0.5 * 9.81

    return 200.0 * (shape(brentq(excess, 0.0, 0.2))[1] - 0.39)


@pytest.mark.ros
@pytest.mark.gazebo
def test_a_rod_at_rest_on_two_cables_in_gazebo(domain, monkeypatch, tmp_path):
    """Tensions and place within 2 % and 5 mm of the embedded simulator's; they are closer."""
    gazebo, robot, rod = installation(), two_cables(), rod_on_cables()
    left = {"thrower": Surroundings((), (("thing", rod.links[0]),))}
    rows = tmp_path / "rows.txt"
    for name, text in leave_surroundings(tmp_path / "around", left).items():
        monkeypatch.setenv(name, text)
    monkeypatch.setenv("THROW_FILE", str(rows))
    monkeypatch.setenv("THROW_LINKS", "thing::thing")
    monkeypatch.setenv("THROW_BY", "0 0 0")
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0], prepend=":")
    files = written(tmp_path, robot)[0], write_model(rod, tmp_path / "t")
    text = "".join(f"<include><uri>{file}</uri></include>" for file in files) + WATCH
    options = {"wait_for_command": False, "duration": 4.0, "log_dir": tmp_path}
    with GazeboRun(gazebo, domain, text, **options) as run:
        assert run.wait() == 0, run.text()
    with np.load(next(tmp_path.glob("**/simulator.npz"))) as log:
        found = log["tensions"][-500:].mean(axis=0)
    world = World("w", (WorldModel("thing", rod),))
    simulator = Simulator(load(files[0]), world=world)
    for _ in range(4000):
        simulator.step(np.zeros(2), np.full(2, NO_COMMAND))
    expected = simulator.state.tensions
    place = np.loadtxt(rows)[-1, 4:7]
    away = np.abs(place - simulator.world.pose("thing").translation).max()
    closed = tension_at_rest()
    print(
        f"at rest: {found} N, embedded {expected} N, closed form {closed:.6g} N; {away:.1e} m off"
    )
    assert found == pytest.approx(expected, rel=2e-2)
    assert expected == pytest.approx([closed] * 2, rel=1e-3)
    assert away < 5e-3


@pytest.mark.ros
@pytest.mark.gazebo
def test_a_neighbour_removed_from_gazebo_pauses_the_world(domain, probe, monkeypatch, tmp_path):
    """After a reset both are back: Gazebo makes what the world's file has."""
    gazebo = installation()
    left = leave_surroundings(tmp_path / "around", {"thrower": around(SHAPES["box"])})
    for name, text in left.items():
        monkeypatch.setenv(name, text)
    models = [written(tmp_path, thrower())[0], write_model(thing(SHAPES["box"]), tmp_path / "t")]
    text = "".join(f"<include><uri>{file}</uri></include>" for file in models)
    with GazeboRun(gazebo, domain, text, gravity=0.0, factor=1.0, wait_for_command=False) as run:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states, "the start")
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.forget()
        probe.until(lambda: len(states) > 2, "states after a reset")
        probe.until_status("simulator: world", Level.OK)
        run.call("/world/test/remove", "Entity", 'name: "thing" type: MODEL')
        status = probe.until_status("simulator: world", Level.ERROR)
        assert "'thing::thing'" in status.message
        assert "not in the world" in status.message
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.spin(0.5)
        probe.forget()
        probe.until(lambda: len(states) > 2, "states after the second reset")
        probe.until_status("simulator: world", Level.OK)
        assert run.alive
        assert "Traceback" not in run.text(), run.text()
