"""Reads STATE_FAST, which comes 500 times a second, with few operations.

The same numbers as `protocol.codec.unpack` gives, from the same table, but all muscles in one
array, so that they can be put into the robot's order at once.
"""

from __future__ import annotations

import functools
import struct
from typing import NamedTuple

import numpy as np

from cards_core.typing import Array
from cards_hardware.protocol.errors import ProtocolError
from cards_hardware.protocol.schema import MAX_JOINTS, MAX_MUSCLES, Group
from cards_hardware.protocol.table import MESSAGES

_MESSAGE = MESSAGES["STATE_FAST"]
_HEAD = struct.Struct("<" + "".join(field.type.code for field in _MESSAGE.scalars))
_NAMES = tuple(field.name for field in _MESSAGE.scalars)
_MUSCLES, _JOINTS = _MESSAGE.groups

MUSCLE_ROWS = tuple(field.name for field in _MUSCLES.fields)
"""What the rows of `FastState.muscles` are."""

JOINT_ROWS = tuple(field.name for field in _JOINTS.fields)
"""What the rows of `FastState.joints` are."""


class FastState(NamedTuple):
    """Values of the message, SI units.

    Attributes:
        head: Its plain numbers, by name.
        muscles: Shape (4, m), rows as `MUSCLE_ROWS`; NaN where invalid.
        joints: Shape (2, n), rows as `JOINT_ROWS`.
    """

    head: dict[str, int]
    muscles: Array
    joints: Array


class _Reader:
    """For given numbers of muscles and joints."""

    def __init__(self, muscles: int, joints: int) -> None:
        self._muscles, self._joints = muscles, joints
        code = "<"
        invalid: list[float] = []
        divisor: list[float] = []
        for group, count in ((_MUSCLES, muscles), (_JOINTS, joints)):
            code += _code(group) * count
            for field in group.fields * count:
                assert field.quantity is not None
                invalid.append(field.type.invalid)
                divisor.append(round(1.0 / field.quantity.scale))
        self._struct = struct.Struct(code)
        self.size = _HEAD.size + self._struct.size
        self._invalid = np.array(invalid, dtype=float)
        self._divisor = np.array(divisor, dtype=float)

    def read(self, payload: bytes) -> tuple[Array, Array]:
        numbers: Array = np.array(self._struct.unpack_from(payload, _HEAD.size), dtype=float)
        bad = numbers == self._invalid
        numbers /= self._divisor
        if bad.any():
            numbers[bad] = np.nan
        split = self._muscles * len(_MUSCLES.fields)
        return (
            numbers[:split].reshape(self._muscles, len(_MUSCLES.fields)).T,
            numbers[split:].reshape(self._joints, len(_JOINTS.fields)).T,
        )


def _code(group: Group) -> str:
    return "".join(field.type.code for field in group.fields)


@functools.cache
def _reader(muscles: int, joints: int) -> _Reader:
    return _Reader(muscles, joints)


def read_fast_state(payload: bytes) -> FastState:
    """Return the values of a STATE_FAST.

    Raises:
        ProtocolError: The payload is too short, or has more muscles or joints than there can be.
    """
    if len(payload) < _HEAD.size:
        raise ProtocolError("STATE_FAST", f"payload of {len(payload)} bytes, {_HEAD.size} needed")
    head = dict(zip(_NAMES, _HEAD.unpack_from(payload), strict=True))
    muscles, joints = head["muscles"], head["joints"]
    if muscles > MAX_MUSCLES or joints > MAX_JOINTS:
        raise ProtocolError("STATE_FAST", f"{muscles} muscles and {joints} joints, too many")
    reader = _reader(muscles, joints)
    if len(payload) < reader.size:
        raise ProtocolError("STATE_FAST", f"payload of {len(payload)} bytes, {reader.size} needed")
    return FastState(head, *reader.read(payload))
