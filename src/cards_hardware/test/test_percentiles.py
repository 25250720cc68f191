"""Percentiles of a ring of samples."""

import math

import numpy as np
import pytest

from cards_hardware.percentiles import RingStatistics


def test_nothing_is_known_at_first():
    summary = RingStatistics().summary()
    assert summary.count == 0
    assert math.isnan(summary.p50)
    assert math.isnan(summary.maximum)


@pytest.mark.parametrize("count", [1, 2, 99, 100, 101, 250])
def test_quantiles_of_the_newest_samples(count):
    samples = np.random.default_rng(count).normal(size=count)
    ring = RingStatistics(100)
    for value in samples:
        ring.add(value)
    newest = samples[-100:]
    summary = ring.summary()
    assert summary.count == count
    assert summary.p50 == np.quantile(newest, 0.50, method="inverted_cdf")
    assert summary.p99 == np.quantile(newest, 0.99, method="inverted_cdf")
    assert summary.maximum == samples.max()


def test_clear_forgets():
    ring = RingStatistics()
    ring.add(1.0)
    ring.clear()
    assert ring.summary().count == 0
