"""What an observer saw is judged: nothing to say of a good robot, something of every bad one."""

from dataclasses import replace

import numpy as np
import pytest

from cards_bringup.soak.judge import (
    BoardSample,
    Seen,
    command_within_limits,
    count_missed,
    judge_board,
    judge_topics,
    memory_growth,
    missing_rows,
)

LOW, HIGH = np.array([10.0, 10.0]), np.array([100.0, 100.0])
TIMEOUT, PERIOD = 0.1, 0.004


def host(*, commands_until=np.inf, obeys=TIMEOUT, seconds=3.0, delay=0.02, valid=True):
    """Return what is seen of a host that obeys a command for so long, [s]."""
    stamps = np.round(np.arange(1, round(seconds / PERIOD)) * PERIOD, 9)
    answered = stamps[stamps <= commands_until]
    accepted = answered + delay  # of the command that answers this state
    newest = np.array([accepted[accepted <= t].max(initial=-np.inf) for t in stamps])
    pulled = stamps - newest < obeys
    tensions = np.where(pulled[:, None], 50.0, LOW)
    return Seen(
        100.0 + stamps,
        stamps,
        tensions,
        100.0 + answered + delay,
        answered,
        np.full(len(answered), valid),
        np.zeros(len(answered), dtype=int),
    )


def judge(seen):
    return judge_topics(seen, LOW, HIGH, timeout=TIMEOUT, period=PERIOD)


def invariants(found):
    return {violation.invariant for violation in found.violations}


def test_a_good_host():
    found = judge(host())
    assert found.violations == []
    assert found.releases == []


def test_a_watchdog_in_time_is_a_release():
    """The controller ends at 1 s: the last command is accepted at 1.02 s and obeyed to 1.12 s."""
    found = judge(host(commands_until=1.0))
    assert found.violations == []
    (release,) = found.releases
    assert release.delay == pytest.approx(0.12, abs=PERIOD + 1e-9)
    assert release.wall == pytest.approx(101.12, abs=PERIOD + 1e-9)


def test_a_watchdog_that_comes_too_late():
    found = judge(host(commands_until=1.0, obeys=0.25))
    assert invariants(found) == {"no stale command"}
    assert found.violations[0].wall == pytest.approx(101.212, abs=PERIOD)


def test_a_watchdog_that_never_comes():
    assert invariants(judge(host(commands_until=1.0, obeys=np.inf))) == {"no stale command"}


def test_commands_that_may_not_be_obeyed_are_no_commands():
    assert invariants(judge(host(valid=False))) == {"no stale command"}


def test_a_late_command_of_an_old_state_does_not_move_the_robot():
    """An old stamp that comes now is not fresh: a host that obeys it is found out."""
    seen = host(commands_until=1.0, obeys=np.inf)
    late = np.arange(101.1, 103.0, 0.01)
    seen.command_wall = np.append(seen.command_wall, late)
    seen.command_stamp = np.append(seen.command_stamp, np.full(len(late), 0.5))
    seen.command_valid = np.append(seen.command_valid, np.full(len(late), True))
    seen.command_missed = np.append(seen.command_missed, np.zeros(len(late), dtype=int))
    assert invariants(judge(seen)) == {"no stale command"}


@pytest.mark.parametrize("value", [9.0, 101.0, np.nan, np.inf])
def test_a_tension_out_of_its_limits(value):
    seen = host()
    seen.tensions[100, 1] = value
    assert invariants(judge(seen)) == {"tensions within limits"}


def test_a_host_that_starts_again_owes_nothing_to_its_former_life():
    """Commands of the first life are no commands of the second, although stamped later."""
    first, second = host(), host(commands_until=0.0)
    second.tensions[10:20] = 50.0
    both = Seen(
        np.append(first.state_wall, second.state_wall + 10.0),
        np.append(first.state_stamp, second.state_stamp),
        np.vstack([first.tensions, second.tensions]),
        first.command_wall,
        first.command_stamp,
        first.command_valid,
        first.command_missed,
    )
    assert len(both.lives()) == 2
    found = judge(both)
    assert invariants(found) == {"no stale command"}
    assert found.violations[0].wall == pytest.approx(110.0 + 11 * PERIOD)


def board(stages, *, step=1000, command_until=50, force=50.0):
    """Return samples of a board: commands until a tick, then (state, ticks) in a row."""
    rows = [("ACTIVE", 1000 + n) for n in range(command_until)]
    rows += [(state, 1000 + command_until - 1) for state, ticks in stages for _ in range(ticks)]
    return [
        BoardSample(step * n * 1e-6, step * n, state, command, np.full(2, force))
        for n, (state, command) in enumerate(rows)
    ]


def test_a_board_whose_watchdogs_act_in_time():
    found = judge_board(
        board([("ACTIVE", 23), ("HOLD", 76), ("RELAX", 900), ("DISARMED", 99)]), HIGH
    )
    assert found.violations == []
    (release,) = found.releases
    assert release.delay == pytest.approx(0.1, abs=2e-3)


def test_a_board_that_relaxes_has_no_command_any_more():
    """RELAX says that none is in force: the time since the last one counts all the same."""
    samples = [
        replace(one, command=0 if one.state == "RELAX" else one.command)
        for one in board([("ACTIVE", 23), ("HOLD", 76), ("RELAX", 100)])
    ]
    (release,) = judge_board(samples, HIGH).releases
    assert release.delay == pytest.approx(0.1, abs=2e-3)


@pytest.mark.parametrize(
    "stages",
    [
        [("ACTIVE", 30), ("HOLD", 70)],
        [("ACTIVE", 23), ("HOLD", 120)],
        [("ACTIVE", 23), ("HOLD", 76), ("RELAX", 950)],
    ],
)
def test_a_board_whose_watchdog_is_late(stages):
    assert invariants(judge_board(board(stages), HIGH)) == {"watchdog of the board"}


def test_commands_that_the_observer_missed():
    """A host may find a publisher before the observer does: the first number tells."""
    seen = host()
    kept = seen.command_stamp > 1.0
    late = Seen(
        seen.state_wall,
        seen.state_stamp,
        seen.tensions,
        seen.command_wall[kept],
        seen.command_stamp[kept],
        seen.command_valid[kept],
        seen.command_missed[kept],
    )
    assert invariants(judge(late)) == {"no stale command"}
    late.command_missed[0] = np.count_nonzero(~kept) // 2  # every second state was answered
    assert judge(late).violations == []
    late.command_missed[0] -= 60  # 120 periods are more than the host may go on
    assert invariants(judge(late)) == {"no stale command"}


def test_what_a_stopped_controller_sends_when_it_goes_on_hides_no_release():
    """It answers the states that it had not read, two seconds late."""
    seen = host(commands_until=1.0)
    late = np.arange(1.004, 1.1, PERIOD)
    seen.command_wall = np.append(seen.command_wall, np.full(len(late), 102.9))
    seen.command_stamp = np.append(seen.command_stamp, late)
    seen.command_valid = np.append(seen.command_valid, np.full(len(late), True))
    seen.command_missed = np.append(seen.command_missed, np.zeros(len(late), dtype=int))
    found = judge(seen)
    assert found.violations == []
    (release,) = found.releases
    assert release.delay == pytest.approx(0.12, abs=PERIOD + 1e-9)


def test_missed_messages_are_counted_for_each_publisher():
    due = set()
    # one publisher from its third message on; another one from its first on
    numbers = [3, 4, 5, 1, 6, 2, 7, 3]
    assert [count_missed(due, n) for n in numbers] == [2, 0, 0, 0, 0, 0, 0, 0]
    numbers = [601, 602, 605, 4, 606, 3000]  # a gap; the second one goes on; a large gap
    assert [count_missed(due, n) for n in numbers] == [500, 0, 2, 0, 0, 500]
    assert count_missed(due, 9) == 8  # a third one


def test_a_board_that_pulls_too_much():
    over = board([("ACTIVE", 20)], force=124.0)
    assert invariants(judge_board(over, HIGH)) == {"tensions within limits"}
    assert invariants(judge_board(board([("ACTIVE", 5)], force=np.nan), HIGH)) == {
        "tensions within limits"
    }
    unknown = board([("DISARMED", 5)], command_until=0, force=np.nan)
    assert judge_board(unknown, HIGH).violations == []


def test_a_board_may_overshoot_and_lets_go_of_what_is_too_much():
    assert judge_board(board([("ACTIVE", 20)], force=119.0), HIGH).violations == []
    samples = board([("ACTIVE", 20)])
    short = [replace(s, tension=np.full(2, 130.0)) if i < 9 else s for i, s in enumerate(samples)]
    assert judge_board(short, HIGH).violations == []


def test_commands_on_their_way_to_a_board():
    assert command_within_limits(1.0, np.array([0.0, 100.0]), HIGH) == []
    for value in (100.1, -0.1, np.nan):
        (found,) = command_within_limits(1.0, np.array([50.0, value]), HIGH)
        assert found.invariant == "tensions within limits"


def test_a_board_that_restarts_begins_anew():
    again = [
        BoardSample(1.0 + one.wall, one.t, "DISARMED", 0, one.tension)
        for one in board([], step=1000)
    ]
    assert judge_board(board([("ACTIVE", 20)]) + again, HIGH).violations == []


def test_rows_of_a_log():
    times = 0.001 * np.arange(1, 1025)
    assert missing_rows(times, 0.001, 1.2, 256) == ""  # the block of 1025 .. 1200 was not full
    assert "1024 rows (expected: 1280 at least" in missing_rows(times, 0.001, 1.3, 256)
    assert missing_rows(times, 0.001, 1.024, 1) == ""
    assert "rows" in missing_rows(times, 0.001, 1.2, 1)
    assert "are 0.002 s apart" in missing_rows(np.delete(times, 500), 0.001, 1.0, 256)


def test_memory():
    t = np.arange(0.0, 100.0, 0.5)
    flat = [(x, 100.0 - 50.0 * (x < 25.0)) for x in t]  # starting takes memory
    assert memory_growth(flat, settled=20.0) == pytest.approx(0.0)
    leak = [(x, 100.0 + x) for x in t]
    assert memory_growth(leak, settled=0.0) == pytest.approx(67.5, abs=2.0)
    assert memory_growth(leak[:10], settled=0.0) == 0.0


def released(seen, *, begin, end, recovered):
    """Return what is said of a controller that was killed, its fault from begin to end."""
    from cards_bringup.soak.plan import Fault
    from cards_bringup.soak.records import FaultRecord
    from cards_bringup.soak.ros_system import RosSystem

    system = RosSystem.__new__(RosSystem)
    fault = Fault(0.0, "kill", "controller", end - begin, 0)
    system.records = [FaultRecord(fault, begin, end, recovered=recovered)]
    system.violations = []
    found = judge(seen)
    system.assign(found.releases)
    system._check_releases(found.at_rest)
    return found, [violation.invariant for violation in system.violations]


def test_a_release_counts_though_the_next_controllers_first_commands_were_missed():
    """The observer hears the new controller late: it may have answered all states between."""
    seen = host(commands_until=1.0)
    again = np.array([2.5])
    seen = replace(
        seen,
        command_wall=np.append(seen.command_wall, 100.0 + again),
        command_stamp=np.append(seen.command_stamp, again),
        command_valid=np.append(seen.command_valid, True),
        command_missed=np.append(seen.command_missed, 400),
    )
    found, said = released(seen, begin=101.0, end=101.6, recovered=0.9)
    assert found.releases == []  # when the last command was is not known
    assert said == []


def test_a_host_that_never_lets_go_of_its_muscles():
    _, said = released(host(), begin=101.0, end=101.6, recovered=0.9)
    assert said == ["safe state"]
