"""The pairs of a robot as tables that C reads, and the smallest distance of many points."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from cards_core.analysis.interference.distances import library, pointer
from cards_core.analysis.interference.pairs import Pair
from cards_core.analysis.interference.shapes import Body
from cards_core.errors import ShapeError
from cards_core.paths.layout import PathLayout
from cards_core.typing import Array

Integers = npt.NDArray[np.int32]


class _Robot(ctypes.Structure):
    """``robot_t`` of ``interference.c``."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("links", "bodies", "points", "pieces")),
        *((name, ctypes.c_int) for name in ("piece_pairs", "body_pairs")),
        *((name, ctypes.c_void_p) for name in ("kinds", "sizes", "vertices", "frame")),
        *((name, ctypes.c_void_p) for name in ("position", "start", "pairs", "ends")),
    )


class DistanceTables:
    """The pairs of a robot as the C code reads them.

    Args:
        links: Number of links.
        layout: Muscle paths with links as frames.
        bodies: Of all links.
        pieces: First path point of every straight piece.
        piece_pairs: Pieces with pieces.
        body_pairs: Pieces with bodies.
    """

    def __init__(
        self,
        links: int,
        layout: PathLayout,
        bodies: tuple[Body, ...],
        pieces: list[int],
        *,
        piece_pairs: list[Pair],
        body_pairs: list[Pair],
    ) -> None:
        self._library = library()
        self._points = len(layout.point_frame)
        self._links = links
        firsts = np.cumsum([0, *(len(body.vertices) for body in bodies)])
        kinds = [
            (b.kind, b.link, first, len(b.vertices))
            for b, first in zip(bodies, firsts, strict=False)
        ]
        sizes = [
            [*b.pose.rotation.T.ravel(), *b.pose.translation, *b.size, b.radius] for b in bodies
        ]
        pairs = [*piece_pairs, *body_pairs]
        self._keep: list[npt.NDArray[np.generic]] = [
            np.array(kinds, dtype=np.int32),
            np.array(sizes, dtype=float),
            np.concatenate([np.zeros((0, 3)), *(body.vertices for body in bodies)]),
            np.array(layout.point_frame, dtype=np.int32),
            np.ascontiguousarray(layout.point_position, dtype=float),
            np.array(pieces, dtype=np.int32),
            np.array([(pair.first, pair.second) for pair in pairs], dtype=np.int32),
            np.array([(*pair.cuts, pair.radii, pair.own) for pair in pairs], dtype=float),
        ]
        counts = (links, len(bodies), self._points, len(pieces), len(piece_pairs), len(body_pairs))
        self._robot = _Robot(*counts, *(array.ctypes.data for array in self._keep))

    def evaluate(
        self, poses: Array, points: Array | None
    ) -> tuple[Array, Integers, npt.NDArray[np.bool_]]:
        """Find the smallest distance of every point.

        Args:
            poses: Link-to-world matrices, the world last, shape (n, links + 1, 4, 4).
            points: Path points in the world, shape (n, P, 3), [m]; None if all are via points.

        Returns:
            Distances, shape (n,), [m], infinite where there is no pair; index of the closest pair,
            shape (n,), -1 where there is none; whether all was finite, shape (n,).
        """
        count = len(poses)
        shapes: list[tuple[Array, tuple[int, ...]]]
        shapes = [(poses, (count, self._links + 1, 4, 4))]
        if points is not None:
            shapes.append((points, (count, self._points, 3)))
        for array, shape in shapes:
            if array.shape != shape or not array.flags.c_contiguous:
                raise ShapeError(
                    f"an array of shape {array.shape} (expected: {shape}, contiguous)"
                )
        distances, found = np.empty(count), np.empty(count, dtype=np.int32)
        good = np.empty(count, dtype=np.uint8)
        work = np.empty(3 * self._points)
        self._library.cards_interference(
            ctypes.byref(self._robot),
            ctypes.c_long(count),
            pointer(poses),
            None if points is None else pointer(points),
            *(pointer(array) for array in (work, distances, found, good)),
        )
        return distances, found, good.astype(bool)
