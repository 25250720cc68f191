"""Joints from lengths: a search for the pose keeps nobody waiting."""

import threading
import time

import numpy as np
import pytest

from cards_core.dynamics.interface import make_dynamics
from cards_core.estimation import JointEstimator
from cards_core.formats import load
from cards_hardware.bridge.joint_estimates import JointEstimates

RATES = np.zeros(4)


class SlowStart(JointEstimator):
    """Searches from anywhere only when it may."""

    def __init__(self, dynamics):
        super().__init__(dynamics, acceleration_noise=50.0, rate_noise=2e-3)
        self.go, self.searches, self.threads = threading.Event(), 0, []

    def start(self, lengths, **options):
        self.threads.append(threading.current_thread().name)
        if options["near"] is None:
            self.searches += 1
            assert self.go.wait(60.0)
        return super().start(lengths, **options)


@pytest.fixture
def arm():
    dynamics = make_dynamics(load("planar_2r"))
    return dynamics, SlowStart(make_dynamics(load("planar_2r")))


def lengths_of(dynamics, q):
    return dynamics.update(q, np.zeros(2)).muscle_lengths.copy()


def eventually(step, seconds=60.0):
    end = time.monotonic() + seconds
    while (found := step()) is None:
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.002)
    return found


def test_steps_go_on_while_the_pose_is_searched_and_follow_what_moved_meanwhile(arm):
    dynamics, estimator = arm
    found = threading.Event()
    estimates = JointEstimates(dynamics, estimator, found.set)
    q = dynamics.tree.home + 0.1
    for k in range(200):  # would not end if one of them waited for the search
        assert estimates.step(10.0 + 0.002 * k, lengths_of(dynamics, q), RATES) is None
    assert "not known" in estimates.problem
    estimator.go.set()
    assert found.wait(60.0)
    moved = q + 0.05  # by hand, in the half second that the search took
    estimate = eventually(lambda: estimates.step(10.6, lengths_of(dynamics, moved), RATES))
    np.testing.assert_allclose(estimate.q, moved, atol=1e-3)
    assert estimates.problem == ""
    assert estimator.searches == 1
    main = threading.current_thread().name
    assert estimator.threads == ["search pose", main]  # from where it was found: a millisecond
    estimate = estimates.step(10.602, lengths_of(dynamics, moved), RATES)
    np.testing.assert_allclose(estimate.q, moved, atol=1e-3)
    assert len(estimator.threads) == 2


def test_lengths_that_fit_no_pose_are_searched_now_and_then_and_never_by_who_asks(arm):
    dynamics, estimator = arm
    estimator.go.set()
    estimates = JointEstimates(dynamics, estimator)
    wrong = np.array([9.0, 0.1, 5.0, 0.1])
    for k in range(1500):
        assert estimates.step(10.0 + 0.002 * k, wrong, RATES) is None
        if estimates._search is not None:
            estimates._search.join(60.0)
    assert "cannot be estimated" in estimates.problem
    assert set(estimator.threads) == {"search pose"}
    assert 2 <= estimator.searches <= 10  # in three seconds
