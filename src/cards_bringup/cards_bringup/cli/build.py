"""``./cards build``: a tensegrity from a page of YAML, NASA's or ours, as an SDF."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cards_bringup.cli import add_output_option, print_columns
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards build structure.yaml                        what it makes: bodies, masses, cables, rest lengths
  ./cards build structure.yaml -o models/my_robot     model.sdf and model.config, read by all commands
  ./cards build SuperBall.yaml --unit dm -o ball      a file of NASA's toolkit, whose lengths are in dm
  ./cards build structure.yaml --json                 everything as one JSON object

The format of the files: docs/tensegrity.md
Python: cards.tensegrity.build
"""  # noqa: E501


def add_build(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    from cards_core.tensegrity.units import LENGTHS

    parser = subparsers.add_parser("build", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("file", type=Path, help="structure file, in NASA's format or ours")
    text = "write model.sdf and model.config there; without it nothing is written"
    add_output_option(parser, "DIR", text, type=Path)
    text = "of the lengths in files in NASA's format, which do not say it (default cm)"
    add("--unit", choices=tuple(LENGTHS), default="cm", help=text)
    add("--force", action="store_true", help="replace an existing model")
    add("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_core.tensegrity import build, write_structure
    from cards_core.tensegrity.report import describe

    structure = build(args.file, length=args.unit)
    found = describe(structure)
    written = None
    if args.output is not None:
        written = str(write_structure(structure, args.output, force=args.force))
    if args.json:
        print(json.dumps({**found, "model": written}))
        return ExitCode.DONE
    _print(found)
    if written:
        print(f"\nwrote {written}")
    return ExitCode.DONE


def _print(found: dict[str, Any]) -> None:
    bodies, cables = found["bodies"], found["cables"]
    print(
        f"{found['name']}: {len(bodies)} bodies, {found['mass']:.6g} kg, "
        f"{len(cables)} cables, {found['degrees_of_freedom']} degrees of freedom"
    )
    rows = [["body", "mass [kg]", "x [m]", "y [m]", "z [m]", "parts"]]
    for body in bodies:
        place = [f"{round(value, 4) + 0.0:.4f}" for value in body["position"]]
        rows.append([body["name"], f"{body['mass']:.6g}", *place, str(len(body["solids"]))])
    print()
    print_columns(rows)
    if cables:
        rows = [["", "cable", "length [m]", "rest [m]", "tension [N]", "k [N/m]", "actuator"]]
        for cable in cables:
            lengths = [f"{cable[name]:.6f}" for name in ("length", "rest_length")]
            # what is left of 0 by rounding is 0
            force = f"{round(cable['pretension'], 9) + 0.0:.6g}"
            kind = cable["actuator"]["type"] if cable["actuator"] else "passive"
            row = [str(cable["index"]), cable["name"], *lengths, force]
            rows.append([*row, f"{cable['stiffness']:.6g}", kind])
        print()
        print_columns(rows)
    if found["notes"]:
        print()
    for note in found["notes"]:
        print(f"note: {note}")
