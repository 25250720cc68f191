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
from hybrid_robots import platform_arm

from cards_core.control import (
    Controller,
    ControlModel,
    ControlStatus,
    CtcJoint,
    CtcOperational,
    make_controller,
)
from cards_core.control.impedance import ImpedanceController
from cards_core.control.interface import (
    ControlOutput,
    Gains,
    HoldPoint,
    critical_damping,
    gain,
    is_finite,
    number,
    ordered_product,
    tension_limits,
    vector,
)
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, UnknownNameError
from cards_core.formats import load
from cards_core.optimize.qp import QP_INFINITY, QpStatus

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


# Checked parameters -----------------------------------------------------------------------------


def test_vectors_are_bounded_on_both_sides():
    names = ("a", "b")
    assert vector(2, names, "x").tolist() == [2.0, 2.0]
    assert vector([0.0, 3.0], names, "x").tolist() == [0.0, 3.0]
    assert vector([-2.0, 3.0], names, "x", minimum=-2.0, maximum=3.0).tolist() == [-2.0, 3.0]
    assert vector(1e20, names, "x").tolist() == [1e20, 1e20]
    assert vector((), (), "x").shape == (0,)
    given = np.array([1.0, 2.0])
    assert vector(given, names, "x") is not given
    for value, options, words in (
        (-1e-9, {}, r"x of 'a' is -1e-09; expected a finite number >= 0$"),
        ([1.0, 0.0], {"strict": True}, r"x of 'b' is 0\.0; expected a finite number > 0$"),
        ([1.0, 1.5], {"minimum": 2.0}, r"x of 'a' is 1\.0; expected a finite number >= 2$"),
        ([1.0, 4.0], {"maximum": 3.0}, r"x of 'b' is 4\.0; .* >= 0 and <= 3$"),
        (2e20, {}, r"and <= 1e\+20$"),
        (-2e20, {"minimum": -math.inf}, r"and <= 1e\+20$"),
        (math.nan, {}, r"x of 'a' is nan; expected a finite number >= 0$"),
        (math.inf, {}, r"x of 'a' is inf"),
        ([[1.0, 2.0]], {}, "x has 2 values; expected one number or 2: a, b"),
        ([1.0], {}, "x has 1 values"),
        ({}, {}, "x is {}; expected one number or 2"),
    ):
        with pytest.raises(ParameterError, match=words):
            vector(value, names, "x", **options)


def test_numbers_are_one():
    assert number(3, "x") == 3.0
    assert isinstance(number(3, "x"), float)
    assert number(0.0, "x") == 0.0
    assert number(-5.0, "x", minimum=-5.0) == -5.0
    for value, options in ((0.0, {"strict": True}), (-1.0, {}), (-5.1, {"minimum": -5.0})):
        with pytest.raises(ParameterError, match=r"^x is .* \(expected: a finite"):
            number(value, "x", **options)
    for value in ([1.0], np.ones(1), [[1.0]]):
        with pytest.raises(ParameterError, match="expected one number"):
            number(value, "x")


def test_gains_are_symmetric_and_never_push_away():
    names = ("a", "b")
    good = np.array([[4.0, 1.0], [1.0, 2.0]])
    found = gain(good, names, "kp", 10.0)
    assert np.array_equal(found, good)
    assert found is not good
    assert gain(10.0, names, "kp", 10.0).tolist() == [10.0, 10.0]
    assert gain([[10.0, 0.0], [0.0, 10.0]], names, "kp", 10.0).shape == (2, 2)
    # without a gain in one direction, with a rounding
    flat = np.array([[1.0, 1.0], [1.0, 1.0 - 1e-13]])
    assert gain(flat, names, "kp", 10.0).shape == (2, 2)
    almost = np.array([[4.0, 1.0 + 3e-9], [1.0, 2.0]])
    assert np.array_equal(gain(almost, names, "kp", 10.0), gain(almost, names, "kp", 10.0).T)
    assert gain(np.zeros((2, 2)), names, "kp", 10.0).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    # a matrix of one number is that number
    assert gain([[3.0]], ("a",), "kp", 10.0).tolist() == [3.0]
    for value, words in (
        ([[4.0, 1.0 + 5e-9], [1.0, 2.0]], "kp has 1 for 'a', 'b' and 1 for 'b', 'a'; .*symmetric"),
        ([[4.0, 1.0], [-1.0, 2.0]], "kp has 1 for 'a', 'b' and -1 for 'b', 'a'"),
        ([[1.0, 2.0], [2.0, 1.0]], "kp has the eigenvalue -1; expected a positive definite"),
        ([[1.0, 1.0], [1.0, 1.0 - 1e-11]], "has the eigenvalue -5e-12"),
        ([[-1.0, 0.0], [0.0, 1.0]], "eigenvalue -1"),
        ([[10.1, 0.0], [0.0, 1.0]], "not finite or too large; expected at most 10"),
        ([[-10.1, 0.0], [0.0, 1.0]], "not finite or too large"),
        ([[math.nan, 0.0], [0.0, 1.0]], "not finite or too large"),
        (np.eye(3), "kp is a 3 x 3 matrix; expected 2 x 2: a, b"),
        ([["x", 0.0], [0.0, 1.0]], "expected 2 rows of 2 numbers"),
        (10.1, r"kp of 'a' is 10\.1; .*<= 10"),
    ):
        with pytest.raises(ParameterError, match=words):
            gain(value, names, "kp", 10.0)


def test_critical_damping_is_twice_the_root():
    rng = np.random.default_rng(1)
    factor = rng.normal(size=(4, 4))
    stiffness = factor @ factor.T
    found = critical_damping(stiffness)
    np.testing.assert_allclose(found @ found, 4.0 * stiffness, atol=1e-12)
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    assert np.linalg.eigvalsh(found).min() > 0.0
    assert critical_damping(np.array([0.0, 9.0])).tolist() == [0.0, 6.0]
    # what rounding makes of zero has no root
    assert np.isfinite(critical_damping(np.diag([1.0, -1e-17]))).all()


def test_gains_act_as_matrices_do():
    rng = np.random.default_rng(2)
    error, out = rng.normal(size=3), np.empty(3)
    factor = rng.normal(size=(3, 3))
    matrix = factor @ factor.T
    gains = Gains(("a", "b", "c"), matrix, [1.0, 2.0, 3.0])
    gains.stiffen(error, out)
    np.testing.assert_allclose(out, matrix @ error)
    gains.damp(error, out)
    np.testing.assert_allclose(out, [1.0, 2.0, 3.0] * error)
    gains.set(2.0, None)
    gains.damp(error, out)
    np.testing.assert_allclose(out, 2.0 * math.sqrt(2.0) * error)
    assert gains.period is None


def test_gains_are_bounded_by_a_period_once_it_is_known():
    gains = Gains(("a", "b"), 100.0, 20.0, prefix="posture_")
    with pytest.raises(ParameterError, match=r"posture_kp .* posture_kd .* period of 1000 ms"):
        gains.judge(1.0)
    gains.judge(1e-3)
    gains.period = 1e-3
    gains.set(2000.0, 90.0)
    with pytest.raises(ParameterError, match="posture_kd 2000"):
        gains.set(2000.0, 2000.0)
    assert gains.kd.tolist() == [90.0, 90.0]
    gains.period = None
    gains.set(2000.0, 2000.0)
    # before it is known, the shortest period of any host bounds each alone
    for kp, kd in ((0.26e12, 0.0), (1.0, 1.1e6)):
        with pytest.raises(ParameterError, match="posture_k"):
            gains.set(kp, kd)
    gains.set(0.25e12, 1e6)


def test_ordered_products_sum_from_the_first_term_to_the_last():
    matrix = np.array([[1.0, 1e16, -1e16], [-1e16, 1e16, 1.0]])
    out = np.empty(2)
    ordered_product(matrix, np.ones(3), out)
    assert out.tolist() == [(1.0 + 1e16) - 1e16, 1.0]
    ordered_product(np.empty((2, 0)), np.empty(0), out)
    assert out.tolist() == [0.0, 0.0]


def test_limits_of_tensions_are_within_those_of_the_muscles():
    robot = planar_2r()
    low, high = tension_limits(robot, None, None)
    assert (low.tolist(), high.tolist()) == ([10.0] * 4, [100.0] * 4)
    low, high = tension_limits(robot, 10.0, [100.0, 50.0, 20.0, 10.0])
    assert (low.tolist(), high.tolist()) == ([10.0] * 4, [100.0, 50.0, 20.0, 10.0])
    below, above = np.nextafter(10.0, 0.0), np.nextafter(100.0, 200.0)
    for minimum, maximum, words in (
        ([10.0, 10.0, below, 10.0], None, r"tension_min of 'cable_3' is 10 N; .* 10\.\.100 N"),
        (above, None, "tension_min of 'cable_1' is 100 N"),
        (None, [100.0, above, 100.0, 100.0], "tension_max of 'cable_2' is 100 N"),
        (None, 9.0, "tension_max of 'cable_1' is 9 N"),
        ([10.0, 60.0, 10.0, 10.0], 59.0, "tension_min of 'cable_2' is 60 N, above .* 59 N"),
    ):
        with pytest.raises(ParameterError, match=words):
            tension_limits(robot, minimum, maximum)
    weak = replace(robot.muscles[0], tension_max=math.inf)
    endless = replace(robot, muscles=(weak, *robot.muscles[1:]))
    assert tension_limits(endless, None, None)[1].tolist() == [QP_INFINITY, 100.0, 100.0, 100.0]
    assert tension_limits(endless, None, [QP_INFINITY, 100, 100, 100])[1][0] == QP_INFINITY


@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_too_large_to_be_squared_is_not_finite():
    assert is_finite()
    assert is_finite(np.empty(0), np.array([1e150, -1e150]))
    for bad in (math.nan, math.inf, -math.inf, 1e155):
        assert not is_finite(np.zeros(2), np.array([1.0, bad]))
        assert not is_finite(np.array([bad]), np.zeros(2))


def test_statuses_are_ordered_from_good_to_bad():
    names = ["OK", "JOINT_LIMIT", "INFEASIBLE", "FALLBACK", "INVALID_STATE"]
    assert [(status.name, int(status)) for status in ControlStatus] == list(
        zip(names, range(5), strict=True)  # as in the logs
    )


def test_an_empty_output_is_one_of_zeros():
    out = ControlOutput.empty(4, 1, 7, 6)
    assert (out.tensions.shape, out.efforts.shape) == ((4,), (1,))
    assert out.desired.shape == out.actual.shape == (7,)
    rates = (out.desired_dot, out.actual_dot, out.error, out.acceleration)
    assert [rate.shape for rate in rates] == [(6,)] * 4
    arrays = (out.tensions, out.efforts, out.desired, out.actual, *rates)
    assert not any(array.any() for array in arrays)
    assert (out.time, out.residual, out.iterations, out.solve_time) == (0.0, 0.0, 0, 0.0)
    assert out.status is ControlStatus.OK
    for array in arrays:
        array[:] = 1.0
    assert sum(np.shares_memory(a, b) for a in arrays for b in arrays) == len(arrays)


def test_a_held_point_does_not_move_with_the_array_it_was_made_of():
    place = np.array([1.0, 2.0, 3.0])
    held = HoldPoint(place, 2)
    place[:] = 0.0
    assert (held.size, held.duration) == (3, 0.0)
    for time in (0.0, -1.0, 1e6):
        y, yd, ydd = held(time)
        assert y.tolist() == [1.0, 2.0, 3.0]
        assert (yd.tolist(), ydd.tolist()) == ([0.0, 0.0], [0.0, 0.0])


def test_periods_are_times(planar):
    item = controller("ctc_joint", planar)
    assert item.period is None
    item.set_period(2e-3)
    assert item.period == 2e-3
    for bad in (0.0, -1.0, math.nan, math.inf, None, "x"):
        with pytest.raises(ParameterError, match=rf"^period is {bad} \(expected: .* number > 0 "):
            item.set_period(bad)
    assert item.period == 2e-3


def test_a_robot_without_muscles_to_command_does_not_suit():
    elbow = load("wrap_elbow")
    (ligament,) = (m.actuator for m in elbow.muscles if not m.actuator.accepted_commands)
    passive = tuple(replace(muscle, actuator=ligament) for muscle in planar_2r().muscles)
    robot = replace(planar_2r(), muscles=passive)
    assert CtcJoint.unsuited(planar_2r()) == ""
    assert CtcJoint.unsuited(robot) == (
        "no muscle of planar_2r takes a command of the kind force or effort"
    )
    assert CtcJoint.unsuited(replace(robot, muscles=(planar_2r().muscles[0], *passive[1:]))) == ""
    # motors are commanded, too, but not by who commands muscles alone
    motors = replace(platform_arm(), muscles=())
    assert CtcJoint.unsuited(motors) == ""
    assert "impedance" in ImpedanceController.unsuited(motors)
