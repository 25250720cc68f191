"""./cards soak on a system that runs: the short plan, and a robot that breaks an invariant."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

pytestmark = [pytest.mark.serial, pytest.mark.ros]
needs_ros = pytest.mark.skipif(find_spec("rclpy") is None, reason="rclpy is not installed")


@needs_ros
def test_the_short_plan(cards, tmp_path):
    """Kill -9, SIGSTOP and commands that are no numbers: nothing is violated, nothing is left."""
    out = tmp_path / "soak"
    result = cards("soak", "--plan", "quick", "--seed", "1", "--out", str(out), "--json")
    data = json.loads(result.stdout)
    assert (result.returncode, data["verdict"]) == (0, "ok"), result.stderr
    assert data["faults_done"] == len(data["schedule"][0]["faults"])
    (episode,) = data["episodes"]
    assert [f["kind"] for f in episode["faults"]] == [
        f["kind"] for f in data["schedule"][0]["faults"]
    ]
    assert episode["facts"]["states"] > 100
    assert episode["facts"]["releases"] >= 1  # a controller was away: the watchdog was seen to act
    assert {path.name for path in out.iterdir()} == {"report.html", "report.json"}
    assert json.loads((out / "report.json").read_text())["violations"] == 0
    assert "Chaos campaign" in (out / "report.html").read_text()
