"""The demo motion begins and ends at the start, stays in reach, and suits every robot."""

import numpy as np
import pytest

from cards_core.formats.locate import known_models
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.tracking.tracker import Tracker
from cards_rods.demo_motion import PARTS, DemoMotion
from cards_rods.rod_simulation import RodSimulation

NAMES = sorted(known_models(rods=True))
STIFF = np.diag([50.0, 50.0, 80.0, 5.0, 5.0, 5.0])


def motion_of(name, **options):
    robot = read_rod_robot(name)
    return robot, DemoMotion(robot, robot.home_pose, robot.home_q, STIFF, **options)


@pytest.mark.parametrize("name", NAMES)
def test_every_part_begins_and_ends_at_the_start(name):
    robot, motion = motion_of(name, duration=8.0)
    for k, part in enumerate(PARTS):
        for time in (2.0 * k, 2.0 * (k + 1) - 1e-9):
            target = motion.at(time)
            assert target.part == part
            np.testing.assert_allclose(target.pose, robot.home_pose, atol=1e-12)
            np.testing.assert_allclose(target.q, robot.home_q, atol=1e-12)
            np.testing.assert_allclose(target.wrench, 0.0, atol=1e-12)
    again = motion.at(8.0 + 0.7)
    np.testing.assert_allclose(again.pose, motion.at(0.7).pose, atol=1e-12)


@pytest.mark.parametrize("name", ["stewart_gough", "stewart_gough_6rfs", "planar_rfr_fr"])
def test_it_is_smooth_in_reach_and_in_the_plane_of_planar_robots(name):
    robot, motion = motion_of(name)
    size = float(np.mean(robot.lengths))
    last = motion.at(0.0)
    moved = dict.fromkeys(PARTS, 0.0)
    for time in np.linspace(0.0, 20.0, 1001):
        target = motion.at(time)
        assert np.all(target.q >= robot.q_lower - 1e-12)
        assert np.all(target.q <= robot.q_upper + 1e-12)
        assert np.abs(target.pose - last.pose).max() < 0.01
        assert np.abs(target.q - last.q).max() < 0.01
        if robot.planar:
            np.testing.assert_allclose(target.pose[2], robot.home_pose[2], atol=1e-12)
            assert not target.wrench[2:].any()
        np.testing.assert_allclose(
            target.pose[:3, :3].T @ target.pose[:3, :3], np.eye(3), atol=1e-12
        )
        change = (
            np.abs(target.pose - robot.home_pose).max()
            + np.abs(target.q - robot.home_q).max()
            + np.abs(target.wrench).max()
        )
        moved[target.part] = max(moved[target.part], float(change))
        last = target
    assert moved["circle"] == pytest.approx(0.05 * size, rel=0.1)
    assert min(moved.values()) > 1e-3


def test_a_load_that_always_acts_stays_and_a_robot_that_does_not_hold_is_not_pushed():
    robot = read_rod_robot("stewart_gough")
    always = np.array([0.0, 0.0, -0.5, 0.0, 0.0, 0.1])
    unstable = np.diag([50.0, 50.0, 80.0, -1.0, 5.0, 5.0])
    motion = DemoMotion(robot, robot.home_pose, robot.home_q, unstable, wrench=always)
    for time in (0.0, 7.0, 17.5):
        np.testing.assert_allclose(motion.at(time).wrench, always, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("duration", [2.0, 20.0])
def test_every_robot_can_follow_it(name, duration):
    simulation = RodSimulation(read_rod_robot(name), motion_duration=duration)
    simulation.play(True)
    for k in range(int(200 * duration) + 1):
        assert simulation.step(k / 200).status.name == "OK", k


def test_it_is_smaller_only_where_a_robot_cannot_follow_it():
    for name in NAMES:
        robot = read_rod_robot(name)
        tracker = Tracker(robot)
        start = tracker.start().solution
        motion = DemoMotion(robot, start.pose, start.q, start.stiffness)
        motion.fit(tracker, tracker.save())
        assert motion.scale == (0.25 if name == "planar_rfr_fr" else 1.0)
