"""The runtime of nodes that run a control or simulation loop.

A spinning executor is no place for a 1 kHz loop: one ``spin_once`` costs 0.3 ms, and 5 ms now and
then. Here the loop itself waits for the few subscriptions it needs, asleep or looking for what
comes soon (`Looking`), and takes their messages as bytes (3 to 14 us). Services, parameters and
slow subscriptions it serves a few ten times a second by calling their callbacks directly.
Everything happens in one thread, so nothing needs a lock.

Where messages come from elsewhere too, e.g. from a thread that reads a serial line, that thread
calls `NodeLoop.wake`, and the loop fetches them.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import rclpy.logging
from rclpy.callback_groups import CallbackGroup
from rclpy.context import Context
from rclpy.exceptions import (
    InvalidParameterException,
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ROSInterruptException,
)
from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.service import Service
from rclpy.subscription import Subscription

from cards_core.cores import available_cores
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_ros.middleware import use_udp
from cards_ros.parameters import keep_arguments

SERVE_PERIOD = 0.02
"""Seconds between two looks at services and slow subscriptions."""

HOT_NICE = -10
"""Priority of hosts and controllers: drawing must not starve the loop that holds the robot up."""

DRAWING_NICE = 5
"""Priority of nodes that only draw."""

SOON = 3e-4
"""A message that comes within this time is looked for rather than waited for, [s]."""

_IDLE = 0.5  # [s] without a message after which quality-of-service events are looked at
_INSIST = 1.0  # [s] after which a second Ctrl-C means it
_WAIT_SLICE = 0.02  # [s], bounds how late a signal is noticed


class StopFlag:
    """Flag that ends a loop; set by Ctrl-C, SIGTERM or a test."""

    def __init__(self) -> None:
        self._stopped = False

    def __bool__(self) -> bool:
        return self._stopped

    def set(self) -> None:
        """Ask the loop to end after its current step."""
        self._stopped = True

    def install(self) -> Callable[[], None]:
        """Handle SIGINT and SIGTERM; returns a function that restores the old handlers.

        The first signal lets the loop end in order (last messages, log file). Ctrl-C again, at
        least a second later, interrupts at once; an earlier one is the same Ctrl-C, sent by the
        terminal and by a launcher.
        """
        if threading.current_thread() is not threading.main_thread():
            return lambda: None  # only the main thread may handle signals: the host does

        first = math.inf

        def handle(number: int, _frame: FrameType | None) -> None:
            nonlocal first
            now = time.monotonic()
            if number == signal.SIGINT and now - first > _INSIST:
                raise KeyboardInterrupt
            first = min(first, now)
            self._stopped = True

        old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}

        def restore() -> None:
            for number, handler in old.items():
                signal.signal(number, handler)

        return restore


class _LoopOnly(CallbackGroup):
    """Keeps an executor from taking the messages of a hot subscription."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        return None


class HotSubscription:
    """A subscription whose messages are taken by the loop, as bytes, and by nobody else.

    Attributes:
        taken: Number of messages taken.
    """

    def __init__(self, node: Node, msg_type: type, topic: str, qos: QoSProfile) -> None:
        self.taken = 0
        self._msg_type = msg_type
        self.subscription: Subscription = node.create_subscription(
            msg_type, topic, lambda _message: None, qos, callback_group=_LoopOnly(), raw=True
        )
        self._handle = self.subscription.handle
        self._next: bytes | None = None

    def has_come(self) -> bool:
        """Tell whether a message is there to be taken."""
        if self._next is None:
            self._next = self._fetch()
        return self._next is not None

    def take(self) -> bytes | None:
        """Return the next waiting message in serialised form, or None."""
        if self._next is None:
            return self._fetch()
        data, self._next = self._next, None
        return data

    def _fetch(self) -> bytes | None:
        handle = self._handle
        with handle:
            taken = handle.take_message(self._msg_type, True)
        if taken is None:
            return None
        self.taken += 1
        data: bytes = taken[0]
        return data


class HotPublisher:
    """A publisher of messages made by the writers of `cards_ros.messages`.

    Attributes:
        wanted: Whether anybody subscribed when `refresh` last looked; spares the work of making
            messages that nobody reads.
    """

    def __init__(self, node: Node, msg_type: type, topic: str, qos: QoSProfile) -> None:
        self.publisher = node.create_publisher(msg_type, topic, qos)
        self._handle = self.publisher.handle
        self.wanted = False

    def refresh(self) -> None:
        """Look for subscribers; meant to be called whenever `NodeLoop.serve` returns True."""
        self.wanted = self.publisher.get_subscription_count() > 0

    def publish(self, message: Any) -> None:
        """Send a message, serialised or as an object."""
        if type(message) is bytes:
            handle = self._handle
            with handle:
                handle.publish_raw(message)
        else:
            self.publisher.publish(message)


class Looking:
    """Decides whether a loop looks for its next message without pause, or sleeps until it comes.

    To be woken takes as long as a controller's answer. Looking pays where messages come within
    `SOON` and the loop has a processor of its own; where it has not, others run meanwhile, the
    sender perhaps not among them. So a loop that looks in vain too often sleeps for a while.

    Args:
        allowed: Without that the loop always sleeps.
    """

    TOLERATED = 0.1  # misses per hit that do no harm
    MISSES = 3  # more than tolerated, after which the loop sleeps
    REST = 500  # waits

    def __init__(self, allowed: bool) -> None:
        self._allowed = allowed
        self._soon = False
        self._misses = 0.0
        self._rest = 0

    @property
    def pays(self) -> bool:
        """Whether to look for the next message."""
        return self._soon and not self._rest

    def looked(self, *, in_time: bool) -> None:
        """Note that the loop looked; whether it found a message within `SOON`."""
        if in_time:
            self._misses = max(0.0, self._misses - self.TOLERATED)
            return
        self._soon = False
        self._misses += 1.0
        if self._misses >= self.MISSES:
            self._misses, self._rest = 0.0, self.REST

    def slept(self, took: float) -> None:
        """Note that the loop slept until a message came, or for its time; how long, [s]."""
        self._soon = self._allowed and took < SOON
        self._rest -= self._rest > 0


class NodeLoop:
    """Waits for messages of nodes and serves their services in between.

    Args:
        node: The node; it must not be added to another executor.
        hot: The subscriptions to wait for.
        stop: Ends the waits early.
        urgent: Services that end a wait and are answered by every call of `serve`.
        serve_period: Minimum time between two looks at the other services, [s].
        others: More nodes of the same context; ``hot`` and ``urgent`` may be theirs.
        polls: The loop may look for messages instead of sleeping, see `Looking`: for loops that
            another process answers. One that waits for the time must not.
    """

    def __init__(
        self,
        node: Node,
        hot: Sequence[HotSubscription],
        stop: StopFlag,
        *,
        urgent: Sequence[Service] = (),
        serve_period: float = SERVE_PERIOD,
        others: Sequence[Node] = (),
        polls: bool = False,
    ) -> None:
        self._nodes = (node, *others)
        self._looking = Looking(polls and available_cores() > 1)
        self._logger = node.get_logger()
        self.stop = stop
        self._hot = tuple(hot)
        self._handles = tuple(item.subscription.handle for item in hot)
        self._context = node.context
        self._period = serve_period
        self._urgent = tuple(urgent)
        self._guard = _rclpy.GuardCondition(self._context.handle)
        self._wait_set = _rclpy.WaitSet(
            len(self._handles), 1, 0, 0, len(self._urgent), 0, self._context.handle
        )
        self._served = 0.0
        self._taken = 0
        self._last_message = time.monotonic()
        # only for quality-of-service events, e.g. the warning about an incompatible publisher
        self._executor = SingleThreadedExecutor(context=self._context)
        for one in self._nodes:
            self._executor.add_node(one)

    def wait(self, timeout: float) -> None:
        """Block until there is a message, an urgent call or a `wake`, for at most ``timeout`` [s].

        It blocks no longer than 20 ms, so that the caller notices `stop` and calls `serve`;
        callers loop in any case.
        """
        bounded = min(max(timeout, 0.0), _WAIT_SLICE)
        begun = time.monotonic()
        if self._looking.pays:
            end = begun + min(bounded, SOON)
            came = self._comes_until(end)
            self._looking.looked(in_time=came and time.monotonic() <= end)
            if came:
                return
        wait_set = self._wait_set
        wait_set.clear_entities()
        wait_set.add_guard_condition(self._guard)
        for handle in self._handles:
            wait_set.add_subscription(handle)
        for service in self._urgent:
            wait_set.add_service(service.handle)
        wait_set.wait(int(bounded * 1e9))
        self._looking.slept(time.monotonic() - begun)

    def _comes_until(self, end: float) -> bool:
        """Look for a message until a time on the monotonic clock, [s]; tell if one has come."""
        while True:
            for item in self._hot:
                if item.has_come():
                    return True
            if time.monotonic() >= end:
                return False
            os.sched_yield()  # its sender may be on this processor

    def wake(self) -> None:
        """End the present wait, or the next one if there is none; from any thread, at any time."""
        with contextlib.suppress(_rclpy.InvalidHandle), self._guard:  # not after `close`
            self._guard.trigger_guard_condition()

    def serve(self) -> bool:
        """Answer waiting service calls and slow subscriptions, if it is time to look.

        Returns:
            Whether it was time, so that other slow work can be done at the same rate.
        """
        now = time.monotonic()
        self.serve_urgent()
        if now - self._served < self._period:
            return False
        self._served = now
        for node in self._nodes:
            for service in node.services:
                if service not in self._urgent:
                    self._answer(service)
            for subscription in node.subscriptions:
                if not isinstance(subscription.callback_group, _LoopOnly):
                    self._deliver(subscription)
        taken = sum(item.taken for item in self._hot)
        if taken != self._taken:
            self._taken = taken
            self._last_message = now
        elif now - self._last_message > _IDLE:
            self._last_message = now
            self._executor.spin_once(timeout_sec=0)
        if not self._context.ok():
            self.stop.set()
        return True

    def serve_urgent(self) -> None:
        """Answer the urgent services alone; a service that takes its time calls it meanwhile."""
        for service in self._urgent:
            self._answer(service)

    def _answer(self, service: Any) -> None:
        while True:
            with service.handle:
                request, header = service.handle.service_take_request(service.srv_type.Request)
            if header is None:
                return
            try:
                response = service.callback(request, service.srv_type.Response())
            except Exception as error:  # a service must not end the loop
                self._logger.error(f"{service.srv_name}: {describe(error)}")
                return
            service.send_response(response, header)

    def _deliver(self, subscription: Any) -> None:
        while True:
            with subscription.handle:
                taken = subscription.handle.take_message(subscription.msg_type, subscription.raw)
            if taken is None:
                return
            try:
                subscription.callback(taken[0])
            except Exception as error:  # nor a message of somebody else
                self._logger.error(f"{subscription.topic_name}: {describe(error)}")

    def close(self) -> None:
        """Release the entities of the node that the loop holds."""
        self._executor.shutdown()
        self._guard.destroy_when_not_in_use()


def describe(error: BaseException) -> str:
    """Return what to tell the user: our own messages as they are, others with their type."""
    if isinstance(error, CardsError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)
    where = f" ({place[-1].name}, line {place[-1].lineno})" if place else ""
    return f"{type(error).__name__}: {error}{where}"


class LoopNode(Protocol):
    """What `run` needs of a node."""

    def run(self) -> int:
        """Loop until the stop flag is set; return the exit code."""
        ...

    def close(self) -> None:
        """Write logs and destroy the node."""
        ...


def set_nice(nice: int) -> None:
    """Set the priority of this thread, and of those that it will start.

    Less than 0 needs a permission (root, or a limit on ``nice``); without it nothing changes.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, nice)


def lower_priority(nice: int) -> None:
    """Set the priority of all threads of this process, and of those that they will start.

    Args:
        nice: As of the program ``nice``, not less than it is now.
    """
    tasks = Path("/proc/self/task")  # Linux has a priority for each thread
    for thread in tasks.iterdir() if tasks.is_dir() else (Path("0"),):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)


def run(
    factory: Callable[[Context, StopFlag], LoopNode],
    name: str,
    args: Sequence[str] | None = None,
    *,
    nice: int = 0,
) -> int:
    """Make a node, run its loop until Ctrl-C, SIGTERM or its end, and clean up.

    Args:
        factory: Called with a context of its own and the stop flag.
        name: Name for messages before the node exists.
        args: ROS arguments; default ``sys.argv``.
        nice: Priority as of the program ``nice``: `HOT_NICE`, `DRAWING_NICE`, or 0.

    Returns:
        The process exit code: `ExitCode.DONE`, also after Ctrl-C; `ExitCode.FAILED` after an
        error while running; `ExitCode.ERROR` for bad arguments and parameters.
    """
    set_nice(nice)  # before ROS starts its threads
    stop = StopFlag()
    use_udp()
    context = Context()
    # the node must still be able to send its last messages after Ctrl-C, so the signals set our
    # flag instead of shutting the context down under the loop
    restore = stop.install()
    try:
        try:
            context.init(args=list(args) if args is not None else None)
            keep_arguments(context, sys.argv if args is None else args)
        except (_rclpy.RCLError, _rclpy.UnknownROSArgsError) as error:
            print(f"{name}: ROS does not accept the arguments: {error}", file=sys.stderr)
            return ExitCode.ERROR
        logger = rclpy.logging.get_logger(name)
        try:
            node = factory(context, stop)
        except (
            CardsError,
            OSError,
            InvalidParameterException,
            InvalidParameterTypeException,
            InvalidParameterValueException,
        ) as error:
            logger.fatal(str(error))
            return ExitCode.ERROR
        try:
            gc.collect()
            gc.freeze()  # start-up objects need no further look: shorter collections in the loop
            return node.run()
        except (KeyboardInterrupt, ROSInterruptException):
            return ExitCode.DONE
        except CardsError as error:
            logger.fatal(str(error))
            return ExitCode.FAILED
        finally:
            node.close()
    finally:
        context.try_shutdown()
        restore()
