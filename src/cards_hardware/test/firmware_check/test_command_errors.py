"""The whole core of a board behind a bad line, in small; and that the run sees a broken board."""

import json
import shutil

import pytest
from native_code import folder_for

from cards_hardware.errors import HardwareError
from cards_hardware.firmware_check import command_errors, native_firmware
from cards_hardware.firmware_check.frame_errors import Line
from cards_hardware.firmware_check.native_firmware import LIMITS, NativeDevice
from cards_hardware.protocol.codec import encode
from cards_hardware.protocol.enums import State
from cards_hardware.protocol.generate import checkout

BAD = Line(changed=1e-3, lost=1e-3, inserted=1e-3, dropped=1e-2, garbage=1e-2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the board is built, once."""
    return folder_for("native", tmp_path_factory)


def test_only_what_was_sent_takes_effect(folder):
    report = command_errors.run(8000, BAD, folder, seed=2)
    assert report.passed
    assert report.corrupted == report.replayed == 0
    assert 0.6 * 8000 < report.applied < 8000
    assert report.old_sent > 0
    assert 0 < report.refused["REPLAYED"] <= report.old_sent
    assert 0 < report.refused["NODE"] <= report.other_sent


def test_a_board_that_does_not_look_at_the_crc_is_found_out(folder, tmp_path, monkeypatch):
    shutil.copytree(
        checkout() / "firmware", tmp_path / "firmware", ignore=shutil.ignore_patterns("build")
    )
    source = tmp_path / "firmware" / "core" / "frame.c"
    text = source.read_text()
    test = "mlp_crc32(0U, data, body) != read_u32(&data[body])"
    assert test in text
    source.write_text(text.replace(test, f"({test}) && (body == 0U)"))
    monkeypatch.setattr(native_firmware, "checkout", lambda: tmp_path)
    report = command_errors.run(8000, BAD, tmp_path, seed=2)
    assert report.corrupted > 0
    assert not report.passed


def test_a_perfect_line(folder, monkeypatch):
    monkeypatch.setattr(command_errors, "_OLD", 0.0)
    monkeypatch.setattr(command_errors, "_OTHER", 0.0)
    line = Line(changed=0.0, lost=0.0, inserted=0.0, dropped=0.0, garbage=0.0)
    report = command_errors.run(1500, line, folder)
    assert (report.applied, report.refused, report.hold_ticks) == (1500, {}, 0)
    assert report.passed


def test_command_line(folder, capsys):
    assert command_errors.main(["--frames", "300", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True


def test_the_board_by_hand(folder):
    """Stages of the watchdog by its own clock: 24 ms hold, 100 ms relax, 1000 ms disarm."""
    device = NativeDevice(folder)
    token = device.prepare(3)
    with pytest.raises(HardwareError, match="STATE_REQUEST: refused, TOKEN"):
        device.arm(token ^ 1)
    assert device.state == State.DISARMED
    device.arm(token)
    assert device.state == State.ARMED
    command = {"mask": 0b111, "tension": [100.0, 50.0, 0.0], "slew": [0.0] * 3}
    for _ in range(300):
        device.send("CMD_TENSION", command)
    assert device.state == State.ACTIVE
    assert list(device.view.tension)[:3] == [1000, 500, 0]
    assert device.view.current[0] == pytest.approx(2000, abs=20)  # 100 N at 50 N/A
    stages = {}
    for silent in range(1, 1200):
        device.tick()
        stages.setdefault(device.state, silent)
    assert stages[State.HOLD] == pytest.approx(24, abs=1)
    assert stages[State.RELAX] == pytest.approx(100, abs=1)
    assert stages[State.DISARMED] == pytest.approx(1000, abs=1)
    assert list(device.view.current) == [0] * 16


def test_nothing_out_of_limits_takes_effect(folder):
    device = NativeDevice(folder)
    device.arm(device.prepare(2))
    good = {"mask": 0b11, "tension": [20.0, 30.0], "slew": [0.0, 0.0]}
    device.send("CMD_TENSION", good)
    for tension in (LIMITS["tension_max"] + 0.1, -0.1, float("nan")):
        answers = dict(device.send("CMD_TENSION", {**good, "tension": [25.0, tension]}))
        assert (answers["ACK"]["code"], answers["ACK"]["detail"]) == (3, 1)
        device.send("CMD_TENSION", good)
        assert list(device.view.tension)[:2] == [200, 300]
    assert device.view.refused[3 - 1] == 3
    late = encode("CMD_TENSION", good, node=1, seq=200, t_us=device.view.time_us - 30_000)
    device.tick(late)
    assert device.view.refused[7 - 1] + device.view.refused[8 - 1] == 1
