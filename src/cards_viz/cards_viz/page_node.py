"""What the nodes with a page in the browser have in common; others need no viser."""

from __future__ import annotations

from typing import Any

from cards_viz.drawing_node import PacedNode
from cards_viz.page import Page


class PageNode(PacedNode):
    """A `PacedNode` that shows what it draws on a page of its own.

    Subclasses open ``page`` as the last thing of their constructor: one may be open in a browser,
    and command, before the constructor ends.

    Attributes:
        page: The page.
    """

    page: Page[Any]

    def tell(self, text: str) -> None:
        """Show a message in the log and on the page."""
        self.get_logger().warning(text)
        self.page.notify(text)

    def run(self) -> int:
        """Say where the page is, then draw; see `PacedNode.run`."""
        self.get_logger().info(f"open {self.page.url}")
        return super().run()

    def close(self) -> None:
        """Close the page and destroy the node."""
        self.page.stop()
        super().close()
