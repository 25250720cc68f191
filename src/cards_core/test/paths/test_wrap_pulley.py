"""Caster pulleys, and arcs to draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from wrap_cases import PULLEY_AXIS, PULLEY_POSITION, R, row, unit

from cards_core.paths.drawing import arc_points, pulley_arc_points
from cards_core.paths.wrapping.closed_forms import cylinder_contact, pulley_contact, sphere_contact
from cards_core.robot.elements import Cylinder, Mesh, Pulley, Sphere


def test_pulley_is_casprs() -> None:
    """CASPR's ``base_rotating_pulley``, up to half a turn."""
    rng = np.random.default_rng(9)
    F, v, r = PULLEY_POSITION, PULLEY_AXIS, R
    count = 0
    while count < 200:
        B = F + rng.normal(size=3) * 0.5
        contact = pulley_contact(F, v, r, B)
        n = unit(np.cross(v, B - F))
        C = F + r * unit(np.cross(n, v))
        if contact.angle > math.pi or np.linalg.norm(B - C) < 1.01 * r:
            continue
        count += 1
        rho = r / np.linalg.norm(B - C)
        A = C + rho**2 * (B - C) - rho * math.sqrt(1 - rho**2) * np.cross(n, B - C)
        arc = r * math.acos(np.clip(unit(F - C) @ unit(A - C), -1, 1))
        np.testing.assert_allclose(contact.end, A, atol=1e-12)
        assert contact.length == pytest.approx(arc, abs=1e-8)
        np.testing.assert_array_equal(contact.start, F)


def test_pulley_derivative_is_the_direction_of_the_cable() -> None:
    rng = np.random.default_rng(10)
    beyond = 0
    for _ in range(200):
        B = PULLEY_POSITION + rng.normal(size=3) * 0.5
        contact = pulley_contact(PULLEY_POSITION, PULLEY_AXIS, R, B)
        if np.linalg.norm(B - contact.end) < 0.02:
            continue
        beyond += contact.angle > math.pi
        slope = np.zeros(3)
        for k in range(3):
            for sign in (1.0, -1.0):
                moved = B.copy()
                moved[k] += sign * 1e-6
                leave = pulley_contact(PULLEY_POSITION, PULLEY_AXIS, R, moved)
                total = leave.length + np.linalg.norm(moved - leave.end)
                slope[k] += sign * total / 2e-6
        np.testing.assert_allclose(slope, unit(B - contact.end), rtol=0, atol=1e-6)
    assert beyond > 5


def test_pulley_in_line_and_at_its_middle() -> None:
    ahead = pulley_contact(np.zeros(3), PULLEY_AXIS, R, 0.5 * PULLEY_AXIS)
    assert ahead.length == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(ahead.end, 0.0, atol=1e-12)
    behind = pulley_contact(np.zeros(3), PULLEY_AXIS, R, -0.5 * PULLEY_AXIS)
    assert math.pi < behind.angle < 1.5 * math.pi
    across = unit(np.cross(PULLEY_AXIS, [1.0, 0.0, 0.0]))
    assert np.all(np.isfinite(row(pulley_contact(np.zeros(3), PULLEY_AXIS, R, R * across))))


def test_pulley_arc_points() -> None:
    pulley = Pulley("world", PULLEY_POSITION, PULLEY_AXIS, R)
    B = np.array([0.4, -0.3, 0.1])
    contact = pulley_contact(pulley.position, pulley.axis, R, B)
    points = pulley_arc_points(pulley, contact, 2001)
    np.testing.assert_allclose(points[0], contact.start, atol=1e-15)
    np.testing.assert_allclose(points[-1], contact.end, atol=1e-12)
    steps = np.diff(points, axis=0)
    assert np.linalg.norm(steps, axis=1).sum() == pytest.approx(contact.length, rel=1e-6)
    np.testing.assert_allclose(unit(steps[0]), PULLEY_AXIS, atol=1e-3)
    np.testing.assert_allclose(unit(steps[-1]), unit(B - contact.end), atol=1e-3)


def test_arc_points_without_contact_and_of_other_shapes() -> None:
    p, q = np.array([-0.2, 0.3, 0.0]), np.array([0.2, 0.3, 0.0])
    contact = sphere_contact(p, q, R)
    points = arc_points(Sphere(R), contact, 5)
    assert points.shape == (5, 3)
    np.testing.assert_array_equal(points, np.repeat(contact.start[None], 5, axis=0))
    bore = cylinder_contact(p, q, R, inside=True)
    np.testing.assert_array_equal(
        arc_points(Cylinder(R, 1), bore, 3, inside=True), np.repeat(bore.start[None], 3, axis=0)
    )
    wrapped = sphere_contact(np.array([-0.2, 0.01, 0.0]), np.array([0.2, 0.02, 0.0]), R)
    with pytest.raises(TypeError, match="got a Mesh"):
        arc_points(Mesh("a.stl"), wrapped, 3)
