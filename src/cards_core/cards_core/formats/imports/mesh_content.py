"""What mesh files of an imported robot hold: whether they are damaged, sizes in millimetres.

Such a file is copied as it is: it can be replaced in the robot's folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.formats.imports.findings import FilePlace, FindingList
from cards_core.formats.imports.meshes import DRAWN
from cards_core.formats.imports.units import doubtful_mesh
from cards_core.formats.mesh_copies import is_local
from cards_core.robot.elements import Collision, Mesh, Visual
from cards_core.robot.model import Robot
from cards_core.robot.stl_file import stl_corners
from cards_core.typing import Vector3

LARGEST = 32_000_000
"""Larger files of formats other than STL are not looked into, [bytes]."""


@dataclass(frozen=True, eq=False)
class _Content:
    """Of a mesh file.

    Attributes:
        problem: Why it cannot be read; empty if it can.
        edges: Of the box around it, in the file's unit, shape (3,); None if it is not known.
    """

    problem: str = ""
    edges: Vector3 | None = None


def check_meshes(robot: Robot, findings: FindingList) -> None:
    """Warn of mesh files that are empty or damaged, and of those far larger than the robot.

    Args:
        robot: As it was imported, with absolute paths of meshes.
        findings: Takes the warnings, ``mesh-damaged`` and ``units-doubtful``.
    """
    contents: dict[str, _Content] = {}
    for link in robot.links:
        shapes: tuple[Visual | Collision, ...] = (*link.visuals, *link.collisions)
        for item in shapes:
            geometry = item.geometry
            if not isinstance(geometry, Mesh) or not is_local(geometry.uri):
                continue
            if geometry.uri not in contents:
                contents[geometry.uri] = _content(Path(geometry.uri))
            content = contents[geometry.uri]
            at = FilePlace(robot.source, link.line if item.line is None else item.line)
            if content.problem:
                findings.warn(
                    "mesh-damaged",
                    f"link '{link.name}'",
                    f"mesh '{Path(geometry.uri).name}' {content.problem}; copied as it is",
                    at=at,
                )
            elif content.edges is not None:
                text = doubtful_mesh(robot, geometry, content.edges)
                if text:
                    findings.warn(
                        "units-doubtful",
                        f"link '{link.name}'",
                        text,
                        at=at,
                    )


def _content(path: Path) -> _Content:
    suffix = path.suffix.lower()
    try:
        size = path.stat().st_size
        if size == 0:
            return _Content("is empty")
        if suffix not in DRAWN or (size > LARGEST and suffix != ".stl"):
            return _Content()
        if suffix == ".stl":
            vertices = stl_corners(path.read_bytes()).reshape(-1, 3)
        else:
            # imported here: who reads no such meshes needs no trimesh
            from cards_core.robot.mesh_file import load_triangles

            vertices, faces = load_triangles(path)
            vertices = vertices[faces].reshape(-1, 3)
    except Exception as error:  # each format of trimesh raises exceptions of its own
        text = " ".join(str(error).split()) or type(error).__name__
        damaged = text.startswith("it is ")
        return _Content(text.removeprefix("it ") if damaged else f"cannot be read: {text}")
    if not len(vertices):
        return _Content("holds no triangles")
    if not np.isfinite(vertices).all():
        return _Content("has vertices that are not finite")
    return _Content(edges=np.ptp(vertices, axis=0))
