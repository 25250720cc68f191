"""Efforts of the actuators against the principle of virtual work.

In equilibrium the potential V(q, W) has dV/dq = effort and, by the envelope theorem, dV/dW = -x,
with x the motion of the plate. So the efforts have a symmetric Hessian, and how they change with
the load is minus how the plate moves with the joints (Betti).
"""

import numpy as np
import pytest

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solution import ActuatorEfforts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.tracker import Tracker

STEP = 1e-4
NAMES = ("stewart_6efr", "stewart_6pfs", "stewart_gough_6rfs", "planar_rfr_fr")


@pytest.fixture(scope="module", params=NAMES)
def case(request):
    robot = read_rod_robot(request.param)
    solver = RodRobotSolver(robot)
    start = Tracker(robot, solver).start().solution
    # off the symmetric pose, so that nothing vanishes by accident
    q = np.array(start.q) + 4e-3 * robot.actuated * np.sin(1.0 + np.arange(robot.n_limbs))
    return robot, solver, solver.dgm(q, start=start)


def effort(robot, solution):
    assert solution.converged
    return ActuatorEfforts(robot)(solution.q, solution.base_wrenches)


def differences(case, change):
    """Central differences of the efforts, one column for each of the changes."""
    robot, solver, here = case
    columns = []
    for q, wrench in change:
        ahead, behind = (
            effort(robot, solver.dgm(here.q + sign * q, wrench=sign * wrench, start=here))
            for sign in (1.0, -1.0)
        )
        columns.append((ahead - behind) / (2.0 * STEP))
    return np.array(columns).T


def test_the_hessian_is_symmetric(case):
    n = case[0].n_limbs
    hessian = differences(case, [(STEP * row, np.zeros(6)) for row in np.eye(n)])
    scale = np.abs(hessian).max()
    assert scale > 1e-3
    np.testing.assert_allclose(hessian, hessian.T, atol=2e-4 * scale)


def test_a_load_changes_the_efforts_as_the_joints_move_the_plate(case):
    robot, _, here = case
    loads = np.eye(6)[[0, 1, 5]] if robot.planar else np.eye(6)
    slots = [0, 1, 5] if robot.planar else list(range(6))
    found = differences(case, [(np.zeros(robot.n_limbs), STEP * row) for row in loads])
    expected = -np.asarray(here.jacobian)[slots].T
    scale = np.abs(expected).max()
    assert scale > 1e-2
    np.testing.assert_allclose(found, expected, atol=2e-3 * scale)
