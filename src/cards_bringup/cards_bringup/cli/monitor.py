"""``./cards monitor``: a live table of a real robot's muscles, temperatures and faults.

With ``--port`` it talks to the boards itself, for robots that no bridge is running for. Without,
it listens to the topics of a running bridge (or simulator). It never arms anything; the key e
stops the robot, which is no substitute for the stop button.
"""

from __future__ import annotations

import argparse
from typing import Any

from cards_bringup.option_types import COUNT, Number

EXAMPLES = """examples:
  ./cards monitor                                      topics of whatever bridge is running
  ./cards monitor roboy_arm                            the same, with the model's limits
  ./cards monitor --port /dev/ttyACM0                  a board by itself, whatever it is
  ./cards monitor roboy_arm --port /dev/ttyACM0        the same, with names and limits
  ./cards monitor roboy_arm --port /dev/ttyACM0 --once --json

Keys: e emergency stop, q quit."""


RATE = Number(at_least=0.5, at_most=60.0)
"""Pictures a second."""


def add_monitor(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("monitor", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("robot", nargs="?", help="for names and limits, see ./cards models")
    add("--port", help="serial port instead of topics; several boards: A,B")
    add("--baudrate", type=COUNT, help="[baud] (default: of the layout)")
    add("--layout", metavar="NAME", help="boards, a file or config/NAME.boards.yaml (ROBOT)")
    add("--namespace", default="", help="of the robot's topics, or of the layout's boards")
    add("--rate", type=RATE, default=10.0, help="updates per second (%(default)s)")
    add("--once", action="store_true", help="print one snapshot as text and exit")
    add("--json", action="store_true", help="with --once: as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.real_robot.monitor import monitor

    return monitor(args)
