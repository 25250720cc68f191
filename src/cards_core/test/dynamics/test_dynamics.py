"""M, C, G, l, L, J: backends against each other, Pinocchio, finite differences and energy."""

from __future__ import annotations

import numpy as np
import pytest
from pinocchio_models import pinocchio_model, to_pinocchio

from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, UnknownNameError
from cards_core.robot import Tree
from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot
from random_robots import random_robot

SEEDS = range(12)
STATE = ("mass_matrix", "coriolis", "gravity", "muscle_lengths", "muscle_jacobian")
OPERATIONAL = ("position", "rotation", "jacobian", "bias")


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    """Compile into a folder of our own, without optimising: the numbers are what counts."""
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


def random_state(tree: Tree, seed: int):
    rng = np.random.default_rng(1000 + seed)
    return tree.random(rng), rng.normal(size=tree.nv)


def derivative(function, tree, q, direction, eps=1e-6):
    """Central difference of function(q) along a tangent direction."""
    plus = np.array(function(tree.integrate(q, eps * direction)))
    minus = np.array(function(tree.integrate(q, -eps * direction)))
    return (plus - minus) / (2 * eps)


@pytest.mark.parametrize("seed", SEEDS)
def test_backends_agree(seed):
    robot = random_robot(seed)
    numeric, compiled = make_dynamics(robot, "numeric"), make_dynamics(robot, "compiled")
    for trial in range(5):
        q, qd = random_state(numeric.tree, 10 * seed + trial)
        a, b = numeric.update(q, qd), compiled.update(q, qd)
        for name in STATE:
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-10, rtol=1e-10)
        for frame in ("tool", "link2"):
            c, d = numeric.operational(q, qd, frame), compiled.operational(q, qd, frame)
            for name in OPERATIONAL:
                np.testing.assert_allclose(getattr(c, name), getattr(d, name), atol=1e-10)
        np.testing.assert_allclose(
            numeric.muscle_bias(q, qd), compiled.muscle_bias(q, qd), atol=1e-10, rtol=1e-10
        )
        np.testing.assert_allclose(numeric.link_poses(q), compiled.link_poses(q), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_are_derivatives(seed):
    dynamics = make_dynamics(random_robot(seed), "numeric")
    tree = dynamics.tree
    q, qd = random_state(tree, seed)
    zero = np.zeros(tree.nv)
    jacobian = dynamics.update(q, qd).muscle_jacobian
    operational = dynamics.operational(q, qd)
    for column, direction in enumerate(np.eye(tree.nv)):
        dl = derivative(lambda x: dynamics.update(x, zero).muscle_lengths, tree, q, direction)
        np.testing.assert_allclose(dl, jacobian[:, column], atol=1e-7)
        dp = derivative(lambda x: dynamics.operational(x, zero).position, tree, q, direction)
        np.testing.assert_allclose(dp, operational.jacobian[:3, column], atol=1e-7)
        dr = derivative(lambda x: dynamics.operational(x, zero).rotation, tree, q, direction)
        spin = dr @ operational.rotation.T  # = hat(omega)
        omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        np.testing.assert_allclose(omega, operational.jacobian[3:, column], atol=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_biases_are_time_derivatives(seed):
    """dL/dt qd and dJ/dt qd: differentiate L and J along the motion."""
    dynamics = make_dynamics(random_robot(seed), "numeric")
    tree = dynamics.tree
    q, qd = random_state(tree, seed)
    dl = derivative(lambda x: dynamics.update(x, qd).muscle_jacobian, tree, q, qd)
    np.testing.assert_allclose(dl @ qd, dynamics.muscle_bias(q, qd), atol=2e-6)
    dj = derivative(lambda x: dynamics.operational(x, qd).jacobian, tree, q, qd)
    np.testing.assert_allclose(dj @ qd, dynamics.operational(q, qd).bias, atol=2e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_gravity_is_the_gradient_of_potential_energy(seed):
    robot = random_robot(seed)
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    q, qd = random_state(tree, seed)

    def potential(x):
        poses = dynamics.link_poses(x)
        centres = [
            p[:3, :3] @ k.inertia.com + p[:3, 3] for p, k in zip(poses, robot.links, strict=True)
        ]
        return -sum(
            k.inertia.mass * robot.gravity @ c for c, k in zip(centres, robot.links, strict=True)
        )

    gradient = [derivative(potential, tree, q, d) for d in np.eye(tree.nv)]
    np.testing.assert_allclose(gradient, dynamics.update(q, qd).gravity, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_power_balance(seed):
    """Check qd' (dM/dt qd - 2 C) = 0: no work beyond the kinetic energy's change."""
    dynamics = make_dynamics(random_robot(seed), "numeric")
    tree = dynamics.tree
    q, qd = random_state(tree, seed)
    rate = derivative(lambda x: qd @ dynamics.update(x, qd).mass_matrix @ qd, tree, q, qd)
    assert rate == pytest.approx(2 * qd @ dynamics.update(q, qd).coriolis, abs=1e-5)


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_and_coriolis_form(seed):
    dynamics = make_dynamics(random_robot(seed), "numeric")
    q, qd = random_state(dynamics.tree, seed)
    state = dynamics.update(q, qd)
    np.testing.assert_allclose(state.mass_matrix, state.mass_matrix.T, atol=1e-12)
    assert np.linalg.eigvalsh(state.mass_matrix).min() > 0
    doubled = dynamics.update(q, 2 * qd).coriolis
    np.testing.assert_allclose(doubled, 4 * state.coriolis, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_against_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    robot = random_robot(seed, n_links=7)
    dynamics = make_dynamics(robot, "numeric")
    tree = dynamics.tree
    model = pinocchio_model(pin, robot, tree)
    data = model.createData()
    q, qd = random_state(tree, seed)
    state = dynamics.update(q, qd)
    qp = to_pinocchio(tree, q)
    mass = np.triu(pin.crba(model, data, qp))
    mass += np.triu(mass, 1).T
    gravity = pin.computeGeneralizedGravity(model, data, qp).copy()
    both = pin.nonLinearEffects(model, data, qp, qd).copy()
    scale = max(1.0, np.abs(both).max())
    np.testing.assert_allclose(state.mass_matrix, mass, atol=1e-10 * scale)
    np.testing.assert_allclose(state.gravity, gravity, atol=1e-10 * scale)
    np.testing.assert_allclose(state.coriolis, both - gravity, atol=1e-10 * scale)
    node, pose = tree.locate("tool")
    frame = pin.Frame(
        "tool", node + 1, 0, pin.SE3(pose.rotation, pose.translation), pin.FrameType.OP_FRAME
    )
    index = model.addFrame(frame)
    data = model.createData()
    reference = pin.LOCAL_WORLD_ALIGNED
    jacobian = pin.computeFrameJacobian(model, data, qp, index, reference).copy()
    pin.forwardKinematics(model, data, qp, qd, np.zeros(tree.nv))
    pin.updateFramePlacements(model, data)
    bias = pin.getFrameClassicalAcceleration(model, data, index, reference).vector
    ours = dynamics.operational(q, qd, "tool")
    np.testing.assert_allclose(ours.position, data.oMf[index].translation, atol=1e-12)
    np.testing.assert_allclose(ours.rotation, data.oMf[index].rotation, atol=1e-12)
    np.testing.assert_allclose(ours.jacobian, jacobian, atol=1e-10)
    np.testing.assert_allclose(ours.bias, bias, atol=1e-9)


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_unknown_frame_lists_the_known(backend):
    dynamics = make_dynamics(random_robot(1), backend)
    with pytest.raises(UnknownNameError, match="tool"):
        dynamics.operational(dynamics.tree.neutral(), np.zeros(dynamics.tree.nv), "hand")


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_no_muscles_and_no_joints(backend):
    robot = random_robot(2, n_muscles=0)
    dynamics = make_dynamics(robot, backend)
    state = dynamics.update(*random_state(dynamics.tree, 0))
    assert state.muscle_lengths.shape == (0,)
    assert state.muscle_jacobian.shape == (0, dynamics.tree.nv)


def test_ill_shaped_arguments_are_named():
    tree = random_robot(3).tree
    with pytest.raises(CardsError, match=r"expected \(\d+,\)"):
        tree.check_q(np.zeros(tree.nq + 1))
    bad = tree.neutral()
    bad[2] = np.nan
    with pytest.raises(CardsError, match=tree.position_names[2]):
        tree.check_q(bad)


@pytest.mark.parametrize("backend", ["numeric", "compiled"])
def test_a_segment_that_vanishes_has_no_bias(backend):
    """A via point of the link passes through one of the world: u does not exist there."""
    joint = Joint("slide", "prismatic", WORLD, "a", axes=(JointAxis(np.array([1.0, 0, 0])),))
    muscle = Muscle("m", (ViaPoint(WORLD, np.zeros(3)), ViaPoint("a", np.zeros(3))))
    body = Inertia(1.0, np.zeros(3), np.eye(3))
    robot = Robot("point", (Link("a", body),), (joint,), (muscle,))
    dynamics = make_dynamics(robot, backend)
    assert dynamics.muscle_bias(np.zeros(1), np.ones(1)) == pytest.approx([0.0], abs=1e-9)
