"""Necessary tensions against closed forms and other solvers."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls

from cards_core.control.mrc.necessary_tension import (
    TENSION_WEIGHT,
    TORQUE_WEIGHT,
    NecessaryTension,
)
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError, ShapeError
from cards_core.formats import load

NO_LIMIT = np.inf


def test_one_muscle_gives_what_the_weights_leave_of_it():
    solver = NecessaryTension(np.array([0.0]), np.array([NO_LIMIT]), 1)
    tension = solver.solve(np.array([[-0.04]]), np.array([10.0]))
    assert tension[0] == pytest.approx(0.04 * 10.0 / (1e-5 + 0.04**2), rel=1e-12)
    assert solver.missing[0] == pytest.approx(-10.0 + 0.04 * tension[0], rel=1e-9)


@pytest.mark.parametrize(("muscles", "joints"), [(10, 5), (20, 10), (4, 6)])
def test_random_poses_as_nonnegative_least_squares(muscles, joints):
    rng = np.random.default_rng(1)
    least = rng.uniform(0.0, 40.0, muscles)
    solver = NecessaryTension(least, np.full(muscles, NO_LIMIT), joints)
    for _ in range(1000):
        g = rng.normal(0.0, 0.03, (muscles, joints)) * (rng.random((muscles, joints)) < 0.6)
        tau = rng.normal(0.0, 10.0, joints)
        matrix = np.vstack([np.sqrt(TENSION_WEIGHT) * np.eye(muscles), g.T])
        right = np.concatenate([-np.sqrt(TENSION_WEIGHT) * least, -tau - g.T @ least])
        expected = nnls(matrix, right)[0] + least
        assert solver.solve(g, tau) == pytest.approx(expected, rel=1e-8, abs=1e-8)
        assert solver.missing == pytest.approx(-tau - g.T @ solver.tensions, abs=1e-9)
        assert not solver.failed


def test_with_largest_tensions_as_bounded_least_squares():
    rng = np.random.default_rng(2)
    least, most = np.full(8, 20.0), np.full(8, 60.0)
    solver = NecessaryTension(least, most, 4)
    saturated = 0
    for _ in range(200):
        g, tau = rng.normal(0.0, 0.03, (8, 4)), rng.normal(0.0, 8.0, 4)
        matrix = np.vstack([np.sqrt(TENSION_WEIGHT / TORQUE_WEIGHT) * np.eye(8), g.T])
        right = np.concatenate([np.zeros(8), -tau])
        expected = lsq_linear(matrix, right, (least, most), method="bvls", tol=1e-14).x
        assert solver.solve(g, tau) == pytest.approx(expected, abs=1e-7)
        saturated += int(np.any(solver.tensions > 59.999))
    assert saturated > 50


def test_optimality_conditions_on_poses_of_a_robot():
    """Gradient zero where a tension is free, pointing outwards where it is at its least."""
    robot = load("roboy_arm")
    dynamics = make_dynamics(robot)
    tree = robot.tree
    least = np.full(len(robot.muscles), 30.0)
    solver = NecessaryTension(least, np.full(least.size, NO_LIMIT), tree.nv)
    rng = np.random.default_rng(3)
    for _ in range(1000):
        state = dynamics.update(tree.random(rng), np.zeros(tree.nv))
        g, tau = state.muscle_jacobian.copy(), state.gravity.copy()
        x = solver.solve(g, tau)
        gradient = TENSION_WEIGHT * x + TORQUE_WEIGHT * g @ (g.T @ x + tau)
        scale = TENSION_WEIGHT * np.linalg.norm(x) + np.linalg.norm(g) * np.linalg.norm(tau)
        free = x > least + 1e-9
        assert np.abs(gradient[free]).max(initial=0.0) <= 1e-10 * scale
        assert gradient[~free].min(initial=0.0) >= -1e-10 * scale


def test_more_torque_never_costs_less():
    solver = NecessaryTension(np.zeros(2), np.full(2, NO_LIMIT), 1)
    g = np.array([[-0.05], [0.05]])
    loads = [np.linalg.norm(solver.solve(g, np.array([tau]))) for tau in (0.0, 5.0, 10.0, 20.0)]
    assert loads[0] == 0.0
    assert np.all(np.diff(loads) > 0.0)


def test_rank_deficient_jacobian_is_answered():
    solver = NecessaryTension(np.full(4, 30.0), np.full(4, NO_LIMIT), 3)
    g = np.tile([[0.03, 0.0, 0.0]], (4, 1))
    x = solver.solve(g, np.array([-10.0, 4.0, 0.0]))
    assert np.isfinite(x).all()
    assert solver.missing[1] == pytest.approx(-4.0)
    assert np.ptp(x) == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_meant_is_refused():
    with pytest.raises(ParameterError, match="muscle 1 is 30 N, not below its largest 20"):
        NecessaryTension(np.array([0.0, 30.0]), np.array([50.0, 20.0]), 1)
    with pytest.raises(ParameterError, match="tension_weight"):
        NecessaryTension(np.zeros(1), np.ones(1), 1, tension_weight=0.0)
    solver = NecessaryTension(np.zeros(2), np.ones(2), 1)
    with pytest.raises(ShapeError, match=r"\(3, 1\)"):
        solver.solve(np.zeros((3, 1)), np.zeros(1))
    with pytest.raises(ShapeError, match="finite"):
        solver.solve(np.array([[np.nan], [0.0]]), np.zeros(1))
