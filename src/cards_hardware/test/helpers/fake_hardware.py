"""A stand-in for `cards_hardware.bridge.hardware.Hardware`: boards that do what the test says."""

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from cards_hardware.boards.line_thread import CommandCounts, LineThread
from cards_hardware.boards.status import BoardStatus
from cards_hardware.errors import HardwareError
from cards_hardware.percentiles import Percentiles
from cards_hardware.protocol.enums import State


class FakeHardware:
    """All boards in one state; time goes on by `tick`, or by itself at 500 Hz.

    Attributes:
        calls: What was asked for, in order.
        commands: Commands that arrived while they act.
        gains: Gains of the impedance law that were changed, in order.
        fail: Method name to what it raises.
        hold: Method name to an event that it waits for.
        lost: Name of a board that is not there.
    """

    def __init__(self, robot, layout, *, on_state, on_event):
        self.robot, self.layout = robot, layout
        self.on_state, self.on_event = on_state, on_event
        self.calls, self.commands, self.fail, self.hold = [], [], {}, {}
        self.gains = []
        self.lines = LineThread()  # without lines it has no threads
        self.sent = CommandCounts()
        self.lost = ""
        self.opened = False
        self.state = State.DISARMED
        self.pending_stop = False
        self.q = robot.tree.home.copy()
        self.lengths = np.linspace(0.1, 0.2, len(robot.muscles))
        self.tensions = np.full(len(robot.muscles), 10.0)
        self.changes = {}
        self._new = None
        self._number = 0
        self._stop = threading.Event()
        self._thread = None

    # What the bridge calls --------------------------------------------------------------------

    def _do(self, name):
        self.calls.append(name)
        if name in self.hold:
            assert self.hold[name].wait(20.0)
        if name in self.fail:
            raise HardwareError(self.fail[name])

    def open(self):
        self._do("open")
        self.opened = True
        if self.pending_stop:
            self._stopped()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(self._stop,), daemon=True)
        self._thread.start()

    def close(self):
        self.calls.append("close")
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.opened = False

    def arm(self):
        self._do("arm")
        if self.state == State.ESTOP:
            raise HardwareError("board 'arm': in ESTOP")
        self.state = State.ARMED

    def relax(self):
        self._do("relax")
        self.state = State.RELAX

    def disarm(self):
        self._do("disarm")
        self.state = State.DISARMED

    def clear(self):
        self._do("clear")
        self.pending_stop = False
        self.state = State.DISARMED

    def estop(self):
        self.calls.append("estop")
        self.pending_stop = True
        if self.opened and not self.lost:
            self._stopped()

    def _stopped(self):
        self.pending_stop = False
        self.state = State.ESTOP

    def command(self, kind, values):
        if self.state not in (State.ARMED, State.ACTIVE, State.HOLD):
            raise HardwareError(f"board 'arm' takes no commands: {self.state.name}")
        self.state = State.ACTIVE
        self.commands.append((kind, values.copy()))

    def impedance(self, lengths, rates, tensions):
        self.command("impedance", np.array([lengths, rates, tensions]))

    def change_impedance(self, gains):
        self._do("change_impedance")
        self.gains.append(gains)

    def take(self):
        state, self._new = self._new, None
        return state

    def status(self):
        problem = f"board '{self.lost}' is lost" if self.lost else ""
        boards = []
        for layout in self.layout.boards:
            board = BoardStatus(
                layout.name,
                layout.node,
                layout.port,
                connected=self.opened and layout.name != self.lost,
                problem=problem if layout.name == self.lost else "",
                state=self.state,
                temperatures=(30.0,) * len(layout.muscles),
                vbus=24.0,
                command_latency=Percentiles(1, 0.003, 0.004, 0.005),
            )
            boards.append(replace(board, **self.changes))
        return SimpleNamespace(
            boards=tuple(boards),
            connected=all(board.connected for board in boards),
            armed=False,
            problem=problem,
            commands=self.sent,
            scheduled=self.lines.scheduled,
        )

    # What the world does ----------------------------------------------------------------------

    def _run(self, stop):
        while not stop.wait(0.002):
            if not self.lost:
                self.tick()

    def tick(self, when=None, *, complete=True):
        """Let all boards send a state."""
        count = len(self.robot.muscles)
        self._number += 1
        self._new = SimpleNamespace(
            time=time.monotonic() if when is None else when,
            q=self.q,
            qd=np.zeros(self.robot.tree.nv),
            lengths=self.lengths,
            rates=np.zeros(count),
            tensions=self.tensions,
            currents=np.full(count, 0.5),
            complete=complete,
            number=self._number,
            state=self.state,
            estimated=False,
        )
        self.on_state()
