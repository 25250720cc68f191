"""Who stopped time, what lets it go on, and how far it is behind real time."""

import pytest

from cards_muscle_plugin.simulation_time import Delay, TimeGate

MS = 1_000_000  # [ns]


class World:
    def __init__(self):
        self.requests = []
        self.reachable = True

    def _request(self, *request):
        self.requests.append(request)
        return self.reachable

    def pause(self, paused):
        return self._request("pause", paused)

    def rewind(self, paused):
        return self._request("rewind", paused)


@pytest.fixture
def world():
    return World()


def test_without_waiting_nothing_is_asked_of_the_world(world):
    gate = TimeGate(world, lockstep=False, waits=False)
    assert gate.ready(0)
    assert not gate.let_go(0)
    assert world.requests == []


def test_the_first_command_lets_time_go_on(world):
    gate = TimeGate(world, lockstep=False, waits=True)
    assert gate.hold(to_start=True)
    assert not gate.let_go(5)
    gate.accept(5)
    assert gate.let_go(5)
    assert gate.ready(1000)  # and all others
    assert world.requests == [("pause", True), ("pause", False)]
    assert not gate.let_go(5)  # once


def test_in_lockstep_every_state_needs_its_answer(world):
    gate = TimeGate(world, lockstep=True, waits=False)
    assert gate.waits
    gate.accept(5)
    assert gate.ready(5)
    assert not gate.ready(6)
    gate.hold()
    assert not gate.let_go(6)
    gate.accept(6)
    assert gate.let_go(6)


def test_somebody_who_paused_has_to_let_go(world):
    gate = TimeGate(world, lockstep=False, waits=True)
    gate.hold()
    assert gate.pause(True)
    gate.accept(0)
    assert not gate.let_go(0)
    assert gate.pause(False)
    assert gate.let_go(0)
    # of a world that is not held the world itself is asked
    assert gate.pause(True)
    assert world.requests == [("pause", True), ("pause", False), ("pause", True)]


def test_a_rewind_waits_for_a_command_without_a_step(world):
    gate = TimeGate(world, lockstep=False, waits=True)
    gate.accept(7)
    assert gate.rewind(paused=False)
    gate.reset()
    assert gate.held
    assert not gate.ready(0)
    gate.accept(0)
    assert gate.let_go(0)
    assert world.requests == [("rewind", True), ("pause", False)]


def test_a_rewind_without_waiting_runs_on(world):
    gate = TimeGate(world, lockstep=False, waits=False)
    assert gate.rewind(paused=False)
    assert not gate.held
    assert gate.rewind(paused=True)
    assert gate.stay
    assert world.requests == [("rewind", False), ("rewind", True)]


def test_a_world_out_of_reach_changes_nothing(world):
    gate = TimeGate(world, lockstep=False, waits=True)
    world.reachable = False
    assert not gate.hold(to_start=True)
    assert not gate.pause(True)
    assert not gate.rewind(paused=True)
    assert [gate.held, gate.to_start, gate.stay] == [False] * 3


def test_late_steps_add_up_and_what_is_caught_up_counts_no_more():
    delay = Delay(1.0)
    assert delay.note(10.0, MS) == 0.0
    assert delay.note(10.001, MS) == pytest.approx(0.0, abs=1e-12)
    assert delay.note(10.006, MS) == pytest.approx(0.004)
    assert delay.note(10.0065, MS) == pytest.approx(0.0035)
    # faster than it should be is no credit
    for k in range(1, 20):
        delay.note(10.0065 + 1e-5 * k, MS)
    assert delay.note(10.009, MS) == pytest.approx(0.00131, abs=1e-9)


def test_pauses_do_not_count_and_a_reset_begins_anew():
    delay = Delay(0.5)
    delay.note(0.0, MS)
    assert delay.note(0.003, MS) == pytest.approx(0.001)  # 1 ms is due after 2 ms
    delay.interrupt()
    assert delay.note(60.0, MS) == pytest.approx(0.001)
    delay.reset()
    assert delay.note(70.0, MS) == 0.0


def test_without_a_pace_nothing_is_late():
    delay = Delay(0.0)
    delay.note(0.0, MS)
    assert delay.note(9.0, MS) == 0.0
