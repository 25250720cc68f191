"""Parameters of muscle relaxation control: what holds without them, bounds, body images."""

import math

import numpy as np
import pytest

from cards_core.control import ControlModel, controller_parameters, make_controller
from cards_core.control.mrc.joint_angles import EstimationNoise, noise_from, noise_parameters
from cards_core.control.mrc.parameters import IMAGES, made_image, mrc_parameters
from cards_core.control.mrc.relaxation import RelaxationOptions
from cards_core.control.mrc.temperature_safety import TemperatureLimits
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.parameters.declaration import ParameterSet

ROBOT = load("musashi_like")


def specs():
    return {spec.name: spec for spec in mrc_parameters()}


def test_without_parameters_it_relaxes_as_published_and_a_little_more_carefully():
    given = ParameterSet({})
    given.declare(mrc_parameters())
    assert {name: given[name] for name in specs()} == {
        # published, for a period of 8 ms
        "dl_plus": 3e-5,
        "dl_minus": 3e-5,
        "dl_max": 2e-3,
        "dtheta_max": 0.1,
        "tension_min": 30.0,
        "rate": 125.0,
        "estimation_rate": 40.0,
        # ours
        "relaxation": True,
        "resume": 0.9,
        "hold": 0.1,
        "ties": "tension",
        "bias": 10.0,
        "body_image": "geometric",
        "body_image_file": "",
        "learning": False,
        "force_ramp": 1.5,
        "force_max": 200.0,
        "moment_max": 50.0,
        "joint_angles": "measured",
        "length_noise": 2e-4,
        "length_offset": 0.0,
        "joint_noise": 0.0,
        "acceleration_noise": 1.0,
        "soft_temperature": 60.0,
        "hard_temperature": 80.0,
        "heat_rate": 1.25e-4,
    }
    assert [name for name, spec in specs().items() if spec.live] == [
        "relaxation",
        "dl_plus",
        "dl_minus",
        "dl_max",
        "dtheta_max",
        "learning",
    ]
    offered = {spec.name for spec in controller_parameters("mrc", ROBOT)}
    assert set(specs()) == offered


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("dl_plus", 1e-9, 0.1),
        ("dl_minus", 1e-9, 0.1),
        ("dl_max", 1e-9, 0.1),
        ("dtheta_max", 1e-6, 1e20),
        ("resume", 1e-3, 1.0),
        ("hold", 0.0, 60.0),
        ("tension_min", 1e-3, 1e20),
        ("bias", 0.0, 1e20),
        ("rate", 1.0, 1e4),
        ("estimation_rate", 1.0, 1e4),
        ("force_ramp", 0.0, 60.0),
        ("force_max", 1e-300, 1e5),
        ("moment_max", 1e-300, 1e5),
        ("length_noise", 1e-6, 0.1),
        ("length_offset", 0.0, 0.1),
        ("joint_noise", 0.0, 1.0),
        ("acceleration_noise", 1e-3, 1e3),
        ("heat_rate", 1e-300, 1.0),
    ],
)
def test_bounds(name, least, most):
    spec = specs()[name]
    assert (spec.check(least), spec.check(most)) == (least, most)
    below = 0.0 if least == 1e-300 else np.nextafter(least, -1.0)
    for bad in (below, np.nextafter(most, math.inf), math.nan):
        with pytest.raises(ParameterError, match=name):
            spec.check(bad)


def test_choices():
    assert specs()["ties"].choices == ("index", "tension")
    assert specs()["body_image"].choices == tuple(IMAGES) == ("geometric", "polynomial", "learned")
    assert specs()["joint_angles"].choices == ("measured", "estimated")


def test_values_reach_the_controller_under_their_own_names():
    given = {
        "relaxation": False,
        "dl_plus": 1e-5,
        "dl_minus": 2e-5,
        "dl_max": 3e-3,
        "dtheta_max": 0.2,
        "resume": 0.5,
        "hold": 0.25,
        "ties": "index",
        "tension_min": 25.0,
        "bias": 5.0,
        "rate": 250.0,
        "estimation_rate": 50.0,
        "soft_temperature": 50.0,
        "hard_temperature": 70.0,
        "heat_rate": 2e-4,
        "force_max": 12.0,
        "moment_max": 3.0,
        "force_ramp": 0.0,
    }
    model = ControlModel(ROBOT, "numeric")
    made = type(make_controller("mrc", model)).from_parameters(model, ParameterSet(given))
    assert not made.relaxation
    assert made.options == RelaxationOptions(
        dl_plus=1e-5,
        dl_minus=2e-5,
        dl_max=3e-3,
        dtheta_max=0.2,
        resume=0.5,
        hold=0.25,
        ties="index",
        tension_min=25.0,
        period=0.004,
    )
    assert made.limits == TemperatureLimits(soft=50.0, hard=70.0, heat_rate=2e-4)
    assert made.command[0].values.tolist() == [5.0] * len(ROBOT.muscles)
    made.set_contact_force("left_hand", [0.0, 12.0, 0.0], moment=[3.0, 0.0, 0.0])
    assert made.contact_forces.torque(ROBOT.tree.home).any()  # at once
    for force, moment, words in (
        ([0.0, 12.001, 0.0], None, r"force of 'left_hand' is 12.001 N .*force_max, 12 N"),
        ([0.0, 0.0, 0.0], [0.0, 3.001, 0.0], r"moment .* 3.001 Nm .*moment_max, 3 Nm"),
    ):
        with pytest.raises(CardsError, match=words):
            made.set_contact_force("left_hand", force, moment=moment)


def test_noise_has_parameters_of_its_own():
    given = ParameterSet({})
    given.declare(noise_parameters())
    assert noise_from(given) == EstimationNoise()
    given = ParameterSet(
        {"length_noise": 1e-3, "length_offset": 2e-3, "joint_noise": 3e-3, "acceleration_noise": 4}
    )
    given.declare(noise_parameters())
    assert noise_from(given) == EstimationNoise(
        lengths=1e-3, offsets=2e-3, joints=3e-3, acceleration=4.0
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lengths": math.inf}, r"noise of lengths is inf; expected a number > 0 in m$"),
        ({"acceleration": -1.0}, "noise of acceleration is -1.0; .* > 0 in rad/s"),
        ({"offsets": math.inf}, "noise of offsets is inf; expected a number >= 0"),
        ({"joints": -1e-9}, "noise of joints is -1e-09; expected a number >= 0"),
    ],
)
def test_noise_that_makes_no_sense(values, words):
    with pytest.raises(ParameterError, match=words):
        EstimationNoise(**values)


def test_images_by_their_names():
    assert made_image(ROBOT, "geometric", "").kind == "geometric"
    assert made_image(ROBOT, "learned", "").kind == "learned"
    with pytest.raises(ParameterError, match=r"body_image_file is 'x\.npz' with body_image 'geom"):
        made_image(ROBOT, "geometric", "x.npz")
    with pytest.raises(CardsError, match=r"nowhere\.npz"):
        made_image(ROBOT, "learned", "nowhere.npz")
