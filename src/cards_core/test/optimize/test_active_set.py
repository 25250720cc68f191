"""The active-set method in C and the cascade on it, against DAQP, OSQP and the Python cascade."""

from __future__ import annotations

import numpy as np
import pytest
from active_set_library import goals, solve

from cards_core.optimize.goal_program import GoalProgram, conditioning
from cards_core.optimize.qp import QP_INFINITY, QpStatus
from cards_core.optimize.qp_backends import make_qp_solver

OPTIMAL, INFEASIBLE, LIMIT = 1, -1, -4


def random_program(rng):
    """A program with a point inside of its bounds: Hessian, gradient, rows, limits."""
    n = int(rng.integers(1, 25))
    p = int(rng.integers(0, n + 1))
    hessian, gradient = 10.0 ** rng.uniform(-1, 1, n), rng.standard_normal(n)
    matrix, inside = rng.standard_normal((p, n)), rng.standard_normal(n)
    value = matrix @ inside
    equal = rng.random(p) < 0.5
    if equal.sum() > n // 2:
        equal[:] = False
    gap = np.where(equal, 0.0, rng.uniform(0.0, 1.0, (2, p)))
    low = np.concatenate([inside - rng.uniform(0.0, 1.5, n), value - gap[0]])
    up = np.concatenate([inside + rng.uniform(0.0, 1.5, n), value + gap[1]])
    return hessian, gradient, matrix, low, up


def other_solver(name, program):
    hessian, gradient, matrix, low, up = program
    n = len(gradient)
    qp = make_qp_solver(name, n, np.full(len(low) - n, np.inf))
    qp.careful = qp.can_be_careful
    np.fill_diagonal(qp.hessian, hessian)
    qp.gradient[:], qp.matrix[:] = gradient, matrix
    qp.lower_bounds[:], qp.row_lower[:] = low[:n], low[n:]
    qp.upper_bounds[:], qp.row_upper[:] = up[:n], up[n:]
    found = qp.solve(recover=False)
    assert found.status is QpStatus.OPTIMAL
    return found.x


@pytest.mark.parametrize(
    ("name", "count", "tolerance"), [("daqp", 300, 1e-12), ("osqp", 20, 1e-5)]
)
def test_minima_are_those_of_other_solvers(name, count, tolerance):
    pytest.importorskip(name)
    rng = np.random.default_rng(1)
    for _ in range(count):
        program = random_program(rng)
        flag, x, _ = solve(*program)
        assert flag == OPTIMAL
        np.testing.assert_allclose(x, other_solver(name, program), rtol=0.0, atol=tolerance)


def test_single_precision_is_close():
    rng = np.random.default_rng(2)
    errors = []
    for _ in range(100):
        program = random_program(rng)
        flag, x, _ = solve(*program, single=True)
        assert flag == OPTIMAL
        errors.append(np.abs(x - solve(*program)[1]).max())
    assert np.median(errors) < 1e-5
    assert max(errors) < 1e-2


def test_multiples_of_an_equation_count_once_and_contradictions_are_told():
    hessian, gradient = np.ones(3), np.array([0.0, 1.0, 2.0])
    row, bounds = np.array([1.0, 1.0, 1.0]), np.full(3, 5.0)
    matrix = np.array([row, 2.0 * row])
    for second, expected in ((4.0, OPTIMAL), (4.1, INFEASIBLE)):
        right = [2.0, second]
        limits = [np.concatenate([sign * bounds, right]) for sign in (-1.0, 1.0)]
        flag, x, _ = solve(hessian, gradient, matrix, *limits)
        assert flag == expected
        if flag == OPTIMAL:  # the nearest point to -gradient in the plane
            np.testing.assert_allclose(x, -gradient + 5.0 / 3.0, atol=1e-15)


def test_what_cannot_be_within_the_bounds_is_told():
    limits = [np.array([0.0, 0.0, 3.0]), np.array([1.0, 1.0, 4.0])]
    assert solve(np.ones(2), np.zeros(2), np.ones((1, 2)), *limits)[0] == INFEASIBLE
    crossed = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    assert solve(np.ones(2), np.zeros(2), np.zeros((0, 2)), *crossed)[0] == INFEASIBLE


def test_the_limit_of_steps_ends_it():
    program = (np.ones(20), -10.0 * np.ones(20), np.zeros((0, 20)), -np.ones(20), np.ones(20))
    assert solve(*program, limit=5)[0] == LIMIT
    flag, x, iterations = solve(*program)
    assert (flag, iterations) == (OPTIMAL, 20)
    np.testing.assert_allclose(x, 1.0, rtol=1e-15)


def cascade(rng, *, reach, yielding=(), **options):
    n, hard, count = 8, 2, 2
    hessian, weights = rng.uniform(0.1, 1.0, n), np.array([1.0, 3.0])
    item = GoalProgram("daqp", hessian, hard, weights, yielding=yielding, **options)
    item.lower_bounds[:], item.upper_bounds[:] = 1.0, 10.0
    item.matrix[:] = rng.normal(size=(hard + count, n))
    item.gradient[:] = rng.normal(size=n)
    item.right[:] = item.matrix @ rng.uniform(3.0, 7.0, n)
    item.right[hard:] += reach * rng.normal(size=count)
    if yielding and rng.random() < 0.5:
        # the hard rows need more than these bounds have
        item.lower_bounds[yielding[0]], item.upper_bounds[yielding[0]] = 30.0, 40.0
    return item, weights, hessian


@pytest.mark.parametrize("reach", [0.0, 40.0])
@pytest.mark.parametrize("yielding", [(), (6, 7)])
@pytest.mark.parametrize("price", [np.inf, 3.0])
@pytest.mark.parametrize("regular", [0.0, 3.0])
def test_the_cascade_is_that_of_python(reach, yielding, price, regular):
    rng = np.random.default_rng(4)
    options = {"yielding": yielding, "price": price, "regular": regular}
    found, damped = set(), 0
    for _ in range(40):
        item, weights, hessian = cascade(rng, reach=reach, **options)
        damped += conditioning(item.matrix[2:], hessian, item.shares) < regular
        low, up = item.lower_bounds.copy(), item.upper_bounds.copy()
        x, missing, what = goals(item, weights, hessian, yielding)
        result = item.solve()
        np.testing.assert_array_equal([low, up], [item.lower_bounds, item.upper_bounds])
        assert what == {"attained": result.attained, "limited": result.limited, "failed": 0}
        size = np.abs(result.x).max()
        tolerance = 1e-12 if result.attained and not yielding else 1e-4
        np.testing.assert_allclose(x, result.x, rtol=0.0, atol=tolerance * size)
        np.testing.assert_allclose(missing[2:], result.missing, atol=1e-4 * max(reach, 1e-6))
        found.add((result.attained, result.limited))
    assert any(not attained for attained, _ in found) == bool(reach or yielding or regular)
    assert 10 < damped < 30 if regular else not damped


def test_bounds_that_are_open_do_not_count():
    flag, x, iterations = solve(
        np.ones(2), np.array([3.0, -4.0]), np.zeros((0, 2)), np.full(2, -QP_INFINITY),
        np.full(2, np.inf),
    )  # fmt: skip
    assert (flag, iterations) == (OPTIMAL, 0)
    np.testing.assert_array_equal(x, [-3.0, 4.0])
