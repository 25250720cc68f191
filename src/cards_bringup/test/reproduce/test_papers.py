"""The experiments of CARDS: their set-ups, one of them run, and their evaluation."""

import dataclasses
import json

import numpy as np
import pytest

from cards import simulation
from cards_bringup.benchmarks.paper import MEASUREMENTS, PUBLISHED, ROBOTS
from cards_bringup.reproduce import cardsflow, compilation_curves, model_compilation
from cards_bringup.reproduce.experiment import FinishedRun, judge
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.runner import Reproduction
from cards_bringup.reproduce.simulated_run import reference_of
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.rods import read_rod_robot
from cards_core.trajectories import load_references
from cards_core.trajectories.library import find_reference_file

TABLES = [key for key in OWN if key.startswith("004.") and key != "004.ROBOTS"]


@pytest.mark.parametrize("key", OWN)
def test_set_ups_are_data_and_name_robots(key):
    one = OWN[key]
    for name in one.runs:
        setup = one.setup_of(name)
        assert json.loads(json.dumps(setup)) == setup
        if "rods" in setup:
            read_rod_robot(setup["rods"])
        else:
            load(setup["robot"])


@pytest.mark.parametrize(("key", "name"), [("000.A", "there_and_back"), ("000.B", "flower")])
def test_references_are_those_of_the_demos(key, name):
    setup = OWN[key].setup_of("run")
    robot = load(setup["robot"])
    file = find_reference_file("", robot)
    theirs = load_references(file, names=robot.tree.position_names)[name]
    ours = reference_of(robot, setup)
    times = np.linspace(0.0, ours.duration, 101)
    for mine, their in zip(ours.sample(times), theirs.sample(times), strict=True):
        np.testing.assert_array_equal(mine, their)
    assert setup["duration"] == ours.duration


def test_the_calculated_tensions_balance_the_planar_arm():
    """``G = -L' f``, with two cables at their minimum tension and two that follow from that."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    state = dynamics.update(np.array([-0.5, 0.5]), np.zeros(2))
    tensions = np.array(cardsflow.REST_TENSIONS)
    np.testing.assert_allclose(-state.muscle_jacobian.T @ tensions, state.gravity, atol=2e-6)
    free = tensions > 10.0
    assert (
        np.linalg.matrix_rank(state.muscle_jacobian[free]) == 2
    )  # no other tensions do it with these two


@pytest.fixture(scope="module")
def planar(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planar")
    return folder, Reproduction(folder, [OWN["000.A"]]).run()


def test_the_planar_arm_is_reproduced(planar):
    folder, found = planar
    (one,) = found["experiments"]
    assert one["error"] is None
    assert one["verdict"] == "reproduced", one["claims"]
    ours = {claim["value"]: claim["ours"] for claim in one["claims"]}
    assert 0.0 < ours["joint_1_error"] < 1e-4
    assert ours["tension_1_at_0s"] == pytest.approx(cardsflow.REST_TENSIONS[0], rel=1e-6)
    run = folder / "000.A/run"
    for name in ("summary.json", "simulator.npz", "controller.npz", "recording.mcap"):
        assert (run / name).is_file()
    table = np.genfromtxt(folder / "000.A/run.csv", delimiter=",", names=True)
    assert len(table) == 800
    assert table.dtype.names[1] == "desired_joint_1_rad"


def test_a_run_is_what_its_set_up_says(planar, tmp_path, monkeypatch):
    """Another folder of configurations has no part in it."""
    folder, _ = planar
    monkeypatch.setattr(simulation, "shipped_parameters", lambda *_: {})
    setup = OWN["000.A"].setup_of("run") | {"duration": 0.05}
    (tmp_path / "a").mkdir()
    cardsflow.simulated_run(setup, tmp_path / "a", lambda share: None)
    short = np.load(tmp_path / "a/simulator.npz")["q"]
    long = np.load(folder / "000.A/run/simulator.npz")["q"]
    np.testing.assert_array_equal(short, long[: len(short)])


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """Measurement and robot to the folder with what its motion or grid gives."""
    folders = {}
    for what in compilation_curves.CURVES:
        for robot in ROBOTS:
            folders[what, robot] = tmp_path_factory.mktemp(f"{what}_{robot}")
            compilation_curves.save_curves(load(robot), what, folders[what, robot])
    return folders


def measured(key, scale, folders):
    """Return runs of a table whose compiled times are the published ones times a factor."""
    what = model_compilation.TABLES.get(key.partition(".")[2], ("fk",))[0]
    runs = {}
    for robot in ROBOTS:
        numbers = dict(PUBLISHED[robot])
        for kind in model_compilation.KINDS:
            numbers[f"update_{kind}_us"] = numbers[f"{what}_update_{kind}_us"]
        for name in numbers:
            numbers[name] *= 1.0 if "numeric" in name else scale
        runs[robot] = FinishedRun(robot, {"robot": robot}, folders[what, robot], numbers)
    return runs


@pytest.mark.parametrize("key", TABLES)
def test_tables_of_the_model_compilation_paper(key, curves):
    one = OWN[key]
    faster = one.evaluate(measured(key, 0.999, curves))
    assert {j.verdict for j in judge(one.claims, faster.values)} == {"reproduced"}
    assert {claim.value for claim in one.claims} == set(faster.values)
    table = faster.tables["times"]
    assert table["robot"] == ["planar", "BM-Arm", "IPAnema1", "2S-MCDR"]
    assert {len(column) for column in table.values()} == {4}
    slower = judge(one.claims, one.evaluate(measured(key, 2.0, curves)).values)
    assert sum(j.verdict == "not reproduced" for j in slower) >= 8


def test_columns_have_published_times_beside_ours(curves):
    table = OWN["004.WFC"].evaluate(measured("004.WFC", 0.5, curves)).tables["times"]
    assert table["point, published, interpreted [ms]"][2] == pytest.approx(3037.85)
    assert table["point, published, compiled [ms]"][2] == pytest.approx(3013.27)
    assert table["point, ours, interpreted [ms]"][2] == pytest.approx(3037.85)
    assert table["point, ours, compiled [ms]"][2] == pytest.approx(0.5 * 3013.27)


def test_a_known_difference_is_told_from_a_failure(curves):
    one = OWN["004.WFC"]
    found = judge(one.claims, one.evaluate(measured("004.WFC", 1e-3, curves)).values)
    different = [j for j in found if j.verdict == "differs"]
    assert [j.claim.value for j in different] == [
        f"{robot}.point_{what}" for robot in ROBOTS for what in ("gain", "saved")
    ]
    assert all("elimination" in j.reason for j in different)
    assert {j.verdict for j in found} == {"reproduced", "differs"}


def test_measurements_are_those_of_the_benchmark(monkeypatch, tmp_path):
    asked = []

    def measurement(name):
        return lambda robot: asked.append((robot.name, name)) or {name: 1.0}

    fake = {name: measurement(name) for name in MEASUREMENTS}
    monkeypatch.setattr(model_compilation, "MEASUREMENTS", fake)
    shares = []
    setup = OWN["004.FK"].setup_of("bm_arm")
    assert model_compilation.measure(setup, tmp_path, shares.append) == {"update": 1.0, "fk": 1.0}
    assert asked == [("bm_arm", "update"), ("bm_arm", "fk")]
    assert shares == [0.5, 1.0]
    assert (tmp_path / "curves.npz").is_file()


def test_the_robots_are_those_of_the_paper(tmp_path):
    one = OWN["004.ROBOTS"]
    runs = {
        name: FinishedRun(name, {}, tmp_path, one.perform(one.setup_of(name), tmp_path, None))
        for name in one.runs
    }
    found = judge(one.claims, one.evaluate(runs).values)
    assert len(found) == 12
    assert {j.verdict for j in found} == {"reproduced"}


def test_curves_of_the_planar_robot_start_and_end_where_the_paper_says(curves):
    with np.load(curves["fk", "planar_xy"] / "curves.npz") as file:
        found = file["compiled_found"]
    np.testing.assert_allclose(found[[0, -1]], [[0.3, 0.5, 0.0], [0.4, 0.3, 0.1]], atol=1e-8)
    assert len(found) == 101


def test_a_model_that_gives_something_else_is_not_reproduced(curves, tmp_path):
    one = OWN["004.ID"]
    runs = measured("004.ID", 0.9, curves)
    with np.load(runs["bm_arm"].folder / "curves.npz") as file:
        arrays = dict(file)
    arrays["compiled_found"][50, 2] += 0.01
    np.savez(tmp_path / "curves.npz", **arrays)
    runs["bm_arm"] = dataclasses.replace(runs["bm_arm"], folder=tmp_path)
    found = judge(one.claims, one.evaluate(runs).values)
    bad = [j.claim.value for j in found if j.verdict != "reproduced"]
    assert bad == ["bm_arm.difference"]
