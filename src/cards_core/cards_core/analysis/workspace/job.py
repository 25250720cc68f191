"""A job: everything that a result depends on, as one JSON document with a key.

The robot is in it as text that travels: to another process, another machine, or a later day.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cards_core
from cards_core.analysis.conditions.base import Options
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.analysis.workspace.point_file import PointTable
from cards_core.analysis.workspace.points import Axis, Grid, PointSet, Samples
from cards_core.analysis.workspace.rays import Rays
from cards_core.checks import check_choice
from cards_core.errors import CardsError
from cards_core.formats import find_model, read_sdf, to_sdf
from cards_core.paths.layout import robot_hash
from cards_core.paths.wrapping.mesh import mesh_path
from cards_core.robot import Mesh, Robot


@dataclass(frozen=True)
class RobotText:
    """An SDF document, and what it must turn into.

    Attributes:
        name: Of the robot.
        sdf: The document.
        robot_hash: Of the robot's equations; see `robot_hash`.
        files: URI of every mesh that muscles wrap over to the sha256 of the file.
        base: Folder that relative paths in the document start from. Not part of what the robot
            is: another machine may have it elsewhere.
    """

    name: str
    sdf: str
    robot_hash: str
    files: dict[str, str] = field(default_factory=dict)
    base: str = field(default="", compare=False)

    @classmethod
    def of(cls, robot: str | os.PathLike[str] | Robot) -> RobotText:
        """Make it from a model's name, an SDF file, or a robot.

        A robot goes through `to_sdf`, whose document may name coordinates differently; a file is
        taken as it is.

        Raises:
            CardsError: No such model, or a description that cannot be read or stated.
        """
        if isinstance(robot, Robot):
            text, base = to_sdf(robot), ""
        else:
            path = find_model(robot)
            text, base = path.read_text(encoding="utf-8"), str(path.resolve().parent)
        read = _read(text, base)
        return cls(read.name, text, robot_hash(read.tree), _mesh_files(read), base)

    def load(self) -> Robot:
        """Return the robot.

        Raises:
            CardsError: The document cannot be read, or it is another robot than it was: a file
                that it refers to has changed.
        """
        robot = _read(self.sdf, self.base)
        found = robot_hash(robot.tree)
        if found != self.robot_hash:
            raise CardsError(
                f"robot '{self.name}' has the hash {found} here (expected: {self.robot_hash}; "
                "a file that its description includes differs)"
            )
        files = _mesh_files(robot)
        for uri, digest in self.files.items():
            if files.get(uri) != digest:
                raise CardsError(
                    f"robot '{self.name}': mesh '{uri}' differs from the one that the job was "
                    "made with, or is not there (expected: the same file on every machine)"
                )
        return robot

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "name": self.name,
            "sdf": self.sdf,
            "robot_hash": self.robot_hash,
            "files": dict(self.files),
            "base": self.base,
        }


def _read(text: str, base: str) -> Robot:
    # the name is the place that meshes are searched from
    name = str(Path(base) / "model.sdf") if base else None
    return read_sdf(text, base=base or None, name=name)


def _mesh_files(robot: Robot) -> dict[str, str]:
    files: dict[str, str] = {}
    for surface in robot.wrap_surfaces:
        if isinstance(surface.geometry, Mesh):
            path = mesh_path(surface.geometry.uri, robot.source)
            if path is not None:
                files[surface.geometry.uri] = hashlib.sha256(path.read_bytes()).hexdigest()
    return files


FORMATS = ("parquet", "npz")
"""Kinds of result files."""

LARGEST_CHUNK = 65536
SMALLEST_CHUNK = 256
CHUNKS_PER_JOB = 256
"""A job is cut into about this many chunks within the limits of their size."""


@functools.cache
def code_hash() -> str:
    """Return the sha256 of all sources of `cards_core`."""
    digest = hashlib.sha256()
    folder = Path(cards_core.__file__).parent
    for file in sorted((*folder.rglob("*.py"), *folder.rglob("*.c"))):
        digest.update(str(file.relative_to(folder)).encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


@dataclass(frozen=True)
class Job:
    """One question about many points of a robot; make it with `make_job`.

    Attributes:
        robot: The robot, as text.
        condition: A name of `CONDITIONS`.
        options: All options of the condition, as JSON.
        points: Which points.
        chunk: Points (or rays) per chunk, the unit of work and of what a crash can lose.
        within_limits: Points outside the joint limits get the status ``OUTSIDE_LIMITS`` and are
            not evaluated.
        format: ``parquet`` or ``npz``.
        code: Hash of the sources that computed it: results of different code do not mix.
    """

    robot: RobotText
    condition: str
    options: Mapping[str, Any]
    points: PointSet
    chunk: int
    within_limits: bool = False
    format: str = "parquet"
    code: str = field(default_factory=code_hash)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.points.count // self.chunk)

    def span(self, index: int) -> tuple[int, int]:
        """Return first and one-past-last point of a chunk."""
        start = index * self.chunk
        return start, min(start + self.chunk, self.points.count)

    @property
    def key(self) -> str:
        """The sha256 of everything that the result depends on."""
        data = self.to_json()
        del data["robot"]["base"]
        return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "format_version": 1,
            "cards_version": cards_core.__version__,
            "code": self.code,
            "robot": self.robot.to_json(),
            "condition": self.condition,
            "options": dict(self.options),
            "points": self.points.to_json(),
            "chunk": self.chunk,
            "within_limits": self.within_limits,
            "format": self.format,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Job:
        """Make a job from what `to_json` returned.

        Raises:
            CardsError: It is no job, or of a version that this program does not know.
        """
        try:
            if data["format_version"] != 1:
                raise CardsError(f"a job of format {data['format_version']} (expected: 1)")
            return cls(
                RobotText(**data["robot"]),
                data["condition"],
                dict(data["options"]),
                points_from_json(data["points"]),
                int(data["chunk"]),
                bool(data["within_limits"]),
                data["format"],
                data["code"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CardsError(f"no workspace job: {type(error).__name__} {error}") from error


def make_job(
    robot: str | os.PathLike[str] | Robot,
    condition: str,
    points: PointSet,
    *,
    options: Mapping[str, Any] | Options | None = None,
    chunk: int | None = None,
    within_limits: bool = False,
    format: str = "parquet",
) -> Job:
    """Make a job, with everything checked that can be checked without computing.

    Args:
        robot: Name of a model, SDF file, or robot.
        condition: A name of `CONDITIONS`.
        points: A `Grid`, `Samples`, `Rays`, or what `read_points` returned.
        options: Of the condition; what is missing has its default.
        chunk: Points per chunk; default: about `CHUNKS_PER_JOB` chunks.
        within_limits: Do not evaluate points outside the joint limits.
        format: ``parquet`` or ``npz``.

    Raises:
        CardsError: The robot cannot be read; no such condition, option or coordinate; a chunk size
            or format that there is not.
    """
    check_choice(condition, "condition", CONDITIONS)
    check_choice(format, "format", FORMATS)
    if chunk is not None and chunk < 1:
        raise CardsError(f"chunks of {chunk} points (expected: at least 1)")
    kind = CONDITIONS[condition].options
    given = options if isinstance(options, Options) else kind.from_json(options or {})
    text = RobotText.of(robot)
    points.bind(text.load().tree)
    # through JSON and back: 1 and 1.0 must not make two different jobs
    plain = kind.from_json(json.loads(json.dumps(given.to_json()))).to_json()
    return Job(
        text, condition, plain, points, chunk or default_chunk(points), within_limits, format
    )


def default_chunk(points: PointSet) -> int:
    """Return a power of two that cuts the points into about `CHUNKS_PER_JOB` chunks."""
    per_item = points.evaluations if isinstance(points, Rays) else 1
    wanted = points.count * per_item / CHUNKS_PER_JOB
    size = SMALLEST_CHUNK
    while size < min(wanted, LARGEST_CHUNK):
        size *= 2
    return max(size // per_item, 1)


def points_from_json(data: Mapping[str, Any]) -> PointSet:
    """Make a point set from what its ``to_json`` returned.

    Raises:
        CardsError: There is no such kind.
    """
    match data["kind"]:
        case "grid":
            return Grid(tuple(Axis(*axis) for axis in data["axes"]), dict(data["fixed"]))
        case "samples":
            ranges = {name: (pair[0], pair[1]) for name, pair in data["ranges"].items()}
            return Samples(
                data["number"], data["seed"], ranges, dict(data["fixed"]), tuple(data["at_home"])
            )
        case "file":
            return PointTable(
                tuple(data["names"]), data["sha256"], data["rows"], dict(data["fixed"])
            )
        case "rays":
            rest = {key: value for key, value in data.items() if key not in ("kind", "starts")}
            return Rays(points_from_json(data["starts"]), **rest)
        case kind:
            raise CardsError(f"points of kind '{kind}' (expected: grid, samples, file, rays)")
