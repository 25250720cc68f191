"""Status of a board, from what its connection knows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from cards_hardware.boards.layout import BoardLayout
from cards_hardware.boards.line_thread import LineCounts
from cards_hardware.boards.status import muscle_faults, status_of
from cards_hardware.boards.telemetry import Telemetry
from cards_hardware.protocol.enums import AckCode, Fault, MuscleFlag, State

LAYOUT = BoardLayout("arm", 3, "/dev/arm", muscles=("a", "b", "c"))
FLAGS = [0, MuscleFlag.SLACK, MuscleFlag.SLACK | MuscleFlag.OVERLOAD]


def slow(**changes):
    refused = np.zeros(len(AckCode) - 1, int)
    refused[AckCode.RANGE - 1], refused[AckCode.TOKEN - 1] = 4, 9
    return {
        "mflags": np.array(FLAGS),
        "refused": refused,
        "housing": np.array([30.0, 31.0, 32.0]),
        "core": np.array([40.0, 41.0, 42.0]),
        "tension_limit": np.array([100.0, 200.0, 300.0]),
        "vbus": 23.5,
        "tick_max_us": 850,
        "rx_ok": 1, "rx_crc": 2, "rx_gap": 3, "tx_dropped": 4, "drive_errors": 5, "tick_late": 6,
        **changes,
    }  # fmt: skip


def connection(*, connected=True, state=3, fault=0, ident=None):
    telemetry = Telemetry()
    telemetry.frames, telemetry.lost, telemetry.rate = 1000, 7, 250.0
    telemetry.command_latency.add(0.004)
    telemetry.sample_delay.add(0.002)
    return SimpleNamespace(
        connected=connected,
        receiver=SimpleNamespace(telemetry=telemetry, state=state, fault=fault, simulated=True),
        handshake=SimpleNamespace(ident=ident, foreign=11),
        link=SimpleNamespace(
            counts=lambda: LineCounts(bad_crc=3, bad_code=4, too_long=6), port="/dev/pts/9"
        ),
        transport=SimpleNamespace(node=42),
        reconnects=2,
        resets=1,
    )


def test_what_is_not_known_is_empty_or_no_number():
    status = status_of(LAYOUT, connection(), armed=False, problem="")
    assert (status.name, status.node, status.port) == ("arm", 42, "/dev/pts/9")
    assert status.state is State.ACTIVE
    assert (status.muscle_flags, status.muscle_faults, status.refused) == ((), {}, {})
    assert (status.temperatures, status.core_temperatures, status.tension_limits) == ((), (), ())
    for value in (status.vbus, status.tick_max, status.clock_error, status.clock_drift,
                  status.rtt):  # fmt: skip
        assert math.isnan(value)
    assert (status.firmware, status.uid, status.boot_count) == ("", "", 0)
    assert status.state_age == math.inf
    assert (status.armed, status.problem, status.faults) == (False, "", ())


def test_what_was_counted_here():
    status = status_of(LAYOUT, connection(), armed=True, problem="why")
    assert (status.frames, status.lost_frames, status.state_rate) == (1000, 7, 250.0)
    assert (status.crc_errors, status.line.damaged, status.foreign_frames) == (13, 13, 11)
    assert (status.reconnects, status.resets) == (2, 1)
    assert (status.latency_p50, status.latency_p99) == (0.004, 0.004)
    assert (status.command_latency.count, status.sample_delay.maximum) == (1, 0.002)
    assert (status.armed, status.problem) == (True, "why")
    assert (status.connected, status.simulated) == (True, True)


def test_what_the_board_says_slowly():
    link = connection()
    link.receiver.telemetry.slow = slow()
    status = status_of(LAYOUT, link, armed=False, problem="")
    assert status.muscle_flags == tuple(FLAGS)
    assert list(status.muscle_faults) == ["b", "c"]
    assert status.muscle_faults["b"] == ("winding without tension: wire off its pulley or hook",)
    assert len(status.muscle_faults["c"]) == 2
    assert status.refused == {"range": 4, "token": 9}
    assert status.temperatures == (30.0, 31.0, 32.0)
    assert status.core_temperatures == (40.0, 41.0, 42.0)
    assert status.tension_limits == (100.0, 200.0, 300.0)
    assert status.vbus == 23.5
    assert status.tick_max == pytest.approx(850e-6)
    assert [status.rx_ok, status.rx_crc, status.rx_gap] == [1, 2, 3]
    assert [status.tx_dropped, status.drive_errors, status.tick_late] == [4, 5, 6]


def test_muscles_without_names_are_numbered():
    nameless = BoardLayout("arm", 3, "/dev/arm")
    assert list(muscle_faults(nameless, slow())) == ["muscle 1", "muscle 2"]
    assert muscle_faults(nameless, {}) == {}
    assert muscle_faults(LAYOUT, slow(mflags=np.zeros(3, int))) == {}


def test_without_a_session_neither_state_nor_rate_are_believed():
    status = status_of(LAYOUT, connection(connected=False), armed=False, problem="lost")
    assert (status.connected, status.state, status.state_rate) == (False, None, 0.0)
    assert status.frames == 1000


def test_a_state_of_newer_firmware_is_unknown():
    assert status_of(LAYOUT, connection(state=99), armed=False, problem="").state is None
    assert status_of(LAYOUT, connection(state=None), armed=False, problem="").state is None


def test_faults_in_bits_and_words():
    both = Fault.VBUS_LOW | Fault.FLASH
    status = status_of(LAYOUT, connection(fault=int(both)), armed=False, problem="")
    assert status.fault == both
    assert status.faults == (
        "supply voltage below its minimum", "flash could not be written or verified",
    )  # fmt: skip


def test_who_the_board_is_and_how_well_its_clock_is_known():
    ident = SimpleNamespace(firmware="1.2.3", uid="00ff", boot_count=8)
    link = connection(ident=ident)
    clock = link.receiver.telemetry.clock
    clock.add(1_000_000, 500, 520, 1_000_220)
    status = status_of(LAYOUT, link, armed=False, problem="")
    assert (status.firmware, status.uid, status.boot_count) == ("1.2.3", "00ff", 8)
    assert status.rtt == pytest.approx(200e-6)
    assert (status.clock_error, status.clock_drift) == (clock.error, clock.drift)
    assert 100e-6 <= status.clock_error < 1e-3
