"""Cables that run through rods as built."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cards_core.tensegrity.obstruction import segment_distance


def test_distance_of_segments_of_any_size():
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b, c, d = rng.normal(size=(4, 3))

        def apart(s, a=a, b=b, c=c, d=d):
            return np.sum((a + s[0] * (b - a) - c - s[1] * (d - c)) ** 2)

        found = minimize(apart, [0.5, 0.5], bounds=[(0, 1), (0, 1)], tol=1e-14)
        for unit in (1.0, 1e-4, 1e4):
            points = (unit * x for x in (a, b, c, d))
            expected = unit * np.sqrt(found.fun)
            assert segment_distance(*points) == pytest.approx(expected, abs=1e-5 * unit)
