"""The small motion around home that needs no trajectory file."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from cards_core.errors import UnknownNameError
from cards_core.formats import load
from cards_core.trajectories import TrajectoryError, tolerance_of
from cards_core.trajectories.library import (
    joint_references,
    own_reference_file,
    read_reference,
)
from cards_core.trajectories.wiggle import ANGLE, ANGLE_OF_ALL, KNOTS, LENGTH, Wiggle

TIMES = np.linspace(0.0, KNOTS[-1], 801)


@pytest.mark.parametrize("name", ["planar_2r", "ipanema_1", "snake_24", "roboy_arm", "superball"])
def test_it_begins_and_ends_at_home_at_rest_and_stays_within_limits(name):
    tree = load(name).tree
    wiggle = Wiggle(tree)
    samples = [wiggle(t) for t in TIMES]
    y = np.array([one[0] for one in samples])
    yd, ydd = (np.array([one[k] for one in samples]) for k in (1, 2))
    for k in (0, -1):
        np.testing.assert_allclose(y[k], tree.home, atol=1e-15)
        np.testing.assert_allclose(yd[k], 0.0, atol=1e-12)
        np.testing.assert_allclose(ydd[k], 0.0, atol=1e-9)
    assert (y >= tree.lower).all()
    assert (y <= tree.upper).all()
    moved = np.abs([tree.difference(q, tree.home) for q in y]).max(axis=0)
    for node in tree.nodes:
        if node.kind == "revolute":
            assert 0.0 < moved[node.v] <= ANGLE + 1e-12
        elif node.kind == "prismatic":
            assert 0.0 < moved[node.v] <= LENGTH + 1e-12
        else:
            assert not moved[node.v : node.v + 3].any()
    angles = sum(moved[node.v] for node in tree.nodes if node.kind == "revolute")
    assert angles <= ANGLE_OF_ALL + 1e-9


def test_rates_are_the_derivatives():
    tree = load("superball").tree
    wiggle = Wiggle(tree)
    h = 1e-5
    for t in (0.3, 1.7, 2.2, 3.6):
        v = wiggle(t)[1]
        before, after = wiggle(t - h), wiggle(t + h)
        difference = tree.difference(after[0], before[0]) / (2.0 * h)
        np.testing.assert_allclose(difference, v, atol=1e-8)
        np.testing.assert_allclose((after[1] - before[1]) / (2.0 * h), wiggle(t)[2], atol=1e-7)


def test_there_is_no_way_beyond_a_limit_where_home_is():
    robot = load("antagonist_joint")
    joint = next(one for one in robot.joints if one.axes)
    axis = dataclasses.replace(joint.axes[0], lower=0.0, upper=0.06)
    moved = dataclasses.replace(joint, axes=(axis,))
    joints = tuple(moved if one is joint else one for one in robot.joints)
    tree = dataclasses.replace(robot, joints=joints, home={joint.name: (0.0,)}).tree
    y = np.array([Wiggle(tree)(t)[0] for t in TIMES])
    assert y.min() >= -1e-15
    assert y.max() == pytest.approx(0.03)


def test_a_file_beside_the_description_comes_first(tmp_path):
    robot = load("planar_2r")
    shipped = own_reference_file(robot)
    assert shipped is not None
    assert shipped.name == "planar_2r.yaml"
    (tmp_path / "model.sdf").write_text(Path(robot.source).read_text())
    text = shipped.read_text().replace("there_and_back", "mine")
    (tmp_path / "trajectories.yaml").write_text(text)
    own = load(tmp_path / "model.sdf")
    assert own_reference_file(own) == tmp_path / "trajectories.yaml"
    assert joint_references(own)[0].name == "mine"
    read = read_reference("mine", "", own, own.tree, space="joint")
    np.testing.assert_array_equal(read.start, [-0.5, 0.5])
    with pytest.raises(UnknownNameError, match=r"'foo'.*mine"):
        read_reference("foo", "", own, own.tree, space="joint")


def test_every_robot_has_a_wiggle():
    robot = dataclasses.replace(load("planar_2r"), name="nobody_knows", source=None)
    assert own_reference_file(robot) is None
    assert [one.name for one in joint_references(robot)] == ["wiggle"]
    for one in (robot, load("planar_2r")):  # with and without a file
        assert isinstance(read_reference("wiggle", "", one, one.tree, space="joint"), Wiggle)
    with pytest.raises(UnknownNameError, match=r"'foo'.*Known: wiggle"):
        read_reference("foo", "", robot, robot.tree, space="joint")
    with pytest.raises(UnknownNameError, match="wiggle"):
        read_reference("wiggle", "", robot, robot.tree, space="operational")
    arm = load("roboy_arm")
    with pytest.raises(TrajectoryError, match="operational"):
        read_reference("flower", "", arm, arm.tree, space="joint")


def test_samples_of_a_tree_with_balls_have_the_sizes_of_positions_and_velocities():
    tree = load("superball").tree
    wiggle = Wiggle(tree)
    y, yd, ydd = wiggle.sample(TIMES[::100])
    assert tree.nq > tree.nv
    assert y.shape == (9, tree.nq)
    assert yd.shape == ydd.shape == (9, tree.nv)
    np.testing.assert_array_equal(yd[3], wiggle(TIMES[300])[1])
    assert tolerance_of(wiggle, [""] * tree.nq).angle > 0.0
