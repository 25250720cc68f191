"""The drive bus as the plant speaks it: DRIVE_COMMAND in, DRIVE_STATE out, every millisecond.

Payloads are laid out as the protocol table says; the general codec reads the same ones, but takes
several times as long.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.typing import Array
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
        tick: Of the board, modulo 2^16.
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


class DriveBus:
    """Both directions of the bus of one board.

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
            tick: Of the command.
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
