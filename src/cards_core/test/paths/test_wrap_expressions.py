"""Closed forms as expressions: equal to the numbers; both finite whatever comes in."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wrap_cases import (
    FINITE,
    PULLEY,
    PULLEY_AXIS,
    PULLEY_POSITION,
    SIDE,
    SOLVERS,
    R,
    path_length,
    row,
)

from cards_core.paths.drawing import arc_points, pulley_arc_points
from cards_core.paths.wrapping.closed_forms import cylinder_contact, pulley_contact, sphere_contact
from cards_core.paths.wrapping.closed_symbolic import cylinder_expr, pulley_expr, sphere_expr
from cards_core.robot.elements import Cylinder, Pulley, Sphere

EXPRESSIONS: dict[str, Callable] = {
    "sphere": lambda p, q: sphere_expr(p, q, R),
    "sphere side": lambda p, q: sphere_expr(p, q, R, SIDE),
    "sphere inside": lambda p, q: sphere_expr(p, q, R, inside=True),
    "cylinder": lambda p, q: cylinder_expr(p, q, R),
    "cylinder side": lambda p, q: cylinder_expr(p, q, R, math.inf, SIDE),
    "bore": lambda p, q: cylinder_expr(p, q, R, inside=True),
    "finite cylinder": lambda p, q: cylinder_expr(p, q, R, 0.2, SIDE),
    "finite bore": lambda p, q: cylinder_expr(p, q, R, 0.2, inside=True),
    "pulley": lambda p, q: pulley_expr(PULLEY_POSITION, PULLEY_AXIS, R, q),
}


SPECIAL = [0.0, R, -R, 1e-12, -1e-12, 1e-160, 0.05, -0.3, 0.3, R * (1 + 1e-12), R * (1 - 1e-12)]
coordinate = st.sampled_from(SPECIAL) | st.floats(-1e3, 1e3) | st.floats(-0.3, 0.3)
vector = st.tuples(coordinate, coordinate, coordinate).map(np.array)


def check_finite(p: np.ndarray, q: np.ndarray, side: np.ndarray, radius: float) -> None:
    contacts = [
        sphere_contact(p, q, radius),
        sphere_contact(p, q, radius, side),
        sphere_contact(p, q, radius, inside=True),
        cylinder_contact(p, q, radius),
        cylinder_contact(p, q, radius, 0.2, side),
        cylinder_contact(p, q, radius, inside=True),
        pulley_contact(p, PULLEY_AXIS, radius, q),
    ]
    for contact in contacts[:-1]:
        assert np.all(np.isfinite(row(contact)))
        assert 0.0 <= contact.angle <= 4.0 * math.pi
        assert contact.length >= 0.0
        assert path_length(p, q, contact) >= np.linalg.norm(q - p) * (1 - 1e-9) - 1e-9
    assert np.all(np.isfinite(row(contacts[-1])))
    shapes = [Sphere(radius)] * 3 + [Cylinder(radius, 1)] * 3
    for contact, geometry in zip(contacts[:-1], shapes, strict=True):
        assert np.all(np.isfinite(arc_points(geometry, contact, 4)))
    pulley = Pulley("world", p, PULLEY_AXIS, radius)
    assert np.all(np.isfinite(pulley_arc_points(pulley, contacts[-1], 4)))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(vector, vector, vector, st.sampled_from([R, 1e-6, 10.0]))
def test_never_nan(p: np.ndarray, q: np.ndarray, side: np.ndarray, radius: float) -> None:
    check_finite(p, q, side, radius)
    check_finite(p, p, side, radius)
    check_finite(p, -p, p, radius)


def test_numbers_need_no_casadi() -> None:
    """Hosts run on compiled kernels and must not need the compiler's packages."""
    code = (
        "import sys; sys.modules['casadi'] = None\n"
        "import cards_core.paths.drawing, cards_core.paths.wrapping.closed_forms\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def compiled(name: str) -> tuple[ca.Function, ca.Function]:
    p, q, dp, dq = (ca.SX.sym(n, 3) for n in ("p", "q", "dp", "dq"))
    out = ca.vertcat(*EXPRESSIONS[name](p, q))
    tangent = ca.jtimes(out, ca.vertcat(p, q), ca.vertcat(dp, dq))
    return ca.Function("f", [p, q], [out]), ca.Function("df", [p, q, dp, dq], [tangent])


@pytest.mark.parametrize("name", [*EXPRESSIONS])
def test_expression_equals_numbers(name: str) -> None:
    """On a grid full of degenerate cases and on random points; derivatives always finite."""
    rng = np.random.default_rng(11)
    solve = (SOLVERS | FINITE | PULLEY)[name]
    f, df = compiled(name)
    grid = (-0.2, -R, 0.0, R, 0.15)
    points = [np.array([x, y, z]) for x in grid for y in grid for z in (0.0, R)]
    pairs = [(p, q) for p in points for q in points]
    for _ in range(2000):
        scale = 10.0 ** rng.uniform(-2, 1, size=(2, 1))
        pairs.append(tuple(rng.normal(size=(2, 3)) * scale))
    for _ in range(500):
        p = rng.normal(size=3) * 0.2
        q = p * rng.uniform(-2, 2) + rng.normal(size=3) * 10.0 ** rng.uniform(-14, -6)
        pairs.append((p, q))
    P, Q = (np.array(v).T for v in zip(*pairs, strict=True))
    rows = np.asarray(f.map(P.shape[1])(P, Q)).T
    dp, dq = rng.normal(size=(2, 3, P.shape[1]))
    slopes = np.asarray(df.map(P.shape[1])(P, Q, dp, dq))
    assert np.all(np.isfinite(slopes))
    expected = np.array([row(solve(p, q)) for p, q in pairs])
    touching = np.count_nonzero(expected[:, 7] > 0)
    assert touching > 200
    error = np.abs(rows - expected).max(axis=1)
    assert error.max() < 1e-12, pairs[int(error.argmax())]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(vector, vector)
def test_expressions_never_nan(p: np.ndarray, q: np.ndarray) -> None:
    for f, df in FUNCTIONS:
        assert np.all(np.isfinite(np.asarray(f(p, q))))
        assert np.all(np.isfinite(np.asarray(df(p, q, np.ones(3), np.array([1.0, -2.0, 0.5])))))


FUNCTIONS = [compiled(name) for name in EXPRESSIONS]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("sphere", 185),
        ("sphere side", 225),
        ("sphere inside", 255),
        ("cylinder", 140),
        ("cylinder side", 170),
        ("bore", 255),
        ("pulley", 105),
    ],
)
def test_expressions_stay_small(name: str, limit: int) -> None:
    """Instructions, inputs and outputs included: kernels inline many of them."""
    f, _ = compiled(name)
    assert f.n_instructions() <= limit
