"""Mesh files as MuJoCo takes them: binary STL instead of ASCII, and which files it refuses.

MuJoCo reads binary STL files alone, of at most `MOST_FACES` triangles, and meshes of four vertices
or more. What it gets instead of an ASCII file is the same triangles in single precision.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from cards_core.formats.mjcf.scene import MESH_SUFFIXES
from cards_core.formats.sdf.elements import mesh_path
from cards_core.paths.wrapping.mesh import mesh_vertices
from cards_core.robot.elements import Mesh, Visual
from cards_core.robot.model import Robot
from cards_core.robot.stl_file import binary_stl, is_binary, stl_corners

MOST_FACES = 200_000
"""Of an STL file that MuJoCo reads."""


def converted(file: Path) -> bytes | None:
    """Return what MuJoCo gets instead of a mesh file; None: the file itself.

    Args:
        file: A mesh file; only of ASCII STL there is something else.

    Raises:
        OSError: It cannot be read.
    """
    if file.suffix.lower() != ".stl":
        return None
    data = file.read_bytes()
    if is_binary(data):
        return None
    try:
        return binary_stl(stl_corners(data))
    except ValueError:
        return None  # damaged: MuJoCo says so


def without_damaged(robot: Robot) -> tuple[Robot, list[str]]:
    """Return the robot without the visuals whose mesh files MuJoCo refuses, and a line on each.

    Visuals in formats that it does not read stay: `cards_core.formats.mjcf.scene` leaves them out.

    Args:
        robot: The robot.
    """
    notes: list[str] = []
    problems: dict[str, str] = {}

    def kept(link: str, visual: Visual) -> bool:
        if not isinstance(visual.geometry, Mesh):
            return True
        path = mesh_path(visual.geometry.uri, robot)
        if path not in problems:
            problems[path] = _problem(path)
        if problems[path]:
            name = Path(path).name
            notes.append(
                f"{link}: visual '{visual.name}' left out: '{name}': {problems[path]} "
                "(expected: a mesh that MuJoCo reads)"
            )
        return not problems[path]

    links = tuple(
        dataclasses.replace(link, visuals=tuple(v for v in link.visuals if kept(link.name, v)))
        for link in robot.links
    )
    return dataclasses.replace(robot, links=links) if notes else robot, notes


def _problem(path: str) -> str:
    """Return why MuJoCo refuses a mesh file in a format that it reads; empty if it does not."""
    if "://" in path or not path.lower().endswith(MESH_SUFFIXES) or path.lower().endswith(".msh"):
        return ""
    try:
        data = Path(path).read_bytes()
        vertices = mesh_vertices(data, path)
        if not path.lower().endswith(".stl"):
            return ""
        count = len(stl_corners(data))
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    except ValueError as error:
        return str(error)
    if count > MOST_FACES:
        return f"it has {count} faces, more than {MOST_FACES}"
    with np.errstate(over="ignore"):
        finite = np.isfinite(vertices.astype(np.float32)).all()
    return "" if finite else "it has vertices that single precision cannot hold"
