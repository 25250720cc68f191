"""What RViz is sent, and that its configuration shows it."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
import yaml
from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import PointCloud2
from visualization_msgs.msg import Marker, MarkerArray

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import rod_starts
from cards_rods.markers import FRAME, ROD_COLOR, RodMarkers
from cards_rods.node_topics import COLUMNS, shapes_message
from cards_rods.rod_simulation import RodSimulation
from cards_ros import topics

pytestmark = pytest.mark.ros

CONFIG = Path(__file__).parents[3] / "config" / "rods.rviz"
POINTS = 17


@pytest.fixture(scope="module")
def simulation():
    return RodSimulation(read_rod_robot("stewart_6pfs"))


def shapes_of(simulation):
    return simulation.tracker.solver.shapes(simulation.result.solution, POINTS)


def decoded(data):
    return {
        (marker.ns, marker.id): marker for marker in deserialize_message(data, MarkerArray).markers
    }


def array(points):
    return np.array([[p.x, p.y, p.z] for p in points])


def test_markers_are_where_the_robot_is(simulation):
    robot = simulation.robot
    markers = RodMarkers(robot, POINTS)
    simulation.set_wrench([0.0, 0.2, 0.0, 0.0, 0.0, 0.0])
    simulation.solve(5.0)
    shapes, pose = shapes_of(simulation), simulation.result.solution.pose
    found = decoded(markers.make(simulation, shapes, "curvature", 12_000_000_034))
    assert len(found) == 2 * robot.n_limbs + 3
    for marker in found.values():
        assert marker.header.frame_id == FRAME
        assert (marker.header.stamp.sec, marker.header.stamp.nanosec) == (12, 34)
        assert marker.action == Marker.ADD
    colors = set()
    for i in range(robot.n_limbs):
        rod = found["rods", i]
        assert rod.type == Marker.LINE_STRIP
        np.testing.assert_array_equal(array(rod.points), shapes.positions[i])
        assert {c.a for c in rod.colors} == {1.0}
        colors |= {(c.r, c.g, c.b) for c in rod.colors}
    assert len(colors) > 5
    starts = rod_starts(robot, simulation.result.solution.q)[:, :3, 3]
    np.testing.assert_allclose(array(found["bases", 0].points), starts, atol=1e-12)
    corners = np.array([limb.tip.joint_pose[:3, 3] for limb in robot.limbs])
    corners = corners @ pose[:3, :3].T + pose[:3, 3]
    plate = array(found["plate", 0].points)
    for corner in corners:
        assert np.linalg.norm(plate - corner, axis=1).min() < 1e-12
    start, end = array(found["load", 0].points)
    np.testing.assert_allclose(end, pose[:3, 3], atol=1e-12)
    along = (end - start) / np.linalg.norm(end - start)
    np.testing.assert_allclose(along, [0.0, 1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize(("model", "unit"), [("stewart_6pfs", " mm"), ("planar_3rfr", "°")])
def test_joint_coordinates_are_written_beside_the_rods(model, unit):
    simulation = RodSimulation(read_rod_robot(model))
    robot = simulation.robot
    markers = RodMarkers(robot, POINTS)
    q = robot.home_q.copy()
    q[1] += 0.02
    simulation.command_joints((), q)
    for step in range(50):
        simulation.step(0.01 * step)
    texts = decoded(markers.make(simulation, shapes_of(simulation), "none", 1))
    scale = 1e3 if unit == " mm" else 180.0 / np.pi
    for i, name in enumerate(robot.joint_names):
        text = texts["joints", i]
        assert text.type == Marker.TEXT_VIEW_FACING
        assert text.text.startswith(name)
        assert text.text.endswith(unit)
        shown = float(text.text.removeprefix(name).removesuffix(unit))
        assert shown == pytest.approx(scale * simulation.solution.q[i], abs=0.051)
    assert simulation.solution.q[1] == pytest.approx(q[1], abs=1e-9)


def test_the_next_message_does_not_change_the_last(simulation):
    markers = RodMarkers(simulation.robot, POINTS)
    shapes = shapes_of(simulation)
    first = markers.make(simulation, shapes, "stress", 1)
    copy = bytes(bytearray(first))
    plain = markers.make(simulation, shapes, "none", 2)
    assert first == copy
    rods = [marker for (ns, _), marker in decoded(plain).items() if ns == "rods"]
    rgb = {(round(c.r, 6), round(c.g, 6), round(c.b, 6)) for rod in rods for c in rod.colors}
    assert rgb == {ROD_COLOR}


def test_centre_lines_are_a_table_with_names(simulation):
    shapes = shapes_of(simulation)
    sent = shapes_message(shapes, Time(sec=3, nanosec=7))
    message = deserialize_message(serialize_message(sent), PointCloud2)
    assert (message.height, message.width) == (6, POINTS)
    table = np.frombuffer(message.data, "<f8").reshape(message.height, message.width, 6)
    np.testing.assert_array_equal(table, shapes.table)
    assert [field.name for field in message.fields] == list(COLUMNS)
    assert [field.offset for field in message.fields] == [0, 8, 16, 24, 32, 40]
    assert message.row_step * message.height == len(message.data)
    np.testing.assert_array_equal(table[..., 3], shapes.curvature)
    np.testing.assert_array_equal(table[..., 4], shapes.stress)
    np.testing.assert_array_equal(table[..., 5], shapes.strain)


@pytest.mark.skipif(not CONFIG.exists(), reason="config/rods.rviz is not here: no checkout")
def test_the_configuration_of_rviz_names_what_is_sent(simulation):
    manager = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["Visualization Manager"]
    assert manager["Global Options"]["Fixed Frame"] == FRAME
    shown = {d["Name"]: d for d in manager["Displays"]}
    node = f"/{topics.ROD_SOLVER}"
    assert shown["Robot"]["Topic"]["Value"] == topics.ROD_MARKERS.replace("~", node)
    assert shown["Plate"]["Topic"]["Value"] == topics.ROD_POSE.replace("~", node)
    data = RodMarkers(simulation.robot, POINTS).make(
        simulation, shapes_of(simulation), "strain", 1
    )
    namespaces = {ns for ns, _ in decoded(data)}
    assert shown["Robot"]["Namespaces"] == dict.fromkeys(namespaces, True)
