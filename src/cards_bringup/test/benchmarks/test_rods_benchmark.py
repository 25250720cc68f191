"""The benchmark of rods measures what it says; how long that takes is no matter of tests."""

from __future__ import annotations

import json

from cards_bringup.benchmarks.rods import PUBLISHED_HZ, bench_rods


def test_benchmark_solves_what_it_times():
    said = []
    result = bench_rods(said.append, robots=("spatial_3pfr", "planar_3efr"), laps=1, steps=150)
    assert json.loads(json.dumps(result)) == result
    for path in (result["till_path"], result["till_path_chord"]):
        assert path["unsolved"] == 0
        assert path["solves"] == 199
        assert 0.0 < path["max_residual"] <= 1e-6
        assert path["library_us"] <= path["median_us"] <= path["p99_us"]
    assert result["till_path"]["jacobians"] == 1.0  # one new Jacobian at each pose
    assert result["till_path"]["iterations"] < 1.5  # the extrapolation saves the second step
    assert result["till_path_chord"]["jacobians"] < 0.5
    assert result["ratio"] == result["till_path"]["rate_hz"] / PUBLISHED_HZ
    assert set(result["igm_us"]) == set(result["dgm_us"]) == {"spatial_3pfr", "planar_3efr"}
    assert result["unsolved"] == 0
    assert len(said) == 3
