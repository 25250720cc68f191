"""How muscles are taken over and let go: against the law that makes tensions of it."""

from dataclasses import replace

import numpy as np
import pytest

from cards_core.control.mrc.hand_over import STEP, HandOver
from cards_core.formats import load
from cards_core.muscles.impedance import SLACK, impedance_tension
from cards_core.robot.actuators import ImpedanceControl

M = 8
K = np.array([1e4, 3e4, 6e4, 1e5] * 2)
B = np.array([0.0, 100.0, 300.0, 500.0] * 2)
FLOOR = np.array([2.0, 10.0] * 4)
BIAS = np.full(M, 10.0)
MUSCLES = tuple(
    replace(muscle, control=ImpedanceControl(stiffness=k, damping=b, tension_floor=floor))
    for muscle, k, b, floor in zip(load("musashi_like").muscles, K, B, FLOOR, strict=False)
)


def law(rest_lengths, lengths, rates):
    return impedance_tension(
        lengths,
        rates,
        rest_length=rest_lengths,
        rest_rate=np.zeros(M),
        tension=BIAS,
        stiffness=K,
        damping=B,
        floor=FLOOR,
    )


def test_the_law_gives_the_tensions_that_are_there_also_in_motion():
    rng = np.random.default_rng(0)
    hand_over = HandOver(MUSCLES, BIAS)
    for _ in range(100):
        lengths, rates = rng.uniform(0.1, 0.4, M), rng.uniform(-0.1, 0.1, M)
        tensions = rng.uniform(0.0, 300.0, M)
        found = hand_over.lengths_for(tensions, lengths, rates)
        assert law(found, lengths, rates) == pytest.approx(np.maximum(tensions, FLOOR))


def test_what_is_not_measured_pulls_least_or_not():
    hand_over = HandOver(MUSCLES, BIAS)
    tensions, lengths = np.full(M, 100.0), np.full(M, 0.2)
    tensions[0] = lengths[1] = np.nan
    found = hand_over.lengths_for(tensions, lengths, np.zeros(M))
    assert found[0] == pytest.approx(0.2 + (BIAS[0] - FLOOR[0]) / K[0])
    assert found[1] == SLACK
    assert (found[2:] < 0.2).all()


def test_the_tensions_of_a_command_are_kept_and_slack_muscles_are_ready_to_pull():
    rng = np.random.default_rng(1)
    hand_over = HandOver(MUSCLES, BIAS)
    for _ in range(100):
        lengths, rates = rng.uniform(0.1, 0.4, M), rng.uniform(-0.1, 0.1, M)
        given = lengths + rng.uniform(-0.01, 0.01, M)
        kept = hand_over.kept(given, lengths, rates)
        tensions = law(given, lengths, rates)
        assert law(kept, lengths, rates) == pytest.approx(tensions)
        tense = tensions > FLOOR
        assert kept[tense].tolist() == given[tense].tolist()
        assert (law(kept - 1.0 / K, lengths, rates) > FLOOR).all()


def test_all_muscles_arrive_together_by_no_more_than_the_step():
    hand_over = HandOver(MUSCLES, BIAS)
    wanted = np.full(M, 0.2)
    begin = wanted + np.linspace(-100.0, 60.0, M) / K
    hand_over.lead[:] = begin - wanted
    told, shares = [], []
    for _ in range(100):
        now = wanted.copy()
        hand_over.take_over(now)
        told.append(now)
        shares.append((now - wanted) / (begin - wanted))
    assert told[0] == pytest.approx(begin)
    assert (np.abs(np.diff(told, axis=0)) * K).max() == pytest.approx(STEP)
    assert np.ptp(shares, axis=1).max() < 1e-9
    arrived = int(np.ceil(100.0 / STEP))
    assert np.abs(told[arrived - 2] - wanted).max() > 0.0
    assert np.array_equal(told[arrived], wanted)


def test_letting_go_takes_a_step_of_those_that_pull_and_ends():
    hand_over = HandOver(MUSCLES, BIAS)
    tensions = np.full(M, 100.0)
    tensions[0], tensions[1], tensions[2] = FLOOR[0] + STEP, 0.0, np.nan
    rest_lengths = np.full(M, 0.2)
    rest_lengths[3] = SLACK
    before = rest_lengths.copy()
    hand_over.let_go(rest_lengths, tensions)
    expected = np.full(M, STEP)
    expected[[0, 1, 3]] = 0.0
    assert (rest_lengths - before) * K == pytest.approx(expected)
