"""Several boards as one robot."""

import math
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from fake_board import FakeBoard

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import ParameterError
from cards_core.formats import load
from cards_hardware.boards.layout import SUFFIX, read_layout
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.errors import HardwareError
from cards_hardware.protocol.enums import AckCode, Caps, ParameterId, State

pytestmark = pytest.mark.serial

TWO = """
robot: planar_2r
boards:
  - {name: one, node: 1, port: "{port_1}", muscles: [cable_4, cable_2], joints: [joint_2],
     impedance: {stiffness: 20000.0}}
  - {name: two, node: 2, port: "{port_2}", muscles: [cable_1, cable_3], joints: [joint_1],
     impedance: {stiffness: 20000.0}}
"""


def eventually(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.002)
    return found


def make(tmp_path, text, fakes, robot_name="planar_2r", **settings):
    robot = load(robot_name)
    file = tmp_path / f"{robot_name}{SUFFIX}"
    file.write_text(text)
    ports = ",".join(fake.port for fake in fakes)
    dynamics = make_dynamics(robot)
    layout = read_layout(file, robot, port=ports, dynamics=dynamics)
    return Hardware(robot, layout, dynamics=dynamics, **settings)


@pytest.fixture
def pair(tmp_path):
    """Two boards, which have the muscles of one arm crosswise."""
    with FakeBoard(2, 1, node=1) as one, FakeBoard(2, 1, node=2) as two:
        one.lengths[:], two.lengths[:] = [0.4, 0.2], [0.1, 0.3]
        one.positions[:], two.positions[:] = [0.22], [0.11]
        item = SimpleNamespace(one=one, two=two, woken=threading.Event(), events=[])
        item.hardware = make(
            tmp_path, TWO, (one, two), on_state=item.woken.set, on_event=item.events.append
        )
        yield item
        item.hardware.close()


def test_states_come_in_the_robot_s_order(pair):
    hardware = pair.hardware
    hardware.open()
    state = eventually(hardware.take)
    np.testing.assert_allclose(state.lengths, [0.1, 0.2, 0.3, 0.4], atol=1e-6)
    np.testing.assert_allclose(state.q, [0.11, 0.22], atol=1e-6)
    np.testing.assert_allclose(state.tensions, 10.0)
    np.testing.assert_allclose(state.qd, 0.0)
    assert state.complete
    assert state.state is State.DISARMED
    assert not state.estimated
    assert len(state.board_times) == 2
    assert state.time == max(state.board_times)


def test_commands_go_to_the_muscles_they_name(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    hardware.command("force", np.array([11.0, 22.0, 33.0, 44.0]))
    eventually(lambda: pair.one.commands and pair.two.commands)
    np.testing.assert_allclose(pair.one.commands[0][1]["tension"], [44.0, 22.0])
    np.testing.assert_allclose(pair.two.commands[0][1]["tension"], [11.0, 33.0])
    hardware.command("length", np.array([np.nan, np.nan, 0.3, np.nan]))
    eventually(lambda: len(pair.two.commands) == 2)
    assert pair.two.commands[1][0] == "CMD_IMPEDANCE"
    assert pair.two.commands[1][1]["mask"] == 0b10
    assert len(pair.one.commands) == 1


def test_set_points_go_to_the_muscles_they_name(pair):
    hardware = pair.hardware
    hardware.open()
    nan = np.nan
    with pytest.raises(HardwareError, match="not commanded"):
        hardware.impedance(*np.zeros((3, 4)))
    hardware.arm()
    with pytest.raises(HardwareError, match=r"shape \(3,\), expected \(4,\)"):
        hardware.impedance(np.zeros(3), np.zeros(4), np.zeros(4))
    hardware.impedance(
        np.array([0.1, 0.2, nan, nan]),
        np.array([0.01, 0.02, nan, nan]),
        np.array([5.0, 6, nan, nan]),
    )
    eventually(lambda: pair.one.commands and pair.two.commands)
    one, two = pair.one.commands[0][1], pair.two.commands[0][1]
    assert (one["mask"], two["mask"]) == (0b10, 0b01)
    np.testing.assert_allclose([*one["length"], *one["rate"], *one["tension"]], [0.2, 0.02, 6.0])
    np.testing.assert_allclose([*two["length"], *two["rate"], *two["tension"]], [0.1, 0.01, 5.0])


def gains_on(fake, parameter):
    return [fake.parameters[int(parameter), index] * parameter.scale for index in range(2)]


def test_gains_reach_the_board_of_their_muscle_and_stay_over_a_loss(pair):
    hardware = pair.hardware
    first = hardware.impedance_gains()
    np.testing.assert_allclose(first["stiffness"], 20_000.0)
    # before boards are there gains wait for them
    hardware.change_impedance({"stiffness": np.array([1e4, 2e4, 3e4, 4e4])})
    hardware.open()
    np.testing.assert_allclose(gains_on(pair.one, ParameterId.STIFFNESS), [4e4, 2e4])
    np.testing.assert_allclose(gains_on(pair.two, ParameterId.STIFFNESS), [1e4, 3e4])
    hardware.arm()
    before = pair.one.names().count("PARAM_SET")
    hardware.change_impedance({"damping": np.array([0.0, 0.0, 0.0, 55.5])})
    assert pair.one.names().count("PARAM_SET") == before + 1  # what differs is sent
    np.testing.assert_allclose(gains_on(pair.one, ParameterId.DAMPING), [55.5, 0.0])
    asked = hardware.impedance_gains(ask=True)
    np.testing.assert_allclose(asked["stiffness"], [1e4, 2e4, 3e4, 4e4])
    np.testing.assert_allclose(asked["damping"], [0.0, 0.0, 0.0, 55.5])
    np.testing.assert_allclose(asked["tension_floor"], first["tension_floor"])
    # a board that restarts has forgotten them
    pair.one.parameters.clear()
    pair.one.reset()
    eventually(lambda: hardware.boards[0].reconnects and hardware.boards[0].connected)
    np.testing.assert_allclose(gains_on(pair.one, ParameterId.STIFFNESS), [4e4, 2e4])
    np.testing.assert_allclose(gains_on(pair.one, ParameterId.DAMPING), [55.5, 0.0])


def test_a_length_is_a_set_point_under_the_gains_in_force(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    hardware.change_impedance({"stiffness": np.array([2e4, 0.0, 2e4, 2e4])})
    with pytest.raises(HardwareError, match=r"cable_2.*has no stiffness"):
        hardware.command("length", np.array([np.nan, 0.3, np.nan, np.nan]))
    hardware.change_impedance({"tension_floor": np.array([20.0, 21.0, 22.0, 23.0])})
    hardware.command("length", np.array([0.3, np.nan, np.nan, np.nan]))
    eventually(lambda: pair.two.commands)
    np.testing.assert_allclose(pair.two.commands[0][1]["tension"], [20.0])


@pytest.mark.parametrize(
    ("gains", "message"),
    [
        ({"stiffness": [1.0, 1.0, 1.0, 2e7]}, r"stiffness of .*cable_4' is 2e\+07; .*>= 0"),
        ({"damping": [-1.0, 0.0, 0.0, 0.0]}, "damping of muscle 'cable_1' is -1; .*>= 0"),
        ({"damping": [0.0, 0.0, math.nan, 0.0]}, "damping of muscle 'cable_3' is nan"),
        ({"tension_floor": [10.0, 10.0, 1.0, 10.0]}, "cable_3.*tension_min"),
        ({"tension_floor": [10.0, 3e3, 10.0, 10.0]}, "tension_floor of muscle 'cable_2' is 3000"),
        ({"stiffness": [1e3] * 9}, r"stiffness .*shape \(9,\), expected \(4,\): .* cable_1, "),
        ({"stiffness": [1e3] * 2}, r"stiffness .*shape \(2,\), expected \(4,\)"),
        ({"stiffness": [[1e3] * 4] * 4}, r"stiffness .*shape \(4, 4\), expected \(4,\)"),
        ({"stiffness": "x"}, "stiffness of the impedance law is .*'x'.*; expected one number"),
        ({"stifness": [1e3] * 4}, "'stifness' is not a gain .*expected stiffness, damping, ten"),
        (
            {"damping": [3e3] * 4},
            "stiffness 20000 .*damping 3000 .*make the robot swing up .* 1 ms",
        ),
        ({"stiffness": [1e7] * 4}, "stiffness 1e.07 .*make the robot swing up at home"),
    ],
)
def test_gains_out_of_range_reach_no_board(pair, gains, message):
    hardware = pair.hardware
    hardware.open()
    before = pair.one.parameters | pair.two.parameters
    with pytest.raises(ParameterError, match=message):
        hardware.change_impedance({name: np.array(row) for name, row in gains.items()})
    assert pair.one.parameters | pair.two.parameters == before


def test_gains_change_on_all_boards_or_on_none(pair):
    hardware = pair.hardware
    hardware.open()
    before = dict(pair.one.parameters), dict(pair.two.parameters)
    known = hardware.impedance_gains()
    pair.two.refuse["PARAM_SET"] = AckCode.STATE
    with pytest.raises(HardwareError, match=r"no gain changed: .*two.*refused"):
        hardware.change_impedance({"stiffness": np.full(4, 5e3)})
    assert (pair.one.parameters, pair.two.parameters) == before
    pair.two.refuse.clear()
    for name, values in hardware.impedance_gains(ask=True).items():
        np.testing.assert_array_equal(values, known[name])
    pair.two.mute = True
    eventually(lambda: not hardware.boards[1].connected)
    with pytest.raises(HardwareError, match="no gain changed: board 'two'"):
        hardware.change_impedance({"stiffness": np.full(4, 5e3)})
    assert pair.one.parameters == before[0]


def test_a_state_is_complete_when_every_board_has_sent_a_newer_one(pair):
    pair.two.rate = 50.0
    hardware = pair.hardware
    hardware.open()
    states = []
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        if (state := hardware.take()) is not None and state.complete:
            states.append(state)
        time.sleep(0.0005)
    seconds = [state.board_times[1] for state in states]
    assert len(set(seconds)) == len(seconds)
    assert len(states) < 80  # the pace of the slower board, not of the faster
    assert [s.number for s in states] == sorted({s.number for s in states})


def test_a_silent_board_leaves_states_that_are_incomplete(pair):
    hardware = pair.hardware
    hardware.open()
    eventually(hardware.take)
    pair.two.silent_types.add("STATE_FAST")

    def incomplete():
        state = hardware.take()
        return state if state is not None and not state.complete else None

    state = eventually(incomplete)
    np.testing.assert_allclose(state.lengths, [np.nan, 0.2, np.nan, 0.4], atol=1e-6)
    assert np.isnan(state.q[0])
    assert np.isfinite(state.time)
    assert np.isnan(state.board_times[1])


def test_a_sample_from_before_a_silence_of_all_makes_no_state_complete(pair):
    hardware = pair.hardware
    hardware.open()
    pair.one.mute = True
    time.sleep(0.05)
    pair.two.mute = True  # one of its samples waits for the other board now
    time.sleep(0.1)
    while hardware.take() is not None:
        pass
    pair.one.mute = False
    states, end = [], time.monotonic() + 0.1
    while time.monotonic() < end:
        states.append(hardware.take())
        time.sleep(0.001)
    assert any(state is not None for state in states)
    assert not any(state.complete for state in states if state is not None)
    pair.two.mute = False
    eventually(lambda: (state := hardware.take()) is not None and state.complete)


def test_no_board_no_state(pair):
    hardware = pair.hardware
    assert hardware.take() is None
    hardware.open()
    eventually(hardware.take)
    for fake in (pair.one, pair.two):
        fake.silent_types.add("STATE_FAST")
    time.sleep(0.2)
    hardware.take()
    assert hardware.take() is None


def test_the_node_is_woken_by_states_and_by_changes(pair):
    hardware = pair.hardware
    hardware.open()
    pair.woken.clear()
    assert pair.woken.wait(5.0)
    for fake in (pair.one, pair.two):
        fake.silent_types.add("STATE_FAST")
    time.sleep(0.1)
    pair.woken.clear()
    pair.one.state = State.FAULT  # told by the heartbeat now
    assert pair.woken.wait(5.0)
    eventually(lambda: "fault" in hardware.status().problem)


def test_all_boards_are_armed_or_none(pair):
    hardware = pair.hardware
    hardware.open()
    pair.two.refuse["STATE_REQUEST"] = 4
    with pytest.raises(HardwareError, match=r"board 'two'.*arm: STATE_REQUEST: refused"):
        hardware.arm()
    assert not hardware.status().armed
    eventually(lambda: pair.one.state == State.DISARMED)
    with pytest.raises(HardwareError, match="not commanded: the robot is not armed"):
        hardware.command("force", np.full(4, 20.0))
    assert not pair.one.commands


def test_boards_of_different_calibrations_are_not_armed(pair):
    """As after a calibration that only one board saved, or with a board from the shelf."""
    hardware = pair.hardware
    hardware.open()
    pair.one.parameters[ParameterId.CALIBRATION, 0] = 7
    with pytest.raises(HardwareError, match=r"different calibrations \(one: 7, two: 0; expected"):
        hardware.arm()
    assert not hardware.status().armed
    assert pair.one.state == pair.two.state == State.DISARMED
    pair.two.parameters[ParameterId.CALIBRATION, 0] = 7
    hardware.arm()
    assert hardware.status().armed


def test_boards_are_told_what_they_do_without_the_host_that_armed(tmp_path):
    text = TWO.replace("boards:", "unattended: {hold: 60.0, lowering_rate: 0.02}\nboards:", 1)
    with FakeBoard(2, 1, node=1) as one, FakeBoard(2, 1, node=2) as two:
        hardware = make(tmp_path, text, (one, two))
        hardware.open()
        for board in (one, two):
            assert board.parameters[ParameterId.UNATTENDED_HOLD, 0] == 60_000
            assert board.parameters[ParameterId.UNATTENDED_RAMP, 0] == 5_000
            assert board.parameters[ParameterId.LOWERING_RATE, 0] == 200
        hardware.close()


def test_a_board_that_holds_the_robot_keeps_its_times_and_is_not_armed(pair):
    """It refuses others while its drives are on; they are due as the limits are."""
    take = pair.one._on_param_set

    def held(values, frame):
        if values["id"] == ParameterId.UNATTENDED_RAMP:
            pair.one.ack(frame, AckCode.STATE)
        else:
            take(values, frame)

    pair.one._on_param_set = held
    pair.hardware.open()
    with pytest.raises(HardwareError, match=r"board 'one'.*takes no limits in state"):
        pair.hardware.arm()


def test_older_firmware_is_told_from_a_wrong_request(pair):
    pair.two.refuse["PARAM_SET"] = AckCode.UNKNOWN
    with pytest.raises(HardwareError, match=r"board 'two'.*firmware is older than this program"):
        pair.hardware.open()


def test_a_board_that_leaves_while_the_next_is_armed_leaves_none_armed(pair):
    hardware = pair.hardware
    hardware.open()
    arm = pair.two._on_state_request

    def slow(values, frame):
        pair.one.state = State.RELAX
        eventually(lambda: not hardware.boards[0].armed)
        arm(values, frame)

    pair.two._on_state_request = slow
    # on a busy machine a late answer is asked for again, and the token was used
    with pytest.raises(HardwareError, match=r"not armed|token wrong, used or outdated"):
        hardware.arm()
    assert not hardware.status().armed
    assert not hardware.boards[1].armed
    eventually(lambda: pair.two.state == State.DISARMED)


def test_if_one_board_is_lost_none_is_commanded_any_more(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    hardware.command("force", np.full(4, 20.0))
    pair.two.mute = True
    eventually(lambda: not hardware.status().armed)
    with pytest.raises(HardwareError, match="not commanded: board 'two': lost"):
        hardware.command("force", np.full(4, 20.0))
    pair.two.mute = False
    eventually(lambda: hardware.status().connected)
    assert not hardware.status().armed


def test_an_emergency_stop_of_one_board_stops_all(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    hardware.command("force", np.full(4, 50.0))
    eventually(lambda: pair.one.state == pair.two.state == State.ACTIVE)
    pair.one.state = State.ESTOP  # its button
    eventually(lambda: pair.two.state == State.ESTOP)
    assert not hardware.status().armed
    hardware.clear()
    assert pair.one.state == pair.two.state == State.DISARMED


def test_an_emergency_stop_of_one_board_stops_those_that_are_not_commanded(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    hardware.relax()
    pair.two.state = State.ESTOP
    eventually(lambda: pair.one.state == State.ESTOP)
    hardware.clear()
    assert pair.one.state == pair.two.state == State.DISARMED
    time.sleep(0.1)  # what was cleared stays so
    assert pair.one.state == pair.two.state == State.DISARMED
    hardware.arm()
    assert hardware.status().armed


def test_a_stop_while_boards_are_cleared_is_not_lost(pair):
    hardware = pair.hardware
    hardware.open()
    hardware.estop()
    eventually(lambda: pair.one.state == pair.two.state == State.ESTOP)
    errors = []

    def clear():
        try:
            hardware.clear()
        except HardwareError as error:
            errors.append(str(error))

    lock = hardware.boards[0]._connection.lock
    with lock:  # as while a session begins
        clearing = threading.Thread(target=clear)
        clearing.start()
        time.sleep(0.1)
        hardware.estop()
    clearing.join()
    assert "emergency stop while" in errors[0]
    eventually(lambda: pair.one.state == pair.two.state == State.ESTOP)
    with pytest.raises(HardwareError, match="emergency stop"):
        hardware.arm()
    hardware.clear()
    hardware.arm()


def test_estop_reaches_all_boards(pair):
    hardware = pair.hardware
    hardware.estop()
    assert hardware.estop_pending
    hardware.open()
    assert not hardware.estop_pending
    eventually(lambda: pair.one.state == pair.two.state == State.ESTOP)
    with pytest.raises(HardwareError, match="emergency stop"):
        hardware.arm()
    hardware.clear()
    hardware.arm()
    hardware.relax()
    eventually(lambda: pair.one.state == pair.two.state == State.RELAX)
    hardware.disarm()


def test_two_ports_that_lead_to_boards_of_one_serial_number(pair):
    pair.two.uid = pair.one.uid
    with pytest.raises(HardwareError, match=r"'one' at .*'two' at .*same serial number"):
        pair.hardware.open()
    assert not any(board.connected for board in pair.hardware.status().boards)


def test_if_one_board_does_not_open_all_are_closed(pair):
    pair.two.muscles = 1
    with pytest.raises(HardwareError, match=r"'two'.*has 1 muscles"):
        pair.hardware.open()
    status = pair.hardware.status()
    assert not status.connected
    assert not any(board.connected for board in status.boards)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("excitation", np.zeros(4), "no excitation commands .*force, length or pressure"),
        ("force", np.zeros(3), r"shape \(3,\), expected \(4,\)"),
        ("pressure", np.zeros(4), "takes no pressures"),
        ("length", np.full(4, 5000.0), r"board 'one': CMD_IMPEDANCE\.length"),
    ],
)
def test_commands_that_cannot_be(pair, kind, values, message):
    hardware = pair.hardware
    hardware.open()
    hardware.arm()
    with pytest.raises(HardwareError, match=message):
        hardware.command(kind, values)
    assert not pair.one.commands


# All boards or none -----------------------------------------------------------------------------


def armed(pair):
    pair.hardware.open()
    pair.hardware.arm()
    return pair.hardware


def told(fake):
    return [values["tension"].tolist() for name, values in fake.commands if name == "CMD_TENSION"]


def test_a_command_of_which_one_part_cannot_be_sent_is_sent_to_nobody(pair):
    hardware = armed(pair)
    with pytest.raises(HardwareError, match="board 'two': CMD_TENSION"):
        # board 'one' comes first, and its part is good
        hardware.command("force", np.array([1e6, 20.0, 20.0, 20.0]))
    hardware.command("force", np.full(4, 30.0))
    eventually(lambda: told(pair.one) and told(pair.two))
    assert told(pair.one) == told(pair.two) == [[30.0, 30.0]]


def test_when_one_board_relaxes_no_other_is_commanded_any_more(pair):
    hardware = armed(pair)
    hardware.command("force", np.full(4, 30.0))
    eventually(lambda: told(pair.one) and told(pair.two))
    pair.two.state = State.RELAX
    eventually(lambda: not hardware.status().armed)
    with pytest.raises(HardwareError, match="not commanded"):
        hardware.command("force", np.array([np.nan, 40.0, np.nan, 40.0]))  # of board 'one' alone
    assert told(pair.one) == [[30.0, 30.0]]
    assert hardware.status().commands.sent == 1


def test_a_board_that_cannot_listen_at_the_last_moment_keeps_the_command_from_all(pair):
    hardware = armed(pair)
    pair.hardware.boards[1].link.close_gate()  # as the thread of lines does; nobody was told yet
    with pytest.raises(HardwareError, match="board 'two': not armed; no board was told anything"):
        hardware.command("force", np.full(4, 30.0))
    with pytest.raises(HardwareError, match="board 'two': not armed; no board was told anything"):
        hardware.impedance(np.full(4, 0.2), np.zeros(4), np.full(4, 30.0))
    assert hardware.status().commands.withheld == 2
    pair.hardware.disarm()
    pair.hardware.arm()
    hardware.command("force", np.full(4, 50.0))
    eventually(lambda: told(pair.one) and told(pair.two))
    assert told(pair.one) == told(pair.two) == [[50.0, 50.0]]


# Without joint sensors ---------------------------------------------------------------------------


def test_joints_are_estimated_where_there_are_no_sensors(tmp_path):
    text = """
robot: planar_2r
boards:
  - {name: one, node: 1, port: "{port}", muscles: [cable_1, cable_2, cable_3, cable_4]}
"""
    with FakeBoard(4, 0) as fake:
        hardware = make(tmp_path, text, (fake,))
        dynamics = make_dynamics(hardware.robot)
        truth = dynamics.tree.home + np.array([0.1, -0.15])
        fake.lengths[:] = dynamics.update(truth, np.zeros(2)).muscle_lengths
        hardware.open()
        try:

            def complete():
                state = hardware.take()
                return state if state is not None and state.complete else None

            state = eventually(complete)
            assert state.estimated
            np.testing.assert_allclose(state.q, truth, atol=1e-3)
            assert hardware.status().problem == ""
            fake.lengths[:] = dynamics.update(truth + 0.002, np.zeros(2)).muscle_lengths

            def arrived():
                state = complete()
                return state is not None and np.allclose(state.q, truth + 0.002, atol=5e-4)

            eventually(arrived)
        finally:
            hardware.close()


def test_lengths_that_fit_no_pose_are_a_problem_not_a_state(tmp_path):
    text = """
robot: planar_2r
boards:
  - {name: one, node: 1, port: "{port}", muscles: [cable_1, cable_2, cable_3, cable_4]}
"""
    with FakeBoard(4, 0) as fake:
        hardware = make(tmp_path, text, (fake,))
        fake.lengths[:] = [9.0, 0.1, 5.0, 0.1]
        hardware.open()
        try:
            state = eventually(hardware.take)
            assert not state.complete
            assert np.isnan(state.q).all()
            eventually(lambda: "cannot be estimated" in hardware.status().problem)
        finally:
            hardware.close()


# Passive muscles ---------------------------------------------------------------------------------


def test_passive_muscles_have_lengths_from_the_joints_and_take_no_commands(tmp_path):
    text = """
robot: wrap_elbow
boards:
  - {name: one, node: 1, port: "{port}", muscles: [biceps, triceps], joints: [elbow]}
"""
    with FakeBoard(2, 1) as fake:
        fake.caps |= Caps.PRESSURE
        hardware = make(tmp_path, text, (fake,), "wrap_elbow")
        fake.positions[:] = [0.6]
        hardware.open()
        try:
            state = eventually(hardware.take)
            dynamics = make_dynamics(hardware.robot)
            expected = dynamics.update(np.array([0.6]), np.zeros(1)).muscle_lengths
            assert state.lengths[2] == pytest.approx(expected[2], abs=1e-6)
            assert np.isnan(state.tensions[2])
            hardware.arm()
            with pytest.raises(HardwareError, match=r"passive muscles cannot be .*capsule"):
                hardware.command("force", np.full(3, 20.0))
            hardware.command("force", np.array([20.0, 30.0, np.nan]))
            eventually(lambda: fake.commands)
        finally:
            hardware.close()
