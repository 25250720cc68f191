"""``./cards analyse stiffness``: joint stiffness, eigenvalues, natural frequencies, stability.

Robots of rods: the stiffness of the plate at fixed joints, at a plate pose or at joints.
"""

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
    tensions_of,
)
from cards_bringup.cli.analyse.rods.options import add_options, dispatch
from cards_bringup.vectors import vector

EXAMPLES = """examples:
  ./cards analyse stiffness stewart_gough --pose x=0.05 --wrench 0,0,-1,0,0,0    of rods
  ./cards analyse stiffness planar_xy --tensions 100 --axial-stiffness 1e5
  ./cards analyse stiffness ipanema_1 --axial-stiffness 1e5 --gravity   tensions that hold the pose
  ./cards analyse stiffness wrap_elbow --q=1.2 --json
  ./cards analyse stiffness planar_2r --input runs/id/id.npz --out runs/stiffness

K = L' K_m L + sum f_i dL_i/dq (+ dG/dq): force against a displacement of the joints
""" + TABLE_NOTE.format(main="q")


def add_stiffness(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    text = "joint stiffness matrix; robots of rods: that of the plate"
    parser = make_parser(subparsers, "stiffness", text, doc=__doc__ or "", examples=EXAMPLES)
    add_motion(parser, rates=False)
    add = parser.add_argument
    add("--tensions", help="one for all, or one per muscle [N] (default: the table's f, or id)")
    add("--method", default="least_norm", help="of id, where no tensions are given")
    add("--muscle-stiffness", help="df/dl of all muscles or each [N/m] (default: the actuators')")
    add("--axial-stiffness", help="EA of all cables or each [N]: df/dl = EA/l")
    add("--gravity", action="store_true", help="add dG/dq")
    add_options(parser, pose=True, joints=True, has_q=True)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    if (code := dispatch(args)) is not None:
        return code
    from cards_core.analysis.inverse_dynamics import InverseDynamics
    from cards_core.analysis.status import PointStatus
    from cards_core.analysis.stiffness import joint_stiffness
    from cards_core.dynamics import make_dynamics
    from cards_core.formats import load

    dynamics = make_dynamics(load(args.robot))
    tree = dynamics.tree
    motion = read_motion(args, dynamics)
    tensions = tensions_of(args, dynamics, motion)
    status: list[PointStatus] = [PointStatus.FEASIBLE] * len(motion.q)
    if tensions is None:
        track = InverseDynamics(dynamics, args.method).track(motion.q)
        tensions = track.tensions
        status = [PointStatus(int(value)) for value in track.status]
    names = "muscle-stiffness", "axial-stiffness"
    given = [_given(getattr(args, name.replace("-", "_")), name) for name in names]
    results = [
        joint_stiffness(
            dynamics, q, f, stiffness=given[0], axial_stiffness=given[1], gravity=args.gravity
        )
        for q, f in zip(motion.q, tensions, strict=True)
    ]
    # a pose that no tensions hold has no stiffness worth the name: that comes first
    status = [
        own if own is not PointStatus.FEASIBLE else result.status
        for own, result in zip(status, results, strict=True)
    ]
    rates = tree.velocity_names
    pairs = [f"{a},{b}" for a in rates for b in rates]
    muscles = [muscle.name for muscle in dynamics.robot.muscles]
    modes = [f"{i + 1}" for i in range(tree.nv)]

    def column(name: str) -> Any:
        return np.array([getattr(result, name).ravel() for result in results])

    series = {
        "q": Series("coordinates", "rad or m", tree.position_names, motion.q),
        "f": Series("tensions", "N", muscles, tensions),
        "muscle_stiffness": Series("muscle stiffness", "N/m", muscles, column("muscle_stiffness")),
        "K": Series("stiffness K", "Nm/rad, N/m", pairs, column("matrix"), False),
        "K_elastic": Series("of it, muscles", "Nm/rad, N/m", pairs, column("elastic"), False),
        "K_tension": Series("of it, tensions", "Nm/rad, N/m", pairs, column("tension"), False),
        "eigenvalues": Series("eigenvalues", "Nm/rad, N/m", modes, column("eigenvalues")),
        "frequencies": Series("natural frequencies", "Hz", modes, column("frequencies")),
    }
    if args.gravity:
        weight = column("gravity")
        series["K_gravity"] = Series("of it, gravity", "Nm/rad, N/m", pairs, weight, False)
    verdicts = [result.verdict for result in results]
    counts = {name: verdicts.count(name) for name in dict.fromkeys(verdicts)}
    extra: dict[str, Any] = {"verdict": verdicts if args.json else counts}
    if not args.json:
        many = len(verdicts) > 1
        extra["verdict"] = ", ".join(f"{n} {k}" if many else n for n, k in counts.items())
    return finish(args, dynamics, status, series, time=motion.time, extra=extra)


def _given(text: str | None, name: str) -> Any:
    values = vector(text, name)
    return values[0] if values is not None and values.shape == (1,) else values
