"""Muscle relaxation control as a controller: rates, feed-forward, safety, what it cannot drive."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.control.interface import HoldPoint
from cards_core.control.mrc.controller import LARGEST_STEP, MuscleRelaxationControl
from cards_core.control.mrc.hand_over import STEP
from cards_core.control.mrc.relaxation import RelaxationOptions
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.control_loop import ControlLoop
from cards_core.muscles.impedance import SLACK, impedance_tension
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.actuators import ImpedanceControl
from cards_core.robot.state import RobotState
from cards_core.trajectories import PointToPoint

STIFFNESS, BIAS = 6e4, 10.0


def robot_of(name="roboy_arm", stiffness=STIFFNESS):
    robot = load(name)
    law = ImpedanceControl(stiffness=stiffness, tension_floor=BIAS)
    muscles = tuple(
        replace(m, control=law if m.takes_tension else m.control) for m in robot.muscles
    )
    return replace(robot, muscles=muscles)


def state_of(robot, time, q=None, tension=100.0, temperatures=None):
    q = robot.tree.home if q is None else q
    m = len(robot.muscles)
    return RobotState(
        time,
        q.copy(),
        np.zeros(robot.tree.nv),
        muscle_lengths=np.zeros(m),
        tensions=np.full(m, tension),
        temperatures=temperatures,
    )


def law(controller, robot, q):
    """Return the tensions that the law makes of the command at a pose."""
    (part,) = controller.command
    length = GeometricBodyImage(robot).lengths(q)
    return impedance_tension(
        length,
        np.zeros(length.size),
        rest_length=part.rest_lengths,
        rest_rate=part.rest_rates,
        tension=part.values,
        stiffness=np.full(length.size, STIFFNESS),
        damping=np.zeros(length.size),
        floor=np.full(length.size, BIAS),
    )


def test_with_an_exact_model_the_law_balances_the_weight_of_the_wanted_pose():
    robot = robot_of()
    controller = make_controller("mrc", robot, relaxation=False)
    dynamics = make_dynamics(robot)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = robot.tree.random(rng, span=0.5)
        controller.reset()
        controller.set_reference(None)
        controller.step(state_of(robot, 0.0, q))
        tensions = law(controller, robot, q)
        state = dynamics.update(q, np.zeros(robot.tree.nv))
        torque = -state.muscle_jacobian.T @ tensions
        missing = torque - state.gravity
        assert tensions.min() >= 30.0 - 1e-6
        assert missing == pytest.approx(controller._forward.missing, abs=1e-6)
        assert tensions == pytest.approx(controller.output.tensions, abs=1e-6)


def test_the_blocks_run_at_their_rates_whatever_the_rate_of_the_states():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    ticks = models = 0
    before = (None, None)
    for step in range(1001):
        controller.step(state_of(robot, step * 1e-3))
        now = (id(controller.state), id(controller.necessary))
        ticks += now[0] != before[0]
        models += now[1] != before[1]
        before = now
        kept = (controller.state, controller.necessary)  # so that no id is used twice
    assert kept
    assert ticks == 126
    assert models == 41


def test_at_rest_it_releases_as_published_and_withdraws_in_motion():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    for step in range(126):
        controller.step(state_of(robot, step * 8e-3))
    assert controller.state.dl.sum() == pytest.approx(125 * 3e-5)
    lengths = controller.command[0].rest_lengths.copy()
    controller.relaxation = False
    jumps = []
    for step in range(126, 260):
        controller.step(state_of(robot, step * 8e-3))
        now = controller.command[0].rest_lengths
        jumps.append(np.abs(now - lengths).max())
        lengths = now.copy()
    assert not controller.state.dl.any()
    # 60 N/mm and 0.03 mm: below 5 N per period
    assert max(jumps) * STIFFNESS < 5.0


def test_it_releases_as_fast_when_states_come_at_times_of_their_own():
    """Real boards send each 2 ms by their clock, which a host's stamps show to some 10 us."""
    robot = robot_of()
    controller = make_controller("mrc", robot)
    controller.set_reference(None)
    rng = np.random.default_rng(1)
    released = []
    for time in 0.002 * np.arange(1000) + rng.normal(0.0, 2e-5, 1000):
        controller.step(state_of(robot, float(time)))
        released.append(float(controller.state.dl.sum()))
    # one muscle each 8 ms: 3.75 mm/s
    assert released[-1] - released[500] == pytest.approx(3.75e-3, abs=2 * 3e-5)


def test_heat_lets_muscles_go_and_too_much_of_it_the_robot():
    robot = robot_of()
    controller = make_controller("mrc", robot, relaxation=False)
    m = len(robot.muscles)
    heat = np.full(m, 40.0)
    heat[2] = 70.0
    for step in range(126):
        controller.step(state_of(robot, step * 8e-3, temperatures=heat))
    assert controller.protection.given[2] == pytest.approx(126 * 8e-3 * 6.25e-5)
    assert np.count_nonzero(controller.protection.given) == 1
    assert controller.output.status is ControlStatus.OK
    heat[2] = 81.0
    before = controller.command[0].rest_lengths.copy()
    for step in range(126, 400):
        controller.step(state_of(robot, step * 8e-3, temperatures=heat))
        now = controller.command[0].rest_lengths
        assert np.abs(now - before).max() * STIFFNESS < 5.0
        before = now.copy()
    assert controller.protection.latched[2]
    assert controller.output.status is ControlStatus.INFEASIBLE
    assert law(controller, robot, robot.tree.home).max() < 60.0
    controller.reset()
    assert controller.protection.latched[2]


def test_without_a_pose_muscles_are_let_go_by_a_step_per_period_and_then_held_again():
    """Muscles that are slack already stay as they are; a tension that is lost counts as tense."""
    robot = robot_of()
    controller = make_controller("mrc", robot, relaxation=False)
    lengths = GeometricBodyImage(robot).lengths(robot.tree.home).copy()

    def step(k, **wrong):
        state = state_of(robot, k * 1e-3)
        state.muscle_lengths[:] = lengths
        state.tensions[1], state.tensions[2] = BIAS, np.nan
        for name, value in wrong.items():
            getattr(state, name)[:] = value
        return controller.step(state)[0].rest_lengths.copy()

    held = step(0)
    for k in range(1, 101):
        lost = step(k, q=np.nan)
        assert controller.output.status is ControlStatus.INVALID_STATE
    # after 1, 9, 17 ... 97 ms
    steps = np.full(held.size, 13)
    steps[1] = 0
    assert (lost - held) * STIFFNESS == pytest.approx(STEP * steps)
    again, last = step(101), lost
    assert controller.output.status is ControlStatus.OK
    # of a slack muscle, l0 is that of the minimum tension from which it can become tense at once
    assert again == pytest.approx(np.minimum(lost, lengths))
    for k in range(102, 300):
        last, again = again, step(k)
        assert np.abs(again - last).max() * STIFFNESS <= STEP * (1.0 + 1e-9)
    assert again == pytest.approx(held)


def test_letting_go_keeps_its_rate_when_states_come_at_times_of_their_own():
    """Every 5 ms: steps after 8 ms each on average, not after 10."""
    robot = robot_of()
    controller = make_controller("mrc", robot, relaxation=False)
    lengths = GeometricBodyImage(robot).lengths(robot.tree.home).copy()
    rows = []
    for k in range(201):
        state = state_of(robot, 5e-3 * k)
        state.muscle_lengths[:] = lengths
        if k:
            state.q[:] = np.nan
        rows.append(controller.step(state)[0].rest_lengths.copy())
    steps = (rows[-1] - rows[0]) * STIFFNESS / STEP
    assert steps == pytest.approx(np.full(steps.size, 125.0), abs=1.0)


def test_a_state_without_a_time_is_none():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    bad = state_of(robot, np.nan)
    assert controller.step(bad) is controller.relaxed
    held = controller.step(state_of(robot, 0.0))[0].rest_lengths.copy()
    assert controller.step(bad)[0].rest_lengths.tolist() == held.tolist()
    assert controller.output.status is ControlStatus.INVALID_STATE
    controller.step(state_of(robot, 0.008))
    assert controller.output.status is ControlStatus.OK


@pytest.mark.parametrize("time", [0.0, 5.0])
def test_one_that_begins_without_a_pose_lets_go_from_the_tensions_that_are_there(time):
    """Where time begins too nothing holds the robot, and nothing does then."""
    robot = robot_of()
    controller = make_controller("mrc", robot)
    state = state_of(robot, time)
    state.q[0] = np.nan
    state.muscle_lengths[0] = np.nan
    part = controller.step(state)[0]
    if not time:
        assert part.rest_lengths.tolist() == [SLACK] * len(robot.muscles)
        return
    # of length 0 and with 100 N; one whose length is lost cannot be held
    assert part.rest_lengths[1:] == pytest.approx(-(100.0 - BIAS) / STIFFNESS)
    assert part.rest_lengths[0] == SLACK


def test_a_lost_tension_sensor_does_not_make_a_command_of_nonsense():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    for step in range(40):
        state = state_of(robot, step * 8e-3)
        state.tensions[3] = np.nan
        controller.step(state)
    assert np.isfinite(controller.command[0].rest_lengths).all()
    # a muscle of unknown tension is not released
    assert controller.state.dl[3] == 0.0


def test_it_says_which_robots_it_cannot_drive():
    unsuited = MuscleRelaxationControl.unsuited
    assert not unsuited(robot_of())
    assert "no stiffness" in unsuited(load("roboy_arm"))
    assert not unsuited(robot_of("wrap_elbow"))  # its ligament is passive
    with pytest.raises(CardsError, match="stiffness"):
        make_controller("mrc", load("roboy_arm"))


def test_parameters_that_do_not_fit_are_refused():
    model = ControlModel(robot_of())
    with pytest.raises(ParameterError, match="bias is 30 N"):
        MuscleRelaxationControl(model, bias=30.0)
    with pytest.raises(ParameterError, match="not below the largest tension"):
        MuscleRelaxationControl(model, tension_min=1e5)
    with pytest.raises(ParameterError, match="dl_plus"):
        MuscleRelaxationControl.from_parameters(model, ParameterSet({"dl_plus": -1.0}))
    for name in ("dl_plus", "dl_minus"):
        with pytest.raises(ParameterError, match=rf"{name} is .* per period in muscle .* 5 N"):
            MuscleRelaxationControl.from_parameters(
                model, ParameterSet({name: 1.01 * LARGEST_STEP / STIFFNESS, "dl_max": 0.1})
            )
    made = MuscleRelaxationControl.from_parameters(model, ParameterSet({"rate": 250.0}))
    assert made.options.period == 0.004
    before = made.options
    with pytest.raises(ParameterError, match="dl_minus is"):
        made.change({"relaxation": False, "dl_plus": 1e-5, "dl_minus": 0.01, "dl_max": 1e-3,
                     "dtheta_max": 0.05, "learning": False})  # fmt: skip
    assert made.options == before
    assert made.relaxation
    made.change({"relaxation": False, "dl_plus": 1e-5, "dl_minus": 2e-5, "dl_max": 1e-3,
                 "dtheta_max": 0.05, "learning": False})  # fmt: skip
    assert made.options == RelaxationOptions(
        dl_plus=1e-5, dl_minus=2e-5, dl_max=1e-3, dtheta_max=0.05, resume=0.9, hold=0.1,
        ties="tension", period=0.004,
    )  # fmt: skip


def test_the_log_has_the_lengths_that_were_commanded(tmp_path):
    robot = robot_of()
    loop = ControlLoop(make_controller("mrc", robot), log_path=tmp_path / "log.npz")
    loop.step(state_of(robot, 0.0))
    held = loop.controller.command[0].rest_lengths.copy()
    loop.record(0.0, 0)
    bad = state_of(robot, 0.008)
    bad.q[0] = np.nan
    loop.step(bad)
    loop.record(0.0, 0)
    loop.close()
    with np.load(tmp_path / "log.npz") as data:
        assert data["set_lengths"][0].tolist() == held.tolist()
        let_go = held + STEP / STIFFNESS
        assert data["set_lengths"][1] == pytest.approx(let_go, rel=1e-12)


def test_its_signals_are_what_it_is_doing():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    signals = {signal.name: signal for signal in controller.signals}
    assert set(signals) == {"relaxation", "necessary_tension"}
    for signal in signals.values():
        assert list(signal.names) == [muscle.name for muscle in robot.muscles]
    for step in range(200):
        controller.step(state_of(robot, 0.008 * step))
    assert signals["relaxation"].read().sum() > 0.0
    assert np.array_equal(signals["relaxation"].read(), controller.state.dl)
    assert np.array_equal(signals["necessary_tension"].read(), controller.necessary)


def test_references_of_another_size_are_refused():
    controller = make_controller("mrc", robot_of())
    nq = controller.output.desired.size
    with pytest.raises(ParameterError, match=f"has {nq + 1} coordinates; expected {nq}"):
        controller.set_reference(PointToPoint(np.zeros(nq + 1), np.ones(nq + 1), 1.0))
    reference = PointToPoint(np.zeros(nq), np.full(nq, 0.1), 1.0)
    controller.set_reference(reference, start=2.0)
    controller.step(state_of(robot_of(), 2.5))
    assert controller.output.desired == pytest.approx(np.full(nq, 0.05))
    assert controller.output.error == pytest.approx(0.05 - robot_of().tree.home)


def test_what_it_allows_itself_is_the_motion_of_the_relaxation():
    robot = robot_of()
    assert make_controller("mrc", robot).allowance == 0.1
    assert make_controller("mrc", robot, relaxation=False).allowance == 0.0
    own = make_controller("mrc", robot, options=RelaxationOptions(dtheta_max=0.25))
    assert own.allowance == 0.25


def test_numbers_of_its_own_are_bounded():
    model = ControlModel(robot_of())
    for given, words in (
        ({"force_ramp": -1.0}, "force_ramp"),
        ({"force_max": 0.0}, "force_max"),
        ({"moment_max": 0.0}, "moment_max"),
        ({"estimation_rate": 0.0}, "estimation_rate"),
        ({"bias": -1.0}, "bias"),
        ({"bias": math.nan}, "bias"),
        ({"joint_angles": "felt"}, "joint_angles is 'felt'"),
        ({"learning": True}, "learning is on with a geometric body image"),
    ):
        with pytest.raises(ParameterError, match=words):
            MuscleRelaxationControl(model, **given)
    most = min(muscle.tension_max for muscle in robot_of().muscles)
    with pytest.raises(ParameterError, match="not below the largest tension"):
        MuscleRelaxationControl(model, tension_min=most)
    weakest = np.nextafter(most, 0.0)
    assert MuscleRelaxationControl(model, tension_min=weakest).options.tension_min == weakest
    # a step of just 5 N
    most = LARGEST_STEP / STIFFNESS
    options = RelaxationOptions(dl_plus=most, dl_minus=most, dl_max=0.1)
    assert MuscleRelaxationControl(model, options=options).options.dl_plus == most


@pytest.mark.parametrize("pause", [0.099, 0.101])
def test_muscles_are_taken_over_again_after_a_pause_of_a_tenth_of_a_second(pause):
    """Hosts may have let them go meanwhile: what they have then is where it begins."""
    robot = robot_of()
    controller = make_controller("mrc", robot, relaxation=False)
    lengths = GeometricBodyImage(robot).lengths(robot.tree.home).copy()

    def step(time, tension):
        state = state_of(robot, time, tension=tension)
        state.muscle_lengths[:] = lengths
        return controller.step(state)[0].rest_lengths.copy()

    held = step(0.0, 100.0)
    again = step(pause, 60.0)
    if pause > 0.1:
        assert again == pytest.approx(lengths - (60.0 - BIAS) / STIFFNESS)
    else:
        assert again == pytest.approx(held)


def test_the_reference_of_a_held_place_ends_with_a_reset():
    robot = robot_of()
    controller = make_controller("mrc", robot)
    there = robot.tree.home + 0.1
    controller.step(state_of(robot, 0.0))
    controller.step(state_of(robot, 0.008, there))
    assert controller.output.error == pytest.approx(np.full(there.size, -0.1))
    controller.reset()
    controller.step(state_of(robot, 0.0, there))
    assert controller.output.error == pytest.approx(np.zeros(there.size))
    given = PointToPoint(there, there + 0.1, 1.0)
    controller.set_reference(given)
    controller.reset()
    controller.step(state_of(robot, 1.0, there))
    assert controller.output.error == pytest.approx(np.full(there.size, 0.1))


def test_the_search_for_the_first_pose_begins_where_the_first_reference_does(monkeypatch):
    robot = robot_of()
    controller = make_controller("mrc", robot, joint_angles="estimated")
    guesses = []

    def step(*_, guess, **__):
        guesses.append(None if guess is None else guess.tolist())

    monkeypatch.setattr(controller._angles, "step", step)
    first, second = robot.tree.home + 0.1, robot.tree.home - 0.1
    controller.step(state_of(robot, 0.0))
    controller.set_reference(HoldPoint(robot.tree.home, robot.tree.nv))
    controller.step(state_of(robot, 0.1))
    controller.set_reference(PointToPoint(first, second, 1.0))
    controller.step(state_of(robot, 0.2))
    controller.set_reference(PointToPoint(second, first, 1.0))
    controller.reset()
    controller.step(state_of(robot, 0.3))
    # at home (None) as long as nothing else is asked for
    assert guesses == [None, None, first.tolist(), first.tolist()]
