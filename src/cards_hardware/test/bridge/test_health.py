"""What the bridge says on /diagnostics, for every state of host and boards."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_hardware.boards.events import BoardEvent
from cards_hardware.boards.line_thread import CommandCounts
from cards_hardware.boards.status import BoardStatus
from cards_hardware.bridge import health as module
from cards_hardware.bridge.health import CLOCK_STEP, QUIET, SHOWN, SLOW_STATES, BridgeHealth
from cards_hardware.percentiles import RingStatistics
from cards_hardware.protocol.enums import Fault, MuscleFlag, Severity, State
from cards_ros.diagnostics import Level, Status

MUSCLES = ("left", "right")
BOARD = BoardStatus(
    "arm", 3, "/dev/arm", connected=True, state=State.ARMED, temperatures=(30.0, 41.5),
    vbus=24.0, tick_max=850e-6, state_age=0.002, rtt=0.0004, clock_error=0.0001,
    latency_p50=0.003, latency_p99=0.004, firmware="1.2.3", rx_ok=5, lost_frames=7,
)  # fmt: skip


class FakeDiagnostics(dict):
    """Statuses that nobody publishes."""

    def __init__(self, _node, _robot, names):
        super().__init__((name, Status(name)) for name in names)
        self.updates = 0

    def update(self):
        self.updates += 1


class Bridge:
    """Health of a bridge to one board, with all that it looks at."""

    def __init__(self, monkeypatch):
        self.now = 100.0
        self.lines = []
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(module, "Diagnostics", FakeDiagnostics)
        logger = SimpleNamespace(
            **{
                level: (lambda text, level=level: self.lines.append((level, text)))
                for level in ("error", "warning", "debug")
            }
        )
        self.gate = SimpleNamespace(
            stopped=False, accepted=0, refused=0, stale_muscles=(), timeout=0.1
        )
        self.host = SimpleNamespace(
            robot=SimpleNamespace(name="robot"), gate=self.gate, active=True, stale=False,
            ages=RingStatistics(), durations=RingStatistics(), states=0, commands=0, skipped=0,
            clock=SimpleNamespace(error=0.0),
            status=SimpleNamespace(
                boards=(BOARD,), connected=True, problem="", scheduled="fifo",
                commands=CommandCounts(),
            ),
        )  # fmt: skip
        self.view = SimpleNamespace(lifecycle_state="active", reason="")
        layout = SimpleNamespace(boards=(SimpleNamespace(name="arm", muscles=MUSCLES),))
        self.health = BridgeHealth(
            SimpleNamespace(get_logger=lambda: logger), self.host, layout, self.view,
            SimpleNamespace(report=lambda status, text: status.ok(text)),
        )  # fmt: skip

    def of(self, name, **changes):
        """Level, message and values of a status, after changes of the board."""
        if changes:
            self.host.status.boards = (replace(BOARD, **changes),)
        self.health.update()
        status = self.health._diagnostics[name]
        return status.level, status.message, status.values


@pytest.fixture
def bridge(monkeypatch):
    return Bridge(monkeypatch)


# One board ---------------------------------------------------------------------------------------


def test_numbers_of_a_board_are_in_the_units_of_their_names(bridge):
    level, message, values = bridge.of("board arm")
    assert (level, message) == (Level.OK, "ARMED")
    assert values["hottest"] == "right 41.5 degC"
    assert (values["state"], values["faults"], values["simulated"]) == ("ARMED", "none", False)
    assert (values["port"], values["node"], values["firmware"]) == ("/dev/arm", 3, "1.2.3")
    expected = {
        "tick_max_us": 850.0, "state_age_ms": 2.0, "rtt_ms": 0.4, "clock_error_ms": 0.1,
        "command_latency_p50_ms": 3.0, "command_latency_p99_ms": 4.0, "vbus": 24.0, "rx_ok": 5,
        "lost_frames": 7,
    }  # fmt: skip
    assert {name: values[name] for name in expected} == pytest.approx(expected)
    assert math.isnan(values["state_delay_p50_ms"])


@pytest.mark.parametrize("temperatures", [(), (math.nan, math.nan)])
def test_without_a_temperature_no_motor_is_the_hottest(bridge, temperatures):
    assert bridge.of("board arm", temperatures=temperatures)[2]["hottest"] == "unknown"
    found = bridge.of("board arm", temperatures=(50.0, math.nan))[2]["hottest"]
    assert found == "left 50.0 degC"


@pytest.mark.parametrize(
    ("lifecycle", "level"),
    [("active", Level.ERROR), ("inactive", Level.ERROR), ("unconfigured", Level.WARN)],
)
def test_a_board_that_is_not_there(bridge, lifecycle, level):
    bridge.view.lifecycle_state = lifecycle
    assert bridge.of("board arm", connected=False, problem="unplugged")[:2] == (level, "unplugged")
    found = bridge.of("board arm", connected=False)
    assert found[:2] == (level, "not connected")
    assert found[2]["state"] == "unknown"


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        ({"state": State.HOLD}, Level.WARN, f"HOLD: {State.HOLD.text}"),
        ({"state": State.RELAX}, Level.WARN, f"RELAX: {State.RELAX.text}"),
        ({"state": State.DISARMED}, Level.OK, "DISARMED"),
        ({"state": None}, Level.OK, "unknown"),
        ({"problem": "no limits"}, Level.WARN, "no limits"),
        ({"state": State.ESTOP}, Level.ERROR, "ESTOP: no fault left"),
        ({"state": State.FAULT, "fault": Fault.TICK}, Level.ERROR, "FAULT: tick"),
        ({"state": State.DISARMED, "fault": Fault.VBUS_LOW}, Level.ERROR, "DISARMED: vbus low"),
        # the worst counts
        ({"state": State.ESTOP, "problem": "x", "muscle_flags": (MuscleFlag.SLACK, 0)},
         Level.ERROR, "ESTOP: no fault left"),
        ({"state": State.HOLD, "problem": "x"}, Level.WARN, f"HOLD: {State.HOLD.text}"),
    ],
)  # fmt: skip
def test_states_and_faults_of_a_board(bridge, changes, level, message):
    assert bridge.of("board arm", **changes)[:2] == (level, message)


def test_flags_of_muscles_are_shown_and_those_of_limits_at_work_worry_nobody(bridge):
    nothing = MuscleFlag(0)
    limited = MuscleFlag.TENSION_LIMITED | MuscleFlag.CURRENT_LIMITED | MuscleFlag.LENGTH_LOW
    level, message, values = bridge.of("board arm", muscle_flags=(limited, nothing))
    assert (level, message) == (Level.OK, "ARMED")
    assert values["muscle left"] == "tension limited, length low, current limited"
    assert "muscle right" not in values
    both = (limited | MuscleFlag.SLACK, MuscleFlag.OVERLOAD)
    level, message, values = bridge.of("board arm", muscle_flags=both)
    assert (level, message) == (Level.WARN, "left: slack; right: overload")
    assert values["muscle right"] == "overload"
    values = bridge.of("board arm", muscle_flags=(nothing, nothing))[2]
    assert not any(key.startswith("muscle ") for key in values)


def test_refused_frames_are_shown_for_two_seconds_after_each(bridge):
    assert bridge.of("board arm", refused={"range": 3})[:2] == (
        Level.WARN, "frames refused: range",
    )  # fmt: skip
    bridge.now += 0.9 * SHOWN
    assert bridge.of("board arm")[0] == Level.WARN
    bridge.now += 0.2 * SHOWN
    level, message, values = bridge.of("board arm")
    assert (level, message, values["refused_range"]) == (Level.OK, "ARMED", 3)
    found = bridge.of("board arm", refused={"range": 4, "stale": 0, "token": 1})
    assert found[:2] == (Level.WARN, "frames refused: range, token")
    assert (found[2]["refused_range"], found[2]["refused_token"]) == (4, 1)
    assert "refused_stale" not in found[2]


# The boards together -----------------------------------------------------------------------------


def test_boards_together(bridge):
    level, message, values = bridge.of("boards")
    assert (level, message) == (Level.OK, "active")
    assert (values["connected"], values["boards"], values["lifecycle"]) == (1, 1, "active")
    assert values["lines_scheduled"] == "fifo"
    bridge.host.status.scheduled = ""
    assert bridge.of("boards", connected=False)[2]["lines_scheduled"] == "no line is open"
    assert bridge.of("boards", connected=False)[2]["connected"] == 0


def test_what_stands_in_the_way_most_is_told(bridge):
    bridge.host.active, bridge.view.lifecycle_state = False, "inactive"
    assert bridge.of("boards")[:2] == (Level.WARN, "inactive: commands are not obeyed")
    bridge.host.status.problem = "board 'arm' is lost"
    assert bridge.of("boards")[:2] == (Level.ERROR, "inactive: board 'arm' is lost")
    bridge.view.reason = "the robot moved"
    assert bridge.of("boards")[:2] == (Level.ERROR, "inactive: the robot moved")
    assert bridge.of("boards", state=State.ESTOP)[:2] == (
        Level.ERROR, "emergency stop of a board: ~/clear releases it",
    )  # fmt: skip
    bridge.gate.stopped = True
    stop = "emergency stop: safe tensions until ~/clear"
    assert bridge.of("boards")[:2] == (Level.ERROR, stop)
    assert bridge.of("commands")[:2] == (Level.ERROR, stop)
    bridge.health.log_failure = "the disk is full"
    assert bridge.of("boards")[:2] == (Level.ERROR, "the disk is full")


def test_a_stop_of_a_board_that_is_gone_and_problems_of_no_matter_are_not_told(bridge):
    assert bridge.of("boards", connected=False, state=State.ESTOP)[:2] == (Level.OK, "active")
    bridge.host.status.problem = "one"
    assert bridge.of("boards")[0] == Level.OK
    bridge.host.active, bridge.view.lifecycle_state = False, "unconfigured"
    assert bridge.of("boards")[:2] == (Level.WARN, "unconfigured: commands are not obeyed")


# Commands ----------------------------------------------------------------------------------------


def test_commands_from_the_first_to_the_last(bridge):
    bridge.gate.accepted = 5  # of the time before
    bridge.health.armed()
    assert bridge.of("commands")[:2] == (Level.WARN, "waiting for the first command")
    bridge.gate.accepted, bridge.gate.refused, bridge.health.ignored = 6, 2, 4
    level, message, values = bridge.of("commands")
    assert (level, message) == (Level.OK, "ok")
    assert (values["accepted"], values["refused"], values["ignored"]) == (6, 2, 4)
    bridge.host.stale = True
    text = "no valid command for 0.1 s: all muscles; the boards' watchdogs act"
    assert bridge.of("commands")[:2] == (Level.ERROR, text)
    bridge.of("commands")
    assert bridge.lines == [("warning", text)]  # once
    bridge.gate.stale_muscles = ("left", "right")
    assert "0.1 s: left, right;" in bridge.of("commands")[1]
    bridge.host.active = False
    assert bridge.of("commands")[:2] == (Level.OK, "not obeyed")


def test_a_refused_command_is_shown_for_two_seconds_and_logged_once(bridge):
    bridge.gate.accepted = 1
    assert bridge.of("commands")[0] == Level.OK  # nothing was refused before the start
    bridge.now += 1.0
    for reason in ("too strong", "too long"):
        bridge.health.refused(reason)
        bridge.now += 0.6 * SHOWN
    assert bridge.of("commands")[:2] == (Level.WARN, "command refused: too long")
    assert bridge.lines == [("warning", "too strong")]
    bridge.now += 0.6 * SHOWN
    assert bridge.of("commands")[0] == Level.OK
    bridge.health.refused("again")
    assert bridge.lines[-1] == ("warning", "again")


# The loop ----------------------------------------------------------------------------------------


def test_rates_of_the_loop_are_those_of_the_last_second(bridge):
    assert bridge.of("loop")[2] == {}
    bridge.host.states, bridge.host.commands, bridge.host.skipped = 250, 100, 3
    bridge.host.ages.add(0.004)
    bridge.host.durations.add(80e-6)
    bridge.now += 0.99
    assert bridge.of("loop")[2] == {}
    bridge.now += 0.01
    level, _, values = bridge.of("loop")
    assert level == Level.OK
    assert (values["state_rate_hz"], values["command_rate_hz"]) == pytest.approx((250.0, 100.0))
    assert (values["state_age_p50_ms"], values["state_age_p99_ms"]) == (4.0, 4.0)
    assert (values["command_p50_us"], values["command_p99_us"]) == pytest.approx((80.0, 80.0))
    assert values["states_skipped"] == 3
    bridge.host.states = 450
    bridge.now += 2.0
    values = bridge.of("loop")[2]
    assert (values["state_rate_hz"], values["command_rate_hz"]) == pytest.approx((100.0, 0.0))


@pytest.mark.parametrize("step", [0.9 * CLOCK_STEP, -0.9 * CLOCK_STEP, 0.0])
def test_small_steps_of_the_system_s_clock_are_nothing(bridge, step):
    bridge.host.clock.error = step
    bridge.now += 1.0
    assert bridge.of("loop")[:2] == (Level.OK, "ok")


@pytest.mark.parametrize(("step", "words"), [(0.25, "+0.25"), (-3.0, "-3")])
def test_a_clock_that_was_set_is_told_either_way(bridge, step, words):
    bridge.host.clock.error = step
    bridge.host.ages.add(1.0)  # what follows from it is not told in its place
    bridge.now += 1.0
    level, message, _ = bridge.of("loop")
    assert level == Level.WARN
    assert message.startswith(f"the system's clock was set by {words} s: stamps keep the old time")


def test_late_states_are_told(bridge):
    bridge.host.ages.add(0.9 * SLOW_STATES)
    bridge.now += 1.0
    assert bridge.of("loop")[0] == Level.OK
    bridge.host.ages.add(0.0305)
    bridge.now += 1.0
    assert bridge.of("loop")[:2] == (Level.WARN, "states are late: 99 % within 30.5 ms")


# The log -----------------------------------------------------------------------------------------


def test_the_severity_of_an_event_decides_where_it_is_logged(bridge):
    for code, severity in enumerate(Severity):
        bridge.health.event(BoardEvent(0.0, "arm", severity, f"text {code}", code))
    assert bridge.lines == [
        ("debug", "board arm: text 0"), ("debug", "board arm: text 1"),
        ("warning", "board arm: text 2"), ("error", "board arm: text 3"),
        ("error", "board arm: text 4"),
    ]  # fmt: skip


def test_an_event_is_logged_again_after_a_quiet_time(bridge):
    event = BoardEvent(0.0, "arm", Severity.WARN, "slack", 12, "left")
    bridge.now = 1.0  # as soon as the machine has started
    bridge.health.event(event)
    for later, lines in [(0.9 * QUIET, 1), (1.1 * QUIET, 2), (1.9 * QUIET, 2), (2.2 * QUIET, 3)]:
        bridge.now = 1.0 + later
        bridge.health.event(event)
        assert len(bridge.lines) == lines
    for other in (replace(event, board="leg"), replace(event, muscle="right"),
                  replace(event, code=13), replace(event, severity=Severity.ERROR)):  # fmt: skip
        bridge.health.event(other)
    assert len(bridge.lines) == 7


def test_each_look_publishes(bridge):
    for _ in range(3):
        bridge.health.update()
    assert bridge.health._diagnostics.updates == 3
    assert bridge.health._diagnostics["model"].message == "commands are refused"
    assert list(bridge.health._diagnostics) == ["boards", "board arm", "commands", "loop", "model"]
