"""The command ``compile``: reports, errors, exit codes, and what is left after Ctrl-C."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_core.codegen.toolchain import find_compiler
from cards_core.dynamics import VARIABLES, compile_model
from cards_core.formats import load
from cards_core.loop.model_identity import identity_from, identity_of
from cards_model_compiler.command import main, table

pytestmark = pytest.mark.serial

PATIENCE = 240.0

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="no C compiler is installed")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own: nothing is in it."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(folder))
    return folder


def compile_json(capsys, *arguments):
    code = main([*arguments, "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


@needs_compiler
def test_a_report_says_what_was_made(capsys, cache):
    code, data, err = compile_json(capsys, "planar_2r")
    assert (code, err) == (0, "")
    (report,) = data["models"]
    robot = load("planar_2r")
    assert identity_from(report) == identity_of(robot)
    assert report["muscle_names"] == [muscle.name for muscle in robot.muscles]
    assert report["source"] == robot.source
    library = Path(report["path"])
    assert library.is_relative_to(cache)
    assert library.stat().st_size == report["bytes"]
    assert set(report["phases"]) == {"read", "expressions", "generate", "compile"}
    assert not report["cached"]
    assert report["warnings"] == []
    assert report["batch"] is None
    # the library that the report names is the one that the function uses
    made = compile_model(robot).report
    assert (made.path, made.instructions) == (library.parent, report["instructions"])
    assert made.cached
    assert sum(report["kernels"].values()) == report["instructions"] > 0


@needs_compiler
def test_what_has_not_changed_is_loaded_unless_forced(capsys):
    reports = []
    for extra in ([], [], ["--force"]):
        code, data, _ = compile_json(capsys, "planar_2r", *extra)
        assert code == 0
        reports += data["models"]
    assert [report["cached"] for report in reports] == [False, True, False]
    assert len({report["path"] for report in reports}) == 1
    assert len({report["hash"] for report in reports}) == 1


@needs_compiler
def test_options_reach_the_compiler(capsys, cache):
    options = ["--emit", "M, G", "--precision=single", "--batch", "--nodes"]
    code, data, _ = compile_json(capsys, "planar_2r", *options)
    (report,) = data["models"]
    assert code == 0
    assert report["emit"] == ["M", "G"]
    assert report["precision"] == "single"
    libraries = {str(file) for file in cache.glob("*/model.so")}
    assert {report["path"], report["batch"]["path"]} < libraries  # and those of the controllers
    code, plain, _ = compile_json(capsys, "planar_2r", "--emit=M", "--no-simplify")
    code, simple, _ = compile_json(capsys, "planar_2r", "--emit=M")
    unsimplified, simplified = (d["models"][0]["instructions"] for d in (plain, simple))
    assert simplified < unsimplified


@needs_compiler
def test_several_robots_and_one_that_is_none(capsys):
    code, data, err = compile_json(capsys, "planar_2r", "planar_9r", "planar_2r")
    assert code == 2
    first, failed, last = data["models"]
    assert (first["cached"], last["cached"]) == (False, True)
    assert failed["robot"] == "planar_9r"
    assert failed["error"]["type"] == "UnknownNameError"
    assert "did you mean 'planar_2r'?" in failed["error"]["message"]
    assert err == f"error: {failed['error']['message']}\n"


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (["planar_9r"], "UnknownNameError", "no model or file named 'planar_9r'"),
        (["planar_2r", "--emit", "M,X"], "UnknownNameError", "no quantity named 'X'"),
        (["planar_2r", "--emit=,"], "CardsError", "no quantity is named"),
        (["planar_2r", "--emit=J", "--frame=nose"], "UnknownNameError", "'nose'"),
    ],
)
def test_errors_are_one_line_and_an_object(arguments, kind, words, capsys, cache):
    code, data, err = compile_json(capsys, *arguments)
    assert code == 2
    assert data["error"]["type"] == kind
    assert words in data["error"]["message"]
    assert err == f"error: {data['error']['message']}\n"
    assert not cache.exists()
    # the same from ./cards
    assert cli.main(["compile", *arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out) == data


@pytest.mark.parametrize("arguments", [[], ["planar_2r", "--precision=half"], ["--nonsense"]])
def test_usage_errors(arguments, capsys):
    assert main(arguments) == 2
    assert "usage: ros2 run cards_model_compiler compile" in capsys.readouterr().err


def test_help_names_all_quantities(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for variable in VARIABLES.values():
        assert f"  {variable.name} " in out
        assert variable.text in out
    assert "ros2 run cards_model_compiler compile roboy_arm" in out


@needs_compiler
def test_without_a_terminal_phases_are_lines(capsys):
    assert main(["planar_2r", "wrap_elbow"]) == 0
    out, err = capsys.readouterr()
    phases = re.findall(r"^\[(\d)/2\] (\w+): (.*) \(\d+\.\d s\)$", err, re.MULTILINE)
    assert len(phases) == len(err.splitlines())
    expected = ["reading", "expressions", "generating C", "compiling", "done"]
    assert [what for number, _, what in phases if number == "1"] == expected
    assert [what for number, _, what in phases if number == "2"] == expected
    assert out.count("  hash ") == 2
    assert identity_of(load("planar_2r")).hash in out


@needs_compiler
def test_a_terminal_has_a_bar_and_the_report_goes_where_it_was_sent():
    leader, follower = pty.openpty()
    pieces = []

    def read():  # a terminal that nobody reads is full after 4 kB
        with contextlib.suppress(OSError):
            while piece := os.read(leader, 1 << 16):
                pieces.append(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; {STARTS['ros2 run']}", "planar_2r", "planar_2r"],
            env={**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=follower,
            text=True,
        )
        out, _ = process.communicate(timeout=PATIENCE)
    finally:
        os.close(follower)  # the last one: the reader sees the end
        reader.join(PATIENCE)
        os.close(leader)
    drawn = b"".join(pieces).decode()
    assert process.returncode == 0
    assert out.count("  hash ") == 2
    assert "\x1b" not in out
    assert "hash" not in drawn
    assert "[2/2] planar_2r" in drawn


@needs_compiler
def test_the_table_shows_batches_and_what_the_cache_saved(capsys):
    for _ in range(2):
        _, data, _ = compile_json(capsys, "planar_2r", "--batch")
    text = table(data["models"][0])
    assert "from the cache (made in: read " in text
    assert text.count(f" {data['models'][0]['instructions']:,}\n") == 2
    assert "batch library" in text


def test_a_machine_without_a_compiler_is_told(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    code, data, err = compile_json(capsys, "planar_2r")
    (report,) = data["models"]
    assert code == 0
    assert report["path"] is None
    assert "compiler" in report["warnings"][0]
    assert err == f"warning: {report['warnings'][0]}\n"
    assert "CasADi evaluates" in table(report)


def test_a_compiler_that_refuses_is_quoted(capsys, monkeypatch, tmp_path, cache):
    monkeypatch.setenv("CC", str(script(tmp_path, "echo 'internal error 7' >&2; exit 1")))
    code, data, _ = compile_json(capsys, "planar_2r")
    assert code == 2
    assert data["error"]["type"] == "CompilationError"
    assert "internal error 7" in data["error"]["message"]
    assert list(cache.iterdir()) == []


def script(folder, text):
    file = folder / "slow-cc"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


STARTS = {
    "ros2 run": "from cards_model_compiler.command import main; sys.exit(main(sys.argv[1:]))",
    "./cards": "from cards_bringup.cli import main; sys.exit(main(['compile', *sys.argv[1:]]))",
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("start", STARTS)
def test_interruption_leaves_nothing_behind(start, number, tmp_path, cache):
    """Ctrl-C goes to all processes of the terminal, ``kill`` to ours alone."""
    begun = tmp_path / "begun"
    compiler = script(tmp_path, f"touch {begun}; exec sleep {PATIENCE:g}")
    process = subprocess.Popen(
        # a suite in the background ignores SIGINT, and hands that on
        [
            sys.executable,
            "-c",
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            + STARTS[start],
            "planar_2r",
        ],
        env={**os.environ, "CC": str(compiler), "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + PATIENCE
        while not begun.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        assert begun.exists()
        assert [item.name[:7] for item in cache.iterdir()] == [".build-"]
        send = os.killpg if number == signal.SIGINT else os.kill
        send(process.pid, number)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Traceback" not in err
    assert out == ""
    assert list(cache.iterdir()) == []
