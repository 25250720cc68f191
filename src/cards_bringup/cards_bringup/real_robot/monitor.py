"""What ``./cards monitor`` shows: boards on serial lines, or the topics of a running bridge."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import sys
import time

from rich.console import Console

from cards_bringup.real_robot.monitor_screen import render, watch
from cards_core.errors import CardsError, UnknownNameError
from cards_core.exit_codes import ExitCode
from cards_core.formats import load
from cards_hardware.boards.layout import read_layout
from cards_hardware.monitor.snapshot import MonitorSource, Snapshot

SETTLING = 2.0
"""Time that ``--once`` waits for messages that are less frequent than states, [s]."""

DISCOVERY = 8.0
"""Time that ``--once`` waits for any message: nodes have to discover each other first, [s]."""


def monitor(args: argparse.Namespace) -> int:
    """Show a robot's muscles, temperatures and faults; return the exit code.

    Args:
        args: Arguments of ``./cards monitor``.

    Raises:
        CardsError: An option is wrong, or there is no terminal, no board or no ROS.
    """
    if args.json and not args.once:
        raise CardsError("--json without --once (expected: both)")
    if args.layout and not (args.port and args.robot):
        raise CardsError("--layout is for ROBOT with --port (expected: both of them)")
    with contextlib.ExitStack() as stack:
        if not args.once and not sys.stdout.isatty():
            raise CardsError("no terminal to draw on (expected: one, or --once)")
        source = _on_line(args) if args.port else _on_topics(args, stack)
        stack.callback(source.close)
        if args.once:
            snapshot = _settled(source)
            _print(snapshot, as_json=args.json)
            return ExitCode.FAILED if snapshot.problem else ExitCode.DONE
        watch(source, args.rate)
    return 0


def _on_line(args: argparse.Namespace) -> MonitorSource:
    from cards_hardware.monitor.board_monitor import BoardMonitor  # pyserial is optional

    if not args.robot:
        return BoardMonitor.of_port(args.port, args.baudrate)
    robot = load(args.robot)
    layout = read_layout(
        args.layout or args.robot,
        robot,
        port=args.port,
        baudrate=args.baudrate,
        namespace=args.namespace,
    )
    return BoardMonitor.of_robot(robot, layout)


def _on_topics(args: argparse.Namespace, stack: contextlib.ExitStack) -> MonitorSource:
    if importlib.util.find_spec("rclpy") is None:
        raise CardsError(
            "rclpy is not installed, so there are no topics (expected: --port of a board)"
        )
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node

    from cards_hardware.monitor.topic_monitor import TopicMonitor

    robot = load(args.robot) if args.robot else None
    hardware = None
    if robot is not None:
        # a robot that exists only in simulation has no boards
        with contextlib.suppress(UnknownNameError):
            hardware = read_layout(args.robot, robot, port="-").limited(robot)
    context = Context()
    rclpy.init(context=context)
    stack.callback(context.try_shutdown)
    node = Node("monitor", namespace=args.namespace, context=context)
    return TopicMonitor(node, robot, hardware)


def _settled(source: MonitorSource) -> Snapshot:
    """Return a snapshot after slow states, ten per second, have arrived too."""
    begin, end = time.monotonic(), time.monotonic() + DISCOVERY
    while True:
        snapshot = source.snapshot()
        slow = not any(math.isnan(muscle.housing) for muscle in snapshot.muscles)
        rates = all(board.state_rate > 0.0 for board in snapshot.boards if board.connected)
        if snapshot.muscles and snapshot.boards and slow and rates:
            return snapshot
        now = time.monotonic()
        if snapshot.problem:
            begin = now
        if now > end or now > begin + SETTLING:
            return snapshot
        time.sleep(0.05)


def _print(snapshot: Snapshot, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(snapshot.as_dict()))
        return
    console = Console(highlight=False)
    console.print(render(snapshot, console.width, 1000, keys=False))
