"""Health of a node on ``/diagnostics``: once a second, and at once when a level changes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import IntEnum

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from cards_core.loop.verdict import Verdict
from cards_ros import topics

PERIOD = 1.0
"""Seconds between two messages without change (REP-107)."""


class Level(IntEnum):
    """Levels of a diagnostic status, in order of severity."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


class Status:
    """One aspect of a node, e.g. its loop or its commands.

    Attributes:
        level, message: The present state.
        values: What to show with it; written by the owner at any time, sent with the next message.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.level = Level.OK
        self.message = "ok"
        self.values: dict[str, object] = {}
        self.changed = True

    def report(self, level: Level, message: str, **values: object) -> bool:
        """Set the state; returns whether level or message changed.

        Args:
            level: New level.
            message: New message.
            values: Entries of ``values`` to set.
        """
        self.values.update(values)
        if level == self.level and message == self.message:
            return False
        self.changed = True
        self.level = level
        self.message = message
        return True

    def ok(self, message: str = "ok", **values: object) -> bool:
        """Set the state to OK."""
        return self.report(Level.OK, message, **values)


class Diagnostics:
    """Publishes the statuses of a node.

    Args:
        node: The node; its name, with its namespace, leads the names of the statuses.
        hardware_id: What the statuses are about, e.g. the robot's name.
        names: Names of the statuses, in the order of the message.
    """

    def __init__(self, node: Node, hardware_id: str, names: Mapping[str, str] | tuple[str, ...]):
        self._node = node
        self._hardware_id = hardware_id
        self._publisher = node.create_publisher(
            DiagnosticArray, topics.DIAGNOSTICS, topics.DIAGNOSTICS_QOS
        )
        self._statuses = {name: Status(name) for name in names}
        self._sent = -PERIOD
        self._logged: set[str] = set()

    def __getitem__(self, name: str) -> Status:
        return self._statuses[name]

    @property
    def level(self) -> Level:
        """The worst level of all statuses."""
        return max(status.level for status in self._statuses.values())

    def log_errors(self) -> None:
        """Write errors into the log of the node, each once when it begins."""
        errors = [status for status in self._statuses.values() if status.level is Level.ERROR]
        for status in errors:
            if status.name not in self._logged:
                self._node.get_logger().error(f"{status.name}: {status.message}")
        self._logged = {status.name for status in errors}

    def update(self) -> None:
        """Publish if a status changed or the last message is a second old."""
        now = time.monotonic()
        changed = any(status.changed for status in self._statuses.values())
        if changed or now - self._sent >= PERIOD:
            self._sent = now
            self._publish()

    def _publish(self) -> None:
        message = DiagnosticArray()
        message.header.stamp = self._node.get_clock().now().to_msg()
        # with its namespace: robots of one network have nodes of the same name
        prefix = self._node.get_fully_qualified_name().lstrip("/")
        for status in self._statuses.values():
            status.changed = False
            message.status.append(
                DiagnosticStatus(
                    level=bytes([status.level]),
                    name=f"{prefix}: {status.name}",
                    message=status.message,
                    hardware_id=self._hardware_id,
                    values=[
                        KeyValue(key=key, value=_text(value))
                        for key, value in status.values.items()
                    ],
                )
            )
        self._publisher.publish(message)


def _text(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def tell(node: Node, what: str, verdict: Verdict) -> None:
    """Write a verdict into the output of a node, one line, and a line for each warning.

    Args:
        node: Says it.
        what: What is judged, e.g. ``host until the reset``.
        verdict: The verdict; that somebody stopped the node is nothing to tell.
    """
    logger = node.get_logger()
    # a severity for each place in the code: rclpy allows no other
    if verdict.failures:
        logger.error(f"{what}: failed: {'; '.join(verdict.failures)}")
    else:
        logger.info(f"{what}: ok")
    for warning in verdict.warnings:
        logger.warning(f"{what}: {warning}")
