"""The firmware's unit tests, built and run natively: plain, under sanitizers, with coverage."""

import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cards_core.codegen.toolchain import find_compiler
from cards_hardware.protocol.codec import unpack
from cards_hardware.protocol.enums import Fault, MuscleFlag, ParameterId, State
from cards_hardware.protocol.frames import FrameDecoder

FIRMWARE = Path(__file__).resolve().parents[3] / "firmware"
BUILD_TIME = 900.0
ARM = "arm-none-eabi-gcc"
ARM_FLAGS = [
    "-mcpu=cortex-m4",
    "-mthumb",
    "-mfpu=fpv4-sp-d16",
    "-mfloat-abi=hard",
    "-std=c11",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wshadow",
    "-Wpedantic",
    "-Wdouble-promotion",
    "-Werror",
    "-fstack-usage",
]

pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or find_compiler() is None, reason="no make or no C compiler"
)


def make(target, build, **variables):
    return subprocess.run(
        [
            "make",
            "-s",
            "-j2",
            target,
            f"BUILD={build}",
            f"CC={find_compiler()}",
            *(f"{name}={value}" for name, value in variables.items()),
        ],
        cwd=FIRMWARE,
        capture_output=True,
        text=True,
        timeout=BUILD_TIME,
        check=False,
    )


def passed(result):
    """The number of tests; fails with what the program said."""
    said = result.stdout[-4000:] + result.stderr[-4000:]
    assert result.returncode == 0, said
    summary = re.search(r"^(\d+) tests, (\d+) checks, 0 failures$", result.stdout, re.MULTILINE)
    assert summary, said
    assert int(summary[2]) > 50_000
    return int(summary[1])


def test_unit_tests(tmp_path):
    # a file that is no longer linked in would be missed by nobody else
    written = sum(
        len(re.findall(r"^TEST\(", file.read_text(), re.MULTILINE))
        for file in FIRMWARE.glob("test/unit/test_*.c")
    )
    assert passed(make("test", tmp_path)) == written


def test_unit_tests_under_sanitizers(tmp_path):
    probe = tmp_path / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    built = subprocess.run(
        [find_compiler(), "-fsanitize=address,undefined", probe, "-o", tmp_path / "probe"],
        capture_output=True,
        check=False,
    )
    if built.returncode:
        pytest.skip("the compiler has no sanitizers")
    passed(make("sanitize", tmp_path / "build"))


def test_coverage(tmp_path):
    gcov = shutil.which("gcov")
    version = subprocess.run([find_compiler(), "--version"], capture_output=True, text=True)
    if gcov is None or "Free Software Foundation" not in version.stdout:
        pytest.skip("gcov belongs to gcc")
    result = make("coverage", tmp_path)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    rows = re.findall(
        r"^core/(\w+)\.c +([\d.]+)% +\d+ +([\d.]+)% +\d+$", result.stdout, re.MULTILINE
    )
    share = {name: (float(lines), float(branches)) for name, lines, branches in rows}
    assert set(share) == {file.stem for file in FIRMWARE.glob("core/*.c")}
    assert share["state_machine"] == (100.0, 100.0)
    assert share["watchdog"] == (100.0, 100.0)
    poor = {name: lines for name, (lines, _) in share.items() if lines < 95.0}
    assert not poor, f"below 95 % of the lines: {poor}"


@pytest.mark.skipif(shutil.which(ARM) is None, reason=f"{ARM} is missing")
def test_core_fits_a_small_processor(tmp_path):
    # no double precision (it would be software), no heap, small stack frames
    for source in sorted(FIRMWARE.glob("core/*.c")):
        result = subprocess.run(
            [ARM, *ARM_FLAGS, "-c", source, "-o", tmp_path / f"{source.stem}.o"],
            capture_output=True,
            text=True,
            check=False,
        )
        if "math.h" in result.stderr and "No such file" in result.stderr:
            pytest.skip("libnewlib-arm-none-eabi is missing")
        assert result.returncode == 0, result.stderr[-4000:]
    objects = sorted(tmp_path.glob("*.o"))
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "-u", *objects], capture_output=True, text=True, check=True
    ).stdout
    assert not re.findall(r"__aeabi_d\w+|__aeabi_f2d|\bmalloc\b|\bfree\b", symbols)
    frames = {
        row.split(":")[-1].split("\t")[0]: row.split("\t")[1:]
        for file in tmp_path.glob("*.su")
        for row in file.read_text().splitlines()
    }
    assert all(kind == "static" for _, kind in frames.values())
    assert max(int(size) for size, _ in frames.values()) <= 640


def test_reactions_name_every_fault():
    text = (FIRMWARE / "core" / "REACTIONS.md").read_text()
    words = set(re.findall(r"\b[A-Z][A-Z0-9_]{2,}\b", text))
    told = {"CURRENT_INVALID", "TEMPERATURE_INVALID", "LIMITS_MISSING"}  # only shown
    for flag in (*Fault, *MuscleFlag):
        assert flag.name in words or flag.name in told, flag.name


def test_reactions_tell_the_defaults():
    # e.g. "WATCHDOG_HOLD (24 ms)", "SLACK_TENSION (2 N)"; in the unit that is written there
    text = (FIRMWARE / "core" / "REACTIONS.md").read_text()
    factors = {"ms": 1e-3, "s": 1.0, "mm": 1e-3, "N": 1.0, "m/s": 1.0, "A": 1.0, "%": 0.01}
    written = r"\b([A-Z_]{3,}) \(([\d.]+) ?(ms|mm|m/s|s|N|A|%|)\)"
    found = 0
    for name, number, unit in re.findall(written, text):
        if name not in ParameterId.__members__:
            continue
        parameter = ParameterId[name]
        factor = factors.get(unit, 1e-3 if parameter.unit == "s" else 1.0)  # bare: ticks
        assert float(number) * factor == pytest.approx(parameter.default * parameter.scale), name
        found += 1
    assert found >= 18


@pytest.fixture(scope="module")
def host_board(tmp_path_factory):
    from cards_hardware.hil.firmware_build import build

    return build("host")


def read_states(port, count):
    """The next ``count`` STATE_FAST of a board."""
    decoder, states = FrameDecoder(), []
    fd = os.open(port, os.O_RDWR | os.O_NOCTTY)
    try:
        patience = time.monotonic() + 60.0
        while len(states) < count and time.monotonic() < patience:
            if select.select([fd], [], [], 1.0)[0]:
                frames = decoder.feed(os.read(fd, 4096))
                states += [f for f in frames if f.name == "STATE_FAST"]
    finally:
        os.close(fd)
    return states[:count]


def test_host_board(host_board, tmp_path):
    # nobody reads for a while, then somebody does, goes and comes back
    with subprocess.Popen(
        [host_board, "--flash", tmp_path / "flash"], stdout=subprocess.PIPE, text=True
    ) as board:
        try:
            port = board.stdout.readline().split()[1]
            for _ in range(2):
                states = read_states(port, 100)
                assert len(states) == 100
                assert unpack(states[-1])["state"] == State.DISARMED
                # by the board's clock; a busy machine makes some ticks late
                steps = [(b.t_us - a.t_us) % 2**32 for a, b in itertools.pairwise(states)]
                assert sorted(steps)[len(steps) // 2] == pytest.approx(2000, abs=1000)
                assert min(steps) > 0
            assert board.poll() is None
        finally:
            board.send_signal(signal.SIGTERM)
        assert board.wait(30.0) == 0


def test_host_board_ends_with_its_parent(host_board):
    code = (
        "import subprocess, sys\n"
        f"board = subprocess.Popen([{str(host_board)!r}], stdout=subprocess.PIPE, text=True)\n"
        "print(board.pid, board.stdout.readline().split()[0], flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid, word = parent.stdout.readline().split()
        assert word == "port"
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    patience = time.monotonic() + 30.0
    while running(pid) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not running(pid)


def running(pid):
    """Whether a process is there and no zombie that nobody collects."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_host_board_says_what_is_wrong(host_board, tmp_path):
    missing = tmp_path / "no" / "flash"
    result = subprocess.run(
        [host_board, "--flash", missing], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "flash file" in result.stderr
    for arguments in (["--nonsense", "1"], ["--flash"]):
        result = subprocess.run([host_board, *arguments], capture_output=True, check=False)
        assert result.returncode == 2
    result = subprocess.run(
        [host_board, "--drive", "/" + "x" * 200], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "too long" in result.stderr
