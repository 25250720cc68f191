"""``./cards analyse offsets``: offsets of incremental length sensors from unknown poses."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.option_types import POSITIVE
from cards_bringup.vectors import vector
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode

TEXT = """``./cards analyse offsets``: offsets of incremental length sensors from unknown poses.

The table has a row for each pose that the robot was held in, with the readings of all muscles, up
to an offset of each that is the same in all rows. Poses and offsets are estimated together.
"""

EXAMPLES = """examples:
  ./cards analyse offsets roboy_arm --input readings.csv
  ./cards analyse offsets roboy_arm --input readings.csv --points motor0          its points, too
  ./cards analyse offsets bm_arm --input readings.csv --first=0.2,0,0,-0.4 --noise 1e-4 --json

tables: .csv or .npz; columns: muscle names or l/MUSCLE [m], and q/COORDINATE where a joint is
known, with nan where not. Ten poses and more, as different as possible; begin near home.
exit code: 0 found, 1 not: named muscles are not told by these poses, or the misfit is above 3
Python: cards_core.estimation.calibrate_lengths. More: docs/hardware.md
"""


def add_offsets(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "offsets",
        help="offsets of length sensors from unknown poses",
        description=TEXT,
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("robot", help="name under models/, or the path of an SDF file")
    add("--input", type=Path, required=True, metavar="FILE", help="readings, see below")
    add("--first", help="guess of the first pose (default: home)")
    add("--points", metavar="A,B", help="muscles whose points on moving links are estimated too")
    add("--noise", type=POSITIVE, default=2e-4, help="of a reading [m] (default: %(default)s)")
    text = "of known coordinates [rad] or [m] (default: %(default)s)"
    add("--joint-noise", type=POSITIVE, default=2e-3, help=text)
    text = "how far points may be off [m] (default: %(default)s)"
    add("--point-std", type=POSITIVE, default=5e-3, help=text)
    add("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from cards_bringup.cli.analyse.point_analysis import read_table
    from cards_core.estimation import calibrate_lengths
    from cards_core.formats import load

    first = vector(args.first, "first")
    robot = load(args.robot)
    table = read_table(args.input, robot.tree, main="l")
    if "l" not in table:
        raise CardsError(f"{args.input} has no readings (expected: columns l/MUSCLE)")
    points = [name.strip() for name in args.points.split(",")] if args.points else []
    found = calibrate_lengths(
        robot,
        table["l"],
        joints=table.get("q"),
        first=first,
        points_of=points,
        length_noise=args.noise,
        joint_noise=args.joint_noise,
        point_std=args.point_std,
    )
    names = [muscle.name for muscle in robot.muscles]
    if args.json:
        data = {
            "robot": robot.name,
            "offsets": dict(zip(names, found.offsets.tolist(), strict=True)),
            "offset_stds": dict(zip(names, found.offset_stds.tolist(), strict=True)),
            "points": {name: place.tolist() for name, place in found.points.items()},
            "point_stds": {name: std.tolist() for name, std in found.point_stds.items()},
            "q": found.q.tolist(),
            "rms": found.rms,
            "misfit": found.misfit,
            "undetermined": list(found.undetermined),
            "converged": found.converged,
        }
        print(json.dumps(data))
    else:
        print(f"{robot.name}: {len(found.q)} poses, misfit {found.misfit:.2g}, ", end="")
        print(f"residual {1e3 * found.rms:.3g} mm (RMS)\n")
        print("offset, to be added to the reading [mm], and its standard deviation")
        width = max(map(len, [*names, *found.points]), default=0)
        for name, offset, std in zip(names, found.offsets, found.offset_stds, strict=True):
            print(f"  {name:{width}}  {1e3 * offset:12.3f}  {1e3 * std:8.3g}")
        if found.points:
            print("\npoint in its link [m], and standard deviations [mm]")
        for name, place in found.points.items():
            spread = " ".join(f"{1e3 * std:.2g}" for std in found.point_stds[name])
            text = " ".join(f"{x:.5f}" for x in np.asarray(place))
            print(f"  {name:{width}}  {text}   {spread}")
        if found.undetermined:
            print(f"\nnot told by these poses: {', '.join(found.undetermined)}")
        if found.misfit >= 3.0:
            print(
                "\nthe readings do not fit the robot: other noise, another description, or the "
                "first pose was not where it is assumed to be"
            )
        if not found.converged:
            print("\nnot converged")
    return ExitCode.DONE if found else ExitCode.FAILED
