"""Written robots read back to the same robot."""

import dataclasses
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sdf_documents import JOINTS, NESTED, WORLD, link, model

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError
from cards_core.formats import load, parse_muscle_block, read_sdf, to_sdf, write_model
from cards_core.formats.sdf.writer import DUMMY_RATIO, prepare_for_sdf
from cards_core.robot import (
    Capsule,
    Collision,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Mesh,
    Muscle,
    Plane,
    Robot,
    Sphere,
    ViaPoint,
    Visual,
)
from cards_core.robot.actuators import ACTUATORS
from cards_core.spatial import Pose
from random_robots import SURFACES, random_pose, random_robot

BODY = Inertia(1.0, np.array([0.0, 0.1, 0.2]), np.diag([0.02, 0.03, 0.04]))


def values(dynamics, q, qd):
    state = dynamics.update(q, qd)
    names = ("mass_matrix", "coriolis", "gravity", "muscle_lengths", "muscle_jacobian")
    return [np.array(getattr(state, name)) for name in names]


def free_at_the_origin(robot):
    """Free joints from the world without offsets: only these keep their coordinates in SDF."""
    joints = tuple(
        dataclasses.replace(j, parent_to_joint=Pose(), joint_to_child=Pose())
        if j.kind == "free" and j.parent == "world"
        else j
        for j in robot.joints
    )
    return dataclasses.replace(robot, joints=joints)


@pytest.mark.parametrize("seed", range(25))
def test_random_robots_keep_their_dynamics(seed):
    robot = free_at_the_origin(random_robot(seed, n_links=6))
    back = read_sdf(to_sdf(robot))
    ready = prepare_for_sdf(robot)
    before, after = make_dynamics(ready, "numeric"), make_dynamics(back, "numeric")
    rng = np.random.default_rng(seed)
    for _ in range(3):
        q, qd = before.tree.random(rng), rng.normal(size=before.tree.nv)
        for x, y in zip(values(before, q, qd), values(after, q, qd), strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(
            after.operational(q, qd).position, before.operational(q, qd).position, atol=1e-12
        )


@pytest.mark.parametrize("seed", range(10))
def test_added_links_hardly_change_the_mass_matrix(seed):
    robot = random_robot(seed, n_links=6, kinds=("planar", "free", "revolute"))
    before, after = (
        make_dynamics(robot, "numeric"),
        make_dynamics(prepare_for_sdf(robot), "numeric"),
    )
    assert before.tree.position_names == after.tree.position_names
    rng = np.random.default_rng(seed)
    q, qd = before.tree.random(rng), rng.normal(size=before.tree.nv)
    a, b = values(before, q, qd), values(after, q, qd)
    assert np.abs(a[0] - b[0]).max() < 20 * DUMMY_RATIO * np.abs(a[0]).max()
    np.testing.assert_allclose(b[3], a[3], atol=1e-13)
    np.testing.assert_allclose(b[4], a[4], atol=1e-13)


def test_links_without_mass_get_a_little():
    axis = (JointAxis(np.array([0.0, 0.0, 1.0])),)
    robot = Robot(
        "euler",
        (Link("x"), Link("y"), Link("body", BODY)),
        (
            Joint("a", "revolute", "world", "x", axes=axis),
            Joint("b", "revolute", "x", "y", axes=(JointAxis(np.array([0.0, 1.0, 0.0])),)),
            Joint("c", "revolute", "y", "body", axes=(JointAxis(np.array([1.0, 0.0, 0.0])),)),
        ),
    )
    back = read_sdf(to_sdf(robot))
    for name in ("x", "y"):
        inertia = back.link(name).inertia
        assert inertia.mass == pytest.approx(1e-6)
        np.testing.assert_allclose(inertia.tensor, 1e-6 * 0.03 * np.eye(3))


def equal(a, b, path=""):
    """Compare dataclasses with arrays entry by entry; lines and sources may differ."""
    if dataclasses.is_dataclass(a):
        assert type(a) is type(b), path
        for item in dataclasses.fields(a):
            if item.name not in ("line", "source"):
                equal(getattr(a, item.name), getattr(b, item.name), f"{path}.{item.name}")
    elif isinstance(a, np.ndarray):
        np.testing.assert_allclose(b, a, atol=1e-13, err_msg=path)
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), path
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            equal(x, y, f"{path}[{i}]")
    elif isinstance(a, float):
        assert b == pytest.approx(a, abs=1e-13), path
    else:
        assert a == b, path


@pytest.mark.parametrize("text", [JOINTS, NESTED, WORLD], ids=["joints", "nested", "world"])
def test_everything_comes_back(text):
    robot = read_sdf(text)
    written = to_sdf(robot)
    back = read_sdf(written)
    for item in dataclasses.fields(robot):
        if item.name == "home":
            assert set(robot.home) == set(back.home)
            for name, value in robot.home.items():
                np.testing.assert_allclose(back.home[name], value, atol=1e-13)
        elif item.name != "source":
            equal(getattr(robot, item.name), getattr(back, item.name), item.name)


KINDS = ("fixed", "revolute", "prismatic", "universal", "ball")


@pytest.mark.parametrize("seed", range(20))
def test_muscles_of_every_type_over_every_surface_come_back(seed):
    robot = random_robot(
        seed,
        n_links=4,
        kinds=KINDS,
        surfaces=SURFACES,
        chains=seed % 2 == 0,
        pulleys=True,
        friction=0.3 * (seed % 3),
        types=tuple(ACTUATORS),
    )
    text = to_sdf(robot)
    back = read_sdf(text)
    equal(robot.wrap_surfaces, back.wrap_surfaces)
    equal(robot.muscles, back.muscles)
    # and again, from the text alone as Gazebo hands it over
    found = parse_muscle_block(ET.tostring(ET.fromstring(text).find("model/plugin")))
    equal(robot.wrap_surfaces, found.wrap_surfaces)
    equal(robot.muscles, found.muscles)


@pytest.mark.parametrize("seed", range(3))
def test_lengths_over_surfaces_come_back(seed):
    robot = random_robot(seed, kinds=KINDS, surfaces=("sphere", "cylinder"), pulleys=True)
    before, after = (make_dynamics(r, "numeric") for r in (robot, read_sdf(to_sdf(robot))))
    rng = np.random.default_rng(seed)
    q, qd = before.tree.random(rng, span=0.1), rng.normal(size=before.tree.nv)
    for x, y in zip(values(before, q, qd), values(after, q, qd), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", ["planar_2r", "roboy_arm", "wrap_elbow", "antagonist_joint"])
def test_writing_is_stable(name):
    first = to_sdf(load(name))
    assert to_sdf(read_sdf(first)) == first


def test_numbers_keep_all_digits_and_are_not_decorated():
    axis = JointAxis(np.array([0.0, 0.6, 0.8]), -1.0, 0.1 + 0.2)
    robot = Robot(
        "r",
        (Link("a", BODY),),
        (Joint("j", "revolute", "world", "a", Pose(translation=np.array([1.0, -0.0, 1e-9])),
               axes=(axis,)),),
    )  # fmt: skip
    text = to_sdf(robot)
    assert "<upper>0.30000000000000004</upper>" in text
    assert "<lower>-1</lower>" in text
    assert '<pose relative_to="__model__">1 0 1e-09 0 0 0</pose>' in text


def test_rotations_near_the_singularity_of_roll_pitch_yaw_keep_their_digits():
    rng = np.random.default_rng(0)
    for pitch in (np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-7, 1.0):
        pose = Pose.from_xyz_rpy((0, 0, 0), (*rng.normal(size=1), pitch, *rng.normal(size=1)))
        robot = Robot("r", (Link("a", BODY),), (Joint("j", "fixed", "world", "a", pose),))
        back = read_sdf(to_sdf(robot)).joint("j").parent_to_joint
        np.testing.assert_allclose(back.rotation, pose.rotation, atol=2e-15)


def test_a_free_body_keeps_its_pose_whatever_its_joint():
    rng = np.random.default_rng(4)
    joint = Joint("float", "free", "world", "a", random_pose(rng), random_pose(rng))
    home = {"float": (0.1, 0.2, 0.3, 0.5, 0.5, -0.5, 0.5)}
    robot = Robot("r", (Link("a", BODY),), (joint,), home=home)
    back = read_sdf(to_sdf(robot))
    assert back.joints[0].name == "a_free"
    before, after = (make_dynamics(r, "numeric") for r in (robot, back))
    np.testing.assert_allclose(
        after.link_poses(after.tree.home), before.link_poses(before.tree.home), atol=1e-14
    )


def test_the_order_of_coordinates_survives():
    names = ["f0", "r0", "f1", "r1"]
    axis = (JointAxis(np.array([0.0, 0.0, 1.0])),)
    robot = Robot(
        "r",
        tuple(Link(f"l{i}", BODY) for i in range(4)),
        (
            Joint("l0_free", "free", "world", "l0"),
            Joint("r0", "revolute", "world", "l2", axes=axis),
            Joint("l1_free", "free", "world", "l1"),
            Joint("r1", "revolute", "l1", "l3", axes=axis),
        ),
    )
    assert len(names) == len(robot.joints)
    back = read_sdf(to_sdf(robot))
    assert back.tree.position_names == robot.tree.position_names
    assert [item.name for item in back.links] == [item.name for item in robot.links]


def test_other_gravity_needs_a_world():
    robot = Robot(
        "r",
        (Link("a", BODY),),
        (Joint("j", "fixed", "world", "a"),),
        gravity=np.array([0.0, 0.0, -1.6]),
    )
    assert "<world" in to_sdf(robot)
    np.testing.assert_array_equal(read_sdf(to_sdf(robot)).gravity, [0, 0, -1.6])
    assert "<world" not in to_sdf(dataclasses.replace(robot, gravity=np.array([0, 0, -9.81])))


def test_a_frame_in_the_world_goes_to_a_link_fixed_to_it():
    place = Pose.from_xyz_rpy((1, 2, 3), (0.1, 0.2, 0.3))
    robot = Robot(
        "r",
        (Link("a", BODY),),
        (Joint("j", "fixed", "world", "a", place),),
        frames=(Frame("f", "world", Pose(translation=np.array([0.0, 0.0, 5.0]))),),
    )
    frame = read_sdf(to_sdf(robot)).frame("f")
    np.testing.assert_allclose((place @ frame.pose).translation, [0, 0, 5], atol=1e-14)


def test_a_model_folder_with_meshes(tmp_path):
    mesh = tmp_path / "out" / "meshes" / "a b.stl"
    mesh.parent.mkdir(parents=True)
    mesh.write_text("solid")
    shapes = (Visual("v", Mesh(str(mesh))), Visual("p", Plane(np.array([0.0, 1.0, 0.0]), (2, 3))))
    touch = (Collision("c", Capsule(0.1, 0.2), friction=0.3),)
    robot = Robot("r", (Link("a", BODY, shapes, touch),), (Joint("j", "fixed", "world", "a"),))
    path = write_model(robot, tmp_path / "out", description="a < b")
    assert "<uri>meshes/a b.stl</uri>" in path.read_text()
    back = load(tmp_path / "out")
    assert back.source == str(path)
    assert back.link("a").visuals[0].geometry.uri == str(mesh)
    assert back.link("a").collisions[0].friction == 0.3
    config = ET.parse(tmp_path / "out" / "model.config").getroot()
    assert config.findtext("description") == "a < b"


def test_a_model_that_could_not_be_read_is_not_written(tmp_path):
    path = (ViaPoint("a", np.zeros(3)), ViaPoint("a", np.zeros(3)))
    robot = Robot(
        "r",
        (Link("a", BODY),),
        (Joint("j", "fixed", "world", "a"),),
        muscles=(Muscle("m", path, 1.0, 2.0),),
    )
    with pytest.raises(DescriptionError, match="same place"):
        write_model(robot, tmp_path / "r")
    assert not (tmp_path / "r").exists()


POINTS = (ViaPoint("world", np.zeros(3)), ViaPoint("a", np.ones(3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"muscles": (Muscle("m", POINTS),)}, "muscle 'm': unlimited tension"),
        ({"frames": (Frame("a", "a"),)}, "frame 'a': a link has this name"),
        ({"frames": (Frame("j", "a"),)}, "frame 'j': the name is used twice"),
        ({"frames": (Frame("world", "a"),)}, "frame 'world': .* it is the world"),
        ({"frames": (Frame("__f__", "a"),)}, "not a name for SDFormat"),
        ({"links": (Link("a", Inertia(1.0)),)}, "link 'a': not the inertia of a rigid body"),
        ({"links": (Link("a", Inertia(-1.0, np.zeros(3), np.eye(3))),)}, "is not positive"),
        ({"frames": (Frame("n::f", "a"),)}, "outside its model 'n'"),
        (
            {"links": (Link("a", BODY, (Visual("v", Sphere(1.0)), Visual("v", Sphere(2.0)))),)},
            "visual 'v': 2 in link 'a'",
        ),
        ({"joints": ()}, "not connected to the world"),
    ],
)
def test_what_sdf_cannot_state_is_refused(change, message):
    robot = Robot("r", (Link("a", BODY),), (Joint("j", "ball", "world", "a"),))
    with pytest.raises(DescriptionError, match=message):
        to_sdf(dataclasses.replace(robot, **change))


def test_names_with_markup_survive():
    robot = read_sdf(model(link('a "&lt;&amp;')).replace('a "', "a &quot;"))
    assert robot.links[0].name == 'a "<&'
    assert read_sdf(to_sdf(robot)).links[0].name == 'a "<&'
