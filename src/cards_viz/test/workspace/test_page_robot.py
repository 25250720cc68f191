"""Robots in pages of workspaces: in their place, and only where axes are directions in space."""

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_viz.muscles.scene import Scene
from cards_viz.workspace.page_robot import robot_lines


def test_a_platform_is_drawn_where_the_points_are():
    robot = load("ipanema_1")
    drawn = robot_lines(robot, ["platform_x", "platform_z"], {"platform_y": 0.25})
    assert drawn.axes == ("platform_x", None, "platform_z")
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    q = tree.home.copy()
    q[tree.position_names.index("platform_y")] = 0.25
    hand = Scene(robot, backend="numeric").end_effector(dynamics.link_poses(q))
    assert drawn.level[1] == pytest.approx(hand[1], abs=1e-12)
    cables = drawn.lines[: len(robot.muscles)]
    lengths = dynamics.update(q, np.zeros(tree.nv)).muscle_lengths
    np.testing.assert_allclose(np.linalg.norm(np.diff(cables, axis=1)[:, 0], axis=1), lengths)
    # along x a line is shifted as the coordinate is against the place of the hand
    start = dynamics.link_poses(q)
    muscle = robot.muscles[0]
    names = [link.name for link in robot.links]
    first = muscle.path[0]
    pose = np.eye(4) if first.link == "world" else start[names.index(first.link)]
    place = pose[:3, :3] @ first.position + pose[:3, 3]
    shift = q[tree.position_names.index("platform_x")] - hand[0]
    assert cables[0, 0, 0] == pytest.approx(place[0] + shift, abs=1e-12)
    assert cables[0, 0, 1] == pytest.approx(place[1], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("planar_2r", ["joint_1", "joint_2"]),
        ("ipanema_1", ["platform_x", "platform_x"]),
        ("ipanema_1", ["no_coordinate"]),
        ("ipanema_1", []),
        ("prism_3", []),
    ],
)
def test_axes_that_are_no_directions_have_no_robot(name, axes):
    assert robot_lines(load(name), axes, {}) is None
