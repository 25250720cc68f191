"""``./cards compare``: two runs of one robot in the same figures, and how much they differ."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cards_bringup.cli import print_columns, print_result

EXAMPLES = """examples:
  ./cards demo musashi_like --headless --no-ros --mode lockstep --duration 15 --out with
  ./cards demo musashi_like --headless --no-ros --mode lockstep --duration 15 \\
      --params-file without.yaml --out without
  ./cards compare with without                       tables, here
  ./cards compare with without --out comparison      figures, comparison.html, comparison.json
  ./cards compare with without --json
  ./cards show with without                          both robots in the browser, side by side

Compared are norm of tensions, tensions, released lengths (mrc), temperatures and errors, at equal
simulation times. Python: cards.compare
"""


def add_compare(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "compare",
        description="Two runs of one robot in the same figures, and how much they differ.",
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("run_a", type=Path, metavar="RUN_A", help="run folder, e.g. of ./cards demo --out RUN_A")
    add("run_b", type=Path, metavar="RUN_B", help="another run of the same robot")
    add("--robot", help="robot of both, where summary.json does not say where it is from")
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write figures (PNG), comparison.html and comparison.json there",
    )
    add("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.cli.analyse.point_analysis import writing
    from cards_core.exit_codes import ExitCode
    from cards_core.formats import load
    from cards_viz.runs.comparison import compare
    from cards_viz.runs.comparison_report import write
    from cards_viz.runs.recorded import RecordedRun

    robot = None if args.robot is None else load(args.robot)
    runs = [RecordedRun.read(folder, robot) for folder in (args.run_a, args.run_b)]
    comparison = compare(*runs)
    files: list[Path] = []
    if args.out is not None:
        with writing(args.out) as work:
            files = [args.out / path.name for path in write(comparison, work)]
    print_result(comparison.to_json(), files, lambda: _print(comparison), as_json=args.json)
    return ExitCode.DONE


def _print(comparison: Any) -> None:
    from cards_viz.runs.comparison_report import HEAD, cells

    a, b = comparison.a, comparison.b
    span = f"{comparison.begin:.4g} to {comparison.end:.4g} s"
    print(f"{a.robot.name}: A {a.name} ({a.info.controller}), B {b.name} ({b.info.controller}), "
          f"{span}\n")  # fmt: skip
    rows = [row for row in comparison.differences() if not row.entry]
    table = [[row.quantity, row.unit, *cells(row)] for row in rows]
    print_columns([["quantity", "unit", *HEAD], *table])
    for note in comparison.notes:
        print(f"note: {note}")
