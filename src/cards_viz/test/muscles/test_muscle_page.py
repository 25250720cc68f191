"""The browser view without a browser."""

import socket
import threading
import time

import numpy as np
import pytest

from cards_core.errors import CardsError
from cards_viz.colors import TensionScale
from cards_viz.muscles.bars import columns_of, table_html, temperature_color
from cards_viz.muscles.interface import BarLimits, MuscleSnapshot
from cards_viz.muscles.page import MusclePage
from cards_viz.muscles.panels import status_html
from cards_viz.muscles.scene import MAX_PATH_SEGMENTS, Trail
from cards_viz.pages.page import ClientPace, PortError, SnapshotBox, free_port
from cards_viz.pages.scene import with_length
from cards_viz.pages.widgets import History, guarded

pytestmark = pytest.mark.serial


class NoCommands:
    """Fulfils `MuscleCommands` and does nothing."""

    def pause(self, paused): ...
    def step(self): ...
    def reset(self): ...
    def estop(self, active): ...
    def set_command(self, name, kind, value): ...
    def set_gains(self, kp, kd): ...
    def set_switch(self, name, on): ...
    def set_speed(self, factor): ...


def test_free_port_skips_a_busy_one():
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        chosen = free_port("127.0.0.1", port)
        assert port < chosen < port + 20
    assert free_port("127.0.0.1", 0) > 0


def test_ports_and_hosts_that_cannot_be(monkeypatch):
    with pytest.raises(PortError, match="port 70000 does not exist"):
        free_port("127.0.0.1", 70000)
    with pytest.raises(PortError, match=r"cannot listen on host '203\.0\.113\.1'"):
        free_port("203.0.113.1", 8080)
    with pytest.raises(PortError, match=r"cannot listen on host 'no\.such\.host\.invalid'"):
        free_port("no.such.host.invalid", 8080)
    monkeypatch.setattr("cards_viz.pages.page.PORTS_TRIED", 1)
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        with pytest.raises(PortError, match="all in use"):
            free_port("127.0.0.1", busy.getsockname()[1])


def wait_for(condition, timeout=20.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.01)


def test_view_takes_the_next_port_draws_and_frees_the_port(planar_2r, caplog, capfd):
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with MusclePage(planar_2r, NoCommands(), port=port) as view:
            assert view.server.get_host() == "127.0.0.1"
            assert view.server.get_port() != port
            assert view.url.startswith(f"http://127.0.0.1:{view.server.get_port()}/?token=")
            assert f"port {port} is in use" in caplog.text
            view.show(MuscleSnapshot(0.0, np.zeros(2), np.full(4, 20.0)))
            wait_for(lambda: view.updates >= 1 and view.settled)
            used = view.server.get_port()
    assert free_port("127.0.0.1", used) == used
    assert capfd.readouterr().out == ""


def test_view_draws_the_newest_at_its_own_rate(planar_2r):
    """A host that shows ten thousand states a second neither waits nor makes the view faster."""
    with MusclePage(planar_2r, NoCommands(), port=0, rate=30.0) as view:
        taken = []
        view._plots.append = taken.append
        begin = time.monotonic()
        longest, k = 0.0, 0
        while time.monotonic() - begin < 1.0:
            snapshot = MuscleSnapshot(1e-3 * k, np.zeros(2), np.full(4, 20.0))
            before = time.perf_counter()
            view.show(snapshot)
            longest = max(longest, time.perf_counter() - before)
            k += 1
            time.sleep(1e-4)
        duration = time.monotonic() - begin
        assert 1 <= len(taken) <= 30.0 * duration + 2
        # nobody watches: less is sent than taken
        assert view.updates < 10
        wait_for(lambda: view.settled)
        assert taken[-1] is snapshot
    print(f"\nlongest hand-over {1e6 * longest:.0f} us of {k}, {len(taken)} taken")


def test_odd_snapshots_do_not_end_the_view(planar_2r):
    with MusclePage(planar_2r, NoCommands(), port=0) as view:
        view.show(MuscleSnapshot(0.0, np.array([np.nan, 0.0]), np.full(4, np.nan)))
        time.sleep(0.1)
        view.show(MuscleSnapshot(0.1, np.zeros(7), np.full(3, 1.0)))
        time.sleep(0.1)
        last = MuscleSnapshot(0.2, np.zeros(2), np.full(4, np.nan))
        view.show(last)
        wait_for(lambda: view.settled)
        assert view._last is last
        assert view.updates >= 1


class Page:
    """Plays an open page to `ClientPace`: answers after a while."""

    def __init__(self, number, delay):
        self.client_id = number
        self.delay = delay
        self.local_storage = self

    def get_item(self, _key, timeout):
        time.sleep(min(self.delay, timeout))


class Server:
    """Plays a viser server."""

    def __init__(self):
        self.clients = {}
        self.connect = None

    def on_client_connect(self, callback):
        self.connect = callback

    def get_clients(self):
        return dict(self.clients)

    def open(self, page):
        self.clients[page.client_id] = page
        self.connect(page)


def test_pace_is_that_of_the_slowest_page():
    server = Server()
    pace = ClientPace(server)
    assert pace.interval() == 0.0
    server.open(Page(1, 0.02))
    time.sleep(0.5)
    assert pace.interval() == 0.0
    slow = Page(2, 0.4)
    server.open(slow)
    wait_for(lambda: pace.interval() > 0.35)
    time.sleep(0.5)
    assert 0.35 < pace.interval() < 0.8
    # a page that hangs is noticed before it answers, and nobody waits for it for ever
    slow.delay = 3.0
    wait_for(lambda: pace.interval() == 2.0)
    del server.clients[2]
    wait_for(lambda: pace.interval() == 0.0)
    pace.stop()


def test_snapshot_box_keeps_the_newest():
    box = SnapshotBox()
    assert box.get() == (0, None)
    snapshots = [MuscleSnapshot(float(k), np.zeros(1), np.zeros(1)) for k in range(100)]
    threads = [
        threading.Thread(target=lambda part=part: [box.put(s) for s in part])
        for part in (snapshots[:50], snapshots[50:])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count, last = box.get()
    assert count == 100
    assert last in (snapshots[49], snapshots[99])


def test_arrows_without_length_are_hidden():
    arrows = np.zeros((4, 2, 3))
    arrows[1, 1], arrows[2, 1] = (0.0, 1.0, 0.0), (3.0, 0.0, 0.0)
    shown = with_length(arrows)
    np.testing.assert_array_equal(shown, arrows[[2, 1, 2, 2]])
    np.testing.assert_array_equal(with_length(shown), shown)
    np.testing.assert_array_equal(with_length(arrows[:0]), arrows[:0])
    np.testing.assert_array_equal(with_length(np.zeros((2, 2, 3))), np.zeros((2, 2, 3)))


def test_sliders_are_for_what_muscles_can_be_told(wrap_arm):
    """Excitation, pressure or tension; a ligament takes nothing. The cable shows its tension."""
    commands = NoCommands()
    sent = []
    commands.set_command = lambda *call: sent.append(call)
    with MusclePage(wrap_arm, commands, port=0) as view:
        panel = view._muscle_panel
        assert [slider.label for slider in panel._sliders] == ["extensor", "ring", "flexor"]
        tensions = np.array([10.0, 20.0, 30.0, 40.0])
        view.show(
            MuscleSnapshot(0.0, np.zeros(2), tensions, {"ring/pressure": 2e5}, controller="c")
        )
        wait_for(lambda: view.settled)
        assert [slider.value for slider in panel._sliders] == [0.0, 0.0, 20.0]
        assert [(slider.min, slider.max) for slider in panel._sliders] == [
            (0.0, 1.0),
            (0.0, 1e-3 * wrap_arm.muscles[3].actuator.max_pressure),
            (5.0, 500.0),
        ]
        assert "200.00" in view._state_table._html.content
        assert sent == []


def test_trail_follows_and_does_not_draw_twice():
    trail = Trail(0.01)
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.column_stack([np.cos(angles), np.sin(angles), np.zeros(200)])
    for point in circle:
        trail.add(point)
    once = len(trail.segments())
    length = np.linalg.norm(np.diff(trail.segments(), axis=1), axis=2).sum()
    assert length == pytest.approx(2.0 * np.pi, rel=0.01)
    for point in circle:
        trail.add(point + 1e-3)
    assert len(trail.segments()) <= once + 3
    trail.add(None)
    trail.add(np.array([np.nan, 0.0, 0.0]))
    assert np.isfinite(trail.segments()).all()


def test_trail_dashes_cover_half():
    trail = Trail(0.001)
    for x in np.linspace(0.0, 1.0, 501):
        trail.add(np.array([x, 0.0, 0.0]))
    dashes = trail.segments(dash=0.05)
    assert np.linalg.norm(np.diff(dashes, axis=1), axis=2).sum() == pytest.approx(0.5, abs=0.02)


def test_trail_is_bounded_and_forgets():
    trail = Trail(1e-6)
    for k in range(MAX_PATH_SEGMENTS + 100):
        trail._distance = lambda _point: np.inf  # the distance is not what is tested
        trail.add(np.array([float(k), 0.0, 0.0]))
    segments = trail.segments()
    assert len(segments) <= MAX_PATH_SEGMENTS
    np.testing.assert_array_equal(segments[-1, 1], [MAX_PATH_SEGMENTS + 99.0, 0.0, 0.0])
    trail.clear()
    assert trail.changed
    np.testing.assert_array_equal(trail.segments(), np.zeros((1, 2, 3)))


def test_history_window_overflow_and_reset():
    history = History(1, capacity=10)
    for k in range(25):
        history.append(0.1 * k, np.array([float(k)]))
    time_, values = history.columns(100.0)
    np.testing.assert_allclose(values, np.arange(15.0, 25.0))
    time_, values = history.columns(0.35)
    np.testing.assert_allclose(time_, [2.1, 2.2, 2.3, 2.4])
    np.testing.assert_allclose(values, [21.0, 22.0, 23.0, 24.0])
    history.append(0.1 * 24, np.array([9.0]))
    np.testing.assert_allclose(history.columns(0.35)[1], [21.0, 22.0, 23.0, 9.0])
    history.append(0.0, np.array([7.0]))
    np.testing.assert_array_equal(history.columns(100.0), [[0.0], [7.0]])


def test_status_text():
    snapshot = MuscleSnapshot(
        12.345,
        np.zeros(3),
        np.zeros(1),
        names=("x", "y", "z"),
        units=("m", "m", "m"),
        error=np.array([0.003, 0.004, 0.0]),
        controller="<b>",
        real_time_factor=0.98,
        control_rate=999.7,
        message="no valid command",
    )
    html = status_html(snapshot)
    for text in (
        "running",
        "12.35 s",
        "0.98×",
        "1000 Hz",
        "5 mm",
        "&lt;b&gt;",
        "no valid command",
    ):
        assert text in html
    html = status_html(MuscleSnapshot(0.0, np.zeros(1), np.zeros(1), stopped=True, paused=True))
    assert "EMERGENCY STOP" in html
    assert "no controller" in html
    joint = MuscleSnapshot(
        0.0, np.zeros(2), np.zeros(1), units=("rad",) * 2, error=np.array([0.0, -0.02])
    )
    assert "20 mrad" in status_html(joint)
    units, error = ("rad", "m", "m"), np.array([0.02, 0.003, -0.004])
    both = MuscleSnapshot(0.0, np.zeros(3), np.zeros(1), units=units, error=error)
    assert "5 mm, 20 mrad" in status_html(both)
    tiny = MuscleSnapshot(0.0, np.zeros(2), np.zeros(1), units=("m",) * 2, error=np.full(2, 1e-9))
    assert "&lt; 0.1 µm" in status_html(tiny)
    small = MuscleSnapshot(0.0, np.zeros(2), np.zeros(1), units=("m",), error=np.array([1.43e-6]))
    assert "1.43 µm" in status_html(small)


def test_bars_of_what_a_run_has():
    scale = TensionScale(0.0, 100.0)
    bare = MuscleSnapshot(0.0, np.zeros(1), np.array([50.0, np.nan]))
    (tension,) = columns_of(["a<b", "c"], [bare], scale, 0.0)
    html = table_html(["a<b", "c"], [tension])
    assert "a&lt;b" in html
    assert "tension [N]" in html
    assert "width:50.0%" in html
    assert ">50.0<" in html
    assert ">–<" in html
    states = {"a/winding_temperature": 50.0, "b/winding_temperature": np.nan}
    states |= {"b/housing_temperature": 61.0, "c/current": 2.0}
    full = MuscleSnapshot(
        0.0,
        np.zeros(1),
        np.array([50.0, 20.0, 10.0]),
        states,
        released=np.array([1e-3, 0.0, np.nan]),
        necessary=np.array([25.0, 20.0, np.nan]),
        limits=BarLimits(released=4e-3),
    )
    names = ["a", "b", "c"]
    columns = columns_of(names, [full], scale, 0.0)
    assert [column.title for column in columns] == ["tension [N]", "released [mm]", "motor [°C]"]
    # necessary tension, a quarter of the scale; 1 mm of 4 mm; 50 degC between 20 and 80 degC
    assert columns[0].fraction(columns[0].runs[0].marks)[0] == 0.25
    assert columns[1].fraction(columns[1].runs[0].values)[0] == 0.25
    assert columns[2].fraction(columns[2].runs[0].values)[0] == 0.5
    # the housing counts where the winding is not known; what has no sensor has no bar
    assert columns[2].runs[0].values[1] == 61.0
    assert np.isnan(columns[2].runs[0].values[2])
    colors = columns[2].runs[0].colors
    assert colors[0] == temperature_color(59.9, BarLimits())
    assert colors[1] == temperature_color(60.0, BarLimits())
    assert len({colors[0], colors[1], temperature_color(80.0, BarLimits()), colors[2]}) == 4


def test_released_lengths_end_at_a_round_number_where_no_limit_is_known():
    snapshot = MuscleSnapshot(0.0, np.zeros(1), np.zeros(1), released=np.array([1.1e-3]))
    column = columns_of(["a"], [snapshot], TensionScale(), 1.98e-3)[1]
    assert column.high == pytest.approx(2.0)


def test_two_runs_stand_above_each_other():
    hot = {"a/winding_temperature": 81.0}
    a = MuscleSnapshot(0.0, np.zeros(1), np.array([50.0]), hot)
    b = MuscleSnapshot(0.0, np.zeros(1), np.array([70.0]))
    columns = columns_of(["a"], [a, b], TensionScale(0.0, 100.0), 0.0)
    assert [len(column.runs) for column in columns] == [2, 2]
    html = table_html(["a"], columns, ("with", "without"))
    assert html.index(">50.0<") < html.index(">70.0<")
    assert "upper bar with, lower bar without" in html


def test_refused_commands_are_told_and_survived():
    told = []
    run = guarded(told.append)

    def refuse():
        raise CardsError("tension 7000 N of 'biceps' is above 5000 N")

    def break_down():
        raise RuntimeError("host went away")

    run(refuse)
    run(break_down)
    run(lambda: None)
    assert told == [
        "tension 7000 N of 'biceps' is above 5000 N",
        "command failed: host went away",
    ]
