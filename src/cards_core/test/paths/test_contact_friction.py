"""Capstan friction of cables that touch: closed forms, balance, and what is lost."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.shapes import ContactShape
from cards_core.robot.elements import Box, Capsule, Cylinder, Inertia, Sphere

MU = 0.3
FAST = 1e3
"""Sliding speeds over v0 at which tanh is 1."""


def pose(rotation, position):
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = rotation.as_matrix(), position
    return out


def rubbing(shapes, p, q, *, friction=MU, elastic=True, speed=1e-3, inertias=()):
    """A cable between links 0 and 1 over shapes of links 2, 3, ...; poses with the world."""
    n = len(shapes) + 2
    placed = [ContactShape(i + 2, geometry) for i, geometry in enumerate(shapes)]
    touches = tuple(range(len(shapes)))
    stiffness = 1000.0 if elastic else 0.0
    cable = ContactCable((0, 1), np.zeros((2, 3)), touches, friction, speed, stiffness)
    poses = np.tile(np.eye(4), (n + 1, 1, 1))
    poses[0, :3, 3], poses[1, :3, 3] = p, q
    return ContactCables(n, placed, [cable], inertias), poses


def carried(cables, poses, angle, radius=0.5, height=0.0):
    """Carry the second end around the z axis, from straight along x."""
    for a in np.linspace(0.0, angle, 1 + round(abs(angle) / 0.05)):
        poses[1, :3, 3] = radius * np.cos(a), -radius * np.sin(a), height * abs(a / angle)
        cables.solve(poses)


@pytest.mark.parametrize("angle", [0.5 * np.pi, np.pi, 5.2 * np.pi])
@pytest.mark.parametrize("sense", [1.0, -1.0])
def test_capstan(angle, sense):
    """T2/T1 = exp(mu theta) where the cable slides, whichever way and however often around."""
    cables, poses = rubbing([Cylinder(0.05, 2.0)], (-0.5, 0.051, 0), (0.5, 0.051, 0))
    cables.solve(poses)
    carried(cables, poses, angle)
    (contact,) = cables.contacts(0)
    twists = np.zeros((4, 6))
    twists[:2, :3] = poses[:2, :3, 3]
    twists[0, :3] *= -sense * FAST / 0.5  # away from the cylinder or to it
    twists[1, :3] *= sense * FAST / 0.5
    cables.pull(twists, np.array([10.0]))
    first, second = cables.piece_tensions(0)
    assert second / first == pytest.approx(np.exp(sense * MU * contact.turn), rel=1e-12)
    assert contact.turn == pytest.approx(angle, abs=0.5)


def test_capstan_on_a_helix():
    """The angle is that by which the direction turns: arc times curvature cos^2 beta/r."""
    cables, poses = rubbing([Cylinder(0.05, 4.0)], (-0.5, 0.051, 0), (0.5, 0.051, 0))
    cables.solve(poses)
    carried(cables, poses, np.pi, height=0.8)
    (contact,) = cables.contacts(0)
    slope = np.arctan2(contact.end[2] - contact.start[2], 0.05 * contact.turn)
    assert slope > 0.3
    twists = np.zeros((4, 6))
    twists[1, :3] = FAST * poses[1, :3, 3]
    cables.pull(twists, np.array([10.0]))
    first, second = cables.piece_tensions(0)
    curvature = np.cos(slope) ** 2 / 0.05
    assert np.log(second / first) == pytest.approx(MU * curvature * contact.arc, rel=1e-9)


def test_capstan_over_the_edges_of_a_box():
    """A cable over two edges turns by a right angle at each."""
    cables, poses = rubbing([Box(np.full(3, 0.2))], (-0.4, 0.3, 0), (0.4, 0.3, 0))
    poses[2, :3, 3] = 0.0, 0.19, 0.0
    cables.solve(poses)
    for y in np.linspace(0.3, -0.6, 200):
        poses[:2, 1, 3] = y
        poses[0, 0, 3] = -0.4 + 0.3 * (0.3 - y) / 0.9
        poses[1, 0, 3] = 0.4 - 0.3 * (0.3 - y) / 0.9
        cables.solve(poses)
    assert len(cables.contacts(0)) == 2
    twists = np.zeros((4, 6))
    twists[:2, 1] = FAST, -FAST
    cables.pull(twists, np.array([10.0]))
    tensions = cables.piece_tensions(0)
    assert tensions[1:] / tensions[:-1] == pytest.approx([np.exp(MU * np.pi / 2)] * 2, rel=1e-9)


def scene(rng, *, elastic):
    shapes = [Capsule(0.1, 0.8), Sphere(0.2), Box(np.array([0.2, 0.3, 0.4])), Cylinder(0.08, 1.0)]
    inertias = [Inertia(rng.uniform(0.1, 1.0), np.zeros(3), 1e-2 * np.eye(3)) for _ in range(6)]
    cables, poses = rubbing(
        shapes, (-1.5, 0, 0), (1.5, 0, 0), elastic=elastic, speed=0.1, inertias=inertias
    )
    for i, x in enumerate((-0.9, -0.3, 0.3, 0.9)):
        poses[2 + i] = pose(Rotation.random(rng=rng), (x, *rng.uniform(-0.08, 0.08, 2)))
    cables.set_step(rng.choice([0.0, 1e-3]))
    cables.solve(poses)
    twists = np.zeros((7, 6))
    twists[:-1] = rng.normal(size=(6, 6))
    return cables, poses, twists


@pytest.mark.parametrize("elastic", [True, False])
def test_balance_mean_limits_and_loss(elastic):
    rng = np.random.default_rng(11)
    most = met = 0
    for _ in range(200):
        cables, poses, twists = scene(rng, elastic=elastic)
        feed = cables.feeds[0] = rng.normal() if elastic else 0.0
        wrenches = cables.pull(twists, np.array([7.0])).copy()
        force = wrenches[:, :3].sum(axis=0)
        moment = (wrenches[:, 3:] + np.cross(poses[:, :3, 3], wrenches[:, :3])).sum(axis=0)
        assert np.abs([force, moment]).max() < 1e-12
        tensions, contacts = cables.piece_tensions(0), cables.contacts(0)
        most = max(most, len(contacts))
        start, end = cables.ends(0)
        points = np.array([start, *(x for c in contacts for x in (c.start, c.end)), end])
        pieces = np.linalg.norm(np.diff(points, axis=0)[::2], axis=1)
        arcs = np.array([0.0, *(c.arc for c in contacts), 0.0])
        if arcs.min() < 0.0:
            continue  # an end within a shape
        met += 1
        weights = pieces + 0.5 * (arcs[:-1] + arcs[1:])
        assert weights.sum() == pytest.approx(cables.lengths[0], abs=1e-9)
        mean = weights @ tensions / weights.sum() if elastic else tensions[0]
        assert mean == pytest.approx(7.0, rel=1e-12)
        steps = np.diff(tensions)
        slides = np.array([c.slide for c in contacts])
        assert np.all(steps * slides >= 0.0)
        # what the links give, the spring does not store and the winch does not take
        given = -np.sum(wrenches * twists)
        lost = given - 7.0 * (cables.rates[0] - feed) - tensions[0] * feed
        assert lost == pytest.approx(steps @ slides, abs=1e-9)
        # no cable goes around any of these by more than half a turn
        assert np.all(np.abs(np.log(tensions[1:] / tensions[:-1])) <= MU * np.pi)
    assert most >= 3
    assert met > 190


def test_without_friction_nothing_changes():
    rng = np.random.default_rng(3)
    for _ in range(20):
        cables, poses, twists = scene(rng, elastic=True)
        smooth = ContactCables(
            6, cables.shapes, [ContactCable((0, 1), np.zeros((2, 3)), (0, 1, 2, 3))]
        )
        smooth.solve(poses)
        one = smooth.pull(twists, np.array([7.0])).copy()
        rate = smooth.rates[0]
        rough = cables.pull(np.zeros((7, 6)), np.array([7.0]))
        assert np.allclose(rough, one, rtol=0.0, atol=1e-12)  # where nothing slides
        cables.pull(twists, np.array([7.0]))
        assert cables.rates[0] == pytest.approx(rate, abs=1e-12)
        assert np.all(smooth.piece_tensions(0) == 7.0)


def test_winding_over_a_fixed_cylinder_slides_by_what_lies_behind():
    """Nothing moves but the rest length: each contact passes on the share of what is behind it."""
    cables, poses = rubbing([Sphere(0.1)], (-1, 0.05, 0), (2, 0.05, 0), speed=1.0)
    cables.solve(poses)
    cables.feeds[0] = -0.3
    cables.pull(np.zeros((4, 6)), np.array([5.0]))
    (contact,) = cables.contacts(0)
    behind = np.linalg.norm(poses[1, :3, 3] - contact.end) + 0.5 * contact.arc
    assert contact.slide == pytest.approx(-0.3 * behind / cables.lengths[0], rel=1e-12)
    first, second = cables.piece_tensions(0)
    assert first > 5.0 > second


class Atwood:
    """Two weights on a cable over a fixed cylinder; symplectic Euler, z up."""

    radius, mass, stiffness, gravity = 0.1, np.array([1.0, 2.0]), 2e4, 9.81

    def __init__(self, friction, dt, speed=1e-3):
        inertias = [Inertia(m, np.zeros(3), 1e-3 * np.eye(3)) for m in self.mass]
        self.cables, self.poses = rubbing(
            [Cylinder(self.radius, 1.0)],
            (-self.radius, 0, 0.2),
            (self.radius, 0, 0.2),
            friction=friction,
            speed=speed,
            inertias=inertias,
        )
        self.poses[2] = pose(Rotation.from_rotvec([0.5 * np.pi, 0, 0]), (0, 0, 0))
        self.cables.set_step(dt)
        for z in np.linspace(0.2, -2.0, 100):
            self.poses[:2, 2, 3] = z
            self.cables.solve(self.poses)
        self.rest = self.cables.lengths[0] - self.mass.mean() * self.gravity / self.stiffness
        self.dt, self.v, self.lost = dt, np.zeros(2), 0.0

    def step(self):
        twists = np.zeros((4, 6))
        twists[:2, 2] = self.v
        length = self.cables.solve(self.poses)[0]
        self.cables.pull(twists, np.zeros(1))
        elastic = max(0.0, self.stiffness * (length - self.rest))
        viscous = np.clip(60.0 * self.cables.rates[0], -elastic, elastic)
        wrenches = self.cables.pull(twists, np.array([elastic + viscous]))
        (contact,) = self.cables.contacts(0)
        loss = np.diff(self.cables.piece_tensions(0))[0] * contact.slide
        assert loss >= 0.0
        self.lost += self.dt * (loss + viscous * self.cables.rates[0])
        self.v += self.dt * (wrenches[:2, 2] / self.mass - self.gravity)
        self.poses[:2, 2, 3] += self.dt * self.v
        return self.v.copy()

    def energy(self):
        stretch = max(0.0, self.cables.solve(self.poses)[0] - self.rest)
        height = self.mass @ self.poses[:2, 2, 3]
        kinetic = 0.5 * self.mass @ self.v**2
        return kinetic + self.gravity * height + 0.5 * self.stiffness * stretch**2


def test_atwood_machine_with_friction():
    """Acceleration g (m2 - m1 e)/(m2 + m1 e), e = exp(mu pi); the loss is friction's work."""
    machine = Atwood(0.15, 1e-4)
    energy = machine.energy()
    speeds = np.array([machine.step() for _ in range(6000)])[3000:]
    times = machine.dt * np.arange(len(speeds))
    slopes = np.polyfit(times, speeds, 1)[0]
    e = np.exp(0.15 * np.pi)
    expected = 9.81 * (2.0 - e) / (2.0 + e)
    assert slopes == pytest.approx([expected, -expected], rel=1e-3)
    assert energy - machine.energy() == pytest.approx(machine.lost, rel=1e-3)
    assert machine.lost > 0.3 * machine.mass[1] * 9.81 * abs(machine.poses[1, 2, 3] + 2.0)


def test_weights_within_the_limit_creep_as_slowly_as_tanh_says():
    """T2/T1 = m2/m1 < exp(mu pi): v = v0 artanh(ln(m2/m1)/(mu pi)), the price of no sticking."""
    machine = Atwood(0.4, 1e-4, speed=5e-3)
    for _ in range(6000):
        speeds = machine.step()
    creep = 5e-3 * np.arctanh(np.log(2.0) / (0.4 * np.pi))
    assert speeds == pytest.approx([creep, -creep], rel=1e-3)
    first, second = machine.cables.piece_tensions(0)
    assert second / first == pytest.approx(2.0, rel=1e-4)
    assert second / first < np.exp(0.4 * np.pi)


def test_friction_that_is_steep_against_the_step_comes_to_rest():
    """At 1 ms with v0 = 1 um/s: without a larger v0 the weights would shake for ever."""
    machine = Atwood(0.4, 1e-3, speed=1e-6)
    speeds = np.array([machine.step() for _ in range(4000)])[-200:]
    assert np.ptp(speeds, axis=0).max() < 1e-4
    assert 0.0 < speeds[-1, 0] < 0.1
