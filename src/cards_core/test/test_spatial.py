"""Rotations and poses against SciPy and against their own axioms."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cards_core import spatial
from cards_core.spatial import Pose


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def scipy_quaternion(rotation: Rotation) -> np.ndarray:
    return np.roll(rotation.as_quat(), 1)


def test_rotations_match_scipy(rng):
    for _ in range(50):
        rotation = Rotation.random(random_state=int(rng.integers(1 << 30)))
        matrix = rotation.as_matrix()
        quaternion = spatial.matrix_quaternion(matrix)
        reference = scipy_quaternion(rotation)
        np.testing.assert_allclose(abs(quaternion @ reference), 1, atol=1e-12)
        np.testing.assert_allclose(spatial.quaternion_matrix(3 * quaternion), matrix, atol=1e-12)
        np.testing.assert_allclose(spatial.rotation_log(matrix), rotation.as_rotvec(), atol=1e-9)
        vector = rotation.as_rotvec()
        angle = np.linalg.norm(vector)
        np.testing.assert_allclose(
            spatial.axis_rotation(vector / angle, angle), matrix, atol=1e-12
        )
        rpy = rng.uniform(-1.5, 1.5, 3)
        expected = Rotation.from_euler("xyz", rpy).as_matrix()
        np.testing.assert_allclose(spatial.rpy_matrix(*rpy), expected, atol=1e-12)
        np.testing.assert_allclose(spatial.matrix_rpy(expected), rpy, atol=1e-10)


@pytest.mark.parametrize("pitch", [np.pi / 2, -np.pi / 2])
def test_rpy_at_gimbal_lock_gives_the_same_rotation(pitch):
    matrix = spatial.rpy_matrix(0.4, pitch, -0.7)
    np.testing.assert_allclose(spatial.rpy_matrix(*spatial.matrix_rpy(matrix)), matrix, atol=1e-7)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 1e-3, 1.0, np.pi - 1e-9, np.pi])
def test_exp_and_log_are_inverse(angle):
    axis = np.array([0.48, -0.6, 0.64])
    vector = spatial.quaternion_log(spatial.rotation_exp(angle * axis))
    np.testing.assert_allclose(np.linalg.norm(vector), angle, atol=1e-9)
    np.testing.assert_allclose(np.abs(vector), np.abs(angle * axis), atol=1e-9)


def test_half_turns_about_every_axis():
    for axis in np.eye(3):
        matrix = 2 * np.outer(axis, axis) - np.eye(3)
        quaternion = spatial.matrix_quaternion(matrix)
        np.testing.assert_allclose(spatial.quaternion_matrix(quaternion), matrix, atol=1e-14)


def test_product_is_composition(rng):
    a, b = rng.normal(size=(2, 4))
    np.testing.assert_allclose(
        spatial.quaternion_matrix(spatial.quaternion_product(a, b)),
        spatial.quaternion_matrix(a) @ spatial.quaternion_matrix(b),
        atol=1e-12,
    )


def test_pose_composition_and_inverse(rng):
    a = Pose.from_xyz_rpy(rng.normal(size=3), rng.normal(size=3))
    b = Pose.from_xyz_rpy(rng.normal(size=3), rng.normal(size=3))
    points = rng.normal(size=(4, 3))
    np.testing.assert_allclose((a @ b).apply(points), a.apply(b.apply(points)), atol=1e-12)
    np.testing.assert_allclose((a @ b).matrix, a.matrix @ b.matrix, atol=1e-12)
    np.testing.assert_allclose((a @ a.inverse()).matrix, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(
        spatial.hat(points[0]) @ points[1], np.cross(points[0], points[1]), atol=1e-12
    )


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-7, 1e-5])
def test_rpy_near_gimbal_lock_survives_rounding(gap, rng):
    matrix = spatial.rpy_matrix(0.4, np.pi / 2 - gap, -0.7) + 1e-16 * rng.normal(size=(3, 3))
    np.testing.assert_allclose(spatial.rpy_matrix(*spatial.matrix_rpy(matrix)), matrix, atol=2e-11)


def test_only_a_pose_that_moves_nothing_is_the_identity():
    assert Pose().is_identity
    assert Pose(np.eye(3), np.array([0.0, -0.0, 0.0])).is_identity
    assert not Pose(np.eye(3), np.array([0.0, 0.0, 1e-300])).is_identity
    assert not Pose.from_xyz_rpy((0, 0, 0), (0, 0, 1e-15)).is_identity
