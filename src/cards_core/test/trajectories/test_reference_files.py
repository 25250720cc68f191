"""Trajectory files are found by name, and wrong names and spaces are explained."""

import pytest

from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load
from cards_core.trajectories.reference_files import find_reference_file, read_reference


@pytest.fixture(scope="module")
def robot():
    return load("planar_2r")


def test_the_file_of_the_robot_is_the_default(robot, tmp_path):
    assert find_reference_file("", robot).name == "planar_2r.yaml"
    assert find_reference_file("roboy_arm", robot).name == "roboy_arm.yaml"
    own = tmp_path / "own.yaml"
    own.write_text("trajectories: {}\n")
    assert find_reference_file(str(own), robot) == own


def test_installed_files_are_found(robot, tmp_path, monkeypatch):
    folder = tmp_path / "share" / "cards_bringup" / "config" / "trajectories"
    folder.mkdir(parents=True)
    (folder / "installed.yaml").write_text("trajectories: {}\n")
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert find_reference_file("installed", robot) == folder / "installed.yaml"


@pytest.mark.parametrize("name", ["nothing", "../planar_2r", "/nowhere/planar_2r.yaml"])
def test_unknown_files_are_refused_with_those_there_are(robot, name):
    with pytest.raises(UnknownNameError, match="planar_2r"):
        find_reference_file(name, robot)


def test_references_are_read_by_name_and_space(robot):
    tree = robot.tree
    reference = read_reference("there_and_back", "", robot, tree, space="joint")
    assert reference.duration == 8.0
    with pytest.raises(UnknownNameError, match="there_and_back"):
        read_reference("there", "", robot, tree, space="joint")
    with pytest.raises(CardsError, match="joint space, expected one in operational space"):
        read_reference("there_and_back", "", robot, tree, space="operational")
