"""What the editor shows is what the analyses say of the robot as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.analysis.robot_check import check_robot, within_range
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.points import Samples
from cards_core.dynamics import make_dynamics
from cards_core.editing.live_analysis import HeldLoad, LiveAnalysis
from cards_core.editing.pose_set import PoseSet
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load

ROBOTS = ["roboy_arm", "wrap_elbow", "bm_arm", "tetraspine", "ipanema_1"]


@pytest.mark.parametrize("name", ROBOTS)
def test_lengths_and_moment_arms_at_many_poses(name):
    """Against the numeric backend: another formula, pose by pose."""
    robot = load(name)
    tree, rng = robot.tree, np.random.default_rng(3)
    q = np.array([tree.random(rng) for _ in range(4)])
    dynamics, poses = make_dynamics(robot, "numeric"), PoseSet(tree, q)
    rows = [poses.rows(robot, muscle) for muscle in robot.muscles]
    for i, row in enumerate(q):
        state = dynamics.update(row, np.zeros(tree.nv))
        jacobian = np.array([r.jacobian[i] for r in rows])
        assert np.abs(jacobian - state.muscle_jacobian).max() < 1e-9
        assert np.abs([r.lengths[i] for r in rows] - state.muscle_lengths).max() < 1e-9
        assert np.abs(poses.link_poses(i) - dynamics.link_poses(row)).max() < 1e-12
        for link in (robot.links[0].name, robot.links[-1].name):
            wanted = dynamics.operational(row, np.zeros(tree.nv), link).jacobian[:3]
            assert np.abs(poses.point_jacobian(link)[i] - wanted).max() < 1e-12


@pytest.mark.parametrize("name", ["roboy_arm", "bm_arm"])
def test_moment_arms_are_differences_of_lengths(name):
    """R = -dl/dq along each curve, by the lengths of a finer set."""
    robot = load(name)
    live = LiveAnalysis(robot, samples=5, curve_points=9)
    result = live.analyse(robot, whole=False)
    step = 1e-6
    for j in range(live.tree.nv):
        for k in (0, 4, 8):
            ends = []
            for sign in (-1.0, 1.0):
                q = live.q.copy()
                q[j] = result.values[j, k] + sign * step
                ends.append(q)
            poses = PoseSet(live.tree, np.array(ends))
            lengths = np.array([poses.rows(robot, m).lengths for m in robot.muscles])
            slope = (lengths[:, 1] - lengths[:, 0]) / (2.0 * step)
            assert np.abs(result.arms[:, j, k] + slope).max() < 1e-7


@pytest.mark.parametrize("name", ["roboy_arm", "bm_arm", "wrap_elbow"])
def test_rank_closure_and_static_are_those_of_cards_check(name):
    robot = load(name)
    count = 60 if name != "wrap_elbow" else 20
    result = LiveAnalysis(robot, samples=count, curve_points=3).analyse(robot)
    dynamics = make_dynamics(robot)
    points = within_range(robot.tree, Samples(count))
    check = check_robot(dynamics, points)
    assert result.rank == check.rank.min()
    assert result.singular_value == pytest.approx(check.singular_value.min(), rel=1e-9)
    assert result.closure == check.closure_share
    assert result.static == check.static_share


def test_tensions_hold_the_load():
    robot = load("roboy_arm")
    live = LiveAnalysis(robot, samples=5, curve_points=3)
    state = make_dynamics(robot, "numeric").update(live.q, np.zeros(4))
    hand = make_dynamics(robot, "numeric").operational(live.q, np.zeros(4)).jacobian[:3]
    for mass in (0.0, 2.0):
        result = live.analyse(robot, HeldLoad("hand", mass))
        assert result.tension_status is PointStatus.FEASIBLE
        needed = state.gravity - hand.T @ (mass * robot.gravity)
        assert np.abs(-state.muscle_jacobian.T @ result.tensions - needed).max() < 1e-6
        assert (result.tensions >= 10.0 - 1e-6).all()
    assert live.analyse(robot, HeldLoad("hand", 1e6)).tension_status is PointStatus.INFEASIBLE
    with pytest.raises(CardsError, match="mass of the load"):
        live.analyse(robot, HeldLoad("hand", -1.0))
    with pytest.raises(UnknownNameError):
        live.analyse(robot, HeldLoad("hund", 1.0))


def test_only_what_changed_is_computed(monkeypatch):
    robot = load("roboy_arm")
    live = LiveAnalysis(robot, samples=5, curve_points=3)
    live.analyse(robot)
    asked = []
    rows = PoseSet.rows
    monkeypatch.setattr(
        PoseSet, "rows", lambda self, r, m: (asked.append(m.name), rows(self, r, m))[1]
    )
    live.analyse(robot)
    assert asked == []
    muscle = robot.muscles[3]
    end = replace(muscle.path[0], position=muscle.path[0].position + 0.01)
    other = replace(muscle, path=(end, *muscle.path[1:]))
    changed = replace(robot, muscles=(*robot.muscles[:3], other, *robot.muscles[4:]))
    result = live.analyse(changed)
    assert asked == [muscle.name] * 2  # curves and samples
    fresh = LiveAnalysis(changed, samples=5, curve_points=3).analyse(changed)
    assert np.array_equal(result.arms, fresh.arms)
    live.pose(live.q + 0.1)
    asked.clear()
    live.analyse(changed)
    assert len(asked) == len(robot.muscles)  # curves alone: the samples stay where they are


def test_a_surface_that_changes_counts():
    robot = load("wrap_elbow")
    live = LiveAnalysis(robot, samples=5, curve_points=3)
    before = live.analyse(robot, whole=False)
    surface = robot.wrap_surface("trochlea")
    wider = replace(surface, geometry=replace(surface.geometry, radius=0.04))
    others = tuple(wider if s is surface else s for s in robot.wrap_surfaces)
    changed = replace(robot, wrap_surfaces=others)
    after = live.analyse(changed, whole=False)
    fresh = LiveAnalysis(changed, samples=5, curve_points=3).analyse(changed, whole=False)
    assert np.array_equal(after.arms, fresh.arms)
    assert np.abs(after.arms[0] - before.arms[0]).max() > 1e-3


def test_a_robot_without_muscles_has_an_answer():
    robot = replace(load("roboy_arm"), muscles=())
    result = LiveAnalysis(robot, samples=5, curve_points=3).analyse(robot, HeldLoad("hand", 1.0))
    assert result.rank is None
    assert result.closure is None
    assert result.tension_status is PointStatus.NO_MUSCLES
    assert result.arms.shape == (0, 4, 3)
