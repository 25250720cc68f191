"""``docs/tutorial_own_robot.md``, followed to the letter."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from cards_bringup.cli import main
from cards_core.shared_files import checkout

STEP = re.compile(
    r"^\*\*(?P<number>\d+)\.\*\*.*?(?:^`(?P<file>[^`\n]+)`\n\n)?^```(?P<kind>bash|diff)\n"
    r"(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
MOST_STEPS = 12


def steps():
    top = checkout()
    if top is None:
        pytest.skip("needs the checkout: its docs are not installed")
    text = (top / "docs" / "tutorial_own_robot.md").read_text()
    found = list(STEP.finditer(text))
    assert [int(one["number"]) for one in found] == list(range(1, len(found) + 1))
    assert len(found) == text.count("```bash") + text.count("```diff")  # nothing is passed over
    return found


def edit(file, change):
    """Apply an edit: lines with ``-`` go, with ``+`` come, others show the place."""
    lines = change.splitlines()
    assert all(line[:1] in ("-", "+", " ") for line in lines)
    before = "".join(f"{line[1:]}\n" for line in lines if line[0] != "+")
    after = "".join(f"{line[1:]}\n" for line in lines if line[0] != "-")
    text = file.read_text()
    assert text.count(before) == 1, before
    file.write_text(text.replace(before, after))


def test_it_leads_to_a_robot_that_draws_a_circle(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = steps()
    assert len(found) <= MOST_STEPS
    for step in found:
        if step["kind"] == "diff":
            edit(tmp_path / step["file"], step["text"])
            continue
        (line,) = step["text"].splitlines()
        program, *arguments = shlex.split(line)
        assert program == "./cards"
        if arguments[0] == "demo":
            # as fast as it goes, and nobody watches
            arguments += ["--no-ros", "--mode", "as_fast_as_possible"]
            arguments += [] if "--headless" in arguments else ["--headless"]
        assert main(arguments) == 0, line
    assert "tension" in capsys.readouterr().out  # of eval, the last one
    joints, circle = (
        json.loads((tmp_path / "runs" / name / "summary.json").read_text())
        for name in ("joints", "circle")
    )
    for summary in (joints, circle):
        assert summary["robot"] == "my_robot"
        assert summary["verdict"] == "ok"
        assert summary["qp_infeasible_steps"] == 0
    assert joints["joint_error_max_rad"] < 1e-3
    assert circle["op_error_max_m"] < 1e-3
    assert circle["controller"] == "ctc_operational"
