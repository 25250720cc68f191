"""JointState, Float64MultiArray and Clock messages at the speed of a memory copy.

A message whose names and sizes stay the same always serialises to the same bytes but for the
stamp and the numbers. The writers therefore lay one message out when they are made and afterwards
only overwrite its numbers; the readers remember the layout of the messages they saw. Building and
parsing the Python objects instead costs several times as much (a JointState of 11 names: 18 us to
publish and 100 us to take, against 6 us and 15 us).

Layout (CDR version 1, little endian): a 4-byte encapsulation header, then the fields in order,
each number aligned to its own size counted from the end of that header; strings and sequences
start with a 32-bit count. Every layout that this module computes is first checked against the
ROS type support; should they differ, messages are built and parsed as objects.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from cards_core.checks import listed
from cards_core.errors import CardsError, ShapeError
from cards_core.muscles.command import CommandPart
from cards_core.robot.actuators import CommandKind
from cards_core.stamps import NANOSECONDS
from cards_core.typing import Array
from cards_ros.topics import COMMAND_FIELDS

FIELDS = ("position", "velocity", "effort")
"""The numeric fields of a JointState, in the order of the message."""

_LITTLE_ENDIAN = b"\x00\x01\x00\x00"
_HEADER = 4
_STAMP = struct.Struct("<iI")
_COUNT = struct.Struct("<I")
_AFTER_STAMP = _HEADER + _STAMP.size
_DOUBLE = np.dtype("<f8")
_LAYOUTS_PER_READER = 64
_SHOWN = 8  # names of a long list that messages show


class JointSetError(CardsError):
    """A message whose names are not the names that the receiver works with."""


@dataclass(eq=False)
class _Layout:
    """Where the numbers of a serialised JointState are.

    Attributes:
        names: The names in the message.
        template: The message with zeros for stamp, numbers and padding.
        fixed: Mask over ``template`` of the bytes that are neither of these, shape (size,).
        slots: (offset, count) of position, velocity and effort.
    """

    names: tuple[str, ...]
    template: bytes
    fixed: np.ndarray
    slots: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        used = [slot for slot in self.slots if slot[1]]
        size = len(self.template)
        self.start = used[0][0] if used else size
        self.total = (used[-1][0] - self.start) // 8 + used[-1][1] if used else 0
        # one view holds all numbers: the fields are whole multiples of 8 bytes apart
        self.parts = tuple(
            slice((offset - self.start) // 8, (offset - self.start) // 8 + count)
            if count
            else slice(0, 0)
            for offset, count in self.slots
        )
        ends = [_AFTER_STAMP] + [offset + 8 * count for offset, count in used]
        starts = [offset for offset, _ in used] + [size]
        self.segments = tuple(
            (self.template[end:start], end)
            for end, start in zip(ends, starts, strict=True)
            if start > end
        )

    def matches(self, data: bytes) -> bool:
        """Tell whether a message of at least the right size has this layout."""
        for segment, offset in self.segments:
            if not data.startswith(segment, offset):
                break
        else:
            return True
        # other writers leave in the padding what the memory held before
        found = np.frombuffer(data, dtype=np.uint8, count=self.fixed.size) & self.fixed
        return bool(found.tobytes() == self.template)


def _align(offset: int, size: int) -> int:
    return offset + (-(offset - _HEADER)) % size


def _joint_state_layout(
    names: Sequence[str], counts: Sequence[int], frame_id: str = ""
) -> _Layout:
    """Compute the layout of a JointState with ``counts`` numbers in its three fields."""
    out = bytearray()
    fixed = bytearray()

    def put(content: bytes, alignment: int, mask: int = 0xFF) -> int:
        padding = bytes(_align(len(out), alignment) - len(out))
        out.extend(padding + content)
        fixed.extend(padding + bytes([mask]) * len(content))
        return len(out) - len(content)

    def put_string(text: str) -> None:
        encoded = text.encode() + b"\x00"
        put(_COUNT.pack(len(encoded)), 4)
        put(encoded, 1)

    put(_LITTLE_ENDIAN, 1)
    put(bytes(_STAMP.size), 4, mask=0)
    put_string(frame_id)
    put(_COUNT.pack(len(names)), 4)
    for name in names:
        put_string(name)
    slots = []
    for count in counts:
        put(_COUNT.pack(count), 4)
        slots.append((put(bytes(8 * count), 8 if count else 1, mask=0), count))
    mask = np.frombuffer(bytes(fixed), dtype=np.uint8)
    return _Layout(tuple(names), bytes(out), mask, tuple(slots))


def _view(data: bytes | bytearray, offset: int, count: int) -> Array:
    """Return the numbers in a message; NumPy does not allow an empty view at its very end."""
    if not count:
        return np.empty(0)
    return np.frombuffer(data, dtype=_DOUBLE, count=count, offset=offset)


class JointStateWriter:
    """Makes JointState messages with fixed names.

    Args:
        names: Names of all elements.
        fields: Which of position, velocity, effort the messages carry; the others stay empty.
    """

    def __init__(self, names: Sequence[str], fields: Sequence[str] = FIELDS) -> None:
        self.names = tuple(names)
        self.fields = tuple(name for name in FIELDS if name in fields)
        count = len(self.names)
        self.message = JointState()
        self.message.name = list(self.names)
        for number, name in enumerate(self.fields, start=1):
            # distinct values, so that the check below sees every field at its own place
            setattr(self.message, name, array("d", [number + i / 16 for i in range(count)]))
        self._objects = [
            np.frombuffer(getattr(self.message, name), dtype=np.float64) if count else np.empty(0)
            for name in self.fields
        ]
        layout = _joint_state_layout(
            self.names, [count if name in self.fields else 0 for name in FIELDS]
        )
        self._buffer = bytearray(layout.template)
        self._views = [
            _view(self._buffer, *slot)
            for slot, name in zip(layout.slots, FIELDS, strict=True)
            if name in self.fields
        ]
        for view, values in zip(self._views, self._objects, strict=True):
            view[:] = values
        self.packed = bool(deserialize_message(bytes(self._buffer), JointState) == self.message)

    def write(self, stamp: int, *values: Array) -> bytes | JointState:
        """Return the message, to be handed to ``Publisher.publish`` at once.

        Args:
            stamp: Time of the values, [ns].
            values: One array, shape (len(names),), for each of `fields`, in that order.
        """
        if len(values) != len(self.fields):
            raise ShapeError(f"{len(values)} arrays given, expected one for each of {self.fields}")
        if not self.packed:
            return self._write_object(stamp, values)
        _STAMP.pack_into(self._buffer, _HEADER, *divmod(stamp, NANOSECONDS))
        for view, data in zip(self._views, values, strict=True):
            view[:] = data
        return bytes(self._buffer)

    def _write_object(self, stamp: int, values: Sequence[Array]) -> JointState:
        header = self.message.header.stamp
        header.sec, header.nanosec = divmod(stamp, NANOSECONDS)
        for view, data in zip(self._objects, values, strict=True):
            view[:] = data
        return self.message


class JointStateSample:
    """One received JointState.

    Attributes:
        names: Names of the elements. The same object as long as the sender keeps its names.
        stamp: [ns].
        position, velocity, effort: Read-only arrays, empty where the sender left them out. They
            may be unaligned views of the message: copy them before handing them to C code.
    """

    __slots__ = ("effort", "names", "position", "stamp", "velocity")

    def __init__(
        self, names: tuple[str, ...], stamp: int, position: Array, velocity: Array, effort: Array
    ) -> None:
        self.names = names
        self.stamp = stamp
        self.position = position
        self.velocity = velocity
        self.effort = effort


class JointStateReader:
    """Parses serialised JointState messages from any sender."""

    def __init__(self) -> None:
        self._layouts: dict[int, list[_Layout]] = {}
        self._known = 0

    def read(self, data: bytes) -> JointStateSample:
        """Return the content of a serialised message."""
        for layout in self._layouts.get(len(data), ()):
            if layout.matches(data):
                return self._sample(layout, data)
        return self._learn(data)

    @staticmethod
    def _sample(layout: _Layout, data: bytes) -> JointStateSample:
        sec, nanosec = _STAMP.unpack_from(data, _HEADER)
        numbers = _view(data, layout.start, layout.total)
        position, velocity, effort = layout.parts
        return JointStateSample(
            layout.names,
            sec * NANOSECONDS + nanosec,
            numbers[position],
            numbers[velocity],
            numbers[effort],
        )

    def _learn(self, data: bytes) -> JointStateSample:
        """Parse through the ROS type support, and remember the layout if it is the usual one."""
        message: Any = deserialize_message(data, JointState)
        stamp = message.header.stamp.sec * NANOSECONDS + message.header.stamp.nanosec
        fields = [np.array(getattr(message, name), dtype=np.float64) for name in FIELDS]
        names = tuple(message.name)
        layout = _joint_state_layout(names, [len(f) for f in fields], message.header.frame_id)
        if (
            len(layout.template) <= len(data)
            and layout.matches(data)
            and self._known < _LAYOUTS_PER_READER
        ):
            sample = self._sample(layout, data)
            parsed = (sample.position, sample.velocity, sample.effort)
            if all(a.tobytes() == b.tobytes() for a, b in zip(parsed, fields, strict=True)):
                self._layouts.setdefault(len(data), []).append(layout)
                self._known += 1
        return JointStateSample(names, stamp, *fields)


class NameOrder:
    """Brings the values of named messages into a fixed order.

    Args:
        names: The names in the receiver's order.
        what: What the names are, for messages: ``joint`` or ``muscle``.
    """

    def __init__(self, names: Sequence[str], what: str = "joint") -> None:
        self.names = tuple(names)
        self.what = what
        self._last: tuple[str, ...] | None = None
        self._order: Array | slice = slice(None)

    def order(self, names: tuple[str, ...]) -> Any:
        """Return the index that brings values listed as ``names`` into the receiver's order.

        Raises:
            JointSetError: The names are not the receiver's names, each once.
        """
        if names is self._last:
            return self._order
        if names == self.names:
            self._order = slice(None)
        else:
            self._check(names)
            place = {name: index for index, name in enumerate(names)}
            self._order = np.array([place[name] for name in self.names], dtype=np.intp)
        self._last = names
        return self._order

    def _check(self, names: tuple[str, ...]) -> None:
        missing = [name for name in self.names if name not in names]
        unknown = [name for name in names if name not in self.names]
        twice = sorted({name for name in names if names.count(name) > 1})
        problems = []
        if missing:
            problems.append(f"no value for {listed(missing, most=_SHOWN)}")
        if unknown:
            problems.append(f"unknown: {listed(unknown, most=_SHOWN)}")
        if twice:
            problems.append(f"more than once: {', '.join(twice)}")
        if problems:
            raise JointSetError(
                f"the {self.what}s in the message do not fit the model: {'; '.join(problems)} "
                f"(expected: {listed(self.names, most=_SHOWN)})"
            )


class MuscleStateSlots:
    """Lays out `muscle_states`: the muscles, then one entry per actuator state.

    A muscle has length, rate and tension in position, velocity and effort; a state such as
    ``biceps/activation`` has its value in position and zeros in the others.

    Args:
        muscles: Number of muscles.
        total: Number of muscles and states.
    """

    def __init__(self, muscles: int, total: int) -> None:
        self._muscles = muscles
        self._fields = np.zeros((3, total))

    def fill(self, lengths: Array, rates: Array, tensions: Array, states: Array) -> Array:
        """Return position, velocity and effort as rows; overwritten by the next call.

        Args:
            lengths: Of the muscles, shape (m,), [m].
            rates: Of the muscles, shape (m,), [m/s].
            tensions: Of the muscles, shape (m,), [N].
            states: Of the actuators, shape (total - m,), SI units (temperatures in degC).

        Returns:
            Shape (3, total).
        """
        fields, m = self._fields, self._muscles
        fields[0, :m] = lengths
        fields[1, :m] = rates
        fields[2, :m] = tensions
        fields[0, m:] = states
        return fields


class FloatArrayWriter:
    """Makes Float64MultiArray messages of fixed size: the plain interface for small clients."""

    def __init__(self, size: int) -> None:
        self.message = Float64MultiArray()
        self.message.data = array("d", [1.0 + i / 16 for i in range(size)])
        self._object = np.frombuffer(self.message.data, dtype=np.float64) if size else np.empty(0)
        # no dimensions, data offset 0, then the numbers
        head = _LITTLE_ENDIAN + _COUNT.pack(0) + _COUNT.pack(0) + _COUNT.pack(size)
        start = _align(len(head), 8) if size else len(head)
        self._buffer = bytearray(head + bytes(start - len(head) + 8 * size))
        self._view = _view(self._buffer, start, size)
        self._view[:] = self._object
        self.packed = bool(
            deserialize_message(bytes(self._buffer), Float64MultiArray) == self.message
        )

    def write(self, values: Array) -> bytes | Float64MultiArray:
        """Return the message with ``values``, shape (size,), to be published at once."""
        if not self.packed:
            self._object[:] = values
            return self.message
        self._view[:] = values
        return bytes(self._buffer)


def clock_message(stamp: int) -> bytes | Clock:
    """Return a serialised ``/clock`` message for ``stamp`` [ns]."""
    return _LITTLE_ENDIAN + _STAMP.pack(*divmod(stamp, NANOSECONDS))


class MuscleStateNames:
    """Tells muscles and actuator states of ``muscle_states`` apart.

    Args:
        muscles: Names of the robot's muscles.
    """

    def __init__(self, muscles: Sequence[str]) -> None:
        self._muscles = frozenset(muscles)
        self._order = NameOrder(muscles, "muscle")
        self._last: tuple[str, ...] | None = None
        self._places: Any = None
        self._states: tuple[tuple[str, int], ...] = ()

    def places(self, names: tuple[str, ...]) -> tuple[Any, tuple[tuple[str, int], ...]]:
        """Return where the muscles are, in their own order, and each state with its place.

        Args:
            names: Of a message.

        Raises:
            JointSetError: A muscle is missing or listed twice, or a name is neither a muscle nor
                a state of one.
        """
        if names is self._last:
            return self._places, self._states
        rest = [
            index
            for index, name in enumerate(names)
            if name in self._muscles or name.rpartition("/")[0] not in self._muscles
        ]
        order = self._order.order(tuple(names[index] for index in rest))
        self._places = np.array(rest, dtype=np.intp)[order]
        states = sorted(set(range(len(names))) - set(rest))
        self._states = tuple((names[index], index) for index in states)
        self._last = names
        return self._places, self._states


def command_part(kind: CommandKind, sample: JointStateSample) -> CommandPart:
    """Return what a message of the topic of a kind of command says."""
    if kind == "impedance":
        return CommandPart(
            kind,
            sample.names,
            sample.effort,
            rest_lengths=sample.position,
            rest_rates=sample.velocity,
        )
    (name,) = COMMAND_FIELDS[kind]
    return CommandPart(kind, sample.names, getattr(sample, name))


def command_fields(part: CommandPart) -> list[tuple[str, Array]]:
    """Return fields and values of the JointState that says the same as a part of a command."""
    if part.kind == "impedance":
        fields = (
            ("position", part.rest_lengths),
            ("velocity", part.rest_rates),
            ("effort", part.values),
        )
        return [(name, values) for name, values in fields if values.size]
    (name,) = COMMAND_FIELDS[part.kind]
    return [(name, part.values)]
