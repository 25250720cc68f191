"""Frame semantics, against poses worked out by hand and those of SDFormat's own library."""

import numpy as np
import pytest
from sdf_documents import link, model

from cards_core.errors import DescriptionError
from cards_core.formats import read_sdf
from cards_core.formats.sdf.frames import absolute_pose, body_of
from cards_core.formats.sdf.scopes import ScopeBuilder
from cards_core.formats.xml_lines import parse_xml
from cards_core.spatial import Pose, quaternion_matrix

ORACLE_DOCUMENT = """<sdf version="1.9">
<model name="top">
  <pose>1 2 3 0 0 1.5707963267948966</pose>
  <link name="a"><pose relative_to="sub::tip">0.1 0 0 0 0.3 0</pose></link>
  <link name="b"><pose relative_to="ab">0 0 0.5 0.2 0 0</pose></link>
  <joint name="ab" type="revolute">
    <pose relative_to="mark">0 0.25 0 0 0 0.4</pose>
    <parent>a</parent><child>b</child>
    <axis><xyz expressed_in="sub::deep">0.6 0 0.8</xyz></axis>
  </joint>
  <frame name="mark" attached_to="a"><pose>0.3 0 0 0.1 0.2 0.3</pose></frame>
  <frame name="free_mark"><pose relative_to="b">0 0 1 0 0 0</pose></frame>
  <frame name="on_sub" attached_to="sub"/>
  <model name="sub" placement_frame="tip" canonical_link="deep::w">
    <pose relative_to="free">0.5 0 0 0 0 0.7</pose>
    <link name="u"><pose>0 0 0.2 0.5 0 0</pose></link>
    <link name="v"><pose relative_to="u">0 0.4 0 0 0 -0.6</pose></link>
    <joint name="uv" type="prismatic">
      <parent>u</parent><child>v_frame</child><axis><xyz>1 2 -2</xyz></axis>
    </joint>
    <frame name="v_frame" attached_to="v"><pose relative_to="deep">0.1 0.2 0.3 0 0 0</pose></frame>
    <frame name="tip" attached_to="uv"><pose relative_to="v">0 0 0.9 0 0.25 0</pose></frame>
    <model name="deep"><pose degrees="true">0 0.3 0 0 90 0</pose>
      <link name="w"><pose>0.05 0 0 0 0 0.8</pose></link>
    </model>
  </model>
  <frame name="free" attached_to="__model__"><pose>0 -1 0 0 0 0.2</pose></frame>
</model>
</sdf>
"""

# What libsdformat 12.3 resolves for this document: pose in the world (x y z qw qx qy qz), body.
ORACLE = """
a 1.8223326436397211 2.5521942857476874 3 0.32544922792080494 -0.14111133974697654 0.04918684002871463 0.9336760919122622 a
b 1.3119190157653167 2.6755788307442208 3.3885807565773822 0.012353894569686663 -0.18801882608817022 0.27162827495611447 0.94377665926306586 b
ab 1.4950035124259284 2.5067021417188489 2.955036374781979 -0.0064783852480640447 -0.18831284661220057 0.17605081654285742 0.96617928580568369 b
mark 1.5978304097353819 2.7303482911556403 2.9113439380015977 0.18560094327905813 -0.21953502505125572 0.13512953407875572 0.94820708268253662 a
free_mark 0.9637347907791104 3.1929372120523825 4.1703147591389662 0.012353894569686663 -0.18801882608817022 0.27162827495611447 0.94377665926306586 a
on_sub 1.7341281505982249 3.1446677814519175 2.0271912541565866 0.058848179372589182 0.088535734282804049 -0.31701376076477156 0.94244394582665358 sub::deep::w
free 2 1.9999999999999998 3 0.63298130667695829 0 0 0.77416707847694644 a
sub 1.7341281505982249 3.1446677814519175 2.0271912541565866 0.058848179372589182 0.088535734282804049 -0.31701376076477156 0.94244394582665358 sub::deep::w
sub::u 1.7600418642410576 3.0230766349125351 2.1838567338528989 0.035114640792085677 0.10034264528358074 -0.073994207085224556 0.99157610542880936 sub::u
sub::v 1.7262469736532653 2.6284431794566374 2.1279788204604198 0.32657707324798585 0.11772777382435956 -0.041036086741282229 0.93691174935748456 sub::v
sub::uv 1.3444241479934069 2.8258606260226342 1.716558371156617 0.26577452666105994 -0.60380428689353294 -0.18255063327137974 0.72901272307093512 sub::v
sub::v_frame 1.3444241479934069 2.8258606260226342 1.716558371156617 0.26577452666105994 -0.60380428689353294 -0.18255063327137974 0.72901272307093512 sub::v
sub::tip 1.9006653346024696 2.4900332889206207 3 0.32914517342087574 0 0 0.9442793309258346 sub::v
sub::deep 1.684011256722417 2.9070442810897328 1.8510567344738629 0.26577452666105994 -0.60380428689353294 -0.18255063327137974 0.72901272307093512 sub::deep::w
sub::deep::w 1.6775328283117088 2.9374420677245783 1.8118903645497848 -0.039096376433116697 -0.62722914166529575 0.066992196744143279 0.77496265895268168 sub::deep::w
"""  # noqa: E501
ORACLE_AXES = {
    "ab": (0.87729298060420069, -0.44206922338971311, 0.18690058296916326),
    "sub::uv": (1 / 3, 2 / 3, -2 / 3),
}


def nodes_of(text):
    root = parse_xml(text)
    builder = ScopeBuilder(None)
    scope = builder.world_scope(root)
    top = builder.add_model(root.child("model"), scope)
    found, stack = {}, [top]
    while stack:
        for node in stack.pop().inner.items:
            found[node.name] = node
            if node.inner is not None:
                stack.append(node)
    return found


def test_poses_and_bodies_are_those_of_sdformat():
    nodes = nodes_of(ORACLE_DOCUMENT)
    rows = [line.split() for line in ORACLE.strip().splitlines()]
    assert {row[0] for row in rows} == set(nodes)
    for name, *numbers, body in rows:
        values = np.array([float(n) for n in numbers])
        pose = absolute_pose(nodes[name])
        np.testing.assert_allclose(pose.translation, values[:3], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(
            pose.rotation, quaternion_matrix(values[3:]), atol=1e-12, err_msg=name
        )
        assert body_of(nodes[name]).name == body


def test_axes_are_those_of_sdformat():
    robot = read_sdf(ORACLE_DOCUMENT)
    for name, axis in ORACLE_AXES.items():
        np.testing.assert_allclose(robot.joint(name).axes[0].axis, axis, atol=1e-12)


def placed(robot):
    """Pose in the world of every link at zero coordinates and home of free links."""
    from cards_core.dynamics import make_dynamics

    dynamics = make_dynamics(robot, "numeric")
    poses = dynamics.link_poses(dynamics.tree.home)
    return {link.name: pose for link, pose in zip(robot.links, poses, strict=True)}


def test_a_joint_is_placed_in_its_child_and_a_link_in_the_model():
    # model 1 m up; a at x = 1 turned 90 deg about z; the joint stands 0.5 below b's origin
    robot = read_sdf(
        model(
            "<pose>0 0 1 0 0 0</pose>"
            + link("a", '<pose degrees="true">1 0 0 0 0 90</pose>')
            + link("b", '<pose relative_to="a">2 0 0.5 0 0 0</pose>')
            + '<joint name="j" type="revolute"><pose>0 0 -0.5 0 0 0</pose><parent>a</parent>'
            "<child>b</child><axis><xyz>0 1 0</xyz></axis></joint>"
        )
    )
    poses = placed(robot)
    np.testing.assert_allclose(poses["a"][:3, 3], [1, 0, 1], atol=1e-15)
    np.testing.assert_allclose(poses["b"][:3, 3], [1, 2, 1.5], atol=1e-15)
    joint = robot.joint("j")
    np.testing.assert_allclose(joint.parent_to_joint.translation, [2, 0, 0], atol=1e-15)
    np.testing.assert_allclose(joint.joint_to_child.translation, [0, 0, 0.5], atol=1e-15)


def test_poses_come_back_digit_by_digit():
    numbers = "0.1 -0.0005333 1e-17"
    robot = read_sdf(
        model(
            "<pose>0.3 0.7 0.9 0.1 0.2 0.3</pose>"
            + link("a", "<pose>1 2 3 1 2 3</pose>")
            + link("b", '<pose relative_to="j"/>')
            + f'<joint name="j" type="ball"><pose relative_to="a">{numbers} 0 0 0</pose>'
            "<parent>a</parent><child>b</child></joint>"
        )
    )
    joint = robot.joint("j")
    assert joint.parent_to_joint.translation.tolist() == [0.1, -0.0005333, 1e-17]
    assert np.array_equal(joint.parent_to_joint.rotation, np.eye(3))
    assert not joint.joint_to_child.translation.any()


def test_expressed_in_turns_the_axis():
    robot = read_sdf(
        model(
            link("a")
            + link("b", '<pose degrees="true">0 0 0 0 0 90</pose>')
            + '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
            '<axis><xyz expressed_in="__model__">1 0 0</xyz></axis></joint>'
        )
    )
    # the joint frame is b's, whose y axis is the model's -x
    np.testing.assert_allclose(robot.joint("j").axes[0].axis, [0, -1, 0], atol=1e-15)


def test_quaternions_are_xyzw_and_degrees_are_degrees():
    half = np.sqrt(0.5)
    robot = read_sdf(
        model(
            link("a", f'<pose rotation_format="quat_xyzw">0 0 0 0 0 {half} {half}</pose>')
            + link("b", '<pose degrees="true">0 0 0 0 0 90</pose>')
            + link("c", "<pose>0 0 0 0 0 1.5707963267948966</pose>")
        )
    )
    poses = placed(robot)
    turned = Pose.from_xyz_rpy((0, 0, 0), (0, 0, np.pi / 2)).rotation
    for name in "abc":
        np.testing.assert_allclose(poses[name][:3, :3], turned, atol=1e-15)


def test_a_placement_frame_puts_that_frame_at_the_pose():
    inner = (
        '<model name="n" placement_frame="grip"><pose>5 0 0 0 0 0</pose>'
        + link("a", "<pose>0 0 2 0 0 0</pose>")
        + '<frame name="grip" attached_to="a"><pose>1 0 0 0 0 0</pose></frame></model>'
    )
    poses = placed(read_sdf(model(link("root") + inner)))
    # grip stands at (5, 0, 0); a is 1 m behind it
    np.testing.assert_allclose(poses["n::a"][:3, 3], [4, 0, 0], atol=1e-15)


def test_a_frame_belongs_to_the_link_it_leads_to():
    robot = read_sdf(
        model(
            link("a", "<pose>0 0 1 0 0 0</pose>")
            + '<frame name="f" attached_to="g"><pose>0 0 0.1 0 0 0</pose></frame>'
            '<frame name="g" attached_to="a"><pose relative_to="__model__">0 3 0 0 0 0</pose>'
            "</frame>"
        )
    )
    assert robot.frame("f").link == "a"
    np.testing.assert_allclose(robot.frame("f").pose.translation, [0, 3, -0.9], atol=1e-15)


@pytest.mark.parametrize(
    ("inside", "line", "message"),
    [
        (link("a", '\n<pose relative_to="b"/>') + link("b", '<pose relative_to="a"/>'), 1,
         "relative_to leads in a circle"),
        (link("a", '<pose relative_to="a"/>'), 1, "circle"),
        (link("a") + '\n<frame name="f" attached_to="f"/>', 2, "circle"),
        (link("a") + '<frame name="f" attached_to="g"/>\n<frame name="g" attached_to="f"/>', None,
         "circle"),
        (link("a", '\n<pose relative_to="elbo"/>') + link("elbow"), 2,
         "relative_to 'elbo' does not exist; did you mean 'elbow'"),
        (link("a", '\n<pose relative_to="world"/>'), 2, "not visible inside a model"),
        (link("a") + '\n<frame name="f" attached_to="b"/>', 2, "attached_to 'b' does not exist"),
        (link("a") + '<model name="n">' + link("b", '\n<pose relative_to="a"/>') + "</model>", 2,
         "relative_to 'a' does not exist"),
        (link("a") + "\n" + link("a"), 2, "the name is taken by the link in line 1"),
        (link("a") + '\n<frame name="a"/>', 2, "the name is taken"),
        (link("__x__"), 1, "reserved"),
        (link("world"), 1, "reserved"),
        (link("a::b"), 1, "'::' in a name"),
    ],
)  # fmt: skip
def test_mistakes_name_the_line(inside, line, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        read_sdf(model(inside))
    assert line is None or caught.value.line == line
