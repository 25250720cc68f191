"""Two runs of one robot, compared at equal simulation times.

The quantities of run B are interpolated at the times of run A within the span that both cover.
With d = b - a over these times and the entries of a quantity (muscles, joints):

================== =========================================
mean_a, mean_b     mean of each run
mean_difference    mean of d
rms_difference     root of the mean of d^2
max_difference     largest size of d, and where and when it was
================== =========================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cards_core.errors import CardsError
from cards_core.json_values import json_value
from cards_core.typing import Array
from cards_viz.labels import joint_labels
from cards_viz.runs.recorded import RecordedRun, labels_of


class ComparisonError(CardsError):
    """Two runs that cannot be compared."""


@dataclass(frozen=True, eq=False)
class Series:
    """A quantity of one run.

    Attributes:
        time: Shape (K,), [s].
        values: Shape (K, k), in the unit of its `Quantity`.
    """

    time: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Quantity:
    """A quantity of both runs; a run that does not have it has None.

    Attributes:
        name: What it is, e.g. ``tension``.
        unit: It is in, e.g. ``N``.
        entries: Names of its entries, length k; one empty name where there is one value.
        a, b: Of the runs.
    """

    name: str
    unit: str
    entries: tuple[str, ...]
    a: Series | None
    b: Series | None

    @property
    def runs(self) -> tuple[Series | None, Series | None]:
        """Of both runs."""
        return self.a, self.b


@dataclass(frozen=True)
class Difference:
    """Numbers of the module's table, of one entry of a quantity or of all its entries together.

    Attributes:
        quantity, unit: As of `Quantity`.
        entry: Name of the entry; empty: of all entries together, or the only one.
        mean_a, mean_b, mean, rms, largest: In `unit`; NaN where a run does not have the quantity.
        at: When the largest difference was, [s].
        of: The entry that had it; empty where there is one value.
    """

    quantity: str
    unit: str
    entry: str
    mean_a: float
    mean_b: float
    mean: float
    rms: float
    largest: float
    at: float
    of: str

    def to_json(self) -> dict[str, Any]:
        """Return an entry for JSON; None where there is no number."""
        return {
            "quantity": self.quantity,
            "unit": self.unit,
            "entry": self.entry or None,
            "mean_a": json_value(self.mean_a),
            "mean_b": json_value(self.mean_b),
            "mean_difference": json_value(self.mean),
            "rms_difference": json_value(self.rms),
            "max_difference": json_value(self.largest),
            "max_at_s": json_value(self.at),
            "max_of": self.of or None,
        }


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs side by side.

    Attributes:
        a, b: The runs.
        begin, end: Span of time that both cover, [s].
        quantities: What is compared.
        notes: What cannot be compared, and why.
    """

    a: RecordedRun
    b: RecordedRun
    begin: float
    end: float
    quantities: tuple[Quantity, ...]
    notes: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, str]:
        """What the runs are called in figures and tables."""
        return f"A: {self.a.name}", f"B: {self.b.name}"

    def differences(self) -> list[Difference]:
        """Return the table: for each quantity all entries together, then each of several."""
        rows = []
        for quantity in self.quantities:
            rows.append(self._difference(quantity, None))
            if len(quantity.entries) > 1:
                rows += [self._difference(quantity, i) for i in range(len(quantity.entries))]
        return rows

    def _difference(self, quantity: Quantity, entry: int | None) -> Difference:
        columns = slice(None) if entry is None else slice(entry, entry + 1)
        names = quantity.entries[columns]
        mean_a, mean_b = (
            math.nan if one is None else _mean(one.values[self._within(one)][:, columns])
            for one in quantity.runs
        )
        mean = rms = largest = at = math.nan
        of = ""
        if quantity.a is not None and quantity.b is not None:
            inside = self._within(quantity.a)
            time, a = quantity.a.time[inside], quantity.a.values[inside][:, columns]
            difference = _interpolated(quantity.b, time)[:, columns] - a
            if np.isfinite(difference).any():
                mean, rms = _mean(difference), math.sqrt(_mean(difference**2))
                row, column = np.unravel_index(np.nanargmax(np.abs(difference)), difference.shape)
                largest, at = float(abs(difference[row, column])), float(time[row])
                of = names[column]
        return Difference(
            quantity.name,
            quantity.unit,
            "" if entry is None else names[0],
            mean_a,
            mean_b,
            mean,
            rms,
            largest,
            at,
            of,
        )

    def _within(self, series: Series) -> Any:
        return (series.time >= self.begin - 1e-9) & (series.time <= self.end + 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "robot": self.a.robot.name,
            "runs": {
                key: {
                    "name": run.name,
                    "controller": run.info.controller,
                    "mode": run.info.mode,
                    "end_s": float(run.time[-1]),
                }
                for key, run in (("a", self.a), ("b", self.b))
            },
            "begin_s": self.begin,
            "end_s": self.end,
            "differences": [row.to_json() for row in self.differences()],
            "notes": list(self.notes),
        }


def _mean(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if finite.size else math.nan


def _interpolated(series: Series, time: Array) -> Array:
    columns = [np.interp(time, series.time, column) for column in series.values.T]
    return np.column_stack(columns)


def compare(a: RecordedRun, b: RecordedRun) -> Comparison:
    """Compare two runs.

    Args:
        a: A run.
        b: A run of the same robot, perhaps with other parameters, another controller or load.

    Raises:
        ComparisonError: The robots differ in their muscles or coordinates, or the runs have no
            common time.
    """
    check_same_robot(a, b)
    begin = max(float(run.time[0]) for run in (a, b))
    end = min(float(run.time[-1]) for run in (a, b))
    if not begin < end:
        raise ComparisonError(
            f"{a.name} covers {a.time[0]:g} to {a.time[-1]:g} s, {b.name} {b.time[0]:g} to "
            f"{b.time[-1]:g} s (expected: a common time)"
        )
    muscles = a.muscle_names
    quantities = [
        Quantity("norm of tensions", "N", ("",), _norm_of_tensions(a), _norm_of_tensions(b)),
        Quantity("tension", "N", muscles, _tensions(a), _tensions(b)),
        Quantity("released length", "mm", muscles, _released(a), _released(b)),
        Quantity("temperature", "°C", muscles, _temperatures(a), _temperatures(b)),
    ]
    notes: list[str] = []
    quantities += _errors(a, b, notes)
    for quantity in quantities:
        lacking = [run.name for run, one in zip((a, b), quantity.runs, strict=True) if one is None]
        if len(lacking) == 1:
            notes.append(f"{lacking[0]} has no {quantity.name}")
    kept = tuple(q for q in quantities if q.runs != (None, None) and q.entries)
    return Comparison(a, b, begin, end, kept, tuple(notes))


def check_same_robot(a: RecordedRun, b: RecordedRun) -> None:
    """Raise `ComparisonError` unless two runs are of robots with equal muscles and coordinates."""
    one, other = a.robot, b.robot
    for what, first, second in (
        ("muscles", a.muscle_names, b.muscle_names),
        ("coordinates", one.tree.position_names, other.tree.position_names),
    ):
        if first != second:
            raise ComparisonError(
                f"{a.name} is a run of {one.name}, {b.name} one of {other.name}: they differ in "
                f"their {what} ({_first_difference(first, second)}) (expected: two runs of one "
                "robot)"
            )


def _first_difference(a: Sequence[str], b: Sequence[str]) -> str:
    if len(a) != len(b):
        return f"{len(a)} and {len(b)}"
    first, second = next(pair for pair in zip(a, b, strict=True) if pair[0] != pair[1])
    return f"'{first}' and '{second}'"


def _tensions(run: RecordedRun) -> Series:
    return Series(run.time, run.simulator.tensions)


def _norm_of_tensions(run: RecordedRun) -> Series:
    norm = np.linalg.norm(run.simulator.tensions, axis=1, keepdims=True)
    return Series(run.time, np.asarray(norm))


def _released(run: RecordedRun) -> Series | None:
    values = run.signal("relaxation")
    if values is None or run.controller is None:
        return None
    return Series(run.controller.time, 1e3 * values)


def _temperatures(run: RecordedRun) -> Series | None:
    values = run.temperatures
    return None if values is None else Series(run.time, values)


def _errors(a: RecordedRun, b: RecordedRun, notes: list[str]) -> list[Quantity]:
    """Return the norm of the tracking error, and each joint's where both track joints."""
    if a.info.space != b.info.space:
        notes.append("the errors cannot be compared: one run tracks joints, the other a frame")
        return []
    if a.info.space == "operational":
        return [Quantity("hand error", "mm", ("",), *(_error_norm(run, "m") for run in (a, b)))]
    labels = joint_labels(a.robot.tree)
    out = []
    for unit, joints in (("rad", "joint"), ("m", "sliding joint")):
        places = [i for i, other in enumerate(labels.error_units) if other == unit]
        if places:
            names = tuple(labels.error_names[i] for i in places)
            each = [
                None if run.controller is None
                or labels_of(run.robot.tree, run.controller, run.info) != labels
                else Series(run.controller.time, 1e3 * run.controller.error[:, places])
                for run in (a, b)
            ]  # fmt: skip
            norms = [_error_norm(run, unit) for run in (a, b)]
            out += [
                Quantity(f"norm of {joints} errors", f"m{unit}", ("",), *norms),
                Quantity(f"{joints} error", f"m{unit}", names, *each),
            ]
    return out


def _error_norm(run: RecordedRun, unit: str) -> Series | None:
    norm = run.error_norm(unit)
    if run.controller is None or norm is None:
        return None
    return Series(run.controller.time, 1e3 * norm[:, None])
