"""The world of a run: physics, robot, and nothing else changed."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cards_bringup.gazebo import simulator
from cards_bringup.gazebo.world import RobotInWorld, make_world
from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.locate import find_model
from cards_core.formats.sdf.terrain import terrain_sdf
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.terrain import read_terrain, terrain_model
from cards_core.shared_files import shared_folder
from cards_sim.node_parameters import general_parameters

WORLDS = sorted((shared_folder() / "worlds").glob("*.sdf"))


def world_of(made):
    return ET.fromstring(made.text).find("world")


def write(folder, content, name="own.sdf"):
    file = folder / name
    file.write_text(f'<sdf version="1.11"><world name="own">{content}</world></sdf>')
    return file


@pytest.mark.parametrize("file", WORLDS, ids=lambda file: file.stem)
def test_shipped_worlds_have_what_a_run_needs(file):
    world = ET.parse(file).getroot().find("world")
    assert world.get("name") == file.stem
    assert world.findtext("physics/max_step_size") == "0.001"
    # as in the model files, to the last digit: -9.8, the default, is another robot
    assert world.findtext("gravity") == "0 0 -9.81"
    assert list(load("roboy_arm").gravity) == [float(x) for x in world.findtext("gravity").split()]
    systems = {plugin.get("filename") for plugin in world.iter("plugin")}
    assert {"gz-sim-physics-system", "gz-sim-scene-broadcaster-system"} <= systems
    assert world.find("physics/dart") is None or world.find("physics").get("type") != "bullet"
    for link in world.iter("link"):  # sdformat wants different names of all children
        names = [child.get("name") for child in link if child.get("name")]
        assert len(names) == len(set(names))


def test_robot_is_put_into_the_world():
    made = make_world(shared_folder() / "worlds" / "empty.sdf", robot="planar_2r")
    file = find_model("planar_2r").resolve()
    assert made.robots == (RobotInWorld("planar_2r", file),)
    (include,) = world_of(made).iter("include")
    assert include.findtext("uri") == str(file)
    assert {m.get("name") for m in world_of(made).findall("model")} == {"ground"}


def test_step_and_speed():
    file = shared_folder() / "worlds" / "table.sdf"
    physics = world_of(make_world(file, robot="planar_2r", step=0.0005, real_time_factor=0.0))
    assert physics.findtext("physics/max_step_size") == "0.0005"
    assert float(physics.findtext("physics/real_time_factor")) == 0.0
    as_it_is = world_of(make_world(file, robot="planar_2r"))
    assert as_it_is.findtext("physics/max_step_size") == "0.001"
    assert as_it_is.findtext("physics/real_time_factor") == "1.0"


def test_world_without_physics_gets_some(tmp_path):
    made = make_world(write(tmp_path, ""), robot="planar_2r", step=0.002, real_time_factor=1.0)
    (physics,) = world_of(made).findall("physics")
    assert physics.findtext("max_step_size") == "0.002"


def test_default_physics_profile_is_the_one_that_counts(tmp_path):
    two = '<physics name="a" type="x"/><physics name="b" default="true" type="x"/>'
    made = make_world(write(tmp_path, two), robot="planar_2r", step=0.002)
    first, second = world_of(made).findall("physics")
    assert first.find("max_step_size") is None
    assert second.findtext("max_step_size") == "0.002"


def test_world_with_robots_keeps_them():
    made = make_world(shared_folder() / "worlds" / "two_arms.sdf", robot="planar_2r")
    file = find_model("roboy_arm").resolve()
    assert made.robots == (RobotInWorld("left_arm", file), RobotInWorld("right_arm", file))
    assert len(list(world_of(made).iter("include"))) == 2
    assert all(load(robot.file).muscles for robot in made.robots)


def test_robot_written_in_the_world_itself(tmp_path):
    model = ET.parse(find_model("planar_2r")).getroot().find("model")
    model.set("name", "mine")
    file = write(tmp_path, ET.tostring(model, encoding="unicode"))
    (robot,) = make_world(file, robot="roboy_arm").robots
    assert robot == RobotInWorld("mine", file, "mine")
    assert len(load(robot.file, model=robot.model).muscles) == 4


def test_other_models_are_no_robots(tmp_path):
    other = tmp_path / "crate.sdf"
    other.write_text('<sdf version="1.11"><model name="crate"><link name="l"/></model></sdf>')
    includes = (
        "<include><uri>crate.sdf</uri></include>"
        "<include><uri>model://not_here</uri></include>"
        "<include><uri>https://example.org/crate</uri></include>"
    )
    made = make_world(write(tmp_path, includes), robot="planar_2r")
    assert [robot.name for robot in made.robots] == ["planar_2r"]
    uris = [uri.text for uri in world_of(made).iter("uri")]
    # the copy is in another folder, so the path beside the world became absolute
    assert uris[:3] == [str(other), "model://not_here", "https://example.org/crate"]


def test_prefixes_that_are_not_declared_survive(tmp_path):
    given = '<gz:policies><parallel gz:x="1"/></gz:policies>'
    assert given in make_world(write(tmp_path, given), robot="planar_2r").text


def test_what_is_no_world(tmp_path):
    broken = tmp_path / "broken.sdf"
    broken.write_text("<sdf>\n<world>\n</sdf>")
    with pytest.raises(DescriptionError, match=r"broken\.sdf:3: malformed XML"):
        make_world(broken, robot="planar_2r")
    with pytest.raises(DescriptionError, match="holds 0 worlds"):
        make_world(find_model("planar_2r"), robot="planar_2r")
    with pytest.raises(DescriptionError, match="cannot be read"):
        make_world(tmp_path / "nothing.sdf", robot="planar_2r")
    with pytest.raises(UnknownNameError, match="roboy_arm"):
        make_world(WORLDS[0], robot="no_such_robot")


def test_robot_without_muscles(tmp_path):
    file = tmp_path / "stone.sdf"
    file.write_text('<sdf version="1.11"><model name="stone"><link name="l"/></model></sdf>')
    with pytest.raises(DescriptionError, match="has no muscles"):
        make_world(shared_folder() / "worlds" / "empty.sdf", robot=Path(file))


def test_terrain_replaces_the_ground(tmp_path):
    terrain = terrain_sdf(terrain_model(read_terrain("stairs:count=2")), tmp_path, 0.25)
    empty = shared_folder() / "worlds" / "empty.sdf"
    world = world_of(make_world(empty, robot="planar_2r", terrain=terrain))
    assert [model.get("name") for model in world.findall("model")] == ["terrain"]
    shapes = world.findall("model/link/collision/geometry/*")
    assert [shape.tag for shape in shapes] == ["plane", "box", "box"]
    assert {mu.text for mu in world.findall("model/link/collision//mu")} == {"0.25"}
    with pytest.raises(CardsError, match="robots of its own"):
        make_world(shared_folder() / "worlds" / "two_arms.sdf", robot="planar_2r", terrain=terrain)


def test_ground_of_a_run_has_the_product_of_both_frictions(tmp_path):
    """DART takes the smaller of two: 0.25 against the robot's 0.5."""
    given = {"terrain": "hills:friction=0.5,extent=1", "model": "tetraspine_hardware"}
    parameters = ParameterSet(given)
    parameters.declare(spec for spec in general_parameters() if spec.name in given)
    model = ET.fromstring(simulator._terrain(parameters, tmp_path))
    assert float(model.findtext("link/collision//mu")) == pytest.approx(0.5 * 0.15)
    mesh = Path(model.findtext("link/collision/geometry/mesh/uri"))
    assert mesh.parent == tmp_path
    assert mesh.read_text().startswith("v -0.5 -0.5 ")
