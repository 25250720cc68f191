"""Single rods against closed forms: elastica, columns, circles, helices, strings, beams."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ellipe, ellipeinc, ellipk, ellipkinc

from cards_core.rods.ends import clamped, free, jointed
from cards_core.rods.loads import DistributedLoad, Loading, PointLoad
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.solution import shape
from cards_core.rods.stability import stability
from cards_core.rods.statics import solve_rod
from cards_core.rods.status import RodStatus

STEEL = Material(200e9, shear=80e9, density=8000.0)
ROD = Rod(Section.circle(1e-3), STEEL, inextensible=True)
EI, GJ = ROD.stiffness_bt[0], ROD.stiffness_bt[2]
LENGTH = 0.7
GROUND = clamped(np.eye(4))


def cantilever(a: float) -> tuple[float, float, float]:
    """w/L, (L - x)/L and tip angle of an inextensible cantilever under a = P L^2/EI."""

    def excess(k: float) -> float:
        start = math.asin(1.0 / (k * math.sqrt(2.0)))
        return float(ellipk(k * k) - ellipkinc(start, k * k)) - math.sqrt(a)

    k = brentq(excess, math.sqrt(0.5) * (1.0 + 1e-15), 1.0 - 1e-12, xtol=1e-16)
    start, angle = math.asin(1.0 / (k * math.sqrt(2.0))), math.asin(2.0 * k * k - 1.0)
    deflection = 1.0 - 2.0 * (ellipe(k * k) - ellipeinc(start, k * k)) / math.sqrt(a)
    return float(deflection), 1.0 - math.sqrt(2.0 * math.sin(angle) / a), angle


@pytest.mark.parametrize(
    ("a", "table"),
    [
        (0.25, (0.082746, 0.004118, 0.124292)),
        (1.0, (0.301721, 0.056433, 0.461352)),
        (3.0, (0.603253, 0.254420, 0.986017)),
        (10.0, (0.810609, 0.554996, 1.430286)),
    ],
)
def test_elastica_cantilever(a: float, table: tuple[float, float, float]) -> None:
    exact = cantilever(a)
    np.testing.assert_allclose(exact, table, atol=6e-7)
    solution = solve_rod(ROD, LENGTH, GROUND, free([0, a * EI / LENGTH**2, 0, 0, 0, 0]))
    assert solution.status == RodStatus.OK, solution.message
    tip = solution.tip_pose
    found = (tip[1, 3] / LENGTH, 1 - tip[2, 3] / LENGTH, math.atan2(tip[1, 2], tip[2, 2]))
    np.testing.assert_allclose(found, exact, atol=1e-8)


@pytest.mark.parametrize("degrees", [20, 60, 100, 140, 176])
def test_column_beyond_its_buckling_load(degrees: int) -> None:
    k = math.sin(math.radians(degrees) / 2)
    complete, second = ellipk(k * k), ellipe(k * k)
    load = (2 * complete / math.pi) ** 2 * math.pi**2 * EI / (4 * LENGTH**2)
    # the straight column is an equilibrium too, and the nearest: it must not be the answer
    solution = solve_rod(ROD, LENGTH, GROUND, free([0, 0, -load, 0, 0, 0]), bulge=(0, 1, 0))
    assert solution.status == RodStatus.OK, solution.message
    tip = solution.tip_pose[:3, 3] / LENGTH
    np.testing.assert_allclose(tip, (0, 2 * k / complete, 2 * second / complete - 1), atol=1e-7)


def straight_column(case: str, load: float) -> float:
    """Smallest eigenvalue of a straight column under a load in EI/L^2."""
    top, push = np.eye(4), [0.0, 0.0, -load * EI / LENGTH**2, 0.0, 0.0, 0.0]
    top[2, 3] = LENGTH
    start, tip = {
        "clamped-free": (GROUND, free(push)),
        "pinned-pinned": (jointed(np.eye(4), "000110"), jointed(top, "001110", push)),
        "clamped-pinned": (GROUND, jointed(top, "001110", push)),
        "clamped-clamped": (GROUND, jointed(top, "001000", push)),
        "clamped-guided": (GROUND, jointed(top, "111000", push)),
    }[case]
    seed = solve_rod(ROD, LENGTH, GROUND, free(push), guess=push, check_stability=False)
    solution = solve_rod(ROD, LENGTH, start, tip, guess=seed, check_stability=False)
    assert solution.converged
    return stability(solution).min_eigenvalue


@pytest.mark.parametrize(
    ("case", "load"),
    [
        ("clamped-free", math.pi**2 / 4),
        ("pinned-pinned", math.pi**2),
        ("clamped-pinned", brentq(lambda x: math.tan(x) - x, 4.4, 4.6) ** 2),
        ("clamped-clamped", 4 * math.pi**2),
        ("clamped-guided", math.pi**2),
    ],
)
def test_euler_loads(case: str, load: float) -> None:
    critical = brentq(lambda p: straight_column(case, p), 0.9 * load, 1.1 * load, xtol=1e-9)
    assert critical == pytest.approx(load, rel=1e-6)


def test_pure_moment_closes_the_circle() -> None:
    moment = 2 * math.pi * EI / LENGTH
    solution = solve_rod(ROD, LENGTH, GROUND, free([0, 0, 0, moment, 0, 0]))
    np.testing.assert_allclose(solution.tip_pose, np.eye(4), atol=1e-9)
    assert solution.energy == pytest.approx(0.5 * moment**2 / EI * LENGTH, rel=1e-10)


def test_helix() -> None:
    radius, slope, twist, length = 0.1, math.radians(30.0), 2.0, 1.0
    sine, cosine = math.sin(slope), math.cos(slope)
    torque = GJ * twist
    force = cosine / radius * (torque - EI * sine * cosine / radius)
    tangent, binormal = np.array([0, cosine, sine]), np.array([0, -sine, cosine])
    pose = np.eye(4)
    pose[:3, :3] = np.column_stack([[-1, 0, 0], binormal, tangent])
    pose[0, 3] = radius
    moment = EI * cosine**2 / radius * binormal + torque * tangent
    assert force == pytest.approx(-3.713927, abs=5e-7)
    np.testing.assert_allclose(moment, (0, -0.3713927, 1.1459259), atol=6e-8)

    angle = length * cosine / radius
    tip = (radius * math.cos(angle), radius * math.sin(angle), length * sine)
    np.testing.assert_allclose(tip, (-0.0721712, 0.0692193, 0.5), atol=6e-8)
    found = shape(ROD, length, pose, (0, 0, force, *moment))
    np.testing.assert_allclose(found.p[-1], tip, atol=1e-11)
    np.testing.assert_allclose(found.curvature, cosine**2 / radius, rtol=1e-11)
    np.testing.assert_allclose(found.u[:, 2], twist, rtol=1e-11)
    # the same as a boundary value problem: where its end is, and what it then carries
    near = 1.01 * np.array([0, 0, force, *moment])
    solution = solve_rod(ROD, length, clamped(pose), clamped(found.tip), guess=near)
    np.testing.assert_allclose(solution.start_wrench, (0, 0, force, *moment), atol=1e-7)


def test_slender_rod_under_tension_is_cut_into_segments() -> None:
    # k L = 60: plain shooting would amplify by cosh(60) = 6e25
    k = 60.0 / LENGTH
    pull, push = k * k * EI, 1e-6 * k * k * EI
    solution = solve_rod(ROD, LENGTH, GROUND, free([push, 0, pull, 0, 0, 0]))
    assert solution.status == RodStatus.OK, solution.message
    assert 10.0 * len(solution.parts) >= 60.0
    deflection = push / pull * (LENGTH - math.tanh(60.0) / k)
    assert solution.tip_pose[0, 3] == pytest.approx(deflection, rel=1e-8)
    assert solution.start_wrench[4] == pytest.approx(push * math.tanh(60.0) / k, rel=1e-8)


def test_small_deflections_under_distributed_and_point_loads() -> None:
    # superposition of the formulas of a cantilever; so small that the rest is of order 1e-9
    q, a, b, P, c = 1e-4, 0.2, 0.55, 2e-5, 0.3
    loading = Loading(
        distributed=(DistributedLoad(force=(q, 0, 0), start=a, end=b),),
        points=(PointLoad(at=c, force=(0, P, 0), moment=(0, 3e-6, 0)),),
    )
    solution = solve_rod(ROD, LENGTH, GROUND, free(), loading=loading)

    def part(e: float) -> float:
        """Tip deflection of a load q on (0, e)."""
        return float(q * e**4 / (8 * EI) + q * e**3 / (6 * EI) * (LENGTH - e))

    bend = 3e-6 * c / EI * (LENGTH - c / 2)
    expected = part(b) - part(a) + bend, P * c**3 / (3 * EI) + P * c**2 / (2 * EI) * (LENGTH - c)
    np.testing.assert_allclose(solution.tip_pose[:2, 3], expected, rtol=1e-6)
    np.testing.assert_allclose(
        solution.start_wrench[:3], (q * (b - a), P, 0), rtol=1e-9, atol=1e-9 * P
    )
