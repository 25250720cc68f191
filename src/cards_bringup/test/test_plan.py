"""What launch arguments start what."""

import os
from pathlib import Path

import pytest

from cards_bringup.nodes import node_list
from cards_bringup.nodes.launch_arguments import ARGUMENTS, arguments_for
from cards_bringup.nodes.plan import is_installed, make_plan
from cards_core.errors import CardsError, UnknownNameError
from cards_core.parameters.parameter_file import read_file
from cards_core.shared_files import shared_folder

ALL = sorted(
    file.name.removesuffix(node_list.SUFFIX)
    for file in (shared_folder() / "config").glob(f"*{node_list.SUFFIX}")
)
ROBOTS = [name for name in ALL if not node_list.read(name).rods]
RODS = [name for name in ALL if node_list.read(name).rods]
OURS = ("cards_sim", "controllers", "cards_viz")
GAZEBO = (*OURS, "cards_bringup", "cards_muscle_plugin")


def plan(launch_file="roboy_arm", installed=OURS, gazebo="", **given):
    """``gazebo`` is what is wrong with it."""
    return make_plan(
        given,
        launch_file,
        installed=lambda package: package in installed,
        gazebo=lambda: gazebo,
    )


def names(made):
    return [node.name for node in made.nodes]


def test_defaults_start_simulator_and_controller():
    made = plan()
    assert names(made)[:2] == ["simulator", "ctc_operational"]
    assert made.values["simulator"] == "mujoco"
    assert made.values["use_sim_time"] == "true"
    assert made.parameter_file.name == "roboy_arm.yaml"
    assert made.parameter_file.is_file()


def test_every_robot_has_its_own_defaults():
    assert "ctc_joint" in names(plan("planar_2r"))
    assert "ctc_joint" in names(plan("roboy_arm", robot="planar_2r"))


def test_physics_engine_is_for_gazebo():
    made = plan(physics_engine="dartsim")
    assert (
        made.notes[-1] == "physics_engine:=dartsim is left out: simulator has no physics engines"
    )
    made = plan(installed=GAZEBO, simulator="gazebo", physics_engine="bullet-featherstone")
    host = next(node for node in made.nodes if node.role == "host")
    assert made.parameters(host)["physics_engine"] == "bullet-featherstone"
    assert "physics_engine" not in "".join(made.notes)
    with pytest.raises(CardsError, match=r"physics_engine:=havok \(expected: world, dartsim"):
        plan(physics_engine="havok")


@pytest.mark.parametrize("controller", ["ctc_joint", "ctc_operational"])
def test_exactly_the_chosen_controller_runs(controller):
    chosen = [n.name for n in plan(controller=controller).nodes if n.role == "controller"]
    assert chosen == [controller]


def test_no_controller():
    assert not [n for n in plan(controller="none").nodes if n.role == "controller"]


def test_views():
    assert "browser_view" not in names(plan())
    assert "browser_view" in names(plan(view="true"))
    assert "muscle_markers" in names(plan(rviz="true"))
    assert "muscle_markers" not in names(plan(rviz="false"))
    assert "browser_view" in names(plan(view="true", headless="true"))


def test_programs_of_ros_are_left_out_with_a_note_where_they_are_missing():
    made = plan()
    assert "rviz" not in names(made)
    assert any("rviz2 is not installed" in note for note in made.notes)
    whole = plan(installed=(*OURS, "rviz2", "robot_state_publisher"))
    assert {"rviz", "robot_state_publisher"} <= set(names(whole))
    assert not any("left out" in note for note in whole.notes)
    assert not {"rviz", "robot_state_publisher"} & set(
        names(plan(installed=(*OURS, "rviz2"), headless="true"))
    )


def test_description_for_robot_state_publisher_is_urdf_of_this_robot():
    made = plan(installed=(*OURS, "robot_state_publisher"))
    node = next(n for n in made.nodes if n.name == "robot_state_publisher")
    text = made.parameters(node)["robot_description"]
    assert text.lstrip().startswith("<")
    assert "<robot" in text
    assert "{urdf}" not in text


def test_booleans_as_people_write_them():
    assert plan(view="True").values["view"] == "true"
    with pytest.raises(CardsError, match=r"view:=maybe \(expected: true or false\)"):
        plan(view="maybe")


def test_hardware_without_its_package():
    with pytest.raises(CardsError, match="sim:=false needs package cards_hardware"):
        plan(sim="false")


def test_the_real_robot_is_the_host_and_all_else_stays_the_same():
    simulated = plan(view="true")
    real = plan(
        view="true",
        sim="false",
        port="/dev/ttyUSB7",
        baudrate="2000000",
        installed=(*OURS, "cards_hardware"),
    )
    (host,) = [node for node in real.nodes if node.role == "host"]
    assert (host.name, host.package, host.executable) == ("hardware", "cards_hardware", "bridge")
    assert real.parameters(host)["port"] == "/dev/ttyUSB7"
    assert real.parameters(host)["baudrate"] == 2_000_000
    assert real.parameters(host)["autostart"] is True
    assert real.values["use_sim_time"] == "false"
    assert real.notes == tuple(n for n in simulated.notes if not n.startswith("simulator:="))
    assert real.parameter_file == simulated.parameter_file
    others = [node for node in real.nodes if node.role != "host"]
    assert others == [node for node in simulated.nodes if node.role != "host"]
    for node in others:
        own = simulated.parameters(node)
        assert own.pop("use_sim_time") is True
        assert real.parameters(node) == own


@pytest.mark.parametrize("robot", ROBOTS)
def test_every_robot_can_be_real(robot):
    made = plan(robot, sim="false", installed=(*OURS, "cards_hardware"))
    hosts = [node for node in made.nodes if node.role == "host"]
    assert {node.module for node in hosts} == {"cards_hardware.bridge.node"}
    assert len(hosts) == (2 if robot == "two_arms" else 1)


@pytest.mark.parametrize("robot", RODS)
def test_a_robot_of_rods_has_a_host_of_its_own_and_no_simulated_time(robot):
    made = plan(robot, view="true", installed=(*OURS, "cards_rods"))
    assert names(made)[:2] == ["rod_solver", "rod_view"]
    assert made.values["use_sim_time"] == "false"
    assert made.values["simulator"] == "rods"
    assert not any("simulator" in note for note in made.notes)
    with pytest.raises(CardsError, match=r"lists no host for sim:=false|simulator"):
        plan(robot, sim="false", installed=(*OURS, "cards_rods"))
    with pytest.raises(CardsError, match="simulator:=mujoco is not in"):
        plan(robot, simulator="mujoco", installed=(*OURS, "cards_rods"))
    with pytest.raises(CardsError, match="needs package cards_rods, which is not installed"):
        plan(robot)


def test_rods_are_what_auto_takes_where_nothing_else_is():
    made = plan("stewart_gough", simulator="auto", installed=(*OURS, "cards_rods"))
    assert made.values["simulator"] == "rods"
    with pytest.raises(CardsError, match="simulator:=rods is not in"):
        plan("roboy_arm", simulator="rods", installed=(*OURS, "cards_rods"))


def given_by_ros(made, node):
    """Return a node's parameters: what ROS takes from the file, then what the plan passes."""
    full = "/".join(filter(None, (made.values["namespace"], node.namespace, node.name)))
    out = {}
    for section in read_file(made.parameter_file):
        if section.concerns(full):
            out |= section.values
    return out | made.parameters(node)


def test_a_section_of_no_node_is_refused(tmp_path):
    file = tmp_path / "p.yaml"
    own = "ros__parameters: {rate: 1.0}"
    file.write_text(f"/**: {{{own}}}\nctc_jont: {{{own}}}\n")
    with pytest.raises(CardsError, match=r"p\.yaml:2: node 'ctc_jont'.*did you mean 'ctc_joint'"):
        plan("planar_2r", params_file=str(file))
    file.write_text(f"live_analysis: {{{own}}}\n")
    plan("planar_2r", params_file=str(file))


def test_two_real_arms_have_a_bridge_each():
    made = plan("two_arms", sim="false", port="/dev/a,/dev/b", installed=(*OURS, "cards_hardware"))
    hosts = [node for node in made.nodes if node.role == "host"]
    assert [node.namespace for node in hosts] == ["left_arm", "right_arm"]
    for node in hosts:
        parameters = given_by_ros(made, node)
        assert parameters["part"] == node.namespace
        assert (parameters["boards"], parameters["model"]) == ("two_arms", "roboy_arm")
        assert parameters["port"] == "/dev/a,/dev/b"
    assert not any("world" in note for note in made.notes)


def test_gazebo_without_its_package():
    with pytest.raises(CardsError, match="simulator:=gazebo needs package cards_muscle_plugin"):
        plan(simulator="gazebo")


def test_gazebo_that_cannot_be_used():
    with pytest.raises(CardsError, match=r"simulator:=gazebo cannot be used: no loader \(apt\)"):
        plan(simulator="gazebo", installed=GAZEBO, gazebo="no loader (apt)")


def test_gazebo_is_the_host_where_it_can_be_used():
    for wanted in ("gazebo", "auto"):
        made = plan(simulator=wanted, installed=GAZEBO)
        assert made.values["simulator"] == "gazebo"
        (host,) = [node for node in made.nodes if node.role == "host"]
        assert (host.name, host.package) == ("simulator", "cards_bringup")
        assert ("simulator:=gazebo" in made.notes) is (wanted == "auto")


def test_auto_says_why_it_is_not_gazebo():
    made = plan(installed=GAZEBO, gazebo="no loader (apt)")
    assert made.values["simulator"] == "mujoco"
    assert "simulator:=mujoco: gazebo cannot be used: no loader (apt)" in made.notes
    (note,) = [n for n in plan().notes if n.startswith("simulator")]
    assert note.endswith("needs package cards_muscle_plugin, which is not installed")


def test_gazebo_is_looked_at_only_if_it_is_wanted():
    def look():
        raise AssertionError

    make_plan({"simulator": "mujoco"}, "roboy_arm", gazebo=look)


def test_world_and_window_reach_gazebo(tmp_path):
    made = plan(simulator="gazebo", installed=GAZEBO, world="table", headless="true")
    parameters = made.parameters(made.nodes[0])
    assert parameters["world"] == str(shared_folder() / "worlds" / "table.sdf")
    assert parameters["headless"] is True
    assert parameters["mode"] == "realtime"
    own = tmp_path / "own.sdf"
    own.touch()
    made = plan(simulator="gazebo", installed=GAZEBO, world=str(own))
    assert made.values["world"] == str(own)
    with pytest.raises(UnknownNameError, match="two_arms"):
        plan(simulator="gazebo", installed=GAZEBO, world="moon")


def test_all_nodes_share_the_network_of_gazebo(monkeypatch):
    """What draws in its window does not find it otherwise."""
    for name in ("GZ_PARTITION", "GZ_IP"):
        monkeypatch.delenv(name, raising=False)
    made = plan(simulator="gazebo", installed=GAZEBO)
    assert "gazebo_markers" in names(made)
    shared = made.environment()
    assert shared == {"GZ_PARTITION": f"cards-{os.getpid()}", "GZ_IP": "127.0.0.1"}
    monkeypatch.setenv("GZ_PARTITION", "mine")
    assert made.environment()["GZ_PARTITION"] == "mine"
    assert plan(simulator="mujoco").environment() == {}


def test_several_robots_have_namespaces():
    made = plan("two_arms", installed=GAZEBO)
    assert made.values["simulator"] == "gazebo"
    controllers = [node for node in made.nodes if node.role == "controller"]
    assert [node.namespace for node in controllers] == ["left_arm", "right_arm"]
    for node in controllers:
        # the file's key has no namespace, so what it says is passed on
        assert given_by_ros(made, node)["model"] == "roboy_arm"
        assert made.parameters(node)["kp"] == [2000.0] * 3
        line = node.command(made.parameter_file, made.parameters(node))
        assert line[line.index(f"__ns:=/{node.namespace}") - 1] == "-r"
    embedded = plan("two_arms", simulator="mujoco", log_dir="/logs", rviz="false")
    assert names(embedded) == ["simulator", "ctc_operational", "ctc_operational"]
    assert Path(embedded.parameters(embedded.nodes[0])["world"]).stem == "two_arms"
    folders = [embedded.parameters(node)["log_dir"] for node in embedded.nodes]
    assert folders == ["/logs", "/logs/left_arm", "/logs/right_arm"]


def test_no_simulator_at_all():
    with pytest.raises(CardsError, match="no simulator for roboy_arm can be used"):
        plan(installed=("controllers",))


def test_missing_package_of_a_needed_node():
    with pytest.raises(CardsError, match="'ctc_operational' needs package controllers"):
        plan(installed=("cards_sim", "cards_viz"))


def test_the_real_robot_has_no_clock():
    with pytest.raises(CardsError, match="no /clock"):
        plan(sim="false", use_sim_time="true")
    with pytest.raises(CardsError, match="mode:=lockstep with sim:=false"):
        plan(sim="false", mode="lockstep")


def test_unknown_argument_and_value():
    with pytest.raises(UnknownNameError, match="launch argument"):
        plan(velocity="3")
    with pytest.raises(CardsError, match=r"controller:=fly \(expected: ctc_operational"):
        plan(controller="fly")
    with pytest.raises(UnknownNameError, match="roboy_arm"):
        plan(robot="no_such_robot")


def test_parameter_file_by_name_and_by_path(tmp_path):
    assert plan(params_file="planar_2r").parameter_file.name == "planar_2r.yaml"
    own = tmp_path / "own.yaml"
    own.write_text("{}")
    assert plan(params_file=str(own)).parameter_file == own
    with pytest.raises(UnknownNameError, match="no_such_file"):
        plan(params_file="no_such_file")


def test_sim_time_is_for_everybody_but_the_host():
    made = plan(view="true")
    for node in made.nodes:
        assert made.parameters(node).get("use_sim_time", False) is (node.role != "host")


def test_namespace_keeps_the_parameters_of_the_file():
    made = plan(namespace="left", reference="circle")
    node = next(n for n in made.nodes if n.name == "ctc_operational")
    parameters = given_by_ros(made, node)
    assert parameters["model"] == "roboy_arm"
    assert parameters["reference"] == "circle"  # the argument wins over the file
    assert "kp" in parameters


@pytest.mark.parametrize("robot", ["roboy_arm", "planar_2r"])
def test_world_reaches_the_embedded_simulator(robot):
    """A robot without a world is alone: its parameter ``world`` is the parameter file's."""
    made = plan(robot, world="table")
    assert made.parameters(made.nodes[0])["world"] == str(shared_folder() / "worlds" / "table.sdf")
    alone = plan(robot, world="")
    assert "world" not in alone.parameters(alone.nodes[0])
    with pytest.raises(UnknownNameError, match="two_arms"):
        plan(robot, world="moon")


def test_a_robot_may_have_a_world_of_its_own(tmp_path):
    config = shared_folder() / "config"
    text = (config / "roboy_arm.nodes.yaml").read_text()
    own = tmp_path / "roboy_arm.nodes.yaml"
    own.write_text(text.replace("defaults: {", "defaults: {world: desk, "))
    (tmp_path / "roboy_arm.yaml").write_text((config / "roboy_arm.yaml").read_text())
    for world, found in (("desk", "desk"), ("table", "table")):
        given = {} if world == "desk" else {"world": world}
        made = plan(str(own), simulator="mujoco", **given)
        assert Path(made.parameters(made.nodes[0])["world"]).stem == found
    alone = plan(str(own), simulator="mujoco", world="")
    assert "world" not in alone.parameters(alone.nodes[0])


def test_world_is_not_silently_ignored():
    installed = (*OURS, "cards_hardware", "cards_rods")
    for made in (
        plan(sim="false", world="table", installed=installed),
        plan("stewart_gough", world="table", installed=installed),
    ):
        (note,) = (note for note in made.notes if "world" in note)
        assert note.endswith("has no worlds")


def test_every_argument_is_described():
    for argument in arguments_for("toy", {}, ("push",)):
        assert argument.description.endswith(".")
        if argument.choices:
            assert argument.default in argument.choices
    assert len({argument.name for argument in ARGUMENTS}) == len(ARGUMENTS)


def test_documentation_has_every_argument():
    page = shared_folder() / "docs" / "bringup.md"
    if not page.is_file():
        pytest.skip("the documentation is in the repository only")
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    table = {row.split("`")[1]: row for row in rows}
    for argument in ARGUMENTS:
        assert argument.description in table[argument.name]


def test_installed_packages_are_found(tmp_path, monkeypatch):
    markers = tmp_path / "share" / "ament_index" / "resource_index" / "packages"
    markers.mkdir(parents=True)
    (markers / "some_ros_package").touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path}")
    assert is_installed("some_ros_package")
    assert is_installed("cards_core")
    assert not is_installed("no_such_package_anywhere")


def test_terrain_reaches_simulator_and_views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = plan("tetraspine", view="true", terrain="heightmap:file=field.png,extent=4")
    wanted = f"heightmap:file={tmp_path}/field.png,extent=4.0"
    nodes = [node for node in made.nodes if node.role in ("host", "view")]
    assert len(nodes) >= 2
    assert {made.parameters(node)["terrain"] for node in nodes} == {wanted}
    own = plan("tetraspine")
    assert own.parameters(own.nodes[0])["terrain"] == "flat:friction=0.5"
    with pytest.raises(CardsError, match="no terrain named 'dunes'"):
        plan("tetraspine", terrain="dunes")


def test_a_reference_that_nobody_follows_is_refused():
    with pytest.raises(CardsError, match=r"reference:=circle: no node of tetraspine follows"):
        make_plan({"reference": "circle"}, "tetraspine")


def test_two_arms_have_views():
    """Muscles of both in Gazebo's window, where each arm stands; the left one in RViz."""
    from cards_bringup.gazebo.world import make_world

    made = plan(
        "two_arms", installed=(*GAZEBO, "rviz2", "robot_state_publisher"), simulator="gazebo"
    )
    drawn = {node.full_name: node for node in made.nodes if node.name == "gazebo_markers"}
    text = make_world(shared_folder() / "worlds" / "two_arms.sdf", robot="roboy_arm").text
    for arm in ("left_arm", "right_arm"):
        origin = made.given(f"{arm}/gazebo_markers")["origin"]
        pose = text.split(f"<name>{arm}</name>")[1].split("<pose>")[1].split("</pose>")[0]
        assert origin == [float(value) for value in pose.split()]
    assert set(drawn) == {"left_arm/gazebo_markers", "right_arm/gazebo_markers"}
    in_rviz = {"muscle_markers", "robot_state_publisher", "rviz"}
    assert {n.full_name for n in made.nodes if n.name in in_rviz} == {
        f"left_arm/{name}" for name in in_rviz
    }
    (rviz,) = (node for node in made.nodes if node.name == "rviz")
    assert "/left_arm/muscle_markers" in Path(made.arguments(rviz)[1]).read_text()
    (publisher,) = (node for node in made.nodes if node.name == "robot_state_publisher")
    assert "<robot" in made.parameters(publisher)["robot_description"]
