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


def test_the_newest_thousand_count_if_nothing_is_said():
    ring = RingStatistics()
    for value in range(1500):
        ring.add(float(value))
    summary = ring.summary()
    assert (summary.count, summary.maximum) == (1500, 1499.0)
    assert (summary.p50, summary.p99) == (999.0, 1489.0)  # of 500 .. 1499


def test_what_was_before_clear_counts_no_more():
    ring = RingStatistics(4)
    for value in (9.0, 8.0, 7.0):
        ring.add(value)
    ring.clear()
    ring.add(-2.0)
    summary = ring.summary()
    assert (summary.count, summary.p50, summary.p99, summary.maximum) == (1, -2.0, -2.0, -2.0)


def test_a_summary_does_not_change_what_was_added():
    ring = RingStatistics(3)
    for value in (3.0, 1.0, 2.0):
        ring.add(value)
    assert ring.summary().p50 == 2.0
    ring.add(9.0)  # in place of the oldest, 3, not of the smallest
    assert ring.summary().p50 == 2.0
    ring.add(10.0)  # in place of 1
    assert ring.summary().p50 == 9.0
