"""Every robot of ``./cards models`` can be demonstrated with defaults, in one process."""

from __future__ import annotations

import json

import pytest

from cards_bringup.cli import main
from cards_core.formats.locate import known_models

RODS = known_models(rods=True)


@pytest.mark.parametrize("name", known_models())
def test_it_moves_for_a_moment(name, tmp_path, capsys):
    command = ["demo", name, "--headless", "--no-ros", "--duration", "0.2", "--json"]
    if name not in RODS:
        command += ["--mode", "as_fast_as_possible"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["robot"] == name
    assert summary["failures"] == []
    assert summary.get("sim_time_s", summary.get("time_s")) == pytest.approx(0.2, abs=0.011)
