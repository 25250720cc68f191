"""Joint angles from the lengths of a body image: what it adds to geometry, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import Stretch
from cards_core.control import make_controller
from cards_core.control.mrc.joint_angles import EstimatedAngles, EstimationNoise
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.formats import load

PERIOD = 0.025


def follow(angles, image, tensions, poses, **options):
    """Return the largest error of the angles over poses, but for the first ones."""
    worst = 0.0
    for k, q in enumerate(poses):
        lengths = image.lengths(q, tensions)
        found = angles.step(
            k * PERIOD,
            lengths,
            tensions,
            np.full(q.size, np.nan),
            guess=None,
            period=PERIOD,
        )
        assert found is not None, angles.problem
        if k > 20:
            worst = max(worst, np.abs(found.q - q).max())
    return worst


def poses_of(robot):
    t = np.arange(120)[:, None] * PERIOD
    middle, half = (robot.tree.upper + robot.tree.lower) / 2.0, 0.2
    return middle + half * np.sin(t + np.arange(robot.tree.nq))


def test_lengths_that_tension_stretches_are_taken_for_what_they_are():
    """Wires of 20 um/N under 150 N read 3 mm less: 4 degrees, if nobody knew."""
    robot = load("roboy_arm")
    m = len(robot.muscles)
    rigid = GeometricBodyImage(robot)
    soft = GeometricBodyImage(robot, Stretch(np.full(m, 2e-5), np.zeros(m)))
    tensions = np.linspace(20.0, 150.0, m)
    noise = EstimationNoise(lengths=1e-3)

    def error(image):
        angles = EstimatedAngles(make_dynamics(robot), image, noise)
        return follow(angles, soft, tensions, poses_of(robot))

    assert error(soft) < np.radians(0.3)
    assert error(rigid) > np.radians(1.0)


def test_estimates_come_at_their_rate():
    robot = load("roboy_arm")
    image = GeometricBodyImage(robot)
    angles = EstimatedAngles(make_dynamics(robot), image, EstimationNoise())
    lengths, none = image.lengths(robot.tree.home), np.zeros(len(robot.muscles))
    seen = set()
    for step in range(1001):
        angles.step(1e-3 * step, lengths, none, none[:4], guess=None, period=PERIOD)
        seen.add(angles.time)
    assert len(seen) == 41


def test_a_pose_that_is_only_predicted_counts_for_a_quarter_of_a_second():
    robot = load("roboy_arm")
    image = GeometricBodyImage(robot)
    angles = EstimatedAngles(make_dynamics(robot), image, EstimationNoise())
    lengths, none = image.lengths(robot.tree.home), np.zeros(len(robot.muscles))
    few = lengths.copy()
    few[3:] = np.nan  # of four coordinates

    def known(k, read):
        found = angles.step(k * PERIOD, read, none, none[:4], guess=None, period=PERIOD)
        return found is not None

    assert all(known(k, lengths) for k in range(10))
    assert all(known(k, few) for k in range(10, 20))
    assert not known(20, few)
    assert "fewer muscle lengths and joint sensors than 4 coordinates" in angles.problem
    assert known(21, lengths)


def test_a_robot_with_too_few_muscles_needs_joint_sensors():
    robot = load("musashi_like")
    # nothing is left over the left elbow
    kept = tuple(m for m in robot.muscles if not any(p.link == "left_forearm" for p in m.path))
    few = replace(robot, muscles=kept)
    with pytest.raises(ParameterError, match=r"do not tell left_elbow_.* is 8 of 10"):
        make_controller("mrc", few, joint_angles="estimated")
    sensed = make_controller(
        "mrc", few, joint_angles="estimated", noise=EstimationNoise(joints=1e-3)
    )
    assert not sensed.needs_joints
    assert make_controller("mrc", few).needs_joints


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"lengths": 0.0}, "noise of lengths"),
        ({"offsets": -1.0}, "noise of offsets"),
        ({"joints": np.nan}, "noise of joints"),
        ({"acceleration": 0.0}, "noise of acceleration"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(values, message):
    with pytest.raises(ParameterError, match=message):
        EstimationNoise(**values)


def test_a_pose_comes_from_somewhere():
    with pytest.raises(ParameterError, match="joint_angles is 'guessed'; expected one of"):
        make_controller("mrc", load("musashi_like"), joint_angles="guessed")
