"""The fuzz targets of the firmware build and find nothing in a short run."""

import re
import shutil
import subprocess

import pytest

from cards_hardware.protocol.generate import checkout

FIRMWARE = checkout() / "firmware"
RUNS = {"stream": 20_000, "messages": 50_000, "cobs": 20_000, "device": 300}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where to build; skips where libFuzzer is missing."""
    if shutil.which("make") is None or shutil.which("clang") is None:
        pytest.skip("make or clang is not on this machine")
    folder = tmp_path_factory.mktemp("fuzz")
    source = folder / "nothing.c"
    source.write_text(
        "int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n);\n"
        "int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)\n"
        "{ (void)d; (void)n; return 0; }\n"
    )
    command = ["clang", "-fsanitize=fuzzer,address,undefined", str(source), "-o"]
    done = subprocess.run(
        [*command, str(folder / "nothing")], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"clang has no libFuzzer here: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.mark.parametrize("target", RUNS)
def test_short_run(folder, target):
    runs = RUNS[target]
    done = subprocess.run(
        [
            *("make", "-C", str(FIRMWARE), f"fuzz-{target}", f"BUILD={folder}"),
            *(f"FUZZ_RUNS={runs}", f"FUZZ_DEVICE_RUNS={runs}"),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    units = re.search(r"number_of_executed_units: (\d+)", done.stdout + done.stderr)
    assert units is not None
    assert int(units[1]) >= runs
    assert not list((folder / "fuzz").glob("crash-*"))
