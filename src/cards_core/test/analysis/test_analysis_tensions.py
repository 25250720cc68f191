"""Tension distributions against SciPy's HiGHS and SLSQP, closed forms, and what must fail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.spatial import ConvexHull, Delaunay, HalfspaceIntersection

from cards_core.analysis.status import PointStatus
from cards_core.analysis.tension_distribution import (
    METHODS,
    ClosedForm,
    LeastNorm,
    OptimallySafe,
    RedundancyError,
    TensionLimitError,
    make_tension_distribution,
)
from cards_core.analysis.tension_distribution.base import explain, null_space
from cards_core.analysis.tension_distribution.polytope import centroid, interval, polygon
from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError, UnknownNameError
from cards_core.formats import load

# an objective's error: of a program whose data are of size 1e3 and whose answer DAQP knows to 1e-7
TOLERANCE = 1e-6

SIMPLE = [name for name in METHODS if name != "least_interaction"]
PROGRAMS = ("least_norm", "least_sum", "least_maximum", "optimally_safe")
GENERAL = [name for name in SIMPLE if name != "barycentre"]


def problem(rng, redundancy=None, *, feasible=True):
    """Return A, w and limits like those of robots: nv up to 6, up to 5 muscles more."""
    nv = int(rng.integers(1, 7))
    m = nv + int(rng.integers(0, 6) if redundancy is None else redundancy)
    matrix = 0.2 * rng.normal(size=(nv, m))
    low = np.full(m, rng.choice([0.0, 5.0, 10.0]))
    high = np.full(m, rng.choice([80.0, 720.0, 5000.0]))
    tensions = rng.uniform(low, high) if feasible else rng.uniform(low - 100, high + 400)
    return matrix, matrix @ tensions, low, high


def balance(matrix, needed):
    return {"type": "eq", "fun": lambda f: matrix @ f - needed, "jac": lambda f: matrix}


def oracle(name, matrix, needed, low, high):
    """The minimum value of a method's objective, by HiGHS; None where there is no answer."""
    nv, m = matrix.shape
    eye, ones, zero = np.eye(m), np.ones((m, 1)), np.zeros((nv, 1))
    free = [(None, None)]
    match name:
        case "least_sum":
            found = linprog(
                np.ones(m), A_eq=matrix, b_eq=needed, bounds=np.column_stack([low, high])
            )
        case "least_maximum":
            found = linprog(
                np.append(np.zeros(m), 1.0),
                A_eq=np.hstack([matrix, zero]),
                b_eq=needed,
                A_ub=np.hstack([eye, -ones]),
                b_ub=np.zeros(m),
                bounds=[*zip(low, high, strict=True), *free],
            )
        case "optimally_safe":
            found = linprog(
                np.append(np.zeros(m), -1.0),
                A_eq=np.hstack([matrix, zero]),
                b_eq=needed,
                A_ub=np.vstack([np.hstack([-eye, ones]), np.hstack([eye, ones])]),
                b_ub=np.concatenate([-low, high]),
                bounds=free * m + [(0.0, None)],
            )
    return None if found.status == 2 else float(found.fun)


def objective(name, tensions, low, high):
    match name:
        case "least_sum":
            return tensions.sum()
        case "least_maximum":
            return tensions.max()
        case "optimally_safe":
            return -min((tensions - low).min(), (high - tensions).min())
        case _:
            return 0.5 * tensions @ tensions


# Linear programs -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROGRAMS[1:])
def test_linear_programs_agree_with_highs(name):
    """On feasible and infeasible data alike."""
    rng = np.random.default_rng(1)
    answers = {True: 0, False: 0}
    for trial in range(150):
        matrix, needed, low, high = problem(rng, feasible=trial % 3 > 0)
        best = oracle(name, matrix, needed, low, high)
        found = make_tension_distribution(name, low, high, len(needed)).solve(matrix, needed)
        answers[best is not None] += 1
        if best is None:
            assert found.status is PointStatus.INFEASIBLE
            continue
        assert found.status is PointStatus.FEASIBLE
        assert objective(name, found.tensions, low, high) == pytest.approx(
            best, abs=TOLERANCE * high[0]
        )
    assert min(answers.values()) > 20


@pytest.mark.parametrize("name", PROGRAMS[1:])
def test_degenerate_linear_programs_have_one_answer(name):
    """Twin muscles: every split between them costs the same; least norm is half and half."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        matrix, needed, low, high = problem(rng, redundancy=2)
        matrix = np.hstack([matrix, matrix[:, :1]])
        low, high = np.append(low, low[0]), np.append(high, high[0])
        best = oracle(name, matrix, needed, low, high)
        found = make_tension_distribution(name, low, high, len(needed)).solve(matrix, needed)
        assert objective(name, found.tensions, low, high) == pytest.approx(
            best, abs=TOLERANCE * high[0]
        )
        assert found.tensions[0] == pytest.approx(found.tensions[-1], abs=1e-5 * high[0])


@pytest.mark.parametrize("name", ["least_norm", "least_sum", "least_maximum"])
def test_no_upper_limits(name):
    rng = np.random.default_rng(3)
    for _ in range(30):
        matrix, needed, low, high = problem(rng, redundancy=3)
        high[:] = np.inf
        found = make_tension_distribution(name, low, high, len(needed)).solve(matrix, needed)
        assert found.status is PointStatus.FEASIBLE
        if name != "least_norm":
            best = oracle(name, matrix, needed, low, high)
            size = max(1.0, found.tensions.max())
            assert objective(name, found.tensions, low, high) == pytest.approx(
                best, abs=TOLERANCE * size
            )


# Norms and centres -----------------------------------------------------------------------------


def test_least_norm_is_the_minimum():
    """First-order optimality, which is sufficient for a convex program, and SLSQP."""
    rng = np.random.default_rng(4)
    for trial in range(60):
        matrix, needed, low, high = problem(rng)
        found = LeastNorm(low, high, len(needed)).solve(matrix, needed)
        assert found.status is PointStatus.FEASIBLE
        f = found.tensions
        inner = (f > low + 1e-6) & (f < high - 1e-6)
        multipliers = np.linalg.lstsq(matrix[:, inner].T, f[inner], rcond=None)[0]
        if np.linalg.matrix_rank(matrix[:, inner]) == len(needed):
            slope = f - matrix.T @ multipliers
            tolerance = 1e-6 * (1 + np.abs(f).max())
            assert np.abs(slope[inner]).max(initial=0.0) < tolerance
            assert np.all(slope[f <= low + 1e-6] > -tolerance)
            assert np.all(slope[f >= high - 1e-6] < tolerance)
        if trial < 15:
            other = minimize(
                lambda x: 0.5 * x @ x,
                f + rng.normal(size=f.shape),
                jac=lambda x: x,
                bounds=np.column_stack([low, high]),
                constraints=balance(matrix, needed),
                method="SLSQP",
                options={"ftol": 1e-12, "maxiter": 500},
            )
            if other.success:
                assert 0.5 * f @ f <= other.fun * (1 + 1e-6) + 1e-6


def test_least_norm_around_a_reference():
    rng = np.random.default_rng(5)
    matrix, needed, low, high = problem(rng, redundancy=3)
    middle = 0.5 * (low + high)
    near = LeastNorm(low, high, len(needed), middle).solve(matrix, needed).tensions
    closed = ClosedForm(low, high, len(needed)).solve(matrix, needed)
    if closed.status is PointStatus.FEASIBLE:
        np.testing.assert_allclose(near, closed.tensions, atol=1e-6 * high[0])
    assert np.linalg.norm(near - middle) <= np.linalg.norm(closed.tensions - middle) + 1e-6 or (
        closed.status is not PointStatus.FEASIBLE
    )


def test_closed_form_is_the_projection_of_the_middle():
    rng = np.random.default_rng(6)
    for _ in range(40):
        matrix, needed, low, high = problem(rng)
        found = make_tension_distribution("closed_form", low, high, len(needed)).solve(
            matrix, needed
        )
        middle = 0.5 * (low + high)
        expected = middle + np.linalg.pinv(matrix) @ (needed - matrix @ middle)
        np.testing.assert_allclose(found.tensions, expected, atol=1e-7 * high[0])
        inside = np.all((expected >= low) & (expected <= high))
        assert (found.status is PointStatus.FEASIBLE) == inside


def test_improved_closed_form_finds_more():
    rng = np.random.default_rng(7)
    count = {"closed_form": 0, "improved_closed_form": 0}
    for _ in range(100):
        matrix, needed, low, high = problem(rng, redundancy=2)
        for name in count:
            found = make_tension_distribution(name, low, high, len(needed)).solve(matrix, needed)
            count[name] += found.status is PointStatus.FEASIBLE
            assert found.status in (PointStatus.FEASIBLE, PointStatus.NOT_CONVERGED)
    assert count["closed_form"] < count["improved_closed_form"] <= 100


@pytest.mark.parametrize("redundancy", [1, 2])
def test_barycentre_is_the_centroid_of_the_polytope(redundancy):
    """Against the mean of many points of the polytope's triangulation by Qhull."""
    rng = np.random.default_rng(8)
    for _ in range(40):
        matrix, needed, low, high = problem(rng, redundancy=redundancy)
        found = make_tension_distribution("barycentre", low, high, len(needed)).solve(
            matrix, needed
        )
        assert found.status is PointStatus.FEASIBLE
        basis, inverse, _ = null_space(matrix)
        start = inverse @ needed
        if redundancy == 1:
            ends = [  # the direction is scaled to 1 in the sense of linprog
                linprog(
                    [s],
                    np.vstack([basis, -basis]),
                    [*(high - start), *(start - low)],
                    bounds=(None, None),
                ).x[0]
                for s in (1.0, -1.0)
            ]
            centre = np.array([0.5 * sum(ends)])
        else:
            inside = OptimallySafe(low, high, len(needed)).solve(matrix, needed)
            point = basis.T @ (inside.tensions - start)
            margin = np.minimum(high - inside.tensions, inside.tensions - low).min()
            if margin < 1e-3:
                continue
            halfspaces = np.vstack(
                [np.column_stack([basis, start - high]), np.column_stack([-basis, low - start])]
            )
            corners = HalfspaceIntersection(halfspaces, point).intersections
            hull = corners[ConvexHull(corners).vertices]
            triangles = hull[Delaunay(hull).simplices]
            areas = np.abs(np.linalg.det(triangles[:, 1:] - triangles[:, :1]))
            centre = areas @ triangles.mean(axis=1) / areas.sum()
        np.testing.assert_allclose(found.tensions, start + basis @ centre, atol=1e-6 * high[0])


def test_barycentre_of_more_redundancy_names_what_there_is():
    _, needed, low, high = problem(np.random.default_rng(9), redundancy=3)
    with pytest.raises(RedundancyError, match="analytic_centre"):
        make_tension_distribution("barycentre", low, high, len(needed))


def test_barycentre_at_a_singular_pose():
    """Five muscles for three forces of which two are independent: redundancy 3 there."""
    rng = np.random.default_rng(9)
    matrix = rng.normal(size=(3, 5))
    matrix[2] = matrix[0] + matrix[1]
    distribution = make_tension_distribution("barycentre", np.zeros(5), np.full(5, 9.0), 3)
    found = distribution.solve(matrix, matrix @ np.full(5, 4.0))
    assert found.status is PointStatus.NOT_CONVERGED
    impossible = distribution.solve(matrix, matrix @ np.full(5, 4.0) + np.eye(3)[2])
    assert impossible.status is PointStatus.RANK_DEFICIENT


def test_centroid_of_shapes():
    triangle = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    np.testing.assert_allclose(centroid(triangle), [1.0, 1.0])
    np.testing.assert_allclose(centroid(triangle + 1e6), [1e6 + 1, 1e6 + 1], atol=1e-8)
    flat = np.array([[0.0, 0.0], [1.0, 1.0], [4.0, 4.0], [1.0, 1.0]])
    np.testing.assert_allclose(centroid(flat), [2.0, 2.0])
    np.testing.assert_allclose(centroid(np.array([[2.0, 1.0]])), [2.0, 1.0])


def test_empty_intervals_and_polygons():
    assert interval(np.array([1.0, 1.0]), np.array([0.0, 2.0]), np.array([1.0, 3.0])) is None
    assert interval(np.array([0.0]), np.array([1.0]), np.array([2.0])) is None
    square = np.vstack([np.eye(2), [[1.0, 1.0]]])
    assert polygon(square, np.array([0.0, 0, 3]), np.array([1.0, 1, 4])) is None
    touching = polygon(square, np.array([0.0, 0, 2]), np.array([1.0, 1, 4]))
    np.testing.assert_allclose(touching, np.ones_like(touching))


def test_analytic_centre_is_stationary_and_chebyshev_s_ball_touches():
    rng = np.random.default_rng(10)
    for _ in range(40):
        matrix, needed, low, high = problem(rng)
        basis, inverse, _ = null_space(matrix)
        if not basis.shape[1]:
            continue
        start = inverse @ needed
        f = (
            make_tension_distribution("analytic_centre", low, high, len(needed))
            .solve(matrix, needed)
            .tensions
        )
        slope = 1.0 / (f - low) - 1.0 / (high - f)
        assert np.abs(basis.T @ slope).max() < 1e-6 * np.abs(slope).max() + 1e-9
        f = (
            make_tension_distribution("chebyshev_centre", low, high, len(needed))
            .solve(matrix, needed)
            .tensions
        )
        norms = np.linalg.norm(basis, axis=1)
        radius = np.minimum((high - f) / norms, (f - low) / norms).min()
        r = basis.shape[1]
        best = linprog(
            np.append(np.zeros(r), -1.0),
            A_ub=np.vstack([np.column_stack([basis, norms]), np.column_stack([-basis, norms])]),
            b_ub=np.concatenate([high - start, start - low]),
            bounds=[(None, None)] * r + [(0.0, None)],
        )
        assert radius == pytest.approx(-best.fun, abs=1e-6 * high[0])


@pytest.mark.parametrize("name", ["ipanema_1", "spherical_2s", "bm_arm", "planar_xy"])
def test_feasibility_of_real_poses_agrees_with_highs(name):
    """Every method that is not a closed form tells yes from no as an LP solver does."""
    dynamics = make_dynamics(load(name), "numeric")
    tree, rng = dynamics.tree, np.random.default_rng(15)
    low, high = np.array([[m.tension_min, m.tension_max] for m in dynamics.robot.muscles]).T
    methods = [
        make_tension_distribution(key, low, high, tree.nv)
        for key in SIMPLE
        if "closed_form" not in key
    ]
    answers = set()
    for k in range(40):
        q = np.clip(
            tree.integrate(tree.home, 0.2 * rng.normal(size=tree.nv)), tree.lower, tree.upper
        )
        state = dynamics.update(q if k % 2 else tree.random(rng), np.zeros(tree.nv))
        matrix, needed = -state.muscle_jacobian.T.copy(), state.gravity.copy()
        feasible = oracle("least_sum", matrix, needed, low, high) is not None
        answers.add(feasible)
        for method in methods:
            status = method.solve(matrix, needed).status
            assert status is (PointStatus.FEASIBLE if feasible else PointStatus.INFEASIBLE)
    assert answers == {True, False}


# All methods -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIMPLE)
def test_answers_hold_and_do_not_depend_on_the_past(name):
    rng = np.random.default_rng(11)
    nv, m = 4, 6
    low, high = np.full(m, 5.0), np.full(m, 300.0)
    used = make_tension_distribution(name, low, high, nv)
    for _ in range(40):
        matrix = 0.2 * rng.normal(size=(nv, m))
        needed = matrix @ rng.uniform(low, high)
        found = used.solve(matrix, needed)
        fresh = make_tension_distribution(name, low, high, nv).solve(matrix, needed)
        np.testing.assert_allclose(found.tensions, fresh.tensions, atol=1e-6)
        assert found.status is fresh.status
        if found.status is PointStatus.FEASIBLE:
            assert np.all(found.tensions >= low - 1e-6)
            assert np.all(found.tensions <= high + 1e-6)
            np.testing.assert_allclose(matrix @ found.tensions, needed, atol=1e-6)


@pytest.mark.parametrize("name", GENERAL)
def test_infeasible_says_what_is_nearest(name):
    rng = np.random.default_rng(12)
    for _ in range(10):
        matrix, _, low, high = problem(rng, redundancy=1)
        # farther than all muscles at their limits reach
        needed = np.abs(matrix).sum(axis=1) * high[0] * 1.5
        found = make_tension_distribution(name, low, high, len(needed)).solve(matrix, needed)
        assert found.status is PointStatus.INFEASIBLE
        assert np.all((found.tensions >= low) & (found.tensions <= high))
        np.testing.assert_allclose(found.residual, matrix @ found.tensions - needed)
        # no feasible direction lessens the residual
        slope = matrix.T @ found.residual
        scale = 1e-6 * np.abs(matrix).max() * np.abs(found.residual).max()
        assert np.all(slope[found.tensions < high] >= -scale)
        assert np.all(slope[found.tensions > low] <= scale)


@pytest.mark.parametrize("name", GENERAL)
def test_dependent_rows(name):
    """A robot whose muscles cannot make one joint force: that one is asked for, or not."""
    rng = np.random.default_rng(13)
    matrix = 0.2 * rng.normal(size=(3, 6))
    matrix[2] = matrix[0] - 2.0 * matrix[1]
    low, high = np.full(6, 1.0), np.full(6, 100.0)
    distribution = make_tension_distribution(name, low, high, 3)
    needed = matrix @ np.full(6, 50.0)
    found = distribution.solve(matrix, needed)
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(matrix @ found.tensions, needed, atol=1e-6)
    impossible = distribution.solve(matrix, needed + np.eye(3)[2])
    assert impossible.status is PointStatus.RANK_DEFICIENT
    assert np.abs(impossible.residual).max() > 0.1


@pytest.mark.parametrize("name", GENERAL)
def test_muscles_with_equal_limits(name):
    rng = np.random.default_rng(14)
    matrix = 0.2 * rng.normal(size=(2, 5))
    low, high = np.full(5, 1.0), np.full(5, 100.0)
    low[1] = high[1] = 30.0
    found = make_tension_distribution(name, low, high, 2).solve(
        matrix, matrix @ np.array([50.0, 30.0, 40.0, 60.0, 50.0])
    )
    assert found.status is PointStatus.FEASIBLE
    assert found.tensions[1] == pytest.approx(30.0, abs=1e-6)


@pytest.mark.parametrize("name", SIMPLE)
def test_degenerate_sizes_and_numbers(name):
    none = make_tension_distribution(name, np.zeros(0), np.zeros(0), 2)
    assert none.solve(np.zeros((2, 0)), np.ones(2)).status is PointStatus.NO_MUSCLES
    one = make_tension_distribution(name, np.zeros(1), np.full(1, 10.0), 1)
    found = one.solve(np.array([[0.5]]), np.array([2.0]))
    assert found.status is PointStatus.FEASIBLE
    assert found.tensions == pytest.approx([4.0], abs=1e-9)
    assert one.solve(np.array([[0.5]]), np.array([-2.0])).status is PointStatus.INFEASIBLE
    assert one.solve(np.array([[0.0]]), np.array([1.0])).status is PointStatus.RANK_DEFICIENT
    bad = one.solve(np.array([[np.nan]]), np.array([1.0]))
    assert bad.status is PointStatus.NOT_FINITE
    assert np.isnan(bad.tensions).all()
    few = make_tension_distribution(name, np.zeros(1), np.full(1, 10.0), 2)
    assert few.solve(np.array([[0.5], [0.0]]), np.ones(2)).status is PointStatus.RANK_DEFICIENT


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="least_norm"):
        make_tension_distribution("median", np.zeros(1), np.ones(1), 1)
    with pytest.raises(TensionLimitError, match="muscle 1"):
        LeastNorm(np.array([0.0, 5.0]), np.array([1.0, 2.0]), 1)
    with pytest.raises(TensionLimitError, match="muscle 0 has no largest"):
        ClosedForm(np.zeros(1), np.full(1, np.inf), 1)
    with pytest.raises(ShapeError, match=r"\(m,\)"):
        LeastNorm(np.zeros(2), np.ones(3), 1)


def test_infeasible_is_said_only_with_a_proof():
    """Near singular poses SciPy's bounded least squares sometimes end before their minimum."""
    rng = np.random.default_rng(11)
    for _ in range(600):
        nv = int(rng.integers(2, 7))
        m = nv + int(rng.integers(0, 9))
        matrix = rng.normal(size=(nv, m))
        matrix[-1] = matrix[0] * (1.0 + 1e-7 * rng.normal()) + 1e-8 * rng.normal(size=m)
        low = rng.uniform(0.0, 2e3, m)
        high = low + rng.uniform(0.0, 1e4, m) * (rng.random(m) < 0.8)
        share = np.clip(1.6 * rng.random(m) - 0.3, 0.0, 1.0)
        needed = matrix @ (low + (high - low) * share)
        result = explain(matrix, needed, low, high)
        assert result.status is PointStatus.NOT_CONVERGED
        # what no tension can do is a proven no, whatever the pose
        high[0] = np.inf
        matrix[1] = np.abs(matrix[1])
        result = explain(matrix[1:2], np.array([-1.0]), low, high)
        assert result.status is PointStatus.INFEASIBLE
