"""Rays against closed forms: a line through a sphere."""

import json

import numpy as np
import pytest
from workspace_cases import KIND, ball_robot, cube_robot

from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Axis, Grid, PointSetError, Rays, Samples
from cards_core.analysis.workspace.chunks import evaluate_points
from cards_core.analysis.workspace.job import points_from_json
from cards_core.errors import UnknownNameError
from cards_core.spatial import quaternion_log

RADIUS = 0.5


@pytest.fixture(scope="module")
def tree():
    return cube_robot().tree


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(CONDITIONS, "in_ball", KIND)


def cut(rays, tree):
    condition = KIND.factory(None, KIND.options(radius=RADIUS))
    bound = rays.bind(tree)
    values = bound.values(0, bound.count)
    return bound.cut(0, values, lambda q: evaluate_points(condition, tree, q)), bound, values


def test_intervals_of_lines_through_a_ball(tree):
    """|start + s e_x| = r at s = -x0 -+ sqrt(r^2 - y^2 - z^2)."""
    starts = Grid((Axis("y", -0.6, 0.6, 13), Axis("z", -0.55, 0.6, 9)), {"x": -1.0})
    rays = Rays(starts, {"x": 1.0}, length=2.0, scan=40, tolerance=1e-9)
    table, _, _ = cut(rays, tree)
    checked = 0
    for ray in range(rays.count):
        here = table["ray"] == ray
        y, z = table["y"][here][0], table["z"][here][0]
        half2 = RADIUS**2 - y**2 - z**2
        statuses = table["status"][here].tolist()
        if half2 <= 0.0:
            assert statuses == [PointStatus.INFEASIBLE]
            continue
        half = np.sqrt(half2)
        if half < 0.05:  # narrower than a step of the scan: may be missed
            continue
        assert statuses == [1, 0, 1]
        expected = [0.0, 1.0 - half, 1.0 + half]
        np.testing.assert_allclose(table["begin"][here], expected, atol=1e-9)
        np.testing.assert_allclose(table["end"][here], [*expected[1:], 2.0], atol=1e-9)
        checked += 1
    assert checked > 30


def test_intervals_fill_every_ray(tree):
    rays = Rays(Samples(50, 1), length=30.0, scan=50, per_start=3, seed=2)
    table, _, _ = cut(rays, tree)
    for ray in range(rays.count):
        here = table["ray"] == ray
        begin, end, status = (table[name][here] for name in ("begin", "end", "status"))
        assert begin[0] == 0.0
        assert end[-1] == 30.0
        np.testing.assert_array_equal(begin[1:], end[:-1])
        assert np.all(begin < end)
        assert np.all(status[1:] != status[:-1])
    assert set(table["status"].tolist()) == {0, 1, PointStatus.NOT_CONVERGED}


def test_a_third_status_between_two_points_of_the_scan_is_found(tree):
    """From the ball to where there is no answer in one step: infeasible lies between."""
    rays = Rays(Grid(()), {"x": 1.0}, length=6.0, scan=1, tolerance=1e-9)
    table, _, _ = cut(rays, tree)
    assert table["status"].tolist() == [0, 1, PointStatus.NOT_CONVERGED]
    np.testing.assert_allclose(table["begin"], [0.0, RADIUS, 10 * RADIUS], atol=1e-9)
    # no point of the scan is in the middle one
    assert np.isnan(table["margin_min"][1])


def test_extremes_of_the_metric_in_an_interval(tree):
    rays = Rays(Grid((), {"x": -1.0, "y": 0.3}), {"x": 1.0}, length=2.0, scan=200)
    table, _, _ = cut(rays, tree)
    s = np.linspace(0.0, 2.0, 201)
    margin = RADIUS - np.hypot(s - 1.0, 0.3)
    for i in range(3):
        inside = (s >= table["begin"][i]) & (s <= table["end"][i])
        assert table["margin_min"][i] == pytest.approx(margin[inside].min(), abs=1e-14)
        assert table["margin_max"][i] == pytest.approx(margin[inside].max(), abs=1e-14)


def test_random_directions_are_unit_vectors_of_their_own(tree):
    rays = Rays(Grid(()), length=2.0, per_start=20_000, seed=7)
    bound = rays.bind(tree)
    values = bound.values(0, bound.count)
    _, directions = bound.lines(values)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0, atol=1e-14)
    # each component of a uniform unit vector in space is uniform in -1..1 (Archimedes)
    share = np.histogram(directions, 10, (-1.0, 1.0))[0] / directions.size
    np.testing.assert_allclose(share, 0.1, atol=5.0 * np.sqrt(0.09 / len(directions)))
    np.testing.assert_array_equal(bound.values(77, 99), values[77:99])
    only = Rays(Grid(()), among=("x", "z"), per_start=10).bind(tree)
    _, directions = only.lines(only.values(0, 10))
    np.testing.assert_array_equal(directions[:, 1], 0.0)


def test_a_ray_of_rotation_turns_by_s(tree):
    ball = ball_robot().tree
    bound = Rays(Grid(()), {"wrist.y": 1.0}, length=2.0, scan=4).bind(ball)
    seen = []

    def evaluate(q):
        seen.append(q)
        return {"status": np.zeros(len(q), np.uint8)}

    bound.cut(0, bound.values(0, 1), evaluate)
    w, x, y, z = ball.home[1:5]
    from cards_core.spatial import quaternion_product

    turns = [quaternion_log(quaternion_product((w, -x, -y, -z), q[1:5])) for q in seen[0]]
    np.testing.assert_allclose(turns, [[0, s, 0] for s in np.linspace(0, 2, 5)], atol=1e-14)


def test_mistakes_have_names(tree):
    with pytest.raises(PointSetError, match="length"):
        Rays(Grid(()), {"x": 1.0}, length=0.0)
    with pytest.raises(PointSetError, match="tolerance"):
        Rays(Grid(()), {"x": 1.0}, tolerance=0.0)
    with pytest.raises(PointSetError, match="no direction"):
        Rays(Grid(()), {"x": 0.0}).bind(tree)
    with pytest.raises(PointSetError, match="rays start from rays"):
        Rays(Rays(Grid(())))
    with pytest.raises(UnknownNameError, match="velocity"):
        Rays(Grid(()), {"w": 1.0}).bind(tree)


def test_json_and_back(tree):
    for rays in (
        Rays(Grid((Axis("y", 0.0, 1.0, 3),)), {"x": 1.0}, length=2.0, scan=7, tolerance=1e-4),
        Rays(Samples(4, 1), among=("x", "y"), per_start=3, seed=8),
    ):
        again = points_from_json(json.loads(json.dumps(rays.to_json())))
        assert again == rays
        np.testing.assert_array_equal(again.bind(tree).values(1, 3), rays.bind(tree).values(1, 3))


def test_no_rays(tree):
    table, _, _ = cut(Rays(Grid((Axis("y", 0.0, 1.0, 0),)), {"x": 1.0}), tree)
    assert {name: len(column) for name, column in table.items()} == dict.fromkeys(
        ["ray", "y", "begin", "end", "status", "margin_min", "margin_max"], 0
    )
