"""The benchmarks measure the right things; how long these take is no matter of tests."""

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from cards_bringup.benchmarks import compiler, paper, timing
from cards_bringup.benchmarks.paper import PUBLISHED
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

DOCS = Path(__file__).parents[4] / "docs"
ASKED = (
    "update_numeric_us",
    "update_compiled_us",
    "fk_step_us",
    "id_step_us",
    "wcc_point_us",
    "wfc_point_us",
    "compile_s",
    "compile_simplified_s",
    "batch_poses_per_s",
)


@pytest.fixture
def quick(monkeypatch):
    time_call = timing.time_call

    def once(function, *, seconds=0.0):
        return time_call(function, seconds=1e-3)

    monkeypatch.setattr(timing, "time_call", once)


def test_every_robot_of_the_paper_has_its_published_figures():
    assert set(PUBLISHED) == set(paper.ROBOTS)
    published = PUBLISHED["ipanema_1"]
    assert published["wfc_point_compiled_us"] == pytest.approx(3013270)
    assert published["id_update_numeric_us"] == pytest.approx(2950)
    assert published["compile_simplified_s"] == 158.2


def test_one_robot(quick, monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    result = paper.bench_robot("planar_xy")
    for name in ASKED:
        assert result[name] > 0.0, name
    assert result["fk_step_solved"] == result["id_step_solved"] == 1.0
    assert 0.0 < result["wfc_feasible"] <= result["wcc_feasible"] < 1.0
    assert set(result["peers"]) >= {"mujoco"}
    for key, value in result["published"].items():
        if key.endswith("_point_compiled_us"):
            assert value > 0.0
            assert key in result


def test_motions_are_consistent_and_within_the_limits():
    for name in paper.ROBOTS:
        dynamics = make_dynamics(load(name))
        q, qd, qdd = (np.array(x) for x in zip(*paper.motion(dynamics), strict=True))
        assert len(q) == 1001
        assert np.all(q >= dynamics.tree.lower)
        assert np.all(q <= dynamics.tree.upper)
        np.testing.assert_allclose(q[[0, -1]], paper.MOTIONS[name], atol=1e-12)
        np.testing.assert_array_equal(qd[[0, -1]], 0.0)
        h = paper.STEP
        # between the three pieces the acceleration jumps
        inside = np.setdiff1d(np.arange(1, 1000), [50, 950])
        rates = (q[2:] - q[:-2]) / (2 * h)
        np.testing.assert_allclose(rates[inside - 1], qd[inside], atol=1e-9)
        accelerations = (qd[2:] - qd[:-2]) / (2 * h)
        np.testing.assert_allclose(accelerations[inside - 1], qdd[inside], atol=1e-9)


def test_every_motion_can_be_done_by_the_cables():
    for name in paper.ROBOTS:
        dynamics = make_dynamics(load(name))
        solver = paper.InverseDynamics(dynamics)
        for state in itertools.islice(paper.motion(dynamics), 0, None, 20):
            found = solver.step(*state)
            assert found.status == PointStatus.FEASIBLE
            np.testing.assert_allclose(found.residual, 0.0, atol=1e-6)


def test_the_grid_has_200_points_of_the_first_two_coordinates():
    dynamics = make_dynamics(load("ipanema_1"))
    points = paper.workspace_grid(dynamics)
    assert points.shape == (200, 6)
    assert len(np.unique(points[:, :2], axis=0)) == 200
    np.testing.assert_array_equal(points[:, 2:], np.tile(dynamics.tree.home[2:], (200, 1)))
    np.testing.assert_allclose(points[[0, -1], :2], [[-4.05, -3.15], [4.05, 3.15]])


def test_the_ways_to_native_code_give_the_same_numbers(quick, monkeypatch, tmp_path):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    robot = load("bm_arm")
    tree = robot.tree
    rng = np.random.default_rng(0)
    q, qd = tree.random(rng), rng.normal(size=tree.nv)
    expected = make_dynamics(robot, "numeric").update(q, qd)
    wanted = tuple(vars(expected).values())
    from cards_core.codegen.native import load_or_build
    from cards_core.dynamics import compile_model

    products = compiler._products(compile_model(robot, "M_b,C_b,G_b,W,V,l"))(q, qd)
    for found, value in zip(products, wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-12)
    kernel = load_or_build(b"x", lambda: [compiler._product_kernel(robot)]).bind("update")
    for found, value in zip(compiler._bound(kernel)(q, qd).values(), wanted, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-12)


def test_the_page_is_made_from_the_measurements():
    spec = importlib.util.spec_from_file_location("benchmark_tables", DOCS / "benchmark_tables.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = dict.fromkeys(
        (
            *ASKED,
            "dof",
            "muscles",
            "update_ratio",
            "wcc_feasible",
            "wfc_feasible",
            *(f"{key}_{kind}_us" for key, _ in module.TIMES for kind in ("numeric", "compiled")),
        ),
        0.5,
    )
    robots = {
        name: {**values, "peers": {"mujoco": {"us": 3.0, "ratio": 2.0}}, "published": figures}
        for name, figures in PUBLISHED.items()
    }
    machine = {"cpu": "a processor", "cores": 2, "python": "3.11"}
    ways = {"default": "the default"}
    found = {"default": {"instructions": 1234, "seconds": 0.25, "update_us": 1.5}}
    page = module.page({**robots, "machine": machine}, {"robots": {"x": found}, "ways": ways})
    assert "*(3.01 s)*" in page
    assert "| x | 1,234; 0.25 s; 1.50 us |" in page
    assert "a processor, 2 cores" in page
