"""``~/status`` and the answer of ``~/solve``: JSON, for people and pages."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cards_core.rods.status import RodStatus
from cards_rods.session import RodSession
from cards_rods.state_message import pose_values


def status_text(session: RodSession) -> str:
    """Return the status as a JSON object; equal texts mean that nothing changed.

    Keys: ``status`` (name of a RodStatus), ``message``, ``limb`` (name) and ``missing`` ([m] or
    [rad]) of the worst finding, ``concerned`` (names of all limbs with a finding of that kind),
    ``held``, ``eigenvector`` of the softest motion where it matters, ``warnings``, ``mode``,
    ``playing``, ``states`` (saved names), ``refused``.
    """
    answer = session.answer
    worst = answer.findings[0] if answer.findings else None
    limb = None if worst is None or worst.limb is None else session.robot.limbs[worst.limb].name
    about = [f.limb for f in answer.findings if worst is not None and f.status is worst.status]
    limbs = [session.robot.limbs[i].name for i in dict.fromkeys(about) if i is not None]
    missing = None if worst is None or not worst.missing else _rounded(worst.missing)
    soft = answer.status in (RodStatus.NEAR_LIMIT, RodStatus.UNSTABLE)
    return json.dumps(
        {
            "status": answer.status.name,
            "message": answer.message,
            "limb": limb,
            "concerned": limbs,
            "missing": missing,
            "held": bool(answer.held),
            "eigenvector": [_rounded(x) for x in answer.eigenvector] if soft else None,
            "warnings": list(answer.warnings),
            "mode": session.mode,
            "playing": session.playing,
            "states": list(session.states.names),
            "refused": session.refused,
        }
    )


def report_text(session: RodSession) -> str:
    """Return everything about the last solution as a JSON object, for ``~/solve``."""
    answer, solution = session.answer, session.solution
    position, *quaternion = np.split(pose_values(solution.pose), [3])
    joints = session.robot.joint_names
    return json.dumps(
        {
            **json.loads(status_text(session)),
            "arrived": bool(answer.arrived),
            "remaining": _number(answer.remaining.fraction),
            "q": dict(zip(joints, map(_number, solution.q), strict=True)),
            "position": [_number(x) for x in position],
            "orientation_wxyz": [_number(x) for x in quaternion[0]],
            "external_wrench": [_number(x) for x in session.wrench],
            "external_frame": session.wrench_frame,
            "plate_wrench": [_number(x) for x in solution.plate_wrench],
            "limbs": {
                limb.name: {
                    "base_wrench": [_number(x) for x in base],
                    "tip_wrench": [_number(x) for x in tip],
                }
                for limb, base, tip in zip(
                    session.robot.limbs, solution.base_wrenches, solution.tip_wrenches, strict=True
                )
            },
            "stiffness": [[_number(x) for x in row] for row in np.asarray(solution.stiffness)],
            "min_eigenvalue": _number(answer.min_eigenvalue),
            "start_eigenvalue": _number(answer.reference_eigenvalue),
            "condition": _number(solution.condition),
            "residual": _number(solution.residual),
            "iterations": int(solution.iterations),
            "solve_us": _number(1e6 * solution.time_s),
        },
        allow_nan=False,
    )


def _number(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _rounded(value: Any) -> float | None:
    """Return a number with few digits, so that the text does not change all the time."""
    return float(f"{value:.3g}") if math.isfinite(value) else None
