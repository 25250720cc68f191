"""An observer of a robot's topics in a process of its own: sees, keeps, and decides nothing.

It uses ROS alone, none of the code that it observes. Every quarter of a second a line on standard
output says how much it has seen; at Ctrl-C all of it goes to a file for the judge.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from cards_bringup.soak.judge import Seen, count_missed
from cards_core.foreign_files import read_arrays
from cards_ros.middleware import use_udp

DEPTH = 5000
"""Messages that may wait: an observer that is late must not lose any."""

LARGEST = 1_000_000
"""Messages with more bytes are no commands of this robot."""

TELL_PERIOD = 0.25
"""[s]"""


class Observer(Node):
    """Collects states and commands.

    Args:
        context: ROS context.
        muscles: Names of the muscles.
        low: Least tensions, [N].
        high: Largest tensions, [N].
    """

    def __init__(
        self,
        context: Context,
        muscles: Sequence[str],
        low: Sequence[float],
        high: Sequence[float],
    ) -> None:
        super().__init__("soak_observer", context=context, start_parameter_services=False)
        self._muscles = list(muscles)
        self._low = dict(zip(muscles, low, strict=True))
        self._high = dict(zip(muscles, high, strict=True))
        self.states: list[tuple[float, float, list[float]]] = []
        self.commands: list[tuple[float, float, bool, int]] = []
        self._due: set[int] = set()  # numbers that the next commands of known publishers have
        qos = QoSProfile(
            history=HistoryPolicy.KEEP_LAST, depth=DEPTH, reliability=ReliabilityPolicy.RELIABLE
        )
        # rclpy's types know no information with raw messages
        callbacks: dict[str, Any] = {"muscle_states": self._state, "force_command": self._command}
        for topic, callback in callbacks.items():
            self.create_subscription(JointState, topic, callback, qos, raw=True)

    def _read(self, data: bytes) -> Any:
        if len(data) > LARGEST:
            return None
        return deserialize_message(data, JointState)

    def _state(self, data: bytes, info: Mapping[str, int]) -> None:
        now, message = _arrival(info), self._read(data)
        if message is None:
            return
        found = dict(zip(message.name, message.effort, strict=False))
        tensions = [found.get(name, float("nan")) for name in self._muscles]
        self.states.append((now, _seconds(message), tensions))

    def _command(self, data: bytes, info: Mapping[str, int]) -> None:
        now, message = _arrival(info), self._read(data)
        missed = count_missed(self._due, info["publication_sequence_number"])
        if message is not None:
            self.commands.append((now, _seconds(message), self._valid(message), missed))

    def _valid(self, message: Any) -> bool:
        """Tell whether a host may obey: each muscle once, a number within its limits."""
        names, values = list(message.name), list(message.effort)
        return (
            0 < len(names) == len(values) == len(set(names))
            and all(name in self._low for name in names)
            and all(
                self._low[n] - 1e-9 <= v <= self._high[n] + 1e-9
                for n, v in zip(names, values, strict=True)
            )
        )

    def save(self, path: Path) -> None:
        """Write what was seen."""
        count = len(self._muscles)
        np.savez(
            path,
            state_wall=np.array([s[0] for s in self.states]),
            state_stamp=np.array([s[1] for s in self.states]),
            tensions=np.array([s[2] for s in self.states]).reshape(-1, count),
            command_wall=np.array([c[0] for c in self.commands]),
            command_stamp=np.array([c[1] for c in self.commands]),
            command_valid=np.array([c[2] for c in self.commands], dtype=bool),
            command_missed=np.array([c[3] for c in self.commands], dtype=int),
        )


def read_seen(path: Path) -> Seen:
    """Return what an observer saved. Raises `DescriptionError`."""
    return Seen(**read_arrays(path))


def _arrival(info: Mapping[str, int]) -> float:
    """Return when the middleware got a message, on the monotonic clock, [s].

    In a flood it is taken from the queue up to a second later.
    """
    waited = max(0, time.time_ns() - info["received_timestamp"])
    return time.monotonic() - 1e-9 * waited


def _seconds(message: Any) -> float:
    stamp = message.header.stamp
    return float(stamp.sec + 1e-9 * stamp.nanosec)


def main(arguments: Sequence[str] | None = None) -> int:
    """Observe until Ctrl-C; the argument is JSON: muscles, low, high, out."""
    (text,) = sys.argv[1:] if arguments is None else arguments
    given = json.loads(text)
    stopped = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    use_udp()
    context = Context()
    rclpy.init(context=context, signal_handler_options=SignalHandlerOptions.NO)
    node = Observer(context, given["muscles"], given["low"], given["high"])
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    told = 0.0
    while not stopped:
        executor.spin_once(timeout_sec=0.05)
        now = time.monotonic()
        if now - told > TELL_PERIOD:
            told = now
            last = node.states[-1] if node.states else (0.0, -1.0, [])
            valid = node.commands[-1][1] if node.commands else -1.0
            line = {"states": len(node.states), "t": last[1], "commands": len(node.commands)}
            print(json.dumps({**line, "command_t": valid}), flush=True)
    end = time.monotonic() + 0.5  # what is on its way still counts
    while time.monotonic() < end:
        executor.spin_once(timeout_sec=0.02)
    node.save(Path(given["out"]))
    executor.shutdown()
    node.destroy_node()
    context.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
