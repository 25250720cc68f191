"""Parameters of controllers with a quadratic program: defaults, bounds, what -1 means."""

import math
from dataclasses import replace

import numpy as np
import pytest
from control_robots import planar_2r
from hybrid_robots import platform_arm

from cards_core.control import ControlModel, CtcJoint, CtcOperational
from cards_core.control.qp_parameters import (
    damping,
    damping_parameter,
    declared,
    default_of,
    qp_parameters,
    stiffness_parameter,
)
from cards_core.errors import ParameterError
from cards_core.optimize.qp import QP_INFINITY
from cards_core.parameters.declaration import Parameter, ParameterSet

ROBOT = planar_2r()
NAMES = ("joint_1", "joint_2")


def specs_of(robot=ROBOT, controller=CtcJoint, names=NAMES):
    return {spec.name: spec for spec in qp_parameters(controller, robot, names)}


def values_of(**given):
    return declared(ParameterSet(given), list(specs_of().values()))


def test_what_is_not_given_is_what_the_class_takes_without_arguments():
    values = values_of()
    made = CtcJoint(ControlModel(ROBOT, "numeric"), **values)
    plain = CtcJoint(ControlModel(ROBOT, "numeric"))
    assert np.array_equal(made.gains.kp, plain.gains.kp)
    assert np.array_equal(made.gains.kd, plain.gains.kd)
    assert values["solver"] == default_of(CtcJoint, "solver")
    assert values["force_weight"].tolist() == [default_of(CtcJoint, "force_weight")] * 4
    assert values["residual_tolerance"] == default_of(CtcJoint, "residual_tolerance")
    assert values["tension_min"].tolist() == [10.0] * 4
    assert values["tension_max"].tolist() == [100.0] * 4
    assert values["tension_rate"] is None
    assert values_of(tension_rate=1e-3)["tension_rate"] == 1e-3


def test_gains_may_change_while_it_runs_and_be_matrices_and_the_rest_may_not():
    specs = specs_of()
    assert {name for name, spec in specs.items() if spec.live} == {"kp", "kd"}
    assert {name for name, spec in specs.items() if spec.square} == {"kp", "kd"}
    posture = stiffness_parameter(CtcOperational, "posture_kp", NAMES, "the posture")
    assert posture.live
    assert not posture.square
    assert posture.description == "Stiffness of the posture."
    assert "matrix" in specs["kp"].description
    assert not damping_parameter("posture_kd", NAMES, "the posture").square


def test_units():
    assert {name: spec.unit for name, spec in specs_of().items()} == {
        "kp": "1/s^2",
        "kd": "1/s",
        "solver": "",
        "force_weight": "1/N^2",
        "effort_weight": "1/(Nm)^2 or 1/N^2",
        "tension_min": "N",
        "tension_max": "N",
        "tension_rate": "N/s",
        "residual_tolerance": "",
    }


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("kp", 0.0, 0.25e12),  # what a period of a microsecond bears
        ("kd", -1.0, 1e6),
        ("force_weight", 1e-12, 1e20),
        ("tension_min", 0.0, 1e20),
        ("tension_max", 0.0, math.inf),
        ("tension_rate", 0.0, 1e20),
        ("residual_tolerance", 1e-12, 1e20),
    ],
)
def test_bounds(name, least, most):
    spec = specs_of()[name]
    assert np.all(spec.check(least) == least)
    assert np.all(spec.check(most) == most)
    with pytest.raises(ParameterError, match=name):
        spec.check(np.nextafter(least, -2.0))
    if math.isfinite(most):
        with pytest.raises(ParameterError, match=name):
            spec.check(math.inf)
    if name in ("kp", "kd"):
        with pytest.raises(ParameterError, match=name):
            spec.check(np.nextafter(most, math.inf))
    with pytest.raises(ParameterError, match=name):
        spec.check(math.nan)


def test_vectors_have_an_entry_for_each_of_what_they_belong_to():
    specs = specs_of(platform_arm(), names=("a", "b", "c"))
    muscles = [muscle.name for muscle in platform_arm().muscles]
    assert list(specs["kp"].names) == list(specs["kd"].names) == ["a", "b", "c"]
    for name in ("force_weight", "tension_min", "tension_max"):
        assert (list(specs[name].names), specs[name].length) == (muscles, len(muscles))
    assert list(specs["effort_weight"].names) == ["shoulder", "elbow"]
    weight = default_of(CtcJoint, "effort_weight")
    assert specs["effort_weight"].check(specs["effort_weight"].default).tolist() == [weight] * 2
    assert specs["effort_weight"].shown_default == f"{weight:g} each"
    assert specs["tension_max"].shown_default == specs["tension_min"].shown_default
    assert specs["tension_max"].shown_default == "the muscle's"
    with pytest.raises(ParameterError, match="solver"):
        specs["solver"].check("other")


def test_muscles_without_a_largest_tension_have_none_in_the_program():
    muscles = (replace(ROBOT.muscles[0], tension_max=math.inf), *ROBOT.muscles[1:])
    specs = specs_of(replace(ROBOT, muscles=muscles))
    values = declared(ParameterSet({}), list(specs.values()))
    assert values["tension_max"].tolist() == [QP_INFINITY, 100.0, 100.0, 100.0]


# Damping --------------------------------------------------------------------------------------


def test_minus_one_is_critical_damping_for_each_by_itself():
    """The error e, with edd + kd ed + kp e = 0, has a double root: no overshoot."""
    kp = np.array([4.0, 9.0, 16.0])
    assert damping(kp, np.array([-1.0, 7.0, -1.0])).tolist() == [4.0, 7.0, 8.0]
    given = np.array([1.0, 0.0, 2.0])
    assert damping(kp, given) is given
    for stiffness, rate in zip(kp, damping(kp, np.full(3, -1.0)), strict=True):
        roots = np.roots([1.0, rate, stiffness])
        assert roots == pytest.approx([-math.sqrt(stiffness)] * 2)


def test_critical_damping_of_a_matrix_is_twice_its_root():
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(3, 3))
    kp = factor @ factor.T
    kd = damping(kp, np.full(3, -1.0))
    assert kd @ kd == pytest.approx(4.0 * kp)
    assert np.linalg.eigvalsh(kd).min() > 0.0
    given = np.eye(3)
    assert damping(kp, given) is given
    assert damping(kp, np.zeros(3)).tolist() == [0.0] * 3
    with pytest.raises(ParameterError, match=r"kd is \[-1.0, 2.0, -1.0\] beside a matrix kp"):
        damping(kp, np.array([-1.0, 2.0, -1.0]))


def test_each_damping_belongs_to_its_stiffness():
    specs = [
        Parameter(name, [1.0, 1.0], "One.", length=2)
        for name in ("kp", "kd", "posture_kp", "posture_kd")
    ]
    given = {"kp": [4.0, 9.0], "kd": -1.0, "posture_kp": [16.0, 25.0], "posture_kd": [-1.0, 3.0]}
    values = declared(ParameterSet(given), specs)
    assert values["kd"].tolist() == [4.0, 6.0]
    assert values["posture_kd"].tolist() == [8.0, 3.0]
    assert declared(ParameterSet({}), specs[:1])["kp"].tolist() == [1.0, 1.0]
