"""Where the attempts of a cold start begin: the Hermite guess, its variants, rods at rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cards_core.rods.robots.guess import Guess, hermite_guess
from cards_core.rods.robots.robot import RodRobot, rod_lengths, rod_starts
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.tracking.path import Target
from cards_core.typing import Array


def target_guess(solver: RodRobotSolver, target: Target, variant: dict[str, Any]) -> Guess:
    """Return the Hermite guess at a target; at the home pose if joints are given.

    Args:
        solver: Solver of the robot.
        target: What is wanted.
        variant: Arguments of `hermite_guess` that differ from the plain guess.
    """
    pose = target.pose
    if pose is None:
        pose = solver.base @ solver.robot.home_pose
    chosen: dict[str, Any] = {"q": target.q} | variant
    return hermite_guess(
        solver.robot,
        pose,
        wrench=target.wrench,
        base=solver.base,
        gravity=solver.gravity,
        **chosen,
    )


def slack_variants() -> Iterator[dict[str, Any]]:
    """Yield variants with extensible rods longer than they need be."""
    for slack in (0.02, 0.06):
        yield {"slack": slack}


def bulge_variants(robot: RodRobot) -> Iterator[dict[str, Any]]:
    """Yield variants with the rods bulging to other sides, all alike."""
    starts = rod_starts(robot, robot.home_q)
    for axis in (0, 1) if not robot.planar else (None,):
        for sign in (1.0, -1.0):
            if axis is None:
                sides = [np.cross([0.0, 0.0, sign], start[:3, 2]) for start in starts]
            else:
                sides = [sign * start[:3, axis] for start in starts]
            yield {"bulge": sides, "slack": 0.02}


def straight_guess(solver: RodRobotSolver, q: Array) -> Guess:
    """Return rods as they are without load, and the plate in the mean of where they end."""
    robot = solver.robot
    places, turns = [], np.zeros((3, 3))
    for limb, start, length in zip(
        robot.limbs, rod_starts(robot, q), rod_lengths(robot, q), strict=True
    ):
        tip = solver.base @ start
        tip[:3, 3] += length * tip[:3, 2]
        plate = tip @ np.linalg.inv(limb.tip.joint_pose @ limb.tip.attach)
        places.append(plate[:3, 3])
        turns += plate[:3, :3]
    pose = np.eye(4)
    u, _, vt = np.linalg.svd(turns)
    pose[:3, :3] = u @ np.diag([1.0, 1.0, np.linalg.det(u @ vt)]) @ vt
    pose[:3, 3] = np.mean(places, axis=0)
    return Guess(q.copy(), pose, np.zeros((robot.n_limbs, 6)))
