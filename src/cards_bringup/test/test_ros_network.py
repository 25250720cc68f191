"""Domains of runs: told apart by a lock of the user, and by a port for all users."""

import contextlib
import socket

import pytest

from cards_bringup.nodes import ros_network
from cards_bringup.nodes.ros_network import RosDomain
from cards_core.errors import CardsError

pytestmark = pytest.mark.serial

WANTED = 77
"""Far from those of other tests."""


@pytest.fixture(autouse=True)
def user(monkeypatch, tmp_path):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(WANTED))
    return enter(monkeypatch, tmp_path / "one")


def enter(monkeypatch, session):
    """Be in a session with locks of its own, as another user is."""
    session.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(session))


def port(number):
    """Hold what tells other users of a domain."""
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mark.bind(("127.0.0.1", 7402 + 250 * number))
    return mark


def test_runs_of_one_user_and_of_several_have_domains_of_their_own(monkeypatch, tmp_path):
    with RosDomain() as first:
        assert first.number == WANTED
        assert first.environment["ROS_DOMAIN_ID"] == str(WANTED)
        with RosDomain() as second:
            assert second.number == WANTED + 1
            enter(monkeypatch, tmp_path / "two")
            with RosDomain() as third:
                assert third.number == WANTED + 2
    with RosDomain() as again:
        assert again.number == WANTED
    port(WANTED).close()  # nothing is left


def test_who_holds_all_ports_keeps_nobody_from_running(monkeypatch):
    monkeypatch.setattr(ros_network, "DOMAINS_TRIED", 3)
    with contextlib.ExitStack() as stack:
        for number in range(WANTED, WANTED + 3):
            stack.enter_context(port(number))
        with RosDomain() as first, RosDomain() as second, RosDomain() as third:
            assert [one.number for one in (first, second, third)] == [77, 78, 79]
            with pytest.raises(CardsError, match="ROS domains 77 to 79 are all used"):
                RosDomain()


def test_the_port_is_none_of_dds():
    """RTPS 2.5, 9.6.2.3: offsets 0, 1, 10 + 2 n and 11 + 2 n of 7400 + 250 domain."""
    assert (ros_network._MARK - 7400) not in (0, 1)
    assert (ros_network._MARK - 7400) < 10
