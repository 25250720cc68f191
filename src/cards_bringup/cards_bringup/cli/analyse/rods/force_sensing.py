"""``./cards analyse force-sensing``: the wrench on a rod robot's plate, from its rods."""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.cli import print_result
from cards_bringup.cli.analyse.point_analysis import writing
from cards_bringup.cli.analyse.rods.equilibrium import findings_content, home_joints, wrench_of
from cards_bringup.cli.analyse.rods.options import is_rod_robot
from cards_bringup.option_types import COUNT, POSITIVE, SEED, Number
from cards_bringup.progress import CountProgress
from cards_bringup.vectors import vector
from cards_core.checks import check_fits
from cards_core.errors import CardsError
from cards_core.rods.analysis.force_sensing import from_bases, from_limbs, from_robot
from cards_core.rods.analysis.measurements import (
    BaseMeasurement,
    ShapeMeasurement,
    simulated_bases,
    simulated_shapes,
)
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.initial_search import find_equilibrium
from cards_core.table_files import CsvTable, open_csv
from cards_core.typing import Array

EXAMPLES = """examples:
  ./cards analyse force-sensing stewart_gough --simulate --wrench 0.3,-0.2,-0.5,0.02,-0.03,0.01 \\
      --noise 2e-4 --trials 200 --out runs/sensing        how well would it work?
  ./cards analyse force-sensing stewart_gough --shapes runs/sensing/shapes.csv --noise 2e-4
  ./cards analyse force-sensing stewart_gough --bases bases.csv --method bases

files: CSV. --shapes: limb,x,y,z and s, the arc length from the rod's start, if it is known;
--bases: limb,fx,fy,fz,mx,my,mz, what each rod exerts on its base, about its start, world axes.
methods: robot  the model of the whole robot, fitted to all that was measured (the best)
         limbs  each rod fitted to its points, then balance of the plate
         bases  balance alone, from the wrenches at the bases
Python: cards_core.rods.analysis.force_sensing. More: docs/rod_analysis.md
"""

COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
UNITS = ("N", "N", "N", "N m", "N m", "N m")


def add_force_sensing(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "force-sensing",
        help="robots of rods: the wrench on the plate from shapes or base wrenches",
        description=__doc__,
        epilog=EXAMPLES,
    )
    add = parser.add_argument
    add("robot", help="a robot of rods: name under models/, or the path of an SDF file")
    add("--q", help="joint coordinates, comma separated (default: home)")
    add("--method", choices=("robot", "limbs", "bases"), default="robot", help="default: robot")
    add(
        "--confidence",
        type=Number(above=0.0, below=1.0),
        default=0.95,
        help="of the intervals (default 0.95)",
    )
    data = parser.add_argument_group("what was measured").add_argument
    data("--shapes", type=Path, metavar="FILE", help="points of the rods, see below")
    data("--bases", type=Path, metavar="FILE", help="wrenches at the bases, see below")
    text = "standard deviation of the points' coordinates [m] (default 5e-4)"
    data("--noise", type=POSITIVE, default=5e-4, help=text)
    text = "of the base forces [N] (default 0.01)"
    data("--noise-force", type=POSITIVE, default=0.01, help=text)
    text = "of the base moments [N m] (default 0.001)"
    data("--noise-moment", type=POSITIVE, default=0.001, help=text)
    study = parser.add_argument_group("a study instead").add_argument
    study("--simulate", action="store_true", help="simulate measurements with noise")
    study("--wrench", metavar="FX,..,MZ", help="on the plate about its origin (default: none)")
    study("--points", type=COUNT, default=10, metavar="N", help="per rod (default 10)")
    study("--no-markers", action="store_true", help="arc lengths of the points are not known")
    study("--trials", type=COUNT, default=100, metavar="N", help="repetitions (default 100)")
    study("--seed", type=SEED, default=0, help="of the noise (default 0)")
    show = parser.add_argument_group("output").add_argument
    text = "write force_sensing.json, .png; of a study also one measurement as CSV files"
    show("--out", type=Path, metavar="FOLDER", help=text)
    show("--json", action="store_true", help="print one JSON object")
    show("--quiet", action="store_true", help="no progress bar")
    parser.set_defaults(run=run)


@dataclass
class _Study:
    """Estimates from repeated measurements of one state, and one of the measurements."""

    truth: Array
    estimates: list[Any]
    shapes: Any
    bases: Any


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if not is_rod_robot(args.robot):
        raise CardsError(f"'{args.robot}' has no rods (expected: a robot of rods, ./cards models)")
    robot = read_rod_robot(args.robot)
    solver = RodRobotSolver(robot)
    given = vector(args.q, "q")
    q = home_joints(solver) if given is None else given
    if q.shape != (robot.n_limbs,):
        raise CardsError(
            f"--q has {q.size} values (expected: {robot.n_limbs}: {', '.join(robot.joint_names)})"
        )
    if args.simulate:
        if args.shapes or args.bases:
            raise CardsError("--simulate with measured files (expected: one or the other)")
        study = _simulate(args, solver, q)
        content = _study_content(args, robot, study)
    else:
        estimate = _estimate_files(args, solver, q)
        study, content = None, _content(args, robot, estimate)
    content["q"] = q.tolist()
    files = [] if args.out is None else _write(args, robot, content, study)
    print_result(content, files, lambda: _print(content), as_json=args.json)
    return 0


def _estimate_files(args: argparse.Namespace, solver: Any, q: Array) -> Any:
    """Return the estimate from measured files."""
    robot = solver.robot
    shapes = () if args.shapes is None else read_shapes(args.shapes, robot, args.noise)
    bases = None
    if args.bases is not None:
        rows = read_bases(args.bases, robot)
        bases = BaseMeasurement.of(rows, args.noise_force, args.noise_moment)
    return _estimate(args.method, solver, q, shapes, bases)


def _estimate(method: str, solver: Any, q: Array, shapes: Any, bases: Any) -> Any:
    if method == "bases":
        if bases is None:
            raise CardsError("--method bases without --bases (expected: --bases FILE)")
        return from_bases(solver, q, bases)
    if method == "limbs":
        if not shapes:
            raise CardsError("--method limbs without --shapes (expected: --shapes FILE)")
        return from_limbs(solver, q, shapes)
    if not shapes and bases is None:
        raise CardsError("nothing was measured (expected: --shapes, --bases or --simulate)")
    return from_robot(solver, q, shapes, bases)


def _simulate(args: argparse.Namespace, solver: Any, q: Array) -> _Study:
    """Simulate repeated measurements of the model, with noise."""
    for name, least in (("points", 1), ("trials", 1)):
        if getattr(args, name) < least:
            raise CardsError(f"--{name} {getattr(args, name)} (expected: at least {least})")
    robot = solver.robot
    check_fits(args.trials, 4000.0 + 100.0 * robot.n_limbs, "trials", "at most {most}")
    check_fits(args.points, 2000.0 * robot.n_limbs, "points per rod", "at most {most}")
    truth = wrench_of(args, robot)[0]
    state = find_equilibrium(solver, q=q, wrench=np.zeros(6)).solution
    for share in np.linspace(0.0, 1.0, 9):
        if state is None:
            break
        state = solver.dgm(state.q, wrench=share * truth, start=state)
        if not (state.converged and state.min_eigenvalue > 0.0):
            state = None
    if state is None:
        raise CardsError(
            f"{robot.name} does not hold this wrench at these joints (expected: a smaller one)"
        )
    rng = np.random.default_rng(args.seed)
    estimates: list[Any] = []
    first: tuple[Any, Any] = ((), None)
    title = f"{robot.name} force sensing"
    with CountProgress(title, "trials", quiet=args.quiet) as progress:
        for trial in range(args.trials):
            shapes: Any = ()
            bases = None
            if args.method != "bases":
                shapes = simulated_shapes(
                    solver, state, args.points, args.noise, rng, markers=not args.no_markers
                )
            else:
                bases = simulated_bases(state, args.noise_force, args.noise_moment, rng)
            first = first if trial else (shapes, bases)
            estimates.append(_estimate(args.method, solver, state.q, shapes, bases))
            progress.update(trial + 1, args.trials)
    return _Study(truth, estimates, *first)


def _content(args: argparse.Namespace, robot: Any, estimate: Any) -> dict[str, Any]:
    return {
        "robot": robot.name,
        "kind": "force-sensing",
        "method": args.method,
        "wrench": estimate.wrench.tolist(),
        "sigma": estimate.sigma.tolist(),
        "confidence": args.confidence,
        "interval": estimate.interval(args.confidence).tolist(),
        "covariance": estimate.covariance.tolist(),
        "pose": estimate.pose.tolist(),
        "base_wrenches": estimate.base_wrenches.tolist(),
        "chi2": estimate.chi2,
        "dof": estimate.dof,
        "p_value": estimate.p_value,
        "findings": findings_content(estimate.findings, robot),
    }


def _study_content(args: argparse.Namespace, robot: Any, study: _Study) -> dict[str, Any]:
    from scipy.stats import chi2

    errors = np.array([estimate.wrench - study.truth for estimate in study.estimates])
    sigma = np.sqrt(np.mean([estimate.sigma**2 for estimate in study.estimates], axis=0))
    squared = np.array([estimate.error2(study.truth) for estimate in study.estimates])
    dof, share = study.estimates[0].observable, args.confidence
    bound = chi2.ppf(share, dof)
    return {
        **_content(args, robot, study.estimates[0]),
        "study": {
            "truth": study.truth.tolist(),
            "trials": len(errors),
            "mean_error": errors.mean(axis=0).tolist(),
            "rms_error": np.sqrt((errors**2).mean(axis=0)).tolist(),
            "predicted_sigma": sigma.tolist(),
            "mean_error2": float(squared.mean()),
            "expected_error2": dof,
            "inside": float((squared <= bound).mean()),
            # standard deviations of the last three over studies of as many trials
            "error2_scatter": math.sqrt(2.0 * dof / len(errors)),
            "inside_scatter": math.sqrt(share * (1.0 - share) / len(errors)),
            "errors": errors.tolist(),
        },
    }


def _write(
    args: argparse.Namespace, robot: Any, content: dict[str, Any], study: _Study | None
) -> list[Path]:
    from cards_viz.plots.analyses import estimate_figure
    from cards_viz.plots.drawing import save

    names = ["force_sensing.json", "force_sensing.png"]
    with writing(args.out) as work:
        text = json.dumps(content, indent=1) + "\n"
        (work / names[0]).write_text(text, encoding="utf-8")
        save(estimate_figure(content), work / names[1])
        if study is not None and study.shapes:
            names.append("shapes.csv")
            write_shapes(work / names[-1], robot, study.shapes)
        if study is not None and study.bases is not None:
            names.append("bases.csv")
            write_bases(work / names[-1], robot, study.bases.wrenches)
    return [args.out / name for name in names]


def _print(content: dict[str, Any]) -> None:
    share = 100.0 * content["confidence"]
    study = content.get("study")
    for item in content["findings"]:
        print(f"{item['status']}: {item['message']}")
    print(f"{content['robot']}, wrench on the plate about its origin, world axes\n")
    if study is None:
        print(f"{'':<4} {'estimate':>12} {f'+- ({share:g} %)':>14}")
        rows = zip(COMPONENTS, content["wrench"], content["interval"], UNITS, strict=True)
        for name, value, interval, unit in rows:
            print(f"{name:<4} {value:12.5g} {interval:14.3g} {unit}")
        print(f"\nchi2 {content['chi2']:.4g} of {content['dof']} degrees of freedom", end="")
        doubt = "" if content["p_value"] > 1e-3 else ": model and noise do not explain it"
        print(f" (p {content['p_value']:.2g}){doubt}")
    else:
        print(f"{'':<4} {'truth':>10} {'mean error':>12} {'rms error':>12} {'predicted':>12}")
        for k, (name, unit) in enumerate(zip(COMPONENTS, UNITS, strict=True)):
            mean, rms = study["mean_error"][k], study["rms_error"][k]
            sigma, truth = study["predicted_sigma"][k], study["truth"][k]
            print(f"{name:<4} {truth:10.4g} {mean:12.3g} {rms:12.3g} {sigma:12.3g} {unit}")
        print(
            f"\n{study['trials']} trials: the truth lies within the {share:g} % region in "
            f"{100.0 * study['inside']:.1f} % of them (expected: {share:g} +- "
            f"{100.0 * study['inside_scatter']:.1f}); mean e' C^-1 e {study['mean_error2']:.2f} "
            f"(expected: {study['expected_error2']} +- {study['error2_scatter']:.2f})"
        )


# Files with what was measured --------------------------------------------------------------------
#
# CSV with names in the first line. Points of rods: limb, x, y, z and, where it is known, s, the
# arc length from the rod's start. Wrenches at their bases: limb, fx, fy, fz, mx, my, mz.

POINTS = ("x", "y", "z")


def read_shapes(path: Path, robot: RodRobot, sigma: float) -> tuple[ShapeMeasurement, ...]:
    """Read points of rods.

    Args:
        path: CSV file.
        robot: Knows the limbs.
        sigma: Standard deviation of each coordinate, [m].

    Raises:
        CardsError: No such file, columns or limbs, or a cell that is no number.
    """
    rows, file = _read_csv(path, ("limb", *POINTS))
    columns = (*POINTS, "s") if "s" in file.head else POINTS
    names = [limb.name for limb in robot.limbs]
    found: dict[int, list[list[float]]] = {}
    for number, row in rows:
        limb = _limb(row["limb"], names, f"{path}:{number}")
        cells = [file.number(number, name, row[name]) for name in columns]
        found.setdefault(limb, []).append(cells)
    out = []
    for limb, points in sorted(found.items()):
        table = np.array(points)
        s = table[:, 3] if "s" in columns else None
        out.append(ShapeMeasurement(limb, table[:, :3], sigma, s))
    return tuple(out)


def read_bases(path: Path, robot: RodRobot) -> Array:
    """Read wrenches at the bases, shape (n, 6).

    Raises:
        CardsError: No such file or columns, limbs that are missing or there twice.
    """
    rows, file = _read_csv(path, ("limb", *COMPONENTS))
    names = [limb.name for limb in robot.limbs]
    out = np.full((robot.n_limbs, 6), np.nan)
    for number, row in rows:
        limb = _limb(row["limb"], names, f"{path}:{number}")
        if np.isfinite(out[limb]).any():
            raise CardsError(f"{path}:{number}: limb '{names[limb]}' is there twice")
        out[limb] = [file.number(number, name, row[name]) for name in COMPONENTS]
    missing = [name for name, row in zip(names, out, strict=True) if np.isnan(row).any()]
    if missing:
        raise CardsError(f"{path}: no row of {', '.join(missing)} (expected: one of every limb)")
    return out


def write_shapes(path: Path, robot: RodRobot, shapes: Iterable[ShapeMeasurement]) -> None:
    """Write points of rods as `read_shapes` reads them.

    Args:
        path: CSV file to write.
        robot: The robot, for the names of its limbs.
        shapes: Points of rods, world frame, [m].
    """
    shapes = tuple(shapes)
    known = all(shape.s is not None for shape in shapes)
    head = ["limb", *POINTS, "s"] if known else ["limb", *POINTS]
    rows = []
    for shape in shapes:
        s = shape.s if known and shape.s is not None else np.empty((len(shape.points), 0))
        for point, at in zip(shape.points, s, strict=True):
            rows.append([robot.limbs[shape.limb].name, *point, *np.atleast_1d(at)])
    _write_csv(path, head, rows)


def write_bases(path: Path, robot: RodRobot, wrenches: Array) -> None:
    """Write wrenches at the bases as `read_bases` reads them.

    Args:
        path: CSV file to write.
        robot: The robot, for the names of its limbs.
        wrenches: Force [N] and moment [Nm] at the start of each rod, shape (limbs, 6).
    """
    rows = [[limb.name, *row] for limb, row in zip(robot.limbs, wrenches, strict=True)]
    _write_csv(path, ["limb", *COMPONENTS], rows)


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows([row[0], *(repr(float(str(x))) for x in row[1:])] for row in rows)


def _read_csv(
    path: Path, wanted: Sequence[str]
) -> tuple[list[tuple[int, dict[str, str]]], CsvTable]:
    file = open_csv(path)
    missing = [name for name in wanted if name not in file.head]
    if missing:
        raise CardsError(
            f"{path}:1: no column {', '.join(missing)} (expected: {', '.join(wanted)})"
        )
    rows = [(line, dict(zip(file.head, cells, strict=True))) for line, cells in file.rows()]
    return rows, file


def _limb(text: str, names: Sequence[str], place: str) -> int:
    if text not in names:
        raise CardsError(f"{place}: limb '{text}' (expected: one of {', '.join(names)})")
    return list(names).index(text)
