"""Counts of a controller's steps against numbers made by hand; missed states, from stamps."""

import math

import numpy as np
import pytest

from cards_core.control import ControlModel, ControlStatus, make_controller
from cards_core.errors import UnknownNameError
from cards_core.formats import load
from cards_core.loop.task_tally import (
    MissedStates,
    TaskTally,
    error_units,
    joint_units,
    operational_units,
    units_of,
)
from cards_core.loop.verdict import TaskFacts
from cards_core.trajectories import Tolerance
from random_robots import random_robot

PERIOD = 2_000_000


def test_exact_stamps_miss_what_was_left_out() -> None:
    missed = MissedStates()
    for gap in (1, 1, 3, 1, 2, 1):
        missed.note(gap * PERIOD)
    assert missed.count == 3


def test_measured_stamps_do_not_make_missed_states() -> None:
    """Stamps of a real robot jitter, and after a stall two come close together."""
    rng = np.random.default_rng(1)
    missed = MissedStates()
    stalls = 0
    for number in range(2000):
        if number % 50 == 49:
            missed.note(round(1.6 * PERIOD))  # late, and the next one on time
            missed.note(round(0.4 * PERIOD))
            stalls += 1
        else:
            missed.note(round(PERIOD * (1 + 0.05 * rng.standard_normal())))
        assert missed.count == stalls  # 1.6 periods count as one missed, jitter as none


def test_every_second_state_answered_counts_as_half() -> None:
    missed = MissedStates()
    for number in range(1000):
        missed.note(PERIOD if number % 8 == 0 else 2 * PERIOD)
    assert missed.count == 875


def test_tally_against_numpy():
    rng = np.random.default_rng(3)
    count, error = 50, rng.normal(size=(50, 5))
    limits = rng.uniform(0.5, 1.0, size=(count, 2))
    status = rng.choice(list(ControlStatus), size=count)
    tally = TaskTally(("m", "rad", "m", "rad", "rad"))
    tally.add(-1.0, ControlStatus.INVALID_STATE, error[0], Tolerance(1.0, 1.0), 9.0)
    tally.reset()
    for k in range(count):
        answer = ControlStatus(int(status[k]))
        tally.add(0.1 * k, answer, error[k], Tolerance(*limits[k]), 7.0 - 0.1 * k)
    facts = tally.facts(missed=4, reached=5.0)
    assert (facts.steps, facts.missed) == (count, 4)
    assert facts.invalid == np.sum(status == ControlStatus.INVALID_STATE)
    assert facts.joint_limit == np.sum(status == ControlStatus.JOINT_LIMIT)
    assert facts.infeasible == np.sum((status == 2) | (status == 3))
    assert facts.remaining == pytest.approx(7.0 - 5.0)
    good = status != ControlStatus.INVALID_STATE
    for one, columns, column in zip(facts.tracking, ([0, 2], [1, 3, 4]), (0, 1), strict=True):
        sizes = np.linalg.norm(error[good][:, columns], axis=1)
        used = sizes / limits[good, column]
        assert one.unit == ("m", "rad")[column]
        assert one.rms == pytest.approx(math.sqrt(np.mean(sizes**2)))
        assert one.used == pytest.approx(math.sqrt(np.mean(used**2)))
        assert (one.end, one.used_at_end) == pytest.approx((sizes[-1], used[-1]))


def test_a_task_without_tolerance_is_not_judged():
    tally = TaskTally(("m",))
    tally.add(0.0, ControlStatus.OK, np.array([5.0]), Tolerance(), math.nan)
    assert tally.facts().tracking == ()
    assert tally.facts().remaining == 0.0


# Units -----------------------------------------------------------------------------------------


def test_units_of_joints_are_those_of_their_coordinates_and_velocities():
    """A quaternion has four numbers without a unit, and an error of three angles."""
    tree = random_robot(2, n_links=3, kinds=("ball", "prismatic", "universal")).tree
    units, of_errors = joint_units(tree)
    # a universal joint is two hinges
    parts = {
        "ball": ([""] * 4, ["rad"] * 3),
        "prismatic": (["m"], ["m"]),
        "revolute": (["rad"], ["rad"]),
    }
    kinds = [node.kind for node in tree.nodes]
    assert set(kinds) == set(parts)
    assert list(units) == [unit for kind in kinds for unit in parts[kind][0]]
    assert list(of_errors) == [unit for kind in kinds for unit in parts[kind][1]]
    assert (len(units), len(of_errors)) == (tree.nq, tree.nv)
    assert error_units(units) == of_errors


def test_units_of_places_and_rotations():
    assert operational_units(("x", "z")) == (("m", "m"), ("m", "m"))
    pose = ("x", "y", "z", "qw", "qx", "qy", "qz")
    assert operational_units(pose) == (
        ("m", "m", "m", "", "", "", ""),
        ("m", "m", "m", "rad", "rad", "rad"),
    )
    assert operational_units(pose[3:]) == (("",) * 4, ("rad",) * 3)
    for names in (("x", "z"), pose, pose[3:]):
        units, of_errors = operational_units(names)
        assert error_units(units) == of_errors


def test_units_of_what_a_controller_tracks():
    model = ControlModel(load("planar_2r"), "numeric")
    joints = make_controller("ctc_joint", model)
    assert units_of(joints) == (("rad", "rad"), ("rad", "rad"))
    place = make_controller("ctc_operational", model)
    assert units_of(place)[0] == ("m",) * len(place.reference_names)
    assert len(units_of(place)[1]) == place.output.error.size
    none = make_controller("impedance", model)
    assert units_of(none) == ((), ())
    joints.space = "nowhere"
    with pytest.raises(UnknownNameError, match=r"space of references.*'nowhere'"):
        units_of(joints)


# Bounds ----------------------------------------------------------------------------------------


def test_the_period_is_what_a_tenth_of_the_last_hundred_gaps_is_shorter_than():
    missed = MissedStates()
    for _ in range(100):
        missed.note(2 * PERIOD)
    for _ in range(10):  # ten short ones are no period yet
        missed.note(PERIOD)
    missed.note(2 * PERIOD)
    assert missed.count == 0
    missed.note(PERIOD)  # the eleventh
    missed.note(2 * PERIOD)
    assert missed.count == 1
    # gaps that came before the last hundred are forgotten
    missed = MissedStates()
    for _ in range(11):
        missed.note(PERIOD)
    for _ in range(89):
        missed.note(2 * PERIOD)
    assert missed.count == 89
    for _ in range(10):
        missed.note(2 * PERIOD)
    assert missed.count == 89


def test_what_is_left_of_a_reference_is_never_less_than_nothing():
    tally = TaskTally(("m",))
    for remaining in (0.5, -0.5):
        tally.add(2.0, ControlStatus.OK, np.zeros(1), Tolerance(), remaining)
        # the end of the run is not known, or was before the last state
        assert tally.facts().remaining == tally.facts(reached=1.0).remaining == max(remaining, 0.0)
    tally.add(2.0, ControlStatus.OK, np.zeros(1), Tolerance(), 0.5)
    assert tally.facts(reached=2.25).remaining == 0.25
    assert tally.facts(reached=3.0).remaining == 0.0
    tally.reset()
    assert tally.facts(reached=-1.0).remaining == 0.0


def test_a_tally_that_has_counted_nothing():
    assert TaskTally(("m", "rad")).facts() == TaskFacts(steps=0)
    assert TaskTally(()).facts(not_finite=("q",)) == TaskFacts(steps=0, not_finite=("q",))
    tally = TaskTally(("m", "kg"))
    tally.add(0.0, ControlStatus.OK, np.array([3.0, 4.0]), Tolerance(2.0, 1.0), 1.0)
    (one,) = tally.facts().tracking
    assert (one.unit, one.rms, one.used) == ("m", 3.0, 1.5)  # kg are not judged
    tally.reset()
    assert tally.facts().tracking == ()
    tally.add(0.0, ControlStatus.OK, np.array([1.0, 4.0]), Tolerance(2.0, 1.0), 1.0)
    (one,) = tally.facts().tracking
    assert (one.rms, one.end, one.used, one.used_at_end) == (1.0, 1.0, 0.5, 0.5)


def test_steps_are_counted_by_what_came_of_them():
    tally = TaskTally(("rad",))
    for number, status in enumerate(ControlStatus, 1):
        for _ in range(2**number):
            tally.add(0.0, status, np.zeros(1), Tolerance(1.0, 1.0), math.nan)
    facts = tally.facts()
    assert (facts.steps, facts.joint_limit, facts.invalid) == (62, 4, 32)
    assert facts.infeasible == 8 + 16  # infeasible, and by a substitute
