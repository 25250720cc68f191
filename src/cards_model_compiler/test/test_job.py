"""Compilations in a process of their own: results, failures, and their end."""

import signal
import time

import pytest

from cards_core.formats import load
from cards_core.loop.model_identity import identity_from, identity_of
from cards_model_compiler.job import CompileFailedError, CompileJob

pytestmark = pytest.mark.serial

PATIENCE = 240.0


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(folder))
    return folder


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_job_reports_like_the_command(cache):
    job = CompileJob("planar_2r", ["--emit=M"])
    report = job.result()
    assert job.done
    assert report["emit"] == ["M"]
    assert identity_from(report) == identity_of(load("planar_2r"))
    job.stop()  # too late, and no harm


def test_failures_are_told_in_the_words_of_the_program():
    with pytest.raises(CompileFailedError, match=r"^planar_9r: no model or file named"):
        CompileJob("planar_9r").result()
    with pytest.raises(CompileFailedError, match=r"^--help: no model or file named '--help'"):
        CompileJob("--help").result()  # a name, whatever it looks like


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_job_that_is_stopped_takes_its_compiler_with_it(stubborn, tmp_path, cache, monkeypatch):
    begun, compiler = tmp_path / "begun", tmp_path / "slow-cc"
    trap = "trap '' TERM\n" if stubborn else ""
    compiler.write_text(
        f"#!/bin/sh\n{trap}echo $$ > {begun}.new\nmv {begun}.new {begun}\n"
        f"while :; do sleep 0.1; done\n"
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    job = CompileJob("planar_2r")
    until(begun.exists)
    assert not job.done
    job.stop()
    until(lambda: job.done)
    number = int(begun.read_text())

    def gone():
        try:
            state = open(f"/proc/{number}/stat").read().split()[2]  # noqa: SIM115
        except FileNotFoundError:
            return True
        return state == "Z"

    until(gone)
    assert list(cache.iterdir()) == []
    with pytest.raises(CompileFailedError, match=r"^planar_2r: "):
        job.result()
    assert job._process.returncode in (130, -signal.SIGKILL)
