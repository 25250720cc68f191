"""Models of a world as one tree: names, places, coordinates."""

import numpy as np
import pytest

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats import load, read_sdf
from cards_core.formats.sdf.world import load_world
from cards_core.robot.elements import WORLD, Inertia, Joint, Link
from cards_core.robot.forward_kinematics import forward_kinematics
from cards_core.robot.model import Robot
from cards_core.robot.world import World, WorldModel, empty_world_with
from cards_core.spatial import Pose

PLACE = Pose.from_xyz_rpy([1.0, -2.0, 0.5], [0.3, -0.2, 1.0])


def frames(robot, q):
    """Return the pose of every link."""
    tree = robot.tree
    motion = forward_kinematics(tree, q, np.zeros(tree.nv))
    return {
        link.name: (Pose(motion.rotation[node], motion.position[node]) if node >= 0 else Pose())
        @ pose
        for link in robot.links
        for node, pose in [tree.link_node[link.name]]
    }


def floating():
    body = Inertia(1.0, np.zeros(3), np.eye(3))
    return Robot(
        "ship",
        (Link("hull", body),),
        (Joint("hull_free", "free", WORLD, "hull"),),
        home={"hull_free": (1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)},
    )


@pytest.mark.parametrize("robot", [load("roboy_arm"), floating()], ids=["arm", "floating"])
def test_a_placed_robot_keeps_its_coordinates(robot):
    alone = WorldModel("first", load("planar_2r"))
    world = World("w", (alone, WorldModel("second", robot, PLACE)))
    combined = world.combined()
    rng = np.random.default_rng(3)
    own, both = robot.tree, combined.tree
    q = own.integrate(own.home, 0.3 * rng.standard_normal(own.nv))
    first = alone.robot.tree.nq
    assert both.nq == first + own.nq
    assert both.position_names[first:] == tuple(f"second::{n}" for n in own.position_names)
    np.testing.assert_array_equal(both.home[first:], own.home)
    found = frames(combined, np.concatenate([alone.robot.tree.home, q]))
    for name, pose in frames(robot, q).items():
        np.testing.assert_allclose(
            found[f"second::{name}"].matrix, (PLACE @ pose).matrix, atol=1e-14
        )


def test_muscles_and_surfaces_follow_their_links():
    robot = load("wrap_elbow")
    combined = World("w", (WorldModel("a", robot), WorldModel("b", robot))).combined()
    assert [m.name for m in combined.muscles] == [
        f"{model}::{muscle.name}" for model in "ab" for muscle in robot.muscles
    ]
    assert len(combined.wrap_surfaces) == 2 * len(robot.wrap_surfaces)
    assert combined.tree.nq == 2 * robot.tree.nq


def test_a_robot_with_cables_from_the_world_cannot_be_placed_elsewhere():
    text = """<sdf version="1.11"><model name="puppet"><link name="body"/>
      <plugin filename="f" name="n"><module_name>cards_muscle_plugin.system</module_name>
        <muscle name="string"><tension min="0" max="1"/>
          <via_point link="world">0 0 1</via_point><via_point link="body">0 0 0.1</via_point>
        </muscle></plugin></model></sdf>"""

    puppet = read_sdf(text)
    assert World("w", (WorldModel("puppet", puppet),)).combined().muscles
    with pytest.raises(DescriptionError, match=r"muscle 'string'.*does not stand at its origin"):
        World("w", (WorldModel("puppet", puppet, PLACE),)).combined()


def test_a_robot_is_put_into_a_world():
    table, robot = load_world("table"), load("roboy_arm")
    both = table.with_robot(robot)
    assert [m.name for m in both.models] == ["floor", "desk", "box", "roboy_arm"]
    assert [m.name for m in both.driven] == ["roboy_arm"]
    with pytest.raises(DescriptionError, match="holds a model 'roboy_arm'"):
        both.with_robot(robot)
    assert [m.name for m in both.with_robot(robot, "other").driven] == ["roboy_arm", "other"]
    with pytest.raises(UnknownNameError, match="desk"):
        table.model("dsk")


def test_a_robot_alone_has_its_own_gravity_and_names():
    robot = load("planar_2r")
    alone = empty_world_with(robot)
    assert alone.gravity is robot.gravity
    assert alone.driven[0].robot is robot
    assert alone.combined() is robot
