"""MCAP recording of a run: the topics of the run as real ROS 2 messages.

Opens in Foxglove and PlotJuggler and with ``ros2 bag`` (``ros2 bag info run/recording.mcap``).
Log times are simulation times, so the same run gives the same bytes.

A recording holds hundreds of thousands of messages that differ only in their stamp and their
numbers, so the layout is computed once and the numbers are filled in by NumPy (encoding them one
by one takes longer than the run), `BLOCK` at a time: with the names in each, messages take several
times the memory of the log. The encoding is little-endian plain CDR (XCDR1), what ROS 2
middlewares put on the wire; the definitions are those of common_interfaces.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from mcap.writer import CompressionType, Writer

from cards_core.typing import Array
from cards_viz.runs.log import ControllerLog, SimulatorLog

Messages = npt.NDArray[np.uint8]
"""Serialised messages of equal size, shape (n, size)."""

Stamps = npt.NDArray[np.int64]
"""Times, shape (n,), [ns]."""

Serialiser = Callable[[slice], Messages]
"""Serialises the messages of some rows of a channel."""

BLOCK = 1024
"""Messages of a channel that are serialised at once."""

_SEPARATOR = "=" * 80
_TIME = "int32 sec\nuint32 nanosec\n"
_HEADER = "builtin_interfaces/Time stamp\nstring frame_id\n"


def _with_parts(text: str, **parts: str) -> str:
    """Append the definitions of the message types that ``text`` uses."""
    sections = [text]
    for name, body in parts.items():
        sections.append(f"MSG: {name.replace('__', '/')}\n{body}")
    return f"{_SEPARATOR}\n".join(sections)


_GEOMETRY = {
    "geometry_msgs__Vector3": "float64 x\nfloat64 y\nfloat64 z\n",
    "geometry_msgs__Quaternion": "float64 x\nfloat64 y\nfloat64 z\nfloat64 w\n",
    "std_msgs__Header": _HEADER,
    "builtin_interfaces__Time": _TIME,
}

DEFINITIONS = {
    "sensor_msgs/msg/JointState": _with_parts(
        "std_msgs/Header header\n"
        "string[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort\n",
        std_msgs__Header=_HEADER,
        builtin_interfaces__Time=_TIME,
    ),
    "std_msgs/msg/Float64MultiArray": _with_parts(
        "MultiArrayLayout layout\nfloat64[] data\n",
        std_msgs__MultiArrayLayout="MultiArrayDimension[] dim\nuint32 data_offset\n",
        std_msgs__MultiArrayDimension="string label\nuint32 size\nuint32 stride\n",
    ),
    "std_msgs/msg/String": "string data\n",
    "tf2_msgs/msg/TFMessage": _with_parts(
        "geometry_msgs/TransformStamped[] transforms\n",
        geometry_msgs__TransformStamped="std_msgs/Header header\nstring child_frame_id\n"
        "Transform transform\n",
        geometry_msgs__Transform="Vector3 translation\nQuaternion rotation\n",
        **_GEOMETRY,
    ),
    "visualization_msgs/msg/MarkerArray": _with_parts(
        "Marker[] markers\n",
        visualization_msgs__Marker="std_msgs/Header header\nstring ns\nint32 id\nint32 type\n"
        "int32 action\ngeometry_msgs/Pose pose\ngeometry_msgs/Vector3 scale\n"
        "std_msgs/ColorRGBA color\nbuiltin_interfaces/Duration lifetime\nbool frame_locked\n"
        "geometry_msgs/Point[] points\nstd_msgs/ColorRGBA[] colors\nstring texture_resource\n"
        "sensor_msgs/CompressedImage texture\nUVCoordinate[] uv_coordinates\nstring text\n"
        "string mesh_resource\nMeshFile mesh_file\nbool mesh_use_embedded_materials\n",
        visualization_msgs__UVCoordinate="float32 u\nfloat32 v\n",
        visualization_msgs__MeshFile="string filename\nuint8[] data\n",
        sensor_msgs__CompressedImage="std_msgs/Header header\nstring format\nuint8[] data\n",
        geometry_msgs__Pose="Point position\nQuaternion orientation\n",
        geometry_msgs__Point="float64 x\nfloat64 y\nfloat64 z\n",
        std_msgs__ColorRGBA="float32 r\nfloat32 g\nfloat32 b\nfloat32 a\n",
        builtin_interfaces__Duration="int32 sec\nuint32 nanosec\n",
        **_GEOMETRY,
    ),
}
"""Message definitions in the form that recordings carry, by type name."""


class MessageLayout:
    """Bytes of one message with zeros where numbers go; remembers where they go.

    Attributes:
        data: What there is so far, in CDR.
        slots: Offset, count and type of the numbers to fill in.
        stamps: Offsets of the time stamps to fill in.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.slots: list[tuple[int, int, str]] = []
        self.stamps: list[int] = []

    def align(self, size: int) -> None:
        """Fill up to a multiple of ``size`` bytes."""
        self.data += bytes(-len(self.data) % size)

    def uint32(self, value: int) -> None:
        """Add a number of 32 bits."""
        self.align(4)
        self.data += struct.pack("<I", value)

    def flag(self, value: bool) -> None:
        """Add a bool."""
        self.data += struct.pack("<?", value)

    def string(self, text: str) -> None:
        """Add a text."""
        encoded = text.encode()
        self.uint32(len(encoded) + 1)
        self.data += encoded + b"\0"

    def header(self, frame_id: str) -> None:
        """Add a std_msgs/Header, whose stamp is filled in."""
        self.align(4)
        self.stamps.append(len(self.data))
        self.data += bytes(8)
        self.string(frame_id)

    def numbers(self, count: int, kind: str = "<f8") -> None:
        """Add places of numbers that are no sequence: ``<f8`` or ``<f4``."""
        size = np.dtype(kind).itemsize
        self.align(size)
        self.slots.append((len(self.data), count, kind))
        self.data += bytes(size * count)

    def sequence(self, count: int, kind: str = "<f8") -> None:
        """Add the numbers of a sequence behind its length; an empty one has nothing to align."""
        if count:
            self.numbers(count, kind)
        else:
            self.slots.append((len(self.data), 0, kind))

    def doubles(self, count: int) -> None:
        """Add a sequence of float64 with its length."""
        self.uint32(count)
        self.sequence(count)

    def fill(
        self, rows: int, columns: Sequence[npt.NDArray[Any] | None], stamps: Stamps | None = None
    ) -> Messages:
        """Return messages with ``columns`` in the slots.

        Args:
            rows: How many.
            columns: For each slot, shape (rows, count); zeros where there is None.
            stamps: Of the headers, shape (rows,), [ns].
        """
        # offsets count from behind the 4-byte encapsulation header (CDR_LE, no options)
        template = np.frombuffer(b"\x00\x01\x00\x00" + bytes(self.data), dtype=np.uint8)
        out = np.tile(template, (rows, 1))
        for (offset, count, kind), values in zip(self.slots, columns, strict=True):
            if values is not None and count:
                raw = np.ascontiguousarray(values, dtype=kind).view(np.uint8)
                out[:, 4 + offset : 4 + offset + raw.shape[1]] = raw
        if stamps is not None:
            parts = np.divmod(stamps, 1_000_000_000)
            for offset in self.stamps:
                for k, (part, kind) in enumerate(zip(parts, ("<i4", "<u4"), strict=True)):
                    raw = part.astype(kind).view(np.uint8).reshape(-1, 4)
                    out[:, 4 + offset + 4 * k : 8 + offset + 4 * k] = raw
        return out


def joint_states(
    stamps: npt.NDArray[np.int64],
    names: Sequence[str],
    *,
    position: Array | None = None,
    velocity: Array | None = None,
    effort: Array | None = None,
    frame_id: str = "",
) -> Messages:
    """Serialise a series of ``sensor_msgs/msg/JointState``.

    Args:
        stamps: Header stamps, shape (n,), [ns], not negative.
        names: Names of the joints or muscles, length k.
        position: Shape (n, k); an absent field becomes an empty sequence.
        velocity: Likewise.
        effort: Likewise.
        frame_id: Frame of the header.
    """
    layout = MessageLayout()
    layout.header(frame_id)
    layout.uint32(len(names))
    for name in names:
        layout.string(name)
    columns = (position, velocity, effort)
    for values in columns:
        layout.doubles(0 if values is None else values.shape[1])
    return layout.fill(len(stamps), columns, stamps)


def float64_arrays(values: Array) -> Messages:
    """Serialise the rows of ``values`` as ``std_msgs/msg/Float64MultiArray`` without layout."""
    layout = MessageLayout()
    layout.uint32(0)  # layout.dim
    layout.uint32(0)  # layout.data_offset
    layout.doubles(values.shape[1])
    return layout.fill(len(values), (values,))


def string_message(text: str) -> Messages:
    """Serialise one ``std_msgs/msg/String``."""
    layout = MessageLayout()
    layout.string(text)
    return layout.fill(1, ())


@dataclass(frozen=True, eq=False)
class Channel:
    """A series of messages on one topic.

    Attributes:
        topic: Absolute topic name.
        type_name: Message type, a key of `DEFINITIONS`.
        stamps: Log times, shape (n,), [ns].
        messages: Serialises the messages of some of the n rows, all of one size.
    """

    topic: str
    type_name: str
    stamps: Stamps
    messages: Serialiser


@dataclass(frozen=True)
class Names:
    """Names that the messages carry.

    Attributes:
        joints: Of the coordinates q, length nq.
        velocities: Entry of q that each entry of qd belongs to, length nv.
        muscles: Length m.
        desired: Of the controlled coordinates, length d.
        error: Of the entries of the error.
        controller: Node name of the controller.
        commanded: Muscles that the controller commands; all of them if None.
        motors: Entry of q that each joint motor acts on.
    """

    joints: Sequence[str]
    velocities: Sequence[int]
    muscles: Sequence[str]
    desired: Sequence[str] = ()
    error: Sequence[str] = ()
    controller: str = "controller"
    commanded: Sequence[str] | None = None
    motors: Sequence[int] = ()


def channels(
    simulator: SimulatorLog,
    controller: ControllerLog | None,
    names: Names,
    robot_description: str | None = None,
) -> list[Channel]:
    """Return the topics of a run.

    ``/joint_states``, ``/muscle_states``, ``/q``, ``/q_dot`` from the simulator,
    ``/force_command``, ``/effort_command`` where joints have motors, ``/<controller>/desired`` and
    ``/<controller>/error`` and its signals from the controller, ``/robot_description`` once if
    given.

    Args:
        simulator: Log of the simulator.
        controller: Log of the controller, if there was one.
        names: Names that the messages carry.
        robot_description: Text of the SDF or URDF.
    """
    state = "sensor_msgs/msg/JointState"
    array = "std_msgs/msg/Float64MultiArray"
    stamps = nanoseconds(simulator.time)
    velocities, motors = list(names.velocities), list(names.motors)

    def joints(rows: slice) -> Messages:
        # a quaternion has four coordinates and three velocities: the slot of its w stays zero
        position = simulator.q[rows]
        velocity = np.zeros_like(position)
        velocity[:, velocities] = simulator.qd[rows]
        effort = None
        if motors:
            effort = np.zeros_like(position)
            effort[:, motors] = simulator.efforts[rows]
        return joint_states(
            stamps[rows], names.joints, position=position, velocity=velocity, effort=effort
        )

    def muscles(rows: slice) -> Messages:
        # as `cards_ros.messages.MuscleStateSlots` has it: the states come after the muscles
        actuators = simulator.actuators[rows]
        zeros = np.zeros_like(actuators)
        return joint_states(
            stamps[rows],
            (*names.muscles, *simulator.actuator_names),
            position=np.hstack([simulator.muscle_lengths[rows], actuators]),
            velocity=np.hstack([simulator.muscle_rates[rows], zeros]),
            effort=np.hstack([simulator.tensions[rows], zeros]),
        )

    out = [
        Channel("/joint_states", state, stamps, joints),
        Channel("/muscle_states", state, stamps, muscles),
        Channel("/q", array, stamps, lambda rows: float64_arrays(simulator.q[rows])),
        Channel("/q_dot", array, stamps, lambda rows: float64_arrays(simulator.qd[rows])),
    ]
    if robot_description is not None:
        text = string_message(robot_description).__getitem__
        out.insert(0, Channel("/robot_description", "std_msgs/msg/String", stamps[:1], text))
    if controller is not None:
        out += _controller_channels(controller, names)
    return out


def _controller_channels(log: ControllerLog, names: Names) -> list[Channel]:
    stamps = nanoseconds(log.time)
    rate = log.desired_dot if log.desired_dot.shape == log.desired.shape else None
    commanded = names.muscles if names.commanded is None else names.commanded
    series: dict[str, tuple[Sequence[str], dict[str, Array | None]]] = {
        "/force_command": (commanded, {"effort": log.tensions})
    }
    if names.motors:
        motors = [names.joints[i] for i in names.motors]
        series["/effort_command"] = motors, {"effort": log.efforts}
    own = f"/{names.controller}"
    series[f"{own}/desired"] = names.desired, {"position": log.desired, "velocity": rate}
    series[f"{own}/error"] = names.error, {"position": log.error}
    for name, signal in log.signals.items():
        series[f"{own}/{name}"] = signal.names, {signal.field: signal.values}
    return [
        Channel(topic, "sensor_msgs/msg/JointState", stamps, _states(stamps, entries, fields))
        for topic, (entries, fields) in series.items()
    ]


def _states(
    stamps: Stamps, names: Sequence[str], fields: Mapping[str, Array | None]
) -> Serialiser:
    def serialise(rows: slice) -> Messages:
        position, velocity, effort = (
            None if values is None else values[rows]
            for values in map(fields.get, ("position", "velocity", "effort"))
        )
        return joint_states(
            stamps[rows], names, position=position, velocity=velocity, effort=effort
        )

    return serialise


def nanoseconds(time: Array) -> Stamps:
    """Return times [s] as integers [ns]."""
    return np.rint(np.asarray(time) * 1e9).astype(np.int64)


def write_mcap(
    path: Path | str, series: Sequence[Channel], metadata: Mapping[str, str] | None = None
) -> None:
    """Write channels to an MCAP file, merged by time.

    Args:
        path: File to write; an existing one is replaced.
        series: What to write.
        metadata: Stored in the file as the metadata record ``cards``.
    """
    with open(path, "wb") as stream:
        writer = Writer(stream, chunk_size=1 << 20, compression=CompressionType.ZSTD)
        writer.start(profile="ros2", library="cards_viz")
        if metadata:
            writer.add_metadata("cards", dict(metadata))
        schemas: dict[str, int] = {}
        ids = []
        for item in series:
            if item.type_name not in schemas:
                definition = DEFINITIONS[item.type_name].encode()
                schemas[item.type_name] = writer.register_schema(
                    item.type_name, "ros2msg", definition
                )
            ids.append(writer.register_channel(item.topic, "cdr", schemas[item.type_name]))
        blocks = [_Blocks(item.messages) for item in series]
        for stamp, index, row in _by_time(series):
            data = blocks[index].message(row)
            writer.add_message(ids[index], stamp, data, stamp, sequence=row)
        writer.finish()


class _Blocks:
    """Messages of a channel one by one, in the order of their rows."""

    def __init__(self, serialise: Serialiser) -> None:
        self._serialise = serialise
        self._first, self._size, self._data = 0, 0, b""

    def message(self, row: int) -> bytes:
        if not self._first <= row < self._first + BLOCK or not self._data:
            self._first = row - row % BLOCK
            messages = self._serialise(slice(self._first, self._first + BLOCK))
            self._size, self._data = messages.shape[1], messages.tobytes()
        start = (row - self._first) * self._size
        return self._data[start : start + self._size]


def _by_time(series: Sequence[Channel]) -> Iterator[tuple[int, int, int]]:
    """Yield (stamp, channel, row) of all messages in the order of their stamps."""
    stamps = np.concatenate([item.stamps for item in series])
    index = np.repeat(np.arange(len(series)), [len(item.stamps) for item in series])
    rows = np.concatenate([np.arange(len(item.stamps)) for item in series])
    order = np.argsort(stamps, kind="stable")
    for first in range(0, len(order), BLOCK):
        part = order[first : first + BLOCK]
        yield from zip(
            stamps[part].tolist(), index[part].tolist(), rows[part].tolist(), strict=True
        )
