"""Verdicts on runs, reason by reason; tallies and tolerances against numbers made by hand."""

import math
from dataclasses import replace

import pytest

from cards_core.loop.verdict import (
    Ending,
    HostFacts,
    TaskFacts,
    Tracking,
    Verdict,
    ending_failures,
    judge,
    verdict_line,
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
        ({"saturated": {"a": 0.5, "b": 0.009}}, {}, "at the maximum tension: a for 50% of"),
        ({"saturated": {"a": 0.02}}, {}, "at the maximum tension: a for 2% of"),
        ({"slack": {"a": 0.02, "b": 0.009}}, {}, "slack: a for 2% of the time"),
        (
            {"slack": {f"cable_{i}": 1.0 for i in range(10)}},
            {},
            "cable_7 for 100% of the time and 2 more",
        ),
        ({}, {"infeasible": 50}, "no tensions within their limits"),
        ({}, {"joint_limit": 51}, "gave way to a joint limit"),
        ({}, {"missed": 53}, "missed deadlines: 53 of 1053 states got no answer"),
        ({}, {"remaining": 2.5}, "the reference was not finished, 2.5 s were left"),
    ],
)
def test_reasons_to_warn(host, task, text):
    verdict = judge(replace(HOST, **host), replace(TASK, **task), END)
    assert verdict.name == "ok"
    (warning,) = verdict.warnings
    assert text in warning


@pytest.mark.parametrize(
    ("accepted", "refused", "name"),
    [(101, 100, "ok"), (100, 100, "failed"), (99, 100, "failed"), (0, 1, "failed")],
)
def test_a_run_of_which_half_the_commands_were_refused_has_failed(accepted, refused, name):
    verdict = judge(replace(HOST, accepted=accepted, refused=refused), TASK, END)
    assert verdict.name == name
    (text,) = verdict.failures or verdict.warnings
    assert f"{refused} commands were refused" in text


def test_below_the_thresholds_nothing_is_said():
    host = replace(HOST, behind=0.05, saturated={"a": 0.01})
    task = replace(TASK, joint_limit=50, missed=52, remaining=1e-9)
    assert judge(host, task, replace(END, reached=0.999)) == Verdict("ok")


@pytest.mark.parametrize(
    ("host", "task", "name", "text"),
    [
        ({}, {"missed": 370}, "failed", "missed deadlines: 370 of 1370 states"),  # 27 %
        ({}, {"missed": 11}, "failed", "missed deadlines: 11 of 1011 states"),
        ({}, {"missed": 1}, "ok", "missed deadlines: 1 of 1001 states"),
        ({"behind": 0.06}, {}, "failed", "slower than real time: 1 s took 1.06 s"),
        ({"behind": 0.05}, {}, "ok", ""),
    ],
)
def test_what_was_to_run_in_real_time_must_have_done_so(host, task, name, text):
    facts = replace(HOST, **host), replace(TASK, **task), END
    verdict = judge(*facts, real_time=True)
    assert verdict.name == name
    assert verdict.exit_code == (1 if name == "failed" else 0)
    assert [text in one for one in (*verdict.failures, *verdict.warnings)] == [True] * bool(text)
    assert judge(*facts).name == "ok"


def test_a_run_that_was_stopped():
    verdict = judge(HOST, replace(TASK, remaining=5.0), Ending(0.5, 10.0, stopped=True))
    assert verdict == Verdict("stopped")
    assert verdict.exit_code == 130
    assert verdict_line(verdict.entries()) == "STOPPED"


def test_one_line():
    entries = Verdict.of(["this", "that"], ["x"]).entries()
    assert verdict_line(entries) == "FAILED: this; that (1 warning: x)"
    entries = Verdict.of([], ["x", "y"]).entries()
    assert verdict_line(entries) == "OK (2 warnings: x; y)"


# Bounds ----------------------------------------------------------------------------------------


def told(host=None, task=None, end=None, **options):
    """What is said of a run: failures, and warnings."""
    changed = (host or {}), (task or {}), (end or {})
    facts = (replace(fact, **new) for fact, new in zip((HOST, TASK, END), changed, strict=True))
    verdict = judge(*facts, **options)
    return len(verdict.failures), len(verdict.warnings)


@pytest.mark.parametrize(
    ("end", "failures"),
    [
        ({"reached": 0.999}, 0),  # one step
        ({"reached": 0.998_998}, 1),
        ({"reached": 0.9985}, 1),
        ({"reached": 1.5}, 0),
        ({"reached": 1.0 - 0.9e-9, "step": 0.0}, 0),  # rounding
        ({"reached": 1.0 - 1.5e-9, "step": 0.0}, 1),
        ({"reached": 1e6 - 0.9e-3, "wanted": 1e6, "step": 0.0}, 0),
        ({"reached": 1e6 - 1.5e-3, "wanted": 1e6, "step": 0.0}, 1),
        ({"reached": 5.0, "wanted": 0.0}, 0),  # until the user ends it
    ],
)
def test_a_run_may_end_one_step_before_its_time(end, failures):
    assert told(end=end) == (failures, 0)
    assert len(ending_failures(replace(END, **end))) == failures


def test_what_ended_a_run_is_told_even_if_the_user_did_or_it_was_over():
    for stopped, reached in ((False, 1.0), (True, 0.5), (False, 0.5)):
        end = Ending(reached, 1.0, stopped=stopped, failure="it blew up", step=1e-3)
        assert ending_failures(end) == ["it blew up"]


def test_what_is_not_known_is_not_judged():
    assert judge(None, None, END) == Verdict("ok")
    assert judge(HOST, None, END) == judge(None, TASK, END) == Verdict("ok")
    assert judge(HostFacts(steps=0), TaskFacts(steps=0), Ending(0.0)) == Verdict("ok")


@pytest.mark.parametrize(
    ("task", "real_time", "counts"),
    [
        # of 1000 states, answered and missed
        ({"steps": 950, "missed": 50}, False, (0, 0)),
        ({"steps": 949, "missed": 51}, False, (0, 1)),
        ({"steps": 990, "missed": 10}, True, (0, 1)),
        ({"steps": 989, "missed": 11}, True, (1, 0)),
        ({"missed": 0}, True, (0, 0)),
        ({"remaining": 0.01}, False, (0, 0)),
        ({"remaining": 0.011}, False, (0, 1)),
        ({"tracking": (Tracking("m", 1.0, 1.0, 1.0, 1.0),)}, False, (0, 0)),
        ({"tracking": (Tracking("m", 1.0, 1.0, 1.001, 1.0),)}, False, (1, 0)),
        ({"tracking": (Tracking("m", 1.0, 1.0, 1.0, 1.001),)}, False, (1, 0)),
        # the end of a motion that went wrong is not worth a sentence of its own
        ({"tracking": (Tracking("m", 1.0, 1.0, 2.0, 2.0),)}, False, (1, 0)),
        ({"tracking": (Tracking("m", 1, 1, 2, 2), Tracking("rad", 1, 1, 2, 2))}, False, (2, 0)),
        ({"tracking": (Tracking("m", 0.0, 0.0, 0.0, 0.0),)}, False, (0, 0)),
        ({"steps": 1, "infeasible": 1}, False, (1, 0)),
        ({"steps": 1, "joint_limit": 1}, False, (0, 1)),
        ({"not_finite": ("q", "qd")}, False, (2, 0)),
    ],
)
def test_bounds_of_a_task(task, real_time, counts):
    assert told(task=task, real_time=real_time) == counts


@pytest.mark.parametrize(
    ("host", "real_time", "counts"),
    [
        ({"duration": 2.0, "behind": 0.1}, True, (0, 0)),
        ({"duration": 2.0, "behind": 0.11}, True, (1, 0)),
        ({"duration": 2.0, "behind": 0.11}, False, (0, 1)),
        ({"saturated": {"a": 0.011, "b": 0.5}}, False, (0, 1)),
        # where the commands that were accepted are not known, nobody can say half of them
        ({"refused": 1000}, False, (0, 1)),
        # all are refused after an emergency stop, which is the one failure
        ({"refused": 1000, "accepted": 10, "stopped": 9, "stopped_time": 0.5}, False, (1, 1)),
        ({"watchdog": 1, "stopped": 1}, False, (2, 0)),
    ],
)
def test_bounds_of_a_host(host, real_time, counts):
    assert told(host=host, real_time=real_time) == counts


def test_sentences_say_how_much():
    host = replace(HOST, saturated={"a": 0.02, "b": 1.0, "c": 0.0}, refused=3, refusal="too much")
    task = replace(TASK, steps=200, infeasible=4, joint_limit=20, missed=100)
    assert judge(host, task, END).warnings == (
        "3 commands were refused by the host, the last: too much",
        "at the maximum tension: a for 2%, b for 100% of the time",
        "no tensions within their limits do what is asked in 4 of 200 steps",
        "the task gave way to a joint limit in 20 of 200 steps",
        "missed deadlines: 100 of 300 states got no answer, or a late one",
    )


def test_a_reference_that_was_not_finished_is_no_matter_where_a_run_broke_off():
    task = replace(TASK, remaining=2.5)
    broken = judge(HOST, task, replace(END, failure="it blew up"))
    assert broken == Verdict("failed", ("it blew up",))
    assert judge(HOST, task, replace(END, stopped=True)) == Verdict("stopped")


def test_a_verdict_without_words():
    assert verdict_line(Verdict("ok").entries()) == "OK"
    assert Verdict.of([], ["x"], stopped=True) == Verdict("stopped", (), ("x",))
    assert Verdict.of(["y"], [], stopped=True) == Verdict("failed", ("y",))
    assert [Verdict(name).exit_code for name in ("ok", "failed", "stopped")] == [0, 1, 130]
