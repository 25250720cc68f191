"""Whether the start of a robot is the one that its description speaks of.

``initial`` of a description gives a plate pose, joint coordinates, or both. One of them holds (the
pose, if it is given), the other one tells which of the many equilibria is meant: the search begins
near it, but where there is none near, it ends elsewhere. That is no error, the coordinates may be
a rough hint; but nobody should have to find out from a picture.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.robots.robot import BaseKind, RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.commands import quantity
from cards_core.rods.tracking.path import pose_difference
from cards_core.typing import Array

FAR_SHARE = 0.05
"""Distance, as a share of a rod's length, beyond which a hint is one to another equilibrium."""

FAR_ANGLE = 0.1
"""The same for angles, [rad]."""


def initial_findings(robot: RodRobot, solution: Solution, base: Array) -> list[Finding]:
    """Return AMBIGUOUS for joints or a plate that are not where the description has them.

    Args:
        robot: The robot.
        solution: Equilibrium at its start.
        base: Pose of the robot in the world, (4, 4).
    """
    findings: list[Finding] = []
    if robot.initial_q is not None:
        far = np.array(
            [
                FAR_ANGLE if limb.base.kind is BaseKind.REVOLUTE else FAR_SHARE * limb.length
                for limb in robot.limbs
            ]
        )
        away = np.abs(solution.q - robot.initial_q)
        worst = int(np.argmax(away / far))
        if away[worst] > far[worst]:
            limb = robot.limbs[worst]
            kind, name = limb.base.kind, limb.base.joint or limb.name
            findings.append(
                Finding(
                    RodStatus.AMBIGUOUS,
                    f"`initial.q` is not the equilibrium that was found: '{name}' is"
                    f" {quantity(kind, solution.q[worst])} there, {quantity(kind, away[worst])}"
                    f" away from the {quantity(kind, robot.initial_q[worst])} of the description."
                    " This start may be another branch than the one meant (expected: the"
                    " joint coordinates of an equilibrium at the initial pose)",
                    worst,
                    float(away[worst]),
                )
            )
    if robot.initial_q is None and robot.initial_pose is None:
        return findings  # the plate's pose in the SDF is a guess then
    step = pose_difference(base @ robot.home_pose, solution.pose)
    way, turn = float(np.linalg.norm(step[:3])), float(np.linalg.norm(step[3:]))
    if way > FAR_SHARE * float(robot.lengths.mean()) or turn > FAR_ANGLE:
        whose = "`initial.pose`" if robot.initial_pose is not None else "the plate's pose (SDF)"
        findings.append(
            Finding(
                RodStatus.AMBIGUOUS,
                f"{whose} is not the equilibrium that was found: the plate stands"
                f" {1e3 * way:.1f} mm and {np.degrees(turn):.1f} deg away from it. This start may"
                " be another branch than the one meant (expected: the plate's pose in an"
                " equilibrium at the initial joint coordinates)",
                None,
                way,
            )
        )
    return findings
