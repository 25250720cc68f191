"""The path of a point, for drawing."""

from __future__ import annotations

import numpy as np

from cards_core.typing import Array

MAX_PATH_SEGMENTS = 4000

SPACING = 0.003
"""Distance between the points of an end-effector path, relative to the size of the robot."""

DASH = 0.018
"""Length of the dashes of a desired path, likewise."""


class Trail:
    """A path that grows while its point moves into places where it has not been.

    Args:
        spacing: A point closer than this to the path adds nothing to it, [m].
    """

    def __init__(self, spacing: float) -> None:
        self.spacing = spacing
        self.changed = False
        self._last: Array | None = None
        self._segments = np.zeros((MAX_PATH_SEGMENTS, 2, 3))
        self._middles = np.zeros((MAX_PATH_SEGMENTS, 3))
        self._longest = 0.0  # half the length of the longest piece
        self._count = 0

    def clear(self) -> None:
        """Forget the path."""
        self.changed = True
        self._last = None
        self._count = 0
        self._longest = 0.0

    def add(self, point: Array | None) -> None:
        """Move to a point of the world, shape (3,), [m]."""
        if point is None or not np.all(np.isfinite(point)):
            return
        if self._last is None:
            self._last = np.array(point)
            return
        if np.linalg.norm(point - self._last) < self.spacing:
            return
        if self._distance(point) > self.spacing:
            if self._count == MAX_PATH_SEGMENTS:
                # the oldest quarter goes at once, so that this stays rare
                quarter = MAX_PATH_SEGMENTS // 4
                self._count -= quarter
                for array in (self._segments, self._middles):
                    array[: self._count] = array[quarter:].copy()
            self._segments[self._count] = self._last, point
            self._middles[self._count] = 0.5 * (self._last + point)
            self._longest = max(self._longest, 0.5 * float(np.linalg.norm(point - self._last)))
            self._count += 1
            self.changed = True
        self._last = np.array(point)

    def _distance(self, point: Array) -> float:
        """Distance of a point from the path except its newest piece; inf if it is far, [m]."""
        count = max(self._count - 1, 0)
        # most pieces are far away: their middles tell
        away = np.abs(self._middles[:count] - point).max(axis=1)
        segments = self._segments[:count][away < self._longest + self.spacing]
        if not len(segments):
            return np.inf
        start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
        square = np.einsum("ij,ij->i", along, along)
        t = np.einsum("ij,ij->i", point - start, along) / np.maximum(square, 1e-30)
        foot = start + np.clip(t, 0.0, 1.0)[:, None] * along
        return float(np.min(np.linalg.norm(foot - point, axis=1)))

    def segments(self, dash: float = 0.0) -> Array:
        """Return the path as segments, shape (k, 2, 3); one of length zero if it is empty.

        Args:
            dash: Length of dashes and gaps, [m]; 0 for an unbroken line.
        """
        segments = self._segments[: self._count]
        if not self._count:
            return np.zeros((1, 2, 3))
        if dash > 0.0:
            length = np.linalg.norm(segments[:, 1] - segments[:, 0], axis=1)
            segments = segments[((np.cumsum(length) - length) // dash) % 2 == 0]
        return segments
