"""``./cards analyse id``: the tensions of a pose or a motion, by ten methods."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cards_bringup.cli.analyse.point_analysis import (
    TABLE_NOTE,
    Series,
    add_motion,
    finish,
    make_parser,
    read_motion,
)
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode, of_answers
from cards_core.typing import Array

EXAMPLES = """examples:
  ./cards analyse id planar_2r --q=0.3,-0.5 --qd=0.4,0.2 --qdd=0.5,-0.3
  ./cards analyse id planar_2r --trajectory there_and_back --method barycentre --out runs/id
  ./cards analyse id roboy_arm --wrench hand=0,0,-10      10 N pull the hand down
  ./cards analyse id ipanema_1 --method all               all methods side by side

methods: least_norm (2-norm, default), least_sum (1-norm), least_maximum (infinity norm),
closed_form, improved_closed_form, barycentre (redundancy 1 and 2), analytic_centre,
chebyshev_centre, optimally_safe, least_interaction (loads of the joints)
conventions: tension f >= 0 pulls, -L' f = M qdd + C + G + w_e
""" + TABLE_NOTE.format(main="q")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    text = "tensions of a motion: tension distribution"
    parser = make_parser(subparsers, "id", text, doc=__doc__ or "", examples=EXAMPLES)
    add_motion(parser)
    parser.add_argument("--method", default="least_norm", help="see below, or 'all' for one pose")
    add_wrench(parser)
    parser.add_argument("--passive", default="", metavar="A,B", help="muscles that are springs")
    parser.set_defaults(run=run)


def add_wrench(parser: Any) -> None:
    """Declare ``--wrench``."""
    text = "acts on the frame's origin, world axes [N, Nm]; repeatable, those of a frame add up"
    parser.add_argument(
        "--wrench", action="append", metavar="FRAME=FX,FY,FZ[,MX,MY,MZ]", help=text
    )


def wrenches(texts: list[str] | None) -> list[tuple[str, Array]]:
    """Read ``frame=fx,fy,fz[,mx,my,mz]``. Raises `CardsError`."""
    from cards_bringup.vectors import vector

    out = []
    for text in texts or []:
        frame, sign, values = text.partition("=")
        wrench = vector(values, "wrench") if sign else None
        if wrench is None or not frame or wrench.size not in (3, 6):
            raise CardsError(f"--wrench {text} (expected: e.g. --wrench hand=0,0,-10)")
        out.append((frame, np.concatenate([wrench, np.zeros(6 - wrench.size)])))
    return out


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.inverse_dynamics import InverseDynamics, external_load
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    motion = read_motion(args, dynamics)
    applied = wrenches(args.wrench)
    passive = [name.strip() for name in args.passive.split(",") if name.strip()]
    loads = np.zeros((len(motion.q), dynamics.tree.nv))
    for i, q in enumerate(motion.q if applied else ()):
        if np.isfinite(q).all():
            loads[i] = sum(external_load(dynamics, q, *wrench) for wrench in applied)
    if args.method == "all":
        return _compare(args, dynamics, motion, loads, passive)
    inverse = InverseDynamics(dynamics, args.method, passive=passive)
    results = []
    with CountProgress(f"{dynamics.robot.name} id", "points", quiet=args.quiet) as progress:
        for i, q in enumerate(motion.q):
            results.append(inverse.step(q, motion.qd[i], motion.qdd[i], loads[i]))
            if i % 1000 == 0:
                progress.update(i, len(motion.q))
    tree = dynamics.tree
    muscles = [muscle.name for muscle in dynamics.robot.muscles]

    def column(name: str) -> Array:
        return np.array([getattr(result, name) for result in results])

    series = {
        "q": Series("coordinates", "rad or m", tree.position_names, motion.q),
        "qd": Series("velocities", "rad/s or m/s", tree.velocity_names, motion.qd, False),
        "qdd": Series("accelerations", "rad/s^2 or m/s^2", tree.velocity_names, motion.qdd, False),
        "needed": Series("needed joint force", "Nm or N", tree.velocity_names, column("needed")),
        "f": Series("tensions", "N", muscles, column("tensions")),
        "residual": Series("residual", "Nm or N", tree.velocity_names, column("residual"), False),
    }
    if np.any(column("motor_forces")):
        motors = column("motor_forces")
        series["motor"] = Series("joint motors", "Nm or N", tree.velocity_names, motors)
    extra = {"method": args.method}
    status = [result.status for result in results]
    return finish(args, dynamics, status, series, time=motion.time, extra=extra)


def _compare(args: Any, dynamics: Any, motion: Any, loads: Array, passive: list[str]) -> int:
    """All methods at one pose."""
    from cards_core.analysis.inverse_dynamics import InverseDynamics
    from cards_core.analysis.status import PointStatus
    from cards_core.analysis.tension_distribution import (
        METHODS,
        RedundancyError,
        TensionLimitError,
    )

    if len(motion.q) != 1:
        raise CardsError("--method all is for one pose (expected: --q)")
    point = motion.q[0], motion.qd[0], motion.qdd[0], loads[0]
    status, rows, reasons = [], [], {}
    names = []
    for name in METHODS:
        try:
            found = InverseDynamics(dynamics, name, passive=passive).step(*point)
        except (RedundancyError, TensionLimitError) as error:
            reasons[name] = str(error)
            continue
        names.append(name)
        status.append(found.status)
        rows.append(found.tensions)
    if args.json or args.out is not None:
        muscles = [muscle.name for muscle in dynamics.robot.muscles]
        series = {"f": Series("tensions", "N", muscles, np.array(rows))}
        code = finish(
            args, dynamics, status, series, extra={"methods": names, "not_possible": reasons}
        )
        return code if status else ExitCode.FAILED
    print(f"{dynamics.robot.name}: tensions [N]\n")
    print(" " * 18 + " ".join(f"{m.name[:9]:>9}" for m in dynamics.robot.muscles))
    for name, outcome, tensions in zip(names, status, rows, strict=True):
        short = name.replace("improved_closed", "impr_closed")[:17]
        told = "" if outcome is PointStatus.FEASIBLE else f"  {outcome.name}"
        print(f"{short:<17} " + " ".join(f"{x:9.3f}" for x in tensions) + told)
    for name, reason in reasons.items():
        print(f"{name}: {reason}")
    return of_answers(outcome.name for outcome in status) if status else ExitCode.FAILED
