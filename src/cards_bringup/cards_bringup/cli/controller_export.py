"""``./cards export controller``: a controller as a C library that stands alone."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

DEFAULT = "ctc_operational", "ctc_joint"
"""Controllers that are exported if none is named: the first that suits the robot."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that only this format has."""
    group = parser.add_argument_group("of controller")
    group.add_argument(
        "--controller",
        metavar="KIND",
        help="ctc_joint, ctc_operational, mrc, impedance or cpg (default: ctc_operational, or "
        "ctc_joint if the robot has no frame for it)",
    )
    group.add_argument(
        "--precision",
        choices=("double", "single"),
        help="of all numbers; single: for processors whose FPU knows no others (default: double)",
    )
    group.add_argument(
        "--params-file", metavar="FILE", help="gains and weights (default: config/ROBOT.yaml)"
    )


def given_options(args: argparse.Namespace, *, json: bool) -> list[str]:
    """Return the options of this format that were given; `json` says whether that is one."""
    names = ("controller", "precision", "params_file", *(["json"] if json else []))
    return [f"--{name.replace('_', '-')}" for name in names if getattr(args, name)]


def run(args: argparse.Namespace) -> int:
    """Write the library.

    Raises:
        CardsError: The controller cannot be exported, or the folder not be written.
    """
    from cards_core.embedded import check_exportable, export_controller, write_controller
    from cards_core.embedded.folder import check_folder, microcontroller_report
    from cards_core.errors import CardsError
    from cards_core.formats import load
    from cards_core.formats.locate import shipped_parameters
    from cards_core.loop.control_setup import make_control_loop
    from cards_core.parameters.declaration import ParameterSet
    from cards_core.parameters.parameter_file import load_parameters
    from cards_core.trajectories.curves import Flower

    if args.output is None:
        raise CardsError("a controller has several files (expected: -o and a folder)")
    check_folder(args.output, force=args.force)
    robot = load(args.robot)
    kind: str = args.controller or DEFAULT[robot.operational_frame is None]
    check_exportable(kind)
    given: dict[str, Any]
    if args.params_file:
        given = load_parameters(args.params_file, kind)
    else:
        given = shipped_parameters(robot, kind)
    given = {name: value for name, value in given.items() if name != "model"} | {"log_dir": ""}
    loop = make_control_loop(kind, ParameterSet(given, kind), robot)
    curve = loop.reference if isinstance(loop.reference, Flower) else None
    export = export_controller(loop.controller, precision=args.precision or "double", curve=curve)
    folder = write_controller(export, args.output, force=args.force)
    board = microcontroller_report(export)
    report = {**export.report, "folder": str(folder), "files": list(export.files)}
    report["stm32f405"] = board
    if args.json:
        print(json.dumps(report, indent=2))
    if not args.quiet:
        size = export.report["bytes"] / 1000
        print(f"wrote {folder} ({len(export.files)} files, {size:.0f} kB)", file=sys.stderr)
        print(f"note: {_board(board)}", file=sys.stderr)
    return 0


def _board(board: dict[str, Any]) -> str:
    """Return what the report says of the microcontroller."""
    if "not_measured" in board:
        return f"memory on an STM32F405 is not known: {board['not_measured']}"
    sizes = [f"{board[name] / 1024:.1f} KiB of {name}" for name in ("flash", "ram", "stack")]
    fits = "fits" if board["fits"] else "does not fit"
    return f"STM32F405 (1024 KiB of flash, 192 KiB of RAM): {', '.join(sizes)}; it {fits}"
