"""The rod robots that are shipped: what they are, and that each stands stably at its start."""

import numpy as np
import pytest

from cards_core.formats import known_models
from cards_core.robot import inertia_problem
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.initial_search import find_equilibrium

MODELS = {
    # limbs (base, tip), mass of plate and what moves with it [kg], plate points' radius [m]
    "stewart_gough": (["extensible revolute"] * 6, 0.1, 0.087),
    "stewart_gough_till": (["extensible revolute"] * 6, 0.0921, 0.087),
    "stewart_gough_6rfs": (["revolute spherical"] * 6, 0.2, np.hypot(0.13, 0.015)),
    "stewart_6efr": (["extensible revolute"] * 6, 1.66, 0.5),
    "stewart_6pfr": (["prismatic revolute"] * 6, 0.112, 0.5),
    "stewart_6pff": (["prismatic fixed"] * 6, 0.112, 0.5),
    "stewart_6pfs": (["prismatic spherical"] * 6, 0.112, 0.5),
    "spatial_3pfr": (["prismatic revolute"] * 3, 0.106, 0.3),
    "planar_3efr": (["extensible revolute"] * 3, 0.115, 0.3),
    "planar_3pfr": (["prismatic revolute"] * 3, 0.115, 0.3),
    "planar_3rfr": (["revolute revolute"] * 3, 0.115, 0.3),
    "planar_rfr_fr": (["revolute revolute"] * 2 + ["extensible fixed"], 0.11, None),
}


def test_every_rod_robot_that_is_there_is_listed():
    assert set(MODELS) == set(known_models(rods=True))
    assert not set(MODELS) & set(known_models(rods=False))


@pytest.mark.parametrize("name", MODELS)
def test_what_the_files_say(name):
    kinds, mass, radius = MODELS[name]
    robot = read_rod_robot(name)
    assert robot.name == name
    assert robot.notes == ()
    assert [f"{limb.base.kind} {limb.tip.kind}" for limb in robot.limbs] == kinds
    assert robot.planar == name.startswith("planar")
    assert robot.plate.mass == pytest.approx(mass)
    np.testing.assert_allclose(robot.plate.com, 0, atol=1e-12)
    if radius is not None:
        points = np.array([limb.tip.joint_pose[:2, 3] for limb in robot.limbs])
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), radius, atol=1e-12)
    assert np.all(robot.q_lower < robot.q_upper)
    # the plate of the SDF stands where the solver starts: Gazebo and we begin alike
    np.testing.assert_allclose(robot.plate.pose, robot.home_pose, atol=1e-9)
    for link in robot.description.links:
        assert link.visuals, f"{link.name} cannot be seen"
        assert inertia_problem(link.inertia) is None
        assert link.inertia.mass > 0


def test_points_of_the_published_six_limb_robots():
    """Numbers of section 1.2 of the reference; all six share them."""
    base = [[0.492403876506104, -0.086824088833465], [-0.321393804843270, 0.383022221559489]]
    plate = [[0.321393804843270, -0.383022221559489], [-0.492403876506104, 0.086824088833465]]
    heights = {  # of the rod's start, the joint at the plate, the rod's tip
        "stewart_6efr": (0.001, 0.0, -0.04),
        "stewart_6pfr": (0.1, -0.025, -0.065),
        "stewart_6pff": (0.1, -0.029, -0.029),
        "stewart_6pfs": (0.1, -0.025, -0.05),
    }
    for name, (start, joint, tip) in heights.items():
        robot = read_rod_robot(name)
        for limb, p, x in zip((robot.limbs[0], robot.limbs[3]), base, plate, strict=True):
            at_zero = limb.base.joint_pose @ limb.base.attach
            np.testing.assert_allclose(at_zero[:3, 3], [*p, start], atol=1e-12)
            np.testing.assert_allclose(limb.tip.joint_pose[:3, 3], [*x, joint], atol=1e-12)
            end = limb.tip.joint_pose @ limb.tip.attach
            np.testing.assert_allclose(end[:3, 3], [*x, tip], atol=1e-12)
            np.testing.assert_allclose(end[:3, :3], np.eye(3), atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_each_robot_stands_stably_at_its_start(name):
    robot = read_rod_robot(name)
    solver = RodRobotSolver(robot)
    found = find_equilibrium(solver, pose=robot.home_pose)
    assert found.status is RodStatus.OK, found.message
    solution = found.solution
    assert np.all(solution.q > robot.q_lower)
    assert np.all(solution.q < robot.q_upper)
    assert solution.min_eigenvalue > 0.1
    # every controlled coordinate can be moved by the joints
    names = ["x", "y", "z", "rx", "ry", "rz"]
    rows = [names.index(name) for name in robot.controlled]
    assert np.linalg.svd(solution.jacobian[rows], compute_uv=False)[-1] > 0.02
    # no rod is bent beyond half of what it bears
    strains = solver.shapes(solution).strain.max(axis=1)
    assert np.all(strains < 0.75 * np.array([limb.rod.yield_strain for limb in robot.limbs]))
    # the joint coordinates of the file lead to the same place
    if robot.initial_q is not None:
        again = find_equilibrium(solver, q=robot.initial_q)
        assert again.status is RodStatus.OK, again.message
        np.testing.assert_allclose(again.solution.pose, robot.home_pose, atol=0.05)
