"""``./cards analyse prestress`` and ``modes``: statics of bodies that cables hold."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cards_bringup.cli import print_columns, print_result
from cards_bringup.cli.analyse.point_analysis import writing
from cards_bringup.option_types import COUNT, POSITIVE
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.json_values import json_value

PRESTRESS_EXAMPLES = """examples:
  ./cards analyse prestress prism_3                          in the shape as built
  ./cards analyse prestress superball --settle               in the shape its rest lengths give
  ./cards analyse prestress structure.yaml --mean 20         a structure file, mean tension 20 N
  ./cards analyse prestress tetrahedral_6 --method least_norm --min 5
  ./cards analyse prestress prism_3 --out runs/prism         prestress.json and prestress.png

A f = 0: tensions of self-stress; mechanisms: motions that leave all lengths to first order
Equations, sources, Python: docs/tensegrity.md#statics
"""

MODES_EXAMPLES = """examples:
  ./cards analyse modes superball                            about the shape its rest lengths give
  ./cards analyse modes tetrahedral_6 --prestress max_min --mean 10     as built, with tensions
  ./cards analyse modes structure.yaml --json
  ./cards analyse modes prism_3 --count 4 --out runs/modes   modes.json and modes.png

K v = w^2 M v without rigid motions; stable if every w^2 > 0
Equations, sources, Python: docs/tensegrity.md#statics
"""

METHODS = ("max_min", "least_norm")


def add_prestress(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = _parser(subparsers, "prestress", "self-stress, mechanisms, prestress, rest lengths")
    add = parser.add_argument
    add("--settle", action="store_true", help="first find the equilibrium of the rest lengths")
    text = (
        "objective: maximise the minimum tension, or minimise the norm of the tensions "
        "(%(default)s)"
    )
    add("--method", choices=METHODS, default="max_min", help=text)
    _tensions(parser)
    parser.set_defaults(run=lambda args: _answer(args, run_prestress))


def add_modes(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = _parser(subparsers, "modes", "frequencies and stability of an equilibrium")
    add = parser.add_argument
    text = "analyse the built shape with these tensions (default: the equilibrium of rest lengths)"
    add("--prestress", choices=METHODS, dest="method", help=text)
    _tensions(parser)
    add(
        "--gravity",
        action="store_true",
        help="include gravity; at least one body must be fixed to the world",
    )
    add("--count", type=COUNT, default=12, help="modes in the table and figure (%(default)s)")
    parser.set_defaults(run=lambda args: _answer(args, run_modes))


def _parser(subparsers: Any, kind: str, text: str) -> Any:
    parser = subparsers.add_parser(
        kind,
        help=text,
        description=f"Bodies that cables hold: {text}.",
        epilog=PRESTRESS_EXAMPLES if kind == "prestress" else MODES_EXAMPLES,
    )
    add = parser.add_argument
    add("robot", metavar="FILE|ROBOT", help="structure file (.yaml), model name, or SDF file")
    add("--out", type=Path, metavar="FOLDER", help=f"write {kind}.json and {kind}.png")
    add("--json", action="store_true", help="print one JSON object instead of tables")
    add("--quiet", action="store_true", help="no progress bar")
    text = "of lengths in NASA's files, which do not say it: m, dm, cm, mm (%(default)s)"
    add("--unit", default="cm", help=text)
    text = "singular value, relative to the largest, that counts as zero (%(default)s)"
    add("--tolerance", type=POSITIVE, default=1e-8, help=text)
    return parser


def _tensions(parser: Any) -> None:
    add = parser.add_argument
    add("--mean", type=POSITIVE, help="mean tension of max_min [N] (default 1)")
    add("--min", type=POSITIVE, help="minimum tension of least_norm [N] (default 1)")
    add("--max", type=POSITIVE, help="largest tension of least_norm [N] (default: none)")


def run_prestress(args: argparse.Namespace) -> int:
    """Run ``prestress``."""
    from cards_core.tensegrity import statics

    dynamics = _dynamics(args)
    robot = dynamics.robot
    q, settled = dynamics.tree.home, None
    if args.settle:
        settled = statics.find_equilibrium(dynamics)
        q = settled.q
    analysis = statics.analyse_equilibrium(dynamics, q, tolerance=args.tolerance)
    reason, found = None, None
    try:
        found = _prestress(args, analysis)
    except statics.NoPrestressError as error:
        reason = str(error)
    content: dict[str, Any] = {
        "robot": robot.name,
        "kind": args.kind,
        "rank": analysis.rank,
        "self_stress_states": analysis.self_stress.shape[1],
        "mechanisms": analysis.mechanisms.shape[1],
        "rigid_motions": analysis.rigid_motions.shape[1],
        "idle_motions": analysis.idle_motions.shape[1],
        "tolerance": analysis.tolerance,
        "length_scale": analysis.length_scale,
        "cables": list(analysis.cables),
        "lengths": analysis.lengths,
        "singular_values": analysis.singular_values,
        "self_stress": analysis.self_stress,
        "mechanism_shapes": analysis.mechanisms,
        "velocities": list(dynamics.tree.velocity_names),
        "q": analysis.q,
        "settled": None if settled is None else _settled(settled),
        "method": args.method,
        "problem": reason,
        "tensions": None if found is None else found.tensions,
        "unbalanced": None if found is None else found.unbalanced,
    }
    for key in ("rest_lengths", "minimal_rest_lengths"):
        content[key], content[f"{key}_problem"] = None, None
        if found is None:
            continue
        try:
            if key == "rest_lengths":
                content[key] = statics.rest_lengths(robot, analysis.lengths, found.tensions)
            else:
                content[key] = statics.minimal_rest_lengths(analysis, robot)[0]
        except statics.StaticsError as error:
            content[f"{key}_problem"] = str(error)
    figure = None
    if args.out is not None and found is not None:
        from cards_viz.plots import structures

        title = f"Prestress of {robot.name}, {args.method}"
        figure = structures.prestress(dynamics, analysis.q, found.tensions, title)
    return _finish(args, content, figure, _print_prestress)


def run_modes(args: argparse.Namespace) -> int:
    """Run ``modes``."""
    from cards_core.tensegrity import statics

    dynamics = _dynamics(args)
    q, settled = dynamics.tree.home, None
    if args.method is None:
        given = [f"--{name}" for name in ("mean", "min", "max") if getattr(args, name) is not None]
        if given:
            raise CardsError(f"{given[0]} without --prestress (expected: both, or neither)")
        settled = statics.find_equilibrium(dynamics, gravity=args.gravity)
        q, tensions = settled.q, settled.tensions
    else:
        analysis = statics.analyse_equilibrium(dynamics, q, tolerance=args.tolerance)
        tensions = _prestress(args, analysis).tensions
    # a shape whose equilibrium holds to the tolerance of the rank is balanced to it as well
    balanced = max(1e-6, 100.0 * args.tolerance)
    found = statics.find_modes(dynamics, q, tensions, gravity=args.gravity, balanced=balanced)
    content: dict[str, Any] = {
        "robot": dynamics.robot.name,
        "kind": args.kind,
        "verdict": found.verdict,
        "unstable": [i + 1 for i in found.unstable],
        "rigid_motions": found.left_out[0],
        "idle_motions": found.left_out[1],
        "frequencies": found.frequencies,
        "growth_rates": found.growth_rates,
        "eigenvalues": found.eigenvalues,
        "links": [name for name, _ in found.links],
        "shares": [share for _, share in found.links],
        "velocities": list(dynamics.tree.velocity_names),
        "shapes": found.shapes,
        "q": q,
        "cables": [muscle.name for muscle in dynamics.robot.muscles],
        "tensions": tensions,
        "settled": None if settled is None else _settled(settled),
    }
    figure = None
    if args.out is not None:
        from cards_viz.plots import structures

        title = f"Modes of {dynamics.robot.name}, {found.verdict}"
        figure = structures.modes(dynamics, q, found, title, count=args.count)
    return _finish(args, content, figure, _print_modes)


def _answer(args: argparse.Namespace, run: Callable[[argparse.Namespace], int]) -> int:
    """Run a kind; that nothing holds the structure is an answer, no convergence is none."""
    from cards_core.tensegrity import statics

    try:
        return run(args)
    except (statics.NoPrestressError, statics.NotConvergedError) as error:
        if args.json:
            print(json.dumps({"kind": args.kind, "problem": str(error), "files": []}))
        else:
            print(f"no {args.kind}: {error}")
        return ExitCode.DONE if isinstance(error, statics.NoPrestressError) else ExitCode.FAILED


def _dynamics(args: argparse.Namespace) -> Any:
    """Load a structure file or a robot."""
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load
    from cards_core.tensegrity import build, to_robot

    if Path(args.robot).suffix in (".yaml", ".yml"):
        return make_dynamics(to_robot(build(args.robot, length=args.unit)))
    return make_dynamics(load(args.robot))


def _prestress(args: argparse.Namespace, analysis: Any) -> Any:
    from cards_core.tensegrity import statics

    wrong = ("min", "max") if args.method == "max_min" else ("mean",)
    for name in wrong:
        if getattr(args, name) is not None:
            other = "least_norm" if args.method == "max_min" else "max_min"
            raise CardsError(f"--{name} with {args.method} (expected: with {other})")
    low = 1.0 if args.min is None else args.min
    high = math.inf if args.max is None else args.max
    return statics.prestress(
        analysis, args.method, mean=args.mean, tension_min=low, tension_max=high
    )


def _settled(found: Any) -> dict[str, Any]:
    return {
        "iterations": found.iterations,
        "unbalanced": found.unbalanced,
        "energy": found.energy,
        "tensions": found.tensions.tolist(),
        "slack": list(found.slack),
    }


def _finish(args: argparse.Namespace, content: dict[str, Any], figure: Any, show: Any) -> int:
    content = json_value(content)
    files: list[Path] = []
    if args.out is not None:
        from cards_viz.plots.drawing import save

        names = [f"{args.kind}.json"] + ([f"{args.kind}.png"] if figure is not None else [])
        with writing(args.out) as work:
            text = json.dumps(content, indent=1) + "\n"
            (work / names[0]).write_text(text, encoding="utf-8")
            if figure is not None:
                save(figure, work / names[1])
        files = [args.out / name for name in names]
    print_result(content, files, lambda: show(args, content), as_json=args.json)
    return ExitCode.DONE


def _print_settled(content: dict[str, Any]) -> None:
    if (settled := content["settled"]) is not None:
        print(
            f"equilibrium of its rest lengths: {settled['iterations']} iterations, unbalanced "
            f"force {settled['unbalanced']:.2g} N, energy {settled['energy']:.6g} J"
        )
        if settled["slack"]:
            print("slack: " + ", ".join(settled["slack"]))


def _print_prestress(args: argparse.Namespace, content: dict[str, Any]) -> None:
    print(
        f"{content['robot']}: {len(content['velocities'])} velocities, {len(content['cables'])} "
        f"cables, rank {content['rank']}"
    )
    print(
        f"states of self-stress: {content['self_stress_states']}, infinitesimal mechanisms: "
        f"{content['mechanisms']}"
    )
    print(
        f"besides: {content['rigid_motions']} rigid motions, {content['idle_motions']} motions "
        "that move no cable"
    )
    _print_settled(content)
    print()
    if content["problem"] is not None:
        print(f"no prestress: {content['problem']}")
        return
    unbalanced = content["unbalanced"]
    print(f"prestress, {args.method}; unbalanced force {unbalanced:.2g} N")
    columns = [content[key] for key in ("rest_lengths", "minimal_rest_lengths")]
    head = ["cable", "length [m]", "tension [N]", "density [N/m]", "rest [m]", "minimal rest [m]"]
    rows = [head]
    for i, name in enumerate(content["cables"]):
        length, tension = content["lengths"][i], content["tensions"][i]
        rests = ["-" if column is None else f"{column[i]:.6f}" for column in columns]
        rows.append([name, f"{length:.6f}", f"{tension:.6f}", f"{tension / length:.6g}", *rests])
    print_columns(rows)
    for key in ("rest_lengths", "minimal_rest_lengths"):
        if content[f"{key}_problem"]:
            print(f"no {key.replace('_', ' ')}: {content[f'{key}_problem']}")


def _print_modes(args: argparse.Namespace, content: dict[str, Any]) -> None:
    count = len(content["frequencies"])
    print(f"{content['robot']}: {content['verdict']}, {count} modes")
    _print_settled(content)
    print(
        f"left out: {content['rigid_motions']} rigid motions, {content['idle_motions']} motions "
        "that move no cable"
    )
    print()
    rows = [["mode", "frequency [Hz]", "w^2 [1/s^2]", "most in", "share of energy"]]
    for i in range(min(args.count, count)):
        frequency = content["frequencies"][i]
        rate = f"unstable, grows by {content['growth_rates'][i]:.6g}/s"
        rows.append(
            [
                str(i + 1),
                rate if frequency is None else f"{frequency:.6f}",
                f"{content['eigenvalues'][i]:.6g}",
                content["links"][i],
                f"{100.0 * content['shares'][i]:.0f} %",
            ]
        )
    print_columns(rows)
    if count > args.count:
        print(f"... and {count - args.count} stiffer ones (--count)")
