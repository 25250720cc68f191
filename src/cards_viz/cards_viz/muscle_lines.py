"""Drawn muscle paths: which points are via points, which are tangent points, where forces act."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cards_core.paths.drawing import ARC_POINTS
from cards_core.paths.layout import PathLayout
from cards_core.typing import Array

Indices = npt.NDArray[np.intp]

APART = 1e-9
"""Distance of the two tangent points of a contact above which the muscle touches there, [m]."""


class MuscleLines:
    """Indices into the drawn points of all muscles, one path after the other.

    Drawn paths are those of `MuscleEngine.path_points`: one point for a via point, `ARC_POINTS`
    for the arc of a contact. With P drawn points:

    Args:
        layout: The paths; its frames are the links.

    Attributes:
        start: First point of every drawn segment, shape (S,); the second is the next point.
        segment_muscle: Muscle of every segment, shape (S,).
        via: The via points, shape (V,).
        via_muscle: Their muscles, shape (V,).
        pulled: Via points and tangent points on links, where muscles pull, shape (A,).
        pulled_muscle: Their muscles, shape (A,).
        arcs: First and last point of every contact, shape (C, 2).
    """

    def __init__(self, layout: PathLayout) -> None:
        contacts = {contact.point for contact in layout.contacts}
        place: list[int] = []  # of every path point among the drawn points
        muscle: list[int] = []  # of every drawn point
        firsts = [0]
        for index, (a, b) in enumerate(pairwise(layout.bounds.tolist())):
            for k in range(a, b):
                place.append(len(muscle))
                # the samples of an arc follow its first tangent point
                muscle += [index] * (ARC_POINTS - 1 if k in contacts else 1)
            firsts.append(len(muscle))
        places = np.array(place, dtype=np.intp)
        owner = np.array(muscle, dtype=np.intp)
        is_via = np.ones(len(places), dtype=bool)
        for k in contacts:
            is_via[[k, k + 1]] = False
        segments = [np.arange(a, b - 1) for a, b in pairwise(firsts)]
        self.start: Indices = np.concatenate([np.zeros(0), *segments]).astype(np.intp)
        self.segment_muscle: Indices = owner[self.start]
        self.via: Indices = places[is_via]
        self.via_muscle: Indices = owner[self.via]
        # the ground needs no arrow: it does not move
        self.pulled: Indices = places[layout.point_frame != layout.frames]
        self.pulled_muscle: Indices = owner[self.pulled]
        self.arcs: Indices = np.array(
            [(places[c.point], places[c.point + 1]) for c in layout.contacts], dtype=np.intp
        ).reshape(-1, 2)
        self._straight = places[layout.start], places[layout.start + 1]

    def directions(self, points: Array) -> Array:
        """Return the force at every pulled point for a tension of 1 N, shape (A, 3).

        It is the sum of the directions of the straight pieces that end there: an arc pulls at
        its ends. The ends of an arc of no length are one point; there the first has the sum,
        which is zero where a muscle passes a surface without touching it.

        Args:
            points: All drawn points, shape (P, 3), [m].
        """
        first, second = self._straight
        delta = points[second] - points[first]
        length = np.linalg.norm(delta, axis=1, keepdims=True)
        u = np.divide(delta, length, out=np.zeros_like(delta), where=length > 0)
        pull = np.zeros_like(points)
        pull[first] += u
        pull[second] -= u
        begin, end = self.arcs.T
        bare = np.linalg.norm(points[end] - points[begin], axis=1) < APART
        pull[begin[bare]] += pull[end[bare]]
        pull[end[bare]] = 0.0
        pull[np.linalg.norm(pull, axis=1) < 1e-9] = 0.0
        return np.asarray(pull[self.pulled])


def without_repeats(path: Array) -> Array:
    """Return a path without points that repeat the one before: lines without length look odd.

    Args:
        path: Shape (k, 3), [m].
    """
    if len(path) < 2:
        return path
    moves = np.linalg.norm(np.diff(path, axis=0), axis=1) > APART
    return path[np.concatenate([[True], moves])]
