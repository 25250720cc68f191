"""The node ``rod_solver`` over real topics."""

import json

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from geometry_msgs.msg import PoseStamped, WrenchStamped
from rcl_interfaces.srv import SetParameters
from rclpy.exceptions import InvalidParameterValueException
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState, PointCloud2
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from visualization_msgs.msg import MarkerArray

from cards_core.errors import CardsError
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_rods.messages import state_names
from cards_rods.rod_solver import RodSolverNode
from cards_ros import topics
from cards_ros.diagnostics import Level
from cards_ros.testing import NodeThread, Probe

pytestmark = pytest.mark.ros

ROBOT = read_rod_robot("stewart_gough")
NODE = topics.ROD_SOLVER


def full(topic):
    return topic.replace("~", NODE)


class Robot:
    """The node and who listens to it."""

    def __init__(self, probe, thread):
        self.probe, self.node = probe, thread.node
        self.joints = probe.listen(JointState, topics.JOINT_STATES)
        self.states = probe.listen(JointState, full(topics.ROD_STATE))
        self.poses = probe.listen(PoseStamped, full(topics.ROD_POSE))
        self.said = probe.listen(String, full(topics.ROD_STATUS), topics.LATCHED_QOS)

    def value(self, name):
        return dict(zip(self.states[-1].name, self.states[-1].position, strict=True))[name]

    def status(self):
        return json.loads(self.said[-1].data)

    def until(self, condition, what):
        return self.probe.until(lambda: self.states and self.said and condition(), what)

    def home(self):
        assert self.probe.call(Trigger, full(topics.HOME_SERVICE)).success
        q = self.node.simulation.result.solution.q
        self.until(lambda: list(self.states[-1].position[16:22]) == q.tolist(), "home")

    def pose(self, shift=(0.0, 0.0, 0.0), frame="world"):
        message = PoseStamped()
        message.header.frame_id = frame
        place = self.node.simulation.result.solution.pose[:3, 3] + shift
        message.pose.position.x, message.pose.position.y, message.pose.position.z = place.tolist()
        message.pose.orientation.w = 1.0
        return message, place

    def load(self, fz, frame):
        message = WrenchStamped()
        message.header.frame_id = frame
        message.wrench.force.z = fz
        self.probe.publish(message, full(topics.ROD_WRENCH))


@pytest.fixture(scope="module")
def running(domain, tmp_path_factory):
    folder = tmp_path_factory.mktemp("rods")
    settings = {
        "rate": 50.0,
        "states_file": str(folder / "states.json"),
        "log_dir": str(folder),
        "points": 21,
    }
    with (
        Probe(domain) as probe,
        NodeThread(RodSolverNode, domain, {"robot": ROBOT}, **settings) as node,
    ):
        robot = Robot(probe, node)
        robot.folder = folder
        robot.until(lambda: robot.joints and robot.poses, "states")
        yield robot


@pytest.fixture
def robot(running):
    running.home()
    running.probe.received[topics.DIAGNOSTICS].clear()
    return running


def test_a_joint_command_moves_the_plate(robot):
    q = robot.value("q/limb_1_length") + 0.01
    robot.probe.publish(
        JointState(name=["limb_1_length"], position=[q]), full(topics.ROD_JOINT_COMMAND)
    )
    robot.until(lambda: abs(robot.value("q/limb_1_length") - q) < 1e-9, "the length")
    robot.until(lambda: robot.value("moving") == 0.0, "rest")
    solution = robot.node.simulation.result.solution
    robot.until(
        lambda: abs(robot.poses[-1].pose.position.z - solution.pose[2, 3]) < 1e-12, "its pose"
    )
    assert (
        robot.joints[-1].name.tolist()
        if hasattr(robot.joints[-1].name, "tolist")
        else (list(robot.joints[-1].name) == list(ROBOT.joint_names))
    )
    assert len(robot.joints[-1].effort) == ROBOT.n_limbs
    assert tuple(robot.states[-1].name) == state_names(ROBOT)
    assert robot.value("status") == RodStatus.OK
    assert robot.poses[-1].header.frame_id == "world"
    assert robot.probe.until_status(f"{NODE}: robot", Level.OK)


def test_a_pose_command_is_reached_and_the_message_of_one_step_has_one_stamp(robot):
    shapes = robot.probe.listen(PointCloud2, full(topics.ROD_SHAPES))
    markers = robot.probe.listen(MarkerArray, full(topics.ROD_MARKERS))
    message, place = robot.pose((0.01, 0.005, -0.004))
    robot.probe.publish(message, full(topics.ROD_POSE_COMMAND))
    robot.until(lambda: abs(robot.value("plate/x") - place[0]) < 1e-9, "the pose")
    robot.until(lambda: robot.value("moving") == 0.0 and shapes and markers, "rest and drawing")
    assert robot.value("mode") == 1.0
    assert robot.value("target/z") == place[2]
    # rods end where the plate is, in the shapes of the same instant
    shapes.clear()
    robot.until(lambda: shapes, "shapes at rest")
    table = np.frombuffer(shapes[-1].data, "<f8").reshape(shapes[-1].height, shapes[-1].width, 6)
    tips = np.array([limb.tip.joint_pose[:3, 3] for limb in ROBOT.limbs]) + place
    np.testing.assert_allclose(table[:, -1, :3], tips, atol=1e-5)
    assert robot.value("curvature/limb_1") == table[0, :, 3].max()
    texts = len(markers[-1].markers) - (ROBOT.n_limbs + 3)
    assert texts == len(ROBOT.actuated)  # a text for each joint


def test_loads_have_a_frame(robot):
    for frame, acts in (("", "world"), ("plate", "plate"), ("world", "world"), ("plate", "plate")):
        robot.load(-0.25, frame)
        robot.until(lambda a=acts: robot.node.simulation.wrench_frame == a, f"load in {frame}")
        robot.until(lambda: abs(robot.value("external/fz") + 0.25) < 1e-9, "the load")
    robot.load(-0.5, "moon")
    text = robot.probe.until_status(f"{NODE}: commands", Level.WARN, "moon").message
    assert "expected: world, plate" in text
    robot.until(lambda: "moon" in robot.status()["refused"], "why")
    assert robot.value("external/fz") == pytest.approx(-0.25)


def test_what_is_refused_changes_nothing_and_is_told(robot):
    before = list(robot.states[-1].position[16:22])
    robot.probe.publish(
        JointState(name=["limb_2"], position=[7.0]), full(topics.ROD_JOINT_COMMAND)
    )
    robot.probe.until_status(f"{NODE}: commands", Level.WARN, "above its limit of 800.00 mm")
    message, _ = robot.pose(frame="plate")
    robot.probe.publish(message, full(topics.ROD_POSE_COMMAND))
    robot.probe.until_status(f"{NODE}: commands", Level.WARN, "frame_id 'plate'")
    message, _ = robot.pose()
    message.pose.orientation.w = 0.0
    robot.probe.publish(message, full(topics.ROD_POSE_COMMAND))
    robot.probe.until_status(f"{NODE}: commands", Level.WARN, "norm 0")
    assert list(robot.states[-1].position[16:22]) == before
    robot.probe.until_status(f"{NODE}: commands", Level.OK)


def test_a_load_that_would_crush_it_is_held_before(robot):
    robot.load(-500.0, "world")
    robot.until(lambda: robot.value("held") == 1.0, "hold")
    robot.until(lambda: robot.status()["held"], "its reason")
    assert robot.status()["status"] in ("NEAR_LIMIT", "HELD")
    assert robot.status()["message"]
    assert robot.value("min_eigenvalue") > 0.0
    assert -500.0 < robot.value("external/fz") < 0.0
    assert np.isfinite(robot.states[-1].position).all()

    def warned():
        diagnosis = robot.probe.status(f"{NODE}: robot")
        values = {v.key: v.value for v in diagnosis.values} if diagnosis else {}
        return values.get("held") == "True" and diagnosis.level != b"\x00"

    robot.probe.until(warned, "warning")
    robot.home()
    robot.probe.until_status(f"{NODE}: robot", Level.OK)


def test_states_by_topic_service_and_file(robot):
    saved = robot.probe.listen(String, full(topics.ROD_STATES), topics.LATCHED_QOS)
    message, place = robot.pose((0.012, 0.0, 0.0))
    robot.probe.publish(message, full(topics.ROD_POSE_COMMAND))
    robot.until(lambda: abs(robot.value("plate/x") - place[0]) < 1e-9, "the pose")
    robot.probe.publish(String(data="to the right"), full(topics.SAVE_STATE))
    robot.until(lambda: "to the right" in robot.status()["states"], "its name")
    kept = json.loads((robot.folder / "states.json").read_text())["states"]["to the right"]
    robot.home()
    robot.probe.publish(String(data="to the right"), full(topics.LOAD_STATE))
    robot.until(lambda: abs(robot.value("plate/x") - place[0]) < 1e-6, "the state")
    robot.home()
    robot.probe.publish(String(data=json.dumps(kept)), full(topics.LOAD_STATE))
    robot.until(lambda: abs(robot.value("plate/x") - place[0]) < 1e-6, "the state as text")
    named = Parameter("state_name", value="mine").to_parameter_msg()
    answer = robot.probe.call(SetParameters, f"{NODE}/set_parameters", parameters=[named])
    assert answer.results[0].successful
    state = robot.probe.call(Trigger, full(topics.SAVE_STATE))
    assert json.loads(state.message)["robot"] == "stewart_gough"
    robot.until(lambda: saved and "mine" in json.loads(saved[-1].data), "all states")
    robot.home()
    assert robot.probe.call(Trigger, full(topics.LOAD_STATE)).success
    robot.until(lambda: abs(robot.value("plate/x") - place[0]) < 1e-6, "the state")
    for name in ("mine", "to the right"):
        robot.probe.publish(String(data=name), full(topics.DELETE_STATE))
        robot.until(lambda n=name: n not in robot.status()["states"], "deletion")
    refused = robot.probe.call(Trigger, full(topics.LOAD_STATE))
    assert not refused.success
    assert "no saved state named 'mine'" in json.loads(refused.message)["error"]["message"]


def test_solve_answers_with_the_whole_equilibrium(robot):
    message, place = robot.pose((0.0, 0.02, 0.0))
    robot.probe.publish(message, full(topics.ROD_POSE_COMMAND))
    robot.until(lambda: robot.value("target/y") == place[1], "the command")
    report = json.loads(robot.probe.call(Trigger, full(topics.SOLVE_SERVICE)).message)
    assert report["arrived"]
    np.testing.assert_allclose(report["position"], place, atol=1e-9)
    assert set(report["q"]) == set(ROBOT.joint_names)
    assert set(report["limbs"]) == {limb.name for limb in ROBOT.limbs}
    assert np.shape(report["stiffness"]) == (6, 6)
    assert report["residual"] <= 1e-6


def test_the_demo_motion_is_played_and_stopped(robot):
    assert robot.probe.call(SetBool, full(topics.PLAY_SERVICE), data=True).success
    robot.until(lambda: robot.status()["playing"] and robot.value("playing") == 1.0, "motion")
    robot.until(lambda: abs(robot.value("plate/x")) > 1e-3, "movement")
    assert robot.probe.call(Trigger, full(topics.STOP_SERVICE)).success
    robot.until(lambda: robot.value("playing") == 0.0 and robot.value("moving") == 0.0, "rest")


def test_a_run_with_an_end_leaves_its_log(domain, tmp_path):
    settings = {"duration": 0.3, "log_dir": str(tmp_path), "play": True, "rate": 100.0}
    with NodeThread(RodSolverNode, domain, {"robot": ROBOT}, **settings) as node:
        node.join()
        assert node.exit_code == 0
    with np.load(tmp_path / "rod_solver.npz") as log:
        assert 1 <= len(log["time"]) <= 31
        assert 0.0 <= log["time"][0] < log["time"][-1]


def test_steps_that_take_too_long_are_left_out_and_counted(domain, monkeypatch):
    import time

    from cards_rods.rod_simulation import RodSimulation

    step = RodSimulation.step

    def slow(self, *args):
        time.sleep(0.03)
        return step(self, *args)

    monkeypatch.setattr(RodSimulation, "step", slow)
    with (
        Probe(domain) as probe,
        NodeThread(RodSolverNode, domain, {"robot": ROBOT}, rate=200.0) as node,
    ):
        found = probe.until_status(f"{NODE}: loop", Level.WARN, "steps take longer than 5 ms")
        values = {value.key: value.value for value in found.values}
        assert int(values["skipped"]) > 10
        # services are answered all the same
        assert probe.call(Trigger, full(topics.HOME_SERVICE)).success
        assert node.node.simulation.steps > 0


def test_parameters_that_do_not_fit(domain, tmp_path):
    for name, value in (("rate", 0.0), ("points", 2), ("color_by", "taste")):
        with pytest.raises((CardsError, InvalidParameterValueException)):
            NodeThread(RodSolverNode, domain, **{name: value})
    with pytest.raises(CardsError, match="roboy_arm"):
        NodeThread(RodSolverNode, domain, model="roboy_arm")
