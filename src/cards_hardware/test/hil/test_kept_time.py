"""Lines that keep time while a thread of Python holds the interpreter; the board is the judge.

The bridge is a program of its own (`hogged_bridge.py`), so that nothing here is held up with it.
"""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.codegen.toolchain import find_compiler
from cards_hardware.boards.board import Board
from cards_hardware.hil.relay import Relay
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import EventCode, ParameterId, State

pytestmark = [
    pytest.mark.serial,
    pytest.mark.skipif(find_compiler() is None, reason="no C compiler (cc, gcc, clang)"),
]

BRIDGE = Path(__file__).parents[1] / "helpers" / "hogged_bridge.py"
TWO = """
robot: planar_2r
boards:
  - {name: one, node: 1, port: "{port_1}", muscles: [cable_4, cable_2], joints: [joint_2]}
  - {name: two, node: 2, port: "{port_2}", muscles: [cable_1, cable_3], joints: [joint_1]}
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Two boards with the firmware's host build, each behind a relay that notes what passes."""
    folder = tmp_path_factory.mktemp("two")
    file = folder / "planar_2r.boards.yaml"
    file.write_text(TWO)
    with ExitStack() as stack:
        rig = stack.enter_context(
            Rig("planar_2r", folder / "rig", firmware="host", boards=str(file), stand_time=1e6)
        )
        relays = [
            stack.enter_context(Relay(port, folder / f"port{i}"))
            for i, port in enumerate(rig.ports)
        ]
        for relay in relays:
            board = Board.direct(str(relay.link))
            board.open()
            # pseudo-terminals of a busy machine deliver up to 0.1 s late
            board.set_parameter(ParameterId.HEARTBEAT_TIMEOUT, 0, 250)
            board.set_parameter(ParameterId.WATCHDOG_RELAX, 0, 250)
            board.save_parameters()
            board.close()
        yield SimpleNamespace(file=file, relays=relays)


def run(bench, *, hold, period, seconds, commanded):
    """Run the bridge; returns what it saw."""
    for relay in bench.relays:
        relay.forget()
    settings = {
        "robot": "planar_2r",
        "boards": str(bench.file),
        "ports": ",".join(str(relay.link) for relay in bench.relays),
        "seconds": seconds,
        "hold": hold,
        "period": period,
        "kind": "sleep",
        "commanded": commanded,
    }
    command = [sys.executable, str(BRIDGE), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200.0, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def events(relay, code):
    heard = [unpack(item.frame) for item in relay.frames("EVENT")]
    return [values for values in heard if values["code"] == code]


def beats(relay):
    """Host times of the heartbeats that went to a board, modulo 2^32 [us]."""
    return np.array([item.frame.t_us for item in relay.frames("HEARTBEAT", "to_board")])


def within(times, begin, end):
    """How many of the times lie between two monotonic times, [s]."""
    since = (times - round(begin * 1e6)) % 2**32
    return int(np.count_nonzero(since < (end - begin) * 1e6))


def test_heartbeats_go_on_while_the_interpreter_is_held_longer_than_a_board_waits(bench):
    # twice HEARTBEAT_TIMEOUT, after which an armed board switches its drives off
    found = run(bench, hold=0.5, period=0.55, seconds=3.0, commanded=False)
    assert found["armed"]
    assert len(found["hogs"]) >= 3
    for relay, board in zip(bench.relays, found["boards"], strict=True):
        assert not events(relay, EventCode.HEARTBEAT_LOST)
        assert board["state"] == State.ARMED.name
        times = beats(relay)
        # 100 each, if this machine has nothing else to do
        assert all(within(times, begin, end) >= 4 for begin, end in found["hogs"])
        assert board["unread"] == 0


def test_no_board_relaxes_when_the_interpreter_is_held_80_ms_of_every_100(bench):
    found = run(bench, hold=0.08, period=0.1, seconds=4.0, commanded=True)
    assert found["commands"] >= 20
    for relay in bench.relays:
        assert not events(relay, EventCode.HEARTBEAT_LOST)
        # a machine that stands still makes the gap that the hog must not make
        if found["longest"] < 0.15:
            assert not events(relay, EventCode.COMMAND_LOST)
            assert found["armed"]
            assert not found["refused"]
    # to all or to none: both boards were told the same at the same times
    one, two = (
        [item.frame.t_us for item in relay.frames("CMD_TENSION", "to_board")]
        for relay in bench.relays
    )
    assert one == two
    assert len(one) == found["counts"]["sent"]


def test_a_host_that_hangs_is_no_host(bench):
    # longer than HOST_TIMEOUT and HEARTBEAT_TIMEOUT together
    found = run(bench, hold=3.0, period=9.0, seconds=2.0, commanded=False)
    ((begin, end),) = found["hogs"]
    for relay in bench.relays:
        (lost,) = events(relay, EventCode.HEARTBEAT_LOST)
        assert lost["value"] >= 250_000
        times = beats(relay)
        assert within(times, begin + 1.1, end - 0.1) == 0
        assert within(times, begin, begin + 1.1) >= 10
    assert not found["armed"]
