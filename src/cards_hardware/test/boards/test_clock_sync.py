"""The clock of a board: offset, drift, wrap, and what the delays of the line do to them."""

import numpy as np
import pytest

from cards_hardware.boards.clock_sync import WRAP, ClockSync, wrap_difference


def simulate(
    seed,
    *,
    drift=0.0,
    offset=0,
    jitter=(2000.0, 300.0),
    base=(150.0, 150.0),
    period=100_000,
    count=400,
    start=10_000_000_000,
):
    """Yield (clock, true host time, device stamp) after every exchange; times in us."""
    rng = np.random.default_rng(seed)
    clock = ClockSync()

    def device(host):
        return round((host - start) * (1.0 + drift)) + offset

    host = start
    for _ in range(count):
        host += period
        there = base[0] + rng.exponential(jitter[0])
        back = base[1] + rng.exponential(jitter[1])
        t1, t4 = host, round(host + there + 40 + back)
        t2, t3 = device(host + there), device(host + there + 40)
        assert clock.add(t1, t2 % WRAP, t3 % WRAP, t4)
        yield clock, t4, device(t4) % WRAP


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("drift", [0.0, 80e-6, -80e-6])
def test_error_stays_below_a_third_of_a_millisecond_with_asymmetric_jitter(seed, drift):
    errors = []
    for i, (clock, host, stamp) in enumerate(simulate(seed, drift=drift)):
        if i >= 64:
            errors.append(clock.to_host(stamp, host) - host * 1e-6)
    assert np.max(np.abs(errors)) < 0.3e-3


def test_without_jitter_it_is_exact_and_finds_the_drift():
    for clock, host, stamp in simulate(0, drift=50e-6, jitter=(0.0, 0.0)):  # noqa: B007
        pass
    assert clock.to_host(stamp, host) == pytest.approx(host * 1e-6, abs=2e-6)
    # the board is fast, so its offset to the host falls
    assert clock.drift == pytest.approx(-50e-6, abs=2e-6)
    assert clock.rtt == pytest.approx(300e-6, abs=2e-6)


def test_half_the_asymmetry_of_the_least_delays_remains():
    for clock, host, stamp in simulate(0, jitter=(0.0, 0.0), base=(100.0, 300.0)):  # noqa: B007
        pass
    assert clock.to_host(stamp, host) - host * 1e-6 == pytest.approx(100e-6, abs=5e-6)
    assert clock.error >= 100e-6


def test_it_says_how_far_it_may_be_off():
    for i, (clock, host, stamp) in enumerate(simulate(3, jitter=(500.0, 500.0))):
        if i > 5:
            assert abs(clock.to_host(stamp, host) - host * 1e-6) < clock.error + 1e-4


def test_the_board_s_microseconds_wrap():
    offset = WRAP - 3_000_000
    times = [
        clock.to_host(stamp, host) - host * 1e-6
        for clock, host, stamp in simulate(1, offset=offset, jitter=(0.0, 0.0))
    ]
    assert np.max(np.abs(times)) < 1e-4


def test_it_goes_on_after_half_an_hour_without_exchange():
    for clock, host, stamp in simulate(2, jitter=(0.0, 0.0)):  # noqa: B007
        pass
    later = 30 * 60 * 1_000_000
    mapped = clock.to_host((stamp + later) % WRAP, host + later + 5000)
    assert mapped == pytest.approx((host + later) * 1e-6, abs=1e-3)


def test_a_clock_that_was_set_anew_is_noticed_and_not_taken_in():
    for clock, host, stamp in simulate(4):  # noqa: B007
        pass
    before = clock.to_host(stamp, host)
    assert not clock.add(host, 1000, 1040, host + 400)
    assert clock.to_host(stamp, host) == before
    clock.reset()
    assert clock.add(host, 1000, 1040, host + 440)
    assert clock.to_host(1020, host + 400) == pytest.approx((host + 220) * 1e-6, abs=1e-6)


@pytest.mark.parametrize("jump", [5_000, -5_000, 20_000, -20_000])
def test_a_clock_that_was_set_by_milliseconds_is_noticed(jump):
    """A state that is stamped five milliseconds off is five control periods old, or from then."""
    for clock, host, stamp in simulate(4, jitter=(0.0, 0.0)):  # noqa: B007
        pass
    before = clock.to_host(stamp, host)
    # an exchange of 0.3 ms explains 0.15 ms
    assert not clock.add(host - 150, (stamp + jump) % WRAP, (stamp + jump) % WRAP, host + 150)
    assert clock.to_host(stamp, host) == before
    assert clock.add(host - 150, stamp, stamp, host + 150)


def test_a_slow_exchange_is_no_new_clock():
    for clock, host, stamp in simulate(4):  # noqa: B007
        pass
    # the answer took nine seconds back
    assert clock.add(host - 300, stamp, stamp, host + 9_000_000)
    assert clock.to_host(stamp, host) == pytest.approx(host * 1e-6, abs=0.3e-3)


def test_answers_that_cannot_be_are_left_out():
    clock = ClockSync()
    assert clock.add(1000, 500, 400, 2000)
    assert clock.add(2000, 500, 500, 1000)
    assert not clock.ready


@pytest.mark.parametrize(
    ("later", "earlier", "difference"),
    [(5, 3, 2), (3, 5, -2), (2, WRAP - 3, 5), (WRAP - 3, 2, -5), (1 << 31, 0, -(1 << 31))],
)
def test_difference_of_a_wrapping_clock(later, earlier, difference):
    assert wrap_difference(later, earlier) == difference
