"""What the point analyses of ``./cards analyse`` share: motions in, tables and files out.

Every kind writes its result as a table and reads those of the others, so ``ik``, ``fk``, ``id``
and ``fd`` can be chained. A table is CSV with names in the first line, or NPZ. Columns are called
``quantity/name``: ``q/elbow``, ``qd/elbow``, ``l/biceps``, ``f/biceps``, and ``time``. Columns
without a quantity are the one that is asked for. An empty cell is NaN: a point that has no answer.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cards_bringup.cli.printed import array_text, number_text
from cards_bringup.option_types import POSITIVE
from cards_bringup.vectors import vector
from cards_core.analysis.status import PointStatus
from cards_core.checks import check_choice, check_fits, most_items
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError, ShapeError
from cards_core.exit_codes import of_answers
from cards_core.files import writing_together
from cards_core.json_values import json_value
from cards_core.robot.model import Tree
from cards_core.table_files import open_csv, read_npz
from cards_core.typing import Array

BYTES_PER_POINT = 1000.0
"""Memory that the result of a point takes besides its numbers."""

TABLE_NOTE = """
--input reads CSV (names in the first line), NPZ, .mot and .sto of OpenSim; columns: time,
q/JOINT, qd/JOINT, qdd/JOINT, l/MUSCLE, ld/MUSCLE, f/MUSCLE; a bare name is {main}/name. What
one kind writes, others read. Semicolons or tabs may separate, numbers have a decimal comma.
More: docs/analysis.md"""


@dataclass
class Motion:
    """Points of an analysis.

    Attributes:
        q: shape (n, nq); qd, qdd: shape (n, nv).
        time: shape (n,), [s]; None if the points have none.
        table: Everything that came from a file, by quantity, shape (n, width).
    """

    q: Array
    qd: Array
    qdd: Array
    time: Array | None = None
    table: dict[str, Array] = field(default_factory=dict)


@dataclass
class Series:
    """A quantity of a result.

    Attributes:
        title: Title in tables and plots.
        unit: SI.
        names: Names of its columns.
        values: shape (n, len(names)).
        plotted: Whether it is drawn.
        labels: Names in tables and plots, with units where these differ; default: the names.
    """

    title: str
    unit: str
    names: Sequence[str]
    values: Array
    plotted: bool = True
    labels: Sequence[str] = ()

    def resolved(self, key: str, dynamics: Dynamics) -> Series:
        """Return the series with the units of the robot's joints."""
        units = column_units(self.unit, key, len(self.names), dynamics.tree)
        if not units:
            return self
        if len(set(units)) == 1:
            return replace(self, unit=units[0])
        labels = [f"{n} [{u}]" if u else n for n, u in zip(self.names, units, strict=True)]
        return replace(self, labels=labels)


# Arguments -------------------------------------------------------------------------------------


def make_parser(subparsers: Any, kind: str, text: str, *, doc: str, examples: str) -> Any:
    """Return the parser of a kind with the arguments that all kinds have.

    Args:
        subparsers: What ``add_subparsers`` of the command gave.
        kind: Name of the analysis; also that of the files that it writes.
        text: One line for the list of analyses.
        doc: Description of the analysis, with RST literals.
        examples: Lines of the epilog.

    Returns:
        The `argparse.ArgumentParser` with ``robot``, ``--out``, ``--json`` and ``--quiet``.
    """
    parser = subparsers.add_parser(
        kind, help=text, description=doc.replace("``", ""), epilog=examples
    )
    parser.add_argument("robot", help="name under models/, or the path of an SDF file")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help=f"write {kind}.npz, .csv, .png")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    return parser


def add_motion(parser: Any, *, rates: bool = True) -> None:
    """Declare where the points come from."""
    group = parser.add_argument_group("points (default: home, at rest)")
    group.add_argument("--q", help="coordinates, comma separated")
    if rates:
        group.add_argument("--qd", help="velocities (default: zero)")
        group.add_argument("--qdd", help="accelerations (default: zero)")
    group.add_argument("--trajectory", metavar="NAME", help="of config/trajectories/<robot>.yaml")
    group.add_argument("--trajectory-file", metavar="FILE", default="", help="another file")
    group.add_argument(
        "--step", type=POSITIVE, default=0.01, help="of a trajectory [s] (%(default)s)"
    )
    group.add_argument("--input", type=Path, metavar="FILE", help="a table, see below")


def read_motion(args: argparse.Namespace, dynamics: Dynamics) -> Motion:
    """Return the points that the arguments name.

    Raises:
        CardsError: They contradict each other or the robot.
    """
    tree = dynamics.tree
    given = [name for name in ("q", "trajectory", "input") if getattr(args, name) is not None]
    if len(given) > 1:
        raise CardsError(f"--{given[0]} and --{given[1]} are given (expected: one of them)")
    if args.trajectory is None and args.trajectory_file:
        raise CardsError(
            "--trajectory-file without --trajectory (expected: the name of one in it)"
        )
    for name in ("qd", "qdd"):
        if given and given != ["q"] and getattr(args, name, None) is not None:
            raise CardsError(f"--{name} and --{given[0]} are given (expected: one of them)")
    if args.trajectory is not None:
        return _trajectory(args, dynamics)
    if args.input is not None:
        table = read_table(args.input, tree, main="q")
        if "q" not in table:
            raise CardsError(f"{args.input} has no coordinates (expected: columns q/JOINT)")
        n = len(table["q"])
        still = np.zeros((n, tree.nv))
        time = table["time"][:, 0] if "time" in table else None
        return Motion(table["q"], table.get("qd", still), table.get("qdd", still), time, table)
    q = vector(args.q, "q")
    rates = [vector(getattr(args, name, None), name) for name in ("qd", "qdd")]
    rows = [np.zeros(tree.nv) if value is None else tree.check_qd(value) for value in rates]
    point = np.asarray(tree.home if q is None else tree.check_q(q), dtype=float)
    return Motion(point[None], rows[0][None], rows[1][None])


def _trajectory(args: argparse.Namespace, dynamics: Dynamics) -> Motion:
    from cards_core.analysis.inverse_kinematics import follow
    from cards_core.trajectories import load_references
    from cards_core.trajectories.library import find_reference_file

    file = find_reference_file(args.trajectory_file, dynamics.robot)
    references = load_references(file, names=dynamics.tree.position_names)
    check_choice(args.trajectory, f"trajectory in {file}", references)
    reference = references[args.trajectory]
    count = check_points(reference.duration, args.step, dynamics)
    time = np.linspace(0.0, reference.duration, count + 1)
    y, yd, ydd = reference.sample(time)
    if reference.space == "joint":
        return Motion(y, yd, ydd, time)
    joint = follow(dynamics, y, yd, ydd)
    lost = np.flatnonzero(joint.status == PointStatus.UNREACHABLE)
    if lost.size:
        raise CardsError(
            f"trajectory '{args.trajectory}' leaves the reach of the robot at t = "
            f"{time[lost[0]]:.3f} s (expected: points that its operational frame gets to)"
        )
    return Motion(joint.q, joint.qd, joint.qdd, time)


def check_points(duration: float, step: float, dynamics: Dynamics) -> int:
    """Return the number of steps of a motion.

    Args:
        duration: Duration of the motion, [s].
        step: Requested time between points, [s].
        dynamics: Dynamics of the robot.

    Raises:
        CardsError: The points would not fit into the memory.
    """
    tree, robot = dynamics.tree, dynamics.robot
    numbers_each = 4 * (tree.nq + 4 * tree.nv + 4 * len(robot.muscles) + tree.nv**2) + 6 * len(
        robot.joints
    )
    bytes_each = 8.0 * numbers_each + BYTES_PER_POINT
    least = duration / most_items(bytes_each)
    remedy = f"--step {least:.2g} or more, or a shorter time: at most {{most}} points"
    check_fits(duration / step, bytes_each, f"points {step:g} s apart", remedy)
    return max(1, round(duration / step))


def tensions_of(args: argparse.Namespace, dynamics: Dynamics, motion: Motion) -> Array | None:
    """Return tensions (n, m) from ``--tensions`` or from the table; None if there are none.

    Args:
        args: Parsed options, with ``tensions``: one value, or one for each muscle, [N].
        dynamics: Dynamics of the robot with m muscles.
        motion: The n states; column ``f`` of its table counts where there is no option.

    Raises:
        CardsError: A tension is negative.
        ShapeError: There are neither one nor m values.
    """
    m = len(dynamics.robot.muscles)
    given = vector(args.tensions, "tensions")
    if given is None:
        return motion.table.get("f")
    if (given < 0.0).any():
        raise CardsError(f"--tensions {args.tensions} (expected: >= 0; tension pulls)")
    if given.shape == (1,):
        given = np.full(m, given[0])
    if given.shape != (m,):
        raise ShapeError(
            f"--tensions has {given.size} values (expected: one, or {m}: "
            f"{', '.join(muscle.name for muscle in dynamics.robot.muscles)})"
        )
    return np.tile(given, (len(motion.q), 1))


# Results ---------------------------------------------------------------------------------------


def finish(
    args: argparse.Namespace,
    dynamics: Dynamics,
    status: Sequence[int],
    series: dict[str, Series],
    *,
    time: Array | None = None,
    extra: dict[str, Any] | None = None,
) -> int:
    """Write and print a result; return the exit code.

    Args:
        args: Arguments of the command.
        dynamics: Dynamics of the robot.
        status: `PointStatus` of every point.
        series: Quantities of the result.
        time: Times of the points, shape (n,), [s].
        extra: Further entries; ``end`` is the status of a motion as a whole.
    """
    names = [PointStatus(int(value)).name for value in status]
    series = {key: item.resolved(key, dynamics) for key, item in series.items()}
    code = of_answers([extra["end"]] if extra and "end" in extra else names)
    lost = _lost(dynamics, names, series)
    files = [] if args.out is None else _write(args, dynamics, names, series, time)
    if args.json:
        content: dict[str, Any] = {
            "robot": dynamics.robot.name,
            "kind": args.kind,
            "status": names,
            "time": time,
            "names": {key: list(item.names) for key, item in series.items()},
            **{key: item.values for key, item in series.items()},
            **(extra or {}),
            "path_not_found": lost,
            "files": [str(file) for file in files],
        }
        print(json.dumps(content, default=json_value))
        return code
    _print(dynamics.robot.name, names, series, time)
    print()
    if lost:
        print(f"path not found: {', '.join(lost)}")
    for key, value in (extra or {}).items():
        unit = f" {UNITS[key]}" if key in UNITS else ""
        text = f"{value:.3g}" if isinstance(value, float) else value
        print(f"{key.replace('_', ' ')}: {text}{unit}")
    for file in files:
        print(file)
    return code


def _lost(dynamics: Dynamics, names: Sequence[str], series: dict[str, Series]) -> list[str]:
    """Return the muscles to whose paths the status PATH_NOT_FOUND is due."""
    if PointStatus.PATH_NOT_FOUND.name not in names:
        return []
    q = series["q"].values
    points = (np.array(names) == PointStatus.PATH_NOT_FOUND.name) & np.isfinite(q).all(axis=1)
    lengths = dynamics.batch(q[points]).muscle_lengths
    missing = np.isnan(lengths).any(axis=0)
    return [dynamics.robot.muscles[i].name for i in np.flatnonzero(missing)]


def _write(
    args: argparse.Namespace,
    dynamics: Dynamics,
    status: list[str],
    series: dict[str, Series],
    time: Array | None,
) -> list[Path]:
    from cards_viz.plots.analyses import Quantity, over_points
    from cards_viz.plots.drawing import save

    names = [f"{args.kind}.{ending}" for ending in ("npz", "csv", "png")]
    arrays: dict[str, Any] = {key: item.values for key, item in series.items()}
    arrays |= {f"{key}_names": np.array(item.names) for key, item in series.items()}
    if time is not None:
        arrays["time"] = time
    codes = np.array([PointStatus[name] for name in status], dtype=np.uint8)
    plotted = [
        Quantity(item.title, item.unit, item.labels or item.names, item.values)
        for item in series.values()
        if item.plotted
    ]
    x = np.arange(len(status), dtype=float) if time is None else time
    label = "point" if time is None else "time [s]"
    title = f"{args.kind} of {dynamics.robot.name}"
    with writing(args.out) as work:
        np.savez_compressed(work / names[0], status=codes, **arrays)
        _write_csv(work / names[1], status, series, time)
        save(over_points(x, label, plotted, title), work / names[2])
    return [args.out / name for name in names]


def _write_csv(
    path: Path, status: list[str], series: dict[str, Series], time: Array | None
) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        head = [f"{key}/{name}" for key, item in series.items() for name in item.names]
        writer.writerow((["time"] if time is not None else []) + ["status", *head])
        for i, name in enumerate(status):
            row = [repr(float(x)) for item in series.values() for x in item.values[i]]
            begin = [] if time is None else [repr(float(time[i]))]
            writer.writerow([*begin, name, *row])


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """Yield a folder whose files are moved to ``folder`` together, once all are complete.

    Raises:
        CardsError: The folder cannot be written.
    """
    with in_words(folder), writing_together(folder) as work:
        yield work


@contextlib.contextmanager
def in_words(folder: Path) -> Iterator[None]:
    """Report that a folder cannot be written. Raises `CardsError` instead of `OSError`."""
    try:
        yield
    except OSError as error:
        raise CardsError(
            f"{folder} cannot be written: {error.strerror or error} (expected: a folder with "
            "space and permission)"
        ) from error


def _print(robot: str, status: list[str], series: dict[str, Series], time: Array | None) -> None:
    counts = {name: status.count(name) for name in dict.fromkeys(status)}
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    span = "" if time is None else f", {time[-1] - time[0]:.3f} s"
    many = len(status) > 1
    print(f"{robot}: {len(status)} points{span}: {told}" if many else f"{robot}: {status[0]}")
    for item in series.values():
        idle = not item.plotted and not item.values.any()
        if not item.values.size or idle:
            continue
        unit = f" [{item.unit}]" if item.unit and not item.labels else ""
        print(f"\n{item.title}{unit}")
        size = math.isqrt(len(item.names))
        if not many and len(item.names) == size * size and "," in item.names[0]:
            print(array_text(item.values[0].reshape(size, size)))
            continue
        names = item.labels or item.names
        width = max(10, *(len(name) for name in names))
        if many:
            print(f"  {'':<{width}} {'min':>14} {'max':>14} {'mean':>14}")
        for name, column in zip(names, item.values.T, strict=True):
            numbers_ = _summary(column) if many else [column[0]]
            print(f"  {name:<{width}} " + " ".join(map(number_text, numbers_)))


def _summary(column: Array) -> list[float]:
    known = column[np.isfinite(column)]
    return [known.min(), known.max(), known.mean()] if known.size else [math.nan] * 3


UNITS = {"energy_error": "J"}
"""Of single numbers of a result."""


def column_units(unit: str, key: str, count: int, tree: Tree) -> list[str]:
    """Return the unit of every column.

    Args:
        unit: Units of revolute and of prismatic joints, e.g. ``rad or m`` or ``Nm/rad, N/m``.
        key: The quantity; ``q`` has an entry per coordinate, others one per velocity.
        count: Number of columns.
        tree: Has the joints.

    Returns:
        A unit per column, empty for entries of a quaternion; an empty list where the unit is that
        of all columns already, or differs in a way that columns do not tell.
    """
    turning, either, sliding = unit.partition(" or ")
    if not either:
        turning, either, sliding = unit.partition(", ")
    if not either or not count:
        return []
    kinds = {node.kind == "prismatic" for node in tree.nodes}
    if len(kinds) == 1 and not (key == "q" and tree.nq != tree.nv):
        return [sliding if kinds == {True} else turning] * count
    if count != (tree.nq if key == "q" else tree.nv) or ", " in unit:
        return []
    out: list[str] = []
    for node in tree.nodes:
        if node.kind == "ball" and key == "q":
            out += [""] * 4
        else:
            out += [sliding if node.kind == "prismatic" else turning] * node.nv
    return out


def read_table(path: Path, tree: Tree, *, main: str) -> dict[str, Array]:
    """Read a CSV or NPZ table.

    Args:
        path: The file.
        tree: Gives the names and the order of the columns.
        main: Quantity of columns that have a bare name.

    Returns:
        Quantity (``q``, ``qd``, ``qdd``, ``l``, ``ld``, ``f``, ``time``) to array, shape
        (n, width), in the robot's order.

    Raises:
        CardsError: No such file, no table, or columns that do not fit the robot.
    """
    muscles = tuple(muscle.name for muscle in tree.robot.muscles)
    names = {
        "q": tree.position_names,
        "qd": tree.velocity_names,
        "qdd": tree.velocity_names,
        "l": muscles,
        "ld": muscles,
        "f": muscles,
        "time": ("time",),
    }
    if not path.is_file():
        wrong = "is a folder" if path.is_dir() else "does not exist"
        raise CardsError(f"{path} {wrong} (expected: a CSV or NPZ file)")
    npz = path.suffix == ".npz"
    out = _read_npz(path, names) if npz else _read_csv(path, names, main, tree)
    counts = {len(values) for values in out.values()}
    if len(counts) > 1:
        raise CardsError(f"{path}: arrays of {sorted(counts)} rows (expected: one number of rows)")
    if counts == {0}:
        raise CardsError(f"{path} has no rows (expected: one for each point)")
    return out


def _read_npz(path: Path, names: dict[str, tuple[str, ...]]) -> dict[str, Array]:
    out = {}
    for key, values in read_npz(path, names).items():
        rows = values[:, None] if key == "time" and values.ndim == 1 else np.atleast_2d(values)
        if rows.ndim != 2 or rows.shape[1] != len(names[key]):
            raise CardsError(
                f"{path}: '{key}' has shape {values.shape} (expected: (n, {len(names[key])}): "
                f"{', '.join(names[key])})"
            )
        out[key] = rows
    return out


def _own_name(name: str) -> str:
    """Return the name of a column; OpenSim's states are called ``/jointset/hip/flexion/value``."""
    *_, coordinate, kind = ("", "", *name.split("/"))
    quantity = {"value": "q", "speed": "qd"}.get(kind)
    return f"{quantity}/{coordinate}" if name.startswith("/") and quantity else name


def _read_csv(
    path: Path, names: dict[str, tuple[str, ...]], main: str, tree: Tree
) -> dict[str, Array]:
    csv = open_csv(path, degrees=True)
    head = [_own_name(name) for name in csv.head]
    wanted = {
        name: (key, i)
        for key, entries in names.items()
        for i, entry in enumerate(entries)
        for name in ((entry,) if key == "time" else (f"{key}/{entry}",))
    }
    wanted |= {name: (main, i) for i, name in enumerate(names[main]) if name != "time"}
    used = {key for key, _ in (wanted[name] for name in head if name in wanted)}
    if not used - {"time"}:
        raise CardsError(
            f"{path}:1: none of the columns {', '.join(head)} is known (expected: "
            f"{main}/{', '.join(names[main])} and others)"
        )
    columns = [(i, *wanted[name]) for i, name in enumerate(head) if name in wanted]
    for column, key, i in columns:  # a bare name and the full one are the same
        if (key, i) in {(k, j) for other, k, j in columns if other < column}:
            raise CardsError(f"{path}:1: column '{head[column]}' is there twice (expected: once)")
    for key in used:
        there = {i for _, k, i in columns if k == key}
        missing = [entry for i, entry in enumerate(names[key]) if i not in there]
        if missing:
            raise CardsError(
                f"{path}:1: no column for {', '.join(missing)} (expected: {key}/NAME for each of "
                f"{', '.join(names[key])})"
            )
    rows = [
        [csv.number(line, head[column], cells[column], empty=True) for column, _, _ in columns]
        for line, cells in csv.rows()
    ]
    table = np.array(rows).reshape(-1, len(columns))
    out = {key: np.empty((len(table), len(names[key]))) for key in used}
    for k, (_, key, i) in enumerate(columns):  # others are results of other kinds, and status
        out[key][:, i] = table[:, k]
    for key in ("q", "qd", "qdd"):
        units = column_units("rad or m", key, len(names[key]), tree)
        if csv.form.degrees and key in out:
            out[key] *= [math.radians(1.0) if unit == "rad" else 1.0 for unit in units]
    return out
