"""Where a ray from the eye meets triangles."""

from __future__ import annotations

import numpy as np

from cards_core.typing import Array, Vector3

PARALLEL = 1e-12
"""Determinant, relative to the size of the triangle, from which on a ray lies in its plane."""


def first_hit(
    origin: Vector3, direction: Vector3, vertices: Array, faces: Array
) -> Vector3 | None:
    """Return the point where a ray first meets triangles, shape (3,); None if it misses them.

    ``o + t d = a + u (b - a) + v (c - a)`` with t >= 0, u, v >= 0, u + v <= 1, by Cramer's rule
    for all triangles at once.

    Args:
        origin: o, shape (3,), [m].
        direction: d, shape (3,), of any length.
        vertices: shape (V, 3), [m].
        faces: Indices of the vertices, shape (F, 3).
    """
    a, b, c = (np.asarray(vertices)[np.asarray(faces)[:, k]] for k in range(3))
    first, second = b - a, c - a
    across = np.cross(direction, second)
    determinant = np.einsum("ij,ij->i", first, across)
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    met = np.abs(determinant) > PARALLEL * size * np.linalg.norm(direction)
    scale = np.divide(1.0, determinant, out=np.zeros_like(determinant), where=met)
    offset = origin - a
    u = np.einsum("ij,ij->i", offset, across) * scale
    turned = np.cross(offset, first)
    v = turned @ direction * scale
    t = np.einsum("ij,ij->i", second, turned) * scale
    edge = 1e-9  # a ray through an edge belongs to one of its triangles at least
    met &= (u >= -edge) & (v >= -edge) & (u + v <= 1.0 + edge) & (t >= 0.0)
    if not met.any():
        return None
    hit: Vector3 = origin + float(t[met].min()) * np.asarray(direction)
    return hit
