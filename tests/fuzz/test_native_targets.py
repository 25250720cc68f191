"""Fuzz targets of the native code: they build, and a short run finds what is there."""

import subprocess

import native_targets
import pytest
from native_targets import TARGETS, build, call, has_fuzzer, program, seeds

RUNS = {"paths": 12, "contacts": 12, "rods": 10, "line": 3000}
"""Inputs of the short run."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """Folder, and clang if it has libFuzzer."""
    folder = tmp_path_factory.mktemp("native")
    return folder, has_fuzzer(folder)


def built(name, folder, clang):
    try:
        return build(name, folder, clang)
    except LookupError as error:  # a machine without compilers; text that fails is an error
        pytest.skip(str(error))


def run(name, folder, clang, made):
    command = call(name, made, clang, runs=RUNS[name], found=folder)
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", TARGETS)
def test_short_run(name, tools):
    folder, clang = tools
    done = run(name, folder, clang, built(name, folder, clang))
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    counted = f"number_of_executed_units: {RUNS[name]}" if clang else f"{RUNS[name]} inputs"
    assert counted in done.stdout + done.stderr


def test_the_driver_in_place_of_libfuzzer(tmp_path):
    done = run("line", tmp_path, "", built("line", tmp_path, ""))
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == f"{RUNS['line']} inputs\n"


def test_a_finding_is_told(tmp_path, monkeypatch):
    """A buffer one frame too short, and a property that does not hold."""
    text = program("line")
    faults = {
        "the_line->received_slots = calloc(RECEIVED,": (
            "the_line->received_slots = calloc(1,",
            "AddressSanitizer: heap-buffer-overflow",
        ),
        "CHECK(atomic_load(&the_line->state) == RUNNING);": (
            "CHECK(the_line->decoder.ok == 0U);",
            "not so: the_line->decoder.ok == 0U",
        ),
    }
    for right, (wrong, report) in faults.items():
        assert text.count(right) == 1
        broken = {"line": text.replace(right, wrong)}
        with monkeypatch.context() as patch:
            patch.setattr(native_targets, "program", broken.get)
            done = run("line", tmp_path, "", built("line", tmp_path, ""))
        assert done.returncode != 0
        assert report in done.stderr


def test_every_target_has_seeds():
    folders = {path.name for path in native_targets.CORPUS.iterdir()}
    assert folders == set(TARGETS)
    for name in TARGETS:
        assert seeds(name)
        assert all(seed.stat().st_size <= native_targets.LONGEST for seed in seeds(name))


def test_no_compiler_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(native_targets.shutil, "which", lambda name: None)
    assert has_fuzzer(tmp_path) == ""
    with pytest.raises(LookupError, match="no clang with libFuzzer, and no gcc"):
        build("line", tmp_path, "")
