"""The kinds of trajectory that a file may define: which keys they have and what they build."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast, get_args

import numpy as np

from cards_core.trajectories import compose, curves
from cards_core.trajectories.base import Hold, Reference, Space
from cards_core.trajectories.polynomial import PointToPoint
from cards_core.trajectories.rotation import CONVENTIONS, Convention
from cards_core.trajectories.sampled import read_traj
from cards_core.trajectories.splines import SplineKind
from cards_core.typing import Array
from cards_core.yaml_fields import Field

MAX_NESTING = 10
"""Deepest nesting of sequences in sequences."""


@dataclass(frozen=True)
class Context:
    """What a trajectory's numbers mean.

    Attributes:
        space: Joint or operational.
        size: Number of coordinates, None if anything goes.
        names: Names of the coordinates in the file's order, empty if unknown.
        columns: Position in the file of every coordinate of the result; None if in order.
    """

    space: Space
    size: int | None
    names: tuple[str, ...] = ()
    columns: tuple[int, ...] | None = None

    def vector(self, field: Field) -> Array:
        """Read a vector of all coordinates and put it in the robot's order."""
        values = field.vector(self.size, ", ".join(self.names))
        return values if self.columns is None else values[list(self.columns)]

    def index(self, column: int) -> int:
        """Return the coordinate of the result that stands in a column of the file."""
        return column if self.columns is None else self.columns.index(column)


class Library(Protocol):
    """What a builder may ask of the file it belongs to. `folder` is where the file lies."""

    folder: Path

    def named(self, name: str, asked_by: Field) -> Reference:
        """Return another trajectory of the same file, asked for by a field."""
        ...

    def define(self, field: Field, inherited: Context) -> Reference:
        """Build a trajectory that is defined inside another."""
        ...


Builder: TypeAlias = Callable[[Library, Field, Context], Reference]


@dataclass(frozen=True)
class Kind:
    """A kind of trajectory.

    Attributes:
        build: Makes the reference from the fields.
        required: Keys that must be there.
        optional: Keys that may be there.
        space: Default of the key ``space``.
    """

    build: Builder
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    space: Space = "joint"


def _point_to_point(_: Library, field: Field, context: Context) -> Reference:
    start, end = context.vector(field["from"]), context.vector(field["to"])
    if end.size != start.size:
        raise field["to"].error(f"has {end.size} values", f"{start.size} as 'from'")
    return PointToPoint(start, end, field["duration"].number(above=0.0))


def _hold(_: Library, field: Field, context: Context) -> Reference:
    duration = field["duration"].number(at_least=0.0) if field.has("duration") else 0.0
    return Hold(context.vector(field["position"]), duration)


def _plane(field: Field, centre: Array) -> dict[str, Any]:
    """Read the plane of a curve: normal, or two axes."""
    if field.has("normal") == field.has("axes") and (field.has("axes") or centre.size != 2):
        raise field.error("the plane is not clear", "either 'normal' or 'axes'")
    if field.has("normal"):
        return {"normal": field["normal"].vector(centre.size)}
    if not field.has("axes"):
        return {}
    both = field["axes"].items()
    if len(both) != 2:
        raise field["axes"].error(f"has {len(both)} elements", "2 vectors")
    return {"axes": (both[0].vector(centre.size), both[1].vector(centre.size))}


def _flower(_: Library, field: Field, context: Context) -> Reference:
    centre = context.vector(field["centre"])
    return curves.Flower(
        centre,
        field["amplitude"].number(above=0.0),
        field["duration"].number(above=0.0),
        petals=field["petals"].whole(at_least=1) if field.has("petals") else 5,
        angle=field["angle"].number() if field.has("angle") else 0.0,
        repeats=field["repeats"].whole(at_least=1) if field.has("repeats") else 1,
        **_plane(field, centre),
    )


def _circle(_: Library, field: Field, context: Context) -> Reference:
    centre = context.vector(field["centre"])
    return curves.Circle(
        centre,
        field["radius"].number(above=0.0),
        field["duration"].number(above=0.0),
        revolutions=field["revolutions"].number() if field.has("revolutions") else 1.0,
        angle=field["angle"].number() if field.has("angle") else 0.0,
        **_plane(field, centre),
    )


def _sequence(library: Library, field: Field, context: Context) -> Reference:
    parts: list[Reference] = []
    for item in field["parts"].items():
        if isinstance(item.value, Mapping):
            if len(item.place) > 3 * MAX_NESTING:
                raise item.error("nested too deeply", f"at most {MAX_NESTING} levels")
            part = library.define(item, context)
        else:
            part = library.named(item.text(), item)
            if part.space != context.space:
                raise item.error(
                    f"is in {part.space} space",
                    f"{context.space} space as the sequence, or 'space: {part.space}' there",
                )
        parts.append(part)
    continuity: Any = "position"
    if field.has("continuity"):
        continuity = field["continuity"].text(get_args(compose.Continuity))
    return compose.Sequence(parts, continuity=continuity)


def _file(library: Library, field: Field, context: Context) -> Reference:
    name = field["file"].text()
    if "\0" in name or not (library.folder / name).is_file():
        raise field["file"].error(f"there is no file {name!r}", f"a file in {library.folder}")
    samples = read_traj(library.folder / name, size=context.size)
    return samples if context.columns is None else samples.select(context.columns)


_POINT_KEYS: dict[SplineKind, tuple[str, ...]] = {
    "linear": (),
    "cubic": ("velocity",),
    "cubic_average_velocity": ("velocity",),
    "quintic": ("velocity", "acceleration"),
    "parabolic_blend": ("blend_time",),
}


def _spline(kind: SplineKind) -> Builder:
    def build(_: Library, field: Field, context: Context) -> Reference:
        absolute = field["time_definition"].text(("relative", "absolute")) == "absolute"
        items = field["points"].items(at_least=2)
        size = context.size
        times: list[float] = []
        columns: dict[str, list[Array]] = {"position": [], "velocity": [], "acceleration": []}
        blends: list[float] = []
        for i, item in enumerate(items):
            item.mapping(("time", "position", *_POINT_KEYS[kind]))
            times.append(_time(item, times, absolute))
            point = context.vector(item["position"])
            size = size or point.size
            if point.size != size:
                raise item["position"].error(f"has {point.size} values", f"{size}")
            columns["position"].append(point)
            for key in ("velocity", "acceleration"):
                value = np.zeros(size)
                if item.has(key):
                    if kind == "cubic_average_velocity" and 0 < i < len(items) - 1:
                        raise item[key].error("is computed", "no velocity at an inner knot")
                    value = context.vector(item[key])
                    if value.size != size:
                        raise item[key].error(f"has {value.size} values", f"{size}")
                columns[key].append(value)
            if kind == "parabolic_blend":
                blends += _blend_time(field, item, times)
        return compose.rotation_spline(
            kind,
            times,
            np.array(columns["position"]),
            _rotations(field, context, size or 0),
            velocities=columns["velocity"] if "velocity" in _POINT_KEYS[kind] else None,
            accelerations=columns["acceleration"] if kind == "quintic" else None,
            blend_times=blends if kind == "parabolic_blend" else None,
            caspr_time_step=_caspr_step(field),
        )

    return build


def _time(item: Field, before: list[float], absolute: bool) -> float:
    """Time of a knot from the start, [s]."""
    if not before:
        if item.has("time") and item["time"].number() != 0.0:
            raise item["time"].error("is not 0 at the first point", "0, or no time")
        return 0.0
    if not absolute:
        return before[-1] + item["time"].number(above=0.0)
    time = item["time"].number()
    if time <= before[-1]:
        raise item["time"].error(
            f"is {time:g} s", f"more than {before[-1]:g} s, the time of the point before"
        )
    return time


def _blend_time(field: Field, item: Field, times: list[float]) -> list[float]:
    """Blend time of the segment that ends at a point, [s]; none for the first point."""
    if len(times) == 1:
        if item.has("blend_time"):
            raise item["blend_time"].error(
                "belongs to the segment that ends at its point", "none at the first point"
            )
        return []
    where = item["blend_time"] if item.has("blend_time") else field["blend_time_default"]
    blend, total = where.number(above=0.0), times[-1] - times[-2]
    if not 2.0 * blend < total:
        raise where.error(
            f"is {blend:g} s in a segment of {total:g} s (point {len(times)})",
            f"less than half of {total:g} s",
        )
    return [blend]


def _caspr_step(field: Field) -> float | None:
    sampling = field.has("caspr_sampling") and field["caspr_sampling"].flag()
    if field.has("time_step"):
        step = field["time_step"].number(above=0.0)
        return step if sampling else None
    if sampling:
        raise field.error("caspr_sampling without a time step", "the key 'time_step'")
    return None


def _rotations(
    field: Field, context: Context, size: int
) -> list[tuple[tuple[int, int, int], Convention]]:
    """Read the triples of coordinates that are Euler angles."""
    out: list[tuple[tuple[int, int, int], Convention]] = []
    for item in field["rotations"].items(at_least=0) if field.has("rotations") else []:
        item.mapping(("coordinates", "convention"))
        convention = item["convention"].text(CONVENTIONS)
        where = item["coordinates"]
        triple: list[int] = []
        for entry in where.items():
            if isinstance(entry.value, str):
                names = list(context.names)
                column = names.index(entry.text(names))
            else:
                column = entry.whole()
                if column >= size:
                    raise entry.error(f"is {column}", f"0 .. {size - 1}, or a joint name")
            triple.append(context.index(column))
        if len(set(triple)) != 3 or len(triple) != 3:
            raise where.error("is not a triple", "3 different coordinates: of a, b and g")
        which = cast(Convention, convention)  # one of CONVENTIONS, checked when it was read
        out.append(((triple[0], triple[1], triple[2]), which))
    return out


_SPLINE_KEYS = ("time_definition", "points")
_SPLINE_OPTIONS = ("rotations", "caspr_sampling", "time_step")

KINDS: Mapping[str, Kind] = {
    "point_to_point": Kind(_point_to_point, ("from", "to", "duration")),
    **{
        kind: Kind(
            _spline(kind),
            _SPLINE_KEYS,
            (*_SPLINE_OPTIONS, "blend_time_default")
            if kind == "parabolic_blend"
            else _SPLINE_OPTIONS,
        )
        for kind in _POINT_KEYS
    },
    "flower": Kind(
        _flower,
        ("centre", "amplitude", "duration"),
        ("petals", "normal", "axes", "angle", "repeats"),
        "operational",
    ),
    "circle": Kind(
        _circle,
        ("centre", "radius", "duration"),
        ("revolutions", "normal", "axes", "angle"),
        "operational",
    ),
    "hold": Kind(_hold, ("position",), ("duration",)),
    "sequence": Kind(_sequence, ("parts",), ("continuity",)),
    "file": Kind(_file, ("file",)),
}
"""All kinds by the name that the key ``kind`` gives."""
