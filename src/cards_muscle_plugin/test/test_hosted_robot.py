"""From a model in a simulator to a robot: names, namespaces, files that are missing or differ."""

import pytest
from fake_simulator import FakeSimulator
from test_gazebo_host import FREE, block_of

from cards_core.errors import CardsError, DescriptionError
from cards_core.formats import load
from cards_core.formats.sdf.muscle_block import MODULE
from cards_core.loop.model_agreement import differences
from cards_core.loop.model_identity import identity_of
from cards_muscle_plugin.hosted_robot import host_robot, robots_in
from cards_muscle_plugin.ports import JointInfo


@pytest.fixture
def robot():
    return load("planar_2r")


def test_robots_of_a_file(tmp_path, robot):
    assert robots_in(tmp_path.joinpath(robot.source)) == ["planar_2r"]
    world = tmp_path / "world.sdf"
    world.write_text(
        '<sdf version="1.11"><world name="w"><model name="ground"/>'
        + "".join(
            f'<model name="{name}">{inner}</model>'
            for name, inner in (
                ("one", f"<plugin><module_name>{MODULE}</module_name></plugin>"),
                (
                    "two",
                    f'<model name="inner"><plugin><module_name>{MODULE}</module_name></plugin>'
                    "</model>",
                ),
            )
        )
        + "</world></sdf>"
    )
    assert robots_in(world) == ["one", "two"]


def test_a_model_of_its_own_file(robot):
    hosted = host_robot(FakeSimulator(robot, file=robot.source), block_of("planar_2r"))
    assert hosted.namespace == ""
    assert hosted.tree.position_names == ("joint_1", "joint_2")
    assert hosted.moving == {"link_1", "link_2"}
    assert [m.name for m in hosted.robot.muscles] == [m.name for m in robot.muscles]
    assert "<robot" in hosted.urdf


def test_an_included_model_with_a_name_of_its_own(robot):
    simulator = FakeSimulator(robot, path=("left",), file=robot.source)
    hosted = host_robot(simulator, block_of("planar_2r"))
    assert hosted.namespace == "left"
    assert hosted.tree.position_names == ("joint_1", "joint_2")


def test_a_static_model_moves_nothing(robot):
    simulator = FakeSimulator(robot, file=robot.source, static=True)
    assert host_robot(simulator, block_of("planar_2r")).moving == frozenset()


def test_the_muscles_are_those_that_the_simulator_loaded(robot):
    text = block_of("planar_2r").replace("cable_1", "rope").replace("1.5 0 0", "1.25 0 0")
    hosted = host_robot(FakeSimulator(robot, file=robot.source), text)
    assert [m.name for m in hosted.robot.muscles] == ["rope", "cable_2", "cable_3", "cable_4"]
    assert hosted.robot.muscle("cable_2").via_points[0].position.tolist() == [1.25, 0, 0]


def test_a_model_without_file_has_the_joints_of_the_simulator(robot):
    hosted = host_robot(FakeSimulator(robot), block_of("planar_2r"))
    assert hosted.namespace == "planar_2r"
    assert hosted.tree.position_names == ("joint_1", "joint_2")
    assert hosted.tree.home.tolist() == [-0.5, 0.5]
    assert hosted.moving == {"link_1", "link_2"}
    assert hosted.urdf == ""
    assert hosted.muscle_robot.joints == ()
    # its axes are placeholders: of the model only the names and the muscles are known
    known, real = identity_of(hosted.robot, complete=False), identity_of(robot)
    assert differences(real, known) == differences(known, real) == []
    assert differences(real, identity_of(hosted.robot)) != []


def test_a_nested_model_has_the_joints_of_the_simulator(robot):
    simulator = FakeSimulator(robot, path=("body", "planar_2r"), file=robot.source)
    hosted = host_robot(simulator, block_of("planar_2r"))
    assert hosted.namespace == "body/planar_2r"
    assert hosted.tree.position_names == ("joint_1", "joint_2")


def test_a_free_link_without_file_is_named_as_in_a_file(robot):
    simulator = FakeSimulator(robot)
    joints = [joint for joint in simulator.joints() if joint.name != "base_to_world"]
    simulator.joints = lambda: joints
    hosted = host_robot(simulator, block_of("planar_2r"))
    assert hosted.tree.position_names[6] == "base_free.z"
    assert hosted.moving == {"base", "link_1", "link_2"}


def test_joints_that_need_the_file_are_named(robot):
    simulator = FakeSimulator(robot)
    simulator.joints = lambda: [JointInfo("hip", "ball", "base", "link_1")]
    with pytest.raises(DescriptionError, match=r"'hip'.*a ball joint.*spawned from a file"):
        host_robot(simulator, block_of("planar_2r"))


def wrong(old, new):
    return block_of("planar_2r").replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (wrong('link="link_1"', 'link="link_9"'), ["link_9", "link_1", "planar_2r"]),
        (wrong('min="10"', 'min="-10"'), ["-10", "0 <= min"]),
        (wrong("<home", "<house/><home"), ["house"]),
        (wrong(MODULE, "my.module"), [MODULE]),
        ("<plugin", ["planar_2r"]),
    ],
)
def test_mistakes_in_the_element_are_named(robot, text, words):
    simulator = FakeSimulator(robot)
    with pytest.raises(CardsError) as caught:
        host_robot(simulator, text)
    for word in words:
        assert word in str(caught.value)


def test_a_file_that_is_not_the_loaded_model_is_refused(tmp_path, robot):
    file = tmp_path / "kite.sdf"
    file.write_text(FREE)
    with pytest.raises(CardsError, match="'body'"):
        host_robot(FakeSimulator(robot, file=file), block_of("planar_2r"))
