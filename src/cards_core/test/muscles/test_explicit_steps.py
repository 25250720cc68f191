"""The step at which explicit muscles are stable: closed forms, spectral radii, the warning."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.muscles.engine import MuscleEngine
from cards_core.muscles.explicit_steps import (
    BOUND,
    fastest_motion,
    free_mobility,
    longest_stable_step,
)
from cards_core.muscles.system import MuscleSystem
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import WORLD, Inertia, Joint, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot


def pair(actuator, *, contact=True, offset=0.0):
    """Bodies of 0.2 and 0.3 kg, a cable between points beside their centres of mass."""
    links = (
        Link("a", Inertia(0.2, np.zeros(3), 1e-4 * np.eye(3))),
        Link("b", Inertia(0.3, np.array([0.0, 0.1, 0.0]), 2e-4 * np.eye(3))),
    )
    joints = tuple(Joint(f"{link.name}_free", "free", WORLD, link.name) for link in links)
    ends = (ViaPoint("a", np.array([0, offset, 0])), ViaPoint("b", np.array([0, 0.1 + offset, 0])))
    cable = Muscle("cable", ends, actuator=actuator, contact=contact)
    return Robot("pair", links, joints, muscles=(cable,))


def poses():
    out = np.tile(np.eye(4), (2, 1, 1))
    out[1, :3, 3] = 0.5, -0.1, 0.0
    return out


def message(robot, dt):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        system = MuscleSystem(robot, dt, "numeric")
        system.reset(poses())
        system.reset(poses())
    return [str(item.message) for item in caught if item.category is RuntimeWarning]


def longest_in(text):
    return float(re.search(r"expected: less than (\S+) s", text).group(1))


def test_masses_and_springs():
    """At most 2/sqrt(k (1/m1 + 1/m2)), with the inertia of what turns, and 2 m/c of a damper."""
    for k, offset in ((2e5, 0.0), (2e5, 0.03)):
        mobility = 1 / 0.2 + 1 / 0.3 + offset**2 * (1 / 1e-4 + 1 / 2e-4)
        expected = 2.0 / np.sqrt(k * mobility)
        robot = pair(Cable(stiffness=k, rest_length=0.4), offset=offset)
        (text,) = message(robot, 1.01 * expected)
        assert longest_in(text) == pytest.approx(expected, rel=1e-2)
        assert "'pair'" in text
        assert "'cable'" in text
        assert message(robot, 0.99 * expected) == []
    damped = pair(Cable(stiffness=1e-3, damping=1e3, rest_length=0.4))
    expected = 2.0 / (1e3 * (1 / 0.2 + 1 / 0.3))
    assert longest_in(message(damped, 1e-3)[0]) == pytest.approx(expected, rel=1e-2)
    assert (
        message(replace(damped, muscles=(replace(damped.muscles[0], contact=False),)), 1e-3) == []
    )


def test_below_that_step_nothing_grows():
    """Spectral radius of v+ = v - dt M^-1 (K x + C v), x+ = x + dt v+ with random cables."""
    rng = np.random.default_rng(6)
    for damped in (False, True):
        for _ in range(20):
            jacobian, root = rng.normal(size=(5, 8)), rng.normal(size=(8, 8))
            mass = root @ root.T + np.eye(8)
            k, c = rng.uniform(10, 1000, 5), damped * rng.uniform(0, 20, 5)
            mobility = jacobian @ np.linalg.solve(mass, jacobian.T)
            dt = longest_stable_step(mobility, k, c, 10.0)
            assert fastest_motion(mobility, k, c, dt)[0] == pytest.approx(BOUND, rel=1e-4)

            def radius(dt, mass=mass, jacobian=jacobian, k=k, c=c):
                stiff, viscous = (jacobian.T @ (w[:, None] * jacobian) for w in (k, c))
                kick = dt * np.linalg.solve(mass, np.hstack([stiff, viscous]))
                v = np.hstack([-kick[:, :8], np.eye(8) - kick[:, 8:]])
                x = np.hstack([np.eye(8), np.zeros((8, 8))]) + dt * v
                # motions that move no cable drift, as a double eigenvalue 1: leave them out
                step = np.vstack([x, v])
                return np.abs(np.linalg.eigvals(step)).max()

            assert radius(0.99 * dt) < 1.0 + 1e-6
            if not damped:
                assert radius(1.01 * dt) > 1.1


@pytest.mark.parametrize("name", ["tetraspine_hardware", "superball"])
def test_mobility_is_that_of_the_dynamics(name):
    robot = load(name)
    dynamics = make_dynamics(robot, "numeric")
    state = dynamics.update(robot.tree.home, np.zeros(robot.tree.nv))
    expected = state.muscle_jacobian @ np.linalg.solve(state.mass_matrix, state.muscle_jacobian.T)
    muscles = tuple(replace(muscle, contact=True) for muscle in robot.muscles)
    engine = MuscleEngine(replace(robot, muscles=muscles), "numeric")
    found = free_mobility(engine, dynamics.link_poses(robot.tree.home))
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()
