"""Boot tests: the cross-compiled binary in QEMU, and the host build, behind their ports."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from board_talk import PATIENCE, Drives, Talk

from cards_core.codegen.toolchain import find_compiler
from cards_core.errors import UnknownNameError
from cards_hardware.boards.board import Board
from cards_hardware.errors import HardwareError
from cards_hardware.hil import emulator, firmware_build
from cards_hardware.hil.emulator import Emulator
from cards_hardware.hil.firmware_build import CROSS_COMPILER, build
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import (
    AckCode,
    EventCode,
    FastFlag,
    HeaderFlag,
    ParameterId,
    ResetCause,
    State,
)
from cards_hardware.protocol.schema import MAJOR
from cards_hardware.real_time import make_real_time

pytestmark = pytest.mark.serial

STACK, STACK_BYTES = 0x2000_0000, 8192
"""Of ``boards/stm32f405/stm32f405.ld``."""


def require(target):
    if shutil.which("make") is None:
        pytest.skip("make is missing")
    if target == "host" and find_compiler() is None:
        pytest.skip("no C compiler")
    if target == "stm32f405":
        for name in (CROSS_COMPILER, emulator.QEMU):
            if shutil.which(name) is None:
                pytest.skip(f"{name} is missing")


@pytest.fixture(params=["stm32f405", "host"])
def target(request):
    require(request.param)
    return request.param


@pytest.fixture
def stm32():
    require("stm32f405")
    return "stm32f405"


@pytest.fixture
def drives(tmp_path):
    # a short path: those of sockets are limited
    folder = tmp_path / "d"
    folder.mkdir()
    bus = Drives(folder / "s")
    yield bus
    bus.close()


def gone(pid):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def undisturbed(board):
    """Give a board whose ticks are timed the priority that a rig gives it.

    The ticks of the host build are the machine's time: where others have it, ticks are late and
    then made up for in bursts, and after 1000 us there is none.
    """
    make_real_time(board.pid)


def assert_millisecond_ticks(times):
    """Of the ticks that a busy machine lets come in time, one follows the other after 1000 us."""
    late = np.abs(np.diff(np.asarray(times, dtype=np.int64)) % 2**32 - 1000)
    assert np.percentile(late, 5) < 75


# What every board does -------------------------------------------------------------------------


def test_boots_and_identifies_itself(target, tmp_path):
    with Emulator(target, folder=tmp_path / "board") as board, Talk(board.port) as host:
        frame, ident = host.identify()
        assert frame.major == MAJOR
        assert frame.flags & HeaderFlag.SIMULATED  # it does not pretend to be a robot
        assert ident["reset_cause"] == ResetCause.POWER
        assert ident["limits_loaded"] == 0
        state = host.wait("STATE_FAST")
        assert unpack(state)["state"] == State.DISARMED
        assert unpack(state)["flags"] & FastFlag.SIMULATED


def test_answers_in_the_first_second_of_its_life(target):
    with Emulator(target) as board, Talk(board.port) as host:
        first = host.wait("STATE_FAST")
        answer, _ = host.identify()
    if target == "stm32f405":  # the host build's clock is the machine's
        assert first.t_us < 5_000_000
    assert (answer.t_us - first.t_us) % 2**32 < 1_000_000


def test_clock_runs_as_fast_as_ours(target):
    # bounds that hold however late a busy machine delivers: what was sent before was sent before
    with Emulator(target) as board, Talk(board.port) as host:
        host.identify()
        marks = []
        for wait in (0.5, 0.0):
            host.send("TIME_SYNC", {"t1": 0, "t2": 0, "t3": 0})
            sent = host.sent_us
            content = unpack(host.wait("TIME_SYNC"))
            marks.append((sent, content["t2"], content["t3"], host.received_us))
            assert (content["t3"] - content["t2"]) % 2**32 < 100_000
            time.sleep(wait)
    (sent_1, t2_1, t3_1, received_1), (sent_2, t2_2, t3_2, received_2) = marks
    slack = 2000  # [us] a tick on both sides, and the crystal
    assert (t3_2 - t2_1) % 2**32 <= (received_2 - sent_1) % 2**32 + slack
    assert (t2_2 - t3_1) % 2**32 >= (sent_2 - received_1) % 2**32 - slack


def test_ticks_once_per_millisecond_of_its_own_time(target, drives):
    with Emulator(target, drive_socket=drives.path) as board:
        undisturbed(board)
        drives.accept()
        drives.hear(50)
        frames = drives.hear(600)
    times = np.array([frame.t_us for frame in frames], dtype=np.int64)
    assert {frame.name for frame in frames} == {"DRIVE_COMMAND"}
    assert_millisecond_ticks(times)
    # late ones are made up for, but no more than some
    assert times[-1] - times[0] > 500_000


def test_reset_button(target, tmp_path):
    with Emulator(target, folder=tmp_path / "board") as board:
        port = board.port
        with Talk(port) as host:
            _, before = host.identify()
            time.sleep(0.2)
            assert host.wait("STATE_FAST").t_us > 0
        board.reset()
        assert board.port == port
        with Talk(port) as host:
            _, after = host.identify(nonce=78)
            assert after["reset_cause"] == ResetCause.PIN
            assert after["arm_token"] != before["arm_token"]
            assert after["uid"] == before["uid"]
            assert unpack(host.wait("STATE_FAST"))["state"] == State.DISARMED
            if target == "stm32f405":
                assert after["boot_count"] == before["boot_count"] + 1


@pytest.mark.parametrize("how", ["reset", "power"])
def test_an_open_port_outlives_it(target, how):
    """As the USB bridge of a real board; what it was sent while it was off is not heard later."""
    with Emulator(target) as board, Talk(board.port) as host:
        host.identify()
        if how == "reset":
            board.reset()
        else:
            board.kill()
            host.send("HELLO", {"min_major": MAJOR, "max_major": MAJOR, "nonce": 5})
            board.start()
        # what the board said of its first start may still be on its way
        cause = ResetCause.PIN if how == "reset" else ResetCause.POWER
        boot = EventCode.BOOT, cause
        host.wait("EVENT", lambda f: (unpack(f)["code"], unpack(f)["value"]) == boot)
        host.send("HELLO", {"min_major": MAJOR, "max_major": MAJOR, "nonce": 6})
        assert unpack(host.wait("IDENT"))["nonce"] == 6


@pytest.mark.parametrize("how", ["reset", "power"])
def test_saved_parameters_outlive_it(target, tmp_path, how):
    values = {"id": ParameterId.AMBIENT, "index": 0}
    with Emulator(target, folder=tmp_path / "board") as board:
        with Talk(board.port) as host:
            host.identify()
            assert host.ask("PARAM_SET", {**values, "value": 1234}) == AckCode.OK
            assert host.ask("PARAM_SAVE") == AckCode.OK
            assert host.ask("PARAM_SET", {**values, "value": 777}) == AckCode.OK  # not saved
        if how == "reset":
            board.reset()
        else:
            board.kill()
            assert board.pid is None
            board.start()
        with Talk(board.port) as host:
            _, ident = host.identify()
            assert ident["reset_cause"] == (ResetCause.PIN if how == "reset" else ResetCause.POWER)
            host.send("PARAM_GET", values)
            assert unpack(host.wait("PARAM_VALUE"))["value"] == 1234


def test_flood_on_the_link_does_not_stop_the_ticks(target, drives):
    rng = np.random.default_rng(5)
    with Emulator(target, drive_socket=drives.path) as board, Talk(board.port) as host:
        undisturbed(board)
        drives.accept()
        host.identify()
        frames = []
        for _ in range(40):
            host.write(rng.integers(0, 256, 4096, dtype=np.uint8).tobytes())
            host.poll(0.0)
            frames += drives.hear(5)
        host.write(b"\0")
        assert_millisecond_ticks([frame.t_us for frame in frames])
        host.identify(nonce=79)  # and it still answers


def test_nobody_listens(target):
    """What a board says while the port is closed is lost, as on a wire: nothing old comes."""
    with Emulator(target) as board:
        with Talk(board.port) as host:
            closed = host.wait("STATE_FAST").t_us
        time.sleep(0.5)
        with Talk(board.port) as host:
            first = host.wait("STATE_FAST")
            reopened, _ = host.identify()
        assert (first.t_us - closed) % 2**32 > 300_000
        assert (reopened.t_us - first.t_us) % 2**32 < 10_000_000


def test_host_that_does_not_read_does_not_stop_it(target, drives):
    with Emulator(target, drive_socket=drives.path) as board, Talk(board.port) as host:
        undisturbed(board)
        drives.accept()
        host.identify()
        start = drives.hear(1)[0].t_us
        ticks = drives.hear(1500)  # > 100 kB of states that nobody takes: more than a pty holds
        assert (ticks[-1].t_us - start) % 2**32 >= 1_400_000
        assert_millisecond_ticks([frame.t_us for frame in ticks])
        last = ticks[-1].t_us  # what waited in the terminal first, up to today
        host.wait("STATE_FAST", lambda frame: (frame.t_us - last) % 2**32 < 2**31)
        host.identify(nonce=80)


def test_ends_with_its_parent(target, tmp_path):
    code = (
        "import sys, time\n"
        "from cards_hardware.hil.emulator import Emulator\n"
        f"with Emulator({target!r}) as board:\n"
        "    print(board.pid, flush=True)\n"
        "    time.sleep(600)\n"
    )
    place = {**os.environ, "TMPDIR": str(tmp_path)}  # it cannot tidy up
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=place
    )
    pid = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


def test_leaves_nothing_behind(target, tmp_path):
    with Emulator(target) as board:
        pid, private = board.pid, board.port.parent
        assert os.access(board.port, os.R_OK | os.W_OK)
        with pytest.raises(HardwareError, match="on already"):
            board.start()
    assert gone(pid)
    assert not private.exists()
    assert board.pid is None
    with pytest.raises(HardwareError, match="is off"):
        board.reset()


# The chip's own ways ---------------------------------------------------------------------------


def test_through_serial_ports(stm32, tmp_path):
    """Without semihosting: byte by byte through the interrupts and rings that the chip uses."""
    folder = tmp_path / "board"
    values = {"id": ParameterId.AMBIENT, "index": 0}
    with Emulator(stm32, folder=folder) as board, Talk(board.port) as host:
        host.identify()
        assert host.ask("PARAM_SET", {**values, "value": -321}) == AckCode.OK
        assert host.ask("PARAM_SAVE") == AckCode.OK
    with Emulator(stm32, folder=folder, transport="uart") as board, Talk(board.port) as host:
        _, ident = host.identify()
        assert ident["uid"] == b"QEMUF405"
        assert unpack(host.wait("STATE_FAST"))["state"] == State.DISARMED
        host.send("PARAM_GET", values)  # read from flash, where the emulator put it
        assert unpack(host.wait("PARAM_VALUE"))["value"] == -321
        # QEMU has no flash controller: writing does not verify, and is not called done
        assert host.ask("PARAM_SAVE") == AckCode.BUSY


def test_drive_bus_through_a_serial_port(stm32, drives):
    with Emulator(stm32, drive_socket=drives.path, transport="uart") as board:
        undisturbed(board)
        drives.accept()
        times = [frame.t_us for frame in drives.hear(300)]
    assert_millisecond_ticks(times)


def test_crash_restarts_it_and_is_reported(stm32):
    with Emulator(stm32) as board, Talk(board.port) as host:
        host.identify()
        board.crash(0xE0000000)  # an address where no code may be: a hard fault
        event = unpack(host.wait("EVENT", lambda frame: unpack(frame)["code"] == 25))
        assert event["value"] % 2**32 == 0xE0000000
        _, ident = host.identify(nonce=81)
        assert ident["reset_cause"] == ResetCause.WATCHDOG
        assert ident["boot_count"] == 2


def test_stack_is_large_enough(stm32):
    """What was never written is still 0 in QEMU; half of it has to remain for the unforeseen."""
    rng = np.random.default_rng(7)
    with Emulator(stm32) as board, Talk(board.port) as host:
        host.identify()
        assert host.ask("PARAM_SET", {"id": ParameterId.AMBIENT, "index": 0, "value": 9}) == 0
        assert host.ask("PARAM_SAVE") == AckCode.OK
        host.send("LIMITS_GET")
        host.wait("LIMITS")
        for _ in range(10):
            host.write(rng.integers(0, 256, 2048, dtype=np.uint8).tobytes() + b"\0")
            host.poll(0.0)
        host.identify(nonce=82)
        stack = board.read_memory(STACK, STACK_BYTES)
    untouched = len(stack) - len(stack.lstrip(b"\0"))
    assert untouched > STACK_BYTES // 2
    assert untouched < STACK_BYTES - 256  # it is the stack that was looked at


# Messages --------------------------------------------------------------------------------------


def test_build_is_kept(target):
    first = build(target)
    before = first.stat().st_mtime_ns
    assert build(target) == first
    assert first.stat().st_mtime_ns == before


def test_a_changed_source_is_built_anew(target, tmp_path, monkeypatch):
    copy = tmp_path / "firmware"
    shutil.copytree(firmware_build.firmware_folder(), copy, ignore=shutil.ignore_patterns("build"))
    monkeypatch.setenv("CARDS_FIRMWARE", str(copy))
    made = []

    def make(_sources, target, _compiler, work):
        program = work / firmware_build.TARGETS[target]
        program.parent.mkdir(exist_ok=True)
        program.touch()
        made.append(target)

    monkeypatch.setattr(firmware_build, "_make", make)
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    first = build(target)
    assert build(target) == first
    with (copy / "core" / "crc32.c").open("a") as file:
        file.write("/* another comment */\n")
    assert build(target) != first
    (copy / "boards" / target / "new.h").touch()
    build(target)
    assert made == [target] * 3


def test_a_source_that_does_not_compile(target, tmp_path, monkeypatch):
    copy = tmp_path / "firmware"
    shutil.copytree(firmware_build.firmware_folder(), copy, ignore=shutil.ignore_patterns("build"))
    monkeypatch.setenv("CARDS_FIRMWARE", str(copy))
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    (copy / "core" / "calibration.c").write_text("this is no C\n")
    with pytest.raises(HardwareError, match=rf"(?s){target} does not build.*calibration\.c"):
        build(target)
    assert not list((tmp_path / "cache" / "firmware").glob(".build-*"))


def test_unknown_board():
    with pytest.raises(UnknownNameError, match="stm32f405, host"):
        build("stm32f4")
    with pytest.raises(UnknownNameError, match="stm32f405"):
        Emulator("avr")


@pytest.mark.parametrize("name", [CROSS_COMPILER, "make"])
def test_missing_compiler(monkeypatch, name):
    require("stm32f405")
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda program: None if program == name else which(program)
    )
    with pytest.raises(HardwareError, match=f"{name} is missing .apt install .*"):
        build("stm32f405")


def test_missing_qemu(stm32, monkeypatch):
    build(stm32)
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda program: None if program == emulator.QEMU else which(program)
    )
    with pytest.raises(HardwareError, match="apt install qemu-system-arm"), Emulator(stm32):
        pass


def test_no_drives_listen(stm32, tmp_path):
    with (
        pytest.raises(HardwareError, match="no motor drives listen at"),
        Emulator(stm32, drive_socket=tmp_path / "nobody"),
    ):
        pass


def test_no_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDS_FIRMWARE", str(tmp_path))
    with pytest.raises(HardwareError, match="there is no Makefile"):
        firmware_build.firmware_folder()


def test_two_boards_of_this_machine_have_two_serial_numbers(tmp_path):
    seen = []
    for name in ("one", "two", "one"):
        with Emulator("host", folder=tmp_path / name) as board:
            link = Board.direct(str(board.port))
            link.open()
            seen.append(link.ident.uid)
            link.close()
    assert seen[0] == seen[2] != seen[1]


def test_a_folder_below_the_current_one(tmp_path, monkeypatch):
    """The emulator is started in its folder: a relative path would be looked for below that."""
    require("host")
    monkeypatch.chdir(tmp_path)
    with Emulator("host", folder=Path("runs") / "board") as board:
        assert board.folder == tmp_path / "runs" / "board"
        assert board.port.exists()
    assert (tmp_path / "runs" / "board" / "emulator.log").is_file()
