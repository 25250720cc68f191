"""``./cards eval``: every model quantity of a robot at one state, as a table or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from cards_bringup.cli.printed import array_text
from cards_bringup.vectors import vector
from cards_core.dynamics import make_dynamics
from cards_core.exit_codes import of_answers
from cards_core.formats import load
from cards_core.json_values import json_value
from cards_core.typing import Array

EXAMPLES = """examples:
  ./cards eval planar_2r --q=0.3,-0.5 --qd=0.4,0.2 --qdd=0.5,-0.3
  ./cards eval roboy_arm                       the home position, at rest
  ./cards eval roboy_arm --frame hand --json   for another program to read
  ./cards eval path/to/model.sdf --backend numeric

conventions: tension f >= 0 pulls, L = dl/dq, M qdd + C + G = -L' f. SI units and radians.
J: linear, then angular velocity of the frame in world axes, per unit qd."""


def add_eval(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("eval", description=__doc__, epilog=EXAMPLES)
    parser.add_argument("robot", help="name under models/, or the path of an SDF file")
    parser.add_argument("--q", help="coordinates, comma separated (default: home)")
    parser.add_argument("--qd", help="velocities (default: zero)")
    parser.add_argument("--qdd", help="accelerations: adds the least-norm tensions")
    parser.add_argument("--frame", help="frame or link of J (default: the operational frame)")
    parser.add_argument("--backend", choices=("compiled", "numeric"), default="compiled")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def evaluate(
    robot_name: str,
    q: Array | None,
    qd: Array | None,
    qdd: Array | None,
    *,
    frame: str | None = None,
    backend: Any = "compiled",
) -> dict[str, Any]:
    """Return all quantities as plain lists; see the command's help for their meaning.

    Args:
        robot_name: Name under ``models/``, or path of an SDF file.
        q: Coordinates, shape (nq,), [rad] or [m]; None: home.
        qd: Velocities, shape (nv,), [rad/s] or [m/s]; None: zero.
        qdd: Accelerations, shape (nv,), [rad/s^2] or [m/s^2]; None: no inverse dynamics.
        frame: Frame whose pose and Jacobian are returned; None: the operational frame.
        backend: ``compiled`` or ``numeric``.

    Returns:
        The quantities by name, SI units, world frame. Muscles whose path is not found are named in
        ``path_not_found``; their numbers are NaN, and there are no tensions.

    Raises:
        CardsError: Unknown robot or frame, wrong number of values.
    """
    robot = load(robot_name)
    dynamics = make_dynamics(robot, backend)
    tree = dynamics.tree
    q = tree.check_q(tree.home if q is None else q)
    qd = tree.check_qd(np.zeros(tree.nv) if qd is None else qd)
    state = dynamics.update(q, qd)
    lost = dynamics.lost_muscles
    result: dict[str, Any] = {
        "robot": robot.name,
        "backend": backend,
        "joint_names": list(tree.position_names),
        "muscle_names": [muscle.name for muscle in robot.muscles],
        "q": q,
        "qd": qd,
        "l": state.muscle_lengths.copy(),
        "ld": state.muscle_jacobian @ qd,
        "L": state.muscle_jacobian.copy(),
        "M": state.mass_matrix.copy(),
        "C": state.coriolis.copy(),
        "G": state.gravity.copy(),
        "link_poses": {
            link.name: pose
            for link, pose in zip(robot.links, dynamics.link_poses(q).copy(), strict=True)
        },
    }
    result["Ldot_qd"] = dynamics.muscle_bias(q, qd).copy()
    for key in ("l", "ld", "L", "Ldot_qd"):
        result[key][lost] = np.nan
    result["path_not_found"] = [robot.muscles[i].name for i in np.flatnonzero(lost)]
    frame = frame or robot.operational_frame
    if frame is not None:
        operational = dynamics.operational(q, qd, frame)
        result["frame"] = frame
        result["position"] = operational.position.copy()
        result["rotation"] = operational.rotation.copy()
        result["J"] = operational.jacobian.copy()
        result["Jdot_qd"] = operational.bias.copy()
    if qdd is not None:
        qdd = tree.check_qd(qdd)
        needed = state.mass_matrix @ qdd + state.coriolis + state.gravity
        result["qdd"] = qdd
        result["needed_joint_force"] = needed
        if not lost.any():
            result.update(_tensions(tree, result["L"], needed))
    return result


def _tensions(tree: Any, jacobian: Array, needed: Array) -> dict[str, Any]:
    """Least-norm tensions: min 1/2 |f|^2 + 1/2 |tau|^2, -L' f + S tau = needed, within the limits.

    Muscles that cannot be told a tension count as slack; tau are the efforts of joint motors.
    """
    from cards_core.optimize.qp import QP_INFINITY
    from cards_core.optimize.qp_backends import make_qp_solver
    from cards_core.robot.motors import motors_of

    muscles, motors = tree.robot.muscles, motors_of(tree)
    m, k = len(muscles), len(motors)
    qp = make_qp_solver("daqp", m + k, np.full(len(needed), np.inf))
    qp.lower_bounds[:m] = [muscle.tension_min for muscle in muscles]
    qp.upper_bounds[:m] = [
        min(muscle.tension_max, QP_INFINITY)
        if "force" in muscle.actuator.accepted_commands
        else 0.0
        for muscle in muscles
    ]
    qp.upper_bounds[m:] = np.minimum(motors.efforts, QP_INFINITY)
    qp.lower_bounds[m:] = -qp.upper_bounds[m:]
    qp.matrix[:, :m] = -jacobian.T
    qp.matrix[motors.rows, m + np.arange(k)] = 1.0
    qp.row_lower[:] = qp.row_upper[:] = needed
    solution = qp.solve()
    residual = float(np.abs(solution.residual).max(initial=0.0))
    found: dict[str, Any] = {
        "tensions": solution.x[:m].copy(),
        "tensions_feasible": solution.status.value == "optimal",
        "tensions_residual": residual,
    }
    if k:
        found |= {"motor_names": motors.names, "efforts": solution.x[m:].copy()}
    return found


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    values = [vector(getattr(args, name), name) for name in ("q", "qd", "qdd")]
    result = evaluate(args.robot, *values, frame=args.frame, backend=args.backend)
    if args.json:
        print(json.dumps(result, default=json_value))
    else:
        _print_table(result)
    return of_answers(["PATH_NOT_FOUND"] if result["path_not_found"] else [])


def _print_table(result: dict[str, Any]) -> None:
    poses = result.pop("link_poses")
    muscles = result["muscle_names"]
    print(f"{result['robot']} ({result['backend']})")
    for key in ("joint_names", "q", "qd", "M", "C", "G"):
        _print_entry(key, result[key])
    if muscles:
        print(f"\n{'muscle':<16} {'l [m]':>12} {'ld [m/s]':>12}  L = dl/dq")
    for name, length, rate, row in zip(
        muscles, result["l"], result["ld"], result["L"], strict=True
    ):
        numbers = f"{length:12.8f} {rate + 0.0:12.8f}  {array_text(row, 8)}"
        if name in result["path_not_found"]:
            numbers = f"{'-':>12} {'-':>12}  PATH_NOT_FOUND"
        print(f"{name:<16} {numbers}")
    for key in ("frame", "position", "rotation", "J", "Jdot_qd"):
        if key in result:
            _print_entry(key, result[key])
    for name, pose in poses.items():
        _print_entry(f"pose of {name}", pose)
    if "tensions" in result:
        verdict = "" if result["tensions_feasible"] else "  (infeasible within the limits)"
        _print_entry("needed_joint_force", result["needed_joint_force"])
        print(f"\nleast-norm tensions [N]{verdict}")
        for name, tension in zip(muscles, result["tensions"], strict=True):
            print(f"{name:<16} {tension:14.8f}")
    if "efforts" in result:
        print("\nefforts of joint motors [Nm or N]")
        for name, effort in zip(result["motor_names"], result["efforts"], strict=True):
            print(f"{name:<16} {effort:14.8f}")


def _print_entry(key: str, value: Any) -> None:
    if isinstance(value, np.ndarray):
        between = "\n" if value.ndim == 2 else " "
        print(f"{key} ={between}{array_text(value, 8)}")
    else:
        print(f"{key} = {value}")
