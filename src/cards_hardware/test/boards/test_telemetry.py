"""Samples of a board: counted, stamped with the time of measurement, and timed."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from cards_hardware.boards import telemetry as module
from cards_hardware.boards.telemetry import FastState, Telemetry, read_fast_state
from cards_hardware.errors import ProtocolError
from cards_hardware.protocol.codec import pack
from cards_hardware.protocol.frames import Frame
from cards_hardware.protocol.schema import MAJOR
from cards_hardware.protocol.table import MESSAGES

BEGIN = 5000.0  # [s], beyond the wrap of 2^32 us
AHEAD = 777_000_000  # [us] by which the board's clock is before ours
NO_AGE = 2**32 - 1


def board_us(host):
    """Board's clock at a host time, [s]."""
    return (round(1e6 * host) + AHEAD) % 2**32


def frame(measured=0.0, seq=0, name="STATE_FAST"):
    return Frame(MAJOR, 0, 1, MESSAGES[name].id, seq, board_us(measured), b"")


def state(command=0, age=NO_AGE, **head):
    values = {"state": 3, "flags": 5, "cmd_t_us": command, "cmd_age_us": age, **head}
    return FastState(values, np.arange(8.0).reshape(4, 2), np.array([[1.5], [-2.5]]))


def synchronised():
    """Telemetry whose clock knows the offset: delays of 100 us both ways."""
    telemetry = Telemetry()
    for i in range(3):
        sent = BEGIN - 1.0 + 0.1 * i
        t1, t2 = round(1e6 * sent), board_us(sent + 100e-6)
        assert telemetry.clock.add(t1, t2, (t2 + 20) % 2**32, t1 + 220)
    return telemetry


def test_the_first_sample_without_a_clock_has_the_time_of_its_arrival():
    telemetry = Telemetry()
    sample = telemetry.fast(frame(1.0), state(command=7), 0, BEGIN)
    assert (sample.time, sample.arrival, sample.number) == (BEGIN, BEGIN, 1)
    assert (sample.t_us, sample.state, sample.flags, sample.command_t_us) == (
        board_us(1.0), 3, 5, 7,
    )  # fmt: skip
    assert telemetry.sample is sample
    assert telemetry.sample_delay.summary().count == 0
    assert sample.lengths.tolist() == [0.0, 1.0]
    assert sample.rates.tolist() == [2.0, 3.0]
    assert sample.tensions.tolist() == [4.0, 5.0]
    assert sample.currents.tolist() == [6.0, 7.0]
    assert (sample.positions.tolist(), sample.velocities.tolist()) == ([1.5], [-2.5])


def test_a_sample_has_the_time_of_its_measurement():
    telemetry = synchronised()
    sample = telemetry.fast(frame(BEGIN), state(), 0, BEGIN + 3e-3)
    assert sample.time == pytest.approx(BEGIN, abs=2e-6)
    assert sample.arrival == BEGIN + 3e-3
    delay = telemetry.sample_delay.summary()
    assert (delay.count, delay.maximum) == (1, pytest.approx(3e-3, abs=2e-6))


def test_no_sample_is_from_the_future_and_each_is_newer_than_the_one_before():
    telemetry = synchronised()
    early = telemetry.fast(frame(BEGIN + 0.5), state(), 0, BEGIN)
    assert early.time == BEGIN
    again = telemetry.fast(frame(BEGIN - 0.1), state(), 0, BEGIN + 1e-3)
    assert again.time - early.time == pytest.approx(1e-6, rel=1e-3)


def test_latency_of_commands_is_from_making_to_arrival_on_the_board():
    telemetry = synchronised()

    def said(measured, made, taken):
        command = round(1e6 * made) % 2**32
        age = round(1e6 * (measured - taken)) if taken is not None else NO_AGE
        telemetry.fast(frame(measured), state(command, age), 0, measured + 1e-3)

    latency = telemetry.command_latency
    said(BEGIN, BEGIN - 0.2, BEGIN - 0.1)  # the first may be from before
    assert latency.summary().count == 0
    said(BEGIN + 0.01, BEGIN + 0.002, BEGIN + 0.006)
    assert latency.summary().count == 1
    assert latency.summary().maximum == pytest.approx(4e-3, abs=3e-6)
    said(BEGIN + 0.02, BEGIN + 0.002, BEGIN + 0.006)  # the same again
    said(BEGIN + 0.03, BEGIN + 0.025, None)  # not taken yet
    assert latency.summary().count == 1
    said(BEGIN + 0.04, BEGIN + 0.025, BEGIN + 0.032)
    assert latency.summary().maximum == pytest.approx(7e-3, abs=3e-6)
    telemetry.fast(frame(BEGIN + 0.05), state(0, 10), 0, BEGIN + 0.05)  # none in force
    assert latency.summary().count == 2
    # statistics go on over a session, what was seen does not
    exchanges = telemetry.clock
    telemetry.reset()
    assert not exchanges.ready
    t1, t2 = round(1e6 * BEGIN), board_us(BEGIN + 100e-6)
    exchanges.add(t1, t2, t2, t1 + 200)
    said(BEGIN + 0.06, BEGIN + 0.051, BEGIN + 0.055)
    assert latency.summary().count == 2


def test_the_rate_is_that_of_the_last_half_second():
    telemetry = Telemetry()
    rates = []
    for i in range(129):
        telemetry.fast(frame(), state(), 0, BEGIN + i / 128)
        rates.append(telemetry.rate)
    assert rates[:64] == [0.0] * 64
    assert rates[64:128] == [128.0] * 64
    for i in range(1, 33):
        telemetry.fast(frame(), state(), 0, BEGIN + 1.0 + i / 64)
    assert telemetry.rate == 64.0


@pytest.mark.parametrize(
    ("seqs", "missing"),
    [([9, 10, 11], [0, 0, 0]), ([254, 255, 0], [0, 0, 0]), ([3, 5], [0, 1]),
     ([250, 4], [0, 9]), ([7, 7], [0, 0]), ([7, 6], [0, 254])],
)  # fmt: skip
def test_missing_frames_are_counted_by_their_numbers(seqs, missing):
    telemetry = Telemetry()
    assert [telemetry.count(frame(seq=seq)) for seq in seqs] == missing
    assert (telemetry.frames, telemetry.lost) == (len(seqs), sum(missing))


def test_each_message_counts_for_itself_and_a_new_session_begins_anew():
    telemetry = Telemetry()
    assert telemetry.count(frame(seq=3)) == 0
    assert telemetry.count(frame(seq=100, name="HEARTBEAT")) == 0
    assert telemetry.count(frame(seq=6)) == 2
    first = telemetry.fast(frame(seq=6), state(), 2, BEGIN)
    assert first.number == 3
    assert telemetry.fast(frame(seq=7), state(), 0, BEGIN + 1.0).number == 4
    telemetry.slow = {"vbus": 24.0}
    assert telemetry.rate > 0.0
    telemetry.reset()
    assert (telemetry.frames, telemetry.lost) == (3, 2)
    assert (telemetry.sample, telemetry.slow, telemetry.rate) == (None, {}, 0.0)
    assert telemetry.count(frame(seq=60)) == 0
    assert telemetry.fast(frame(seq=60), state(), 0, BEGIN).number == 1


def test_age_is_from_the_measurement_and_never_negative(monkeypatch):
    telemetry = Telemetry()
    assert telemetry.age() == math.inf
    telemetry.fast(frame(), state(), 0, BEGIN)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: BEGIN + 0.25))
    assert telemetry.age() == 0.25
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: BEGIN - 0.25))
    assert telemetry.age() == 0.0


@pytest.mark.parametrize("channel", [0, 1])
def test_more_channels_than_there_can_be(channel):
    names = ["length", "rate", "tension", "current", "position", "velocity"]
    values = {name: np.zeros(0) for name in names}
    head = {"state": 1, "flags": 0, "cmd_t_us": 0, "cmd_age_us": 0, "loop_us": 0}
    data = bytearray(pack("STATE_FAST", {**head, **values}) + bytes(600))
    where = list(module._NAMES).index(("muscles", "joints")[channel])
    at = module.struct.calcsize(
        "<" + "".join(f.type.code for f in MESSAGES["STATE_FAST"].scalars[:where])
    )
    data[at] = 16
    state = read_fast_state(bytes(data))
    assert (state.muscles.shape[1], state.joints.shape[1]) == ((16, 0), (0, 16))[channel]
    data[at] = 17
    with pytest.raises(ProtocolError, match=r"17 .*too many"):
        read_fast_state(bytes(data))
