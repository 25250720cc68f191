"""Cables over the ends of rods: the shortest way over side and caps, no jump to a longer one."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.shapes import ContactShape
from cards_core.robot.elements import Box, Capsule, Cylinder

RADIUS, HALF = 0.1, 0.3


def cable_over(shape, p, q):
    """A cable between two links that touches a shape of a third; their poses."""
    cable = ContactCable((0, 1), np.zeros((2, 3)), (0,))
    poses = np.tile(np.eye(4), (4, 1, 1))
    poses[0, :3, 3], poses[1, :3, 3] = p, q
    return ContactCables(3, [ContactShape(2, shape)], [cable]), poses


def distance(points, radius, half):
    """Of points, shape (n, 3), to a capsule along z; below zero inside."""
    beyond = np.maximum(np.abs(points[:, 2]) - half, 0.0)
    return np.hypot(np.hypot(points[:, 0], points[:, 1]), beyond) - radius


def way_over_a_seam(p, q):
    """Shortest way from p, beside the rod, to q, beside its upper cap.

    A helix to a point S of the circle where the side ends, and a great circle from there:
    hypot(a_p + r turn, rise) + r angle + a_q, least over the place of S.
    """
    dp, top = np.hypot(*p[:2]), q - [0.0, 0.0, HALF]
    dq = np.linalg.norm(top)
    tangents = np.sqrt([dp**2 - RADIUS**2, dq**2 - RADIUS**2])
    angles = np.arctan2(tangents, RADIUS)
    first, whole = np.arctan2(p[1], p[0]), np.arctan2(p[0] * q[1] - p[1] * q[0], p[:2] @ q[:2])

    def length(turn):
        azimuth = first + np.sign(whole) * (angles[0] + turn)
        rim = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        angle = np.arccos(np.clip(rim @ top / dq, -1, 1)) - angles[1]
        return np.hypot(tangents[0] + RADIUS * turn, HALF - p[2]) + RADIUS * angle + tangents[1]

    span = abs(whole) - angles[0]
    found = minimize_scalar(length, bounds=(0.0, span), options={"xatol": 1e-12}, method="bounded")
    return found.fun


def test_over_side_and_cap_against_an_optimiser():
    rng = np.random.default_rng(3)
    compared = 0
    for _ in range(60):
        rise = rng.uniform(0.1, 0.8)
        low, across = rng.uniform(-0.2, 0.25), rng.uniform(0.2, 0.6, 2)
        p, q = np.array([0.12, -across[0], low]), np.array([0.12, across[1], low + rise])
        cables, poses = cable_over(Capsule(RADIUS, 2 * HALF), p, q)
        for x in np.linspace(0.12, 0.0, 60):
            poses[:2, 0, 3] = x
            length = cables.solve(poses)[0]
            contacts = cables.contacts(0)
            if (
                len(contacts) == 1
                and contacts[0].start[2] < HALF - 1e-6 < HALF < contacts[0].end[2]
            ):
                p, q = poses[:2, :3, 3]
                compared += 1
                assert length == pytest.approx(way_over_a_seam(p, q), abs=1e-8)
                for a, b in ((p, contacts[0].start), (contacts[0].end, q)):
                    way = a + np.linspace(0, 1, 50)[:, None] * (b - a)
                    assert distance(way, RADIUS, HALF).min() > -1e-9
    assert compared > 50


@pytest.mark.parametrize(
    "geometry",
    [
        Capsule(0.1, 0.6),
        Capsule(0.15, 0.2),
        Cylinder(0.1, 0.6),
        Cylinder(0.15, 0.3),
        Box([0.2] * 3),
    ],
    ids=["capsule", "fat capsule", "cylinder", "fat cylinder", "box"],
)
def test_a_cable_gets_no_longer_than_its_ends_move(geometry):
    """Over a fixed shape any other jump of the length would be energy from nothing."""
    reach = 0.15 if isinstance(geometry, Box) else geometry.radius + 1e-3
    half = 0.1 if isinstance(geometry, Box) else 0.5 * geometry.length
    touched = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, v = np.array([[0.5, -0.4, 0.0], [0.5, 0.4, 0.2]]), np.zeros((2, 3))
        cables, poses = cable_over(geometry, *x)
        length = cables.solve(poses)[0]
        for _ in range(3000):
            v = 0.95 * v + 0.002 * rng.normal(size=(2, 3)) - 0.002 * x
            y = x + v
            inside = distance(y, reach, half) < 0.0
            y[inside], v[inside] = x[inside], -v[inside]
            moved = np.linalg.norm(y - x, axis=1).sum()
            x = y
            poses[:2, :3, 3] = x
            before, length = length, cables.solve(poses)[0]
            touched += len(cables.contacts(0)) > 0
            assert length <= before + moved + 1e-9
    assert touched > 500
    assert cables.failures == 0


def test_a_disc_is_touched_at_its_rims():
    disc = Cylinder(0.2, 0.02)
    cables, poses = cable_over(disc, (0.3, -1.0, 0.0), (0.3, 1.0, 0.0))
    for x in np.linspace(0.3, -0.3, 200):
        poses[:2, 0, 3] = x
        length = cables.solve(poses)[0]
    # around a cylinder: two tangents of length sqrt(d^2 - r^2) and an arc
    d = np.hypot(0.3, 1.0)
    turn = 2.0 * (np.arctan2(0.3, 1.0) + np.arcsin(0.2 / d))
    assert length == pytest.approx(2.0 * np.sqrt(d**2 - 0.2**2) + 0.2 * turn, rel=1e-3)
    for z in np.linspace(0.0, 0.3, 300):
        poses[:2, 2, 3] = z
        length = cables.solve(poses)[0]
    assert length == pytest.approx(2.0)
    assert cables.contacts(0) == []


def test_two_rods_tumble_through_a_cable():
    """It stays outside of both, and every step settles."""
    rod = Capsule(RADIUS, 2 * HALF)
    shapes = [ContactShape(2, rod), ContactShape(3, rod)]
    touched = 0
    for seed in (2, 4):
        cables = ContactCables(4, shapes, [ContactCable((0, 1), np.zeros((2, 3)), (0, 1))])
        rng = np.random.default_rng(seed)
        poses = np.tile(np.eye(4), (5, 1, 1))
        poses[:2, 0, 3] = -1.0, 1.0
        x, v, w = (
            np.array([[-0.4, 0.9, 0.0], [0.4, -0.9, 0.0]]),
            np.zeros((2, 3)),
            np.zeros((2, 3)),
        )
        turn = [Rotation.random(random_state=rng) for _ in x]
        for k in range(1200):
            if k % 200 == 0:
                target = 0.35 * rng.normal(size=(2, 3)) + [[-0.45, 0, 0], [0.45, 0, 0]]
            for i in range(2):
                v[i] += 2e-4 * (target[i] - x[i]) - 2e-2 * v[i]
                w[i] = 0.98 * w[i] + 1e-3 * rng.normal(size=3)
                x[i] += v[i]
                turn[i] = Rotation.from_rotvec(w[i]) * turn[i]
                poses[2 + i, :3, :3], poses[2 + i, :3, 3] = turn[i].as_matrix(), x[i]
            cables.solve(poses)
            assert cables.failures == 0
            local = [(poses[:2, :3, 3] - x[i]) @ poses[2 + i, :3, :3] for i in range(2)]
            if min(distance(ends, RADIUS, HALF).min() for ends in local) < 1e-3:
                cables.reset()  # an end came into a rod
                continue
            contacts = cables.contacts(0)
            touched += len(contacts) > 0
            way = [
                poses[0, :3, 3],
                *(y for c in contacts for y in (c.start, c.end)),
                poses[1, :3, 3],
            ]
            for a, b in zip(way[::2], way[1::2], strict=True):
                points = a + np.linspace(0, 1, 40)[:, None] * (b - a)
                for i in range(2):
                    inside = distance((points - x[i]) @ poses[2 + i, :3, :3], RADIUS, HALF)
                    assert inside.min() > -1e-9
    assert touched > 300
