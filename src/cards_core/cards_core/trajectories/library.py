"""Trajectory files: where they are, the kinds of trajectories in them, and what these become.

`docs/trajectories.md` documents the schema. `KINDS` says which keys each kind has and what it
builds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast, get_args

import numpy as np

from cards_core.errors import UnknownNameError
from cards_core.robot.model import Robot, Tree
from cards_core.shared_files import shared_folders
from cards_core.trajectories import compose, curves
from cards_core.trajectories.base import Hold, Reference, Space, Tolerance, TrajectoryError
from cards_core.trajectories.polynomial import PointToPoint
from cards_core.trajectories.rhythm import Rhythm
from cards_core.trajectories.rotation import CONVENTIONS, Convention
from cards_core.trajectories.sampled import read_traj
from cards_core.trajectories.splines import SplineKind
from cards_core.trajectories.wiggle import WIGGLE, Wiggle
from cards_core.typing import Array
from cards_core.yaml_fields import Document, Field, read_yaml


def load_references(
    path: str | Path,
    *,
    size: int | None = None,
    names: Sequence[str] | None = None,
    operational_size: int | None = None,
) -> dict[str, Reference]:
    """Read all trajectories of a YAML file.

    Args:
        path: The file.
        size: Number of joint coordinates of the robot; default ``len(names)``. Without both,
            joint-space trajectories may have any size.
        names: Names of the joint coordinates in the robot's order (`Tree.position_names`); needed
            where a file lists ``joints``, and used in messages.
        operational_size: Number of operational coordinates, if known.

    Returns:
        Name to reference, in the order of the file; coordinates in the robot's order.

    Raises:
        DescriptionError: Anything wrong in the file; the message names file, line, trajectory,
            key and what is accepted.
    """
    document = read_yaml(path)
    folder = Path(path).parent
    return Library(document, folder, size, names, operational_size).build()


def from_dict(
    data: Mapping[str, Any],
    *,
    size: int | None = None,
    names: Sequence[str] | None = None,
    operational_size: int | None = None,
    source: str = "<dict>",
    folder: str | Path = ".",
) -> dict[str, Reference]:
    """Build references from plain data of the same form as a file, see `load_references`.

    Args:
        data: ``{"trajectories": {name: {"kind": ..., ...}}}``; lists may be arrays.
        size: See `load_references`.
        names: See `load_references`.
        operational_size: See `load_references`.
        source: Name of the data for messages.
        folder: What the names of ``.traj`` files are relative to.

    Raises:
        DescriptionError: As `load_references`.
    """
    document = Document(data, source)
    return Library(document, Path(folder), size, names, operational_size).build()


_GENERAL = ("space", "joints", "description", "tolerance")
"""Keys of every trajectory beside ``kind``."""


class Library:
    """Builds the references of one document, on demand because sequences name others."""

    def __init__(
        self,
        document: Document,
        folder: Path,
        size: int | None,
        names: Sequence[str] | None,
        operational_size: int | None,
    ) -> None:
        if names is not None and size is not None and len(names) != size:
            raise TrajectoryError(f"{len(names)} names for size {size}, expected as many")
        self.folder = folder
        self._names = tuple(names or ())
        self._size = len(self._names) if names is not None else size
        self._operational_size = operational_size
        self._top = Field(document, (), document.data)
        self._done: dict[str, Reference] = {}
        self._open: list[str] = []

    def build(self) -> dict[str, Reference]:
        """Return all references in the order of the document."""
        self._top.mapping(["trajectories"])
        names = self._top["trajectories"].mapping()
        return {name: self.named(name) for name in names}

    def named(self, name: str, asked_by: Field | None = None) -> Reference:
        """Return the reference of a name; ``asked_by`` is where a sequence names it."""
        if name in self._done:
            return self._done[name]
        table = self._top["trajectories"]
        known = table.mapping()
        if asked_by is not None:
            asked_by.text(known)
            if name in self._open:
                chain = " -> ".join([*self._open, name])
                raise asked_by.error(f"'{name}' contains itself ({chain})", "another trajectory")
            if len(self._open) >= MAX_NESTING:
                raise asked_by.error("nested too deeply", f"at most {MAX_NESTING} levels")
        self._open.append(name)
        reference = self.define(table[name])
        self._open.pop()
        reference.name = name
        self._done[name] = reference
        return reference

    def define(self, field: Field, inherited: Context | None = None) -> Reference:
        """Build the reference that a mapping defines."""
        field.mapping()
        kind = KINDS[field["kind"].text(KINDS)]
        general = ("kind",) if inherited else ("kind", *_GENERAL)
        field.mapping((*general, *kind.required, *kind.optional))
        for key in kind.required:
            field[key]  # complains if it is not there
        context = inherited or self._context(field, kind)
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                reference = kind.build(self, field, context)
        except TrajectoryError as error:
            raise field.error(str(error)) from error
        if context.size is not None and reference.size != context.size:
            raise field.error(
                f"has {reference.size} coordinates", f"{context.size}: {', '.join(context.names)}"
            )
        reference.space = context.space
        if not inherited and field.has("tolerance"):
            reference.tolerance = _tolerance(field["tolerance"])
        if context.space == "joint":
            reference.coordinate_names = self._names
        return reference

    def _context(self, field: Field, kind: Kind) -> Context:
        space = field["space"].text(get_args(Space)) if field.has("space") else kind.space
        if space == "operational":
            if field.has("joints"):
                raise field["joints"].error("is for joint space", "no 'joints' here")
            return Context("operational", self._operational_size)
        balls = [name[:-2] for name in self._names if _is_quaternion(name, self._names)]
        if balls and field["kind"].value != "hold":
            raise field.error(
                f"joint '{balls[0]}' turns by a quaternion, which this kind does not interpolate",
                "a hold in joint space, or operational space",
            )
        if not field.has("joints"):
            return Context("joint", self._size, self._names)
        names = tuple(item.text() for item in field["joints"].items())
        robot = self._names
        if not robot:
            raise field["joints"].error(
                "the robot's joint names are not known here", "no 'joints', or a robot"
            )
        if sorted(names) != sorted(robot):
            missing = [name for name in robot if name not in names]
            odd = [n for i, n in enumerate(names) if n not in robot or n in names[:i]]
            faults = [f"missing: {', '.join(missing)}"] if missing else []
            faults += [f"unknown or duplicate: {', '.join(odd)}"] if odd else []
            raise field["joints"].error(
                "; ".join(faults), f"each of {', '.join(robot)} once, in any order"
            )
        return Context("joint", len(robot), names, tuple(names.index(name) for name in robot))


def _tolerance(field: Field) -> Tolerance:
    stated = {name: field[name].number(above=0.0) for name in field.mapping(("length", "angle"))}
    return Tolerance(**stated)


def _is_quaternion(name: str, names: Sequence[str]) -> bool:
    return name.endswith(".w") and all(name[:-1] + c in names for c in "xyz")


# Files by name ---------------------------------------------------------------------------------


def reference_folders() -> list[Path]:
    """Return the existing folders with trajectory files, in the order of search."""
    return shared_folders("config", "trajectories")


BESIDE = "trajectories.yaml"
"""Trajectory file of a robot beside its description."""


def own_reference_file(robot: Robot) -> Path | None:
    """Return the robot's own trajectory file, if there is one.

    That is `BESIDE` in the folder of its description, else the file in `reference_folders` with
    the robot's name.
    """
    files = [folder / f"{robot.name}.yaml" for folder in reference_folders()]
    if robot.source:
        files.insert(0, Path(robot.source).parent / BESIDE)
    return next((file for file in files if file.is_file()), None)


def find_reference_file(name_or_path: str, robot: Robot) -> Path:
    """Return a trajectory file.

    Args:
        name_or_path: A file, or the name of one (without ``.yaml``) in `reference_folders`; empty
            means `own_reference_file`.
        robot: The robot.

    Raises:
        UnknownNameError: There is no such file; the message lists those there are.
    """
    if not name_or_path:
        own = own_reference_file(robot)
        if own is not None:
            return own
    text = name_or_path or robot.name
    if Path(text).is_file():
        return Path(text)
    folders = reference_folders()
    if Path(text).name == text:
        for folder in folders:
            file = folder / f"{text.removesuffix('.yaml')}.yaml"
            if file.is_file():
                return file
    known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
    raise UnknownNameError("trajectory file", text, known)


def read_reference(
    name: str,
    name_or_path: str,
    robot: Robot,
    tree: Tree,
    *,
    space: Space,
    operational_size: int | None = None,
) -> Reference:
    """Return a reference by name.

    Args:
        name: Name in the file; or `WIGGLE`, in joint space, if the robot's own file has none of
            that name.
        name_or_path: See `find_reference_file`.
        robot: The robot.
        tree: Its coordinates.
        space: The space that the controller works in.
        operational_size: Number of its operational coordinates.

    Raises:
        DescriptionError: Something is wrong in the file; the message names file and line.
        UnknownNameError: No such file or reference; the message lists those there are.
        TrajectoryError: The reference is of the other space.
    """
    small = name == WIGGLE and not name_or_path and space == "joint"
    if small and own_reference_file(robot) is None:
        return Wiggle(tree)
    if not name_or_path and own_reference_file(robot) is None:
        known = [WIGGLE] if space == "joint" else []
        raise UnknownNameError(
            f"trajectory of {robot.name}, which has no file of its own", name, known
        )
    file = find_reference_file(name_or_path, robot)
    references = load_references(
        file, names=tree.position_names, operational_size=operational_size
    )
    if small and name not in references:
        return Wiggle(tree)
    if name not in references:
        more = [WIGGLE] if space == "joint" and not name_or_path else []
        raise UnknownNameError(f"trajectory in {file}", name, [*references, *more])
    reference = references[name]
    if reference.space != space:
        fitting = ", ".join(n for n, r in references.items() if r.space == space) or "none here"
        raise TrajectoryError(
            f"{file}: trajectory '{name}' is in {reference.space} space, expected one in {space} "
            f"space: {fitting}"
        )
    return reference


def joint_references(robot: Robot) -> list[Reference]:
    """Return what a robot can be shown with: the joint trajectories of its own file, and a wiggle.

    Raises:
        DescriptionError: Something is wrong in the file; the message names file and line.
    """
    file = own_reference_file(robot)
    found: dict[str, Reference] = {}
    if file is not None:
        found = load_references(file, names=robot.tree.position_names)
    joint = [reference for reference in found.values() if reference.space == "joint"]
    return joint if WIGGLE in found else [*joint, Wiggle(robot.tree)]


# Kinds -----------------------------------------------------------------------------------------


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


def _rhythm(_: Library, field: Field, context: Context) -> Reference:
    given: dict[str, Any] = {
        k: context.vector(field[k]) for k in ("phases", "begin") if field.has(k)
    }
    given |= {k: field[k].number() for k in ("convergence", "coupling") if field.has(k)}
    return Rhythm(
        context.vector(field["centre"]),
        context.vector(field["amplitude"]),
        field["frequency"].number(above=0.0),
        field["duration"].number(above=0.0),
        **given,
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
    "rhythm": Kind(
        _rhythm,
        ("centre", "amplitude", "frequency", "duration"),
        ("phases", "begin", "convergence", "coupling"),
    ),
    "hold": Kind(_hold, ("position",), ("duration",)),
    "sequence": Kind(_sequence, ("parts",), ("continuity",)),
    "file": Kind(_file, ("file",)),
}
"""All kinds by the name that the key ``kind`` gives."""
