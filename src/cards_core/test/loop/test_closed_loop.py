"""Hosts and controllers in one process, with a host that counts and a clock that is invented."""

import numpy as np
import pytest
from closed_loops import run_closed_loop

from cards_core.control import ControlModel, make_controller
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop import closed_loop
from cards_core.loop.closed_loop import check_models, run_closed_loops, strides
from cards_core.loop.control_loop import ControlLoop
from cards_core.loop.host import SteppedHost
from cards_core.loop.pacing import Pacer
from cards_core.robot.state import RobotState
from cards_core.trajectories import PointToPoint

ROBOT = load("planar_2r")
MODEL = ControlModel(ROBOT, "numeric")
HOME = np.array(ROBOT.tree.home)
DT = 1e-3


class Counting(SteppedHost):
    """A robot that does not move; notes what it was told at which time."""

    def __init__(self, *, dt=DT, robot=ROBOT):
        super().__init__(robot, (), command_timeout=0.1)
        self.dt, self.stamp_, self.told = dt, 0, []

    @property
    def stamp(self):
        return self.stamp_

    @property
    def _present(self):
        return RobotState(self.now, HOME, np.zeros(2))

    def _accept(self, part, now):
        self.told.append((now, part.values.copy()))
        super()._accept(part, now)

    def advance(self):
        self.stamp_ += round(1e9 * self.dt)


class Clock:
    """A clock that goes on by itself whenever it is asked."""

    def __init__(self, tick):
        self.now, self.tick, self.slept = 0.0, tick, []

    def perf_counter(self):
        self.now += self.tick
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds


def control_of(**options):
    return ControlLoop(make_controller("ctc_joint", MODEL), **options)


# Steps ----------------------------------------------------------------------------------------


def test_every_state_is_answered_before_the_step_from_it():
    host, control = Counting(), control_of()
    took = run_closed_loop(host, control, 0.005)
    assert took > 0.0
    assert host.stamp == 5_000_000
    assert [now for now, _ in host.told] == [0.0, 1e-3, 2e-3, 3e-3, 4e-3]
    assert control.steps == 5
    assert control.controller.period == DT
    # a run goes on where the last one ended
    run_closed_loop(host, control, 0.007)
    assert [now for now, _ in host.told][5:] == [5e-3, 6e-3]
    run_closed_loop(host, control, 0.007)
    assert control.steps == 7


def test_a_run_ends_with_the_first_state_at_its_end_or_after():
    for duration, steps in ((0.0029, 3), (0.003, 3), (0.0031, 4), (1e-12, 1)):
        host = Counting()
        run_closed_loop(host, None, duration)
        assert host.stamp == steps * 1_000_000
        assert host.told == []


def test_a_run_without_a_duration_goes_on_until_something_ends_it():
    host = Counting()

    def step():
        host.step()
        if host.stamp == 3_000_000_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_closed_loops([(host, None)], step, 0.0)


def test_refused_commands_do_not_end_a_run(monkeypatch):
    host, control = Counting(), control_of()
    host.estop()
    run_closed_loop(host, control, 0.004)
    assert host.gate.refused == 4
    assert host.gate.accepted == 0
    assert control.tally.facts().steps == 4


def test_gains_are_refused_before_anything_moves():
    host = Counting()
    fast = ControlLoop(make_controller("ctc_joint", MODEL, kp=2000.0, kd=1100.0))
    with pytest.raises(ParameterError, match="period of 1 ms"):
        run_closed_loop(host, fast, 0.1)
    assert (host.stamp, host.told) == (0, [])
    run_closed_loops([(host, None), (Counting(), fast)], host.step, 0.001)  # nobody says a period
    assert fast.steps == 1


def test_robots_that_share_their_time_have_a_controller_each():
    hosts, control = [Counting(), Counting(), Counting()], [control_of(), None, control_of()]

    def step():
        for host in hosts:
            host.step()

    run_closed_loops(list(zip(hosts, control, strict=True)), step, 0.003, period=DT)
    assert [len(host.told) for host in hosts] == [3, 0, 3]
    assert control[0].controller.period == control[2].controller.period == DT


# Strides --------------------------------------------------------------------------------------


def test_strides_reach_the_end_exactly():
    """As many steps as a run of single ones, whatever the rest."""
    for dt, every, duration in (
        (1e-3, 4, 0.010),
        (1e-3, 5, 0.010),
        (3e-4, 7, 0.01),
        (1e-3, 4, 1.0),
    ):
        host, single = Counting(dt=dt), Counting(dt=dt)
        run_closed_loop(single, None, duration)
        step, taken = strides(host, every, duration), []
        while host.stamp < single.stamp:
            before = host.stamp
            step()
            taken.append(round((host.stamp - before) / (1e9 * dt)))
        assert host.stamp == single.stamp
        assert set(taken[:-1]) <= {every}
        assert 1 <= taken[-1] <= every
        step()  # a host at its end takes one step at most
        assert host.stamp == single.stamp + round(1e9 * dt)


def test_strides_without_an_end_are_all_alike():
    host = Counting()
    step = strides(host, 6, 0.0)
    for k in range(1, 4):
        step()
        assert host.stamp == 6_000_000 * k


# Time -----------------------------------------------------------------------------------------


def test_the_durations_of_steps_are_logged_each_for_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(closed_loop, "time", Clock(0.25))
    hosts = [Counting(), Counting()]
    loops = [control_of(log_path=tmp_path / f"{k}.npz") for k in range(2)]

    def step():
        closed_loop.time.now += 100.0  # no part of what a controller takes
        for host in hosts:
            host.step()

    took = run_closed_loops(list(zip(hosts, loops, strict=True)), step, 0.003)
    # the clock is asked at the beginning, three times a turn, and at the end
    assert took == 3 * (100.0 + 3 * 0.25) + 0.25
    for k, loop in enumerate(loops):
        loop.close()
        with np.load(tmp_path / f"{k}.npz") as log:
            assert log["loop_us"].tolist() == [250_000.0] * 3
            assert log["missed_deadlines"].tolist() == [0.0] * 3


def test_a_pacer_makes_time_pass_as_the_clock_does(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(closed_loop, "time", clock)
    clock.now = 50.0
    host = Counting()
    took = run_closed_loop(host, control_of(), 0.008, pacer=Pacer(DT, speed=0.5))
    assert took == pytest.approx(0.016)
    assert clock.slept == pytest.approx([2e-3] * 8)
    assert host.behind == 0.0


@pytest.mark.parametrize("deadlines", [False, True])
def test_late_steps_are_missed_deadlines_only_where_they_are_to_be(
    monkeypatch, tmp_path, deadlines
):
    clock = Clock(0.0)
    monkeypatch.setattr(closed_loop, "time", clock)
    hosts, pacer = [Counting(), Counting()], Pacer(DT, max_lag=0.1)
    loop = control_of(log_path=tmp_path / "controller.npz")

    def step():
        clock.now += 1.0 if hosts[0].stamp == 2_000_000 else 0.0  # the third one
        for host in hosts:
            host.step()

    run_closed_loops(
        [(hosts[0], loop), (hosts[1], None)], step, 0.005, pacer=pacer, deadlines=deadlines
    )
    loop.close()
    with np.load(tmp_path / "controller.npz") as log:
        late = float(deadlines)
        assert log["missed_deadlines"].tolist() == [0.0, 0.0, 0.0, late, late]
    assert pacer.overruns == 1
    assert hosts[0].behind == hosts[1].behind == pacer.behind == pytest.approx(0.999, abs=1.1e-3)


def test_progress_is_told_a_few_times_a_second(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(closed_loop, "time", clock)
    host, told = Counting(), []

    def on_time(time):
        told.append((clock.now, time))

    # steps of 0.03125 s: numbers that add up exactly
    run_closed_loop(host, None, 0.02, pacer=Pacer(0.03125), on_time=on_time)
    # more than 0.1 s later means four steps; the state is that after the step
    assert told == [(0.15625 + 0.125 * k, pytest.approx(5e-3 + 4e-3 * k)) for k in range(4)]


# Models ---------------------------------------------------------------------------------------


def test_controller_and_simulator_must_have_one_model():
    control = control_of()
    check_models(control, Counting())
    check_models(control, Counting(robot=load("planar_2r")))
    other = Counting(robot=load("planar_xy"))
    with pytest.raises(CardsError) as caught:
        check_models(control, other)
    said = str(caught.value)
    assert said.startswith("controller (here) and simulator (there) have different models: ")
    assert "joint_1" in said.split("only here", maxsplit=1)[0]
    assert said.endswith("give both the same parameter model, or set accept_other_model of both")
    with pytest.raises(CardsError, match=r"; buy another$"):
        check_models(control, other, "buy another")


def test_the_model_of_a_controller_is_the_one_that_was_described():
    """Errors that were put into its model on purpose do not count."""
    from changed_robots import with_mass

    wrong = ControlModel(with_mass(ROBOT, 1.5), "numeric")
    control = ControlLoop(make_controller("ctc_joint", wrong), robot=ROBOT)
    check_models(control, Counting())
    with pytest.raises(CardsError, match="masses, inertias"):
        check_models(ControlLoop(make_controller("ctc_joint", wrong)), Counting())


def test_a_run_follows_its_reference():
    host = Counting()
    control = control_of(reference=PointToPoint(HOME, HOME + 0.1, 0.01))
    run_closed_loop(host, control, 0.005)
    out = control.controller.output
    assert out.time == 4e-3
    assert out.desired == pytest.approx(PointToPoint(HOME, HOME + 0.1, 0.01)(4e-3)[0])
