"""The rod robot with the mass of its rods: statics, modes, balance of forces, moving joints."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from cards_core.errors import RodError
from cards_core.rods.dynamics.modes import natural_frequencies
from cards_core.rods.dynamics.robot_dynamics import RobotDynamics
from cards_core.rods.material import Material
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import Base, BaseKind, Limb, Plate, RodRobot, Tip, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Rod
from cards_core.rods.section import Section
from cards_core.spatial import hat, rpy_matrix


def resting(name, dt, **options):
    """Robot, its solution by the static solver with fine steps, and its dynamics at rest."""
    robot = read_rod_robot(name)
    solver = RodRobotSolver(robot, replace(robot.settings, steps=8, tolerance=1e-9))
    solution = solver.igm(robot.home_pose)
    dynamics = RobotDynamics(robot, dt, **options)
    instant = dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    return robot, solver, solution, dynamics, instant


@pytest.mark.parametrize(
    "name", ["stewart_6efr", "stewart_6pfs", "stewart_gough_6rfs", "spatial_3pfr"]
)
def test_at_rest_it_is_the_static_solver(name):
    _, _, solution, dynamics, instant = resting(name, 2e-3, steps=24)
    np.testing.assert_allclose(instant.pose, solution.pose, atol=1e-7)
    np.testing.assert_allclose(instant.base_wrenches, solution.base_wrenches, atol=1e-5)
    stiffness = dynamics.dynamic_stiffness(0.0)
    np.testing.assert_allclose(stiffness, solution.stiffness, atol=1e-5 * np.abs(stiffness).max())
    for _ in range(3):
        moved = dynamics.step()
    np.testing.assert_allclose(moved.pose, instant.pose, atol=1e-9)


def tip_stiffness(rod, length, square):
    """A clamped straight rod along z that vibrates: wrench per motion of its tip, (6, 6)."""
    out = np.zeros((6, 6))
    gj, ea, shear = rod.stiffness_bt[2], rod.stiffness_se[2], rod.stiffness_se[0]
    for k, stiffness, inertia in (
        (2, ea, rod.mass_per_length),
        (5, gj, rod.inertia_per_length[2]),
    ):
        wave = np.sqrt(square * inertia / stiffness)
        out[k, k] = stiffness * wave / np.tan(wave * length) if square else stiffness / length
    rate = np.zeros((4, 4))  # of Timoshenko's beam: deflection, slope, moment, force
    rate[0, 1], rate[0, 3] = 1.0, 1.0 / shear
    rate[1, 2] = 1.0 / rod.stiffness_bt[0]
    rate[2, 1], rate[2, 3] = -rod.inertia_per_length[0] * square, -1.0
    rate[3, 0] = -rod.mass_per_length * square
    through = scipy.linalg.expm(rate * length)
    moment, force = through[2:, 2:] @ np.linalg.inv(through[:2, 2:])
    for move, turn, sign in ((0, 4, 1.0), (1, 3, -1.0)):  # slope of y along z: -rotation about x
        out[move, move], out[move, turn] = force[0], sign * force[1]
        out[turn, move], out[turn, turn] = sign * moment[0], moment[1]
    return out


@pytest.mark.parametrize("frequency", [0.0, 3.0, 40.0])
def test_dynamic_stiffness_of_upright_rods_by_beam_theory(frequency):
    rod = Rod(Section.circle(1e-3), Material(200e9, shear=80e9, density=8000.0))
    places, lengths = [(0.1, 0.02), (-0.05, 0.12), (-0.08, -0.1)], [0.5, 0.5, 0.4]
    mass, com = 0.3, np.array([0.02, -0.01, 0.03])
    inertia = np.array([[2e-3, 1e-4, 0.0], [1e-4, 3e-3, 2e-4], [0.0, 2e-4, 4e-3]])
    limbs, square = [], (2.0 * np.pi * frequency) ** 2
    cross = hat(com)
    expected = -square * np.block(
        [[mass * np.eye(3), -mass * cross], [mass * cross, inertia - mass * cross @ cross]]
    )
    for (x, y), length in zip(places, lengths, strict=True):
        base, joint = np.eye(4), np.eye(4)
        base[:3, 3], joint[:3, 3] = (x, y, 0.5 - length), (x, y, 0.0)
        limbs.append(
            Limb(
                f"limb_{x}",
                rod,
                length,
                Base(BaseKind.FIXED, base, np.eye(4), 0.0, 0.0),
                Tip(TipKind.FIXED, joint, np.eye(4)),
            )
        )
        carried = np.eye(6)
        carried[:3, 3:] = -hat(np.array([x, y, 0.0]))
        expected += carried.T @ tip_stiffness(rod, length, square) @ carried
    pose = np.eye(4)
    pose[2, 3] = 0.5
    plate = Plate("plate", mass, com, inertia, pose)
    robot = RodRobot("upright", tuple(limbs), plate, np.zeros(3))
    dynamics = RobotDynamics(robot, 1e-3, steps=24, segments=4)
    dynamics.rest()
    found = dynamics.dynamic_stiffness(square)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    block = np.ix_([0, 1, 5], [0, 1, 5])  # without the axial stiffness, which is much larger
    np.testing.assert_allclose(found[block], expected[block], rtol=1e-6)


def test_stiffness_is_symmetric_with_every_joint():
    """Free directions do no work: with universal joints as well, whose moments lie askew."""
    for kind in (TipKind.FIXED, TipKind.REVOLUTE, TipKind.SPHERICAL, TipKind.UNIVERSAL):
        robot = read_rod_robot("stewart_6efr")
        limbs = tuple(replace(limb, tip=replace(limb.tip, kind=kind)) for limb in robot.limbs)
        robot = replace(robot, limbs=limbs)
        pose = robot.home_pose
        pose[:3, 3] += [0.02, 0.03, 0.01]
        solution = RodRobotSolver(robot).igm(pose)
        dynamics = RobotDynamics(robot, 2e-3, steps=24)
        dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
        stiffness = dynamics.dynamic_stiffness(0.0)
        np.testing.assert_allclose(stiffness, stiffness.T, atol=1e-6 * np.abs(stiffness).max())


def test_universal_joints_rest_where_the_static_solver_says():
    """Both have a cross between rod and plate, far from its straight position too."""
    robot = read_rod_robot("stewart_6efr")
    limbs = tuple(
        replace(limb, tip=replace(limb.tip, kind=TipKind.UNIVERSAL)) for limb in robot.limbs
    )
    robot = replace(robot, limbs=limbs)
    pose = robot.home_pose
    pose[:3, :3] = rpy_matrix(0.15, -0.1, 0.2)
    pose[:3, 3] += [0.04, 0.03, 0.01]
    solver = RodRobotSolver(robot, replace(robot.settings, steps=8, tolerance=1e-9))
    solution = solver.igm(pose)
    assert solution.converged
    dynamics = RobotDynamics(robot, 2e-3, steps=24)
    instant = dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    np.testing.assert_allclose(instant.pose, solution.pose, atol=1e-7)
    np.testing.assert_allclose(instant.base_wrenches, solution.base_wrenches, atol=1e-5)
    stiffness = dynamics.dynamic_stiffness(0.0)
    np.testing.assert_allclose(stiffness, solution.stiffness, atol=1e-5 * np.abs(stiffness).max())
    moved = dynamics.step()
    np.testing.assert_allclose(moved.pose, instant.pose, atol=1e-9)


def test_it_swings_at_its_natural_frequency():
    _, _, _, dynamics, start = resting("stewart_6efr", 4e-3)
    expected = natural_frequencies(dynamics)
    np.testing.assert_allclose(expected[0], expected[1], rtol=1e-9)
    sways = []
    for _ in range(550):
        push = 0.3 * np.sin(np.pi * dynamics.time / 0.4) ** 2 * (dynamics.time < 0.4)
        instant = dynamics.step(wrench=np.array([push, 0.0, 0.0, 0.0, 0.0, 0.0]))
        sways.append(instant.pose[0, 3] - start.pose[0, 3])
    values = np.array(sways[110:])
    k = np.flatnonzero(values[:-1] * values[1:] < 0.0)
    zeros = (k + values[k] / (values[k] - values[k + 1])) * dynamics.dt
    # the other sway mode (5.9 Hz) moves the zeros a little
    assert 0.5 / np.mean(np.diff(zeros)) == pytest.approx(expected[0], rel=0.01)


def test_momentum_changes_by_the_forces():
    robot, _, _, dynamics, _ = resting("stewart_6pfs", 2e-3, tolerance=2e-10)
    rods = sum(limb.rod.mass_per_length * limb.length for limb in robot.limbs)
    weight = (rods + robot.plate.mass) * robot.gravity
    old = before = dynamics.momentum()
    rate = np.zeros(6)
    for k in range(30):
        force = np.array([1.0, 0.5, -0.5]) * np.sin(0.1 * (k + 1)) ** 2
        instant = dynamics.step(wrench=np.concatenate([force, np.zeros(3)]))
        formula, momentum = dynamics._formula_now, dynamics.momentum()
        rate = formula.c0 * momentum + formula.c1 * before + formula.c2 * old + formula.d1 * rate
        old, before = before, momentum
        expected = weight + force - instant.base_wrenches[:, :3].sum(axis=0)
        np.testing.assert_allclose(rate[:3], expected, atol=1e-5 * np.linalg.norm(weight))


@pytest.mark.parametrize("name", ["stewart_6efr", "stewart_6pfr", "planar_3rfr"])
def test_moved_joints_end_in_the_static_solution(name):
    """Rods fed out, slid or turned; with damping the robot settles where the solver says."""
    robot, solver, solution, _, _ = resting(name, 0.02)
    limbs = tuple(
        replace(limb, rod=Rod(limb.rod.section, limb.rod.material, damping=0.1))
        for limb in robot.limbs
    )
    dynamics = RobotDynamics(replace(robot, limbs=limbs), 0.02, steps=12)
    dynamics.rest(solution.q, pose=solution.pose, base_wrenches=solution.base_wrenches)
    change = 0.02 * np.cos(np.arange(robot.n_limbs) * 2.0)
    for k in range(250):
        instant = dynamics.step(solution.q + change * min(1.0, (k + 1) / 40.0))
    target = solution
    for share in np.linspace(0.1, 1.0, 10):
        target = solver.dgm(solution.q + share * change, start=target)
    assert np.linalg.norm(target.pose - solution.pose) > 3e-3
    np.testing.assert_allclose(instant.pose, target.pose, atol=2e-5)


def test_failure_changes_nothing():
    _, _, _, dynamics, start = resting("stewart_6efr", 2e-3)
    dynamics.step()
    with pytest.raises(RodError, match="no solution at t"):
        dynamics.step(np.full(6, 0.1))
    instant = dynamics.step()
    np.testing.assert_allclose(instant.pose, start.pose, atol=1e-7)
    with pytest.raises(RodError, match="right after rest"):
        dynamics.dynamic_stiffness(0.0)
    with pytest.raises(RodError, match="robot is 'stewart_6efr'; expected a RodRobot"):
        RobotDynamics("stewart_6efr", 2e-3)
