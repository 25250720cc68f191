"""The benchmark of batches steps the same arms as MuJoCo; how fast is no matter of tests."""

import json

from cards_bringup.benchmarks.batch import bench_batch


def test_both_step_the_same_arms():
    result = bench_batch(lambda _: None, rounds=1, arms=5)
    json.dumps(result)
    assert result["arm_difference_rad"] < 1e-12
    for case in ("arm", "mujoco_batch", "tensegrity", "tensegrity_single"):
        assert result[f"{case}_steps_per_s"] > 0.0
    assert result["arm_ratio"] > 0.0
