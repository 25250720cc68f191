"""Command line of the importer: ``./cards import urdf FILE -o DIR``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    add_package_option,
    import_command,
    importer_parser,
    nonempty,
)
from cards_core.formats.imports.finishing import add_choices
from cards_core.formats.imports.model import ImportedModel, with_name
from cards_core.formats.urdf.importer import import_urdf

EXAMPLES = """\
examples:
  ./cards import urdf arm.urdf --muscles muscles.yaml -o models
  ./cards import urdf arm.urdf --name left_arm -o models
  ./cards import urdf arm.urdf                           check only, write nothing
  ./cards import urdf arm.urdf --motors transmissions --base free -o out --force
  ./cards import urdf arm.urdf --package arm_meshes=../arm_meshes -o models
  xacro arm.urdf.xacro > arm.urdf                        what xacro files need first

The folder DIR/<name> gets model.sdf, model.config, meshes, import_report.md and
import_report.json. The format of the muscles is in docs/import_urdf.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import urdf``; default those of the process.
    """
    return import_command(make_parser(), argv, _read)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "urdf",
        "Import a robot from URDF, with muscles from a YAML file. Masses and inertias "
        "are checked and repaired, meshes copied; a report says what was changed.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help="the URDF")
    add_output_options(parser)
    parser.add_argument(
        "--muscles",
        type=nonempty,
        metavar="FILE",
        help="muscles: YAML, or CARDSflow's XML if the name ends in .xml",
    )
    parser.add_argument(
        "--mimic",
        choices=("free", "fixed"),
        default="free",
        help="joints that mimic others move freely, or are fixed at 0 (default: free)",
    )
    parser.add_argument(
        "--motors",
        choices=("none", "transmissions", "all"),
        default="none",
        help="joints with a motor of their own: none, those with a <transmission> or a "
        "<command_interface>, or all of one degree of freedom (default: none)",
    )
    add_package_option(parser)
    add_choices(parser)
    return parser


def _read(options: argparse.Namespace, progress: Progress) -> ImportedModel:
    progress("reading", 0.0)
    model = import_urdf(
        Path(options.file),
        muscles=options.muscles,
        base=options.base,
        collisions=options.collisions,
        mimic=options.mimic,
        motors=options.motors,
        inertia_about=options.inertia_about,
        packages=dict(options.package),
    )
    return with_name(model, options.name)
