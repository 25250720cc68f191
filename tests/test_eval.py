"""``cards eval`` against published reference values."""

import json

import numpy as np
import pytest

STATE = ("--q=0.3,-0.5", "--qd=0.4,0.2", "--qdd=0.5,-0.3")


@pytest.fixture(scope="module")
def planar(cards):
    result = cards("eval", "planar_2r", *STATE, "--json")
    assert result.returncode == 0, result.stderr
    return {
        key: np.array(value) if isinstance(value, list) else value
        for key, value in json.loads(result.stdout).items()
    }


def test_reference_numbers_of_the_planar_arm(planar):
    """CASPR's Example_2R_planar_XZ; computed by an independent program.

    The model's inertia had to be made physical, which changes M by less than 1e-5.
    """
    np.testing.assert_allclose(
        planar["l"], [0.75369104, 2.16708168, 1.0202365, 2.3073754], atol=1e-7
    )
    jacobian = [[-0.487413, 0], [-1.217714, -0.419965], [0.389038, 0], [1.117843, 0.701047]]
    np.testing.assert_allclose(planar["L"], jacobian, atol=1e-6)
    np.testing.assert_allclose(planar["M"], [[0.237758, 0.068879], [0.068879, 0.025]], atol=1e-5)
    np.testing.assert_allclose(planar["C"], [0.00479426, -0.0038354], atol=1e-6)
    np.testing.assert_allclose(planar["G"], [-0.33741068, 0.09744731], atol=1e-6)
    np.testing.assert_allclose(planar["tensions"], [10, 16.98003952, 37.54627344, 10], atol=1e-3)
    assert planar["tensions_feasible"]


def test_tensions_produce_the_motion(planar):
    torque = -planar["L"].T @ planar["tensions"]
    np.testing.assert_allclose(torque, planar["needed_joint_force"], atol=1e-9)


def test_backends_print_the_same(cards, planar):
    numeric = json.loads(
        cards("eval", "planar_2r", *STATE, "--backend", "numeric", "--json").stdout
    )
    for key in ("l", "L", "M", "C", "G", "J", "Jdot_qd", "Ldot_qd"):
        np.testing.assert_allclose(numeric[key], planar[key], atol=1e-10)
    for link, pose in numeric["link_poses"].items():
        np.testing.assert_allclose(pose, planar["link_poses"][link], atol=1e-12)


def test_table_for_people(cards):
    result = cards("eval", "roboy_arm", "--qdd=0,0,0,0")
    assert result.returncode == 0
    assert "motor10" in result.stdout
    assert "least-norm tensions" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("planar_2r", "--q=1"), "expected (2,)"),
        (("planar_2r", "--q=1,x"), "--q"),
        (("planar_2r", "--q=nan,0"), "--q 'nan,0': 'nan' (expected: a finite number)"),
        (("planar_2r", "--frame", "hand"), "tip"),
        (("roboy",), "roboy_arm"),
    ],
)
def test_mistakes(cards, arguments, message):
    result = cards("eval", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
