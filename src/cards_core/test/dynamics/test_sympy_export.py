"""Exported texts and Python modules: what they must have whatever the robot."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import sympy as sp
from sympy_cases import robot_of, states

from cards_core.dynamics import VARIABLES, make_dynamics
from cards_core.dynamics.numeric import evaluate
from cards_core.dynamics.sympy_backend import (
    QUANTITIES,
    SymbolicModel,
    SymbolicOptions,
    latex_document,
    make_document,
    markdown_document,
    python_module,
)
from cards_core.dynamics.sympy_backend.document import number, symbol
from cards_core.errors import UnknownNameError
from cards_core.formats import load

MODELS = (("planar_2r", "numbers"), ("planar_2r", "symbols"), ("ball", "numbers"))


@cache
def model_of(name, parameters="numbers"):
    return SymbolicModel(robot_of(name), SymbolicOptions(parameters=parameters))


def run_module(folder, text, q, qd):
    """Import an exported module in a process without CARDS and return what it says."""
    (folder / "exported.py").write_text(text)
    script = (
        "import json, sys, inspect\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import exported\n"
        "q, qd = json.loads(sys.argv[2])\n"
        "out = {}\n"
        "for name, item in vars(exported).items():\n"
        "    if inspect.isfunction(item) and item.__module__ == 'exported':\n"
        "        two = len(inspect.signature(item).parameters) == 2\n"
        "        out[name] = (item(q, qd) if two else item(q)).tolist()\n"
        "assert not [name for name in sys.modules if name.startswith(('cards', 'sympy'))]\n"
        "print(json.dumps(out))\n"
    )
    state = json.dumps([list(q), list(qd)])
    command = [sys.executable, "-c", script, str(folder), state]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return {name: np.array(value) for name, value in json.loads(done.stdout).items()}


@pytest.mark.parametrize(("name", "parameters"), MODELS)
def test_python_module_has_the_same_numbers(name, parameters, tmp_path):
    robot = robot_of(name)
    model = model_of(name, parameters=parameters)
    text = python_module(model, QUANTITIES)
    other = make_dynamics(robot, "numeric")
    (q, qd), *_ = states(other.tree, 1)
    found = run_module(tmp_path, text, q, qd)
    shared = [key for key in QUANTITIES if key in VARIABLES]
    for key, value in evaluate(other, shared, q, qd).items():
        got = found[VARIABLES[key].title]
        assert got.shape == value.shape, key
        np.testing.assert_allclose(got, value, atol=1e-10, rtol=1e-10, err_msg=key)
    np.testing.assert_allclose(found["coriolis_matrix"] @ qd, found["coriolis"], atol=1e-10)
    assert found["potential_energy"].shape == ()
    assert set(found) == {quantity.variable.title for quantity in QUANTITIES.values()}


def assert_balanced(text):
    """Braces, environments and left-right pairs."""
    depth = 0
    for character in re.sub(r"\\[{}]", "", text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{([^}]*)\}", text):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert stack == []
    for line in text.splitlines():
        assert line.count(r"\left") == line.count(r"\right"), line
    assert text.count(r"\bigl(") == text.count(r"\bigr)")


@pytest.mark.parametrize(("name", "parameters"), MODELS)
@pytest.mark.parametrize("subexpressions", [False, True])
def test_texts_are_well_formed(name, parameters, subexpressions):
    model = model_of(name, parameters)
    quantities = QUANTITIES if name == "planar_2r" else None
    document = make_document(model, quantities, subexpressions=subexpressions)
    latex, markdown = latex_document(document), markdown_document(document)
    assert_balanced(latex)
    assert_balanced(markdown)
    assert markdown.count("$$") % 2 == 0
    packages = set(re.findall(r"\\usepackage(?:\[[^]]*\])?\{([^}]*)\}", latex))
    assert packages <= {"inputenc", "amsmath", "longtable", "geometry"}
    for names in (model.tree.position_names, model.muscle_names):
        for item in names:
            assert item.replace("_", r"\_") in latex
            assert item in markdown
    defined = {left.removesuffix("^2") for s in document.sections for left, _ in s.formulas}
    formulas = "".join(x for s in document.sections for _, lines in s.formulas for x in lines)
    assert set(re.findall(r"(?<![a-zA-Z])[scdx]_\{[^}]*\}", formulas)) <= defined


def test_letters_and_sums_of_angles():
    text = markdown_document(make_document(model_of("planar_2r", "symbols")))
    lengths = r"a_{2\mathrm{z}} \, b_{2\mathrm{z}} \, m_{2}"
    assert rf"C_{{2}} &= {lengths} \, s_{{2}} \, {{\dot{{q}}_{{1}}}}^{{2}}" in text
    assert r"s_{12} &= \sin\left(q_{1} + q_{2}\right)" in text
    assert r"| $g$ | $\frac{981}{100}$ | gravity, downwards [m/s^2] |" in text
    assert "I_{1\\mathrm{xx}}" not in text  # no equation has it


def test_left_out_muscles_are_said():
    model = SymbolicModel(load("antagonist_joint"), SymbolicOptions(muscles="straight"))
    text = markdown_document(make_document(model))
    assert "2 muscles of the robot are left out." in text
    assert "## Muscle lengths" not in text


def test_unknown_quantity_lists_the_known():
    with pytest.raises(UnknownNameError, match="Known: U, M, C"):
        make_document(model_of("planar_2r"), ["M", "Q"])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1/10", r"\frac{1}{10}"),
        ("-3/4", r"-\frac{3}{4}"),
        ("7", "7"),
        ("83333/1000000", "0.083333"),
        ("12345678912345/10**15", "0.012345679"),
        ("83333/10**12", r"8.3333 \cdot 10^{-8}"),
        ("10**40", r"1 \cdot 10^{40}"),
    ],
)
def test_numbers_in_texts(value, text):
    assert number(sp.Rational(sp.sympify(value))) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("qd_1", r"\dot{q}_{1}"),
        ("a_2z", r"a_{2\mathrm{z}}"),
        ("r_1_2x", r"r_{1,2\mathrm{x}}"),
        ("I_1xy", r"I_{1\mathrm{xy}}"),
        ("g", "g"),
        ("x_12", "x_{12}"),
    ],
)
def test_names_in_texts(name, text):
    assert symbol(sp.Symbol(name), {}) == text
