"""The benchmark of muscle relaxation measures what it says; times are no matter of tests."""

import json

from cards_bringup.benchmarks.relaxation import SETUPS, bench_relaxation


def test_periods_angles_and_learning_are_measured():
    said = []
    result = bench_relaxation(said.append, seeds=1, lessons=6.0)
    json.dumps(result)
    assert [row["with"] for row in result["periods"]] == list(SETUPS)
    for row in result["periods"]:
        assert row["period_us"] > 0.0
        assert row["with_40_hz_blocks_us"] > 0.0
    told, ordinary = result["angles"]
    assert (told["motion"], ordinary["motion"]) == ("find_offsets", "moves")
    # four times the bound, and the half degree of docs/muscle_relaxation.md
    assert told["offset_error_mm"] < 4.0 * told["offset_bound_mm"] < 0.35
    assert told["joint_rms_deg"] < 0.5
    assert ordinary["offset_bound_mm"] > 3.0 * told["offset_bound_mm"]
    (learned,) = result["learning"]
    assert learned["error_of_before"] < 0.4
    assert learned["inference_us"] > 0.0
    assert learned["update_us"] > 0.0
    assert len(said) == len(SETUPS) + 3
