"""A bad line, in small; and that the judge sees what it must."""

import dataclasses
import json

import numpy as np
import pytest

from cards_hardware.firmware_check import frame_errors
from cards_hardware.firmware_check.frame_errors import Counts, Line, intact
from cards_hardware.firmware_check.native_firmware import compiler
from cards_hardware.protocol import Frame, FrameDecoder, encode_frame


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
