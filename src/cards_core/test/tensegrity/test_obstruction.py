"""Cables that run through rods as built."""

import numpy as np
import pytest

from cards_core.tensegrity.obstruction import segment_distance


def test_distance_of_segments_of_any_size():
    rng = np.random.default_rng(2)
    share = np.linspace(0.0, 1.0, 201)[:, None]
    for _ in range(50):
        a, b, c, d = rng.normal(size=(4, 3))
        p, q = a + share * (b - a), c + share * (d - c)
        expected = np.linalg.norm(p[:, None] - q, axis=2).min()
        for unit in (1.0, 1e-4, 1e4):
            points = (unit * x for x in (a, b, c, d))
            assert segment_distance(*points) / unit == pytest.approx(expected, abs=2e-3)
