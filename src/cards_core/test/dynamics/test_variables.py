"""All quantities that can be compiled: against the numeric backend and their own definitions."""

from pathlib import Path

import numpy as np
import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.dynamics import VARIABLES, compile_model, make_dynamics
from cards_core.dynamics.differences import geodesic_muscles, gradient_by_differences
from cards_core.dynamics.model_function import NOT_WITH_GEODESICS
from cards_core.dynamics.numeric import evaluate
from cards_core.dynamics.variables import chosen
from cards_core.errors import CardsError, CompilationError, ShapeError, UnknownNameError
from cards_core.formats import load
from cards_core.formats.caspr import find_models, import_caspr
from cards_core.formats.locate import known_models
from random_robots import random_robot

FOLDERS = [f.parent for f in sorted((Path(__file__).parents[4] / "models").glob("*/model.sdf"))]
OURS = [folder.name for folder in FOLDERS if not (folder / "rods.yaml").is_file()]
ROWS = [row for row in find_models(SHARED) if row.files] if SHARED.is_dir() else []
LARGE_LIKE_RIBBED_12 = {"octahedral_12", "tetrahedral_12", "tetraspine"}
"""Free bodies on cables as ribbed_12, which has most; in batches the C compiler takes long."""
WITHOUT_INVERSE = [name for name in VARIABLES if name != "M_inv"]


def names_for(robot):
    names = list(VARIABLES)
    if len(geodesic_muscles(robot.tree)):
        names = [name for name in names if name not in NOT_WITH_GEODESICS]
    return names


def states(tree, count=2, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        yield tree.random(rng), rng.normal(size=tree.nv)


def assert_same(found, expected, tolerance):
    for name, values in expected.items():
        scale = 1.0 + np.abs(values).max(initial=0.0)
        np.testing.assert_allclose(found[name], values, atol=tolerance * scale, err_msg=name)


def compare(robot, names, frame):
    compiled, numeric = compile_model(robot, names, frame=frame), make_dynamics(robot, "numeric")
    for q, qd in states(compiled.tree):
        assert_same(compiled.update(q, qd), evaluate(numeric, names, q, qd, frame), 1e-10)


@pytest.mark.parametrize("name", OURS)
def test_compiled_is_numeric_for_our_robots(name):
    robot = load(name)
    names = names_for(robot)
    if robot.tree.nv > 12:  # large ones: all that others compile, without what takes minutes
        names = ["M", "C", "G", "l", "L", "W", "y", "J"]
    compare(robot, names, robot.operational_frame or robot.links[-1].name)


@pytest.mark.parametrize("seed", range(4))
def test_compiled_is_numeric_for_random_robots(seed):
    robot = random_robot(seed)
    names = [n for n in VARIABLES if n != "dL_dq" or robot.tree.nv <= 11]
    compare(robot, names, robot.links[-1].name)


@needs_caspr_models
@pytest.mark.parametrize("row", ROWS, ids=[row.name.replace(" ", "_") for row in ROWS])
def test_compiled_is_numeric_for_every_robot_of_caspr(row):
    # their inertias are as in the file, where M need not have an inverse
    robot = import_caspr(row.files, feasibility=False).robot
    names = [n for n in WITHOUT_INVERSE if n != "dL_dq" or robot.tree.nv <= 6]
    compare(robot, names, robot.links[-1].name)


def test_every_robot_that_is_there_is_compared():
    assert set(OURS) == set(known_models(rods=False))


@pytest.mark.parametrize("name", ["ipanema_1", "spherical_2s", "bm_arm", "roboy_arm"])
def test_products_of_body_space(name):
    model = compile_model(load(name), ("M", "C", "G", "L", "W", "V", "M_b", "C_b", "G_b", "M_inv"))
    for q, qd in states(model.tree, 5):
        v = model.update(q, qd)
        np.testing.assert_allclose(v["W"].T @ v["M_b"], v["M"], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(v["W"].T @ v["C_b"], v["C"], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(-v["W"].T @ v["G_b"], v["G"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(v["V"] @ v["W"], v["L"], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            v["M_inv"] @ v["M"], np.eye(model.tree.nv), atol=1e-15 * np.linalg.cond(v["M"])
        )


@pytest.mark.parametrize("robot", [load("ipanema_1"), random_robot(4)], ids=["ipanema", "random"])
def test_gradient_is_that_of_the_jacobian(robot):
    """Automatic differentiation, the closed form and differences agree."""
    compiled, numeric = make_dynamics(robot), make_dynamics(robot, "numeric")
    tree = compiled.tree
    still = np.zeros(tree.nv)
    for q, _ in states(tree):
        found = compiled.jacobian_gradient(q)
        np.testing.assert_allclose(found, numeric.jacobian_gradient(q), atol=1e-12)
        differences = gradient_by_differences(
            tree, lambda x: numeric.update(x, still).muscle_jacobian, q
        )
        np.testing.assert_allclose(found, differences, atol=1e-8)


def test_gradient_is_symmetric_where_coordinates_commute():
    dynamics = make_dynamics(load("bm_arm"))
    gradient = dynamics.jacobian_gradient(np.array([0.2, 0.1, 0.3, 0.4]))
    np.testing.assert_allclose(gradient, gradient.transpose(0, 2, 1), atol=1e-14)


def test_gradient_of_wraps_without_a_closed_form():
    dynamics = make_dynamics(load("wrap_elbow"))
    h = 1e-5
    q = np.array([0.8])
    ahead, behind = (dynamics.update(q + s, np.zeros(1)).muscle_jacobian.copy() for s in (h, -h))
    expected = (ahead - behind)[:, :, None] / (2 * h)
    np.testing.assert_allclose(dynamics.jacobian_gradient(q), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "backend"),
    [(name, "numeric") for name in OURS]
    + [(name, "compiled") for name in OURS if name not in LARGE_LIKE_RIBBED_12],
)
def test_batch_is_update_row_by_row(name, backend):
    dynamics = make_dynamics(load(name), backend)
    count = 13 if backend == "compiled" else 3
    q, qd = (np.array(rows) for rows in zip(*states(dynamics.tree, count), strict=True))
    q[1] = np.nan
    batch = dynamics.batch(q, qd)
    threaded = dynamics.batch(q, qd, threads=3)
    for i in range(count):
        for title, values in vars(batch).items():
            np.testing.assert_array_equal(getattr(threaded, title)[i], values[i])
            if i == 1:
                assert np.isnan(values[i]).all()
            else:
                single = getattr(dynamics.update(q[i], qd[i]), title)
                np.testing.assert_allclose(values[i], single, rtol=1e-13, atol=1e-13)


def test_batches_of_poses_and_frames():
    dynamics = make_dynamics(load("roboy_arm"))
    q, qd = (np.array(rows) for rows in zip(*states(dynamics.tree, 6), strict=True))
    poses = dynamics.batch_link_poses(q)
    hand = dynamics.batch_operational(q, qd)
    for i in range(6):
        np.testing.assert_allclose(poses[i], dynamics.link_poses(q[i]), atol=1e-14)
        state = dynamics.operational(q[i], qd[i])
        for title in ("position", "rotation", "jacobian", "bias"):
            np.testing.assert_allclose(hand[title][i], getattr(state, title), atol=1e-13)


def test_batch_refuses_other_shapes():
    dynamics = make_dynamics(load("planar_2r"))
    with pytest.raises(ShapeError, match=r"\(2,\), expected \(n, 2\)"):
        dynamics.batch(np.zeros(2))
    with pytest.raises(ShapeError, match=r"expected \(4, 2\)"):
        dynamics.batch(np.zeros((4, 2)), np.zeros((3, 2)))
    assert dynamics.batch(np.zeros((0, 2))).mass_matrix.shape == (0, 2, 2)


def test_single_precision():
    robot = load("ipanema_1")
    double, single = compile_model(robot), compile_model(robot, precision="single")
    q, qd = (np.array(rows) for rows in zip(*states(double.tree, 9), strict=True))
    batch = single.batch(q, qd)
    for i in range(9):
        expected = {k: v.copy() for k, v in double.update(q[i], qd[i]).items()}
        for values in (single.update(q[i], qd[i]), {k: v[i] for k, v in batch.items()}):
            assert {v.dtype for v in values.values()} == {np.dtype(np.float32)}
            assert_same(values, expected, 2e-6)


def test_without_simplification_the_numbers_are_the_same():
    robot = load("bm_arm")
    plain, simple = compile_model(robot, simplify=False), compile_model(robot)
    assert plain.report.instructions > simple.report.instructions
    for q, qd in states(simple.tree):
        assert_same(plain.update(q, qd), simple.update(q, qd), 1e-13)


def test_names_are_checked():
    robot = load("planar_2r")
    with pytest.raises(UnknownNameError, match="no quantity named 'mass'"):
        compile_model(robot, "M,mass")
    with pytest.raises(CardsError, match="expected: some of M, C, G"):
        compile_model(robot, "")
    with pytest.raises(UnknownNameError, match="no frame or link named 'nose'"):
        compile_model(robot, "J", frame="nose")
    assert [v.name for v in chosen(" M, L ,M")] == ["M", "L"]


def test_a_gradient_that_is_too_large_is_refused(monkeypatch):
    from cards_core.dynamics.symbolic import outputs

    monkeypatch.setattr(outputs, "LARGEST", 10)
    with pytest.raises(CompilationError, match=r"jacobian_gradient\(q\)"):
        compile_model(random_robot(7), "dL_dq", force=True)


def test_robots_without_muscles_or_with_one():
    for muscles in (0, 1):
        robot = random_robot(11, n_muscles=muscles)
        model = compile_model(robot, list(VARIABLES), frame=robot.links[-1].name)
        v = model.update(model.tree.neutral(), np.zeros(model.tree.nv))
        assert v["L"].shape == (muscles, model.tree.nv)
        assert v["dL_dq"].shape == (muscles, model.tree.nv, model.tree.nv)
        assert make_dynamics(robot).jacobian_gradient(model.tree.neutral()).shape[0] == muscles


def test_the_table_of_quantities_is_documented():
    page = (Path(__file__).parents[4] / "docs" / "compiler.md").read_text()
    for variable in VARIABLES.values():
        shape = " x ".join(str(size) for size in variable.shape)
        assert f"| `{variable.name}` | {shape} | {variable.text} |" in page
