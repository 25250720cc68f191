"""The RViz configuration names topics and namespaces that the nodes really publish."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
import numpy as np
import yaml
from builtin_interfaces.msg import Time

from cards_ros import topics
from cards_viz.colors import first_scale
from cards_viz.muscles.scene import Scene, Trail
from cards_viz.rviz.joint_text import JointTexts
from cards_viz.rviz.node import (
    FRAME,
    MARKERS_TOPIC,
    PATH_TOPIC,
    ShapeMarkers,
    muscle_markers,
    path_markers,
)

pytestmark = pytest.mark.ros

CONFIG = Path(__file__).parents[4] / "config"


@pytest.fixture(scope="module")
def manager():
    path = CONFIG / "muscles.rviz"
    if not path.exists():
        pytest.skip(f"{path} is not there: this is not a checkout")
    return yaml.safe_load(path.read_text(encoding="utf-8"))["Visualization Manager"]


def displays(manager, kind):
    return [d for d in manager["Displays"] if d["Class"] == f"rviz_default_plugins/{kind}"]


def test_topics_frame_and_namespaces(manager, wrap_arm):
    assert manager["Global Options"]["Fixed Frame"] == FRAME
    (robot,) = displays(manager, "RobotModel")
    assert robot["Description Topic"]["Value"] == f"/{topics.ROBOT_DESCRIPTION}"
    assert robot["Description Topic"]["Durability Policy"] == "Transient Local"
    scene = Scene(wrap_arm, backend="numeric")
    tensions = np.full(4, 20.0)
    frame = scene.frame(scene.tree.home, tensions, 40.0)
    markers = muscle_markers(scene, frame, tensions, first_scale(wrap_arm), stamp=Time())
    markers.markers.extend(
        ShapeMarkers("wrap_surfaces", scene.surfaces).at(frame.link_poses, Time())
    )
    texts = JointTexts(scene.tree, scene.size, frame.link_poses, FRAME)
    markers.markers.extend(texts.at(scene.tree.home, frame.link_poses, Time()))
    drawn = {
        f"/{MARKERS_TOPIC}": markers,
        f"/{PATH_TOPIC}": path_markers(scene, Trail(0.1), Trail(0.1), stamp=Time()),
    }
    arrays = {d["Topic"]["Value"]: d for d in displays(manager, "MarkerArray")}
    assert set(arrays) == set(drawn)
    for topic, message in drawn.items():
        namespaces = {marker.ns for marker in message.markers}
        assert arrays[topic]["Namespaces"] == dict.fromkeys(namespaces, True)
        assert {marker.header.frame_id for marker in message.markers} == {FRAME}


def test_every_display_is_switched_consistently(manager):
    for display in manager["Displays"]:
        assert display["Enabled"] == display["Value"], display["Name"]
