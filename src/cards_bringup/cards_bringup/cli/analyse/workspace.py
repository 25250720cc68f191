"""``./cards analyse workspace``: where a condition holds, on grids, samples, rays, files.

Robots of rods: where the plate can be, on a grid of its poses.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from cards_bringup.option_types import COUNT, POSITIVE, SEED, Number
from cards_core.errors import CardsError
from cards_core.exit_codes import of_answers
from cards_core.files import RUNS, inside

EXAMPLES = """examples:
  ./cards analyse workspace --list-conditions
  ./cards analyse workspace ipanema_1 --condition wrench_closure --grid x=-2:2:41,z=0:2:21 --plot
  ./cards analyse workspace bm_arm --condition static --samples 100000 --seed 1
  ./cards analyse workspace ipanema_1 --condition wrench_closure --rays x=-4:4 --grid y=-3:3:61
  ./cards analyse workspace planar_xy --condition wrench_closure --points poses.csv
  ./cards analyse workspace --resume runs/FOLDER       go on after Ctrl-C, kill -9, power failure
  ./cards analyse workspace ... --scheduler tcp://10.0.0.5:8786        on the workers of a cluster
  ./cards analyse workspace stewart_gough --grid x=-0.2:0.2:41,y=-0.2:0.2:41 --plot    of rods

coordinates: by name or by the end of it (x finds platform_x). What is not given is at home. Ball
joints: JOINT.rx, .ry, .rz, the rotation vector [rad] from home. Running the same command again
goes on where it was left, or shows the result.
Robots of rods have no --condition: their points are plate poses x, y, z [m] in the world and rx,
ry, rz [rad] from home; all are followed from home, see docs/rod_analysis.md.
Python: cards_core.analysis.workspace. More: docs/workspace.md
"""


def add_workspace(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "workspace",
        help="where a condition holds; robots of rods: plate poses on a grid",
        description=__doc__,
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("robot", nargs="?", help="name under models/, or the path of an SDF file")
    text = "condition to evaluate; see --list-conditions"
    add("--condition", metavar="NAME", action="append", help=text)
    add("--option", action="append", metavar="K=V", help="option of the condition; repeatable")
    add("--list-conditions", action="store_true", help="all conditions with their options")
    points = parser.add_argument_group("points").add_argument
    points("--grid", action="append", metavar="C=A:B:N,..", help="from A to B, N values each")
    points("--samples", type=COUNT, metavar="N", help="random points within limits and --range")
    points("--points", metavar="FILE", help=".csv with names in the head line, .parquet, .npz")
    points(
        "--rays", action="append", metavar="C=A:B,..", help="lines from A to B from every point"
    )
    points("--fan", type=COUNT, metavar="N", help="N rays in random directions from every point")
    points("--fix", action="append", metavar="C=V,..", help="fixed coordinates")
    points("--range", action="append", metavar="C=A:B,..", help="of --samples")
    points("--at-home", metavar="JOINT,..", help="joints that --samples leaves at home")
    points("--seed", type=SEED, default=0, help="of --samples and --fan (default 0)")
    points("--length", type=POSITIVE, default=1.0, help="of the rays of --fan (default 1)")
    points("--among", metavar="C,..", help="velocities that span the directions of --fan")
    points("--scan", type=COUNT, default=64, help="steps of a ray's scan (default 64)")
    points(
        "--tolerance",
        type=POSITIVE,
        default=1e-6,
        help="of a ray's intervals (default 1e-6)",
    )
    points("--within-limits", action="store_true", help="skip points outside the joint limits")
    rods = parser.add_argument_group("robots of rods").add_argument
    rods("--wrench", metavar="FX,..,MZ", help="on the plate about its origin [N, N m]")
    rods("--frame", choices=("world", "plate"), help="of --wrench (default: world)")
    text = "smallest stiffness, of that at home, that counts as near a limit (default 0.05)"
    rods("--near", type=Number(at_least=0.0, below=1.0), metavar="SHARE", help=text)
    work = parser.add_argument_group("work").add_argument
    work("--out", type=Path, metavar="DIR", help="folder (default: runs/workspace_ROBOT_..)")
    work("--workers", type=COUNT, metavar="N", help="threads (default: one per core)")
    work("--processes", action="store_true", help="processes instead of threads")
    work("--scheduler", metavar="ADDRESS", help="compute on the workers of this Dask scheduler")
    work("--chunk", type=COUNT, metavar="N", help="points per chunk (default: 1/256 of all)")
    work("--format", choices=("parquet", "npz"), default="parquet", help="of the result")
    work("--resume", type=Path, metavar="DIR", help="resume the job of a folder")
    work("--restart", action="store_true", help="discard an existing job in the folder")
    show = parser.add_argument_group("output").add_argument
    show("--plot", action="store_true", help="pictures and an interactive page in DIR/plots")
    show("--metric", metavar="NAME", help="column of the pictures (default: the first)")
    show("--show", action="store_true", help="open the page in the browser; implies --plot")
    show("--json", action="store_true", help="print the summary as JSON")
    show("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.list_conditions:
        _list_conditions(as_json=args.json)
        return 0
    from cards_bringup.cli.analyse.rods.options import is_rod_robot, refuse_options

    if args.robot and is_rod_robot(args.robot):
        from cards_bringup.cli.analyse.rods import workspace as rod_workspace

        return rod_workspace.run(args)
    refuse_options(args, ("wrench", "frame", "near"), "robots of rods alone")
    from cards_bringup.progress import CountProgress
    from cards_core.analysis import workspace

    if args.metric and not (args.plot or args.show):
        raise CardsError("--metric is a column of the pictures (expected: with --plot or --show)")

    job, out = _job(args)
    title = f"{job.robot.name} {job.condition}"
    unit = "rays" if job.points.kind == "rays" else "points"
    try:
        with CountProgress(title, unit, quiet=args.quiet) as progress:
            result = workspace.run(
                job,
                out,
                workers=args.workers,
                processes=args.processes,
                scheduler=args.scheduler,
                progress=progress.update,
                restart=args.restart,
            )
    except KeyboardInterrupt:
        print(f"stopped; go on: ./cards analyse workspace --resume {out}", file=sys.stderr)
        raise
    files = []
    if args.plot or args.show:
        from cards_bringup.cli.analyse.point_analysis import in_words
        from cards_viz.workspace.muscle_plots import draw

        with in_words(result.path / "plots"):
            files = draw(result, metric=args.metric)
    if args.json:
        paths = {"folder": str(out), "plots": [str(file) for file in files]}
        print(json.dumps({**result.summary, **paths}))
    else:
        _print_summary(result, [result.file, *files])
    if args.show:
        import webbrowser

        pages = [file for file in files if file.suffix == ".html"]
        for page in pages:
            webbrowser.open(page.resolve().as_uri())
    return of_answers(result.summary["statuses"])


def _job(args: argparse.Namespace) -> tuple[Any, Path]:
    """Return the job and its folder."""
    from cards_bringup.cli.analyse.point_options import option_values, point_set
    from cards_core.analysis.workspace import make_job
    from cards_core.analysis.workspace.folder import read_job
    from cards_core.analysis.workspace.job import code_hash
    from cards_core.formats import load

    if args.resume is not None:
        if args.robot or args.condition:
            raise CardsError(
                "--resume with a robot or condition (expected: --resume DIR alone; the folder "
                "knows its job)"
            )
        job = read_job(args.resume)
        if args.restart:
            job = dataclasses.replace(job, code=code_hash())
        return job, args.resume
    if not args.robot or not args.condition:
        missing = "robot" if not args.robot else "--condition"
        raise CardsError(
            f"no {missing} (expected: ./cards analyse workspace ROBOT --condition NAME --grid .., "
            "or --resume DIR, or --list-conditions)"
        )
    if len(args.condition) > 1:
        raise CardsError(
            f"--condition {' and '.join(args.condition)} (expected: one; ask the second with "
            "--points DIR/result.parquet, the result of the first)"
        )
    tree = load(args.robot).tree
    job = make_job(
        args.robot,
        args.condition[0],
        point_set(args, tree),
        options=option_values(args.option),
        chunk=args.chunk,
        within_limits=args.within_limits,
        format=args.format,
    )
    # the name follows from the job: the same command finds the same folder
    name = f"workspace_{job.robot.name}_{job.condition}_{job.key[:8]}"
    return job, args.out or inside(RUNS, name)


def _list_conditions(*, as_json: bool) -> None:
    from cards_core.analysis.conditions.registry import CONDITIONS

    rows: list[dict[str, Any]] = []
    for name, kind in CONDITIONS.items():
        options = [
            {
                "name": item.name,
                "unit": item.unit,
                "default": item.default,
                "text": item.description,
            }
            for item in kind.options.parameters()
        ]
        rows.append({"name": name, "text": kind.text, "options": options})
    if as_json:
        print(json.dumps({"conditions": rows}))
        return
    for row in rows:
        print(f"{row['name']}: {row['text']}")
        for item in row["options"]:
            unit = f" [{item['unit']}]" if item["unit"] else ""
            default = "none" if item["default"] in (None, ()) else item["default"]
            print(f"    {item['name']}{unit}: {item['text']} Default: {default}.")


def _print_summary(result: Any, files: list[Path]) -> None:
    summary = result.summary
    rays = summary["kind"] == "rays"
    what = f"{summary['rays']} rays" if rays else f"{summary['points']} points"
    print(f"{summary['robot']}, {summary['condition']}: {what}\n")
    counts = summary["statuses"]
    lengths = summary.get("lengths", {})
    print(f"{'status':<20} {'intervals' if rays else 'points':>12} {'share':>9}")
    whole = sum(lengths.values()) if rays else summary["points"]
    for name, count in counts.items():
        part = lengths[name] if rays else count
        share = f"{100.0 * part / whole:.2f} %" if whole else "-"
        print(f"{name.lower():<20} {count:>12} {share:>9}")
    print()
    if rays:
        part = summary["rays_with_feasible_part"]
        print(f"feasible: somewhere on {part} of {summary['rays']} rays")
    if volume := summary.get("volume"):
        error = volume["standard_error"]
        more = f" +- {error:.3g}" if error is not None else ""
        print(f"feasible: {volume['feasible']:.6g}{more} of {volume['of']:.6g} {volume['unit']}")
    if box := summary.get("bounding_box"):
        parts = [f"{name} {low:.6g} .. {high:.6g}" for name, (low, high) in box.items()]
        print("within:   " + "\n          ".join(parts))
    for name, metric in summary.get("metrics", {}).items():
        unit = f" {metric['unit']}" if metric["unit"] else ""
        for key in ("min", "max"):
            if best := metric[key]:
                at = ", ".join(f"{n} {v:.6g}" for n, v in best["at"].items())
                print(f"{name} {key}: {best['value']:.6g}{unit} at {at or 'the only point'}")
    print("\nfiles:    " + "\n          ".join(str(file) for file in files))
