"""Muscles that wrap, rub and start at pulleys: balance, derivatives, agreement of the backends."""

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.muscles.engine import MuscleEngine
from random_robots import random_robot

OPTIONS = {
    "closed": {"surfaces": ("sphere", "cylinder"), "pulleys": True},
    "geodesic": {"surfaces": ("ellipsoid", "torus"), "chains": True},
    "friction": {"surfaces": ("sphere", "cylinder"), "friction": 0.3},
}


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


class Scene:
    """A robot near home (where no via point is inside a surface), with what the engine needs."""

    def __init__(self, seed: int, option: str, *, n_muscles: int = 6):
        self.robot = random_robot(seed, n_muscles=n_muscles, **OPTIONS[option])
        self.dynamics = make_dynamics(self.robot, "numeric")
        tree = self.tree = self.dynamics.tree
        rng = np.random.default_rng(seed)
        home = np.asarray(tree.home, dtype=float)
        self.q = tree.integrate(home, rng.uniform(-0.02, 0.02, tree.nv))
        self.qd = rng.normal(size=tree.nv)
        self.tensions = rng.uniform(0, 100, n_muscles)
        self.poses = self.dynamics.link_poses(self.q).copy()
        self.jacobians = np.array(
            [self.dynamics.operational(self.q, self.qd, k.name).jacobian for k in self.robot.links]
        )
        self.twists = self.jacobians @ self.qd

    def engine(self, backend):
        return MuscleEngine(self.robot, backend)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_action_equals_reaction(seed, option, backend):
    scene = Scene(seed, option)
    state = scene.engine(backend).update(scene.poses, scene.twists, scene.tensions)
    forces = state.wrenches[:, :3]
    moments = state.wrenches[:, 3:] + np.cross(scene.poses[:, :3, 3], forces)
    np.testing.assert_allclose(forces.sum(0) + state.world_wrench[:3], 0, atol=1e-9)
    np.testing.assert_allclose(moments.sum(0) + state.world_wrench[3:], 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("option", ["closed", "geodesic"])
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_wrenches_do_the_work_of_the_tensions(seed, option, backend):
    scene = Scene(seed, option)
    state = scene.engine(backend).update(scene.poses, scene.twists, scene.tensions)
    tau = np.einsum("lij,li->j", scene.jacobians, state.wrenches)
    exact = scene.dynamics.update(scene.q, scene.qd)
    np.testing.assert_allclose(tau, -exact.muscle_jacobian.T @ scene.tensions, atol=1e-7)
    np.testing.assert_allclose(state.lengths, exact.muscle_lengths, atol=1e-10)
    np.testing.assert_allclose(state.rates, exact.muscle_jacobian @ scene.qd, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("option", OPTIONS)
def test_backends_agree(seed, option):
    scene = Scene(seed, option)
    numeric = scene.engine("numeric").update(scene.poses, scene.twists, scene.tensions)
    native = scene.engine("compiled")
    compiled = native.update(scene.poses, scene.twists, scene.tensions)
    np.testing.assert_allclose(compiled.lengths, numeric.lengths, atol=1e-10)
    np.testing.assert_allclose(compiled.rates, numeric.rates, atol=1e-9)
    np.testing.assert_allclose(compiled.wrenches, numeric.wrenches, atol=1e-7)
    lengths, rates = native.motion(scene.poses, scene.twists)
    np.testing.assert_array_equal(lengths, compiled.lengths)
    np.testing.assert_array_equal(rates, compiled.rates)

    exact = make_dynamics(scene.robot, "compiled")
    a, b = exact.update(scene.q, scene.qd), scene.dynamics.update(scene.q, scene.qd)
    np.testing.assert_allclose(a.muscle_lengths, b.muscle_lengths, atol=1e-10)
    np.testing.assert_allclose(a.muscle_jacobian, b.muscle_jacobian, atol=1e-9)
    np.testing.assert_allclose(
        exact.muscle_bias(scene.q, scene.qd),
        scene.dynamics.muscle_bias(scene.q, scene.qd),
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("option", ["closed", "geodesic"])
@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_the_rate_of_the_jacobian_leaves_the_state_alone(option, backend):
    """Where it is found by differences, the model is evaluated beside q."""
    scene = Scene(1, option)
    dynamics = make_dynamics(scene.robot, backend)
    state = dynamics.update(scene.q, scene.qd)
    before = {name: getattr(state, name).copy() for name in vars(state)}
    assert np.abs(dynamics.muscle_bias(scene.q, scene.qd)).max() > 1e-3
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(state, name), values, err_msg=name)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("option", ["closed", "geodesic"])
def test_jacobian_is_the_derivative_of_the_lengths(seed, option):
    scene = Scene(seed, option)
    tree, h = scene.tree, 1e-6
    jacobian = scene.dynamics.update(scene.q, scene.qd).muscle_jacobian.copy()
    for j in range(tree.nv):
        step = np.zeros(tree.nv)
        step[j] = h
        plus, minus = (
            scene.dynamics.update(tree.integrate(scene.q, s * step), scene.qd).muscle_lengths
            for s in (1.0, -1.0)
        )
        np.testing.assert_allclose((plus - minus) / (2 * h), jacobian[:, j], atol=1e-6)


def test_the_random_robots_do_wrap():
    """The tests above would pass if nothing ever touched."""
    touching = 0
    for option in OPTIONS:
        for seed in range(3):
            scene = Scene(seed, option)
            engine = scene.engine("numeric")
            engine.update(scene.poses, scene.twists, scene.tensions)
            touching += int(np.count_nonzero(engine._paths.arcs))
    assert touching >= 15


def test_friction_takes_energy_away_and_only_friction():
    """Power of the actuators equals power of the wrenches plus a loss that is never negative."""
    rubbing = 0
    for seed in range(12):
        scene = Scene(seed, "friction")
        loss = {}
        for name, robot in (("with", scene.robot), ("without", _without_friction(scene.robot))):
            engine = MuscleEngine(robot, "numeric")
            state = engine.update(scene.poses, scene.twists, scene.tensions)
            delivered = np.einsum("ij,ij->", state.wrenches, scene.twists)
            loss[name] = -state.tensions @ state.rates - delivered
        assert abs(loss["without"]) < 1e-9
        assert loss["with"] > -1e-9
        rubbing += loss["with"] > 1e-3
    assert rubbing >= 4


def test_capstan_equation():
    """T2 = T1 exp(mu angle) over a fixed sphere when the muscle is pulled over it."""
    from cards_core.robot.elements import (
        WORLD,
        Joint,
        JointAxis,
        Link,
        Muscle,
        Sphere,
        ViaPoint,
        Wrap,
        WrapSurface,
    )
    from cards_core.robot.model import Robot

    mu, radius = 0.25, 0.1
    robot = Robot(
        "capstan",
        (Link("load"),),
        (Joint("slide", "prismatic", WORLD, "load", axes=(JointAxis(np.array([0.0, 0, 1])),)),),
        (
            Muscle(
                "rope",
                (
                    ViaPoint(WORLD, np.array([-radius, 0.0, -1.0])),
                    Wrap("drum", side=np.array([0.0, 0.0, 1.0]), friction=mu),
                    ViaPoint("load", np.array([radius, 0.0, -1.0])),
                ),
            ),
        ),
        wrap_surfaces=(WrapSurface("drum", WORLD, Sphere(radius)),),
    )
    poses = np.eye(4)[None].copy()
    for speed, sign in ((1.0, -1.0), (-1.0, 1.0)):  # load rises: the rope slides to the origin
        twists = np.array([[0.0, 0.0, speed, 0.0, 0.0, 0.0]])
        for backend in ("numeric", "compiled"):
            engine = MuscleEngine(robot, backend)
            state = engine.update(poses, twists, np.array([10.0]))
            pull = state.wrenches[0, 2]
            assert pull == pytest.approx(10.0 * np.exp(sign * mu * np.pi), rel=1e-6)


def _without_friction(robot):
    import dataclasses

    from cards_core.robot.elements import Pulley

    muscles = tuple(
        dataclasses.replace(
            muscle,
            path=tuple(
                item if isinstance(item, Pulley) else dataclasses.replace(item, friction=0.0)
                for item in muscle.path
            ),
        )
        for muscle in robot.muscles
    )
    return dataclasses.replace(robot, muscles=muscles)


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_via_points_rub_segment_by_segment(backend):
    """Each point feels T u of both sides, T grows by exp(mu phi) at each; loss is mu phi T v."""
    from cards_core.robot.elements import WORLD, Link, Muscle, ViaPoint
    from cards_core.robot.model import Robot

    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    mu = (0.0, 0.1, 0.2, 0.0)
    names = ("first", "second", "load")
    path = (
        ViaPoint(WORLD, corners[0]),
        *(ViaPoint(name, np.zeros(3), rub) for name, rub in zip(names, mu[1:], strict=True)),
    )
    robot = Robot("route", tuple(Link(name) for name in names), (), (Muscle("wire", path),))
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, 3] = corners[1:]
    twists = np.zeros((3, 6))
    for speed in (0.5, -0.5):  # the load goes away, and comes
        twists[2, 2] = speed
        state = MuscleEngine(robot, backend).update(poses, twists, np.array([10.0]))
        grow = np.exp(np.sign(speed) * 0.5 * np.pi * np.cumsum([0.0, *mu[1:3]]))
        x, y, z = np.eye(3)
        t1, t2, t3 = 10.0 * grow
        expected = [t2 * y - t1 * x, t3 * z - t2 * y, -t3 * z]
        assert state.wrenches[:, :3] == pytest.approx(np.array(expected), abs=1e-9)
        loss = -state.tensions @ state.rates - state.wrenches[2, 2] * speed
        assert loss == pytest.approx((t3 - t1) * speed, abs=1e-9)
        assert loss > 0.0
