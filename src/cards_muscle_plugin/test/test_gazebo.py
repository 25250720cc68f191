"""The plugin in real Gazebo, each world in a process of its own."""

import math
import re
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from gazebo_run import GazeboRun, include, installation
from hybrid_robots import platform_arm
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from test_gazebo_host import FREE

from cards_core.control import ControlModel, make_controller
from cards_core.control.interface import HoldPoint
from cards_core.dynamics import make_dynamics
from cards_core.formats import load, read_sdf, write_model
from cards_core.formats.sdf.muscle_block import MODULE
from cards_core.robot.state import RobotState
from cards_muscle_plugin.ports import KNOWN
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import PATIENCE, Probe, end_process, start_process

pytestmark = [pytest.mark.ros, pytest.mark.gazebo]

MUSCLES = [muscle.name for muscle in load("planar_2r").muscles]
ARM = load("planar_2r").source

COMPARE = """<plugin filename="gz-sim-python-system-loader-system"
 name="gz::sim::systems::PythonSystemLoader"><module_name>compare_bodies</module_name></plugin>"""


@pytest.fixture(scope="module")
def gazebo():
    return installation()


def command(tensions, stamp=0, names=MUSCLES):
    message = JointState(name=list(names), effort=[float(x) for x in tensions])
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    return message


def stamp_of(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def answer(probe, tensions_of, names=MUSCLES):
    """Answer every state with its stamp, unless ``tensions_of`` gives None."""

    def react(message):
        tensions = tensions_of(stamp_of(message))
        if tensions is not None:
            probe.publish(command(tensions, stamp_of(message), names), topics.FORCE_COMMAND)

    publisher = probe.node.create_publisher(JointState, topics.FORCE_COMMAND, topics.COMMAND_QOS)
    probe._publishers[topics.FORCE_COMMAND] = publisher
    return probe.listen(JointState, topics.JOINT_STATES, react=react)


def changed_arm(folder, *changes):
    """Write the model with changes of its text, and return an ``<include>`` of it."""
    text = open(ARM).read()  # noqa: SIM115
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    file = folder / "model.sdf"
    file.write_text(text)
    return f"<include><uri>{file}</uri></include>"


def test_natively_as_one_by_one(gazebo, domain, monkeypatch, tmp_path):
    """What is read natively is equal to the last bit, and so is the motion that wrenches cause."""
    monkeypatch.setenv("COMPARE_FILE", str(tmp_path / "rows"))
    monkeypatch.setenv("COMPARE_JOINTS", "joint_1 joint_2")
    monkeypatch.setenv("PYTHONPATH", __file__.rpartition("/")[0], prepend=":")
    text = re.sub(r"<plugin.*?</plugin>", COMPARE, open(ARM).read(), flags=re.S)  # noqa: SIM115
    assert COMPARE in text
    text = text[text.index("<model") : text.index("</sdf>")]
    tables = []
    for name in ("native", "single"):
        file = tmp_path / f"rows-{name}"
        model = re.sub(r'<model name="\w+"', f'<model name="{name}"', text, count=1)
        with GazeboRun(gazebo, domain, model) as run:
            end = time.monotonic() + PATIENCE
            while not file.exists() or file.read_text().count("\n") < 200:
                if "pybind11" in run.text() or "pkg-config" in run.text():
                    pytest.skip("Gazebo's headers or pybind11 are missing")
                assert run.alive, run.text()
                assert time.monotonic() < end, run.text()
                time.sleep(0.1)
        rows = file.read_text().splitlines()[:200]
        tables.append(np.array([row.split() for row in rows], dtype=float))
    for table in tables:
        known = (table[:, :2] == KNOWN).all(axis=1)
        assert known.sum() > 190
        assert (table[known, 2:5] == (3, 2, 1)).all()
    assert np.ptp(tables[0][:, 5]) > 0.01  # it moves
    assert tables[0][:, 5:].tobytes() == tables[1][:, 5:].tobytes()


# Life of a robot ------------------------------------------------------------------------------


def test_commands_reset_removal_and_return(gazebo, domain, probe):
    with GazeboRun(gazebo, domain, include("planar_2r"), factor=1.0) as run:
        states = probe.listen(JointState, topics.JOINT_STATES)
        muscles = probe.listen(JointState, topics.MUSCLE_STATES)
        probe.until(lambda: len(states) > 2, "the state, repeated")
        start = states[-1]
        assert list(start.name) == ["joint_1", "joint_2"]
        assert list(start.position) == [-0.5, 0.5]
        assert list(start.velocity) == [0.0, 0.0]

        # what makes no sense is refused and time goes on waiting
        for names, tensions, words in (
            (["biceps"], [50.0], "no muscle named 'biceps'"),
            (MUSCLES, [math.nan, 50, 50, 50], "is nan N"),
        ):
            probe.publish(command(tensions, names=names), topics.FORCE_COMMAND)
            probe.until_status("simulator: commands", Level.WARN, words)
        assert {stamp_of(m) for m in states} == {stamp_of(start)}

        probe.publish(command([60.0, 20.0, 20.0, 20.0]), topics.FORCE_COMMAND)
        probe.until(lambda: muscles and max(muscles[-1].effort) == 60.0, "tension")
        probe.until(lambda: stamp_of(states[-1]) > 200_000_000, "time")
        assert states[-1].position[0] > start.position[0]  # cable 1 pulls towards +x
        probe.until_status("simulator: commands", Level.ERROR, "no valid command")

        answer = probe.call(Trigger, topics.RESET_SERVICE)
        assert answer.success, answer.message
        probe.until(lambda: stamp_of(states[-1]) == 0, "time zero")
        probe.forget()
        probe.until(lambda: len(states) > 2, "the state, repeated")
        assert {stamp_of(m) for m in states} == {0}
        assert list(states[-1].position) == [-0.5, 0.5]

        probe.publish(command([60.0] * 4), topics.FORCE_COMMAND)
        probe.until(lambda: stamp_of(states[-1]) > 50_000_000, "time")
        assert probe.call(SetBool, topics.PAUSE_SERVICE, data=True).success
        probe.until_status("simulator: world", Level.WARN, "paused")
        before = stamp_of(states[-1])
        assert probe.call(Trigger, topics.STEP_SERVICE).success
        probe.until(lambda: stamp_of(states[-1]) == before + 1_000_000, "one step")

        run.call("/world/test/remove", "Entity", 'name: "planar_2r" type: MODEL')
        probe.until(lambda: "simulator" not in probe.node.get_node_names(), "the node's end")
        probe.spin(0.3)
        probe.forget()
        probe.spin(0.5)
        assert states == []
        run.call("/world/test/create", "EntityFactory", f'sdf_filename: "{ARM}"')
        probe.until(lambda: states, "states of the new one")
        assert list(states[-1].position) == [-0.5, 0.5]
        assert run.alive


def test_two_robots_with_names_of_their_own_in_one_world(gazebo, domain, probe):
    models = include("planar_2r", as_name="left") + include(
        "planar_2r", as_name="right", pose="0 5 0 0 0 0"
    )
    with GazeboRun(gazebo, domain, models, factor=1.0) as run:
        states = {
            side: probe.listen(JointState, f"{side}/joint_states") for side in ["left", "right"]
        }
        probe.until(lambda: states["left"] and states["right"], "states of both")
        for side in states:
            probe.publish(command([60.0] * 4), f"{side}/force_command")
        probe.until(lambda: all(stamp_of(m[-1]) > 20_000_000 for m in states.values()), "time")
        assert run.alive


def test_a_model_spawned_from_text(gazebo, domain, probe):
    with GazeboRun(gazebo, domain, "") as run:
        text = open(ARM).read().replace('"', '\\"').replace("\n", " ")  # noqa: SIM115
        run.call("/world/test/create", "EntityFactory", f'sdf: "{text}"')
        # its own name is not known then
        states = probe.listen(JointState, "planar_2r/joint_states")
        probe.until(lambda: states, "a state")
        assert list(states[-1].name) == ["joint_1", "joint_2"]
        assert list(states[-1].position) == [-0.5, 0.5]


def test_a_hybrid_robot_is_held_by_cables_and_motors(gazebo, domain, probe, tmp_path):
    """Computed torque in lockstep: without its motors the arm would fall by some 0.1 rad."""
    robot = platform_arm()
    file = write_model(robot, tmp_path / robot.name)
    controller = make_controller("ctc_joint", ControlModel(robot, "numeric"))
    home = robot.tree.home
    controller.set_reference(HoldPoint(home, 5))
    for part in controller.command:
        topic = topics.COMMAND_TOPICS[part.kind]
        probe._publishers[topic] = probe.node.create_publisher(
            JointState, topic, topics.COMMAND_QOS
        )

    def react(message):
        stamp = stamp_of(message)
        q, qd = np.array(message.position), np.array(message.velocity)
        for part in controller.step(RobotState(1e-9 * stamp, q, qd)):
            answer = command(part.values, stamp, part.names)
            probe.publish(answer, topics.COMMAND_TOPICS[part.kind])

    states = probe.listen(JointState, topics.JOINT_STATES, react=react)
    models = f"<include><uri>{file}</uri></include>"
    with GazeboRun(gazebo, domain, models, mode="lockstep", duration=0.3) as run:
        probe.until(lambda: not run.alive, "the end of the run")
        assert run.wait() == 0, run.text()
    last = states[-1]
    assert stamp_of(last) >= 298_000_000
    assert np.abs(np.array(last.position) - home).max() < 1e-4
    gravity = make_dynamics(robot, "numeric").update(home, np.zeros(5)).gravity
    # what holds the arm is told, and comes back with the next state
    assert list(last.effort)[:3] == [0.0] * 3
    assert np.array(last.effort)[3:] == pytest.approx(gravity[3:], rel=1e-2)


def test_static_models_and_links_of_nested_models(gazebo, domain, probe, tmp_path):
    block = f"""
      <plugin filename="gz-sim-python-system-loader-system"
              name="gz::sim::systems::PythonSystemLoader">
        <module_name>{MODULE}</module_name>
        <muscle name="rope"><tension min="5" max="100"/>
          <via_point link="tower">0 0 1</via_point>
          <via_point link="ball::body">0 0 0.1</via_point></muscle>
      </plugin>"""
    inertial = "<inertial><mass>0.5</mass></inertial>"
    nested = f"""
      <model name="swing"><link name="tower">{inertial}</link>
        <joint name="ground" type="fixed"><parent>world</parent><child>tower</child></joint>
        <model name="ball"><pose>0.5 0 0.5 0 0 0</pose><link name="body">{inertial}</link></model>
        {block}</model>"""
    statue = include("planar_2r", as_name="statue")
    statue = statue.replace("</uri>", "</uri><static>true</static>")
    with GazeboRun(gazebo, domain, nested + statue, command_timeout=60.0, factor=1.0) as run:
        swing = probe.listen(JointState, "joint_states")
        still = probe.listen(JointState, "statue/joint_states")
        probe.until(lambda: still and swing, "states of both")
        # time waits until each of them has a command
        probe.publish(command([20.0], names=["rope"]), topics.FORCE_COMMAND)
        probe.spin(0.3)
        assert stamp_of(swing[-1]) < 10_000_000
        probe.publish(command([20.0] * 4), "statue/force_command")
        probe.until(lambda: stamp_of(swing[-1]) > 200_000_000, "time")
        later = next(m for m in swing if stamp_of(m) > 100_000_000)
        # pulled to the tower; the joint to the world has no coordinates
        assert len(later.name) == 7
        assert 0.3 < later.position[later.name.index("ball::body_free_x")] < 0.45
        assert list(still[-1].name) == ["joint_1", "joint_2"]
        assert run.alive


def test_ball_joints_and_free_links(gazebo, domain, probe, tmp_path):
    file = tmp_path / "kite.sdf"
    file.write_text(FREE)
    models = f"<include><uri>{file}</uri></include>"
    with GazeboRun(gazebo, domain, models, mode="lockstep") as run:
        states = answer(probe, lambda t: [60.0] if t < 300_000_000 else None, names=["line"])
        probe.until(lambda: states, "the start")
        names = list(states[0].name)
        home = dict(zip(names, states[0].position, strict=True))
        quaternion = [home[f"shoulder.{c}"] for c in "wxyz"]
        assert quaternion == pytest.approx([0.8, 0.6, 0.0, 0.0], abs=1e-6)
        assert home["body_free_z"] == pytest.approx(2.0, abs=1e-4)
        probe.until(lambda: stamp_of(states[-1]) >= 300_000_000, "time")
        robot = read_sdf(file)
        # velocities are those of the coordinates: compare with differences
        by_time = {stamp_of(m): m for m in states}
        before, now, after = (by_time[t * 1_000_000] for t in (199, 200, 201))
        for name in ("body_free_x", "body_free_y", "body_free_z"):
            i = names.index(name)
            rate = (after.position[i] - before.position[i]) / 0.002
            assert now.velocity[i] == pytest.approx(rate, abs=0.05)
        assert robot.name == "kite"
        assert run.alive


# Mistakes: an answer of ours each time, and the simulator lives on ------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([('<via_point link="link_1"', '<via_point link="link_9"')], ["link_9", "link_1"]),
        ([('<tension min="10"', '<tension min="10" stiffness="-5"')], ["stiffness"]),
        (
            [
                (
                    '<muscle name="cable_1" type="cable">',
                    '<muscle name="cable_1" type="cable"><parameters stiffness="-5"/>',
                )
            ],
            ["stiffness", "-5"],
        ),
        (
            [
                (
                    '<muscle name="cable_1" type="cable">',
                    '<wrap_surface name="drum" link="base" pose="0.5 0 0 0 0 0">'
                    '<sphere radius="0.1"/></wrap_surface>'
                    '<muscle name="cable_1" type="cable">',
                ),
                (
                    '<via_point link="base">0.5 0 0</via_point>',
                    '<via_point link="base">0.5 0 0</via_point><wrap surface="drum"/>',
                ),
            ],
            ["drum", "inside"],
        ),
        (
            [
                (
                    '<via_point link="base">0.5 0 0</via_point>',
                    '<via_point link="base">0.5 0 0</via_point>'
                    '<via_point link="base">0.5 0 0</via_point>',
                )
            ],
            ["same place"],
        ),
    ],
    ids=["unknown link", "attribute", "negative stiffness", "surface around", "zero length"],
)
def test_mistakes_in_the_model_are_told(gazebo, domain, tmp_path, changes, words):
    models = changed_arm(tmp_path, *changes)
    # a robot whose file cannot be read has its name as namespace
    name = "planar_2r/simulator: world"
    with Probe(domain) as probe, GazeboRun(gazebo, domain, models) as run:
        status = probe.until_status(name, Level.ERROR)
        for word in words:
            assert word in status.message
        probe.forget()
        probe.until_status(name, Level.ERROR)  # it is said again and again
        run.call("/world/test/control", "WorldControl", "pause: false")
        assert run.alive
        assert "Traceback" not in run.text()


def test_a_parameter_that_does_not_fit_is_told(gazebo, domain, probe):
    with GazeboRun(gazebo, domain, include("planar_2r"), mode="quick") as run:
        probe.until_status("simulator: world", Level.ERROR, "quick")
        assert run.alive


def test_points_that_meet_while_moving_give_no_nan(gazebo, domain, probe, tmp_path):
    # the ends of cable 1 are at the same place in the home pose, on two links
    changes = (
        ('<via_point link="base">0.5 0 0</via_point>', '<via_point link="base">0 0 0</via_point>'),
        (
            '<via_point link="link_1">0.1 0 0.8</via_point>',
            '<via_point link="link_1">0 0 0</via_point>',
        ),
    )
    models = changed_arm(tmp_path, *changes)
    with GazeboRun(gazebo, domain, models, wait_for_command=False, factor=1.0) as run:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states and stamp_of(states[-1]) > 100_000_000, "time")
        assert np.all(np.isfinite(states[-1].position))
        assert run.alive


def test_diverging_physics_pause_the_world_and_a_reset_starts_anew(
    gazebo, domain, probe, tmp_path
):
    models = changed_arm(tmp_path, ('max="100"', 'max="1e15"'))
    with GazeboRun(gazebo, domain, models, command_timeout=3600.0) as run:
        states = probe.listen(JointState, topics.JOINT_STATES)
        probe.until(lambda: states, "the start")
        probe.publish(command([1e15, 10, 10, 10]), topics.FORCE_COMMAND)
        status = probe.until_status("simulator: world", Level.ERROR)
        assert "diverged" in status.message
        assert probe.call(Trigger, topics.RESET_SERVICE).success
        probe.forget()
        probe.until(lambda: states and stamp_of(states[-1]) == 0, "time zero")
        probe.until_status("simulator: world", Level.OK)
        assert list(states[-1].position) == [-0.5, 0.5]
        assert run.alive


# Against the embedded simulator, and with a controller -------------------------------------------


def swinging_arm(file):
    """Write the arm with damping and without limits: nothing but smooth motion in Gazebo."""
    text = open(load("roboy_arm").source).read()  # noqa: SIM115
    text = re.sub(
        r"<limit>.*?</limit>",
        "<dynamics><damping>10</damping></dynamics>"
        "<limit><lower>-30</lower><upper>30</upper></limit>",
        text,
    )
    file.write_text(text)
    return load(file)


def open_loop_tensions(robot):
    """Smooth tensions of time [s] around those that nearly hold the arm at home."""
    tree = robot.tree
    state = make_dynamics(robot, "numeric").update(tree.home, np.zeros(tree.nv))
    lower = np.array([muscle.tension_min for muscle in robot.muscles])
    # least squares from 3 times the minimum, onto the tensions that carry the weight
    lever = -state.muscle_jacobian.T
    first = 3 * lower + np.linalg.pinv(lever) @ (state.gravity - lever @ (3 * lower))
    phase = np.arange(len(lower))
    return lambda t: np.maximum(lower, first * (1 + 0.2 * np.sin(3 * t + phase)))


SWING = 3.0  # [s]


def open_loop(gazebo, domain, file, dt, tensions):
    """Return the joint coordinates of every step of a run in Gazebo, (steps + 1, nq)."""
    names = [muscle.name for muscle in load(file).muscles]
    models = f"<include><uri>{file}</uri></include>"
    steps = round(SWING / dt)
    with Probe(domain) as probe, GazeboRun(gazebo, domain, models, dt=dt, mode="lockstep"):
        found = {}
        first = []

        def reaction(stamp):
            if not first:
                first.append(stamp)
            k = round((stamp - first[0]) * 1e-9 / dt)
            return tensions(k * dt) if k < steps else None

        states = answer(probe, reaction, names)
        probe.until(lambda: states, "the start")
        last = first[0] + round(SWING * 1e9)
        probe.until(lambda: stamp_of(states[-1]) >= last, "the end", patience=120.0)
        for message in states:
            k = round((stamp_of(message) - first[0]) * 1e-9 / dt)
            found[k] = np.array(message.position)
    return np.array([found[k] for k in range(steps + 1)])


def embedded_open_loop(robot, dt, tensions):
    """Return the same from the embedded simulator."""
    from cards_sim.simulator import Simulator

    simulator = Simulator(robot, dt)
    out = [simulator.state.q]
    for k in range(round(SWING / dt)):
        simulator.step(tensions(k * dt))
        out.append(simulator.state.q)
    return np.array(out)


def test_open_loop_is_that_of_the_embedded_simulator(gazebo, domain, tmp_path):
    pytest.importorskip("mujoco", reason="mujoco is not installed")
    file = tmp_path / "arm.sdf"
    robot = swinging_arm(file)
    tensions = open_loop_tensions(robot)
    exact = embedded_open_loop(robot, 1e-4, tensions)
    same, error = [], []
    for dt in (2e-3, 1e-3):
        found = open_loop(gazebo, domain, file, dt, tensions)
        assert np.ptp(found[:, 0]) > 0.5  # it does move
        same.append(np.abs(found - embedded_open_loop(robot, dt, tensions)).max())
        error.append(np.abs(found - exact[:: round(dt / 1e-4)]).max())
    print("joint angles [rad] in 3 s, steps of 2 and 1 ms: Gazebo against embedded", same)
    print("Gazebo against embedded with 0.1 ms", error)
    # both integrate in the same way, so they differ by rounding
    assert max(same) < 1e-9
    assert error[1] < 2e-3
    assert error[1] == pytest.approx(error[0] / 2, rel=0.2)


@pytest.mark.parametrize("mode", ["lockstep", "as_fast_as_possible"])
def test_the_real_controller_tracks_the_flower(gazebo, domain, probe, tmp_path, mode):
    """As fast as possible no worse than in lockstep: Gazebo does not outrun the controller."""
    parameters = {"mode": mode, "duration": 4.0, "log_dir": tmp_path}
    with GazeboRun(gazebo, domain, include("roboy_arm"), **parameters) as run:
        controller = start_process(
            "controllers.ctc_operational",
            {"model": "roboy_arm", "reference": "flower", "log_dir": tmp_path},
        )
        try:
            assert run.wait() == 0
        finally:
            end_process(controller)
        cost = re.search(r"median cost (\d+) us", run.text())
        print("plugin:", cost[0])
    with np.load(tmp_path / "controller.npz") as log:
        error = np.linalg.norm(log["error"], axis=1)
    print("flower, RMS:", np.sqrt(np.mean(error**2)))
    assert np.sqrt(np.mean(error**2)) < 2e-3
