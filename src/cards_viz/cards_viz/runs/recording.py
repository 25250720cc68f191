"""MCAP recording of a run: the topics of the run as real ROS 2 messages.

Opens in Foxglove and PlotJuggler and with ``ros2 bag`` (``ros2 bag info run/recording.mcap``).
Log times are simulation times, so the same run gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from mcap.writer import CompressionType, Writer

from cards_core.typing import Array
from cards_viz.runs import cdr
from cards_viz.runs.log import ControllerLog, SimulatorLog

Stamps = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Channel:
    """A series of messages on one topic.

    Attributes:
        topic: Absolute topic name.
        type_name: Message type, a key of `cdr.DEFINITIONS`.
        stamps: Log times, shape (n,), [ns].
        messages: Serialised messages, shape (n, size).
    """

    topic: str
    type_name: str
    stamps: Stamps
    messages: cdr.Messages


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
    ``/<controller>/error`` from the controller, ``/robot_description`` once if given.
    """
    state = "sensor_msgs/msg/JointState"
    stamps = nanoseconds(simulator.time)
    # a quaternion has four coordinates and three velocities: the slot of its w stays zero
    velocity = np.zeros_like(simulator.q)
    velocity[:, list(names.velocities)] = simulator.qd
    effort = None
    if names.motors:
        effort = np.zeros_like(simulator.q)
        effort[:, list(names.motors)] = simulator.efforts
    joints = cdr.joint_states(
        stamps, names.joints, position=simulator.q, velocity=velocity, effort=effort
    )
    # as `cards_ros.messages.MuscleStateSlots` has it: the states come after the muscles
    zeros = np.zeros_like(simulator.actuators)
    muscles = cdr.joint_states(
        stamps,
        (*names.muscles, *simulator.actuator_names),
        position=np.hstack([simulator.muscle_lengths, simulator.actuators]),
        velocity=np.hstack([simulator.muscle_rates, zeros]),
        effort=np.hstack([simulator.tensions, zeros]),
    )
    array = "std_msgs/msg/Float64MultiArray"
    out = [
        Channel("/joint_states", state, stamps, joints),
        Channel("/muscle_states", state, stamps, muscles),
        Channel("/q", array, stamps, cdr.float64_arrays(simulator.q)),
        Channel("/q_dot", array, stamps, cdr.float64_arrays(simulator.qd)),
    ]
    if robot_description is not None:
        text = cdr.string_message(robot_description)
        out.insert(0, Channel("/robot_description", "std_msgs/msg/String", stamps[:1], text))
    if controller is not None:
        stamps = nanoseconds(controller.time)
        rate = controller.desired_dot
        same = rate.shape == controller.desired.shape
        commanded = names.muscles if names.commanded is None else names.commanded
        command = cdr.joint_states(stamps, commanded, effort=controller.tensions)
        desired = cdr.joint_states(
            stamps, names.desired, position=controller.desired, velocity=rate if same else None
        )
        error = cdr.joint_states(stamps, names.error, position=controller.error)
        out += [
            Channel("/force_command", state, stamps, command),
            *(
                [Channel("/effort_command", state, stamps, _efforts(stamps, controller, names))]
                if names.motors
                else []
            ),
            Channel(f"/{names.controller}/desired", state, stamps, desired),
            Channel(f"/{names.controller}/error", state, stamps, error),
        ]
    return out


def _efforts(stamps: Stamps, controller: ControllerLog, names: Names) -> cdr.Messages:
    motors = [names.joints[i] for i in names.motors]
    return cdr.joint_states(stamps, motors, effort=controller.efforts)


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
                definition = cdr.DEFINITIONS[item.type_name].encode()
                schemas[item.type_name] = writer.register_schema(
                    item.type_name, "ros2msg", definition
                )
            ids.append(writer.register_channel(item.topic, "cdr", schemas[item.type_name]))
        blobs = [item.messages.tobytes() for item in series]
        sizes = [item.messages.shape[1] for item in series]
        for stamp, index, row in _by_time(series):
            data = blobs[index][row * sizes[index] : (row + 1) * sizes[index]]
            writer.add_message(ids[index], stamp, data, stamp, sequence=row)
        writer.finish()


def _by_time(series: Sequence[Channel]) -> Iterator[tuple[int, int, int]]:
    """Yield (stamp, channel, row) of all messages in the order of their stamps."""
    stamps = np.concatenate([item.stamps for item in series])
    index = np.repeat(np.arange(len(series)), [len(item.stamps) for item in series])
    rows = np.concatenate([np.arange(len(item.stamps)) for item in series])
    order = np.argsort(stamps, kind="stable")
    return zip(stamps[order].tolist(), index[order].tolist(), rows[order].tolist(), strict=True)
