"""The socket at which a board finds its drives, and its part of the world."""

from __future__ import annotations

import contextlib
import os
import socket

from cards_core.errors import CardsError
from cards_hardware.hil.drive_bus import DriveBus, DriveCommand
from cards_hardware.hil.world import World


class BoardBus:
    """Where one board connects.

    Args:
        path: Of the unix socket.
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
        self.rows, self.joints = rows_of(muscles), rows_of(joints)
        self._channels = muscles
        self.frames = DriveBus(len(muscles), len(joints))
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

    def answer(self, command: DriveCommand, now_us: int) -> None:
        """Send what the sensors say now."""
        world, m = self._world, self.rows
        self._slow = (self._slow + 1) % len(self._channels)
        positions = world.sensors.positions(world.lengths)[m]
        loads = world.sensors.loads(world.tensions)[m]
        joints = world.sensors.joints(world.q)[self.joints]
        drives = world.drives
        warm = float(drives.temperature[1, self._channels[self._slow]])
        frame = self.frames.state(
            command.tick,
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


def rows_of(indices: tuple[int, ...]) -> slice | list[int]:
    """Return indices as a slice where they are consecutive: it selects without a copy."""
    first = indices[0] if indices else 0
    if indices == tuple(range(first, first + len(indices))):
        return slice(first, first + len(indices))
    return list(indices)
