"""The experiments of CARDS: their set-ups, one of them run, and their evaluation."""

import json

import numpy as np
import pytest

from cards import simulation
from cards_bringup.benchmarks.paper import MEASUREMENTS, PUBLISHED, ROBOTS
from cards_bringup.reproduce import cardsflow, model_compilation
from cards_bringup.reproduce.experiment import FinishedRun, judge
from cards_bringup.reproduce.registry import OWN
from cards_bringup.reproduce.runner import Reproduction
from cards_bringup.reproduce.simulated_run import reference_of
from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.trajectories import load_references
from cards_core.trajectories.library import find_reference_file

TABLES = [key for key in OWN if key.startswith("004.")]


@pytest.mark.parametrize("key", OWN)
def test_set_ups_are_data_and_name_robots(key):
    one = OWN[key]
    for name in one.runs:
        setup = one.setup_of(name)
        assert json.loads(json.dumps(setup)) == setup
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
    """``G = -L' f``, with two cables at their least tension and two that follow from that."""
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
    monkeypatch.setattr(simulation, "shared_folders", list)
    setup = OWN["000.A"].setup_of("run") | {"duration": 0.05}
    (tmp_path / "a").mkdir()
    cardsflow.simulated_run(setup, tmp_path / "a", lambda share: None)
    short = np.load(tmp_path / "a/simulator.npz")["q"]
    long = np.load(folder / "000.A/run/simulator.npz")["q"]
    np.testing.assert_array_equal(short, long[: len(short)])


def measured(key, scale):
    """Return runs of a table whose compiled times are the published ones times a factor."""
    what = model_compilation.TABLES.get(key.partition(".")[2], ("fk",))[0]
    runs = {}
    for robot in ROBOTS:
        numbers = dict(PUBLISHED[robot])
        for kind in model_compilation.KINDS:
            numbers[f"update_{kind}_us"] = numbers[f"{what}_update_{kind}_us"]
        for name in numbers:
            numbers[name] *= 1.0 if "numeric" in name else scale
        runs[robot] = FinishedRun(robot, {"robot": robot}, None, numbers)
    return runs


@pytest.mark.parametrize("key", TABLES)
def test_tables_of_the_model_compilation_paper(key):
    one = OWN[key]
    faster = one.evaluate(measured(key, 0.999))
    assert {j.verdict for j in judge(one.claims, faster.values)} == {"reproduced"}
    assert {claim.value for claim in one.claims} == set(faster.values)
    table = faster.tables["times"]
    assert table["robot"] == ["planar", "BM-Arm", "IPAnema1", "2S-MCDR"]
    assert {len(column) for column in table.values()} == {4}
    slower = judge(one.claims, one.evaluate(measured(key, 2.0)).values)
    assert sum(j.verdict == "not reproduced" for j in slower) >= 8


def test_columns_have_published_times_beside_ours():
    table = OWN["004.WFC"].evaluate(measured("004.WFC", 0.5)).tables["times"]
    assert table["point, published, interpreted [ms]"][2] == pytest.approx(3037.85)
    assert table["point, published, compiled [ms]"][2] == pytest.approx(3013.27)
    assert table["point, ours, interpreted [ms]"][2] == pytest.approx(3037.85)
    assert table["point, ours, compiled [ms]"][2] == pytest.approx(0.5 * 3013.27)


def test_a_known_difference_is_told_from_a_failure():
    one = OWN["004.WFC"]
    found = judge(one.claims, one.evaluate(measured("004.WFC", 1e-3)).values)
    different = [j for j in found if j.verdict == "differs"]
    assert [j.claim.value for j in different] == [f"{robot}.point_gain" for robot in ROBOTS]
    assert all("elimination" in j.reason for j in different)
    assert {j.verdict for j in found} == {"reproduced", "differs"}


def test_measurements_are_those_of_the_benchmark(monkeypatch):
    asked = []

    def measurement(name):
        return lambda robot: asked.append((robot.name, name)) or {name: 1.0}

    fake = {name: measurement(name) for name in MEASUREMENTS}
    monkeypatch.setattr(model_compilation, "MEASUREMENTS", fake)
    shares = []
    setup = OWN["004.FK"].setup_of("bm_arm")
    assert model_compilation.measure(setup, None, shares.append) == {"update": 1.0, "fk": 1.0}
    assert asked == [("bm_arm", "update"), ("bm_arm", "fk")]
    assert shares == [0.5, 1.0]
