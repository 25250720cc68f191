"""The benchmark of batches steps the same arms as MuJoCo; how fast is no matter of tests."""

import json
import sys

import pytest

from cards_bringup.benchmarks.batch import bench_batch

ENVIRONMENTS = ("env", "tensegrity_env", "single_env")


def test_both_step_the_same_arms():
    pytest.importorskip("gymnasium", reason="gymnasium is not installed")
    result = bench_batch(lambda _: None, rounds=1, arms=5)
    json.dumps(result)
    assert result["arm_difference_rad"] < 1e-12
    for case in ("arm", "mujoco_batch", "tensegrity", "tensegrity_single", *ENVIRONMENTS):
        assert result[f"{case}_steps_per_s"] > 0.0
    assert result["arm_ratio"] > 0.0


def test_without_gymnasium_there_are_no_environments(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "cards_learning.environments", raising=False)
    said = []
    result = bench_batch(said.append, rounds=1, arms=5)
    assert [result[f"{case}_steps_per_s"] for case in ENVIRONMENTS] == [None] * 3
    assert result["arm_steps_per_s"] > 0.0
    assert any("gymnasium is not installed" in text for text in said)
