"""Triangles of mesh files, in any format that trimesh reads.

Files of materials and textures are not read, and other files that a mesh names, such as the
buffers of glTF, only if they are regular ones in its folder or below: a pipe would wait for ever.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import trimesh

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


def load_triangles(path: Path) -> tuple[Array, np.ndarray]:
    """Return the surface of a mesh file, in its unit.

    Args:
        path: A regular file.

    Returns:
        Vertices, shape (V, 3), and triangles as their indices, shape (F, 3); F may be 0.

    Raises:
        Exception: Those of the format, of any class.
    """
    mesh = trimesh.load(
        path, force="mesh", resolver=_RegularFiles(path.parent), skip_materials=True
    )
    return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)
