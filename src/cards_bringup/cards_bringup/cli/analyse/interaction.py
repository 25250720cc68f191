"""``./cards analyse interaction``: forces and moments that the joints carry, in link axes."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from cards_bringup.cli.analyse.id import add_wrench, wrenches
from cards_bringup.cli.analyse.point_analysis import (
    TABLE_NOTE,
    Series,
    add_motion,
    finish,
    make_parser,
    read_motion,
    tensions_of,
)

EXAMPLES = """examples:
  ./cards analyse interaction bm_arm --q=0.2,0.1,0.1,-0.4
  ./cards analyse interaction roboy_arm --tensions 50 --json
  ./cards analyse interaction planar_2r --trajectory there_and_back --out runs/joints
  ./cards analyse interaction planar_2r --wrench tip=0,0,-5 --method optimally_safe

what a joint's parent exerts on its child: force and moment about the joint, in axes of the child
""" + TABLE_NOTE.format(main="q")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    text = "forces and moments that the joints carry"
    parser = make_parser(subparsers, "interaction", text, doc=__doc__ or "", examples=EXAMPLES)
    add_motion(parser)
    add_wrench(parser)
    add = parser.add_argument
    add("--tensions", help="one for all, or one per muscle [N] (default: the table's f, or id)")
    add("--method", default="least_norm", help="of id, where no tensions are given")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from cards_bringup.progress import CountProgress
    from cards_core.analysis.interaction import JointInteraction
    from cards_core.analysis.inverse_dynamics import InverseDynamics, external_load
    from cards_core.analysis.status import PointStatus
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    robot, tree = dynamics.robot, dynamics.tree
    motion = read_motion(args, dynamics)
    applied = wrenches(args.wrench)
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
