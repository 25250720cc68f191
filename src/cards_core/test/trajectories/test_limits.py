"""The check of references against joint limits."""

import math

import numpy as np
import pytest

from cards_core.errors import ShapeError
from cards_core.robot.elements import WORLD, Joint, JointAxis, Link
from cards_core.robot.model import Robot
from cards_core.trajectories import (
    Hold,
    JointLimits,
    LimitError,
    LiveReference,
    PointToPoint,
    Sequence,
    TrajectoryError,
    check_limits,
    first_violation,
    linear_spline,
    quintic_spline,
)

INF = math.inf


def limits(lower=(-1.0, -1.0), upper=(1.0, 1.0), velocity=(INF, INF)):
    return JointLimits(("a", "b"), np.array(lower), np.array(upper), np.array(velocity))


def test_no_violation_within_the_limits():
    motion = PointToPoint([-1.0, 1.0], [1.0, -1.0], 2.0)
    assert first_violation(motion, limits()) is None
    check_limits(motion, limits())


def test_first_violation_in_time_is_named():
    """'b' leaves at the end of its way, 'a' leaves earlier: 'a' is named, with time and value."""
    motion = linear_spline([0.0, 1.0, 2.0], [[0.0, 0.0], [2.0, 0.0], [0.0, -3.0]])
    found = first_violation(motion, limits(), time_step=0.01)
    assert (found.coordinate, found.kind, found.limit) == ("a", "upper", 1.0)
    assert found.time == pytest.approx(0.51)
    assert found.value == pytest.approx(1.02)
    found = first_violation(motion, limits(upper=(5.0, 5.0)), time_step=0.01)
    assert (found.coordinate, found.kind) == ("b", "lower")
    assert found.time == pytest.approx(1.34)


def test_velocity_limit():
    motion = PointToPoint([0.0, 0.0], [0.5, -1.0], 2.0)
    peak = 1.875 / 2.0
    assert first_violation(motion, limits(velocity=(INF, peak + 1e-9))) is None
    found = first_violation(motion, limits(velocity=(INF, peak - 1e-3)))
    assert (found.coordinate, found.kind) == ("b", "velocity")
    assert found.value < 0.0
    assert str(found).startswith("velocity of 'b' is -0.93")


def test_knots_are_looked_at_however_coarse_the_step():
    spike = linear_spline([0.0, 0.5001, 0.5003, 1.0], [[0, 0], [0, 0], [1.01, 0], [0, 0]])
    found = first_violation(spike, limits(), time_step=0.25)
    assert found.time == 0.5003
    assert found.value == pytest.approx(1.01)


def test_overshoot_between_knots_is_found():
    """Knots within the limits, but the velocity at the knot carries the joint beyond."""
    motion = quintic_spline([0.0, 1.0, 2.0], [[0, 0], [0.95, 0], [0, 0]], [[0, 0], [1, 0], [0, 0]])
    found = first_violation(motion, limits())
    assert found.coordinate == "a"
    assert 1.0 < found.time < 1.2


def test_chunks_join_without_a_gap():
    """A violation at any place of a long reference is found, and the earliest one."""
    for at in (19.999, 20.0, 20.001, 39.999, 40.0, 63.0):
        hold = Hold([0.0, 0.0], at)
        out = linear_spline([0.0, 1e-4, 2e-4], [[0, 0], [0, -2], [0, 0]])
        motion = Sequence([hold, out, Hold([0.0, 0.0], 70.0 - at), out])
        found = first_violation(motion, limits())
        assert found.kind == "lower"
        assert found.time == pytest.approx(at + 1e-4, abs=2e-5)


def test_error_carries_the_violation():
    motion = PointToPoint([0.0, 0.0], [2.0, 0.0], 1.0)
    motion.name = "reach"
    with pytest.raises(LimitError, match=r"reference 'reach': position of 'a' is 1\.0") as caught:
        check_limits(motion, limits())
    assert caught.value.violation.coordinate == "a"


def test_limits_of_a_robot_follow_its_coordinates():
    def axis(x, lower, upper, velocity):
        return JointAxis(np.array(x, dtype=float), lower, upper, velocity=velocity)

    x, y, z = [1, 0, 0], [0, 1, 0], [0, 0, 1]
    joints = (
        # declared in an order that is not that of the tree
        Joint(
            "tip",
            "planar",
            "b",
            "c",
            axes=(axis(x, -1, 1, 1), axis(y, -2, 2, 2), axis(z, -3, 3, 3)),
        ),
        Joint("root", "revolute", WORLD, "a", axes=(axis(z, -4, 5, 6),)),
        Joint("mid", "universal", "a", "b", axes=(axis(x, -7, 8, 9), axis(y, -INF, INF, INF))),
    )
    robot = Robot("r", (Link("a"), Link("b"), Link("c")), joints)
    found = JointLimits.of(robot.tree)
    assert found.names == ("root", "mid_1", "mid_2", "tip_1", "tip_2", "tip_3")
    np.testing.assert_array_equal(found.lower, [-4, -7, -INF, -1, -2, -3])
    np.testing.assert_array_equal(found.upper, [5, 8, INF, 1, 2, 3])
    np.testing.assert_array_equal(found.velocity, [6, 9, INF, 1, 2, 3])


def test_quaternions_are_refused():
    robot = Robot("r", (Link("a"),), (Joint("hip", "ball", WORLD, "a"),))
    with pytest.raises(ShapeError, match="4 coordinates but 3 velocities"):
        JointLimits.of(robot.tree)


@pytest.mark.parametrize(
    ("reference", "options", "message"),
    [
        (Hold([0.0]), {}, "reference has 1 coordinates, expected 2: a, b"),
        (Hold([0.0, 0.0]), {"time_step": 0.0}, "time step"),
        (LiveReference(2, [0.0, 0.0]), {}, "duration is inf"),
    ],
)
def test_refuses_bad_arguments(reference, options, message):
    with pytest.raises(TrajectoryError, match=message):
        first_violation(reference, limits(), **options)
