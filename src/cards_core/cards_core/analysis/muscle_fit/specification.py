"""What a fit is asked for: what may move, what the robot must have then, and at which poses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.muscle_fit.variables import FitVariables
from cards_core.analysis.workspace.coordinates import Coordinate
from cards_core.paths.layout import Indices
from cards_core.robot.elements import ViaPoint, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class ArmGoal:
    """Wanted moment arms of one muscle about one coordinate, r = -L.

    Attributes:
        name: For reports.
        muscle: Index of the muscle.
        coordinate: Which.
        rows: Poses, shape (n,).
        wanted: shape (n,), [m] or [1].
        tolerance: shape (n,).
        weight: Of the mean square of misses over tolerances.
    """

    name: str
    muscle: int
    coordinate: Coordinate
    rows: Indices
    wanted: Array
    tolerance: Array
    weight: float
    sign: ClassVar[float] = -1.0

    @property
    def unit(self) -> str:
        """Of the arms."""
        return "m" if self.coordinate.unit == "rad" else ""

    @property
    def column(self) -> int:
        """Which of the numbers of `FitProblem.rows` it asks for."""
        return self.coordinate.v

    def values(self, rows: Array) -> Array:
        """Return the arms, shape (n,), from `FitProblem.rows`."""
        return np.asarray(self.sign * rows[self.rows, self.muscle, self.column])


@dataclass(frozen=True, eq=False)
class LengthGoal:
    """Wanted lengths of one muscle, from its first point to its last.

    Attributes:
        name: For reports.
        muscle: Index of the muscle.
        along: The coordinate that its poses vary, for plots; None: they vary more.
        rows: Poses, shape (n,).
        wanted: shape (n,), [m].
        tolerance: shape (n,), [m].
        weight: See `ArmGoal`.
    """

    name: str
    muscle: int
    along: Coordinate | None
    rows: Indices
    wanted: Array
    tolerance: Array
    weight: float
    unit: ClassVar[str] = "m"
    sign: ClassVar[float] = 1.0
    column: ClassVar[int] = -1

    def values(self, rows: Array) -> Array:
        """Return the lengths, shape (n,), from `FitProblem.rows`."""
        return np.asarray(rows[self.rows, self.muscle, self.column])


@dataclass(frozen=True, eq=False)
class TorqueGoal:
    """A range of torque that muscles must be able to give at one coordinate.

    Attributes:
        name: For reports.
        coordinate: Which.
        low, high: Ends of the range, [Nm] or [N].
        alone: Whether the other coordinates must get no torque meanwhile, or what gravity takes.
        gravity: Whether the muscles must carry gravity besides.
        rows: Poses, shape (n,).
        tolerance: [Nm] or [N].
        weight: See `ArmGoal`.
    """

    name: str
    coordinate: Coordinate
    low: float
    high: float
    alone: bool
    gravity: bool
    rows: Indices
    tolerance: float
    weight: float

    @property
    def unit(self) -> str:
        """Of the range."""
        return "Nm" if self.coordinate.unit == "rad" else "N"


@dataclass(frozen=True, eq=False)
class ClosureGoal:
    """A closure margin that every pose must have; see `cards_core.analysis.muscle_fit.margins`.

    Attributes:
        margin: [m]; of robots that slide alone, [1].
        length: Characteristic length that sliding coordinates are scaled by, [m]; or None.
        rows: Poses, shape (n,).
        tolerance: As the margin.
        weight: See `ArmGoal`.
    """

    margin: float
    length: float | None
    rows: Indices
    tolerance: float
    weight: float
    name: str = "force closure"
    unit: str = "m"


PathGoal = ArmGoal | LengthGoal
"""Goals that the path of one muscle meets or misses."""

Goal = ArmGoal | LengthGoal | TorqueGoal | ClosureGoal


@dataclass(frozen=True, eq=False)
class FitSpecification:
    """A task.

    Attributes:
        robot: The robot as it is.
        q: All poses, shape (n, nq).
        variables: What may move.
        goals: What is wanted.
        actuation: Which rows of L count for torques and closure.
        gravity: G at all poses, shape (n, nv), [Nm] or [N]; zero where nothing asks for it.
        text: The YAML file.
        source: Its name.
        folder: Where robots that it names by path are looked for first.
        pose_names: Coordinates that are not the same in all poses.
    """

    robot: Robot
    q: Array
    variables: FitVariables
    goals: tuple[Goal, ...]
    actuation: Actuation
    gravity: Array
    text: str
    source: str
    folder: Path
    pose_names: tuple[Coordinate, ...]

    def pose(self, row: int) -> dict[str, float]:
        """Return a pose in words: coordinates that are not the same in all poses."""
        return {c.name: float(self.q[row, c.q]) for c in self.pose_names}


def wraps_near(robot: Robot, muscle: int) -> list[tuple[int, Wrap]]:
    """Return which via points of a muscle are the ends of which wraps: (via point, wrap)."""
    out: list[tuple[int, Wrap]] = []
    path = robot.muscles[muscle].path
    point, open_wraps = -1, []
    for element in path:
        if isinstance(element, Wrap):
            open_wraps.append(element)
            if point >= 0:
                out.append((point, element))
        elif isinstance(element, ViaPoint):
            point += 1
            out += [(point, wrap) for wrap in open_wraps]
            open_wraps = []
    return out
