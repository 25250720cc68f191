"""Rods that collapse while the plate is held: what the plate's stiffness does not show."""

import numpy as np
import pytest

from cards_core.rods.loads import Loading
from cards_core.rods.robots.limb_failure import limb_morse_index
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.stability import conjugate_points
from cards_core.rods.tracking.initial_search import home_equilibrium


def follow(solver, steps, move):
    """Follow the equilibrium from home by `move` (pose, k) in so many steps; yield all."""
    solution = home_equilibrium(solver).solution
    start = solution.pose.copy()
    for k in range(1, steps + 1):
        pose = start.copy()
        move(pose, k)
        solution = solver.igm(pose, start=solution)
        assert solution.converged
        yield k, solution


def test_a_pole_of_the_stiffness_leaves_rods_that_are_unstable():
    # K is negative for 0.45 mm only, which a step of a millimetre jumps over
    solver = RodRobotSolver(read_rod_robot("stewart_gough"))

    def along_x(pose, k):
        pose[0, 3] = 1e-3 * k

    seen = {}
    for k, solution in follow(solver, 112, along_x):
        if k < 100:
            continue
        signs = np.sign(np.linalg.det(solver.linearise(solution).A))
        index = limb_morse_index(solver, solution)
        seen[k] = index.tolist()
        # one more unstable direction turns the sign of the limb's own equations
        assert np.array_equal(signs, (-1.0) ** index)
        assert solution.min_eigenvalue > 0.0
    assert seen[107] == [0] * 6
    assert seen[108] == [0, 0, 1, 0, 0, 1]


@pytest.mark.parametrize("name", ["stewart_6pff", "planar_rfr_fr"])
def test_held_rods_have_the_conjugate_points_of_clamped_ones(name):
    robot = read_rod_robot(name)
    solver = RodRobotSolver(robot)
    fixed = [i for i, limb in enumerate(robot.limbs) if not limb.tip.kind.free.any()]
    solution = home_equilibrium(solver).solution
    rng = np.random.default_rng(5)
    counts = set()
    for _ in range(12):
        # a rod alone, with any wrench at its base: where its tip is does not matter
        wrenches = solution.base_wrenches.copy()
        size = np.repeat([8.0, 0.5], 3)
        if robot.planar:
            size = np.array([20.0, 20.0, 0.0, 0.0, 0.0, 0.5])
        wrenches += size * rng.standard_normal(wrenches.shape)
        state = _State(solution, wrenches)
        index = limb_morse_index(solver, state)
        starts, lengths = rod_starts(robot, solution.q), rod_lengths(robot, solution.q)
        for i in fixed:
            points = conjugate_points(
                robot.limbs[i].rod, lengths[i], starts[i], wrenches[i],
                Loading(gravity=tuple(solver.gravity)),
            )  # fmt: skip
            if not robot.planar:
                assert index[i] == len(points)
            else:  # the plane knows no collapse out of it
                assert index[i] <= len(points)
            counts.add(int(index[i]))
    assert {0, 1} <= counts


class _State:
    """A solution with other base wrenches."""

    def __init__(self, solution, wrenches):
        self.q, self.pose, self.base_wrenches = solution.q, solution.pose, wrenches
        self.tip_wrenches = wrenches
