"""A bad line, in small; and that the judge sees what it must."""

import dataclasses
import json

import numpy as np
import pytest

from cards_hardware.errors import HardwareError
from cards_hardware.firmware_check import frame_errors
from cards_hardware.firmware_check.frame_errors import Counts, Line, intact
from cards_hardware.firmware_check.native_firmware import compiler
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame


@pytest.mark.parametrize(("rate", "frames"), [(1e-4, 20_000), (3e-3, 20_000)])
def test_nothing_false_is_applied_and_no_good_frame_behind_a_delimiter_is_lost(
    rate, frames, tmp_path
):
    line = Line(changed=rate, lost=rate, inserted=rate)
    native = tmp_path if compiler() else None
    if native is None:
        print("no C compiler: the Python decoder alone")
    report = frame_errors.run(frames, line, seed=3, folder=native)
    assert report.passed
    assert report.damaged > 2 * 62 * rate * frames  # the line was as bad as it should be
    assert set(report.decoders) == ({"python", "c"} if native else {"python"})
    for counts in report.decoders.values():
        assert counts.false == counts.corrupted_applied == counts.lost == 0
        # more only where a lost byte was replaced by an equal one
        assert counts.applied == counts.found >= frames - report.damaged - report.glued
        assert counts.errors > 0


def test_a_perfect_line_loses_nothing():
    line = Line(changed=0.0, lost=0.0, inserted=0.0, dropped=0.0, garbage=0.0)
    report = frame_errors.run(3000, line)
    assert report.damaged == report.glued == report.decoders["python"].errors == 0
    assert report.decoders["python"].applied == 3000


class Tampering:
    """A decoder that does something wrong with a frame in a hundred."""

    def __init__(self, change):
        self.decoder = FrameDecoder()
        self.change = change
        self.errors = 0

    def feed(self, data):
        frames = []
        for frame in self.decoder.feed(data):
            if (frame.t_us // 1000) % 100 == 50:
                frames += self.change(frame)
            else:
                frames.append(frame)
        return frames


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda f: [dataclasses.replace(f, payload=f.payload[:-1] + b"\x99\x98")], (1, 1, 1)),
        (lambda f: [dataclasses.replace(f, payload=f.payload[:-1])], (1, 0, 1)),
        (lambda f: [dataclasses.replace(f, node=2)], (1, 0, 1)),
        (lambda f: [f, f], (1, 0, 0)),  # twice: found, but not applied again
        (lambda f: [], (0, 0, 1)),
    ],
    ids=["changed", "too short", "other node", "twice", "dropped"],
)
def test_the_judge_sees_what_a_decoder_does_wrong(change, expected):
    rng = np.random.default_rng(0)
    sent = frame_errors.commands(rng, 0, 1000)
    counts = Counts()
    checker = frame_errors._FrameChecker(counts)
    clean = np.ones(len(sent), dtype=bool)
    checker.take(Tampering(change), [b"".join(map(encode_frame, sent))], sent, clean)
    assert (counts.false, counts.corrupted_applied, counts.lost) == tuple(10 * n for n in expected)


def test_ground_truth_of_damage():
    """Whole and behind a delimiter, by hand: the first byte changed, one inserted, one lost."""
    wires = [encode_frame(Frame(1, 0, 1, 1, i, i, b"\x01\x02")) for i in range(6)]
    sizes = [len(wire) for wire in wires]
    data = np.frombuffer(b"".join(wires), np.uint8)
    slot = np.repeat(np.arange(6), sizes)
    touched = np.zeros(len(data), bool)
    starts = np.cumsum([0, *sizes])
    touched[starts[4]] = True  # first byte of 4 changed
    keep = np.ones(len(data), bool)
    keep[starts[2] - 1] = False  # the delimiter of 1: 1 is damaged, 2 is glued to it
    place = starts[5] + 3  # a byte too many in 5
    data, slot, touched, keep = (
        np.insert(array, place, value)
        for array, value in ((data, 7), (slot, 5), (touched, True), (keep, True))
    )
    line = data[keep], slot[keep], touched[keep]
    whole, clean = intact(*line, sizes, before=0)
    assert whole.tolist() == [True, False, True, True, False, False]
    assert clean.tolist() == [True, False, False, True, False, False]
    assert not intact(*line, sizes, before=9)[1][0]


def test_command_line(capsys):
    assert frame_errors.main(["--frames", "500", "--no-c", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is True
    assert report["decoders"]["python"]["corrupted_applied"] == 0
    assert frame_errors.main(["--frames", "500", "--no-c"]) == 0
    assert "passed" in capsys.readouterr().out


# The line ----------------------------------------------------------------------------------------

STILL = {"changed": 0.0, "lost": 0.0, "inserted": 0.0, "dropped": 0.0, "garbage": 0.0}
SIZE, FRAMES = 70, 3000


def sent_over(seed=4, **rates):
    """Frames of 70 equal bytes over a line with these errors alone."""
    wires = [bytes([0xFF]) * SIZE] * FRAMES
    line = Line(**(STILL | rates))
    return frame_errors.damage(np.random.default_rng(seed), wires, line)


def test_changed_bytes_are_half_of_them_of_one_bit():
    data, slot, touched = sent_over(changed=0.2)
    assert len(data) == SIZE * FRAMES
    np.testing.assert_array_equal(slot, np.repeat(np.arange(FRAMES), SIZE))
    np.testing.assert_array_equal(touched, data != 0xFF)
    assert touched.mean() == pytest.approx(0.2, rel=0.02)
    bits = np.array([int(byte ^ 0xFF).bit_count() for byte in data[touched]])
    assert np.mean(bits == 1) == pytest.approx(0.5 + 0.5 * 8 / 255, rel=0.03)
    assert {int(byte ^ 0xFF) for byte in data[touched]} == set(range(1, 256))


def test_lost_and_inserted_bytes_are_as_many_as_the_rates_say():
    data, slot, touched = sent_over(lost=0.1)
    assert len(data) == pytest.approx(0.9 * SIZE * FRAMES, rel=0.01)
    assert not touched.any()
    assert np.all(np.diff(slot) >= 0)
    data, slot, touched = sent_over(inserted=0.1)
    assert touched.sum() == len(data) - SIZE * FRAMES
    assert touched.sum() == pytest.approx(0.1 * SIZE * FRAMES, rel=0.03)
    assert np.all(data[~touched] == 0xFF)
    assert np.all(np.diff(slot) >= 0)
    # some of them look like the end of a frame
    assert np.mean(data[touched] == 0) == pytest.approx(0.02 + 0.98 / 256, rel=0.15)


def test_runs_that_are_dropped_begin_near_a_frame_and_end_within_300_bytes():
    wires = [bytes([0xFF]) * 1000] * FRAMES
    line = Line(**(STILL | {"dropped": 0.5}))
    _, slot, touched = frame_errors.damage(np.random.default_rng(4), wires, line)
    assert not touched.any()
    gone = 1000 - np.bincount(slot, minlength=FRAMES)
    assert np.mean(gone > 0) == pytest.approx(0.5, rel=0.1)
    runs = gone[gone > 0]
    assert (runs.min(), runs.max()) == (1, 300)
    assert runs.mean() == pytest.approx(150.5, rel=0.05)


def test_garbage_stands_before_a_frame_and_is_at_most_2000_bytes():
    _, slot, touched = sent_over(garbage=0.3)
    extra = np.bincount(slot[touched], minlength=FRAMES)
    assert np.mean(extra > 0) == pytest.approx(0.3, rel=0.1)
    runs = extra[extra > 0]
    assert 1 <= runs.min() < 20
    assert 1980 < runs.max() <= 2000
    first = np.flatnonzero(np.diff(slot, prepend=-1))
    np.testing.assert_array_equal(touched[first], extra > 0)


def test_commands_are_within_their_ranges_and_numbered():
    frames = frame_errors.commands(np.random.default_rng(1), 250, 2000, 2**32 - 3000, node=9)
    assert [frame.seq for frame in frames[:7]] == [250, 251, 252, 253, 254, 255, 0]
    assert frames[0].t_us == (2**32 - 3000 + 250_000) % 2**32
    assert set(np.diff([frame.t_us for frame in frames])) == {1000}
    assert {(frame.node, frame.name) for frame in frames} == {(9, "CMD_TENSION")}
    values = [unpack(frame) for frame in frames]
    assert {value["mask"] for value in values} == {2**11 - 1}
    tensions = np.concatenate([value["tension"] for value in values])
    slews = np.concatenate([value["slew"] for value in values])
    assert (tensions.min(), tensions.max()) == (0.0, pytest.approx(150.0, abs=0.1))
    assert slews.min() == 0.0
    assert slews.max() == pytest.approx(2000.0, abs=2.0)
    assert np.mean(tensions == 0.0) == pytest.approx(0.1, rel=0.1)
    assert np.mean(slews == 0.0) == pytest.approx(0.1, rel=0.1)


def test_a_port_gives_the_bytes_in_pieces():
    data = np.random.default_rng(0).bytes(500_000)
    pieces = list(frame_errors._pieces(np.random.default_rng(0), data))
    assert b"".join(pieces) == data
    sizes = [len(piece) for piece in pieces[:-1]]
    assert 1 <= min(sizes) < 200
    assert 3900 < max(sizes) < 4096


@pytest.mark.parametrize(
    ("change", "applied"),
    [({}, True), ({"seq": 10}, False), ({"seq": 9}, False), ({"seq": 137}, True),
     ({"seq": 138}, False), ({"t_us": 100}, False), ({"t_us": 99}, False),
     ({"t_us": 100 + 2**31 - 1}, True), ({"t_us": 100 + 2**31}, False), ({"major": 15}, False),
     ({"node": 2}, False), ({"type": 0x7E}, False)],
    ids=str,
)  # fmt: skip
def test_what_a_board_applies_after_another_command(change, applied):
    """A number that is newer by less than half of the circle, and so its time."""
    frame = frame_errors.commands(np.random.default_rng(0), 0, 1)[0]
    checker = frame_errors._FrameChecker(Counts())
    assert checker._passes(dataclasses.replace(frame, seq=10, t_us=100))
    told = {"seq": 11, "t_us": 101, **change}
    assert checker._passes(dataclasses.replace(frame, **told)) is applied


@pytest.mark.parametrize("fault", ["lost", "corrupted_applied"])
def test_a_run_that_failed_says_so(monkeypatch, capsys, fault):
    bad = frame_errors.Report(5, Line(), decoders={"python": Counts(**{fault: 1})})
    monkeypatch.setattr(frame_errors, "run", lambda *_args: bad)
    assert not bad.passed
    assert frame_errors.main(["--no-c"]) == 1
    assert "FAILED" in capsys.readouterr().out
    harmless = frame_errors.Report(5, Line(), decoders={"python": Counts(false=1, errors=3)})
    assert harmless.passed


def test_what_the_command_line_asks_for(monkeypatch, capsys):
    asked = []

    def run(frames, line, seed, folder):
        asked.append((frames, line, seed, folder is None))
        return frame_errors.Report(frames, line)

    monkeypatch.setattr(frame_errors, "run", run)
    assert frame_errors.main([]) == 0
    assert frame_errors.main(["--rate", "0.25", "--seed", "9", "--no-c"]) == 0
    usual = Line(changed=1e-4, lost=1e-4, inserted=1e-4)
    bad = Line(changed=0.25, lost=0.25, inserted=0.25)
    assert asked == [(100_000, usual, 1, False), (100_000, bad, 9, True)]

    def fail(*_args):
        raise HardwareError("no compiler")

    monkeypatch.setattr(frame_errors, "run", fail)
    assert frame_errors.main([]) == 2
    assert capsys.readouterr().err == "error: no compiler\n"
