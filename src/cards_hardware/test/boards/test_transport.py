"""Frames to one node and the answers to requests, on a line that is a list."""

import time

import numpy as np
import pytest

from cards_hardware.boards.transport import TRIES, Transport, host_us
from cards_hardware.errors import BoardError, RequestError
from cards_hardware.protocol.codec import pack
from cards_hardware.protocol.enums import AckCode, HeaderFlag
from cards_hardware.protocol.schema import NO_INDEX16
from cards_hardware.protocol.table import MESSAGES

PATIENT = 20.0  # [s], longer than anything here takes
GET = {"id": 3, "index": 1}


class Line:
    """Keeps what is sent; answers as the test says."""

    port = "/dev/line"
    node = 127

    def __init__(self):
        self.sent = []
        self.answer = lambda _number, _seq: None

    def send(self, number, payload, **options):
        self.sent.append((number, payload, options))
        self.answer(number, options["seq"])

    @property
    def seqs(self):
        return [options["seq"] for _, _, options in self.sent]


def acked(name, seq, code=AckCode.OK, detail=NO_INDEX16):
    return {"type": MESSAGES[name].id, "seq": seq, "code": int(code), "detail": detail}


@pytest.fixture
def line():
    return Line()


@pytest.fixture
def transport(line):
    made = Transport(line, "arm", 5, lambda: "")
    assert line.node == made.node == 5
    assert made.port == "/dev/line"
    return made


def test_numbers_count_per_message_and_wrap(line, transport):
    for _ in range(257):
        transport.post("PARAM_SAVE", {})
    steps = np.diff(line.seqs) % 256
    assert np.all(steps == 1)
    assert all(0 <= seq <= 255 for seq in line.seqs)
    transport.post("HELLO", {"min_major": 1, "max_major": 1, "nonce": 1})
    transport.post("PARAM_SAVE", {})
    assert line.seqs[-1] == (line.seqs[256] + 1) % 256
    assert line.seqs[-2] == line.seqs[0]
    assert line.sent[0] == (
        MESSAGES["PARAM_SAVE"].id,
        b"",
        {"seq": line.seqs[0], "flags": 0, "node": None, "urgent": False},
    )


def test_urgent_messages_go_to_their_own_address_before_others(line, transport):
    transport.urgent("ESTOP", {"reason": 1}, times=3, node=127)
    assert [options["urgent"] for _, _, options in line.sent] == [True] * 3
    assert {options["node"] for _, _, options in line.sent} == {127}
    assert np.diff(line.seqs).tolist() == [1, 1]
    assert {payload for _, payload, _ in line.sent} == {pack("ESTOP", {"reason": 1})}
    transport.node = 9
    assert line.node == 9


def test_a_request_returns_what_answers_it(line, transport):
    line.answer = lambda _number, seq: transport.answered("ACK", acked("PARAM_SAVE", seq))
    assert transport.request("PARAM_SAVE", {}, timeout=PATIENT)["code"] == AckCode.OK
    ((_, _, options),) = line.sent
    assert options["flags"] == HeaderFlag.ACK_REQUEST
    assert not transport.answered("ACK", acked("PARAM_SAVE", options["seq"]))  # nobody waits


def test_only_its_own_answer_ends_a_request(line, transport):
    taken = []

    def answer(_number, seq):
        for name, values in [
            ("ACK", acked("PARAM_SET", seq)),  # of another message
            ("ACK", acked("PARAM_GET", (seq + 1) % 256)),  # of another number
            ("ACK", acked("PARAM_GET", seq)),  # well received; the value comes
            ("PARAM_VALUE", {**GET, "index": 2, "value": 1}),
            ("PARAM_VALUE", {**GET, "id": 4, "value": 2}),
            ("IDENT", {"nonce": 0}),
            ("PARAM_VALUE", {**GET, "value": 33}),
        ]:
            taken.append(transport.answered(name, values))

    line.answer = answer
    assert transport.request("PARAM_GET", GET, timeout=PATIENT)["value"] == 33
    assert taken == [False] * 6 + [True]


def test_a_refusal_ends_a_request_that_waits_for_a_value(line, transport):
    line.answer = lambda _number, seq: transport.answered(
        "ACK", acked("PARAM_GET", seq, AckCode.UNKNOWN, 3)
    )
    with pytest.raises(
        RequestError,
        match=r"^board 'arm' at /dev/line: PARAM_GET: refused, unknown: no such message type, "
        r"parameter or action \(channel or field 3\)$",
    ) as caught:
        transport.request("PARAM_GET", GET, timeout=PATIENT)
    error = caught.value
    assert (error.code, error.detail, error.request) == (AckCode.UNKNOWN, 3, "PARAM_GET")
    assert len(line.sent) == 1


@pytest.mark.parametrize("code", [code for code in AckCode if code != AckCode.OK])
def test_what_may_pass_is_asked_again_with_new_numbers(line, transport, code):
    line.answer = lambda _number, seq: transport.answered("ACK", acked("PARAM_SAVE", seq, code))
    with pytest.raises(RequestError, match=f"refused, {code.name.lower()}: ") as caught:
        transport.request("PARAM_SAVE", {}, timeout=PATIENT)
    assert caught.value.detail is None
    assert "channel" not in str(caught.value)
    again = code in (AckCode.BUSY, AckCode.REPLAYED, AckCode.STALE)
    assert len(set(line.seqs)) == len(line.seqs) == (TRIES if again else 1)


def test_whoever_was_busy_may_take_it_the_second_time(line, transport):
    def answer(_number, seq):
        code = AckCode.BUSY if len(line.sent) == 1 else AckCode.OK
        transport.answered("ACK", acked("PARAM_SAVE", seq, code))

    line.answer = answer
    assert transport.request("PARAM_SAVE", {}, timeout=PATIENT)["code"] == AckCode.OK
    assert len(line.sent) == 2


def test_a_code_of_newer_firmware_has_its_number(line, transport):
    line.answer = lambda _number, seq: transport.answered("ACK", acked("PARAM_SAVE", seq, 99))
    with pytest.raises(RequestError, match=r"PARAM_SAVE: refused, code 99$"):
        transport.request("PARAM_SAVE", {}, timeout=PATIENT)


@pytest.mark.parametrize(("tries", "asked"), [(1, "once"), (2, "2 times"), (3, "3 times")])
def test_silence_is_told_with_what_was_tried(line, transport, tries, asked):
    with pytest.raises(RequestError, match=rf"no answer \(asked {asked}, 0.01 s each\)") as caught:
        transport.request("PARAM_SAVE", {}, timeout=0.01, tries=tries)
    assert (caught.value.code, caught.value.detail) == (None, None)
    assert len(line.sent) == tries


def test_silence_is_told_with_the_usual_patience(transport):
    with pytest.raises(RequestError, match=r"no answer \(asked 3 times, 0.2 s each\)"):
        transport.request("PARAM_SAVE", {})


def test_the_answer_to_an_earlier_try_counts(line, transport):
    def answer(_number, _seq):
        if len(line.sent) == 2:
            transport.answered("ACK", acked("PARAM_SAVE", line.seqs[0]))

    line.answer = answer
    assert transport.request("PARAM_SAVE", {}, timeout=0.01)["seq"] == line.seqs[0]


def test_nothing_is_sent_and_nobody_waits_on_a_line_that_is_gone(line):
    reason = ["unplugged"]
    transport = Transport(line, "arm", 5, lambda: reason[0])
    with pytest.raises(BoardError, match=r"^board 'arm' at /dev/line: PARAM_SAVE: unplugged$"):
        transport.request("PARAM_SAVE", {}, timeout=PATIENT)
    assert line.sent == []
    reason[0] = ""

    def answer(_number, _seq):
        reason[0] = "lost"

    line.answer = answer
    with pytest.raises(BoardError, match="PARAM_SAVE: lost"):
        transport.request("PARAM_SAVE", {}, timeout=PATIENT)
    assert len(line.sent) == 1
    assert not transport.answered("ACK", acked("PARAM_SAVE", line.seqs[0]))


def test_the_host_s_time_is_monotonic_in_whole_microseconds():
    before = time.monotonic_ns()
    now = host_us()
    assert before // 1000 <= now <= time.monotonic_ns() // 1000
    assert isinstance(now, int)
