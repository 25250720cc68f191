"""Laws of springs at their ends, their defaults, and elongations of whole robots."""

from types import SimpleNamespace

import numpy as np
import pytest
from actuator_samples import HILL, actuator_robot
from scipy.integrate import quad

from cards_core.errors import UnknownNameError
from cards_core.muscles.actuators import springs
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.robot.actuators import Hill, SeriesElastic, Spring

CURVED = Spring(law="polynomial", stiffness=4e3, quadratic=1e5, cubic=2e6, travel=0.03)
LAWS = [
    CURVED,
    Spring(law="triangle", stiffness=3e4),
    Spring(law="exponential", force_scale=15.0, growth=350.0),
]


def numbers(spring):
    return SimpleNamespace(**springs.parameters(spring))


def test_what_a_triangle_is_where_nothing_is_said():
    """Those of the MyoMuscle unit, as the description of `Spring` promises."""
    p = numbers(Spring(law="triangle", stiffness=3e4))
    assert (p.k1, p.c1, p.c2, p.c3, p.c4, p.end) == (3e4, 0.012, 0.008, 0.018, 0.039, 0.02)
    given = {"c1": 0.01, "c2": 0.009, "c3": 0.0, "c4": 0.05, "travel": 0.01}
    p = numbers(Spring(law="triangle", stiffness=3e4, **given))
    assert (p.c1, p.c2, p.c3, p.c4, p.end) == (0.01, 0.009, 0.0, 0.05, 0.01)


def test_where_curves_end_if_nothing_is_said():
    assert numbers(Spring(law="exponential", force_scale=15.0, growth=350.0)).end == 10.0 / 350.0
    linear = numbers(Spring(law="polynomial", stiffness=5e3))
    assert (linear.k2, linear.k3) == (0.0, 0.0)
    assert springs.tension(NUMPY, "polynomial", linear, 100.0)[0] == pytest.approx(5e5)


def test_polynomial_and_exponential_in_closed_form():
    d = np.array([0.0, 0.001, 0.01, 0.02])
    tension, slope = springs.tension(NUMPY, "polynomial", numbers(CURVED), d)
    np.testing.assert_allclose(tension, 4e3 * d + 1e5 * d**2 + 2e6 * d**3, rtol=1e-14)
    np.testing.assert_allclose(slope, 4e3 + 2e5 * d + 6e6 * d**2, rtol=1e-14)
    tension, slope = springs.tension(NUMPY, "exponential", numbers(LAWS[2]), d)
    np.testing.assert_allclose(tension, 15.0 * np.expm1(350.0 * d), rtol=1e-12)
    np.testing.assert_allclose(slope, 5250.0 * np.exp(350.0 * d), rtol=1e-12)


@pytest.mark.parametrize("spring", LAWS, ids=lambda s: s.law)
def test_beyond_the_end_curves_go_on_along_their_tangents(spring):
    p = numbers(spring)
    for curve in (springs.tension, springs.elongation):
        last, slope = curve(NUMPY, spring.law, p, p.end)
        for beyond in (0.001, 0.1):
            value, there = curve(NUMPY, spring.law, p, p.end + beyond)
            assert value == pytest.approx(last + slope * beyond, rel=1e-12)
            assert there == pytest.approx(slope, rel=1e-12)


@pytest.mark.parametrize("share", [0.5, 1.0, 1.7])
@pytest.mark.parametrize("spring", LAWS, ids=lambda s: s.law)
def test_energy_is_the_work_of_the_tension_also_beyond_the_end(spring, share):
    p = numbers(spring)

    def power(d):
        tension, stretched = (
            curve(NUMPY, spring.law, p, np.array(d)) for curve in (springs.tension,
                                                                   springs.elongation)
        )  # fmt: skip
        return float(tension[0] * stretched[1])

    expected = quad(power, 0.0, share * p.end, points=[min(share, 1.0) * p.end], epsabs=0.0)[0]
    assert springs.energy(spring.law, p, share * p.end) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("spring", LAWS, ids=lambda s: s.law)
def test_a_slack_spring_has_no_coordinate(spring):
    p = numbers(spring)
    found = springs.coordinate_of_elongation(NUMPY, spring.law, p, np.array([-0.01, 0.0]))
    assert found.tolist() == [0.0, 0.0]
    assert springs.coordinate_of_tension(NUMPY, spring.law, p, np.array([0.0])).tolist() == [0.0]


def test_usual_stiffness_is_that_at_ten_millimetres_or_the_end():
    assert springs.nominal_stiffness(CURVED) == pytest.approx(4e3 + 2e3 + 6e2)
    short = Spring(law="polynomial", stiffness=4e3, quadratic=1e5, travel=0.002)
    assert springs.nominal_stiffness(short) == pytest.approx(4e3 + 4e2)
    assert springs.nominal_stiffness(LAWS[2]) == pytest.approx(5250.0 * np.exp(3.5))


def test_elongations_of_a_robot_are_in_the_rows_of_its_springs():
    robot = actuator_robot(
        SeriesElastic(spring=LAWS[2]),
        Hill(**HILL),
        SeriesElastic(spring=Spring(law="polynomial", stiffness=5e3)),
        SeriesElastic(spring=Spring(law="exponential", force_scale=30.0, growth=200.0)),
    )
    found = springs.Elongations(robot.muscles)
    assert found.rows == [0, 2, 3]
    expected = [np.log(1.0 + 100.0 / 15.0) / 350.0, 0.0, 100.0 / 5e3, np.log1p(100 / 30) / 200.0]
    np.testing.assert_allclose(found(np.full(4, 100.0)), expected, rtol=1e-9)
    assert found(np.full(4, -5.0)).tolist() == [0.0] * 4  # a wire does not push


def test_a_law_that_is_none():
    spring = Spring.__new__(Spring)
    object.__setattr__(spring, "law", "cubic")
    with pytest.raises(UnknownNameError, match=r"law of a spring.*'cubic'.*exponential"):
        springs.parameters(spring)
