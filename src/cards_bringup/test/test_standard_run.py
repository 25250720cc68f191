"""Robots without a node list: what runs by default."""

import shutil
from pathlib import Path

import pytest

from cards_bringup.nodes import node_list
from cards_bringup.nodes.plan import make_plan
from cards_bringup.nodes.rviz_config import rviz_config
from cards_core.errors import CardsError, DescriptionError
from cards_core.formats.locate import find_model


@pytest.fixture
def copy(tmp_path):
    """Copy a shipped robot to a folder that nobody knows, under another name."""

    def copy(name, edit=lambda text: text):
        folder = tmp_path / f"own_{name}"
        shutil.copytree(find_model(name).parent, folder)
        file = folder / "model.sdf"
        text = file.read_text().replace(f'<model name="{name}">', f'<model name="own_{name}">')
        file.write_text(edit(text))
        return file

    return copy


def by_name(read, name):
    return [node for node in read.nodes if node.name == name]


def test_a_robot_that_cables_can_hold_is_moved(copy):
    file = copy("planar_2r")
    for robot in (str(file), str(file.parent)):
        read = node_list.read(robot)
        assert read.robot == "own_planar_2r"
        assert read.controllers == ("ctc_joint", "ctc_operational", "impedance", "cpg")
        assert read.defaults["controller"] == "ctc_joint"
        assert read.notes == ()
        (controller,) = by_name(read, "ctc_joint")
        assert controller.parameters == {"model": str(file), "reference": "wiggle"}
        for host in by_name(read, "simulator"):
            assert host.parameters["initial_positions"] == [-0.5, 0.5]
        (view,) = by_name(read, "browser_view")
        assert view.parameters == {"model": str(file)}


def test_trajectories_and_parameters_beside_the_robot_count(copy):
    file = copy("planar_2r")
    (file.parent / "trajectories.yaml").write_text(
        "trajectories:\n  low: {kind: point_to_point, from: [0.1, 0.2], to: [0, 0], duration: 2}\n"
    )
    read = node_list.read(str(file))
    assert by_name(read, "ctc_joint")[0].parameters["reference"] == "low"
    assert by_name(read, "simulator")[0].parameters["initial_positions"] == [0.1, 0.2]
    parameters = file.parent / "parameters.yaml"
    parameters.write_text(
        "ctc_joint:\n  ros__parameters: {reference: wiggle, kp: 7.0}\n"
        "simulator:\n  ros__parameters: {initial_positions: [0.3, 0.4]}\n"
    )
    plan = make_plan({"simulator": "mujoco", "rviz": "false"}, str(file))
    host, controller = plan.nodes[0], plan.nodes[1]
    assert (host.name, controller.name) == ("simulator", "ctc_joint")
    assert plan.given(host.full_name)["initial_positions"] == [0.3, 0.4]
    assert plan.given(controller.full_name) == {
        "model": str(file), "reference": "wiggle", "kp": 7.0, "autostart": True,
        "use_sim_time": True,
    }  # fmt: skip
    parameters.write_text("ctc_jont:\n  ros__parameters: {kp: 7.0}\n")
    with pytest.raises(DescriptionError, match="did you mean 'ctc_joint'") as caught:
        make_plan({"simulator": "mujoco"}, str(file))
    assert caught.value.source == str(parameters)


def test_a_trajectory_that_cables_cannot_hold_is_passed_over(copy):
    file = copy("planar_2r")
    (file.parent / "trajectories.yaml").write_text(
        "trajectories:\n"
        "  far: {kind: point_to_point, from: [-0.5, 0.5], to: [1.2, -2], duration: 2}\n"
        "  near: {kind: point_to_point, from: [-0.5, 0.5], to: [-0.45, 0.5], duration: 2}\n"
    )
    read = node_list.read(str(file))
    assert by_name(read, "ctc_joint")[0].parameters["reference"] == "near"


def test_an_asked_reference_replaces_the_default(copy):
    plan = make_plan({"simulator": "mujoco", "reference": "other"}, str(copy("planar_2r")))
    controller = next(node for node in plan.nodes if node.role == "controller")
    assert plan.given(controller.full_name)["reference"] == "other"


def test_a_tensegrity_holds_its_lengths_on_the_ground(copy):
    read = node_list.read(str(copy("superball")))
    assert read.defaults["controller"] == "impedance"
    assert read.defaults["terrain"] == "flat:friction=0.5"


def test_a_robot_that_cables_cannot_hold_is_let_alone_and_says_so(copy):
    weak = copy("planar_2r", lambda text: text.replace('max="100"', 'max="10"'))
    plan = make_plan({"simulator": "mujoco"}, str(weak))
    assert plan.values["controller"] == "none"
    assert "no tensions within their limits hold own_planar_2r" in plan.notes[0]
    asked = make_plan({"simulator": "mujoco", "controller": "ctc_joint"}, str(weak))
    assert not [note for note in asked.notes if "no tensions" in note]


def test_a_robot_without_muscles_is_let_alone(copy):
    def bare(text):
        return text[: text.index("<muscle ")] + text[text.rindex("</muscle>") + 9 :]

    own = copy("planar_2r", bare)
    plan = make_plan({"simulator": "mujoco"}, str(own))
    assert plan.values["controller"] == "none"
    assert "nothing to be moved by (no muscles, no motors of joints)" in plan.notes[0]
    why = "expected: none; own_planar_2r has nothing to be moved by .no muscles, no motors"
    with pytest.raises(CardsError, match=why):
        make_plan({"simulator": "mujoco", "controller": "ctc_joint"}, str(own))


def test_the_path_of_a_shipped_robot_is_the_robot():
    for robot in ("roboy_arm", "stewart_gough"):
        file = find_model(robot)
        assert node_list.read(str(file)) == node_list.read(robot)
        assert node_list.read(str(file.parent)) == node_list.read(robot)


@pytest.mark.parametrize("robot", ["planar_xy", "snake_24", "spherical_2s"])
def test_shipped_robots_without_a_list_have_their_trajectories(robot):
    read = node_list.read(robot)
    assert read.defaults["controller"] == "ctc_joint"
    assert by_name(read, "ctc_joint")[0].parameters["reference"] != "wiggle"
    assert Path(read.parameter_file).parent.name == "standard"


def test_robots_of_rods_have_a_solver():
    read = node_list.read("planar_3efr")
    assert read.rods
    assert read.robot == "planar_3efr"
    assert {node.name for node in read.nodes} == {"rod_solver", "rod_view", "rviz"}
    assert by_name(read, "rod_solver")[0].parameters["model"] == str(find_model("planar_3efr"))


def test_rviz_settings_are_where_the_lists_say():
    for robot in ("planar_xy", "planar_3efr"):
        read = node_list.read(robot)
        (rviz,) = by_name(read, "rviz")
        assert rviz.arguments[1] == "{rviz}"
        assert rviz_config(robot, rods=read.rods).is_file()
