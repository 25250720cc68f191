"""Tolerances of references: from the size of the path, and as a file states them."""

import math

import pytest

from cards_core.errors import DescriptionError
from cards_core.trajectories import (
    Hold,
    LiveReference,
    PointToPoint,
    Tolerance,
    from_dict,
    tolerance_of,
    with_approach,
)


def test_tolerance_from_the_size_of_the_path():
    straight = PointToPoint([0.0, 1.0, 0.0], [3.0, 1.0, -4.0], duration=1.0)
    assert tolerance_of(straight, ("m", "m", "m")) == Tolerance(0.25, 0.02)
    mixed = tolerance_of(straight, ("m", "m", "rad"))
    assert (mixed.length, mixed.angle) == pytest.approx((0.15, 0.2))
    # a place to hold has the least
    assert tolerance_of(Hold([1.0, 2.0]), ("m", "rad")) == Tolerance(0.005, 0.02)
    # nobody knows how exact a point that comes over a topic is meant
    live = tolerance_of(LiveReference(1), ("rad",))
    assert math.isnan(live.length)
    assert math.isnan(live.angle)


def test_tolerance_of_a_turn():
    quaternion = [math.cos(0.4), math.sin(0.4), 0.0, 0.0]  # by 0.8 rad
    turn = PointToPoint([1.0, 0.0, 0.0, 0.0], quaternion, duration=1.0)
    assert tolerance_of(turn, ("",) * 4).angle == pytest.approx(0.05 * 0.8)


def test_tolerance_in_a_file():
    def read(tolerance):
        motion = {"kind": "point_to_point", "from": [0.0], "to": [1.0], "duration": 1.0}
        return from_dict({"trajectories": {"a": {**motion, "tolerance": tolerance}}})["a"]

    stated = read({"angle": 0.001})
    assert tolerance_of(stated, ("rad",)).angle == 0.001
    assert tolerance_of(with_approach(stated, [5.0], 1.0), ("rad",)).angle == 0.001
    with pytest.raises(DescriptionError, match=r"unknown key 'angel', did you mean 'angle'"):
        read({"angel": 0.1})
    with pytest.raises(DescriptionError, match=r"tolerance\.length: is 0"):
        read({"length": 0})
    with pytest.raises(DescriptionError, match="a mapping of keys and values"):
        read(0.1)
