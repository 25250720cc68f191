"""Millard's curves beside numbers of OpenSim 4.6, finite differences and each other."""

import numpy as np
import pytest
from actuator_samples import HILL, actuator_robot

from cards_core.errors import ParameterError
from cards_core.muscles.actuators import ActuatorBank, millard
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.hill import CURVES, curves_of
from cards_core.muscles.command import EXCITATION
from cards_core.robot.actuators import Hill

CURVE = CURVES["millard_2012"]

OPENSIM = {
    "active": (
        (0.5, 0.117653), (0.6, 0.451102), (0.73, 0.806305), (0.8, 0.870677), (0.9, 0.956760),
        (1.1, 0.957376), (1.2, 0.823681), (1.4, 0.543731), (1.6, 0.263662), (0.3, 0.1), (2.0, 0.1),
    ),
    "velocity": (
        (-0.75, 0.051519), (-0.5, 0.158086), (-0.25, 0.387333), (-0.1, 0.625214), (0.0, 1.0),
        (0.1, 1.225154), (0.25, 1.283211), (0.5, 1.331132), (1.0, 1.4), (-1.2, 0.0), (1.3, 1.4),
    ),
    "passive": (
        (0.9, 0.0), (1.1, 0.017045), (1.2, 0.049692), (1.3, 0.126111), (1.4, 0.262890),
        (1.5, 0.460262), (1.6, 0.717070), (1.7, 1.0),
    ),
    "tendon": (
        (0.99, 0.0), (1.01, 0.099678), (1.02, 0.260936), (1.03, 0.479399), (1.04, 0.747449),
        (1.049, 1.0), (1.06, 1.308673),
    ),
}  # fmt: skip


def evaluate(name, x):
    x = np.asarray(x, float)
    if name == "tendon":
        return CURVE.tendon(NUMPY, x, 0.049, CURVE.tendon_stiffness(0.049))
    return CURVE.velocity(NUMPY, x, 1.0) if name == "velocity" else getattr(CURVE, name)(NUMPY, x)


@pytest.mark.parametrize("name", OPENSIM)
def test_values_are_opensims(name):
    x, y = np.array(OPENSIM[name]).T
    np.testing.assert_allclose(evaluate(name, x)[0], y, atol=6e-7)


@pytest.mark.parametrize("name", OPENSIM)
def test_slopes_are_those_of_the_values(name):
    low, high = OPENSIM[name][0][0], max(x for x, _ in OPENSIM[name])
    x = np.linspace(low, high, 400)
    h = 1e-6
    slope = (evaluate(name, x + h)[0] - evaluate(name, x - h)[0]) / (2 * h)
    np.testing.assert_allclose(evaluate(name, x)[1], slope, atol=2e-5 * (1 + abs(slope).max()))
    if name == "velocity":
        bend = (evaluate(name, x + h)[1] - evaluate(name, x - h)[1]) / (2 * h)
        inner = abs(abs(x) - 1.0) > 1e-3
        np.testing.assert_allclose(evaluate(name, x)[2][inner], bend[inner], rtol=1e-3, atol=1e-3)


def test_newtons_method_is_done(monkeypatch):
    x = np.linspace(0.2, 2.0, 5001)
    found = [evaluate(name, x)[0] for name in OPENSIM]
    monkeypatch.setattr(millard, "NEWTON_STEPS", 30)
    for name, values in zip(OPENSIM, found, strict=True):
        np.testing.assert_allclose(values, evaluate(name, x)[0], atol=1e-12)


def test_the_tendons_length_is_the_inverse_of_its_force():
    force = np.linspace(1e-3, 2.0, 200)
    for strain in (0.03, 0.049):
        stiffness = CURVE.tendon_stiffness(strain)
        length = CURVE.tendon_length(NUMPY, force, strain, stiffness)
        np.testing.assert_allclose(
            CURVE.tendon(NUMPY, length, strain, stiffness)[0], force, atol=1e-8
        )


@pytest.mark.parametrize(
    ("length", "activation", "force", "fiber"),
    [
        (0.28, 1.0, 791.486, 0.071686), (0.30, 0.05, 49.999, 0.098784),
        (0.30, 0.5, 494.145, 0.093877), (0.31, 1.0, 1000.0, 0.1002),
        (0.33, 0.5, 457.176, 0.124189), (0.33, 1.0, 863.079, 0.121176),
    ],
)  # fmt: skip
def test_isometric_equilibria_are_opensims(length, activation, force, fiber):
    item = Hill(**HILL, curves="millard_2012", tendon="elastic")
    bank = ActuatorBank(actuator_robot(item), 5e-3, "numeric")
    bank.reset(np.array([length]))
    given = (np.array([length]), np.zeros(1), np.array([EXCITATION]), np.array([activation]))
    for _ in range(300):
        tension = bank.step(*given)[0]
    assert tension == pytest.approx(force, rel=1e-4)
    assert bank.state_values[1] == pytest.approx(fiber, rel=1e-4)


def test_constants_of_a_muscle_reach_its_curves():
    thelen = curves_of(
        Hill(**HILL, curves="thelen_2003", active_width=0.5, passive_growth=4.0,
             passive_strain=0.7, velocity_shape=0.3, lengthening_force=1.8)
    )  # fmt: skip
    x = np.array([1.3])
    assert thelen.active(NUMPY, x)[0] == pytest.approx(np.exp(-(0.3**2) / 0.5))
    assert thelen.passive(NUMPY, x)[0] == pytest.approx(np.expm1(4 * 0.3 / 0.7) / np.expm1(4.0))
    assert thelen.velocity(NUMPY, np.array([-0.2]), 1.0)[0] == pytest.approx(
        (1 - 0.2) / (1 + 0.2 / 0.3)
    )
    assert thelen.velocity(NUMPY, np.array([1e9]), 1.0)[0] == pytest.approx(1.8)
    own = curves_of(Hill(**HILL, curves="millard_2012", active_floor=0.0, passive_strain=0.6))
    assert own.active(NUMPY, np.array([0.3]))[0] == 0.0
    assert own.passive(NUMPY, np.array([1.6]))[0] == pytest.approx(1.0)
    groote = curves_of(Hill(**HILL, passive_strain=0.7))
    assert groote.passive(NUMPY, np.array([1.7]))[0] == pytest.approx(1.0)


def test_a_passive_curve_of_its_own_goes_where_it_is_told():
    curves = curves_of(
        Hill(**HILL, curves="millard_2012", passive_start=-0.1, passive_strain=0.6,
             passive_foot=0.1, passive_stiffness=4.0, passive_curviness=0.5)
    )  # fmt: skip
    value, slope = curves.passive(NUMPY, np.array([0.85, 0.9, 1.6, 1.7]))
    np.testing.assert_allclose(value, [0.0, 0.0, 1.0, 1.4], atol=1e-12)
    np.testing.assert_allclose(slope[2:], 4.0, rtol=1e-9)
    with pytest.raises(ParameterError, match="'passive_foot' 2 and 'passive_stiffness'"):
        Hill(**HILL, curves="millard_2012", passive_foot=2.0).check()


def test_a_constant_of_another_set_is_refused():
    with pytest.raises(ParameterError, match="'active_width' belongs to curves 'thelen_2003'"):
        Hill(**HILL, active_width=0.5).check()
    with pytest.raises(ParameterError, match="'active_floor' belongs to curves 'millard_2012'"):
        Hill(**HILL, curves="thelen_2003", active_floor=0.1).check()
