"""Where a muscle touches a surface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards_core.typing import Array, Vector3

CLEAR_RANGE = (0.05, 0.95)
"""Where on the straight line between its neighbours the point of a surface that is not touched may
lie, as a fraction: away from the ends, because a piece of zero length has no direction."""


@dataclass(frozen=True, eq=False)
class Contact:
    """The piece of a path that lies on a surface.

    Without contact ``start`` equals ``end``, a point on the straight line between the neighbours.

    Attributes:
        start, end: Tangent points in the order of the path, shape (3,), [m].
        length: Of the arc between them, [m].
        angle: By which the path's direction turns on the surface, [rad]: what capstan friction
            depends on.
        wrapped: Whether the path touches.
        tangent: Direction of the path at the start, unit vector, shape (3,), for drawing arcs of
            half a turn and more; closed forms of spheres and cylinders give it.
    """

    start: Vector3
    end: Vector3
    length: float = 0.0
    angle: float = 0.0
    wrapped: bool = False
    tangent: Vector3 | None = None

    def row(self, rotation: Array, translation: Vector3) -> Array:
        """Return start, end, length and angle in another frame, shape (8,)."""
        out = np.empty(8)
        out[:3] = rotation @ self.start + translation
        out[3:6] = rotation @ self.end + translation
        out[6], out[7] = self.length, self.angle
        return out


def clear(p: Vector3, q: Vector3, fraction: float) -> Contact:
    """Return the contact of a path that passes a surface without touching it.

    Args:
        p: Point before, [m].
        q: Point after, [m].
        fraction: Where on the line from p (0) to q (1); clamped to `CLEAR_RANGE`.
    """
    t = min(max(fraction, CLEAR_RANGE[0]), CLEAR_RANGE[1])
    point = p + t * (q - p)
    return Contact(point, point)
