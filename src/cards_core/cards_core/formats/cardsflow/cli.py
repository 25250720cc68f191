"""Command line of the importer: ``./cards import cardsflow DIR -o DIR``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cards_core.formats.cardsflow.importer import import_cardsflow
from cards_core.formats.cardsflow.muscles import TENSION
from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    add_package_option,
    import_command,
    importer_parser,
    nonempty,
    number_type,
)
from cards_core.formats.imports.finishing import add_choices
from cards_core.formats.imports.model import ImportedModel, with_name

EXAMPLES = """\
examples:
  ./cards import cardsflow robots/musc-le -o models
  ./cards import cardsflow robots/musc-le --name second -o models
  ./cards import cardsflow robots/musc-le                check only, write nothing
  ./cards import cardsflow model.sdf --muscles cardsflow.xml --tension 5 200 -o out --force

The folder DIR/<name> gets model.sdf, model.config, meshes, import_report.md and
import_report.json. See docs/import_cardsflow.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import cardsflow``; default those of the process.
    """
    return import_command(make_parser(), argv, _read)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "cardsflow",
        "Import a robot of CARDSflow or Roboy: SDF 1.5 to 1.8 with muscles in "
        "cardsflow.xml or in a plugin. Masses and inertias are checked and repaired, meshes "
        "copied; a report says what was changed.",
        EXAMPLES,
    )
    parser.add_argument("robot", metavar="ROBOT", help="folder of the robot, or its SDF file")
    add_output_options(parser)
    parser.add_argument(
        "--muscles",
        type=nonempty,
        metavar="FILE",
        help="file with the muscles (default: cardsflow.xml beside the SDF, else its plugins)",
    )
    parser.add_argument(
        "--model", type=nonempty, metavar="M", help="which model, if the SDF holds several"
    )
    parser.add_argument(
        "--tension",
        type=number_type(
            float, lambda value: 0.0 <= value <= 1e6, " (expected: a tension of 0 to 1e6 N)"
        ),
        nargs=2,
        default=TENSION,
        metavar=("MIN", "MAX"),
        help=f"limits of all tensions, N (default: {TENSION[0]:g} {TENSION[1]:g})",
    )
    add_package_option(parser)
    add_choices(parser)
    return parser


def _read(options: argparse.Namespace, progress: Progress) -> ImportedModel:
    progress("reading", 0.0)
    model = import_cardsflow(
        options.robot,
        muscles=options.muscles,
        model=options.model,
        base=options.base,
        collisions=options.collisions,
        inertia_about=options.inertia_about,
        tension=(options.tension[0], options.tension[1]),
        packages=dict(options.package),
    )
    return with_name(model, options.name)
