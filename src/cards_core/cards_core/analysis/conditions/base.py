"""What a condition is: a question about a point that has a yes, a no, or a reason for neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy.typing as npt

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
