"""The part of a command that is for one board: packed, for the channels that it names.

Nothing is sent here: `LineThread.command` sends the parts of all boards, or none.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable, Mapping
from typing import Any

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

_CMD_TENSION = MESSAGES["CMD_TENSION"].id
_TENSION, _SLEW = MESSAGES["CMD_TENSION"].groups[0].fields
assert _TENSION.quantity is not None
_PER_NEWTON = round(1.0 / _TENSION.quantity.scale)


@functools.cache
def _tension_struct(count: int) -> struct.Struct:
    return struct.Struct("<I" + (_TENSION.type.code + _SLEW.type.code) * count)


def pack_tension(mask: int, tensions: Array, slew: float) -> bytes:
    """Return the payload of a CMD_TENSION: as `pack` does, with fewer operations.

    Args:
        mask: Channels.
        tensions: One per channel, [N].
        slew: Slew rate of all tensions, [N/s].

    Raises:
        ProtocolError: A value does not fit into the message.
    """
    try:
        rate = round(slew)
        counts = [round(tension * _PER_NEWTON) for tension in tensions.tolist()]
        numbers = [number for count in counts for number in (count, rate)]
        fits = _TENSION.type.invalid not in counts and rate != _SLEW.type.invalid
        if fits and not mask >> MAX_MUSCLES:
            return _tension_struct(len(counts)).pack(mask, *numbers)
    except (struct.error, ValueError, OverflowError):
        pass  # too large, or no number at all: `pack` says which
    values = {"mask": mask, "tension": tensions, "slew": np.full(len(tensions), slew)}
    return pack("CMD_TENSION", values)


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
        payload = pack_tension(mask, chosen, rate) if mask else b""
        return self._link.command(_CMD_TENSION, payload)

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
        named = ~np.isnan(lengths)
        values = {"mask": mask, "length": chosen}
        values |= {"rate": rates[named], "tension": tensions[named]}
        return self._part("CMD_IMPEDANCE", mask, values)

    def lengths(self, lengths: Array) -> BoardCommand:
        """Return a command of lengths from which muscles pull with their stiffness, [m]; as above.

        Muscle stiffness control: v0 = 0, T0 = T_floor.

        Raises:
            BoardError: A muscle has no stiffness, so that a length means nothing to it.
        """
        named = np.flatnonzero(~np.isnan(lengths)).tolist()
        if not named:
            return self._part("CMD_IMPEDANCE", 0, {})
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
        mask, chosen = finite_channels(pressures)
        return self._part("CMD_PRESSURE", mask, {"mask": mask, "pressure": chosen})

    def _part(self, name: str, mask: int, values: Mapping[str, Any]) -> BoardCommand:
        return self._link.command(MESSAGES[name].id, pack(name, values) if mask else b"")

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
    return mask_of(chosen.tolist()), values[chosen]
