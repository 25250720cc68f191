"""The logs of simulator and controller: tables of arrays, checked as they are read.

Both hosts (ROS nodes and the runner in one process) write the same keys, so that everything made
from a run (summary, plots, recording) starts here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cards_core.control.interface import ControlStatus
from cards_core.errors import CardsError, DescriptionError
from cards_core.foreign_files import read_arrays
from cards_core.loop.control_loop import SIGNAL
from cards_core.typing import Array


class RunLogError(CardsError):
    """A log of a run that is missing, damaged or does not fit the robot.

    Args:
        source: File or object the problem is in.
        problem: What is wrong.
        expected: What would be right.
    """

    def __init__(self, source: str, problem: str, expected: str | None = None) -> None:
        self.source = source
        message = f"{source}: {problem}"
        super().__init__(f"{message} (expected: {expected})" if expected else message)


@dataclass(frozen=True, eq=False)
class SimulatorLog:
    """One row per simulation step; T rows, nq coordinates, nv velocities, m muscles.

    Attributes:
        time: Simulation time, shape (T,), [s], strictly increasing.
        q: Joint coordinates, shape (T, nq).
        qd: Joint velocities, shape (T, nv).
        muscle_lengths: Shape (T, m), [m].
        muscle_rates: Shape (T, m), [m/s].
        tensions: Tensions that acted, shape (T, m), [N].
        actuators: Actuator states, shape (T, k); k is 0 for logs without any.
        actuator_names: Their names, ``muscle/state``, length k.
        gate: `cards_core.muscles.command.GateCondition` of each step, shape (T,); zeros for logs
            without it.
        refused: Commands refused so far, shape (T,), likewise.
        accepted: Commands accepted so far, shape (T,); NaN for logs without it.
        behind: Real time lost so far, shape (T,), [s], likewise.
        efforts: Efforts of the joint motors that acted, shape (T, j), [Nm] or [N]; j is 0 for
            logs without any.
        motor_names: Of the motors, length j.
    """

    time: Array
    q: Array
    qd: Array
    muscle_lengths: Array
    muscle_rates: Array
    tensions: Array
    actuators: Array
    actuator_names: tuple[str, ...]
    gate: Array
    refused: Array
    behind: Array
    efforts: Array = field(default_factory=lambda: np.zeros((0, 0)))
    motor_names: tuple[str, ...] = ()
    accepted: Array = field(default_factory=lambda: np.full(1, np.nan))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], source: str = "simulator log") -> Self:
        """Build a log from named arrays. Raises `RunLogError`."""
        named = {"actuators": "actuator_names", "efforts": "motor_names"}
        names = [item.name for item in fields(cls) if item.name not in (*named, *named.values())]
        names = [name for name in names if name not in _OPTIONAL or name in arrays]
        labels = {}
        for key, label in named.items():
            labels[label] = tuple(str(name) for name in np.ravel(arrays.get(label, ())))
            if labels[label] or key in arrays:
                names.append(key)
        table = _table(arrays, names, source)
        for key, label in named.items():
            values = table.setdefault(key, np.zeros((len(table["time"]), 0)))
            if values.shape[1] != len(labels[label]):
                raise RunLogError(
                    source,
                    f"'{key}' has {values.shape[1]} columns",
                    f"one for each of the {len(labels[label])} names in '{label}'",
                )
        for name in ("gate", "refused", "behind"):
            table.setdefault(name, np.zeros(len(table["time"])))
        table.setdefault("accepted", np.full(len(table["time"]), np.nan))
        return cls(
            **table, actuator_names=labels["actuator_names"], motor_names=labels["motor_names"]
        )

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read ``simulator.npz``. Raises `RunLogError`."""
        known = {item.name for item in fields(cls)}
        return cls.from_arrays(_read(path, known.__contains__), str(path))


@dataclass(frozen=True, eq=False)
class LoggedSignal:
    """A `cards_core.control.interface.Signal` as it was recorded.

    Attributes:
        values: Shape (K, k).
        names: What its entries belong to, e.g. muscles, length k.
        field: Of a JointState: ``position`` [m] or [rad], ``velocity``, ``effort`` [N] or [Nm].
    """

    values: Array
    names: tuple[str, ...]
    field: str


@dataclass(frozen=True, eq=False)
class ControllerLog:
    """One row per controller step; K rows, d controlled coordinates, m muscles.

    Attributes:
        time: Stamp of the state that the step answered, shape (K,), [s], strictly increasing.
        desired, actual: Controlled coordinates, shape (K, d).
        desired_dot: Their desired velocities, shape (K, d).
        error: Shape (K, d), desired minus actual (in the tangent space for quaternions).
        tensions: Commanded tensions, shape (K, m), [N].
        efforts: Commanded efforts of the joint motors, shape (K, j), [Nm] or [N]; j is 0 for logs
            without any.
        status: `cards_core.control.ControlStatus` of each step, shape (K,).
        residual: Norm of what the equations of the QP lack, shape (K,); NaN for invalid states.
        loop_us: Duration of each step, shape (K,), [us].
        missed_deadlines: Steps that came too late so far, shape (K,), never decreasing.
        tolerance_length, tolerance_angle: `cards_core.trajectories.Tolerance` of what was
            tracked, shape (K,), [m] and [rad]; NaN where it is not known.
        remaining: What was left of the reference, shape (K,), [s]; NaN if it has no end.
        signals: `Controller.signals` by name.
    """

    time: Array
    desired: Array
    desired_dot: Array
    actual: Array
    error: Array
    tensions: Array
    status: npt.NDArray[np.int64]
    residual: Array
    loop_us: Array
    missed_deadlines: npt.NDArray[np.int64]
    tolerance_length: Array
    tolerance_angle: Array
    remaining: Array
    efforts: Array = field(default_factory=lambda: np.zeros((0, 0)))
    signals: Mapping[str, LoggedSignal] = field(default_factory=dict)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], source: str = "controller log") -> Self:
        """Build a log from named arrays. Raises `RunLogError`."""
        others = ("missed_deadlines", "signals")
        names = [item.name for item in fields(cls) if item.name not in others]
        names = [name for name in names if name not in (*_OPTIONAL, "efforts") or name in arrays]
        table = _table(arrays, names, source)
        rows = len(table["time"])
        table.setdefault("efforts", np.zeros((rows, 0)))
        missed = arrays.get("missed_deadlines", 0)
        column = np.asarray(missed)
        if column.ndim == 0:
            column = np.full(rows, column)
        if column.shape != (rows,) or not np.issubdtype(column.dtype, np.number):
            raise RunLogError(
                source,
                f"'missed_deadlines' has shape {column.shape} and type {column.dtype}",
                f"one count, or one for each of the {rows} rows",
            )
        table["missed_deadlines"] = np.nan_to_num(column.astype(float)).astype(np.int64)
        for name in ("tolerance_length", "tolerance_angle", "remaining"):
            table.setdefault(name, np.full(rows, np.nan))
        return cls(**table, signals=_signals(arrays, source, rows))

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read ``controller.npz``. Raises `RunLogError`."""
        known = {item.name for item in fields(cls)}
        arrays = _read(path, lambda name: name in known or name.startswith(SIGNAL))
        return cls.from_arrays(arrays, str(path))

    def arrays(self) -> dict[str, Any]:
        """Return named arrays, of which `from_arrays` makes the log again."""
        out = dict(vars(self))
        signals = out.pop("signals")
        out["signal_names"] = np.array(list(signals), dtype=np.str_)
        out["signal_fields"] = np.array([s.field for s in signals.values()], dtype=np.str_)
        for name, signal in signals.items():
            out[SIGNAL + name] = signal.values
            out[f"{SIGNAL}{name}_entries"] = np.array(signal.names, dtype=np.str_)
        return out


SIGNAL_FIELDS = ("position", "velocity", "effort")
"""Fields of `LoggedSignal`."""


def _signals(arrays: Mapping[str, Any], source: str, rows: int) -> dict[str, LoggedSignal]:
    """Read what a controller showed of itself; nothing from logs of other programs."""
    names = [str(name) for name in np.ravel(arrays.get("signal_names", ()))]
    kinds = [str(name) for name in np.ravel(arrays.get("signal_fields", ()))]
    if len(names) != len(kinds):
        raise RunLogError(
            source, f"'signal_fields' has {len(kinds)} entries", f"{len(names)}, as 'signal_names'"
        )
    found = {}
    for name, kind in zip(names, kinds, strict=True):
        key = SIGNAL + name
        if kind not in SIGNAL_FIELDS:
            raise RunLogError(
                source, f"the field of signal '{name}' is '{kind}'", " or ".join(SIGNAL_FIELDS)
            )
        entries = tuple(str(entry) for entry in np.ravel(arrays.get(f"{key}_entries", ())))
        values = _table({"time": arrays["time"], key: arrays.get(key)}, ["time", key], source)[key]
        if values.shape != (rows, len(entries)):
            raise RunLogError(
                source, f"'{key}' has shape {values.shape}", f"({rows}, {len(entries)})"
            )
        found[name] = LoggedSignal(values, entries, kind)
    return found


_OPTIONAL = frozenset(
    {
        "accepted",
        "behind",
        "gate",
        "refused",
        "remaining",
        "tolerance_angle",
        "tolerance_length",
    }
)
"""Keys that logs of other programs need not have."""

_MAY_BE_NAN = frozenset(
    {
        "accepted",
        "actuator_names",
        "motor_names",
        "remaining",
        "tolerance_angle",
        "tolerance_length",
    }
)
"""What says nothing about a run where it is not finite."""

_COLUMNS = frozenset({"time", "status", "residual", "loop_us"}) | _OPTIONAL
"""Keys with one value per row; all others have one row of values per row."""


def _read(path: Path | str, wanted: Callable[[str], bool]) -> dict[str, npt.NDArray[Any]]:
    try:
        return read_arrays(path, wanted, "an undamaged NumPy .npz archive")
    except DescriptionError as error:
        raise RunLogError(str(path), error.problem, error.expected) from error


def _table(arrays: Mapping[str, Any], names: list[str], source: str) -> dict[str, Any]:
    """Return the named arrays with equal numbers of rows."""
    missing = [name for name in names if name not in arrays]
    if missing:
        raise RunLogError(source, f"missing {', '.join(missing)}", f"the keys {', '.join(names)}")
    out: dict[str, Any] = {}
    for name in names:
        values = np.asarray(arrays[name])
        if not np.issubdtype(values.dtype, np.number) and values.dtype != np.bool_:
            raise RunLogError(source, f"'{name}' has type {values.dtype}", "numbers")
        ndim = 1 if name in _COLUMNS else 2
        if values.ndim != ndim:
            raise RunLogError(source, f"'{name}' has shape {values.shape}", f"{ndim} dimensions")
        rows = len(out.get("time", values))
        if len(values) != rows:  # before the copies, which may be of gigabytes
            raise RunLogError(
                source, f"'{name}' has {len(values)} rows, 'time' has {rows}", "as many as 'time'"
            )
        if name == "status":
            # logs may hold it as a float; a step without a status counts as the worst
            values = np.nan_to_num(values.astype(float), nan=float(ControlStatus.INVALID_STATE))
            out[name] = values.astype(np.int64)
        else:
            out[name] = values.astype(np.float64)
    rows = len(out["time"])
    if rows == 0:
        raise RunLogError(source, "holds no rows", "at least one step")
    time = out["time"]
    if not np.all(np.isfinite(time)) or np.any(np.diff(time) <= 0.0):
        steps = np.diff(time)
        row = 1 + int(np.argmax(~(steps > 0.0))) if rows > 1 else 0
        raise RunLogError(source, f"'time' does not increase at row {row}", "increasing seconds")
    return out


def not_finite(log: SimulatorLog | ControllerLog) -> list[str]:
    """Return one sentence for every array of ``log`` with values that are not finite."""
    found = []
    arrays = {item.name: getattr(log, item.name) for item in fields(log)}
    for name, signal in arrays.pop("signals", {}).items():
        arrays[f"signal {name}"] = signal.values
    for name, array in arrays.items():
        if name in _MAY_BE_NAN:
            continue
        values = np.atleast_2d(np.asarray(array, dtype=float).T).T
        bad = ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1)))
            found.append(
                f"{name}: {int(bad.sum())} of {bad.size} values are not finite, "
                f"first at t = {log.time[row]:.6g} s"
            )
    return found
