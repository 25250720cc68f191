"""What a condition is: a question about a point that has a yes, a no, or a reason for neither.

Its options are dataclasses whose fields are declared as `Parameter`, to and from JSON: the single
source for what a condition can be told, so that the command line, jobs on disk and workers in
other processes make the same object from the same JSON.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.conditions.kernels import RANK_TOLERANCE
from cards_core.analysis.native_library import conditions_library
from cards_core.analysis.status import ANSWERS, PointStatus
from cards_core.analysis.tangent import unit_quaternions
from cards_core.dynamics import Dynamics
from cards_core.dynamics.batch import BatchState
from cards_core.errors import CardsError, ShapeError, UnknownNameError
from cards_core.parameters.declaration import Parameter
from cards_core.robot.elements import Wrap
from cards_core.typing import Array

Results: TypeAlias = dict[str, npt.NDArray[Any]]
"""One array of length n for every column, by the column's name."""


@dataclass(frozen=True)
class Column:
    """One result per point.

    Attributes:
        name: Of the column in files, e.g. ``tension_factor``.
        dtype: NumPy's name of the type, e.g. ``uint8``.
        unit: SI unit, empty if it has none.
        text: What it is, in one line.
    """

    name: str
    dtype: str
    unit: str
    text: str


STATUS = Column("status", "uint8", "", "outcome, a value of PointStatus")
"""The first column of every condition."""


class Condition(Protocol):
    """Answers one question about many points."""

    @property
    def name(self) -> str:
        """As in the registry."""
        ...

    @property
    def columns(self) -> tuple[Column, ...]:
        """What `evaluate` returns; the first is `STATUS`."""
        ...

    def evaluate(self, q: Array) -> Results:
        """Answer for every row of q.

        A bad point never raises: its status says what is wrong, and its numbers are NaN. One
        object must not be used by two threads at once.

        Args:
            q: Coordinates, shape (n, nq).

        Returns:
            One array of length n for every column.
        """
        ...


Group = TypeVar("Group", bound="Options")


class ConditionError(CardsError):
    """A condition that cannot be made for this robot with these options."""


def option(default: Any, description: str, unit: str = "", **limits: Any) -> Any:
    """Return a dataclass field that is an option.

    Args:
        default: What holds without it; None where "not given" has a meaning of its own.
        description: One sentence.
        unit: SI unit, empty if it has none.
        **limits: Further attributes of the `Parameter`; its name is that of the field.
    """
    declared = Parameter("", default, description, unit, noun="option", **limits)
    return field(default=default, metadata={"parameter": declared})


def rank_option(matrix: str = "L", note: str = "") -> Any:
    """Return the option that says from where on a matrix is rank-deficient."""
    text = f"Ratio of the singular values of {matrix} at which it counts as rank-deficient{note}."
    return option(RANK_TOLERANCE, text, above=0.0)


FORMER_NAMES = {"least": "min", "most": "max"}
"""Names of options in version 0.2, which files and command lines may still have."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base of the options of all conditions; a condition without options uses it as it is.

    Fields hold numbers, text, True/False, None, and tuples of numbers, of texts or of tuples of
    numbers, so that every group is JSON.
    """

    def __post_init__(self) -> None:
        """Check every field.

        Raises:
            ParameterError: A value has the wrong type or is out of its range; the message names
                the option.
        """
        for declared in self.parameters():
            value = declared.check(getattr(self, declared.name))
            object.__setattr__(self, declared.name, _hashable(value))

    @classmethod
    def parameters(cls) -> tuple[Parameter, ...]:
        """Return the declarations of all options."""
        return tuple(
            dataclasses.replace(item.metadata["parameter"], name=item.name)
            for item in dataclasses.fields(cls)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON: all of them, also those that have their default."""
        return {item.name: _listed(getattr(self, item.name)) for item in dataclasses.fields(self)}

    @classmethod
    def from_json(cls: type[Group], values: Mapping[str, Any]) -> Group:
        """Make options of what `to_json` returned, or of a part of it.

        Raises:
            UnknownNameError: There is no option of this name.
            ParameterError: A value is of the wrong type or out of range.
        """
        names = [item.name for item in dataclasses.fields(cls)]
        found = {}
        for name, value in values.items():
            new = FORMER_NAMES.get(name, name)
            if new not in names:
                raise UnknownNameError("option", name, names)
            found[new] = value
        return cls(**found)


def _hashable(value: Any) -> Any:
    """Return a checked value with tuples for arrays."""
    if isinstance(value, np.ndarray):
        return tuple(value.tolist())
    return tuple(_hashable(item) for item in value) if isinstance(value, tuple) else value


def _listed(value: Any) -> Any:
    return [_listed(item) for item in value] if isinstance(value, tuple) else value


class PointCondition(abc.ABC, Generic[Group]):
    """Base of the conditions on muscles: finds the states, and the points that have no answer.

    Args:
        dynamics: Of the robot; used by this condition's thread alone.
        options: What the condition is told.

    Raises:
        ConditionError: There is no coordinate that muscles could move.
        CompilationError: There is no C compiler, and the library is not in the cache.
    """

    name: str
    columns: tuple[Column, ...]
    least_rows: int = 1
    """Fewest muscles and motors that the question needs at all."""
    motors: bool = True
    """Whether motors of joints count as actuators; else their coordinates are left out."""

    def __init__(self, dynamics: Dynamics, options: Group) -> None:
        self.options = options
        self._actuation = actuation = Actuation(dynamics, motors=self.motors)
        if self.least_rows and not len(actuation.coordinates):
            raise ConditionError(
                f"{self.name}: robot '{dynamics.robot.name}' has no coordinate that is left to "
                "muscles: every joint has a motor, or there is none"
            )
        if self.least_rows:
            conditions_library()  # what cannot be compiled is said here, not at the first point
        self._dynamics = dynamics
        self._wraps = any(
            isinstance(element, Wrap)
            for muscle in dynamics.robot.muscles
            for element in muscle.path
        )

    @abc.abstractmethod
    def _answer(self, q: Array, state: BatchState) -> Results:
        """Answer for finite q and its state; the status of other points is written later."""

    def evaluate(self, q: Array) -> Results:
        """See `Condition.evaluate`.

        Raises:
            ShapeError: q does not have nq columns.
        """
        q = np.asarray(q, dtype=float)
        tree = self._dynamics.tree
        if q.ndim != 2 or q.shape[1] != tree.nq:
            raise ShapeError(f"q has shape {q.shape}, expected (n, {tree.nq})")
        q = unit_quaternions(tree, q)
        finite: npt.NDArray[np.bool_] = np.asarray(np.isfinite(q).all(axis=1))
        problems = np.full(len(q), PointStatus.FEASIBLE, dtype=np.uint8)
        problems[~finite] = PointStatus.NOT_FINITE
        if not finite.all():
            q = np.where(finite[:, None], q, tree.home)
        if len(self._actuation.lower) < self.least_rows:
            problems[finite] = PointStatus.NO_MUSCLES
        if (problems != PointStatus.FEASIBLE).all():
            return self._without_answer(problems)
        state = self._dynamics.batch(q, self._velocities(len(q)))
        # of finite coordinates a path that was not found makes NaN; so far away that squares
        # overflow, lengths are infinite, or NaN without any path to look for
        lost = ~np.isfinite(state.muscle_lengths).all(axis=1)
        if lost.any():
            far = np.isinf(state.muscle_lengths).any(axis=1) | (not self._wraps)
            problems[finite & lost & far] = PointStatus.NOT_FINITE
            problems[finite & lost & ~far] = PointStatus.PATH_NOT_FOUND
            for values in vars(state).values():
                values[lost] = 0.0
        results = self._answer(q, state)
        bad = problems != PointStatus.FEASIBLE
        results["status"][bad] = problems[bad]
        without = ~np.isin(results["status"], ANSWERS)
        for column in self.columns[1:]:
            results[column.name][without] = np.nan
        return results

    def _velocities(self, count: int) -> Array | None:
        """Return qd of every point; None for rest."""
        return None

    def _without_answer(self, problems: npt.NDArray[np.uint8]) -> Results:
        results: Results = {"status": problems}
        for column in self.columns[1:]:
            results[column.name] = np.full(len(problems), np.nan, dtype=column.dtype)
        return results
