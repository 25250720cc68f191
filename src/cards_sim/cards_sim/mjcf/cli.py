"""Command line of the importer: ``./cards import mjcf FILE -o DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    import_command,
    importer_parser,
    nonempty,
    number_type,
)
from cards_core.formats.imports.model import ImportedModel
from cards_sim.mjcf.actuators import TENSION
from cards_sim.mjcf.importer import import_mjcf

EXAMPLES = """\
examples:
  ./cards import mjcf arm26.xml -o models
  ./cards import mjcf arm.xml -o models --name my_arm --frame hand --force
  ./cards import mjcf arm.xml --keyframe rest --tension-max 300 -o models
  ./cards import mjcf arm.xml                    check only, write nothing

The folder DIR/<name> gets model.sdf, model.config, meshes, import_report.md and
import_report.json. See docs/import_mujoco.md.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import mjcf``; default those of the process.
    """

    def read(options: argparse.Namespace, progress: Progress) -> ImportedModel:
        return import_mjcf(
            options.file,
            name=options.name,
            keyframe=options.keyframe,
            frame=options.frame,
            tension_max=options.tension_max,
            all_tendons=options.all_tendons,
            progress=progress,
        )

    return import_command(make_parser(), argv, read)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "mjcf",
        "Import a robot from MuJoCo's XML: SDF with muscles, meshes, and a report "
        "that says what was left out and how far muscles differ.",
        EXAMPLES,
    )
    parser.add_argument("file", type=nonempty, metavar="FILE", help="MJCF file")
    add_output_options(parser)
    parser.add_argument(
        "--keyframe",
        type=nonempty,
        metavar="KEY",
        help="keyframe that is home (default: 'home', else the first, else the reference pose)",
    )
    parser.add_argument(
        "--frame", type=nonempty, metavar="SITE", help="site or body that is the operational frame"
    )
    parser.add_argument(
        "--tension-max",
        type=number_type(
            float, lambda value: 0.0 < value < 1e9, ": expected a number above 0, in N"
        ),
        default=TENSION,
        metavar="N",
        help=f"largest tension of actuators without a limit (default {TENSION:g})",
    )
    parser.add_argument(
        "--all-tendons", action="store_true", help="tendons that nothing pulls are cables, too"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
