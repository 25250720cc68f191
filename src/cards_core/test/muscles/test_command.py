"""The command gate: what is refused, how tensions decay, emergency stop."""

import array
import dataclasses
import math

import numpy as np
import pytest
from actuator_samples import BRAID, HILL, actuator_robot
from hybrid_robots import MOTORS, platform_arm
from hypothesis import given
from hypothesis import strategies as st

from cards_core.errors import CardsError, UnknownNameError
from cards_core.muscles.command import (
    EFFORT,
    EXCITATION,
    FORCE,
    LENGTH,
    NO_COMMAND,
    PRESSURE,
    CommandRefusedError,
    GateCondition,
    MuscleCommand,
    check_command,
    command_limits,
    command_of,
)
from cards_core.robot.actuators import Cable, Hill, Ligament, Pneumatic
from random_robots import random_robot

NAMES = [f"muscle{i}" for i in range(4)]
LOW = np.array([1.0, 2.0, 0.0, 5.0])
HIGH = np.array([50.0, 60.0, 70.0, math.inf])
ROBOT = random_robot(0, n_muscles=4)
ROBOT = dataclasses.replace(
    ROBOT,
    muscles=tuple(
        dataclasses.replace(m, tension_min=low, tension_max=high)
        for m, low, high in zip(ROBOT.muscles, LOW.tolist(), HIGH.tolist(), strict=True)
    ),
)
VALID = [10.0, 20.0, 30.0, 40.0]


def gate(timeout=0.1, decay_time=0.0):
    return MuscleCommand(ROBOT, timeout=timeout, decay_time=decay_time)


def test_starts_stale_at_the_minimum():
    command = gate()
    np.testing.assert_array_equal(command.values(0.0), LOW)
    assert command.stale
    assert command.stale_muscles == ()
    assert (command.accepted, command.refused) == (0, 0)


@pytest.mark.parametrize("kind", [list, np.array, lambda v: array.array("d", v), tuple])
def test_full_command_applies(kind):
    command = gate()
    command.submit(NAMES, kind(VALID), 1.0)
    np.testing.assert_array_equal(command.values(1.05), VALID)
    assert not command.stale
    assert command.accepted == 1


def test_order_of_the_names_counts_not_the_order_of_the_robot():
    command = gate()
    command.submit(tuple(reversed(NAMES)), VALID[::-1], 0.0)
    np.testing.assert_array_equal(command.values(0.0), VALID)


def test_partial_commands_leave_the_others_as_they_were():
    command = gate()
    command.submit(["muscle2"], [33.0], 0.0)
    np.testing.assert_array_equal(command.values(0.0), [1.0, 2.0, 33.0, 5.0])
    command.submit(["muscle3", "muscle0"], [9.0, 3.0], 0.05)
    np.testing.assert_array_equal(command.values(0.05), [3.0, 2.0, 33.0, 9.0])


@pytest.mark.parametrize(
    ("names", "values", "reason"),
    [
        (["muscle0", "elbow"], [5.0, 5.0], "no muscle named 'elbow'"),
        (NAMES, [10.0, math.nan, 30.0, 40.0], "'muscle1' is nan N, expected 2 .. 60 N"),
        (NAMES, [10.0, 20.0, 30.0, math.inf], "'muscle3' is inf"),
        (NAMES, [10.0, 20.0, -math.inf, 40.0], "'muscle2' is -inf"),
        (NAMES, [10.0, 60.001, 30.0, 40.0], "'muscle1' is 60.001 N, expected 2 .. 60 N"),
        (NAMES, [0.999, 20.0, 30.0, 40.0], "'muscle0' is 0.999 N, expected 1 .. 50 N"),
        (["muscle3"], [4.0], "'muscle3' is 4 N, expected 5 .. inf N"),
        ([], [], "no muscle is named"),
        (NAMES, VALID[:3], "3 values for 4 names"),
        (NAMES[:3], VALID, "4 values for 3 names"),
        (NAMES, [VALID], r"shape \(1, 4\)"),
        (["muscle0", "muscle0"], [5.0, 6.0], "'muscle0' is named more than once"),
        (["muscle0"], ["strong"], "not numbers"),
    ],
)
def test_invalid_commands_are_refused_as_a_whole(names, values, reason):
    command = gate()
    command.submit(NAMES, VALID, 0.0)
    with pytest.raises(CommandRefusedError, match=reason):
        command.submit(names, values, 0.05)
    np.testing.assert_array_equal(command.values(0.1), VALID)
    assert command.refused == 1
    assert command.accepted == 1
    assert command.last_refusal_time == 0.05
    # a refused command does not feed the watchdog
    np.testing.assert_array_equal(command.values(0.1001), LOW)
    command.submit(NAMES, VALID, 0.2)
    np.testing.assert_array_equal(command.values(0.2), VALID)


def test_command_without_a_time_is_refused():
    command = gate()
    for names, values in ((NAMES, VALID), (NAMES[:1], VALID[:1])):
        for time in (math.nan, math.inf):
            with pytest.raises(CommandRefusedError, match="time"):
                command.submit(names, values, time)
    np.testing.assert_array_equal(command.values(0.0), LOW)


def test_limits_themselves_are_accepted():
    command = gate()
    command.submit(NAMES[:3], LOW[:3], 0.0)
    command.submit(NAMES[:3], HIGH[:3], 0.0)
    np.testing.assert_array_equal(command.values(0.0)[:3], HIGH[:3])


def test_watchdog_without_decay_drops_to_the_minimum_at_once():
    command = gate(timeout=0.125)  # exact in binary, as are the times
    command.submit(NAMES, VALID, 1.0)
    np.testing.assert_array_equal(command.values(1.125), VALID)
    assert not command.stale
    np.testing.assert_array_equal(command.values(1.125 + 1e-9), LOW)
    assert command.stale
    assert command.stale_muscles == tuple(NAMES)


def test_watchdog_decays_on_a_straight_line():
    command = gate(timeout=0.1, decay_time=0.4)
    command.submit(NAMES, VALID, 0.0)
    for time, share in ((0.1, 1.0), (0.2, 0.75), (0.3, 0.5), (0.5, 0.0), (9.0, 0.0)):
        expected = LOW + share * (np.array(VALID) - LOW)
        np.testing.assert_allclose(command.values(time), expected, atol=1e-12)
    command.submit(NAMES, VALID, 9.0)
    np.testing.assert_array_equal(command.values(9.0), VALID)


def test_watchdog_watches_every_muscle_when_senders_share_the_robot():
    command = gate(timeout=0.1)
    command.submit(NAMES[:2], VALID[:2], 0.0)
    for time in (0.0, 0.08, 0.16):
        command.submit(NAMES[2:], VALID[2:], time)
    np.testing.assert_array_equal(command.values(0.16), [*LOW[:2], *VALID[2:]])
    assert command.stale
    assert command.stale_muscles == tuple(NAMES[:2])
    command.submit(NAMES, VALID, 0.17)
    command.values(0.17)
    assert not command.stale


def test_emergency_stop_holds_until_reset():
    command = gate()
    command.submit(NAMES, VALID, 0.0)
    command.estop()
    assert command.stopped
    np.testing.assert_array_equal(command.values(0.0), LOW)
    with pytest.raises(CommandRefusedError, match="emergency stop"):
        command.submit(NAMES, VALID, 0.01)
    np.testing.assert_array_equal(command.values(0.01), LOW)
    assert "emergency stop" in command.last_refusal
    command.reset()
    assert not command.stopped
    assert command.last_refusal is None
    assert command.refused == 1
    np.testing.assert_array_equal(command.values(0.01), LOW)
    command.submit(NAMES, VALID, 0.02)
    np.testing.assert_array_equal(command.values(0.02), VALID)


def test_reset_allows_time_to_start_again():
    command = gate()
    command.submit(NAMES, VALID, 100.0)
    command.reset()
    np.testing.assert_array_equal(command.values(0.0), LOW)
    command.submit(NAMES, VALID, 0.0)
    np.testing.assert_array_equal(command.values(0.05), VALID)


def test_returned_and_given_arrays_are_not_shared():
    command = gate()
    values = np.array(VALID)
    command.submit(NAMES, values, 0.0)
    values[:] = 7.0
    command.values(0.0)[:] = 8.0
    np.testing.assert_array_equal(command.values(0.0), VALID)


@pytest.mark.parametrize("timeout", [0.0, -1.0, math.nan])
def test_senseless_timeout_is_an_error(timeout):
    with pytest.raises(CardsError, match="timeout"):
        gate(timeout=timeout)


@pytest.mark.parametrize("decay", [-1.0, math.nan, math.inf])
def test_senseless_decay_time_is_an_error(decay):
    with pytest.raises(CardsError, match="decay"):
        gate(decay_time=decay)


# Kinds of commands ---------------------------------------------------------------------------

MUSCLES = actuator_robot(
    Cable(stiffness=1e4),
    Pneumatic(**BRAID),
    Hill(**HILL),
    Ligament(stiffness=1000.0, slack_length=0.28),
    Cable(),
    tension_min=5.0,
    tension_max=200.0,
)
TOLD = [0.3, 2e5, 0.8, 5.0, 105.0]


def told(decay_time=0.0, timeout=0.125):
    """Return a gate whose muscles have got a command of each kind at time 0."""
    command = MuscleCommand(MUSCLES, timeout=timeout, decay_time=decay_time)
    command.submit(["m0"], [0.3], 0.0, kind="length")
    command.submit(["m1"], [2e5], 0.0, kind="pressure")
    command.submit(["m2"], [0.8], 0.0, kind="excitation")
    command.submit(["m4"], [105.0], 0.0, kind="force")
    return command


def test_kinds_are_told_apart():
    command = told()
    np.testing.assert_array_equal(command.values(0.0), TOLD)
    assert command.kinds.tolist() == [LENGTH, PRESSURE, EXCITATION, NO_COMMAND, FORCE]
    command.reset()
    np.testing.assert_array_equal(command.values(0.0), np.full(5, 5.0))
    assert command.kinds.tolist() == [NO_COMMAND] * 5


def test_the_last_command_counts_of_whichever_kind_it_is():
    command = told()
    command.submit(["m0", "m1", "m2"], [50.0, 60.0, 70.0], 0.1)
    np.testing.assert_array_equal(command.values(0.1)[:3], [50.0, 60.0, 70.0])
    assert command.kinds.tolist() == [FORCE, FORCE, FORCE, NO_COMMAND, FORCE]
    command.submit(["m0"], [0.25], 0.1, kind="length")
    assert command.values(0.1)[0] == 0.25
    assert command.kinds[0] == LENGTH


def test_watchdog_of_each_kind():
    """Pressure and excitation fall to zero, a length becomes the smallest tension at once."""
    command = told(decay_time=0.5)
    np.testing.assert_array_equal(command.values(0.125), TOLD)
    half = command.values(0.375)
    np.testing.assert_allclose(half, [5.0, 1e5, 0.4, 5.0, 55.0], rtol=1e-12)
    assert command.kinds.tolist() == [FORCE, PRESSURE, EXCITATION, NO_COMMAND, FORCE]
    np.testing.assert_array_equal(command.values(9.0), [5.0, 0.0, 0.0, 5.0, 5.0])
    command.submit(["m0"], [0.28], 9.0, kind="length")
    assert command.values(9.0)[0] == 0.28
    assert command.kinds[0] == LENGTH


def test_emergency_stop_asks_for_the_smallest_tension_whatever_was_told():
    command = told()
    command.estop()
    for time in (0.0, 9.0):
        np.testing.assert_array_equal(command.values(time), np.full(5, 5.0))
        assert command.kinds.tolist() == [FORCE, FORCE, FORCE, NO_COMMAND, FORCE]
    with pytest.raises(CommandRefusedError, match="rest length command refused: emergency stop"):
        command.submit(["m0"], [0.3], 0.0, kind="length")


@pytest.mark.parametrize(
    ("name", "value", "kind", "reason"),
    [
        (
            "m0",
            0.3,
            "pressure",
            r"'m0' takes no pressure command \(it takes force, length, impedance\)",
        ),
        ("m4", 0.3, "length", r"'m4' takes no length command \(it takes force, impedance\)"),
        ("m3", 9.0, "force", r"'m3' takes no force command \(it takes none: it is passive\)"),
        ("m0", -0.1, "length", "rest length of muscle 'm0' is -0.1 m, expected 0 .. inf m"),
        ("m0", math.inf, "length", "rest length of muscle 'm0' is inf m"),
        ("m1", 7e5, "pressure", "pressure of muscle 'm1' is 700000 Pa, expected 0 .. 600000 Pa"),
        ("m2", 1.01, "excitation", "excitation of muscle 'm2' is 1.01, expected 0 .. 1"),
        ("m2", math.nan, "excitation", "excitation of muscle 'm2' is nan"),
    ],
)
def test_what_a_muscle_cannot_be_told_is_refused(name, value, kind, reason):
    command = told()
    with pytest.raises(CommandRefusedError, match=reason):
        command.submit([name], [value], 0.0, kind=kind)
    np.testing.assert_array_equal(command.values(0.0), TOLD)


# Anything ------------------------------------------------------------------------------------

numbers = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 5.0, 50.0, 60.0]))


@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from([*NAMES, "x"]), max_size=5),
            st.lists(numbers, max_size=5),
            st.floats(0.0, 1.0),
        )
    ),
    st.floats(0.0, 2.0),
)
def test_whatever_is_sent_the_tensions_stay_within_the_limits(commands, time):
    command = gate(decay_time=0.2)
    for names, values, sent in commands:
        try:
            command.submit(names, values, sent)
        except CommandRefusedError:
            continue
    out = command.values(time)
    assert np.all(np.isfinite(out))
    assert np.all((out >= LOW) & (out <= HIGH))
    assert command.accepted + command.refused == len(commands)


def test_condition_and_lapses_of_the_watchdog():
    one = gate(timeout=0.1)
    one.values(5.0)
    assert one.condition is GateCondition.OBEYING  # nobody has told it anything yet
    one.submit(NAMES, VALID, 5.0)
    for time, condition, lapses in (
        (5.1, GateCondition.OBEYING, 0),
        (5.2, GateCondition.WATCHDOG, 1),
        (5.3, GateCondition.WATCHDOG, 2),
    ):
        one.values(time)
        assert (one.condition, one.lapses) == (condition, lapses)
    assert one.first_lapse == 5.2
    one.submit(NAMES, VALID, 5.3)
    # one muscle alone that is late is enough
    one.submit(NAMES[:1], VALID[:1], 5.35)
    one.values(5.42)
    assert (one.condition, one.lapses) == (GateCondition.WATCHDOG, 3)
    one.estop()
    one.values(5.5)
    assert (one.condition, one.lapses) == (GateCondition.STOPPED, 3)
    one.reset()
    one.values(0.0)
    assert (one.condition, one.lapses) == (GateCondition.OBEYING, 0)
    assert math.isnan(one.first_lapse)


def test_emergency_stop_tells_motors_efforts_and_muscles_tensions():
    robot = platform_arm()
    ropes = [muscle.name for muscle in robot.muscles]
    command = MuscleCommand(robot, timeout=0.1)
    command.submit(ropes, [50.0] * len(ropes), 0.0)
    command.submit(list(MOTORS), [8.0, -4.0], 0.0, kind="effort")
    command.estop()
    assert command.values(0.0)[len(ropes) :].tolist() == [0.0, 0.0]
    assert command.kinds.tolist() == [FORCE] * len(ropes) + [EFFORT] * len(MOTORS)


def test_reset_forgets_the_set_points_of_the_impedance_law():
    command = gate()
    lengths, rates = np.full(4, 0.3), np.full(4, 0.2)
    command.submit(NAMES, VALID, 0.0, kind="impedance", rest_lengths=lengths, rest_rates=rates)
    command.values(0.0)
    assert command.impedance.active.all()
    command.reset()
    law = command.impedance
    assert not law.any_active
    assert np.isnan(law.rest_length).all()
    # the next l0 is not the one of before: whoever gives none is refused
    law.change({"stiffness": np.full(4, 1e3)})
    with pytest.raises(CommandRefusedError, match=r"rest length .* expected one in the first"):
        command.submit(NAMES, VALID, 0.0, kind="impedance")


def test_for_how_many_steps_nothing_changes():
    command = gate(timeout=0.125, decay_time=0.5)
    assert command.steady(1.0, 1 / 64) == 0  # nobody has told anything
    command.submit(NAMES, VALID, 1.0)
    for time, steps in [(1.0, 8), (1.0625, 4), (1.109375, 1), (1.12, 0), (1.125, 0), (1.5, 0)]:
        assert command.steady(time, 1 / 64) == steps
        for i in range(steps + 1):
            if time <= 1.125:
                np.testing.assert_array_equal(command.values(time + i / 64), VALID)
    command.submit(NAMES[:1], VALID[:1], 1.0625)
    assert command.steady(1.0625, 1 / 64) == 4  # the oldest counts


def test_muscles_that_were_never_told_anything_are_left_alone_by_a_stop():
    command = gate()
    command.submit(["muscle1"], [20.0], 0.0)
    command.estop()
    np.testing.assert_array_equal(command.values(0.0), LOW)
    assert command.kinds.tolist() == [NO_COMMAND, FORCE, NO_COMMAND, NO_COMMAND]
    assert command.stopped
    assert command.stale
    with pytest.raises(CommandRefusedError, match="emergency stop is active: reset before"):
        command.submit(NAMES, VALID, 0.1)
    assert command.last_refusal == "emergency stop is active: reset before commanding"
    command.reset()
    assert (command.last_refusal, command.last_refusal_time, command.stopped) == (
        None, None, False,
    )  # fmt: skip
    assert command.refused == 1


def test_what_is_no_command_is_told_apart():
    part = command_of(NAMES, VALID)[0]
    other = command_of(NAMES, VALID, "length")[0]
    for good in ((part,), [part], (), (part, other), [part, other]):
        check_command(good, "it")
    with pytest.raises(CardsError, match=r"it has two parts of the kind 'force'.*each kind once"):
        check_command((part, other, part), "it")
    with pytest.raises(CardsError, match=r"^a part of it .*a CommandPart"):
        check_command((part, "x"), "it")
    with pytest.raises(CardsError, match=r"it .*a tuple of CommandPart, as command_of"):
        check_command(5, "it")
    assert (part.kind, part.names, part.rest_lengths.size, part.rest_rates.size) == (
        "force", NAMES, 0, 0,
    )  # fmt: skip


def test_limits_of_each_kind_of_command():
    def limits(i, kind):
        return command_limits(MUSCLES.muscles[i], kind)

    assert limits(0, "force") == (5.0, 200.0)
    assert limits(0, "length") == (0.0, math.inf)
    assert limits(2, "excitation") == (0.0, 1.0)
    assert limits(0, "impedance") == (0.0, 200.0)
    assert limits(1, "pressure") == (0.0, MUSCLES.muscles[1].actuator.max_pressure)
    with pytest.raises(UnknownNameError, match="pressure limit of muscle 'm0'"):
        limits(0, "pressure")
    with pytest.raises(UnknownNameError, match=r"command of muscle 'm0'.*'effort'"):
        limits(0, "effort")


def test_names_that_are_no_list_are_refused():
    command = gate()
    for names in ("muscle0", 5):
        with pytest.raises(CommandRefusedError, match="expected a list of names"):
            command.submit(names, [10.0], 0.0)
    assert (command.accepted, command.refused) == (0, 2)


def test_motors_let_go_along_a_straight_line():
    robot = platform_arm()
    command = MuscleCommand(robot, timeout=0.125, decay_time=0.25)
    command.submit(list(MOTORS), [8.0, -4.0], 0.0, kind="effort")
    for time, share in [(0.125, 1.0), (0.1875, 0.75), (0.25, 0.5), (0.375, 0.0), (1.0, 0.0)]:
        assert command.values(time)[-2:].tolist() == [8.0 * share, -4.0 * share]
        assert command.kinds[-2:].tolist() == [EFFORT, EFFORT]
