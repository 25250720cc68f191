"""Verdicts on runs, reason by reason; tallies and tolerances against numbers made by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cards_core.control import ControlStatus
from cards_core.errors import DescriptionError
from cards_core.loop.task_tally import TaskTally
from cards_core.loop.verdict import (
    Ending,
    HostFacts,
    TaskFacts,
    Tracking,
    Verdict,
    judge,
    verdict_line,
)
from cards_core.trajectories import (
    Hold,
    LiveReference,
    PointToPoint,
    Tolerance,
    from_dict,
    tolerance_of,
    with_approach,
)

HOST = HostFacts(steps=1000, duration=1.0)
TASK = TaskFacts(steps=1000, tracking=(Tracking("m", 1e-3, 1e-3, 0.1, 0.1),))
END = Ending(reached=1.0, wanted=1.0, step=1e-3)


def test_a_good_run():
    verdict = judge(HOST, TASK, END)
    assert verdict == Verdict("ok")
    assert verdict.exit_code == 0


@pytest.mark.parametrize(
    ("host", "task", "end", "text"),
    [
        (
            {"watchdog": 3, "watchdog_time": 0.5, "watchdog_duration": 3e-3},
            {},
            {},
            "the watchdog let the muscles go for 0.003 s, first at t = 0.500 s",
        ),
        ({"stopped": 1, "stopped_time": 0.25}, {}, {}, "emergency stop at t = 0.250 s"),
        ({"not_finite": ("q: bad",)}, {}, {}, "q: bad"),
        ({}, {"invalid": 1}, {}, "1 of 1000 states, or answers, were not finite"),
        ({}, {"infeasible": 51}, {}, "no tensions within their limits"),
        (
            {},
            {"tracking": (Tracking("m", 0.401, 0.0, 18.9, 0.0),)},
            {},
            "RMS error 401 mm, tolerance 21.2 mm",
        ),
        (
            {},
            {"tracking": (Tracking("rad", 0.01, 0.08, 0.5, 4.0),)},
            {},
            "error at the end 80 mrad, tolerance 20 mrad",
        ),
        ({}, {"tracking": (Tracking("rad", math.nan, 0.0, math.nan, 0.0),)}, {}, "RMS error nan"),
        ({}, {}, {"reached": 0.9}, "it ended after 0.9 s of 1 s"),
        ({}, {}, {"failure": "it blew up"}, "it blew up"),
    ],
)
def test_reasons_to_fail(host, task, end, text):
    facts = replace(HOST, **host), replace(TASK, **task), replace(END, **end)
    verdict = judge(*facts)
    assert verdict.name == "failed"
    assert verdict.exit_code == 1
    assert len(verdict.failures) == 1
    assert text in verdict.failures[0]
    # a run that the user ended is judged on what it did; only its end is no fault
    stopped = judge(facts[0], facts[1], replace(facts[2], stopped=True))
    assert stopped.name == ("stopped" if "reached" in end else "failed")


@pytest.mark.parametrize(
    ("host", "task", "text"),
    [
        ({"refused": 2}, {}, "2 commands were refused"),
        ({"behind": 0.06}, {}, "slower than real time: 1 s took 1.06 s"),
        ({"saturated": {"a": 0.5, "b": 0.04}}, {}, "at the greatest tension: a for 50% of"),
        ({}, {"infeasible": 50}, "no tensions within their limits"),
        ({}, {"joint_limit": 51}, "gave way to a joint limit"),
        ({}, {"missed": 53}, "53 of 1053 states got no answer"),
        ({}, {"remaining": 2.5}, "the reference was not finished, 2.5 s were left"),
    ],
)
def test_reasons_to_warn(host, task, text):
    verdict = judge(replace(HOST, **host), replace(TASK, **task), END)
    assert verdict.name == "ok"
    (warning,) = verdict.warnings
    assert text in warning


def test_below_the_thresholds_nothing_is_said():
    host = replace(HOST, behind=0.05, saturated={"a": 0.05})
    task = replace(TASK, joint_limit=50, missed=52, remaining=1e-9)
    assert judge(host, task, replace(END, reached=0.999)) == Verdict("ok")


def test_a_run_that_was_stopped():
    verdict = judge(HOST, replace(TASK, remaining=5.0), Ending(0.5, 10.0, stopped=True))
    assert verdict == Verdict("stopped")
    assert verdict.exit_code == 130
    assert verdict_line(verdict.entries()) == "STOPPED"


def test_one_line():
    entries = Verdict.of(["this", "that"], ["x"]).entries()
    assert verdict_line(entries) == "FAILED: this; that (1 warning)"


def test_tally_against_numpy():
    rng = np.random.default_rng(3)
    count, error = 50, rng.normal(size=(50, 5))
    limits = rng.uniform(0.5, 1.0, size=(count, 2))
    status = rng.choice(list(ControlStatus), size=count)
    tally = TaskTally(("m", "rad", "m", "rad", "rad"))
    tally.add(-1.0, ControlStatus.INVALID_STATE, error[0], Tolerance(1.0, 1.0), 9.0)
    tally.reset()
    for k in range(count):
        answer = ControlStatus(int(status[k]))
        tally.add(0.1 * k, answer, error[k], Tolerance(*limits[k]), 7.0 - 0.1 * k)
    facts = tally.facts(missed=4, reached=5.0)
    assert (facts.steps, facts.missed) == (count, 4)
    assert facts.invalid == np.sum(status == ControlStatus.INVALID_STATE)
    assert facts.joint_limit == np.sum(status == ControlStatus.JOINT_LIMIT)
    assert facts.infeasible == np.sum((status == 2) | (status == 3))
    assert facts.remaining == pytest.approx(7.0 - 5.0)
    good = status != ControlStatus.INVALID_STATE
    for one, columns, column in zip(facts.tracking, ([0, 2], [1, 3, 4]), (0, 1), strict=True):
        sizes = np.linalg.norm(error[good][:, columns], axis=1)
        used = sizes / limits[good, column]
        assert one.unit == ("m", "rad")[column]
        assert one.rms == pytest.approx(math.sqrt(np.mean(sizes**2)))
        assert one.used == pytest.approx(math.sqrt(np.mean(used**2)))
        assert (one.end, one.used_at_end) == pytest.approx((sizes[-1], used[-1]))


def test_a_task_without_tolerance_is_not_judged():
    tally = TaskTally(("m",))
    tally.add(0.0, ControlStatus.OK, np.array([5.0]), Tolerance(), math.nan)
    assert tally.facts().tracking == ()
    assert tally.facts().remaining == 0.0


def test_tolerance_from_the_size_of_the_path():
    straight = PointToPoint([0.0, 1.0, 0.0], [3.0, 1.0, -4.0], duration=1.0)
    assert tolerance_of(straight, ("m", "m", "m")) == Tolerance(0.25, 0.02)
    mixed = tolerance_of(straight, ("m", "m", "rad"))
    assert (mixed.length, mixed.angle) == pytest.approx((0.15, 0.2))
    # a place to hold has the least
    assert tolerance_of(Hold([1.0, 2.0]), ("m", "rad")) == Tolerance(0.005, 0.02)
    # nobody knows how exact a point that comes over a topic is meant
    live = tolerance_of(LiveReference(1), ("rad",))
    assert math.isnan(live.length)
    assert math.isnan(live.angle)


def test_tolerance_of_a_turn():
    quaternion = [math.cos(0.4), math.sin(0.4), 0.0, 0.0]  # by 0.8 rad
    turn = PointToPoint([1.0, 0.0, 0.0, 0.0], quaternion, duration=1.0)
    assert tolerance_of(turn, ("",) * 4).angle == pytest.approx(0.05 * 0.8)


def test_tolerance_in_a_file():
    def read(tolerance):
        motion = {"kind": "point_to_point", "from": [0.0], "to": [1.0], "duration": 1.0}
        return from_dict({"trajectories": {"a": {**motion, "tolerance": tolerance}}})["a"]

    stated = read({"angle": 0.001})
    assert tolerance_of(stated, ("rad",)).angle == 0.001
    assert tolerance_of(with_approach(stated, [5.0], 1.0), ("rad",)).angle == 0.001
    with pytest.raises(DescriptionError, match=r"unknown key 'angel', did you mean 'angle'"):
        read({"angel": 0.1})
    with pytest.raises(DescriptionError, match=r"tolerance\.length: is 0"):
        read({"length": 0})
    with pytest.raises(DescriptionError, match="a mapping of keys and values"):
        read(0.1)
