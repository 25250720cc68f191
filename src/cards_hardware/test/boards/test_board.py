"""The session with one board, against a board in Python that disobeys on demand."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fake_board import FakeBoard, message_id

from cards_hardware.boards.board import Board
from cards_hardware.boards.layout import IMPEDANCE, BoardLayout, MuscleImpedance, MuscleLimits
from cards_hardware.errors import BoardError, HardwareError, ProtocolError, RequestError
from cards_hardware.protocol.enums import AckCode, Caps, Fault, ParameterId, State
from cards_hardware.protocol.schema import MAJOR

pytestmark = pytest.mark.serial

PATIENT = 30.0
"""Timeout of a request that must not be sent twice for want of an answer, [s]: the fake board
answers when a busy machine lets it."""


def layout_for(fake, **changes):
    settings = {
        "muscles": tuple(f"muscle_{i}" for i in range(fake.muscles)),
        "joints": tuple(f"joint_{i}" for i in range(fake.joints)),
        "limits": tuple(
            MuscleLimits(400.0 - i, slew=1000.0 + i, length_max=0.5) for i in range(fake.muscles)
        ),
        "impedance": tuple(
            MuscleImpedance(5000.0 + 0.1 * i, 12.345, 20.0 + i) for i in range(fake.muscles)
        ),
        "source": "robot.boards.yaml",
    }
    return BoardLayout("arm", fake.node, fake.port, **settings | changes)


def eventually(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.002)


@pytest.fixture
def fake():
    with FakeBoard(3, 2) as board:
        yield board


@pytest.fixture
def session(fake):
    """An open board, its stand-in, and what it told."""
    item = SimpleNamespace(fake=fake, events=[], samples=[])
    item.board = Board(
        layout_for(fake), on_event=item.events.append, on_sample=item.samples.append
    )
    item.board.open()
    yield item
    item.board.close()


def test_it_identifies_loads_limits_and_gets_states_without_arming(session):
    fake, board = session.fake, session.board
    assert board.ident.firmware == "1.2.3"
    assert board.ident.uid == "0102030405060708"
    np.testing.assert_allclose(fake.limits["tension_max"], [400.0, 399.0, 398.0])
    np.testing.assert_allclose(fake.limits["slew"], [1000.0, 1001.0, 1002.0])
    np.testing.assert_allclose(fake.limits["length_max"], 0.5)
    eventually(lambda: len(session.samples) > 20)
    sample = board.sample
    np.testing.assert_allclose(sample.lengths, fake.lengths, atol=1e-6)
    np.testing.assert_allclose(sample.positions, fake.positions, atol=1e-6)
    assert sample.state == State.DISARMED
    assert not board.armed
    assert "STATE_REQUEST" not in fake.names()
    assert not any(name.startswith("CMD_") for name in fake.names())
    times = [item.time for item in session.samples]
    assert times == sorted(times)


def test_heartbeats_and_times_go_out_all_the_time(session):
    fake = session.fake
    eventually(lambda: fake.names().count("HEARTBEAT") > 20)
    eventually(lambda: fake.names().count("TIME_SYNC") > 10)
    beats = [frame.t_us for name, frame in fake.received if name == "HEARTBEAT"]
    spans = np.diff(beats) * 1e-6
    assert np.median(spans) == pytest.approx(0.005, abs=0.001)


def test_states_are_stamped_with_the_time_of_measurement(session):
    fake, board = session.fake, session.board
    eventually(lambda: board.telemetry.clock.exchanges > 10)
    number = board.sample.number
    eventually(lambda: board.sample.number > number + 50)
    truth = (board.sample.t_us - fake.clock_offset % 2**32) % 2**32
    now = round(board.sample.time * 1e6)
    assert abs((now - truth + 2**31) % 2**32 - 2**31) < 3000
    assert board.sample.time <= board.sample.arrival


def test_armed_it_takes_commands_and_only_then(session):
    fake, board = session.fake, session.board
    assert not board.command(board.commands.tensions(np.full(3, 20.0)))
    board.arm()
    assert board.armed
    assert board.state == State.ARMED
    assert board.command(board.commands.tensions(np.array([20.0, 30.0, 40.0])))
    eventually(lambda: fake.commands)
    name, values = fake.commands[0]
    assert (name, values["mask"]) == ("CMD_TENSION", 0b111)
    np.testing.assert_allclose(values["tension"], [20.0, 30.0, 40.0])
    np.testing.assert_array_equal(values["slew"], 0.0)
    eventually(lambda: board.state == State.ACTIVE)
    board.disarm()
    assert board.state == State.DISARMED
    assert not board.command(board.commands.tensions(np.full(3, 20.0)))
    assert len(fake.commands) == 1


def test_partial_commands_name_only_those_muscles(session):
    fake, board = session.fake, session.board
    board.arm()
    board.command(board.commands.tensions(np.array([np.nan, 30.0, 40.0]), slew=500.0))
    board.command(board.commands.lengths(np.array([0.2, np.nan, np.nan])))
    assert not board.command(board.commands.tensions(np.full(3, np.nan)))
    eventually(lambda: len(fake.commands) == 2)
    tension, length = (values for _, values in fake.commands)
    assert tension["mask"] == 0b110
    np.testing.assert_allclose(tension["tension"], [30.0, 40.0])
    np.testing.assert_allclose(tension["slew"], 500.0)
    assert length["mask"] == 0b001
    np.testing.assert_allclose(length["length"], 0.2)
    np.testing.assert_allclose(length["rate"], 0.0)
    np.testing.assert_allclose(length["tension"], 20.0)  # the floor: muscle stiffness control


def test_impedance_laws_are_loaded_before_anything_is_commanded(session):
    fake = session.fake
    told = [
        [fake.parameters[parameter, i] for i in range(3)]
        for parameter in (ParameterId.STIFFNESS, ParameterId.DAMPING, ParameterId.TENSION_FLOOR)
    ]
    assert told == [[50000, 50001, 50002], [12345] * 3, [200, 210, 220]]


def test_set_points_of_the_impedance_law(session):
    fake, board = session.fake, session.board
    board.arm()
    nan = np.nan
    assert board.command(
        board.commands.impedance(
            np.array([nan, 0.21, 0.22]), np.array([nan, -0.05, 0.0]), np.array([nan, 30.0, 0.0])
        )
    )
    assert not board.command(board.commands.impedance(*np.full((3, 3), nan)))
    eventually(lambda: fake.commands)
    ((name, values),) = fake.commands
    assert (name, values["mask"]) == ("CMD_IMPEDANCE", 0b110)
    np.testing.assert_allclose(values["length"], [0.21, 0.22])
    np.testing.assert_allclose(values["rate"], [-0.05, 0.0])
    np.testing.assert_allclose(values["tension"], [30.0, 0.0])
    with pytest.raises(ProtocolError, match=r"CMD_IMPEDANCE\.rate"):
        board.command(board.commands.impedance(np.full(3, 0.2), np.full(3, 5.0), np.zeros(3)))


@pytest.mark.parametrize("laws", [(), (MuscleImpedance(), *[MuscleImpedance(100.0)] * 2)])
def test_lengths_mean_nothing_without_a_stiffness(fake, laws):
    board = Board(layout_for(fake, impedance=laws))
    board.open()
    try:
        board.arm()
        assert not board.command(board.commands.lengths(np.full(3, np.nan)))
        with pytest.raises(BoardError, match=r"'muscle_0' has no stiffness.*robot\.boards\.yaml"):
            board.command(board.commands.lengths(np.full(3, 0.2)))
        if laws:
            assert board.command(board.commands.lengths(np.array([np.nan, 0.2, 0.2])))
    finally:
        board.close()


def test_a_board_without_the_law_is_told_no_parameters_of_it(fake):
    fake.caps &= ~Caps.IMPEDANCE
    board = Board(layout_for(fake))
    board.open()
    board.close()
    assert not {id for id, _ in fake.parameters} & set(IMPEDANCE.values())


def test_a_command_that_does_not_fit_is_refused_here_and_the_line_goes_on(session):
    board = session.board
    board.arm()
    with pytest.raises(ProtocolError, match="tension"):
        board.command(board.commands.tensions(np.full(3, 1e6)))
    assert board.command(board.commands.tensions(np.full(3, 50.0)))
    eventually(lambda: session.fake.commands)


def test_kinds_that_the_firmware_does_not_know(session):
    board = session.board
    board.commands.check_kind("force")
    with pytest.raises(BoardError, match=r"'arm'.*takes no pressures .*TENSION"):
        board.commands.check_kind("pressure")
    session.fake.caps |= Caps.PRESSURE
    board.arm()  # gets a new IDENT
    board.commands.check_kind("pressure")
    board.command(board.commands.pressures(np.array([1e5, 2e5, np.nan])))
    eventually(lambda: session.fake.commands)
    np.testing.assert_allclose(session.fake.commands[0][1]["pressure"], [1e5, 2e5])


def test_latency_is_from_making_a_command_to_the_board(session):
    fake, board = session.fake, session.board
    board.arm()
    eventually(lambda: board.telemetry.clock.exchanges > 10)
    tensions = itertools.count(20.0, 0.01)

    def heard():
        board.command(board.commands.tensions(np.full(3, next(tensions))))
        time.sleep(0.004)
        return board.status().command_latency.count > 20

    eventually(heard)
    latency = board.status().command_latency
    assert 0.0 < latency.p50 <= latency.p99 <= latency.maximum
    assert np.isfinite(board.status().sample_delay.p99)
    assert fake.commands


# Who is at the other end -------------------------------------------------------------------------


def opening(fake, **changes):
    board = Board(layout_for(fake, **changes))
    try:
        board.open()
    finally:
        board.close()


def test_another_version_of_the_protocol(fake):
    fake.major = MAJOR - 1
    words = f"speaks version {MAJOR - 1} of the protocol, this program version {MAJOR}"
    with pytest.raises(BoardError, match=words):
        opening(fake)
    assert "LIMITS" not in fake.names()


def test_a_board_that_refuses_our_version(fake):
    fake.refuse["HELLO"] = AckCode.VERSION
    with pytest.raises(BoardError, match="speaks another version"):
        opening(fake)


def test_another_node(fake):
    fake.node = 7
    with pytest.raises(BoardError, match=r"node 7 answers, node 3 was expected.*boards.yaml"):
        opening_as(fake, 3)


def opening_as(fake, node):
    fake_layout = layout_for(fake)
    board = Board(BoardLayout("arm", node, fake.port, source=fake_layout.source))
    try:
        board.open()
    finally:
        board.close()


@pytest.mark.parametrize("kind", ["muscles", "joints"])
def test_another_number_of_channels(fake, kind):
    names = {"muscles": ("a", "b"), "limits": (MuscleLimits(1e2),) * 2}
    if kind == "joints":
        names = {"joints": ("a", "b", "c")}
    here, there = (2, 3) if kind == "muscles" else (3, 2)
    message = f"has {there} {kind}, robot.boards.yaml gives it {here}"
    with pytest.raises(BoardError, match=message):
        opening(fake, **names)


def test_nobody_answers(fake):
    fake.mute = True
    start = time.monotonic()
    with pytest.raises(BoardError, match=r"'arm' at .*no answer for 2 s: is it powered"):
        opening(fake)
    assert time.monotonic() - start < 10.0


def test_two_boards_with_one_address(fake):
    fake.second_uid = bytes(8)
    with pytest.raises(BoardError, match=r"two boards answer as node 1.*000000000000 and 0102"):
        opening(fake)


def test_limits_that_the_board_refuses_name_the_muscle(fake):
    original = fake.ack
    fake.ack = lambda frame, code=0, detail=65535: original(
        frame, *((AckCode.RANGE, 1) if frame.name == "LIMITS" else (code, detail))
    )
    with pytest.raises(BoardError, match=r"refuses the limits of muscle 'muscle_1'.*399"):
        opening(fake)


def test_a_stopped_board_keeps_its_limits_and_gets_them_when_it_is_cleared(fake):
    fake.state = State.ESTOP
    board = Board(layout_for(fake))
    board.open()
    try:
        assert "emergency stop" in board.problem
        assert not fake.limits_loaded
        with pytest.raises(BoardError, match="emergency stop"):
            board.arm()
        board.clear()
        eventually(lambda: fake.limits_loaded)
        board.arm()
    finally:
        board.close()


def test_any_board_for_tools(fake):
    fake.node = 42
    board = Board.direct(fake.port)
    board.open()
    try:
        assert board.node == 42
        assert board.ident.muscles == 3
        eventually(lambda: board.slow)
        status = board.status()
        assert status.connected
        assert status.temperatures == (30.0, 30.0, 30.0)
        with pytest.raises(RequestError, match="CALIBRATE: no answer"):
            board.calibrate(2, [2, 0], [222, 111])  # the stand-in knows none
    finally:
        board.close()
    frame = next(frame for name, frame in fake.received if name == "CALIBRATE")
    from cards_hardware.protocol.codec import unpack

    values = unpack(frame)
    assert (values["action"], values["mask"]) == (2, 0b101)
    np.testing.assert_array_equal(values["value"], [111, 222])


# Requests ----------------------------------------------------------------------------------------


def test_parameters(session):
    board = session.board
    board.set_parameter(ParameterId.KP, 2, 12345)
    assert board.get_parameter(ParameterId.KP, 2) == 12345
    with pytest.raises(RequestError, match=r"'arm' at .*PARAM_GET: no parameter .*index 1"):
        board.get_parameter(ParameterId.KP, 1)
    board.save_parameters()


def test_a_request_is_sent_three_times_then_named(session):
    session.fake.silent_types.add("ACK")
    with pytest.raises(RequestError, match=r"'arm' at /dev/\S+: PARAM_SAVE: no answer .asked 3"):
        session.board.request("PARAM_SAVE", {}, timeout=0.05)
    # a busy machine gives the fake board its turn when all has been said
    eventually(lambda: session.fake.names().count("PARAM_SAVE") >= 3)
    frames = [frame for name, frame in session.fake.received if name == "PARAM_SAVE"]
    assert [len(frames), len({frame.seq for frame in frames})] == [3, 3]


def test_an_answer_lost_on_the_way_is_asked_for_again(session):
    fake, lost = session.fake, []
    original = fake.ack

    def ack(frame, *args):
        if frame.type == message_id("PARAM_SET") and len(lost) < 2:
            lost.append(frame)
        else:
            original(frame, *args)

    fake.ack = ack
    session.board.set_parameter(ParameterId.KP, 0, 7)
    assert len(lost) == 2


def test_busy_is_asked_again_and_other_refusals_are_not(session):
    fake = session.fake
    fake.refuse["PARAM_SAVE"] = AckCode.STATE
    with pytest.raises(RequestError, match="PARAM_SAVE: refused, state") as caught:
        session.board.request("PARAM_SAVE", {}, timeout=PATIENT)
    assert caught.value.code == AckCode.STATE
    assert fake.names().count("PARAM_SAVE") == 1
    fake.refuse["PARAM_SAVE"] = AckCode.BUSY
    with pytest.raises(RequestError, match="busy"):
        session.board.request("PARAM_SAVE", {}, timeout=PATIENT)
    assert fake.names().count("PARAM_SAVE") == 4


def test_a_refused_arm_says_what_is_in_the_way(session):
    fake = session.fake
    fake.refuse["STATE_REQUEST"] = AckCode.STATE
    fake.fault = int(Fault.VBUS_LOW)
    eventually(lambda: session.board.fault)
    with pytest.raises(
        BoardError, match=r"STATE_REQUEST: refused, state.*supply voltage below.*clear this"
    ):
        session.board.arm()
    assert not session.board.armed


def test_a_refused_arm_names_the_muscles_that_are_pulled_at(session):
    fake, board = session.fake, session.board
    fake.refuse["STATE_REQUEST"] = AckCode.STATE
    fake.parameters[int(ParameterId.ARM_TENSION), 0] = 500
    fake.tensions[1] = 61.0
    eventually(lambda: board.sample is not None and board.sample.muscles[2, 1] > 60.0)
    name = board.layout.muscles[1]
    with pytest.raises(BoardError, match=f"less than 50 N in every muscle: {name} 61 N"):
        board.arm()


def test_an_arm_request_whose_answer_was_lost_has_worked(session):
    fake = session.fake
    fake.silent_types.add("ACK")
    session.board.arm()
    assert session.board.armed
    assert fake.state == State.ARMED


def test_a_board_that_could_not_be_armed_is_told_to_disarm(session):
    fake = session.fake
    fake.refuse["STATE_REQUEST"] = AckCode.BUSY
    with pytest.raises(BoardError, match="arm: STATE_REQUEST: refused, busy"):
        session.board.arm()
    eventually(lambda: fake.names().count("STATE_REQUEST") == 4)
    from cards_hardware.protocol.codec import unpack

    asked = [unpack(f)["request"] for name, f in fake.received if name == "STATE_REQUEST"]
    assert asked == [2, 2, 2, 1]


# Stopping and breaking ---------------------------------------------------------------------------


def test_estop_is_sent_three_times_to_everybody(session):
    fake, board = session.fake, session.board
    board.arm()
    board.estop()
    eventually(lambda: fake.names().count("ESTOP") >= 3)
    assert {frame.node for name, frame in fake.received if name == "ESTOP"} == {127}
    assert not board.command(board.commands.tensions(np.full(3, 20.0)))
    eventually(lambda: board.state == State.ESTOP)
    with pytest.raises(BoardError, match="emergency stop"):
        board.arm()
    board.clear()
    assert board.state == State.DISARMED
    assert not board.armed
    board.arm()


def test_estop_that_the_line_swallows_is_sent_until_the_board_has_stopped(session):
    fake, board = session.fake, session.board
    board.arm()
    swallowed = []
    fake._on_estop = lambda values, _frame: swallowed.append(values)
    board.estop()
    eventually(lambda: len(swallowed) >= 9)
    assert board.state != State.ESTOP
    del fake._on_estop
    eventually(lambda: board.state == State.ESTOP)
    time.sleep(0.1)
    count = fake.names().count("ESTOP")
    time.sleep(0.2)
    assert fake.names().count("ESTOP") == count
    board.clear()
    time.sleep(0.1)
    assert board.state == State.DISARMED  # and no stop behind the clear


def test_a_clear_that_fails_does_not_forget_a_stop_that_waits(tmp_path):
    fake = FakeBoard(3, 2)
    port = str(tmp_path / "ttyACM0")
    fake.plug(port)
    board = Board(layout_for(fake))
    board.open()
    try:
        fake.unplug()
        eventually(lambda: not board.connected)
        board.estop()
        with pytest.raises(BoardError, match="cannot clear"):
            board.clear()
        assert board.estop_pending
        fake.plug(port)
        eventually(lambda: board.state == State.ESTOP)
        board.clear()
        assert board.state == State.DISARMED
    finally:
        board.close()
        fake.unplug()


def test_estop_before_open_and_without_line_is_the_first_frame_when_the_line_comes(tmp_path):
    fake = FakeBoard(3, 2)
    port = str(tmp_path / "ttyACM0")
    fake.port = port
    board = Board(layout_for(fake))
    board.estop()
    assert board.estop_pending
    fake.plug(port)
    try:
        board.open()
        assert not board.estop_pending
        assert fake.names()[:4] == ["ESTOP", "ESTOP", "ESTOP", "HELLO"]
        eventually(lambda: board.state == State.ESTOP)
    finally:
        board.close()
        fake.unplug()


def test_unplugged_and_plugged_in_again_it_reads_but_is_not_armed(tmp_path):
    fake = FakeBoard(3, 2)
    port = str(tmp_path / "ttyACM0")
    fake.plug(port)
    events = []
    board = Board(layout_for(fake), on_event=events.append)
    board.open()
    try:
        board.arm()
        board.command(board.commands.tensions(np.full(3, 55.0)))
        eventually(lambda: fake.commands)
        fake.unplug()
        eventually(lambda: not board.connected)
        assert not board.armed
        assert "unplugged" in board.problem
        with pytest.raises(BoardError, match="cannot be armed: lost"):
            board.arm()
        assert not board.command(board.commands.tensions(np.full(3, 66.0)))
        board.estop()
        assert board.estop_pending
        time.sleep(0.3)
        fake.commands.clear()
        fake.received.clear()
        fake.state = State.RELAX  # what a board does meanwhile
        fake.plug(port)
        eventually(lambda: board.connected)
        assert fake.names()[0] == "ESTOP"
        assert board.reconnects == 1
        assert not board.armed
        number = board.sample.number
        eventually(lambda: board.sample.number > number + 5)
        assert fake.commands == []
        assert "STATE_REQUEST" not in fake.names()
        assert any("not armed" in event.text for event in events)
        board.clear()
        board.arm()
    finally:
        board.close()
        fake.unplug()


def test_a_reset_of_the_board_is_noticed_and_its_limits_loaded_again(session):
    fake, board = session.fake, session.board
    board.arm()
    board.command(board.commands.tensions(np.full(3, 50.0)))
    eventually(lambda: board.state == State.ACTIVE)
    fake.commands.clear()
    fake.reset()
    eventually(lambda: board.resets == 1)
    eventually(lambda: board.connected)
    assert not board.armed
    assert fake.limits_loaded
    assert fake.commands == []
    assert fake.state == State.DISARMED
    assert any("restarted" in event.text for event in session.events)
    eventually(lambda: board.telemetry.clock.exchanges > 5)
    number = board.sample.number
    eventually(lambda: board.sample.number > number + 20)
    assert 0.0 <= time.monotonic() - board.sample.time < 5.0
    board.arm()


def test_a_clock_that_jumps_is_followed_and_costs_no_session(session):
    fake, board = session.fake, session.board
    eventually(lambda: board.telemetry.clock.exchanges > 20)
    board.arm()
    fake.clock_offset += 60_000_000  # [us]
    eventually(lambda: any("set again" in event.text for event in session.events))
    eventually(lambda: board.telemetry.clock.exchanges in range(5, 1000))
    assert board.connected
    assert board.armed
    number = board.sample.number
    eventually(lambda: board.sample.number > number + 10)
    assert 0.0 <= time.monotonic() - board.sample.time < 5.0


def test_one_exchange_that_does_not_fit_is_dropped(session):
    fake, board = session.fake, session.board
    eventually(lambda: board.telemetry.clock.exchanges > 20)
    fake.clock_offset += 50_000
    before = fake.names().count("TIME_SYNC")
    eventually(lambda: fake.names().count("TIME_SYNC") > before)
    fake.clock_offset -= 50_000
    before = fake.names().count("TIME_SYNC")
    eventually(lambda: fake.names().count("TIME_SYNC") > before + 10)
    assert board.connected
    assert not any("set again" in event.text for event in session.events)
    assert board.telemetry.clock.error < 0.05


def test_another_board_at_the_same_port_is_told(session):
    session.fake.uid = bytes(8)
    session.fake.reset()
    eventually(lambda: any("another board than before" in e.text for e in session.events))
    eventually(lambda: session.board.connected)
    assert not session.board.armed


def test_a_board_that_falls_silent_is_lost_and_found_again(session):
    fake, board = session.fake, session.board
    board.arm()
    fake.mute = True
    eventually(lambda: not board.connected)
    assert not board.armed
    assert "silent" in board.problem
    fake.mute = False
    eventually(lambda: board.connected)
    assert not board.armed
    assert board.resets == 0


def test_without_reconnect_it_stays_lost(fake):
    board = Board(layout_for(fake), reconnect=False)
    board.open()
    try:
        fake.mute = True
        eventually(lambda: not board.connected)
        fake.mute = False
        time.sleep(0.5)
        assert not board.connected
    finally:
        board.close()


def test_a_board_that_leaves_the_armed_states_has_to_be_armed_again(session):
    fake, board = session.fake, session.board
    board.arm()
    fake.state = State.RELAX
    eventually(lambda: not board.armed)
    fake.state = State.ARMED
    eventually(lambda: board.state == State.ARMED)
    assert not board.armed
    assert not board.command(board.commands.tensions(np.full(3, 20.0)))


def test_lost_frames_are_counted(session):
    fake, board = session.fake, session.board
    eventually(lambda: board.sample is not None)
    assert board.status().lost_frames == 0
    number = board.sample.number
    fake._seq["STATE_FAST"] += 5
    eventually(lambda: board.status().lost_frames == 5)
    eventually(lambda: board.sample.number > number + 5)


def test_close_disarms(session):
    fake, board = session.fake, session.board
    board.arm()
    board.close()
    assert fake.state == State.DISARMED
    board.open()
    assert not board.armed


def test_a_port_that_is_not_there():
    with pytest.raises(HardwareError, match="/dev/none does not exist"):
        Board(BoardLayout("arm", 1, "/dev/none")).open()


def test_status_in_words(session):
    fake, board = session.fake, session.board
    fake.fault = int(Fault.VBUS_LOW | Fault.TICK)
    fake.state = State.FAULT
    eventually(lambda: board.fault and board.slow and board.state == State.FAULT)
    status = board.status()
    assert status.faults == (
        "supply voltage below its minimum",
        "control ticks came late too often",
    )
    assert status.problem.startswith("fault: supply voltage")
    assert status.vbus == pytest.approx(24.0)
    assert status.simulated
    assert status.state is State.FAULT
    eventually(lambda: board.status().state_rate == pytest.approx(200.0, rel=0.5))
