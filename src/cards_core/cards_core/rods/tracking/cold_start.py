"""The first equilibrium of a rod robot, when nothing near it is known.

For a plate pose, the attempts in turn, until one gives a stable equilibrium with joints inside
their limits:

1. the Hermite guess of every rod, then Newton's method, for the whole robot at once or for each
   rod alone first;
2. homotopy: the equilibrium at the home pose followed to the pose on the straight way (a few
   solves, each from a neighbour: cheaper than the next, and on the branch of home);
3. the Hermite guess, then Levenberg-Marquardt, then Newton;
4. servo: the joints moved from home, and then from other states all over what the robot reaches
   (`roadmap`), along stable equilibria until the plate is at the pose;
5. load: the plate without its weight, which then comes back with a small push aside;
6. the Hermite guess with slack, and bulging to other sides;
7. more and more states of the roadmap, until the budget is spent; not if an equilibrium was found
   whose joints are outside their limits.

For joint coordinates the homotopy comes first: of the many equilibria at given joints it finds the
one that the robot reaches from home without a jump. Work is bounded (:class:`Budget`), in
iterations, not in seconds: the result depends neither on the machine's load nor on what was solved
before. If nothing is found the result says so; that is no proof that there is no equilibrium.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from weakref import WeakKeyDictionary

import numpy as np

from cards_core.errors import RodError
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.answer import Finding
from cards_core.rods.tracking.cold_attempts import Anchor
from cards_core.rods.tracking.cold_result import Budget, ColdStart
from cards_core.rods.tracking.cold_search import ColdSearch
from cards_core.rods.tracking.commands import checked_joints, checked_pose, checked_wrench
from cards_core.rods.tracking.path import Target
from cards_core.rods.tracking.reach import reach_findings
from cards_core.rods.tracking.roadmap import Roadmap
from cards_core.rods.tracking.work import Progress
from cards_core.typing import Array

__all__ = ["Budget", "ColdStart", "cold_start", "home", "home_target"]

_HOMES: WeakKeyDictionary[object, dict[Budget, tuple[ColdStart, Anchor | None]]] = (
    WeakKeyDictionary()
)


def cold_start(
    solver: RodRobotSolver,
    *,
    pose: Array | None = None,
    q: Array | None = None,
    wrench: Array | None = None,
    frame: str = "world",
    budget: Budget | None = None,
    progress: Progress | None = None,
) -> ColdStart:
    """Find an equilibrium at a plate pose (inverse model) or at joint coordinates (direct model).

    Args:
        solver: Solver of the robot.
        pose: Plate pose, shape (4, 4); exclusive with ``q``.
        q: Joint coordinates, shape (n,).
        wrench: On the plate, shape (6,); default the robot's own.
        frame: Of the wrench.
        budget: Bounds of the work.
        progress: Called now and then with the iterations made and those allowed.

    Raises:
        RodError: The solver is something else, e.g. a robot.
        ValueError: Neither or both of pose and q are given.
    """
    _expect_solver(solver)
    if (pose is None) == (q is None):
        raise ValueError("give either a pose or joint coordinates")
    begin = perf_counter()
    robot = solver.robot
    if wrench is None:
        wrench, frame = robot.wrench, robot.wrench_frame
    load = checked_wrench(wrench, frame)
    command = checked_pose(robot, pose, solver.base) if q is None else checked_joints(robot, q)
    for value in (command, load):
        if isinstance(value, Finding):
            return ColdStart(None, value.status, value.message, findings=(value,))
    assert not isinstance(command, Finding)
    assert not isinstance(load, Finding)
    whole = len(robot.controlled) == len(robot.coordinates)
    if q is None and whole and (findings := reach_findings(robot, command, solver.base)):
        return ColdStart(None, findings[0].status, findings[0].message, findings=findings)
    target = Target(
        command if q is not None else None, command if q is None else None, load, frame
    )
    budget = budget or Budget()
    with solver.exclusive():
        anchor = _known(solver, budget)[1]
        found = ColdSearch(solver, target, budget, anchor, progress).run()
    if found.solution is None or found.status is RodStatus.UNSTABLE:
        lost = found.solution is None and q is None
        here = reach_findings(robot, command, solver.base) if lost else ()
        clues = _clues(robot, here)
        if found.exhausted:
            clues.append(f"the search ended after its budget of {budget.work} iterations")
        found = replace(found, message="; ".join([found.message, *clues]))
    return replace(found, time_s=perf_counter() - begin)


def _clues(robot: RodRobot, here: tuple[Finding, ...]) -> list[str]:
    """Return what else may be the reason that nothing was found: ways too long, doubtful units."""
    clues = [f"with the plate just there, {finding.message}" for finding in here[:1]]
    return clues + [f"doubtful in the description: {note}" for note in robot.notes[:1]]


def home(solver: RodRobotSolver, budget: Budget | None = None) -> ColdStart:
    """Return the equilibrium at the home pose (or home joints) of the robot; found only once.

    Raises:
        RodError: The solver is something else, e.g. a robot.
    """
    _expect_solver(solver)
    with solver.exclusive():
        return _known(solver, budget or Budget())[0]


def _expect_solver(solver: object) -> None:
    """Raise an error that says what was given where a solver is expected."""
    if not hasattr(solver, "igm"):
        raise RodError(
            f"solver is of type {type(solver).__name__}; expected a RodRobotSolver, as "
            "RodRobotSolver(robot) makes it"
        )


def _known(solver: RodRobotSolver, budget: Budget) -> tuple[ColdStart, Anchor | None]:
    """Return the home of a solver's robot, and what searches start from."""
    homes = _HOMES.setdefault(solver, {})
    known = homes.get(budget)
    if known is None:
        begin, target = perf_counter(), home_target(solver)
        found = ColdSearch(solver, target, budget, None).run()
        found = replace(found, time_s=perf_counter() - begin)
        anchor = None
        if found.solution is not None and found.solution.min_eigenvalue > 0.0:
            roadmap = Roadmap(solver, found.solution, target.wrench)
            doubts = tuple(f for f in found.findings if f.status is RodStatus.AMBIGUOUS)
            anchor = Anchor(found.solution, target, roadmap, doubts)
        known = homes[budget] = (found, anchor)
    return known


def home_target(solver: RodRobotSolver) -> Target:
    """Return the command that the robot starts with: its pose, else its joints."""
    robot = solver.robot
    wrench = np.array(robot.wrench, dtype=float)
    if robot.initial_pose is None and robot.initial_q is not None:
        return Target(robot.home_q, None, wrench, robot.wrench_frame)
    return Target(None, solver.base @ robot.home_pose, wrench, robot.wrench_frame)
