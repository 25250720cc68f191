"""What is said of two models that differ, and who has to stop then."""

from dataclasses import replace

import numpy as np
import pytest
from hybrid_robots import platform_arm, without_motors

from cards_core.formats import load
from cards_core.loop.model_agreement import Agreement, differences
from cards_core.loop.model_identity import Announcement, encode, identity_of
from cards_core.robot.actuators import Cable
from changed_robots import with_limits, with_mass, with_moved_point, with_muscle

# Differences -----------------------------------------------------------------------------------


PLANAR = load("planar_2r")
HERE = identity_of(PLANAR)


def test_the_same_model_read_twice_does_not_differ():
    for name in ("planar_2r", "roboy_arm", "wrap_elbow", "antagonist_joint"):
        assert differences(identity_of(load(name)), identity_of(load(name))) == []


def test_names_and_versions_do_not_count():
    other = replace(identity_of(replace(PLANAR, name="left_arm")), cards_version="9.9")
    assert differences(HERE, other) == []
    # but another version may be the reason
    (found,) = differences(HERE, replace(other, hash="0123456789abcdef"))
    assert found.endswith(f"0123456789abcdef there, of CARDS {HERE.cards_version} here, 9.9 there")


@pytest.mark.parametrize(
    ("robot", "words"),
    [
        (with_limits(PLANAR, -1.5, 0.25), ["joint limits: joint_2 ", "-1.5 .. 0.25 there"]),
        (
            with_muscle(PLANAR, tension_max=200.0),
            ["tension limits [N]: cable_1 10.0 .. 100.0 here, 10.0 .. 200.0 there"],
        ),
        (
            with_mass(PLANAR, 2.0),
            ["equations (masses, inertias or placements", f"hash {HERE.hash} here, "],
        ),
        (with_moved_point(PLANAR, 0.01), ["equations (muscle paths): hash "]),
        (replace(PLANAR, frames=(), operational_frame=None), ["equations (named frames): hash "]),
        (
            replace(PLANAR, gravity=np.array([0.0, 0.0, -1.62])),
            ["gravity: (0, 0, -9.81) here, (0, 0, -1.62) there", "equations (masses"],
        ),
        (
            replace(PLANAR, muscles=PLANAR.muscles[::-1]),
            ["muscles: in another order", "equations (muscle paths)"],
        ),
        (
            replace(PLANAR, muscles=PLANAR.muscles[1:]),
            ["muscles: cable_1 only here", "equations (muscle paths)"],
        ),
        (
            with_muscle(PLANAR, name="biceps"),
            ["muscles: cable_1 only here; biceps only there", "equations (muscle paths)"],
        ),
    ],
)
def test_the_part_that_differs_is_named(robot, words):
    found = differences(HERE, identity_of(robot))
    text = "; ".join(found)
    for word in words:
        assert word in text
    # and nothing else: each entry holds one of the words
    assert all(any(word in entry for word in words) for entry in found)


def test_types_of_muscles_are_named():
    other = replace(HERE, muscle_types=("hill", *HERE.muscle_types[1:]))
    assert differences(HERE, other) == ["muscle types: cable_1 cable here, hill there"]
    # parameters of an actuator are the host's own business
    elastic = with_muscle(PLANAR, actuator=Cable(stiffness=1e4))
    assert differences(HERE, identity_of(elastic)) == []


def test_another_robot_altogether():
    found = differences(HERE, identity_of(load("roboy_arm")))
    assert found[0].startswith("joints: joint_1, joint_2 only here; ")
    assert found[1].startswith("muscles: cable_1, cable_2, cable_3 and 1 more only here; ")
    assert found[-1].startswith("equations (masses")


def test_what_one_side_does_not_know_is_not_compared():
    unknown = identity_of(with_mass(PLANAR, 2.0), complete=False)
    assert differences(HERE, unknown) == differences(unknown, HERE) == []
    fewer = identity_of(replace(PLANAR, muscles=PLANAR.muscles[1:]), complete=False)
    assert differences(HERE, fewer) == ["muscles: cable_1 only here"]


def test_motors_and_their_limits_count():
    here = identity_of(platform_arm())
    assert differences(here, identity_of(platform_arm())) == []
    (found,) = differences(here, identity_of(without_motors(platform_arm())))
    assert found == "joint motors: shoulder, elbow only here"
    (found,) = differences(here, identity_of(platform_arm((12.0, 6.0))))
    assert found == "effort limits [Nm or N]: elbow -5.0 .. 5.0 here, -6.0 .. 6.0 there"
    # a node that says nothing of motors, and one that knows no limits
    assert differences(here, replace(here, motor_names=None, effort_limits=None)) == []
    assert differences(here, replace(here, effort_limits=None)) == []


# Agreement -------------------------------------------------------------------------------------


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
    one.hear(host("/hardware", "b", True))  # it was killed and restarted
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
    assert one.problem.startswith(
        "a message on the topic 'model' is not understood: the message: cannot be read"
    )
    assert not one.disagreements
    assert one.others == 1
    one.forget()
    assert (one.uneasy, one.others, one.problem) == (False, 0, "")


def test_the_period_is_that_of_the_host_that_was_heard_of_last():
    one = agreement("controller")
    assert one.period is None

    def host(name, period):
        return encode(Announcement(f"/{name}", name, "host", SAME, period=period))

    one.hear(host("a", 0.002))
    assert one.period == 0.002
    one.hear(host("b", None))  # it does not say
    assert one.period == 0.002
    one.hear(host("b", 0.008))
    assert one.period == 0.008
    # what one says of oneself is not news
    one.hear(encode(replace(one.own, period=0.5)))
    assert (one.period, one.others) == (0.008, 2)


def test_what_is_not_understood_counts_as_one_beside_the_others():
    one = agreement("host")
    one.hear(says("controller", SAME))
    assert one.others == 1
    one.hear("3")
    one.hear("4")
    assert one.others == 2
    assert one.uneasy
    assert one.problem.endswith("a JSON int (expected: an object)")
    one.forget()
    assert one.others == 0


def test_only_hosts_are_waited_for():
    one = agreement("controller")
    for role in ("controller", "compiler", "observer"):
        one.hear(encode(Announcement(f"/{role}", role, role, SAME, ready=False)))
    assert one.unready == ""
    for name in ("first", "second"):
        one.hear(encode(Announcement(f"/{name}", name, "host", SAME, ready=False)))
    assert one.unready == "/first"
    one.hear(encode(Announcement("/first", "again", "host", SAME)))
    assert one.unready == "/second"
