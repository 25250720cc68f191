"""Content of ``~/state``, ``~/status`` and of the reply of ``~/solve``.

``~/state`` has everything about one step as named numbers: a sensor_msgs/JointState with names and
positions, the one standard message that gives numbers names, with one stamp. Its names never
change while the node runs, so it is written as bytes. The others are JSON, for people and pages.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cards_core.json_values import json_value
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import RobotShapes
from cards_core.rods.status import RodStatus
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_rods.rod_simulation import RodSimulation

POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
PLATE = ("x", "y", "z", "rx", "ry", "rz")

SCALARS = (
    "status",  # number of a RodStatus
    "mode",  # 0 dgm, 1 igm
    "held",
    "moving",
    "playing",
    "remaining",  # part of the command that is ahead, 0 .. 1
    "min_eigenvalue",
    "start_eigenvalue",
    "condition",
    "residual",
    "iterations",
    "substeps",
    "solve_us",  # of the solver, last solve
    "step_us",  # of the whole step
    "rate_hz",
    "skipped",
)
"""The first names, in this order."""


def state_names(robot: RodRobot) -> tuple[str, ...]:
    """Return all names of ``~/state`` in their order."""
    limbs = [limb.name for limb in robot.limbs]
    joints = robot.joint_names
    return (
        *SCALARS,
        *(f"q/{name}" for name in joints),
        *(f"target/{name}" for name in joints),
        *(f"plate/{name}" for name in POSE),
        *(f"target/{name}" for name in POSE),
        *(f"external/{name}" for name in WRENCH),
        *(f"wrench/{name}" for name in WRENCH),
        *(f"collapse/{name}" for name in PLATE),
        *(f"K/{row}{column}" for row in range(6) for column in range(6)),
        *(f"base/{limb}/{name}" for limb in limbs for name in WRENCH),
        *(f"tip/{limb}/{name}" for limb in limbs for name in WRENCH),
        *(f"curvature/{limb}" for limb in limbs),
        *(f"stress/{limb}" for limb in limbs),
    )


def pose_values(pose: Array) -> Array:
    """Return position and quaternion ``(w, x, y, z)`` of a pose (4, 4), shape (7,)."""
    return np.concatenate([pose[:3, 3], matrix_quaternion(pose[:3, :3])])


def state_values(
    simulation: RodSimulation, shapes: RobotShapes | None, rate_hz: float, skipped: int
) -> Array:
    """Return the numbers that belong to `state_names`.

    Args:
        simulation: The robot under command.
        shapes: The shapes that were computed last, for the largest curvature and stress; NaN
            without them.
        rate_hz: Steps per second.
        skipped: Steps left out because others took too long.
    """
    result, solution = simulation.result, simulation.solution
    none = np.full(len(simulation.robot.limbs), np.nan)
    scalars = (
        result.status,
        simulation.mode == "igm",
        result.held,
        simulation.moving,
        simulation.playing,
        result.remaining.fraction,
        result.min_eigenvalue,
        result.reference_eigenvalue,
        simulation.condition,
        solution.residual,
        solution.iterations,
        result.substeps,
        1e6 * solution.time_s,
        simulation.step_us,
        rate_hz,
        skipped,
    )
    return np.concatenate(
        [
            np.array(scalars, dtype=float),
            solution.q,
            simulation.target_q,
            pose_values(solution.pose),
            pose_values(simulation.target_pose),
            solution.wrench,
            solution.plate_wrench,
            result.eigenvector,
            np.ravel(solution.stiffness),
            np.ravel(solution.base_wrenches),
            np.ravel(solution.tip_wrenches),
            none if shapes is None else shapes.curvature.max(axis=1),
            none if shapes is None else shapes.stress.max(axis=1),
        ]
    )


def status_text(simulation: RodSimulation) -> str:
    """Return the status as a JSON object; equal texts mean that nothing changed.

    Keys: ``status`` (name of a RodStatus), ``message``, ``limb`` (name) and ``missing`` ([m] or
    [rad]) of the worst finding, ``concerned`` (names of all limbs with a finding of that kind),
    ``held``, ``eigenvector`` of the softest motion where it matters, ``warnings``, ``mode``,
    ``playing``, ``states`` (saved names), ``refused``.
    """
    result = simulation.result
    worst = result.findings[0] if result.findings else None
    limb = None if worst is None or worst.limb is None else simulation.robot.limbs[worst.limb].name
    about = [f.limb for f in result.findings if worst is not None and f.status is worst.status]
    limbs = [simulation.robot.limbs[i].name for i in dict.fromkeys(about) if i is not None]
    missing = None if worst is None or not worst.missing else _rounded(worst.missing)
    soft = result.status in (RodStatus.NEAR_LIMIT, RodStatus.UNSTABLE)
    return json.dumps(
        {
            "status": result.status.name,
            "message": result.message,
            "limb": limb,
            "concerned": limbs,
            "missing": missing,
            "held": bool(result.held),
            "eigenvector": [_rounded(x) for x in result.eigenvector] if soft else None,
            "warnings": list(result.warnings),
            "mode": simulation.mode,
            "playing": simulation.playing,
            "states": list(simulation.states.names),
            "refused": simulation.refused,
        }
    )


def report_text(simulation: RodSimulation) -> str:
    """Return everything about the last solution as a JSON object, for ``~/solve``."""
    result, solution = simulation.result, simulation.solution
    position, orientation = np.split(pose_values(solution.pose), [3])
    content = {
        **json.loads(status_text(simulation)),
        "arrived": bool(result.arrived),
        "remaining": result.remaining.fraction,
        "q": dict(zip(simulation.robot.joint_names, solution.q, strict=True)),
        "position": position,
        "orientation_wxyz": orientation,
        "external_wrench": simulation.wrench,
        "external_frame": simulation.wrench_frame,
        "plate_wrench": solution.plate_wrench,
        "limbs": {
            limb.name: {"base_wrench": base, "tip_wrench": tip}
            for limb, base, tip in zip(
                simulation.robot.limbs, solution.base_wrenches, solution.tip_wrenches, strict=True
            )
        },
        "stiffness": solution.stiffness,
        "min_eigenvalue": result.min_eigenvalue,
        "start_eigenvalue": result.reference_eigenvalue,
        "condition": solution.condition,
        "residual": solution.residual,
        "iterations": int(solution.iterations),
        "solve_us": 1e6 * solution.time_s,
    }
    return json.dumps(json_value(content), allow_nan=False)


def _rounded(value: Any) -> float | None:
    """Return a number with few digits, so that the text does not change all the time."""
    return float(f"{value:.3g}") if math.isfinite(value) else None
