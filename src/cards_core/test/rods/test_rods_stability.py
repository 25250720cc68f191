"""Conjugate points of single rods against critical loads that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from cards_core.rods.ends import clamped, free
from cards_core.rods.loads import Loading
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.stability import conjugate_points, conjugate_points_of, stability
from cards_core.rods.statics import solve_rod

STEEL = Material(200e9, shear=80e9, density=8000.0)
ROD = Rod(Section.circle(1e-3), STEEL, inextensible=True)
EI = float(ROD.stiffness_bt[0])
TANGENT = brentq(lambda x: math.tan(x) - x, 4.4, 4.6)
"""Smallest x = tan x: antisymmetric buckling of clamped rods."""


def test_compressed_straight_rod() -> None:
    # lengths at which the load is critical between clamps, each for both directions
    k = 2 * math.pi  # the first is at 1 m
    found = conjugate_points(ROD, 2.2, np.eye(4), (0, 0, -k * k * EI, 0, 0, 0))
    expected = np.repeat([1.0, TANGENT / math.pi, 2.0], 2)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    pulled = conjugate_points(ROD, 2.2, np.eye(4), (0, 0, k * k * EI, 0, 0, 0))
    assert len(pulled) == 0


def test_different_stiffness_to_both_sides() -> None:
    rod = Rod(Section.rectangle(2e-3, 1e-3), STEEL, inextensible=True)
    first, second = rod.stiffness_bt[:2]  # about d1: weak
    assert second == pytest.approx(4 * first)
    force = (2 * math.pi) ** 2 * first
    found = conjugate_points(rod, 1.99, np.eye(4), (0, 0, -force, 0, 0, 0))
    np.testing.assert_allclose(found, [1.0, TANGENT / math.pi], rtol=1e-7)
    found = conjugate_points(rod, 2.01, np.eye(4), (0, 0, -force, 0, 0, 0))
    np.testing.assert_allclose(found, [1.0, TANGENT / math.pi, 2.0, 2.0], rtol=1e-7)


def test_twisted_straight_rod() -> None:
    # Greenhill's problem between clamps: M L / EI = 2 x with x = tan x
    moment = 2 * TANGENT * EI
    found = conjugate_points(ROD, 1.3, np.eye(4), (0, 0, 0, 0, 0, moment))
    assert found[0] == pytest.approx(1.0, rel=1e-7)


def test_heavy_column() -> None:
    # a clamped column buckles under its own weight at q L^3/EI = 7.8373 (Bessel function)
    q = float(np.linalg.norm(ROD.weight((0, 0, -9.81))))
    critical = (7.837347438 * EI / q) ** (1 / 3)

    def smallest(length: float) -> float:
        solution = solve_rod(
            ROD,
            length,
            clamped(np.eye(4)),
            free(),
            loading=Loading(gravity=(0, 0, -9.81)),
            guess=(0, 0, -q * length, 0, 0, 0),
            check_stability=False,
        )
        return stability(solution).min_eigenvalue

    found = brentq(smallest, 0.9 * critical, 1.1 * critical, xtol=1e-10)
    assert found == pytest.approx(critical, rel=1e-6)


def test_index_counts_conjugate_points() -> None:
    # clamped ends: negative eigenvalues are as many as conjugate points before the tip
    rng = np.random.default_rng(8)
    rod = Rod(Section.circle(1e-3), STEEL)
    counts = set()
    for _ in range(8):
        wrench = np.concatenate([20.0 * rng.normal(size=3), 1.5 * rng.normal(size=3)])
        loading = Loading(gravity=(0, 0, -9.81))
        shot = solve_rod(
            rod,
            0.6,
            clamped(np.eye(4)),
            free(),
            loading=loading,
            guess=wrench,
            tolerance=1e9,
            check_stability=False,
        )
        held = solve_rod(
            rod,
            0.6,
            clamped(np.eye(4)),
            clamped(shot.tip_pose),
            loading=loading,
            guess=wrench,
            check_stability=False,
        )
        assert held.converged
        np.testing.assert_allclose(held.start_wrench, wrench, rtol=1e-4, atol=1e-4)
        count = len(conjugate_points_of(held))
        assert stability(held).index == count
        assert len(conjugate_points(rod, 0.6, np.eye(4), wrench, loading)) == count
        counts.add(count)
    assert len(counts) >= 3
