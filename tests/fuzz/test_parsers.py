"""Readers of files and messages: the corpus, damaged copies of it, and a short guided run."""

import importlib.util
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml
from damaged_files import time_limit
from fuzz_parsers import CORPUS, PARSERS

from mutation import mutated

HERE = Path(__file__).resolve().parent

GUIDED = ("websocket", "boards", "ntrt_json", "traj", "sdf")
"""Readers of the guided run: quick ones, and that of robots."""

RUNS = 300

LETTERS = list(b"0123456789.-+e<>:,[]{}&\"' \n")

COPIES = 24
"""Damaged copies of every seed."""


def test_every_corpus_has_a_reader():
    assert {path.name for path in CORPUS.iterdir()} == {p.corpus for p in PARSERS.values()}
    for name, parser in PARSERS.items():
        seeds = parser.seeds()
        assert seeds, name
        for seed in seeds:
            assert seed.stat().st_size <= parser.longest, seed


@pytest.mark.parametrize("name", PARSERS)
def test_every_seed_is_read_and_some_is_understood(name):
    parser = PARSERS[name]
    with time_limit(name):
        understood = [parser(seed.read_bytes()) for seed in parser.seeds()]
    assert any(understood)


def damaged(rng, data):
    """Return a copy with a few bytes lost, doubled, or changed."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        a, b = sorted(int(x) for x in rng.integers(0, len(out) + 1, 2))
        b = min(b, a + int(rng.integers(1, 20)))
        match int(rng.integers(4)):
            case 0:
                del out[a:b]
            case 1:
                out[a:a] = out[a:b]
            case 2:
                out[a:b] = rng.bytes(b - a)
            case 3:
                out[a:b] = bytes(rng.choice(LETTERS, b - a).tolist())
    return bytes(out)


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_copies(name):
    parser = PARSERS[name]
    rng = np.random.default_rng(sum(name.encode()))
    for seed in parser.seeds()[:6]:
        data = seed.read_bytes()
        for k in range(COPIES // min(6, len(parser.seeds())) + 1):
            copy = damaged(rng, data)
            if parser.grammar:
                plain = lambda _, longest, copy=copy: copy[:longest]  # noqa: E731
                copy = mutated(parser.grammar, plain, data, parser.longest, k)
            try:
                with time_limit(f"{seed}, copy {k}"):
                    parser(copy)
            except Exception as error:
                raise AssertionError(f"{name}, copy {k} of {seed.name}: {copy!r}") from error


@pytest.mark.parametrize("name", [name for name, p in PARSERS.items() if p.grammar])
def test_half_of_the_copies_keep_to_the_grammar(name):
    parser = PARSERS[name]
    read = {"xml": ET.fromstring, "yaml": yaml.safe_load}[parser.grammar]
    data = parser.seeds()[0].read_bytes()
    copies = [
        mutated(parser.grammar, lambda *_: b"plain", data, parser.longest, k) for k in range(40)
    ]
    within = [copy for copy in copies if copy != b"plain"]
    assert len(within) > 10
    assert len(set(within)) > 0.5 * len(within)
    for copy in within:
        read(copy.decode())


@pytest.mark.parametrize("name", GUIDED)
def test_short_guided_run(name, tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install -r requirements/fuzz.txt")
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), name, f"--runs={RUNS}", f"--found={tmp_path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert f"stat::number_of_executed_units: {RUNS}" in done.stderr
    assert not [path for path in tmp_path.iterdir() if "crash" in path.name]


def test_a_finding_is_told(tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install -r requirements/fuzz.txt")
    program = (
        "import sys, fuzz_parsers\n"
        "from pathlib import Path\n"
        "def broken(data):\n"
        "    if b'A' in data: raise KeyError('found')\n"
        "fuzz_parsers.PARSERS['traj'] = fuzz_parsers.Parser(broken, 'traj')\n"
        "import run\n"
        f"sys.exit(run.main(['traj', '--runs=20000', '--found={tmp_path}']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(HERE), "PATH": ""},
    )
    assert done.returncode != 0
    assert "KeyError" in done.stdout + done.stderr
    assert [path for path in tmp_path.iterdir() if "crash" in path.name]


def test_unknown_reader():
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install -r requirements/fuzz.txt")
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "nothing"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "no reader 'nothing'; there are xml, yaml, sdf" in done.stderr
