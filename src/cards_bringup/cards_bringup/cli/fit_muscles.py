"""``./cards fit-muscles``: move via points so that arms, lengths, torques, closure are as wanted.

The specification says which points may move how far, and what the robot must have then: moment
arms and lengths over poses, torques that muscles must be able to give within their tension
limits, force closure. The result is a new SDF: the robot's file with other numbers in it, nothing
else changed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from cards_bringup.cli import say
from cards_bringup.option_types import COUNT, SEED
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import new_run_folder

EXAMPLES = """examples:
  ./cards fit-muscles planar_2r closure.yaml -o fitted
  ./cards fit-muscles my_arm.sdf arms.yaml -o fitted --starts 40 --seed 3
  ./cards fit-muscles --resume fitted                 go on after Ctrl-C or a kill
  ./cards demo fitted                                 the fitted robot

closure.yaml, e.g.:
  format: muscle_fit/1
  poses: {grid: {joint_1: [-1, 1, 7], joint_2: [-1, 1, 7]}}
  points:
    - {muscle: all, box: [0.3, 0, 0.3]}
  closure: {margin: 0.01}

All keys: docs/fit_muscles.md
Python: cards.fit_muscles

The folder has model.sdf, report.md, report.json, plots (moment_arms.png, lengths.png,
torques.png, closure.png) and a copy of the specification; until it is done also state.json.

Exit code: 0 all goals are met; 1 not all, the report says which ones, by how much, and what is
nearest; 2 it could not run; 130 Ctrl-C: the best so far is kept.
"""


def add_fit_muscles(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("fit-muscles", description=__doc__, epilog=EXAMPLES)
    add = parser.add_argument
    add("robot", nargs="?", help="name under models/, or the path of an SDF file")
    add("specification", nargs="?", type=Path, metavar="SPEC.yaml", help="what is wanted")
    place = parser.add_mutually_exclusive_group()
    text = "folder of the result (default: runs/fit_muscles_ROBOT_TIME)"
    place.add_argument("-o", "--out", type=Path, metavar="DIR", help=text)
    text = "go on with the interrupted fit in this folder"
    place.add_argument("--resume", type=Path, metavar="DIR", help=text)
    text = "most starts: the robot as it is, then random ones (default 16)"
    add("--starts", type=COUNT, metavar="N", help=text)
    add("--iterations", type=COUNT, metavar="N", help="most steps from each start (default 60)")
    add("--seed", type=SEED, metavar="N", help="of the random starts (default 0)")
    add("--force", action="store_true", help="replace a result in the folder; its SDF is kept")
    add("--quiet", action="store_true", help="no progress bar")
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    settings = {
        name: getattr(args, name)
        for name in ("starts", "iterations", "seed")
        if getattr(args, name) is not None
    }
    if args.resume is not None:
        extra = [name for name, given in _given(args, settings) if given]
        if extra:
            raise CardsError(
                f"--resume with {', '.join(extra)} (expected: --resume DIR alone; the folder "
                "knows its fit)"
            )
    elif args.robot is None or args.specification is None:
        missing = "robot" if args.robot is None else "specification"
        raise CardsError(
            f"no {missing} (expected: ./cards fit-muscles ROBOT SPEC.yaml -o DIR, or --resume DIR)"
        )
    from cards_bringup.progress import BestProgress

    robot = None if args.resume is not None else _robot(args.robot)
    folder = args.resume or args.out or new_run_folder(f"fit_muscles_{Path(args.robot).stem}")
    begin = time.perf_counter()
    title = Path(args.robot or folder).stem
    try:
        with BestProgress(title, "steps", quiet=args.quiet) as bar:
            from cards.muscle_fit import fit_muscles

            result = fit_muscles(
                robot,
                args.specification,
                out=folder,
                force=args.force,
                resume=args.resume is not None,
                progress=lambda now: bar.update(now.done, now.total, now.miss),
                **settings,
            )
    except KeyboardInterrupt:
        if (folder / "state.json").is_file():
            say(f"stopped; go on: ./cards fit-muscles --resume {folder}")
        raise
    _tell(args, result, folder, time.perf_counter() - begin)
    return ExitCode.DONE if result.met else ExitCode.FAILED


def _given(args: argparse.Namespace, settings: dict[str, Any]) -> list[tuple[str, bool]]:
    """Return what was given besides ``--resume``."""
    return [
        ("a robot", args.robot is not None),
        *((f"--{name}", name in settings) for name in ("starts", "iterations", "seed")),
        ("--force", args.force),
    ]


def _robot(source: str) -> Any:
    """Return a robot with muscles.

    Raises:
        CardsError: It is a robot of rods.
    """
    from cards_core.formats import find_model, load
    from cards_core.formats.locate import has_rods

    if has_rods(find_model(source)):
        raise CardsError(f"'{source}' is a robot of rods (expected: a robot with muscles)")
    return load(source)


def _tell(args: argparse.Namespace, result: Any, folder: Path, seconds: float) -> None:
    from cards_core.analysis.muscle_fit.result import not_met

    found = result.summary()
    if args.json:
        missed = not_met(result)
        more = {"not_met": missed, "folder": str(folder), "seconds": round(seconds, 3)}
        print(json.dumps({**found, **more}))
        return
    from cards_bringup.cli import print_columns

    rows = [["goal", "met", "largest miss", "before", "tolerance", "unit", "poses missed"]]
    for goal in found["goals"]:
        numbers = [f"{goal[k]:.4g}" for k in ("largest_miss", "largest_miss_before", "tolerance")]
        part = f"{goal['poses_missed']} of {goal['poses']}"
        rows.append([goal["name"], "yes" if goal["met"] else "NO", *numbers, goal["unit"], part])
    print_columns(rows)
    far = max((item["distance"] for item in found["moved"]), default=0.0)
    print(
        f"\n{len(found['moved'])} points moved, by up to {1e3 * far:.3g} mm; {found['starts']} "
        f"starts in {seconds:.1f} s"
    )
    for line in not_met(result):
        print(f"not met: {line}")
    if not result.met and found["at_border"]:
        print(f"at the border of where they may be: {', '.join(found['at_border'])}")
    print(f"folder: {folder}")
