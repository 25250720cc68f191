"""The host of real boards: stamps, states, what is sent when a command comes, the log."""

import numpy as np
import pytest
from fake_hardware import FakeHardware

from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.loop.host import Host, SteppedHost
from cards_core.muscles.command import (
    CommandPart,
    CommandRefusedError,
    GateCondition,
    command_of,
)
from cards_hardware.boards.layout import find_layout, read_layout
from cards_hardware.bridge.board_host import LEAST_ADVANCE, BoardHost, SampleClock
from cards_hardware.protocol.enums import State

DAY = 86_400 * 10**9

ROBOT = load("planar_2r")
NAMES = [muscle.name for muscle in ROBOT.muscles]


class Clocks:
    """A monotonic clock, and a system clock that can be set."""

    def __init__(self):
        self.now, self.offset = 5 * DAY, 20_000 * DAY

    def ros(self):
        return self.now + self.offset

    def monotonic(self):
        return self.now


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def make(clocks, tmp_path):
    """Makes hosts of boards as a layout has them, armed."""
    hosts = []

    def make(layout="planar_2r"):
        layout = read_layout(layout, ROBOT, port="/dev/x")
        hardware = FakeHardware(ROBOT, layout, on_state=lambda: None, on_event=lambda _: None)
        hardware.state = State.ARMED
        clock = SampleClock(clocks.ros, clocks.monotonic)
        log = tmp_path / "hardware.npz"
        host = BoardHost(ROBOT, layout, hardware, command_timeout=0.1, clock=clock, log_path=log)
        hosts.append(host)
        return host

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def host(make):
    return make()


def sampled(host, clocks, *, complete=True):
    """Let the boards measure now; return whether it makes a state."""
    host.hardware.tick(clocks.now * 1e-9, complete=complete)
    return host.read(host.hardware.take())


def sent(host):
    """Return what was sent to the boards, NaN for muscles that were told nothing."""
    return [values.tolist() for _, values in host.hardware.commands]


# Stamps ---------------------------------------------------------------------------------------


@pytest.mark.serial
def test_stamps_are_ros_times_of_the_samples(clocks):
    clock = SampleClock(clocks.ros, clocks.monotonic)
    sampled = clocks.now - 3_000_000
    stamp = clock.stamp(sampled * 1e-9)
    assert abs(stamp - (sampled + clocks.offset)) < 1000  # a float of five days, [ns]
    assert abs(clock.age(sampled * 1e-9) - 0.003) < 1e-6


@pytest.mark.serial
def test_samples_that_are_not_newer_have_none(clocks):
    clock = SampleClock(clocks.ros, clocks.monotonic)
    first = clock.stamp(1.000)
    assert clock.stamp(1.000) is None
    assert clock.stamp(0.998) is None
    assert clock.stamp(1.0 + 0.5e-9 * LEAST_ADVANCE) is None
    assert clock.stamp(1.002) - first == 2_000_000


@pytest.mark.serial
def test_a_clock_that_is_set_does_not_move_the_stamps_until_adjusted(clocks):
    clock = SampleClock(clocks.ros, clocks.monotonic)
    first = clock.stamp(1.0)
    clocks.offset -= 10**9
    assert clock.stamp(1.002) - first == 2_000_000
    assert clock.error == -1.0
    clock.adjust()
    assert clock.error == 0.0
    assert clock.stamp(1.004) - first == 4_000_000 - 10**9  # and time may go back then


# States ---------------------------------------------------------------------------------------


def test_boards_tell_the_time_so_the_host_has_no_step(host):
    assert isinstance(host, Host)
    assert not isinstance(host, SteppedHost)
    with pytest.raises(CardsError, match="no state is known yet"):
        _ = host.state


def test_a_state_is_what_the_boards_measured(host, clocks):
    assert sampled(host, clocks)
    state = host.state
    assert abs(host.stamp - clocks.ros()) < 1000
    assert np.array_equal(state.q, host.hardware.q)
    assert np.array_equal(state.muscle_lengths, host.hardware.lengths)
    values = dict(zip(host.actuator_names, state.actuators, strict=True))
    assert values[f"{NAMES[3]}/current"] == 0.5
    assert values[f"{NAMES[3]}/housing_temperature"] == 30.0
    assert np.isnan(values[f"{NAMES[3]}/winding_temperature"])  # these boards do not estimate it
    assert state.temperatures.tolist() == [30.0] * 4
    before = host.stamp
    clocks.now += LEAST_ADVANCE // 2
    assert not sampled(host, clocks)  # not newer
    clocks.now += 2_000_000
    assert not sampled(host, clocks, complete=False)
    assert (host.stamp, host.states, host.skipped) == (before, 1, 2)
    assert host.state.time == state.time


# Commands -------------------------------------------------------------------------------------


def test_a_whole_command_goes_out_as_it_came_in_any_order(host):
    host.submit(command_of(NAMES, [11.0, 12.0, 13.0, 14.0]))
    host.submit(command_of(NAMES[::-1], [11.0, 12.0, 13.0, 14.0]))
    assert sent(host) == [[11.0, 12.0, 13.0, 14.0], [14.0, 13.0, 12.0, 11.0]]


def test_a_partial_command_addresses_its_muscles_and_repeats_nothing(host, clocks):
    host.submit(command_of(NAMES, [50.0] * 4))
    clocks.now += 10_000_000
    host.submit(command_of([NAMES[2], NAMES[0]], [30.0, 20.0]))
    assert np.array_equal(sent(host)[-1], [20.0, np.nan, 30.0, np.nan], equal_nan=True)
    # also when the others have long been without a command
    clocks.now += 8 * 10**9
    host.submit(command_of([NAMES[1]], [60.0]))
    assert np.array_equal(sent(host)[-1], [np.nan, 60.0, np.nan, np.nan], equal_nan=True)
    assert host.stale
    assert host.gate.stale_muscles == (NAMES[0], NAMES[2], NAMES[3])


def test_commands_age_although_no_states_come(host, clocks):
    host.submit(command_of(NAMES, [50.0] * 4))
    assert not host.stale
    clocks.now += 200_000_000
    assert host.stale
    assert len(sent(host)) == 1


def test_limits_of_the_boards_count(make, tmp_path):
    file = tmp_path / "planar_2r.boards.yaml"
    file.write_text(
        find_layout("planar_2r").read_text().replace("15.0}", "15.0, tension_max: 60}")
    )
    host = make(file)
    with pytest.raises(CommandRefusedError, match=r"61 N, expected 10 \.\. 60 N"):
        host.submit(command_of(NAMES, [20.0, 61.0, 20.0, 20.0]))
    assert not np.isfinite(host.gate._times).any()
    assert sent(host) == []


STIFF = """
robot: planar_2r
boards:
  - name: arm
    node: 1
    port: /dev/x
    muscles: [cable_1, cable_2, cable_3, cable_4]
    joints: [joint_1, joint_2]
    impedance: {stiffness: 5000.0, tension_floor: 12.0}
    muscle_impedance: {cable_4: {stiffness: 0.0, damping: 3.0}}
"""


def set_points(names, lengths, rates, tensions):
    columns = (np.asarray(values, dtype=float) for values in (tensions, lengths, rates))
    return (CommandPart("impedance", names, *columns),)


@pytest.fixture
def stiff(make, tmp_path):
    file = tmp_path / "planar_2r.boards.yaml"
    file.write_text(STIFF)
    return make(file)


def test_set_points_reach_the_muscles_they_name(stiff):
    stiff.submit(set_points(["cable_3", "cable_1"], [0.3, 0.1], [0.03, 0.01], [30.0, 15.0]))
    nan = np.nan
    ((kind, told),) = stiff.hardware.commands
    assert kind == "impedance"
    np.testing.assert_array_equal(
        told, [[0.1, nan, 0.3, nan], [0.01, nan, 0.03, nan], [15.0, nan, 30.0, nan]]
    )
    assert stiff.commands == 1


def test_what_is_left_out_of_set_points_stays(stiff):
    stiff.submit(set_points(["cable_1", "cable_2"], [0.1, 0.2], [], []))
    np.testing.assert_array_equal(  # at first no rate, and the floor of the boards
        stiff.hardware.commands[-1][1][:, :2], [[0.1, 0.2], [0.0, 0.0], [12.0, 12.0]]
    )
    stiff.submit(set_points(["cable_1"], [], [np.nan], [40.0]))
    np.testing.assert_array_equal(stiff.hardware.commands[-1][1][:, 0], [0.1, 0.0, 40.0])
    stiff.submit(set_points(["cable_4"], [], [0.01], []))  # no stiffness: needs no length
    np.testing.assert_array_equal(stiff.hardware.commands[-1][1][:, 3], [0.0, 0.01, 12.0])
    stiff.reset()  # nothing of before acts after the next arming
    with pytest.raises(CommandRefusedError, match=r"rest length of muscle 'cable_1' is nan"):
        stiff.submit(set_points(["cable_1"], [], [], [40.0]))


def test_set_points_that_are_refused_do_not_go_out(stiff):
    for bad in (
        set_points(["cable_1"], [np.inf], [], []),
        set_points(["cable_1"], [0.1], [np.inf], []),
        set_points(["cable_1"], [0.1], [], [1e6]),
        set_points(["cable_1"], [0.1, 0.2], [], []),
        set_points(["cable_9"], [0.1], [], []),
    ):
        with pytest.raises(CommandRefusedError):
            stiff.submit(bad)
    stiff.hardware.state = State.DISARMED
    with pytest.raises(CommandRefusedError, match="takes no commands: DISARMED"):
        stiff.submit(set_points(["cable_1"], [0.1], [], []))
    stiff.hardware.state = State.ARMED
    stiff.estop()
    with pytest.raises(CommandRefusedError, match="emergency stop is active"):
        stiff.submit(set_points(["cable_1"], [0.1], [], []))
    assert not stiff.hardware.commands


def test_gains_change_on_the_boards_and_in_the_gate_or_in_neither(stiff):
    host = stiff
    law, wanted = host.gate.impedance, np.array([1e4, 2e4, 3e4, 4e4])
    host.change({"impedance_stiffness": wanted, "elsewhere": 1.0})
    np.testing.assert_array_equal(law.stiffness, wanted)
    (sent_gains,) = host.hardware.gains
    assert list(sent_gains) == ["stiffness"]
    np.testing.assert_array_equal(sent_gains["stiffness"], wanted)
    with pytest.raises(ParameterError, match="damping of muscle 'cable_2' is -1"):
        host.change({"impedance_damping": np.array([0.0, -1.0, 0.0, 0.0])})
    assert len(host.hardware.gains) == 1
    host.hardware.fail["change_impedance"] = "board 'arm': refused"
    with pytest.raises(ParameterError, match="impedance law: board 'arm': refused"):
        host.change({"impedance_stiffness": np.zeros(4)})
    np.testing.assert_array_equal(law.stiffness, wanted)

    def refuse(_gains):
        raise ParameterError("no board drives it")

    host.hardware.change_impedance = refuse
    with pytest.raises(ParameterError, match="impedance law: no board drives it"):
        host.change({"impedance_stiffness": np.zeros(4)})
    np.testing.assert_array_equal(law.stiffness, wanted)


def test_boards_have_no_excitation(host):
    with pytest.raises(CommandRefusedError, match="excitation"):
        host.submit(command_of(NAMES, [0.5] * 4, "excitation"))
    assert sent(host) == []


def test_what_boards_do_not_take_is_refused(host):
    host.hardware.state = State.DISARMED
    with pytest.raises(CommandRefusedError, match="takes no commands: DISARMED"):
        host.submit(command_of(NAMES, [50.0] * 4))
    assert (host.commands, sent(host)) == (0, [])


def test_an_emergency_stop_reaches_boards_and_gate(host):
    host.hardware.opened = True
    host.estop()
    assert host.hardware.state == State.ESTOP
    with pytest.raises(CommandRefusedError, match="emergency stop"):
        host.submit(command_of(NAMES, [50.0] * 4))
    host.reset()
    assert not host.gate.stopped
    assert host.hardware.state == State.ESTOP  # the boards have a latch of their own


# Log ------------------------------------------------------------------------------------------


def test_the_log_has_the_columns_of_all_hosts_and_those_of_boards(host, clocks):
    host.active = True
    sampled(host, clocks)
    clocks.now += 3_000_000
    host.record()
    host.submit(command_of(NAMES, [50.0] * 4))
    clocks.now += 200_000_000
    sampled(host, clocks)
    host.record()
    path = host.log.path
    host.close()
    with np.load(path) as log:
        assert log["muscle_names"].tolist() == NAMES
        assert log["actuator_names"][0] == f"{NAMES[0]}/current"
        assert np.array_equal(log["actuators"][1], [0.5, np.nan, 30.0] * 4, equal_nan=True)
        assert log["gate"].tolist() == [GateCondition.OBEYING, GateCondition.WATCHDOG]
        assert log["board_state"].tolist() == [State.ARMED, State.ACTIVE]
        assert log["active"].tolist() == [1.0, 1.0]
        assert np.allclose(log["age"], [0.003, 0.0], atol=1e-6)
    assert host.ages.summary().count == 2
