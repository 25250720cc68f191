"""Verdicts on measured lengths, by numbers that are known."""

from types import SimpleNamespace

import numpy as np
import pytest

from cards_hardware.calibration.check import (
    LENGTH_NOISE,
    MAX_RESIDUAL,
    MIN_TRAVEL,
    _problem,
    check_with_joints,
    joint_hints,
)

T = np.linspace(-1.0, 1.0, 101)


def checked(measured, *, travel=0.1, **more):
    """The check of one muscle whose length in the model goes over a travel."""
    model = 0.3 + 0.5 * travel * T
    dynamics = SimpleNamespace(
        batch=lambda _q: SimpleNamespace(muscle_lengths=model[:, None]),
        robot=SimpleNamespace(muscles=(SimpleNamespace(name="biceps"),)),
    )
    lengths = measured(model)[:, None]
    (found,) = check_with_joints(dynamics, np.zeros((len(T), 1)), lengths, **more)
    return found


@pytest.mark.parametrize("slope", [1.0, -1.0, 0.5, 2.0, -0.4])
def test_slope_and_residual_in_closed_form(slope):
    found = checked(lambda x: 0.3 + slope * (x - 0.3))
    assert found.slope == pytest.approx(slope)
    assert found.travel == pytest.approx(0.1)
    expected = abs(slope - 1.0) * np.sqrt(np.mean((0.05 * T) ** 2))
    assert found.residual == pytest.approx(expected, abs=1e-12)
    assert found.sigma == pytest.approx(expected / LENGTH_NOISE, abs=1e-9)
    assert checked(lambda x: x + 1e-3, noise=2e-3).sigma == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("slope", "words"),
    [
        (-1.0, "runs the other way"), (-0.51, "runs the other way"),
        (-0.49, "changes -0.49 times"),
        (0.89, "changes 0.89 times"), (0.91, ""), (1.09, ""), (1.11, "changes 1.11 times"),
    ],
)  # fmt: skip
def test_slopes_that_are_believed(slope, words):
    noise = 1.0  # so that residuals say nothing
    found = checked(lambda x: 0.3 + slope * (x - 0.3), noise=noise).problem
    assert found.startswith(words)
    assert bool(found) == bool(words)


@pytest.mark.parametrize(("sigma", "words"), [(3.9, ""), (4.1, "is off: repeat the")])
def test_residuals_that_are_believed(sigma, words):
    found = checked(lambda x: x + sigma * LENGTH_NOISE).problem
    assert found.startswith(words)
    assert bool(found) == bool(words)


@pytest.mark.parametrize(("travel", "known"), [(0.99, False), (1.01, True)])
def test_a_muscle_that_hardly_moves_says_nothing_of_its_direction(travel, known):
    found = checked(lambda x: 0.6 - x, travel=travel * MIN_TRAVEL)
    assert np.isfinite(found.slope) == known
    assert found.problem.startswith("runs the other way") == known


def hints(slopes, jacobian, travels=(0.5, 0.5)):
    count = len(travels)
    q = 0.5 * np.array(travels) * T[:, None]
    tree = SimpleNamespace(
        check_q=lambda q: q, nv=count, velocity_slots=tuple(range(count)),
        velocity_names=tuple(f"joint_{j}" for j in range(count)),
    )  # fmt: skip
    state = SimpleNamespace(muscle_jacobian=np.array(jacobian, dtype=float))
    dynamics = SimpleNamespace(tree=tree, update=lambda _q, _qd: state)
    checks = [SimpleNamespace(slope=slope) for slope in slopes]
    return [text.split(":")[0] for text in joint_hints(dynamics, q, checks)]


def test_a_joint_is_blamed_if_all_muscles_that_it_moves_run_the_other_way():
    two = [[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]]
    assert hints([-1.0, -1.0, 1.0, 1.0], two) == ["joint_0"]
    assert hints([-1.0, -1.0, -1.0, -1.0], two) == ["joint_0", "joint_1"]
    assert hints([-1.0, 1.0, 1.0, 1.0], two) == []
    assert hints([-1.0, np.nan, 1.0, 1.0], two) == []  # one alone may be itself
    assert hints([-1.0, -1.0, np.nan, np.nan], two) == ["joint_0"]


def test_a_muscle_belongs_to_the_joint_that_moved_it_most():
    shared = [[0.1, 0.05], [-0.1, 0.05], [0.0, 0.1], [0.0, -0.1]]
    slopes = [-1.0, -1.0, 1.0, 1.0]
    assert hints(slopes, shared) == ["joint_0"]
    # by how far the joints moved, too: then they are mostly the other one's
    assert hints(slopes, shared, travels=(0.1, 0.9)) == []
    assert hints(slopes, np.zeros((4, 2))) == []
    # moved equally by both joints: counted for neither
    assert hints(slopes, [[0.1, 0.1], [-0.1, 0.1], [0.0, 0.1], [0.0, -0.1]]) == []


def test_the_largest_residual_is_still_believed():
    assert _problem(1.0, MAX_RESIDUAL) == ""
    assert _problem(1.0, 1.001 * MAX_RESIDUAL).startswith("is off: repeat")
