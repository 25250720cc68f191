"""Inverse and forward kinematics: ``./cards analyse ik`` and ``fk``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.cli.analyse.point_analysis import (
    TABLE_NOTE,
    Series,
    add_motion,
    finish,
    make_parser,
    read_motion,
    read_table,
)
from cards_bringup.cli.analyse.rods.options import add_options, dispatch
from cards_bringup.option_types import COUNT, POSITIVE, WholeNumber
from cards_bringup.vectors import vector
from cards_core.errors import CardsError

IK_TEXT = """``./cards analyse ik``: muscle lengths, rates and accelerations of poses and motions.

Robots of rods: the joint coordinates of a plate pose (inverse model).
"""

IK_EXAMPLES = """examples:
  ./cards analyse ik stewart_gough --pose x=0.05,rz=0.1                joints of a plate pose
  ./cards analyse ik planar_2r --q=0.3,-0.5 --qd=0.4,0.2
  ./cards analyse ik planar_2r --trajectory there_and_back --out runs/lengths
  ./cards analyse ik ipanema_1 --input poses.csv --json
""" + TABLE_NOTE.format(main="q")


def add_ik(subparsers: Any) -> None:
    """Declare ``ik`` and its arguments."""
    text = "muscle lengths of poses; robots of rods: joints of a plate pose"
    parser = make_parser(subparsers, "ik", text, doc=IK_TEXT, examples=IK_EXAMPLES)
    add_motion(parser)
    add_options(parser, pose=True, joints=False)
    parser.set_defaults(run=_run_ik)


def _run_ik(args: argparse.Namespace) -> int:
    """Run ``ik``."""
    if (code := dispatch(args)) is not None:
        return code
    from cards_core.analysis.inverse_kinematics import inverse_kinematics
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    motion = read_motion(args, dynamics)
    found = inverse_kinematics(dynamics, motion.q, motion.qd, motion.qdd)
    tree = dynamics.tree
    muscles = [muscle.name for muscle in dynamics.robot.muscles]
    series = {
        "q": Series("coordinates", "rad or m", tree.position_names, motion.q),
        "qd": Series("velocities", "rad/s or m/s", tree.velocity_names, motion.qd, False),
        "qdd": Series("accelerations", "rad/s^2 or m/s^2", tree.velocity_names, motion.qdd, False),
        "l": Series("muscle lengths", "m", muscles, found.lengths),
        "ld": Series("muscle rates", "m/s", muscles, found.rates),
        "ldd": Series("muscle accelerations", "m/s^2", muscles, found.accelerations),
    }
    return finish(args, dynamics, found.status.tolist(), series, time=motion.time)


FK_TEXT = """``./cards analyse fk``: poses from muscle lengths, and velocities from their rates.

Robots of rods: the plate pose of joint coordinates (direct model).
"""

FK_EXAMPLES = """examples:
  ./cards analyse fk stewart_gough --joints=0.41,0.41,0.4,0.4,0.41,0.42    a robot of rods
  ./cards analyse fk planar_2r --lengths=0.754,2.167,1.020,2.307 --tolerance 1e-3
  ./cards analyse ik planar_2r --trajectory there_and_back --out runs/lengths
  ./cards analyse fk planar_2r --input runs/lengths/ik.npz --method hybrid --tolerance 1e-3
""" + TABLE_NOTE.format(main="l")


def add_fk(subparsers: Any) -> None:
    """Declare ``fk`` and its arguments."""
    text = "poses from muscle lengths; robots of rods: plate pose of joints"
    parser = make_parser(subparsers, "fk", text, doc=FK_TEXT, examples=FK_EXAMPLES)
    add = parser.add_argument
    add("--lengths", help="of all muscles, comma separated [m]")
    add("--rates", help="their derivatives [m/s]: adds velocities")
    add("--input", type=Path, metavar="FILE", help="a table with a sequence of lengths, see below")
    methods = ("least_squares", "differential", "hybrid")
    add("--method", choices=methods, default=methods[0], help="(default: %(default)s)")
    add(
        "--tolerance",
        type=POSITIVE,
        default=1e-6,
        help="residual tolerance [m]",
    )
    add("--correction-period", type=COUNT, default=10, help="of hybrid, in steps (%(default)s)")
    add("--initial", help="initial guess of q (default: home)")
    text = "additional random initial guesses (%(default)s)"
    add("--starts", type=WholeNumber(), default=20, help=text)
    add_options(parser, pose=False, joints=True)
    parser.set_defaults(run=_run_fk)


def _run_fk(args: argparse.Namespace) -> int:
    """Run ``fk``."""
    if (code := dispatch(args)) is not None:
        return code
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.forward_kinematics import ForwardKinematics
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    tree = dynamics.tree
    time = None
    if args.input is not None:
        table = read_table(args.input, tree, main="l")
        if "l" not in table:
            raise CardsError(f"{args.input} has no lengths (expected: columns l/MUSCLE)")
        lengths, rates = table["l"], table.get("ld")
        time = table["time"][:, 0] if "time" in table else None
    else:
        given = vector(args.lengths, "lengths")
        if given is None:
            raise CardsError("no lengths (expected: --lengths or --input)")
        speeds = vector(args.rates, "rates")
        lengths, rates = given[None], None if speeds is None else speeds[None]
    fk = ForwardKinematics(
        dynamics,
        args.method,
        tolerance=args.tolerance,
        correction_period=args.correction_period,
        starts=args.starts,
        initial=vector(args.initial, "initial"),
    )
    results = []
    with CountProgress(f"{dynamics.robot.name} fk", "points", quiet=args.quiet) as progress:
        for i, row in enumerate(lengths):
            results.append(fk.step(row, None if rates is None else rates[i]))
            if i % 1000 == 0:
                progress.update(i, len(lengths))
    q = np.array([result.q for result in results])
    series = {"q": Series("coordinates", "rad or m", tree.position_names, q)}
    if rates is not None:
        qd = np.array([result.qd for result in results])
        series["qd"] = Series("velocities", "rad/s or m/s", tree.velocity_names, qd)
    residuals = np.array([[result.residual] for result in results])
    counts = np.array([[float(result.iterations)] for result in results])
    series["residual"] = Series("largest length error", "m", ["residual"], residuals)
    series["iterations"] = Series("model evaluations", "", ["iterations"], counts, False)
    return finish(args, dynamics, [r.status for r in results], series, time=time)
