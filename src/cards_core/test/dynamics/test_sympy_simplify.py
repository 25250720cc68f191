"""Exact constants, the normal form, and the time limit of simplification."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import sympy as sp

from cards_core.dynamics.sympy_backend import simplify as simplify_module
from cards_core.dynamics.sympy_backend.constants import (
    ConstantTable,
    exact,
    exact_axis,
    exact_rotation,
)
from cards_core.dynamics.sympy_backend.simplify import NormalForm, Simplifier, is_polynomial
from cards_core.dynamics.sympy_backend.subexpressions import Abbreviations, common_subexpressions
from cards_core.spatial import quaternion_matrix, rpy_matrix

A, B, C = sp.symbols("q_1:4", real=True)
W, X, Y, Z = sp.symbols("q_4:8", real=True)
M = sp.Symbol("m_1", positive=True)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.1, "1/10"),
        (0.1 + 0.2, "3/10"),
        (1 / 3, "1/3"),
        (-2.5e-8, "-1/40000000"),
        (0.013358333333333, "13358333333333/10**15"),
        (1.8743851e-04, "18743851/10**11"),
        (0.0, "0"),
        (3.0, "3"),
    ],
)
def test_floats_become_what_the_file_says(value, expected):
    assert exact(value) == sp.Rational(sp.sympify(expected))


@pytest.mark.parametrize("seed", range(20))
def test_general_rotations_are_exactly_orthogonal(seed):
    rng = np.random.default_rng(seed)
    rotation = quaternion_matrix(rng.normal(size=4))
    made = exact_rotation(rotation)
    assert made.T * made == sp.eye(3)
    assert made.det() == 1
    np.testing.assert_allclose(np.array(made, dtype=float), rotation, atol=1e-15)
    axis = rotation[:, 0]
    unit = exact_axis(axis)
    assert unit.dot(unit) == 1
    np.testing.assert_allclose(np.array(unit, dtype=float)[:, 0], axis, atol=1e-15)


def test_known_angles_have_their_roots():
    root = sp.sqrt(2) / 2
    turned = exact_rotation(rpy_matrix(0.0, 0.0, np.pi / 4))
    assert turned == sp.Matrix([[root, -root, 0], [root, root, 0], [0, 0, 1]])
    assert exact_axis(np.array([0.6, 0.0, -0.8])) == sp.Matrix([0.6, 0, -0.8]).applyfunc(
        lambda x: sp.nsimplify(x)
    )


def test_binary_constants_are_the_floats():
    table = ConstantTable(constants="binary")
    assert table.number(0.1) == sp.Rational(*(0.1).as_integer_ratio())
    assert table.number(0.1) != sp.Rational(1, 10)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (sp.sin(A) ** 2 + sp.cos(A) ** 2, 1),
        (M * sp.cos(A) ** 2 - M, -M * sp.sin(A) ** 2),
        (sp.cos(A) * sp.cos(B) - sp.sin(A) * sp.sin(B), sp.cos(A + B)),
        (sp.sin(A) * sp.cos(B) - sp.cos(A) * sp.sin(B), sp.sin(A - B)),
        (sp.cos(A + B) * sp.cos(A) + sp.sin(A + B) * sp.sin(A), sp.cos(B)),
        (sp.cos(A) * sp.cos(C) - sp.sin(A) * sp.sin(C), None),
        (W**2 + X**2 + Y**2 + Z**2 + C, C + 1),
        (sp.sqrt(2) * sp.sqrt(2) * A / 2 + A * sp.sqrt(2) / sp.sqrt(8), A * sp.Rational(3, 2)),
        (sp.exp(A) + A - A, sp.exp(A)),
    ],
)
def test_normal_form(expression, expected):
    """Joints 1 and 2 are parallel, 3 is not, 4 to 7 are a quaternion."""
    form = NormalForm([(W, X, Y, Z)], [(A, B), (C,)])
    assert form(expression) == (expression if expected is None else expected)


@pytest.mark.parametrize("seed", range(10))
def test_equal_expressions_have_one_normal_form(seed):
    """Random polynomials, multiplied out and not, and the difference of the two."""
    rng = np.random.default_rng(seed)
    form = NormalForm([(W, X, Y, Z)], [(A, B)])
    atoms = [sp.sin(A), sp.cos(A), sp.sin(B), sp.cos(A + B), sp.cos(C), W, X, M, sp.sqrt(3)]
    factors = [
        sum(int(rng.integers(-3, 4)) * atoms[rng.integers(len(atoms))] for _ in range(4))
        for _ in range(3)
    ]
    product = sp.Mul(*factors)
    other = sp.expand(product).subs(sp.sin(A) ** 2, 1 - sp.cos(A) ** 2)
    assert form(product) == form(other)
    assert form(product - other) == 0
    norm = sp.sqrt(1 - sum(x**2 for x in (sp.Rational(1, 5), sp.Rational(1, 7), 0)))
    values = {A: 0.3, B: -1.1, C: 0.7, M: 2.0, W: norm, X: sp.Rational(1, 5)}
    values |= {Y: sp.Rational(1, 7), Z: 0}
    assert float(form(product).subs(values)) == pytest.approx(float(product.subs(values)))


def test_full_is_never_longer():
    expression = (A + B) ** 2 * M - (A - B) ** 2 * M + sp.sin(A) * sp.cos(C) * M
    simplifier = Simplifier("full", NormalForm())
    trig = Simplifier("trig", NormalForm()).scalar(expression, "x")
    assert sp.count_ops(simplifier.scalar(expression, "x")) <= sp.count_ops(trig)


def test_full_keeps_what_can_be_calculated_with():
    """SymPy likes sqrt(2) sin(q + pi/4) and tangents; their derivatives would stay long."""
    root = sp.sqrt(2) / 2
    simplifier = Simplifier("full", NormalForm())
    turned = simplifier.scalar(root * (sp.sin(A) + sp.cos(A)), "x")
    assert is_polynomial(turned)
    assert not is_polynomial(sp.sin(A + sp.pi / 4))
    assert not is_polynomial(sp.tan(A))
    abbreviations = Abbreviations()
    odd = sp.sin(A + sp.pi / 4) + sp.sin(2 * A - B) + sp.cos(A + B)
    assert sorted(map(str, abbreviations.apply(odd).free_symbols)) == ["c_12", "q_1", "s_2x1m2"]


def endless(_expression):
    while True:
        time.sleep(0.01)


def test_time_limit_ends_a_simplification_that_hangs(monkeypatch):
    monkeypatch.setattr(simplify_module, "shortest", endless)
    seen = []
    simplifier = Simplifier("full", NormalForm(), 0.2, lambda *what: seen.append(what))
    matrix = sp.Matrix([[sp.sin(A) ** 2 + sp.cos(A) ** 2 + B, A + A]])
    assert simplifier.final(matrix, "M") == sp.Matrix([[B + 1, 2 * A]])
    assert simplifier.unfinished == ["M"]
    assert seen == [("M", 1, 2), ("M", 2, 2)]


def test_time_limit_in_a_thread_holds_between_entries():
    found = []

    def work():
        simplifier = Simplifier("full", NormalForm(), 0.0)
        found.append((simplifier.scalar(A + B, "x"), simplifier.unfinished))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(A + B, ["x"])]


def test_common_subexpressions_and_long_sums():
    terms = sp.symbols("t_0:1000", real=True)
    value = sp.Add(*terms) * sp.sin(A + B) + sp.cos(A + B)
    table, (reduced,) = common_subexpressions([value], "x")
    assert all(len(item.args) <= 200 for _, item in table)
    for name, item in reversed(table):
        reduced = reduced.xreplace({name: item})
    assert sp.expand(reduced - value) == 0
