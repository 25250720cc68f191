"""A rod robot that follows commands: small steps, one branch, never past a point of collapse.

A command (joints, or a plate pose, and the wrench on the plate) is a straight line from the
present state. Each step along it is at most 5 mm and 2 degrees; the solver starts from the last
state, and the result is compared with it (`acceptance`). A refused step is tried again with half
its length; when the steps become too small, the robot stays at its last good state (*held*) and
the result says why.

    tracker = Tracker(robot)
    tracker.start()
    tracker.command_pose(pose)
    while not (result := tracker.step()).arrived and not result.held: ...
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from cards_core.rods.robots.limb_failure import YieldCheck
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solution import Solution
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import SEVERITY, Finding, RodStatus, is_good
from cards_core.rods.tracking.commands import (
    checked_joints,
    checked_pose,
    checked_wrench,
    limit_reach_finding,
    reach_findings,
)
from cards_core.rods.tracking.continuation import (
    Bounds,
    FoldPrediction,
    StepAcceptance,
    follow,
    solve_target,
)
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.saved_states import state_from_dict, state_to_dict
from cards_core.rods.tracking.search_methods import Budget
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
    """State and status after a command or a step of a :class:`Tracker`.

    Attributes:
        solution: The last good equilibrium. It is always finite and, unless ``status`` is UNSTABLE
            at the start, stable. None if no start was found.
        status: The worst of ``findings``, else MOVING or OK.
        message: In words; empty if there is nothing to report.
        held: The state does not follow the command any more; a new command ends that.
        remaining: Distance to the target.
        min_eigenvalue: Smallest eigenvalue of the plate's stiffness K, mixed units of K.
        reference_eigenvalue: The same at the start; the ratio of the two is the margin.
        eigenvector: Its direction, shape (6,), [translation, rotation] in world axes: the way in
            which the plate would collapse.
        substeps: Solves made in this step.
        findings: All findings of this step, the most serious first.
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
        bounds: When a step is refused.
        halvings: How often a refused step is halved before the robot is held.
        probe_solves: Solves spent to find out how far a pose is out of reach.
        budget: Bounds of the search for the first equilibrium.
    """

    bounds: Bounds = field(default_factory=Bounds)
    halvings: int = 8
    probe_solves: int = 20
    budget: Budget = field(default_factory=Budget)


class Tracker:
    """Follows commands with one robot.

    Not safe for use from several threads at once. Commands and steps do not raise for bad
    commands; the result says what is wrong.

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
        self._steps = self._stay(self._applied)
        self._acceptance = StepAcceptance(robot, self.options.bounds, float("nan"))
        self._solution: Solution | None = None
        self._rival: Solution | None = None  # of another branch, refused
        self._before: Solution | None = None  # before another branch was accepted
        self._yields = YieldCheck(robot, solver)
        self._notes: tuple[Finding, ...] = ()
        self._reason: Finding | None = None  # why it is held
        self._result: TrackingResult | None = None

    @property
    def result(self) -> TrackingResult:
        """The last result. Raises RuntimeError before `start`."""
        if self._result is None:
            raise RuntimeError("the tracker has not been started")
        return self._result

    @property
    def solution(self) -> Solution:
        """The last good equilibrium."""
        if self._solution is None:
            raise RuntimeError("the tracker has not been started")
        return self._solution

    @property
    def target(self) -> Target:
        """The target of the present command."""
        return self._steps.target

    @property
    def wrench(self) -> Array:
        """The wrench on the plate that was commanded last, shape (6,), in `wrench_frame`."""
        return self.target.wrench.copy()

    @property
    def wrench_frame(self) -> str:
        """Frame of `wrench`: ``world`` or ``plate``."""
        return self.target.frame

    def start(self, *, pose: Array | None = None, q: Array | None = None) -> TrackingResult:
        """Find the first equilibrium: of the given pose or joints, else of the model's.

        Returns:
            The result; its solution is None if no equilibrium was found. Then every command and
            step returns the same result.
        """
        budget = self.options.budget
        if pose is None and q is None:
            found = home_equilibrium(self.solver, budget)
        else:
            found = find_equilibrium(self.solver, pose=pose, q=q, budget=budget)
        if found.solution is None:
            self._result = TrackingResult(
                None, found.status, found.message, held=True, findings=found.findings
            )
            return self._result
        wrench, frame = np.array(self.robot.wrench, dtype=float), self.robot.wrench_frame
        target = Target(None, found.solution.pose, wrench, frame)
        # yield is checked again in every state
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

        A pose that a rod cannot span is accepted: the plate goes as far as it can, and the result
        is UNREACHABLE at once.
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
        """Make the present state the target."""
        if self._solution is None:
            return self.result
        here = self._here(self.target.by_joints)
        return self._command(here)

    def step(self, max_substeps: int = 8, max_seconds: float = float("inf")) -> TrackingResult:
        """Move towards the target.

        Args:
            max_substeps: Solves that may be made, refused ones included.
            max_seconds: No further solve is begun after this time.
        """
        if self._solution is None:
            return self.result
        if self._reason is not None or self._steps.arrived:
            return self._report(0)
        begin, used = perf_counter(), 0
        while used < max_substeps and not self._steps.arrived and self._reason is None:
            used += 1
            self._substep()
            if perf_counter() - begin > max_seconds:
                break
        return self._report(used)

    def run(self, max_substeps: int = 10000) -> TrackingResult:
        """Step until the command is reached or the robot is held."""
        result = self.step(1)
        while max_substeps > 0 and self._reason is None and not self._steps.arrived:
            max_substeps -= 1
            result = self.step(1)
        return result

    def accept_branch(self) -> TrackingResult:
        """After BRANCH_CHANGED: take the other equilibrium that was found; `restore` undoes it."""
        if self._rival is None or self._solution is None:
            return self.result
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
        if not self._acceptance.reference > 0.0:
            self._acceptance.reference = float(solution.min_eigenvalue)
        self._solution, self._applied = solution, target
        self._follow(self._stay(target))
        self._notes = notes
        return self._report(0)

    def _take(self, solution: Solution) -> TrackingResult:
        """Switch to another solution, with the wrench that acts now."""
        self._solution = solution
        return self._command(self._here(self.target.by_joints))

    def _here(self, by_joints: bool) -> Target:
        """Return the target that the present state fulfils."""
        solution, applied = self.solution, self._applied
        if by_joints:
            return Target(solution.q.copy(), None, applied.wrench, applied.frame)
        return Target(None, solution.pose.copy(), applied.wrench, applied.frame)

    def _command(self, target: Target) -> TrackingResult:
        """Set up the steps from the present state to a new target."""
        if self._solution is None:
            return self.result
        here = self._here(target.by_joints)
        if target.frame != here.frame:  # express the acting wrench in the new frame
            turn = self._solution.pose[:3, :3]
            turn = turn.T if target.frame == "plate" else turn
            wrench = np.concatenate([turn @ here.wrench[:3], turn @ here.wrench[3:]])
            here = replace(here, wrench=wrench, frame=target.frame)
        distance = target_distance(self.robot, here, target)
        steps = distance.steps
        if target.wrench is not here.wrench and (load := target.wrench - here.wrench).any():
            steps = max(steps, load_steps(self._solution.stiffness, load))
        # where the robot was held it is mostly held again: find out with one small step
        held = self._reason is not None
        self._follow(
            StepLengthControl(here, target, distance, steps, self.options.halvings, cautious=held)
        )
        if steps > 1.0:  # for shorter distances only if they fail
            self._notes = self._out_of_reach()
        return self._report(0)

    def _stay(self, target: Target) -> StepLengthControl:
        """Return the step control of a target that has been reached."""
        return StepLengthControl(
            target, target, TargetDistance(0.0, 0.0, 0.0, 0.0), 0.0, self.options.halvings
        )

    def _follow(self, steps: StepLengthControl) -> None:
        """Begin to follow a command."""
        self._steps = steps
        self._reason = self._rival = None
        self._notes = ()
        self._fold = FoldPrediction(0.0, self.solution.min_eigenvalue)

    def _out_of_reach(self) -> tuple[Finding, ...]:
        """Return the geometric reasons why the target cannot be reached."""
        pose, robot = self.target.pose, self.robot
        if pose is None or len(robot.controlled) < len(robot.coordinates):
            return ()
        return reach_findings(robot, pose, self.solver.base)

    def _rejected(self, finding: Finding) -> TrackingResult:
        """Return the result of a rejected command, which changes nothing else."""
        last = self.result
        return replace(
            last, status=finding.status, message=finding.message, findings=(finding,), substeps=0
        )

    # -- steps

    def _substep(self) -> None:
        """Try one step; halve it if it is refused; hold if it becomes too small."""
        fraction, target = self._steps.next()
        trial = solve_target(self.solver, target, self.solution)
        load = target.wrench - self._applied.wrench
        refusal = self._acceptance.refuse(self.solution, trial, target, load)
        if refusal is None:
            self._solution, self._applied = trial, target
            self._steps.accept(fraction)
            self._fold.accept(fraction, trial.min_eigenvalue)
            return
        if self._steps.halve():
            return
        if refusal.status is RodStatus.BRANCH_CHANGED:
            self._rival = trial
        self._notes = self._notes or self._out_of_reach()
        still = _Standstill(
            self.solution,
            self._here(self.target.by_joints),
            self.target,
            1.0 - self._steps.fraction,
            self._fold.way_left < 4.0 * self._steps.full,
            self._notes,
        )
        probes = self.options.probe_solves
        self._reason = _held_reason(self.solver, self._acceptance, refusal, still, probes)

    # -- results

    def _report(self, used: int) -> TrackingResult:
        """Return the result for the present state."""
        solution = self.solution
        findings = [] if self._reason is None else [self._reason]
        findings += [note for note in self._notes if note is not self._reason]
        warning = self._acceptance.warn(solution)
        if warning is not None and (
            self._reason is None or self._reason.status is not RodStatus.NEAR_LIMIT
        ):
            findings.append(warning)
        if self._steps.arrived or self._reason is not None:
            findings += self._yields.findings(solution)
        findings.sort(key=lambda finding: SEVERITY.index(finding.status))
        if findings:
            status, message = findings[0].status, findings[0].message
        else:
            status = RodStatus.OK if self._steps.arrived else RodStatus.MOVING
            message = ""
        self._result = TrackingResult(
            solution,
            status,
            message,
            held=self._reason is not None,
            remaining=self._steps.remaining,
            min_eigenvalue=float(solution.min_eigenvalue),
            reference_eigenvalue=self._acceptance.reference,
            eigenvector=solution.eigenvector,
            substeps=used,
            findings=tuple(findings),
        )
        return self._result


@dataclass(frozen=True, eq=False)
class _Standstill:
    """State and target of a robot that stopped.

    Attributes:
        solution: The last good state.
        here: The command that it fulfils.
        target: The commanded target.
        left: Part of the command that is left, 0..1.
        fold_ahead: Whether the smallest eigenvalue falls towards zero within the next steps.
        notes: Geometric reasons why the target cannot be reached.
    """

    solution: Solution
    here: Target
    target: Target
    left: float
    fold_ahead: bool
    notes: tuple[Finding, ...] = ()


def _held_reason(
    solver: RodRobotSolver,
    acceptance: StepAcceptance,
    refusal: Finding,
    still: _Standstill,
    solves: int,
) -> Finding:
    """Return why a robot is held, as a message that helps.

    Args:
        solver: Solver of the robot.
        acceptance: The test that refused the smallest step.
        refusal: The reason.
        still: State and target.
        solves: Maximum number of solves to find out how far a pose is out of reach.
    """
    status = refusal.status
    if status in (RodStatus.NEAR_LIMIT, RodStatus.UNSTABLE):
        message = f"stopped before collapse; the next step would be {refusal.message}"
        return replace(refusal, status=RodStatus.NEAR_LIMIT, message=message)
    if status is RodStatus.UNREACHABLE:
        return _missing_joints(solver, acceptance, still, solves) or refusal
    if still.fold_ahead or acceptance.warn(still.solution) is not None:
        text = acceptance.describe(still.solution)
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
    solver: RodRobotSolver, acceptance: StepAcceptance, still: _Standstill, solves: int
) -> Finding | None:
    """Follow the command without joint limits, to find out which joints the target needs.

    Returns:
        UNREACHABLE with the joint and what it lacks; None if the target cannot be followed to.
    """
    bounds = replace(acceptance.bounds, enforce_limits=False)
    free = StepAcceptance(solver.robot, bounds, acceptance.reference)
    followed = follow(solver, still.solution, still.here, still.target, free, solves=solves)
    if not followed.arrived:
        return None
    return limit_reach_finding(solver.robot, followed.solution.q, "the commanded pose")
