"""The update in C against the textbook's formulas in NumPy, whatever is read."""

import numpy as np
import pytest

from cards_core.estimation.kalman_filter import Innovation, SensorUpdate

M, NV = 7, 3


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("with_rates", [False, True])
@pytest.mark.parametrize("with_joints", [False, True])
def test_the_corrected_belief_is_that_of_the_formulas(offsets, with_rates, with_joints):
    rng = np.random.default_rng(1)
    n = 2 * NV + M * offsets
    noise = rng.uniform(0.5, 2.0, M), rng.uniform(0.5, 2.0, M), rng.uniform(0.5, 2.0, NV)
    update = SensorUpdate(*noise, gate=1e3, offsets=offsets)
    for _ in range(5):
        root = rng.standard_normal((n, n))
        prior, jacobian = root @ root.T, rng.standard_normal((M, NV))
        read = Innovation(
            rng.standard_normal(M),
            rng.standard_normal(M) if with_rates else None,
            rng.standard_normal(NV) if with_joints else None,
        )
        use = np.ones(M + NV * with_joints, dtype=bool)
        use[2] = False  # kept out
        zero = np.zeros((M, NV))
        rows = [np.hstack([jacobian, zero, np.eye(M)][: 2 + offsets])]
        parts, variances, used = [read.lengths], [noise[0]], [use[:M]]
        if with_rates:
            read.rates[4] = np.nan  # lost
            rows.append(np.hstack([zero, jacobian, np.zeros((M, M))][: 2 + offsets]))
            parts.append(read.rates)
            variances.append(noise[1])
            used.append(use[:M] & np.isfinite(read.rates))
        if with_joints:
            rows.append(np.eye(NV, n))
            parts.append(read.joints)
            variances.append(noise[2])
            used.append(use[M:])
        kept = np.concatenate(used)
        h, r = np.vstack(rows)[kept], np.concatenate(parts)[kept]
        noises = np.diag(np.concatenate(variances)[kept] ** 2)
        s = h @ prior @ h.T + noises
        gain = prior @ h.T @ np.linalg.inv(s)
        keep = np.eye(n) - gain @ h
        found = update.correct(prior, jacobian, read, use)
        assert found.plausible
        assert found.rows == kept.sum()
        assert found.nis == pytest.approx(r @ np.linalg.solve(s, r))
        assert np.allclose(found.error, gain @ r, atol=1e-10)
        expected = keep @ prior @ keep.T + gain @ noises @ gain.T
        assert np.allclose(found.covariance, expected, atol=1e-10)
        assert np.array_equal(found.covariance, found.covariance.T)
        assert np.array_equal(found.used, use)
