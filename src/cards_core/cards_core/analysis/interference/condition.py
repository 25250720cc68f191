"""The condition ``interference``: no muscle comes too close to another one or to a link."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.interference.distances import Body, bodies_of, library
from cards_core.analysis.interference.pairs import (
    InterferenceOptions,
    Pair,
    body_pairs,
    ignored_pairs,
    piece_pairs,
    pieces_of,
    radii_of,
)
from cards_core.analysis.native_library import pointer
from cards_core.analysis.status import PointStatus
from cards_core.analysis.tangent import unit_quaternions
from cards_core.dynamics import Dynamics
from cards_core.errors import ShapeError
from cards_core.paths.layout import PathLayout, link_layout
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.model import Robot
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


CHUNK = 1024
"""Points whose link poses are held at once."""


class Interference:
    """Smallest distance of straight muscle pieces from each other and from links.

    The point is feasible if the distance is positive and at least ``min_distance``. A shape that a
    muscle is attached to counts only where the muscle, but for its end, is in it.

    Args:
        dynamics: Of the robot; it and this object belong to one thread.
        options: What counts; see `InterferenceOptions`.

    Attributes:
        name: ``interference``.
        columns: ``status``; ``distance`` [m], infinite where nothing is compared; ``muscle`` and
            ``other``, the closest pair: indices into `others`, -1 where there is none.
        others: The muscles' names in the robot's order, then those of the shapes, ``link/shape``.

    Raises:
        ConditionError: Options that do not fit the robot.
        UnknownNameError: A name in ``ignore`` that does not exist.
        DescriptionError: A mesh that cannot be read.
        CompilationError: There is no C compiler.
    """

    name = "interference"
    columns = (
        STATUS,
        Column("distance", "float64", "m", "smallest distance; 0 and less: penetration"),
        Column("muscle", "int16", "", "index of a muscle of the closest pair"),
        Column("other", "int16", "", "its partner: a muscle, or, from their number on, a shape"),
    )

    def __init__(self, dynamics: Dynamics, options: InterferenceOptions | None = None) -> None:
        self.options = options = options or InterferenceOptions()
        self._dynamics = dynamics
        robot, tree = dynamics.robot, dynamics.tree
        self._layout = layout = link_layout(robot)
        self._paths = _WrappedPaths(robot) if layout.contacts else None
        radii = radii_of(tree, options)
        pieces = pieces_of(layout, tree)
        bodies: tuple[Body, ...] = ()
        if options.pairs != "muscles":
            bodies = bodies_of(robot, options.shapes, options.meshes)
        ignored = ignored_pairs(tree, options)
        with_pieces = with_bodies = []
        if options.pairs != "links":
            with_pieces = piece_pairs(pieces, radii, options, ignored)
        if options.pairs != "muscles":
            with_bodies = body_pairs(
                pieces, bodies, tree, radii=radii, options=options, ignored=ignored
            )
        starts = [piece.point for piece in pieces]
        self._tables = DistanceTables(
            len(robot.links),
            layout,
            bodies,
            starts,
            piece_pairs=with_pieces,
            body_pairs=with_bodies,
        )
        count = len(robot.muscles)
        self.others = (*(m.name for m in robot.muscles), *(body.name for body in bodies))
        couples = [(pieces[p.first].muscle, pieces[p.second].muscle) for p in with_pieces]
        couples += [(pieces[p.first].muscle, count + p.second) for p in with_bodies]
        # the last row belongs to the index -1
        ordered = [(min(couple), max(couple)) for couple in couples]
        self._couples = np.array([*ordered, (-1, -1)], dtype=np.int16)

    def evaluate(self, q: Array) -> Results:
        """Answer for every row of q, shape (n, nq); see `Condition.evaluate`.

        Raises:
            ShapeError: Rows of another length.
        """
        q = np.asarray(q, dtype=float)
        nq = self._dynamics.tree.nq
        if q.ndim != 2 or q.shape[1] != nq:
            raise ShapeError(f"q has shape {q.shape} (expected: (n, {nq}))")
        status = np.full(len(q), PointStatus.NO_MUSCLES, dtype=np.uint8)
        distance = np.full(len(q), np.nan)
        couples = np.full((len(q), 2), -1, dtype=np.int16)
        if self._dynamics.robot.muscles:
            for start in range(0, len(q), CHUNK):
                rows = slice(start, start + CHUNK)
                self._chunk(q[rows], status[rows], distance[rows], couples[rows])
        return {
            "status": status,
            "distance": distance,
            "muscle": couples[:, 0],
            "other": couples[:, 1],
        }

    def _chunk(
        self,
        q: Array,
        status: npt.NDArray[np.uint8],
        distance: Array,
        couples: npt.NDArray[np.int16],
    ) -> None:
        q = unit_quaternions(self._dynamics.tree, q)
        poses = self._poses(q)
        points = lost = None
        if self._paths is not None:
            points, lost = self._paths.points(poses)
        distance[:], pairs, good = self._tables.evaluate(poses, points)
        couples[:] = self._couples[pairs]
        free = (distance > 0.0) & (distance >= self.options.min_distance)
        status[:] = np.where(free, PointStatus.FEASIBLE, PointStatus.INFEASIBLE)
        good &= np.isfinite(q).all(axis=1)
        status[~good] = PointStatus.NOT_FINITE
        if lost is not None:
            status[good & lost] = PointStatus.PATH_NOT_FOUND
            good &= ~lost
        distance[~good] = np.nan
        couples[~good] = -1

    def _poses(self, q: Array) -> Array:
        """Poses of all links and of the world, shape (n, links + 1, 4, 4)."""
        poses = np.empty((len(q), len(self._dynamics.robot.links) + 1, 4, 4))
        poses[:, -1] = np.eye(4)
        poses[:, :-1] = self._dynamics.batch_link_poses(q)
        return poses

    def pair_name(self, muscle: int, other: int) -> str:
        """Return ``muscle - other`` for a pair of columns, ``none`` for -1."""
        return "none" if muscle < 0 else f"{self.others[muscle]} - {self.others[other]}"


class _WrappedPaths:
    """Path points of muscles that wrap, one pose at a time."""

    def __init__(self, robot: Robot) -> None:
        layout = link_layout(robot)
        self._geodesics = None
        if len(layout.geodesics):
            self._geodesics = GeodesicPaths(robot)
        self._paths = Paths(layout, self._geodesics)

    def points(self, poses: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
        """Return the path points in the world, shape (n, P, 3), [m], and where none was found."""
        out = np.full((len(poses), len(self._paths.layout.point_frame), 3), np.nan)
        lost = np.zeros(len(poses), dtype=bool)
        for i, pose in enumerate(poses):
            if not np.isfinite(pose).all():
                continue
            rows = None
            if self._geodesics is not None:
                # from nothing each time: the answer must not depend on which point came before
                self._geodesics.reset()
                rows = self._geodesics.solve(pose[:-1])
                lost[i] = self._geodesics.failures > 0
            self._paths.solve(pose[:, :3, :3], pose[:, :3, 3], rows)
            out[i] = self._paths.points
        return out, lost
