"""All paths over a convex surface: how many there are, and that each is one."""

import numpy as np
import pytest
from taut_string import ClosedTorus, taut_length

from cards_core.paths.wrapping.chains import from_guess, is_minimum, path_length
from cards_core.paths.wrapping.mesh import smooth_hull
from cards_core.paths.wrapping.path_newton import Placed
from cards_core.paths.wrapping.shooting import horizon, shoot
from cards_core.paths.wrapping.surfaces import EllipsoidSurface, TorusSurface

CORNERS = np.array(
    [[x, y, z] for x in (-0.06, 0.06) for y in (-0.05, 0.05) for z in (-0.03, 0.03)]
)
SURFACES = {
    "ellipsoid": EllipsoidSurface([0.08, 0.05, 0.06]),
    "torus": TorusSurface(0.06, 0.02, closed=True),
    "mesh": smooth_hull(CORNERS),
}


def blocked_ends(surface, rng):
    """Two points whose straight line runs through the surface."""
    while True:
        p, q = (x / np.linalg.norm(x) * rng.uniform(0.12, 0.3) for x in rng.normal(size=(2, 3)))
        heights = [surface.height(p + f * (q - p)) for f in np.linspace(0.0, 1.0, 41)]
        if heights[0] > 0.0 < heights[-1] and min(heights) < -2e-3:
            return p, q


@pytest.mark.parametrize("name", SURFACES)
def test_rays_touch_at_the_horizon(name):
    surface, rng = SURFACES[name], np.random.default_rng(1)
    for _ in range(5):
        p, _ = blocked_ends(surface, rng)
        for azimuth in np.linspace(0.0, 2.0 * np.pi, 7):
            x = horizon(surface, p, azimuth)
            assert abs(surface.height(x)) < 1e-9
            # of a mesh by golden sections
            assert abs(surface.normal(x) @ (x - p)) < (1e-6 if name == "mesh" else 1e-9)


@pytest.mark.parametrize("name", SURFACES)
def test_minima_and_saddles_take_turns(name):
    """On a circle of azimuths they do (Morse): a path that was missed would leave one over."""
    surface, rng = SURFACES[name], np.random.default_rng(2)
    here = Placed(surface, np.eye(3), np.zeros(3))
    for _ in range(6 if name != "mesh" else 2):
        p, q = blocked_ends(surface, rng)
        found = [from_guess(here, guess, p, q) for guess in shoot(surface, p, q)]
        assert all(solved and path.length > 0.0 for path, solved in found)
        minima = [is_minimum(p, q, path) for path, _ in found]
        assert len(found) >= 2
        assert 2 * sum(minima) == len(found)
        lengths = sorted(path_length(p, q, path) for path, _ in found)
        assert np.diff(lengths).min() > 1e-9  # none twice


def test_the_least_over_a_torus_is_that_of_a_string():
    """Pulled tight over the hull from where each minimum lies; a string knows no geodesics."""
    surface, rng = SURFACES["torus"], np.random.default_rng(3)
    here, shape = Placed(surface, np.eye(3), np.zeros(3)), ClosedTorus(0.06, 0.02)
    for _ in range(3):
        p, q = blocked_ends(surface, rng)
        for guess in shoot(surface, p, q):
            path, _ = from_guess(here, guess, p, q)
            if is_minimum(p, q, path):
                off = 0.5 * (path.start + path.end) - 0.5 * (p + q)
                string = taut_length(shape, p, q, 1.2 * off)
                assert string == pytest.approx(path_length(p, q, path), abs=1e-4)


def test_symmetric_paths_lie_on_rays():
    """In a plane of symmetry the angle is exactly 0 there."""
    surface = EllipsoidSurface([0.022, 0.03, 0.024])
    p, q = np.array([-0.02, 0.0, 0.25]), np.array([-0.0023, 0.0, -0.0304])
    here = Placed(surface, np.eye(3), np.zeros(3))
    found = [from_guess(here, guess, p, q)[0] for guess in shoot(surface, p, q)]
    flat = [path for path in found if abs(path.start[1]) < 1e-12]
    assert len(found) == 4
    assert sorted(np.sign([path.start[0] for path in flat])) == [-1.0, 1.0]
    assert all(is_minimum(p, q, path) for path in flat)
