"""Playing recorded runs: what the buttons of the page do."""

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("viser", reason="viser is not installed")

import cards
from cards.viewer import Player
from cards_core.errors import CardsError

PATIENCE = 60.0


class Screen:
    """Keeps what is shown, and lets a test wait for it."""

    def __init__(self):
        self.shown = []
        self._more = threading.Condition()

    def show(self, item):
        with self._more:
            self.shown.append(item)
            self._more.notify_all()

    def until(self, wanted):
        with self._more:
            assert self._more.wait_for(
                lambda: bool(self.shown) and wanted(self.shown), PATIENCE
            ), self.shown[-3:]


@pytest.fixture
def played():
    screen = Screen()
    player = Player([0.0, 0.5, 1.0], lambda index, paused: (index, paused))
    player.start(screen.show)
    yield player, screen
    player.stop()


def test_a_run_is_played_over_and_over(played):
    player, screen = played
    player.set_speed(50.0)
    screen.until(lambda shown: [i for i, _ in shown].count(2) > 2 and shown[-1][0] < 2)
    assert {index for index, _ in screen.shown} <= {0, 1, 2}


def test_pause_step_and_reset(played):
    player, screen = played
    player.pause(True)
    player.reset()
    screen.until(lambda shown: shown[-1] == (0, True))
    player.step()
    screen.until(lambda shown: shown[-1] == (1, True))
    player.step()
    player.step()
    screen.until(lambda shown: shown[-1] == (2, True))
    player.home()
    screen.until(lambda shown: shown[-1] == (0, True))
    player.play(True)
    screen.until(lambda shown: shown[-1] == (1, False))


def test_any_moment_can_be_sought(played):
    player, screen = played
    player.pause(True)
    for time, index in ((0.7, 1), (-5.0, 0), (99.0, 2)):
        player.seek(time)
        screen.until(lambda shown, index=index: shown[-1] == (index, True))
    assert player.shown == player.span[1] == 1.0


def test_the_slider_leads_when_it_is_dragged_and_follows_else():
    robot = cards.load("planar_2r")
    run = cards.simulate(cards.Simulator(robot), duration=0.2)
    view = cards.show(run, port=0, block=False)
    try:
        slider, player = view._time, view._player
        assert (slider.min, slider.max) == player.span == (run.time[0], run.time[-1])
        player.pause(True)
        player.seek(0.15)
        slider.value = 0.05  # as the page follows what is played
        assert player.shown == 0.15
        view._dragged(SimpleNamespace(client=object(), target=slider))  # as somebody drags it
        assert player.shown == pytest.approx(0.05, abs=1e-3)
        view.seek(0.1)
        assert player.shown == 0.1
        with pytest.raises(CardsError, match="time is nan"):
            view.seek(float("nan"))
    finally:
        view.close()
    still = cards.show(robot, port=0, block=False)
    try:
        assert still._time is None
    finally:
        still.close()


def test_what_is_recorded_cannot_be_changed(played):
    player, _ = played
    for call in (lambda: player.estop(True), lambda: player.joints([0.0]), player.save):
        with pytest.raises(CardsError, match="this is a recording"):
            call()


@pytest.mark.parametrize("name", ["planar_2r", "stewart_gough"])
def test_a_robot_and_its_run_are_shown(name):
    robot = cards.load(name)
    run = cards.simulate(cards.Simulator(robot), duration=0.05)
    for what in (robot, run):
        view = cards.show(what, port=0, block=False)
        try:
            assert view.url.startswith("http://127.0.0.1:")
            assert view.url in view._repr_html_()
        finally:
            view.close()


def test_two_runs_are_shown_side_by_side(tmp_path):
    robot = cards.load("planar_2r")
    run = cards.simulate(cards.Simulator(robot), duration=0.05)
    run.save(tmp_path / "a")
    again = cards.read_run(tmp_path / "a", robot)
    assert again.name == "a"
    assert {row.largest for row in cards.compare(run, again).differences()} == {0.0}
    view = cards.show(run, again, port=0, block=False)
    try:
        nodes = set(view.page.server.scene._handle_from_node_name)
        assert {"/muscles/paths", "/second/muscles/paths"} <= nodes
        step = view.page.server.scene._handle_from_node_name["/second"].position
        first, second = view.page.scenes
        assert step[0] > first.upper[0] - second.lower[0]
    finally:
        view.close()
    with pytest.raises(CardsError, match="the first run is"):
        cards.show(robot, run, port=0, block=False)
