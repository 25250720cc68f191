"""Damaged OpenSim files: an error of ours that names file and line, or a robot. Never a hang."""

from __future__ import annotations

import os

import numpy as np
import opensim_samples as samples
import pytest
from damaged_files import mutate, mutate_tree, mutate_values, time_limit

from cards_core.errors import DescriptionError
from cards_core.formats.opensim import wraps
from cards_core.formats.opensim.cli import main
from cards_core.formats.opensim.importer import import_osim

PER_CHUNK = 20
CHUNKS = int(os.environ.get("CARDS_FUZZ", "200")) // PER_CHUNK


def damaged(seed):
    rng = np.random.default_rng(seed)
    text = getattr(samples, ("arm", "knee", "shoulder", "old_arm")[seed % 4])()
    damage = (mutate, mutate_tree, mutate_values, mutate_values)[int(rng.integers(4))]
    return damage(rng, text)


def check(seed, folder):
    """Return whether a damaged file was refused."""
    path = folder / "damaged.osim"
    path.write_bytes(damaged(seed))
    try:
        with time_limit(f"seed {seed}"):
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
    refused = sum(check(chunk * PER_CHUNK + i, tmp_path) for i in range(PER_CHUNK))
    assert 0 < refused < PER_CHUNK


def test_nothing_is_left_of_a_file_that_cannot_be_imported(tmp_path, capsys):
    path = tmp_path / "bad.osim"
    path.write_text(samples.arm().replace("<mass>1.2", "<mass>-1"))
    assert main([str(path), "-o", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert "bad.osim:" in capsys.readouterr().err
