"""Ellipsoids with a side point: the shortest path on that side, continuous while there is one."""

import numpy as np
import pytest
from geodesic_cases import lengths_and_arms, path_robot, paths_robot, pose_matrix
from taut_string import taut_string

from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Ellipsoid
from cards_core.spatial import Pose

SIDE = np.array([0.0, 0.3, 0.0])
STEP = 0.005
ANGLES = np.arange(-0.58, 0.3, STEP)
"""Of the arm, [rad]: the way round on the side asked for becomes the longer one at -0.29."""


def arm():
    shape, pose = (
        Ellipsoid(np.array([0.05, 0.08, 0.1])),
        Pose.from_xyz_rpy([0, 0, 0], [0.2, 0.1, 0.3]),
    )
    return path_robot((-0.3, 0.05, 0.01), [(shape, pose, {"side": SIDE})], (0.25, 0.03, 0.0))


def swing(robot, angles, backend="compiled", *, reset=False):
    """Return lengths and their derivatives by the angle of the arm, shape (k, m) each."""
    paths = GeodesicPaths(robot, backend)
    lengths, arms = [], []
    for angle in angles:
        if reset:
            paths.reset()
        poses = pose_matrix([0.0, 0.0, angle])
        length, arm = lengths_and_arms(robot, paths.solve(poses), poses)
        lengths.append(length)
        arms.append(arm[:, 5])
    assert paths.failures == 0
    return np.array(lengths), np.array(arms)


def test_nothing_jumps_where_the_way_round_becomes_the_longer_one():
    lengths, arms = swing(arm(), ANGLES)
    # trapezoidal rule: its error is step^3/12 times the second derivative of the arm
    predicted = 0.5 * STEP * (arms[1:] + arms[:-1])
    assert np.abs(np.diff(lengths, axis=0) - predicted).max() < 1e-6
    h = 1e-5
    for angle in (-0.5, -0.31, -0.29, -0.2, 0.1):
        (low, _, high), (_, here, _) = swing(arm(), [angle - h, angle, angle + h])
        assert (high - low) / (2 * h) == pytest.approx(here, abs=1e-7)


def test_where_the_minimum_ends_a_saddle_is_taken():
    """The minimum and a saddle beside it become one at -0.5835 rad: what follows is no minimum."""
    before = swing(arm(), [-0.583])[0]
    assert before[0, 0] == pytest.approx(0.594584, abs=1e-6)
    # no other path is near: curvature of the length grows without bound there
    rates = [swing(arm(), [angle])[1][0, 0] for angle in (-0.563, -0.573, -0.583)]
    assert abs(rates[2] - rates[1]) > 1.5 * abs(rates[1] - rates[0])
    angles = np.arange(-0.584, -0.8, -0.004)
    lengths = swing(arm(), angles)[0]
    assert lengths[0, 0] == pytest.approx(0.600892, abs=1e-6)
    h = 1e-5
    for angle in angles[::18]:
        (low, _, high), (_, middle, _) = swing(arm(), [angle - h, angle, angle + h])
        assert (high - low) / (2 * h) == pytest.approx(middle, abs=1e-7)


def test_the_path_follows_from_the_pose_alone():
    robot = arm()
    lengths, arms = swing(robot, ANGLES)
    for again in (
        swing(robot, ANGLES, reset=True),
        [x[::-1] for x in swing(robot, ANGLES[::-1])],
    ):
        assert again[0] == pytest.approx(lengths, abs=1e-9)
        assert again[1] == pytest.approx(arms, abs=1e-8)


def test_backends_agree():
    lengths, arms = swing(arm(), ANGLES[::16])
    other, others = swing(arm(), ANGLES[::16], "numeric")
    assert other == pytest.approx(lengths, abs=1e-10)
    assert others == pytest.approx(arms, abs=1e-9)


def lying(pose, shape, p, q):
    """Return the length of a string pulled tight from the side, and if it stayed there."""
    inward = pose.inverse()
    p, q, side = (inward.apply(x) for x in (p, q, SIDE))
    across = side - (side @ (q - p)) * (q - p) / ((q - p) @ (q - p))
    x = taut_string(shape, p, q, 0.5 * across / np.linalg.norm(across), links=160)
    y, line = x / shape.radii, (q - p) / shape.radii
    off = y[len(y) // 2] - y[0]
    off = off - (off @ line) * line / (line @ line)
    length = float(np.linalg.norm(np.diff(x, axis=0), axis=1).sum())
    return length, float(off @ (side / shape.radii)) > 0.0


@pytest.mark.parametrize("angle", [-0.5, -0.35, -0.3, -0.2, 0.0])
def test_a_string_pulled_tight_is_as_long(angle):
    robot = arm()
    surface = robot.wrap_surfaces[0]
    p, q = (robot.muscles[0].path[k].position for k in (0, -1))
    q = pose_matrix([0.0, 0.0, angle])[0, :3, :3] @ q
    tight, stays = lying(surface.pose, surface.geometry, p, q)
    assert stays
    assert swing(robot, [angle])[0][0, 0] == pytest.approx(tight, abs=5e-5)


def test_no_string_on_that_side_is_shorter():
    """Random ellipsoids in the way of a line that passes about the centre."""
    rng = np.random.default_rng(20)
    paths = [
        (
            np.array([-0.3, 0.0, 0.0]) + rng.uniform(-0.04, 0.04, 3),
            [
                (
                    Ellipsoid(rng.uniform(0.04, 0.12, 3)),
                    Pose.from_xyz_rpy(rng.uniform(-0.02, 0.02, 3), rng.uniform(-1.0, 1.0, 3)),
                    {"side": SIDE},
                )
            ],
            np.array([0.27, 0.0, 0.0]) + rng.uniform(-0.04, 0.04, 3),
        )
        for _ in range(24)
    ]
    lengths = swing(paths_robot(paths), [0.0])[0][0]
    stayed = 0
    for (p, [(shape, pose, _)], q), length in zip(paths, lengths, strict=True):
        tight, stays = lying(pose, shape, p, q)
        stayed += stays
        if stays:
            assert length < tight + 5e-5
    assert stayed >= 12


def near_round():
    """An arm whose shortest way moves off the side on which no other minimum is left."""
    shape = Ellipsoid(np.array([0.0535, 0.0636, 0.059]))
    pose = Pose.from_xyz_rpy([-0.005, -0.002, -0.005], [-0.78, -0.59, -0.43])
    side = np.array([0.143, 0.039, 0.038])
    start, end = (-0.022, -0.015, 0.166), (0.057, 0.022, -0.137)
    return path_robot(start, [(shape, pose, {"side": side})], end)


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_without_a_path_on_the_side_the_minimum_off_it_is_taken(backend):
    """There are two geodesics: by shooting, this minimum and a saddle 12.6 mm longer."""
    robot = near_round()
    paths = GeodesicPaths(robot, backend)
    for angle, length in ((0.285, 0.33545958), (0.305, 0.33504763), (0.36, 0.33320716)):
        poses = pose_matrix([0.0, angle, 0.0])
        found = lengths_and_arms(robot, paths.solve(poses), poses)[0][0]
        assert found == pytest.approx(length, abs=1e-7)
    assert paths.failures == 0


def test_lengths_do_not_flicker_there():
    """Jumps are those by which a minimum leaves the side or ends, all below half a millimetre."""
    angles = np.arange(0.2, 0.4, 0.002)
    robot = near_round()
    paths = GeodesicPaths(robot)
    lengths, arms = [], []
    for angle in angles:
        poses = pose_matrix([0.0, angle, 0.0])
        length, arm = lengths_and_arms(robot, paths.solve(poses), poses)
        lengths.append(length[0])
        arms.append(arm[0, 4])
    predicted = 0.001 * (np.array(arms[1:]) + arms[:-1])
    assert np.abs(np.diff(lengths) - predicted).max() < 5e-4
    assert paths.failures == 0
