"""Snapshots of boards that are looked at without a bridge, and what is shown of them."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.formats import load
from cards_hardware.boards.events import BoardEvent
from cards_hardware.boards.layout import BAUDRATE, BoardLayout, MuscleLimits
from cards_hardware.boards.status import BoardStatus
from cards_hardware.errors import HardwareError
from cards_hardware.monitor import board_monitor as module
from cards_hardware.monitor.board_monitor import BoardMonitor
from cards_hardware.monitor.snapshot import EVENTS, SERIOUS, MuscleRow, Snapshot
from cards_hardware.protocol.enums import EventCode, FastFlag, Fault, MuscleFlag, Severity, State

ROBOT = load("planar_2r")


class FakeBoard:
    """A board that is there, unless its port says otherwise."""

    made = ()

    def __init__(self, layout, *, on_event, any_node):
        self.layout, self.on_event, self.any_node = layout, on_event, any_node
        self.calls, self.asked = [], 0
        self.sample = None
        self.connected = True
        self.changes = {}
        self.limits = {"length_min": [0.1, 0.2], "length_max": [0.5, 0.6], "soft": [55.0, 56.0],
                       "hard": [75.0, 76.0]}  # fmt: skip
        FakeBoard.made = (*FakeBoard.made, self)

    def open(self):
        self.calls.append("open")
        if "none" in self.layout.port:
            raise HardwareError(f"{self.layout.port} is not there")

    def close(self):
        self.calls.append("close")

    def estop(self):
        self.calls.append("estop")

    def get_limits(self):
        self.asked += 1
        if self.limits is None:
            raise HardwareError("no answer")
        return self.limits

    def status(self):
        values = {"connected": self.connected, "state": State.HOLD, **self.changes}
        return BoardStatus(self.layout.name, self.layout.node, self.layout.port, **values)

    def samples(self, flags=FastFlag.LIMITS_LOADED):
        rows = np.arange(8.0).reshape(4, 2)
        self.sample = SimpleNamespace(
            lengths=rows[0], rates=rows[1], tensions=rows[2], currents=rows[3],
            positions=np.array([0.25, -0.5]), velocities=np.array([1.0, 2.0]), flags=int(flags),
        )  # fmt: skip


@pytest.fixture(autouse=True)
def boards(monkeypatch):
    monkeypatch.setattr(module, "Board", FakeBoard)
    monkeypatch.setattr(FakeBoard, "made", ())
    now = [1000.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))


LAYOUT = BoardLayout(
    "arm", 3, "/dev/arm", muscles=("a", "b"), joints=("joint_2", "joint_1"),
    limits=(MuscleLimits(100.0),) * 2, position_rows=np.array([1, 0]),
)  # fmt: skip


def of_robot():
    monitor = BoardMonitor.of_robot(ROBOT, SimpleNamespace(boards=(LAYOUT,)))
    return monitor, FakeBoard.made[0]


def test_nothing_is_written_to_a_board_that_somebody_looks_at():
    _, board = of_robot()
    assert board.layout.limits == ()
    assert (board.any_node, board.calls) == (False, ["open"])
    FakeBoard.made = ()
    BoardMonitor.of_port("/dev/one")
    (board,) = FakeBoard.made
    assert board.any_node
    assert (board.layout.name, board.layout.port, board.layout.baudrate) == (
        "board", "/dev/one", BAUDRATE,
    )  # fmt: skip


def test_several_ports_are_boards_with_numbers():
    monitor = BoardMonitor.of_port("/dev/one,/dev/two", 57600)
    assert [b.layout.name for b in FakeBoard.made] == ["board 1", "board 2"]
    assert {b.layout.baudrate for b in FakeBoard.made} == {57600}
    assert monitor.snapshot().title == "/dev/one /dev/two"
    assert monitor.estop() == "emergency stop sent to board 1, board 2"
    monitor.close()
    assert [b.calls for b in FakeBoard.made] == [["open", "estop", "close"]] * 2


def test_one_board_that_answers_is_enough():
    BoardMonitor.of_port("/dev/none1,/dev/two")
    assert [b.calls for b in FakeBoard.made] == [["open"], ["open"]]
    FakeBoard.made = ()
    with pytest.raises(HardwareError, match="/dev/none1 is not there"):
        BoardMonitor.of_port("/dev/none1,/dev/none2")
    assert [b.calls for b in FakeBoard.made] == [["open", "close"]] * 2


def test_before_the_first_sample_there_are_names():
    monitor, _ = of_robot()
    snapshot = monitor.snapshot()
    assert (snapshot.title, snapshot.source) == (ROBOT.name, "serial line")
    assert [row.name for row in snapshot.muscles] == ["a", "b"]
    assert all(math.isnan(row.length) for row in snapshot.muscles)
    assert snapshot.joints == ()


def test_measured_values_limits_and_joints_are_in_their_rows():
    monitor, board = of_robot()
    board.samples()
    board.changes = {
        "temperatures": (30.0, 31.0), "core_temperatures": (40.0,), "tension_limits": (9.0, 8.0),
        "muscle_flags": (MuscleFlag.TENSION_LIMITED, MuscleFlag.SLACK),
    }  # fmt: skip
    one, two = monitor.snapshot().muscles
    assert (one.length, one.rate, one.tension, one.current) == (0.0, 2.0, 4.0, 6.0)
    assert (two.length, two.rate, two.tension, two.current) == (1.0, 3.0, 5.0, 7.0)
    assert (one.housing, one.core, one.tension_limit) == (30.0, 40.0, 9.0)
    assert (two.housing, math.isnan(two.core)) == (31.0, True)
    assert (one.length_min, one.length_max, one.soft, one.hard) == (0.1, 0.5, 55.0, 75.0)
    assert (two.length_min, two.length_max, two.soft, two.hard) == (0.2, 0.6, 56.0, 76.0)
    assert (one.flags, one.serious) == (("tension limited",), False)
    assert (two.flags, two.serious) == (("slack",), True)
    joints = monitor.snapshot().joints
    tree = ROBOT.tree
    assert [row.name for row in joints] == [tree.position_names[1], tree.position_names[0]]
    assert [row.position for row in joints] == [0.25, -0.5]
    assert [row.velocity for row in joints] == [1.0, 2.0]
    assert [row.lower for row in joints] == [tree.lower[1], tree.lower[0]]
    assert [row.upper for row in joints] == [tree.upper[1], tree.upper[0]]


def test_a_board_that_nobody_knows_has_numbers_for_names():
    monitor = BoardMonitor.of_port("/dev/one")
    FakeBoard.made[0].samples(0)
    snapshot = monitor.snapshot()
    assert [row.name for row in snapshot.muscles] == ["muscle 0", "muscle 1"]
    assert [row.name for row in snapshot.joints] == ["joint 0", "joint 1"]
    assert {(row.lower, row.upper) for row in snapshot.joints} == {(-math.inf, math.inf)}
    assert {(row.soft, row.hard) for row in snapshot.muscles} == {(60.0, 80.0)}
    assert all(math.isnan(row.length_min) for row in snapshot.muscles)


def test_limits_are_asked_for_once_in_a_session():
    monitor, board = of_robot()
    board.samples(0)
    monitor.snapshot()
    assert board.asked == 0  # it has none
    board.samples()
    for _ in range(3):
        assert monitor.snapshot().muscles[0].length_max == 0.5
    assert board.asked == 1
    board.connected = False
    assert math.isnan(monitor.snapshot().muscles[0].length_max)
    board.connected = True
    board.limits = None
    for _ in range(2):
        assert math.isnan(monitor.snapshot().muscles[0].length_max)
    assert board.asked == 2  # a refusal is not asked for again


def test_a_row_of_a_board_has_what_went_wrong():
    monitor, board = of_robot()
    names = ("crc_errors", "lost_frames", "rx_crc", "rx_gap", "tx_dropped", "drive_errors",
             "tick_late", "reconnects", "resets")  # fmt: skip
    board.changes = {name: i for i, name in enumerate(names)} | {
        "refused": {"range": 5, "stale": 0}, "firmware": "1.2.3", "uid": "00ff", "vbus": 24.0,
        "fault": Fault.TICK | Fault.VBUS_LOW, "problem": "hm", "state_rate": 500.0,
        "state_age": 0.5, "latency_p99": 0.25, "simulated": True,
    }  # fmt: skip
    (row,) = monitor.snapshot().boards
    assert row.counters == {
        "lost": 1, "rx damaged": 2, "rx lost": 3, "tx dropped": 4, "drive errors": 5,
        "late ticks": 6, "reconnects": 7, "resets": 8, "refused: range": 5,
    }  # fmt: skip
    assert (row.name, row.port, row.state, row.connected) == ("arm", "/dev/arm", "HOLD", True)
    assert (row.who, row.problem, row.simulated) == ("firmware 1.2.3, 00ff", "hm", True)
    assert row.faults == ("vbus low", "tick")
    assert (row.vbus, row.state_rate, row.state_age, row.latency_p99) == (24.0, 500.0, 0.5, 0.25)
    board.connected, board.changes = False, {"crc_errors": 2}
    (row,) = monitor.snapshot().boards
    assert (row.state, row.who, row.counters) == ("unknown", "", {"damaged": 2})


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (BoardEvent(990.0, "arm", 2, "hot", 12, "a"), "arm a: hot"),
        (BoardEvent(990.0, "arm", 2, "hot"), "arm: hot"),
        (BoardEvent(990.0, "arm", 2, "", 250, None, 7), "arm: event 250, value 7"),
        (BoardEvent(990.0, "arm", 2, "", None, None, 7), "arm: event None, value 7"),
        (
            BoardEvent(990.0, "arm", 2, "", int(EventCode.STATE), None, State.ARMED << 8 | 4),
            "arm: ARMED -> HOLD",
        ),
    ],
)
def test_events_have_their_age_and_words(event, text):
    monitor, board = of_robot()
    board.on_event(event)
    assert monitor.snapshot().events == ((10.0, 2, text),)


def test_events_with_a_value_tell_it():
    monitor, board = of_robot()
    for code in EventCode:
        if code != EventCode.STATE:
            board.on_event(BoardEvent(0.0, "arm", 1, "", int(code), None, 4711))
            text = monitor.snapshot().events[-1][2]
            meaning = "; value" in code.text
            assert text == f"arm: {code.text.split('; value')[0]}" + " (4711)" * meaning


def test_so_many_events_are_kept():
    monitor, board = of_robot()
    for i in range(60):
        board.on_event(BoardEvent(0.0, "arm", 1, str(i)))
    events = monitor.snapshot().events
    assert len(events) == EVENTS == 50
    assert [events[0][2], events[-1][2]] == ["arm: 10", "arm: 59"]


def test_a_snapshot_as_plain_values_has_nothing_that_is_no_number():
    snapshot = Snapshot(
        "t", "s", muscles=(MuscleRow("m", 0.5, flags=("slack",)),),
        events=((math.inf, Severity.WARN, "x"),),
    )  # fmt: skip
    plain = snapshot.as_dict()
    assert plain["muscles"][0]["length"] == 0.5
    assert plain["muscles"][0]["rate"] is None
    assert (plain["muscles"][0]["soft"], plain["muscles"][0]["hard"]) == (60.0, 80.0)
    assert plain["muscles"][0]["flags"] == ["slack"]
    assert plain["events"] == [[None, 2, "x"]]
    assert type(plain["events"][0][1]) is int


@pytest.mark.parametrize("flag", MuscleFlag)
def test_limits_at_work_are_not_serious(flag):
    at_work = flag.name.endswith(("_LIMITED", "LENGTH_LOW", "LENGTH_HIGH", "LIMITS_MISSING"))
    assert bool(flag & SERIOUS) != at_work
