"""``./cards import``: convert a robot of another program to SDF with muscles."""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLES = """examples:
  ./cards import caspr path/to/BMArm -o models     makes models/BMArm
  ./cards import caspr --help          the importer's own options
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "import",
        help="convert a robot of another program to SDF",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("format", choices=("caspr",), help="what to read")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="the importer's own")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_core.formats.caspr.cli import main

    return main(args.rest)
