"""Temperatures of muscles without a motor: heat k T^2, equations of the muscle unchanged."""

from dataclasses import replace

import numpy as np
import pytest
from actuator_samples import BRAID, HILL, actuator_robot
from scipy.linalg import expm

from cards_core.errors import ParameterError
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import FORCE
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic, Thermal, Valve

DT = 1e-3
PLAIN = (
    Cable(),
    Cable(stiffness=1e5, damping=10.0, winch_speed=0.5),
    Hill(**HILL),
    Hill(**HILL, tendon="rigid"),
    Pneumatic(**BRAID),
    Pneumatic(**BRAID, valve=Valve()),
)
"""Of each model that has no motor, one."""

HEAT = Thermal(
    heat_per_square_force=2e-3,
    winding_heat_capacity=0.02,
    housing_heat_capacity=0.1,
    winding_resistance=0.5,
    housing_resistance=2.0,
    ambient=20.0,
)
"""Quick: time constants of 8 and 250 ms."""


def banks(backend="numeric", thermal=HEAT):
    made = []
    for actuators in (PLAIN, tuple(replace(item, thermal=thermal) for item in PLAIN)):
        made.append(ActuatorBank(actuator_robot(*actuators), DT, backend))
        made[-1].reset(lengths())
    return made


def lengths(t=0.0):
    base = np.array([0.25 if item.kind == "pneumatic" else 0.3 for item in PLAIN])
    return base + 0.005 * np.sin(20.0 * t)


def temperatures(bank):
    named = dict(zip(bank.state_names, bank.state_values, strict=True))
    return np.array(
        [
            [named[f"m{i}/{node}_temperature"] for node in ("winding", "housing")]
            for i in range(len(PLAIN))
        ]
    )


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_heat_changes_no_tension_and_follows_the_matrix_exponential(backend):
    plain, warm = banks(backend)
    c1, c2 = HEAT.winding_heat_capacity, HEAT.housing_heat_capacity
    g1, g2 = 1 / HEAT.winding_resistance, 1 / HEAT.housing_resistance
    block = np.zeros((3, 3))
    block[:2] = [[-g1 / c1, g1 / c1, 1 / c1], [g1 / c2, -(g1 + g2) / c2, 0.0]]
    exact = expm(block * DT)
    expected, stored = np.zeros((len(PLAIN), 2)), []
    put, left = np.zeros(len(PLAIN)), np.zeros(len(PLAIN))
    for i in range(400):
        t = i * DT
        told = (lengths(t), 0.1 * np.cos(20.0 * t) + 0.0 * lengths(), np.full(6, FORCE))
        values = np.full(6, 150.0 + 100.0 * np.sin(30.0 * t))
        tensions = plain.step(*told, values).copy()
        assert warm.step(*told, values).tobytes() == tensions.tobytes()
        heat = HEAT.heat_per_square_force * tensions**2
        before = expected
        expected = before @ exact[:2, :2].T + heat[:, None] * exact[:2, 2]
        assert temperatures(warm) - HEAT.ambient == pytest.approx(expected, rel=1e-9, abs=1e-12)
        put += DT * heat
        left += DT * 0.5 * (before[:, 1] + expected[:, 1]) * g2
        stored.append(c1 * expected[:, 0] + c2 * expected[:, 1])
    assert np.all(put > 0.5)
    assert stored[-1] + left == pytest.approx(put, rel=1e-3)  # trapezoidal rule
    named = [name for name in warm.state_names if not name.endswith("_temperature")]
    assert tuple(named) == plain.state_names
    assert warm.energy() == pytest.approx(plain.energy(), rel=1e-12)
    assert np.array_equal(warm.is_spring, plain.is_spring)
    warm.reset(lengths())
    assert np.all(temperatures(warm) == HEAT.ambient)


def test_temperatures_of_a_held_tension_come_to_rest_where_the_resistances_say():
    _, warm = banks("compiled")
    still = np.zeros(6)
    for _ in range(8000):  # 30 times the slow time constant
        tensions = warm.step(lengths(), still, np.full(6, FORCE), still + 200.0)
    heat = HEAT.heat_per_square_force * tensions**2
    found = temperatures(warm) - HEAT.ambient
    whole = HEAT.winding_resistance + HEAT.housing_resistance
    assert found[:, 1] == pytest.approx(heat * HEAT.housing_resistance, rel=1e-9)
    assert found[:, 0] == pytest.approx(heat * whole, rel=1e-9)


@pytest.mark.parametrize("item", PLAIN, ids=lambda item: item.kind)
def test_where_the_heat_comes_from_must_be_said(item):
    replace(item, thermal=HEAT).check()
    with pytest.raises(ParameterError, match=r"needs 'heat_per_square_force'.*W/N\^2"):
        replace(item, thermal=Thermal()).check()
    with pytest.raises(ParameterError, match="heat_per_square_force"):
        replace(item, thermal=Thermal(heat_per_square_force=-1.0)).check()


def test_passive_tissue_has_no_heat():
    with pytest.raises(TypeError, match="thermal"):
        Ligament(stiffness=1e3, slack_length=0.3, thermal=HEAT)
