"""Parameters, references, statuses: what both controllers share."""

import math
from dataclasses import replace

import numpy as np
import pytest
from control_robots import (
    ball_arm,
    fixed_point,
    hanging_platform,
    model_of,
    planar_2r,
    roboy_arm,
    step,
)

from cards_core.control import (
    Controller,
    ControlModel,
    ControlStatus,
    CtcJoint,
    CtcOperational,
    make_controller,
)
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.optimize.qp import QpStatus

KINDS = pytest.mark.parametrize("kind", ["ctc_joint", "ctc_operational"])


@pytest.fixture(scope="module")
def planar():
    return make_dynamics(planar_2r())


def controller(kind, dynamics, **parameters):
    if kind == "ctc_operational" and dynamics.robot.name == "planar_2r":
        parameters.setdefault("axes", "xz")
    return make_controller(kind, model_of(dynamics), **parameters)


def test_kinds_are_listed(planar):
    with pytest.raises(UnknownNameError, match=r"ctc_joints.*ctc_joint, ctc_operational"):
        make_controller("ctc_joints", model_of(planar))


@KINDS
def test_unknown_parameters_are_listed(kind, planar):
    with pytest.raises(UnknownNameError, match=rf"parameter of {kind} named 'Kp'.*kp, kd, solver"):
        make_controller(kind, model_of(planar), Kp=3.0)


@KINDS
def test_controllers_follow_the_protocol(kind, planar):
    item: Controller = controller(kind, planar)
    assert item.kind == kind
    assert len(item.reference_names) == 2


@KINDS
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 2.0, 3.0], "kp has 3 values; expected one number or 2: "),
        ([[1.0, 2.0]], "kp is a 1 x 2 matrix; expected 2 x 2"),
        (-1.0, r"is -1.0; expected a finite number >= 0"),
        ([1.0, math.nan], r"kp of '.*' is nan; expected a finite number"),
        ([math.inf, 1.0], r"kp of '.*' is inf"),
        ("high", "kp is 'high'; expected one number or 2"),
        (None, "kp of '.*' is nan"),
    ],
)
def test_gains_are_checked_and_nothing_changes(kind, planar, value, message):
    item = controller(kind, planar, kp=[5.0, 6.0], kd=[1.0, 2.0])
    with pytest.raises(ParameterError, match=message):
        item.set_gains(value, 3.0)
    with pytest.raises(ParameterError, match=message.replace("kp", "kd")):
        item.set_gains(7.0, value if value is not None else math.nan)
    np.testing.assert_array_equal(item.gains.kp, [5.0, 6.0])
    np.testing.assert_array_equal(item.gains.kd, [1.0, 2.0])


@KINDS
def test_damping_is_critical_unless_given(kind, planar):
    item = controller(kind, planar, kp=[100.0, 400.0])
    np.testing.assert_allclose(item.gains.kd, [20.0, 40.0])
    item.set_gains(2000.0, 90.0)
    np.testing.assert_array_equal(item.gains.kp, 2000.0)
    np.testing.assert_array_equal(item.gains.kd, 90.0)


@KINDS
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"force_weight": 0.0}, "force_weight of 'cable_1' is 0.0; expected a finite number > 0"),
        ({"force_weight": [1.0, 2.0]}, "force_weight has 2 values; expected one number or 4"),
        ({"residual_tolerance": 0.0}, "residual_tolerance"),
        ({"residual_tolerance": [1.0]}, "residual_tolerance is .*; expected one number"),
        ({"tension_min": 5.0}, r"tension_min of 'cable_1' is 5 N; .*limits 10..100 N"),
        ({"tension_max": [90, 90, 101, 90]}, "tension_max of 'cable_3' is 101 N"),
        (
            {"tension_min": 60.0, "tension_max": 50.0},
            "tension_min of 'cable_1' is 60 N, above its tension_max 50 N",
        ),
        ({"tension_rate": 0.0}, "tension_rate of 'cable_1' is 0.0"),
    ],
)
def test_common_parameters_are_checked(kind, planar, parameters, message):
    with pytest.raises(ParameterError, match=message):
        controller(kind, planar, **parameters)


@KINDS
def test_unknown_solver_is_refused(kind, planar):
    with pytest.raises(UnknownNameError, match="daqp, osqp"):
        controller(kind, planar, solver="quadprog")


@KINDS
def test_infinite_tension_limits_mean_no_limit(kind):
    robot = planar_2r()
    muscles = tuple(replace(m, tension_max=math.inf) for m in robot.muscles)
    item = controller(kind, make_dynamics(replace(robot, muscles=muscles)))
    assert step(item, 0.0, np.array([-0.5, 0.5]), np.zeros(2)).status is ControlStatus.OK


@KINDS
def test_references_of_the_wrong_size_are_refused(kind, planar):
    item = controller(kind, planar)
    with pytest.raises(ParameterError, match="reference has 3 coordinates; expected 2: "):
        item.set_reference(fixed_point(np.zeros(3), 2))
    with pytest.raises(ParameterError, match=r"shapes \(2,\), \(1,\), \(1,\)"):
        item.set_reference(fixed_point(np.zeros(2), 1))
    with pytest.raises(ParameterError, match="start"):
        item.set_reference(None, start=math.nan)


@KINDS
def test_without_reference_the_place_of_the_first_step_is_held(kind, planar):
    item = controller(kind, planar, kp=100.0)
    first, later = np.array([-0.5, 0.5]), np.array([-0.4, 0.45])
    held = step(item, 0.0, first, np.zeros(2)).desired.copy()
    np.testing.assert_array_equal(item.output.error, 0.0)
    out = step(item, 1.0, later, np.zeros(2))
    np.testing.assert_array_equal(out.desired, held)
    assert np.abs(out.error).min() > 0.01
    item.reset()
    np.testing.assert_array_equal(step(item, 2.0, later, np.zeros(2)).error, 0.0)


@KINDS
def test_the_place_of_an_invalid_state_is_not_held(kind, planar):
    """Its forces are not numbers: what it says of the place is not to be trusted either."""
    item = controller(kind, planar, kp=100.0)
    wrong, later = np.array([-0.5, 0.5]), np.array([-0.4, 0.45])
    with np.errstate(all="ignore"):
        assert step(item, 0.0, wrong, np.full(2, 1e149)).status is ControlStatus.INVALID_STATE
    out = step(item, 1.0, later, np.zeros(2))
    np.testing.assert_array_equal(out.error, 0.0)
    np.testing.assert_array_equal(out.desired, out.actual)
    # what was held before goes on being held
    with np.errstate(all="ignore"):
        assert step(item, 2.0, wrong, np.full(2, 1e149)).status is ControlStatus.INVALID_STATE
    held = item.place(later, np.zeros(2))
    np.testing.assert_array_equal(step(item, 3.0, wrong, np.zeros(2)).desired, held)


@KINDS
def test_the_first_step_after_a_reset_is_not_bound_by_the_tensions_before(kind, planar):
    q, qd = np.array([-0.4, 0.45]), np.zeros(2)

    def made():
        item = controller(kind, planar, kp=100.0, tension_rate=5.0)
        item.set_reference(fixed_point(item.place(q, qd) + 0.3, 2))
        return item

    free = step(made(), 0.0, q, qd).tensions.copy()
    item = made()
    item.set_reference(fixed_point(item.place(q, qd) - 0.3, 2))
    before = step(item, 0.0, q, qd).tensions.copy()
    item.set_reference(fixed_point(item.place(q, qd) + 0.3, 2))
    bound = step(item, 1e-3, q, qd).tensions.copy()
    assert np.abs(bound - before).max() <= 5e-3 + 1e-9
    assert np.abs(free - before).max() > 1.0
    item.reset()
    np.testing.assert_allclose(step(item, 2e-3, q, qd).tensions, free, rtol=1e-9)


@KINDS
def test_references_start_when_told(kind, planar):
    item = controller(kind, planar)
    asked = []

    class Clock:
        size, duration = 2, 1.0

        def __call__(self, t):
            asked.append(t)
            return np.zeros(2), np.zeros(2), np.zeros(2)

    item.set_reference(Clock(), start=3.0)
    step(item, 5.5, np.array([-0.5, 0.5]), np.zeros(2))
    assert asked[-1] == 2.5


@KINDS
@pytest.mark.parametrize("backend", ["compiled", "numeric"])
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_states_that_are_not_finite_give_minimum_tensions(kind, backend, poison):
    item = controller(kind, make_dynamics(planar_2r(), backend))
    q, qd = np.array([-0.5, 0.5]), np.zeros(2)
    for bad_q, bad_qd in ((np.array([poison, 0.0]), qd), (q, np.array([0.0, poison]))):
        out = step(item, 0.0, bad_q, bad_qd)  # first of all, so nothing to repeat either
        assert out.status is ControlStatus.INVALID_STATE
        assert math.isnan(out.residual)
        np.testing.assert_array_equal(out.tensions, 10.0)
        good = step(item, 0.1, q, qd)
        assert good.status is ControlStatus.OK
        assert np.isfinite(good.tensions).all()
        assert good.tensions.max() > 11.0


@KINDS
def test_references_that_are_not_finite_give_minimum_tensions(kind, planar):
    item = controller(kind, planar)
    item.set_reference(fixed_point(np.array([math.nan, 0.0]), 2))
    out = step(item, 0.0, np.array([-0.5, 0.5]), np.zeros(2))
    assert out.status is ControlStatus.INVALID_STATE
    np.testing.assert_array_equal(out.tensions, 10.0)


@KINDS
def test_solver_failures_are_reported_and_bridged(kind, planar, monkeypatch):
    item = controller(kind, planar)
    item.step_in_python()  # the solver that fails is that of the NumPy form
    q, qd = np.array([-0.5, 0.5]), np.zeros(2)
    good = step(item, 0.0, q, qd).tensions.copy()
    for program in (item._program._exact, item._program._near):
        nan = np.full(program.n, np.nan)
        monkeypatch.setattr(program, "_solve", lambda _, x=nan: (QpStatus.NUMERICAL, x, 0))
    out = step(item, 0.1, q, qd)
    assert out.status is ControlStatus.FALLBACK
    np.testing.assert_allclose(out.tensions, good, atol=1e-2)


@KINDS
def test_outputs_are_within_the_limits_to_the_last_bit(kind):
    """Hosts refuse a command that is outside its limits by one unit in the last place."""
    dynamics = make_dynamics(roboy_arm())
    item = controller(kind, dynamics)
    rng = np.random.default_rng(1)
    low = np.array([m.tension_min for m in dynamics.robot.muscles])
    up = np.array([m.tension_max for m in dynamics.robot.muscles])
    for k in range(300):
        item.reset()
        out = step(item, 0.01 * k, dynamics.tree.random(rng), rng.normal(size=4))
        assert np.isfinite(out.tensions).all()
        assert np.all((out.tensions >= low) & (out.tensions <= up))


@KINDS
@pytest.mark.parametrize("robot", [roboy_arm(), planar_2r(), hanging_platform()])
def test_no_state_makes_the_solver_fail(kind, robot):
    """Jumps to anywhere, at up to 30 rad/s, with goals out of reach and warm starts from before.

    Where all of it is soft, the solver has no excuse: the tensions are optimal or the status lies.
    """
    dynamics = make_dynamics(robot)
    tree, rng = dynamics.tree, np.random.default_rng(3)
    item = controller(kind, dynamics)
    rates = item.output.error.size
    for _ in range(25):
        q, qd = tree.random(rng), 10.0 ** rng.uniform(-2, 1) * rng.normal(size=tree.nv)
        goal = tree.random(rng)
        if kind == "ctc_operational":
            goal = dynamics.operational(goal, np.zeros(tree.nv)).position.copy()
            goal = goal[[0, 2]] if rates == 2 else goal
        item.set_reference(fixed_point(goal, rates))
        for k in range(20):
            out = step(item, 1e-3 * k, q, qd)
            q = tree.integrate(q, 1e-3 * qd)
            assert out.status < ControlStatus.FALLBACK
            assert np.isfinite(out.tensions).all()


@KINDS
def test_tighter_limits_are_kept(kind, planar):
    item = controller(kind, planar, tension_min=20.0, tension_max=[50.0, 60.0, 70.0, 80.0])
    rng = np.random.default_rng(2)
    for _ in range(50):
        out = step(item, 0.0, rng.uniform(-1, 1, 2), rng.normal(size=2))
        assert np.all((out.tensions >= 20.0) & (out.tensions <= [50.0, 60.0, 70.0, 80.0]))


@KINDS
def test_tension_rate_bounds_every_change(kind, planar):
    item = controller(kind, planar, tension_rate=1000.0)
    free = controller(kind, planar)
    q = np.array([-0.5, 0.5])
    last = step(item, 0.0, q, np.zeros(2)).tensions.copy()
    jump = step(free, 0.0, q, np.zeros(2)).tensions.copy()
    np.testing.assert_allclose(last, jump)  # nothing to start from
    for k in range(1, 30):
        qd = np.array([3.0, -2.0]) * (-1.0 if k > 15 else 1.0)
        tensions = step(item, 1e-3 * k, q, qd).tensions.copy()
        assert np.abs(tensions - last).max() <= 1.0 + 1e-9
        last = tensions
    assert np.abs(step(free, 0.0, q, qd).tensions - jump).max() > 10.0
    item.reset()
    np.testing.assert_allclose(step(item, 0.0, q, np.zeros(2)).tensions, jump, atol=1e-6)


def test_output_arrays_have_the_documented_shapes():
    item = CtcJoint(ControlModel(ball_arm()))
    out = step(item, 0.0, item.dynamics.tree.home, np.zeros(3))
    assert out.desired.shape == out.actual.shape == (4,)
    for array in (out.desired_dot, out.actual_dot, out.error, out.acceleration):
        assert array.shape == (3,)
    assert out.tensions.shape == (8,)
    assert step(item, 0.1, item.dynamics.tree.home, np.zeros(3)) is out


def test_a_robot_without_operational_frame_is_told(planar):
    robot = replace(planar_2r(), operational_frame=None)
    with pytest.raises(UnknownNameError, match=r"operational frame.*tip"):
        CtcOperational(ControlModel(robot))


@KINDS
def test_a_place_is_an_array_of_its_own(kind, planar):
    item = controller(kind, planar)
    first, second = np.array([0.3, -0.2]), np.array([-0.5, 0.4])
    place = item.place(first, np.zeros(2))
    before = place.copy()
    assert np.abs(item.place(second, np.zeros(2)) - before).max() > 0.1
    np.testing.assert_array_equal(place, before)
    assert not np.shares_memory(place, first)
