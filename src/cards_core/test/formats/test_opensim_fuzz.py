"""Damaged OpenSim files: an error of ours that names file and line, or a robot. Never a hang."""

from __future__ import annotations

import random
import re
import signal

import opensim_samples as samples
import pytest

from cards_core.errors import DescriptionError
from cards_core.formats.opensim import wraps
from cards_core.formats.opensim.cli import main
from cards_core.formats.opensim.importer import import_osim

CHUNKS, PER_CHUNK = 10, 20
SECONDS = 60  # far more than any import of such a small model takes

NUMBER = re.compile(r"(?<=[> ])-?\d+\.?\d*(?:e-?\d+)?(?=[< ])")
VALUES = ("nan", "inf", "1e400", "-1", "0", "1e15", "x", "", "1 2 3 4", "-0", "1e-300", "5")


def damaged(rng):
    text = getattr(samples, rng.choice(("arm", "knee", "shoulder", "old_arm")))()
    for _ in range(rng.randint(1, 3)):
        kind = rng.randrange(6)
        numbers = list(NUMBER.finditer(text))
        if kind == 0 and numbers:
            found = rng.choice(numbers)
            text = text[: found.start()] + rng.choice(VALUES) + text[found.end() :]
        elif kind == 1:
            lines = text.split("\n")
            del lines[rng.randrange(len(lines))]
            text = "\n".join(lines)
        elif kind == 2:
            tags = sorted(set(re.findall(r"<(\w+)", text)))
            tag = rng.choice(tags or ["none"])
            text = re.sub(rf"\b{tag}\b", rng.choice((*tags, "unknown")), text)
        elif kind == 3:
            at = rng.randrange(len(text) + 1)
            text = text[:at] + chr(rng.randrange(32, 1000)) + text[at + rng.randrange(3) :]
        elif kind == 4:
            leaves = list(re.finditer(r"<(\w+)[^<>]*>[^<>]*</\1>", text))
            found = rng.choice(leaves or [re.search("", text)])
            text = text[: found.start()] + rng.choice(("", 2 * found[0])) + text[found.end() :]
        else:
            text = text[: rng.randrange(len(text) + 1)] if rng.random() < 0.3 else text
    return text


def check(seed, folder):
    """Return whether a damaged file was refused."""
    path = folder / "damaged.osim"
    path.write_text(damaged(random.Random(seed)), encoding="utf-8")
    try:
        import_osim(path)
    except DescriptionError as error:
        message = str(error)
    else:
        message = ""
    assert not message or message.startswith(f"{path}"), (seed, message)
    return bool(message)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_damaged_files(chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(wraps, "RANDOM", 5)  # where paths are looked at, not whether they are
    monkeypatch.setattr(wraps, "SWEEP", 3)

    def late(*_):
        raise AssertionError(f"chunk {chunk}: hangs")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        refused = sum(check(chunk * PER_CHUNK + i, tmp_path) for i in range(PER_CHUNK))
    finally:
        signal.alarm(0)
    assert 0 < refused < PER_CHUNK


def test_nothing_is_left_of_a_file_that_cannot_be_imported(tmp_path, capsys):
    path = tmp_path / "bad.osim"
    path.write_text(samples.arm().replace("<mass>1.2", "<mass>-1"))
    assert main([str(path), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert "bad.osim:" in capsys.readouterr().err
