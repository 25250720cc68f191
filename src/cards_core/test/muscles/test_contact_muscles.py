"""Muscles with contact in the engine and in motion: a cable thrown at a free rod."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cards_core.errors import DescriptionError
from cards_core.muscles.engine import MuscleEngine
from cards_core.robot.actuators import Cable
from cards_core.robot.elements import Capsule, Collision, Cylinder, Inertia, Link, Muscle, ViaPoint
from cards_core.robot.model import Robot

ROD = Capsule(0.005, 0.06)
INERTIA = np.array([2e-5, 2e-5, 8e-6])


def thrown_cable(engine_backend="compiled", shape=ROD, friction=0.0):
    """Rod and box joined by a cable of 8 cm, and a free rod that crosses its way."""
    inertia = Inertia(0.05, np.zeros(3), np.diag(INERTIA))
    links = (
        Link("rod", inertia),
        Link("box", inertia),
        Link("crossing", inertia, collisions=(Collision("c", shape),)),
    )
    ends = (ViaPoint("rod", np.array([0.01, 0, 0])), ViaPoint("box", np.array([-0.01, 0, 0])))
    spring = Cable(stiffness=1000.0, rest_length=0.08)
    cable = Muscle("cable", ends, actuator=spring, contact=True, friction=friction)
    return MuscleEngine(Robot("thrown", links, (), muscles=(cable,)), engine_backend)


def turned(turn, momentum, inertia, dt):
    """Orientations of free bodies after a step: energy and angular momentum are kept.

    The midpoint rule for Euler's equations and the Cayley map [Austin1993], with m the angular
    momentum in the axes of the body: w = I^-1 (m + m')/2, R' = R cay(dt w), m' = cay(dt w)^-1 m.

    Args:
        turn: Orientations R of n bodies.
        momentum: Angular momenta in the world, shape (n, 3), [N m s].
        inertia: Of the principal axes, shape (3,), [kg m^2].
        dt: Step, [s].
    """
    m = new = turn.apply(momentum, inverse=True)
    for _ in range(50):
        last = new
        half = 0.5 * dt * (0.5 * (m + last) / inertia)
        step = Rotation.from_quat(np.column_stack([half, np.ones(len(half))]))
        new = step.apply(m, inverse=True)
        if np.abs(new - last).max() <= 1e-15 * np.abs(m).max():
            break
    return turn * step


class Throw:
    """Free bodies under the cable alone: velocities first, then positions with them."""

    def __init__(self, positions, velocities, dt=1e-3, shape=ROD, friction=0.0):
        self.engine = thrown_cable(shape=shape, friction=friction)
        self.engine.contacts.set_step(dt)
        self.engine.contacts.rests[:] = 0.08
        self.x, self.v = np.array(positions, dtype=float), np.array(velocities, dtype=float)
        self.turn = Rotation.identity(3)
        self.momentum_of_spin = np.zeros((3, 3))
        self.dt, self.rest, self.stiffness = dt, 0.08, 1000.0
        self.reached = None

    def spins(self):
        return self.turn.apply(self.turn.apply(self.momentum_of_spin, inverse=True) / INERTIA)

    def step(self):
        world = np.tile(np.eye(4), (4, 1, 1))
        poses = world[:3]
        poses[:, :3, :3], poses[:, :3, 3] = self.turn.as_matrix(), self.x
        self.engine.contacts.solve(world, self.reached)
        self.engine.contacts_are_solved()
        twists = np.hstack([self.v, self.spins()])
        length = self.engine.motion(poses, twists)[0][0]
        tension = max(0.0, self.stiffness * (length - self.rest))
        wrenches = self.engine.update(poses, twists, np.array([tension])).wrenches
        self.v += self.dt * wrenches[:, :3] / 0.05
        self.momentum_of_spin += self.dt * wrenches[:, 3:]
        self.reached = np.vstack([np.hstack([self.v, self.spins()]), np.zeros(6)])
        self.x += self.dt * self.v
        self.turn = turned(self.turn, self.momentum_of_spin, INERTIA, self.dt)
        return length

    def kinetic(self):
        return 0.025 * np.sum(self.v**2) + 0.5 * np.sum(self.momentum_of_spin * self.spins())

    def momenta(self):
        """Linear and angular momentum, [N s, N m s]."""
        angular = 0.05 * np.cross(self.x, self.v) + self.momentum_of_spin
        return np.concatenate([0.05 * self.v.sum(axis=0), angular.sum(axis=0)])


def collide(dt, duration, friction=0.0, aside=0.0):
    """Throw rod and box at the free rod; drift of the momenta and growth of kinetic energy."""
    throw = Throw(
        [[-0.05, 0, 0], [0.05, 0, 0], [aside, 0.1, 0.003]],
        [[0, 0.2, 0], [0, 0.2, 0], [0] * 3],
        dt,
        friction=friction,
    )
    momenta, start = throw.momenta(), throw.kinetic()
    most, drift, touched = 0.0, 0.0, False
    for _ in range(round(duration / dt)):
        throw.step()
        touched |= len(throw.engine.contacts.contacts(0)) > 0
        most = max(most, throw.kinetic() / start - 1.0)
        drift = max(drift, np.abs(throw.momenta() - momenta).max())
    assert touched
    assert abs(throw.v[2, 1]) > 0.1  # the rod was carried off
    return most, drift


def test_a_free_body_keeps_energy_and_angular_momentum():
    """An asymmetric one, near its unstable axis, over some 40 turns in steps of a hundredth."""
    inertia, momentum = np.array([1e-5, 2e-5, 4e-5]), np.array([[1e-6, 4e-4, 2e-6]])
    turn = Rotation.from_rotvec([[0.3, -0.2, 0.5]])
    own = [turn.apply(momentum, inverse=True)[0]]
    for _ in range(4000):
        turn = turned(turn, momentum, inertia, 3e-3)
        own.append(turn.apply(momentum, inverse=True)[0])
    energy = np.sum(np.square(own) / inertia, axis=1)
    assert np.abs(energy / energy[0] - 1.0).max() < 1e-12
    assert np.ptp(np.array(own)[:, 1]) > 7e-4  # it turned over


def test_free_rotation_of_an_axisymmetric_body_against_the_closed_form():
    """exp(t L/I1) R exp(t L3 (1/I3 - 1/I1) e3), of second order in the step."""
    momentum, start = np.array([[2e-4, -1e-4, 3e-4]]), Rotation.from_rotvec([[0.4, 0.2, -0.3]])
    own = start.apply(momentum, inverse=True)[0, 2] * (1 / INERTIA[2] - 1 / INERTIA[0])
    whole = Rotation.from_rotvec(0.5 * momentum / INERTIA[0])
    exact = whole * start * Rotation.from_rotvec([0, 0, 0.5 * own])
    errors = []
    for n in (500, 1000):
        turn = start
        for _ in range(n):
            turn = turned(turn, momentum, INERTIA, 0.5 / n)
        errors.append((turn * exact.inv()).magnitude()[0])
    assert errors[0] < 1e-2
    assert errors[0] / errors[1] == pytest.approx(4.0, abs=0.1)


@pytest.mark.parametrize(("dt", "duration"), [(1e-3, 10.0), (1e-4, 1.6)])
def test_a_cable_thrown_at_a_free_rod(dt, duration):
    """It gets taut and slack some twenty times, on the rod and beside it, while all bodies spin.

    Linear momentum to 1e-10 and no growth of kinetic energy beyond 1e-6 are asked for.
    """
    growth, drift = collide(dt, duration)
    assert drift < 1e-13
    assert growth < 1e-12


def test_bodies_bounce_off_the_end_of_their_cable_with_the_energy_that_they_had():
    """Whenever within a step it gets taut and slack; symplectic Euler alone is 1 % off."""
    for start in np.linspace(0.0, 2e-4, 23):
        throw = Throw(
            [[-0.045 + start, 0, 0], [0.045, 0, 0], [0, 1, 0]],
            [[-0.1, 0, 0], [0.1, 0, 0], [0] * 3],
        )
        energy, taut = throw.kinetic(), 0
        for _ in range(150):
            taut += throw.step() > 0.08
        assert taut > 10
        assert throw.v[0, 0] > 0.09
        assert throw.kinetic() == pytest.approx(energy, rel=1e-9)


def test_tensions_that_are_no_springs_have_no_share():
    """Without a rest length a tension is what it is, also beside the point of getting slack."""
    engine = thrown_cable()
    engine.contacts.set_step(1e-3)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[2, 1, 3] = 1.0
    twists = np.zeros((3, 6))
    twists[1, 0] = 0.2
    # a = -0.1 mm, b = a + 2 dt l' = 0.3 mm of 0.4 mm
    for rest, share in ((np.nan, 1.0), (0.08, 0.75)):
        engine.reset()
        engine.contacts.rests[:] = rest
        for x in (0.0499, 0.0501):
            poses[0, 0, 3], poses[1, 0, 3] = -0.05, x
            engine.update(poses, twists, np.array([0.0]))
        pulled = engine.update(poses, twists, np.array([1e-6])).wrenches[0, 0]
        assert pulled == pytest.approx(share * 1e-6, rel=1e-3)


@pytest.mark.parametrize("friction", [0.2, 0.8])
def test_a_cable_that_rubs_keeps_momentum_and_gains_no_energy(friction):
    growth, drift = collide(1e-4, 0.9, friction, aside=0.01)
    assert drift < 1e-10
    assert growth < 1e-6


def test_a_cable_thrown_at_the_end_of_a_rod_gains_no_energy():
    """Cylinders that are met within a radius of their ends, and slide out of the cable there."""
    rod, dt, touched = Cylinder(0.015, 0.06), 1e-4, 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        throw = Throw(
            [[-0.05, 0, 0], [0.05, 0, 0], [0, 0.03, rng.uniform(0.015, 0.035)]],
            [[0, 0.5, 0], [0, 0.5, 0], [0, -0.5, 0.1]],
            dt,
            rod,
        )
        throw.turn = Rotation.from_rotvec([[0, 0, 0], [0, 0, 0], rng.uniform(-0.6, 0.6, 3)])
        start, most, met = throw.kinetic(), 0.0, False
        for _ in range(1200):
            throw.step()
            most = max(most, throw.kinetic() / start - 1.0)
            met = met or len(throw.engine.contacts.contacts(0)) > 0
        touched += met
        assert most < 1e-6
    assert touched >= 5


def test_random_throws_lose_no_cable():
    """Nor do they gain energy, not even where an end goes through the rod, which nothing stops."""
    rng = np.random.default_rng(8)
    touched = pulled = 0
    for _ in range(30):
        throw = Throw(
            [[-0.045, 0, 0], [0.045, 0, 0], [0, 0.03, 0]],
            rng.uniform(-0.5, 0.5, (3, 3)) + np.outer([1, 1, -1], [0, 0.5, 0]),
        )
        throw.turn = Rotation.from_rotvec(rng.uniform(-0.5, 0.5, (3, 3)))
        momenta, start, met, most = throw.momenta(), throw.kinetic(), False, 0.0
        for _ in range(300):
            length = throw.step()
            assert 0.0 < length < 0.2
            met = met or len(throw.engine.contacts.contacts(0)) > 0
            most = max(most, throw.kinetic() / start - 1.0)
            pulled += length > throw.rest
        assert most < 1e-12
        touched += met
        assert np.isfinite(throw.x).all()
        assert throw.engine.failures == 0
        assert np.abs(throw.momenta() - momenta).max() < 1e-10
    assert touched > 20
    assert pulled > 500


@pytest.mark.parametrize("backend", ["compiled", "numeric"])
def test_engine_resets_and_repeats(backend):
    engine = thrown_cable(backend)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[0, 0, 3], poses[1, 0, 3] = -0.05, 0.05

    def run():
        engine.reset()
        out = []
        for y in np.linspace(0.02, -0.02, 50):
            poses[2, :3, 3] = 0.0, y, 0.0
            out.append(engine.motion(poses, np.zeros((3, 6)))[0].copy())
            state = engine.update(poses, np.ones((3, 6)), np.array([3.0]))
            out += [state.lengths.copy(), state.rates.copy(), state.wrenches[2].copy()]
        return np.concatenate(out)

    first = run()
    assert first.tobytes() == run().tobytes()
    assert first[-5] > 0.1  # the rod is pulled back along y
    state = engine.update(poses, np.ones((3, 6)), np.array([3.0]))
    assert np.abs(state.wrenches[:, :3].sum(axis=0)).max() < 1e-12


def test_contact_with_more_than_two_points_is_refused():
    engine = thrown_cable()
    muscle = engine.robot.muscles[0]
    bent = dataclasses.replace(muscle, path=(*muscle.path, muscle.path[0]))
    with pytest.raises(DescriptionError, match=r"more than two points.*two via points"):
        MuscleEngine(dataclasses.replace(engine.robot, muscles=(bent,)))
