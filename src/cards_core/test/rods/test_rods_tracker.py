"""The tracker on shipped robots: the reference's path into instability, limits, loads, fuzz."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cards_core.rods.robots.limb_failure import limb_morse_index
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import REJECTED, RodStatus, is_good
from cards_core.rods.tracking.targets import moved, pose_difference
from cards_core.rods.tracking.tracker import Tracker


def started(name):
    tracker = Tracker(read_rod_robot(name))
    assert tracker.start().status is RodStatus.OK
    return tracker


def test_the_path_into_instability_stops_before_collapse():
    """Section 5.5: q_k(t) = q0 + 0.03 (sin(t + k) - sin k); the direct model dies at index 508."""
    tracker = started("stewart_6efr")
    start, k = tracker.result, np.arange(6)
    assert start.min_eigenvalue == pytest.approx(61.97, abs=0.1)
    values, statuses, held = [], [], []
    for i in range(0, 601):
        t = 2.0 * np.pi * i / 1999
        tracker.command_joints(start.solution.q + 0.03 * (np.sin(t + k) - np.sin(k)))
        result = tracker.run()
        assert np.isfinite(result.solution.pose).all()
        assert result.min_eigenvalue > 0.0
        values.append(result.min_eigenvalue)
        statuses.append(result.status)
        held.append(result.held)
    assert values[400] == pytest.approx(24.6, abs=0.5)
    first = statuses.index(RodStatus.NEAR_LIMIT)
    assert set(statuses[:first]) == {RodStatus.OK}
    assert 400 < first < 508
    assert set(statuses[first:]) == {RodStatus.NEAR_LIMIT}
    assert held.index(True) < 508
    assert all(held[508:])
    stopped = tracker.result
    assert "collapse" in stopped.message
    assert np.linalg.norm(stopped.eigenvector) == pytest.approx(1.0)
    stiffness = stopped.solution.stiffness
    residual = 0.5 * (stiffness + stiffness.T) @ stopped.eigenvector
    assert residual == pytest.approx(stopped.min_eigenvalue * stopped.eigenvector, abs=1e-9)
    tracker.command_joints(start.solution.q)  # and it comes back
    assert tracker.run().status is RodStatus.OK
    assert np.abs(pose_difference(tracker.solution.pose, start.solution.pose)).max() < 1e-6


def test_a_rod_that_collapses_by_itself_is_not_stepped_over():
    """K dips below zero for half a millimetre only, then two rods are unstable in themselves."""
    tracker = started("stewart_gough")
    pose = tracker.solution.pose.copy()
    pose[0, 3] += 0.13
    tracker.command_pose(pose)
    result = tracker.run()
    assert result.held
    assert result.status is RodStatus.NEAR_LIMIT
    assert 0.106 < result.solution.pose[0, 3] < 0.1076
    assert not limb_morse_index(tracker.solver, result.solution).any()


@pytest.mark.parametrize(("value", "words"), [(0.0, "length 0"), (-0.1, "length -0.1"),
                                              (0.15, "below"), (0.81, "above")])  # fmt: skip
def test_lengths_outside_are_refused_with_limb_and_limit(value, words):
    tracker = started("stewart_gough")
    before = tracker.solution
    q = before.q.copy()
    q[3] = value
    result = tracker.command_joints(q)
    assert result.status is RodStatus.LIMIT
    assert "limb_4" in result.message
    assert words in result.message
    assert "200" in result.message or "800" in result.message or "0.2 to 0.8" in result.message
    assert tracker.step().solution is before


def test_a_pose_too_far_is_approached_and_reported():
    tracker = started("stewart_gough")
    pose = tracker.solution.pose.copy()
    pose[:3, 3] = (0.0, 0.0, 1.0)
    result = tracker.command_pose(pose)
    assert result.status is RodStatus.UNREACHABLE  # geometry says so at once
    result = tracker.run()
    assert result.held
    assert result.status is RodStatus.UNREACHABLE
    assert result.solution.q.max() == pytest.approx(0.8, abs=1e-3)  # as far as it goes
    assert result.solution.q.max() <= 0.8 + 1e-9
    assert result.remaining.translation == pytest.approx(1.0 - result.solution.pose[2, 3])


def test_small_steps_too_far_are_reported_as_well():
    tracker = started("stewart_gough")
    pose = tracker.solution.pose.copy()
    for _ in range(250):  # 4 mm each: one step of the tracker
        pose[2, 3] += 4e-3
        tracker.command_pose(pose)
        result = tracker.run()
        if result.held:
            break
        assert result.arrived
        assert pose_difference(result.solution.pose, pose) == pytest.approx(0.0, abs=1e-9)
    assert result.status is RodStatus.UNREACHABLE
    assert result.solution.q.max() == pytest.approx(0.8, abs=1e-3)
    for _ in range(100):
        pose[2, 3] += 4e-3
        result = tracker.command_pose(pose)
    assert "too short" in " ".join(result.warnings)


def test_a_pose_beyond_a_joint_limit_says_what_is_missing():
    tracker = started("stewart_6pfs")
    pose = tracker.solution.pose.copy()
    pose[:3, 3] += (0.02, 0.03, 0.5)
    tracker.command_pose(pose)
    result = tracker.run()
    assert result.status is RodStatus.UNREACHABLE
    assert result.held
    finding = next(f for f in result.findings if f.status is RodStatus.UNREACHABLE)
    robot = tracker.robot
    free = replace(
        robot,
        limbs=tuple(replace(li, base=replace(li.base, upper=5.0)) for li in robot.limbs),
    )
    other = Tracker(free)
    other.start()
    other.command_pose(pose)
    needed = other.run().solution.q
    assert finding.limb == int(np.argmax(needed))
    assert finding.missing == pytest.approx(needed.max() - 0.4, abs=1e-6)
    assert result.solution.q.max() == pytest.approx(0.4, abs=1e-4)


def test_a_follower_load_turns_with_the_plate():
    tracker = started("stewart_gough")
    tracker.command_pose(moved(tracker.solution.pose, np.array([0.01, 0, 0.01, 0.05, 0.1, 0.05])))
    assert tracker.run().status is RodStatus.OK
    wrench = np.array([0.3, -0.2, 0.1, 0.01, 0.02, -0.01])
    tracker.set_wrench(wrench, "plate")
    follower = tracker.run().solution.q
    turn = tracker.solution.pose[:3, :3]
    world = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
    result = tracker.set_wrench(world, "world")
    assert tracker.run().arrived
    assert tracker.wrench_frame == "world"
    assert tracker.solution.q == pytest.approx(follower, abs=1e-6)
    assert result.substeps == 0


def test_the_wrench_of_the_model_acts_in_its_own_frame():
    """A follower load in the YAML: the robot starts where the solver puts it under that load."""
    push = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    plain = read_rod_robot("stewart_gough")
    turned = moved(plain.home_pose, [0, 0, 0, 0, 0, 0.3])
    tracker = Tracker(replace(plain, wrench=push, wrench_frame="plate"))
    result = tracker.start(pose=turned)
    assert result.status is RodStatus.OK
    assert tracker.wrench_frame == "plate"
    assert result.solution.external_frame == "plate"
    weight = plain.plate.mass * np.array(plain.gravity)
    pull = result.solution.plate_wrench[:3] + weight
    np.testing.assert_allclose(pull, -turned[:3, :3] @ push[:3], atol=1e-4)
    assert tracker.run().status is RodStatus.OK


def test_a_state_of_rods_in_segments_is_loaded_again():
    tracker = started("stewart_gough")
    tracker.set_wrench([0, 0, 8000.0, 0, 0, 0])
    tracker.run()
    assert tracker.solution.segments > 1
    state, pose = json.loads(json.dumps(tracker.save())), tracker.solution.pose
    other = started("stewart_gough")
    assert other.load(state).status is RodStatus.YIELD
    assert np.abs(pose_difference(other.solution.pose, pose)).max() < 1e-9
    state["record"] = state["record"][:-1]  # of no use; the base wrenches do not lead back
    assert started("stewart_gough").load(state).status is RodStatus.NOT_CONVERGED


def test_overstrained_rods_are_named():
    robot = read_rod_robot("stewart_gough")
    limbs = []
    for limb in robot.limbs:
        material = replace(limb.rod.material, yield_strain=0.0025)  # a soft metal
        limbs.append(replace(limb, rod=replace(limb.rod, material=material)))
    tracker = Tracker(replace(robot, limbs=tuple(limbs)))
    assert tracker.start().status is RodStatus.OK
    tracker.command_pose(moved(tracker.solution.pose, np.array([0.02, 0.01, 0, 0, 0.1, 0])))
    result = tracker.run()
    assert result.arrived
    assert result.status is RodStatus.YIELD
    strains = tracker.solver.strains(result.solution, 101).max(axis=1)
    named = {f.limb for f in result.findings if f.status is RodStatus.YIELD}
    assert 0 < len(named) < 6
    assert set(np.flatnonzero(strains > 0.0025 * 1.01)) <= named
    assert named <= set(np.flatnonzero(strains > 0.0025))


@pytest.mark.parametrize("name", ["stewart_gough", "planar_3rfr"])
def test_wild_commands_never_break_it(name):
    """Sliders thrown about: always a finite, stable, converged state, and a known status."""
    rng = np.random.default_rng(4)
    tracker = started(name)
    robot = tracker.robot
    home = tracker.solution.pose
    seen = set()
    for _ in range(60):
        kind = rng.integers(4)
        if kind == 0:
            result = tracker.command_joints(rng.uniform(robot.q_lower - 0.05, robot.q_upper))
        elif kind == 1:
            reach = 0.15 * rng.normal(size=6)
            if robot.planar:
                reach[2:5] = 0.0
            result = tracker.command_pose(moved(home, reach))
        elif kind == 2:
            load = rng.normal(size=6) * [1, 1, 1, 0.05, 0.05, 0.05]
            result = tracker.set_wrench(load, str(rng.choice(["world", "plate"])))
        else:
            bad = home.copy()
            bad[0, rng.integers(4)] = rng.choice([np.nan, np.inf, 1e3])
            result = tracker.command_pose(bad)
        seen.add(result.status)
        assert result.message or result.status not in REJECTED
        for _ in range(3):
            result = tracker.step(max_substeps=6)
            assert result.substeps <= 6
            seen.add(result.status)
            solution = result.solution
            assert np.isfinite(solution.q).all()
            assert np.isfinite(solution.pose).all()
            assert solution.converged
            assert result.min_eigenvalue > 0.0
            assert result.message or result.status in (RodStatus.OK, RodStatus.MOVING)
    assert RodStatus.MOVING in seen
    assert any(not is_good(status) for status in seen)


def test_a_start_that_does_not_exist_is_answered():
    robot = read_rod_robot("stewart_gough")
    far = robot.home_pose
    far[2, 3] = 3.0
    tracker = Tracker(replace(robot, initial_pose=far), RodRobotSolver(robot))
    result = tracker.start(pose=far)
    assert result.status is RodStatus.UNREACHABLE
    assert result.solution is None
    assert result.held
    assert tracker.step().status is RodStatus.UNREACHABLE
    assert tracker.command_joints(np.full(6, 0.4)).status is RodStatus.UNREACHABLE
    assert tracker.start().status is RodStatus.OK
