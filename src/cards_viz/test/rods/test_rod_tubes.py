"""Rods cut into pieces, and their colours."""

import numpy as np
import pytest

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.status import RodStatus
from cards_core.spatial import quaternion_matrix
from cards_viz.colors import linear_light
from cards_viz.rods.interface import CURVATURE, RodSnapshot
from cards_viz.rods.tubes import (
    ALARM,
    PIECES,
    RodColors,
    quaternions_z_to,
    thinned,
    tubes,
    unit_tube,
)


def bend(k=201):
    """A rod that is straight for 0.9 m and then turns by 180 degrees on a radius of 20 mm."""
    s = np.linspace(0.0, 0.9 + 0.02 * np.pi, k)
    turn = np.clip(s - 0.9, 0.0, None) / 0.02
    return np.stack(
        [0.02 * (1.0 - np.cos(turn)), 0 * s, np.minimum(s, 0.9) + 0.02 * np.sin(turn)], axis=1
    )


def test_quaternions_take_z_to_any_direction():
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(50, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    directions = np.concatenate([directions, [[0, 0, 1], [0, 0, -1], [1e-9, 0, -1]]])
    for quaternion, direction in zip(quaternions_z_to(directions), directions, strict=True):
        assert np.linalg.norm(quaternion) == pytest.approx(1.0)
        assert quaternion_matrix(quaternion)[:, 2] == pytest.approx(direction, abs=1e-7)


def test_the_unit_tube_looks_outwards():
    vertices, faces = unit_tube()
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    assert (np.einsum("fi,fi->f", normals[:, :2], corners.mean(axis=1)[:, :2]) > 0.0).all()
    # open, but without a gap around: every edge along the tube belongs to two triangles
    assert len(vertices) == len(faces)


def test_pieces_lie_between_their_points_and_overlap():
    lines = np.stack([bend(30), bend(30) + 1.0])
    radii = np.array([0.002, 0.005])
    made = tubes(lines, radii)
    assert len(made.positions) == 2 * 29
    for rod in range(2):
        for i in range(29):
            n = 29 * rod + i
            axis = quaternion_matrix(made.wxyzs[n])[:, 2]
            ends = made.positions[n] + 0.5 * made.scales[n, 2] * np.outer([-1, 1], axis)
            reach = np.linalg.norm(ends - lines[rod, [i, i + 1]], axis=1)
            # beyond its points by a part of the radius, along its own axis
            assert reach == pytest.approx(0.175 * radii[rod], abs=1e-6)
            assert made.scales[n, :2] == pytest.approx(radii[rod])


def test_a_sharp_bend_keeps_its_points():
    line = bend()
    lines = np.concatenate([line, np.arange(201.0)[:, None]], axis=1)[None]
    found = thinned(lines)
    assert found.shape == (1, PIECES + 1, 4)
    assert found[0, [0, -1]] == pytest.approx(lines[0, [0, -1]])

    def sharpest(points):
        along = np.diff(points, axis=0)
        along /= np.linalg.norm(along, axis=1)[:, None]
        return np.degrees(np.arccos(np.sum(along[1:] * along[:-1], axis=1)).max())

    evenly = line[np.linspace(0, 200, PIECES + 1).round().astype(int)]
    assert sharpest(found[0, :, :3]) < 20.0
    assert sharpest(evenly) > 60.0
    # values go with their points
    assert (np.diff(found[0, :, 3]) > 0.0).all()
    # few points stay as they are
    assert thinned(lines[:, :5]) == pytest.approx(lines[:, :5])


@pytest.fixture(scope="module")
def robot():
    return read_rod_robot("stewart_gough")


def snapshot(robot, **changes):
    n = robot.n_limbs
    lines = np.zeros((n, 11, 6))
    lines[:, :, 2] = np.linspace(0.0, 0.4, 11)
    lines[:, :, CURVATURE] = np.linspace(0.0, 4.0, 11)
    return RodSnapshot(0.0, robot.home_q, robot.home_pose, lines, **changes)


def test_colours_follow_the_quantity_and_the_scale_grows(robot):
    colors = RodColors(robot)
    shown = snapshot(robot)
    rgb = colors.colors(shown, shown.lines).reshape(robot.n_limbs, 10, 3)
    assert colors.scale.high == 4.0
    expected = linear_light(colors.scale.colors(np.linspace(0.2, 3.8, 10)))
    assert np.abs(rgb.astype(int) - expected).max() <= 1  # rounding
    colors.chosen = "stress"
    assert (colors.colors(shown, shown.lines) == linear_light(colors.scale.colors(0.0))).all()
    assert colors.quantity.unit == "MPa"


def test_only_the_rods_that_it_is_about_turn_red(robot):
    colors = RodColors(robot)

    def red(**changes):
        shown = snapshot(robot, **changes)
        rgb = colors.colors(shown, shown.lines).reshape(robot.n_limbs, -1, 3)
        return (rgb == linear_light(ALARM.astype(np.uint8))).all(axis=(1, 2)).tolist()

    assert not any(red())
    assert all(red(status=RodStatus.UNSTABLE))
    assert red(status=RodStatus.UNREACHABLE, limb="limb_2") == [False, True] + 4 * [False]
    both = red(status=RodStatus.UNREACHABLE, limb="limb_2", limbs=("limb_2", "limb_5"))
    assert both == [False, True, False, False, True, False]
    # a refused command changes nothing, so nothing is red
    assert not any(red(status=RodStatus.LIMIT, limb="limb_2"))
