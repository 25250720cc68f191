"""BMArm and 2R planar against numbers from an independent implementation (8 digits)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from caspr_samples import SHARED, needs_caspr_models

from cards_core.dynamics import make_dynamics
from cards_core.formats.caspr import import_caspr

pytestmark = needs_caspr_models

TOLERANCE = 1e-6
LIMITS = ("tension_min", "tension_max")

BMARM = {
    "folder": "models/MCDM/BMArm",
    "q": [0.2, 0.1, 0.3, 0.4],
    "qd": [0.3, -0.2, 0.1, 0.5],
    "qdd": [0.1, 0.2, -0.3, 0.4],
    "l": [0.2349227, 0.2139903, 0.2854988, 0.27787857, 0.39607941, 0.53969308],
    "ld": [0.01082243, -0.03500942, 0.03074464, -0.01330484, -0.09135038, 0.06295705],
    "L": [
        [0.093111, 0.04466, -0.081789, 0],
        [-0.107981, -0.040921, -0.107993, 0],
        [0.082221, 0.013807, 0.088399, 0],
        [-0.089175, -0.020312, 0.093854, 0],
        [-0.234144, -0.072425, -0.002356, -0.070713],
        [0.193882, 0.05976, 0.012415, 0.031006],
    ],
    "M": [
        [0.062147, 0.018737, 0.007344, 0.004652],
        [0.018737, 0.006303, -0.001912, 0.001446],
        [0.007344, -0.001912, 0.067676, 0.000001],
        [0.004652, 0.001446, 0.000001, 0.001335],
    ],
    "det": 1.629377e-09,
    "C": [-0.00438885, -0.00152466, 0.00125857, -0.00019763],
    "G": [1.7986323, 0.5549797, 0.06762568, 0.08397623],
    "f": [10, 27.25767987, 11.87168586, 25.97264189, 10, 20.06270809],
}
PLANAR = {
    "folder": "models/examples/Example_2R_planar_XZ",
    "q": [0.3, -0.5],
    "qd": [0.4, 0.2],
    "qdd": [0.5, -0.3],
    "l": [0.75369104, 2.16708168, 1.0202365, 2.3073754],
    "L": [[-0.487413, 0], [-1.217714, -0.419965], [0.389038, 0], [1.117843, 0.701047]],
    "M": [[0.237758, 0.068879], [0.068879, 0.025]],
    "C": [0.00479426, -0.0038354],
    "G": [-0.33741068, 0.09744731],
    "f": [10, 16.98003952, 37.54627344, 10],
}


@pytest.fixture(scope="module", params=[BMARM, PLANAR], ids=["BMArm", "2R"])
def case(request):
    model = import_caspr(SHARED / request.param["folder"], feasibility=False)
    return request.param, model, make_dynamics(model.robot, "numeric")


def state_of(case):
    numbers, model, dynamics = case
    q, qd = (model.from_caspr_q(np.array(numbers[k])) for k in ("q", "qd"))
    return dynamics.update(q, qd)


def least_norm_tensions(model, L, w):
    """Return argmin |f|^2 / 2 with -L' f = w within the limits.

    By trying every set of muscles at a limit: the others have the least norm that balances w.
    """
    low, high = (np.array([getattr(m, k) for m in model.robot.muscles]) for k in LIMITS)
    best, best_norm = None, np.inf
    for pattern in itertools.product((-1, 0, 1), repeat=len(low)):
        at = np.array(pattern)
        f = np.where(at < 0, low, np.where(at > 0, high, 0.0))
        loose = at == 0
        f[loose] = np.linalg.pinv(-L[loose].T) @ (w + L.T @ f)
        balanced = np.abs(-L.T @ f - w).max() < 1e-9
        if balanced and np.all(f >= low - 1e-9) and np.all(f <= high + 1e-9) and f @ f < best_norm:
            best, best_norm = f, f @ f
    assert best is not None
    return best


def test_the_order_of_q_is_caspr_s(case):
    assert case[1].coordinates.is_identity


def test_lengths(case):
    assert state_of(case).muscle_lengths == pytest.approx(np.array(case[0]["l"]), abs=TOLERANCE)


def test_jacobian(case):
    assert state_of(case).muscle_jacobian == pytest.approx(np.array(case[0]["L"]), abs=TOLERANCE)


def test_rates(case):
    if "ld" in case[0]:
        rates = state_of(case).muscle_jacobian @ np.array(case[0]["qd"])
        assert rates == pytest.approx(np.array(case[0]["ld"]), abs=TOLERANCE)


def test_mass_matrix(case):
    matrix = state_of(case).mass_matrix
    assert matrix == pytest.approx(np.array(case[0]["M"]), abs=TOLERANCE)
    if "det" in case[0]:
        assert np.linalg.det(matrix) == pytest.approx(case[0]["det"], rel=1e-6)


def test_coriolis_and_gravity(case):
    state = state_of(case)
    assert state.coriolis == pytest.approx(np.array(case[0]["C"]), abs=TOLERANCE)
    assert state.gravity == pytest.approx(np.array(case[0]["G"]), abs=TOLERANCE)


def test_least_norm_tensions(case):
    state = state_of(case)
    w = state.mass_matrix @ case[0]["qdd"] + state.coriolis + state.gravity
    f = least_norm_tensions(case[1], np.array(state.muscle_jacobian), w)
    assert f == pytest.approx(np.array(case[0]["f"]), abs=TOLERANCE)


@pytest.mark.parametrize(
    ("q", "f"),
    [([-0.5, 0.5], [41.3328, 10, 10, 14.039668]), ([0.5, -0.5], [10, 14.039668, 41.3328, 10])],
)
def test_static_tensions_of_the_planar_arm(q, f):
    model = import_caspr(SHARED / PLANAR["folder"], feasibility=False)
    state = make_dynamics(model.robot, "numeric").update(np.array(q), np.zeros(2))
    found = least_norm_tensions(model, np.array(state.muscle_jacobian), np.array(state.gravity))
    assert found == pytest.approx(np.array(f), abs=1e-4)  # four digits are published
