"""Wrenches on the plate, recovered from noisy synthetic measurements, with honest covariances."""

import numpy as np
import pytest
from scipy.stats import chi2

from cards_core.rods.analysis.force_sensing import from_bases, from_limbs, from_robot
from cards_core.rods.analysis.measurements import (
    BaseMeasurement,
    Limbs,
    MeasurementError,
    ShapeMeasurement,
    simulated_bases,
    simulated_shapes,
)
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.initial_search import home_equilibrium

WRENCH = np.array([0.3, -0.2, -0.5, 0.02, -0.03, 0.01])
NOISE = 2e-4


def loaded(name, wrench=WRENCH):
    """Return the solver and the state of a robot under a wrench on its plate."""
    solver = RodRobotSolver(read_rod_robot(name))
    state = home_equilibrium(solver).solution
    q = state.q.copy()
    for share in np.linspace(0.0, 1.0, 6):
        state = solver.dgm(q, wrench=share * wrench, start=state)
        assert state.converged
    return solver, state


@pytest.fixture(scope="module", params=["stewart_gough", "stewart_6pfs"])
def robot(request):
    return loaded(request.param)


def in_chi_square(values, dof):
    """Whether a sum of chi^2 numbers is within what 99.9 % of such sums are."""
    low, high = chi2.ppf([5e-4, 1.0 - 5e-4], dof * len(values))
    return low < np.sum(values) < high


def test_without_noise_the_wrench_comes_out_exactly(robot):
    solver, state = robot
    bases = BaseMeasurement(state.base_wrenches.copy(), np.eye(6))
    scale = np.abs(WRENCH).max()
    found = from_bases(solver, state.q, bases)
    np.testing.assert_allclose(found.wrench, WRENCH, atol=1e-3 * scale)
    np.testing.assert_allclose(found.pose, state.pose, atol=1e-5)
    known = from_bases(solver, state.q, bases, pose=state.pose)
    np.testing.assert_allclose(known.wrench, WRENCH, atol=1e-4 * scale)
    fitted = from_robot(solver, state.q, (), bases)
    np.testing.assert_allclose(fitted.wrench, WRENCH, atol=1e-3 * scale)
    assert fitted.dof == 6 * solver.robot.n_limbs - 6


@pytest.mark.parametrize("method", ["bases", "limbs", "robot", "unmarked"])
def test_errors_are_as_large_as_the_covariance_says(robot, method):
    solver, state = robot
    rng = np.random.default_rng(7)
    estimates = []
    for _ in range(10):
        if method == "bases":
            bases = simulated_bases(state, 0.01, 0.001, rng)
            estimates.append(from_bases(solver, state.q, bases))
            continue
        marked = method != "unmarked"
        shapes = simulated_shapes(solver, state, 8, NOISE, rng, markers=marked)
        estimate = from_limbs if method == "limbs" else from_robot
        estimates.append(estimate(solver, state.q, shapes))
    assert in_chi_square([e.error2(WRENCH) for e in estimates], 6)
    if method != "bases":
        assert in_chi_square([e.chi2 for e in estimates], estimates[0].dof)
    errors = np.array([e.wrench - WRENCH for e in estimates])
    share = np.mean(np.abs(errors) < [e.interval(0.95) for e in estimates])
    assert 0.85 < share <= 1.0


def test_the_covariance_is_that_of_differences(robot):
    """A share of trials inside a region tells a percent; this tells a ten-thousandth."""
    solver, state = robot
    limbs = Limbs(solver, state.q)
    s = [length * np.array([0.5, 1.0]) for length in limbs.lengths]
    points = np.array([limbs.curve(i, w, s[i]).points for i, w in enumerate(state.base_wrenches)])

    def estimate(change):
        moved = points + change.reshape(points.shape)
        return from_robot(
            solver, state.q, tuple(ShapeMeasurement(i, moved[i], NOISE, s[i]) for i in range(6))
        )

    step = 0.1 * NOISE * np.eye(points.size)
    slope = [(estimate(one).wrench - estimate(-one).wrench) / (0.2 * NOISE) for one in step]
    true = NOISE**2 * np.transpose(slope) @ slope
    told = estimate(np.zeros(points.size)).covariance
    sigma = np.sqrt(np.diag(true))
    np.testing.assert_allclose(told / np.outer(sigma, sigma), true / np.outer(sigma, sigma),
                               atol=1e-4)  # fmt: skip


def test_the_model_of_the_robot_is_worth_its_assumptions(robot):
    solver, state = robot
    shapes = simulated_shapes(solver, state, 8, NOISE, np.random.default_rng(1))
    alone, together = (estimate(solver, state.q, shapes) for estimate in (from_limbs, from_robot))
    assert (together.sigma <= alone.sigma * 1.01).all()
    some = from_robot(solver, state.q, shapes[:3])
    assert (some.sigma > together.sigma).all()
    assert together.p_value > 1e-3
    # twice the noise that is declared
    wrong = tuple(ShapeMeasurement(m.limb, m.points, 0.5 * NOISE, m.s) for m in shapes)
    assert from_robot(solver, state.q, wrong).p_value < 1e-6


def test_a_planar_robot_feels_three_components():
    wrench = 0.1 * WRENCH * [1, 1, 0, 0, 0, 1]
    solver, state = loaded("planar_3rfr", wrench)
    rng = np.random.default_rng(3)
    estimates = []
    for _ in range(15):
        shapes = simulated_shapes(solver, state, 8, NOISE, rng)
        flat = tuple(ShapeMeasurement(m.limb, m.points * [1, 1, 0], NOISE, m.s) for m in shapes)
        estimates.append(from_robot(solver, state.q, flat))
    assert in_chi_square([e.error2(wrench) for e in estimates], 3)
    assert estimates[0].observable == 3
    assert not estimates[0].sigma[2:5].any()


def test_the_derivative_of_a_rod_is_that_of_differences(robot):
    solver, state = robot
    limbs, s = Limbs(solver, state.q), np.array([0.1, 0.22, 0.3])
    w, step = state.base_wrenches[1], 1e-5
    curve = limbs.curve(1, w, s)
    for k in range(6):
        change = step * np.eye(6)[k]
        there, back = limbs.curve(1, w + change, s), limbs.curve(1, w - change, s)
        slope = (there.points - back.points) / (2 * step)
        np.testing.assert_allclose(curve.by_wrench[:, :3, k], slope, atol=1e-7)
        tip = (there.tip[12:] - back.tip[12:]) / (2 * step)
        np.testing.assert_allclose(curve.tip_by_wrench[6:, k], tip, atol=1e-7)
    shape = solver.shapes(state, 11)
    dense = limbs.curve(1, w, np.linspace(0.0, limbs.lengths[1], 11))
    np.testing.assert_allclose(dense.points, shape.positions[1], atol=1e-6)


def test_the_feet_of_points_are_where_the_rod_is_nearest(robot):
    solver, state = robot
    limbs, w = Limbs(solver, state.q), state.base_wrenches[0]
    s = np.array([0.31, 0.05, 0.2])
    order = np.argsort(s)
    curve = limbs.curve(0, w, s[order])
    aside = curve.points + 1e-3 * curve.states[:, 3:12].reshape(-1, 3, 3)[:, :, 0]
    found = limbs.feet(0, w, aside[np.argsort(order)], None)
    np.testing.assert_allclose(found, s, atol=1e-5)


def test_what_cannot_be_used_is_refused(robot):
    solver, state = robot
    q, n = state.q, solver.robot.n_limbs
    points = np.zeros((4, 3))
    with pytest.raises(MeasurementError, match="no points of limb_2"):
        from_limbs(solver, q, (ShapeMeasurement(0, points, NOISE),))
    with pytest.raises(MeasurementError, match="nothing was measured"):
        from_robot(solver, q)
    for bad, text in (
        (ShapeMeasurement(9, points, NOISE), "limb 9"),
        (ShapeMeasurement(0, points[:, :2], NOISE), "shape"),
        (ShapeMeasurement(0, points, 0.0), "standard deviation"),
        (ShapeMeasurement(0, points, NOISE, np.zeros(2)), "one each"),
        (ShapeMeasurement(0, points, NOISE, np.full(4, 99.0)), "within the rod"),
        (ShapeMeasurement(0, points * np.nan, NOISE), "finite"),
    ):
        with pytest.raises(MeasurementError, match=text):
            from_robot(solver, q, (bad,))
    for wrenches, covariance in (
        (np.zeros((n, 5)), np.eye(6)),
        (np.zeros((n, 6)), np.zeros((6, 6))),
        (np.zeros((n, 6)), np.eye(5)),
    ):
        with pytest.raises(MeasurementError):
            from_bases(solver, q, BaseMeasurement(wrenches, covariance))
