"""Triangles of mesh files, in any format that trimesh reads.

COLLADA files are in the unit that they state, as Gazebo and RViz take them; their up axis is not
looked at, as there. Files of materials and textures are not read, and other files that a mesh
names, such as the buffers of glTF, only if they are regular ones in its folder or below: a pipe
would wait for ever.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import trimesh

from cards_core.robot.stl_file import stl_corners
from cards_core.typing import Array


class _RegularFiles:
    """Finds files that a mesh names; a resolver as trimesh expects it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def get(self, name: str) -> bytes:
        path = (self.folder / name.strip()).resolve()
        if not (path.is_relative_to(self.folder) and path.is_file()):
            raise FileNotFoundError(f"it names '{name}', which is no file in its folder or below")
        return path.read_bytes()

    __getitem__ = get


class _NoFiles:
    """Finds no file; trimesh leaves out textures that are not there."""

    def get(self, name: str) -> bytes:
        raise FileNotFoundError(f"'{name}' is not read")

    __getitem__ = get


def load_triangles(path: Path) -> tuple[Array, np.ndarray]:
    """Return the surface of a mesh file, in its unit; of a COLLADA file in metres.

    Args:
        path: A regular file.

    Returns:
        Vertices, shape (V, 3), and triangles as their indices, shape (F, 3); F may be 0.

    Raises:
        Exception: Those of the format, of any class.
    """
    if path.suffix.lower() == ".stl":
        stl_corners(path.read_bytes())  # of a damaged file trimesh makes a mesh without triangles
    collada = path.suffix.lower() == ".dae"
    resolver = _NoFiles() if collada else _RegularFiles(path.parent)
    mesh = trimesh.load(path, force="mesh", resolver=resolver, skip_materials=True)
    unit = _collada_unit(path) if collada else 1.0
    return unit * np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)


def _collada_unit(path: Path) -> float:
    """Return the unit of length of a COLLADA file, [m]; 1 where it states none."""
    found = re.search(rb"<unit\b[^>]*?\bmeter\s*=\s*[\"']([^\"']*)[\"']", path.read_bytes())
    unit = 1.0 if found is None else float(found[1])
    if not 0.0 < unit < float("inf"):
        raise ValueError(f"its unit of length is {unit:g} m")
    return unit
