"""Ports that a demo keeps before its page is open, and requests that are none of a browser."""

import http.client
import logging
import os
import socket
import subprocess
import sys

import pytest

from cards_viz.pages import ports
from cards_viz.pages.page import PortError, free_port, reserved_port

pytestmark = pytest.mark.serial

PROGRAM = """
import sys
from cards_viz.pages.page import free_port, reserved_port
print(reserved_port("127.0.0.1", int(sys.argv[1])), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def forget(monkeypatch):
    """Nothing is reserved before, nor afterwards."""
    monkeypatch.setenv(ports.VARIABLE, "")
    monkeypatch.setattr(ports, "_held", {})
    yield
    for descriptor in ports._held.values():
        os.close(descriptor)


@pytest.fixture
def other():
    """Start a process that reserves a port and keeps it; returns the port it got."""
    running = []

    def start(port):
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        running.append(process)
        return int(process.stdout.readline()), process

    yield start
    for process in running:
        end(process)


def end(process):
    process.stdin.close()
    process.wait(30.0)
    process.stdout.close()


def unused_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_two_demos_that_do_not_listen_yet_get_different_ports(other):
    wanted = unused_port()
    first, process = other(wanted)
    assert first == wanted
    assert free_port("127.0.0.1", wanted) != wanted
    mine = reserved_port("127.0.0.1", wanted)
    assert wanted < mine < wanted + 20
    assert mine == reserved_port("127.0.0.1", mine)  # it is ours
    end(process)
    assert free_port("127.0.0.1", wanted) == wanted


def test_nodes_of_a_demo_take_the_port_that_it_keeps(other, monkeypatch):
    wanted = reserved_port("127.0.0.1", unused_port())
    assert os.environ[ports.VARIABLE] == str(wanted)
    child, _ = other(wanted)  # a child, which inherits the variable: the port is not another's
    assert child != wanted  # it cannot keep it as well
    code = f"from cards_viz.pages.page import free_port; print(free_port('127.0.0.1', {wanted}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", code]
    found = subprocess.run(line, env=environment, capture_output=True, text=True, check=True)
    assert int(found.stdout) == wanted


def test_a_page_whose_link_was_told_goes_nowhere_else(planar_2r):
    """Who has taken its port has the token of whoever opened the link."""
    from cards_viz.muscles.page import MusclePage

    wanted = reserved_port("127.0.0.1", unused_port())
    with socket.socket() as squatter:
        squatter.bind(("127.0.0.1", wanted))
        squatter.listen()
        with pytest.raises(PortError, match=f"port {wanted} .*another program has taken it"):
            MusclePage(planar_2r, None, port=wanted)
        os.close(ports._held.pop(wanted))
        os.environ[ports.VARIABLE] = ""
        with MusclePage(planar_2r, None, port=wanted) as page:  # nobody was told
            assert page.port != wanted


def test_where_all_ports_are_taken_it_is_said(monkeypatch):
    monkeypatch.setattr("cards_viz.pages.page.is_reserved", lambda _port: True)
    with pytest.raises(PortError, match=r"ports 8080 to 8099 of 127\.0\.0\.1 are all in use"):
        free_port("127.0.0.1", 8080)


def test_a_head_request_leaves_no_traceback(planar_2r, caplog):
    from cards_viz.muscles.page import MusclePage

    with caplog.at_level(logging.INFO), MusclePage(planar_2r, None, port=0) as page:
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20.0)
        connection.request("HEAD", "/")
        with pytest.raises(http.client.HTTPException):
            connection.getresponse()
        connection.close()
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=20.0)
        connection.request("GET", page.url.partition(str(page.port))[2])
        assert connection.getresponse().status == 200
        connection.close()
    refused = [one for one in caplog.records if "not understood" in one.getMessage()]
    assert len(refused) == 1
    assert refused[0].levelno == logging.INFO
    assert not [one for one in caplog.records if one.exc_info]
    assert "Traceback" not in caplog.text
