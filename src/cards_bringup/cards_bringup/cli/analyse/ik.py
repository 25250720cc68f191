"""``./cards analyse ik``: muscle lengths, rates and accelerations of poses and motions.

Robots of rods: the joint coordinates of a plate pose (inverse model).
"""

from __future__ import annotations

import argparse
from typing import Any

from cards_bringup.cli.analyse.point_analysis import (
    TABLE_NOTE,
    Series,
    add_motion,
    finish,
    make_parser,
    read_motion,
)
from cards_bringup.cli.analyse.rods.options import add_options, dispatch

EXAMPLES = """examples:
  ./cards analyse ik stewart_gough --pose x=0.05,rz=0.1                joints of a plate pose
  ./cards analyse ik planar_2r --q=0.3,-0.5 --qd=0.4,0.2
  ./cards analyse ik planar_2r --trajectory there_and_back --out runs/lengths
  ./cards analyse ik ipanema_1 --input poses.csv --json
""" + TABLE_NOTE.format(main="q")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    text = "muscle lengths of poses; robots of rods: joints of a plate pose"
    parser = make_parser(subparsers, "ik", text, doc=__doc__ or "", examples=EXAMPLES)
    add_motion(parser)
    add_options(parser, pose=True, joints=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
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
