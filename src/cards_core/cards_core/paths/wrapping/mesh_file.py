"""Vertices of mesh files: STL (binary and text) and OBJ."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

from cards_core.typing import Array

_STL_HEADER = 84
_STL_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def mesh_path(uri: str, source: str | None) -> Path | None:
    """Return the file that a mesh URI names, or None if there is none.

    Plain paths and ``file://`` are taken as they are or relative to the description's folder;
    ``model://robot/meshes/hand.stl`` and ``package://...`` are searched from that folder upwards.
    """
    parts = urlparse(uri)
    folder = Path(source).resolve().parent if source else Path.cwd()
    if parts.scheme in ("", "file"):
        candidates = [folder / unquote(parts.path if parts.scheme else uri)]
    else:
        path = Path(unquote(parts.netloc + parts.path))
        candidates = [base / path for base in (folder, *folder.parents)]
        candidates.append(folder / path.relative_to(path.parts[0] if path.parts else path))
    return next((path for path in candidates if path.is_file()), None)


def mesh_vertices(data: bytes, name: str) -> Array:
    """Return the vertices in a mesh file, shape (V, 3), in the file's unit.

    Args:
        data: Content of the file.
        name: Its name; the ending says which format it is.

    Raises:
        ValueError: An unknown format or a damaged file, with the reason.
    """
    ending = name.rpartition(".")[2].lower()
    if ending == "stl":
        vertices = _binary_stl(data)
        if vertices is None:
            vertices = _text(data, "vertex")
    elif ending == "obj":
        vertices = _text(data, "v")
    else:
        raise ValueError(f"muscles cannot wrap over files ending in '.{ending}'")
    if len(vertices) < 4:
        raise ValueError(f"it has {len(vertices)} vertices")
    if not np.all(np.isfinite(vertices)):
        raise ValueError("it has vertices that are not finite")
    return np.unique(vertices, axis=0)


def _binary_stl(data: bytes) -> Array | None:
    if len(data) < _STL_HEADER:
        return None
    count = int.from_bytes(data[80:_STL_HEADER], "little")
    if len(data) != _STL_HEADER + count * _STL_FACET.itemsize:
        return None
    facets = np.frombuffer(data, _STL_FACET, offset=_STL_HEADER)
    return np.asarray(facets["corners"].reshape(-1, 3), dtype=float)


def _text(data: bytes, keyword: str) -> Array:
    rows = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        words = line.split()
        if words and words[0] == keyword:
            try:
                x, y, z = (float(word) for word in words[1:4])
            except ValueError:
                raise ValueError(f"line {number} is no vertex: '{line.strip()[:60]}'") from None
            rows.append((x, y, z))
    return np.array(rows, dtype=float).reshape(-1, 3)
