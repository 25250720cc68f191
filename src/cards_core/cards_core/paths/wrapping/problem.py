"""The paths of a robot that have no closed form, as tables: chains of obstacles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import assert_never, get_args

import numpy as np
import numpy.typing as npt

from cards_core.errors import DescriptionError, UnknownNameError
from cards_core.paths.layout import ContactSpec, link_layout
from cards_core.paths.wrapping.mesh import HullSurface, mesh_path, mesh_vertices
from cards_core.paths.wrapping.surfaces import (
    CylinderSurface,
    EllipsoidSurface,
    Surface,
    TorusSurface,
)
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Muscle,
    Sphere,
    Torus,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose
from cards_core.typing import Array, Vector3


@dataclass(frozen=True, eq=False)
class ObstacleSpec:
    """A wrap without a closed form.

    Attributes:
        surface: Index in `GeodesicProblem.surfaces`.
        link: Index of its link.
        pose: Surface to link.
        side: Side point in coordinates of the surface, shape (3,), [m], or None.
    """

    surface: int
    link: int
    pose: Pose
    side: Vector3 | None


@dataclass(frozen=True, eq=False)
class ChainSpec:
    """Obstacles in a row between two fixed points.

    Attributes:
        first, count: Its obstacles are ``obstacles[first:first + count]``.
        link_before, before: Link and position of the fixed point before, [m].
        link_after, after: The same for the one after.
    """

    first: int
    count: int
    link_before: int
    before: Vector3
    link_after: int
    after: Vector3


class GeodesicProblem:
    """What `GeodesicPaths` solves.

    Args:
        robot: The description; its joints do not matter.

    Attributes:
        links: Number of links; the link with this index is the world.
        rows: Index of every obstacle among the robot's contacts, shape (k,).
        muscles: Index of every obstacle's muscle, shape (k,).
        obstacles, chains: In the order of the muscles.

    Raises:
        DescriptionError: A path that cannot be, or a mesh that cannot be found.
        UnknownNameError: A wrap surface that does not exist, or of a type that is not known.
    """

    def __init__(self, robot: Robot) -> None:
        layout = link_layout(robot)
        self.links = layout.frames
        self.rows: npt.NDArray[np.intp] = layout.geodesics
        self.muscles = np.array([layout.contacts[row].muscle for row in self.rows], dtype=np.intp)
        self._source = robot.source
        # one for each surface, two for a torus that some paths go through and others around
        self._used: list[tuple[WrapSurface, bool]] = []
        index: dict[tuple[str, bool], int] = {}
        self.obstacles: list[ObstacleSpec] = []
        self.chains: list[ChainSpec] = []
        run: list[ContactSpec] = []
        for row in self.rows:
            contact = layout.contacts[row]
            item = contact.surface
            assert item is not None
            assert isinstance(contact.element, Wrap)
            self._check(robot, robot.muscles[contact.muscle], contact.element, item)
            if type(item.geometry) not in get_args(WrapGeometry):
                raise UnknownNameError.of_type(
                    "wrap surface", item.geometry, get_args(WrapGeometry)
                )
            around = not contact.element.goes_through(item)
            if (item.name, around) not in index:
                index[item.name, around] = len(self._used)
                self._used.append((item, around))
            self.obstacles.append(
                ObstacleSpec(index[item.name, around], contact.frame, item.pose, contact.side)
            )
            run.append(contact)
            following = layout.contacts[row + 1] if row + 1 < len(layout.contacts) else None
            if following is not None and following.point == contact.after:
                continue
            before, after = run[0].before, contact.after
            self.chains.append(
                ChainSpec(
                    len(self.obstacles) - len(run),
                    len(run),
                    int(layout.point_frame[before]),
                    layout.point_position[before],
                    int(layout.point_frame[after]),
                    layout.point_position[after],
                )
            )
            run = []
        self._meshes = {
            item.name: self._mesh(item)
            for item, _ in self._used
            if isinstance(item.geometry, Mesh)
        }

    def _check(self, robot: Robot, muscle: Muscle, wrap: Wrap, item: WrapSurface) -> None:
        if not wrap.inside or isinstance(item.geometry, Torus):
            return
        raise DescriptionError(
            f"it cannot run inside of '{wrap.surface}' here",
            source=robot.source,
            line=wrap.line if wrap.line is not None else muscle.line,
            element=f"path of muscle '{muscle.name}'",
            expected="inside of a torus, or of a cylinder or sphere alone between two via points",
        )

    def _mesh(self, item: WrapSurface) -> bytes:
        assert isinstance(item.geometry, Mesh)
        path = mesh_path(item.geometry.uri, self._source)
        try:
            if path is not None:
                return path.read_bytes()
            problem = "no such file"
        except OSError as error:
            problem = str(error)
        raise DescriptionError(
            f"mesh '{item.geometry.uri}': {problem}",
            source=self._source,
            line=item.line,
            element=f"wrap surface '{item.name}'",
            expected="a file that can be read, relative to the description",
        )

    @cached_property
    def surfaces(self) -> list[Surface]:
        """The surfaces; those of meshes are computed here."""
        return [self._surface(*used) for used in self._used]

    def _surface(self, item: WrapSurface, around: bool) -> Surface:
        geometry: WrapGeometry = item.geometry
        match geometry:
            case Sphere():
                return EllipsoidSurface(np.full(3, geometry.radius))
            case Ellipsoid():
                return EllipsoidSurface(geometry.radii)
            case Cylinder():
                return CylinderSurface(geometry.radius, geometry.length)
            case Torus():
                return TorusSurface(geometry.radius, geometry.tube_radius, closed=around)
            case Mesh():
                return self._hull(item, geometry)
            case _:
                assert_never(geometry)  # the types were checked at the start

    def _hull(self, item: WrapSurface, geometry: Mesh) -> HullSurface:
        # scipy.spatial takes long to import and is not needed where a compiled model is loaded
        from cards_core.paths.wrapping.mesh import smooth_hull

        try:
            vertices = mesh_vertices(self._meshes[item.name], geometry.uri)
            return smooth_hull(vertices * geometry.scale)
        except ValueError as error:
            raise DescriptionError(
                f"mesh '{geometry.uri}': {error}",
                source=self._source,
                line=item.line,
                element=f"wrap surface '{item.name}'",
                expected="an STL or OBJ file of a solid body",
            ) from error

    def content(self) -> bytes:
        """Bytes that are equal for two problems exactly if their solutions are."""
        parts = [str(self.links).encode()]

        def add(*values: Array | float) -> None:
            for value in values:
                parts.append((np.asarray(value, dtype="<f8") + 0.0).tobytes())

        for item, around in self._used:
            geometry = item.geometry
            parts.append(f"{type(geometry).__name__} {around}".encode())
            if isinstance(geometry, Mesh):
                parts += [self._meshes[item.name], geometry.uri.rpartition(".")[2].encode()]
                add(geometry.scale)
            else:
                add(*vars(geometry).values())
        for obstacle in self.obstacles:
            parts.append(repr((obstacle.surface, obstacle.link)).encode())
            add(obstacle.pose.matrix, np.zeros(0) if obstacle.side is None else obstacle.side)
        for chain in self.chains:
            parts.append(repr((chain.first, chain.count)).encode())
            parts.append(repr((chain.link_before, chain.link_after)).encode())
            add(chain.before, chain.after)
        return b"\n".join(parts)
