"""The parameter files say what the nodes understand."""

import importlib
from pathlib import Path

import pytest
import yaml

from cards_bringup.nodes import node_list
from cards_core.control import controller_class, controller_kinds, controller_parameters
from cards_core.errors import UnknownNameError
from cards_core.formats import load
from cards_core.loop.control_setup import (
    model_parameters,
    reference_parameters,
    run_parameters,
)
from cards_core.parameters.parameter_file import load_parameters
from cards_core.shared_files import find_file, shared_folder

pytestmark = pytest.mark.ros
pytest.importorskip("rclpy", reason="rclpy is not installed")

ALL = sorted(
    file.name.removesuffix(node_list.SUFFIX)
    for file in (shared_folder() / "config").glob(f"*{node_list.SUFFIX}")
)
ROBOTS = [name for name in ALL if not node_list.read(name).rods]
RODS = [name for name in ALL if node_list.read(name).rods]


def declared(spec, parameters):
    """Return the parameters that a node declares, given the values it has."""
    import cards_bringup.gazebo.simulator as gazebo
    import cards_sim.node_parameters as simulator

    node = spec.name
    robot = load(parameters["model"])
    drawing = {"browser_view": "muscles.view_node", "muscle_markers": "rviz.node"}
    if node in drawing:
        return importlib.import_module(f"cards_viz.{drawing[node]}").parameters()
    if node == "simulator":
        own = gazebo.world_parameters() if spec.package == "cards_bringup" else []
        return [*simulator.general_parameters(), *simulator.robot_parameters(robot), *own]
    if node == "hardware":
        import cards_hardware.bridge.node_parameters as hardware

        return hardware.parameters()
    if node in controller_kinds():
        return [
            *model_parameters(),
            *run_parameters(),
            *controller_parameters(node, robot, parameters),
            *reference_parameters(controller_class(node)),
        ]
    return None


@pytest.mark.parametrize("robot", ALL)
def test_every_section_belongs_to_a_node(robot):
    read = node_list.read(robot)
    sections = set(yaml.safe_load(read.parameter_file.read_text())) - {"/**"}
    assert sections <= {name for node in read.nodes for name in (node.name, node.full_name)}


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_parameter_is_declared_and_accepted(robot):
    read = node_list.read(robot)
    checked = 0
    for node in read.nodes:
        values = load_parameters(read.parameter_file, node.name)
        assert values["model"] == {"two_arms": "roboy_arm"}.get(robot, robot)
        specs = declared(node, values)
        if specs is None:
            continue
        known = {spec.name: spec for spec in specs}
        for name, value in values.items():
            assert name in known, f"{node.name} has no parameter {name}"
            known[name].check(value)
        assert set(node.from_arguments) <= set(known)
        checked += 1
    assert checked >= 3


@pytest.mark.parametrize("robot", RODS)
def test_every_parameter_of_a_robot_of_rods_is_declared_and_accepted(robot):
    from cards_core.formats.locate import known_models

    assert robot in known_models(rods=True)
    read = node_list.read(robot)
    assert {node.name for node in read.nodes} >= {"rod_solver", "rod_view"}
    for name, module in (
        ("rod_solver", "cards_rods.node_parameters"),
        ("rod_view", "cards_viz.rods.view_node"),
    ):
        known = {spec.name: spec for spec in importlib.import_module(module).parameters()}
        values = load_parameters(read.parameter_file, name)
        assert values["model"] == robot
        for parameter, value in values.items():
            known[parameter].check(value)


@pytest.mark.parametrize("robot", ALL)
def test_files_that_nodes_are_told_to_read_exist(robot):
    files = [
        argument
        for node in node_list.load(robot)
        for argument in node.arguments
        if argument.startswith(str(shared_folder()))
    ]
    for file in files:
        assert Path(file).is_file(), f"{robot} needs {file}"


@pytest.mark.parametrize("robot", ROBOTS)
def test_references_exist(robot):
    from cards_core.trajectories.library import find_reference_file

    read = node_list.read(robot)
    named = 0
    for controller in read.controllers:
        values = load_parameters(read.parameter_file, controller)
        if values.get("reference"):
            own = values.get("reference_file", "")
            file = find_reference_file(own, load(values["model"]))
            assert values["reference"] in yaml.safe_load(file.read_text())["trajectories"]
            named += 1
    # controllers that make their own motion have no references
    assert named >= 1 or set(read.controllers) <= {"impedance", "cpg"}


def test_files_are_found_by_name_or_path():
    by_name = find_file("roboy_arm", folder="config", suffix=".yaml")
    assert find_file("roboy_arm.yaml", folder="config", suffix=".yaml") == by_name
    assert find_file(by_name, folder="config") == by_name
    with pytest.raises(UnknownNameError, match="planar_2r"):
        find_file("planar", folder="config", suffix=".yaml")


def test_installed_files_are_found_without_a_checkout(tmp_path, monkeypatch):
    from cards_core import shared_files

    share = tmp_path / "share" / "cards_bringup"
    (share / "config").mkdir(parents=True)
    monkeypatch.setattr(shared_files, "checkout", lambda: None)
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path}")
    assert shared_files.shared_folder() == Path(share)
