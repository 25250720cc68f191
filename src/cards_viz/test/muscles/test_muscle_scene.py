import dataclasses
import math

import numpy as np
import pytest
import trimesh

from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Frame,
    Inertia,
    Joint,
    Link,
    Mesh,
    Muscle,
    Sphere,
    Torus,
    ViaPoint,
    Visual,
    Wrap,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rotation_z_to, rpy_matrix
from cards_viz.meshes import drawn_surface
from cards_viz.muscles.scene import SURFACE, Scene, without_repeats
from cards_viz.pages.scene import frame_points, viewing_direction


def test_planar_robot_by_hand(planar_2r):
    """Both joints at 90 degrees: link 1 along x, link 2 down from (1, 0, 0)."""
    scene = Scene(planar_2r, backend="numeric")
    tensions = np.array([10.0, 20.0, 40.0, 80.0])
    frame = scene.frame(np.array([np.pi / 2, np.pi / 2]), tensions, 100.0)
    np.testing.assert_allclose(frame.end_effector, [1.0, 0.0, -1.0], atol=1e-12)
    # cable_1 ends at (0.1, 0, 0.8) of link 1; x -> -z and z -> x by the turn about y
    np.testing.assert_allclose(frame.paths[0], [[0.5, 0.0, 0.0], [0.8, 0.0, -0.1]], atol=1e-12)
    assert frame.segments.shape == (4, 2, 3)
    assert frame.points.shape == (8, 3)
    assert scene.segment_muscle.tolist() == [0, 1, 2, 3]
    assert scene.point_muscle.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]


def test_arrows_point_along_the_pull_and_grow_with_it(planar_2r):
    scene = Scene(planar_2r, backend="numeric")
    tensions = np.array([10.0, 20.0, 40.0, 80.0])
    frame = scene.frame(np.array([0.3, -0.2]), tensions, 100.0)
    # one for each moving end: the ground needs none
    assert scene.arrow_muscle.tolist() == [0, 1, 2, 3]
    vectors = frame.arrows[:, 1] - frame.arrows[:, 0]
    np.testing.assert_allclose(frame.arrows[:, 0], [path[-1] for path in frame.paths])
    lengths = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(lengths / lengths[0], tensions / 10.0)
    for vector, path in zip(vectors, frame.paths, strict=True):
        pull = path[0] - path[-1]
        np.testing.assert_allclose(np.cross(vector, pull), 0.0, atol=1e-12)
        assert vector @ pull > 0.0


def test_arrows_are_the_forces_of_the_muscle_engine(arm):
    """Sum of the arrows of each link, made forces again, against the wrenches of the engine."""
    rng = np.random.default_rng(5)
    scene = Scene(arm, backend="numeric")
    tensions = rng.uniform(10.0, 100.0, len(arm.muscles))
    q = scene.tree.home + rng.normal(scale=0.1, size=scene.tree.nq)
    frame = scene.frame(q, tensions, 100.0)
    state = MuscleEngine(arm, "numeric").update(frame.link_poses, np.zeros((4, 6)), tensions)
    links = [link.name for link in arm.links]
    ends = [point.link for muscle in arm.muscles for point in muscle.path if point.link != WORLD]
    total = np.zeros((4, 3))
    np.add.at(total, [links.index(name) for name in ends], frame.arrows[:, 1] - frame.arrows[:, 0])
    newton_per_metre = 100.0 / (0.16 * scene.size)
    np.testing.assert_allclose(total * newton_per_metre, state.wrenches[:, :3], atol=1e-9)


def test_muscle_with_a_bend(planar_2r):
    """At a via point acts the sum of both pulls."""
    point = lambda link, x, z: ViaPoint(link, np.array([x, 0.0, z]))  # noqa: E731
    muscle = Muscle("m", (point(WORLD, 1, 0), point("lower", 0, 1), point("upper", 1, 0)))
    robot = Robot("bent", planar_2r.links, planar_2r.joints, (muscle,), operational_frame="upper")
    scene = Scene(robot, backend="numeric")
    frame = scene.frame(np.zeros(2), np.array([7.0]), 7.0)
    assert frame.segments.shape == (2, 2, 3)
    assert scene.segment_muscle.tolist() == [0, 0]
    vectors = (frame.arrows[:, 1] - frame.arrows[:, 0]) / (0.16 * scene.size)
    s = np.sqrt(0.5)
    np.testing.assert_allclose(vectors, [[s + 1.0, 0.0, -s], [-1.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(frame.end_effector, [0.0, 0.0, 1.0], atol=1e-12)


WRAP_POSES = [[0.0, 0.0], [0.3, -1.2], [0.5, 1.0], [-1.0, 2.0]]


@pytest.mark.parametrize("q", WRAP_POSES)
def test_arrows_at_via_points_and_tangent_points_balance_as_the_engine_says(wrap_arm, q):
    """Force and moment of the arrows on each link against the wrenches of the engine."""
    scene = Scene(wrap_arm, backend="numeric")
    tensions = np.array([20.0, 35.0, 50.0, 80.0])
    frame = scene.frame(np.array(q), tensions, 100.0)
    engine = MuscleEngine(wrap_arm, "numeric")
    wrenches = engine.update(frame.link_poses, np.zeros((2, 6)), tensions).wrenches
    force = (frame.arrows[:, 1] - frame.arrows[:, 0]) * 100.0 / (0.16 * scene.size)
    total = np.zeros((2, 6))
    # every arrow belongs to the link whose total it completes: links are known from the paths
    links = {"upper": 0, "fore": 1}
    where = []
    for muscle in wrap_arm.muscles:
        for item in muscle.path:
            name = (
                wrap_arm.wrap_surface(item.surface).link if isinstance(item, Wrap) else item.link
            )
            where += [name] * (1 if isinstance(item, ViaPoint) else 2)
    for name, tail, f in zip(
        [name for name in where if name != WORLD], frame.arrows[:, 0], force, strict=True
    ):
        origin = frame.link_poses[links[name], :3, 3]
        total[links[name]] += np.concatenate([f, np.cross(tail - origin, f)])
    np.testing.assert_allclose(total, wrenches, atol=1e-8)


def test_a_surface_that_is_passed_by_gets_no_arrows(wrap_arm):
    scene = Scene(wrap_arm, backend="numeric")
    begin = scene.arrow_muscle.tolist().index(0)  # extensor: via point, two tangent points, end
    for q, touches in (([0.3, -1.2], True), ([0.5, 1.0], False)):
        frame = scene.frame(np.array(q), np.full(4, 50.0), 100.0)
        lengths = np.linalg.norm(frame.arrows[:, 1] - frame.arrows[:, 0], axis=1)
        assert (lengths[begin + 1 : begin + 3] > 0.0).tolist() == [touches, touches]
        assert (lengths[[begin, begin + 3]] > 0.0).all()


def test_via_points_alone_are_points(wrap_arm):
    scene = Scene(wrap_arm, backend="numeric")
    frame = scene.frame(np.array([0.3, -1.2]), np.full(4, 50.0), 100.0)
    upper, fore = frame.link_poses
    expected = []
    for muscle in wrap_arm.muscles:
        for point in muscle.via_points:
            pose = {"upper": upper, "fore": fore, WORLD: np.eye(4)}[point.link]
            expected.append(pose[:3, :3] @ point.position + pose[:3, 3])
    np.testing.assert_allclose(frame.points, expected, atol=1e-12)
    assert scene.point_muscle.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3]


@pytest.mark.parametrize("q", WRAP_POSES)
def test_drawn_paths_are_as_long_as_the_muscles(wrap_arm, q):
    """An arc of angle t in eight chords is short by a share of (t / 8)^2 / 24, to first order."""
    scene = Scene(wrap_arm, backend="numeric")
    frame = scene.frame(np.array(q), np.full(4, 50.0), 100.0)
    engine = MuscleEngine(wrap_arm, "numeric")
    lengths, _ = engine.motion(frame.link_poses, np.zeros((2, 6)))
    pieces = np.linalg.norm(frame.segments[:, 1] - frame.segments[:, 0], axis=1)
    drawn = np.bincount(scene.segment_muscle, pieces)
    assert (drawn <= lengths + 1e-12).all()
    np.testing.assert_allclose(drawn, lengths, rtol=(np.pi / 8) ** 2 / 24)
    assert drawn.tolist() == pytest.approx(
        [np.linalg.norm(np.diff(path, axis=0), axis=1).sum() for path in frame.paths]
    )


def test_shapes_of_the_arrays_do_not_change(wrap_arm):
    scene = Scene(wrap_arm, backend="numeric")
    shapes = set()
    for q in WRAP_POSES:
        frame = scene.frame(np.array(q), np.full(4, 50.0), 100.0)
        shapes.add((frame.segments.shape, frame.points.shape, frame.arrows.shape))
    assert len(shapes) == 1


def test_points_of_a_path_that_repeat_are_left_out():
    path = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [2, 0, 0]], float)
    np.testing.assert_array_equal(without_repeats(path)[:, 0], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(without_repeats(path[:0]), path[:0])


def test_wrap_surfaces(wrap_arm):
    scene = Scene(wrap_arm, with_shapes=False, backend="numeric")
    assert [(s.name, s.link) for s in scene.surfaces] == [
        ("upper/wrap_surfaces/elbow", 0),
        ("world/wrap_surfaces/head", None),
        ("upper/wrap_surfaces/belly", 0),
        ("upper/wrap_surfaces/ring", 0),
        ("fore/wrap_surfaces/bead", 1),
    ]
    frame = scene.frame(np.array([0.3, -1.2]), np.full(4, 50.0), 100.0)
    # tangent points lie on the drawn surfaces, the facets of which are a little inside
    for surface, muscle, first in (("elbow", 0, 1), ("head", 1, 1)):
        shape = next(s for s in scene.surfaces if s.name.endswith(surface))
        link = shape.link_pose(frame.link_poses)
        vertices = shape.pose.apply(shape.vertices) @ link[:3, :3].T + link[:3, 3]
        body = trimesh.Trimesh(vertices, shape.faces)
        arc = frame.paths[muscle][first : first + 9]
        distance = trimesh.proximity.closest_point_naive(body, arc)[1]
        assert distance.max() < 0.02 * shape.geometry.radius
    # and the robot's picture has room for them
    assert (scene.upper[1], scene.lower[1]) == pytest.approx((0.25, -0.09), abs=1e-3)


def test_a_visual_that_is_a_wrap_surface_is_drawn_once(wrap_arm):
    """For viewers that know visuals only, a model may show a surface as one; the name tells."""
    rgba = (0.1, 0.2, 0.3, 0.4)
    visuals = (Visual("bone", Sphere(0.1)), Visual("ring", Torus(0.05, 0.01), rgba=rgba))
    links = (Link("upper", wrap_arm.links[0].inertia, visuals), wrap_arm.links[1])
    robot = dataclasses.replace(wrap_arm, links=links)
    scene = Scene(robot, backend="numeric")
    # a link without visuals of its own, at which muscles pull, is drawn too
    assert [shape.name for shape in scene.shapes] == ["upper/bone", "fore/bone_0"]
    colors = {shape.name: shape.rgba for shape in scene.surfaces}
    assert colors.pop("upper/wrap_surfaces/ring") == rgba
    assert set(colors.values()) == {SURFACE}
    # RViz draws the visuals
    scene = Scene(robot, with_shapes=False, backend="numeric")
    assert {shape.name for shape in scene.surfaces} == set(colors)


def test_a_cylinder_without_ends_is_drawn_where_muscles_are():
    pose = Pose(rpy_matrix(0.4, -0.7, 1.1), np.array([0.1, 0.2, 0.3]))
    surface = WrapSurface("s", "link", Cylinder(0.02, math.inf), pose)
    met = pose.apply([[0.02, 0.0, 5.0], [0.0, 0.02, 5.5]])
    geometry, placement = drawn_surface(surface, met)
    assert geometry.length == pytest.approx(0.5 + 6 * 0.02)
    np.testing.assert_allclose(placement.translation, pose.apply([0.0, 0.0, 5.25]))
    np.testing.assert_array_equal(placement.rotation, pose.rotation)
    # nothing on it: around its origin
    geometry, placement = drawn_surface(surface, np.zeros((0, 3)))
    assert geometry.length == pytest.approx(6 * 0.02)
    np.testing.assert_allclose(placement.translation, pose.translation)
    # ends given: as given
    surface = WrapSurface("s", "link", Cylinder(0.02, 0.3), pose)
    assert drawn_surface(surface, met) == (surface.geometry, pose)


def test_tensions_that_are_not_finite_have_no_arrow(planar_2r):
    frame = Scene(planar_2r, backend="numeric").frame(
        np.zeros(2), np.array([np.nan, np.inf, 1.0, 1.0]), 100.0
    )
    assert np.isfinite(frame.arrows).all()
    np.testing.assert_array_equal(frame.arrows[:2, 0], frame.arrows[:2, 1])


def test_robot_without_visuals_gets_a_skeleton(arm):
    scene = Scene(arm, backend="numeric")
    names = [shape.name for shape in scene.shapes]
    assert any(name.startswith("upper_arm/") for name in names)
    assert any(name.startswith("lower_arm/") for name in names)
    assert len(names) == len(set(names))
    # the capsule of the lower arm reaches from the elbow to the hand
    poses = scene.link_poses(scene.tree.home)
    shape = next(s for s in scene.shapes if s.name == "lower_arm/bone_1")
    vertices = shape.pose.apply(shape.vertices)
    hand = arm.frame("hand").pose.translation
    assert np.linalg.norm(vertices - hand, axis=1).min() < 0.03
    assert np.linalg.norm(vertices, axis=1).min() < 0.03
    assert poses.shape == (4, 4, 4)


def test_links_whose_meshes_cannot_be_read_get_a_skeleton(arm, caplog):
    """One link of missing meshes among drawn ones, and all links of missing ones."""
    missing, ball = Visual("v", Mesh("nowhere.stl")), Visual("v", Sphere(0.1))

    def names(of):
        links = [
            dataclasses.replace(link, visuals=(of.get(link.name, ball),)) for link in arm.links
        ]
        scene = Scene(dataclasses.replace(arm, links=tuple(links)), backend="numeric")
        return [shape.name for shape in scene.shapes]

    some = names({"lower_arm": missing})
    assert [name for name in some if "bone" in name] == ["lower_arm/bone_0", "lower_arm/bone_1"]
    assert [name for name in some if "bone" not in name] == [
        f"{link.name}/v" for link in arm.links if link.name != "lower_arm"
    ]
    every = names({link.name: missing for link in arm.links})
    bare = dataclasses.replace(
        arm, links=tuple(dataclasses.replace(link, visuals=()) for link in arm.links)
    )
    assert every == [shape.name for shape in Scene(bare, backend="numeric").shapes]
    assert sum("nowhere.stl" in record.getMessage() for record in caplog.records) == 1


def test_every_link_can_be_drawn_where_it_must_be_clicked_on(planar_2r):
    """A link without a shape, among others that have one, and without muscles."""
    lower, upper = planar_2r.links
    links = (dataclasses.replace(lower, visuals=()), upper)
    robot = dataclasses.replace(planar_2r, links=links, muscles=())
    assert {shape.link for shape in Scene(robot).shapes} == {1}
    assert {shape.link for shape in Scene(robot, every_link=True).shapes} == {0, 1}


def test_box_holds_robot_and_muscles(planar_2r):
    scene = Scene(planar_2r, backend="numeric")
    np.testing.assert_allclose(scene.lower, [-1.5, -0.03, -0.03], atol=1e-3)
    np.testing.assert_allclose(scene.upper, [1.5, 0.03, 2.03], atol=1e-3)


def test_robot_without_muscles_and_operational_frame():
    robot = Robot(
        "ball",
        (Link("body", Inertia(1.0, np.zeros(3), np.eye(3))),),
        (Joint("root", "free", WORLD, "body"),),
    )
    scene = Scene(robot, backend="numeric")
    frame = scene.frame(scene.tree.home, np.zeros(0), 1.0)
    assert frame.end_effector is None
    assert frame.segments.shape == (0, 2, 3)
    assert frame.arrows.shape == (0, 2, 3)
    assert scene.size > 0.0


def test_operational_frame_fixed_to_the_world(planar_2r):
    robot = Robot(
        "r",
        planar_2r.links,
        planar_2r.joints,
        frames=(Frame("post", WORLD, Pose(translation=np.array([1.0, 2.0, 3.0]))),),
        operational_frame="post",
    )
    scene = Scene(robot, backend="numeric")
    frame = scene.frame(np.zeros(2), np.zeros(0), 1.0)
    np.testing.assert_array_equal(frame.end_effector, [1.0, 2.0, 3.0])


def test_rotation_z_to():
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for d in [*directions, np.array([0.0, 0.0, -1.0]), np.array([0.0, 0.0, 1.0])]:
        r = rotation_z_to(d)
        np.testing.assert_allclose(r @ (0.0, 0.0, 1.0), d, atol=1e-12)
        np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-12)
        assert np.linalg.det(r) == pytest.approx(1.0)


@pytest.mark.parametrize("aspect", [0.5, 1.0, 2.2])
def test_camera_shows_all_points_and_they_fill_the_picture(aspect):
    rng = np.random.default_rng(11)
    for _ in range(50):
        points = rng.normal(size=3) + rng.uniform(-1, 1, (60, 3)) * rng.uniform(0.05, 3.0, 3)
        camera = frame_points(points, aspect=aspect, fill=0.8)
        forward = camera.look_at - camera.position
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, (0.0, 0.0, 1.0))
        right /= np.linalg.norm(right)
        up = np.cross(right, forward)
        relative = points - camera.position
        depth = relative @ forward
        assert depth.min() > 0.0
        tangent = np.tan(camera.fov / 2)
        y = np.abs(relative @ up) / depth / tangent
        x = np.abs(relative @ right) / depth / tangent / aspect
        # all inside, and the worst point exactly at the margin
        assert max(x.max(), y.max()) == pytest.approx(0.8, abs=1e-9)


def test_flat_robots_are_seen_face_on(planar_2r):
    scene = Scene(planar_2r, backend="numeric")
    direction = viewing_direction(scene.lower, scene.upper)
    assert abs(direction[1]) / np.linalg.norm(direction) > 0.95
    direction = viewing_direction(np.zeros(3), np.array([1.0, 1.0, 0.01]))
    assert direction[2] / np.linalg.norm(direction) > 0.9


def test_spines_are_seen_from_their_side():
    """Their length takes most of the picture, and the head (-y) is nearer than the tail."""
    scene = Scene(load("tetraspine"), backend="numeric")
    direction = viewing_direction(scene.lower, scene.upper)
    direction /= np.linalg.norm(direction)
    assert -0.6 < direction[1] < -0.3
    assert 0.2 < direction[2] < 0.5
