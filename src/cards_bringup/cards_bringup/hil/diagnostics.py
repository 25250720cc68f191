"""Hears what the bridge says on ``/diagnostics``, and sees who listens to what."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, field
from typing import Any

from cards_bringup.ros_guest import RosGuest

WORRY = 2
"""Level of an error, see `cards_ros.diagnostics.Level`; `bytes` in the message."""


@dataclass
class Said:
    """One status as it was said last.

    Attributes:
        level: 0 OK, 1 WARN, 2 ERROR, 3 STALE.
        message: In words.
        values: All values ever said, the newest each.
        since: When this level began, monotonic [s].
    """

    level: int = 0
    message: str = ""
    values: dict[str, str] = field(default_factory=dict)
    since: float = 0.0


class Listener(RosGuest):
    """Keeps the newest status of every aspect of the bridge. Context manager.

    Args:
        node: Name of the node that is listened to.

    Attributes:
        said: Aspect, e.g. ``boards`` or ``board arm``, to what was said.
    """

    def __init__(self, node: str = "hardware") -> None:
        self._name = node
        self.said: dict[str, Said] = {}

    def _subscribe(self) -> None:
        from cards_ros import topics

        message = importlib.import_module("diagnostic_msgs.msg").DiagnosticArray
        self._node.create_subscription(
            message, topics.DIAGNOSTICS, self._hear, topics.DIAGNOSTICS_QOS
        )

    def wait(self, seconds: float) -> None:
        """Listen for a while."""
        end = time.monotonic() + seconds
        while (rest := end - time.monotonic()) > 0.0:
            self._spin(rest)

    def listeners(self, topic: str) -> set[str]:
        """Return the names of the nodes that subscribe to a topic."""
        return {info.node_name for info in self._node.get_subscriptions_info_by_topic(topic)}

    def _hear(self, message: Any) -> None:
        for status in message.status:
            # "hardware: board arm", or with the namespace in front
            node, _, aspect = status.name.partition(": ")
            if node.rpartition("/")[2] != self._name:
                continue
            said = self.said.setdefault(aspect, Said())
            level = int.from_bytes(status.level, "little")
            if level != said.level or not said.since:
                said.since = time.monotonic()
            said.level, said.message = level, status.message
            said.values.update({item.key: item.value for item in status.values})

    def complaint(self, patience: float) -> str:
        """Return the first error that has stood for so long [s], empty if there is none."""
        now = time.monotonic()
        for aspect, said in self.said.items():
            if said.level >= WORRY and now - said.since > patience:
                return f"{aspect}: {said.message}"
        return ""
