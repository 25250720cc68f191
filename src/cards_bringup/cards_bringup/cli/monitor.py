"""``./cards monitor``: a live table of a real robot's muscles, temperatures and faults.

With ``--port`` it talks to the boards itself, for robots that no bridge is running for. Without,
it listens to the topics of a running bridge (or simulator). It never arms anything; the key e
stops the robot, which is no substitute for the stop button.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import sys
import time
from typing import TYPE_CHECKING, Any

from cards_bringup.cli.numbers import COUNT, Number
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode

if TYPE_CHECKING:
    from cards_hardware.monitor.snapshot import MonitorSource, Snapshot

EXAMPLES = """examples:
  ./cards monitor                                      topics of whatever bridge is running
  ./cards monitor roboy_arm                            the same, with the model's limits
  ./cards monitor --port /dev/ttyACM0                  a board by itself, whatever it is
  ./cards monitor roboy_arm --port /dev/ttyACM0        the same, with names and limits
  ./cards monitor roboy_arm --port /dev/ttyACM0 --once --json

Keys: e emergency stop, q quit."""


SETTLING = 2.0
"""``--once`` waits so long for what comes less often than states, [s]."""

RATE = Number(at_least=0.5, at_most=60.0)
"""Pictures a second."""

DISCOVERY = 8.0
"""And so long for anything at all: nodes have to find each other first, [s]."""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "monitor",
        help="watch a real robot: muscles, temperatures, faults",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("robot", nargs="?", help="for names and limits, see ./cards models")
    add("--port", help="serial port instead of topics; several boards: A,B")
    add("--baudrate", type=COUNT, help="[baud] (default: of the layout)")
    add("--layout", metavar="NAME", help="boards, a file or config/NAME.boards.yaml (ROBOT)")
    add("--namespace", default="", help="of the robot's topics, or of the layout's boards")
    add("--rate", type=RATE, default=10.0, help="pictures a second (%(default)s)")
    add("--once", action="store_true", help="one picture, as text, then end")
    add("--json", action="store_true", help="with --once: as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
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
        from cards_bringup.monitor_screen import watch

        watch(source, args.rate)
    return 0


def _on_line(args: argparse.Namespace) -> MonitorSource:
    from cards_hardware.monitor.board_monitor import BoardMonitor

    if not args.robot:
        return BoardMonitor.of_port(args.port, args.baudrate)
    from cards_core.formats import load
    from cards_hardware.boards.layout import read_layout

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

    from cards_core.errors import UnknownNameError
    from cards_core.formats import load
    from cards_hardware.boards.layout import read_layout
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
    """Return a snapshot with all that comes in a while: slow states are ten a second."""
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
    from rich.console import Console

    from cards_bringup.monitor_view import render

    console = Console(highlight=False)
    console.print(render(snapshot, console.width, 1000, keys=False))
