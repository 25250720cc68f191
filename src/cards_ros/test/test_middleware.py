"""Which transport our processes choose."""

import os

import pytest

from cards_ros.middleware import PROFILES, TRANSPORTS, use_udp


@pytest.fixture(autouse=True)
def nothing_is_said(monkeypatch):
    for name in (TRANSPORTS, *PROFILES):
        monkeypatch.setenv(name, "")


def test_it_is_udp():
    use_udp()
    assert os.environ[TRANSPORTS] == "UDPv4"


@pytest.mark.parametrize("name", [TRANSPORTS, *PROFILES])
def test_what_the_user_says_counts(name, monkeypatch):
    monkeypatch.setenv(name, "SHM")
    use_udp()
    assert os.environ[name] == "SHM"
    assert name == TRANSPORTS or not os.environ[TRANSPORTS]
