"""Node ``trajectory_action``: goals to the controller's reference, feedback and results.

The action type and the server are played by the test, because they need ``control_msgs``; all
topics are real. Where it is installed the real ones are tried too.
"""

import importlib.util
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from builtin_interfaces.msg import Duration
from rclpy.action import GoalResponse
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from cards_core.trajectories.execution import ResultCode
from cards_ros import topics
from cards_ros.testing import NodeThread
from controllers.trajectory_action import TrajectoryActionNode, main

pytestmark = pytest.mark.ros

NAMES = ["joint_1", "joint_2"]


def point():
    return SimpleNamespace(positions=[])


ACTION = SimpleNamespace(
    Result=lambda: SimpleNamespace(error_code=0, error_string=""),
    Feedback=lambda: SimpleNamespace(
        header=Header(), joint_names=[], desired=point(), actual=point(), error=point()
    ),
)


class Goal:
    """What an action server hands over."""

    def __init__(self, positions=(0.4, -0.3), seconds=1, names=NAMES, tolerance=(), limit=0):
        duration = Duration(sec=seconds)
        points = [JointTrajectoryPoint(positions=list(positions), time_from_start=duration)]
        self.request = SimpleNamespace(
            trajectory=JointTrajectory(joint_names=list(names), points=points),
            path_tolerance=[],
            goal_tolerance=[SimpleNamespace(name=n, position=p) for n, p in tolerance],
            goal_time_tolerance=Duration(sec=limit),
        )
        self.is_cancel_requested = False
        self.feedback = []
        self.ended = []
        self.publish_feedback = self.feedback.append
        self.succeed = lambda: self.ended.append("succeeded")
        self.abort = lambda: self.ended.append("aborted")
        self.canceled = lambda: self.ended.append("canceled")


class Robot:
    """Joint states of a robot that goes where the reference says, or stays."""

    def __init__(self, probe, *, follows=True):
        self.probe, self.follows = probe, follows
        self.references = probe.listen(JointTrajectory, "ctc_joint/reference")
        self.now = 0.0
        self.q = np.zeros(2)

    def publish(self):
        message = JointState(name=NAMES, position=self.q.tolist(), velocity=[0.0, 0.0])
        sec = int(self.now)
        message.header.stamp.sec, message.header.stamp.nanosec = sec, round(1e9 * (self.now - sec))
        self.probe.publish(message, topics.JOINT_STATES)
        self.probe.spin(0.01)

    def go_on(self, until, limit=60.0):
        """Live until a condition holds."""
        begin = time.monotonic()
        while not until():
            assert time.monotonic() - begin < limit, "nothing happened"
            if self.references and self.follows:
                goal = np.array(self.references[-1].points[0].positions)
                self.q += np.clip(goal - self.q, -0.02, 0.02)
            self.now += 0.05
            self.publish()


@pytest.fixture
def server(domain):
    made = {}

    def make_server(_node, _type, name, **callbacks):
        made.update(callbacks, name=name)
        return SimpleNamespace(destroy=lambda: None)

    options = {"action": ACTION, "make_server": make_server}
    with NodeThread(TrajectoryActionNode, domain, options) as thread:
        yield SimpleNamespace(**made, node=thread.node)


def carry_out(server, robot, goal, until=None):
    """Run a goal in a thread, as the server does; return its result."""
    results = []
    thread = threading.Thread(target=lambda: results.append(server.execute_callback(goal)))
    thread.start()
    robot.go_on(until or (lambda: results))
    if until is None:
        thread.join()
    return results[0] if results else (thread, results)


def ready(server, robot):
    publisher = server.node._reference
    robot.go_on(publisher.get_subscription_count)
    robot.go_on(lambda: server.goal_callback(Goal().request) == GoalResponse.ACCEPT)


def test_goal_is_handed_on_and_succeeds(server, probe):
    robot, goal = Robot(probe), Goal()
    ready(server, robot)
    result = carry_out(server, robot, goal)
    assert (goal.ended, result.error_code) == (["succeeded"], ResultCode.SUCCESSFUL)
    assert robot.references[-1] == goal.request.trajectory
    last = goal.feedback[-1]
    assert last.joint_names == NAMES
    np.testing.assert_allclose(last.desired.positions, [0.4, -0.3])
    np.testing.assert_allclose(last.actual.positions, robot.q, atol=0.03)
    np.testing.assert_allclose(
        last.error.positions, np.subtract(last.desired.positions, last.actual.positions)
    )
    times = [f.header.stamp.sec + 1e-9 * f.header.stamp.nanosec for f in goal.feedback]
    assert times[-1] - times[0] >= 0.9


def test_robot_that_stays_fails_and_is_held(server, probe):
    robot = Robot(probe, follows=False)
    goal = Goal(tolerance=[("joint_1", 0.1)], limit=1)
    ready(server, robot)
    result = carry_out(server, robot, goal)
    assert goal.ended == ["aborted"]
    assert result.error_code == ResultCode.GOAL_TOLERANCE_VIOLATED
    assert "joint_1 missed its goal by 0.4" in result.error_string
    robot.go_on(lambda: len(robot.references) > 1)
    assert list(robot.references[-1].points[0].positions) == [0.0, 0.0]


def test_cancelled_and_replaced_goals(server, probe):
    robot = Robot(probe)
    ready(server, robot)
    first = Goal(seconds=1000)
    thread, results = carry_out(server, robot, first, until=lambda: len(first.feedback) > 3)
    second = Goal(seconds=1000)
    other, later = carry_out(server, robot, second, until=lambda: bool(results))
    thread.join()
    assert first.ended == ["aborted"]
    assert "another goal" in results[0].error_string
    second.is_cancel_requested = True
    robot.go_on(lambda: bool(later))
    other.join()
    assert second.ended == ["canceled"]


def test_goals_that_make_no_sense_are_refused(server, probe, capfd):
    assert server.goal_callback(Goal().request) == GoalResponse.REJECT  # no states yet
    robot = Robot(probe)
    ready(server, robot)
    for goal, message in (
        (Goal(names=["joint_1", "wrist"]), "wrist"),
        (Goal(positions=[0.1]), "positions of point 1"),
        (Goal(tolerance=[("elbow", 0.1)]), "elbow"),
    ):
        assert server.goal_callback(goal.request) == GoalResponse.REJECT
        assert message in capfd.readouterr().err


@pytest.mark.skipif(
    importlib.util.find_spec("control_msgs") is not None, reason="control_msgs is installed"
)
def test_without_control_msgs_it_says_so(domain, capfd):
    assert main([]) == 2
    output = "".join(capfd.readouterr())
    assert "control_msgs" in output
    assert "apt install" in output
    assert "Traceback" not in output


@pytest.mark.skipif(
    importlib.util.find_spec("control_msgs") is None, reason="control_msgs is not installed"
)
def test_over_the_real_action(domain, probe):
    from control_msgs.action import FollowJointTrajectory
    from rclpy.action import ActionClient

    with NodeThread(TrajectoryActionNode, domain):
        robot = Robot(probe)
        client = ActionClient(
            probe.node, FollowJointTrajectory, "trajectory_action/follow_joint_trajectory"
        )
        robot.go_on(client.server_is_ready)
        request = FollowJointTrajectory.Goal(trajectory=Goal().request.trajectory)
        sent = client.send_goal_async(request)
        robot.go_on(sent.done)
        result = sent.result().get_result_async()
        robot.go_on(result.done)
        assert result.result().result.error_code == 0
