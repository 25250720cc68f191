"""The benchmark runs, counts every step and is JSON."""

import json
import sys
from dataclasses import replace

import pytest
from control_robots import ball_arm, planar_2r, roboy_arm

from cards_bringup.benchmarks.qp import bench_qp
from cards_core.formats import load


@pytest.mark.parametrize("robot", [roboy_arm(), ball_arm(), replace(planar_2r(), muscles=())])
def test_every_controller_and_solver_is_timed(robot):
    report = json.loads(json.dumps(bench_qp(robot, steps=20)))
    assert (report["robot"], report["steps"]) == (robot.name, 20)
    assert report["muscles"] == len(robot.muscles)
    programs = [entry for entry in report["results"] if "solver" in entry]
    pairs = {(entry["controller"], entry["solver"]) for entry in programs}
    kinds = ["ctc_joint"] + (["ctc_operational"] if robot.operational_frame else [])
    assert pairs == {(kind, solver) for kind in kinds for solver in ("daqp", "osqp")}
    for entry in programs:
        assert sum(entry["status"].values()) == 20
        assert 0.0 < entry["qp_median_us"] <= entry["median_us"] <= entry["p99_us"]
        assert entry["p99_us"] <= entry["max_us"]
        assert ("numpy" in entry) == (entry["native"] == "yes")
        assert entry["native"] == "yes" or entry["native"].startswith("no, ")
        assert sum(entry.get("numpy", entry)["status"].values()) == 20


def test_compiled_steps_are_timed_beside_those_of_numpy():
    native = {e["controller"] for e in bench_qp(roboy_arm(), steps=5)["results"] if "numpy" in e}
    assert native == {"ctc_joint", "ctc_operational", "impedance", "cpg"}


@pytest.mark.parametrize("name", ["musashi_like", "tetraspine"])
def test_controllers_of_set_points_are_timed(name):
    found = {e["controller"]: e for e in bench_qp(load(name), steps=20)["results"]}
    for kind, period in (("mrc", 8.0), ("impedance", 50.0), ("cpg", 10.0)):
        entry = found[kind]
        assert entry["period_ms"] == period
        assert entry["native"] == "yes"
        for figures in (entry, entry["numpy"]):
            assert figures["status"] == {"OK": 20}
            assert 0.0 < figures["median_us"] <= figures["p99_us"] <= figures["max_us"]


def test_the_arm_is_timed_on_feasible_steps():
    report = bench_qp(roboy_arm(), steps=300)
    for entry in report["results"]:
        if entry["controller"] == "mrc":
            assert "has no stiffness" in entry["unavailable"]
        if "solver" not in entry:
            continue
        assert entry["status"] == {"OK": 300}
        assert entry["iterations_mean"] >= 1.0


def test_missing_solvers_are_listed(monkeypatch):
    monkeypatch.setitem(sys.modules, "osqp", None)
    results = bench_qp(planar_2r(), steps=5)["results"]
    missing = [entry for entry in results if "unavailable" in entry and "solver" in entry]
    assert {entry["solver"] for entry in missing} == {"osqp"}
    assert "package osqp" in missing[0]["unavailable"]
