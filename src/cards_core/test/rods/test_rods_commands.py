"""Commands of rod robots as others send them: what is cleaned, and what is refused."""

import numpy as np
import pytest

from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.commands import ROTATION_TOLERANCE, pose_from
from cards_core.spatial import rotation_exp

PLACE = (0.1, -0.2, 0.4)
TURN = np.array([0.3, -0.5, 0.7])
UNIT = rotation_exp(TURN)
"""Quaternion (w, x, y, z)."""


def test_a_quaternion_becomes_its_rotation():
    angle = np.linalg.norm(TURN)
    x, y, z = TURN / angle
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    rodrigues = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    for quaternion in (UNIT, -UNIT, UNIT.tolist()):
        pose = pose_from(PLACE, quaternion)
        np.testing.assert_allclose(pose[:3, :3], rodrigues, atol=1e-14)
        np.testing.assert_array_equal(pose[:3, 3], PLACE)
        np.testing.assert_array_equal(pose[3], [0, 0, 0, 1])


@pytest.mark.parametrize("share", [-0.99, 0.99])
def test_a_quaternion_that_is_slightly_off_is_put_right(share):
    pose = pose_from(PLACE, (1.0 + share * ROTATION_TOLERANCE) * UNIT)
    np.testing.assert_allclose(pose, pose_from(PLACE, UNIT), atol=1e-14)
    np.testing.assert_allclose(pose[:3, :3].T @ pose[:3, :3], np.eye(3), atol=1e-14)


@pytest.mark.parametrize(
    ("position", "quaternion", "status", "text"),
    [
        (PLACE, np.zeros(4), RodStatus.INVALID, "norm 0; expected 1"),
        (PLACE, 1.01 * UNIT, RodStatus.INVALID, "norm 1.01"),
        (PLACE, (1.0 - 1.01 * ROTATION_TOLERANCE) * UNIT, RodStatus.INVALID, "norm 0.999"),
        (PLACE, [1.0, 0.0, np.nan, 0.0], RodStatus.NOT_FINITE, "NaN"),
        (PLACE, [np.inf, 0.0, 0.0, 0.0], RodStatus.NOT_FINITE, "infinity"),
        ((0.1, np.nan, 0.0), UNIT, RodStatus.NOT_FINITE, "NaN"),
        (PLACE, UNIT[:3], RodStatus.INVALID, "3 + 4 numbers"),
        (PLACE[:2], UNIT, RodStatus.INVALID, "3 + 4 numbers"),
        (PLACE, "up", RodStatus.INVALID, "3 + 4 numbers"),
    ],
)
def test_what_is_no_pose_is_said(position, quaternion, status, text):
    found = pose_from(position, quaternion)
    assert isinstance(found, Finding)
    assert found.status is status
    assert text in found.message
