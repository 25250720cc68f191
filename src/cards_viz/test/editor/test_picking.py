"""Rays against triangles, compared with closed forms."""

import numpy as np
import pytest

from cards_core.robot.elements import Box, Sphere
from cards_viz.editor.picking import first_hit
from cards_viz.meshes import triangles


def test_rays_hit_the_near_side_of_a_box():
    vertices, faces = triangles(Box(np.array([2.0, 1.0, 4.0])))
    rng = np.random.default_rng(1)
    for _ in range(200):
        origin = 5.0 * rng.normal(size=3)
        origin *= 5.0 / np.linalg.norm(origin)
        direction = rng.uniform(-0.4, 0.4, 3) * [2, 1, 4] - origin
        half = np.array([1.0, 0.5, 2.0])
        # slabs: the latest entry counts
        near = np.max(np.minimum((-half - origin) / direction, (half - origin) / direction))
        hit = first_hit(origin, direction, vertices, faces)
        assert hit == pytest.approx(origin + near * direction, abs=1e-9)


def test_rays_that_miss_or_look_away_hit_nothing():
    vertices, faces = triangles(Sphere(1.0))
    assert first_hit(np.array([0, 0, 3.0]), np.array([0, 1.0, 0]), vertices, faces) is None
    assert first_hit(np.array([0, 0, 3.0]), np.array([0, 0, 1.0]), vertices, faces) is None
    hit = first_hit(np.array([0, 0, 3.0]), np.array([0, 0, -0.1]), vertices, faces)
    assert hit == pytest.approx((0, 0, 1), abs=5e-3)


def test_a_ray_through_a_vertex_hits():
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0.0]])
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    hit = first_hit(np.array([0, 0.5, 1.0]), np.array([0, 0, -1.0]), vertices, faces)
    assert hit == pytest.approx((0, 0.5, 0))
    # in the plane of both: no point is the first
    assert first_hit(np.array([0, -1.0, 0]), np.array([0, 1.0, 0]), vertices, faces) is None
