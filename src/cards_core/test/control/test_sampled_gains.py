"""Gains that the control period allows: a sampled double integrator, and controllers that run."""

import math
from array import array
from dataclasses import replace

import numpy as np
import pytest
from control_robots import fixed_point, planar_2r, step
from hypothesis import given
from hypothesis import strategies as st

from cards_core.control import (
    ControlModel,
    ControlStatus,
    CtcJoint,
    CtcOperational,
    controller_parameters,
    make_controller,
)
from cards_core.control.interface import Gains
from cards_core.control.sampled_gains import SHORTEST_PERIOD, kd_range, kp_bound
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.control_setup import make_control_loop
from cards_core.loop.host import impedance_gains
from cards_core.parameters.declaration import ParameterSet
from cards_core.parameters.parameter_file import load_parameters
from cards_core.robot.state import RobotState

PERIODS = st.floats(-4.3, -1.0).map(lambda x: 10.0**x)
HUGE = [1e308, 1e12, math.inf, math.nan]


def one_period(kp, kd, period, delay):
    """What a period makes of e, ed, and of the acceleration that is on its way.

    Constant acceleration within a period, exactly; a command acts at once or a period later.
    """

    def advance(state):
        e, rate, coming = state
        asked = -np.asarray(kp) @ e - np.asarray(kd) @ rate
        acts = coming if delay else asked
        return e + period * rate + 0.5 * period**2 * acts, rate + period * acts, asked

    k = len(kp)
    columns = [
        np.concatenate(advance(unit.reshape(3, k)))
        for unit in np.eye(3 * k)  # linear: the map of the unit vectors is its matrix
    ]
    return np.array(columns).T


def growth(kp, kd, period, *, delay=True):
    """Factor per period by which the error grows at last."""
    full = [np.diag(np.atleast_1d(g)) if np.ndim(g) < 2 else np.asarray(g) for g in (kp, kd)]
    turn = one_period(*full, period, delay)
    scale = np.repeat([1.0, period, period**2], len(full[0]))  # all of them lengths
    return np.abs(np.linalg.eigvals(turn * scale / scale[:, None])).max()


def accepted(kp, kd, period):
    try:
        Gains(("x",), kp, kd).judge(period)
    except ParameterError:
        return False
    return True


@given(PERIODS, st.floats(1e-6, 0.3), st.floats(1e-6, 1.2))
def test_gains_are_accepted_if_and_only_if_the_sampled_error_dies_out(period, a, b):
    kp, kd = a / period**2, b / period
    factor = growth(kp, kd, period)
    if abs(factor - 1.0) > 1e-7:  # rounding decides nearer
        assert accepted(kp, kd, period) == (factor < 1.0)
    if accepted(kp, kd, period):
        # an answer that comes at once is better than one that is late
        assert growth(kp, kd, period, delay=False) < 1.0


@given(PERIODS, st.floats(1e-4, 0.24))
def test_both_bounds_of_the_damping_are_where_the_error_begins_to_grow(period, a):
    kp = a / period**2
    low, high = kd_range(kp, period)
    inside = 0.02 * (high - low)
    assert growth(kp, low + inside, period) < 1.0 < growth(kp, low - inside, period)
    assert growth(kp, high - inside, period) < 1.0 < growth(kp, high + inside, period)
    assert high < 1.0 / period
    assert kp < kp_bound(period)
    for kd in np.linspace(0.0, 2.0 / period, 41):  # above the bound of kp no damping helps
        assert growth(1.01 * kp_bound(period), kd, period) > 1.0


@given(PERIODS)
def test_without_delay_at_most_twice_the_damping_would_be_stable(period):
    _, high = kd_range(1.0, period)
    assert growth(1.0, 1.9 * high, period, delay=False) < 1.0
    assert growth(1.0, 2.1 * high, period, delay=False) > 1.0


@given(st.integers(0, 10_000), st.floats(0.5, 1.5))
def test_matrices_that_do_not_commute_are_judged_by_the_motion_that_they_make(seed, size):
    rng, period = np.random.default_rng(seed), 1e-3

    def matrix(largest):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        return turn @ np.diag(largest * rng.uniform(0.1, 1.0, size=3)) @ turn.T

    kp, kd = matrix(size * 0.15 / period**2), matrix(size * 0.7 / period)
    kp, kd = 0.5 * (kp + kp.T), 0.5 * (kd + kd.T)
    factor = growth(kp, kd, period)
    gains = Gains(("x", "y", "z"), kp, kd)
    if factor < 1.0 - 1e-4:
        gains.judge(period)
    elif factor > 1.0 + 1e-4:
        with pytest.raises(ParameterError, match="as matrices, let the error grow"):
            gains.judge(period)


def judged(kp, kd, period):
    try:
        Gains(tuple("xyz"), kp, kd).judge(period)
    except ParameterError:
        return False
    return True


SIZES = st.one_of(st.just(0.0), st.floats(-9.0, 0.0).map(lambda x: 10.0**x))


@given(
    st.lists(st.tuples(SIZES, SIZES), min_size=3, max_size=3),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_a_matrix_is_judged_as_the_vector_of_its_eigenvalues(gains, turned, seed):
    """Diagonal ones exactly; those turned by the same angles but for their rounding."""
    period = 1e-3
    kp, kd = np.array(gains).T * [[0.3 / period**2], [1.2 / period]]
    wanted = judged(kp, kd, period)
    assert judged(np.diag(kp), np.diag(kd), period) == wanted
    assert judged(kp, np.diag(kd), period) == judged(np.diag(kp), kd, period) == wanted
    if turned:
        axes = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        p, d = (axes @ np.diag(g) @ axes.T for g in (kp, kd))
        p, d = 0.5 * (p + p.T), 0.5 * (d + d.T)
        near = [judged(kp * x, kd * y, period) for x in (0.99, 1.01) for y in (0.99, 1.01)]
        if all(near) == any(near) == wanted:  # no bound is near
            assert judged(p, d, period) == wanted


def test_stiffness_without_damping_is_refused_in_every_form():
    names = ("x", "y")
    for kp, kd in (
        (np.ones(2), np.zeros(2)),
        (np.eye(2), np.zeros((2, 2))),
        (np.array([[1.0, 0.5], [0.5, 1.0]]), np.zeros((2, 2))),
        # damped along one axis, which is not an axis of kp
        (np.diag([1.0, 1.0001]), 1e-4 * np.array([[0.5, 0.5], [0.5, 0.5]])),
        (np.array([[1.0, 0.5], [0.5, 1.0]]), np.diag([1e-5, 0.0])),
    ):
        with pytest.raises(ParameterError, match="let the error grow"):
            Gains(names, kp, kd).judge(1e-3)
    # one stiff direction with little damping elsewhere, and one without gains
    Gains(names, np.diag([400.0, 0.0]), np.array([[40.0, 1.0], [1.0, 2.0]])).judge(1e-3)
    v = np.array([0.6, 0.8])
    Gains(names, 400.0 * np.outer(v, v), 40.0 * np.outer(v, v)).judge(1e-3)
    Gains(names, 400.0 * np.outer(v, v), None).judge(1e-3)


def test_a_matrix_may_leave_directions_alone():
    gains = Gains(("x", "y"), np.diag([400.0, 0.0]), np.diag([40.0, 0.0]))
    gains.judge(1e-3)
    Gains(("x",), 0.0, 0.0).judge(1e-3)
    Gains(("x",), 0.0, 999.0).judge(1e-3)
    with pytest.raises(ParameterError):
        Gains(("x",), 0.0, 1001.0).judge(1e-3)
    with pytest.raises(ParameterError, match=r"above 0\.6"):
        Gains(("x",), 400.0, 0.0).judge(1e-3)


# Controllers ----------------------------------------------------------------------------------


def joint(**parameters):
    return CtcJoint(ControlModel(planar_2r()), **{"kp": 400.0, "kd": 40.0} | parameters)


def operational(**parameters):
    return CtcOperational(
        ControlModel(planar_2r()),
        **{"axes": "xz", "kp": 400.0, "kd": 40.0, "posture_kp": 100.0} | parameters,
    )


def live(item):
    values = {"kp": item.gains.kp, "kd": item.gains.kd}
    if isinstance(item, CtcOperational):
        posture = item._posture_gains
        values |= {"posture_kp": posture.kp, "posture_kd": posture.kd}
    return {name: value.copy() for name, value in values.items()}


def test_a_refused_damping_is_told_as_numbers_with_what_minus_one_is():
    """ROS hands lists of numbers over as arrays."""
    (spec,) = (s for s in controller_parameters("ctc_joint", planar_2r()) if s.name == "kd")
    for value in (array("d", [math.nan, -2.0]), np.array([math.nan, -2.0])):
        with pytest.raises(ParameterError) as caught:
            spec.check(value)
        text = str(caught.value)
        assert "'kd' is [nan, -2.0] (expected: finite, -1 .. 1e+06, where -1 is critical" in text


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", ["kp", "kd", "posture_kp", "posture_kd"])
def test_a_controller_that_runs_refuses_gains_without_bound_and_keeps_those_it_has(name, value):
    item = operational() if name.startswith("posture") else joint()
    q = np.array([0.3, -0.5])
    item.set_reference(fixed_point(item.place(q, np.zeros(2)) + 0.01, 2))
    before, tensions = live(item), step(item, 0.0, q, np.zeros(2)).tensions.copy()
    with pytest.raises(ParameterError, match=name):
        item.change(before | {name: np.full(2, value)})
    assert {n: v.tolist() for n, v in live(item).items()} == {
        n: v.tolist() for n, v in before.items()
    }
    out = step(item, 1e-3, q, np.zeros(2))
    assert out.status is ControlStatus.OK
    np.testing.assert_allclose(out.tensions, tensions, atol=1e-6)
    with pytest.raises(ParameterError):
        type(item)(item.model, **{name: value})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"kp": 3e5}, r"kp 300000 1/s\^2 .* 'joint_1' .* below 250000, .* period of 1 ms"),
        ({"kd": 1001.0}, r"kd 1001 1/s of 'joint_1' .* above 0.6\d* and below 999.\d*, for"),
        ({"kd": 0.0}, "above 0.6"),  # delay takes damping away
        ({"kp": 1e5, "kd": 40.0}, "beside this kp a kd above"),
        (
            {"kp": [[4e5, 0.0], [0.0, 1.0]]},
            r"kp 400000 1/s\^2 and kd 40 1/s of 'direction \(1, 0\)'",
        ),
        (
            {"kp": [[4e5, 0.0], [0.0, 1.0]], "kd": [[40.0, 1.0], [1.0, 60.0]]},
            "let the error grow by",
        ),
    ],
)
def test_both_gains_are_judged_together_with_the_period(changes, text):
    item = joint()
    before = live(item)
    changes = {n: np.asarray(v) if np.ndim(v) else np.full(2, v) for n, v in changes.items()}
    item.change(before | changes)  # nobody knows the period
    item.change(before)
    item.set_period(1e-3)
    with pytest.raises(ParameterError, match=text):
        item.change(before | changes)
    assert item.gains.kp.tolist() == [400.0, 400.0]
    assert item.gains.kd.tolist() == [40.0, 40.0]


def test_gains_are_changed_one_at_a_time_as_long_as_the_pair_is_stable():
    """From 400 and 40 to 1e5 and 600: with the damping first."""
    item = joint()
    item.set_period(1e-3)
    values = live(item)
    with pytest.raises(ParameterError):
        item.change(values | {"kp": np.full(2, 1e5)})
    values["kd"] = np.full(2, 600.0)
    item.change(values)
    values["kp"] = np.full(2, 1e5)
    item.change(values)
    with pytest.raises(ParameterError):  # and not back in that order
        item.change(values | {"kd": np.full(2, 40.0)})
    assert item.gains.kd.tolist() == [600.0, 600.0]


def test_nothing_is_half_applied_where_the_posture_is_refused():
    item = operational()
    item.set_period(1e-3)
    before = live(item)
    with pytest.raises(ParameterError, match="posture_kp 1e"):
        item.change(before | {"kp": np.full(2, 900.0), "posture_kp": np.full(2, 1e6)})
    assert {n: v.tolist() for n, v in live(item).items()} == {
        n: v.tolist() for n, v in before.items()
    }


@pytest.mark.parametrize(
    ("item", "period", "name"),
    [
        (joint(), 0.05, "kp 400"),
        (operational(posture_kp=2e5), 1e-3, "posture_kp 2"),
        (operational(limit_rate=1000.0), 1e-3, "limit_rate"),
        (joint(), 0.0, "period"),
        (joint(), math.nan, "period"),
    ],
    ids=["gains", "posture", "limits", "zero", "nan"],
)
def test_a_period_that_the_gains_do_not_bear_is_refused(item, period, name):
    item.set_period(1e-4)
    with pytest.raises(ParameterError, match=name):
        item.set_period(period)
    assert item.period == item.gains.period == 1e-4


def test_a_loop_finds_the_period_out_if_nobody_says_it():
    """The second state tells it, whatever the time of the first was."""
    q = np.array([0.3, -0.5])

    def state(t):
        return RobotState(t, q, np.zeros(2))

    loop = ControlLoop(joint(kp=1e5, kd=600.0))
    loop.step(state(7.0))
    loop.step(state(7.001))
    assert loop.controller.period == pytest.approx(1e-3)
    loop.step(state(7.5))  # a state that was lost changes nothing
    assert loop.controller.period == pytest.approx(1e-3)
    with pytest.raises(ParameterError):
        loop.controller.set_gains(3e5, 600.0)
    slow = ControlLoop(joint(kp=1e5, kd=600.0))
    slow.step(state(7.0))
    slow.step(state(7.5))  # not a loop that could be stable: somebody looks at single states
    assert slow.controller.period is None
    told = ControlLoop(joint())
    told.controller.set_period(1e-3)
    for t in (0.0, 0.1):
        told.step(state(t))
    assert told.controller.period == 1e-3


# Parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["1.0e+308", "1.0e+12", ".inf", ".nan"])
def test_a_parameter_file_with_gains_without_bound_is_refused(tmp_path, value):
    file = tmp_path / "gains.yaml"
    file.write_text(f"ctc_joint:\n  ros__parameters:\n    model: planar_2r\n    kp: {value}\n")
    given = load_parameters(file, "ctc_joint")
    with pytest.raises(ParameterError, match=r"'kp' is .*0 \.\. 2\.5e\+11"):
        make_control_loop("ctc_joint", ParameterSet(given, "ctc_joint"), planar_2r())
    assert kp_bound(SHORTEST_PERIOD) == pytest.approx(2.5e11)


EVERY = {
    "ctc_joint": "planar_2r",
    "ctc_operational": "planar_2r",
    "mrc": "musashi_like",
    "impedance": "tetraspine_hardware",
    "cpg": "tetrahedral_6",
}


@pytest.mark.parametrize("kind", EVERY)
def test_no_number_of_a_controller_is_without_bound(kind):
    robot = load(EVERY[kind])
    specs = [*controller_parameters(kind, robot), *impedance_gains(robot)]
    assert any(spec.live for spec in specs)
    for spec in specs:
        if spec.type_name not in ("double", "double[]"):
            continue
        count = spec.length or 2
        for value in (1e308, -1e308, math.nan, *([] if spec.infinite else [math.inf])):
            if spec.infinite and value == 1e308:
                continue  # tension_max: no bound at all is what it may mean
            with pytest.raises(ParameterError, match=spec.name):
                spec.check(value if spec.type_name == "double" else [value] * count)


@pytest.mark.parametrize("name", ["tension", "rest_length", "amplitude", "frequency", "turn"])
def test_set_points_without_bound_are_refused_in_python_too(name):
    robot = load("tetraspine_hardware")
    muscles = tuple(replace(muscle, tension_max=math.inf) for muscle in robot.muscles)
    item = make_controller("impedance", replace(robot, muscles=muscles), gait="sine")
    parts = item.gait_parts
    values = {
        **dict.fromkeys(("tension",), item.set_point_parts.tension * 0.0),
        "rest_length": item.set_point_parts.rest_length,
        **dict.fromkeys(("amplitude", "body_waves", "top_phase", "turn", "rear"), 0.0),
        "frequency": 0.4,
        "inside_factor": -0.8,
    }
    with pytest.raises(CardsError, match=name):
        item.change(values | {name: 1e308 * np.ones(np.shape(values[name]))})
    assert item.gait_parts.frequency == parts.frequency
    assert np.isfinite(item.step(RobotState(0.0, robot.home, np.zeros(0)))[0].values).all()
