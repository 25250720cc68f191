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


CHANGE = 0.01
"""Change of a moment at a rod's start, times L/EI, that makes strains worth finding anew."""


class YieldWatch:
    """Which rods yield as a robot moves; strains are found anew where the moments have changed."""

    def __init__(self, robot: RodRobot, solver: RodRobotSolver) -> None:
        self._robot, self._solver = robot, solver
        bend = [float(np.mean(limb.rod.stiffness_bt[:2])) for limb in robot.limbs]
        self._unit = (robot.lengths / np.array(bend))[:, None]
        self._yields = any(limb.rod.yield_strain is not None for limb in robot.limbs)
        self._at: Solution | None = None
        self._findings: list[Finding] = []

    def findings(self, solution: Solution) -> list[Finding]:
        """Return YIELD for each limb that is strained too far."""
        if not self._yields:
            return []
        if self._at is not None:
            change = np.abs(solution.base_wrenches[:, 3:] - self._at.base_wrenches[:, 3:])
            if not float((change * self._unit).max()) > CHANGE:
                return self._findings
        self._at = solution
        self._findings = yield_findings(self._robot, self._solver, solution)
        return self._findings


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
