"""A test rig: plant process, emulated boards with their parameters, and ports for a bridge.

Everything behind the serial ports of ``sim:=false``. Used by ``./cards demo --hil``, by the soak
test and by the tests of faults.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from cards_core.errors import DescriptionError
from cards_core.files import ProcessFolder, inside
from cards_core.formats import load
from cards_hardware.boards.board import Board
from cards_hardware.boards.layout import BoardLayout, Layout, read_layout
from cards_hardware.errors import HardwareError, RequestError
from cards_hardware.hil.emulator import Emulator
from cards_hardware.hil.muscle_units import (
    USUAL_TENSION,
    ParameterValue,
    UnitCalibration,
    UnitDesign,
    board_parameters,
)
from cards_hardware.hil.plant import BoardWiring, PlantSettings
from cards_hardware.hil.processes import spawn
from cards_hardware.hil.world import World
from cards_hardware.protocol.enums import ParameterId
from cards_hardware.real_time import make_real_time

START_TIMEOUT = 60.0
"""Time for the plant to come up, [s]: the first time it compiles the robot's muscles."""

STOP_TIMEOUT = 10.0
"""Time for the plant to write its logs, [s]."""

COMMISSIONING_TRIES = 4
"""How often the parameters of a board are set until it answers every request."""

MAX_BOARDS = 8
"""Most boards on ports of their own."""

LOG_TAIL = 10
"""Lines of the plant's output that go into an error."""


class Rig:
    """Context manager of a test rig.

    Args:
        robot: Name of a folder in models/, or path of an SDF.
        folder: For sockets, flash images and output of the parts; made if it is not there.
        firmware: ``stm32f405`` (the binary that is flashed, in QEMU) or ``host``.
        boards: Layout file; the robot's own if empty.
        say: Told what is done, one sentence each.
        **plant: Further fields of `PlantSettings`.

    Attributes:
        layout: The boards, with the ports that they have here.
        emulators: One per board.
        last_status: What the plant said when it ended.

    Raises:
        CardsError: The robot or its layout is not usable.
    """

    def __init__(
        self,
        robot: str,
        folder: Path,
        *,
        firmware: str = "stm32f405",
        boards: str = "",
        say: Callable[[str], None] = lambda _text: None,
        **plant: Any,
    ) -> None:
        self.folder = folder.absolute()  # parts are started in folders of their own
        self.firmware = firmware
        self._say = say
        self._robot = load(robot)
        self._boards = boards or self._robot.name
        self.layout = self._first_layout()
        # sockets have short names only: their path must fit in 107 bytes. In memory, because
        # replacing a file on a disk may take 100 ms, and the plant writes its status there
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self._private = ProcessFolder("hil", memory)
        self._sockets = self._private.path
        tree = self._robot.tree
        self._wiring = tuple(
            BoardWiring(
                board.name,
                str(self._sockets / f"{number}.drives"),
                board.muscles,
                tuple(tree.position_names[row] for row in board.position_rows),
            )
            for number, board in enumerate(self.layout.boards)
        )
        self._status = self._sockets / "plant.json"
        strongest = max(limit.tension_max for b in self.layout.boards for limit in b.limits)
        plant.setdefault("strength", strongest / USUAL_TENSION)
        self.settings = PlantSettings(robot, self._wiring, str(self._status), **plant)
        self.emulators: list[Emulator] = []
        self.last_status: dict[str, Any] = {}
        self._plant: subprocess.Popen[bytes] | None = None
        self._stack = contextlib.ExitStack()

    def _first_layout(self) -> Layout:
        """Return the layout without real ports, of which it wants one or several."""
        for count in range(1, MAX_BOARDS):
            with contextlib.suppress(DescriptionError):
                return self._read([f"port {number}" for number in range(count)])
        return self._read(["port"])  # the error that a user would see

    def _read(self, ports: Sequence[str]) -> Layout:
        return read_layout(self._boards, self._robot, port=",".join(ports))

    @property
    def ports(self) -> list[str]:
        """Serial ports of the boards, in the order of the layout."""
        return [str(emulator.port) for emulator in self.emulators]

    @property
    def port(self) -> str:
        """Value of the launch argument ``port``."""
        return ",".join(self.ports)

    def __enter__(self) -> Self:
        """Start everything and set the boards up.

        Raises:
            CardsError: A part does not start; the message says which and why.
        """
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._sockets / "settings.json"
        self.settings.save(file)
        with self._log.open("wb") as out:
            self._plant = spawn(
                [sys.executable, "-P", "-m", "cards_hardware.hil.plant", str(file)],
                Path.cwd(),  # the robot may be a relative path
                stdin=None,
                stdout=out,
                stderr=subprocess.STDOUT,
                at_our_end=signal.SIGTERM,  # it writes its logs
            )
        end = time.monotonic() + START_TIMEOUT
        while not all(Path(board.socket).exists() for board in self._wiring):
            self.check()
            if time.monotonic() > end:
                raise HardwareError(f"the plant does not start; its output is in {self._log}")
            time.sleep(0.02)
        for board in self._wiring:
            emulator = Emulator(
                self.firmware,
                drive_socket=Path(board.socket),
                folder=inside(self.folder, f"board_{board.name}"),
            )
            self.emulators.append(self._stack.enter_context(emulator))
            _hurry(emulator)
        self.layout = self._read(self.ports)
        self._commission()

    def _commission(self) -> None:
        """Give every board the parameters of the units behind it, as a calibration would."""
        units, calibration = self.units()
        for board, emulator in zip(self.layout.boards, self.emulators, strict=True):
            part = calibration.of(list(board.muscle_rows), list(board.position_rows))
            wanted = tuple(
                board_parameters([units[i] for i in board.muscle_rows], part, node=board.node)
            )
            for left in reversed(range(COMMISSIONING_TRIES)):
                try:
                    self._set(board, wanted)
                    break
                except RequestError:
                    # a busy machine: the emulated board was asleep for all tries of a request
                    if not left:
                        raise
            if board.node != ParameterId.NODE.default:
                emulator.reset()  # only then it answers to its new address
                _hurry(emulator)

    @staticmethod
    def _set(board: BoardLayout, wanted: Sequence[ParameterValue]) -> None:
        link = Board.direct(board.port, board.baudrate)
        link.open()
        try:
            for parameter, index, value in wanted:
                if link.get_parameter(parameter, index) != value:
                    link.set_parameter(parameter, index, value)
            link.save_parameters()
        finally:
            link.close()

    def units(self) -> tuple[tuple[UnitDesign, ...], UnitCalibration]:
        """Return what the plant's muscle units are made of, and what differs between them."""
        world = World(self._robot, seed=self.settings.seed, design=self.settings.design)
        return world.units, world.calibration

    # While it runs ----------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self.folder / "plant.log"

    def check(self) -> None:
        """Raise `HardwareError` if the plant has ended."""
        assert self._plant is not None
        code = self._plant.poll()
        if code is not None:
            lines = self._log.read_text(errors="replace").splitlines()[-LOG_TAIL:]
            end = "\n  ".join(lines) or "(no output)"
            raise HardwareError(f"the plant ended with code {code}. End of {self._log}:\n  {end}")

    def status(self) -> dict[str, Any]:
        """Return what the plant said of itself last, empty before its first word."""
        try:
            found: dict[str, Any] = json.loads(self._status.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    @property
    def process_ids(self) -> dict[str, int]:
        """Processes of the rig by name."""
        assert self._plant is not None
        found = {"plant": self._plant.pid}
        for board, emulator in zip(self._wiring, self.emulators, strict=True):
            if emulator.pid is not None:
                found[f"board {board.name}"] = emulator.pid
        return found

    def stop_plant(self) -> dict[str, Any]:
        """End the plant, which writes its logs; return its last status."""
        if self._plant is not None and self._plant.poll() is None:
            self._plant.send_signal(signal.SIGTERM)
            try:
                self._plant.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._plant.kill()
                self._plant.wait()
        self.last_status = self.status() or self.last_status
        return self.last_status

    def __exit__(self, *_: object) -> None:
        """Stop everything; nothing is left behind but logs."""
        try:
            self._stack.close()
        finally:
            self.stop_plant()
            self._private.close()


def _hurry(emulator: Emulator) -> None:
    """Give a board that was switched on or reset its priority."""
    if emulator.pid is not None:
        make_real_time(emulator.pid)
