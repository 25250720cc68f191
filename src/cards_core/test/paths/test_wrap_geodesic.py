"""Geodesics on the surfaces: curvature, conserved quantities, order, Jacobi fields."""

import itertools
import math

import numpy as np
import pytest

from cards_core.paths.wrapping.geodesic import MATRIX, WEIGHTS, sample, trace
from cards_core.paths.wrapping.mesh import smooth_hull
from cards_core.paths.wrapping.surfaces import CylinderSurface, EllipsoidSurface, TorusSurface

BOX = np.array(list(itertools.product((-0.05, 0.05), (-0.04, 0.04), (-0.03, 0.03))))
SURFACES = {
    "ellipsoid": EllipsoidSurface([0.12, 0.08, 0.1]),
    "cylinder": CylinderSurface(0.07),
    "torus": TorusSurface(0.15, 0.05),
    "closed torus": TorusSurface(0.15, 0.05, closed=True),
    "hull": smooth_hull(BOX),
}


def start_on(surface, rng):
    x = surface.project(rng.normal(size=3) * 0.1)
    for _ in range(3):
        x = surface.project(x)
    t = np.cross(surface.normal(x), rng.normal(size=3))
    return x, t / np.linalg.norm(t)


@pytest.mark.parametrize("name", SURFACES)
def test_normal_and_curvature_are_those_of_the_height(name):
    surface, rng = SURFACES[name], np.random.default_rng(1)
    for _ in range(5):
        x, t = start_on(surface, rng)
        n, k_t, tau, k_b = surface.curvature(x, t)
        b = np.cross(n, t)
        assert abs(surface.height(x)) < 1e-12
        h = 1e-6
        slopes = [
            (surface.height(x + h * e) - surface.height(x - h * e)) / (2 * h) for e in np.eye(3)
        ]
        assert slopes == pytest.approx(n, abs=1e-7)
        for direction, expected in ((t, (k_t, tau)), (b, (tau, k_b))):
            change = (surface.normal(x + h * direction) - surface.normal(x - h * direction)) / (
                2 * h
            )
            assert (t @ change, b @ change) == pytest.approx(expected, abs=1e-5 * (1 + k_t + k_b))


@pytest.mark.parametrize("name", SURFACES)
def test_geodesic_stays_on_the_surface_and_does_not_turn_in_it(name):
    surface, rng = SURFACES[name], np.random.default_rng(2)
    for _ in range(3):
        x, t = start_on(surface, rng)
        points = sample(surface, trace(surface, x, t, 0.1), 201)
        assert max(abs(surface.height(p)) for p in points) < 1e-9
        second = points[2:] - 2 * points[1:-1] + points[:-2]
        normals = np.array([surface.normal(p) for p in points[1:-1]])
        sideways = second - np.einsum("ij,ij->i", second, normals)[:, None] * normals
        # what remains is of third order in the spacing
        assert np.abs(sideways).max() < 2e-2 * np.abs(second).max() + 1e-16  # flat discs
        chords = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
        assert chords == pytest.approx(0.1, rel=1e-3)


def test_great_circle():
    surface, rng = EllipsoidSurface([0.1, 0.1, 0.1]), np.random.default_rng(3)
    x, t = start_on(surface, rng)
    found = trace(surface, x, t, 0.25)
    assert found.end == pytest.approx(math.cos(2.5) * x + math.sin(2.5) * 0.1 * t, abs=1e-9)
    assert found.angle == pytest.approx(2.5, abs=1e-8)
    a, a_rate, r, r_rate = found.jacobi
    assert (a, r_rate) == pytest.approx((math.cos(2.5),) * 2, abs=1e-8)
    assert r == pytest.approx(0.1 * math.sin(2.5), abs=1e-9)
    assert a_rate == pytest.approx(-10 * math.sin(2.5), abs=1e-6)


def test_helix():
    surface = CylinderSurface(0.1)
    t = np.array([0.0, 0.8, 0.6])
    found = trace(surface, np.array([0.1, 0.0, 0.02]), t, 0.2)
    expected = [0.1 * math.cos(1.6), 0.1 * math.sin(1.6), 0.14]
    assert found.end == pytest.approx(expected, abs=1e-10)
    assert found.jacobi == pytest.approx([1.0, 0.0, 0.2, 1.0], abs=1e-9)
    assert found.angle == pytest.approx(0.2 * 0.64 / 0.1, abs=1e-9)


def test_clairaut():
    """On a surface of revolution rho cos(angle to the parallel) is constant."""
    surface, rng = TorusSurface(0.15, 0.05), np.random.default_rng(4)
    for _ in range(5):
        x, t = start_on(surface, rng)
        found = trace(surface, x, t, 0.4)
        before, after = np.cross(x, t)[2], np.cross(found.end, found.end_tangent)[2]
        assert after == pytest.approx(before, abs=1e-9)


def test_joachimsthal():
    """On an ellipsoid (t.D t)(x.D^2 x), D = diag(1 / radii^2), is constant along geodesics."""
    surface, rng = SURFACES["ellipsoid"], np.random.default_rng(5)
    d = surface.radii**-2.0
    for _ in range(5):
        x, t = start_on(surface, rng)
        found = trace(surface, x, t, 0.4)
        y, u = found.end, found.end_tangent
        expected = (t @ (d * t)) * (x @ (d * d * x))
        assert (u @ (d * u)) * (y @ (d * d * y)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", SURFACES)
def test_jacobi_fields_are_the_derivatives_of_the_end(name):
    surface, rng = SURFACES[name], np.random.default_rng(6)
    x, t = start_on(surface, rng)
    n = surface.normal(x)
    b, length, h = np.cross(n, t), 0.06, 1e-6
    middle = trace(surface, x, t, length)
    n_end = surface.normal(middle.end)
    b_end = np.cross(n_end, middle.end_tangent)

    def end(shift, turn):
        y = surface.project(x + shift * b)
        m = surface.normal(y)
        u = t + turn * b
        u = u - (u @ m) * m
        return trace(surface, y, u / np.linalg.norm(u), length)

    for shift, turn, k in ((h, 0.0, 0), (0.0, h, 2)):
        plus, minus = end(shift, turn), end(-shift, -turn)
        moved = (plus.end - minus.end) / (2 * h)
        assert b_end @ moved == pytest.approx(middle.jacobi[k], abs=1e-6)
        assert n_end @ moved == pytest.approx(0.0, abs=1e-6)
        rate = b_end @ (plus.end_tangent - minus.end_tangent) / (2 * h)
        assert rate == pytest.approx(middle.jacobi[k + 1], abs=1e-4)


def test_integrator_has_order_eight():
    assert MATRIX.sum(axis=1)[1] == pytest.approx(0.5)
    nodes = MATRIX.sum(axis=1)
    for power in range(8):
        assert WEIGHTS @ nodes**power == pytest.approx(1.0 / (power + 1), abs=1e-14)
    surface, rng = SURFACES["torus"], np.random.default_rng(7)
    x, t = start_on(surface, rng)
    errors, step = [], surface.step
    try:
        surface.step = 0.002
        exact = trace(surface, x, t, 0.18).end
        for count in (6, 12):
            surface.step = 0.18 / count + 1e-15
            errors.append(np.linalg.norm(trace(surface, x, t, 0.18).end - exact))
    finally:
        surface.step = step
    assert errors[0] / errors[1] > 2**7


@pytest.mark.parametrize("name", SURFACES)
def test_steps_are_short_enough(name):
    surface, rng = SURFACES[name], np.random.default_rng(8)
    for _ in range(3):
        x, t = start_on(surface, rng)
        coarse, step = trace(surface, x, t, 0.08), surface.step
        try:
            surface.step = step / 3
            fine = trace(surface, x, t, 0.08)
        finally:
            surface.step = step
        assert coarse.end == pytest.approx(fine.end, abs=2e-9)
