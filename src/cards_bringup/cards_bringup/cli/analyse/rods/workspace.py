"""``./cards analyse workspace`` for robots of rods: slices of plate poses."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from cards_bringup.cli.analyse.point_analysis import in_words
from cards_bringup.cli.analyse.point_options import assignments, grid_of, number_of
from cards_bringup.cli.analyse.rods.equilibrium import wrench_of
from cards_bringup.cli.analyse.rods.options import refuse_options
from cards_bringup.progress import CountProgress
from cards_core.errors import CardsError
from cards_core.exit_codes import of_answers
from cards_core.files import RUNS, inside
from cards_core.rods.analysis.workspace import solve_slice
from cards_core.rods.analysis.workspace_slice import SliceOptions, find_coordinate
from cards_core.rods.robots.reader import read_rod_robot

NOT_FOR_RODS = (
    "condition",
    "option",
    "samples",
    "points",
    "rays",
    "fan",
    "range",
    "at_home",
    "among",
    "within_limits",
    "processes",
    "scheduler",
    "chunk",
    "resume",
    "restart",
)
"""Options that mean nothing here: points are solved one from the other, on one machine."""


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    refuse_options(args, NOT_FOR_RODS, "robots with muscles")
    robot = read_rod_robot(args.robot)
    if not args.grid:
        raise CardsError(
            "no points (expected: --grid, e.g. --grid x=-0.1:0.1:41,y=-0.1:0.1:41; plate "
            f"coordinates: {', '.join(robot.controlled)})"
        )
    wrench, frame = wrench_of(args, robot)
    extra: dict[str, Any] = {}
    if args.near is not None:
        extra["near"] = args.near
    options = SliceOptions(wrench=wrench, frame=frame, **extra)
    texts = assignments(args.fix, "--fix", "z=0.5", lambda name: find_coordinate(robot, name))
    fixed = {full: number_of(text, f"--fix {name}") for full, name, text in texts}
    grid = grid_of(args.grid, lambda name: find_coordinate(robot, name), fixed)
    if args.metric and not (args.plot or args.show):
        raise CardsError("--metric is a column of the pictures (expected: with --plot or --show)")
    try:
        with CountProgress(f"{robot.name} poses", "points", quiet=args.quiet) as progress:
            result = solve_slice(
                robot, grid, options, workers=args.workers, progress=progress.update
            )
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise
    folder = args.out or _folder(robot.name, grid, options)
    with in_words(folder):
        files = result.save(folder)
    if args.plot or args.show:
        from cards_viz.workspace.rod_plots import draw

        with in_words(folder / "plots"):
            files += draw(result, folder / "plots", metric=args.metric)
    summary = result.summary()
    if args.json:
        print(json.dumps({**summary, "folder": str(folder), "files": [str(f) for f in files]}))
    else:
        _print(summary, files)
    if args.show:
        import webbrowser

        webbrowser.open(files[-1].resolve().as_uri())
    return of_answers(summary["statuses"])


def _folder(robot: str, grid: Any, options: Any) -> Path:
    """Return a folder whose name depends on grid and options only."""
    text = json.dumps([grid.to_json(), list(options.wrench), options.frame, options.near])
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return inside(RUNS, f"workspace_{robot}_{digest}")


def _print(summary: dict[str, Any], files: list[Path]) -> None:
    print(f"{summary['robot']}: {summary['points']} plate poses\n")
    print(f"{'status':<20} {'points':>12} {'share':>9}")
    for name, count in summary["statuses"].items():
        share = 100.0 * count / summary["points"]
        print(f"{name.lower().replace('_', ' '):<20} {count:>12} {share:>7.2f} %")
    print()
    if size := summary["size"]:
        print(f"reachable and stable: {size['good']:.6g} of {size['of']:.6g} {size['unit']}")
    if box := summary["bounding_box"]:
        parts = [f"{name} {low:.6g} .. {high:.6g}" for name, (low, high) in box.items()]
        print("within:   " + "\n          ".join(parts))
    for name, metric in summary["metrics"].items():
        unit = f" {metric['unit']}" if metric["unit"] else ""
        for key in ("min", "max"):
            if (best := metric[key]) and name != "rod_index":
                at = ", ".join(f"{n} {v:.6g}" for n, v in best["at"].items())
                print(f"{name} {key}: {best['value']:.6g}{unit} at {at or 'the only point'}")
    for note in summary["notes"]:
        print(f"note: {note}")
    print("\nfiles:    " + "\n          ".join(str(file) for file in files))
