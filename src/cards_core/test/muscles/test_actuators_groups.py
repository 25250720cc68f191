"""Which model a muscle has, where its states are, and the few numbers of motors and heat."""

from types import SimpleNamespace

import numpy as np
import pytest
from actuator_samples import BRAID, HILL, MIXED, TRIANGLE, WARM, actuator_robot
from scipy.linalg import expm

from cards_core.errors import UnknownNameError
from cards_core.muscles.actuators import motor, thermal
from cards_core.muscles.actuators.arithmetic import NUMPY
from cards_core.muscles.actuators.groups import make_groups, model_type
from cards_core.robot.actuators import (
    Cable,
    Hill,
    Ligament,
    Motor,
    Pneumatic,
    SeriesElastic,
    Thermal,
    Valve,
)

TEMPERATURES = ("winding_temperature", "housing_temperature")


@pytest.mark.parametrize(
    ("actuator", "name"),
    [
        (Cable(), "IdealCable"), (Cable(stiffness=1e4), "ElasticCable"),
        (Cable(motor=Motor()), "MotorCable"),
        (Cable(stiffness=1e4, motor=Motor()), "WoundCable"),
        (SeriesElastic(spring=TRIANGLE), "SeriesElasticUnit"),
        (Pneumatic(**BRAID), "McKibbenMuscle"),
        (Pneumatic(**BRAID, valve=Valve()), "ValveMcKibbenMuscle"),
        (Hill(**HILL), "ElasticTendonMuscle"), (Hill(**HILL, tendon="rigid"), "RigidTendonMuscle"),
        (Ligament(stiffness=1e3, slack_length=0.2), "BlankevoortLigament"),
    ],
)  # fmt: skip
def test_models_of_actuators_with_and_without_temperatures(actuator, name):
    from dataclasses import replace

    model = model_type(actuator)
    assert model.__name__ == name
    assert not set(TEMPERATURES) & set(model.published)
    if actuator.kind == "ligament":
        return
    own = getattr(actuator, "motor", None) is not None
    warm = model_type(replace(actuator, thermal=Thermal() if own else WARM))
    assert warm.__name__ == f"Heated{name}"
    assert warm.published == (*model.published, *TEMPERATURES)
    assert warm.hidden == model.hidden


def test_an_actuator_that_has_no_model():
    with pytest.raises(UnknownNameError, match=r"actuator model.*'rubber'.*cable"):
        model_type(SimpleNamespace(kind="rubber"))


def test_each_state_has_a_place_of_its_own_the_published_ones_first():
    muscles = actuator_robot(*MIXED).muscles
    groups, names, size = make_groups(muscles, 1e-3)
    assert sorted(row for group in groups for row in group.rows) == list(range(len(muscles)))
    places = np.concatenate([group.places.ravel() for group in groups])
    assert sorted(places) == list(range(size))
    for group in groups:
        model = group.model
        shown = len(model.published)
        assert group.places.shape == (shown + len(model.hidden), len(group.rows))
        for row, column in zip(group.rows, group.places.T, strict=True):
            assert [names[place] for place in column[:shown]] == [
                f"{muscles[row].name}/{state}" for state in model.published
            ]
            assert all(place >= len(names) for place in column[shown:])


def test_a_motor_seen_at_its_cable():
    one = Motor(
        torque_constant=0.02, gear_ratio=50.0, gear_efficiency=0.8, dry_friction=1e-3,
        viscous_friction=1e-5, friction_speed=4.0, resistance=0.7, voltage=12.0, max_current=3.0,
    )  # fmt: skip
    found = motor.parameters(one, 0.01)
    assert found["gain"] == pytest.approx(100.0)  # 5000 radians a metre
    assert found["dry"] == pytest.approx(5.0)
    assert found["viscous"] == pytest.approx(250.0)
    assert found["sharpness"] == pytest.approx(1250.0)
    # what goes in while it winds, and what is left while it pays out
    assert 1.0 + found["winding_loss"] == pytest.approx(1.0 / 0.8)
    assert 1.0 - found["paying_loss"] == pytest.approx(0.8)
    assert (found["resistance"], found["voltage"], found["max_current"]) == (0.7, 12.0, 3.0)


def test_copper_grows_by_its_coefficient_and_is_never_without_resistance():
    p = SimpleNamespace(resistance=2.0, copper=0.0039)
    temperatures = np.array([25.0, 125.0, -273.0, -1e4])
    found = thermal.resistance(NUMPY, p, temperatures)
    assert found[:2] == pytest.approx([2.0, 2.0 * 1.39])
    assert found[2:] == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize("dt", [1e-3, 0.1, 30.0])
def test_a_step_of_two_nodes_is_the_matrix_exponential(dt):
    given = Thermal(
        winding_heat_capacity=8.0, housing_heat_capacity=50.0, winding_resistance=0.5,
        housing_resistance=4.0, ambient=20.0,
    )  # fmt: skip
    a = np.array([[-1 / 4.0, 1 / 4.0, 1 / 8.0], [1 / 25.0, -1 / 25.0 - 1 / 200.0, 0], [0, 0, 0]])
    exact = expm(dt * a)
    p = SimpleNamespace(**thermal.parameters(given, dt))
    winding, housing = thermal.advance(p, 90.0, 40.0, 5.0)
    expected = 20.0 + (exact @ [70.0, 20.0, 5.0])[:2]
    assert [winding, housing] == pytest.approx(expected, rel=1e-10)
    assert (p.ambient, p.copper) == (20.0, 0.0039)
