"""`initial` of a description: a start on another branch than meant is told, with the distance."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.formats.locate import known_models
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import BaseKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.targets import pose_difference
from cards_core.rods.tracking.tracker import Tracker


def initial(q=None, pose=None, plate=None, name="stewart_gough"):
    """A shipped robot with other `initial.q` and `initial.pose`, and its plate elsewhere."""
    robot = read_rod_robot(name)
    if plate is not None:
        robot = replace(robot, plate=replace(robot.plate, pose=plate))
    return replace(robot, initial_q=q, initial_pose=pose)


@pytest.mark.parametrize("name", known_models(rods=True))
def test_shipped_robots_start_where_they_say(name):
    assert home_equilibrium(RodRobotSolver(read_rod_robot(name))).findings == ()


def test_joints_far_from_those_of_the_pose_are_told():
    robot = read_rod_robot("stewart_gough")
    q = home_equilibrium(RodRobotSolver(robot)).solution.q.copy()
    wrong = q.copy()
    wrong[3] += 0.15
    solver = RodRobotSolver(initial(wrong, robot.home_pose))
    found = home_equilibrium(solver)
    assert found.status is RodStatus.AMBIGUOUS
    (finding,) = found.findings
    away = np.abs(found.solution.q - wrong)
    worst = int(np.argmax(away))
    assert finding.limb == worst
    assert finding.missing == pytest.approx(away[worst], abs=1e-12)
    assert finding.missing > 0.14
    assert f"{1e3 * away[worst]:.2f} mm away" in found.message
    assert robot.limbs[worst].base.joint in found.message
    # the pose holds all the same, and who starts there is told, too
    assert np.abs(pose_difference(found.solution.pose, robot.home_pose)).max() < 1e-9
    assert Tracker(solver.robot, solver).start().status is RodStatus.AMBIGUOUS
    # a hint that is near enough is no finding
    near = home_equilibrium(RodRobotSolver(initial(q + 0.01, robot.home_pose)))
    assert near.status is RodStatus.OK


def test_an_angle_is_told_in_degrees():
    robot = read_rod_robot("planar_3rfr")
    assert robot.limbs[0].base.kind is BaseKind.REVOLUTE
    q = home_equilibrium(RodRobotSolver(robot)).solution.q + np.radians([0.0, 30.0, 0.0])
    found = home_equilibrium(RodRobotSolver(initial(q, robot.home_pose, name="planar_3rfr")))
    assert found.status is RodStatus.AMBIGUOUS
    away = np.degrees(np.abs(found.solution.q - q))
    assert f"{away.max():.2f} deg away" in found.message


def test_joints_alone_lead_to_an_equilibrium_away_from_the_plate_of_the_file():
    there = find_equilibrium(
        RodRobotSolver(read_rod_robot("spatial_3pfr")), q=np.zeros(3)
    ).solution
    plate = there.pose.copy()
    assert (
        home_equilibrium(
            RodRobotSolver(initial(np.zeros(3), None, plate, "spatial_3pfr"))
        ).findings
        == ()
    )
    plate[:3, 3] += (0.15, 0.0, -0.05)
    found = home_equilibrium(RodRobotSolver(initial(np.zeros(3), None, plate, "spatial_3pfr")))
    assert found.status is RodStatus.AMBIGUOUS
    (finding,) = found.findings
    way = np.linalg.norm(found.solution.pose[:3, 3] - plate[:3, 3])
    assert finding.missing == pytest.approx(way, abs=1e-12)
    assert f"{1e3 * way:.1f} mm" in finding.message
    assert "the plate's pose (SDF)" in finding.message
    # whose start is doubtful, what is reached from there is so, too
    solver = RodRobotSolver(initial(np.zeros(3), None, plate, "spatial_3pfr"))
    again = find_equilibrium(solver, q=np.full(3, 0.01))
    assert again.how == "homotopy"
    assert again.status is RodStatus.AMBIGUOUS


def test_the_base_of_the_robot_moves_the_pose_that_is_meant():
    robot = initial(np.zeros(3), None, name="spatial_3pfr")
    pose = home_equilibrium(RodRobotSolver(robot)).solution.pose.copy()
    robot = initial(np.zeros(3), None, pose, name="spatial_3pfr")
    base = np.eye(4)
    base[:3, 3] = (2.0, -1.0, 0.5)
    assert home_equilibrium(RodRobotSolver(robot, base=base)).findings == ()


def test_without_initial_the_plate_of_the_file_is_a_guess():
    robot = read_rod_robot("spatial_3pfr")
    plate = robot.home_pose
    plate[:3, 3] += (0.1, 0.0, 0.0)
    found = home_equilibrium(RodRobotSolver(initial(None, None, plate, "spatial_3pfr")))
    assert not [item for item in found.findings if "initial" in item.message]
