"""The benchmark of tensegrity measures what it says; how long that takes is no matter of tests."""

import json
import stat

import pytest

from cards_bringup import cli
from cards_bringup.benchmarks.tensegrity import CASES, NTRT_CASES, bench_tensegrity
from cards_core.errors import CardsError


def program(folder, text):
    path = folder / "ntrt"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_each_case_is_measured_beside_the_program(tmp_path):
    # 50 ms of processor time and no less, so that there is a ratio
    busy = program(
        tmp_path,
        f'echo "$@" >> {tmp_path}/calls\necho ground\n'
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo $2",
    )
    said = []
    result = bench_tensegrity(said.append, seconds=0.01, program=busy)
    json.dumps(result)
    for case in CASES:
        assert result[f"{case}_x_realtime"] > 0.0
    for case in NTRT_CASES:
        assert result["ntrt"]["measured"][f"{case}_x_realtime"] > 0.0
        assert result["ntrt"]["ratio"][case] > 0.0
    calls = (tmp_path / "calls").read_text().split("\n")[:-1]
    assert calls == [f"{case} 0.01" for case in NTRT_CASES] * 5
    assert len(said) == 6 * len(CASES)


def test_a_program_that_fails_is_named(tmp_path):
    with pytest.raises(CardsError, match=r"ntrt flat 0\.01' failed"):
        bench_tensegrity(lambda _: None, seconds=0.01, program=program(tmp_path, "exit 3"))


@pytest.mark.parametrize("last", ["done", "", "0.5", "nan", "0.01 s"])
def test_a_program_that_simulated_something_else_is_named(last, tmp_path):
    busy = program(tmp_path, f"echo 0.01\necho '{last}'" if last else "exit 0")
    with pytest.raises(CardsError, match=r"flat 0\.01' wrote .* \(expected: the simulated time"):
        bench_tensegrity(lambda _: None, seconds=0.01, program=busy)


def test_the_program_is_of_this_benchmark_only(capsys):
    assert cli.main(["bench", "qp", "--ntrt", "x"]) == 2
    assert "--ntrt with 'qp' (expected: of tensegrity only)" in capsys.readouterr().err
