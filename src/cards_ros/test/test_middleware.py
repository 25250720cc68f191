"""Which transport our processes choose."""

import os

import pytest

from cards_ros.middleware import PROFILES, RANGE, TRANSPORTS, VARIABLES, use_udp


@pytest.fixture(autouse=True)
def nothing_is_said(monkeypatch):
    for name in (*VARIABLES, "ROS_STATIC_PEERS", "RMW_IMPLEMENTATION", "ROS_DISTRO"):
        monkeypatch.setenv(name, "")


def said():
    return {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}


def test_it_is_udp():
    use_udp()
    assert said() == {TRANSPORTS: "UDPv4"}


@pytest.mark.parametrize("where", ["", "SUBNET", "LOCALHOST"])
@pytest.mark.parametrize("name", [TRANSPORTS, *PROFILES])
def test_what_the_user_says_counts(name, where, monkeypatch):
    monkeypatch.setenv(name, "SHM")
    monkeypatch.setenv(RANGE, where)
    before = said()
    use_udp()
    assert said() == before


@pytest.mark.parametrize(("name", "value"), [(RANGE, "LOCALHOST"), ("ROS_LOCALHOST_ONLY", "1")])
def test_on_this_machine_only_it_is_a_profile(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    for _ in range(2):  # the second time as in a process that was started by the first
        use_udp()
        now = said()
        assert now.pop(PROFILES[0]).endswith("this_machine.xml")
        assert now == {RANGE: "SYSTEM_DEFAULT"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROS_STATIC_PEERS", "10.0.0.2"),
        ("RMW_IMPLEMENTATION", "rmw_cyclonedds_cpp"),
        ("ROS_DISTRO", "kilted"),
    ],
)
def test_the_range_stays_where_the_profile_does_not_say_the_same(name, value, monkeypatch):
    monkeypatch.setenv(RANGE, "LOCALHOST")
    monkeypatch.setenv(name, value)
    use_udp()
    assert said() == {RANGE: "LOCALHOST"}


@pytest.mark.parametrize(
    ("where", "expected"), [("SUBNET", "SUBNET"), ("LOCALHOST", "SYSTEM_DEFAULT")]
)
def test_the_range_of_a_child_counts(where, expected, monkeypatch):
    monkeypatch.setenv(RANGE, "LOCALHOST")
    use_udp()
    monkeypatch.setenv(RANGE, where)
    use_udp()
    assert said()[RANGE] == expected
    assert (PROFILES[0] in said()) == (where == "LOCALHOST")
