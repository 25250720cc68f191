"""Layouts of Foxglove and PlotJuggler show what there is."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from mcap.reader import make_reader
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from cards_bringup import cli
from cards_bringup.layouts.content import content_of
from cards_bringup.layouts.foxglove import foxglove_layout
from cards_bringup.layouts.plotjuggler import curve_name, plotjuggler_layout
from cards_bringup.nodes import node_list
from cards_bringup.nodes.plan import make_plan
from cards_core.shared_files import shared_folder
from cards_ros import topics
from cards_viz.rviz.node import MARKERS_TOPIC, PATH_TOPIC

pytestmark = [pytest.mark.ros, pytest.mark.serial]

ROBOTS = sorted(file.parent.name for file in (shared_folder() / "models").glob("*/model.sdf"))
OF_ROBOT = (topics.JOINT_STATES, topics.MUSCLE_STATES, topics.ROBOT_DESCRIPTION)
OF_RODS = (topics.ROD_STATE, topics.ROD_POSE, topics.ROD_MARKERS)


def published(robot):
    """Return the topics that the nodes of a robot publish, but for errors of controllers."""
    known = set()
    for node in make_plan({}, robot, installed=lambda _: True, gazebo=lambda: "none").nodes:
        prefix = f"/{node.namespace}/" if node.namespace else "/"
        if node.name == "muscle_markers":
            known |= {prefix + MARKERS_TOPIC, prefix + PATH_TOPIC}
        elif node.name == topics.ROD_SOLVER:
            known |= {one.replace("~", f"/{topics.ROD_SOLVER}") for one in OF_RODS}
            known.add(f"/{topics.JOINT_STATES}")
        elif node.role in ("host", "controller"):
            # the host of several robots has a node in the namespace of each controller
            known |= {prefix + one for one in OF_ROBOT}
    return known


@pytest.mark.parametrize("robot", [*ROBOTS, "two_arms"])
def test_every_topic_is_published(robot):
    content = content_of(robot)
    curves = [curve for plot in content.plots for curve in plot.curves]
    assert curves
    errors = {c.topic for c in curves if c.topic.endswith("/error")}
    others = {c.topic for c in curves} - errors | set(content.drawn)
    if content.description:
        others.add(content.description)
    assert others <= published(robot)
    # of one controller at a time: the one that the launch argument names
    nodes = node_list.read(robot).nodes
    assert errors <= {f"/{n.full_name}/error" for n in nodes if n.role == "controller"}


def test_curves_are_the_numbers_of_a_run(tmp_path, capsys):
    arguments = ["--no-ros", "--headless", "--duration", "0.1", "--json", "--out"]
    assert cli.main(["demo", "planar_2r", *arguments, str(tmp_path)]) in (0, 1)
    capsys.readouterr()
    first = {}
    with (tmp_path / "recording.mcap").open("rb") as stream:
        for schema, channel, message in make_reader(stream).iter_messages():
            if schema.name == "sensor_msgs/msg/JointState":
                first.setdefault(channel.topic, deserialize_message(message.data, JointState))
    recorded = 0
    for plot in content_of("planar_2r").plots:
        for curve in plot.curves:
            if curve.topic not in first:
                assert curve.topic == "/ctc_operational/error"  # the other controller
                continue
            message = first[curve.topic]
            assert message.name[curve.index] == curve.name
            assert np.isfinite(getattr(message, curve.field)[curve.index])
            recorded += 1
    assert recorded == 2 + 4 + 4 + 2


def test_rods_have_the_entries_of_their_state():
    from cards_core.rods.robots.reader import read_rod_robot
    from cards_rods.messages import state_names

    names = state_names(read_rod_robot("planar_3rfr"))
    curves = [c for p in content_of("planar_3rfr").plots for c in p.curves]
    found = [c for c in curves if c.topic == "/rod_solver/state"]
    assert len(found) == 1 + 3
    assert all(names[c.index] == c.name for c in found)


def test_foxglove_file():
    content = content_of("roboy_arm")
    document = json.loads(foxglove_layout(content))
    panels = document["configById"]
    shown = set(re.findall(r'"([A-Za-z0-9]+![a-z0-9]+)"', json.dumps(document["layout"])))
    assert shown == set(panels)
    assert panels["3D!scene"]["topics"] == {
        topic: {"visible": True} for topic in ("/muscle_markers", "/end_effector_path")
    }
    paths = [p["value"] for panel in panels.values() for p in panel.get("paths", [])]
    assert len(paths) == sum(len(plot.curves) for plot in content.plots)
    assert paths[0] == "/joint_states.position[0]"
    assert "/muscle_states.effort[10]" in paths


def test_plotjuggler_file():
    content = content_of("stewart_gough")
    root = ElementTree.fromstring(plotjuggler_layout(content))
    curves = [element.get("name") for element in root.iter("curve")]
    assert curves == [curve_name(c) for plot in content.plots for c in plot.curves]
    assert "/rod_solver/state/min_eigenvalue/position" in curves
    assert "/rod_solver/pose/pose/position/x" in curves
    for splitter in root.iter("DockSplitter"):
        sizes = [float(size) for size in splitter.get("sizes").split(";")]
        assert len(sizes) == int(splitter.get("count")) == len(list(splitter))
        assert sum(sizes) == pytest.approx(1.0, abs=1e-5)


def test_command_writes_both_files(tmp_path, capsys):
    assert cli.main(["layout", "planar_2r", "-o", str(tmp_path / "new"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert all(Path(file).is_file() for file in said["files"])
    assert "/joint_states" in said["topics"]
    assert cli.main(["layout", "no_such_robot"]) == 2
    assert "no_such_robot" in capsys.readouterr().err
