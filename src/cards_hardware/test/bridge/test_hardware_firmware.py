"""`Hardware` with the firmware itself: host build, plant, and a cable that can be pulled."""

import contextlib
import os
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cards_core.dynamics.interface import make_dynamics
from cards_core.errors import CardsError, ParameterError
from cards_core.formats import load
from cards_core.muscles.command import CommandPart, CommandRefusedError
from cards_hardware.boards.layout import SUFFIX, find_layout, read_layout
from cards_hardware.bridge.board_host import BoardHost
from cards_hardware.bridge.hardware import Hardware
from cards_hardware.errors import HardwareError
from cards_hardware.hil.emulator import QEMU
from cards_hardware.hil.firmware_build import CROSS_COMPILER
from cards_hardware.hil.relay import Relay
from cards_hardware.hil.rig import Rig
from cards_hardware.protocol.enums import ParameterId, State
from cards_hardware.real_time import HOST_PRIORITY, make_real_time

pytestmark = pytest.mark.serial

ROBOT = "roboy_arm"


def eventually(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.005)
    return found


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A board that runs the host build of the firmware, behind a cable."""
    folder = tmp_path_factory.mktemp("bench")
    with (
        Rig(ROBOT, folder, firmware="host") as rig,
        Relay(rig.ports[0], folder / "ttyACM0") as relay,
    ):
        yield SimpleNamespace(rig=rig, relay=relay, robot=load(ROBOT))


@pytest.fixture
def real_time():
    """Give this process the priority of a controller, as `./cards demo --hil` gives it to one.

    Board and plant have theirs already. Without it a busy machine leaves a robot that moves
    without commands for tens of milliseconds, and the board acts upon that.
    """
    make_real_time(os.getpid(), HOST_PRIORITY)
    yield
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that ends meanwhile
            os.sched_setscheduler(int(task.name), os.SCHED_OTHER, os.sched_param(0))


@pytest.fixture
def arm(bench, real_time):
    """The robot, opened and in DISARMED."""
    bench.relay.error_rate = 0.0
    bench.relay.plug()
    events = []
    layout = read_layout(ROBOT, bench.robot, port=str(bench.relay.link))
    hardware = Hardware(bench.robot, layout, on_event=events.append)
    with contextlib.closing(hardware):
        hardware.open()
        if hardware.status().boards[0].state not in (State.ESTOP, State.FAULT):
            hardware.disarm()
        # also what is latched of single muscles: an arm that was let go falls into its joint
        # limits, and wires that are slack or freed at once are found there
        hardware.clear()
        bench.relay.forget()
        yield SimpleNamespace(
            hardware=hardware,
            events=events,
            board=hardware.boards[0],
            hold=Holder(hardware, bench.robot),
        )


def commands(bench):
    return bench.relay.frames("CMD_TENSION", "to_board")


class Holder:
    """Holds the arm where it is: joint PD with gravity, least squares around equal tensions."""

    def __init__(self, hardware, robot, tension=100.0):
        self._hardware, self._tension = hardware, tension
        self._dynamics = make_dynamics(robot)
        self._there = None

    def __call__(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.002)
            state = self._hardware.take()
            if state is not None and state.complete:
                self._hardware.command("force", self._tensions(state.q, state.qd))

    def _tensions(self, q, qd):
        if self._there is None:
            self._there = q
        state = self._dynamics.update(q, qd)
        L = state.muscle_jacobian
        wanted = 400.0 * (self._there - q) - 40.0 * qd
        torque = state.gravity + state.mass_matrix @ wanted
        middle = np.full(len(L), self._tension)
        part = L @ np.linalg.solve(L.T @ L, torque + L.T @ middle)
        return np.clip(middle - part, 10.0, 700.0)


def test_states_and_commands_reach_the_other_side(bench, arm):
    hardware = arm.hardware
    state = eventually(hardware.take)
    assert state.complete
    assert np.isfinite(state.q).all()
    assert np.isfinite(state.lengths).all()
    # the lengths that the board measures are those of the model at the measured angles
    dynamics = make_dynamics(bench.robot)
    expected = dynamics.update(state.q, state.qd).muscle_lengths
    np.testing.assert_allclose(state.lengths, expected, atol=2e-3)
    hardware.arm()
    arm.hold(0.3)
    assert arm.board.state == State.ACTIVE
    state = eventually(hardware.take)
    wanted = arm.hold._tensions(state.q, state.qd)
    np.testing.assert_allclose(state.tensions, wanted, atol=0.2 * wanted.max())
    status = hardware.status().boards[0]
    assert status.command_latency.count > 20
    assert status.command_latency.p50 > 0.0
    assert status.simulated
    assert status.rx_crc == 0
    hardware.relax()
    eventually(lambda: arm.board.state in (State.RELAX, State.DISARMED))
    hardware.disarm()
    assert arm.board.state == State.DISARMED


IMPEDANCE = "    impedance: {stiffness: 20000.0, damping: 100.0, tension_floor: 12.0}\n"


@pytest.fixture(params=["host", "stm32f405"])
def stiff(request, real_time, tmp_path):
    """The robot as a host, opened and in DISARMED; its muscles have an impedance law."""
    tools = () if request.param == "host" else (CROSS_COMPILER, QEMU)
    if missing := [name for name in tools if shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is missing")
    file = tmp_path / f"{ROBOT}{SUFFIX}"
    file.write_text(find_layout(ROBOT).read_text().rstrip("\n") + "\n" + IMPEDANCE)
    robot = load(ROBOT)
    with Rig(ROBOT, tmp_path / "bench", firmware=request.param) as rig:
        layout = read_layout(file, robot, port=rig.port)
        hardware = Hardware(robot, layout)
        with contextlib.closing(hardware):
            hardware.open()
            host = BoardHost(robot, layout, hardware, command_timeout=0.1)
            yield SimpleNamespace(hardware=hardware, board=hardware.boards[0], host=host)
            host.close()


def test_muscles_follow_the_impedance_law_and_let_go_without_a_sender(stiff):
    hardware, board = stiff.hardware, stiff.board
    names = [muscle.name for muscle in stiff.host.robot.muscles]
    for index in range(len(names)):
        assert board.get_parameter(ParameterId.STIFFNESS, index) == 200_000
        assert board.get_parameter(ParameterId.DAMPING, index) == 100_000
        assert board.get_parameter(ParameterId.TENSION_FLOOR, index) == 120
    hardware.arm()
    there = eventually(hardware.take).lengths
    pretension = np.linspace(60.0, 90.0, len(names))
    close = []
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        time.sleep(0.002)
        if (new := hardware.take()) is not None and new.complete:
            state = new
            stiff.host.submit((CommandPart("impedance", names, pretension, there),))
            law = pretension + 20_000.0 * (state.lengths - there) + 100.0 * state.rates
            close.append(np.abs(state.tensions - np.clip(law, 12.0, 800.0)).max())
    assert board.state == State.ACTIVE
    # the tension loop, its drive and the load cell's noise lie between law and measurement
    assert np.median(close[len(close) // 2 :]) < 5.0
    np.testing.assert_allclose(state.lengths, there, atol=0.02)  # it holds the arm
    # nobody sends any more: HOLD, RELAX, and no tension that rises by itself
    most = state.tensions.copy()
    rise = 0.0
    while board.state != State.DISARMED:
        time.sleep(0.002)
        if (state := hardware.take()) is not None and state.complete:
            rise = max(rise, float((state.tensions - most).max()))
            if state.state == State.RELAX:
                last = state.tensions
    assert rise < 40.0
    np.testing.assert_allclose(last, 10.0, atol=8.0)  # the arm sinks and pulls at them
    with pytest.raises(CommandRefusedError, match="not commanded"):
        stiff.host.submit((CommandPart("impedance", names, pretension, there),))


def test_gains_are_tuned_on_a_robot_that_is_held(stiff):
    hardware, host = stiff.hardware, stiff.host
    names = [muscle.name for muscle in host.robot.muscles]
    hardware.arm()
    there = eventually(hardware.take).lengths - 2e-3
    stop, errors = threading.Event(), []

    def hold():
        part = CommandPart("impedance", names, np.full(len(names), 40.0), there)
        try:
            while not stop.wait(0.004):
                host.submit((part,))
        except CardsError as error:
            errors.append(error)

    holding = threading.Thread(target=hold)
    holding.start()
    steady = []
    try:
        for stiffness in (20_000.0, 30_000.0, 10_000.0):
            host.change({"impedance_stiffness": np.full(len(names), stiffness)})
            end = time.monotonic() + 0.6
            while time.monotonic() < end:
                time.sleep(0.002)
                if (new := hardware.take()) is not None and new.complete:
                    state = new
            steady.append((stiffness, state))
        asked = hardware.impedance_gains(ask=True)
    finally:
        stop.set()
        holding.join()
    assert not errors
    assert stiff.board.state == State.ACTIVE  # commands went on, no watchdog
    for stiffness, state in steady:
        law = 40.0 + stiffness * (state.lengths - there)
        assert np.median(np.abs(state.tensions - np.clip(law, 12.0, 800.0))) < 5.0
    np.testing.assert_allclose(asked["stiffness"], 10_000.0)
    np.testing.assert_allclose(asked["damping"], 100.0)
    with pytest.raises(ParameterError, match=r"motor0.* is 2e\+07; expected .* <= 1e\+07"):
        host.change({"impedance_stiffness": np.full(len(names), 2e7)})
    np.testing.assert_allclose(hardware.impedance_gains(ask=True)["stiffness"], 10_000.0)


def test_cable_pulled_and_plugged_in_again(bench, arm):
    hardware = arm.hardware
    hardware.arm()
    arm.hold(0.3)
    bench.relay.unplug()
    eventually(lambda: not hardware.status().connected)
    assert not hardware.status().armed
    with pytest.raises(HardwareError, match="not commanded"):
        hardware.command("force", np.full(11, 60.0))
    time.sleep(0.3)
    bench.relay.forget()
    bench.relay.plug()
    eventually(lambda: hardware.status().connected)
    eventually(lambda: arm.board.state == State.DISARMED)
    assert not hardware.status().armed
    assert commands(bench) == []
    assert bench.relay.frames("STATE_REQUEST", "to_board") == []
    hardware.clear()  # the arm fell meanwhile, see the fixture
    hardware.arm()
    arm.hold(0.1)


def test_estop_while_the_cable_is_out_is_the_first_thing_said_when_it_is_back(bench, arm):
    hardware = arm.hardware
    hardware.arm()
    bench.relay.unplug()
    eventually(lambda: not hardware.status().connected)
    hardware.estop()
    assert hardware.estop_pending
    bench.relay.forget()
    bench.relay.plug()
    eventually(lambda: arm.board.state == State.ESTOP)
    said = [item.frame.name for item in bench.relay.frames(direction="to_board")]
    assert said[:3] == ["ESTOP"] * 3
    assert not hardware.estop_pending
    hardware.clear()
    assert arm.board.state == State.DISARMED


def test_a_reset_of_the_board_while_it_moves(bench, tmp_path):
    with Rig(ROBOT, tmp_path, firmware="host") as rig:
        layout = read_layout(ROBOT, bench.robot, port=rig.port)
        hardware = Hardware(bench.robot, layout)
        board = hardware.boards[0]
        hardware.open()
        try:
            hardware.arm()
            Holder(hardware, bench.robot)(0.3)
            boots = board.ident.boot_count
            rig.emulators[0].reset()
            eventually(lambda: board.resets == 1)
            eventually(lambda: hardware.status().connected)
            assert board.ident.boot_count == boots + 1
            assert not hardware.status().armed
            assert board.state == State.DISARMED
            np.testing.assert_allclose(board.get_limits()["tension_max"], 800.0)
            with pytest.raises(HardwareError, match="not commanded"):
                hardware.command("force", np.full(11, 60.0))
        finally:
            hardware.close()


def test_a_bad_cable_costs_frames_but_no_request(bench, arm):
    hardware = arm.hardware
    bench.relay.error_rate = 1e-4
    for _ in range(3):
        hardware.arm()
        arm.hold(0.2)
        hardware.disarm()
        for index in range(11):
            assert arm.board.get_parameter(0x51, index) > 0  # KP
    bench.relay.error_rate = 0.0
    eventually(hardware.take)


def test_a_second_program_cannot_have_the_port(bench, arm):
    layout = read_layout(ROBOT, bench.robot, port=str(bench.relay.link))
    with pytest.raises(HardwareError, match="in use by another program"):
        Hardware(bench.robot, layout).open()
    assert arm.hardware.status().connected
