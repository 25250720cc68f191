"""Read a CASPR trajectories file into knots: times, positions, derivatives, blend times.

The first point is at t = 0. With ``time_definition="relative"`` the time of a point is the
duration of the segment that ends there, with ``absolute`` it is counted from the start. Vectors
stay in CASPR's order here; `cards_core.formats.caspr.references` turns knots into functions
of time in our order.

A trajectory that cannot be read is left out with a warning that quotes the error: the robot does
not depend on it.

Sampled joint trajectories are in text files (``.traj``) of their own. Their first line is
``time_step,dt``. The other lines hold a sample each: ``t,<time>,p,<q>,v,<qd>,a,<qdd>``, or without
the time, ``q,<q>,v,<qd>,a,<qdd>``, as older files have it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.foreign_files import read_bytes
from cards_core.formats.caspr.fields import MAX_VALUES, Node
from cards_core.formats.caspr.operational_spaces import OperationalFile, OperationalSpace
from cards_core.formats.imports.findings import FindingList, NameTable
from cards_core.typing import Array

# Sampled files ---------------------------------------------------------------------------------


MAX_BYTES = 100_000_000
"""Largest file that is read."""


@dataclass(frozen=True, eq=False)
class Samples:
    """A sampled trajectory of n coordinates.

    Attributes:
        time_step: [s].
        times: From 0, shape (k,), [s].
        positions, velocities, accelerations: Shape (k, n).
    """

    time_step: float
    times: Array
    positions: Array
    velocities: Array
    accelerations: Array


def read_sampled_file(path: Path, size: int) -> Samples:
    """Read a ``.traj`` file with ``size`` coordinates.

    Raises:
        DescriptionError: The file cannot be read or a line is not as above.
    """
    lines = read_bytes(path, most=MAX_BYTES).decode("utf-8", "replace").splitlines()
    words = lines[0].split(",") if lines else []
    step = _float(words[1]) if len(words) == 2 and words[0].strip() == "time_step" else math.nan
    if not (math.isfinite(step) and step > 0.0):
        raise DescriptionError(
            "no time step", source=str(path), line=1, expected="time_step,<seconds>"
        )
    rows: list[Array] = []
    for number, text in enumerate(lines[1:], start=2):
        if text.strip():
            rows.append(_sample(text, path, number, size, step * len(rows)))
    if len(rows) < 2:
        raise DescriptionError(f"{len(rows)} samples", source=str(path), expected="at least two")
    table: Array = np.vstack(rows)
    times: Array = step * np.arange(len(rows), dtype=float)
    return Samples(
        step,
        times,
        table[:, :size],
        table[:, size : 2 * size],
        table[:, 2 * size :],
    )


def _sample(text: str, path: Path, line: int, size: int, time: float) -> Array:
    words = [word.strip() for word in text.split(",")]
    if words[0] == "t" and len(words) > 1:
        stated = _float(words[1])
        if not abs(stated - time) <= 1e-6 + 1e-9 * time:
            raise DescriptionError(
                f"time {words[1]} of sample {line - 1}",
                source=str(path),
                line=line,
                expected=f"{time:g}, a multiple of the time step",
            )
        words = words[2:]
    labels = words[:: size + 1]
    numbers = [word for i, word in enumerate(words) if i % (size + 1)]
    if len(words) != 3 * (size + 1) or labels[0] not in ("p", "q") or labels[1:] != ["v", "a"]:
        raise DescriptionError(
            "not a sample of this robot",
            source=str(path),
            line=line,
            expected=f"p,v,a each followed by {size} numbers",
        )
    values = np.array([_float(word) for word in numbers])
    if not np.all(np.isfinite(values)):
        raise DescriptionError(
            "a value is not a finite number", source=str(path), line=line, expected="numbers"
        )
    return values


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


# Trajectories ----------------------------------------------------------------------------------


Space = Literal["joint", "operational"]

KINDS: Mapping[str, int] = {
    "linear_spline_trajectory": 0,
    "cubic_spline_trajectory": 1,
    "quintic_spline_trajectory": 2,
    "cubic_spline_average_velocity_trajectory": 0,
    "parabolic_blend_trajectory": 0,
    "file_trajectory": 2,
}
"""Kinds of trajectories and how many derivatives every point must give."""

OPERATIONAL_IN_CASPR = ("linear_spline_trajectory", "quintic_spline_trajectory")
"""Kinds that CASPR implements for operational trajectories too."""


@dataclass(frozen=True, eq=False)
class CasprTrajectory:
    """Knots of a trajectory, in CASPR's order of coordinates.

    Attributes:
        name: Our name, unique in the file (the file's id, made safe).
        original_name: The file's id.
        space: ``joint`` or ``operational``.
        kind: CASPR's tag.
        times: From 0, strictly increasing, shape (k,), [s].
        positions: Shape (k, n), [rad] or [m].
        velocities, accelerations: As positions, or None where the kind has none; for the
            average-velocity kind only the first and last row of the velocities count.
        blend_times: Parabolic blend time of each segment, shape (k - 1,), [s], or None.
        time_step: CASPR's sampling step, [s]; None if the file gives none.
        operational_space: Name of the set that y belongs to, for operational trajectories.
        componentwise: True if Euler angles are interpolated one by one, because the turn about
            one fixed axis that CASPR makes does not exist for these knots.
        line: Line in the file.
    """

    name: str
    original_name: str
    space: Space
    kind: str
    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None
    blend_times: Array | None = None
    time_step: float | None = None
    operational_space: str | None = None
    componentwise: bool = False
    line: int | None = None

    @property
    def duration(self) -> float:
        """Time of the last point, [s]."""
        return float(self.times[-1])


def read_trajectories(
    root: Node, size: int, operational: OperationalFile, findings: FindingList
) -> tuple[CasprTrajectory, ...]:
    """Read ``<trajectories>``.

    Args:
        root: Root element.
        size: Number of joint coordinates.
        operational: Operational spaces, to which operational trajectories are matched by size.
        findings: Takes remarks.
    """
    sections: dict[str, Space] = {
        "joint_trajectories": "joint",
        "operational_trajectories": "operational",
    }
    root.warn_unknown(findings, children=sections)
    names = NameTable()
    out: list[CasprTrajectory] = []
    for section in root:
        if section.tag not in sections:
            continue
        section.warn_unknown(findings, children=KINDS)
        for element in section:
            if element.tag not in KINDS:
                continue
            try:
                out.append(
                    _read_trajectory(
                        element,
                        sections[section.tag],
                        size,
                        operational,
                        names=names,
                        findings=findings,
                    )
                )
            except DescriptionError as error:
                findings.warn(
                    "trajectory-skipped",
                    f"trajectory '{element.get('id') or '?'}'",
                    f"left out: {error.problem} (expected: {error.expected})",
                    at=error,
                )
    return tuple(out)


def _read_trajectory(
    element: Node,
    space: Space,
    size: int,
    operational: OperationalFile,
    *,
    names: NameTable,
    findings: FindingList,
) -> CasprTrajectory:
    original = element.attribute("id")
    if element.tag == "file_trajectory":
        element.warn_unknown(findings, attributes=("id", "filename"))
        knots = _read_file(element, size, space)
    else:
        element.warn_unknown(
            findings,
            children=("points",),
            attributes=("id", "time_step", "time_definition", "blend_time_default"),
        )
        knots = _read_points(element, space, findings)
    n = knots.positions.shape[1]
    space_name: str | None = None
    if space == "joint":
        if n != size:
            raise element.error(
                f"points have {n} coordinates", f"{size}, one per joint coordinate"
            )
    else:
        found = _match_space(element, n, operational)
        if found.size != n:
            knots = knots.select(["xyz".index(axis) for axis in found.entries[0].axes])
            findings.warn(
                "trajectory-axes",
                f"trajectory '{original}'",
                f"points have 3 coordinates, operational space '{found.name}' has the axes "
                f"{found.entries[0].axes}: the points were taken as x y z and the others dropped",
                at=element,
            )
        space_name = found.name
        if element.tag not in OPERATIONAL_IN_CASPR:
            findings.note(
                "trajectory-not-in-caspr",
                f"trajectory '{original}'",
                f"CASPR does not implement {element.tag} for operational spaces; we do",
                at=element,
            )
    return CasprTrajectory(
        name=names.claim(original, "trajectory"),
        original_name=original,
        space=space,
        kind=element.tag,
        times=knots.times,
        positions=knots.positions,
        velocities=knots.velocities,
        accelerations=knots.accelerations,
        blend_times=knots.blend_times,
        time_step=knots.time_step,
        operational_space=space_name,
        line=element.line,
    )


@dataclass(frozen=True, eq=False)
class _Knots:
    times: Array
    positions: Array
    velocities: Array | None
    accelerations: Array | None
    blend_times: Array | None
    time_step: float | None

    def select(self, columns: list[int]) -> _Knots:
        """Return the knots with some of the coordinates."""

        def pick(table: Array | None) -> Array | None:
            return None if table is None else table[:, columns]

        return replace(
            self,
            positions=self.positions[:, columns],
            velocities=pick(self.velocities),
            accelerations=pick(self.accelerations),
        )


def _read_file(element: Node, size: int, space: Space) -> _Knots:
    if space == "operational":
        raise element.error("a file trajectory of operational coordinates", "joint coordinates")
    name = element.attribute("filename")
    # only the last component: a model must not make us read files elsewhere
    path = Path(element.source).parent / Path(name.replace("\\", "/")).name
    if not path.is_file():
        raise element.error(f"file '{name}' does not exist", f"the file at {path}")
    samples = read_sampled_file(path, size)
    return _Knots(
        samples.times,
        samples.positions,
        samples.velocities,
        samples.accelerations,
        None,
        samples.time_step,
    )


def _read_points(element: Node, space: Space, findings: FindingList) -> _Knots:
    definition = element.attribute("time_definition")
    if definition not in ("relative", "absolute"):
        raise element.error(f'time_definition="{definition}"', "relative or absolute")
    time_step = element.attribute_number("time_step") if element.get("time_step") else None
    letter = "q" if space == "joint" else "y"
    tags = (letter, f"{letter}_dot", f"{letter}_ddot")
    container = element.child("points")
    container.warn_unknown(findings, children=("point",))
    points = [child for child in container if child.tag == "point"]
    if len(points) < 2:
        raise container.error(f"{len(points)} points", "at least two")
    if len(points) > MAX_VALUES:
        raise container.error(f"{len(points)} points", f"at most {MAX_VALUES}")
    for point in points:
        point.warn_unknown(findings, children=tags, attributes=("time", "blend_time"))
    times = _times(points, relative=definition == "relative")
    positions = np.array(_rows(points, tags[0], None))
    n = positions.shape[1]
    orders = KINDS[element.tag]
    velocities = accelerations = blend_times = None
    if orders >= 1:
        velocities = np.array(_rows(points, tags[1], n))
    if orders >= 2:
        accelerations = np.array(_rows(points, tags[2], n))
    if element.tag == "cubic_spline_average_velocity_trajectory":
        velocities = np.zeros_like(positions)
        velocities[[0, -1]] = _rows([points[0], points[-1]], tags[1], n)
    if element.tag == "parabolic_blend_trajectory":
        blend_times = _blend_times(element, points, times)
    return _Knots(times, positions, velocities, accelerations, blend_times, time_step)


def _times(points: Sequence[Node], *, relative: bool) -> Array:
    values = [0.0]
    first = points[0].get("time")
    if first and points[0].attribute_number("time") != 0.0:
        raise points[0].error(f'time="{first}" of the first point', "0, or no time")
    for point in points[1:]:
        time = point.attribute_number("time")
        values.append(values[-1] + time if relative else time)
        if not values[-1] > values[-2]:
            raise point.error(
                f"time {time:g} s is not after the point before",
                "a positive duration" if relative else f"more than {values[-2]:g}",
            )
    return np.array(values)


def _rows(points: Sequence[Node], tag: str, size: int | None) -> list[Array]:
    rows: list[Array] = []
    for point in points:
        rows.append(point.child(tag).vector(size))
        size = len(rows[0])
        if size == 0:
            raise point.child(tag).error("is empty", "numbers separated by blanks")
    return rows


def _blend_times(element: Node, points: Sequence[Node], times: Array) -> Array:
    """Return the blend time of every segment: of the point that ends it, or the default."""
    out = np.empty(len(points) - 1)
    for i, point in enumerate(points[1:]):
        owner, name = (
            (point, "blend_time") if point.get("blend_time") else (element, "blend_time_default")
        )
        out[i] = owner.attribute_number(name)
        duration = times[i + 1] - times[i]
        if not 0.0 < 2.0 * out[i] < duration:
            raise point.error(
                f"blend time {out[i]:g} s in a segment of {duration:g} s",
                "positive and less than half the segment",
            )
    return out


def _match_space(element: Node, size: int, operational: OperationalFile) -> OperationalSpace:
    """Return the operational space that y belongs to: the default, else the first that fits.

    Three coordinates also fit a position with fewer active axes: some files give x y z there.
    """
    candidates = [operational.default] if operational.default else []
    candidates += list(operational.spaces)
    for space in candidates:
        if space.size == size:
            return space
    for space in candidates:
        if size == 3 and [entry.kind for entry in space.entries] == ["position"]:
            return space
    have = ", ".join(f"'{space.name}' with {space.size}" for space in operational.spaces)
    raise element.error(
        f"points have {size} coordinates", f"those of an operational space: {have or 'none'}"
    )
