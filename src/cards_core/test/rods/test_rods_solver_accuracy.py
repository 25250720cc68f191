"""What the solver returns is accurate where it says OK, wherever the robot stands."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from rod_robots import Start, plane_robot, pose, ring_robot

from cards_core.errors import RodError, ShapeError
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import (
    Base,
    BaseKind,
    Limb,
    Plate,
    RodRobot,
    SolverSettings,
    Tip,
    TipKind,
)
from cards_core.rods.robots.solution import INFO
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.commands import checked_joints, checked_pose, checked_wrench


def hook(turn, length=1.0):
    """A free rod of constant curvature that turns by an angle, and where its tip is: a circle."""
    k = turn / length
    tip = pose(((1.0 - np.cos(turn)) / k, 0.0, np.sin(turn) / k))
    c, s = np.cos(turn), np.sin(turn)
    tip[:3, :3] = [[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]
    material = Material(200e9, shear=80e9)
    rod = Rod(Section.circle(1e-3), material, curvature=(0.0, k, 0.0))
    base = Base(BaseKind.EXTENSIBLE, np.eye(4), np.eye(4), 0.1, 3.0)
    limb = Limb("hook", rod, length, base, Tip(TipKind.FIXED, np.eye(4), np.eye(4)))
    plate = Plate("plate", 0.0, np.zeros(3), np.eye(3), tip)
    return RodRobot("hook", (limb,), plate, np.zeros(3), controlled=("z",)), tip


@pytest.mark.parametrize("turn", [5.0, 15.0, 30.0])
def test_rods_are_cut_finer_where_three_steps_do_not_follow_their_bends(turn):
    robot, tip = hook(turn)
    solver = RodRobotSolver(robot)
    state = solver.dgm(np.array([1.0]), start=Start(np.array([1.0]), tip, np.zeros((1, 6))))
    assert state.converged
    np.testing.assert_allclose(state.pose, tip, rtol=0, atol=1e-4)
    assert (state.segments > 1) == (turn > 10.0)
    # and stay so while it moves
    again = solver.dgm(np.array([1.0 + 1e-9]), start=state)
    assert again.segments == state.segments


def test_strong_tension_has_no_end_at_the_cuts():
    """Rods under tension only come straighter; more segments begin at the nodes that there are.

    Shooting to new nodes from the start loses all digits at L sqrt(n/EI) = 37.
    """
    robot = read_rod_robot("stewart_gough")
    solver = RodRobotSolver(robot)
    state = solver.igm(robot.home_pose)
    for pull in np.linspace(0.0, 8000.0, 321):
        W = np.array([0.0, 0.0, pull, 0.0, 0.0, 0.0])
        state = solver.igm(robot.home_pose, wrench=W, start=state)
        assert state.converged, (pull, state)
    assert state.slenderness > 36.0
    # each rod is a string but for its ends: the pull goes along the way between its points
    assert state.segments >= 9
    assert state.base_wrenches[:, 2].sum() == pytest.approx(8000.0, rel=1e-3)


def test_what_was_solved_before_shows_in_no_digit():
    """From a guess, or from a solution that is not the last: the same bits as of a new solver."""
    robot = read_rod_robot("stewart_gough")
    used, new = RodRobotSolver(robot), RodRobotSolver(robot)
    x = robot.home_pose.copy()
    x[:3, 3] += (0.01, -0.02, 0.03)
    home = taut = used.igm(robot.home_pose)
    for pull in np.linspace(0.0, 4000.0, 161):
        W = np.array([0.0, 0.0, pull, 0.0, 0.0, 0.0])
        taut = used.igm(robot.home_pose, wrench=W, start=taut)
    assert taut.segments > 2
    for make in (
        lambda solver: solver.igm(x),
        lambda solver: solver.igm(x, start=home),
        lambda solver: solver.dgm(home.q),
        lambda solver: solver.igm(robot.home_pose, wrench=W, start=taut),
        lambda solver: solver.igm(x, wrench=0.9 * W, start=taut),
    ):
        used.dgm(taut.q, wrench=W, start=taut)  # leaves its segments behind
        new.igm(x)  # leaves one piece
        found, expected = make(used), make(new)
        assert found.converged
        assert found.segments == expected.segments
        np.testing.assert_array_equal(found.record[:-INFO], expected.record[:-INFO])


def test_what_cannot_be_made_accurate_is_no_solution():
    robot, tip = hook(200.0)
    solver = RodRobotSolver(robot)
    state = solver.dgm(np.array([1.0]), start=Start(np.array([1.0]), tip, np.zeros((1, 6))))
    assert not state.converged
    assert state.status is RodStatus.NOT_CONVERGED


def test_error_estimate_sees_below_the_tolerance():
    """The estimate is of the steps' error, also where the solver's tolerance hides it."""
    robot, tip = hook(5.0)
    start = Start(np.array([1.0]), tip, np.zeros((1, 6)))
    exact = RodRobotSolver(robot, SolverSettings(tolerance=1e-12))
    error = np.abs(exact.dgm(np.array([1.0]), start=start).pose - tip).max()
    solver = RodRobotSolver(robot)
    assert 1e-9 < error < solver.settings.tolerance
    found = solver.discretisation_error(solver.dgm(np.array([1.0]), start=start))
    assert found == pytest.approx(error, rel=0.1)


def test_shapes_of_few_points_are_as_accurate():
    robot, tip = hook(5.0)
    solver = RodRobotSolver(robot)
    state = solver.dgm(np.array([1.0]), start=Start(np.array([1.0]), tip, np.zeros((1, 6))))
    for points in (2, 3, 50):
        end = solver.shapes(state, points).positions[0, -1]
        np.testing.assert_allclose(end, tip[:3, 3], rtol=0, atol=1e-6)


def test_evaluated_state_is_a_solution_only_if_it_is_one():
    robot = ring_robot(6)
    solver = RodRobotSolver(robot)
    state = solver.igm(robot.home_pose)
    assert solver.residual(state).converged
    bent = Start(state.q + 0.01, state.pose, state.base_wrenches)
    evaluated = solver.residual(bent)
    assert evaluated.status is RodStatus.NOT_CONVERGED
    assert evaluated.residual > solver.settings.tolerance


def test_a_robot_that_stands_elsewhere_needs_no_start():
    """Guesses are made where the robot is: base pose, gravity and load turned with it."""
    robot = ring_robot(6, TipKind.REVOLUTE)
    base = pose((3.0, -2.0, 1.0), (1.0, 2.0, 0.5))
    turn = base[:3, :3]
    W = np.array([0.1, -0.05, -3.0, 0.02, 0.0, 0.01])
    here = RodRobotSolver(robot)
    there = RodRobotSolver(robot, base=base, gravity=turn @ robot.gravity)
    turned = np.concatenate([turn @ W[:3], turn @ W[3:]])
    x = robot.home_pose
    q = here.igm(x, wrench=W).q
    for state in (
        there.igm(base @ x, wrench=turned),
        there.dgm(q, wrench=turned),
        there.limbs(q, base @ x),
    ):
        assert state.converged
        np.testing.assert_allclose(state.q, q, rtol=0, atol=1e-7)
        np.testing.assert_allclose(state.pose, base @ x, rtol=0, atol=1e-6)


CURVED = Material(200e9, shear=80e9, density=8000.0)


@pytest.mark.parametrize(
    ("rod", "message"),
    [
        (Rod(Section.circle(1e-3), CURVED, curvature=(0.0, 0.5, 0.0)), "curvature at rest"),
        (Rod(Section.rectangle(1e-3, 3e-3), CURVED, curvature=(0.0, 0.0, 2.0)), "curvature"),
        (Rod(Section.circle(1e-3), CURVED, strain=(0.1, 0.0, 1.0)), "strain at rest"),
    ],
    ids=["bent", "twisted", "sheared"],
)
def test_planar_robot_refuses_rods_that_leave_its_plane(rod, message):
    """Three equations per rod know nothing of what bends it out of the plane."""
    robot = plane_robot()
    limbs = tuple(replace(limb, rod=rod) for limb in robot.limbs)
    with pytest.raises(RodError, match=f"'turning' of planar robot.*{message}"):
        RodRobotSolver(replace(robot, limbs=limbs))


def test_planar_robot_refuses_what_stands_askew():
    robot = plane_robot()
    flat = Rod(Section.rectangle(1e-3, 3e-3), CURVED, curvature=(0.5, 0.0, 0.0))
    limbs = [replace(limb, rod=flat) for limb in robot.limbs]
    RodRobotSolver(replace(robot, limbs=tuple(limbs)))  # d1 is the normal: fine
    feet = limbs[1].base
    askew = replace(feet, attach=feet.attach @ pose((0, 0, 0), (0, 0, 0.3)))
    straight = Rod(Section.rectangle(1e-3, 3e-3), CURVED)
    limbs[1] = replace(limbs[1], rod=straight, base=askew)
    with pytest.raises(RodError, match=r"'feeding' of planar robot.*askew"):
        RodRobotSolver(replace(robot, limbs=tuple(limbs)))
    with pytest.raises(RodError, match="tilted by 90 deg"):
        RodRobotSolver(robot, base=pose((0, 0, 0), (np.pi / 2, 0, 0)))


def test_planar_robot_does_not_feel_the_weight_that_its_plane_carries():
    robot = read_rod_robot("planar_3efr")
    turned = pose((1.0, 2.0, 3.0), (0.0, 0.0, 0.7))
    q = RodRobotSolver(robot).igm(robot.home_pose).q
    solver = RodRobotSolver(robot, base=turned, gravity=np.array([0.0, 0.0, -9.81]))
    state = solver.igm(turned @ robot.home_pose)
    np.testing.assert_allclose(state.q, q, rtol=0, atol=1e-7)
    np.testing.assert_allclose(solver.shapes(state).positions[:, :, 2], 3.0, rtol=0, atol=1e-9)


def test_bad_commands_without_a_start():
    robot = ring_robot(3, controlled=("z", "rx", "ry"))
    solver = RodRobotSolver(robot)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for q in (1e300, 1e-300, 0.0, -1.0, np.nan, -np.inf):
            assert not solver.dgm(np.full(3, q)).converged
        for x in (1e300, -1e300, np.nan):
            assert not solver.igm(pose((x, 0.0, 0.0))).converged
    for bad in (None, "abc", [1.0, 2.0]):
        with pytest.raises(ShapeError):
            solver.dgm(bad)
        with pytest.raises(ShapeError):
            solver.igm(bad)
        with pytest.raises(ShapeError):
            solver.igm(robot.home_pose, wrench=bad if bad is not None else [])
    other = RodRobotSolver(ring_robot(6))
    with pytest.raises(ShapeError, match=r"ring_3.*\(3, 6\)"):
        solver.igm(robot.home_pose, start=other.igm(robot.home_pose))


def test_numbers_that_no_robot_has_are_refused():
    """Finite, but beyond all measure: they would overflow in what follows."""
    robot = ring_robot(3, controlled=("z", "rx", "ry"))
    wide = replace(robot.limbs[0].base, lower=-np.inf, upper=np.inf)
    limbs = tuple(replace(limb, base=wide) for limb in robot.limbs)
    for found in (
        checked_joints(replace(robot, limbs=limbs), np.full(3, 1e300)),
        checked_pose(robot, pose((0.0, -1e300, 0.0))),
        checked_wrench(np.full(6, 1e300), "world"),
    ):
        assert found.status is RodStatus.INVALID
        assert "1e+300" in found.message
