"""What is around a robot: geometry of worlds, poses from topics, the page's scene."""

import numpy as np
import pytest

from cards_core.errors import UnknownNameError
from cards_core.formats import load
from cards_core.formats.sdf.world import load_world, read_world
from cards_core.robot.elements import Box, Plane
from cards_core.robot.terrain import read_terrain
from cards_core.robot.terrain_place import on_terrain
from cards_core.spatial import rpy_matrix
from cards_viz.muscles.interface import MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.scene import Scene
from cards_viz.muscles.world_scene import WorldScene

SLOPE = """<sdf version="1.11"><world name="slope">
  <model name="ramp"><static>true</static><pose>1 0 0 0 0.5 0</pose><link name="link">
    <visual name="v"><geometry><plane><normal>0 0 1</normal><size>2 2</size></plane></geometry>
    </visual></link></model>
</world></sdf>"""


def placed(x, y, z, yaw=0.0):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rpy_matrix(0.0, 0.0, yaw), (x, y, z)
    return pose


def test_objects_of_a_table():
    scene = WorldScene(load_world("table"))
    assert scene.bodies == ["box::link"]
    np.testing.assert_allclose(scene.start["box::link"], placed(0.48, -0.45, 0.25), atol=1e-12)
    assert scene.ground == -0.75
    assert not any(isinstance(shape.geometry, Plane) for shape in scene.fixed)
    (top,) = [shape for shape in scene.fixed if shape.name == "desk::link/top"]
    assert isinstance(top.geometry, Box)
    np.testing.assert_allclose(top.pose.translation, [0.3, -0.2, -0.02], atol=1e-12)
    assert {shape.name.split("/")[0] for shape in scene.moving} == {"box::link"}
    # the desk's feet and the handle of the box
    assert scene.outline[:, 2].min() == pytest.approx(-0.75)
    assert 0.38 < scene.outline[:, 2].max() < 0.42


def test_a_slope_is_no_ground():
    scene = WorldScene(read_world(SLOPE))
    assert scene.ground is None
    assert [shape.name for shape in scene.fixed] == ["ramp::link/v"]


def test_the_other_arm_is_seen_from_this_one():
    q = np.array([1.4, 0.3, -0.2, -0.7])
    poses = Scene(load("roboy_arm"), backend="numeric").link_poses(q)
    for namespace, side in (("left_arm", -1.2), ("right_arm", 1.2)):
        scene = WorldScene(load_world("two_arms"), namespace, backend="numeric")
        (other,) = scene.robots
        assert other.namespace != namespace
        seen = other.poses(q)
        for link, pose in zip(load("roboy_arm").links, poses, strict=True):
            expected = pose.copy()
            expected[1, 3] += side
            np.testing.assert_allclose(
                seen[f"{other.namespace}::{link.name}"], expected, atol=1e-9
            )
        assert set(scene.bodies) <= set(seen)


def test_a_robot_that_is_not_there():
    with pytest.raises(UnknownNameError, match="left_arm"):
        WorldScene(load_world("two_arms"), "")


class NoCommands:
    """Nobody presses a button."""


def test_the_page_moves_bodies_whose_places_are_known():
    robot = load("planar_2r")
    scene = WorldScene(load_world("table"))
    with MusclePage(robot, NoCommands(), port=0, world=scene) as page:
        (frame,) = page._nodes._bodies
        assert not frame.visible
        page._take(MuscleSnapshot(0.0, robot.tree.home, np.zeros(4)))
        page._draw_scene()
        assert not frame.visible
        there = {"box::link": placed(0.1, 0.2, 0.3, 0.4), "nobody": np.eye(4)}
        page._take(MuscleSnapshot(0.1, robot.tree.home, np.zeros(4), bodies=there))
        page._draw_scene()
        assert frame.visible
        np.testing.assert_allclose(frame.position, [0.1, 0.2, 0.3])
        np.testing.assert_allclose(frame.wxyz, [np.cos(0.2), 0.0, 0.0, np.sin(0.2)], atol=1e-12)
        # desk and robot are in the picture
        far = page.camera(1.0)
    with MusclePage(robot, NoCommands(), port=0) as page:
        near = page.camera(1.0)
    assert np.linalg.norm(far.position - far.look_at) > 0.0
    assert not np.allclose(far.look_at, near.look_at)


def test_terrain_is_drawn_around_the_robot():
    robot = load("tetraspine_hardware")
    scene = WorldScene(on_terrain(read_terrain("hills:extent=2,level=-0.1"), robot))
    (ground,) = scene.fixed
    heights = ground.pose.apply(ground.vertices)[:, 2]
    assert heights.min() == pytest.approx(-0.12, abs=1e-3)
    assert heights.max() == pytest.approx(-0.08, abs=1e-3)
    steps = WorldScene(on_terrain(read_terrain("stairs:count=3,level=-0.1"), robot))
    assert (steps.ground, len(steps.fixed)) == (-0.1, 3)
