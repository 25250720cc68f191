"""The part of a command that is for one board: packed, for the channels that it names.

Nothing is sent here: `LineThread.command` sends the parts of all boards, or none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

from cards_core.typing import Array
from cards_hardware.boards.handshake import Handshake
from cards_hardware.boards.layout import BoardLayout
from cards_hardware.boards.line_thread import BoardCommand
from cards_hardware.boards.serial_link import SerialLink
from cards_hardware.protocol.codec import pack
from cards_hardware.protocol.enums import Caps
from cards_hardware.protocol.schema import MAX_MUSCLES
from cards_hardware.protocol.table import MESSAGES

_MAX_SLEW = 65000.0
_NEEDED = {
    "force": (Caps.TENSION, "tensions"),
    "length": (Caps.IMPEDANCE, "lengths"),
    "impedance": (Caps.IMPEDANCE, "set-points of an impedance law"),
    "pressure": (Caps.PRESSURE, "pressures"),
}

_MAX_MASK = (1 << MAX_MUSCLES) - 1


class Packer:
    """Packs a command of some channels: as `pack` does, with fewer operations.

    Args:
        name: A message with a mask and quantities per channel, whose units are whole fractions.
    """

    def __init__(self, name: str) -> None:
        message = MESSAGES[name]
        (group,) = message.groups
        quantities = [field.quantity for field in group.fields]
        self.id = message.id
        self._name = name
        self._fields = [field.name for field in group.fields]
        self._per_unit = [round(1.0 / item.scale) for item in quantities if item is not None]
        self._invalid = [field.type.invalid for field in group.fields]
        self._element = "".join(field.type.code for field in group.fields)
        self._structs: dict[int, struct.Struct] = {}  # by the number of channels
        assert len(self._per_unit) == len(self._fields)

    def pack(self, mask: int, *columns: Array) -> bytes:
        """Return the payload.

        Args:
            mask: Channels.
            columns: Values of each field, one per channel, in the units of the message.

        Raises:
            ProtocolError: A value does not fit into the message.
        """
        count = len(columns[0])
        try:
            numbers = [0] * (len(columns) * count)
            fits = mask <= _MAX_MASK
            for i, column in enumerate(columns):
                per_unit = self._per_unit[i]
                counts = [round(value * per_unit) for value in column.tolist()]
                fits = fits and self._invalid[i] not in counts
                numbers[i :: len(columns)] = counts
            if fits:
                return self._struct(count).pack(mask, *numbers)
        except (struct.error, ValueError, OverflowError):
            pass  # too large, or no number at all: `pack` says which
        return pack(self._name, {"mask": mask, **dict(zip(self._fields, columns, strict=True))})

    def _struct(self, count: int) -> struct.Struct:
        if count not in self._structs:
            self._structs[count] = struct.Struct("<I" + self._element * count)
        return self._structs[count]


_TENSION, _IMPEDANCE, _PRESSURE = map(Packer, ("CMD_TENSION", "CMD_IMPEDANCE", "CMD_PRESSURE"))


class Commands:
    """Parts of commands for one board.

    Args:
        layout: Layout of the board.
        link: The line.
        handshake: Knows what the board can do.
    """

    def __init__(self, layout: BoardLayout, link: SerialLink, handshake: Handshake) -> None:
        self._layout = layout
        self._link = link
        self._handshake = handshake
        self._kinds: set[str] = set()  # of commands that the board is known to take

    def reset(self) -> None:
        """Forget what the board is known to take: it may be another one."""
        self._kinds.clear()

    def tensions(self, tensions: Array, slew: float | None = None) -> BoardCommand:
        """Return a command of tensions.

        Args:
            tensions: Per channel, [N]; NaN leaves the channel out of the command.
            slew: Largest change, [N/s]; None for the limit of each muscle.

        Raises:
            ProtocolError: A value does not fit into the message.
        """
        mask, chosen = finite_channels(tensions)
        rate = 0.0 if slew is None else min(slew, _MAX_SLEW)
        return self._part(_TENSION, mask, chosen, np.full(len(chosen), rate))

    def impedance(self, lengths: Array, rates: Array, tensions: Array) -> BoardCommand:
        """Return a command of set-points of the muscle impedance law.

        Args:
            lengths: l0 per channel, [m]; NaN leaves the channel out of the command.
            rates: v0 per channel, [m/s].
            tensions: T0 per channel, [N].

        Raises:
            ProtocolError: A value does not fit into the message.
        """
        mask, chosen = finite_channels(lengths)
        if len(chosen) < len(lengths):
            named = ~np.isnan(lengths)
            rates, tensions = rates[named], tensions[named]
        return self._part(_IMPEDANCE, mask, chosen, rates, tensions)

    def lengths(self, lengths: Array) -> BoardCommand:
        """Return a command of lengths from which muscles pull with their stiffness, [m]; as above.

        Muscle stiffness control: v0 = 0, T0 = T_floor.

        Raises:
            BoardError: A muscle has no stiffness, so that a length means nothing to it.
        """
        named = np.flatnonzero(~np.isnan(lengths)).tolist()
        if not named:
            return self._part(_IMPEDANCE, 0)
        laws = self._handshake.laws
        for row in named:
            if not (laws and laws[row].stiffness > 0.0):
                raise self._handshake.error(
                    f"takes no lengths: muscle '{self._layout.muscles[row]}' has no stiffness "
                    f"('impedance' in {self._layout.source or 'the layout'})"
                )
        floors = np.array([law.tension_floor for law in laws])
        return self.impedance(lengths, np.zeros(len(lengths)), floors)

    def pressures(self, pressures: Array) -> BoardCommand:
        """Return a command of pressures, [Pa]; as above."""
        return self._part(_PRESSURE, *finite_channels(pressures))

    def _part(self, packer: Packer, mask: int, *columns: Array) -> BoardCommand:
        return self._link.command(packer.id, packer.pack(mask, *columns) if mask else b"")

    def check_kind(self, kind: str) -> None:
        """Check that the board takes a kind of command. Raises `BoardError`."""
        if kind not in self._kinds:
            self._handshake.needs(*_NEEDED[kind])
            self._kinds.add(kind)


def mask_of(selected: Iterable[int]) -> int:
    """Return the bit mask of channels."""
    mask = 0
    for index in selected:
        mask |= 1 << int(index)
    return mask


def finite_channels(values: Array) -> tuple[int, Array]:
    """Return the mask of the values that are numbers, and these."""
    chosen = np.flatnonzero(~np.isnan(values))
    if len(chosen) == len(values):
        return (1 << len(values)) - 1, values
    return mask_of(chosen.tolist()), values[chosen]
