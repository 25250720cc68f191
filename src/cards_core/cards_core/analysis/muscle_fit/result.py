"""What a fit came to: the robot, which goals are met, by how much others are missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from cards_core.analysis.muscle_fit.margins import torque_interval
from cards_core.analysis.muscle_fit.problem import FitProblem
from cards_core.analysis.muscle_fit.specification import (
    ClosureGoal,
    FitSpecification,
    Goal,
    PathGoal,
    TorqueGoal,
)
from cards_core.analysis.muscle_fit.variables import PathPoint, radius_of
from cards_core.robot.elements import ViaPoint
from cards_core.robot.model import Robot
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class GoalOutcome:
    """How one goal ended.

    Attributes:
        goal: The goal.
        misses: How far it is missed at each of its poses, shape (n,), in its unit, >= 0.
        before: The same of the robot as it was.
        met: Whether all are within the tolerance.
        worst: Index of the pose with the largest miss over tolerance, among all poses.
        value: There: the moment arm or length, the torque nearest to the end of the range that is
            missed, or the margin.
        wanted: There: the arm or length, the end of the range, or the least margin.
    """

    goal: Goal
    misses: Array
    before: Array
    met: bool
    worst: int
    value: float
    wanted: float


@dataclass(frozen=True, eq=False)
class MovedPoint:
    """A via point that has moved, in coordinates of its link, [m]."""

    muscle: str
    point: int
    link: str
    before: Array
    after: Array


@dataclass(frozen=True, eq=False, repr=False)
class FitResult:
    """The best robot of a fit.

    Attributes:
        specification: What was asked for.
        robot: The fitted robot; points are rounded to a nanometre.
        goals: One for each goal, judged with the rounded points.
        starts: How many starts were made.
        moved: Via points that are elsewhere now.
        radii: Fitted radii: before and after, [m].
        at_border: Points and surfaces that are at the border of where they may be.
        rows_before, rows_after: L and, last, lengths at all poses, shape (n, m, nv + 1); NaN where
            no goal asks.
        problem: The goals as functions of the points.
    """

    specification: FitSpecification
    robot: Robot
    goals: tuple[GoalOutcome, ...]
    starts: int
    moved: tuple[MovedPoint, ...]
    radii: dict[str, tuple[float, float]]
    at_border: tuple[str, ...]
    rows_before: Array
    rows_after: Array
    problem: FitProblem

    def __repr__(self) -> str:
        missed = sum(not item.met for item in self.goals)
        state = "all goals met" if self.met else f"{missed} of {len(self.goals)} goals not met"
        name = self.specification.robot.name
        return f"<fit of {name}: {state}, {len(self.moved)} points moved>"

    @property
    def met(self) -> bool:
        """Whether all goals are met."""
        return all(item.met for item in self.goals)

    def summary(self) -> dict[str, Any]:
        """Return everything but arrays of poses as plain data, for JSON."""
        specification = self.specification
        return {
            "robot": specification.robot.name,
            "met": self.met,
            "poses": len(specification.q),
            "starts": self.starts,
            "goals": [_goal_summary(item, specification) for item in self.goals],
            "moved": [
                {
                    "muscle": item.muscle,
                    "point": item.point,
                    "link": item.link,
                    "before": item.before.tolist(),
                    "after": item.after.tolist(),
                    "distance": float(np.linalg.norm(item.after - item.before)),
                }
                for item in self.moved
            ],
            "radii": {
                name: {"before": before, "after": after}
                for name, (before, after) in self.radii.items()
            },
            "at_border": list(self.at_border),
        }


def make_result(problem: FitProblem, y: Array, starts: int) -> FitResult:
    """Judge a vector of a fit.

    Args:
        problem: The fit.
        y: shape (size,).
        starts: How many starts were made.
    """
    specification = problem.specification
    variables, old = specification.variables, specification.robot
    robot = variables.apply(y)
    before, after = problem.rows_of(old), problem.rows_of(robot)
    names = [_place_name(robot, item) for item in variables.at_border(y)]
    return FitResult(
        specification,
        robot,
        tuple(_outcome(problem, goal, before, after) for goal in specification.goals),
        starts,
        tuple(_moved(old, robot)),
        {
            radius.surface: (radius_of(old, radius.surface), radius_of(robot, radius.surface))
            for radius in variables.radii
        },
        tuple(names),
        before,
        after,
        problem,
    )


def _outcome(problem: FitProblem, goal: Goal, before: Array, after: Array) -> GoalOutcome:
    ratios = np.abs(problem.excess(goal, after))
    worst = int(np.argmax(ratios))
    row = int(goal.rows[worst])
    tolerance = goal.tolerance
    value, wanted = _worst(problem, goal, after, worst)
    return GoalOutcome(
        goal,
        ratios * tolerance,
        np.abs(problem.excess(goal, before)) * tolerance,
        bool((ratios <= 1.0).all()),
        row,
        value,
        wanted,
    )


def _worst(problem: FitProblem, goal: Goal, arms: Array, k: int) -> tuple[float, float]:
    row = int(goal.rows[k])
    if isinstance(goal, PathGoal):
        return float(goal.values(arms)[k]), float(goal.wanted[k])
    if isinstance(goal, ClosureGoal):
        return float(problem.margins(goal, arms)[k]), goal.margin
    low, high = torque_range(problem, goal, arms, row)
    ratios = problem.ratios(goal, arms)[0].reshape(-1, 2)[k]
    return (low, goal.low) if ratios[0] > ratios[1] else (high, goal.high)


def torque_range(
    problem: FitProblem, goal: TorqueGoal, arms: Array, row: int
) -> tuple[float, float]:
    """Return the least and largest torque that muscles can give at a pose.

    Args:
        problem: The fit.
        goal: Says at which coordinate, and what the others get meanwhile.
        arms: L at all poses, of `FitProblem.rows`, shape (n, m, nv + 1).
        row: Index of the pose.

    Returns:
        Both ends, without what gravity takes, [Nm] or [N]; NaN where the other coordinates cannot
        have what they must.
    """
    specification = problem.specification
    actuation = specification.actuation
    where = np.flatnonzero(actuation.coordinates == goal.coordinate.v)
    if not len(where):
        return -np.inf, np.inf
    rows = problem.actuator_rows(arms)[row]
    load = np.zeros(rows.shape[1])
    if goal.gravity:
        load = specification.gravity[row][actuation.coordinates]
    k = int(where[0])
    if not goal.alone:
        low, high = torque_interval(rows[:, k], actuation.lower, actuation.upper)
        return low - load[k], high - load[k]
    others = [j for j in range(rows.shape[1]) if j != k]
    ends = []
    for sign in (1.0, -1.0):
        found = linprog(
            -sign * rows[:, k],
            A_eq=-rows[:, others].T if others else None,
            b_eq=load[others] if others else None,
            bounds=np.column_stack([actuation.lower, actuation.upper]),
            method="highs",
        )
        if found.status == 3:  # unbounded
            ends.append(-sign * np.inf)
        else:
            ends.append(sign * found.fun - load[k] if found.status == 0 else np.nan)
    return float(ends[0]), float(ends[1])


def _moved(old: Robot, new: Robot) -> list[MovedPoint]:
    out = []
    for one, other in zip(old.muscles, new.muscles, strict=True):
        pairs = zip(one.via_points, other.via_points, strict=True)
        for k, (was, now) in enumerate(pairs, 1):
            if np.any(was.position != now.position):
                out.append(MovedPoint(one.name, k, was.link, was.position, now.position))
    return out


def _place_name(robot: Robot, item: PathPoint | str) -> str:
    if isinstance(item, str):
        return f"radius of {item}"
    muscle = robot.muscles[item.muscle]
    element = muscle.path[item.element]
    assert isinstance(element, ViaPoint)
    return f"{muscle.name} point {item.point + 1} ({element.link})"


def _goal_summary(item: GoalOutcome, specification: FitSpecification) -> dict[str, Any]:
    goal = item.goal
    tolerance = np.broadcast_to(goal.tolerance, item.misses.shape)
    return {
        "name": goal.name,
        "unit": goal.unit,
        "met": item.met,
        "poses": len(item.misses),
        "poses_missed": int((item.misses > tolerance).sum()),
        "largest_miss": float(item.misses.max()),
        "largest_miss_before": float(item.before.max()),
        "rms_miss": float(np.sqrt(np.mean(item.misses**2))),
        "rms_miss_before": float(np.sqrt(np.mean(item.before**2))),
        "tolerance": float(tolerance[int(np.argmax(item.misses / tolerance))]),
        "worst": {
            "pose": specification.pose(item.worst),
            "value": item.value if np.isfinite(item.value) else None,
            "wanted": item.wanted,
        },
    }


def markdown(result: FitResult) -> str:
    """Return the report as Markdown."""
    found = result.summary()
    state = "All goals are met." if found["met"] else "**Not all goals are met.**"
    lines = [
        f"# Fit of the muscles of {found['robot']}",
        "",
        f"{state} {found['poses']} poses, {found['starts']} starts.",
        "",
        "| goal | met | largest miss before | after | tolerance | unit | missed at |",
        "|---|---|---|---|---|---|---|",
    ]
    for goal in found["goals"]:
        lines.append(
            f"| {goal['name']} | {'yes' if goal['met'] else '**no**'} "
            f"| {goal['largest_miss_before']:.4g} | {goal['largest_miss']:.4g} "
            f"| {goal['tolerance']:.4g} | {goal['unit']} "
            f"| {goal['poses_missed']} of {goal['poses']} poses |"
        )
    if missed := not_met(result):
        lines += ["", "## Not met", "", *(f"- {line}" for line in missed)]
        if found["at_border"]:
            lines += ["", f"At the border of where they may be: {', '.join(found['at_border'])}."]
    if found["moved"]:
        lines += [
            "",
            "## Moved points",
            "",
            "In link coordinates, [m].",
            "",
            "| muscle | point | link | before | after | moved [mm] |",
            "|---|---|---|---|---|---|",
        ]
        for item in found["moved"]:
            before, after = (
                " ".join(f"{x:.6g}" for x in item[key]) for key in ("before", "after")
            )
            lines.append(
                f"| {item['muscle']} | {item['point']} | {item['link']} | {before} | {after} "
                f"| {1e3 * item['distance']:.3f} |"
            )
    if found["radii"]:
        lines += ["", "## Radii", "", "| surface | before [m] | after [m] |", "|---|---|---|"]
        for name, item in found["radii"].items():
            lines.append(f"| {name} | {item['before']:.6g} | {item['after']:.6g} |")
    return "\n".join(lines) + "\n"


def not_met(result: FitResult) -> list[str]:
    """Return a line for each goal that is not met: what, by how much, where, what is nearest."""
    lines = []
    for item, found in zip(result.goals, result.summary()["goals"], strict=True):
        if item.met:
            continue
        worst, unit = found["worst"], f" {found['unit']}" if found["unit"] else ""
        pose = ", ".join(f"{name} {value:.4g}" for name, value in worst["pose"].items())
        nearest = "nothing" if worst["value"] is None else f"{worst['value']:.4g}{unit}"
        lines.append(
            f"{found['name']}: missed by up to {found['largest_miss']:.4g}{unit} (tolerance "
            f"{found['tolerance']:.4g}{unit}) in {found['poses_missed']} of {found['poses']} "
            f"poses; wanted {worst['wanted']:.4g}{unit}, nearest {nearest}"
            + (f" at {pose}" if pose else "")
        )
    return lines
