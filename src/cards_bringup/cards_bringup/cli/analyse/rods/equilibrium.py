"""``./cards analyse ik|fk|stiffness`` for robots of rods: one equilibrium, no initial guess.

ik: the joints of a plate pose (inverse model); fk: the plate pose of joints (direct model);
stiffness: the plate's stiffness at either.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from cards_bringup.cli import print_result
from cards_bringup.cli.analyse.point_analysis import writing
from cards_bringup.cli.analyse.point_options import assignments, number_of
from cards_bringup.cli.printed import array_text
from cards_bringup.progress import CountProgress
from cards_bringup.vectors import vector
from cards_core.analysis.workspace import Grid
from cards_core.errors import CardsError
from cards_core.exit_codes import of_answers
from cards_core.json_values import json_value
from cards_core.rods.analysis.workspace_slice import PlateGrid, find_coordinate
from cards_core.rods.robots.limb_failure import limb_morse_index
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding, RodStatus
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.typing import Array


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    robot = read_rod_robot(args.robot)
    solver = RodRobotSolver(robot)
    pose, q = _pose(args, robot), _joints(args)
    if pose is not None and q is not None:
        raise CardsError("a pose and joints are given (expected: one of them, --pose or --joints)")
    if q is not None and q.shape != (robot.n_limbs,):
        raise CardsError(
            f"--joints or --q has {q.size} values (expected: {robot.n_limbs}: "
            f"{', '.join(robot.joint_names)})"
        )
    wrench, frame = wrench_of(args, robot)
    doubts: list[Finding] = []
    with CountProgress(f"{robot.name} search", "iterations", quiet=args.quiet) as progress:
        if pose is None and q is None:
            start = home_equilibrium(solver)
            doubts = [item for item in start.findings if item.status is RodStatus.AMBIGUOUS]
            if args.kind == "fk":
                q = home_joints(solver)
            else:
                pose = robot.home_pose if start.solution is None else start.solution.pose
        found = find_equilibrium(
            solver, pose=pose, q=q, wrench=wrench, frame=frame, progress=progress.update
        )
    found = found.with_findings(doubts)
    solution = found.solution
    content: dict[str, Any] = {
        "robot": robot.name,
        "kind": args.kind,
        "status": found.status.name,
        "message": found.message,
        "findings": findings_content(found.findings, robot),
        "notes": list(robot.notes),
    }
    if solution is not None:
        table = solver.shapes(solution).table
        turn = solution.pose[:3, :3]
        content |= {
            "q": dict(zip(robot.joint_names, solution.q.tolist(), strict=True)),
            "position": solution.pose[:3, 3].tolist(),
            "rotation": turn.tolist(),
            "stiffness": solution.stiffness.tolist(),
            "eigenvalues": solution.eigenvalues.tolist(),
            "collapse_direction": solution.eigenvector.tolist(),
            "unstable_rods": limb_morse_index(solver, solution).tolist(),
            "jacobian": solution.jacobian.tolist(),
            "condition": json_value(solution.condition),
            "base_wrenches": solution.base_wrenches.tolist(),
            "tip_wrenches": solution.tip_wrenches.tolist(),
            "limbs": [limb.name for limb in robot.limbs],
            "curvature": table[:, :, 3].max(axis=1).tolist(),
            "stress": table[:, :, 4].max(axis=1).tolist(),
            "strain": table[:, :, 5].max(axis=1).tolist(),
            "residual": solution.residual,
            "found_by": found.how,
            "iterations": found.work,
        }
    files = []
    if args.out is not None:
        name = f"{args.kind}.json"
        with writing(args.out) as work:
            (work / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        files.append(args.out / name)
    print_result(content, files, lambda: _print(content), as_json=args.json)
    return of_answers([found.status.name])


def findings_content(findings: Sequence[Finding], robot: RodRobot) -> list[dict[str, Any]]:
    """Return findings as plain values for JSON: status, message, and the limb's name or None."""
    return [
        {
            "status": item.status.name,
            "message": item.message,
            "limb": None if item.limb is None else robot.limbs[item.limb].name,
        }
        for item in findings
    ]


def home_joints(solver: RodRobotSolver) -> Array:
    """Return the joint coordinates of the equilibrium at home, (n,)."""
    found = home_equilibrium(solver).solution
    return solver.robot.home_q if found is None else found.q.copy()


def wrench_of(args: argparse.Namespace, robot: RodRobot) -> tuple[Array, str]:
    """Return the wrench on the plate, (6,), and its frame: as given, or the robot's own.

    Raises:
        CardsError: Not six numbers, or a frame without a wrench.
    """
    values = vector(args.wrench, "wrench")
    frame = getattr(args, "frame", None)
    if values is None:
        if frame is not None:
            raise CardsError("--frame without --wrench (expected: both, or neither)")
        return np.array(robot.wrench, dtype=float), robot.wrench_frame
    if values.shape != (6,):
        raise CardsError(
            f"--wrench has {values.size} numbers (expected: 6, force [N] and moment [N m] about "
            "the plate's origin, e.g. 0,0,-1,0,0,0)"
        )
    return values, frame or "world"


def _joints(args: argparse.Namespace) -> Array | None:
    """Return the joint coordinates that were given, (n,), by either name.

    Raises:
        CardsError: By both names.
    """
    joints, q = (getattr(args, name, None) for name in ("joints", "q"))
    if joints is not None and q is not None:
        raise CardsError("--joints and --q are given (expected: one of them, they are the same)")
    return vector(q, "q") if joints is None else vector(joints, "joints")


def _pose(args: argparse.Namespace, robot: Any) -> Array | None:
    """Return the given pose, (4, 4); coordinates without a value are at home."""
    if not getattr(args, "pose", None):
        return None
    texts = assignments(
        args.pose, "--pose", "x=0.05,rz=0.1", lambda name: find_coordinate(robot, name)
    )
    fixed = {full: number_of(text, f"--pose {name}") for full, name, text in texts}
    return PlateGrid(robot, Grid((), fixed), robot.home_pose).pose(0)


def _print(content: dict[str, Any]) -> None:
    print(f"{content['robot']}: {content['status']}")
    told = [item["message"] for item in content["findings"]]
    for text in dict.fromkeys((content["message"], *told[1:], *content["notes"])):
        if text:
            print(text)
    if "q" not in content:
        return
    print(f"\nplate position [m]  {array_text(content['position'])}")
    print(f"plate rotation\n{array_text(content['rotation'])}")
    print("\nlimb            joint                    q  curvature [1/m]  stress [MPa]")
    rows = zip(
        content["limbs"], content["q"].items(), content["curvature"], content["stress"],
        strict=True,
    )  # fmt: skip
    for limb, (joint, q), curvature, stress in rows:
        print(f"{limb:<15} {joint:<15} {q:10.6f} {curvature:16.4g} {1e-6 * stress:13.4g}")
    if content["kind"] == "stiffness":
        print(f"\nstiffness K [N/m, N, N m]\n{array_text(content['stiffness'])}")
        print(f"\njacobian dx/dq\n{array_text(content['jacobian'])}")
    print(f"\neigenvalues of K  {array_text(content['eigenvalues'])}")
    print(f"softest direction {array_text(content['collapse_direction'])}")
    if any(content["unstable_rods"]):
        print("unstable: rods collapse even if the plate is held")
