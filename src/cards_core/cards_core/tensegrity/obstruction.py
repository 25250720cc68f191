"""How deep a straight cable runs through a rod, box or sphere that it is not tied to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cards_core.robot.elements import Box, Cylinder
from cards_core.tensegrity.solids import Rigid
from cards_core.typing import Array, Vector3


def obstruction(rigid: Rigid, start: Vector3, end: Vector3) -> float:
    """Return how deep the cable is in the solid at its deepest, [m]; 0 or less if it is free.

    Of a rod the distance from its axis counts, with ends that are round within its length, as
    cables with contact touch it; of a box the distance from its nearest face.

    Args:
        rigid: The rod, box or sphere.
        start: End of the cable in the world, shape (3,), [m].
        end: The other end.
    """
    pose = rigid.pose.inverse()
    a, b = pose.apply(start), pose.apply(end)
    match rigid.geometry:
        case Cylinder(radius, length):
            tip = np.array([0.0, 0.0, max(0.0, length / 2.0 - radius)])
            return radius - segment_distance(a, b, -tip, tip)
        case Box(size):
            return _depth_in_box(a, b, size / 2.0)
        case ball:
            return ball.radius - segment_distance(a, b, np.zeros(3), np.zeros(3))


def bounding_spheres(rigids: Sequence[Rigid]) -> tuple[Array, Array]:
    """Return centres, shape (n, 3), and radii, shape (n,), of spheres around solids, [m]."""
    centers = np.array([rigid.center for rigid in rigids])
    radii = []
    for rigid in rigids:
        match rigid.geometry:
            case Cylinder(radius, length):
                radii.append(radius + length / 2.0)
            case Box(size):
                radii.append(float(np.linalg.norm(size)) / 2.0)
            case ball:
                radii.append(ball.radius)
    return centers, np.array(radii)


def near(start: Vector3, end: Vector3, centers: Array, radii: Array) -> npt.NDArray[np.bool_]:
    """Tell which spheres a cable may touch, shape (n,): the others need no closer look.

    Args:
        start: Start of the cable, shape (3,), [m].
        end: Its end, shape (3,), [m].
        centers: Of the spheres, shape (n, 3), [m].
        radii: Of the spheres, shape (n,), [m].
    """
    way = end - start
    along = np.clip((centers - start) @ way / float(way @ way), 0.0, 1.0)
    nearest = start + along[:, None] * way
    close: npt.NDArray[np.bool_] = np.linalg.norm(centers - nearest, axis=1) <= radii
    return close


def segment_distance(a: Vector3, b: Vector3, c: Vector3, d: Vector3) -> float:
    """Return the smallest distance of two segments a-b and c-d, [m].

    Args:
        a: Shape (3,), [m].
        b: Shape (3,), [m].
        c: Shape (3,), [m].
        d: Shape (3,), [m].
    """
    u, v, w = b - a, d - c, a - c
    uu, uv, vv, uw, vw = u @ u, u @ v, v @ v, u @ w, v @ w
    determinant = uu * vv - uv * uv
    apart = determinant > 1e-12 * uu * vv  # else they are parallel
    s = np.clip((uv * vw - vv * uw) / determinant, 0.0, 1.0) if apart else 0.0
    t = np.clip((uv * s + vw) / vv, 0.0, 1.0) if vv > 0.0 else 0.0
    # with t at its end, the nearest s is another one
    s = np.clip((uv * t - uw) / uu, 0.0, 1.0)
    return float(np.linalg.norm(w + s * u - t * v))


def _depth_in_box(a: Vector3, b: Vector3, half: Vector3) -> float:
    """Return the largest distance to the nearest face along a segment; below 0 outside.

    The distance to each face is linear along the segment, so the largest of their minimum is at
    an end or where two of them are equal.
    """
    faces = [(half[i] - sign * a[i], -sign * (b - a)[i]) for i in range(3) for sign in (1.0, -1.0)]
    candidates = [0.0, 1.0]
    for i, (p, q) in enumerate(faces):
        for other, slope in faces[:i]:
            if q != slope:
                candidates.append((other - p) / (q - slope))
    inside = [s for s in candidates if 0.0 <= s <= 1.0]
    return float(max(min(p + s * q for p, q in faces) for s in inside))
