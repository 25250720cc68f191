"""``./cards check``: check whether a robot with muscles can be controlled over a working range."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from cards_bringup.cli import print_columns, print_result
from cards_bringup.option_types import COUNT, SEED, Number

EXAMPLES = """examples:
  ./cards check roboy_arm
  ./cards check planar_2r --range joint_1=-0.5:0.5,joint_2=0.3:1.2 --closure 1 --static 1
  ./cards check path/to/model.sdf --range range.yaml --samples 5000 --seed 1
  ./cards check bm_arm --grid elbow=-1.2:-0.2:5,shoulder_x=0:0.4:3 --json
  ./cards check wrap_elbow --out runs/check

range.yaml has one line per coordinate, [rad] or [m], e.g.  elbow: [-1.5, -0.5]

exit code: 0 fit, warnings included; 1 something makes it unfit; 2 it could not be checked.
More: docs/conditions.md
Python: cards_core.analysis.robot_check.check_robot
"""

DEFAULT_SAMPLES = 1000
"""Random poses where nothing else was asked for."""

SHARE = Number(at_least=0.0, at_most=1.0)


def add_check(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "check",
        description=(
            "Whether a robot with muscles is fit to be controlled over a working range: rank "
            "of L, "
            "wrench closure, static equilibrium, moment arms, inertias, limits."
        ),
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("robot", help="name under models/, or the path of an SDF file")
    text = "share of the poses that must be in wrench closure (default 0.5)"
    add("--closure", type=SHARE, default=0.5, metavar="SHARE", help=text)
    text = "share of the poses that tensions within their limits must hold (default 0.5)"
    add("--static", type=SHARE, default=0.5, metavar="SHARE", help=text)
    points = parser.add_argument_group("working range").add_argument
    text = f"random poses within joint limits and --range (default: {DEFAULT_SAMPLES})"
    points("--samples", type=COUNT, metavar="N", help=text)
    points("--seed", type=SEED, default=0, help="of --samples (default 0)")
    text = "narrower than the joint limits; or FILE.yaml with such ranges"
    points("--range", action="append", metavar="C=A:B,..", help=text)
    points("--fix", action="append", metavar="C=V,..", help="fixed coordinates")
    points("--grid", action="append", metavar="C=A:B:N,..", help="from A to B, N values each")
    points("--points", metavar="FILE", help=".csv with names in the head line, .parquet, .npz")
    show = parser.add_argument_group("output").add_argument
    show("--out", type=Path, metavar="FOLDER", help="write check.json, check.png, poses.npz there")
    show("--json", action="store_true", help="print one JSON object instead of tables")
    show("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run, rays=None, fan=None, at_home=None)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.cli.analyse.point_options import point_set
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.robot_check import check_robot
    from cards_core.dynamics import make_dynamics
    from cards_core.exit_codes import ExitCode
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    if args.samples is None and not args.grid and not args.points:
        args.samples = DEFAULT_SAMPLES
    args.range = [_range_text(text) for text in args.range or []]
    points = point_set(args, dynamics.tree)
    with CountProgress(f"{dynamics.robot.name} check", "poses", quiet=args.quiet) as progress:
        result = check_robot(
            dynamics,
            points,
            least_closure=args.closure,
            least_static=args.static,
            progress=progress.update,
        )
    files = [] if args.out is None else _write(result, dynamics.tree.position_names, args.out)
    print_result(result.to_json(), files, lambda: _print(result), as_json=args.json)
    return ExitCode.DONE if result.fit else ExitCode.FAILED


def _range_text(text: str) -> str:
    """Return ``C=A:B,..`` of such a text, or of a file. Raises `DescriptionError`."""
    from cards_core.errors import DescriptionError
    from cards_core.yaml_fields import read_yaml

    if not text.endswith((".yaml", ".yml")):
        return text
    document = read_yaml(text)
    expected = "lines like  elbow: [-1.5, -0.5]  in rad or m"
    if not isinstance(document.data, dict) or not document.data:
        raise DescriptionError("no ranges", source=document.source, expected=expected)
    parts = []
    for name, pair in document.data.items():
        numbers = isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
        if not numbers:
            raise DescriptionError(
                f"'{name}' has no range",
                source=document.source,
                line=document.line((name,)),
                expected=expected,
            )
        parts.append(f"{name}={float(pair[0])!r}:{float(pair[1])!r}")
    return ",".join(parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _write(result: Any, positions: Any, folder: Path) -> list[Path]:
    """Write the result, its picture and the single poses; return the files."""
    import numpy as np

    from cards_bringup.cli.analyse.point_analysis import writing
    from cards_viz.plots.analyses import robot_check
    from cards_viz.plots.drawing import save

    names = ["check.json", "check.png", "poses.npz"]
    codes = {"closure": result.closure, "static": result.static}
    with writing(folder) as work:
        text = json.dumps(result.to_json(), indent=1) + "\n"
        (work / names[0]).write_text(text, encoding="utf-8")
        save(robot_check(result, positions), work / names[1])
        np.savez_compressed(
            work / names[2],
            q=result.q,
            names=np.array(positions),
            rank=result.rank,
            singular_value=result.singular_value,
            **{f"status_{name}": one for name, one in codes.items() if one is not None},
        )
    return [folder / name for name in names]


def _print(result: Any) -> None:
    plain = result.to_json()
    rank = plain["rank"]
    print(f"{result.robot}: {'fit' if result.fit else 'UNFIT'}, {len(result.q)} poses\n")
    value = rank["least_singular_value"]
    rows = [
        ["commanded muscles", str(len(plain["commanded_muscles"]))],
        ["passive muscles", ", ".join(plain["passive_muscles"]) or "-"],
        ["joints with motors", ", ".join(plain["motors"]) or "-"],
        ["mass that moves", f"{result.mass:.4g} kg"],
        [
            "minimum rank of L",
            f"{'-' if rank['least'] is None else rank['least']} of {rank['full']}",
        ],
        ["smallest singular value", "-" if value is None else f"{value:.4g}"],
        ["wrench closure", _percent(result.closure_share)],
        ["static", _percent(result.static_share)],
    ]
    print_columns(rows)
    print("\nmoment arms [mm, or 1/1000]; * both signs")
    head = ["muscle", *result.coordinates]
    changes = result.sign_changes
    cells = [
        [muscle, *(_arm(result, i, j, both=changes[i, j]) for j in range(len(head) - 1))]
        for i, muscle in enumerate(result.muscles)
    ]
    print_columns([head, *cells])
    if result.findings:
        print()
    for finding in result.findings:
        subject = f" {finding.subject}" if finding.subject else ""
        print(f"{finding.severity:<8} {finding.part}{subject}: {finding.text}")
        if finding.pose is not None:
            at = ", ".join(f"{name} {value:.4g}" for name, value in finding.pose.items())
            print(f"         worst at {at}")


def _percent(share: float | None) -> str:
    return "not asked" if share is None else f"{100.0 * share:.1f} %"


def _arm(result: Any, muscle: int, coordinate: int, *, both: bool) -> str:
    low, high = (
        1e3 * result.arm_least[muscle, coordinate],
        1e3 * result.arm_most[muscle, coordinate],
    )
    if not math.isfinite(low):
        return "no path"
    return "0" if low == high == 0.0 else f"{low:.3g} .. {high:.3g}{' *' if both else ''}"
