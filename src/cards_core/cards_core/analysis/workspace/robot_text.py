"""A robot as text that travels: to another process, another machine, or a later day."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards_core.errors import CardsError
from cards_core.formats import find_model, read_sdf, to_sdf
from cards_core.paths.fingerprint import robot_hash
from cards_core.paths.wrapping.mesh_file import mesh_path
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
