"""Snapshots of a running host: its topics and what it says on /diagnostics.

Nothing is spun between two snapshots: the newest messages wait in queues of depth one, and a
snapshot takes them. So a monitor costs nothing but the drawing, however fast the states come.
"""

from __future__ import annotations

import math
import time
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.robot.model import Robot
from cards_hardware.boards.events import flag_names
from cards_hardware.monitor.snapshot import (
    NAN,
    SERIOUS,
    BoardRow,
    JointRow,
    MuscleRow,
    Snapshot,
)
from cards_hardware.protocol.enums import Severity
from cards_ros import topics
from cards_ros.loop import HotSubscription
from cards_ros.messages import JointStateReader, JointStateSample

STALE = 1.0
"""States older than this are not shown as the robot's, [s]."""

STATUS_TIMEOUT = 2.0
"""Diagnostics older than this are of a node that is gone, [s]: they come every second."""

_COUNTERS = {
    "crc_errors": "damaged",
    "lost_frames": "lost",
    "rx_crc": "rx damaged",
    "rx_gap": "rx lost",
    "tx_dropped": "tx dropped",
    "drive_errors": "drive errors",
    "tick_late": "late ticks",
    "reconnects": "reconnects",
    "resets": "resets",
}
_STOP = "/estop"
_MINOR = frozenset(flag_names(~SERIOUS))


class TopicMonitor:
    """Listens to a host of the network.

    Args:
        node: Whose name and namespace are used; nobody else need spin it.
        robot: For limits and the title; None if it does not matter.
        hardware: The same with the tension limits of its boards, shown where there are boards.
    """

    def __init__(
        self, node: Node, robot: Robot | None = None, hardware: Robot | None = None
    ) -> None:
        self._node = node
        self._title = robot.name if robot else f"namespace {node.get_namespace()}"
        tree = robot.tree if robot else None
        self._bounds = (
            {}
            if tree is None
            else dict(
                zip(
                    tree.position_names,
                    zip(tree.lower.tolist(), tree.upper.tolist(), strict=True),
                    strict=True,
                )
            )
        )
        self._limits = _tension_limits(robot)
        self._board_limits = _tension_limits(hardware) or self._limits
        self._joints = _Newest(node, topics.JOINT_STATES)
        self._muscles = _Newest(node, topics.MUSCLE_STATES)
        self._said = HotSubscription(
            node, DiagnosticArray, topics.DIAGNOSTICS, topics.DIAGNOSTICS_QOS
        )
        self._statuses: dict[str, tuple[float, Any]] = {}
        self._events: list[tuple[float, int, str]] = []

    def snapshot(self) -> Snapshot:
        """Return what is known now."""
        now = time.monotonic()
        self._listen(now)
        muscles, joints = self._muscles.take(now), self._joints.take(now)
        fresh = {
            name: status
            for name, (heard, status) in self._statuses.items()
            if now - heard < STATUS_TIMEOUT
        }
        boards: list[BoardRow] = []
        words: dict[str, tuple[str, ...]] = {}
        for name, status in fresh.items():
            host, _, what = name.partition(": ")
            if what.startswith("board "):
                boards.append(_board(what.removeprefix("board "), status))
                words |= _muscle_words(status)
            elif what == "boards":
                boards.insert(0, BoardRow(host, state=status["lifecycle"], connected=True))
        problem = ""
        if muscles is None and joints is None:
            problem = "nothing on joint_states and muscle_states: is a host running?"
        return Snapshot(
            title=self._title,
            source="topics",
            boards=tuple(boards),
            muscles=self._muscle_rows(
                muscles, words, self._board_limits if boards else self._limits
            ),
            joints=self._joint_rows(joints),
            events=tuple((now - at, severity, text) for at, severity, text in self._events),
            problem=problem,
        )

    def estop(self) -> str:
        """Call every emergency stop there is in this namespace.

        Raises:
            CardsError: There is none, or none answers.
        """
        space = self._node.get_namespace().rstrip("/") + "/"
        names = [
            name
            for name, types in self._node.get_service_names_and_types()
            if name.endswith(_STOP) and name.startswith(space) and "std_srvs/srv/Trigger" in types
        ]
        if not names:
            raise CardsError(f"no service ...{_STOP} in {space}: USE THE STOP BUTTON")
        clients = [self._node.create_client(Trigger, name) for name in names]
        calls = {}
        for name, client in zip(names, clients, strict=True):
            if client.wait_for_service(0.5):
                calls[name] = client.call_async(Trigger.Request())
        executor = SingleThreadedExecutor(context=self._node.context)
        executor.add_node(self._node)
        end = time.monotonic() + 1.0
        while time.monotonic() < end and not all(call.done() for call in calls.values()):
            executor.spin_once(timeout_sec=0.05)
        executor.remove_node(self._node)
        executor.shutdown()
        done = [name for name, call in calls.items() if call.done() and call.result().success]
        for client in clients:
            self._node.destroy_client(client)
        if not done:
            raise CardsError(f"{', '.join(names)} did not answer: USE THE STOP BUTTON")
        return f"emergency stop: {', '.join(done)}"

    def close(self) -> None:
        """Destroy the node."""
        self._node.destroy_node()

    def _listen(self, now: float) -> None:
        while (data := self._said.take()) is not None:
            for status in deserialize_message(data, DiagnosticArray).status:
                values = {item.key: item.value for item in status.values}
                before = self._statuses.get(status.name)
                said = _Status(status.level, status.message, values)
                self._statuses[status.name] = (now, said)
                changed = before is None or before[1].text != said.text
                if changed and (before is not None or said.level):
                    severity = _SEVERITY.get(said.level, Severity.ERROR)
                    self._events.append((now, int(severity), f"{status.name}: {said.text}"))
        del self._events[:-50]

    def _muscle_rows(
        self,
        sample: JointStateSample | None,
        words: dict[str, tuple[str, ...]],
        limits: dict[str, float],
    ) -> tuple[MuscleRow, ...]:
        if sample is None:
            return tuple(MuscleRow(name) for name in limits)
        place = {name: index for index, name in enumerate(sample.names)}

        def state(name: str) -> float:
            index = place.get(name)
            return NAN if index is None else _at(sample.position, index)

        rows = []
        for name, index in place.items():
            muscle, _, _ = name.rpartition("/")
            if muscle in place:
                continue  # a state of an actuator
            flags = words.get(name, ())
            rows.append(
                MuscleRow(
                    name=name,
                    length=_at(sample.position, index),
                    rate=_at(sample.velocity, index),
                    tension=_at(sample.effort, index),
                    current=state(f"{name}/current"),
                    housing=state(f"{name}/housing_temperature"),
                    core=state(f"{name}/winding_temperature"),
                    tension_limit=limits.get(name, NAN),
                    flags=flags,
                    serious=any(flag not in _MINOR for flag in flags),
                )
            )
        return tuple(rows)

    def _joint_rows(self, sample: JointStateSample | None) -> tuple[JointRow, ...]:
        if sample is None:
            return ()
        free = (-math.inf, math.inf)
        return tuple(
            JointRow(
                name,
                _at(sample.position, i),
                _at(sample.velocity, i),
                *self._bounds.get(name, free),
            )
            for i, name in enumerate(sample.names)
        )


class _Newest:
    """The newest message of a topic."""

    def __init__(self, node: Node, topic: str) -> None:
        self._queue = HotSubscription(node, JointState, topic, topics.DRAWING_QOS)
        self._reader = JointStateReader()
        self._sample: JointStateSample | None = None
        self._taken = -math.inf

    def take(self, now: float) -> JointStateSample | None:
        while (data := self._queue.take()) is not None:
            self._sample, self._taken = self._reader.read(data), now
        return self._sample if now - self._taken < STALE else None


class _Status:
    """A status of /diagnostics."""

    def __init__(self, level: bytes, text: str, values: dict[str, str]) -> None:
        self.level = level[0] if isinstance(level, bytes) else int(level)
        self.text = text
        self.values = values

    def __getitem__(self, key: str) -> str:
        return self.values.get(key, "")

    def number(self, key: str) -> float:
        try:
            return float(self.values.get(key, ""))
        except ValueError:
            return NAN


_SEVERITY = {
    DiagnosticStatus.OK[0]: Severity.INFO,
    DiagnosticStatus.WARN[0]: Severity.WARN,
    DiagnosticStatus.ERROR[0]: Severity.ERROR,
    DiagnosticStatus.STALE[0]: Severity.WARN,
}


def _board(name: str, status: _Status) -> BoardRow:
    faults = status["faults"]
    counters = {short: status.number(key) for key, short in _COUNTERS.items()}
    counters |= {
        key.replace("refused_", "refused: "): status.number(key)
        for key in status.values
        if key.startswith("refused_")
    }
    return BoardRow(
        name=name,
        port=status["port"],
        state=status["state"] or "unknown",
        connected=status["state"] not in ("", "unknown"),
        problem=status.text if status.level else "",
        faults=tuple(faults.split(", ")) if faults not in ("", "none") else (),
        vbus=status.number("vbus"),
        state_rate=status.number("state_rate_hz"),
        state_age=status.number("state_age_ms") * 1e-3,
        latency_p99=status.number("command_latency_p99_ms") * 1e-3,
        heartbeat_gap=status.number("heartbeat_gap_max_ms") * 1e-3,
        reply=status.number("reply_max_ms") * 1e-3,
        heartbeat_jitter=status["heartbeat_jitter"],
        replies=status["replies"],
        counters={key: int(value) for key, value in counters.items() if value > 0},
        who=f"firmware {status['firmware']}" if status["firmware"] else "",
        simulated=status["simulated"] == "True",
    )


def _muscle_words(status: _Status) -> dict[str, tuple[str, ...]]:
    return {
        key.removeprefix("muscle "): tuple(text.split(", "))
        for key, text in status.values.items()
        if key.startswith("muscle ")
    }


def _tension_limits(robot: Robot | None) -> dict[str, float]:
    return {muscle.name: muscle.tension_max for muscle in robot.muscles} if robot else {}


def _at(values: Any, index: int) -> float:
    return float(values[index]) if index < len(values) else NAN
