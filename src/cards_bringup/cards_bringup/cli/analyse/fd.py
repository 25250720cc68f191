"""``./cards analyse fd``: how the robot moves under given tensions, with its energy balance."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cards_bringup.cli.analyse.point_analysis import (
    TABLE_NOTE,
    Series,
    add_motion,
    check_points,
    finish,
    make_parser,
    read_motion,
    tensions_of,
)
from cards_bringup.option_types import POSITIVE
from cards_core.errors import CardsError

EXAMPLES = """examples:
  ./cards analyse fd planar_2r --q=0.3,-0.5 --tensions 20                accelerations
  ./cards analyse fd planar_2r --q=0.3,-0.5 --tensions 20 --duration 1 --out runs/fall
  ./cards analyse id planar_2r --trajectory there_and_back --out runs/id
  ./cards analyse fd planar_2r --input runs/id/id.npz                    gives qdd back
""" + TABLE_NOTE.format(main="q")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    text = "motion under given tensions"
    parser = make_parser(subparsers, "fd", text, doc=__doc__ or "", examples=EXAMPLES)
    add_motion(parser)
    add = parser.add_argument
    add("--tensions", help="one for all, or one per muscle [N] (default: the table's f, or zero)")
    add("--duration", type=POSITIVE, help="simulate this long from the point [s]")
    solvers = ("rk4", "RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA")
    add("--solver", choices=solvers, default="rk4", help="(default: %(default)s, fixed step)")
    add(
        "--max-step",
        type=POSITIVE,
        default=1e-3,
        help="of rk4 [s] (default: %(default)s)",
    )
    add(
        "--tolerance",
        type=POSITIVE,
        default=1e-8,
        help="relative, of the others (%(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_core.analysis.forward_dynamics import ForwardDynamics, check_steps
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    motion = read_motion(args, dynamics)
    tensions = tensions_of(args, dynamics, motion)
    if tensions is None:
        tensions = np.zeros((len(motion.q), len(dynamics.robot.muscles)))
    forward = ForwardDynamics(dynamics)
    tree = dynamics.tree
    names, rates = tree.position_names, tree.velocity_names
    if args.duration is None:
        results = [forward.step(*row) for row in zip(motion.q, motion.qd, tensions, strict=True)]
        qdd = np.array([result.qdd for result in results])
        series = {
            "q": Series("coordinates", "rad or m", names, motion.q),
            "qd": Series("velocities", "rad/s or m/s", rates, motion.qd),
            "qdd": Series("accelerations", "rad/s^2 or m/s^2", rates, qdd),
        }
        status = [result.status for result in results]
        return finish(args, dynamics, status, series, time=motion.time)
    if len(motion.q) != 1:
        raise CardsError("--duration starts from one point (expected: --q, not a motion)")
    if args.solver == "rk4":
        check_steps(args.duration, args.max_step)
    count = check_points(args.duration, args.step, dynamics)
    times = np.linspace(0.0, args.duration, count + 1)
    found = forward.simulate(
        motion.q[0],
        motion.qd[0],
        times,
        tensions[0],
        solver=args.solver,
        max_step=args.max_step,
        tolerance=args.tolerance,
    )
    both = np.column_stack([found.energy - found.energy[0], found.work])
    series = {
        "q": Series("coordinates", "rad or m", names, found.q),
        "qd": Series("velocities", "rad/s or m/s", rates, found.qd),
        "energy": Series("energy gained, work done", "J", ["energy", "work"], both),
    }
    extra = {"end": found.status.name, "energy_error": found.energy_error}
    statuses = [0] * len(found.time)
    return finish(args, dynamics, statuses, series, time=found.time, extra=extra)
