"""Forward dynamics against Pinocchio and MuJoCo's convention, energy, order of the integrator."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pinocchio_models import pinocchio_model, to_pinocchio

from cards_core.analysis.forward_dynamics import SOLVERS, ForwardDynamics
from cards_core.analysis.status import PointStatus
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load
from cards_core.robot.elements import Inertia
from random_robots import random_robot

SEEDS = range(6)


@pytest.mark.parametrize("seed", SEEDS)
def test_acceleration_agrees_with_pinocchio(seed):
    pin = pytest.importorskip("pinocchio")
    robot = random_robot(seed)
    dynamics = make_dynamics(robot, "numeric")
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    q, qd = tree.random(rng), rng.normal(size=tree.nv)
    tensions, external = rng.uniform(1, 50, 4), rng.normal(size=tree.nv)
    found = ForwardDynamics(dynamics).step(q, qd, tensions, external)
    torque = -dynamics.update(q, qd).muscle_jacobian.T @ tensions - external
    model = pinocchio_model(pin, robot, tree)
    expected = pin.aba(model, model.createData(), to_pinocchio(tree, q), qd, torque)
    assert found.status is PointStatus.FEASIBLE
    np.testing.assert_allclose(found.qdd, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("solver", ["rk4", "DOP853"])
def test_energy_balance_with_quaternions(seed, solver):
    """Invariant 4: what the tensions and loads do is what T + U gains."""
    dynamics = make_dynamics(random_robot(seed, n_links=3), "numeric")
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    motion = ForwardDynamics(dynamics).simulate(
        tree.random(rng),
        0.5 * rng.normal(size=tree.nv),
        np.linspace(0.0, 0.1, 3),
        rng.uniform(1.0, 3.0, 4),
        external=0.1 * rng.normal(size=tree.nv),
        solver=solver,
        max_step=2e-3,
        tolerance=1e-9,
    )
    assert motion.status is PointStatus.FEASIBLE
    change = np.abs(motion.energy - motion.energy[0]).max()
    assert motion.energy_error < 1e-5 * (1.0 + change)
    assert np.abs(motion.work[-1]) > 1e-3
    for node in tree.nodes:
        if node.kind == "ball":
            norms = np.linalg.norm(motion.q[:, node.q : node.q + 4], axis=1)
            np.testing.assert_allclose(norms, 1.0, atol=1e-12)


@pytest.mark.parametrize("seed", [1, 3, 4])
def test_runge_kutta_on_the_group_has_order_four(seed):
    """Halving the step divides the error by 16, also with ball joints."""
    dynamics = make_dynamics(random_robot(seed, n_links=2, kinds=("ball", "revolute")), "numeric")
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    q, qd = tree.random(rng), 2.0 * rng.normal(size=tree.nv)
    forward = ForwardDynamics(dynamics)

    def end(step):
        motion = forward.simulate(q, qd, np.array([0.0, 0.16]), np.full(4, 2.0), max_step=step)
        return motion.q[-1], motion.qd[-1]

    exact = end(0.001)
    errors = [np.abs(tree.difference(end(h)[0], exact[0])).max() for h in (0.016, 0.008)]
    assert 11.0 < errors[0] / errors[1] < 22.0


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_integrators_agree(solver):
    dynamics = make_dynamics(load("bm_arm"), "numeric")
    start = dynamics.tree.home, np.zeros(4)
    times, tensions = np.array([0.0, 0.02, 0.05]), np.full(6, 12.0)
    reference = ForwardDynamics(dynamics).simulate(*start, times, tensions, max_step=5e-4)
    motion = ForwardDynamics(dynamics).simulate(*start, times, tensions, solver=solver)
    np.testing.assert_allclose(motion.q, reference.q, atol=1e-5)
    np.testing.assert_allclose(motion.time, times)


def test_a_pendulum_swings_as_it_must():
    """Small swings of a rod: period 2 pi sqrt(2 l / 3 g)."""
    robot = load("planar_2r")
    dynamics = make_dynamics(robot, "numeric")
    forward = ForwardDynamics(dynamics)
    state = dynamics.update(np.array([np.pi, 0.0]), np.zeros(2))
    gravity = np.array(
        [
            dynamics.update(np.array([np.pi, 0.0]) + h, np.zeros(2)).gravity
            for h in 1e-4 * np.eye(2)
        ]
    )
    values, vectors = np.linalg.eig(np.linalg.solve(state.mass_matrix, gravity / 1e-4))
    mode, omega = vectors[:, 0].real, np.sqrt(values[0].real)
    times = np.linspace(0.0, 2 * np.pi / omega, 9)
    motion = forward.simulate(
        np.array([np.pi, 0.0]) + 1e-4 * mode, np.zeros(2), times, np.zeros(4), max_step=5e-3
    )
    expected = np.outer(np.cos(omega * times), mode) * 1e-4 + [np.pi, 0.0]
    np.testing.assert_allclose(motion.q, expected, atol=2e-7)


def test_tensions_may_be_a_function():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    forward = ForwardDynamics(dynamics)
    start, times = (np.array([0.3, -0.2]), np.zeros(2)), np.array([0.0, 0.1])
    constant = forward.simulate(*start, times, np.full(4, 20.0))
    called = forward.simulate(*start, times, lambda t, q, qd: np.full(4, 20.0))
    np.testing.assert_array_equal(constant.q, called.q)


def test_a_body_without_inertia_is_named():
    robot = load("planar_2r")
    links = [
        dataclasses.replace(link, inertia=Inertia()) if link.name == "link_2" else link
        for link in robot.links
    ]
    dynamics = make_dynamics(dataclasses.replace(robot, links=tuple(links)), "numeric")
    forward = ForwardDynamics(dynamics)
    found = forward.step(np.array([0.3, 0.4]), np.zeros(2), np.full(4, 20.0))
    assert found.status is PointStatus.UNPHYSICAL_INERTIA
    assert np.isnan(found.qdd).all()
    motion = forward.simulate(
        np.array([0.3, 0.4]), np.zeros(2), np.array([0.0, 0.1]), np.full(4, 20.0)
    )
    assert motion.status is PointStatus.UNPHYSICAL_INERTIA
    assert len(motion.time) == 1


@pytest.mark.filterwarnings("error")
def test_tensions_too_large_for_squares_are_not_finite_and_warn_of_nothing():
    found = ForwardDynamics(make_dynamics(load("planar_2r"), "numeric")).step(
        np.array([0.3, -0.5]), np.zeros(2), np.full(4, 1e300)
    )
    assert found.status is PointStatus.NOT_FINITE


def test_states_beyond_the_limits_are_told_apart():
    forward = ForwardDynamics(make_dynamics(load("bm_arm"), "numeric"))
    still, f = np.zeros(4), np.full(6, 20.0)
    found = [forward.step(np.array([x, 0.1, 0.3, 0.4]), still, f) for x in (0.99, 1.01)]
    statuses = [one.status for one in found]
    assert statuses == [PointStatus.FEASIBLE, PointStatus.OUTSIDE_LIMITS]
    np.testing.assert_allclose(found[1].qdd, found[0].qdd, rtol=0.1)


@pytest.mark.parametrize("solver", ["rk4", "RK45"])
def test_a_motion_that_breaks_off_keeps_what_was_reached(solver):
    dynamics = make_dynamics(load("planar_2r"), "numeric")

    def tensions(t, q, qd):
        return np.full(4, np.nan if t > 0.45 else 20.0)

    times = np.linspace(0.0, 0.6, 601)
    motion = ForwardDynamics(dynamics).simulate(
        np.zeros(2), np.zeros(2), times, tensions, solver=solver
    )
    assert motion.status is PointStatus.NOT_FINITE
    assert 0.29 < motion.time[-1] <= 0.451
    assert np.isfinite(motion.q).all()


def test_mistakes_are_named():
    forward = ForwardDynamics(make_dynamics(load("planar_2r"), "numeric"))
    start, tensions = (np.zeros(2), np.zeros(2)), np.zeros(4)
    with pytest.raises(UnknownNameError, match="rk4"):
        forward.simulate(*start, np.array([0.0, 1.0]), tensions, solver="euler")
    with pytest.raises(CardsError, match="increasing"):
        forward.simulate(*start, np.array([0.0, 0.0]), tensions)
    with pytest.raises(CardsError, match="max_step"):
        forward.simulate(*start, np.array([0.0, 1.0]), tensions, max_step=0.0)
