"""STL files: triangles from binary and from ASCII ones, and binary files of triangles.

A binary file has 80 bytes of header, the number of its triangles, and 50 bytes for each: normal
and corners in single precision, two bytes that mean nothing. Whether a file is one is seen from
its size: headers of binary files may begin with ``solid``, as ASCII files do.
"""

from __future__ import annotations

import numpy as np

from cards_core.typing import Array

_HEADER = 84
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def stl_corners(data: bytes) -> Array:
    """Return the corners of the triangles in an STL file, shape (F, 3, 3), in the file's unit.

    Args:
        data: Content of the file.

    Raises:
        ValueError: It is empty or damaged; the text, which begins with "it", says how.
    """
    if is_binary(data):
        corners = np.frombuffer(data, _FACET, offset=_HEADER)["corners"]
        return np.asarray(corners, dtype=float)
    if not data.strip():
        raise ValueError("it is empty")
    if b"vertex" not in data.lower():
        if len(data) < _HEADER:
            raise ValueError(f"it is damaged: {len(data)} bytes and no 'vertex' in them")
        raise ValueError(f"it is damaged: {len(data)} bytes for {_count(data)} faces")
    vertices = text_vertices(data, "vertex")
    if len(vertices) % 3:
        raise ValueError(f"it is damaged: {len(vertices)} vertices, no three for every face")
    return vertices.reshape(-1, 3, 3)


def is_binary(data: bytes) -> bool:
    """Return whether data is a binary STL file: it has the size that its header says."""
    return len(data) >= _HEADER and len(data) == _HEADER + _count(data) * _FACET.itemsize


def _count(data: bytes) -> int:
    return int.from_bytes(data[80:_HEADER], "little")


def text_vertices(data: bytes, keyword: str) -> Array:
    """Return the vertices in a text of lines ``KEYWORD x y z``, shape (V, 3).

    Args:
        data: Content of an ASCII STL or an OBJ file; other lines are skipped.
        keyword: In small letters; the case in the file does not matter.

    Raises:
        ValueError: A line with the keyword has no three numbers.
    """
    rows = []
    for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), 1):
        words = line.split()
        if words and words[0].lower() == keyword:
            try:
                x, y, z = (float(word) for word in words[1:4])
            except ValueError:
                raise ValueError(f"line {number} is no vertex: '{line.strip()[:60]}'") from None
            rows.append((x, y, z))
    return np.array(rows, dtype=float).reshape(-1, 3)


def binary_stl(corners: Array) -> bytes:
    """Return triangles as a binary STL file, in single precision, with their normals.

    Args:
        corners: Shape (F, 3, 3), counter-clockwise seen from outside, [m].
    """
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0.0)
    facets = np.zeros(len(corners), dtype=_FACET)
    facets["normal"], facets["corners"] = normals, corners
    header = b"CARDS, metres".ljust(80, b" ")
    return header + np.uint32(len(corners)).tobytes() + facets.tobytes()
