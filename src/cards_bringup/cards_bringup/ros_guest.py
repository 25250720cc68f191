"""Listening to a run's topics from the program that started it."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self


class RosGuest:
    """A node of its own in a ROS context of its own, without services. Context manager.

    ROS leaves signals alone, so that Ctrl-C stays with the program.
    """

    _node: Any
    _executor: Any

    def _subscribe(self) -> None:
        """Make the subscriptions of ``_node``."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Join the ROS network."""
        import rclpy
        from rclpy.context import Context
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions

        self._context = Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            "cards_run", context=self._context, start_parameter_services=False
        )
        self._subscribe()
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._node)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the network."""
        self._executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()
