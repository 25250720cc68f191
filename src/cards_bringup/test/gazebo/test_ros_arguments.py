"""ROS arguments, read without ROS."""

import pytest

from cards_bringup.gazebo.ros_arguments import read_ros_arguments
from cards_core.errors import CardsError

pytestmark = pytest.mark.serial


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "/**: {ros__parameters: {model: planar_2r, dt: 0.002}}\n"
        "simulator: {ros__parameters: {dt: 0.001, speed: 2.0}}\n"
        "other: {ros__parameters: {dt: 7.0}}\n"
        "/left/simulator: {ros__parameters: {speed: 3.0}}\n"
    )
    return str(path)


def read(*arguments):
    return read_ros_arguments(arguments, "simulator")


def test_command_line_of_a_node_list(file):
    given = ["-r", "__node:=simulator", "--params-file", file, "-p", "simulator:dt:=0.005"]
    found = read("--ros-args", *given, "-p", 'world:="table"', "-p", "simulator:headless:=true")
    assert found.node == "simulator"
    assert found.namespace == ""
    assert found.parameters == {
        "model": "planar_2r",
        "dt": 0.005,
        "speed": 2.0,
        "world": "table",
        "headless": True,
    }
    assert found.rest == ("-r", "__node:=simulator")


def test_node_wins_over_all_and_the_later_one_over_the_earlier(file):
    found = read("--ros-args", "--params-file", file, "-p", "simulator:speed:=9.0")
    assert found.parameters["speed"] == 9.0
    more = ["-p", "speed:=9.0", "-p", "model:=roboy_arm", "-p", "other:model:=none"]
    found = read("--ros-args", "--params-file", file, *more)
    assert found.parameters["speed"] == 2.0
    assert found.parameters["model"] == "roboy_arm"


@pytest.mark.ros
@pytest.mark.parametrize(
    "more",
    [
        ["-p", "speed:=9.0"],
        ["-p", "simulator:speed:=9.0", "-p", "dt:=9.0"],
        ["-p", "model:=roboy_arm", "-p", "fresh:=1.5"],
    ],
)
def test_ros_reads_the_same(file, more):
    rclpy = pytest.importorskip("rclpy", reason="rclpy is not installed")
    for order in (["--params-file", file, *more], [*more, "--params-file", file]):
        context = rclpy.Context()
        context.init(args=["--ros-args", *order])
        options = {"automatically_declare_parameters_from_overrides": True}
        node = rclpy.create_node("simulator", context=context, **options)
        try:
            for name, value in read("--ros-args", *order).parameters.items():
                assert node.get_parameter(name).value == value, (order, name)
        finally:
            node.destroy_node()
            context.shutdown()


def test_namespace_and_the_rest_are_passed_on(file):
    given = ["-r", "__ns:=/left", "--log-level", "debug", "-r", "a:=b", "--disable-rosout-logs"]
    found = read("--ros-args", *given, "--params-file", file, "--")
    assert found.namespace == "left"
    assert found.log_level == "debug"
    assert found.rest == tuple(given)
    assert found.parameters["speed"] == 3.0


def test_root_as_namespace_is_none():
    """The launch system says it for every node; two robots in one process have their own."""
    found = read("--ros-args", "-r", "__node:=simulator", "-r", "__ns:=/")
    assert found.namespace == ""
    assert found.rest == ("-r", "__node:=simulator")


def test_node_name_decides_the_section(file):
    found = read("--ros-args", "--params-file", file, "-r", "__node:=other")
    assert found.parameters["dt"] == 7.0


def test_value_that_holds_the_separator():
    assert read("--ros-args", "-p", "text:='a:=b'").parameters == {"text": "a:=b"}
    assert read("--ros-args", "-p", "simulator:dt:=1.0").parameters == {"dt": 1.0}
    assert read("--ros-args", "-p", "other:dt:=1.0").parameters == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table.sdf"], "expected: --ros-args"),
        (["--ros-args", "-p"], "-p without a value"),
        (["--ros-args", "-p", "dt=1"], "name:=value"),
        (["--ros-args", "-p", "dt:=[1"], "not YAML"),
        (["--ros-args", "--params-file", "/nowhere.yaml"], "cannot be read"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(CardsError, match=message):
        read(*arguments)
