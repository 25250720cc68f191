"""Gains that couple the coordinates: full symmetric matrices."""

import numpy as np
import pytest
from control_robots import Plant, Run, fixed_point, model_of, planar_2r, step
from scipy.linalg import expm

from cards_core.control import ControlModel, ControlStatus, CtcJoint, CtcOperational
from cards_core.control.ctc_joint import CtcJoint as Kind
from cards_core.control.interface import critical_damping
from cards_core.dynamics import make_dynamics
from cards_core.errors import ParameterError
from cards_core.parameters.declaration import Parameter, ParameterSet

KP = np.array([[120.0, 40.0], [40.0, 60.0]])
KD = np.array([[22.0, 3.0], [3.0, 16.0]])


def test_errors_decay_as_the_matrices_say():
    """Edd + Kd ed + Kp e = 0, by the matrix exponential."""
    robot = planar_2r()
    item = CtcJoint(ControlModel(robot), kp=KP, kd=KD)
    goal, offset = np.array([-0.3, 0.4]), np.array([0.02, -0.03])
    item.set_reference(fixed_point(goal, 2))
    run = Run(item, Plant(robot, goal - offset), 0.3, h=5e-5)
    assert run.count(ControlStatus.OK) == run.status.size
    system = np.block([[np.zeros((2, 2)), np.eye(2)], [-KP, -KD]])
    start = np.concatenate([offset, np.zeros(2)])
    for row in range(0, run.time.size, 1000):
        wanted = (expm(system * run.time[row]) @ start)[:2]
        np.testing.assert_allclose(run.error[row], wanted, atol=7e-5)
    # a diagonal one would end elsewhere
    system[2, 1] = system[3, 0] = 0.0
    other = (expm(system * run.time[-1]) @ start)[:2]
    assert np.abs(run.error[-1] - other).max() > 5e-4


def test_a_diagonal_matrix_is_its_vector():
    dynamics, outputs = make_dynamics(planar_2r()), []
    for kp, kd in (([120.0, 60.0], [22.0, 16.0]), (np.diag([120.0, 60.0]), np.diag([22.0, 16.0]))):
        item = CtcOperational(model_of(dynamics), axes="xz", kp=kp, kd=kd)
        item.set_reference(fixed_point(np.array([0.1, 1.8]), 2))
        outputs.append(
            step(item, 0.0, np.array([0.2, -0.4]), np.array([0.3, 0.1])).tensions.copy()
        )
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-12)


def test_critical_damping_of_a_matrix_is_twice_its_root():
    item = CtcJoint(ControlModel(planar_2r()), kp=KP)
    np.testing.assert_allclose(item.gains.kd @ item.gains.kd, 4.0 * KP, rtol=1e-12)
    np.testing.assert_allclose(critical_damping(np.array([4.0, 9.0])), [4.0, 6.0])


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], "expected a symmetric matrix"),
        ([[1.0, 2.0], [2.0, 1.0]], "has the eigenvalue -1; expected a positive definite matrix"),
        (
            [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0]],
            "is a 2 x 3 matrix; expected 2 x 2: joint_1, joint_2",
        ),
        ([[1.0, np.nan], [np.nan, 1.0]], "not finite"),
        ([["a", 2.0], [2.0, 1.0]], "expected 2 rows of 2 numbers"),
    ],
)
def test_bad_matrices_are_refused_and_nothing_changes(matrix, message):
    item = CtcJoint(ControlModel(planar_2r()), kp=KP, kd=KD)
    with pytest.raises(ParameterError, match=message):
        item.set_gains(matrix, KD)
    with pytest.raises(ParameterError, match=message):
        item.set_gains(KP, matrix)
    np.testing.assert_array_equal(item.gains.kp, KP)
    np.testing.assert_array_equal(item.gains.kd, KD)


def made(**given):
    return Kind.from_parameters(model_of(make_dynamics(planar_2r())), ParameterSet(given))


@pytest.mark.parametrize(
    "kp", [KP, KP.tolist(), KP.ravel().tolist()], ids=["array", "rows", "flat"]
)
def test_parameters_take_matrices(kp):
    item = made(kp=kp)
    np.testing.assert_array_equal(item.gains.kp, KP)
    np.testing.assert_allclose(item.gains.kd @ item.gains.kd, 4.0 * KP)
    item.change({"kp": np.array([4.0, 9.0]), "kd": KD})
    np.testing.assert_array_equal(item.gains.kp, [4.0, 9.0])
    np.testing.assert_array_equal(item.gains.kd, KD)
    item.change({"kp": KP, "kd": np.array([5.0, 6.0])})
    np.testing.assert_array_equal(item.gains.kd, [5.0, 6.0])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kp": [1.0, 2.0, 3.0]}, "has 3 values .*2 numbers, one for each of .*, or 4, a matrix"),
        ({"kp": [1.0, 2.0, 3.0, float("inf")]}, "finite"),
        ({"kp": [[1.0, 2.0], [3.0]]}, "a matrix by rows"),
        ({"kp": [1.0, 2.0, 3.0, 4.0]}, "symmetric"),
        ({"kp": KP, "kd": [-1.0, 5.0]}, "expected -1 .critical. for all"),
    ],
)
def test_bad_parameters_are_refused(given, message):
    with pytest.raises(ParameterError, match=message):
        made(**given)


def test_other_vectors_are_no_matrices():
    plain = Parameter("weight", [0.0, 0.0], "Vectors alone.", length=2)
    with pytest.raises(ParameterError, match="weight"):
        plain.check(KP)
    with pytest.raises(ParameterError, match="has 4 values"):
        plain.check(KP.ravel())
