"""What of an SDF file becomes a robot, and what is refused."""

import math
import os

import numpy as np
import pytest
from sdf_documents import JOINTS, NESTED, WORLD, block, link, model

from cards_core.errors import DescriptionError
from cards_core.formats import read_sdf
from cards_core.robot import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from cards_core.robot.model import Tree
from cards_core.spatial import rpy_matrix


def joint(kind="revolute", inside="<axis><xyz>0 0 1</xyz></axis>", *, name="j"):
    return f'<joint name="{name}" type="{kind}"><parent>a</parent><child>b</child>{inside}</joint>'


PAIR = link("a") + link("b")


# Joints --------------------------------------------------------------------------------------


def test_every_joint_type():
    robot = read_sdf(JOINTS)
    kinds = {j.name: j.kind for j in robot.joints}
    assert kinds == {
        "trunk_free": "free",
        "hip": "universal",
        "knee": "revolute",
        "ankle": "ball",
        "slide": "prismatic",
        "glue": "fixed",
        "spin": "revolute",
    }
    knee = robot.joint("knee").axes[0]
    assert (knee.lower, knee.upper, knee.effort, knee.velocity) == (-2, 0.1, 50, 8)
    assert (knee.damping, knee.friction) == (0.5, 0.2)
    first, second = robot.joint("hip").axes
    assert (first.lower, first.upper) == (-1, 1)
    assert (second.lower, second.upper) == (-0.5, math.inf)
    np.testing.assert_array_equal(first.axis, [1, 0, 0])
    np.testing.assert_array_equal(second.axis, [0, 1, 0])
    spin = robot.joint("spin").axes[0]
    assert (spin.lower, spin.upper) == (-math.inf, math.inf)
    np.testing.assert_array_equal(robot.joint("slide").axes[0].axis, [0, 0, 1])
    assert robot.joint("knee").child == "shank"  # named by a frame
    assert [j.name for j in robot.joints if j.motor] == ["spin"]
    Tree(robot)


def test_a_link_without_joint_floats_and_its_pose_is_home():
    robot = read_sdf(model(link("a", "<pose>1 2 3 0 0 1</pose>"), attributes=""))
    home = np.array(robot.home["a_free"])
    np.testing.assert_allclose(home, [1, 2, 3, math.cos(0.5), 0, 0, math.sin(0.5)], atol=1e-15)
    tree = robot.tree
    np.testing.assert_allclose(tree.home, home)


def test_names_given_to_joints_avoid_those_there_are():
    robot = read_sdf(
        model(PAIR + joint(name="a_free", inside="<axis><xyz>0 0 1</xyz></axis>")),
    )
    assert {j.name: j.kind for j in robot.joints} == {"a_free_": "free", "a_free": "revolute"}


def test_joints_stand_in_the_order_of_the_file():
    text = model(
        link("c")
        + '<joint name="w" type="fixed"><parent>world</parent><child>d</child></joint>'
        + link("a")
        + link("d")
        + link("e")
    )
    assert [j.name for j in read_sdf(text).joints] == ["c_free", "w", "a_free", "e_free"]


def test_static_models_are_fixed_to_the_world():
    text = model(
        "<static>true</static><pose>0 0 2 0 0 0</pose>"
        + PAIR
        + joint()
        + '<model name="n">'
        + link("c")
        + "</model>"
    )
    robot = read_sdf(text)
    assert {j.name: (j.kind, j.parent) for j in robot.joints} == {
        "a_static": ("fixed", "world"),
        "b_static": ("fixed", "world"),
        "n::c_static": ("fixed", "world"),
    }
    assert robot.joint("b_static").parent_to_joint.translation[2] == 2
    assert robot.tree.nq == 0


def test_a_robot_may_hang_on_a_static_nested_model():
    text = model(
        link("arm", "<pose>0 0 1 0 0 0</pose>")
        + '<joint name="j" type="revolute"><parent>wall::bolt</parent><child>arm</child>'
        '<axis><xyz>0 1 0</xyz></axis></joint><model name="wall"><static>1</static>'
        + link("bolt")
        + "</model>"
    )
    robot = read_sdf(text)
    assert robot.joint("j").parent == "wall::bolt"
    assert robot.tree.nq == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1e16", (-math.inf, 1.0)),
        ("-2e16", (-math.inf, 1.0)),
        ("-inf", (-math.inf, 1.0)),
        ("-9.9e15", (-9.9e15, 1.0)),
    ],
)
def test_limits_of_1e16_are_infinite(text, expected):
    limit = f"<limit><lower>{text}</lower><upper>1</upper><effort>-1</effort></limit>"
    robot = read_sdf(model(PAIR + joint(inside=f"<axis><xyz>0 0 1</xyz>{limit}</axis>")))
    axis = robot.joint("j").axes[0]
    assert (axis.lower, axis.upper) == expected
    assert axis.effort == math.inf  # negative: no limit


# Links ---------------------------------------------------------------------------------------


def test_inertia_is_turned_into_link_axes():
    inertial = (
        "<inertial><pose>0.1 0.2 0.3 0.4 0.5 0.6</pose><mass>2</mass><inertia><ixx>1</ixx>"
        "<ixy>0.1</ixy><ixz>0.2</ixz><iyy>2</iyy><iyz>0.3</iyz><izz>2.5</izz></inertia></inertial>"
    )
    inertia = read_sdf(model(link("a", inertial))).link("a").inertia
    rotation = rpy_matrix(0.4, 0.5, 0.6)
    tensor = np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]])
    np.testing.assert_allclose(inertia.tensor, rotation @ tensor @ rotation.T, atol=1e-15)
    np.testing.assert_array_equal(inertia.com, [0.1, 0.2, 0.3])
    assert inertia.mass == 2


def test_sdformat_defaults_of_mass_and_inertia():
    inertia = read_sdf(model(link("a"))).link("a").inertia
    assert inertia.mass == 1
    np.testing.assert_array_equal(inertia.tensor, np.eye(3))


def test_every_shape_with_its_pose_colour_and_friction(tmp_path):
    (tmp_path / "m.stl").write_text("solid")
    shapes = {
        "box": "<box><size>1 2 3</size></box>",
        "sphere": "<sphere><radius>0.5</radius></sphere>",
        "cylinder": "<cylinder><radius>0.5</radius><length>2</length></cylinder>",
        "capsule": "<capsule><radius>0.5</radius><length>2</length></capsule>",
        "ellipsoid": "<ellipsoid><radii>1 2 3</radii></ellipsoid>",
        "plane": "<plane><normal>0 0 2</normal><size>4 5</size></plane>",
        "mesh": "<mesh><uri>m.stl</uri><scale>1 1 0.001</scale></mesh>",
    }
    inside = "".join(
        f'<visual name="{n}"><pose>0 0 1 0 0 0</pose><geometry>{g}</geometry></visual>'
        f'<collision name="{n}"><geometry>{g}</geometry></collision>'
        for n, g in shapes.items()
    )
    path = tmp_path / "model.sdf"
    path.write_text(model(link("a", inside)))
    found = {v.name: v.geometry for v in read_sdf(path).link("a").visuals}
    np.testing.assert_array_equal(found["box"].size, [1, 2, 3])
    assert found["sphere"] == Sphere(0.5)
    assert found["cylinder"] == Cylinder(0.5, 2)
    assert found["capsule"] == Capsule(0.5, 2)
    np.testing.assert_array_equal(found["ellipsoid"].radii, [1, 2, 3])
    np.testing.assert_array_equal(found["plane"].normal, [0, 0, 1])
    assert found["plane"].size == (4, 5)
    assert found["mesh"].uri == str(tmp_path / "m.stl")
    np.testing.assert_array_equal(found["mesh"].scale, [1, 1, 0.001])
    types = {type(c.geometry) for c in read_sdf(path).link("a").collisions}
    assert types == {Box, Sphere, Cylinder, Capsule, Ellipsoid, Plane, Mesh}


def test_colour_and_friction():
    robot = read_sdf(JOINTS)
    trunk = robot.link("trunk")
    assert trunk.visuals[0].rgba == (0.1, 0.2, 0.3, 0.4)
    assert trunk.collisions[0].friction == 0.6
    assert robot.link("foot").collisions[0].friction == 1.0


def test_a_visual_may_stand_in_another_frame():
    visual = (
        '<visual name="v"><pose relative_to="b">0 0 1 0 0 0</pose>'
        "<geometry><sphere><radius>1</radius></sphere></geometry></visual>"
    )
    robot = read_sdf(model(link("a", visual) + link("b", "<pose>1 0 0 0 0 0</pose>")))
    np.testing.assert_allclose(robot.link("a").visuals[0].pose.translation, [1, 0, 1])


def test_elements_without_meaning_for_us_are_ignored():
    extras = (
        '<sensor name="s" type="imu"/><light name="l" type="point"/>'
        '<gz:thing xmlns:gz="http://gazebosim.org/schema">x</gz:thing>'
    )
    plugin = '<plugin filename="other" name="x"><anything a="b">7</anything></plugin>'
    robot = read_sdf(model(link("a", extras) + plugin + "<self_collide>1</self_collide>"))
    assert [item.name for item in robot.links] == ["a"]


# Models, worlds, includes --------------------------------------------------------------------


def test_nested_models_are_dissolved():
    robot = read_sdf(NESTED)
    assert [item.name for item in robot.links] == ["frame", "left::a", "left::inner::b"]
    assert {j.name: (j.parent, j.child) for j in robot.joints} == {
        "post": ("world", "frame"),
        "left::j": ("left::a", "left::inner::b"),
        "hold": ("frame", "left::a"),
    }
    muscle = robot.muscle("left::m")
    assert [p.link for p in muscle.path] == ["left::a", "left::inner::b"]
    assert robot.home == {"left::j": (0.25,)}
    Tree(robot)


def test_a_world_gives_one_model_gravity_and_its_joints():
    robot = read_sdf(WORLD)
    assert robot.name == "arm"  # the floor is static
    np.testing.assert_array_equal(robot.gravity, [0, 0, -1.62])
    assert [item.name for item in robot.links] == ["base", "rod"]
    bolt = robot.joint("bolt")
    assert (bolt.kind, bolt.parent, bolt.child) == ("fixed", "world", "base")
    np.testing.assert_allclose(bolt.parent_to_joint.translation, [2, 0, 1.1])
    assert [item.name for item in read_sdf(WORLD, model="floor").links] == ["plane"]


def test_gravity_defaults():
    world = (
        f'<sdf version="1.11"><world name="w"><model name="m">{link("a")}</model></world></sdf>'
    )
    assert read_sdf(world).gravity[2] == -9.8  # SDFormat's default
    assert read_sdf(model(link("a"))).gravity[2] == -9.81


def test_the_model_with_muscles_is_the_robot():
    muscle = (
        '<muscle name="c"><tension min="0" max="1"/><via_point link="world">0 0 1</via_point>'
        '<via_point link="a">0 0 0</via_point></muscle>'
    )
    models = f'<model name="one">{link("a")}</model>'
    models += f'<model name="two">{link("a")}{block(muscle)}</model>'
    text = f'<sdf version="1.11"><world name="w">{models}</world></sdf>'
    assert read_sdf(text).name == "two"
    assert read_sdf(text, model="one").name == "one"
    with pytest.raises(DescriptionError, match="model 'tow' does not exist; did you mean 'two'"):
        read_sdf(text, model="tow")


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A folder of models found through GZ_SIM_RESOURCE_PATH: arm, and arm with a mesh."""
    arm = tmp_path / "library" / "arm"
    (arm / "meshes").mkdir(parents=True)
    (arm / "meshes" / "rod.stl").write_text("solid")
    (arm / "model.config").write_text(
        '<model><name>arm</name><sdf version="1.9">arm.sdf</sdf></model>'
    )
    mesh = (
        '<visual name="v"><geometry><mesh><uri>meshes/rod.stl</uri></mesh></geometry></visual>'
        '<visual name="w"><geometry><mesh><uri>model://arm/meshes/rod.stl</uri></mesh></geometry>'
        "</visual>"
    )
    muscle = (
        '<muscle name="c"><tension min="0" max="1"/><via_point link="world">0 0 1</via_point>'
        '<via_point link="rod">0 0 0</via_point></muscle>'
    )
    (arm / "arm.sdf").write_text(
        model(
            "<pose>0 0 0.5 0 0 0</pose>"
            + link("base")
            + link("rod", "<pose>0 0 0.2 0 0 0</pose>" + mesh)
            + '<joint name="turn" type="revolute"><parent>base</parent><child>rod</child>'
            "<axis><xyz>0 1 0</xyz></axis></joint>"
            '<frame name="tip" attached_to="rod"><pose>0 0 1 0 0 0</pose></frame>' + block(muscle),
            name="arm",
            version="1.9",
        )
    )
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(tmp_path / "library"))
    return tmp_path


def include(inside="", attributes=""):
    return f"<include{attributes}><uri>model://arm</uri>{inside}</include>"


def test_includes_nest_a_model_and_may_rename_and_move_it(library):
    robot = read_sdf(
        model(
            link("root")
            + include()
            + include("<name>left</name><pose>0 1 0 0 0 0</pose>")
            + '<joint name="j" type="fixed"><parent>root</parent><child>left::base</child></joint>'
        )
    )
    assert {item.name for item in robot.links} == {
        "root", "arm::base", "arm::rod", "left::base", "left::rod"
    }  # fmt: skip
    assert robot.home["arm::base_free"][:3] == (0, 0, 0.5)  # the model's own pose
    np.testing.assert_allclose(robot.joint("j").joint_to_child.translation, [0, 0, 0])
    np.testing.assert_allclose(robot.joint("j").parent_to_joint.translation, [0, 1, 0])
    assert [m.name for m in robot.muscles] == ["arm::c", "left::c"]
    mesh = str(library / "library" / "arm" / "meshes" / "rod.stl")
    assert [v.geometry.uri for v in robot.link("arm::rod").visuals] == [mesh, mesh]


def test_an_include_may_be_placed_by_a_frame_of_the_model(library):
    robot = read_sdf(
        model(
            link("root")
            + include("<pose>0 0 9 0 0 0</pose><placement_frame>tip</placement_frame>")
        )
    )
    assert robot.home["arm::base_free"][2] == pytest.approx(9 - 1.2)


def test_a_merged_include_becomes_part_of_the_model(library):
    robot = read_sdf(
        model(
            link("root")
            + '<frame name="f"><pose>1 2 3 0 0 0</pose></frame>'
            + include('<pose relative_to="f"/>', ' merge="true"')
            + '<joint name="j" type="fixed"><parent>root</parent><child>base</child></joint>'
        )
    )
    assert [item.name for item in robot.links] == ["root", "base", "rod"]
    np.testing.assert_allclose(robot.joint("j").parent_to_joint.translation, [1, 2, 3])
    assert [m.name for m in robot.muscles] == ["c"]


def test_plugins_may_be_added_by_an_include(library):
    robot = read_sdf(
        model(
            link("root")
            + include("<name>n</name>").replace(
                "model://arm", "model://arm/arm.sdf"
            )  # the file itself
        )
    )
    assert robot.muscle("n::c")


def test_a_world_survives_scenery_that_is_not_there():
    text = (
        '<sdf version="1.11"><world name="w"><include><uri>https://example.invalid/Sun</uri>'
        f'</include><model name="m">{link("a")}</model></world></sdf>'
    )
    assert read_sdf(text).name == "m"
    with pytest.raises(DescriptionError, match=r"not loaded: https://example\.invalid/Sun"):
        read_sdf(text, model="Sun")


def test_errors_in_included_files_name_that_file(library):
    path = library / "library" / "arm" / "arm.sdf"
    path.write_text(path.read_text().replace('<link name="base">', '\n<link name="base"><x/>'))
    with pytest.raises(DescriptionError, match="unknown element") as caught:
        read_sdf(model(include()))
    assert caught.value.source == str(path)
    assert caught.value.line == 2


def test_files_that_include_each_other_are_refused(library):
    path = library / "library" / "arm" / "arm.sdf"
    path.write_text(model(link("a") + include(), name="arm"))
    with pytest.raises(DescriptionError, match=r"include each other: arm.sdf -> arm.sdf"):
        read_sdf(model(include()))


def test_relative_includes_are_resolved_beside_the_file(library):
    path = library / "top.sdf"
    path.write_text(model("<include><uri>library/arm</uri></include>"))
    assert [item.name for item in read_sdf(path).links] == ["arm::base", "arm::rod"]
    text = path.read_text()
    with pytest.raises(DescriptionError, match="'library/arm' was not found"):
        read_sdf(text)
    assert len(read_sdf(text, base=library).links) == 2


# Mistakes ------------------------------------------------------------------------------------

AXIS = "<axis><xyz>0 0 1</xyz>{}</axis>"
CROSSED = "<limit><lower>1</lower><upper>0</upper></limit>"
INERTIA = (
    "<inertial><mass>1</mass><inertia>\n<ixx>{}</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("<robot name='r'/>", 1, "not an SDF document"),
        (model(link(), version="1.7"), 1, r"SDF version '1\.7'.*1\.9, 1\.10, 1\.11"),
        (model(link(), version="1.4"), 1, r"'1\.4'.*; gz sdf -p FILE > NEW, .* converts older"),
        (model(link(), version="1.13"), 1, r"'1\.13' \(expected: .*1\.12\)$"),
        (f"<sdf><model name='m'>{link()}</model></sdf>", 1, "no version"),
        ('<sdf version="1.11"/>', 1, "holds no model"),
        (model(""), 1, "has no link"),
        (model("\n" + PAIR + "\n" + joint("revolute2")), 3,
         "type 'revolute2' is not supported.*fixed, revolute, continuous, prismatic, universal"),
        (model(PAIR + joint("screw", "<screw_thread_pitch>1</screw_thread_pitch>")), 1, "screw"),
        (model(PAIR + joint(inside="")), 1, "has no <axis>"),
        (model(PAIR + joint("universal")), 1, "has no <axis2>"),
        (model(PAIR + joint(inside="<axis>\n<xyz>0 0 0</xyz></axis>")), 2, "without direction"),
        (model(PAIR + joint(inside="<axis>\n<xyz>0 0</xyz></axis>")), 2, "2 values.*3 numbers"),
        (model(PAIR + joint(inside=AXIS.format(CROSSED))), 1,
         "lower 1 is above upper 0"),
        (model(PAIR + joint(inside=AXIS.format(CROSSED.replace("1", "0")))), 1,
         "lower and upper are both 0 .expected: lower < upper; .* is of type fixed"),
        (model(PAIR + joint(inside=AXIS.format(
            "<dynamics><spring_stiffness>2</spring_stiffness></dynamics>"))), 1, "spring"),
        (model(PAIR + joint(inside=AXIS.format("<dynamics><damping>-1</damping></dynamics>"))), 1,
         "too small"),
        (model(PAIR + joint(inside=AXIS.format("<mimic joint='k'/>"))), 1, "mimic"),
        (model(PAIR + joint(inside=AXIS.format("<limits/>"))), 1, "did you mean <limit>"),
        (model(link("b") + joint()), 1, "parent 'a' does not exist"),
        (model(PAIR + joint() + "\n" + joint(name="k")), 2, "already the child of joint 'j'"),
        (model(PAIR + joint() + '<joint name="k" type="ball"><parent>b</parent><child>a</child>'
               "</joint>"), 1, "loop that is not connected to the world"),
        (model(link("a") + '<joint name="k" type="ball"><parent>a</parent><child>world</child>'
               "</joint>"), 1, "'world' is the world"),
        (model(link("a") + '<joint name="k" type="ball"><parent>a</parent><child>f</child>'
               '</joint><frame name="f" attached_to="a"/>'), 1, "both link 'a'"),
        (model(link("a", INERTIA.format(3))), 1, "not the inertia of a rigid body.*nearest valid"),
        (model(link("a", INERTIA.format("1e"))), 2, "'1e' is not a number"),
        (model(link("a", INERTIA.format("nan"))), 2, "'nan' is not finite"),
        (model(link("a", INERTIA.format("1e17"))), 2, "too large"),
        (model(link("a", "<inertial>\n<mass>0</mass></inertial>")), 2, "not positive"),
        (model(link("a", '<inertial auto="true"/>')), 1, "auto inertia"),
        (model(link("a", "<inertial><fluid_added_mass/></inertial>")), 1, "added mass"),
        (model(link("a", "<gravity>0</gravity>")), 1, "gravity acting on every link"),
        (model(link("a", "<kinematic>true</kinematic>")), 1, "kinematic"),
        (model(link("a", "<pose>0 0 0</pose>")), 1, "3 values.*6 numbers"),
        (model(link("a", '<pose rotation_format="euler">1 0 0</pose>')), 1, "rotation_format"),
        (model(link("a", '<pose rotation_format="quat_xyzw">1 0 0 0 0 0 0</pose>')), 1,
         "quaternion is zero"),
        (model(link("a", '<pose relativ_to="a"/>')), 1, "did you mean 'relative_to'"),
        (model(link("a", "<inertal/>")), 1, "element in link 'a'; did you mean <inertial>"),
        (model(link("a", "<pose/>\n<pose/>")), 2, "given twice"),
        (model(link("a", "oops")), 1, "text 'oops' has no meaning"),
        (model(link("a", '<visual name="v"><geometry/></visual>')), 1, "holds 0 shapes"),
        (model(link("a", '<visual name="v"><geometry><cone/></geometry></visual>')), 1,
         "not one of box, sphere"),
        (model(link("a", '<visual name="v"><geometry><sphere><radius>0</radius></sphere>'
                         "</geometry></visual>")), 1, "not positive"),
        (model(link("a", '<visual name="v"><geometry><mesh><uri>model://no/m.stl</uri></mesh>'
                         "</geometry></visual>")), 1, "'model://no/m.stl' was not found"),
        (model("<static>maybe</static>" + link()), 1, "not a boolean"),
        (model("<include><uri>model://nothing</uri></include>"), 1, "was not found"),
        (model("<include><uri>https://x.invalid/y</uri></include>"), 1, "not downloaded"),
        (model(link("a") + link("b"), attributes=' canonical_link="c"'), 1, "canonical_link 'c'"),
    ],
)  # fmt: skip
def test_mistakes_name_the_place_and_what_is_accepted(text, line, message):
    with pytest.raises(DescriptionError, match=message) as caught:
        read_sdf(text, name="robot.sdf")
    assert caught.value.source == "robot.sdf"
    assert caught.value.line == line
    assert caught.value.expected


def test_several_models_without_a_choice_are_listed():
    models = "".join(f'<model name="{name}">{link()}</model>' for name in "pq")
    text = f'<sdf version="1.11">{models}</sdf>'
    with pytest.raises(DescriptionError, match=r"holds 2 models.*p, q"):
        read_sdf(text)


def test_the_description_needs_nothing_but_numpy():
    """The Gazebo plugin runs with the system's Python, where only NumPy is installed."""
    import subprocess
    import sys

    blocked = ("scipy", "casadi", "sympy", "daqp", "osqp", "mujoco", "rclpy", "gz")
    script = (
        "import sys\n"
        f"for name in {blocked!r}: sys.modules[name] = None\n"
        "from cards_core.formats import load, to_sdf, read_sdf\n"
        "print(len(read_sdf(to_sdf(load('planar_2r'))).muscles))"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
        check=False, env=dict(os.environ),
    )  # fmt: skip
    assert result.stdout.strip() == "4", result.stderr
