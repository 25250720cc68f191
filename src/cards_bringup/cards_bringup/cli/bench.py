"""``./cards bench``: how long things take on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from cards_bringup.hil.options import FIRMWARES
from cards_bringup.option_types import Number
from cards_core.errors import CardsError

EXAMPLES = """examples:
  ./cards bench dynamics                       M, C, G, l, L: numeric and compiled
  ./cards bench qp --robot planar_2r --json    QP solvers and whole control steps
  ./cards bench qp --robot musashi_like        ... and of mrc, impedance and cpg
  ./cards bench loop                           simulator + controller in one process
  ./cards bench muscles                        12 muscles with 6 wraps, beside MuJoCo's tendons
  ./cards bench paper --json                   the tables of the model-compilation paper
  ./cards bench rods --json                    continuum robots beside the published 4.5 kHz
  ./cards bench tensegrity --json              a crawling spine with cables that touch, beside NTRT
  ./cards bench batch --json                   many robots side by side, beside MuJoCo's batches
  ./cards bench mrc                            muscle relaxation control: period, angles, learning
  ./cards bench compiler                       ways to native code, side by side
  ./cards bench hil --minutes 10 --json        bridge and emulated boards at full rate: a soak
"""

OF_A_ROBOT = "dynamics", "qp", "loop", "hil"
"""Benchmarks that take any robot."""

CHOICES = (*OF_A_ROBOT, "muscles", "paper", "compiler", "rods", "tensegrity", "batch", "mrc")

DEFAULT_ROBOT = "roboy_arm"


def add_bench(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("bench", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("what", choices=CHOICES)
    parser.add_argument(
        "--robot",
        help=f"of {', '.join(OF_A_ROBOT)} (default: {DEFAULT_ROBOT}); others have theirs",
    )
    parser.add_argument(
        "--minutes",
        type=Number(at_least=0.05, at_most=1e7),
        metavar="M",
        help="of hil: how long to run (default: 1)",
    )
    parser.add_argument("--firmware", choices=FIRMWARES, help="of hil: as for ./cards demo --hil")
    parser.add_argument(
        "--ntrt",
        metavar="PROGRAM",
        help="of tensegrity: a program of NTRT to compare with, called as PROGRAM CASE SECONDS "
        "with the cases flat, contact, hills; its last line is the simulated time that it reached",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_core.loop.verdict import EXIT_CODES  # not for --help, which has no NumPy

    if args.robot is not None and args.what not in OF_A_ROBOT:
        raise CardsError(f"'{args.what}' has robots of its own (expected: no --robot)")
    if args.ntrt is not None and args.what != "tensegrity":
        raise CardsError(f"--ntrt with '{args.what}' (expected: of tensegrity only)")
    if args.what == "hil":
        result = _soak(args)
    elif args.minutes is not None or args.firmware is not None:
        raise CardsError(f"--minutes and --firmware with '{args.what}' (expected: of hil only)")
    elif args.what == "tensegrity":
        from cards_bringup.benchmarks.tensegrity import bench_tensegrity

        result = bench_tensegrity(_say, program=args.ntrt)
    else:
        result = _measure(args.what, args.robot or DEFAULT_ROBOT)
    if args.json:
        print(json.dumps(result))
    else:
        _show(result)
    return EXIT_CODES[result.get("verdict", "ok")]


def _measure(what: str, robot: str) -> dict[str, Any]:
    match what:
        case "dynamics":
            from cards_bringup.benchmarks.dynamics import bench_dynamics

            return bench_dynamics(robot)
        case "qp":
            from cards_bringup.benchmarks.qp import bench_qp
            from cards_core.formats import load

            return bench_qp(load(robot))
        case "muscles":
            from cards_bringup.benchmarks.muscles import bench_muscles

            return bench_muscles()
        case "paper":
            from cards_bringup.benchmarks.paper import bench_paper

            return bench_paper(_say)
        case "rods":
            from cards_bringup.benchmarks.rods import bench_rods

            return bench_rods(_say)
        case "mrc":
            from cards_bringup.benchmarks.relaxation import bench_relaxation

            return bench_relaxation(_say)
        case "batch":
            from cards_bringup.benchmarks.batch import bench_batch

            return bench_batch(_say)
        case "compiler":
            from cards_bringup.benchmarks.compiler import bench_compiler

            return bench_compiler(_say)
        case _:
            from cards_bringup.benchmarks.loop import bench_loop

            return bench_loop(robot)


def _soak(args: argparse.Namespace) -> dict[str, Any]:
    from cards_bringup.benchmarks.hil import bench_hil
    from cards_bringup.hil.options import choose_firmware

    minutes = 1.0 if args.minutes is None else args.minutes
    firmware = choose_firmware(args.firmware, _say)
    return bench_hil(args.robot or DEFAULT_ROBOT, minutes, firmware, _say)


def _say(text: str) -> None:
    print(f"measuring {text}", file=sys.stderr, flush=True)


def _show(result: dict[str, Any], indent: str = "") -> None:
    for key, value in result.items():
        if isinstance(value, dict):
            print(f"{indent}{key}")
            _show(value, indent + "  ")
        elif isinstance(value, list):
            for entry in value:
                if isinstance(entry, dict):
                    print()
                    _show(entry, indent + "  ")
                else:
                    print(f"{indent}{key:<24} {entry}")
        elif isinstance(value, float):
            print(f"{indent}{key:<24} {_number(value):>12}")
        else:
            print(f"{indent}{key:<24} {value!s:>12}")


def _number(value: float) -> str:
    """Return a number with three decimals, or three digits where these would show too few."""
    return f"{value:.3g}" if 0.0 < abs(value) < 0.01 else f"{value:.3f}"
