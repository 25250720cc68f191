"""What of an SDF world becomes models, joints between them and gravity, and what is refused."""

import re

import numpy as np
import pytest
from sdf_documents import link

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world, read_world
from cards_core.loop.model_identity import identity_of
from cards_core.spatial import Pose


def world(content, gravity=""):
    return f'<sdf version="1.11"><world name="w">{gravity}{content}</world></sdf>'


def box(name, pose="0 0 0 0 0 0", inside=""):
    return f'<model name="{name}"><pose>{pose}</pose>{inside}{link("body")}</model>'


def joint(parent, child, kind="fixed", inside="", pose=""):
    return (
        f'<joint name="grip" type="{kind}">{pose}<parent>{parent}</parent>'
        f"<child>{child}</child>{inside}</joint>"
    )


def arm(name, pose="", inside=""):
    placed = f"<pose>{pose}</pose>" if pose else ""
    return f"<include><uri>model://planar_2r</uri><name>{name}</name>{placed}{inside}</include>"


def test_models_objects_and_robots_of_the_shipped_worlds():
    table = load_world("table")
    assert [(m.name, m.driven, m.static) for m in table.models] == [
        ("floor", False, True),
        ("desk", False, True),
        ("box", False, False),
    ]
    assert table.model("box").moving_links() == ("link",)
    assert table.objects == table.models
    np.testing.assert_array_equal(table.gravity, [0, 0, -9.81])
    arms = load_world("two_arms")
    assert [m.name for m in arms.driven] == ["left_arm", "right_arm"]
    assert [m.pose.translation[1] for m in arms.driven] == [0.6, -0.6]


def test_an_included_robot_is_the_one_that_its_controllers_load():
    for model in load_world("two_arms").driven:
        assert identity_of(model.robot) == identity_of(load("roboy_arm"))
    at_home = read_world(world(arm("arm"))).model("arm")
    np.testing.assert_array_equal(at_home.pose.matrix, np.eye(4))


def test_the_place_of_a_robot_is_that_of_its_own_axes():
    turned = read_world(world(arm("arm", "1 2 3 0 0 1"))).model("arm")
    expected = Pose.from_xyz_rpy([1, 2, 3], [0, 0, 1]).matrix
    np.testing.assert_allclose(turned.pose.matrix, expected, atol=1e-15)


def test_a_robot_written_in_the_world_has_the_worlds_axes_and_gravity():
    text = world(
        '<model name="arm"><pose>0 0 1 0 0 0</pose>'
        + link("a")
        + '<joint name="j" type="revolute"><parent>world</parent><child>a</child>'
        '<axis><xyz>0 1 0</xyz></axis></joint><plugin filename="f" name="n">'
        "<module_name>cards_muscle_plugin.system</module_name>"
        '<motor joint="j"/></plugin></model>',
        "<gravity>0 0 -1</gravity>",
    )
    model = read_world(text).model("arm")
    assert model.driven
    assert not model.robot.muscles
    assert model.robot.gravity[2] == -1
    assert model.robot.joint("j").parent_to_joint.translation[2] == 1
    np.testing.assert_array_equal(model.pose.matrix, np.eye(4))


def test_settings_of_gazebo_are_ignored():
    text = world(
        '<physics name="p" type="ode"/><light name="sun" type="point"/><scene/>'
        '<plugin filename="f" name="n"><unknown/></plugin>' + box("b")
    )
    found = read_world(text)
    assert [m.name for m in found.models] == ["b"]
    assert found.gravity[2] == -9.8  # SDFormat's default


def test_a_joint_with_the_world_belongs_to_the_tree_of_an_object():
    hinge = joint("world", "door::body", "revolute", "<axis><xyz>0 0 1</xyz></axis>")
    found = read_world(world(box("door", "1 0 0 0 0 0") + hinge))
    assert found.joints == ()
    assert [j.kind for j in found.model("door").robot.joints] == ["revolute"]


@pytest.mark.parametrize(
    ("kind", "inside", "axis"),
    [
        ("fixed", "", None),
        ("ball", "", None),
        ("revolute", "<axis><xyz>0 2 0</xyz></axis>", [0, 1, 0]),
        ("continuous", "<axis><xyz>0 1 0</xyz></axis>", [0, 1, 0]),
    ],
)
def test_joints_between_models(kind, inside, axis):
    text = world(
        box("a", "1 0 0 0 0 0")
        + box("b", "2 0 0 0 0 0")
        + joint("a::body", "b::body", kind, inside, "<pose>-0.25 0 0 0 0 0</pose>")
    )
    (found,) = read_world(text).joints
    assert (found.parent, found.child) == ("a::body", "b::body")
    assert found.kind == ("revolute" if axis else kind)
    np.testing.assert_allclose(found.parent_to_joint.translation, [0.75, 0, 0])
    np.testing.assert_allclose(found.child_to_joint.translation, [-0.25, 0, 0])
    if axis:
        np.testing.assert_array_equal(found.axis, axis)
    else:
        assert found.axis is None


def test_a_handle_in_two_hands():
    text = world(
        arm("left", "0 1 0 0 0 0")
        + arm("right", "0 -1 0 0 0 0")
        + box("handle")
        + joint("left::link_2", "handle::body").replace("grip", "left_grip")
        + joint("right::link_2", "handle::body", "ball").replace("grip", "right_grip")
    )
    found = read_world(text)
    assert [(j.name, j.kind, j.parent, j.child) for j in found.joints] == [
        ("left_grip", "fixed", "left::link_2", "handle::body"),
        ("right_grip", "ball", "right::link_2", "handle::body"),
    ]
    # no part of any tree: the handle stays a free body
    assert [j.kind for j in found.model("handle").robot.joints] == ["free"]


def test_a_robot_of_its_own_file_is_held_in_the_world_by_a_constraint():
    text = world(arm("arm") + joint("world", "arm::link_2", "ball"))
    (found,) = read_world(text).joints
    assert (found.parent, found.child) == ("world", "arm::link_2")


def test_joints_of_what_never_moves_are_left_out():
    still = "<static>true</static>"
    text = world(box("a", inside=still) + box("b", inside=still) + joint("a::body", "b::body"))
    assert read_world(text).joints == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('<sdf version="1.11"><model name="m"/></sdf>', "line|no world"),
        (world("<include><uri>model://no_such_model</uri></include>"), "no_such_model"),
        (world("\n\n<modell/>"), r"<string>:3: <modell>: .*did you mean <model>"),
        (
            world(box("a") + box("b") + "\n" + joint("a::body", "b::bdy")),
            r"<string>:2: .*'b::bdy' does not exist; did you mean 'b::body'",
        ),
        (
            world(
                box("a")
                + box("b")
                + "\n\n"
                + joint("a::body", "b::body", "prismatic", "<axis><xyz>0 0 1</xyz></axis>")
            ),
            r"<string>:3: joint 'grip': .* prismatic \(expected: fixed, ball, or revolute",
        ),
        (
            world(
                box("a")
                + box("b")
                + joint(
                    "a::body",
                    "b::body",
                    "revolute",
                    "<axis><xyz>0 0 1</xyz><limit><lower>0</lower></limit></axis>",
                )
            ),
            "has limits, damping or friction",
        ),
        (
            world(arm("arm") + joint("arm::base", "arm::link_2")),
            "file of its own",
        ),
        (world(box("a") + box("a")), "the name is taken"),
        (world(box("a") + '<state world_name="w"/>'), "saved states are not read"),
    ],
)
def test_mistakes_name_the_place(text, message):
    with pytest.raises(DescriptionError) as caught:
        read_world(text)
    assert re.search(message, str(caught.value))


def test_a_world_that_is_not_there():
    with pytest.raises(UnknownNameError, match="two_arms"):
        load_world("no_such_world")
