"""The ROS network of a run: a domain of its own, and a node that listens to the run's topics."""

from __future__ import annotations

import itertools
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from cards_core.errors import CardsError
from cards_core.files import claim

DOMAINS_TRIED = 20
"""How many domains from the wanted one upwards are tried."""

LAST_DOMAIN = 101
"""Highest domain that works on every platform."""

_MARK = 7402
"""Port of domain 0 that DDS leaves free; a domain has 250 ports."""


class RosDomain:
    """The first ROS domain, from ``$ROS_DOMAIN_ID`` upwards, that no other run of CARDS uses.

    The operating system holds a lock, known to this user, and a port, known to all, which end
    with the process, however it ends. A user who holds the ports of all domains keeps nobody else
    from running: then the lock alone counts.

    Attributes:
        wanted: ``$ROS_DOMAIN_ID``, or 0.
        number: The domain that was reserved.

    Raises:
        CardsError: ``$ROS_DOMAIN_ID`` is not a domain, or all are taken.
    """

    def __init__(self) -> None:
        text = os.environ.get("ROS_DOMAIN_ID", "0") or "0"
        if not text.isdecimal() or int(text) > LAST_DOMAIN:
            raise CardsError(f"ROS_DOMAIN_ID is '{text}' (expected: 0 to {LAST_DOMAIN})")
        self.wanted = int(text)
        numbers = range(self.wanted, min(self.wanted + DOMAINS_TRIED, LAST_DOMAIN + 1))
        for alone, number in itertools.product((True, False), numbers):
            descriptor = claim(f"domain-{number}")
            if descriptor is None:
                continue
            self._mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                self._mark.bind(("127.0.0.1", _MARK + 250 * number))
            except OSError:
                self._mark.close()
                if alone:
                    os.close(descriptor)
                    continue
            self.number, self._descriptor = number, descriptor
            return
        raise CardsError(
            f"ROS domains {self.wanted} to {number} are all used by other runs; stop one"
        )

    def __enter__(self) -> Self:
        """Return the domain."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the domain."""
        self._mark.close()
        os.close(self._descriptor)

    def join(self, note: Callable[[str], None]) -> None:
        """Put this process into the domain; ``note`` is told if it is not the wanted one."""
        if self.number != self.wanted:
            note(
                f"ROS domain {self.wanted} is used by another run; this one is in "
                f"ROS_DOMAIN_ID={self.number}"
            )
        os.environ.update(self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of processes in this domain; discovery stays on this machine."""
        out = {"ROS_DOMAIN_ID": str(self.number)}
        if "ROS_AUTOMATIC_DISCOVERY_RANGE" not in os.environ:
            out["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        return out


class RosListener(ABC):
    """A node with its own ROS context and without services. Context manager.

    ROS leaves signals alone, so that Ctrl-C stays with the program.
    """

    _node: Any
    _executor: Any

    @property
    def node(self) -> Any:
        """The node, for subscriptions and clients of your own."""
        return self._node

    @abstractmethod
    def _subscribe(self) -> None:
        """Create the subscriptions of ``_node``."""

    def _spin(self, seconds: float) -> None:
        """Process one message, waiting for it at most so long, [s]; Ctrl-C of a command waits."""
        self._executor.spin_once(timeout_sec=seconds)

    def __enter__(self) -> Self:
        """Join the ROS network. Raises `CardsError` where this machine has no loopback."""
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions

        from cards_ros.middleware import check_loopback, use_udp

        check_loopback()
        use_udp()
        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            "cards_run", context=self._context, start_parameter_services=False
        )
        self._subscribe()
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the network."""
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()
