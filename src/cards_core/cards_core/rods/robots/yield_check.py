"""Checks rods for strain beyond the yield strain of their material.

Strain is the equivalent one, von Mises' stress of tension, bending and torsion at the outer fibre
over Young's modulus, ``sqrt(sigma^2 + 3 tau^2) / E``: the material yields where it exceeds the
yield strain, that is the yield stress over E.
"""

from __future__ import annotations

import numpy as np

from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import Finding, RodStatus
from cards_core.typing import Array

SECTIONS = 101
"""Sections of each rod at which strains are evaluated, as many as are drawn."""

TRACKED_SECTIONS = 21
"""The same while a robot moves, where a step has microseconds; strains are greatest at ends."""

CHANGE = 0.01
"""Change of a moment at a rod's start, times L/EI, from which on strains are evaluated again."""


class YieldCheck:
    """Tells which rods of a moving robot yield; strains are evaluated where moments changed."""

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
        self._findings = yield_findings(self._robot, self._solver, solution, TRACKED_SECTIONS)
        return self._findings


def yield_findings(
    robot: RodRobot, solver: RodRobotSolver, solution: Solution, points: int = SECTIONS
) -> list[Finding]:
    """Return YIELD for each limb whose strain exceeds the yield strain of its material.

    Nothing is solved; rods without a yield strain are skipped.
    """
    if all(limb.rod.yield_strain is None for limb in robot.limbs):
        return []
    return strain_findings(robot, np.max(solver.strains(solution, points), axis=1))


def strain_findings(robot: RodRobot, strains: Array) -> list[Finding]:
    """Return YIELD for each limb whose greatest strain, of shape (n,), is beyond its yield strain.

    The message names the limb, the strain, the stress and what the material bears of both.
    """
    findings = []
    for index, (limb, strain) in enumerate(zip(robot.limbs, strains.tolist(), strict=True)):
        limit = limb.rod.yield_strain
        if limit is not None and strain > limit:
            young = 1e-6 * limb.rod.material.young
            findings.append(
                Finding(
                    RodStatus.YIELD,
                    f"limb '{limb.name}': strained by {100 * strain:.3g} % ({young * strain:.4g}"
                    f" MPa), its material yields at {100 * limit:.3g} % ({young * limit:.4g} MPa);"
                    " the real rod would stay bent",
                    index,
                )
            )
    return findings
