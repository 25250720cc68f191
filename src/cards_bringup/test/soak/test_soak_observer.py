"""What the observer notes of messages."""

import time

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from cards_bringup.soak.observer import _arrival


def test_a_message_counts_from_when_the_middleware_got_it():
    before = time.monotonic()
    arrival = _arrival({"received_timestamp": time.time_ns() - 800_000_000})
    assert before - 0.8 <= arrival + 1e-6
    assert arrival <= time.monotonic() - 0.8 + 1e-6
