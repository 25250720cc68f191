"""The muscle engine: action equals reaction, virtual work, agreement of its two backends."""

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.muscles.engine import MuscleEngine
from random_robots import random_robot


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


class Scene:
    """A robot in a random state, with everything the engine needs."""

    def __init__(self, seed: int, **options):
        self.robot = random_robot(seed, n_muscles=6, **options)
        self.dynamics = make_dynamics(self.robot, "numeric")
        rng = np.random.default_rng(seed)
        tree = self.dynamics.tree
        self.q, self.qd = tree.random(rng), rng.normal(size=tree.nv)
        self.tensions = rng.uniform(0, 100, 6)
        self.poses = self.dynamics.link_poses(self.q).copy()
        self.jacobians = np.array(
            [self.dynamics.operational(self.q, self.qd, k.name).jacobian for k in self.robot.links]
        )
        self.twists = self.jacobians @ self.qd


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_wrenches_balance_and_do_the_work_of_the_tensions(seed, backend):
    scene = Scene(seed)
    state = MuscleEngine(scene.robot, backend).update(scene.poses, scene.twists, scene.tensions)
    forces = state.wrenches[:, :3]
    moments = state.wrenches[:, 3:] + np.cross(scene.poses[:, :3, 3], forces)
    np.testing.assert_allclose(forces.sum(0) + state.world_wrench[:3], 0, atol=1e-9)
    np.testing.assert_allclose(moments.sum(0) + state.world_wrench[3:], 0, atol=1e-9)

    tau = np.einsum("lij,li->j", scene.jacobians, state.wrenches)
    exact = scene.dynamics.update(scene.q, scene.qd)
    np.testing.assert_allclose(tau, -exact.muscle_jacobian.T @ scene.tensions, atol=1e-9)
    np.testing.assert_allclose(state.lengths, exact.muscle_lengths, atol=1e-12)
    np.testing.assert_allclose(state.rates, exact.muscle_jacobian @ scene.qd, atol=1e-12)


def test_a_muscle_between_free_bodies_pulls_them_together():
    """Newton's third law on two free bodies, without the world."""
    scene = Scene(3, n_links=2, kinds=("free",))
    state = MuscleEngine(scene.robot, "numeric").update(scene.poses, scene.twists, scene.tensions)
    assert np.abs(state.wrenches).max() > 1.0


def test_each_muscle_balances_by_itself():
    scene = Scene(6)
    engine = MuscleEngine(scene.robot, "numeric")
    for i in range(6):
        tensions = np.where(np.arange(6) == i, 50.0, 0.0)
        state = engine.update(scene.poses, scene.twists, tensions)
        total = state.wrenches[:, :3].sum(0) + state.world_wrench[:3]
        np.testing.assert_allclose(total, 0, atol=1e-12)


def test_paths_have_the_reported_length():
    scene = Scene(2)
    engine = MuscleEngine(scene.robot)
    state = engine.update(scene.poses, scene.twists, scene.tensions)
    paths = engine.path_points(scene.poses)
    drawn = [np.linalg.norm(np.diff(path, axis=0), axis=1).sum() for path in paths]
    np.testing.assert_allclose(drawn, state.lengths, atol=1e-12)
    assert [len(p) for p in paths] == [len(m.path) for m in scene.robot.muscles]


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_no_muscles(backend):
    robot = random_robot(1, n_muscles=0)
    engine = MuscleEngine(robot, backend)
    n = len(robot.links)
    state = engine.update(np.tile(np.eye(4), (n, 1, 1)), np.zeros((n, 6)), np.zeros(0))
    assert not state.wrenches.any()
    assert engine.path_points(np.tile(np.eye(4), (n, 1, 1))) == []


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_segment_of_no_length_gives_no_nan(backend):
    scene = Scene(4)
    point = scene.robot.muscles[0].path[0]
    degenerate = type(scene.robot.muscles[0])("null", (point, point), 0.0, 10.0)
    robot = type(scene.robot)(
        "null", scene.robot.links, scene.robot.joints, (degenerate,), gravity=np.zeros(3)
    )
    state = MuscleEngine(robot, backend).update(scene.poses, scene.twists, np.array([10.0]))
    assert np.abs(state.wrenches).max() < 1e-9
    assert abs(state.lengths[0]) < 1e-9
    assert np.isfinite(state.rates).all()
