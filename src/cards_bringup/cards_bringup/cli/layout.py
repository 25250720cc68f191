"""``./cards layout``: files that arrange Foxglove or PlotJuggler for a robot."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cards_bringup.cli import add_output_option
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards layout roboy_arm                     roboy_arm.foxglove.json, roboy_arm.plotjuggler.xml
  ./cards layout robots/MyRobot -o layouts     of a robot of your own
  ./cards layout stewart_gough --json          which topics they show

Foxglove, Lichtblick: Layouts, Import from file. PlotJuggler: --layout FILE, or File, Load layout.
They fit recording.mcap of a run and the running robot.
"""


def add_layout(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("layout", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("robot", help="see ./cards models, or the path of one")
    text = "folder for the files (default: the current one)"
    add_output_option(parser, "DIR", text, type=Path, default=Path())
    add("--force", action="store_true", help="replace layouts that are there")
    add("--json", action="store_true", help="print the files and their topics as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.layouts.content import content_of
    from cards_bringup.layouts.foxglove import foxglove_layout
    from cards_bringup.layouts.plotjuggler import plotjuggler_layout
    from cards_core.files import check_new, making, write_atomically

    content = content_of(args.robot)
    files = {
        args.output / f"{content.robot}.foxglove.json": foxglove_layout(content),
        args.output / f"{content.robot}.plotjuggler.xml": plotjuggler_layout(content),
    }
    for file in files:
        check_new(file, force=args.force)
    with making(args.output):
        for file, text in files.items():
            write_atomically(file, text)
    if args.json:
        curves = [curve for plot in content.plots for curve in plot.curves]
        topics = sorted({*content.drawn, *(curve.topic for curve in curves)})
        print(json.dumps({"files": [str(file) for file in files], "topics": topics}))
    else:
        print("\n".join(f"wrote {file}" for file in files))
    return ExitCode.DONE
