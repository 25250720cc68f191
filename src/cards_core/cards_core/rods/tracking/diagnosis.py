"""Why a robot is held: from the refusal of one small step to a sentence that helps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.homotopy import follow
from cards_core.rods.tracking.judge import Judge
from cards_core.rods.tracking.path import Target
from cards_core.rods.tracking.reach import limit_reach_finding


@dataclass(frozen=True, eq=False)
class Standstill:
    """Where a robot stopped, and on the way to what.

    Attributes:
        solution: The last good state.
        here: The command that it fulfils.
        target: What was asked for.
        left: Part of the command that is left, 0..1.
        fold_ahead: Whether the smallest eigenvalue falls towards zero within the next steps.
        notes: What geometry says about the target.
    """

    solution: Solution
    here: Target
    target: Target
    left: float
    fold_ahead: bool
    notes: tuple[Finding, ...] = ()


def held_reason(
    solver: RodRobotSolver, judge: Judge, refusal: Finding, still: Standstill, solves: int
) -> Finding:
    """Say why a robot is held.

    Args:
        solver: Solver of the robot.
        judge: Who refused the smallest step.
        refusal: Why.
        still: Where the robot stands.
        solves: Greatest number of solves to find out how far out of reach a pose is.
    """
    status = refusal.status
    if status in (RodStatus.NEAR_LIMIT, RodStatus.UNSTABLE):
        message = f"stopped before collapse; the next step would be {refusal.message}"
        return replace(refusal, status=RodStatus.NEAR_LIMIT, message=message)
    if status is RodStatus.UNREACHABLE:
        return missing_joints(solver, judge, still, solves) or refusal
    if still.fold_ahead or judge.warn(still.solution) is not None:
        text = judge.describe(still.solution)
        return Finding(RodStatus.NEAR_LIMIT, f"stopped before collapse; {text}")
    if status is RodStatus.BRANCH_CHANGED:
        message = (
            f"{refusal.message}; held at the last state of the old branch (accept_branch takes"
            " the new one, restore returns)"
        )
        return replace(refusal, message=message)
    if still.notes:
        return still.notes[0]
    return Finding(
        RodStatus.HELD,
        f"{refusal.message}: held, {100.0 * still.left:.0f} % of the command is left. Nothing"
        " proves that the target is out of reach; another way to it may work",
    )


def missing_joints(
    solver: RodRobotSolver, judge: Judge, still: Standstill, solves: int
) -> Finding | None:
    """Follow the command without limits, to tell which joints the target itself would need.

    Returns:
        UNREACHABLE with the joint and what it lacks; None if the target cannot be followed to.
    """
    bounds = replace(judge.bounds, enforce_limits=False)
    free = Judge(solver.robot, bounds, judge.reference)
    followed = follow(solver, still.solution, still.here, still.target, free, solves=solves)
    if not followed.arrived:
        return None
    return limit_reach_finding(solver.robot, followed.solution.q, "the commanded pose")
