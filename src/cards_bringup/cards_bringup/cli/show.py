"""``./cards show``: a robot, a recorded run, or two runs side by side in the browser."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from cards_bringup.option_types import WholeNumber

EXAMPLES = """examples:
  ./cards show roboy_arm                  the robot at home, in the browser
  ./cards show runs/roboy_arm_ctc_joint_20261123-221104
  ./cards show with without               two runs of one robot at the same time, side by side
  ./cards show with --robot path/to/model.sdf
  ./cards show RUN --host 0.0.0.0 --read-only

Ctrl-C closes the page, exit code 0. Numbers and figures of two runs: ./cards compare.
Python: cards.show
"""


def add_show(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "show",
        description="A robot, a recorded run, or two runs side by side in the browser.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("what", metavar="WHAT", help="run folder, e.g. of ./cards demo --out, or a robot")
    add("beside", nargs="?", metavar="RUN_B", help="run folder of the same robot, shown beside it")
    add("--robot", help="robot of the runs, where summary.json does not say where it is from")
    port = WholeNumber(at_most=65535)
    add("--port", type=port, default=8080, help="port of the page (%(default)s)")
    add(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0 opens the page to the network (%(default)s)",
    )
    add(
        "--read-only",
        action="store_true",
        help="print the link of spectators alone: they see everything and command nothing",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import cards
    from cards_core.errors import CardsError
    from cards_core.exit_codes import ExitCode
    from cards_core.formats import load
    from cards_viz.pages.access import READ_ONLY
    from cards_viz.runs.summary import SUMMARY

    if args.read_only:
        os.environ[READ_ONLY] = "1"
    robot = None if args.robot is None else load(args.robot)
    is_run = (Path(args.what) / SUMMARY).is_file()
    if is_run or args.beside is not None or robot is not None:
        beside = None if args.beside is None else cards.read_run(args.beside, robot)
        cards.show(
            cards.read_run(args.what, robot), beside, host=args.host, port=args.port, block=True
        )
        return ExitCode.DONE
    try:
        what = cards.load(args.what)
    except CardsError as error:
        if Path(args.what).is_dir():
            raise CardsError(
                f"{args.what} is no run folder: it has no {SUMMARY} (expected: a run folder, e.g. "
                "of ./cards demo --out, or a robot)"
            ) from error
        raise
    cards.show(what, host=args.host, port=args.port, block=True)
    return ExitCode.DONE
