"""Joint coordinates of the arm that draws its flower, from its muscle lengths with noise."""

from __future__ import annotations

import numpy as np

from cards_core.dynamics import make_dynamics
from cards_core.estimation import JointEstimator
from cards_core.formats import load

NOISE = 2e-4
DT = 0.002


def test_the_arm_that_draws_a_flower_is_followed_to_half_a_degree(cards, tmp_path):
    out = tmp_path / "run"
    done = cards(
        *("demo", "roboy_arm", "--no-ros", "--headless", "--mode", "lockstep"),
        *("--duration", "8", "--out", str(out), "--json"),
    )
    assert done.returncode == 0, done.stderr
    with np.load(out / "simulator.npz") as log:
        step = round(DT / float(log["time"][1] - log["time"][0]))
        q, qd, lengths = (log[name][::step] for name in ("q", "qd", "muscle_lengths"))
    rng = np.random.default_rng(0)
    measured = lengths + NOISE * rng.standard_normal(lengths.shape)
    estimator = JointEstimator(make_dynamics(load("roboy_arm")), NOISE)
    estimator.start(measured[0])  # from nothing but lengths
    found = [estimator.step(row, DT) for row in measured]
    error = np.array([estimate.q for estimate in found]) - q
    rms = np.degrees(np.sqrt(np.mean(error**2, axis=0)))
    assert rms.max() < 0.5, rms
    # and it does not lag behind: the mean error is far below the noise of one
    assert np.degrees(np.abs(error.mean(axis=0))).max() < 0.1
    rate = np.array([estimate.qd for estimate in found]) - qd
    claimed = np.array([np.sqrt(np.diag(estimate.covariance)[4:]) for estimate in found])
    # the flower is smoother than the filter assumes: it must not be worse than it says
    assert (np.sqrt(np.mean(rate**2, axis=0)) < np.sqrt(np.mean(claimed**2, axis=0))).all()
    assert all(estimate.plausible for estimate in found)
    assert not any(estimate.suspect.any() for estimate in found)
