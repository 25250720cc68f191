"""Cables that touch rods and spheres: shortest way, forces, and what happens in motion."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from cards_core.paths.contacts.cables import ContactCable, ContactCables
from cards_core.paths.contacts.shapes import ContactShape
from cards_core.paths.wrapping.closed_forms import cylinder_contact, sphere_contact
from cards_core.robot.elements import Capsule, Cylinder, Sphere


def pose(rotation=None, position=(0.0, 0.0, 0.0)):
    out = np.eye(4)
    if rotation is not None:
        out[:3, :3] = rotation.as_matrix()
    out[:3, 3] = position
    return out


def cable_over(shapes, p, q):
    """A cable between two links (0 and 1) that touches shapes of links 2, 3, ...; poses."""
    n = len(shapes) + 2
    placed = [ContactShape(i + 2, geometry) for i, geometry in enumerate(shapes)]
    cable = ContactCable((0, 1), np.zeros((2, 3)), tuple(range(len(shapes))))
    poses = np.tile(np.eye(4), (n + 1, 1, 1))
    poses[0, :3, 3], poses[1, :3, 3] = p, q
    return ContactCables(n, placed, [cable]), poses


def test_driven_rod_of_the_reference():
    # ends (+-0.0975, 0), rest length 0.19 m, k 1000 N/m, rod of 1 cm pushed from 0.0105 to -0.01
    cables, poses = cable_over([Capsule(0.01, 0.2)], (-0.0975, 0, 0), (0.0975, 0, 0))
    for y in np.arange(0.0105, -0.01 - 1e-9, -1e-5):
        poses[2, :3, 3] = 0.0, y, 0.0
        length = cables.solve(poses)[0]
    tension = 1000.0 * (length - 0.19)
    assert tension == pytest.approx(9.088269, abs=1e-6)
    wrenches = cables.pull(np.zeros((4, 6)), np.array([tension]))
    assert np.abs(wrenches.sum(axis=0)[:3]).max() < 1e-12
    assert wrenches[2, 1] == pytest.approx(3.688, abs=2e-3)  # 3.68836 N with one point of contact


@pytest.mark.parametrize("kind", ["cylinder", "sphere"])
def test_one_shape_against_closed_forms(kind):
    rng = np.random.default_rng(1)
    touched = 0
    for _ in range(1000):
        p, q = rng.uniform(-1, 1, (2, 3))
        if min(np.hypot(*p[:2]), np.hypot(*q[:2])) < 0.32:
            continue
        geometry = Cylinder(0.3, 20.0) if kind == "cylinder" else Sphere(0.3)
        cables, poses = cable_over([geometry], p, q)
        turn = Rotation.random(rng=rng)
        poses[:3] = pose(turn, rng.uniform(-1, 1, 3)) @ poses[:3]
        length = cables.solve(poses)[0]
        expected = (
            cylinder_contact(p, q, 0.3, 20.0, None)
            if kind == "cylinder"
            else sphere_contact(p, q, 0.3, None)
        )
        touched += expected.wrapped
        total = (
            np.linalg.norm(p - expected.start) + expected.length + np.linalg.norm(q - expected.end)
        )
        assert length == pytest.approx(total, abs=1e-12)
        assert len(cables.contacts(0)) == expected.wrapped
    assert touched > 40


def test_several_rods_against_an_optimiser():
    """Four skew rods, the cable over and under them in turn; points on the developed arcs."""
    rng = np.random.default_rng(2)
    radius = 0.1
    for _ in range(5):
        cables, poses = cable_over([Capsule(radius, 4.0)] * 4, (-2.5, 0, 0), (2.5, 0, 0))
        x = np.array([-1.5, -0.5, 0.5, 1.5])
        side = np.array([1.0, -1.0, 1.0, -1.0])
        axes = [Rotation.from_rotvec([*rng.uniform(-0.4, 0.4, 2), 0.0]) for _ in x]
        for depth in np.linspace(0.15, -0.15, 400):
            for i, axis in enumerate(axes):
                poses[2 + i] = pose(axis, (x[i], side[i] * depth, 0.1 * i))
            length = cables.solve(poses)[0]
        assert [c.shape for c in cables.contacts(0)] == [0, 1, 2, 3]

        # two angles and two heights per rod, where the cable meets and leaves it
        def total(v, poses=poses, side=side):
            out, last = 0.0, poses[0, :3, 3]
            for i in range(4):
                phi1, z1, phi2, z2 = v[4 * i : 4 * i + 4]
                frame = poses[2 + i]
                pa, pb = (
                    frame[:3, :3] @ [radius * np.cos(a), radius * np.sin(a), z] + frame[:3, 3]
                    for a, z in ((phi1, z1), (phi2, z2))
                )
                out += np.linalg.norm(pa - last) + np.hypot(radius * (phi2 - phi1), z2 - z1)
                last = pb
            return out + np.linalg.norm(poses[1, :3, 3] - last)

        v = []
        for i, contact in enumerate(cables.contacts(0)):
            frame = poses[2 + i]
            a, b = ((x - frame[:3, 3]) @ frame[:3, :3] for x in (contact.start, contact.end))
            phi1 = np.arctan2(a[1], a[0])
            phi2 = phi1 + np.angle(np.exp(1j * (np.arctan2(b[1], b[0]) - phi1)))
            v += [phi1, a[2], phi2, b[2]]
        v = np.array(v)
        assert total(v) == pytest.approx(length, abs=1e-12)
        gradient = [(total(v + 1e-6 * e) - total(v - 1e-6 * e)) / 2e-6 for e in np.eye(len(v))]
        assert np.abs(gradient).max() < 1e-8  # tangent, and straight where it is developed
        # heights are free, and the length is convex in them: an optimiser comes back to them
        heights = np.arange(16) % 2 == 1

        def along(z, v=v, heights=heights, total=total):
            w = v.copy()
            w[heights] = z
            return total(w)

        found = minimize(along, v[heights] + rng.uniform(-0.05, 0.05, 8), tol=1e-14)
        assert found.fun == pytest.approx(length, abs=1e-9)


def test_full_turns_are_kept_and_undone():
    cables, poses = cable_over([Cylinder(0.05, 2.0)], (-1, 0.06, 0), (1, 0.06, 0))
    straight = cables.solve(poses)[0]
    angles = np.linspace(0.0, 6 * np.pi, 3000)
    for angle in angles:  # one end is carried three times around the rod
        poses[1, :3, 3] = np.cos(angle), np.sin(-angle) + 0.06 * np.cos(angle), 0.1
        cables.solve(poses)
    (contact,) = cables.contacts(0)
    assert contact.turn == pytest.approx(6 * np.pi, abs=0.3)
    assert contact.turn > 5.5 * np.pi
    for angle in angles[::-1]:
        poses[1, :3, 3] = np.cos(angle), np.sin(-angle) + 0.06 * np.cos(angle), 0.0
        length = cables.solve(poses)[0]
    assert length == pytest.approx(straight, abs=1e-12)
    assert cables.contacts(0) == []


@pytest.mark.parametrize("steps", [1, 3, 1000])
def test_no_tunnelling(steps):
    """A thin rod crosses the span at any speed: it is met from the side where the cable was."""
    cables, poses = cable_over([Capsule(1e-4, 1.0)], (-1, 0, 0), (1, 0, 0))
    poses[2, :3, 3] = 0.0, 0.3, 0.0
    cables.solve(poses)
    for y in np.linspace(0.3, -0.5, steps + 1)[1:]:
        poses[2, :3, 3] = 0.2, y, 0.0
        length = cables.solve(poses)[0]
    (contact,) = cables.contacts(0)
    assert contact.start[1] < -0.5
    assert length == pytest.approx(np.hypot(1.2, 0.5) + np.hypot(0.8, 0.5), abs=3e-4)


@pytest.mark.parametrize("geometry", [Cylinder(0.05, 0.4), Capsule(0.05, 0.4)])
def test_slides_off_the_end_of_a_rod(geometry):
    cables, poses = cable_over([geometry], (-1, 0.1, 0), (1, 0.1, 0))
    for y in np.linspace(0.0, 0.2, 50):
        poses[2, :3, 3] = 0.0, y, 0.0
        cables.solve(poses)
    assert len(cables.contacts(0)) == 1
    for z in np.linspace(0.0, 0.3, 300):
        poses[:2, 2, 3] = z
        length = cables.solve(poses)[0]
    assert cables.contacts(0) == []
    assert length == 2.0


def test_forces_balance_and_do_the_work_of_the_tension():
    rng = np.random.default_rng(5)
    seen = 0
    for _ in range(40):
        shapes = [Capsule(0.1, 0.8), Sphere(0.2), Cylinder(0.08, 1.0), Capsule(0.05, 0.6)]
        cables, poses = cable_over(shapes, (-1.5, 0, 0), (1.5, 0, 0))
        for i, x in enumerate((-0.9, -0.3, 0.3, 0.9)):
            poses[2 + i] = pose(Rotation.random(rng=rng), (x, *rng.uniform(-0.08, 0.08, 2)))
        twists = np.zeros((7, 6))
        twists[:-1] = rng.normal(size=(6, 6))
        h = 1e-6
        steps = []
        cables.solve(poses)
        contacts = [c.shape for c in cables.contacts(0)]
        seen = max(seen, len(contacts))
        wrenches = cables.pull(twists, np.array([7.0])).copy()
        rate = cables.rates[0]
        power = -np.sum(wrenches * twists) / 7.0
        assert power == pytest.approx(rate, abs=1e-11)
        force = wrenches[:, :3].sum(axis=0)
        moment = (wrenches[:, 3:] + np.cross(poses[:, :3, 3], wrenches[:, :3])).sum(axis=0)
        assert np.abs([force, moment]).max() < 1e-12 * 7.0 * 10
        for sign in (1, -1):
            moved = poses.copy()
            for k in range(6):
                spin = Rotation.from_rotvec(sign * h * twists[k, 3:]).as_matrix()
                moved[k, :3, :3] = spin @ poses[k, :3, :3]
                moved[k, :3, 3] += sign * h * twists[k, :3]
            steps.append(cables.solve(moved)[0])
            same = [c.shape for c in cables.contacts(0)] == contacts
        if same:
            assert rate == pytest.approx((steps[0] - steps[1]) / (2 * h), abs=1e-6)
    assert seen >= 3
    assert cables.failures == 0


def test_same_steps_give_the_same_bytes():
    cables, poses = cable_over([Capsule(0.1, 1.0), Sphere(0.2)], (-1, 0, 0), (1, 0, 0))

    def run():
        out = []
        for y in np.linspace(0.3, -0.3, 40):
            poses[2, :3, 3], poses[3, :3, 3] = (-0.4, y, 0.1), (0.4, -y, 0.05)
            out.append(cables.solve(poses)[0])
        return np.array(out).tobytes()

    first = run()
    cables.reset()
    assert run() == first
