"""Trajectory files: YAML to references. `docs/trajectories.md` documents the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cards_core.trajectories.base import Reference, Space, Tolerance, TrajectoryError
from cards_core.trajectories.kinds import KINDS, MAX_NESTING, Context, Kind
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
    return _Library(document, folder, size, names, operational_size).build()


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
    return _Library(document, Path(folder), size, names, operational_size).build()


_GENERAL = ("space", "joints", "description", "tolerance")
"""Keys of every trajectory beside ``kind``."""


class _Library:
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
            faults = [f"lacks {', '.join(missing)}"] if missing else []
            faults += [f"has unknown or doubled {', '.join(odd)}"] if odd else []
            raise field["joints"].error(
                " and ".join(faults), f"each of {', '.join(robot)} once, in any order"
            )
        return Context("joint", len(robot), names, tuple(names.index(name) for name in robot))


def _tolerance(field: Field) -> Tolerance:
    stated = {name: field[name].number(above=0.0) for name in field.mapping(("length", "angle"))}
    return Tolerance(**stated)


def _is_quaternion(name: str, names: Sequence[str]) -> bool:
    return name.endswith(".w") and all(name[:-1] + c in names for c in "xyz")
