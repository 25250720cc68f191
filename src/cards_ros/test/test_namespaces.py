"""Which namespace a robot of a world has."""

import dataclasses

import pytest

from cards_core.errors import DescriptionError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world
from cards_core.robot.world import World
from cards_ros.namespaces import namespace_of, namespaces_in


@pytest.mark.parametrize(
    ("path", "known", "namespace"),
    [
        (("arm",), ["arm"], ""),
        (("left_arm",), ["arm"], "left_arm"),
        (("left",), ["left", "right"], "left"),  # two robots in one world file
        (("arm",), [], "arm"),  # made from text: its own name is not known
        (("body", "arm"), [], "body/arm"),
        (("left-arm 2",), ["arm"], "left_arm_2"),
        (("2arms",), ["arm"], "_2arms"),
    ],
)
def test_namespaces(path, known, namespace):
    assert namespace_of(path, known) == namespace


def test_robots_of_a_world_have_the_namespaces_that_gazebo_gives_them():
    assert namespaces_in(load_world("two_arms")) == {
        "left_arm": "left_arm",
        "right_arm": "right_arm",
    }
    alone = load_world("table").with_robot(load("planar_2r"))
    assert namespaces_in(alone) == {"planar_2r": ""}
    assert namespaces_in(World("w", alone.with_robot(load("planar_2r"), "b").driven)) == {
        "planar_2r": "",
        "b": "b",
    }


def test_robots_of_one_file_are_told_apart_by_their_names():
    world = World("w", source="w.sdf").with_robot(load("planar_2r"))
    inline = [
        dataclasses.replace(
            world.models[0],
            name=name,
            robot=dataclasses.replace(load("planar_2r"), source="w.sdf"),
        )
        for name in ("planar_2r", "other")
    ]
    one = dataclasses.replace(world, models=tuple(inline[:1]))
    assert namespaces_in(one) == {"planar_2r": ""}
    both = dataclasses.replace(world, models=tuple(inline))
    assert namespaces_in(both) == {"planar_2r": "planar_2r", "other": "other"}


def test_robots_that_would_share_their_topics_are_refused():
    world = World("w").with_robot(load("planar_2r")).with_robot(load("roboy_arm"))
    with pytest.raises(DescriptionError, match=r"'planar_2r' and 'roboy_arm'.*<name>"):
        namespaces_in(world)
