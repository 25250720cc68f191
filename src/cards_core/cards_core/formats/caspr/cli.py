"""Command line of the importer: ``./cards import caspr FOLDER -o DIR``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from cards_core.formats.caspr.files import ModelRow, find_models
from cards_core.formats.caspr.importer import SAMPLES, CasprModel, import_caspr
from cards_core.formats.caspr.writer import write_import
from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    import_robot,
    importer_parser,
    nonempty,
    number_type,
    run_command,
)

EXAMPLES = """\
examples:
  ./cards import caspr CASPR/data/model_config/models/MCDM/BMArm -o models
  ./cards import caspr BMArm --cable-set multi_link -o out --force
  ./cards import caspr BMArm                     check only, write nothing
  ./cards import caspr CASPR/data --list         the robots below a folder

The folder DIR/<name> gets model.sdf, model.config, trajectories.yaml, import_report.md and
import_report.json. See docs/caspr.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import caspr``; default those of the process.
    """
    return run_command(
        make_parser().parse_args(argv),
        lambda options: _list(options) if options.list else _import(options),
    )


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "caspr",
        "Import a robot from CASPR's XML files: SDF with muscles, trajectories, and a "
        "report that says what was changed and whether the cables can do what the trajectories "
        "ask for.",
        EXAMPLES,
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        help="folder of the robot, its *_bodies.xml, or with --list a folder above many robots",
    )
    add_output_options(parser, named=False)
    parser.add_argument(
        "--cable-set", type=nonempty, metavar="S", help="cable set to attach (default: the file's)"
    )
    parser.add_argument(
        "--model", type=nonempty, metavar="M", help="which robot, if FOLDER holds several"
    )
    parser.add_argument("--list", action="store_true", help="list the robots below FOLDER")
    parser.add_argument(
        "--samples",
        type=number_type(
            int, lambda value: value == 0 or 2 <= value <= 100_000, ": expected 0, or 2 to 100000"
        ),
        default=SAMPLES,
        metavar="N",
        help=f"times per trajectory at which feasibility is checked (default {SAMPLES}, 0: none)",
    )
    return parser


def _import(options: argparse.Namespace) -> int:
    return import_robot(options, _read, write_import, lambda model: model.report)


def _read(options: argparse.Namespace, progress: Progress) -> CasprModel:
    return import_caspr(
        Path(options.folder),
        cable_set=options.cable_set,
        name=options.model,
        feasibility=options.samples > 0,
        samples=max(options.samples, 2),
        progress=progress,
    )


def _list(options: argparse.Namespace) -> int:
    rows = find_models(options.folder)
    if options.json:
        print(json.dumps([_row(row) for row in rows], indent=2))
        return 0
    width = max((len(row.name) for row in rows), default=0)
    for row in rows:
        where = str(row.files.bodies.parent) if row.files else f"- {row.problem}: {row.folder}"
        print(f"{row.name:<{width}}  {where}")
    there = sum(row.files is not None for row in rows)
    print(f"{there} robots, {len(rows) - there} named in a list without their files")
    return 0


def _row(row: ModelRow) -> dict[str, object]:
    return {
        "name": row.name,
        "folder": str(row.files.bodies.parent) if row.files else None,
        "bodies": str(row.files.bodies) if row.files else None,
        "list": str(row.list_file),
        "line": row.line,
        "problem": row.problem,
    }
