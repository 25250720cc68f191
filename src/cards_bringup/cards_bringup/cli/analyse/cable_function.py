"""``./cards analyse cable-function``: what each muscle is for, over many poses."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.cli import print_result
from cards_bringup.cli.analyse.point_analysis import writing
from cards_bringup.option_types import COUNT, SEED
from cards_core.analysis.status import PointStatus
from cards_core.errors import CardsError
from cards_core.exit_codes import of_answers

EXAMPLES = """examples:
  ./cards analyse cable-function roboy_arm --samples 2000 --out runs/functions
  ./cards analyse cable-function planar_2r --grid joint_1=-1:1:41,joint_2=-1:1:41 --json
  ./cards analyse cable-function roboy_arm --group elbow=motor9,motor10
  ./cards analyse cable-function bm_arm --condition static --condition wrench_feasible \\
      --option wrench_feasible.force_lower=[-0.1] --option wrench_feasible.force_upper=[0.1]

moment arms r = -L: '+' turns a coordinate in its positive sense (agonist), '-' in the negative one
(antagonist), '+-' depends on the pose. Cut muscles pull with 0. Conditions and their options:
./cards analyse workspace --list-conditions
Python: cards_core.analysis.cable_function. More: docs/cable_function.md
"""

SIGNS = {"agonist": "+", "antagonist": "-", "both": "+-", "none": "0"}

DEFAULT_SAMPLES = 1000
"""Random poses where nothing else was asked for."""


def add_cable_function(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "cable-function", help="what each muscle is for", description=__doc__, epilog=EXAMPLES
    )
    add = parser.add_argument
    add("robot", help="name under models/, or the path of an SDF file")
    add("--group", action="append", metavar="NAME=A,B", help="muscles that are removed together")
    text = "workspaces to compare; repeatable (default: static and wrench_closure)"
    add("--condition", action="append", metavar="NAME", help=text)
    add("--option", action="append", metavar="CONDITION.K=V", help="option of a condition")
    points = parser.add_argument_group("poses").add_argument
    text = f"random poses within limits and --range (default: {DEFAULT_SAMPLES})"
    points("--samples", type=COUNT, metavar="N", help=text)
    points("--grid", action="append", metavar="C=A:B:N,..", help="from A to B, N values each")
    points("--points", metavar="FILE", help=".csv with names in the head line, .parquet, .npz")
    points("--fix", action="append", metavar="C=V,..", help="fixed coordinates")
    points("--range", action="append", metavar="C=A:B,..", help="of --samples")
    points("--at-home", metavar="JOINT,..", help="joints that --samples leaves at home")
    points("--seed", type=SEED, default=0, help="of --samples (default 0)")
    show = parser.add_argument_group("output").add_argument
    text = "write cable_function.json, cable_function.png and poses.npz there"
    show("--out", type=Path, metavar="FOLDER", help=text)
    show("--json", action="store_true", help="print one JSON object instead of tables")
    show("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run, rays=None, fan=None)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.cli.analyse.point_options import point_set
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.cable_function import analyse_cable_function
    from cards_core.checks import check_fits
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    if args.samples is None and not args.grid and not args.points:
        args.samples = DEFAULT_SAMPLES
    points = point_set(args, dynamics.tree).bind(dynamics.tree)
    m, tree = len(dynamics.robot.muscles), dynamics.tree
    # poses in several forms, what they allow with each muscle cut, and their tensions
    bytes_each = 8.0 * (8 * tree.nq + 6 * m) + 100.0
    check_fits(points.count, bytes_each, "poses", "at most {most}")
    q = points.q(points.values(0, points.count))
    title = f"{dynamics.robot.name} cable function"
    with CountProgress(title, "poses", quiet=args.quiet) as progress:
        result = analyse_cable_function(
            dynamics,
            q,
            groups=_groups(args.group),
            conditions=_conditions(args.condition, args.option),
            progress=lambda done: progress.update(done, len(q)),
        )
    files = [] if args.out is None else _write(result, q, args.out)
    print_result(result.to_json(), files, lambda: _print(result), as_json=args.json)
    known = [result.tensions.statuses, *(one.statuses for one in result.necessity.values())]
    return of_answers(PointStatus(int(code)).name for codes in known for code in np.unique(codes))


def _groups(texts: list[str] | None) -> dict[str, list[str]]:
    """Read ``name=a,b``. Raises `CardsError`."""
    out: dict[str, list[str]] = {}
    for text in texts or []:
        name, sign, members = text.partition("=")
        if not sign or not name.strip():
            raise CardsError(f"--group {text} (expected: e.g. --group flexors=biceps,brachialis)")
        if name.strip() in out:
            raise CardsError(f"--group {name} is given twice (expected: different names)")
        out[name.strip()] = [member.strip() for member in members.split(",") if member.strip()]
    return out


def _conditions(names: list[str] | None, options: list[str] | None) -> dict[str, Any] | None:
    """Names of conditions with their options; None for the defaults. Raises `CardsError`."""
    from cards_bringup.cli.analyse.point_options import option_values
    from cards_core.analysis.cable_function.analysis import CONDITIONS

    out: dict[str, Any] = {name: {} for name in (names or CONDITIONS)}
    for key, value in option_values(options).items():
        condition, dot, name = key.partition(".")
        if not dot or condition not in out:
            raise CardsError(
                f"--option {key} (expected: CONDITION.OPTION=VALUE with one of the conditions "
                f"{', '.join(out)})"
            )
        out[condition][name] = value
    return out


def _write(result: Any, q: Any, folder: Path) -> list[Path]:
    """Write the result, its picture and the single poses; return the files."""
    from cards_viz.plots.analyses import cable_function
    from cards_viz.plots.drawing import save

    names = ["cable_function.json", "cable_function.png", "poses.npz"]
    statuses = {f"status_{name}": found.statuses for name, found in result.necessity.items()}
    use = result.tensions
    with writing(folder) as work:
        text = json.dumps(result.to_json(), indent=1) + "\n"
        (work / names[0]).write_text(text, encoding="utf-8")
        save(cable_function(result), work / names[1])
        np.savez_compressed(
            work / names[2],
            q=q,
            groups=np.array(list(result.groups)),
            muscles=np.array(use.muscles),
            status_tensions=use.statuses,
            least_tension=use.least,
            greatest_tension=use.most,
            **statuses,
        )
    return [folder / name for name in names]


def _print(result: Any) -> None:
    arms, use = result.arms, result.tensions
    print(f"{result.robot}: {result.poses} poses, {arms.poses} of them finite\n")
    rows = []
    for i, muscle in enumerate(result.muscles):
        cells = [_arm(arms, i, j, unit) for j, unit in enumerate(result.units)]
        rows.append([muscle, *cells])
    _table("moment arms, mean size", ["muscle", *result.coordinates], rows)
    head = ["without"]
    for name, found in result.necessity.items():
        share = f" ({_percent(found.feasible, found.answered)})" if found.answered else ""
        head += [f"{name}{share}", "gained"]
    rows = [
        [
            group,
            *(
                cell
                for found in result.necessity.values()
                for cell in (
                    f"-{_percent(found.lost[k], found.feasible)} {found.verdict(k)}",
                    f"+{found.gained[k]}" if found.gained[k] else "",
                )
            ),
        ]
        for k, group in enumerate(result.groups)
    ]
    _table("workspace lost, of its poses", head, rows)
    rows = [
        [
            muscle,
            use.verdict(i),
            *(_percent(n[i], use.poses) for n in (use.needed, use.exchangeable, use.idle)),
            _span(use.least[:, i]),
            _span(use.most[:, i]),
        ]
        for i, muscle in enumerate(use.muscles)
    ]
    head = ["muscle", "verdict", "needed", "exchangeable", "idle", "minimum [N]", "maximum [N]"]
    _table(f"tensions that hold a pose ({use.poses} poses)", head, rows)


def _arm(arms: Any, muscle: int, velocity: int, unit: str) -> str:
    """Sign and mean size, e.g. ``+ 25.6 mm``; if the sign varies, how often it is positive."""
    role = arms.role(muscle, velocity)
    if role == "none":
        return SIGNS[role]
    sign = SIGNS[role]
    if role == "both":
        sign += f" ({_percent(arms.positive[muscle, velocity], arms.poses)} +)"
    size = arms.mean_size[muscle, velocity]
    return f"{sign} {1e3 * size:.3g} mm" if unit == "m" else f"{sign} {size:.3g}"


def _percent(part: int, whole: int) -> str:
    return f"{100.0 * part / whole:.1f} %" if whole else "-"


def _span(values: Any) -> str:
    """Return the smallest and the largest value as text."""
    there = values[~np.isnan(values)]
    return f"{there.min():.4g} .. {there.max():.4g}" if len(there) else "-"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print left-aligned columns under a title."""
    widths = [max(len(row[k]) for row in (head, *rows)) for k in range(len(head))]
    print(title)
    for row in (head, *rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  " + "  ".join(cells).rstrip())
    print()
