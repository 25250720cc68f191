"""Who stopped time, and what lets it go on."""

import pytest

from cards_muscle_plugin.time_gate import TimeGate

pytestmark = pytest.mark.serial


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
