"""MJCF export: MuJoCo loads it, and computes the same kinematics and dynamics as the core."""

import dataclasses
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards_core.dynamics import make_dynamics
from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.formats.mjcf.writer import merged_links, to_mjcf
from cards_core.formats.sdf.elements import numbers
from cards_core.robot.elements import (
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Mesh,
    Muscle,
    Plane,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Visual,
    Wrap,
    WrapSurface,
)
from cards_core.robot.inertia import repair_robot
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from random_robots import random_inertia, random_pose, random_robot, random_rotation

mujoco = pytest.importorskip("mujoco")

X, Y, Z = np.eye(3)
BODY = Inertia(1.0, np.array([0.0, 0.0, 0.1]), np.diag([0.02, 0.03, 0.025]))


@pytest.fixture(autouse=True)
def _no_log_file():
    """Some robots here have a singular mass matrix; MuJoCo would write that to a file."""
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    yield
    mujoco.set_mju_user_warning(before)


def load(robot, **options):
    return mujoco.MjModel.from_xml_string(to_mjcf(robot, **options))


def revolute(name, parent, child, axis=Z, placement=None, **limits):
    axes = (JointAxis(axis, **limits),)
    return Joint(name, "revolute", parent, child, placement or Pose(), axes=axes)


def single(link=None, kind="revolute", **joint):
    """One link on one joint."""
    link = link or Link("arm", BODY)
    axes = {"revolute": (JointAxis(Y),), "prismatic": (JointAxis(Y),)}.get(kind, ())
    return Robot("single", (link,), (Joint("j", kind, WORLD, link.name, axes=axes, **joint),))


def compare_with_core(robot, seed=0):
    """Compare poses, mass matrix and bias forces at a random state."""
    model = load(robot)
    data = mujoco.MjData(model)
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    assert (model.nq, model.nv) == (tree.nq, tree.nv)
    rng = np.random.default_rng(seed)
    q, qd = tree.random(rng), rng.normal(size=tree.nv)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    for link, pose in zip(robot.links, dynamics.link_poses(q), strict=True):
        if link.name not in merged_links(robot):
            body = data.body(link.name)
            np.testing.assert_allclose(body.xpos, pose[:3, 3], atol=1e-12)
            np.testing.assert_allclose(body.xmat.reshape(3, 3), pose[:3, :3], atol=1e-12)
    mass_matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, mass_matrix)
    state = dynamics.update(q, qd)
    scale = np.abs(state.mass_matrix).max()
    np.testing.assert_allclose(mass_matrix, state.mass_matrix, atol=1e-10 * scale)
    bias = state.coriolis + state.gravity
    scale = np.abs(bias).max() + 1.0
    np.testing.assert_allclose(data.qfrc_bias, bias, atol=1e-10 * scale)
    return model


@pytest.mark.parametrize("seed", range(40))
def test_kinematics_and_dynamics_are_those_of_the_core(seed):
    robot = random_robot(seed, n_links=6)
    model = compare_with_core(robot, seed)
    for node in make_dynamics(robot, "numeric").tree.nodes:
        joint = model.joint(node.name)  # the layout has no index map: it is the tree's
        assert (joint.qposadr[0], joint.dofadr[0]) == (node.q, node.v)


def test_free_joint_of_the_world_is_a_freejoint_with_the_same_layout():
    robot = single(kind="free")
    model = compare_with_core(robot)
    assert model.jnt_type.tolist() == [mujoco.mjtJoint.mjJNT_FREE]
    rng = np.random.default_rng(1)
    placed = single(kind="free", parent_to_joint=random_pose(rng))
    model = compare_with_core(placed)
    assert model.njnt == 4


@pytest.mark.parametrize("kind", ["ball", "free"])
def test_quaternions_turn_the_joint_frame_where_it_is_not_the_link_frame(kind):
    rng = np.random.default_rng(2)
    robot = single(kind=kind, joint_to_child=random_pose(rng))
    compare_with_core(robot)


# Massless links ------------------------------------------------------------------------------


def euler_chain(seed, muscles=(), kinds=("revolute", "prismatic", "revolute")):
    """Two bodies; massless links without anything on them are between joints of the first."""
    rng = np.random.default_rng(seed)
    links, joints, parent = [], [], WORLD
    for i, kind in enumerate([*kinds, "revolute"]):
        heavy = i >= len(kinds) - 1
        links.append(Link(f"l{i}", random_inertia(rng) if heavy else Inertia()))
        axes = tuple(JointAxis(column) for column in random_rotation(rng).T)
        axes = axes[: {"ball": 0, "free": 0, "universal": 2, "planar": 3}.get(kind, 1)]
        pose, offset = random_pose(rng), random_pose(rng)
        joints.append(Joint(f"j{i}", kind, parent, f"l{i}", pose, offset, axes))
        parent = f"l{i}"
    return Robot("chain", tuple(links), tuple(joints), muscles)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("last", "expected"),
    [
        # 1 + 3 + 2 = 6 degrees of freedom, the most a body of MuJoCo may have; more are redundant
        # and no robot to simulate, but the export has to stand it
        ("revolute", {"l1", "l2"}),
        ("universal", {"l2", "l0"}),
        ("ball", {"l2", "l0"}),
        ("free", {"l1", "l0"}),
    ],
)
def test_massless_links_between_joints_become_no_bodies(seed, last, expected):
    robot = euler_chain(seed, kinds=("revolute", "universal", "planar", last))
    assert merged_links(robot) == expected
    model = compare_with_core(robot, seed)
    names = [model.body(i).name for i in range(model.nbody)]
    assert not expected & set(names)


@pytest.mark.parametrize("seed", range(5))
def test_euler_angles_by_three_revolutes_are_one_body(seed):
    robot = euler_chain(seed, kinds=("revolute", "revolute", "revolute"))
    assert compare_with_core(robot, seed).nbody == 3


def test_massless_link_with_a_muscle_keeps_its_body():
    muscle = Muscle("m", (ViaPoint(WORLD, X), ViaPoint("l1", Y)))
    robot = euler_chain(3, muscles=(muscle,))
    assert merged_links(robot) == {"l0"}
    compare_with_core(robot)


def test_ball_in_front_of_a_hinge_is_not_merged_because_mujoco_cannot():
    robot = euler_chain(4, kinds=("ball", "revolute"))
    assert merged_links(robot) == frozenset()
    compare_with_core(robot)


def test_massless_link_that_branches_keeps_its_body():
    rng = np.random.default_rng(5)
    links = (Link("hub"), Link("left", random_inertia(rng)), Link("right", random_inertia(rng)))
    joints = (
        revolute("a", WORLD, "hub", X),
        revolute("b", "hub", "left", Y, random_pose(rng)),
        revolute("c", "hub", "right", Z, random_pose(rng)),
    )
    compare_with_core(Robot("branching", links, joints))


def test_massless_link_fixed_to_a_moving_one_and_to_the_world():
    links = (Link("arm", BODY), Link("tip"), Link("base"))
    joints = (
        revolute("a", WORLD, "arm", X),
        Joint("b", "fixed", "arm", "tip", Pose(np.eye(3), Z)),
        Joint("c", "fixed", WORLD, "base", Pose(np.eye(3), X)),
    )
    compare_with_core(Robot("fixed", links, joints))


# Inertia -------------------------------------------------------------------------------------


def test_rotated_plates_load_although_rounding_breaks_the_triangle_inequality():
    rng = np.random.default_rng(6)
    for _ in range(100):
        rotation = random_rotation(rng)
        tensor = rotation @ np.diag([0.1, 0.2, 0.3]) @ rotation.T
        model = load(single(Link("plate", Inertia(1.0, np.zeros(3), tensor))))
        np.testing.assert_allclose(np.sort(model.body_inertia[1]), [0.1, 0.2, 0.3], rtol=1e-10)


@pytest.mark.parametrize(
    ("moments", "problem"),
    [((0.08, 0.0, 0.08), "not all positive"), ((0.1, 0.1, 0.3), "exceeds the sum")],
)
def test_impossible_inertia_names_the_link_and_the_repair_works(moments, problem):
    robot = single(Link("rod", Inertia(0.1, Z, np.diag(moments)), line=7))
    with pytest.raises(DescriptionError, match=problem) as caught:
        to_mjcf(robot)
    assert caught.value.line == 7
    assert "link 'rod'" in str(caught.value)
    assert "cards_core.robot.inertia" in str(caught.value)
    with pytest.raises(ValueError, match="inertia"):  # MuJoCo indeed refuses it
        mujoco.MjModel.from_xml_string(
            "<mujoco><worldbody><body><joint/><inertial pos='0 0 0' mass='.1' "
            f"fullinertia='{numbers(*moments)} 0 0 0'/></body></worldbody></mujoco>"
        )
    load(repair_robot(robot)[0])


def test_moving_link_without_mass_is_an_error():
    robot = single(Link("ghost"))
    with pytest.raises(DescriptionError, match="link 'ghost': moves but neither it nor"):
        to_mjcf(robot)


@pytest.mark.parametrize(
    "inertia", [Inertia(-1.0, Z, np.eye(3)), Inertia(1.0, Z, np.full((3, 3), np.nan))]
)
def test_nonsense_inertia_is_an_error(inertia):
    with pytest.raises(DescriptionError, match="link 'bad'"):
        to_mjcf(single(Link("bad", inertia)))


# Joints --------------------------------------------------------------------------------------


def test_limits_damping_and_friction_arrive():
    axes = (
        JointAxis(X, lower=-1.0, upper=2.0, damping=0.3, friction=0.4),
        JointAxis(Y, lower=0.5),
    )
    robot = Robot("u", (Link("arm", BODY),), (Joint("j", "universal", WORLD, "arm", axes=axes),))
    model = load(robot)
    assert model.jnt_limited.tolist() == [1, 1]
    assert model.jnt_range[0].tolist() == [-1.0, 2.0]
    assert model.jnt_range[1, 0] == 0.5
    assert model.jnt_range[1, 1] > 1e6
    assert model.dof_damping.tolist() == [0.3, 0.0]
    assert model.dof_frictionloss.tolist() == [0.4, 0.0]
    assert load(single()).jnt_limited.tolist() == [0]


def test_limits_the_wrong_way_round_are_an_error():
    joint = revolute("elbow", WORLD, "arm", lower=1.0, upper=1.0)
    robot = Robot("r", (Link("arm", BODY),), (joint,))
    with pytest.raises(DescriptionError, match=r"joint 'elbow': limits 1 \.\. 1"):
        to_mjcf(robot)


def test_options_and_home_arrive():
    robot = dataclasses.replace(single(), gravity=np.array([1.0, 2.0, 3.0]), home={"j": (0.7,)})
    model = load(robot, timestep=2e-3)
    assert model.opt.timestep == 2e-3
    assert model.opt.gravity.tolist() == [1.0, 2.0, 3.0]
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert model.key("home").qpos.tolist() == [0.7]
    model = load(robot, integrator="implicitfast")
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST


def test_names_with_markup_in_them_survive():
    name = "a<b>&\"c' ä"
    model = load(single(Link(name, BODY)))
    assert model.body(1).name == name


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_read_back_exactly(values):
    assert [float(text) for text in numbers(*values).split()] == values


# Shapes --------------------------------------------------------------------------------------


def triangle_stl(path):
    """Write a tetrahedron as binary STL."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(struct.pack("<12fH", 0, 0, 0, *corners[list(f)].ravel(), 0) for f in faces)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + body)


def test_shapes_have_their_sizes_and_places(tmp_path):
    triangle_stl(tmp_path / "part.STL")
    rng = np.random.default_rng(8)
    shapes = [
        (Box(np.array([0.2, 0.4, 0.6])), "BOX", [0.1, 0.2, 0.3]),
        (Sphere(0.3), "SPHERE", [0.3]),
        (Cylinder(0.1, 0.6), "CYLINDER", [0.1, 0.3]),
        (Capsule(0.1, 0.6), "CAPSULE", [0.1, 0.3]),
        (Ellipsoid(np.array([0.1, 0.2, 0.3])), "ELLIPSOID", [0.1, 0.2, 0.3]),
        (Plane(X, (2.0, 4.0)), "BOX", [1.0, 2.0]),
        (Mesh("part.STL", np.full(3, 0.5)), "MESH", []),
    ]
    poses = [random_pose(rng) for _ in shapes]
    visuals = tuple(
        Visual(f"v{i}", shape[0], pose, (0.1, 0.2, 0.3, 0.4))
        for i, (shape, pose) in enumerate(zip(shapes, poses, strict=True))
    )
    robot = dataclasses.replace(
        single(Link("arm", BODY, visuals=visuals)), source=str(tmp_path / "model.sdf")
    )
    model = load(robot)
    np.testing.assert_array_equal(model.body_mass[1], BODY.mass)  # drawing adds no mass
    for i, ((_, kind, size), pose) in enumerate(zip(shapes, poses, strict=True)):
        assert model.geom_type[i] == getattr(mujoco.mjtGeom, f"mjGEOM_{kind}")
        np.testing.assert_allclose(model.geom_size[i][: len(size)], size, rtol=1e-12)
        np.testing.assert_allclose(model.geom_rgba[i], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)
        assert model.geom_group[i] == 1
        assert model.geom_contype[i] == model.geom_conaffinity[i] == 0
        if kind != "MESH":
            np.testing.assert_allclose(model.geom_pos[i], pose.translation, atol=1e-12)
    # the plane's box has its thin side along the normal
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    normal = data.geom_xmat[5].reshape(3, 3)[:, 2]
    np.testing.assert_allclose(normal, poses[5].rotation @ X, atol=1e-12)
    # MuJoCo moves a mesh to its own centre: its corners must still be where the file has them
    vertices = model.mesh_vert @ data.geom_xmat[6].reshape(3, 3).T + data.geom_xpos[6]
    corners = poses[6].apply(0.5 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    distance = np.linalg.norm(vertices[:, None] - corners[None], axis=2)
    assert distance.min(axis=0).max() < 1e-6


@pytest.mark.parametrize("uri", ["model://arm/part.dae", "https://example.org/part.stl"])
def test_mesh_that_mujoco_cannot_read(uri):
    mesh = Mesh(uri)
    drawn = single(Link("arm", BODY, visuals=(Visual("skin", mesh),)))
    assert "visual 'skin' left out" in to_mjcf(drawn)
    assert "skin" not in to_mjcf(drawn, visuals=False)
    load(drawn)
    solid = single(Link("arm", BODY, collisions=(Collision("hull", mesh),)))
    with pytest.raises(DescriptionError, match="link 'arm', collision 'hull'"):
        to_mjcf(solid)


def test_moving_collision_plane_is_an_error():
    robot = single(Link("arm", BODY, collisions=(Collision("floor", Plane(Z)),)))
    with pytest.raises(DescriptionError, match="collision 'floor'"):
        to_mjcf(robot)
    load(single(Link("arm", BODY, collisions=(Collision("floor", Plane(Z)),)), kind="fixed"))


def test_via_point_sites_are_where_the_muscles_run():
    robot = random_robot(9)
    model = load(robot)
    data = mujoco.MjData(model)
    tree = make_dynamics(robot, "numeric").tree
    data.qpos[:] = q = tree.random(np.random.default_rng(9))
    mujoco.mj_forward(model, data)
    poses = make_dynamics(robot, "numeric").link_poses(q)
    rows = {link.name: pose for link, pose in zip(robot.links, poses, strict=True)}
    rows[WORLD] = np.eye(4)
    for muscle in robot.muscles:
        for i, point in enumerate(muscle.path):
            expected = (rows[point.link] @ [*point.position, 1.0])[:3]
            np.testing.assert_allclose(data.site(f"{muscle.name} {i}").xpos, expected, atol=1e-12)


# Tendons -------------------------------------------------------------------------------------


def tendon_lengths(model, q):
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    return np.array(data.ten_length)


@pytest.mark.parametrize("seed", range(15))
def test_tendons_have_the_lengths_of_the_muscles(seed):
    robot = random_robot(seed, n_links=4, n_muscles=6, surfaces=("sphere", "cylinder"))
    endless = tuple(  # as MuJoCo has them
        dataclasses.replace(s, geometry=Cylinder(s.geometry.radius, np.inf))
        if isinstance(s.geometry, Cylinder)
        else s
        for s in robot.wrap_surfaces
    )
    robot = dataclasses.replace(robot, wrap_surfaces=endless)
    model = load(robot, tendons=True)
    assert [model.tendon(i).name for i in range(model.ntendon)] == [m.name for m in robot.muscles]
    dynamics = make_dynamics(robot, "numeric")
    q = dynamics.tree.home  # where no via point is inside a surface
    lengths = dynamics.update(q, np.zeros(dynamics.tree.nv)).muscle_lengths
    np.testing.assert_allclose(tendon_lengths(model, q), lengths, atol=1e-9)


def bent(*middle, surface=None):
    """A muscle from the world to the arm with something between, over a ball around x = 0."""
    surface = surface or WrapSurface("ball", WORLD, Sphere(0.1))
    path = (ViaPoint(WORLD, -0.5 * X), *middle, ViaPoint("arm", 0.5 * X + 0.01 * Y))
    return dataclasses.replace(
        single(kind="fixed"), muscles=(Muscle("m", path),), wrap_surfaces=(surface,)
    )


def test_the_side_of_a_wrap_arrives():
    lengths = []
    for side in (None, 0.2 * Y, -0.2 * Y):
        model = load(bent(Wrap("ball", side)), tendons=True)
        lengths += [float(tendon_lengths(model, [])[0])]
    assert lengths[0] == lengths[1] < lengths[2]  # the arm's end is above the line to the centre


def test_a_wrap_within_a_bore_is_inside_for_mujoco():
    bore = WrapSurface("bore", WORLD, Cylinder(0.1, 0.3), Pose(translation=0.3 * Y))
    model = load(bent(Wrap("bore", inside=True), surface=bore), tendons=True)
    straight = float(np.linalg.norm(X + 0.01 * Y))
    around = float(tendon_lengths(model, [])[0])
    centre, radius = 0.3 * Y, 0.1
    # through the bore: it is pulled up to its rim at y = 0.2, both pieces are straight
    angles = np.linspace(0.0, 2.0 * np.pi, 200001)
    rim = centre + radius * np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles])
    ends = np.linalg.norm(rim + 0.5 * X, axis=1) + np.linalg.norm(rim - 0.5 * X - 0.01 * Y, axis=1)
    assert around == pytest.approx(ends.min(), abs=1e-9)
    assert around > straight + 0.01


@pytest.mark.parametrize(
    ("middle", "surface", "words"),
    [
        ([Wrap("ball"), Wrap("ball")], None, "one surface between two points"),
        (
            [Wrap("ball")],
            WrapSurface("ball", WORLD, Ellipsoid(np.full(3, 0.1))),
            "spheres and cylinders only",
        ),
        (
            [Wrap("ball")],
            WrapSurface("ball", WORLD, Torus(0.2, 0.1)),
            "spheres and cylinders only",
        ),
    ],
)
def test_wraps_that_mujoco_has_not_are_left_out(middle, surface, words):
    robot = bent(*middle, surface=surface)
    text = to_mjcf(robot, tendons=True)
    assert text.count("wrap over 'ball' left out") == len(middle)
    assert words in text
    length = float(tendon_lengths(load(robot, tendons=True), [])[0])
    assert length == pytest.approx(np.linalg.norm(X + 0.01 * Y), abs=1e-12)


def test_a_pulley_becomes_a_site():
    path = (Pulley(WORLD, X, Z, 0.1), ViaPoint("arm", -X))
    robot = dataclasses.replace(single(kind="fixed"), muscles=(Muscle("m", path),))
    assert "wheel of a pulley is left out" in to_mjcf(robot, tendons=True)
    assert tendon_lengths(load(robot, tendons=True), [])[0] == pytest.approx(2.0, abs=1e-12)
    assert load(robot).site("m 0").pos.tolist() == [1, 0, 0]


def test_without_tendons_surfaces_leave_no_trace():
    robot = random_robot(1, surfaces=("sphere", "cylinder", "torus"), pulleys=True)
    model = load(robot)
    points = sum(not isinstance(i, Wrap) for m in robot.muscles for i in m.path)
    assert (model.ntendon, model.ngeom, model.nsite) == (0, 0, points)


def test_massless_link_with_a_surface_keeps_its_body():
    surface = WrapSurface("s", "l1", Sphere(0.01))
    robot = dataclasses.replace(euler_chain(3), wrap_surfaces=(surface,))
    assert merged_links(robot) == {"l0", "l1"}  # nothing wraps over it
    load(robot, tendons=True)
    path = (ViaPoint(WORLD, X), Wrap("s"), ViaPoint(WORLD, -X))
    robot = dataclasses.replace(robot, muscles=(Muscle("m", path),))
    assert merged_links(robot) == {"l0"}
    assert load(robot, tendons=True).ntendon == 1


# Contacts and the world ----------------------------------------------------------------------


def arm_with_hulls():
    """Base fixed to the world, two links; every shape overlaps every other one."""
    hull = (Collision("hull", Sphere(0.5), friction=0.3),)
    links = tuple(Link(name, BODY, collisions=hull) for name in ("base", "upper", "lower"))
    joints = (
        Joint("mount", "fixed", WORLD, "base"),
        revolute("shoulder", "base", "upper", X),
        revolute("elbow", "upper", "lower", X, Pose(np.eye(3), 0.1 * Z)),
    )
    return Robot("arm", links, joints)


def colliding(model):
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    bodies = model.geom_bodyid[data.contact.geom[: data.ncon]]
    return {tuple(sorted(model.body(i).name for i in pair)) for pair in bodies}


def test_neighbours_do_not_collide_and_more_pairs_can_be_excluded():
    robot = arm_with_hulls()
    model = load(robot)
    assert colliding(model) == {("base", "lower")}
    assert model.geom_friction[:, 0] == pytest.approx(0.3 * 0.3)  # of two alike
    assert model.geom_group.tolist() == [3] * 3
    assert colliding(load(robot, exclude=[("lower", "base")])) == set()
    with pytest.raises(UnknownNameError, match="handle"):
        to_mjcf(robot, exclude=[("lower", "handle")])


def test_ground_and_additional_world():
    robot = arm_with_hulls()
    box = "<body name='crate' pos='0 0 3'><freejoint/><geom type='box' size='.1 .1 .1'/></body>"
    model = load(robot, ground=-2.0, world_xml=box)
    assert model.nq == 2 + 7
    assert model.joint("elbow").qposadr[0] == 1  # the robot's coordinates come first
    assert model.body("crate").mass[0] > 0.0
    assert model.geom("ground").pos.tolist() == [0.0, 0.0, -2.0]
    with pytest.raises(DescriptionError, match="not well-formed"):
        to_mjcf(robot, world_xml="<geom")


def test_link_sensors_report_frames_at_the_centres_of_mass():
    robot = random_robot(10, n_links=6)
    model = load(robot, link_sensors=True)
    data = mujoco.MjData(model)
    dynamics = make_dynamics(robot, "numeric")
    rng = np.random.default_rng(10)
    q, qd = dynamics.tree.random(rng), rng.normal(size=dynamics.tree.nv)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    n = len(robot.links)
    frames = data.sensordata[: 12 * n].reshape(n, 4, 3)
    twists = data.sensordata[12 * n : 18 * n].reshape(n, 6)
    poses = dynamics.link_poses(q)
    for i, link in enumerate(robot.links):
        np.testing.assert_allclose(frames[i, :3].T, poses[i, :3, :3], atol=1e-12)
        arm = poses[i, :3, :3] @ link.inertia.com
        np.testing.assert_allclose(frames[i, 3], poses[i, :3, 3] + arm, atol=1e-12)
        velocity = dynamics.operational(q, qd, link.name).jacobian @ qd
        np.testing.assert_allclose(twists[i, 3:], velocity[3:], atol=1e-12)
        at_com = velocity[:3] + np.cross(velocity[3:], arm)
        np.testing.assert_allclose(twists[i, :3], at_com, atol=1e-12)
