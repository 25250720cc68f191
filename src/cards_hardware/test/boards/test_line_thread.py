"""The threads of lines in C: under sanitizers, and with warnings as errors."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cards_core.codegen.toolchain import find_compiler
from cards_hardware.boards import line_thread
from cards_hardware.boards.line_thread import LineCounts
from cards_hardware.histogram import ENDS, Histogram
from cards_hardware.protocol.generate import checkout

CHECK = Path(__file__).with_name("line_thread_check.c")
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror"]


def build(folder, compiler, *flags):
    """Compile the check program; returns the compiler's result and the program."""
    source, program = folder / "check.c", folder / "check"
    source.write_text(line_thread.source() + CHECK.read_text())
    command = [compiler, "-std=gnu11", "-g", "-O1", *flags, str(source), "-o", str(program)]
    command.append("-lpthread")
    return subprocess.run(command, capture_output=True, text=True, check=False), program


def probe(folder, compiler, sanitizer):
    """Skip if the sanitizer is not there, or cannot run on this machine."""
    source, program = folder / "probe.c", folder / "probe"
    source.write_text("int main(void) { return 0; }\n")
    command = [compiler, f"-fsanitize={sanitizer}", str(source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, check=False)
    if built.returncode:
        pytest.skip(f"{compiler} has no sanitizer '{sanitizer}'")
    ran = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"sanitizer '{sanitizer}' does not run here: {ran.stderr.strip()[:200]}")


def check(folder, compiler, sanitizer):
    built, program = build(folder, compiler, f"-fsanitize={sanitizer}", "-fno-sanitize-recover")
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        [str(program), "1500"], capture_output=True, text=True, timeout=300.0, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-6000:]
    assert re.fullmatch(r"\d+ commands of \d+, \d+ frames\n", done.stdout)


def test_no_race_under_the_thread_sanitizer(tmp_path):
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("no clang on this machine (apt install clang)")
    probe(tmp_path, clang, "thread")
    check(tmp_path, clang, "thread")


def test_no_error_of_memory_or_arithmetic(tmp_path):
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    probe(tmp_path, compiler, "address,undefined")
    check(tmp_path, compiler, "address,undefined")


def test_it_compiles_without_a_warning(tmp_path):
    compiler = find_compiler()
    if compiler is None:
        pytest.skip("no C compiler on this machine")
    built, _ = build(tmp_path, compiler, *WARNINGS)
    assert built.returncode == 0, built.stderr


def test_python_and_c_agree_on_sizes_and_bins():
    text = line_thread.source()
    assert f"#define LINES {line_thread.MAX_LINES}U" in text
    assert f"#define BINS {line_thread.BINS}U" in text
    assert len(ENDS) + 1 == line_thread.BINS
    (ends,) = re.findall(r"BIN_END\[BINS - 1U\] = \{([^}]*)\}", text)
    assert tuple(int(end) for end in ends.split(",")) == ENDS


@pytest.mark.skipif(not (checkout() / "firmware").is_dir(), reason="the firmware is not here")
def test_frames_are_made_by_the_firmware_s_own_code():
    text = line_thread.source()
    for name in ("cobs", "crc32", "frame"):
        own = (checkout() / "firmware/core" / f"{name}.c").read_text().splitlines()
        assert "\n".join(line for line in own if not line.startswith('#include "')) in text


def test_counters_of_both_times_that_a_line_was_open():
    """Sums; of what is the longest the longer; of what is now the later."""
    assert not any(getattr(LineCounts(), name) for name in PLAIN)
    assert LineCounts().beat_jitter == LineCounts().replies == Histogram()
    bins = Histogram((3, *[0] * 13)), Histogram((0, 4, *[0] * 12))
    first = LineCounts(*range(1, 10), 10, 0.5, 0.1, *bins)
    second = LineCounts(*range(100, 109), 20, 0.2, 0.3, *bins[::-1])
    both = second.after(first)
    assert [getattr(both, name) for name in PLAIN[:9]] == [101 + 2 * i for i in range(9)]
    assert (both.unanswered, both.beat_gap, both.reply) == (20, 0.5, 0.3)
    assert both.beat_jitter == both.replies == bins[0] + bins[1]
    assert (first.damaged, both.damaged) == (4 + 5 + 6, 107 + 109 + 111)


PLAIN = (
    "sent_bytes", "received_bytes", "frames", "bad_crc", "bad_code", "too_long", "dropped",
    "unread", "beats", "unanswered", "beat_gap", "reply",
)  # fmt: skip
