"""Tensions, motion and joint loads: ``./cards analyse id``, ``fd`` and ``interaction``."""

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
from cards_bringup.vectors import vector
from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode, of_answers
from cards_core.typing import Array

ID_TEXT = """``./cards analyse id``: the tensions of a pose or a motion, by eleven methods."""

ID_EXAMPLES = """examples:
  ./cards analyse id planar_2r --q=0.3,-0.5 --qd=0.4,0.2 --qdd=0.5,-0.3
  ./cards analyse id planar_2r --trajectory there_and_back --method barycentre --out runs/id
  ./cards analyse id roboy_arm --wrench hand=0,0,-10      10 N pull the hand down
  ./cards analyse id ipanema_1 --method all               all methods side by side

methods: least_norm (2-norm, default), least_sum (1-norm), least_maximum (infinity norm),
closed_form, improved_closed_form, puncture, barycentre (redundancy 1 and 2),
analytic_centre, chebyshev_centre, optimally_safe, least_interaction (loads of the joints)
conventions: tension f >= 0 pulls, -L' f = M qdd + C + G + w_e
""" + TABLE_NOTE.format(main="q")


def add_id(subparsers: Any) -> None:
    """Declare ``id`` and its arguments."""
    text = "tensions of a motion: tension distribution"
    parser = make_parser(subparsers, "id", text, doc=ID_TEXT, examples=ID_EXAMPLES)
    add_motion(parser)
    parser.add_argument("--method", default="least_norm", help="see below, or 'all' for one pose")
    _add_wrench(parser)
    parser.add_argument("--passive", default="", metavar="A,B", help="muscles that are springs")
    parser.set_defaults(run=_run_id)


def _add_wrench(parser: Any) -> None:
    """Declare ``--wrench``."""
    text = "acts on the frame's origin, world axes [N, Nm]; repeatable, those of a frame add up"
    parser.add_argument(
        "--wrench", action="append", metavar="FRAME=FX,FY,FZ[,MX,MY,MZ]", help=text
    )


def _wrenches(texts: list[str] | None) -> list[tuple[str, Array]]:
    """Read ``frame=fx,fy,fz[,mx,my,mz]``. Raises `CardsError`."""
    out = []
    for text in texts or []:
        frame, sign, values = text.partition("=")
        wrench = vector(values, "wrench") if sign else None
        if wrench is None or not frame or wrench.size not in (3, 6):
            raise CardsError(f"--wrench {text} (expected: e.g. --wrench hand=0,0,-10)")
        out.append((frame, np.concatenate([wrench, np.zeros(6 - wrench.size)])))
    return out


def _run_id(args: argparse.Namespace) -> int:
    """Run ``id``."""
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.inverse_dynamics import InverseDynamics, external_load
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load
    from cards_core.robot.motors import motors_of

    dynamics = make_dynamics(load(args.robot))
    motion = read_motion(args, dynamics)
    applied = _wrenches(args.wrench)
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
    motors = motors_of(tree)
    if len(motors):
        efforts = column("motor_forces")[:, motors.rows]
        series["motor"] = Series("joint motors", "Nm or N", motors.names, efforts)
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


FD_TEXT = (
    "``./cards analyse fd``: how the robot moves under given tensions, with its energy balance."
)

FD_EXAMPLES = """examples:
  ./cards analyse fd planar_2r --q=0.3,-0.5 --tensions 20                accelerations
  ./cards analyse fd planar_2r --q=0.3,-0.5 --tensions 20 --duration 1 --out runs/fall
  ./cards analyse id planar_2r --trajectory there_and_back --out runs/id
  ./cards analyse fd planar_2r --input runs/id/id.npz                    gives qdd back
""" + TABLE_NOTE.format(main="q")


def add_fd(subparsers: Any) -> None:
    """Declare ``fd`` and its arguments."""
    text = "motion under given tensions"
    parser = make_parser(subparsers, "fd", text, doc=FD_TEXT, examples=FD_EXAMPLES)
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
    parser.set_defaults(run=_run_fd)


def _run_fd(args: argparse.Namespace) -> int:
    """Run ``fd``."""
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


INTERACTION_TEXT = (
    """``./cards analyse interaction``: forces and moments that the joints carry, in link axes."""
)

INTERACTION_EXAMPLES = """examples:
  ./cards analyse interaction bm_arm --q=0.2,0.1,0.1,-0.4
  ./cards analyse interaction roboy_arm --tensions 50 --json
  ./cards analyse interaction planar_2r --trajectory there_and_back --out runs/joints
  ./cards analyse interaction planar_2r --wrench tip=0,0,-5 --method optimally_safe

what a joint's parent exerts on its child: force and moment about the joint, in axes of the child
""" + TABLE_NOTE.format(main="q")


def add_interaction(subparsers: Any) -> None:
    """Declare ``interaction`` and its arguments."""
    text = "forces and moments that the joints carry"
    parser = make_parser(
        subparsers, "interaction", text, doc=INTERACTION_TEXT, examples=INTERACTION_EXAMPLES
    )
    add_motion(parser)
    _add_wrench(parser)
    add = parser.add_argument
    add("--tensions", help="one for all, or one per muscle [N] (default: the table's f, or id)")
    add("--method", default="least_norm", help="of id, where no tensions are given")
    parser.set_defaults(run=_run_interaction)


def _run_interaction(args: argparse.Namespace) -> int:
    """Run ``interaction``."""
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.interaction import JointInteraction
    from cards_core.analysis.inverse_dynamics import InverseDynamics, external_load
    from cards_core.analysis.status import PointStatus
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    robot, tree = dynamics.robot, dynamics.tree
    motion = read_motion(args, dynamics)
    applied = _wrenches(args.wrench)
    tensions = tensions_of(args, dynamics, motion)
    inverse = InverseDynamics(dynamics, args.method) if tensions is None else None
    interaction = JointInteraction(dynamics)
    status, results, pulled = [], [], []
    with CountProgress(f"{robot.name} interaction", "points", quiet=args.quiet) as progress:
        for i, q in enumerate(motion.q):
            qd, qdd = motion.qd[i], motion.qdd[i]
            external = np.zeros((len(robot.links), 6))
            f = None if tensions is None else tensions[i]
            own = PointStatus.FEASIBLE
            good = np.isfinite(q).all()
            if good:
                external = interaction.on_links(q, applied)
            if f is None and inverse is not None:
                load_ = np.zeros(tree.nv)
                for frame, wrench in applied if good else ():
                    load_ += external_load(dynamics, q, frame, wrench)
                solved = inverse.step(q, qd, qdd, load_)
                own, f = solved.status, solved.tensions
            found = interaction.solve(q, qd, qdd, f, external)
            status.append(own if own is not PointStatus.FEASIBLE else found.status)
            results.append(found)
            pulled.append(f)
            if i % 100 == 0:
                progress.update(i, len(motion.q))
    muscles = [muscle.name for muscle in robot.muscles]
    joints = [joint.name for joint in robot.joints]
    n = len(results)
    forces = np.array([result.forces for result in results]).reshape(n, -1)
    moments = np.array([result.moments for result in results]).reshape(n, -1)
    imbalance = np.array([result.imbalance for result in results])
    components = [f"{joint}.{axis}" for joint in joints for axis in "xyz"]
    series = {
        "q": Series("coordinates", "rad or m", tree.position_names, motion.q),
        "f": Series("tensions", "N", muscles, np.array(pulled)),
        "force": Series("joint forces", "N", components, forces),
        "moment": Series("joint moments", "Nm", components, moments),
        "imbalance": Series("imbalance", "Nm or N", tree.velocity_names, imbalance, False),
    }
    return finish(args, dynamics, status, series, time=motion.time)
