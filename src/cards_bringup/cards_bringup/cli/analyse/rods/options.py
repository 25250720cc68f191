"""What the analyses of rod robots share: which robots these are, and what their options mean."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np

from cards_bringup.vectors import vector
from cards_core.errors import CardsError
from cards_core.formats.locate import find_model, has_rods
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding
from cards_core.rods.tracking.initial_search import home_equilibrium
from cards_core.typing import Array


def is_rod_robot(name: str) -> bool:
    """Return whether a name or path is that of a robot of rods.

    Raises:
        UnknownNameError: There is no such robot.
    """
    return has_rods(find_model(name))


def refuse_options(args: argparse.Namespace, names: Sequence[str], whose: str) -> None:
    """Refuse options that mean nothing for this robot.

    Raises:
        CardsError: One of them was given.
    """
    for name in names:
        if not any(getattr(args, name, None) is value for value in (None, False)):
            option = "--" + name.replace("_", "-")
            raise CardsError(
                f"{option} is for {whose}, not for '{args.robot}' (expected: no such)"
            )


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
