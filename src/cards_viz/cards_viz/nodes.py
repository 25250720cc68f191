"""Base classes of the nodes that draw: a steady loop, and a page in the browser."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from cards_ros.loop import DRAWING_NICE, StopFlag, lower_priority
from cards_ros.parameters import Parameter, Parameters
from cards_viz.pages.access import page_port, tell_link

PORT = Parameter("port", 8080, "Port; if it is in use the next free one.", lower=0, upper=65535)
WINDOW = Parameter("window", 10.0, "Length of the live plots.", "s", lower=1.0, upper=60.0)
"""Parameters of all nodes with a page."""

_PATIENCE = 0.02  # [s], longest wait for other topics: bounds how late a signal is noticed


class PacedNode(Node, ABC):
    """A node that looks at topics ``rate`` times a second and serves the others in between.

    Subclasses pass their parameters, among them ``rate``, and implement `tick`.

    Args:
        name: Node name.
        parameters: To declare.
        context: ROS context.
        stop: Ends `run`.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        values: The parameters.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[Parameter],
        context: Context,
        stop: StopFlag,
        **node_options: Any,
    ) -> None:
        super().__init__(name, context=context, **node_options)
        self._stop = stop
        self.values = Parameters(self)
        self.values.declare(parameters)
        self.values.refuse_others()
        self._period = 1.0 / self.values["rate"]
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self)

    @abstractmethod
    def tick(self) -> None:
        """Look at the topics and draw what is new."""

    def run(self) -> int:
        """Draw until the stop flag is set; return the exit code."""
        due = time.monotonic()
        while not self._stop and self.context.ok():
            now = time.monotonic()
            if now >= due:
                due = max(due + self._period, now)
                self.tick()
            wait = min(due - time.monotonic(), _PATIENCE)
            self._executor.spin_once(timeout_sec=max(0.0, wait))
        return 0

    def close(self) -> None:
        """Destroy the node."""
        self._executor.shutdown()
        self.destroy_node()


class OpenPage(Protocol):
    """What nodes use of `cards_viz.pages.page.Page`: nodes without a page need no viser."""

    @property
    def url(self) -> str:
        """Address of the page."""
        ...

    @property
    def spectator_url(self) -> str:
        """Address for those who may look on."""
        ...

    def notify(self, text: str) -> None:
        """Show a message."""
        ...

    def say(self, text: str) -> None:
        """Show a piece of good news."""
        ...

    def stop(self) -> None:
        """Close the page."""
        ...


class PageNode(PacedNode):
    """A `PacedNode` that shows what it draws on a page of its own.

    Subclasses open ``page`` at the end of their constructor: a browser may connect, and command,
    before the constructor returns.

    Attributes:
        page: The page.
    """

    page: OpenPage
    _remove_link: Callable[[], None] | None = None

    def tell(self, text: str) -> None:
        """Show a message in the log and on the page."""
        self.get_logger().warning(text)
        self.page.notify(text)

    def run(self) -> int:
        """Say where the page is, then draw; see `PacedNode.run`."""
        link, self._remove_link = tell_link(self.page.url, self.page.spectator_url)
        self.get_logger().info(f"page on port {page_port(self.page.url)}; link in {link}")
        # not before: a machine that is busy would make its user wait for the page
        lower_priority(DRAWING_NICE)
        return super().run()

    def close(self) -> None:
        """Close the page and destroy the node."""
        if self._remove_link is not None:
            self._remove_link()
        self.page.stop()
        super().close()
