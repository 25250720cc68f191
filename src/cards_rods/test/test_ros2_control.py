"""The element for ros2_control names the joints and topics of its robot."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.shared_files import shared_folder
from cards_ros import topics

pytestmark = pytest.mark.ros

FILES = sorted((shared_folder() / "config" / "ros2_control").glob("*.urdf.xml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_joints_and_topics(file):
    root = ElementTree.parse(file).getroot()
    robot = read_rod_robot(root.get("name"))
    assert file.name == f"{robot.name}.urdf.xml"
    assert [joint.get("name") for joint in root.iter("joint")] == list(robot.joint_names)
    given = {param.get("name"): param.text for param in root.iter("param")}
    node = f"/{topics.ROD_SOLVER}"
    assert given["joint_commands_topic"] == topics.ROD_JOINT_COMMAND.replace("~", node)
    assert given["joint_states_topic"] == f"/{topics.JOINT_STATES}"


def test_there_is_one():
    assert FILES
