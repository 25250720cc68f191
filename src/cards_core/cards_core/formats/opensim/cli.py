"""Command line of the importer: ``./cards import opensim MODEL.osim -o DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    import_command,
    importer_parser,
    nonempty,
)
from cards_core.formats.imports.model import ImportedModel, with_name
from cards_core.formats.opensim.importer import import_osim

EXAMPLES = """\
examples:
  ./cards import opensim arm26.osim -o models
  ./cards import opensim arm26.osim                 check only, write nothing
  ./cards import opensim arm26.osim --compare venv/bin/python    beside OpenSim's own numbers

The folder DIR/<name> gets model.sdf, model.config, import_report.md and import_report.json.
See docs/import_opensim.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import opensim``; default those of the process.
    """
    return import_command(make_parser(), argv, _read)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "opensim",
        "Import a robot from an OpenSim model: SDF with muscles, and a report that "
        "says what is exact and how far the rest is off.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="MODEL.osim", help="OpenSim model, version 2 to 4")
    add_output_options(parser)
    parser.add_argument(
        "--compare",
        nargs="?",
        const=sys.executable,
        type=nonempty,
        metavar="PYTHON",
        help="compare every muscle with OpenSim over the range of motion; PYTHON has the package "
        "opensim (default: the Python that runs this)",
    )
    return parser


def _read(options: argparse.Namespace, progress: Progress) -> ImportedModel:
    found = import_osim(Path(options.file), progress)
    if options.compare:
        from cards_core.formats.opensim.compare import compared

        return with_name(compared(found, options.compare, progress), options.name)
    return with_name(found.model, options.name)
