"""Stamps of samples."""

import pytest

from cards_hardware.bridge.sample_clock import LEAST_ADVANCE, SampleClock

pytestmark = pytest.mark.serial

DAY = 86_400 * 10**9


class Clocks:
    """A monotonic clock, and a system clock that can be set."""

    def __init__(self):
        self.now, self.offset = 5 * DAY, 20_000 * DAY

    def ros(self):
        return self.now + self.offset

    def monotonic(self):
        return self.now


def test_stamps_are_ros_times_of_the_samples():
    clocks = Clocks()
    clock = SampleClock(clocks.ros, clocks.monotonic)
    sampled = clocks.now - 3_000_000
    stamp = clock.stamp(sampled * 1e-9)
    assert abs(stamp - (sampled + clocks.offset)) < 1000  # a float of five days, [ns]
    assert abs(clock.age(sampled * 1e-9) - 0.003) < 1e-6


def test_samples_that_are_not_newer_have_none():
    clocks = Clocks()
    clock = SampleClock(clocks.ros, clocks.monotonic)
    first = clock.stamp(1.000)
    assert clock.stamp(1.000) is None
    assert clock.stamp(0.998) is None
    assert clock.stamp(1.0 + 0.5e-9 * LEAST_ADVANCE) is None
    assert clock.stamp(1.002) - first == 2_000_000


def test_a_clock_that_is_set_does_not_move_the_stamps_until_adjusted():
    clocks = Clocks()
    clock = SampleClock(clocks.ros, clocks.monotonic)
    first = clock.stamp(1.0)
    clocks.offset -= 10**9
    assert clock.stamp(1.002) - first == 2_000_000
    assert clock.error == -1.0
    clock.adjust()
    assert clock.error == 0.0
    assert clock.stamp(1.004) - first == 4_000_000 - 10**9  # and time may go back then
