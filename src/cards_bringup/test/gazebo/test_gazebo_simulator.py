"""The process that starts Gazebo: what Gazebo gets."""

import os
import shlex
import signal
import subprocess
import sys
import time

import pytest
import yaml

from cards_bringup.gazebo import simulator
from cards_bringup.gazebo.simulator import read_ros_arguments
from cards_core.errors import CardsError
from cards_core.formats import load
from cards_core.shared_files import shared_folder

pytestmark = pytest.mark.serial


def run(*arguments):
    return simulator.main(["--ros-args", "-p", "model:=planar_2r", *arguments])


def test_what_gazebo_is_started_with(fake_gazebo, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", "/mine")
    assert run("-p", "headless:=true", "-r", "__ns:=/left") == 0
    arguments = fake_gazebo.arguments
    assert arguments[:2] == ["sim", "-r"]
    assert {"-s", "--wait-for-assets"} <= set(arguments)
    env = fake_gazebo.environment
    assert env["PYTHONHOME"] == sys.base_prefix
    assert str(fake_gazebo.prefix / "lib/python") in env["PYTHONPATH"].split(":")
    resources = env["GZ_SIM_RESOURCE_PATH"].split(":")
    assert {str(shared_folder() / "models"), str(shared_folder() / "worlds")} <= set(resources)
    assert resources[-1] == "/mine"
    assert env["CARDS_CACHE"] == str(tmp_path / "cache")
    assert env["GZ_PARTITION"] == f"cards-{os.getpid()}"
    assert env["GZ_IP"] == "127.0.0.1"
    ros = shlex.split(env["CARDS_GAZEBO_ROS_ARGS"])
    assert ros[:3] == ["--ros-args", "-r", "__ns:=/left"]
    assert "planar_2r" in capfd.readouterr().out


def test_parameters_of_the_plugin(fake_gazebo):
    """It reads them from the file it is told, whatever the namespace of its node."""
    fake_gazebo.simulate(
        f"for last in $CARDS_GAZEBO_ROS_ARGS; do :; done; cat $last > {fake_gazebo.prefix}/p"
    )
    file = shared_folder() / "config" / "planar_2r.yaml"
    more = ["--params-file", str(file), "-p", "log_dir:=''", "-p", "world:=empty"]
    assert run(*more, "-p", "mode:=lockstep", "-p", "duration:=2.5") == 0
    given = yaml.safe_load((fake_gazebo.prefix / "p").read_text())
    values = given["/**"]["ros__parameters"]
    assert values["mode"] == "lockstep"
    assert values["duration"] == 2.5
    assert values["initial_positions"] == [-0.5, 0.5]
    assert not {"world", "headless", "model"} & set(values)


@pytest.mark.parametrize(
    ("mode", "speed", "factor"),
    [("realtime", "1.0", 1.0), ("realtime", "0.5", 0.5), ("lockstep", "1.0", 0.0)],
)
def test_speed(fake_gazebo, mode, speed, factor):
    assert run("-p", f"mode:={mode}", "-p", f"speed:={speed}", "-p", "dt:=0.002") == 0
    text = fake_gazebo.seen.read_text()
    assert f"<real_time_factor>{factor}</real_time_factor>" in text
    assert "<max_step_size>0.002</max_step_size>" in text


def test_window_only_where_there_is_a_display(fake_gazebo, monkeypatch):
    assert run() == 0
    assert "-s" in fake_gazebo.arguments
    monkeypatch.setenv("DISPLAY", ":99")
    assert run() == 0
    assert "-s" not in fake_gazebo.arguments


def test_physics_engine(fake_gazebo):
    assert run() == 0
    assert "--physics-engine" not in fake_gazebo.arguments
    assert run("-p", "physics_engine:=bullet-featherstone") == 0
    arguments = fake_gazebo.arguments
    place = arguments.index("--physics-engine")
    assert arguments[place + 1] == "gz-physics-bullet-featherstone-plugin"


def test_harmonic_has_nothing_to_wait_for(fake_gazebo):
    """It loads all models before time begins, and does not know the option."""
    fake_gazebo.harmonic()
    assert run() == 0
    assert "--wait-for-assets" not in fake_gazebo.arguments


def test_partition_of_the_user_stays(fake_gazebo, monkeypatch):
    monkeypatch.setenv("GZ_PARTITION", "mine")
    assert run() == 0
    assert fake_gazebo.environment["GZ_PARTITION"] == "mine"


def test_muscles_are_compiled_before_gazebo_starts(fake_gazebo, monkeypatch, tmp_path):
    from cards_core.codegen.toolchain import find_compiler

    if find_compiler() is None:
        pytest.skip("no C compiler on this machine")
    cache = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(cache))
    fake_gazebo.simulate('ls "$CARDS_CACHE"/*/model.so || exit 9')
    assert run() == 0


def test_what_is_around_cables_that_touch():
    file = shared_folder() / "worlds" / "table.sdf"
    robots = {"left": load("tetrahedral_6"), "right": load("planar_2r")}
    found = simulator._surroundings(file, {"terrain": ""}, robots)
    assert list(found) == ["left"]  # the other one has no such cables
    moving = [f"{model}::{link.name}" for model, link in found["left"].moving]
    assert moving == ["box::link"]
    assert next(shape.name for shape in found["left"].fixed) == "floor_contact"


def test_exit_code_is_gazebo_s(fake_gazebo, capfd):
    fake_gazebo.simulate("exit 3")
    assert run() == 3
    fake_gazebo.simulate("kill -SEGV $$")
    assert run() == 128 + signal.SIGSEGV
    assert "SIGSEGV" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "world:=no_such_world"], "two_arms"),
        (["-p", "model:=no_such_robot"], "roboy_arm"),
        (["-p", "dt:=-1.0"], "dt"),
        (["-p", "physics_engine:=havok"], "dartsim"),
        (["-p", "world:=two_arms", "-r", "__ns:=/left"], "2 robots"),
    ],
)
def test_mistakes_are_told_in_one_line(fake_gazebo, capfd, arguments, message):
    assert run(*arguments) == 2
    error = capfd.readouterr().err
    assert message in error
    assert "Traceback" not in error
    assert not fake_gazebo.seen.exists()


def test_missing_gazebo_is_told_with_the_fix(monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run() == 2
    assert "ros-jazzy-gz-sim-vendor >= 0.0.13" in capfd.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_no_files(fake_gazebo, tmp_path, number):
    up = tmp_path / "up"
    fake_gazebo.simulate(f"echo > {up}; exec sleep 1000")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    script = "import sys; from cards_bringup.gazebo.simulator import main; sys.exit(main())"
    host = subprocess.Popen(
        [sys.executable, "-c", script, "--ros-args", "-p", "model:=planar_2r"],
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    while not up.exists():
        assert host.poll() is None
        time.sleep(0.02)
    assert list(temporary.glob("cards-world-*"))
    host.send_signal(number)
    assert host.wait() == 0
    assert not list(temporary.iterdir())


# ROS arguments, read without ROS -----------------------------------------------------------------


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
        (["--ros-args", "--params-file", "/nowhere.yaml"], "no such file"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(CardsError, match=message):
        read(*arguments)
