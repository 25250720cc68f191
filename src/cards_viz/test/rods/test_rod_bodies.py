"""Where the rigid bodies of rod robots are, against the solver's rods."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_viz.rods.bodies import RodBodies

MODELS = (
    "stewart_gough",
    "stewart_6pfs",
    "stewart_6pff",
    "stewart_gough_6rfs",
    "planar_rfr_fr",
)


@pytest.fixture(scope="module", params=MODELS)
def solved(request):
    """A robot, its bodies and a solution beside home."""
    robot = read_rod_robot(request.param)
    solver = RodRobotSolver(robot)
    pose = robot.home_pose
    pose[:3, 3] += 0.02 * pose[2, 3] * np.array([1.0, -1.0, not robot.planar])
    solution = solver.igm(pose, start=solver.igm(robot.home_pose))
    return robot, RodBodies(robot), solution, solver.shapes(solution, 201).table


def test_rods_end_at_the_bodies_that_hold_them(solved):
    robot, bodies, solution, lines = solved
    poses = bodies.poses(solution.q, solution.pose, lines[:, :, :3])
    starts = rod_starts(robot, solution.q)
    assert poses[bodies.plate] == pytest.approx(solution.pose)
    for i, limb in enumerate(robot.limbs):
        base = poses[1 + i] @ limb.base.attach
        assert base == pytest.approx(starts[i])
        tip = poses[bodies.plate + 1 + i] @ limb.tip.attach
        assert tip[:3, 3] == pytest.approx(lines[i, -1, :3], abs=2e-4 * limb.length)
        tangent = lines[i, -1, :3] - lines[i, -2, :3]
        assert tip[:3, 2] @ tangent / np.linalg.norm(tangent) > np.cos(np.radians(1.0))


def test_every_visual_is_drawn_with_what_moves_it(solved):
    robot, bodies = solved[:2]
    names = [name for shape in bodies.shapes for name in shape.names]
    visuals = {
        f"{link.name}/{visual.name or number}"
        for link in robot.description.links
        for number, visual in enumerate(link.visuals)
    }
    assert len(names) == len(visuals)
    assert set(names) == visuals
    for shape in bodies.shapes:
        group = bodies.names[shape.group]
        for name in shape.names:
            link = name.split("/")[0]
            if link == robot.plate.link:
                assert group == "plate"
            tips = [limb.name for limb in robot.limbs if limb.tip.link == link]
            if tips and link != robot.plate.link:
                assert group == f"tip/{tips[0]}"
        assert shape.faces.max() < len(shape.vertices)


def test_a_robot_without_visuals_gets_a_disc_and_stands():
    robot = replace(read_rod_robot("stewart_gough"), description=None)
    bodies = RodBodies(robot)
    assert [bodies.names[shape.group] for shape in bodies.shapes] == [
        "plate",
        *(f"base/{limb.name}" for limb in robot.limbs),
    ]
    joints = np.array([limb.tip.joint_pose[:2, 3] for limb in robot.limbs])
    reach = np.linalg.norm(bodies.shapes[0].vertices[:, :2], axis=1).max()
    assert np.linalg.norm(joints, axis=1).max() < reach
