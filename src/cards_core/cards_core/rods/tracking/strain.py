"""Warns of rods that are strained beyond what their material bears.

The greatest strain of a section that is bent by u about its axes and stretched by v is, at the
outer fibre of a rod with radius r, ``|v_z - 1| + r sqrt(u_x^2 + u_y^2)``, u and v counted from the
shape at rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding

if TYPE_CHECKING:
    from cards_core.rods.robots.robot import RodRobot
    from cards_core.rods.robots.solution import Solution
    from cards_core.rods.robots.solver import RodRobotSolver


def yield_findings(
    robot: RodRobot, solver: RodRobotSolver, solution: Solution, points: int = 21
) -> list[Finding]:
    """Return YIELD for each limb whose strain exceeds the yield strain of its material.

    Nothing is solved; rods without a yield strain are not looked at.
    """
    limits = [limb.rod.yield_strain for limb in robot.limbs]
    if all(limit is None for limit in limits):
        return []
    strains = np.max(solver.strains(solution, points), axis=1)
    findings = []
    for index, (limb, limit, strain) in enumerate(zip(robot.limbs, limits, strains, strict=True)):
        if limit is not None and strain > limit:
            findings.append(
                Finding(
                    RodStatus.YIELD,
                    f"limb '{limb.name}': strained by {100 * strain:.2f} %, its material yields"
                    f" at {100 * limit:.2f} %; the real rod would stay bent",
                    index,
                )
            )
    return findings
