"""The symbolic model against the other backends, and what physics demands of it."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from caspr_samples import SHARED, needs_caspr_models
from sympy_cases import (
    OPERATIONAL,
    PROJECT,
    RANDOM,
    STATE,
    derivative,
    robot_of,
    states,
    straight,
    sympy_of,
)

from cards_core.dynamics import make_dynamics
from cards_core.dynamics.numeric import NumericDynamics, evaluate
from cards_core.dynamics.sympy_backend import (
    SymbolicModel,
    SymbolicOptions,
    SympyDynamics,
    in_many_digits,
    predicted_size,
)
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats import load
from random_robots import random_robot

SMALL = ("planar_2r", "ball", "universal")
CASPR = (
    "Example point mass XZ",
    "Example spherical",
    "KNTU planar",
    "Passive springs planar",
    "C-Leg",
    "CAREX",
    "Myorob shoulder",
)
"""Robots of CASPR that are not among ours and take a few seconds each."""


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory):
    """Compile into a folder of our own, without optimising: the numbers are what counts."""
    patch = pytest.MonkeyPatch()
    patch.setenv("CARDS_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.setenv("CFLAGS", "-O0")
    yield
    patch.undo()


def assert_same(first, second, names):
    for name in names:
        a, b = getattr(first, name), getattr(second, name)
        assert a.shape == b.shape, name
        np.testing.assert_allclose(a, b, atol=1e-10, rtol=1e-10, err_msg=name)


@pytest.mark.parametrize("name", [*PROJECT, *RANDOM])
def test_all_backends_agree(name):
    ours = sympy_of(name)
    for backend in ("numeric", "compiled"):
        other = make_dynamics(robot_of(name), backend)
        for q, qd in states(ours.tree):
            assert_same(ours.update(q, qd), other.update(q, qd), STATE)
            assert_same(ours.operational(q, qd), other.operational(q, qd), OPERATIONAL)
            np.testing.assert_allclose(
                ours.muscle_bias(q, qd), other.muscle_bias(q, qd), atol=1e-10, rtol=1e-10
            )


@pytest.mark.parametrize("name", [*PROJECT, *RANDOM])
def test_body_space(name):
    """Equal to the numeric backend's, and M, C, G, L when projected."""
    ours, other = sympy_of(name), make_dynamics(robot_of(name), "numeric")
    assert isinstance(other, NumericDynamics)
    q, qd = states(ours.tree, 1)[0]
    body = ours.evaluate("W,V,M_b,C_b,G_b", q, qd)
    for key, expected in evaluate(other, body, q, qd).items():
        np.testing.assert_allclose(body[key], expected, atol=1e-10, rtol=1e-10, err_msg=key)
    state, w = ours.update(q, qd), body["W"]
    pairs = [(w.T @ body["M_b"], state.mass_matrix), (w.T @ body["C_b"], state.coriolis)]
    pairs += [(-w.T @ body["G_b"], state.gravity)]
    pairs += [(body["V"] @ w, state.muscle_jacobian)] if "V" in body else []
    for value, expected in pairs:
        np.testing.assert_allclose(value, expected, atol=1e-10, rtol=1e-10)


@needs_caspr_models
@pytest.mark.parametrize("name", CASPR)
def test_robots_of_caspr(name):
    from cards_core.formats.caspr import find_models, import_caspr

    files = next(row.files for row in find_models(SHARED) if row.name == name)
    robot = straight(import_caspr(files, feasibility=False).robot)
    ours = SympyDynamics(robot)
    for backend in ("numeric", "compiled"):
        other = make_dynamics(robot, backend)
        for q, qd in states(ours.tree):
            assert_same(ours.update(q, qd), other.update(q, qd), STATE)


@pytest.mark.parametrize("name", ["planar_2r", "bm_arm", "ball", "ball_prismatic"])
def test_christoffel_form(name):
    """C = matrix qd, and dM/dt - 2 matrix is skew, as identities of expressions."""
    model = sympy_of(name).model
    k = model.kinematics
    qd = sp.Matrix(model.qd)
    skew = k.rate(model.mass_matrix) - 2 * model.coriolis_matrix
    assert k.simplify.work(skew + skew.T, "test").is_zero_matrix
    difference = model.coriolis_matrix * qd - model.coriolis
    assert k.simplify.work(difference, "test").is_zero_matrix


@pytest.mark.parametrize("name", ["planar_2r", "bm_arm", "universal"])
def test_lagrange_s_equation(name):
    """C + G is d/dt dT/dqd - dT/dq + dU/dq at qdd = 0, where velocities are rates."""
    model = sympy_of(name).model
    k = model.kinematics
    q, qd = sp.Matrix(model.q), sp.Matrix(model.qd)
    momentum = sp.Matrix([model.kinetic_energy]).jacobian(qd)
    energy = sp.Matrix([model.kinetic_energy - model.potential_energy])
    left = momentum.jacobian(q) * qd - energy.jacobian(q).T
    assert k.simplify.work(left - model.coriolis - model.gravity, "test").is_zero_matrix


@pytest.mark.parametrize("name", [*PROJECT, *RANDOM])
def test_mass_matrix_is_symmetric(name):
    mass = sympy_of(name).model.mass_matrix
    assert mass == mass.T


@pytest.mark.parametrize("name", [*SMALL, "bm_arm"])
def test_jacobian_gradient_is_a_derivative(name):
    ours = sympy_of(name)
    still = np.zeros(ours.tree.nv)
    for q, qd in states(ours.tree, 1):
        gradient = ours.jacobian_gradient(q)
        for k, direction in enumerate(np.eye(ours.tree.nv)):
            slope = derivative(
                lambda x: ours.update(x, still).muscle_jacobian, ours.tree, q, direction
            )
            np.testing.assert_allclose(gradient[:, :, k], slope, atol=1e-7)
        other = make_dynamics(robot_of(name), "numeric").jacobian_gradient(q)
        np.testing.assert_allclose(gradient, other, atol=1e-10)
        bias = np.einsum("ijk,j,k->i", gradient, qd, qd)
        np.testing.assert_allclose(bias, ours.muscle_bias(q, qd), atol=1e-10)


@pytest.mark.parametrize("name", SMALL)
def test_link_poses(name):
    ours, other = sympy_of(name), make_dynamics(robot_of(name), "numeric")
    for q, _ in states(ours.tree):
        np.testing.assert_allclose(ours.link_poses(q), other.link_poses(q), atol=1e-12)


@pytest.mark.parametrize("name", ["planar_2r", "bm_arm", "ipanema_1"])
def test_rounding_of_the_compiled_backend(name):
    """50 digits show what rounding costs: less than one unit per operation of the kernel."""
    robot = robot_of(name)
    compiled, exact = make_dynamics(robot, "compiled"), in_many_digits(robot, 50)
    bound = compiled.report.instructions * np.finfo(float).eps
    for q, qd in states(compiled.tree, 2):
        state, truth = compiled.update(q, qd), exact.update(q, qd)
        for field in STATE:
            value = getattr(truth, field)
            error = np.abs((getattr(state, field) - value).astype(float)).max(initial=0.0)
            scale = max(1.0, np.abs(value.astype(float)).max(initial=0.0))
            assert error <= bound * scale, field


@pytest.mark.parametrize(
    ("name", "levels"),
    [("planar_2r", ("none", "trig", "full")), ("universal", ("none", "trig"))],
)
def test_simplification_changes_no_value(name, levels):
    """As derived and simplified, with 50 digits: the same to 45."""
    robot = robot_of(name)
    values = []
    for level in levels:
        options = SymbolicOptions(simplification=level)
        values.append(SympyDynamics(robot, options, digits=50))
    for q, qd in states(values[0].tree, 1):
        first, *others = (dynamics.update(q, qd) for dynamics in values)
        for other in others:
            for field in STATE:
                difference = getattr(first, field) - getattr(other, field)
                assert all(abs(x) < 1e-45 for x in difference.ravel()), field


def test_more_digits_converge():
    robot = robot_of("planar_2r")
    (q, qd), *_ = states(robot.tree, 1)
    few, many = (in_many_digits(robot, n).update(q, qd).coriolis for n in (30, 60))
    assert all(abs(x) < 1e-28 for x in few - many)


def test_textbook_equations_of_two_links():
    """[Siciliano2009] section 7.3.2, with z along the links."""
    options = SymbolicOptions(parameters="symbols")
    model = SymbolicModel(load("planar_2r"), options)
    names = "I_1yy I_2yy a_2z b_1z b_2z g"
    i1, i2, a2, b1, b2, g = sp.symbols(names, real=True)
    m1, m2 = sp.symbols("m_1 m_2", positive=True)
    (q1, q2), (v1, v2) = model.q, model.qd
    m22 = i2 + m2 * b2**2
    m12 = m22 + m2 * a2 * b2 * sp.cos(q2)
    m11 = i1 + m1 * b1**2 + i2 + m2 * (a2**2 + b2**2 + 2 * a2 * b2 * sp.cos(q2))
    h = m2 * a2 * b2 * sp.sin(q2)
    g2 = -m2 * b2 * g * sp.sin(q1 + q2)
    g1 = g2 - (m1 * b1 + m2 * a2) * g * sp.sin(q1)
    expected = (
        (model.mass_matrix, [[m11, m12], [m12, m22]]),
        (model.coriolis, [[-2 * h * v1 * v2 - h * v2**2], [h * v1**2]]),
        (model.gravity, [[g1], [g2]]),
    )
    for value, right in expected:
        assert (value - sp.Matrix(right)).expand().is_zero_matrix
    assert model.parameters[a2] == 1
    assert model.parameters[g] == sp.Rational(981, 100)


@pytest.mark.parametrize("name", ["planar_2r", "bm_arm", "ball"])
def test_symbols_with_their_values_are_the_numbers(name):
    robot = robot_of(name)
    symbols = SympyDynamics(robot, SymbolicOptions(parameters="symbols"))
    numbers = sympy_of(name)
    for q, qd in states(numbers.tree):
        assert_same(symbols.update(q, qd), numbers.update(q, qd), STATE)


def test_wrapped_muscle_is_named():
    robot = load("antagonist_joint")
    with pytest.raises(CardsError, match=r"'right' \(and 1 more\) wraps.*--muscles straight"):
        SymbolicModel(robot)
    assert SymbolicModel(robot, SymbolicOptions(muscles="straight")).muscle_names == ()
    pulley = random_robot(0, n_links=1, n_muscles=1, pulleys=True)
    with pytest.raises(CardsError, match="'muscle0' starts at a pulley"):
        SymbolicModel(pulley)


def test_too_large_is_predicted():
    robot = random_robot(1, n_links=8, kinds=("revolute", "ball"))
    assert predicted_size(robot.tree) > 80
    with pytest.raises(CardsError, match=r"predicted size \d+, limit 80"):
        SymbolicModel(robot)
    with pytest.raises(CardsError, match="limit 1 "):
        SymbolicModel(load("planar_2r"), SymbolicOptions(size_limit=1))


def test_all_project_robots_are_within_the_limit():
    for name in PROJECT:
        assert predicted_size(load(name).tree) <= SymbolicOptions().size_limit


def test_unknown_frame():
    with pytest.raises(UnknownNameError, match="tip"):
        sympy_of("planar_2r").model.frame("nose")


def test_a_segment_without_length_is_no_number():
    """Its direction does not exist: NaN in L, and l is right."""
    from cards_core.robot.elements import WORLD, Inertia, Joint, JointAxis, Link, Muscle, ViaPoint
    from cards_core.robot.model import Robot

    joint = Joint("slide", "prismatic", WORLD, "a", axes=(JointAxis(np.array([1.0, 0, 0])),))
    muscle = Muscle("m", (ViaPoint(WORLD, np.zeros(3)), ViaPoint("a", np.zeros(3))))
    robot = Robot("point", (Link("a", Inertia(1.0, np.zeros(3), np.eye(3))),), (joint,), (muscle,))
    ours = SympyDynamics(robot)
    state = ours.update(np.array([0.0]), np.ones(1))
    assert state.muscle_lengths == pytest.approx([0.0])
    assert np.isnan(state.muscle_jacobian).all()
    state = ours.update(np.array([-0.5]), np.ones(1))
    assert state.muscle_lengths == pytest.approx([0.5])
    assert state.muscle_jacobian == pytest.approx(np.array([[-1.0]]))
