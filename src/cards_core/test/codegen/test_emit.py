"""The generated C: every operation, lanes, precision, NaN."""

import math
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest

from cards_core.codegen import emit
from cards_core.codegen.kernel import (
    Kernel,
    Repeated,
    RepeatedKernel,
    kernel_function,
    layout_of,
)
from cards_core.codegen.model import NativeModel, Variant
from cards_core.codegen.native import load_or_build
from cards_core.codegen.toolchain import find_compiler
from cards_core.errors import CompilationError

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on this machine")

X, Y = ca.SX.sym("x"), ca.SX.sym("y")
OPERATIONS = {
    "add": X + Y,
    "sub": X - Y,
    "mul": X * Y,
    "div": X / Y,
    "neg": -X,
    "square": X * X,
    "twice": X + X,
    "inverse": 1 / Y,
    "sqrt": ca.sqrt(ca.fabs(X)),
    "exp": ca.exp(X),
    "log": ca.log(ca.fabs(X)),
    "sin": ca.sin(X),
    "cos": ca.cos(X),
    "tan": ca.tan(X),
    "asin": ca.asin(X / 4),
    "acos": ca.acos(X / 4),
    "atan": ca.atan(X),
    "sinh": ca.sinh(X),
    "cosh": ca.cosh(X),
    "tanh": ca.tanh(X),
    "asinh": ca.asinh(X),
    "acosh": ca.acosh(1 + ca.fabs(X)),
    "atanh": ca.atanh(X / 4),
    "atan2": ca.atan2(X, Y),
    "hypot": ca.hypot(X, Y),
    "pow": ca.fabs(X) ** Y,
    "constpow": ca.fabs(X) ** 2.5,
    "floor": ca.floor(X),
    "ceil": ca.ceil(X),
    "fmod": ca.fmod(X, Y),
    "fabs": ca.fabs(X),
    "sign": ca.sign(X),
    "copysign": ca.copysign(X, Y),
    "erf": ca.erf(X),
    "log1p": ca.log1p(ca.fabs(X)),
    "expm1": ca.expm1(X),
    "fmin": ca.fmin(X, Y),
    "fmax": ca.fmax(X, 0.5),
    "lt": X < Y,
    "le": X <= Y,
    "eq": ca.eq(X, Y),
    "ne": ca.ne(X, Y),
    "and": ca.logic_and(X, Y),
    "or": ca.logic_or(X, Y),
    "not": ca.logic_not(X),
    "if_else": ca.if_else(X < Y, X, 3.0),
    "constant": ca.SX(0.1),
    "infinity": X / ca.if_else(X < Y, ca.inf, 1.0),
    "minus infinity": ca.fmax(X, -ca.inf),
    "negated constant": Y - (-ca.SX(2.0)),
    "passed on": Y,
}


def operations_kernel():
    values = ca.vertcat(*OPERATIONS.values())
    state = (("x", (1,), X), ("y", (1,), Y))
    return Kernel("operations", state, (("values", (len(OPERATIONS),), values),))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CARDS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def samples(count=37):
    rng = np.random.default_rng(0)
    rows = rng.uniform(-3, 3, (count, 2))
    rows[1] = rows[1, 0]  # equal
    rows[2] = (0.0, 1.5)
    return rows


def reference(rows):
    kernel = operations_kernel()
    function = ca.Function("f", [X, Y], [kernel.outputs[0][2]])
    return np.array([np.array(function(*row)).ravel() for row in rows])


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("batch", [False, True])
def test_every_operation(cache, precision, batch):
    rows = samples()
    variant = Variant(precision, batch)
    model = load_or_build(b"operations", lambda: [operations_kernel()], variant)
    if batch:
        found = model.rows("operations", rows)
    else:
        kernel = model.bind("operations")
        found = np.empty((len(rows), len(OPERATIONS)), variant.dtype)
        for row, out in zip(rows, found, strict=True):
            kernel.inputs["x"][:], kernel.inputs["y"][:] = row
            kernel.call()
            out[:] = kernel.outputs["values"]
    assert found.dtype == variant.dtype
    rounded = rows.astype(variant.dtype).astype(float)
    expected = reference(rounded)
    # a few roundings; tan and fmod amplify those of their argument in single precision
    tolerance = 1e-14 if precision == "double" else 3e-5
    for column, name in enumerate(OPERATIONS):
        np.testing.assert_allclose(
            found[:, column], expected[:, column], rtol=tolerance, atol=tolerance, err_msg=name
        )


def test_rows_do_not_depend_on_threads_or_neighbours(cache):
    rows = samples(101)
    model = load_or_build(b"operations", lambda: [operations_kernel()], Variant(batch=True))
    whole = model.rows("operations", rows)
    for threads in (2, 3, 7, 200):
        np.testing.assert_array_equal(model.rows("operations", rows, threads), whole)
    for count in range(6):
        np.testing.assert_array_equal(model.rows("operations", rows[:count]), whole[:count])


def test_nan_is_not_lost_in_sign_and_stays_in_its_lane(cache):
    rows = samples(8)
    rows[3] = math.nan
    model = load_or_build(b"operations", lambda: [operations_kernel()], Variant(batch=True))
    found = model.rows("operations", rows)
    clean = np.delete(np.arange(8), 3)
    np.testing.assert_array_equal(found[clean], model.rows("operations", rows[clean]))
    assert np.isnan(found[3, list(OPERATIONS).index("sign")])


def test_without_a_compiler_rows_are_evaluated_one_by_one(cache, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        model = load_or_build(b"operations", lambda: [operations_kernel()], Variant(batch=True))
    rows = samples(5)
    np.testing.assert_allclose(model.rows("operations", rows), reference(rows), rtol=1e-14)


def test_an_unknown_operation_is_named(monkeypatch):
    names = emit._operation_names()
    monkeypatch.setattr(
        emit, "_operation_names", lambda: {k: v for k, v in names.items() if v != "ERF"}
    )
    kernel = operations_kernel()
    function = ca.Function("f", [X, Y], [kernel.outputs[0][2]])
    with pytest.raises(CompilationError, match=r"operation .* in 'f'"):
        emit.emit_function(function, "f", layout_of(kernel))


@pytest.mark.skipif(shutil.which("clang") is None, reason="no clang on this machine")
@pytest.mark.parametrize("lanes", [1, 4])
def test_clang_understands_it_too(tmp_path, lanes):
    kernel = operations_kernel()
    function = ca.Function("f", [X, Y], [kernel.outputs[0][2]])
    text = emit.preamble(lanes, "double")
    text += emit.emit_function(function, "f", layout_of(kernel)).main
    text += emit.entry_point("f", layout_of(kernel), lanes)
    (tmp_path / "f.c").write_text(text)
    subprocess.run(["clang", "-c", "f.c"], cwd=tmp_path, check=True)


def test_the_report_tells_what_was_built(cache):
    said = []
    model = load_or_build(
        b"operations",
        lambda: [operations_kernel()],
        progress=lambda what, done: said.append((what, done)),
    )
    report = model.report
    assert isinstance(model, NativeModel)
    assert set(report.phases) == {"expressions", "generate", "compile"}
    assert report.bytes == (report.path / "model.so").stat().st_size
    assert report.kernels == {"operations": report.instructions}
    assert [done for _, done in said] == sorted(done for _, done in said)
    assert said[-1] == ("done", 1.0)
    again = load_or_build(b"operations", lambda: [operations_kernel()])
    assert again.report.cached
    assert again.report.instructions == report.instructions
    forced = load_or_build(b"operations", lambda: [operations_kernel()], force=True)
    assert not forced.report.cached
    assert [p.name for p in cache.iterdir()] == [report.path.name]


@pytest.mark.parametrize("part", [1, 2, 7, 40])
@pytest.mark.parametrize("batch", [False, True])
def test_long_functions_are_cut_and_the_parts_fit_together(cache, monkeypatch, part, batch):
    monkeypatch.setattr(emit, "PART", part)
    chain = X
    early = [ca.sin(X + i) for i in range(10)]
    for i in range(60):
        chain = ca.cos(chain * Y) + early[i % 10]
    outputs = ca.vertcat(chain, early[0], ca.SX(2.0), Y, chain * early[9])
    state = (("x", (1,), X), ("y", (1,), Y))
    kernel = Kernel("long", state, (("values", (5,), outputs),))
    model = load_or_build(b"long", lambda: [kernel, operations_kernel()], Variant(batch=batch))
    files = list(model.report.path.glob("model*.c"))
    assert len(files) > 1
    function = ca.Function("f", [X, Y], [outputs])
    for row in samples(3):
        expected = np.array(function(*row)).ravel()
        if batch:
            found = model.rows("long", row[None])[0]
        else:
            bound = model.bind("long")
            bound.inputs["x"][:], bound.inputs["y"][:] = row
            bound.call()
            found = bound.outputs["values"]
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


# Loops over elements --------------------------------------------------------------------------


def repeated(n, power=1):
    """A kernel that scales and adds for n elements, and squares for two."""
    x, y, a = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX.sym("a")
    big = x
    for _ in range(power):
        big = ca.sin(big) + y
    rows = np.arange(n)
    scale = np.linspace(0.5, 2.0, n)[:, None]
    first = Repeated(
        ca.vertcat(x, y),
        ca.vertcat(a),
        ca.vertcat(a * x + y, big),
        np.column_stack([rows, n + rows[::-1]]),
        scale,
        np.column_stack([rows, n + 2 + rows]),
    )
    squares = Repeated(
        ca.vertcat(x),
        ca.SX(0, 1),
        ca.vertcat(x * x),
        np.array([[0], [2 * n - 1]]),
        np.zeros((2, 0)),
        np.array([[n], [n + 1]]),
    )
    inputs = (("u", (n,)), ("v", (n,)))
    return RepeatedKernel("f", inputs, (("w", (n + 2,)), ("z", (n,))), (first, squares)), scale


def truth(scale, u, v):
    return np.r_[scale[:, 0] * u + v[::-1], u[0] ** 2, v[-1] ** 2, np.sin(u) + v[::-1]]


@pytest.mark.parametrize("variant", [Variant(), Variant(batch=True), Variant("single")])
def test_a_loop_over_elements_is_what_its_elements_are(cache, variant):
    kernel, scale = repeated(7)
    rng = np.random.default_rng(3)
    given = rng.normal(size=(5, 14))
    model = load_or_build(b"loop", lambda: [kernel], variant)
    found = model.rows("f", given.astype(variant.dtype))
    expected = np.array([truth(scale, row[:7], row[7:]) for row in given])
    error = 1e-6 if variant.precision == "single" else 1e-15
    np.testing.assert_allclose(found, expected, rtol=error, atol=error)
    plain = kernel.unrolled()
    evaluated = kernel_function(plain, "f")(given[0, :7], given[0, 7:])
    values = np.concatenate([item.full().ravel() for item in evaluated])
    np.testing.assert_allclose(values, expected[0], rtol=1e-15)
    assert layout_of(plain) == layout_of(kernel)


def test_the_code_of_a_loop_does_not_grow_with_its_elements():
    (few, count), (many, more) = (
        emit.emit_repeated(repeated(n, power=1100)[0], "f") for n in (3, 60)
    )
    assert count == more > emit.PART
    assert many.parts == few.parts
    assert len(many.main) < len(few.main) + 60 * 5 * 30
