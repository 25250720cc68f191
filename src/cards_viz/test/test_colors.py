import math

import matplotlib as mpl
import numpy as np
import pytest

from cards_viz.colors import TensionScale, colors, css, css_gradient, linear_light, nice_ceiling


def test_it_is_the_lower_part_of_plasma():
    x = np.linspace(0.0, 1.0, 101)
    reference = mpl.colormaps["plasma"](0.86 * x)[:, :3]
    assert np.abs(colors(x) / 255.0 - reference).max() < 0.02


def test_lightness_grows():
    rgb = linear_light(colors(np.linspace(0.0, 1.0, 50))).astype(float)
    luminance = rgb @ (0.2126, 0.7152, 0.0722)
    # bytes are coarse at the dark end: no step back by more than one of them
    assert np.diff(luminance).min() > -0.6
    assert luminance[-1] > 20 * luminance[0]


def test_clamped_and_not_finite():
    rgb = colors(np.array([-1.0, 0.0, 1.0, 7.0, np.nan, np.inf]))
    assert (rgb[0] == rgb[1]).all()
    assert (rgb[2] == rgb[3]).all()
    assert rgb[4].tolist() == rgb[5].tolist() == [128, 128, 128]


def test_css():
    assert css((0, 128, 255)) == "#0080ff"
    assert css_gradient().startswith("linear-gradient(to right, #0d0887, ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1.0, 1.0), (1.01, 1.5), (7.0, 8.0), (8.1, 10.0), (0.03, 0.03), (0.031, 0.04), (450, 500)],
)
def test_nice_ceiling(value, expected):
    assert nice_ceiling(value) == pytest.approx(expected)


@pytest.mark.parametrize("value", [0.0, -3.0, math.nan, math.inf])
def test_nice_ceiling_of_nothing(value):
    assert nice_ceiling(value) == 1.0


def test_scale_grows_to_round_numbers_up_to_the_limit():
    scale = TensionScale(0.0, 40.0, 100.0)
    assert not scale.include(np.array([10.0, 40.0]))
    assert scale.include(np.array([41.0, np.nan]))
    assert scale.high == 50.0
    assert not scale.include(np.array([1.0]))
    assert scale.include(np.array([93.0]))
    assert scale.high == 100.0
    assert not scale.include(np.array([140.0]))
    assert not scale.include(np.array([np.nan]))
    np.testing.assert_allclose(scale.fraction(np.array([0.0, 25.0, 100.0])), [0.0, 0.25, 1.0])
