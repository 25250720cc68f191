"""Rods beyond yield are told by all that finds a state: which, how much, and what is borne."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.rods.analysis.force_sensing import from_bases, from_robot
from cards_core.rods.analysis.measurements import BaseMeasurement
from cards_core.rods.dynamics.plate_dynamics import PlateDynamics
from cards_core.rods.dynamics.robot_dynamics import RobotDynamics
from cards_core.rods.loads import Loading
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.solution import shape
from cards_core.rods.status import RodStatus, is_good
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.search_methods import Budget
from cards_core.rods.tracking.tracker import Tracker


def bears(name, limit):
    """A shipped robot of a material with this yield strain, or None."""
    robot = read_rod_robot(name)
    limbs = []
    for limb in robot.limbs:
        material = replace(limb.rod.material, yield_strain=limit)
        limbs.append(replace(limb, rod=replace(limb.rod, material=material)))
    return replace(robot, limbs=tuple(limbs))


def strains_by_integration(solver, solution):
    """Maximum strain of each rod, integrated from its base wrench as a single rod."""
    robot, q = solver.robot, solution.q
    return np.array(
        [
            shape(limb.rod, length, start, wrench, Loading(gravity=solver.gravity)).max_strain
            for limb, length, start, wrench in zip(
                robot.limbs,
                rod_lengths(robot, q),
                rod_starts(robot, q),
                solution.base_wrenches,
                strict=True,
            )
        ]
    )


@pytest.fixture(scope="module")
def bent():
    """Pose, solver and search result of a robot with two of six rods beyond yield."""
    solver = RodRobotSolver(read_rod_robot("stewart_gough"))
    pose = solver.robot.home_pose
    pose[0, 3] += 0.11
    return pose, solver, find_equilibrium(solver, pose=pose)


def test_a_search_tells_rod_amount_and_limit(bent):
    _, solver, found = bent
    strains = strains_by_integration(solver, found.solution)
    beyond = np.flatnonzero(strains > 0.005)
    assert beyond.tolist() == [2, 5]
    assert found.status is RodStatus.YIELD
    assert is_good(found.status)
    assert [item.limb for item in found.findings] == beyond.tolist()
    for limb, item in zip(beyond, found.findings, strict=True):
        young = solver.robot.limbs[limb].rod.material.young
        assert f"limb_{limb + 1}" in item.message
        assert f"strained by {100 * strains[limb]:.3g} %" in item.message
        assert f"({1e-6 * young * strains[limb]:.4g} MPa)" in item.message
        assert "yields at 0.5 % (1000 MPa)" in item.message
    assert found.message == found.findings[0].message


@pytest.mark.parametrize("limit", [None, 1e-4])
def test_the_limit_of_the_material_decides(limit):
    solver = RodRobotSolver(bears("planar_rfr_fr", limit))
    expected = RodStatus.OK if limit is None else RodStatus.YIELD
    found = home_equilibrium(solver)
    assert found.status is expected
    assert find_equilibrium(solver, q=found.solution.q).status is expected
    for item in found.findings:
        assert item.status is RodStatus.YIELD


def test_an_unstable_state_tells_it_too_but_last():
    robot = bears("stewart_gough", 1e-4)
    solver = RodRobotSolver(robot)
    pose = robot.home_pose
    pose[0, 3] += 0.13
    found = find_equilibrium(solver, pose=pose, budget=Budget(work=1500))
    assert found.status is RodStatus.UNSTABLE
    assert {item.status for item in found.findings[1:]} == {RodStatus.YIELD}


def test_a_tracker_tells_it_once_and_no_longer_when_it_is_over(bent):
    pose, solver, _ = bent
    tracker = Tracker(solver.robot, solver)
    result = tracker.start(pose=pose)
    assert result.status is RodStatus.YIELD
    assert [item.limb for item in result.findings] == [2, 5]
    back = tracker.solution.pose.copy()
    back[0, 3] -= 0.06
    tracker.command_pose(back)
    assert tracker.run().status is RodStatus.OK


def test_a_moving_plate_tells_it(bent):
    _, solver, found = bent
    assert found.solution is not None
    dynamics = PlateDynamics(solver.robot, solver)
    dynamics.start(found.solution)
    step = dynamics.step(1e-4)
    assert step.status is RodStatus.YIELD
    assert "limb_3" in step.message
    assert "limb_6" in step.message
    stiff = RodRobotSolver(bears("stewart_gough", None))
    dynamics = PlateDynamics(stiff.robot, stiff)
    dynamics.start(home_equilibrium(stiff).solution)
    assert dynamics.step(1e-4).status is RodStatus.OK


def test_moving_rods_tell_it():
    limit = 1e-3
    robot = bears("stewart_gough", limit)
    solver = RodRobotSolver(robot)
    solution = home_equilibrium(solver).solution
    dynamics = RobotDynamics(robot, 1e-3)
    dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    expected = strains_by_integration(solver, solution)
    # stages of the integration lie inside the rods, the maximum strain may be at an end
    assert dynamics.strains() == pytest.approx(expected, rel=0.02)
    assert (dynamics.strains() <= expected * (1.0 + 1e-6)).all()
    beyond = np.flatnonzero(dynamics.strains() > limit)
    assert beyond.size
    assert [item.limb for item in dynamics.findings()] == beyond.tolist()
    assert {item.status for item in dynamics.findings()} == {RodStatus.YIELD}


def test_force_sensing_tells_it(bent):
    _, solver, found = bent
    solution = found.solution
    bases = BaseMeasurement.of(solution.base_wrenches, 0.01, 0.001)
    estimate = from_bases(solver, solution.q, bases, pose=solution.pose)
    assert [item.limb for item in estimate.findings] == [2, 5]
    easy = home_equilibrium(solver).solution
    bases = BaseMeasurement.of(easy.base_wrenches, 0.01, 0.001)
    assert from_robot(solver, easy.q, bases=bases).findings == ()
    tight = RodRobotSolver(bears("stewart_gough", 1e-4))
    findings = from_robot(tight, easy.q, bases=bases).findings
    assert [item.limb for item in findings] == list(range(6))
