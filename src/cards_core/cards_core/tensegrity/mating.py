"""Bonds between nodes of one part and edges of another: where the second part goes.

As NASA's toolkit does it: reference points of a part are the nodes of the bond and the middles of
its edges. The second part is turned so that the normals of the planes through the first three
reference points agree, moved so that their centroids do, and turned about the centroid so that the
first reference points lie in one direction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cards_core.spatial import axis_rotation
from cards_core.tensegrity.parts import Part
from cards_core.typing import Matrix3, Vector3

ALIGNED = 1e-5
"""Unit vectors that differ by less count as equal, those of a sum of less as opposite; NASA's."""


def rotation_between(a: Vector3, b: Vector3, fallback: Vector3) -> Matrix3:
    """Return the smallest rotation from direction a to b, about ``fallback`` if opposite.

    Args:
        a: Vector, not zero, shape (3,).
        b: Likewise.
        fallback: Axis, not zero, shape (3,).
    """
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    if np.linalg.norm(a - b) < ALIGNED:
        return np.eye(3)
    if np.linalg.norm(a + b) < ALIGNED:
        return axis_rotation(fallback / np.linalg.norm(fallback), np.pi)
    axis = np.cross(a, b)
    return axis_rotation(axis / np.linalg.norm(axis), float(np.arccos(np.clip(a @ b, -1.0, 1.0))))


def mate(second: Part, places: Sequence[Vector3], mates: Sequence[Vector3]) -> None:
    """Move the second part to the first.

    Args:
        second: The part that is moved.
        places: Reference points of the first part, in the order of the bond, three or more, [m].
        mates: Those of the second.

    Raises:
        ValueError: The first three points of a part lie on a line; the message says which part.
    """
    normals = []
    for points, whose in ((places, "first"), (mates, "second")):
        a, b = points[1] - points[0], points[2] - points[0]
        normal = np.cross(a, b)
        if np.linalg.norm(normal) <= 1e-9 * np.linalg.norm(a) * np.linalg.norm(b):
            raise ValueError(f"the first three places of the {whose} part lie on a line")
        normals.append(normal)
    centre, mate_centre = np.mean(places, axis=0), np.mean(mates, axis=0)
    turn = rotation_between(normals[1], normals[0], mates[1] - mates[0])
    second.rotate(turn, mate_centre)
    second.move(centre - mate_centre)
    first_mate = turn @ (mates[0] - mate_centre)
    second.rotate(rotation_between(first_mate, places[0] - centre, normals[0]), centre)
