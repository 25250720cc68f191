"""Listening to a run's topics from the program that started it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
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

    def _spin(self, seconds: float) -> None:
        """Take a message, or wait for one that long, [s]; Ctrl-C counts when that is done."""
        with _ctrl_c_later():
            self._executor.spin_once(timeout_sec=seconds)

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


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Keep Ctrl-C until the end of the block.

    Python raises KeyboardInterrupt wherever it is; inside the conversion of a message rclpy makes
    a RuntimeError of it, and a run that was stopped would look like one that crashed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    pressed = False

    def remember(_number: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
