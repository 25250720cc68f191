"""Robots with any joints and any number of limbs: physics, redundancy, loads, bad commands."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from rod_robots import (
    EVERY_LIMB,
    FLAT,
    ROUND,
    any_robot,
    matched,
    plane_robot,
    pose,
    ring_robot,
)

from cards_core.errors import RodError, ShapeError, UnknownNameError
from cards_core.rods.loads import Loading
from cards_core.rods.native_library import rod_library
from cards_core.rods.robots.robot import BaseKind, SolverSettings, TipKind, rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.solution import shape
from cards_core.rods.status import RodStatus

EXACT = SolverSettings(steps=12, tolerance=1e-12, max_iterations=60)


def energy(robot, state):
    total = 0.0
    for limb, length, start, wrench in zip(
        robot.limbs, rod_lengths(robot, state.q), rod_starts(robot, state.q),
        state.base_wrenches, strict=True,
    ):  # fmt: skip
        rod = shape(limb.rod, length, start, wrench, Loading(robot.gravity), points=2)
        total += rod.energy - length * limb.rod.weight(robot.gravity) @ rod.centroid
    return total


@pytest.mark.parametrize("rod", [ROUND, FLAT], ids=["round", "flat and curved"])
def test_every_joint_conserves_energy(rod):
    """The wrench of all 28 kinds of limbs on a moved plate is the slope of their energy.

    True only if what a joint locks and what it lets through belong together.
    """
    robot = any_robot(EVERY_LIMB, rod, seed=5)
    extensible = [limb.base.kind is BaseKind.EXTENSIBLE for limb in robot.limbs]
    q = np.where(extensible, 0.52, 0.05) * robot.actuated
    w = np.random.default_rng(9).normal(size=(28, 6)) * ([0.8] * 3 + [0.2] * 3)
    w *= 1.0 if rod is ROUND else 0.3
    x = pose((0.0, 0.0, 0.47), (0.1, -0.2, 0.3))
    robot, start = matched(robot, q, x, w)
    solver = RodRobotSolver(robot, EXACT)
    state = solver.limbs(q, x, start=start)
    assert state.converged, state.residuals
    direction = np.array([0.6, -0.5, 0.7, 0.9, 0.4, -0.8])

    def near(way):
        turn = pose((0, 0, 0), way * direction[3:])
        moved = x.copy()
        moved[:3, :3] = turn[:3, :3] @ x[:3, :3]
        moved[:3, 3] += way * direction[:3]
        found = solver.limbs(q, moved, start=state)
        assert found.converged
        return found

    h, (nodes, weights) = 1e-4, np.polynomial.legendre.leggauss(8)
    gained = energy(robot, near(h)) - energy(robot, near(-h))
    work = -h * weights @ [near(h * node).plate_wrench @ direction for node in nodes]
    scale = 2 * h * np.abs(state.plate_wrench).max()
    assert gained == pytest.approx(work, abs=1e-6 * scale)
    # and the stiffness is that of a potential: its skew part is half the moment that is left
    K = state.stiffness
    scale = np.abs(K).max()
    assert np.abs((K - K.T)[:3]).max() < 2e-8 * scale + 1.01 * np.abs(state.plate_wrench).max()


@pytest.mark.parametrize("tip", TipKind)
@pytest.mark.parametrize("base", [BaseKind.PRISMATIC, BaseKind.REVOLUTE, BaseKind.EXTENSIBLE])
def test_robots_with_each_joint(base, tip):
    robot = any_robot([(base, tip)] * 6, seed=8)
    q = np.full(6, 0.5 if base is BaseKind.EXTENSIBLE else 0.0)
    robot, state = matched(robot, q, pose((0.0, 0.0, 0.47)))
    robot = replace(robot, plate=replace(robot.plate, mass=0.01))
    solver = RodRobotSolver(robot, EXACT)
    for part in (0.0, 0.5, 1.0):
        state = solver.dgm(q + 0.01 * part * np.sin(np.arange(6)), start=state)
        assert state.converged, (part, state)
    K = state.stiffness
    assert np.abs(K - K.T).max() < 1e-9 * np.abs(K).max()
    near = state.pose.copy()
    near[:3, 3] += [0.0001, -0.0002, 0.0001]
    moved = solver.igm(near, start=state)
    assert moved.converged, moved
    again = solver.dgm(moved.q, start=state)
    assert again.converged
    assert again.iterations > 0
    np.testing.assert_allclose(again.pose, near, rtol=0, atol=1e-9)


def test_three_limbs_follow_their_controlled_coordinates():
    robot = ring_robot(3, TipKind.FIXED, controlled=("z", "rx", "ry"))
    solver = RodRobotSolver(robot, EXACT)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    target = pose((0.3, 0.3, 0.51), (0.05, -0.04, 0.2))  # x, y, rz here mean nothing
    state = solver.igm(target, start=home)
    assert home.converged
    assert state.converged
    assert state.pose[2, 3] == pytest.approx(0.51, abs=1e-12)
    # the error is a rotation about the axis that is not commanded
    difference = state.pose[:3, :3] @ target[:3, :3].T
    skew = difference - difference.T
    np.testing.assert_allclose([skew[2, 1], skew[0, 2]], 0.0, atol=1e-10)
    again = solver.dgm(state.q, start=home)
    np.testing.assert_allclose(again.pose, state.pose, rtol=0, atol=1e-10)


def test_eight_limbs_take_the_least_step():
    robot = ring_robot(8)
    solver = RodRobotSolver(robot, EXACT)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    assert home.converged
    step = np.array([2e-6, -1e-6, 3e-6, 1e-5, 2e-5, -1e-5])
    near = pose(home.pose[:3, 3] + step[:3], step[3:])
    state = solver.igm(near, start=home)
    assert state.converged
    # W = 0 = -K dx + C dq: the smallest dq
    want = np.linalg.pinv(home.linear.joints) @ (home.stiffness @ step)
    found = state.q - home.q
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-3 * np.abs(want).max())
    again = solver.dgm(state.q, start=home)
    np.testing.assert_allclose(again.pose, state.pose, rtol=0, atol=1e-9)


def test_limbs_without_actuator_come_along():
    kinds = [(BaseKind.EXTENSIBLE, TipKind.SPHERICAL)] * 6 + [(BaseKind.FIXED, TipKind.REVOLUTE)]
    robot = any_robot(kinds)
    q = np.array([0.5] * 6 + [0.0])
    w = np.random.default_rng(3).normal(size=(7, 6)) * ([0.4] * 3 + [0.1] * 3)
    robot, state = matched(robot, q, pose((0.0, 0.0, 0.47)), w)
    robot = replace(robot, plate=replace(robot.plate, mass=0.0))
    solver = RodRobotSolver(robot, EXACT)
    free = solver.limbs(q, state.pose, start=state)
    load = -free.plate_wrench
    home = solver.dgm(q, wrench=load, start=free)
    assert free.converged
    assert home.converged
    near = solver.dgm(q + 0.003 * np.sin(np.arange(7)) * (q > 0.0), wrench=load, start=home)
    assert near.converged
    near = near.pose
    found = solver.igm(near, wrench=load, start=home)
    assert found.converged
    assert found.q[6] == 0.0
    assert np.abs(found.q - q).max() > 1e-3
    assert not found.jacobian[:, 6].any()
    assert np.isfinite(found.condition)
    again = solver.dgm(found.q, wrench=load, start=home)
    np.testing.assert_allclose(again.pose, near, rtol=0, atol=1e-9)


def test_the_plane_is_a_part_of_space():
    flat, full = plane_robot(), plane_robot(planar=False)
    for target in (pose((0.02, 0.58, 0.0)), pose((-0.03, 0.55, 0.0), (0.0, 0.0, 0.2))):
        in_plane = RodRobotSolver(flat, EXACT)
        start = in_plane.igm(pose((0.0, 0.59, 0.0)))
        found = in_plane.igm(target, start=start)
        assert start.converged
        assert found.converged
        in_space = RodRobotSolver(full, EXACT).dgm(found.q, start=found)
        assert in_space.converged
        slots = [0, 1, 5]
        np.testing.assert_allclose(in_space.pose[:2], found.pose[:2], rtol=0, atol=1e-9)
        assert abs(in_space.pose[2, 3]) < 1e-9
        scale = np.abs(found.stiffness).max()
        np.testing.assert_allclose(
            found.stiffness[np.ix_(slots, slots)] / scale,
            in_space.stiffness[np.ix_(slots, slots)] / scale, rtol=0, atol=1e-9,
        )  # fmt: skip
        np.testing.assert_allclose(found.jacobian[slots], in_space.jacobian[slots], atol=1e-8)
        assert found.stiffness.shape == (6, 6)
        assert not found.stiffness[2:5].any()
        assert found.eigenvalues.shape == (3,)


def test_follower_load_turns_with_the_plate():
    robot = ring_robot(6, TipKind.FIXED)
    solver = RodRobotSolver(robot, EXACT)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    W = np.array([0.05, -0.03, 0.04, 0.002, 0.001, -0.003])
    q = home.q + 0.01 * np.sin(np.arange(6))
    follower = solver.dgm(q, wrench=W, frame="plate", start=home)
    assert follower.converged
    R = follower.pose[:3, :3]
    dead = solver.dgm(q, wrench=np.concatenate([R @ W[:3], R @ W[3:]]), start=follower)
    assert dead.converged
    np.testing.assert_allclose(dead.pose, follower.pose, rtol=0, atol=1e-10)
    np.testing.assert_allclose(follower.wrench, dead.external_wrench, atol=1e-12)
    assert np.abs(dead.stiffness - follower.stiffness).max() > 1e-3


def test_tension_that_one_piece_cannot_bear():
    """360 N on each rod: errors grow e^24 from end to end; the solver cuts the rods itself."""
    robot = ring_robot(6, TipKind.FIXED, mass=0.1)
    solver = RodRobotSolver(robot, replace(robot.settings, max_iterations=40))
    state = solver.igm(pose((0.0, 0.0, 0.5)))
    pulls = [20.0 * 1.25**k for k in range(22)]
    for pull in (*pulls, *pulls[::-1]):
        W = np.array([0.0, 0.0, pull, 0.0, 0.0, 0.0])
        state = solver.igm(pose((0.0, 0.0, 0.5)), wrench=W, start=state)
        assert state.converged, (pull, state)
        if pull < pulls[-1]:
            continue
        assert state.slenderness > 24.0
        assert state.segments > 4
        ends = np.stack([state.pose @ limb.tip.joint_pose for limb in robot.limbs])[:, :3, 3]
        # as well with sections that do not fall on the cuts
        for points in (12, 101):
            found = solver.shapes(state, points).positions[:, -1]
            np.testing.assert_allclose(found, ends, rtol=0, atol=1e-5)
        again = solver.dgm(state.q, wrench=W, start=state)
        assert again.converged
        np.testing.assert_allclose(again.pose, state.pose, rtol=0, atol=1e-7)
    assert state.segments == 1


def test_policies_agree_and_the_chord_saves_jacobians():
    robot = ring_robot(6, TipKind.REVOLUTE)
    counts = {}
    for policy in ("fresh", "chord"):
        solver = RodRobotSolver(robot, SolverSettings(policy=policy, tolerance=1e-9))
        state = solver.igm(pose((0.0, 0.0, 0.5)))
        total = 0
        for i in range(100):
            state = solver.igm(pose((0.0, 0.0004 * i, 0.5)), start=state)
            assert state.converged
            total += state.jacobians
        counts[policy] = total, state.q.copy()
    np.testing.assert_allclose(counts["fresh"][1], counts["chord"][1], rtol=0, atol=1e-8)
    assert counts["chord"][0] < 0.5 * counts["fresh"][0]


def test_solutions_keep_what_they_are():
    """A later solve changes neither the numbers nor the stiffness of an earlier solution."""
    robot = ring_robot(6, TipKind.REVOLUTE)
    solver = RodRobotSolver(robot, EXACT)
    first = solver.igm(pose((0.0, 0.0, 0.5)))
    expected = RodRobotSolver(robot, EXACT).igm(pose((0.0, 0.0, 0.5))).stiffness
    second = solver.igm(pose((0.01, 0.0, 0.5)), start=first)
    assert second.converged
    np.testing.assert_array_equal(first.pose[:3, 3], [0.0, 0.0, 0.5])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(first.stiffness / scale, expected / scale, rtol=0, atol=1e-10)
    third = solver.igm(pose((0.02, 0.0, 0.5)), start=second)
    assert third.converged


def test_limbs_are_solved_each_for_itself():
    robot = ring_robot(6, TipKind.REVOLUTE)
    solver = RodRobotSolver(robot)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    q = home.q.copy()
    q[3] = 0.2  # too short by far
    state = solver.limbs(q, pose((0.001, 0.0, 0.5)), start=home)
    assert state.status is RodStatus.NOT_CONVERGED
    assert state.residuals[3] > 1e-3
    assert np.delete(state.residuals[:6], 3).max() < 1e-6


def test_two_threads_share_a_solver():
    robot = ring_robot(6, TipKind.REVOLUTE)
    solver = RodRobotSolver(robot, EXACT)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    shifts = np.linspace(-0.01, 0.01, 60)

    def lengths(shift):
        state = solver.igm(pose((shift, 0.0, 0.5)), start=home)
        assert state.converged
        return np.append(state.q, state.min_eigenvalue)

    alone = [lengths(shift) for shift in shifts]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lengths, shifts))
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_commands_that_cannot_be():
    robot = ring_robot(6, TipKind.REVOLUTE)
    solver = RodRobotSolver(robot)
    home = solver.igm(pose((0.0, 0.0, 0.5)))
    q = home.q.copy()
    q[2] = -0.1
    assert solver.dgm(q, start=home).status is RodStatus.LIMIT
    q[2] = np.nan
    assert solver.dgm(q, start=home).status is RodStatus.NOT_FINITE
    bad = pose((0.0, 0.0, np.inf))
    assert solver.igm(bad, start=home).status is RodStatus.NOT_FINITE
    assert solver.igm(home.pose, wrench=np.full(6, np.nan), start=home).status is (
        RodStatus.NOT_FINITE
    )
    far = solver.igm(pose((3.0, 0.0, 0.5)), start=home)
    assert not far.converged
    assert far.status in (RodStatus.NOT_CONVERGED, RodStatus.SINGULAR)
    # and nothing of it is left behind
    assert solver.igm(pose((0.001, 0.0, 0.5)), start=home).converged
    with pytest.raises(ShapeError, match="rotation"):
        solver.igm(2.0 * np.eye(4), start=home)
    with pytest.raises(ShapeError, match="expected"):
        solver.dgm(np.zeros(5), start=home)
    with pytest.raises(ShapeError, match="wrench"):
        solver.dgm(home.q, wrench=np.zeros(5), start=home)
    with pytest.raises(UnknownNameError, match="world"):
        solver.dgm(home.q, frame="tool", start=home)
    with pytest.raises(ShapeError, match="two"):
        solver.shapes(home, 1)
    for solve in (solver.dgm, solver.igm):
        with pytest.raises(ShapeError, match=r"start is of type ndarray.*Solution"):
            solve(home.q if solve == solver.dgm else home.pose, start=home.pose)
    assert solver.dgm(home.q, start=home).converged


def test_robots_and_settings_that_cannot_be():
    robot = ring_robot(6)
    with pytest.raises(RodError, match=r"robot is 'stewart_gough'; expected .*read_rod_robot"):
        RodRobotSolver("stewart_gough")
    for settings in (
        SolverSettings(steps=0),
        SolverSettings(tolerance=0.0),
        SolverSettings(segments=99),
    ):
        with pytest.raises(RodError, match="expected"):
            RodRobotSolver(robot, settings)
    with pytest.raises(UnknownNameError, match="fresh"):
        RodRobotSolver(robot, SolverSettings(policy="fast"))
    with pytest.raises(RodError, match="limbs"):
        RodRobotSolver(replace(robot, limbs=()))
    with pytest.raises(RodError, match="controlled"):
        RodRobotSolver(ring_robot(3))
    with pytest.raises(RodError, match="plane"):
        RodRobotSolver(replace(any_robot(list(zip(cycle(BaseKind), TipKind, strict=False))),
                               planar=True, controlled=("x", "y", "rz")))  # fmt: skip


def test_numbers_of_the_library():
    """What Python and C both know."""
    assert rod_library().robot_numbers() == 59
    assert [RodStatus.OK, RodStatus.NOT_CONVERGED, RodStatus.LIMIT] == [0, 4, 5]
    assert [RodStatus.SINGULAR, RodStatus.NOT_FINITE] == [8, 9]
