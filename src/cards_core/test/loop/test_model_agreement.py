"""Who has to stop when models differ."""

from dataclasses import replace

import pytest

from cards_core.formats import load
from cards_core.loop.model_agreement import Agreement
from cards_core.loop.model_identity import Announcement, encode, identity_of
from changed_robots import with_mass

SAME = identity_of(load("planar_2r"))
OTHER = identity_of(with_mass(load("planar_2r"), 2.0))


def says(role, model, *, instance="", commands=False):
    return encode(Announcement(f"/{role}", instance or role, role, model, commands))


def agreement(role):
    return Agreement(Announcement("/me", "me", role, SAME))


@pytest.mark.parametrize("role", ["host", "controller", "compiler", "observer"])
def test_nobody_and_equals_are_no_trouble(role):
    one = agreement(role)
    assert not one.uneasy
    for other in ("host", "controller", "compiler"):
        one.hear(says(other, SAME, commands=other == "controller"))
    assert one.others == 3
    assert (one.uneasy, one.disagreements, one.remarks) == (False, [], [])


@pytest.mark.parametrize(
    ("role", "other", "commands", "stops"),
    [
        ("controller", "host", False, True),
        ("controller", "compiler", False, True),  # no host has spoken
        ("controller", "controller", True, False),  # it is the host's to refuse
        ("host", "host", False, True),
        ("host", "controller", True, True),
        ("host", "controller", False, False),  # it does not command
        ("host", "compiler", False, False),
        ("compiler", "host", False, False),
        ("compiler", "controller", True, False),
        ("compiler", "observer", False, False),
        ("observer", "host", False, True),
        ("observer", "compiler", False, True),  # no host has spoken
        ("observer", "controller", True, False),
        ("observer", "observer", False, False),
        ("host", "observer", False, False),  # it commands nobody
        ("controller", "observer", False, False),
    ],
)
def test_whose_model_counts(role, other, commands, stops):
    one = agreement(role)
    one.hear(says(other, OTHER, commands=commands))
    assert bool(one.disagreements) is stops
    assert bool(one.remarks) is not stops
    (found,) = one.disagreements or one.remarks
    assert str(found).startswith(f"{other} /{other} has another model 'planar_2r': equations (")
    one.hear(says(other, SAME, commands=commands))  # it says something else now
    assert not one.uneasy
    assert one.others == 1


def test_a_host_counts_for_more_than_a_compiler():
    one = agreement("controller")
    one.hear(says("compiler", OTHER))
    assert one.disagreements
    one.hear(says("host", SAME))
    assert not one.disagreements
    assert len(one.remarks) == 1
    one.hear(says("host", OTHER, instance="second"))  # one of two hosts is wrong
    assert len(one.disagreements) == 1


def test_a_controller_that_stops_commanding_is_no_trouble_any_more():
    one = agreement("host")
    one.hear(says("controller", OTHER, commands=True))
    assert one.disagreements
    one.hear(says("controller", OTHER, commands=False))
    assert not one.disagreements


def test_a_host_that_is_not_ready_is_waited_for():
    def host(name, instance, ready):
        return encode(Announcement(name, instance, "host", SAME, ready=ready))

    one = agreement("controller")
    one.hear(host("/hardware", "a", False))
    assert one.unready == "/hardware"
    assert not one.uneasy
    one.hear(host("/hardware", "a", True))
    assert one.unready == ""
    one.hear(host("/hardware", "a", False))
    one.hear(host("/hardware", "b", True))  # it was killed and started anew
    assert one.unready == ""
    one.hear(host("/hardware", "b", False))
    one.hear(host("/other", "c", True))
    assert one.unready == "/hardware"
    one.forget()
    assert one.unready == ""


def test_who_does_not_say_that_it_is_ready_is():
    text = says("host", SAME)
    assert '"ready": true' in text
    one = agreement("controller")
    one.hear(text.replace('"ready": true, ', ""))
    assert (one.unready, one.problem, one.others) == ("", "", 1)
    one.hear(text.replace('"ready": true', '"ready": "yes"'))
    assert "'ready' is \"yes\" (expected: true or false)" in one.problem


def test_nodes_of_one_name_are_told_apart_and_oneself_is_not_heard():
    one = agreement("controller")
    one.hear(says("host", OTHER, instance="old"))
    one.hear(says("host", SAME, instance="new"))
    assert len(one.disagreements) == 1  # the new one does not make the old one right
    one.hear(encode(replace(one.own, model=OTHER)))
    assert one.others == 2


def test_what_is_not_understood_is_said_and_stops_nobody():
    one = agreement("controller")
    one.hear("{")
    assert one.uneasy
    assert one.problem.startswith("a message on the topic 'model' is not understood: no JSON")
    assert not one.disagreements
    assert one.others == 1
    one.forget()
    assert (one.uneasy, one.others, one.problem) == (False, 0, "")
