"""``./cards import``, ``compile`` and ``export``: a robot from and to other forms."""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

from cards_bringup.cli import add_output_option, controller_export, robot_export
from cards_bringup.option_types import Number

IMPORT_TEXT = "``./cards import``: convert a robot of another program to SDF with muscles."

IMPORT_EXAMPLES = """examples:
  ./cards import caspr path/to/BMArm -o models     makes models/BMArm
  ./cards import mjcf arm.xml -o models            makes models/<name of the model>
  ./cards import cardsflow path/to/musc-le -o models
  ./cards import urdf arm.urdf --muscles muscles.yaml -o models
  ./cards import caspr --help          the importer's own options
"""


def add_import(subparsers: Any) -> None:
    """Declare ``import`` and its arguments."""
    parser = subparsers.add_parser("import", description=IMPORT_TEXT, epilog=IMPORT_EXAMPLES)
    from cards_bringup.importers import IMPORTERS

    what = "; ".join(f"{name}: {text}" for name, (_, text) in IMPORTERS.items())
    parser.add_argument("format", choices=tuple(IMPORTERS), help=what)
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help="the importer's own")
    parser.set_defaults(run=_run_import)


def _run_import(args: argparse.Namespace) -> int:
    """Run ``import``."""
    from cards_bringup.importers import run_import

    return run_import(args.format, args.rest)


COMPILE_TEXT = "``./cards compile``: turn a robot into native code, with a report."


def add_compile(subparsers: Any) -> None:
    """Declare ``compile`` and its arguments."""
    from cards_model_compiler.command import add_arguments

    parser = subparsers.add_parser("compile", description=COMPILE_TEXT)
    add_arguments(parser, "./cards compile")


EXPORT_TEXT = """``./cards export``: a robot in another format, its equations, its controller in C.

mjcf has spatial tendons and actuators on them, for MuJoCo; urdf has no muscles; sdf is the
description as CARDS has read it; caspr makes a folder of XML files that CASPR and
``./cards import caspr`` read. Meshes are copied into a folder meshes/ beside the file, where
nothing is replaced. latex, markdown and python have the equations of motion.
controller makes a folder with a C library that needs nothing else, for microcontrollers too."""

EXPORT_EXAMPLES = """examples:
  ./cards export mjcf roboy_arm -o roboy_arm.xml
  ./cards export urdf planar_2r -o planar_2r.urdf
  ./cards export caspr bm_arm -o caspr                 makes caspr/bm_arm and caspr/bm_arm_list.csv
  ./cards export latex planar_2r -o planar_2r.tex
  ./cards export latex planar_2r --parameters symbols -o planar_2r.tex    m_1, a_2z ... as letters
  ./cards export markdown bm_arm --quantities M,G,L --subexpressions -o bm_arm.md
  ./cards export python ipanema_1 -o ipanema_1.py                         needs NumPy alone
  ./cards export markdown planar_xy --simplify full --time-limit 60       to the terminal
  ./cards export latex antagonist_joint --muscles straight -o joint.tex   without wrapped muscles
  ./cards export controller roboy_arm -o arm_control                      C library and example
  ./cards export controller roboy_arm --controller ctc_joint --precision single -o arm_joints

quantities:
"""

LINE_PERIOD = 5.0
"""Without a terminal what is being simplified is said this often, [s]."""


def add_export(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    from cards_core.dynamics.sympy_backend.quantities import QUANTITIES, USUAL

    listed = "\n".join(f"  {name:<9} {item.text}" for name, item in QUANTITIES.items())
    parser = subparsers.add_parser(
        "export", description=EXPORT_TEXT, epilog=EXPORT_EXAMPLES + listed
    )
    formats = (*robot_export.FORMATS, "latex", "markdown", "python", "controller")
    parser.add_argument("format", choices=formats)
    parser.add_argument("robot", help="name under models/, or the path of an SDF file")
    add_output_option(
        parser,
        "FILE",
        "default: the terminal; of caspr: the folder that gets the robot's, of controller: "
        "its folder, both required",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the file, or those of an earlier export"
    )
    parser.add_argument(
        "--quantities",
        default=",".join(USUAL),
        metavar="NAMES",
        help=f"comma separated, see below (default: {','.join(USUAL)})",
    )
    parser.add_argument(
        "--parameters",
        choices=("numbers", "symbols"),
        default="numbers",
        help="write masses, lengths and points as numbers or as symbols with a table of values",
    )
    parser.add_argument(
        "--simplify",
        choices=("none", "trig", "full"),
        default="trig",
        help="none: as derived; trig: normal form, sums of angles; full: also SymPy's simplify",
    )
    parser.add_argument(
        "--subexpressions", action="store_true", help="list common subexpressions in a table"
    )
    parser.add_argument(
        "--muscles",
        choices=("all", "straight", "none"),
        default="all",
        help="muscles with equations; wrapped muscles have no closed form without case "
        "distinctions",
    )
    parser.add_argument(
        "--time-limit",
        type=Number(above=0.0, infinite=True),
        default=math.inf,
        metavar="SECONDS",
        help="time limit of --simplify full; the rest stays as with trig (default: inf, no limit)",
    )
    parser.add_argument(
        "--limit",
        type=Number(above=0.0, infinite=True),
        metavar="SIZE",
        help="maximum predicted size of the equations; inf: no limit",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument(
        "--json",
        action="store_true",
        help="of a robot or a controller: print a report as JSON, with the files written",
    )
    controller_export.add_arguments(parser)
    parser.set_defaults(run=_run_export)


def _run_export(args: argparse.Namespace) -> int:
    """Run ``export``."""
    from cards_core.errors import CardsError
    from cards_core.files import check_new

    if args.format == "controller":
        return controller_export.run(args)
    robot = args.format in robot_export.FORMATS
    if given := controller_export.given_options(args, json=not robot):
        raise CardsError(
            f"{' and '.join(given)} with '{args.format}' (expected: with 'controller' only)"
        )
    if args.output is not None and args.format != "caspr":
        check_new(Path(args.output), force=args.force)
    if robot:
        return robot_export.run(args)
    from cards_core.dynamics.sympy_backend import (
        SymbolicModel,
        SymbolicOptions,
        latex_document,
        make_document,
        markdown_document,
        python_module,
    )
    from cards_core.dynamics.sympy_backend.options import SIZE_LIMIT
    from cards_core.formats import load

    names = [name.strip() for name in args.quantities.split(",") if name.strip()]
    with _Progress(quiet=args.quiet) as progress:
        options = SymbolicOptions(
            parameters=args.parameters,
            simplification=args.simplify,
            muscles=args.muscles,
            time_limit=args.time_limit,
            size_limit=args.limit or SIZE_LIMIT,
            progress=progress.update,
        )
        model = SymbolicModel(load(args.robot), options)
        if args.format == "python":
            text = python_module(model, names)
        else:
            document = make_document(model, names, subexpressions=args.subexpressions)
            write = latex_document if args.format == "latex" else markdown_document
            text = write(document)
    if model.unfinished and not args.quiet:
        print(
            f"not fully simplified within {args.time_limit:g} s: {', '.join(model.unfinished)}",
            file=sys.stderr,
        )
    _deliver(args, text)
    return 0


def _deliver(args: argparse.Namespace, text: str) -> None:
    """Print a text, or write it to the file that was asked for."""
    if args.output is None:
        print(text, end="")
        return
    robot_export.write_text(Path(args.output), text)
    if not args.quiet:
        print(f"wrote {args.output} ({len(text) / 1000:.0f} kB)", file=sys.stderr)


class _Progress:
    """Reports on stderr what is being simplified: in one line of a terminal, else at intervals."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._begin = self._said = time.monotonic()

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._terminal and not self._quiet:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def update(self, name: str, done: int, total: int) -> None:
        """Report ``done`` simplified entries of a quantity."""
        now = time.monotonic()
        if self._quiet or now - self._said < (0.1 if self._terminal else LINE_PERIOD):
            return
        self._said = now
        text = f"{name}: {done} of {total} ({now - self._begin:.0f} s)"
        if self._terminal:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr)
