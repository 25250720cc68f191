"""Cables that touch other models in real Gazebo, beside the embedded simulator."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
pytest.importorskip("mujoco", reason="mujoco is not installed")
from gazebo_run import GazeboRun, installation
from neighbour_models import THROWN, around, embedded, written
from scipy.optimize import brentq
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from touched_models import SHAPES, thing, thrower

from cards_core.formats import load, write_model
from cards_core.muscles.command import NO_COMMAND
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import (
    WORLD,
    Capsule,
    Collision,
    Inertia,
    Joint,
    Link,
    Muscle,
    ViaPoint,
)
from cards_core.robot.model import Robot
from cards_core.robot.world import World, WorldModel
from cards_core.spatial import Pose
from cards_muscle_plugin.surroundings import Surroundings, leave_surroundings
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_sim.simulator import Simulator

pytestmark = [pytest.mark.ros, pytest.mark.gazebo]

WATCH = (
    '<model name="watch"><static>true</static><link name="l"/>'
    '<plugin filename="gz-sim-python-system-loader-system" '
    'name="gz::sim::systems::PythonSystemLoader"><module_name>throw_links</module_name>'
    "</plugin></model>"
)


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
