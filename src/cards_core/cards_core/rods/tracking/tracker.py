"""A rod robot that follows commands: small steps, one branch, never past a point of collapse.

A command (joints, or a plate pose, and the wrench on the plate) is a straight way from the present
state. Each step of the way is at most 5 mm and 2 degrees; the solver starts from the last state,
and a judge compares the result with it. What is refused is tried again with half the step; when
the steps become too small, the robot stays where it last was good (*held*) and says why.

    tracker = Tracker(robot)
    tracker.start()
    tracker.command_pose(pose)
    while not (answer := tracker.step()).arrived and not answer.held: ...

MERGED Why a robot is held: from the refusal of one small step to a sentence that helps.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.robots.yield_check import YieldCheck
from cards_core.rods.status import SEVERITY, Finding, RodStatus, is_good
from cards_core.rods.tracking.acceptance import Bounds, StepAcceptance
from cards_core.rods.tracking.commands import checked_joints, checked_pose, checked_wrench
from cards_core.rods.tracking.continuation import follow, solve_target
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.reachability import limit_reach_finding, reach_findings
from cards_core.rods.tracking.search_methods import Budget
from cards_core.rods.tracking.serialization import state_from_dict, state_to_dict
from cards_core.rods.tracking.singularity import FoldPrediction
from cards_core.rods.tracking.targets import (
    Remaining,
    StepLengthControl,
    Target,
    TargetDistance,
    load_steps,
    target_distance,
)
from cards_core.typing import Array


@dataclass(frozen=True)
class TrackingResult:
    """State and status after one step of a :class:`~cards_core.rods.tracking.tracker.Tracker`.

    Attributes:
        solution: The last good equilibrium. It is always finite and, unless ``status`` is UNSTABLE
            at the start, stable. None if no start was found.
        status: The worst of ``findings``, else MOVING or OK.
        message: What a person should read; empty when there is nothing to say.
        held: The state does not follow the command any more; a new command frees it.
        remaining: Way to the target.
        min_eigenvalue: Smallest eigenvalue of the plate's stiffness K, mixed units of K.
        reference_eigenvalue: The same at the start; the ratio of the two is the margin.
        eigenvector: Its direction, shape (6,), [translation, rotation] in world axes: the way in
            which the plate would collapse.
        substeps: Solves made by this step.
        findings: Everything found in this step, most serious first.
    """

    solution: Solution | None
    status: RodStatus
    message: str = ""
    held: bool = False
    remaining: Remaining = field(default_factory=Remaining)
    min_eigenvalue: float = float("nan")
    reference_eigenvalue: float = float("nan")
    eigenvector: Array = field(default_factory=lambda: np.zeros(6))
    substeps: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def good(self) -> bool:
        """Whether ``solution`` is a stable equilibrium on the way to, or at, the command."""
        return is_good(self.status)

    @property
    def arrived(self) -> bool:
        """Whether the command has been reached."""
        return self.remaining.arrived and not self.held

    @property
    def margin(self) -> float:
        """Smallest eigenvalue relative to the start: 1 at the start, 0 at collapse."""
        return self.min_eigenvalue / self.reference_eigenvalue

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of all findings."""
        return tuple(finding.message for finding in self.findings)


@dataclass(frozen=True)
class TrackerOptions:
    """How a tracker moves.

    Attributes:
        bounds: What it tolerates on the way.
        halvings: How often a refused step is halved before the robot is held.
        probe_solves: Solves spent on finding out by how much a pose is out of reach.
        budget: For the cold start.
    """

    bounds: Bounds = field(default_factory=Bounds)
    halvings: int = 8
    probe_solves: int = 20
    budget: Budget = field(default_factory=Budget)


class Tracker:
    """Follows commands with one robot.

    Not safe for use from several threads at once. Commands and steps never raise for what they
    are asked; they answer.

    Args:
        robot: The robot.
        solver: Its solver; made here if not given.
        options: How to move.
    """

    def __init__(
        self,
        robot: RodRobot,
        solver: RodRobotSolver | None = None,
        options: TrackerOptions | None = None,
    ) -> None:
        if solver is None:
            solver = RodRobotSolver(robot)
        self.robot = robot
        self.solver = solver
        self.options = options or TrackerOptions()
        self._applied = Target(
            None, solver.base @ robot.home_pose, np.array(robot.wrench), robot.wrench_frame
        )
        self._plan = self._stay(self._applied)
        self._judge = StepAcceptance(robot, self.options.bounds, float("nan"))
        self._solution: Solution | None = None
        self._rival: Solution | None = None  # of another branch, refused
        self._before: Solution | None = None  # before another branch was accepted
        self._yields = YieldCheck(robot, solver)
        self._notes: tuple[Finding, ...] = ()
        self._reason: Finding | None = None  # why it is held
        self._answer: TrackingResult | None = None

    @property
    def answer(self) -> TrackingResult:
        """The last answer. Raises RuntimeError before `start`."""
        if self._answer is None:
            raise RuntimeError("the tracker has not been started")
        return self._answer

    @property
    def solution(self) -> Solution:
        """The last good equilibrium."""
        if self._solution is None:
            raise RuntimeError("the tracker has not been started")
        return self._solution

    @property
    def target(self) -> Target:
        """What the robot moves to."""
        return self._plan.target

    @property
    def wrench(self) -> Array:
        """The wrench on the plate that was asked for last, shape (6,), in `wrench_frame`."""
        return self.target.wrench.copy()

    @property
    def wrench_frame(self) -> str:
        """Frame of `wrench`: ``world`` or ``plate``."""
        return self.target.frame

    def start(self, *, pose: Array | None = None, q: Array | None = None) -> TrackingResult:
        """Find the first equilibrium: of the given pose or joints, else of the model's.

        Returns:
            The answer; its solution is None if no equilibrium was found, and then every command is
            answered with the same.
        """
        budget = self.options.budget
        if pose is None and q is None:
            found = home_equilibrium(self.solver, budget)
        else:
            found = find_equilibrium(self.solver, pose=pose, q=q, budget=budget)
        if found.solution is None:
            self._answer = TrackingResult(
                None, found.status, found.message, held=True, findings=found.findings
            )
            return self._answer
        wrench, frame = np.array(self.robot.wrench, dtype=float), self.robot.wrench_frame
        target = Target(None, found.solution.pose, wrench, frame)
        # what yields is looked at anew in every state
        notes = [note for note in found.findings if note.status is not RodStatus.YIELD]
        return self._begin(found.solution, target, tuple(notes))

    def command_joints(self, q: Array) -> TrackingResult:
        """Set joint coordinates as target, shape (n,), [m] or [rad]."""
        values = checked_joints(self.robot, q)
        if isinstance(values, Finding):
            return self._rejected(values)
        return self._command(Target(values, None, self.target.wrench, self.target.frame))

    def command_pose(self, pose: Array) -> TrackingResult:
        """Set a plate pose as target, shape (4, 4).

        A pose that no rod can span is accepted: the plate goes as far as it can, and the answer
        says UNREACHABLE at once.
        """
        value = checked_pose(self.robot, pose, self.solver.base)
        if isinstance(value, Finding):
            return self._rejected(value)
        return self._command(Target(None, value, self.target.wrench, self.target.frame))

    def set_wrench(self, wrench: Array, frame: str = "world") -> TrackingResult:
        """Set the wrench on the plate about its origin, shape (6,); it is applied gradually.

        Args:
            wrench: Force [N] and moment [N m].
            frame: ``world`` (dead load) or ``plate`` (turns with it).
        """
        values = checked_wrench(wrench, frame)
        if isinstance(values, Finding):
            return self._rejected(values)
        return self._command(replace(self.target, wrench=values, frame=frame))

    def stop(self) -> TrackingResult:
        """Take the present state as target."""
        if self._solution is None:
            return self.answer
        here = self._here(self.target.by_joints)
        return self._command(here)

    def step(self, max_substeps: int = 8, max_seconds: float = float("inf")) -> TrackingResult:
        """Move towards the target.

        Args:
            max_substeps: Solves that may be made, refused ones included.
            max_seconds: No further solve is begun after this time.
        """
        if self._solution is None:
            return self.answer
        if self._reason is not None or self._plan.arrived:
            return self._report(0)
        begin, used = perf_counter(), 0
        while used < max_substeps and not self._plan.arrived and self._reason is None:
            used += 1
            self._substep()
            if perf_counter() - begin > max_seconds:
                break
        return self._report(used)

    def run(self, max_substeps: int = 10000) -> TrackingResult:
        """Step until the command is reached or the robot is held."""
        answer = self.step(1)
        while max_substeps > 0 and self._reason is None and not self._plan.arrived:
            max_substeps -= 1
            answer = self.step(1)
        return answer

    def accept_branch(self) -> TrackingResult:
        """After BRANCH_CHANGED: take the other equilibrium that was found; `restore` undoes it."""
        if self._rival is None or self._solution is None:
            return self.answer
        self._before, rival, self._rival = self._solution, self._rival, None
        return self._take(rival)

    def restore(self) -> TrackingResult:
        """Go back to the state before another branch was accepted, and stay there."""
        if self._before is None:
            return self.stop()
        before, self._before = self._before, None
        return self._take(before)

    def save(self) -> dict[str, Any]:
        """Return the state as plain numbers, fit for JSON or YAML."""
        return state_to_dict(self.robot, self.solution, self._applied)

    def load(self, state: dict[str, Any]) -> TrackingResult:
        """Return to a saved state at once. A state of another robot is refused (INVALID)."""
        result = state_from_dict(self.robot, self.solver, state)
        if isinstance(result, Finding):
            return self._rejected(result)
        solution, target = result
        self._before = self._solution
        return self._begin(solution, target)

    # -- commands

    def _begin(
        self, solution: Solution, target: Target, notes: tuple[Finding, ...] = ()
    ) -> TrackingResult:
        """Start from an equilibrium; the notes stay until the next command."""
        if not self._judge.reference > 0.0:
            self._judge.reference = float(solution.min_eigenvalue)
        self._solution, self._applied = solution, target
        self._follow(self._stay(target))
        self._notes = notes
        return self._report(0)

    def _take(self, solution: Solution) -> TrackingResult:
        """Stand at another solution, with the wrench that acts now."""
        self._solution = solution
        return self._command(self._here(self.target.by_joints))

    def _here(self, by_joints: bool) -> Target:
        """Return the target that the present state fulfils."""
        solution, applied = self.solution, self._applied
        if by_joints:
            return Target(solution.q.copy(), None, applied.wrench, applied.frame)
        return Target(None, solution.pose.copy(), applied.wrench, applied.frame)

    def _command(self, target: Target) -> TrackingResult:
        """Plan the way from the present state to a new target."""
        if self._solution is None:
            return self.answer
        here = self._here(target.by_joints)
        if target.frame != here.frame:  # the wrench that acts, written in the frame of the new one
            turn = self._solution.pose[:3, :3]
            turn = turn.T if target.frame == "plate" else turn
            wrench = np.concatenate([turn @ here.wrench[:3], turn @ here.wrench[3:]])
            here = replace(here, wrench=wrench, frame=target.frame)
        way = target_distance(self.robot, here, target)
        steps = way.steps
        if target.wrench is not here.wrench and (load := target.wrench - here.wrench).any():
            steps = max(steps, load_steps(self._solution.stiffness, load))
        # where the robot was held it will mostly be held again: find out with one small step
        held = self._reason is not None
        self._follow(
            StepLengthControl(here, target, way, steps, self.options.halvings, cautious=held)
        )
        if steps > 1.0:  # of shorter ways it is asked when they fail
            self._notes = self._out_of_reach()
        return self._report(0)

    def _stay(self, target: Target) -> StepLengthControl:
        """Return the plan of a target that has been reached."""
        return StepLengthControl(
            target, target, TargetDistance(0.0, 0.0, 0.0, 0.0), 0.0, self.options.halvings
        )

    def _follow(self, plan: StepLengthControl) -> None:
        """Begin a plan."""
        self._plan = plan
        self._reason = self._rival = None
        self._notes = ()
        self._fold = FoldPrediction(0.0, self.solution.min_eigenvalue)

    def _out_of_reach(self) -> tuple[Finding, ...]:
        """Return what geometry says against the target."""
        pose, robot = self.target.pose, self.robot
        if pose is None or len(robot.controlled) < len(robot.coordinates):
            return ()
        return reach_findings(robot, pose, self.solver.base)

    def _rejected(self, finding: Finding) -> TrackingResult:
        """Answer a command that is not accepted: nothing changes but this answer."""
        last = self.answer
        return replace(
            last, status=finding.status, message=finding.message, findings=(finding,), substeps=0
        )

    # -- steps

    def _substep(self) -> None:
        """Try one step; halve it if it is refused; hold when it is too small."""
        fraction, target = self._plan.next()
        trial = solve_target(self.solver, target, self.solution)
        load = target.wrench - self._applied.wrench
        refusal = self._judge.refuse(self.solution, trial, target, load)
        if refusal is None:
            self._solution, self._applied = trial, target
            self._plan.accept(fraction)
            self._fold.accept(fraction, trial.min_eigenvalue)
            return
        if self._plan.halve():
            return
        if refusal.status is RodStatus.BRANCH_CHANGED:
            self._rival = trial
        self._notes = self._notes or self._out_of_reach()
        still = _Standstill(
            self.solution,
            self._here(self.target.by_joints),
            self.target,
            1.0 - self._plan.fraction,
            self._fold.way_left < 4.0 * self._plan.full,
            self._notes,
        )
        probes = self.options.probe_solves
        self._reason = _held_reason(self.solver, self._judge, refusal, still, probes)

    # -- answers

    def _report(self, used: int) -> TrackingResult:
        """Collect what is known about the present state."""
        solution = self.solution
        findings = [] if self._reason is None else [self._reason]
        findings += [note for note in self._notes if note is not self._reason]
        warning = self._judge.warn(solution)
        if warning is not None and (
            self._reason is None or self._reason.status is not RodStatus.NEAR_LIMIT
        ):
            findings.append(warning)
        if self._plan.arrived or self._reason is not None:
            findings += self._yields.findings(solution)
        findings.sort(key=lambda finding: SEVERITY.index(finding.status))
        if findings:
            status, message = findings[0].status, findings[0].message
        else:
            status = RodStatus.OK if self._plan.arrived else RodStatus.MOVING
            message = ""
        self._answer = TrackingResult(
            solution,
            status,
            message,
            held=self._reason is not None,
            remaining=self._plan.remaining,
            min_eigenvalue=float(solution.min_eigenvalue),
            reference_eigenvalue=self._judge.reference,
            eigenvector=solution.eigenvector,
            substeps=used,
            findings=tuple(findings),
        )
        return self._answer


@dataclass(frozen=True, eq=False)
class _Standstill:
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


def _held_reason(
    solver: RodRobotSolver,
    judge: StepAcceptance,
    refusal: Finding,
    still: _Standstill,
    solves: int,
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
        return _missing_joints(solver, judge, still, solves) or refusal
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


def _missing_joints(
    solver: RodRobotSolver, judge: StepAcceptance, still: _Standstill, solves: int
) -> Finding | None:
    """Follow the command without limits, to tell which joints the target itself would need.

    Returns:
        UNREACHABLE with the joint and what it lacks; None if the target cannot be followed to.
    """
    bounds = replace(judge.bounds, enforce_limits=False)
    free = StepAcceptance(solver.robot, bounds, judge.reference)
    followed = follow(solver, still.solution, still.here, still.target, free, solves=solves)
    if not followed.arrived:
        return None
    return limit_reach_finding(solver.robot, followed.solution.q, "the commanded pose")
