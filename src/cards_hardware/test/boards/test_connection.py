"""What a connection makes of the frames of a board, and when it asks for times."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from cards_hardware.boards import connection as module
from cards_hardware.boards.connection import Receiver
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.protocol.codec import encode, pack, unpack
from cards_hardware.protocol.enums import (
    AckCode,
    EventCode,
    FastFlag,
    Fault,
    HeaderFlag,
    MuscleFlag,
    Severity,
    State,
)
from cards_hardware.protocol.frames import Frame, FrameDecoder
from cards_hardware.protocol.schema import MAJOR, NO_INDEX8
from cards_hardware.protocol.table import MESSAGES

LAYOUT = BoardLayout("arm", 1, "/dev/arm", muscles=("left", "right"))
ARRIVAL = 6000.0


def frame(name, values, *, seq=0, t_us=0, flags=0):
    (made,) = FrameDecoder().feed(encode(name, values, node=1, seq=seq, t_us=t_us, flags=flags))
    return made


def fast(state=State.ARMED, flags=0, seq=0):
    values = {
        "state": state, "flags": int(flags), "cmd_t_us": 0, "cmd_age_us": 0, "loop_us": 0,
        "length": np.zeros(2), "rate": np.zeros(2), "tension": np.zeros(2),
        "current": np.zeros(2), "position": np.zeros(0), "velocity": np.zeros(0),
    }  # fmt: skip
    return frame("STATE_FAST", values, seq=seq)


def beat(state=State.DISARMED, fault=0, t_us=0):
    return frame("HEARTBEAT", {"state": state, "fault": int(fault), "t_peer": 0}, t_us=t_us)


def event(code, value=0, muscle=NO_INDEX8, text="", severity=Severity.INFO):
    values = {"code": int(code), "severity": int(severity), "muscle": muscle, "value": value,
              "text": text}  # fmt: skip
    return frame("EVENT", values)


class Told:
    """A receiver, and all that it told."""

    def __init__(self):
        self.samples, self.events, self.states, self.restarts = [], [], [], []
        self.answers, self.idents, self.ours = [], [], True
        self.receiver = Receiver(
            LAYOUT,
            SimpleNamespace(belongs=lambda _frame: self.ours, identified=self.idents.append),
            SimpleNamespace(answered=lambda *message: self.answers.append(message)),
            on_sample=self.samples.append,
            on_event=self.events.append,
            on_state=self.states.append,
            on_restart=self.restarts.append,
        )

    def take(self, *frames):
        for item in frames:
            self.receiver.take(item, ARRIVAL)


@pytest.fixture
def told():
    return Told()


def test_samples_are_told_in_a_session_only(told):
    told.take(fast(seq=1))
    assert told.samples == []
    assert told.receiver.telemetry.sample.number == 1
    told.receiver.in_session = True
    told.take(fast(seq=4))
    (sample,) = told.samples
    assert (sample.number, sample.arrival, sample.state) == (4, ARRIVAL, State.ARMED)
    assert told.receiver.telemetry.lost == 2
    assert told.receiver.heard == ARRIVAL


def test_states_are_told_when_they_change(told):
    told.take(beat(State.DISARMED), fast(State.DISARMED), fast(State.ARMED), beat(State.ARMED))
    told.take(beat(State.HOLD))
    assert told.states == [State.DISARMED, State.ARMED, State.HOLD]
    assert told.receiver.state == State.HOLD
    told.receiver.reset()
    assert told.receiver.state is None
    told.take(beat(State.HOLD))
    assert told.states[-2:] == [State.HOLD, State.HOLD]


def test_frames_of_others_change_nothing(told):
    told.ours = False
    told.take(fast(), beat(State.HOLD, Fault.TICK, 9))
    receiver = told.receiver
    assert (receiver.telemetry.frames, receiver.heard, receiver.state) == (0, 0.0, None)
    assert (receiver.fault, receiver.peer_t_us, receiver.telemetry.sample) == (0, 0, None)


@pytest.mark.parametrize(
    ("session", "expects", "loaded", "lost"),
    [(True, True, False, True), (True, True, True, False),
     (True, False, False, False), (False, True, False, False)],
)  # fmt: skip
def test_a_board_that_lost_its_limits_in_a_session_has_restarted(
    told, session, expects, loaded, lost
):
    told.receiver.in_session, told.receiver.expects_limits = session, expects
    told.take(fast(flags=FastFlag.LIMITS_LOADED if loaded else 0))
    assert told.restarts == (["it has lost its limits"] if lost else [])
    assert (told.receiver.telemetry.sample is None) == lost


def test_whether_it_is_emulated_is_said_by_its_flags(told):
    told.take(fast(flags=FastFlag.SIMULATED))
    assert told.receiver.simulated is True
    told.take(fast(flags=FastFlag.LIMITS_LOADED))
    assert told.receiver.simulated is False


def test_heartbeats_bring_faults_and_the_time_to_answer_with(told):
    told.take(beat(fault=Fault.VBUS_LOW | Fault.TICK, t_us=4711))
    assert told.receiver.fault == Fault.VBUS_LOW | Fault.TICK
    assert told.receiver.peer_t_us == 4711
    told.take(beat(fault=0, t_us=4712))
    assert (told.receiver.fault, told.receiver.peer_t_us) == (0, 4712)
    told.take(beat(fault=Fault.TICK))
    told.receiver.expects_limits = True
    told.receiver.reset()
    assert (told.receiver.fault, told.receiver.expects_limits) == (0, False)


def test_faults_that_are_set_add_to_those_known(told):
    told.take(beat(fault=Fault.VBUS_LOW))
    told.take(event(EventCode.FAULT_SET, int(Fault.TICK)))
    assert told.receiver.fault == Fault.VBUS_LOW | Fault.TICK
    told.take(event(EventCode.FAULT_CLEARED, int(Fault.TICK)))
    assert told.receiver.fault == Fault.VBUS_LOW | Fault.TICK  # the next heartbeat says
    told.take(event(EventCode.FAULT_SET, -(2**31)))
    assert told.receiver.fault == Fault.VBUS_LOW | Fault.TICK | 1 << 31


@pytest.mark.parametrize(
    ("row", "name"), [(0, "left"), (1, "right"), (2, "muscle 2"), (NO_INDEX8, None)]
)
def test_events_name_their_muscle(told, row, name):
    told.take(event(EventCode.MUSCLE_FLAG, int(MuscleFlag.OVERSPEED), row, "", Severity.WARN))
    (found,) = told.events
    assert (found.muscle, found.board, found.time) == (name, "arm", ARRIVAL)
    assert (found.code, found.severity) == (EventCode.MUSCLE_FLAG, Severity.WARN)
    assert (found.text, found.value) == ("much faster than allowed", int(MuscleFlag.OVERSPEED))


def test_the_words_of_the_board_go_before_ours(told):
    told.take(event(EventCode.MUSCLE_FLAG, 1, 0, "its own words"))
    assert told.events[0].text == "its own words"


def test_logs_and_stops_are_told(told):
    told.take(frame("LOG", {"level": int(Severity.WARN), "text": "hm"}))
    told.take(frame("ESTOP", {"reason": 1}))
    assert [(e.severity, e.text, e.code) for e in told.events] == [
        (Severity.WARN, "hm", None),
        (Severity.ERROR, "the board reports an emergency stop", None),
    ]


def test_nobody_need_listen():
    receiver = Receiver(
        LAYOUT,
        SimpleNamespace(belongs=lambda _frame: True),
        SimpleNamespace(answered=print),
        on_sample=None,
        on_event=None,
        on_state=lambda _state: None,
        on_restart=lambda _sign: None,
    )
    receiver.in_session = True
    for item in (fast(), event(EventCode.FAULT_SET, int(Fault.TICK)), frame("ESTOP",
                 {"reason": 1})):  # fmt: skip
        receiver.take(item, ARRIVAL)
    assert receiver.fault == Fault.TICK


def test_what_waits_for_an_answer_gets_it_and_unknown_messages_are_only_counted(told):
    told.take(frame("PARAM_VALUE", {"id": 1, "index": 0, "value": 5, "code": 0}))
    ((name, values),) = told.answers
    assert (name, values["value"]) == ("PARAM_VALUE", 5)
    told.receiver.take(Frame(MAJOR, 0, 1, 0x7E, 0, 0, b"new"), ARRIVAL + 1.0)
    short = pack("HEARTBEAT", {"state": 1, "fault": 0, "t_peer": 0})[:-1]
    told.receiver.take(Frame(MAJOR, 0, 1, MESSAGES["HEARTBEAT"].id, 0, 0, short), ARRIVAL + 2.0)
    assert told.receiver.telemetry.frames == 3
    assert told.receiver.heard == ARRIVAL + 2.0
    assert (len(told.answers), told.states, told.events) == (1, [], [])


def test_what_is_sent_slowly_is_kept(told):
    head = dict.fromkeys(
        ("rx_ok", "rx_crc", "rx_gap", "tx_dropped", "drive_errors", "tick_late", "tick_max_us"), 0
    )
    columns = {name: np.zeros(2) for name in ("housing", "core", "mflags", "tension_limit")}
    refused = np.zeros(len(AckCode) - 1, int)
    sent = frame("STATE_SLOW", {"fault": 5, "vbus": 24.0, **head, **columns, "refused": refused})
    told.take(sent)
    assert told.receiver.fault == 5
    assert told.receiver.telemetry.slow.keys() == unpack(sent).keys()


# The clock ---------------------------------------------------------------------------------------


def exchange(told, arrival, board_us):
    """An exchange of times without delay."""
    t = round(1e6 * arrival)
    values = {"t1": t % 2**32, "t2": board_us, "t3": board_us}
    told.receiver.take(frame("TIME_SYNC", values), arrival)


def test_the_clock_is_told_by_exchanges_also_beyond_the_wrap_of_ours(told):
    exchange(told, ARRIVAL, 1000)
    clock = told.receiver.telemetry.clock
    assert clock.exchanges == 1
    assert clock.to_host(2000, round(1e6 * ARRIVAL)) == pytest.approx(ARRIVAL + 1e-3, abs=1e-6)


@pytest.mark.parametrize("limits", [True, False])
def test_five_contradictions_in_a_row_are_a_clock_that_was_set(told, limits):
    told.receiver.expects_limits = limits
    clock = told.receiver.telemetry.clock

    def say(count, ahead):
        for _ in range(count):
            exchange(told, ARRIVAL, 1000 + ahead)

    say(3, 0)
    say(4, 10_000_000)
    say(1, 0)  # one that fits: they were of a busy machine
    say(4, 10_000_000)
    assert (told.restarts, told.events, clock.exchanges) == ([], [], 4)
    say(1, 10_000_000)
    if limits:
        assert told.restarts == []
        (found,) = told.events
        assert (found.severity, found.text) == (Severity.WARN, "its clock was set again")
        assert not clock.ready
        say(1, 10_000_000)
        assert clock.exchanges == 1
    else:
        assert told.restarts == ["its clock was set again"]
        assert told.events == []
        say(4, 10_000_000)  # counted from the beginning
        assert len(told.restarts) == 1


def test_times_are_asked_for_often_at_first_and_then_ten_times_a_second(monkeypatch):
    clock, now, asked = SimpleNamespace(exchanges=0), [100.0], []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    transport = SimpleNamespace(post=lambda name, values: asked.append((now[0], name, values)))
    receiver = SimpleNamespace(telemetry=SimpleNamespace(clock=clock))
    exchanges = module._TimeExchanges(transport, receiver)
    for i in range(1001):
        now[0] = 100.0 + 1e-3 * i
        clock.exchanges = len(asked)
        exchanges.ask()
    times = np.array([time for time, _, _ in asked])
    assert asked[0] == (100.0, "TIME_SYNC", {"t1": 0, "t2": 0, "t3": 0})
    # a look 1 ms early is on time: the supervisor looks every 20 ms
    assert np.diff(times[:16]) == pytest.approx(0.019, abs=1.1e-3)
    assert np.diff(times[16:]) == pytest.approx(0.099, abs=1.1e-3)


@pytest.mark.parametrize("simulated", [True, False])
def test_a_board_says_in_ident_whether_it_is_emulated(told, simulated):
    values = {
        "nonce": 1, "arm_token": 5, "firmware": 0x010203, "hardware": 1, "muscles": 2,
        "joints": 0, "caps": 0, "cfg_crc": 0, "reset_cause": 0, "boot_count": 1,
        "limits_loaded": 0, "uid": bytes(8),
    }  # fmt: skip
    told.receiver.simulated = not simulated
    told.take(frame("IDENT", values, flags=int(HeaderFlag.SIMULATED) if simulated else 0))
    assert told.receiver.simulated is simulated
    assert [told.idents[0]["nonce"], told.answers[0][0]] == [1, "IDENT"]


# The supervisor ----------------------------------------------------------------------------------


class Ending:
    """In place of an event: nobody sleeps, the pauses are kept, and it ends after some of them."""

    def __init__(self, pauses):
        self.waits, self.most, self.over = [], pauses, False

    def is_set(self):
        return self.over

    def set(self):
        self.over = True

    def wait(self, pause):
        self.waits.append(pause)
        self.over = self.over or len(self.waits) > self.most
        return self.over


def test_pauses_between_attempts_double_up_to_two_seconds_and_begin_anew():
    outcomes = iter([False] * 6 + [True] + [False] * 2 + [None])
    attempts = []

    def recover():
        attempts.append(next(outcomes))
        return attempts[-1]

    supervisor = module._Supervisor("keep", care=print, lost=lambda: True, recover=recover)
    supervisor._ending = Ending(9)
    supervisor._run()
    # the pause after which it was told to end was followed by no attempt
    assert supervisor._ending.waits == pytest.approx(
        [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 0.1, 0.2, 0.4]
    )
    assert len(attempts) == 9
    assert supervisor.ending


def test_a_session_is_cared_for_until_it_is_closed():
    cared, enough = [], threading.Event()

    def care():
        cared.append(threading.current_thread().name)
        if len(cared) >= 3:
            enough.set()

    supervisor = module._Supervisor(
        "keep arm", care=care, lost=lambda: False, recover=lambda: pytest.fail("not lost")
    )
    assert not supervisor.ending
    supervisor.start()
    assert enough.wait(60.0)
    supervisor.stop()
    assert supervisor.ending
    count = len(cared)
    assert set(cared) == {"keep arm"}
    supervisor.wake()  # of a thread that is over
    assert len(cared) == count
    supervisor.prepare()
    assert not supervisor.ending
    enough.clear()
    supervisor.start()
    assert enough.wait(60.0)
    supervisor.stop()
    assert len(cared) > count
    assert not any(thread.name == "keep arm" for thread in threading.enumerate())


def test_a_supervisor_may_be_stopped_by_itself():
    done = threading.Event()

    def lost():
        supervisor.stop()
        done.set()
        return True

    supervisor = module._Supervisor(
        "keep", care=print, lost=lost, recover=lambda: pytest.fail("it was stopped")
    )
    supervisor.start()
    assert done.wait(60.0)
    assert supervisor.ending
