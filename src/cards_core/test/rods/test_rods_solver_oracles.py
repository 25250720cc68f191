"""Published robots: the solver against numbers that were computed or measured elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from rod_robots import pose
from scipy.optimize import fsolve

from cards_core.rods.loads import Loading
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import SolverSettings, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.solution import shape
from cards_core.spatial import axis_rotation

EXACT = SolverSettings(steps=8, tolerance=1e-11)
FIRST = [0.397326387, 0.397326387, 0.399720102, 0.421624011, 0.421624011, 0.399720102]
FIRST_PUBLISHED = [0.397337668, 0.397337668, 0.399720112, 0.421636098, 0.421636098, 0.399720112]
SECOND = [0.400631836, 0.410389864, 0.407213129, 0.403382077, 0.404877230, 0.414280825]
TILTED = pose((0.0, 0.0, 0.4), (0.0, np.radians(10.0), 0.0))
YAWED = pose((0.02, 0.02, 0.4), (0.0, 0.0, np.radians(10.0)))


def xyz(position, x, y, z):
    T = pose(position)
    T[:3, :3] = (
        axis_rotation((1, 0, 0), x) @ axis_rotation((0, 1, 0), y) @ axis_rotation((0, 0, 1), z)
    )
    return T


@pytest.fixture(scope="module")
def gough():
    return RodRobotSolver(read_rod_robot("stewart_gough"), EXACT)


def test_second_comparison_of_the_paper(gough):
    solution = gough.igm(YAWED)
    assert solution.converged
    np.testing.assert_allclose(solution.q, SECOND, rtol=0, atol=1e-9)


def test_first_comparison_of_the_paper_with_the_logarithm(gough):
    solution = gough.igm(TILTED)
    assert solution.converged
    np.testing.assert_allclose(solution.q, FIRST, rtol=0, atol=1e-9)
    # the hinges are aligned with the rods' tips: no misalignment is left
    for limb, wrench, start, length in zip(
        gough.robot.limbs, solution.base_wrenches, rod_starts(gough.robot, solution.q),
        solution.q, strict=True,
    ):  # fmt: skip
        tip = _tip(gough, limb, start, wrench, length)
        assert np.linalg.norm(np.cross(tip.tip[:3, 2], TILTED[:3, 2])) < 1e-9


def test_the_published_orientation_error_explains_the_published_lengths(gough):
    """vee(R1'R2 - R1 R2'), the error of the paper, mixes the free rotation into its rows."""
    start = gough.igm(TILTED)
    robot = gough.robot
    joints = [TILTED @ limb.tip.joint_pose for limb in robot.limbs]

    def residual(unknown):
        w, q = unknown[:36].reshape(6, 6), unknown[36:]
        rows, balance = [], np.zeros(6)
        balance[:3] = robot.plate.mass * robot.gravity
        for i, (limb, base) in enumerate(zip(robot.limbs, rod_starts(robot, q), strict=True)):
            end = _tip(gough, limb, base, w[i], q[i])
            tip, n, m = end.tip, end.n[-1], end.m[-1]
            R1, R2 = tip[:3, :3], joints[i][:3, :3]
            # no torsion at the tip; with this error its axis is not the hinge's
            skew = R1.T @ R2 - R1 @ R2.T
            rows += [tip[:3, 3] - joints[i][:3, 3], [skew[2, 1], skew[0, 2]], [R1[:, 2] @ m]]
            balance[:3] -= n
            balance[3:] -= m + np.cross(tip[:3, 3] - TILTED[:3, 3], n)
        return np.concatenate([*rows, balance])

    unknown = fsolve(residual, np.concatenate([start.base_wrenches.ravel(), start.q]), xtol=1e-12)
    np.testing.assert_allclose(unknown[36:], FIRST_PUBLISHED, rtol=0, atol=1e-9)
    assert np.max(unknown[36:] - start.q) > 1.1e-5


def _tip(solver, limb, start, wrench, length):
    return shape(limb.rod, length, start, wrench, Loading(solver.robot.gravity), points=2)


@pytest.mark.parametrize(("steps", "tolerance"), [(3, 1e-6), (8, 1e-9)])
def test_speed_path_of_till(steps, tolerance):
    solver = RodRobotSolver(
        read_rod_robot("stewart_gough_till"), SolverSettings(steps=steps, tolerance=1e-10)
    )
    state = solver.igm(pose((0.0, 0.02, 0.48)))
    start = [0.482314669009, 0.487571084140, 0.484905823498]
    np.testing.assert_allclose(state.q, start * 2, rtol=0, atol=tolerance)
    base = [-0.1458612775, -0.1546000987, 0.7129452993, 0.0258614199, -0.0243995947, 0.0]
    np.testing.assert_allclose(state.base_wrenches[0], base, rtol=0, atol=10 * tolerance)
    for step in range(1, 101):
        state = solver.igm(pose((0.0, 0.02 + 0.001 * step, 0.48 + 0.001 * step)), start=state)
        assert state.converged
    end = [0.585461668010, 0.615943678290, 0.598361692871]
    np.testing.assert_allclose(state.q, end * 2, rtol=0, atol=tolerance)
    if steps == 8:
        base = [-0.2044693146, 0.4704394920, 2.5337905773, -0.0496938693, -0.0215986786, 0.0]
        np.testing.assert_allclose(state.base_wrenches[0], base, rtol=0, atol=1e-7)


CASES = {
    "stewart_6efr": (
        (0.0, 0.0, 1.1), [1.1298292423] * 6,
        xyz((0.03, -0.02, 1.1), 0.05, 0.03, 0.08),
        [1.089613433579, 1.150551487667, 1.143175978547, 1.160754178504, 1.117632263087,
         1.129840828066],
    ),
    "stewart_6pfs": (
        (0.0, 0.0, 1.1), [0.02198396261] * 6,
        xyz((0.05, 0.03, 1.12), 0.1, -0.05, 0.1),
        [-0.011098292294, 0.120179890118, 0.099427646440, 0.018031084246, -0.011334488987,
         0.061242542307],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_robots_of_the_published_simulator(name):
    place, home_q, moved, moved_q = CASES[name]
    robot = read_rod_robot(name)
    solver = RodRobotSolver(robot, EXACT)
    # the oracle's plate weighs mass * 9.8, its rods 9.81
    lift = np.array([0.0, 0.0, 0.01 * robot.plate.mass, 0.0, 0.0, 0.0])
    home = solver.igm(pose(place), wrench=lift)
    np.testing.assert_allclose(home.q, home_q, rtol=0, atol=1e-8)
    if name == "stewart_6efr":
        assert home.min_eigenvalue == pytest.approx(61.972, abs=5e-4)
    away = solver.igm(moved, wrench=lift, start=home)
    np.testing.assert_allclose(away.q, moved_q, rtol=0, atol=1e-8)


def test_path_into_instability():
    """The smallest eigenvalue foretells where the direct model ends (6EFR, +-30 mm)."""
    robot = read_rod_robot("stewart_6efr")
    solver = RodRobotSolver(robot)
    lift = np.array([0.0, 0.0, 0.01 * robot.plate.mass, 0.0, 0.0, 0.0])
    state = solver.igm(pose((0.0, 0.0, 1.1)), wrench=lift)
    k, q0, found = np.arange(6), state.q.copy(), {}
    for i in range(508):
        t = 2.0 * np.pi * i / 1999
        state = solver.dgm(q0 + 0.03 * (np.sin(t + k) - np.sin(k)), wrench=lift, start=state)
        assert np.isfinite(state.record).all()
        if not state.converged:
            break
        if i in (0, 400, 500):
            found[i] = state.min_eigenvalue
    assert found[0] == pytest.approx(61.97, abs=0.1)
    assert found[400] == pytest.approx(24.6, abs=0.1)
    assert found[500] == pytest.approx(3.94, abs=0.05)


def test_discretisation_error_of_the_shipped_settings():
    """Three steps of order 8: nanometres at the start of the path, below a micrometre at its end.

    And the estimate is honest: it is what separates the solution from the exact lengths.
    """
    solver = RodRobotSolver(read_rod_robot("stewart_gough_till"), SolverSettings(tolerance=1e-12))
    state = solver.igm(pose((0.0, 0.02, 0.48)))
    assert solver.discretisation_error(state) < 1e-9
    for step in range(1, 101):
        state = solver.igm(pose((0.0, 0.02 + 0.001 * step, 0.48 + 0.001 * step)), start=state)
    exact = np.array([0.585461668010, 0.615943678290, 0.598361692871] * 2)
    error = np.abs(state.q - exact).max()
    assert solver.discretisation_error(state) == pytest.approx(error, rel=0.1)
    assert error < 1e-6
