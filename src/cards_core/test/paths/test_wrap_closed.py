"""Closed-form wrapping: reference values, derivatives, continuity, invariance, forces."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from wrap_cases import SOLVERS, R, Solver, path_length, random_ends, row, unit

from cards_core.paths.drawing import arc_points
from cards_core.paths.wrapping.closed_forms import Contact, cylinder_contact, sphere_contact
from cards_core.robot.elements import Cylinder, Sphere

# Values --------------------------------------------------------------------------------------


def test_reference_values() -> None:
    """Digits on which MuJoCo, OpenSim and the closed form agree."""
    p, q = np.array([-0.3, 0.05, 0.02]), np.array([0.25, 0.03, -0.04])
    assert path_length(p, q, sphere_contact(p, q, R)) == pytest.approx(0.566453324, abs=5e-10)
    assert path_length(p, q, cylinder_contact(p, q, R)) == pytest.approx(0.567380232, abs=5e-10)
    p, q = np.array([-0.2, 0.01, 0.0]), np.array([0.2, 0.02, 0.0])
    for solve in (sphere_contact, cylinder_contact):
        assert path_length(p, q, solve(p, q, R)) == pytest.approx(0.437248213, abs=5e-10)


def test_ring_over_its_inner_side() -> None:
    """A torus' tube seen in the plane of its axis: the side point asks for the other way."""
    centre, radius = np.array([0.15, 0.0, 0.0]), 0.05
    p, q = np.array([0.0, -0.3, 0.0]) - centre, np.array([0.3, 0.2, 0.0]) - centre
    side = np.array([0.10, 0.0, 0.0]) - centre
    for contact in (
        sphere_contact(p, q, radius, side),
        cylinder_contact(p, q, radius, side=side),
    ):
        assert path_length(p, q, contact) == pytest.approx(0.603153470, abs=5e-10)


def test_half_turn_and_more() -> None:
    """Over the top from below the middle on both sides."""
    for drop, turn in ((0.0, math.pi), (-0.5 * R, math.pi + 2 * math.atan2(0.5 * R, 0.3))):
        p, q = np.array([-0.3, drop, 0.0]), np.array([0.3, drop, 0.0])
        side = np.array([0.0, 0.2, 0.0])
        expected = turn - 2 * math.acos(R / math.hypot(0.3, drop))
        for contact in (sphere_contact(p, q, R, side), cylinder_contact(p, q, R, side=side)):
            assert contact.angle == pytest.approx(expected, abs=1e-12)
            assert contact.start[1] > 0
    # both ends below: the muscle hugs more than half of the surface
    p, q = np.array([-0.05, -0.2, 0.0]), np.array([0.05, -0.2, 0.0])
    contact = cylinder_contact(p, q, R, side=side)
    lean = math.acos(R / math.hypot(0.05, 0.2))
    expected = 2 * math.pi - 2 * math.atan2(0.05, 0.2) - 2 * lean
    assert contact.angle == pytest.approx(expected, abs=1e-12)
    assert contact.angle > math.pi
    points = arc_points(Cylinder(R, math.inf), contact, 101)
    assert points[50] == pytest.approx(np.array([0.0, R, 0.0]), abs=1e-12)
    # a cable hanging down on both sides of a wheel: start and end do not tell which way
    p, q = np.array([-R, -0.2, 0.0]), np.array([R, -0.2, 0.0])
    for geometry, contact in (
        (Sphere(R), sphere_contact(p, q, R, side)),
        (Cylinder(R, math.inf), cylinder_contact(p, q, R, side=side)),
    ):
        assert contact.angle == pytest.approx(math.pi, abs=1e-12)
        points = arc_points(geometry, contact, 3)
        assert points[1] == pytest.approx(np.array([0.0, R, 0.0]), abs=1e-12)


BENT = ("bore", "sphere inside")
"""Paths that bend at a point, where the others lie on the surface."""


@pytest.mark.parametrize("name", [*SOLVERS])
def test_tangency_and_turning(name: str) -> None:
    """Tangent points lie on the surface, straight pieces touch it, sampled arcs agree."""
    rng = np.random.default_rng(1)
    flat = name[0] != "s"
    wrapped = 0
    for _ in range(300):
        p, q = random_ends(rng, flat)
        contact = SOLVERS[name](p, q)
        if not contact.wrapped:
            assert contact.length == contact.angle == 0.0
            np.testing.assert_array_equal(contact.start, contact.end)
            straight = np.linalg.norm(q - p)
            assert path_length(p, q, contact) == pytest.approx(straight, abs=1e-14)
            continue
        wrapped += 1
        mask = np.array([1.0, 1.0, 0.0 if flat else 1.0])
        u_in, u_out = unit(contact.start - p), unit(q - contact.end)
        for point in (contact.start, contact.end):
            assert np.linalg.norm(mask * point) == pytest.approx(R, abs=1e-12)
        if name in BENT:
            assert contact.angle == pytest.approx(
                math.atan2(np.linalg.norm(np.cross(u_in, u_out)), u_in @ u_out), abs=1e-7
            )
            continue
        assert abs(u_in @ (mask * contact.start)) < 1e-12
        assert abs(u_out @ (mask * contact.end)) < 1e-12
        geometry = Sphere(R) if name[0] == "s" else Cylinder(R, math.inf)
        points = arc_points(geometry, contact, 1500)
        np.testing.assert_allclose(points[0], contact.start, atol=1e-12)
        np.testing.assert_allclose(points[-1], contact.end, atol=1e-10)
        steps = np.diff(points, axis=0)
        sizes = np.linalg.norm(steps, axis=1)
        assert sizes.sum() == pytest.approx(contact.length, rel=1e-5)
        u = np.vstack([u_in, steps / sizes[:, None], u_out])
        turns = np.linalg.norm(np.cross(u[:-1], u[1:]), axis=1)
        assert turns.sum() == pytest.approx(contact.angle, rel=1e-5)
    assert wrapped > 60


@pytest.mark.parametrize("name", ["sphere", "cylinder"])
def test_longer_than_straight_and_growing_with_radius(name: str) -> None:
    rng = np.random.default_rng(2)
    solve = sphere_contact if name == "sphere" else cylinder_contact
    for _ in range(200):
        p, q = random_ends(rng, flat=True)
        lengths = [path_length(p, q, solve(p, q, r)) for r in np.linspace(0.01, R, 10)]
        assert lengths[0] >= np.linalg.norm(q - p) - 1e-14
        assert np.all(np.diff(lengths) > -1e-14)


# Invariance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SOLVERS])
def test_symmetry(name: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        p, q = random_ends(rng, name[0] != "s")
        forth, back = SOLVERS[name](p, q), SOLVERS[name](q, p)
        assert forth.wrapped == back.wrapped
        assert path_length(p, q, forth) == pytest.approx(path_length(q, p, back), abs=1e-12)
        assert forth.angle == pytest.approx(back.angle, abs=1e-8)
        np.testing.assert_allclose(forth.start, back.end, atol=1e-8)


def rotation(rng: np.random.Generator) -> np.ndarray:
    matrix, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return matrix


@pytest.mark.parametrize("kind", ["sphere", "sphere inside", "cylinder", "bore"])
@pytest.mark.parametrize("with_side", [False, True])
def test_motions_of_the_surface_onto_itself(kind: str, with_side: bool) -> None:
    """Rotations and reflections (and slides of a cylinder) move the contact along."""
    rng = np.random.default_rng(4)
    for _ in range(300):
        p, q = random_ends(rng, kind[0] != "s")
        side = rng.normal(size=3) if with_side else None
        if kind[0] == "s":
            move, slide = rotation(rng), np.zeros(3)
        else:
            angle = rng.uniform(-math.pi, math.pi)
            c, s, m = math.cos(angle), math.sin(angle), rng.choice([-1.0, 1.0])
            move = np.array([[c, -s * m, 0], [s, c * m, 0], [0, 0, rng.choice([-1.0, 1.0])]])
            slide = np.array([0.0, 0.0, rng.normal()])

        def solve(a: np.ndarray, b: np.ndarray, side: np.ndarray | None) -> Contact:
            if kind[0] == "s":
                return sphere_contact(a, b, R, side, inside=kind == "sphere inside")
            return cylinder_contact(a, b, R, side=side, inside=kind == "bore")

        here = solve(p, q, side)
        there = solve(
            move @ p + slide, move @ q + slide, None if side is None else move @ side + slide
        )
        assert here.wrapped == there.wrapped
        np.testing.assert_allclose(move @ here.start + slide, there.start, atol=1e-11)
        np.testing.assert_allclose(move @ here.end + slide, there.end, atol=1e-11)
        assert here.length == pytest.approx(there.length, abs=1e-12)
        assert here.angle == pytest.approx(there.angle, abs=1e-11)


# Derivatives and continuity ------------------------------------------------------------------


def gradient(solve: Solver, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Derivative of the length for p and q, by the envelope theorem."""
    contact = solve(p, q)
    return np.concatenate([unit(p - contact.start), unit(q - contact.end)])


def difference(solve: Solver, p: np.ndarray, q: np.ndarray, step: float = 1e-6) -> np.ndarray:
    x = np.concatenate([p, q])
    out = np.zeros(6)
    for k in range(6):
        values = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[k] += sign * step
            values.append(path_length(moved[:3], moved[3:], solve(moved[:3], moved[3:])))
        out[k] = (values[0] - values[1]) / (2.0 * step)
    return out


@pytest.mark.parametrize("name", [*SOLVERS])
def test_gradient(name: str) -> None:
    rng = np.random.default_rng(5)
    solve = SOLVERS[name]
    wrapped = 0
    while wrapped < 60:
        p, q = rng.uniform(-0.4, 0.4, size=(2, 3))
        if min(np.linalg.norm(p[:2]), np.linalg.norm(q[:2])) < 1.1 * R:
            continue
        if abs(np.cross(unit(p), unit(q))).max() < 1e-2:
            continue  # the shorter way changes sides
        contact = solve(p, q)
        wrapped += contact.wrapped
        np.testing.assert_allclose(
            gradient(solve, p, q), difference(solve, p, q), rtol=0, atol=1e-6
        )


@pytest.mark.parametrize("name", [*SOLVERS])
def test_through_lift_off(name: str) -> None:
    """Sweep q across the boundary: no jump in length or gradient; gradient right on both sides."""
    rng = np.random.default_rng(6)
    solve = SOLVERS[name]
    crossings = 0
    for _ in range(1000):
        p, a = random_ends(rng, flat=True)
        _, b = random_ends(rng, flat=True)
        points = [a + t * (b - a) for t in np.linspace(0.0, 1.0, 30)]
        if min(np.linalg.norm(x[:2]) for x in points) < 1.05 * R:
            continue
        for low, high in pairwise(points):
            if solve(p, low).wrapped == solve(p, high).wrapped:
                continue
            first = solve(p, low).wrapped
            for _ in range(55):
                middle = 0.5 * (low + high)
                if solve(p, middle).wrapped == first:
                    low = middle
                else:
                    high = middle
            touching = solve(p, low if first else high)
            if touching.length > 1e-3 or (name in BENT and touching.angle > 1e-3):
                continue  # the way round changes, the path does not lift off
            crossings += 1
            jump = path_length(p, low, solve(p, low)) - path_length(p, high, solve(p, high))
            assert abs(jump) < 1e-12
            turn = gradient(solve, p, low) - gradient(solve, p, high)
            assert np.abs(turn).max() < 1e-6
            np.testing.assert_allclose(
                difference(solve, p, low, 1e-8), gradient(solve, p, low), rtol=0, atol=1e-6
            )
    assert crossings > 40


def test_side_path_is_continuous_except_on_the_cut() -> None:
    """Once around the surface: one jump, where the end passes behind the centre."""
    p = np.array([0.25, 0.05, 0.0])
    side = np.array([0.0, 0.2, 0.0])
    turns = np.linspace(0.0, 2.0 * math.pi, 4001)
    for radius in (0.12, 0.3):
        q = radius * np.stack([np.cos(turns), np.sin(turns), 0 * turns], axis=1)
        for solve in (sphere_contact, lambda p, q, r, s: cylinder_contact(p, q, r, side=s)):
            lengths = np.array([path_length(p, x, solve(p, x, R, side)) for x in q])
            jumps = np.flatnonzero(np.abs(np.diff(lengths)) > 1e-3)
            assert len(jumps) == 1
            assert turns[jumps[0]] == pytest.approx(1.5 * math.pi, abs=2e-3)


# Forces --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SOLVERS])
def test_forces_on_the_surface(name: str) -> None:
    """Forces of a muscle without friction.

    No moment about the centre of a sphere, none about a cylinder's axis and no force along it;
    what the muscle does to all three bodies sums to zero; the power is tension times rate.
    """
    rng = np.random.default_rng(7)
    solve = SOLVERS[name]
    flat = name[0] != "s"
    wrapped = 0
    while wrapped < 60:
        p, q = random_ends(rng, flat)
        contact = solve(p, q)
        if not contact.wrapped:
            continue
        wrapped += 1
        u_in, u_out = unit(contact.start - p), unit(q - contact.end)
        force = u_out - u_in
        moment = np.cross(contact.end, u_out) - np.cross(contact.start, u_in)
        if flat:
            assert abs(moment[2]) < 1e-9
            assert abs(force[2]) < 1e-9
        else:
            np.testing.assert_allclose(moment, 0.0, atol=1e-12)
        np.testing.assert_allclose(u_in + force - u_out, 0.0, atol=1e-15)
        balance = np.cross(p, u_in) + moment - np.cross(q, u_out)
        np.testing.assert_allclose(balance, 0.0, atol=1e-12)
        v_p, v_q, v, w = rng.normal(size=(4, 3)) * 0.1
        power = v_p @ u_in - v_q @ u_out + v @ force + w @ moment

        k = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        lengths = []
        for t in (1e-7, -1e-7):
            turned = np.eye(3) + t * k + t * t * k @ k / 2.0
            a, b = (turned.T @ (x - t * v) for x in (p + t * v_p, q + t * v_q))
            lengths.append(path_length(a, b, solve(a, b)))
        assert -power == pytest.approx((lengths[0] - lengths[1]) / 2e-7, abs=1e-6)


# Ends and degenerate cases -------------------------------------------------------------------


def test_finite_cylinder_counts_while_the_middle_of_the_arc_is_on_it() -> None:
    p, q = np.array([-0.2, 0.01, 0.0]), np.array([0.2, 0.02, 0.1])
    whole = cylinder_contact(p, q, R)
    middle = 0.5 * (whole.start[2] + whole.end[2])
    on = cylinder_contact(p, q, R, 2.0 * middle + 1e-9)
    np.testing.assert_array_equal(row(on), row(whole))
    off = cylinder_contact(p, q, R, 2.0 * middle - 1e-9)
    assert not off.wrapped
    assert path_length(p, q, off) == pytest.approx(np.linalg.norm(q - p), abs=1e-15)
    bore = cylinder_contact(np.array([0.2, 0.0, -0.1]), np.array([0.2, 0.01, 0.3]), R, inside=True)
    assert bore.wrapped
    assert not cylinder_contact(
        np.array([0.2, 0.0, -0.1]), np.array([0.2, 0.01, 0.3]), R, 0.1, inside=True
    ).wrapped


def test_end_inside_or_on_the_surface() -> None:
    q = np.array([0.3, 0.0, 0.0])
    for solve in (sphere_contact, cylinder_contact):
        assert not solve(np.array([-0.05, 0.0, 0.0]), q, R).wrapped
        # a point meant to lie on the surface, rounded inwards, still wraps a quarter turn
        on = np.array([-0.6, 0.8, 0.0]) * R * (1.0 - 1e-15)
        contact = solve(on, q, R)
        assert contact.wrapped
        np.testing.assert_allclose(contact.start, on, atol=1e-12)
        inclination = math.atan2(0.8, -0.6) - math.acos(R / 0.3)
        assert contact.angle == pytest.approx(inclination, abs=1e-7)


@pytest.mark.parametrize("along", [np.array([1.0, 0, 0]), unit(np.array([1.0, 2.0, -0.5]))])
def test_in_line_with_the_centre(along: np.ndarray) -> None:
    """The plane goes through the side point; both ways are equally long."""
    p, q = -0.3 * along, 0.2 * along
    side = np.array([0.02, -0.05, 0.3])
    contact = sphere_contact(p, q, R, side)
    normal = np.cross(along, side)
    assert abs(contact.start @ normal) < 1e-6 * R
    assert contact.start @ (side - (side @ along) * along) > 0
    straight = math.sqrt(0.3**2 - R**2) + math.sqrt(0.2**2 - R**2)
    arc = R * (math.pi - math.acos(R / 0.3) - math.acos(R / 0.2))
    assert path_length(p, q, contact) == pytest.approx(straight + arc, abs=1e-12)
    assert path_length(p, q, sphere_contact(p, q, R)) == pytest.approx(straight + arc, abs=1e-12)
    # the side point in line as well: still a proper path
    contact = sphere_contact(p, q, R, 0.4 * along)
    assert path_length(p, q, contact) == pytest.approx(straight + arc, abs=1e-9)
    flat = unit(np.array([along[0], along[1], 0.0]))
    for sign in (1.0, -1.0):
        side = sign * np.array([-flat[1], flat[0], 0.0])
        contact = cylinder_contact(-0.3 * flat, 0.2 * flat, R, side=side)
        assert contact.start @ side > 0
        assert contact.end @ side > 0


def test_ends_on_one_ray_do_not_loop() -> None:
    """Rounding must not send a path that stays on one side once around the surface."""
    rng = np.random.default_rng(8)
    for _ in range(2000):
        p = rng.normal(size=3)
        p *= 0.15 / np.linalg.norm(p[:2])
        q = p * rng.uniform(1.1, 3.0)
        side = p * rng.uniform(0.5, 2.0) if rng.random() < 0.5 else rng.normal(size=3)
        assert not sphere_contact(p, q, R, side).wrapped
        assert not cylinder_contact(p, q, R, side=side).wrapped
