"""The robots of the model-compilation paper, and the snake: data, reference numbers, CASPR's."""

import numpy as np
import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.dynamics import make_dynamics
from cards_core.formats import load
from cards_core.robot import inertia_problem

FOLDERS = {
    "planar_xy": "Example_planar_XY",
    "bm_arm": "BMArm",
    "ipanema_1": "IPAnema_1",
    "spherical_2s": "Example_2S",
}


@pytest.mark.parametrize("name", [*FOLDERS, "snake_24"])
def test_they_are_complete(name):
    robot = load(name)
    assert robot.name == name
    assert all(inertia_problem(link.inertia) is None for link in robot.links)
    assert robot.operational_frame
    tree = make_dynamics(robot).tree
    assert np.all(tree.lower <= tree.home)
    assert np.all(tree.home <= tree.upper)
    assert all(0.0 <= m.tension_min < m.tension_max < np.inf for m in robot.muscles)


@pytest.mark.parametrize("name", [*FOLDERS, "snake_24"])
def test_mujoco_takes_them(name):
    mujoco = pytest.importorskip("mujoco")
    from cards_core.formats.mjcf.writer import to_mjcf

    robot = load(name)
    model = mujoco.MjModel.from_xml_string(to_mjcf(robot, tendons=True))
    data = mujoco.MjData(model)
    dynamics = make_dynamics(robot)
    rng = np.random.default_rng(0)
    q, qd = dynamics.tree.random(rng), rng.normal(size=dynamics.tree.nv)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    state = dynamics.update(q, qd)
    np.testing.assert_allclose(data.ten_length, state.muscle_lengths, atol=1e-12)
    np.testing.assert_allclose(data.qfrc_bias, state.coriolis + state.gravity, atol=1e-9)


def test_bm_arm_meets_the_reference_numbers():
    """One state, from an implementation of its own, to the digits given."""
    dynamics = make_dynamics(load("bm_arm"))
    q, qd = np.array([0.2, 0.1, 0.3, 0.4]), np.array([0.3, -0.2, 0.1, 0.5])
    state = dynamics.update(q, qd)
    np.testing.assert_allclose(
        state.muscle_lengths,
        [0.2349227, 0.2139903, 0.2854988, 0.27787857, 0.39607941, 0.53969308],
        atol=5e-8,
    )
    np.testing.assert_allclose(
        state.muscle_jacobian @ qd,
        [0.01082243, -0.03500942, 0.03074464, -0.01330484, -0.09135038, 0.06295705],
        atol=1e-8,
    )
    np.testing.assert_allclose(
        state.muscle_jacobian,
        [
            [0.093111, 0.04466, -0.081789, 0],
            [-0.107981, -0.040921, -0.107993, 0],
            [0.082221, 0.013807, 0.088399, 0],
            [-0.089175, -0.020312, 0.093854, 0],
            [-0.234144, -0.072425, -0.002356, -0.070713],
            [0.193882, 0.05976, 0.012415, 0.031006],
        ],
        atol=1e-6,
    )
    # links that simulators want between the joints change M by up to 1e-6, relatively
    np.testing.assert_allclose(
        state.mass_matrix[np.triu_indices(4)],
        [
            *(0.062147, 0.018737, 0.007344, 0.004652),
            *(0.006303, -0.001912, 0.001446, 0.067676, 0.000001, 0.001335),
        ],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        state.coriolis, [-0.00438885, -0.00152466, 0.00125857, -0.00019763], atol=1e-7
    )
    np.testing.assert_allclose(
        state.gravity, [1.7986323, 0.5549797, 0.06762568, 0.08397623], atol=1e-6
    )


@needs_caspr_models
@pytest.mark.parametrize("name", FOLDERS)
def test_they_agree_with_the_import_of_caspr(name):
    from cards_core.formats.caspr.importer import import_caspr

    found = next(SHARED.rglob(FOLDERS[name]))
    theirs = make_dynamics(import_caspr(found, feasibility=False).robot)
    ours = make_dynamics(load(name))
    for side in ("lower", "upper", "home"):
        np.testing.assert_array_equal(getattr(ours.tree, side), getattr(theirs.tree, side))
    for a, b in zip(ours.robot.muscles, theirs.robot.muscles, strict=True):
        assert (a.tension_min, a.tension_max) == (b.tension_min, b.tension_max)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, qd = ours.tree.random(rng), rng.normal(size=ours.tree.nv)
        a, b = ours.update(q, qd), theirs.update(q, qd)
        np.testing.assert_allclose(a.muscle_lengths, b.muscle_lengths, atol=1e-13)
        np.testing.assert_allclose(a.muscle_jacobian, b.muscle_jacobian, atol=1e-13)
        # what the description says about the links between the joints
        for title in ("mass_matrix", "coriolis", "gravity"):
            x, y = getattr(a, title), getattr(b, title)
            assert np.abs(x - y).max() <= 1e-5 * np.abs(y).max(), title


def test_the_snake_is_as_large_as_it_says():
    robot = load("snake_24")
    dynamics = make_dynamics(robot)
    assert dynamics.tree.nv == 24
    assert len(robot.muscles) == 36
    assert max(len(m.path) for m in robot.muscles) == 25
