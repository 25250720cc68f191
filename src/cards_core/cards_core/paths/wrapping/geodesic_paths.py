"""All paths of a robot that have no closed form: chains of surfaces, ellipsoids, tori, meshes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import get_args

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.codegen.kernel import SourceKernel
from cards_core.codegen.native import load_or_build
from cards_core.codegen.toolchain import find_compiler
from cards_core.errors import CompilationError
from cards_core.paths.wrapping.chains import Chain, Obstacle
from cards_core.paths.wrapping.geodesic import sample
from cards_core.paths.wrapping.native_source import geodesic_kernels
from cards_core.paths.wrapping.path_newton import Placed
from cards_core.paths.wrapping.problem import GeodesicProblem, ObstacleSpec
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend, Vector3


class GeodesicPaths:
    """Contacts of every wrap without a closed form, see `cards_core.paths.layout`.

    A wrap that is not touched is a point on the straight line between its neighbours.

    Args:
        robot: The description; its joints do not matter.
        backend: ``compiled`` (native code, cached) or ``numeric`` (NumPy, the reference).

    Attributes:
        contact_rows: Index of every solved contact in the robot-wide list of contacts, shape (k,).

    Raises:
        DescriptionError: A combination that cannot be solved, or a mesh that cannot be read.
        UnknownNameError: A wrap surface that does not exist, or no such backend.
    """

    contact_rows: npt.NDArray[np.intp]

    def __init__(self, robot: Robot, backend: Backend = "compiled") -> None:
        check_choice(backend, "backend", get_args(Backend))
        problem = GeodesicProblem(robot)
        self.contact_rows = problem.rows
        self._muscle, self._muscles = problem.muscles, len(robot.muscles)
        self._solver: _Native | _Numeric
        if backend == "compiled" and len(problem.rows):
            self._solver = _native_or_numeric(problem)
        else:
            self._solver = _Numeric(problem)

    @property
    def failures(self) -> int:
        """How often no path was found and a guess returned, since the last reset."""
        return self._solver.failures

    @property
    def lost_muscles(self) -> npt.NDArray[np.bool_]:
        """Of which muscles no path was found in the last solution, shape (m,)."""
        out = np.zeros(self._muscles, dtype=bool)
        out[self._muscle[self._solver.lost_rows]] = True
        return out

    def reset(self) -> None:
        """Forget the last solution and the failures."""
        self._solver.reset()

    def solve(self, link_poses: Array) -> Array:
        """Find all contacts.

        Args:
            link_poses: Link-to-world matrices, shape (n, 4, 4), in the order of ``robot.links``.

        Returns:
            Rows of start (3), end (3), arc length [m] and turning angle [rad], shape (k, 8), in
            coordinates of each surface's link; overwritten by the next call.
        """
        return self._solver.solve(link_poses)

    def arc_points(self, count: int) -> list[Array]:
        """Return points along every contact of the last solution, for drawing.

        Args:
            count: Points per contact, at least 2.

        Returns:
            One array of shape (count, 3) per contact, in coordinates of its surface's link, [m].
        """
        return self._solver.arc_points(count)


class _Native:
    """Native code; the last solution, its warm start, stays in its own output buffers."""

    def __init__(self, problem: GeodesicProblem) -> None:
        def kernels() -> Sequence[SourceKernel]:
            return geodesic_kernels(problem)

        model = load_or_build(b"geodesic paths 3\n" + problem.content(), kernels)
        paths, points = model.bind("geodesic_paths"), model.bind("geodesic_points")
        self._call = paths.call
        self._poses = paths.inputs["poses"]
        self._rows, self._warm_start = paths.outputs["rows"], paths.outputs["warm_start"]
        self._failures, self._lost = paths.outputs["failures"], paths.outputs["lost"]
        self._points = points

    @property
    def failures(self) -> int:
        return int(self._failures[0])

    @property
    def lost_rows(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._lost != 0.0)

    def reset(self) -> None:
        self._warm_start[:] = 0.0
        self._failures[:] = 0.0

    def solve(self, link_poses: Array) -> Array:
        self._poses[:] = link_poses
        self._call()
        return self._rows

    def arc_points(self, count: int) -> list[Array]:
        inputs = self._points.inputs
        inputs["rows"][:] = self._rows
        inputs["warm_start"][:] = self._warm_start
        out = np.empty((len(self._rows), count, 3))
        for k, share in enumerate(np.linspace(0.0, 1.0, count)):
            inputs["share"][0] = share
            self._points.call()
            out[:, k] = self._points.outputs["points"]
        return list(out)


def _native_or_numeric(problem: GeodesicProblem) -> _Native | _Numeric:
    try:
        return _Native(problem)
    except CompilationError:
        if find_compiler() is not None:
            raise
    warnings.warn(
        "no C compiler found ($CC, cc, gcc, clang): paths over ellipsoids, tori, meshes and rows "
        "of surfaces are computed in Python, about 1000 times slower. Install one, e.g. 'apt "
        "install gcc'.",
        RuntimeWarning,
        stacklevel=3,
    )
    return _Numeric(problem)


class _Numeric:
    """NumPy reference."""

    def __init__(self, problem: GeodesicProblem) -> None:
        self._problem = problem
        self._chains = []
        for spec in problem.chains:
            obstacles = [
                Obstacle(
                    Placed(problem.surfaces[item.surface], np.eye(3), np.zeros(3)),
                    item.side,
                )
                for item in problem.obstacles[spec.first : spec.first + spec.count]
            ]
            self._chains.append(Chain(obstacles))
        self._rows = np.zeros((len(problem.rows), 8))
        self._poses = np.zeros((problem.links + 1, 4, 4))
        self._poses[-1] = np.eye(4)

    @property
    def failures(self) -> int:
        return sum(chain.failures for chain in self._chains)

    @property
    def lost_rows(self) -> npt.NDArray[np.bool_]:
        return np.array([c.lost for c in self._chains for _ in c.obstacles], dtype=bool)

    def reset(self) -> None:
        for chain in self._chains:
            chain.reset()
            chain.failures = 0

    def solve(self, link_poses: Array) -> Array:
        self._poses[:-1] = link_poses
        for chain, spec in zip(self._chains, self._problem.chains, strict=True):
            items = self._problem.obstacles[spec.first : spec.first + spec.count]
            # coordinates relative to the first point keep their digits far from the origin
            origin = self._world(spec.link_before, spec.before)
            q = self._world(spec.link_after, spec.after) - origin
            for obstacle, item in zip(chain.obstacles, items, strict=True):
                obstacle.placed.rotation = self._poses[item.link, :3, :3] @ item.pose.rotation
                place = self._world(item.link, item.pose.translation)
                obstacle.placed.translation = place - origin
            chain.solve(np.zeros(3), q)
            self._write(chain, items, origin, q, self._rows[spec.first : spec.first + spec.count])
        return self._rows

    def _world(self, link: int, x: Vector3) -> Vector3:
        pose = self._poses[link]
        return np.asarray(pose[:3, :3] @ x + pose[:3, 3])

    def _write(
        self,
        chain: Chain,
        items: Sequence[ObstacleSpec],
        origin: Vector3,
        q: Vector3,
        rows: Array,
    ) -> None:
        """Write the contacts of a chain in coordinates of the surfaces' links."""
        k, count, before = 0, len(items), np.zeros(3)
        while k < count:
            contact = chain.contacts[k]
            if contact is not None:
                rows[k, :3] = items[k].pose.apply(contact.start)
                rows[k, 3:6] = items[k].pose.apply(contact.end)
                rows[k, 6], rows[k, 7] = contact.length, contact.angle
                before = chain.obstacles[k].placed.outward(contact.end)
                k += 1
                continue
            stop = k
            while stop < count and chain.contacts[stop] is None:
                stop += 1
            after = q
            if stop < count and (contact := chain.contacts[stop]) is not None:
                after = chain.obstacles[stop].placed.outward(contact.start)
            for j in range(k, stop):
                # in this order along the straight piece, and away from its ends
                point = before + (j - k + 1) / (stop - k + 1) * (after - before) + origin
                pose = self._poses[items[j].link]
                rows[j, :3] = rows[j, 3:6] = pose[:3, :3].T @ (point - pose[:3, 3])
                rows[j, 6:] = 0.0
            k = stop

    def arc_points(self, count: int) -> list[Array]:
        out = []
        for chain, spec in zip(self._chains, self._problem.chains, strict=True):
            for k, obstacle in enumerate(chain.obstacles):
                row, contact = spec.first + k, chain.contacts[k]
                if contact is None:
                    out.append(np.repeat(self._rows[row : row + 1, :3], count, axis=0))
                else:
                    points = sample(obstacle.surface, contact, count)
                    out.append(self._problem.obstacles[row].pose.apply(points))
        return out
