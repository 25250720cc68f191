"""Terrains: what robots without a base crawl over, from one line of text.

    hills:amplitude=0.02,cell=0.04,friction=0.5

A kind, a colon, and parameters of that kind as ``name=value`` with commas between them; those that
are left out have their defaults. z points up, directions are angles from the x axis to the left.
Every terrain is a plane, boxes on a plane, or a `HeightField`, which all simulators read.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cards_core.checks import check_choice
from cards_core.errors import CardsError, ParameterError, UnknownNameError
from cards_core.parameters.declaration import REQUIRED, Parameter, parameter, parameters_of
from cards_core.robot.elements import (
    WORLD,
    Box,
    Collision,
    Geometry,
    HeightField,
    Inertia,
    Joint,
    Link,
    Plane,
    Visual,
)
from cards_core.robot.height_field import (
    grid_points,
    mesh_heights,
    read_heights,
    surface_height,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, rpy_matrix
from cards_core.typing import Array

NAME = "terrain"
"""Of the model in a world, and of its link."""

COLOUR = (0.72, 0.68, 0.6, 1.0)

_PLANE = (20.0, 20.0)  # [m], drawn size

FARTHEST = 1e5
"""Farthest that ground may reach, [m]: beyond, single-precision heights err by centimetres."""


@dataclass(frozen=True, kw_only=True)
class Terrain(ABC):
    """Base of all kinds.

    Attributes:
        friction: mu of the ground; that of a contact is the product of both bodies' values.
        level: z of the zero height, [m]; None: see `cards_core.robot.terrain_place`.
    """

    kind: ClassVar[str]

    friction: float = parameter(1.0, "sliding coefficient mu of the ground", lower=0.0)
    level: float | None = parameter(
        None, "z of height zero; without it 0, or lower if the robot would be in the ground", "m"
    )

    @abstractmethod
    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """Return what the ground is made of, with height zero at z = 0.

        Raises:
            CardsError: A file cannot be used.
        """

    def resolved(self) -> Terrain:
        """Return the same terrain with absolute paths."""
        return self


def _random_places(seed: int, count: int, extent: float) -> Array:
    """Return places in a square around the origin, shape (count, 2), [m]."""
    half = 0.5 * extent
    return np.random.default_rng(seed).uniform(-half, half, (count, 2))


def _floor() -> tuple[Geometry, Pose]:
    return Plane(np.array([0.0, 0.0, 1.0]), _PLANE), Pose()


@dataclass(frozen=True, kw_only=True)
class Flat(Terrain):
    """A horizontal plane."""

    kind = "flat"

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        return [_floor()]


@dataclass(frozen=True, kw_only=True)
class Slope(Terrain):
    """A plane that rises: z = tan(angle) s, with s along ``direction``."""

    kind = "slope"

    angle: float = parameter(5.0, "against the horizontal", "deg", lower=-80.0, upper=80.0)
    direction: float = parameter(0.0, "in which it rises", "deg")

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        turn = rpy_matrix(0.0, -math.radians(self.angle), math.radians(self.direction))
        return [(Plane(np.array([0.0, 0.0, 1.0]), _PLANE), Pose(turn))]


@dataclass(frozen=True, kw_only=True)
class Grid(Terrain):
    """Base of the kinds that are heights on a grid."""

    extent: float = parameter(6.0, "side of the square that has ground", "m", above=0.0)
    resolution: float = parameter(0.02, "largest distance of neighbours", "m", above=0.0)

    @abstractmethod
    def heights(self, x: Array, y: Array) -> Array:
        """Return the heights at points, [m]; all of one shape."""

    def field(self) -> HeightField:
        """Return the ground. Raises `CardsError` for what cannot be used."""
        size = (self.extent, self.extent)
        return HeightField(self.heights(*grid_points(size, self.resolution)), size)

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        return [(self.field(), Pose())]


@dataclass(frozen=True, kw_only=True)
class Hills(Grid):
    """z = A sin(x/c) cos(y/c) [NTRT], with wavelengths of 2 pi c."""

    kind = "hills"

    amplitude: float = parameter(0.02, "A", "m", lower=0.0)
    cell: float = parameter(0.04, "c", "m", above=0.0)

    def heights(self, x: Array, y: Array) -> Array:
        """See `Grid`."""
        return np.asarray(self.amplitude * np.sin(x / self.cell) * np.cos(y / self.cell))


@dataclass(frozen=True, kw_only=True)
class Craters(Grid):
    """Bowls at random places, depth (1 - (r/R)^2)^2, within ridges of height ``rim``."""

    kind = "craters"

    count: int = parameter(100, "number of craters", lower=0, upper=100_000)
    radius: float = parameter(0.15, "R", "m", above=0.0)
    depth: float = parameter(0.03, "of the middle", "m", lower=0.0)
    rim: float = parameter(0.01, "height of the ridge", "m", lower=0.0)
    seed: int = parameter(1, "of the places", lower=0, upper=2**31 - 1)

    def heights(self, x: Array, y: Array) -> Array:
        """See `Grid`."""
        places = _random_places(self.seed, self.count, self.extent)
        bowl, ridge = np.zeros(x.shape), np.zeros(x.shape)
        # the ridge is below 1e-7 of its height at two radii
        reach = 2.0 * self.radius
        for place in places:
            columns = np.nonzero(np.abs(x[0] - place[0]) <= reach)[0]
            rows = np.nonzero(np.abs(y[:, 0] - place[1]) <= reach)[0]
            if not columns.size or not rows.size:
                continue
            part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
            r = np.hypot(x[part] - place[0], y[part] - place[1]) / self.radius
            deep = self.depth * np.maximum(1.0 - r**2, 0.0) ** 2
            bowl[part] = np.maximum(bowl[part], deep)
            high = self.rim * np.exp(-(((r - 1.0) / 0.25) ** 2)) * (r < 2.0)
            ridge[part] = np.maximum(ridge[part], high)
        return np.asarray(ridge - bowl)


@dataclass(frozen=True, kw_only=True)
class FileTerrain(Terrain):
    """Base of the kinds that are read from a file."""

    file: str = parameter(REQUIRED, "what the ground is read from")

    def resolved(self) -> Terrain:
        """See `Terrain`."""
        return replace(self, file=str(Path(self.file).resolve()))


@dataclass(frozen=True, kw_only=True)
class HeightMap(FileTerrain):
    """Heights from an image or a table.

    Images are PNG, JPEG, BMP or TIFF, 0 (black) to 1 (white), with up as +y. Tables are NPZ with
    ``height`` or CSV without names, in metres, with rows along +y.
    """

    kind = "heightmap"

    file: str = parameter(REQUIRED, "image or table")
    extent: float = parameter(
        6.0, "from the first to the last column; cells are square", "m", above=0.0
    )
    scale: float = parameter(1.0, "factor of the heights; of an image the height of white, in m")

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        heights = self.scale * read_heights(Path(self.file))
        rows, columns = heights.shape
        size = (self.extent, self.extent * (rows - 1) / (columns - 1))
        return [(HeightField(heights, size), Pose())]


@dataclass(frozen=True, kw_only=True)
class MeshTerrain(FileTerrain):
    """The upper surface of a mesh, STL or OBJ, z up, sampled on a grid around its middle."""

    kind = "mesh"

    file: str = parameter(REQUIRED, "STL or OBJ")
    scale: float = parameter(1.0, "length of the file's unit", "m", above=0.0)
    resolution: float = parameter(0.02, "largest distance of neighbours", "m", above=0.0)

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        return [(mesh_heights(Path(self.file), self.resolution, self.scale), Pose())]


@dataclass(frozen=True, kw_only=True)
class Blocks(Terrain):
    """Cubes at random places, sunk into a plane so that ``height`` of each is above it."""

    kind = "blocks"

    count: int = parameter(500, "number of blocks", lower=0, upper=100_000)
    size: float = parameter(0.05, "edge of a block", "m", above=0.0)
    height: float = parameter(0.005, "above the plane", "m", above=0.0)
    extent: float = parameter(2.0, "side of the square that has their centres", "m", above=0.0)
    seed: int = parameter(1, "of the places", lower=0, upper=2**31 - 1)

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        places = _random_places(self.seed, self.count, self.extent)
        cube = Box(np.full(3, self.size))
        z = self.height - 0.5 * self.size
        blocks = [(cube, Pose(translation=np.array([x, y, z]))) for x, y in places]
        return [_floor(), *blocks]


@dataclass(frozen=True, kw_only=True)
class Stairs(Terrain):
    """Steps that rise along ``direction``, centred on the line through the origin."""

    kind = "stairs"

    count: int = parameter(10, "number of steps", lower=1, upper=10_000)
    width: float = parameter(2.0, "across", "m", above=0.0)
    tread: float = parameter(0.05, "depth of a step", "m", above=0.0)
    rise: float = parameter(0.01, "height of a step", "m", above=0.0)
    start: float = parameter(0.5, "distance of the first step from the origin", "m")
    direction: float = parameter(0.0, "in which they rise", "deg")

    def shapes(self) -> list[tuple[Geometry, Pose]]:
        """See `Terrain`."""
        turn = Pose(rpy_matrix(0.0, 0.0, math.radians(self.direction)))
        steps: list[tuple[Geometry, Pose]] = []
        for i in range(self.count):
            # each reaches to the last one's end, so that there is ground under all of them
            length, top = (self.count - i) * self.tread, (i + 1) * self.rise
            middle = np.array([self.start + i * self.tread + 0.5 * length, 0.0, 0.5 * top])
            box = Box(np.array([length, self.width, top]))
            steps.append((box, turn @ Pose(translation=middle)))
        return [_floor(), *steps]


TERRAINS: dict[str, type[Terrain]] = {
    kind.kind: kind
    for kind in (Flat, Slope, Hills, Blocks, Stairs, Craters, HeightMap, MeshTerrain)
}
"""All kinds by name."""


# Text --------------------------------------------------------------------------------------------


def read_terrain(text: str) -> Terrain:
    """Return the terrain that a line of text describes.

    Args:
        text: ``kind`` or ``kind:name=value,name=value``.

    Raises:
        UnknownNameError: No such kind or parameter; the message lists all.
        ParameterError: A value that does not fit, is missing, or is there twice.
    """
    kind, _, rest = text.strip().partition(":")
    check_choice(kind.strip(), "terrain", TERRAINS)
    cls = TERRAINS[kind.strip()]
    specs = {spec.name: spec for spec in parameters_of(cls)}
    given: dict[str, Any] = {}
    for item in rest.split(",") if rest.strip() else ():
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise ParameterError(f"terrain '{text}': '{item.strip()}' (expected: name=value)")
        check_choice(name, f"parameter of terrain {cls.kind}", specs)
        if name in given:
            raise ParameterError(f"terrain '{text}': '{name}' is given twice (expected: once)")
        try:
            given[name] = specs[name].check(_value(specs[name], value))
        except ParameterError as error:
            raise ParameterError(f"terrain '{text}': {error}") from None
    for name, spec in specs.items():
        if spec.required and name not in given:
            raise ParameterError(
                f"terrain '{text}' has no '{name}' (expected: {cls.kind}:{name}=...)"
            )
    return cls(**given)


def _value(spec: Parameter, text: str) -> Any:
    """Return a number for what is a number; the check of the parameter refuses the rest."""
    if spec.scalar_type is str:
        return text
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def terrain_text(terrain: Terrain) -> str:
    """Return the text of a terrain: `read_terrain` makes the same of it."""
    parts = []
    for spec in parameters_of(type(terrain)):
        value = getattr(terrain, spec.name)
        if spec.required or value != spec.default:
            parts.append(f"{spec.name}={value}")
    return f"{terrain.kind}:{','.join(parts)}" if parts else terrain.kind


def ground_shapes(terrain: Terrain) -> list[tuple[Geometry, Pose]]:
    """Return what the ground is made of, as `Terrain.shapes`, if it is of a size to compute with.

    Raises:
        CardsError: A file cannot be used, or the ground reaches farther than `FARTHEST`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        shapes = terrain.shapes()
    for shape, pose in shapes:
        values = [pose.translation]
        if isinstance(shape, HeightField):
            values += [shape.heights.ravel(), np.array(shape.size)]
        elif isinstance(shape, Box):
            values.append(np.asarray(shape.size))
        reach = float(np.abs(np.concatenate(values)).max())  # NaN stays NaN
        if not reach <= FARTHEST:
            raise CardsError(
                f"terrain '{terrain_text(terrain)}' has heights or places of {reach:g} m "
                f"(expected: at most {FARTHEST:g} m)"
            )
    return shapes


# As a model --------------------------------------------------------------------------------------


def terrain_model(terrain: Terrain, level: float | None = None) -> Robot:
    """Return a terrain as a model that does not move.

    Args:
        terrain: The terrain.
        level: z of height zero, [m]; None: the terrain's own, or 0.

    Raises:
        CardsError: As `ground_shapes`.
    """
    if level is None:
        level = terrain.level or 0.0
    lift = Pose(translation=np.array([0.0, 0.0, level]))
    shapes = [(shape, lift @ pose) for shape, pose in ground_shapes(terrain)]
    link = Link(
        NAME,
        Inertia(0.0, np.zeros(3), np.zeros((3, 3))),
        visuals=tuple(
            Visual(f"ground {i}", shape, pose, COLOUR) for i, (shape, pose) in enumerate(shapes)
        ),
        collisions=tuple(
            Collision(f"ground {i}", shape, pose, terrain.friction)
            for i, (shape, pose) in enumerate(shapes)
        ),
    )
    return Robot(NAME, (link,), (Joint(f"{NAME}_fixed", "fixed", WORLD, NAME),))


def height_function(terrain: Terrain) -> Callable[[npt.ArrayLike, npt.ArrayLike], Array]:
    """Return z(x, y) of the ground with height zero at z = 0, [m]; NaN where there is none."""
    shapes = ground_shapes(terrain)
    places = np.array([pose.translation[:2] for _, pose in shapes])
    reaches = np.array([_reach(shape) for shape, _ in shapes])

    def height(x: npt.ArrayLike, y: npt.ArrayLike) -> Array:
        xs, ys = np.broadcast_arrays(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
        out = np.full(xs.shape, np.nan)
        if not xs.size:
            return out
        # most of hundreds of blocks are far from all points
        points = np.stack([xs.ravel(), ys.ravel()], axis=-1)
        low, high = np.fmin.reduce(points), np.fmax.reduce(points)
        far = np.any(
            (places + reaches[:, None] < low) | (places - reaches[:, None] > high), axis=1
        )
        for i in np.flatnonzero(~far):
            out = np.fmax(out, _height(*shapes[i], xs, ys))
        return out

    return height


def _reach(shape: Geometry) -> float:
    """Return how far from its place a shape has heights at most, [m]."""
    return float(np.hypot(shape.size[0], shape.size[1])) if isinstance(shape, Box) else math.inf


def _height(shape: Geometry, pose: Pose, x: Array, y: Array) -> Array:
    """Return the z of the upper side of a shape, NaN beside it."""
    match shape:
        case HeightField():
            return surface_height(shape, x, y)
        case Plane():
            a, b, c = pose.rotation @ shape.normal
            px, py, pz = pose.translation
            return np.asarray(pz - (a * (x - px) + b * (y - py)) / c)
        case Box(size):
            # boxes of terrains are turned about z only
            local = pose.inverse()
            u = local.rotation[0, 0] * x + local.rotation[0, 1] * y + local.translation[0]
            v = local.rotation[1, 0] * x + local.rotation[1, 1] * y + local.translation[1]
            inside = (np.abs(u) <= 0.5 * size[0]) & (np.abs(v) <= 0.5 * size[1])
            return np.where(inside, pose.translation[2] + 0.5 * size[2], np.nan)
    raise UnknownNameError.of_type("shape of a terrain", shape, (Box, Plane, HeightField))
