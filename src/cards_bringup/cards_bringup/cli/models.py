"""``./cards models``: the robots there are, with their size."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from cards_bringup.cli import print_columns
from cards_core.exit_codes import ExitCode

EXAMPLES = """examples:
  ./cards models
  ./cards models --json
  CARDS_MODEL_PATH=~/robots ./cards models      look there first
"""

COLUMNS = (
    ("name", "robot"),
    ("links", "links"),
    ("degrees_of_freedom", "DoF"),
    ("muscles", "muscles"),
    ("rods", "rods"),
    ("operational_frame", "moves"),
    ("source", "file"),
)


def add_models(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("models", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def describe(name: str) -> dict[str, Any]:
    """Return the size of a robot, or the reason why it cannot be read under ``error``."""
    from cards_core.errors import CardsError
    from cards_core.formats import load
    from cards_core.formats.locate import find_model, has_rods

    try:
        file = find_model(name)
        if has_rods(file):
            return _describe_rods(name, file)
        robot = load(file)
        tree = robot.tree
    except CardsError as error:
        return {"name": name, "error": str(error)}
    return {
        "name": name,
        "kind": "muscles",
        "links": len(robot.links),
        "degrees_of_freedom": tree.nv,
        "muscles": len(robot.muscles),
        "rods": 0,
        "operational_frame": robot.operational_frame,
        "joint_names": list(tree.position_names),
        "muscle_names": [muscle.name for muscle in robot.muscles],
        "source": str(file),
    }


def _describe_rods(name: str, file: Path) -> dict[str, Any]:
    """Return the size of a robot of rods; its degrees of freedom are those of its actuators."""
    from cards_core.rods.robots.reader import read_rod_robot

    robot = read_rod_robot(file)
    joints = zip(robot.joint_names, robot.actuated, strict=True)
    return {
        "name": name,
        "kind": "rods",
        "links": len(robot.description.links) if robot.description else 0,
        "degrees_of_freedom": int(robot.actuated.sum()),
        "muscles": 0,
        "rods": robot.n_limbs,
        "operational_frame": robot.plate.link,
        "joint_names": [joint for joint, moves in joints if moves],
        "muscle_names": [],
        "limbs": {limb.name: f"{limb.base.kind}, {limb.tip.kind}" for limb in robot.limbs},
        "planar": robot.planar,
        "controlled": list(robot.controlled),
        "notes": list(robot.notes),
        "source": str(file),
    }


def run(args: argparse.Namespace) -> int:
    """Run the command; an error if a robot cannot be read."""
    from cards_core.formats.locate import known_models
    from cards_core.named_files import model_folders

    rows = [describe(name) for name in known_models()]
    if args.json:
        folders = [str(folder) for folder in model_folders()]
        print(json.dumps({"folders": folders, "models": rows}))
    elif not rows:
        print("no models; folders searched: " + ", ".join(map(str, model_folders())))
    else:
        _print_table(rows)
    return ExitCode.ERROR if any("error" in row for row in rows) else ExitCode.DONE


def _print_table(rows: list[dict[str, Any]]) -> None:
    good = [row for row in rows if "error" not in row]
    cells = [[title for _, title in COLUMNS]]
    cells += [
        [str(row[key] if row[key] is not None else "-") for key, _ in COLUMNS] for row in good
    ]
    print_columns(cells)
    for row in rows:
        if "error" in row:
            print(f"{row['name']}: error: {row['error']}")
        for note in row.get("notes", ()):
            print(f"{row['name']}: note: {note}")
