"""The drive bus as the plant speaks it: DRIVE_COMMAND in, DRIVE_STATE out, every millisecond.

`DriveBusCodec` reads and writes the frames; `DriveBusServer` is the socket where one board finds
its drives. Payloads are laid out as the protocol table says; the general codec reads the same
ones, but takes several times as long.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.errors import CardsError
from cards_core.typing import Array
from cards_hardware.hil.world import World
from cards_hardware.protocol.frames import Frame, FrameDecoder, encode_frame
from cards_hardware.protocol.schema import MAJOR, Group, Message
from cards_hardware.protocol.table import MESSAGES

DRIVES_NODE = 126
"""Address of the drives on their bus; boards do not look at it."""

_COMMAND, _STATE = MESSAGES["DRIVE_COMMAND"], MESSAGES["DRIVE_STATE"]


def _scalars(message: Message) -> struct.Struct:
    return struct.Struct("<" + "".join(field.type.code for field in message.scalars))


def _dtype(group: Group) -> np.dtype[np.void]:
    return np.dtype([(field.name, "<" + field.type.code) for field in group.fields])


def _scale(message: Message, name: str) -> float:
    (quantity,) = (field.quantity for field in message.fields() if field.name == name)
    assert quantity is not None
    return quantity.scale


_AMPERE = _scale(_COMMAND, "current")
_DEGREE = _scale(_STATE, "temperature")
_VOLT = _scale(_STATE, "vbus")


@dataclass(frozen=True, eq=False)
class DriveCommand:
    """What a board tells its drives.

    Attributes:
        tick: Tick of the board, modulo 2^16.
        device_us: Its clock when it sent, modulo 2^32, [us].
        source_us: `t_us` of the host's command in force, 0 for none.
        enabled: Whether the drivers are to be on.
        currents: One per muscle, [A].
    """

    tick: int
    device_us: int
    source_us: int
    enabled: bool
    currents: Array


class DriveBusCodec:
    """Reads commands from and writes states to the bus of one board.

    Args:
        muscles: Channels of the board.
        joints: Joint encoders on the bus.

    Attributes:
        commands: Commands read.
        ignored: Good frames that are no command for so many drives.
    """

    def __init__(self, muscles: int, joints: int) -> None:
        self.commands = self.ignored = 0
        self._muscles = muscles
        self._decoder = FrameDecoder()
        self._command, self._state = _scalars(_COMMAND), _scalars(_STATE)
        self._currents = _dtype(_COMMAND.groups[0])
        self._rows = np.zeros(muscles, _dtype(_STATE.groups[0]))
        self._joints = np.zeros(joints, _dtype(_STATE.groups[1]))
        self._least = self._command.size + muscles * self._currents.itemsize
        self._seq = 0

    @property
    def damaged(self) -> int:
        """Frames that were damaged."""
        return self._decoder.errors

    def reset(self) -> None:
        """Forget a frame that was read in part, as after a new connection."""
        self._decoder.reset()

    def feed(self, data: bytes) -> list[DriveCommand]:
        """Take bytes from the board; return the commands that are complete now."""
        commands = (self._read(frame) for frame in self._decoder.feed(data))
        return [command for command in commands if command is not None]

    def _read(self, frame: Frame) -> DriveCommand | None:
        payload = frame.payload
        fits = frame.major == MAJOR and frame.type == _COMMAND.id and len(payload) >= self._least
        if fits:
            muscles, enabled, tick, source = self._command.unpack_from(payload)
        if not fits or muscles != self._muscles:
            self.ignored += 1
            return None
        self.commands += 1
        rows = np.frombuffer(payload, self._currents, muscles, self._command.size)
        return DriveCommand(tick, frame.t_us, source, enabled == 1, _AMPERE * rows["current"])

    def state(
        self,
        tick: int,
        now_us: int,
        slow: tuple[int, float, float],
        muscles: tuple[npt.NDArray[np.int32], npt.NDArray[np.int16], Array],
        joints: npt.NDArray[np.int32],
    ) -> bytes:
        """Return the frame that answers a command.

        Args:
            tick: Tick of the command.
            now_us: Clock of the drives, [us].
            slow: A muscle, the temperature of its housing [degC], and the supply voltage [V].
            muscles: Encoder counts, load cell counts and currents [A], each shape (m,).
            joints: Encoder counts, shape (k,).
        """
        muscle, temperature, voltage = slow
        rows = self._rows
        rows["position"], rows["load"] = muscles[0], muscles[1]
        rows["current"] = np.rint(muscles[2] / _AMPERE)
        self._joints["joint"] = joints
        scalars = self._state.pack(
            self._muscles,
            self._joints.size,
            tick,
            muscle,
            round(temperature / _DEGREE),
            round(voltage / _VOLT),
        )
        self._seq = (self._seq + 1) & 0xFF
        payload = scalars + rows.tobytes() + self._joints.tobytes()
        return encode_frame(
            Frame(MAJOR, 0, DRIVES_NODE, _STATE.id, self._seq, now_us & 0xFFFFFFFF, payload)
        )


class DriveBusServer:
    """The socket to which one board connects.

    Args:
        path: Path of the unix socket.
        world: What is behind all boards.
        muscles: Rows of this board's muscles, in the order of its channels.
        joints: Indices into q of its joint encoders, likewise.

    Attributes:
        rows, joints: The same, as indices of arrays.
        frames: Codec and counters.
        connections: How often the board has connected.
        listener, peer: Sockets; no peer while the board is not there.

    Raises:
        CardsError: The socket cannot be made there.
    """

    def __init__(self, path: str, world: World, muscles: tuple[int, ...], joints: tuple[int, ...]):
        self.path = path
        self.rows, self.joints = _rows_of(muscles), _rows_of(joints)
        self._channels = muscles
        self.frames = DriveBusCodec(len(muscles), len(joints))
        self._world = world
        self._slow = 0
        self.connections = 0
        self.peer: socket.socket | None = None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.listener.bind(path)
        except OSError as error:
            raise CardsError(f"drive bus {path} cannot be made: {error}") from error
        self.listener.listen(1)

    def accept(self) -> None:
        """Take the new connection for the board; an old one is gone."""
        self.drop()
        self.peer, _ = self.listener.accept()
        self.connections += 1
        self.frames.reset()

    def drop(self) -> None:
        """Close the connection, if there is one."""
        if self.peer is not None:
            self.peer.close()
            self.peer = None

    def read(self) -> list[DriveCommand]:
        """Return the commands that have come; drops a connection that the board has closed."""
        assert self.peer is not None
        try:
            data = self.peer.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.drop()
        return self.frames.feed(data)

    def answer(self, tick: int, now_us: int) -> None:
        """Send the present readings of the sensors.

        Args:
            tick: When that is, modulo 2^16: boards take rates over differences of it.
            now_us: This machine's clock, [us].
        """
        world, m = self._world, self.rows
        self._slow = (self._slow + 1) % len(self._channels)
        positions = world.sensors.positions(world.wires)[m]
        loads = world.sensors.loads(world.tensions)[m]
        joints = world.sensors.joints(world.q)[self.joints]
        drives = world.drives
        warm = float(drives.temperature[1, self._channels[self._slow]])
        frame = self.frames.state(
            tick,
            now_us,
            (self._slow, warm, drives.supply_voltage),
            (positions, loads, drives.current[m]),
            joints,
        )
        with contextlib.suppress(OSError):  # the reader finds out that the board is gone
            if self.peer is not None:
                self.peer.sendall(frame)

    def close(self) -> None:
        """Close everything, and remove the socket."""
        self.drop()
        self.listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


def _rows_of(indices: tuple[int, ...]) -> slice | list[int]:
    """Return indices as a slice where they are consecutive: it selects without a copy."""
    first = indices[0] if indices else 0
    if indices == tuple(range(first, first + len(indices))):
        return slice(first, first + len(indices))
    return list(indices)
