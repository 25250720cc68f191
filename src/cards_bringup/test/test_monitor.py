"""``./cards monitor``: what it draws, and where it has that from."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
import termios
import threading
import time

import numpy as np
import pytest
from fake_board import FakeBoard
from rich.console import Console

from cards_bringup.cli import main
from cards_bringup.real_robot.monitor import render, watch
from cards_core.errors import CardsError
from cards_hardware.boards.events import BoardEvent, flag_names
from cards_hardware.monitor.board_monitor import BoardMonitor
from cards_hardware.monitor.snapshot import (
    SERIOUS,
    BoardRow,
    JointRow,
    MuscleRow,
    Snapshot,
)
from cards_hardware.protocol.enums import MuscleFlag, State

pytestmark = pytest.mark.serial


def snapshot(muscles=11):
    rows = [
        MuscleRow(
            f"motor{i}",
            length=0.3 + 0.01 * i,
            rate=-0.012 * i,
            tension=60.0 * i,
            current=0.2 * i,
            housing=30.0 + 3.0 * i,
            core=40.0 + 4.0 * i,
            tension_limit=800.0,
            length_min=0.2,
            length_max=0.9,
        )
        for i in range(muscles)
    ]
    rows[3] = dataclasses.replace(rows[3], flags=("slack", "relaxed"), serious=True)
    rows[5] = dataclasses.replace(rows[5], flags=("tension limited",), housing=math.nan)
    joints = [
        JointRow(f"shoulder_axis_{i}", 0.1 * i, -0.02 * i, -1.0, 1.0 if i else 0.0)
        for i in range(4)
    ]
    board = BoardRow(
        "arm",
        "/dev/ttyACM0",
        "ACTIVE",
        True,
        vbus=24.1,
        state_rate=499.8,
        state_age=0.0021,
        latency_p99=0.0043,
        heartbeat_gap=0.0061,
        reply=0.0012,
        heartbeat_jitter="<=10us 980, <=2ms 1",
        replies="<=100us 12",
        counters={"damaged": 3},
        who="firmware 1.0.0, 0011223344556677",
        simulated=True,
    )
    events = tuple(
        (float(k), k % 4, f"arm motor{k}: something happened") for k in range(20, 0, -1)
    )
    return Snapshot("roboy_arm", "serial line", (board,), tuple(rows), tuple(joints), events)


def as_text(snapshot, width, height):
    console = Console(width=width, height=height, color_system=None, legacy_windows=False)
    with console.capture() as capture:
        console.print(render(snapshot, width, height, keys=False))
    return capture.get()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 24), (140, 40), (80, 50)])
def test_it_fits_the_window_and_says_all(width, height):
    text = as_text(snapshot(), width, height)
    lines = text.splitlines()
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    if width >= 100:
        assert "heartbeats <= 6.1 ms  replies <= 1.2 ms" in text
    for i in range(11):
        assert any(line.startswith(f"motor{i} ") for line in lines)
    for word in ("ACTIVE", "24.1 V", "500 Hz", "damaged 3", "slack, relaxed", "shoulder_axis_3"):
        assert word in text
    assert "something happened" in text  # the newest events fill what is left
    assert lines[-1].strip().endswith("motor1: something happened") or not lines[-1].strip()


def test_many_muscles_in_a_small_window_show_those_in_trouble_first():
    many = snapshot(40)
    rows = list(many.muscles)
    rows[38] = dataclasses.replace(rows[38], flags=("rupture",), serious=True)
    text = as_text(dataclasses.replace(many, muscles=tuple(rows)), 80, 20)
    assert len(text.splitlines()) <= 20
    assert "motor38" in text
    assert "rupture" in text
    assert "motor3 " in text
    assert "motor20" not in text
    assert "more muscles: enlarge the window" in text


def wait_for(condition):
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def styles_of(found):
    """Texts of a drawing and their colours."""
    console = Console(width=140, height=40, color_system="standard", force_terminal=True)
    return [(segment.text.strip(), str(segment.style)) for segment in console.render(found)]


def test_colours_at_soft_and_hard_limits():
    base = snapshot(6)
    rows = [
        dataclasses.replace(base.muscles[0], tension=640.0, housing=61.0),
        dataclasses.replace(base.muscles[1], tension=801.5, housing=82.0),
        dataclasses.replace(base.muscles[2], length=0.95),
    ]
    drawn = dict(styles_of(render(dataclasses.replace(base, muscles=tuple(rows)), 140, 40)))
    assert drawn["640.0"] == drawn["61"] == "yellow"
    assert drawn["801.5"] == drawn["82"] == drawn["950.0"] == "bold red"
    assert drawn["ACTIVE"] == "green"
    assert drawn["0.0000"] == "yellow"  # a joint at its limit


def test_as_json_has_no_nan():
    text = json.dumps(snapshot().as_dict(), allow_nan=False)
    found = json.loads(text)
    assert found["muscles"][5]["housing"] is None
    assert found["joints"][0]["name"] == "shoulder_axis_0"


def test_a_limit_at_work_is_not_serious_and_a_broken_wire_is():
    assert not MuscleFlag.TENSION_LIMITED & SERIOUS
    assert not MuscleFlag.SLEW_LIMITED & SERIOUS
    assert MuscleFlag.RUPTURE & SERIOUS
    assert MuscleFlag.HARD_TEMPERATURE & SERIOUS
    assert flag_names(MuscleFlag.SLACK | MuscleFlag.LOAD_STUCK) == ("slack", "load stuck")


def test_boards_by_themselves_are_shown_and_stopped_but_never_armed():
    with FakeBoard(muscles=3, joints=2) as board:
        source = BoardMonitor.of_port(board.port)
        try:
            wait_for(lambda: source.snapshot().muscles)
            found = source.snapshot()
            assert [row.name for row in found.muscles] == ["muscle 0", "muscle 1", "muscle 2"]
            assert np.allclose([row.length for row in found.muscles], board.lengths, atol=1e-6)
            assert [row.name for row in found.joints] == ["joint 0", "joint 1"]
            assert found.boards[0].state == "DISARMED"
            assert "emergency stop sent" in source.estop()
            wait_for(lambda: board.state == State.ESTOP)
        finally:
            source.close()
        asked = {name for name, _ in board.received}
        assert not asked & {"LIMITS", "PARAM_SET", "CALIBRATE", "CMD_TENSION", "STATE_REQUEST"}


def test_limits_are_read_where_there_are_some():
    with FakeBoard(muscles=2, joints=0) as board:
        names = ("tension_max", "tension_min", "tension_safe", "rate_max", "current_max", "slew")
        board.limits = {name: [2.0, 3.0] for name in names}
        board.limits |= {"length_min": [0.15, 0.1], "length_max": [0.3, 0.3]}
        board.limits |= {"soft": [50.0, 60.0], "hard": [70.0, 80.0], "muscles": 2}
        board.limits_loaded = True
        source = BoardMonitor.of_port(board.port)
        try:
            wait_for(lambda: source.snapshot().muscles)
            wait_for(lambda: source.snapshot().muscles[0].soft == 50.0)
            first, second = source.snapshot().muscles
            assert (first.length_min, second.length_min) == (0.15, 0.1)
            assert second.hard == 80.0
        finally:
            source.close()


def test_events_without_a_text_say_what_their_code_means():
    from cards_hardware.monitor.board_monitor import _event_text

    state = BoardEvent(0.0, "arm", 1, "", 2, None, 1 << 8 | 2)
    assert _event_text(state) == "arm: DISARMED -> ARMED"
    relaxed = BoardEvent(0.0, "arm", 2, "", 13, "motor3", 48)
    assert _event_text(relaxed) == "arm motor3: the board relaxed a muscle (48)"
    assert _event_text(BoardEvent(0.0, "arm", 1, "", 999, None, 7)) == "arm: event 999, value 7"
    assert _event_text(BoardEvent(0.0, "arm", 1, "hello")) == "arm: hello"


class Stoppable:
    """A source that counts what is asked of it."""

    def __init__(self, error=None):
        self.pictures = self.stops = 0
        self.error = error

    def snapshot(self):
        self.pictures += 1
        return snapshot()

    def estop(self):
        self.stops += 1
        if self.error:
            raise self.error
        return "stopped"


@pytest.mark.parametrize("typed", [b"e|q", b"eq", b"xE|Q"])
@pytest.mark.parametrize("error", [None, CardsError("USE THE STOP BUTTON")])
def test_keys_stop_and_quit_however_fast_they_are_typed(typed, error, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")  # on a dumb terminal nothing is drawn
    master, slave = os.openpty()
    before = termios.tcgetattr(slave)
    source = Stoppable(error)
    out = io.StringIO()
    with open(slave, encoding="utf-8") as keys:
        monkeypatch.setattr("sys.stdin", keys)
        console = Console(file=out, width=80, height=24, force_terminal=True)
        thread = threading.Thread(target=watch, args=(source, 20.0, console))
        thread.start()
        for group in typed.split(b"|"):
            shown = source.pictures
            wait_for(lambda shown=shown: source.pictures > shown + 1)
            os.write(master, group)
        thread.join(20.0)
        assert not thread.is_alive()
        assert source.stops == 1
        assert termios.tcgetattr(slave)[3] == before[3]  # the terminal echoes again
    os.close(master)
    if typed == b"e|q":
        assert (str(error) if error else "stopped") in out.getvalue()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--json",), "--json without --once"),
        (("--rate", "0"), "argument --rate: '0' (expected: a finite number >= 0.5 and <= 60)"),
        (("--layout", "x"), "--layout is for ROBOT with --port"),
        (("--port", "/dev/nonexistent", "--once"), "/dev/nonexistent does not exist"),
        (("--port", "/dev/null"), "no terminal to draw on"),
    ],
)
def test_what_was_typed_wrongly(arguments, text, capsys):
    assert main(["monitor", *arguments]) == 2
    assert text in capsys.readouterr().err
