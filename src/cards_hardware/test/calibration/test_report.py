"""The verdict of a calibration's report, and what stands in its file."""

import json
from datetime import UTC, datetime

import pytest
import yaml

from cards_core.errors import CardsError
from cards_hardware.calibration.check import MuscleCheck
from cards_hardware.calibration.recording import ChannelResult
from cards_hardware.calibration.report import STEPS, CalibrationReport


def report():
    return CalibrationReport("arm", datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC))


def result(problem="", **changes):
    values = {
        "name": "biceps", "board": "one", "channel": 2, "before": 1.23456789012, "noise": 0.3,
        "after": float("nan"), "wanted": 0.0, "parameter": "LOAD_ZERO", "old": 1, "new": 2,
    }  # fmt: skip
    return ChannelResult(**(values | changes), problem=problem)


def check(problem="", *, checked=True):
    return MuscleCheck("biceps", 0.1, float("nan"), 1e-4, 0.2, problem, checked)


def test_a_fresh_report():
    fresh = report().as_dict()
    assert fresh["date"] == "2026-01-02T03:04:05+00:00"
    assert (fresh["ok"], fresh["saved"], fresh["aborted"]) == (True, False, "")
    assert (fresh["problems"], fresh["unchecked"], fresh["hints"]) == ([], [], [])
    assert STEPS == ("tension", "length", "joints", "check")


def test_problems_name_their_step_and_one_is_enough():
    made = report()
    made.add_step("tension", [result(), result("pulls", name="triceps")])
    assert made.problems == ["tension: triceps: pulls"]
    assert not made.ok
    made.add_step("tension", [result()])  # done again
    assert made.ok


def test_a_direction_that_was_not_checked_is_not_well():
    made = report()
    made.add_step("check", [check(checked=False)])
    assert (made.ok, made.unchecked, made.problems) == (False, ["biceps"], [])
    made.add_step("check", [check()])
    assert (made.ok, made.unchecked) == (True, [])


def test_an_end_before_the_end_is_not_well():
    made = report()
    made.aborted = "Ctrl-C"
    assert not made.ok


def test_a_step_that_was_skipped_and_then_done_is_not_skipped():
    made = report()
    made.skipped["length"] = made.skipped["joints"] = "not wanted"
    made.add_step("length", [result()])
    assert made.skipped == {"joints": "not wanted"}


def test_who_boards_are():
    from types import SimpleNamespace

    made = report()
    made.add_board("one", "/dev/a", SimpleNamespace(uid="00ff", firmware="1.2.3"))
    made.add_board("two", "/dev/b", None)
    assert made.boards == {
        "one": {"port": "/dev/a", "uid": "00ff", "firmware": "1.2.3"}, "two": {"port": "/dev/b"},
    }  # fmt: skip


@pytest.mark.parametrize("name", ["a/b.json", "a/b.yaml", "b.yml"])
def test_files_hold_seven_digits_and_nothing_for_what_is_no_number(tmp_path, name):
    made = report()
    made.pose["elbow"] = 0.123456789
    made.add_step("tension", [result()])
    made.add_step("check", [check()])
    made.write(tmp_path / name)
    text = (tmp_path / name).read_text()
    found = json.loads(text) if name.endswith("json") else yaml.safe_load(text)
    assert found == made.as_dict()
    (row,) = found["steps"]["tension"]
    assert (row["before"], row["after"], row["channel"]) == (1.234568, None, 2)
    assert found["steps"]["check"][0]["slope"] is None
    assert found["pose"] == {"elbow": 0.123457}
    assert list(found)[:3] == ["robot", "date", "ok"] or name.endswith("json")


def test_files_that_cannot_be(tmp_path):
    with pytest.raises(CardsError, match=r"\.txt \(expected: a name that ends on .yaml or .json"):
        report().write(tmp_path / "report.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(CardsError, match="cannot write the report"):
        report().write(tmp_path / "file" / "report.json")
