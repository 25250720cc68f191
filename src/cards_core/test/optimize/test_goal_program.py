"""Goals met exactly or as nearly as possible, bounds that yield before them: against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from active_set_library import goals
from scipy.optimize import lsq_linear

from cards_core.optimize.goal_program import GoalProgram, conditioning
from cards_core.optimize.qp import QP_INFINITY, QpMethod, QpStatus


def program(rng, n=8, hard=2, goals=2, **options):
    """A random program with bounds 1..10 whose hard rows a point within them keeps."""
    item = GoalProgram("daqp", rng.uniform(0.1, 1.0, n), hard, np.ones(goals), **options)
    item.lower_bounds[:], item.upper_bounds[:] = 1.0, 10.0
    item.matrix[:] = rng.normal(size=(hard + goals, n))
    inside = rng.uniform(3.0, 7.0, n)
    item.right[:] = item.matrix @ inside
    return item, inside


def nearest(item, hard, weights):
    """Least sum w s^2 by SciPy; the hard rows have a weight beyond all."""
    root = np.concatenate([np.full(hard, 1e6), np.sqrt(weights)])
    bounds = item.lower_bounds, item.upper_bounds
    found = lsq_linear(
        root[:, None] * item.matrix, root * item.right, bounds, method="bvls", tol=1e-15
    )
    return item.matrix[hard:] @ found.x - item.right[hard:]


def test_goals_within_reach_are_met_at_the_least_cost():
    """The cost has no say in the goals, however large, and all the say in the rest."""
    rng = np.random.default_rng(1)
    for _ in range(40):
        item, inside = program(rng)
        item.gradient[:] = 1e6 * rng.normal(size=8)
        result = item.solve()
        assert result.attained
        assert result.method is QpMethod.SOLVER
        np.testing.assert_allclose(item.matrix @ result.x, item.right, atol=1e-9)
        assert item.gradient @ result.x <= item.gradient @ inside


def test_goals_out_of_reach_are_missed_by_the_least_sum_of_squares():
    rng = np.random.default_rng(2)
    for _ in range(40):
        item, _ = program(rng)
        item.right[2:] += 40.0 * rng.normal(size=2)
        result = item.solve()
        best = nearest(item, 2, np.ones(2))
        assert result.attained == (np.linalg.norm(best) < 1e-6)
        np.testing.assert_allclose(result.missing, best, atol=1e-4)
        np.testing.assert_allclose(item.matrix[:2] @ result.x, item.right[:2], atol=1e-7)


def test_weights_share_what_is_missing():
    rng = np.random.default_rng(3)
    weights = np.array([1.0, 100.0])
    for _ in range(20):
        item, _ = program(rng, hard=0)
        heavy = GoalProgram("daqp", np.ones(8), 0, weights)
        for name in ("matrix", "right", "lower_bounds", "upper_bounds"):
            getattr(heavy, name)[:] = getattr(item, name)
        heavy.right[:] += 100.0
        least = weights @ nearest(heavy, 0, weights) ** 2
        assert weights @ heavy.solve().missing ** 2 == pytest.approx(least, rel=1e-6)


def test_yielding_bounds_hold_before_goals_and_the_program_says_so():
    """Without them the goal would be met: ``limited``. With the other bounds against it: not."""
    item = GoalProgram("daqp", np.ones(2), 0, np.ones(1), yielding=[1])
    item.matrix[:] = [1.0, 1.0]
    item.lower_bounds[:], item.upper_bounds[:] = 0.0, 1.0
    for goal, attained, limited in ((1.5, True, False), (5.0, False, True)):
        item.right[:] = goal
        result = item.solve()
        assert (result.attained, result.limited) == (attained, limited)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-6)
    item.upper_bounds[1] = QP_INFINITY
    assert item.solve().attained
    item.matrix[:] = [1.0, 0.0]
    result = item.solve()
    assert (result.attained, result.limited) == (False, False)


def test_bounds_that_hard_rows_break_yield_least_and_goals_are_still_met():
    """x1 = x2 = 5 but both shall be below 1 and 2; the third variable is free for the goal."""
    item = GoalProgram("daqp", np.ones(3), 1, np.ones(1), yielding=[0, 1])
    item.matrix[:] = [[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    item.right[:] = [10.0, 4.0]
    item.upper_bounds[:] = [1.0, 2.0, 10.0]
    result = item.solve()
    assert result.attained
    # the excess of 7 is shared evenly
    np.testing.assert_allclose(result.x, [4.5, 5.5, 4.0], rtol=1e-4)
    np.testing.assert_array_equal(item.upper_bounds, [1.0, 2.0, 10.0])  # as they were
    item.right[1] = 20.0
    result = item.solve()
    assert (result.attained, result.limited) == (False, False)
    np.testing.assert_allclose(result.x, [4.5, 5.5, 10.0], rtol=1e-4)


def test_the_way_there_does_not_matter():
    """Warm starts from programs within and out of reach give what a new program gives."""
    rng = np.random.default_rng(4)
    item, _ = program(rng, yielding=[0, 1])
    right = item.right.copy()
    for _ in range(60):
        item.right[:] = right
        item.right[2:] += rng.choice([0.0, 1.0, 50.0]) * rng.normal(size=2)
        new = GoalProgram("daqp", 1.0 / item._inverse, 2, np.ones(2), yielding=[0, 1])
        for name in ("matrix", "right", "lower_bounds", "upper_bounds"):
            getattr(new, name)[:] = getattr(item, name)
        warm, cold = item.solve(), new.solve()
        assert (warm.attained, warm.limited) == (cold.attained, cold.limited)
        np.testing.assert_allclose(warm.x, cold.x, atol=1e-6)


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_data_that_are_not_finite_are_named(poison):
    item, _ = program(np.random.default_rng(5))
    item.right[0] = poison
    assert item.solve().method is QpMethod.NEAREST_TO_ZERO


def test_a_solver_that_always_fails_is_replaced(monkeypatch):
    rng = np.random.default_rng(6)
    item, _ = program(rng)
    good = item.solve().x.copy()
    for part in (item._exact, item._near):
        monkeypatch.setattr(part, "_solve", lambda _: (QpStatus.NUMERICAL, np.full(8, np.nan), 0))
    result = item.solve()
    assert result.method is QpMethod.CLAMPED
    assert np.isfinite(result.x).all()
    assert np.abs(item.matrix @ good - item.matrix @ result.x).max() < 1e-2


def test_without_goals_or_variables():
    """Nothing to want, or nothing to do it with."""
    rows = GoalProgram("daqp", np.ones(2), 1, np.zeros(0))
    rows.matrix[:], rows.right[:] = [1.0, 1.0], 2.0
    np.testing.assert_allclose(rows.solve().x, [1.0, 1.0], atol=1e-9)
    none = GoalProgram("daqp", np.zeros(0), 0, np.ones(2))
    none.right[:] = [3.0, -4.0]
    result = none.solve()
    assert not result.attained
    np.testing.assert_array_equal(result.missing, [-3.0, 4.0])


def test_goals_out_of_reach_cost_their_price_and_no_more():
    """One goal sigma x = 1, |x| <= 10: x follows from the weight p / |s| of s, on both sides."""
    price, share = 2.0, 0.3
    item = GoalProgram("daqp", np.ones(1), 0, np.ones(1), price=price)
    strict = GoalProgram("daqp", np.ones(1), 0, np.ones(1))
    found = []
    for sigma in np.linspace(-0.2, 0.2, 400):
        for one in (item, strict):
            one.lower_bounds[:], one.upper_bounds[:] = -10.0, 10.0
            one.matrix[:], one.right[:] = sigma, 1.0
        result, nearest = item.solve(), strict.solve()
        assert result.attained == nearest.attained == (abs(sigma) >= 0.1)
        least = abs(nearest.missing[0])
        expected = np.clip(1.0 / sigma if sigma else 0.0, -10.0, 10.0)
        if not result.attained:
            weight = price / least * max(1.0, share / least)
            expected = np.clip(weight * sigma / (1.0 + weight * sigma**2), -10.0, 10.0)
        assert result.x[0] == pytest.approx(expected, abs=1e-6)
        found.append(result.x[0])
    strict.matrix[:] = 1e-6
    assert strict.solve().x[0] == pytest.approx(10.0)  # and -10 at the other side of zero
    near_zero = np.abs(np.linspace(-0.2, 0.2, 400)) < 0.02
    assert np.abs(np.diff(np.array(found)[near_zero])).max() < 0.004  # 20 for a jump


def test_a_price_changes_nothing_where_goals_are_met():
    rng = np.random.default_rng(7)
    for _ in range(20):
        item, _ = program(rng)
        cheap = GoalProgram("daqp", item.hessian, 2, np.ones(2), price=1e-6)
        for name in ("matrix", "right", "gradient", "lower_bounds", "upper_bounds"):
            getattr(cheap, name)[:] = getattr(item, name)
        np.testing.assert_array_equal(cheap.solve().x, item.solve().x)


def test_conditioning_is_that_of_the_singular_values():
    rng = np.random.default_rng(8)
    for count in (1, 2, 6):
        rows, hessian = rng.normal(size=(count, 7)), rng.uniform(0.1, 10.0, 7)
        weights = rng.uniform(0.1, 1.0, count)
        scaled = np.sqrt(weights)[:, None] * rows / np.sqrt(hessian)
        expected = 1.0 / np.sum(np.linalg.svd(scaled, compute_uv=False) ** -2.0)
        assert conditioning(rows, hessian, weights) == pytest.approx(expected, rel=1e-9)
    rows[4] = rows[1] - 2.0 * rows[3]
    assert conditioning(rows, hessian, weights) == 0.0
    assert conditioning(np.zeros((0, 7)), hessian, np.zeros(0)) == 0.0


def test_goals_whose_rows_are_nearly_dependent_are_damped():
    """Without bounds: x = H^-1 G' (G H^-1 G' + d W^-2)^-1 b; strict from `regular` on."""
    rng = np.random.default_rng(9)
    hessian, weights, regular = np.array([0.5, 2.0, 1.0]), np.array([1.0, 0.25]), 0.04
    item = GoalProgram("daqp", hessian, 0, weights, regular=regular)
    strict = GoalProgram("daqp", hessian, 0, weights)
    rows = rng.normal(size=(2, 3))
    right, damped = np.array([1.0, -2.0]), 0
    for share in np.linspace(-0.5, 0.5, 101):
        near = np.array([rows[0], rows[0] + share * rows[1]])
        for one in (item, strict):
            one.matrix[:], one.right[:] = near, right
        found = conditioning(near, hessian, weights)
        damping = regular * max(1.0 - found / regular, 0.0) ** 2
        result, exact = item.solve(), strict.solve()
        if damping == 0.0:
            np.testing.assert_array_equal(result.x, exact.x)
            assert result.attained
            continue
        damped += 1
        moved = (near / hessian).T
        expected = moved @ np.linalg.solve(near @ moved + damping * np.diag(1.0 / weights), right)
        np.testing.assert_allclose(result.x, expected, atol=1e-6 * np.abs(expected).max())
        # just below the border nothing worth telling is given up
        assert not result.attained or damping < 1e-6
    assert 20 < damped < 80
    item.right[:] = 0.0
    assert item.solve().attained  # nothing is asked for


def test_damping_and_price_together_take_the_smaller_weight():
    """One goal sigma x = 1 with |x| <= 10, as for the price: below sigma = 0.1 out of reach."""
    price, regular, share = 2.0, 0.09, 0.3
    item = GoalProgram("daqp", np.ones(1), 0, np.ones(1), price=price, regular=regular)
    item.lower_bounds[:], item.upper_bounds[:], item.right[:] = -10.0, 10.0, 1.0
    bound = set()
    for sigma in np.linspace(0.0, 0.4, 401):
        item.matrix[:] = sigma
        result = item.solve()
        weight, least = np.inf, 1.0 - 10.0 * sigma
        if sigma**2 < regular:
            weight = 1.0 / (regular * (1.0 - sigma**2 / regular) ** 2)
        if least > 1e-6:
            cost = price / least * max(1.0, share / least)
            bound.add(cost < weight)
            weight = min(weight, cost)
        expected = 1.0 / sigma if weight == np.inf else weight * sigma / (1.0 + weight * sigma**2)
        assert result.x[0] == pytest.approx(np.clip(expected, -10.0, 10.0), abs=1e-5)
    assert bound == {True, False}


def test_damping_begins_without_a_jump_where_the_solver_has_no_digits_left():
    """A tension moves the goal by 1e-6 only, so that the largest weight is far from strict."""
    regular = 0.01
    item = GoalProgram("daqp", np.array([1.0, 1.0]), 1, np.ones(1), regular=regular)
    found = []
    for below in np.concatenate([[0.0], np.geomspace(1e-9, 0.5, 200)]):
        sigma = np.sqrt(regular * (1.0 - below))
        # the second variable is the first times 1e-6, and moves the goal
        item.matrix[:], item.right[:] = [[1e-6, -1.0], [0.0, sigma]], [0.0, 1e-6]
        result = item.solve()
        np.testing.assert_allclose(1e-6 * result.x[0], result.x[1], atol=1e-12)
        x, _, what = goals(item, item.weights, item.hessian)
        assert x[0] == pytest.approx(result.x[0], rel=1e-6, abs=1e-9)
        assert what["attained"] == result.attained
        found.append(result.x[0])
    assert found[0] == pytest.approx(10.0, rel=1e-6)
    assert found[-1] < 0.01
    # the largest step where damping begins: less than in one of a hundred between the ends
    assert np.abs(np.diff(found[:20])).max() < 0.1
