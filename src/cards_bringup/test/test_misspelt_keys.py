"""A key that no reader knows, put into every mapping of every kind of YAML file that we ship."""

import copy
import shutil

import pytest
import yaml

from cards_bringup.nodes import node_list
from cards_core.errors import DescriptionError
from cards_core.formats import load
from cards_core.parameters.parameter_file import check_nodes
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.shared_files import shared_folder
from cards_core.trajectories import load_references
from cards_hardware.boards.layout import read_layout

WRONG = "no_such_key"

CONFIG = shared_folder() / "config"

NAMES_OF_OTHERS = ("parameters",)
"""Mappings whose keys are the parameters of a node, which the node itself checks."""


def mappings(content, place=()):
    """Return the places of all mappings in a document."""
    if isinstance(content, dict):
        yield place
        items = content.items()
    elif isinstance(content, list):
        items = enumerate(content)
    else:
        return
    for key, value in items:
        if key not in NAMES_OF_OTHERS:
            yield from mappings(value, (*place, key))


def wrong_files(text):
    """Return the file with one key more, for every mapping in it, and the place of the mapping."""
    content = yaml.safe_load(text)
    for place in mappings(content):
        other = copy.deepcopy(content)
        inner = other
        for key in place:
            inner = inner[key]
        inner[WRONG] = 1.0
        yield place, yaml.safe_dump(other)


def check(file, read, free=()):
    """Every place is refused with file and line, but those where any name may stand.

    Args:
        file: Is changed again and again.
        read: Reads it.
        free: Places where names are the user's, e.g. of trajectories.
    """
    read()
    seen = 0
    for place, text in wrong_files(file.read_text()):
        if place in free:
            continue
        file.write_text(text)
        with pytest.raises(DescriptionError, match=WRONG) as caught:
            read()
        assert caught.value.source == str(file), place
        line = caught.value.line
        assert line is not None, place
        if place:
            assert WRONG in text.splitlines()[line - 1], place
        seen += 1
    return seen


def test_node_list(tmp_path):
    for file in CONFIG.glob("roboy_arm*.yaml"):
        shutil.copy(file, tmp_path)
    file = tmp_path / "roboy_arm.nodes.yaml"
    assert check(file, lambda: node_list.read_file(file)) > 20


def test_boards(tmp_path):
    file = tmp_path / "roboy_arm.boards.yaml"
    shutil.copy(CONFIG / file.name, file)
    robot = load("roboy_arm")
    assert check(file, lambda: read_layout(file, robot, port="/dev/null")) == 3


@pytest.mark.parametrize("name", ["roboy_arm", "ipanema_1"])
def test_trajectories(tmp_path, name):
    file = tmp_path / "t.yaml"
    shutil.copy(CONFIG / "trajectories" / f"{name}.yaml", file)
    names = load(name).tree.position_names

    def read():
        for reference in load_references(file, names=names).values():
            reference.sample([0.0])

    assert check(file, read, free=[("trajectories",)]) > 1


@pytest.mark.parametrize("name", ["stewart_gough", "stewart_6pfs", "planar_3rfr"])
def test_rods(tmp_path, name):
    folder = tmp_path / name
    shutil.copytree(shared_folder() / "models" / name, folder)
    file = folder / "rods.yaml"
    assert check(file, lambda: read_rod_robot(str(folder / "model.sdf"))) > 3


def test_parameters(tmp_path):
    file = tmp_path / "p.yaml"
    shutil.copy(CONFIG / "roboy_arm.yaml", file)
    nodes = [node.name for node in node_list.load("roboy_arm")]
    check_nodes(file, nodes)
    text = file.read_text()
    for wrong in (f"{WRONG}: {{ros__parameters: {{a: 1}}}}\n", f"{WRONG}: 3\n"):
        file.write_text(text + wrong)
        with pytest.raises(DescriptionError, match=WRONG) as caught:
            check_nodes(file, nodes)
        assert caught.value.line == text.count("\n") + 1
