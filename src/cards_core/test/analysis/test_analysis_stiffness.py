"""Joint stiffness against finite differences of the muscles' joint force, actuators included."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cards_core.analysis.status import PointStatus
from cards_core.analysis.stiffness import gravity_gradient, joint_stiffness, muscle_stiffness
from cards_core.dynamics import make_dynamics
from cards_core.errors import ShapeError
from cards_core.formats import load
from cards_core.muscles.actuators import ActuatorBank
from cards_core.muscles.command import EXCITATION, FORCE, LENGTH, NO_COMMAND
from cards_core.robot.actuators import ACTUATORS, Cable
from random_robots import random_parameters, random_robot

SEEDS = range(8)


@pytest.mark.parametrize(
    ("backend", "seed"), [*(("numeric", seed) for seed in SEEDS), ("compiled", 0), ("compiled", 1)]
)
def test_matrix_is_the_derivative_of_the_joint_force(seed, backend, tmp_path, monkeypatch):
    """K = -d(-L'f)/dq with f_i = f_i0 + k_i (l_i - l_i0), along every tangent direction."""
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path))
    monkeypatch.setenv("CFLAGS", "-O0")
    dynamics = make_dynamics(random_robot(seed), backend)
    tree, rng = dynamics.tree, np.random.default_rng(seed)
    q, tensions = tree.random(rng), rng.uniform(5.0, 50.0, 4)
    stiffness = rng.uniform(100.0, 1000.0, 4)
    found = joint_stiffness(dynamics, q, tensions, stiffness=stiffness, gravity=True)
    still = np.zeros(tree.nv)
    length = dynamics.update(q, still).muscle_lengths.copy()

    def force(x):
        state = dynamics.update(x, still)
        pull = tensions + stiffness * (state.muscle_lengths - length)
        return -state.muscle_jacobian.T @ pull - state.gravity

    h = 1e-5
    for k, direction in enumerate(np.eye(tree.nv)):
        sides = [force(tree.integrate(q, s * h * direction)) for s in (1, -1)]
        expected = -(sides[0] - sides[1]) / (2 * h)
        np.testing.assert_allclose(found.matrix[:, k], expected, atol=1e-6 * stiffness.max())
    np.testing.assert_allclose(found.matrix, found.elastic + found.tension + found.gravity)
    np.testing.assert_allclose(found.eigenvalues, np.sort(found.eigenvalues))


@pytest.mark.parametrize("seed", SEEDS)
def test_without_balls_it_is_symmetric(seed):
    """Then it is the Hessian of a potential, wherever the robot is."""
    kinds = ("revolute", "prismatic", "universal", "planar")
    dynamics = make_dynamics(random_robot(seed, kinds=kinds), "numeric")
    q = dynamics.tree.random(np.random.default_rng(seed))
    matrix = joint_stiffness(dynamics, q, np.full(4, 20.0), stiffness=500.0, gravity=True).matrix
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6 * np.abs(matrix).max())


def test_with_balls_it_is_symmetric_in_equilibrium():
    """Springs at rest length make no force: K = L'KL. A load breaks the symmetry."""
    dynamics = make_dynamics(random_robot(2, kinds=("ball",), n_muscles=8), "numeric")
    tree = dynamics.tree
    q = tree.random(np.random.default_rng(1))
    free = joint_stiffness(dynamics, q, np.zeros(8), stiffness=100.0)
    np.testing.assert_allclose(free.matrix, free.matrix.T, atol=1e-9)
    jacobian = dynamics.update(q, np.zeros(tree.nv)).muscle_jacobian.copy()
    null = np.linalg.svd(jacobian.T)[2][-1]
    if np.abs(jacobian.T @ null).max() < 1e-9:
        balanced = joint_stiffness(dynamics, q, 30.0 * null).matrix
        np.testing.assert_allclose(balanced, balanced.T, atol=1e-8)


def test_gravity_gradient_of_a_standing_arm():
    """Two rods of mass m and length 2 c: dG/dq = -g [[...]] at q = 0, by hand."""
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    m, c, g = 0.1, 0.5, 9.81
    expected = -g * m * np.array([[c + 1.0 + c, c], [c, c]])
    np.testing.assert_allclose(gravity_gradient(dynamics, np.zeros(2)), expected, atol=1e-7)


def test_verdicts_and_frequencies():
    """planar_xy: EA/l of four cables; f = sqrt(K/M)/(2 pi)."""
    dynamics = make_dynamics(load("planar_xy"), "numeric")
    q, tensions = np.array([0.5, 0.5, 0.0]), np.full(4, 100.0)
    found = joint_stiffness(dynamics, q, tensions, axial_stiffness=1e5)
    assert found.status is PointStatus.FEASIBLE
    assert found.verdict == "stable"
    lengths = dynamics.update(q, np.zeros(3)).muscle_lengths
    np.testing.assert_allclose(found.muscle_stiffness, 1e5 / lengths)
    squares = np.linalg.eigvals(
        np.linalg.solve(dynamics.update(q, np.zeros(3)).mass_matrix, found.matrix)
    )
    np.testing.assert_allclose(found.frequencies, np.sort(np.sqrt(squares)) / (2 * np.pi))
    falling = joint_stiffness(
        make_dynamics(load("planar_2r"), "numeric"), np.zeros(2), np.zeros(4), gravity=True
    )
    assert falling.verdict == "unstable"
    assert np.isnan(falling.frequencies).any()
    loose = joint_stiffness(dynamics, q, np.zeros(4))
    assert loose.verdict == "marginal"


# Muscles ---------------------------------------------------------------------------------------


def with_actuators(actuators):
    """One muscle per actuator, with nothing but an actuator that matters."""
    robot = random_robot(1, n_muscles=1)
    muscle = dataclasses.replace(robot.muscles[0], tension_min=0.0, tension_max=1e5)
    muscles = tuple(
        dataclasses.replace(muscle, name=f"m{i}", actuator=a) for i, a in enumerate(actuators)
    )
    return dataclasses.replace(robot, muscles=muscles)


def test_ideal_elastic_and_slack_cables():
    robot = with_actuators([Cable(), Cable(stiffness=300.0), Cable(stiffness=300.0)])
    found = muscle_stiffness(robot, np.ones(3), np.array([10.0, 10.0, 0.0]))
    np.testing.assert_allclose(found, [0.0, 300.0, 0.0])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ["series_elastic", "ligament", "hill"])
def test_slopes_of_actuators(kind, seed):
    """Against the actuator models moved by hand, with their command held."""
    rng = np.random.default_rng(seed)
    actuator = random_parameters(rng, ACTUATORS[kind])
    robot = with_actuators([actuator])
    length, tension = 1.0, 20.0
    command = LENGTH
    if kind == "ligament":
        length, command = actuator.slack_length * 1.02, NO_COMMAND
    elif kind == "hill":
        length = actuator.optimal_fiber_length + actuator.tendon_slack_length
        tension, command = 0.3 * actuator.max_isometric_force, EXCITATION
    found = muscle_stiffness(robot, np.array([length]), np.array([tension]))[0]
    if kind == "series_elastic":
        # the spring alone: the tension that the model has for a given rest length, quasi-static
        from types import SimpleNamespace

        from cards_core.muscles.actuators import springs
        from cards_core.muscles.actuators.arithmetic import NUMPY

        p = SimpleNamespace(**springs.parameters(actuator.spring))

        def pull(delta):
            d = springs.coordinate_of_elongation(NUMPY, actuator.spring.law, p, np.array(delta))
            return float(springs.tension(NUMPY, actuator.spring.law, p, d)[0])

        d = springs.coordinate_of_tension(NUMPY, actuator.spring.law, p, np.array(tension))
        at = float(springs.elongation(NUMPY, actuator.spring.law, p, d)[0])
        expected = (pull(at + 1e-6) - pull(at - 1e-6)) / 2e-6
        assert found == pytest.approx(expected, rel=1e-3)
        return
    bank = ActuatorBank(robot, 0.01, "numeric")
    bank.reset(np.array([length]))
    still = np.zeros(1)
    for _ in range(400):
        bank.step(np.array([length]), still, np.array([FORCE]), np.array([tension]))
    state = bank.state.copy()
    held = bank.state_values[0] if kind != "ligament" else 0.0
    ends = []
    for side in (1e-5, -1e-5):
        bank.state[:] = state
        for _ in range(400):
            out = bank.step(
                np.array([length + side]), still, np.array([command]), np.array([held])
            )
        ends.append(float(out[0]))
    assert found == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_slope_of_a_pneumatic_muscle(seed):
    """The derivative of the braid's law by hand, docs/muscles.md."""
    item = random_parameters(np.random.default_rng(seed), ACTUATORS["pneumatic"])
    length, tension = item.tendon_length + 0.97 * item.rest_length, 20.0
    found = muscle_stiffness(with_actuators([item]), np.array([length]), np.array([tension]))[0]
    angle = np.arccos(item.rest_length / item.thread_length)
    radius = item.thread_length * np.sin(angle) / (2 * np.pi * item.turns)
    braid = 1.0 - item.end_correction * 0.03
    area = np.pi * radius**2 * (3.0 / np.tan(angle) ** 2 * braid**2 - 1.0 / np.sin(angle) ** 2)
    pressure = (tension + item.bladder_stiffness * 0.03 * item.rest_length) / area
    assert 0.0 < pressure < item.max_pressure - item.threshold_pressure, "it cannot pull that much"
    slope = 6.0 / np.tan(angle) ** 2 * braid * item.end_correction / item.rest_length
    expected = pressure * np.pi * radius**2 * slope + item.bladder_stiffness
    assert found == pytest.approx(expected, rel=1e-6)


def test_elastic_robot_uses_what_its_file_says():
    robot = load("planar_2r")
    muscles = [dataclasses.replace(m, actuator=Cable(stiffness=2e4)) for m in robot.muscles]
    dynamics = make_dynamics(dataclasses.replace(robot, muscles=tuple(muscles)), "numeric")
    q = np.array([0.2, 0.1])
    found = joint_stiffness(dynamics, q, np.full(4, 20.0))
    np.testing.assert_allclose(found.muscle_stiffness, 2e4)
    given = joint_stiffness(dynamics, q, np.full(4, 20.0), stiffness=[1e4, None, None, None])
    np.testing.assert_allclose(given.muscle_stiffness, [1e4, 2e4, 2e4, 2e4])


def test_bad_numbers_and_shapes():
    dynamics = make_dynamics(load("planar_2r"), "numeric")
    bad = joint_stiffness(dynamics, np.array([np.nan, 0.0]), np.zeros(4))
    assert bad.status is PointStatus.NOT_FINITE
    assert np.isnan(bad.matrix).all()
    beyond = joint_stiffness(dynamics, np.array([4.0, 0.0]), np.full(4, 10.0))
    assert beyond.status is PointStatus.OUTSIDE_LIMITS
    with pytest.raises(ShapeError, match="expected one"):
        joint_stiffness(dynamics, np.zeros(2), np.zeros(4), stiffness=1.0, axial_stiffness=1.0)
    with pytest.raises(ShapeError, match=r"\(4,\)"):
        joint_stiffness(dynamics, np.zeros(2), np.zeros(3))
