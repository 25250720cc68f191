"""Node lists: the shipped ones are right, wrong ones are refused with the place."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cards_bringup.nodes import launch_arguments, node_list
from cards_bringup.nodes.plan import make_plan
from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.locate import find_model, has_rods
from cards_core.shared_files import shared_folder

GOOD = """\
robot: toy
parameter_file: toy.yaml
defaults: {controller: push, view: true}
nodes:
  - name: simulator
    package: cards_sim
    executable: simulator
    module: cards_sim.simulator_node
    role: host
    when: {sim: true, mode: [realtime, lockstep]}
    from_arguments: {mode: mode, log_dir: log_dir, autostart: autostart}
    parameters: {ground: true, speed: 2.5, picture: "{config}/toy.png"}
    arguments: ["-d", "{config}/toy.rviz"]
  - name: push
    package: controllers
    executable: ctc_joint
    role: controller
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="toy.nodes.yaml"):
        (tmp_path / "toy.yaml").write_text("{}")
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def values(**given):
    return {a.name: given.get(a.name, a.default) for a in launch_arguments.ARGUMENTS}


def shipped():
    return sorted(
        file.name.removesuffix(node_list.SUFFIX)
        for file in (shared_folder() / "config").glob(f"*{node_list.SUFFIX}")
    )


def test_there_are_robots():
    assert {"roboy_arm", "planar_2r"} <= set(shipped())


@pytest.mark.parametrize("robot", shipped())
def test_shipped_lists_have_a_host_and_a_controller(robot):
    read = node_list.read(robot)
    assert read.robot == robot
    assert any(node.role == "host" for node in read.nodes)
    if read.rods:
        assert read.controllers == ()
    else:
        assert read.defaults["controller"] in read.controllers
    assert node_list.load(robot) == list(read.nodes)
    assert (shared_folder() / "launch" / f"{robot}.launch.py").is_file()


ROBOTS = sorted(file.parent.name for file in (shared_folder() / "models").glob("*/model.sdf"))


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_has_a_launch_file_and_a_valid_list(robot):
    text = (shared_folder() / "launch" / f"{robot}.launch.py").read_text()
    assert f'describe("{robot}")' in text
    rods = has_rods(find_model(robot))
    for simulator, package in (
        ("gazebo", "cards_bringup"),
        ("rods", "cards_rods") if rods else ("mujoco", "cards_sim"),
    ):
        given = {"simulator": simulator, "view": "true"}
        plan = make_plan(given, robot, installed=lambda _: True, gazebo=lambda: "")
        hosts = [node for node in plan.nodes if node.role == "host"]
        assert [node.package for node in hosts] == [package]
        assert {"view", "tool"} <= {node.role for node in plan.nodes}
        assert plan.notes == ()
        for node in plan.nodes:
            assert node.role == "tool" or importlib.util.find_spec(node.module)
            for argument in plan.arguments(node):
                assert "/" not in argument or Path(argument).is_file()


def test_whole_format(write):
    read = node_list.read_file(write(GOOD))
    host, push = read.nodes
    assert read.defaults == {"controller": "push", "view": "true"}
    assert host.when == {"sim": ("true",), "mode": ("realtime", "lockstep")}
    assert host.arguments == ("-d", f"{read.source.parent}/toy.rviz")
    assert host.parameters["picture"] == f"{read.source.parent}/toy.png"
    assert push.when == {"controller": ("push",)}
    assert (host.module, push.module) == ("cards_sim.simulator_node", "controllers.ctc_joint")
    assert read.controllers == ("push",)


def test_conditions(write):
    host, push = node_list.read_file(write(GOOD)).nodes
    assert host.runs(values(sim="true", mode="lockstep"))
    assert not host.runs(values(sim="false"))
    assert not host.runs(values(mode="as_fast_as_possible"))
    assert push.runs(values(controller="push"))
    assert not push.runs(values(controller="none"))


def test_launch_arguments_become_parameters(write):
    host, _ = node_list.read_file(write(GOOD)).nodes
    out = host.overrides(values(mode="lockstep", autostart="false"))
    assert out["mode"] == "lockstep"
    assert out["autostart"] is False
    assert out["speed"] == 2.5
    assert "log_dir" not in out  # empty


def test_command_line_of_a_node(write, tmp_path):
    host, _ = node_list.read_file(write(GOOD)).nodes
    line = host.command(tmp_path / "my file.yaml", {"log_dir": "/tmp/1", "ground": True, "n": 3})
    assert line[:3] == [sys.executable, "-P", "-c"]
    assert "executable('cards_sim.simulator_node')" in line[3]
    assert line[line.index("--params-file") + 1] == str(tmp_path / "my file.yaml")
    assert "__node:=simulator" in line
    assert 'simulator:log_dir:="/tmp/1"' in line
    assert "simulator:ground:=true" in line
    assert "simulator:n:=3" in line


def test_command_line_runs_main(write, tmp_path):
    package = tmp_path / "toy_nodes"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "push.py").write_text(
        "import sys\ndef main(args=None):\n    print(sys.argv[1:])\n    return 7\n"
    )
    text = GOOD.replace("package: controllers", "package: toy_nodes").replace("ctc_joint", "push")
    _, push = node_list.read_file(write(text)).nodes
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    line = push.command(tmp_path / "toy.yaml", {"kp": 3.5})
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 7, done.stderr
    assert ast.literal_eval(done.stdout)[-2:] == ["-p", "push:kp:=3.5"]


def test_unknown_robot():
    with pytest.raises(UnknownNameError, match="planar_2r"):
        node_list.read("no_such_robot")


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("package: cards_sim", "pakage: cards_sim", 6, "did you mean 'package'"),
        ("    executable: simulator\n", "", 5, "has no 'executable'"),
        ("role: host", "role: boss", 9, "host, controller, view, tool"),
        ("when: {sim: true", "when: {simm: true", 10, "did you mean 'sim'"),
        ("mode: mode", "mode: mod", 11, "did you mean 'mode'"),
        ('"{config}/toy.png"', '"{confog}/toy.png"', 12, "{config} or {urdf} or {rviz}"),
        ("speed: 2.5", "speed: [1, 2]", 12, "a single value"),
        ("name: push", "name: simulator", 14, "appears twice"),
        ("controller: push", "controller: pull", 3, "no controller 'pull'"),
        ("toy.yaml", "other.yaml", 2, "no such file"),
        ("robot: toy", "robot: boy", 1, "as the file"),
        ("nodes:\n", "knots:\n", 4, "did you mean 'nodes'"),
        ("- name: push", "- name: [push", None, "not valid YAML"),
    ],
)
def test_wrong_lists_name_the_place(write, old, new, line, expected):
    assert old in GOOD
    file = write(GOOD.replace(old, new, 1))
    with pytest.raises(DescriptionError) as caught:
        node_list.read_file(file)
    assert expected in str(caught.value)
    assert str(file) in str(caught.value)
    if line is not None:
        assert caught.value.line == line


def test_missing_file(tmp_path):
    with pytest.raises(DescriptionError, match="no such file"):
        node_list.read_file(tmp_path / "toy.nodes.yaml")


def test_list_can_be_given_as_a_path(tmp_path):
    for file in (shared_folder() / "config").glob("planar_2r*.yaml"):
        shutil.copy(file, tmp_path)
    read = node_list.read(str(tmp_path / "planar_2r.nodes.yaml"))
    assert read.parameter_file.parent == Path(tmp_path)


def test_unknown_robots_are_told_what_there_is():
    with pytest.raises(UnknownNameError, match=r"Known: .*planar_2r"):
        node_list.read("nowhere")


@pytest.mark.parametrize("robot", shipped())
def test_overrides_win_over_the_file(robot):
    """Said for all nodes they would not: the file says it for the node."""
    from cards_bringup.gazebo.simulator import read_ros_arguments
    from cards_core.parameters.parameter_file import load_parameters

    read = node_list.read(robot)
    for node in read.nodes:
        if node.role in ("host", "controller"):
            # where ROS does not find a section of the file, it is passed on
            given = load_parameters(read.parameter_file, node.name) if node.namespace else {}
            line = node.command(read.parameter_file, {**given, "kp": 1.0, "dt": 7.0})
            arguments = line[line.index("--ros-args") :]
            found = read_ros_arguments(arguments, node.name).parameters
            assert (found["kp"], found["dt"]) == (1.0, 7.0)
            assert found["model"] in ("roboy_arm", robot)
