"""The QP interface: both solvers against SciPy, optimality conditions, fallbacks, continuity."""

import sys

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from cards_core.errors import ShapeError, UnknownNameError
from cards_core.optimize.qp import (
    QP_INFINITY,
    QpMethod,
    QpStatus,
    SolverUnavailableError,
    clamped_least_squares,
)
from cards_core.optimize.qp_backends import QP_SOLVERS, make_qp_solver

# OSQP stops at a tolerance, or at an iteration limit with the fallback's x; DAQP is exact
TOLERANCE = {"daqp": 1e-6, "osqp": 1e-2}

both = pytest.mark.parametrize("name", QP_SOLVERS)


def load(qp, data):
    for key, value in data.items():
        getattr(qp, key)[:] = value
    return qp


def tension_problem(rng, n, p, *, feasible=True):
    """Data like those of a controller: small lever arms, forces 10..5000, weights up to 1e10."""
    matrix = 0.05 * rng.normal(size=(p, n))
    goal = matrix @ rng.uniform(10.0, 200.0, n)
    if not feasible:
        goal += 30.0 * rng.normal(size=p)
    return {
        "hessian": np.diag(rng.uniform(0.5, 2.0, n)),
        "gradient": 30.0 * rng.normal(size=n),
        "matrix": matrix,
        "row_lower": goal,
        "row_upper": goal,
        "lower_bounds": np.full(n, 10.0),
        "upper_bounds": np.full(n, rng.choice([100.0, 5000.0])),
    }


def oracle(data, weights):
    """SciPy's bounded least squares for a program of soft equalities."""
    root = np.linalg.cholesky(data["hessian"]).T
    factor = np.vstack([root, np.sqrt(weights)[:, None] * data["matrix"]])
    target = -np.linalg.solve(root.T, data["gradient"])
    target = np.concatenate([target, np.sqrt(weights) * data["row_lower"]])
    low, up = data["lower_bounds"], data["upper_bounds"]
    free = low < up
    x = low.copy()
    if free.any():
        target = target - factor[:, ~free] @ x[~free]
        bounds = (low[free], up[free])
        x[free] = lsq_linear(factor[:, free], target, bounds, method="bvls", tol=1e-14).x
    return x


def cost(qp, x):
    product = qp.matrix @ x
    gap = product - np.clip(product, qp.row_lower, qp.row_upper)
    soft = np.isfinite(qp.weights)
    slack = 0.5 * np.sum(qp.weights[soft] * gap[soft] ** 2)
    return 0.5 * x @ qp.hessian @ x + qp.gradient @ x + slack


def check(qp, x, name):
    result = qp.solve(new_hessian=True)
    if name == "daqp":
        assert result.status is QpStatus.OPTIMAL
        assert result.method is QpMethod.SOLVER
    product = qp.matrix @ result.x
    gap = product - np.clip(product, qp.row_lower, qp.row_upper)
    size = 1.0 + np.abs(x).max() / 1e3
    # OSQP's accuracy is relative to its largest term: w times what is missing
    if name == "daqp" or np.abs(gap).max(initial=0.0) < 0.1:
        assert np.abs(result.x - x).max() <= TOLERANCE[name] * size
    assert cost(qp, result.x) - cost(qp, x) <= 1e-6 * (1.0 + abs(cost(qp, x)))
    np.testing.assert_allclose(result.residual, gap, atol=1e-9)


@both
@pytest.mark.parametrize("feasible", [True, False])
def test_random_soft_programs_agree_with_scipy(name, feasible):
    rng = np.random.default_rng(1)
    for _ in range(60):
        n, p = rng.integers(1, 13), rng.integers(0, 6)
        weights = 10.0 ** rng.uniform(4, 10, p)
        data = tension_problem(rng, n, p, feasible=feasible)
        check(load(make_qp_solver(name, n, weights), data), oracle(data, weights), name)


@both
def test_degenerate_programs_agree_with_scipy(name):
    rng = np.random.default_rng(2)
    for case in range(60):
        n, p = rng.integers(3, 12), 4
        weights = np.full(p, 1e8)
        data = tension_problem(rng, n, p, feasible=case % 2 == 0)
        matrix, goal = data["matrix"], data["row_lower"]
        match case % 6:
            case 0:  # the same row twice, with the same or another goal
                matrix[1] = matrix[0]
                goal[1] = goal[0] + (case % 4)
            case 1:  # a row without authority
                matrix[2] = 0.0
            case 2:  # opposite rows
                matrix[3] = -2.0 * matrix[0]
            case 3:  # a variable without authority
                matrix[:, 0] = 0.0
            case 4:  # equal bounds
                data["lower_bounds"][:2] = data["upper_bounds"][:2]
            case 5:  # rank one
                matrix[:] = np.outer(rng.normal(size=p), matrix[0])
        check(load(make_qp_solver(name, n, weights), data), oracle(data, weights), name)


@both
def test_more_rows_than_variables(name):
    rng = np.random.default_rng(3)
    for _ in range(20):
        weights = 10.0 ** rng.uniform(4, 8, 6)
        data = tension_problem(rng, 2, 6, feasible=False)
        check(load(make_qp_solver(name, 2, weights), data), oracle(data, weights), name)


@pytest.mark.parametrize("ratio", [1e-8, 1e-10, 1e-12, 1e-13])
def test_stiff_soft_rows_with_saturated_variables_are_never_called_infeasible(ratio):
    """The pivot of such a row is 1 / (w |A|^2), down to what double precision can tell apart."""
    rng = np.random.default_rng(14)
    for case in range(100):
        n, p = rng.integers(3, 12), rng.integers(1, 6)
        matrix = rng.normal(size=(p, n))
        matrix /= np.linalg.norm(matrix, axis=1)[:, None]
        if case % 3 == 0:
            matrix[0] = matrix[-1]
        goal = matrix @ rng.uniform(1.0, 20.0, n) + 30.0 * rng.normal(size=p) * (case % 2)
        data = {
            "hessian": np.eye(n),
            "gradient": np.zeros(n),
            "matrix": matrix,
            "row_lower": goal,
            "row_upper": goal,
            "lower_bounds": np.full(n, 1.0),
            "upper_bounds": np.full(n, rng.choice([5.0, 20.0, 500.0])),
        }
        weights = np.full(p, 1.0 / ratio)
        qp = load(make_qp_solver("daqp", n, weights), data)
        result = qp.solve()
        assert result.method is QpMethod.SOLVER
        best = cost(qp, oracle(data, weights))
        assert cost(qp, result.x) - best <= 1e-5 * (1.0 + best)


def test_redundant_hard_rows_are_no_contradiction():
    rng = np.random.default_rng(15)
    for case in range(100):
        n, rank = 9, int(rng.integers(1, 4))
        p = rank + int(rng.integers(1, 4))
        matrix = rng.normal(size=(p, rank)) @ rng.normal(size=(rank, n))
        if case % 2:
            matrix *= 10.0 ** rng.uniform(-2, 2, p)[:, None]
        goal = matrix @ rng.uniform(11.0, 90.0, n)
        qp = make_qp_solver("daqp", n, np.full(p, np.inf))
        qp.matrix[:], qp.row_lower[:], qp.row_upper[:] = matrix, goal, goal
        qp.lower_bounds[:], qp.upper_bounds[:] = 10.0, 100.0
        result = qp.solve()
        assert result.method is QpMethod.SOLVER
        assert np.abs(result.residual / np.linalg.norm(matrix, axis=1)).max() < 1e-9


@both
def test_all_bounds_equal_leave_one_point(name):
    qp = make_qp_solver(name, 3, [1e6])
    qp.lower_bounds[:] = qp.upper_bounds[:] = [1.0, 2.0, 3.0]
    qp.matrix[:] = 1.0
    qp.row_lower[:] = qp.row_upper[:] = 5.0
    result = qp.solve()
    np.testing.assert_array_equal(result.x, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(result.residual, [1.0], atol=1e-12)


@both
def test_without_variables_the_goal_is_the_residual(name):
    qp = make_qp_solver(name, 0, [1e6, 1.0])
    qp.row_lower[:] = qp.row_upper[:] = [3.0, -4.0]
    result = qp.solve()
    assert result.status is QpStatus.OPTIMAL
    np.testing.assert_array_equal(result.residual, [-3.0, 4.0])
    hard = make_qp_solver(name, 0, [np.inf])
    hard.row_lower[:] = 1.0
    assert hard.solve().status is QpStatus.INFEASIBLE


@both
def test_hard_and_inequality_rows_satisfy_the_optimality_conditions(name):
    """-gradient must be a combination of the active constraints, nonnegative ones outwards."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        n, p = 8, 5
        weights = np.array([np.inf, np.inf, np.inf, 1e4, 1e4])
        qp = make_qp_solver(name, n, weights)
        root = rng.normal(size=(n, n))
        inside = rng.uniform(-1.0, 1.0, n)
        matrix = rng.normal(size=(p, n))
        width = np.array([0.0, 0.3, 0.3, 0.0, 0.3])
        load(
            qp,
            {
                "hessian": root @ root.T + 0.1 * np.eye(n),
                "gradient": 5.0 * rng.normal(size=n),
                "matrix": matrix,
                "row_lower": matrix @ inside - width,
                "row_upper": matrix @ inside + width,
                "lower_bounds": -1.0,
                "upper_bounds": 1.0,
            },
        )
        result = qp.solve()
        assert result.status is QpStatus.OPTIMAL
        x, tol = result.x, {"daqp": 1e-8, "osqp": 1e-5}[name]
        assert np.abs(result.residual[:3]).max() < tol  # hard rows hold
        gradient = qp.hessian @ x + qp.gradient
        gradient += matrix[3:].T @ (weights[3:] * result.residual[3:])
        normals = [np.eye(n)[i] for i in range(n) if x[i] > 1.0 - tol]
        normals += [-np.eye(n)[i] for i in range(n) if x[i] < -1.0 + tol]
        for i in range(3):
            value = matrix[i] @ x
            normals += [matrix[i]] if value > qp.row_upper[i] - tol else []
            normals += [-matrix[i]] if value < qp.row_lower[i] + tol else []
        left = nnls(np.array(normals).T, -gradient)[1] if normals else np.linalg.norm(gradient)
        # the gradient of a soft row amplifies the error of x by its weight
        assert left < {"daqp": 1e-6, "osqp": 1.0}[name]


def test_solvers_agree():
    rng = np.random.default_rng(5)
    for case in range(40):
        weights = np.array([np.inf, 1e8, 1e6])
        data = tension_problem(rng, 9, 3, feasible=case % 2 == 0)
        data["row_upper"] = data["row_lower"] + [0.0, 0.0, 1.0]
        inside = np.full(9, 50.0)
        data["row_lower"][0] = data["row_upper"][0] = data["matrix"][0] @ inside
        exact, splitting = (load(make_qp_solver(n, 9, weights), data).solve() for n in QP_SOLVERS)
        assert exact.method is QpMethod.SOLVER
        if case % 2 == 0:
            assert splitting.method is QpMethod.SOLVER
        np.testing.assert_allclose(splitting.x, exact.x, atol=TOLERANCE["osqp"])


def test_large_weights_keep_ten_digits():
    """A feasible soft row of weight 1e10 gives what the hard row gives."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        data = tension_problem(rng, 11, 4)
        data["gradient"] = np.zeros(11)
        soft = load(make_qp_solver("daqp", 11, np.full(4, 1e10)), data).solve()
        hard = load(make_qp_solver("daqp", 11, np.full(4, np.inf)), data).solve()
        if hard.status is QpStatus.OPTIMAL:
            # leak = multiplier / weight, multiplier ~ tension / lever arm
            assert np.abs(soft.residual).max() < 1e-5
            np.testing.assert_allclose(soft.x, hard.x, rtol=1e-5, atol=1e-4)


@both
def test_warm_starts_give_what_cold_starts_give(name):
    rng = np.random.default_rng(7)
    weights = np.full(4, 1e8)
    data = tension_problem(rng, 11, 4)
    warm = load(make_qp_solver(name, 11, weights), data)
    direction = 0.05 * rng.normal(size=(4, 11))
    base, goal = data["matrix"].copy(), data["row_lower"].copy()
    for k in range(100):
        data["matrix"] = base + np.sin(0.1 * k) * direction
        data["row_lower"] = data["row_upper"] = goal * np.cos(0.05 * k)
        data["gradient"] = 50.0 * np.sin(0.2 * k + np.arange(11.0))
        if k % 10 == 0:
            data["hessian"] = np.diag(rng.uniform(0.5, 2.0, 11))
        x = load(warm, data).solve(new_hessian=k % 10 == 0).x.copy()
        cold = load(make_qp_solver(name, 11, weights), data).solve().x
        np.testing.assert_allclose(x, cold, atol=2 * TOLERANCE[name])


@both
def test_rows_may_change_between_equality_and_inequality(name):
    qp = make_qp_solver(name, 2, [np.inf])
    qp.matrix[:] = [1.0, 1.0]
    for low, up, expected in ((2.0, 2.0, 1.0), (-1.0, 1.0, 0.0), (3.0, 9.0, 1.5), (4.0, 4.0, 2.0)):
        qp.row_lower[:], qp.row_upper[:] = low, up
        np.testing.assert_allclose(qp.solve().x, expected, atol=1e-6)


@both
def test_contradicting_hard_rows_are_reported_and_clamped(name):
    qp = make_qp_solver(name, 2, [np.inf])
    qp.matrix[:] = [1.0, 1.0]
    qp.lower_bounds[:], qp.upper_bounds[:] = 0.0, 1.0
    qp.row_lower[:] = qp.row_upper[:] = 5.0
    result = qp.solve()
    assert (result.status, result.method) == (QpStatus.INFEASIBLE, QpMethod.CLAMPED)
    np.testing.assert_allclose(result.x, [1.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(result.residual, [-3.0], atol=1e-9)
    qp.row_lower[:] = qp.row_upper[:] = 1.0  # and back again
    result = qp.solve()
    assert (result.status, result.method) == (QpStatus.OPTIMAL, QpMethod.SOLVER)
    np.testing.assert_allclose(result.x, [0.5, 0.5], atol=1e-6)


@both
def test_crossed_bounds_are_infeasible_and_finite(name):
    qp = make_qp_solver(name, 2, [1e6])
    qp.solve()
    qp.lower_bounds[0], qp.upper_bounds[0] = 2.0, 1.0
    result = qp.solve()
    assert result.status is QpStatus.INFEASIBLE
    assert result.method is QpMethod.CLAMPED
    assert np.isfinite(result.x).all()


@both
@pytest.mark.parametrize("where", ["matrix", "gradient", "row_lower", "upper_bounds", "hessian"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_data_that_are_not_finite_give_the_smallest_x_and_no_nan(name, where, poison):
    rng = np.random.default_rng(8)
    data = tension_problem(rng, 5, 2)
    qp = load(make_qp_solver(name, 5, [1e8, 1e8]), data)
    good = qp.solve().x.copy()
    entry = getattr(qp, where)
    entry.flat[0], kept = poison, entry.flat[0]
    result = qp.solve(new_hessian=True)
    assert (result.status, result.method) == (QpStatus.INVALID_DATA, QpMethod.NEAREST_TO_ZERO)
    np.testing.assert_array_equal(result.x, 10.0)
    entry.flat[0] = kept
    np.testing.assert_allclose(qp.solve(new_hessian=True).x, good, atol=TOLERANCE[name])


@both
def test_hessian_without_curvature_falls_back(name):
    """Indefinite H: no solver accepts it; the result is finite, within bounds, and says so."""
    qp = make_qp_solver(name, 2)
    qp.hessian[:] = np.diag([1.0, -1.0])
    qp.lower_bounds[:], qp.upper_bounds[:] = -1.0, 2.0
    result = qp.solve()
    assert result.method is QpMethod.CLAMPED
    assert result.status is not QpStatus.OPTIMAL
    assert np.isfinite(result.x).all()
    assert np.all((result.x >= -1.0) & (result.x <= 2.0))


@both
def test_a_solver_that_fails_once_is_tried_again_cold(name, monkeypatch):
    rng = np.random.default_rng(9)
    data = tension_problem(rng, 6, 2)
    weights = [1e8, 1e8]
    qp = load(make_qp_solver(name, 6, weights), data)
    good = qp.solve().x.copy()
    original, calls = qp._solve, []

    def flaky(new_hessian):
        calls.append(new_hessian)
        if len(calls) == 1:
            return QpStatus.MAX_ITERATIONS, np.full(6, np.nan), 7
        return original(new_hessian)

    monkeypatch.setattr(qp, "_solve", flaky)
    result = qp.solve()
    assert (result.status, result.method) == (QpStatus.OPTIMAL, QpMethod.REGULARISED)
    assert result.iterations >= 7
    assert calls == [False, True]
    np.testing.assert_allclose(result.x, good, atol=2 * TOLERANCE[name])
    np.testing.assert_array_equal(qp.hessian, data["hessian"])
    assert qp.solve().method is QpMethod.SOLVER


@pytest.mark.parametrize("feasible", [True, False])
def test_clamped_fallback_finds_the_optimum_of_soft_programs(feasible, monkeypatch):
    rng = np.random.default_rng(10)
    for _ in range(20):
        weights = np.full(3, 1e6)
        data = tension_problem(rng, 8, 3, feasible=feasible)
        data["row_upper"] = data["row_lower"] + [0.0, 0.0, 2.0]
        qp = load(make_qp_solver("daqp", 8, weights), data)
        good = qp.solve().x.copy()
        monkeypatch.setattr(qp, "_solve", lambda _: (QpStatus.NUMERICAL, np.full(8, np.nan), 0))
        result = qp.solve()
        assert (result.status, result.method) == (QpStatus.NUMERICAL, QpMethod.CLAMPED)
        assert cost(qp, result.x) <= cost(qp, good) + 1e-5 * abs(cost(qp, good))


def test_clamped_fallback_without_least_squares_stays_within_bounds(monkeypatch):
    rng = np.random.default_rng(11)
    qp = load(make_qp_solver("daqp", 6, [1e8, 1e8]), tension_problem(rng, 6, 2, feasible=False))

    def broken(*_args, **_kwargs):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("scipy.optimize.lsq_linear", broken)
    x = clamped_least_squares(qp)
    assert np.isfinite(x).all()
    assert np.all((x >= qp.lower_bounds) & (x <= qp.upper_bounds))


@both
def test_solution_is_continuous_across_the_feasibility_boundary(name):
    """|dx| <= sqrt(w / h) / 2 |db| for min h/2 |x|^2 + w/2 |A x - b|^2, bounds or not."""
    rng = np.random.default_rng(12)
    weight = 1e6
    data = tension_problem(rng, 6, 3)
    data["gradient"], data["hessian"] = np.zeros(6), np.eye(6)
    data["upper_bounds"] = np.full(6, 100.0)
    qp = load(make_qp_solver(name, 6, np.full(3, weight)), data)
    start, direction = data["matrix"] @ np.full(6, 50.0), np.array([1.0, -0.5, 0.3])
    x, residuals, step = [], [], 0.01
    for k in range(1500):
        qp.row_lower[:] = qp.row_upper[:] = start + step * k * direction
        result = qp.solve()
        assert result.method is QpMethod.SOLVER
        x.append(result.x.copy())
        residuals.append(np.linalg.norm(result.residual))
    assert residuals[0] < 1e-2
    assert residuals[-1] > 1.0  # the sweep did cross the boundary
    change = np.linalg.norm(np.diff(x, axis=0), axis=1)
    db = step * np.linalg.norm(direction)
    assert change.max() <= 0.5 * np.sqrt(weight) * db + 2 * TOLERANCE[name]
    # and far less in practice: lever arms are ~0.05 m
    assert change.max() < 200.0 * db
    assert np.abs(np.diff(residuals)).max() <= db + TOLERANCE[name]


@both
def test_results_repeat_to_the_last_bit(name):
    runs = []
    for _ in range(2):
        rng = np.random.default_rng(13)
        qp = make_qp_solver(name, 8, np.full(3, 1e8))
        xs = []
        for _ in range(20):
            load(qp, tension_problem(rng, 8, 3, feasible=False))
            xs.append(qp.solve(new_hessian=True).x.copy())
        runs.append(np.array(xs))
    np.testing.assert_array_equal(runs[0], runs[1])


def test_unknown_solver_lists_the_known_ones():
    with pytest.raises(UnknownNameError, match=r"qaqp.*daqp, osqp"):
        make_qp_solver("qaqp", 3)


@both
def test_missing_package_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SolverUnavailableError, match=f"package {name}"):
        make_qp_solver(name, 3)


@pytest.mark.parametrize("weights", [[0.0], [-1.0], [np.nan], [[1.0]]])
def test_weights_are_checked(weights):
    with pytest.raises(ShapeError, match="weight > 0"):
        make_qp_solver("daqp", 3, weights)


def test_absent_bounds_are_qp_infinity():
    qp = make_qp_solver("daqp", 2, [np.inf])
    assert np.all(qp.upper_bounds == QP_INFINITY)
    qp.gradient[:] = [-3.0, 4.0]
    np.testing.assert_allclose(qp.solve().x, [3.0, -4.0], atol=1e-12)
