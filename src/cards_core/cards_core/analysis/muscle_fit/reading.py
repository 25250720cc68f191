"""Read what a fit is asked for from a YAML file, and check it against the robot.

`docs/fit_muscles.md` documents the keys. What comes after this knows indices and arrays alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cards_core.analysis.conditions.actuation import Actuation
from cards_core.analysis.muscle_fit.margins import most_facets
from cards_core.analysis.muscle_fit.moment_arms import between_links, link_motion
from cards_core.analysis.muscle_fit.poses import PoseReader
from cards_core.analysis.muscle_fit.specification import (
    ArmGoal,
    ClosureGoal,
    FitSpecification,
    Goal,
    LengthGoal,
    TorqueGoal,
    wraps_near,
)
from cards_core.analysis.muscle_fit.variables import (
    FittedPoint,
    FittedRadius,
    FitVariables,
    PathPoint,
    with_radius,
)
from cards_core.analysis.workspace.coordinates import Coordinate
from cards_core.dynamics.numeric import NumericDynamics
from cards_core.errors import CardsError
from cards_core.foreign_files import read_text
from cards_core.formats import load
from cards_core.formats.sdf.muscle_path import depth_inside
from cards_core.paths.layout import Indices, link_layout
from cards_core.robot.actuators import Ligament
from cards_core.robot.elements import Cylinder, Sphere, ViaPoint, Wrap
from cards_core.robot.model import Robot
from cards_core.typing import Array
from cards_core.yaml_fields import Document, Field, read_yaml

FORMAT = "muscle_fit/1"

MAX_FACETS = 20_000
"""Most facets that the hull of a closure margin may have; each costs a microsecond and more."""

PATH_TOLERANCE = 1e-3
"""Default tolerance of a moment arm, [m] or [1], and of a length, [m]."""

SHARE = 0.01
"""Default tolerance of torques and margins, relative to what is wanted."""

MIRRORED = 1e-6
"""Largest distance of a point from its mirror image that is rounding, [m]."""

AXES = ("x", "y", "z")


def read_specification(
    path: str | Path, robot: Robot, *, folder: Path | None = None
) -> FitSpecification:
    """Read a specification and check it against a robot.

    Args:
        path: YAML file.
        robot: The robot.
        folder: Where robots that it names by path are looked for first; None: beside the file.

    Raises:
        DescriptionError: A key, name or number is wrong; the message names file, line and key.
    """
    document = read_yaml(path)
    text = read_text(path)
    return _Reader(document, robot, text, folder or Path(path).parent).read()


_KEYS = (
    "format", "poses", "beyond_limits", "points", "radii", "moment_arms", "lengths", "torques",
    "closure",
)  # fmt: skip


class _Reader:
    """Reads one document."""

    def __init__(self, document: Document, robot: Robot, text: str, folder: Path) -> None:
        self._top = Field(document, (), document.data)
        self._robot, self._text, self._folder = robot, text, folder
        self._poses = PoseReader(self._top, robot.tree)

    def read(self) -> FitSpecification:
        top, robot = self._top, self._robot
        top.mapping(_KEYS)
        if top["format"].text() != FORMAT:
            raise top["format"].error(f"is '{top['format'].text()}'", f"'{FORMAT}'")
        link_layout(robot)  # refuses paths that cannot be, which numbers below would hide
        radii = self._radii()
        points = self._points({radius.surface: radius.lower for radius in radii})
        if not points and not radii:
            raise top.error("has neither 'points' nor 'radii'", "something that may move")
        if top.has("poses"):
            self._poses.common = self._poses.add(self._poses.read(top["poses"]), top["poses"])
        goals: list[Goal] = [
            *self._moment_arms(),
            *self._lengths(),
            *self._torques(),
            *self._closure(),
        ]
        if not goals:
            raise top.error(
                "asks for nothing",
                "at least one of 'moment_arms', 'lengths', 'torques', 'closure'",
            )
        q = self._poses.q
        dynamics = NumericDynamics(robot)
        gravity = np.zeros((len(q), robot.tree.nv))
        for goal in goals:
            if isinstance(goal, TorqueGoal) and goal.gravity:
                rest = np.zeros(robot.tree.nv)
                gravity = np.array([dynamics.update(row, rest).gravity for row in q])
                break
        varied = tuple(
            c
            for c in self._poses.coordinates.all
            if c.component < 0 and len(q) and np.ptp(q[:, c.q]) > 0.0
        )
        return FitSpecification(
            robot,
            q,
            FitVariables(robot, tuple(points), tuple(radii)),
            tuple(goals),
            Actuation(dynamics),
            gravity,
            self._text,
            top.document.source,
            self._folder,
            varied,
        )

    def _items(self, key: str) -> list[Field]:
        """Return the elements of a list that may be left out."""
        return self._top[key].items() if self._top.has(key) else []

    # What may move -------------------------------------------------------------------------------

    def _points(self, smallest: Mapping[str, float]) -> list[FittedPoint]:
        """Return the points; `smallest` has the least radii of surfaces that may change."""
        out: list[FittedPoint] = []
        seen: set[PathPoint] = set()
        for item in self._items("points"):
            item.mapping(("muscle", "point", "distance", "box", "lower", "upper", "mirror"))
            for muscle in self._muscles(item["muscle"]):
                for at in self._path_points(item, muscle):
                    point = self._fitted(item, at)
                    self._check_reach(item, point, smallest)
                    for one in (point.at, point.mirror):
                        if one is not None and one in seen:
                            raise item.error(
                                f"{self.point_name(one)} is there twice", "each point once"
                            )
                        if one is not None:
                            seen.add(one)
                    out.append(point)
        return out

    def _muscles(self, item: Field) -> list[int]:
        names = [m.name for m in self._robot.muscles]
        if item.value == "all":
            return list(range(len(names)))
        if not isinstance(item.value, list):
            return [names.index(item.text(names))]
        return [names.index(one.text(names)) for one in item.items()]

    def _path_points(self, item: Field, muscle: int) -> list[PathPoint]:
        path = self._robot.muscles[muscle].path
        places = [k for k, element in enumerate(path) if isinstance(element, ViaPoint)]
        if not item.has("point") or item["point"].value == "all":
            chosen = list(range(len(places)))
        else:
            given = item["point"]
            fields = [given] if not isinstance(given.value, list) else given.items()
            chosen = [self._number(one, len(places), muscle) for one in fields]
        return [PathPoint(muscle, places[k], k) for k in chosen]

    def _number(self, item: Field, count: int, muscle: int) -> int:
        name = self._robot.muscles[muscle].name
        if isinstance(item.value, str):
            where = {"origin": 0, "insertion": count - 1}
            k = where[item.text(where)]
            if isinstance(self._robot.muscles[muscle].path[0], ViaPoint) or k:
                return k
            raise item.error(f"the origin of '{name}' is a pulley", "a via point")
        number = item.whole(at_least=1)
        if number > count:
            raise item.error(
                f"is {number}, but '{name}' has {count} via points", f"a number 1 .. {count}"
            )
        return number - 1

    def _fitted(self, item: Field, at: PathPoint) -> FittedPoint:
        element = self._robot.muscles[at.muscle].path[at.element]
        assert isinstance(element, ViaPoint)
        kinds = [key for key in ("distance", "box", "lower", "upper") if item.has(key)]
        if kinds == ["distance"]:
            radius = item["distance"].number(above=0.0)
            bounds = element.position, np.full(3, radius), True
        elif kinds == ["box"]:
            given = item["box"]
            if isinstance(given.value, list):
                half = given.vector(3, "half edges along x, y, z")
            else:
                half = np.full(3, given.number(above=0.0))
            if (half < 0.0).any() or not half.any():
                raise given.error("has a negative half edge, or none above 0", "half edges >= 0")
            bounds = element.position, half, False
        elif kinds == ["lower", "upper"]:
            low = item["lower"].vector(3, "x, y, z in link coordinates")
            high = item["upper"].vector(3, "x, y, z in link coordinates")
            if (low > high).any() or (low == high).all():
                raise item["upper"].error("is below 'lower', or the same", "upper >= lower")
            bounds = 0.5 * (low + high), 0.5 * (high - low), False
        else:
            have = ", ".join(kinds) or "none"
            raise item.error(
                f"has {have} of the keys that bound a point",
                "'distance', or 'box', or 'lower' and 'upper'",
            )
        if not item.has("mirror"):
            return FittedPoint(at, *bounds)
        image, signs = self._mirror(item["mirror"], at)
        return FittedPoint(at, *bounds, image, signs)

    def _check_reach(self, item: Field, point: FittedPoint, smallest: Mapping[str, float]) -> None:
        """Refuse bounds that lie within a surface beside the point, at home."""
        robot, at = self._robot, point.at
        element = robot.muscles[at.muscle].path[at.element]
        assert isinstance(element, ViaPoint)
        directions = np.array(np.meshgrid(*3 * [[-1.0, 0.0, 1.0]])).reshape(3, -1).T
        if point.ball:
            directions /= np.maximum(np.linalg.norm(directions, axis=1), 1.0)[:, None]
        places = point.centre + directions * point.size
        near = [wrap for k, wrap in wraps_near(robot, at.muscle) if k == at.point]
        if not near:
            return
        home = link_motion(robot, robot.tree.home[None])
        index = {link.name: k for k, link in enumerate(robot.links)}
        for wrap in near:
            surface = robot.wrap_surface(wrap.surface)
            if wrap.inside or surface.link not in index:
                continue
            if surface.name in smallest:
                surface = with_radius(surface, smallest[surface.name])
            world = len(index)
            turn, shift = between_links(home, index.get(element.link, world), index[surface.link])
            seen = places @ turn[0].T + shift[0]
            if all(depth_inside(surface, place) > 0.0 for place in seen):
                raise item.error(
                    f"all that the bounds of {self.point_name(at)} hold is inside wrap surface "
                    f"'{surface.name}' at home",
                    "bounds that reach out of it",
                )

    def _mirror(self, item: Field, at: PathPoint) -> tuple[PathPoint, Array]:
        item.mapping(("muscle", "axis"))
        names = [m.name for m in self._robot.muscles]
        other = names.index(item["muscle"].text(names))
        signs = np.ones(3)
        signs[AXES.index(item["axis"].text(AXES))] = -1.0
        path = self._robot.muscles[other].path
        places = [k for k, element in enumerate(path) if isinstance(element, ViaPoint)]
        if at.point >= len(places):
            raise item.error(
                f"'{names[other]}' has {len(places)} via points", f"at least {at.point + 1}"
            )
        image = PathPoint(other, places[at.point], at.point)
        own = self._robot.muscles[at.muscle].path[at.element]
        its = path[image.element]
        assert isinstance(own, ViaPoint)
        assert isinstance(its, ViaPoint)
        away = float(np.linalg.norm(signs * own.position - its.position))
        if image == at or away > MIRRORED:
            raise item.error(
                f"{self.point_name(image)} is {1e3 * away:.4g} mm from the mirror image of "
                f"{self.point_name(at)}",
                "two different points that are mirror images now, each in its link's coordinates",
            )
        return image, signs

    def point_name(self, at: PathPoint) -> str:
        """Return a point in words."""
        return f"point {at.point + 1} of muscle '{self._robot.muscles[at.muscle].name}'"

    def _radii(self) -> list[FittedRadius]:
        out: list[FittedRadius] = []
        robot = self._robot
        closed = {c.surface.name: True for c in link_layout(robot).contacts if c.surface}
        for contact in link_layout(robot).contacts:
            if contact.surface is not None:
                closed[contact.surface.name] &= contact.closed
        for item in self._items("radii"):
            item.mapping(("surface", "range"))
            name = item["surface"].text([s.name for s in robot.wrap_surfaces])
            if name in (radius.surface for radius in out):
                raise item["surface"].error(f"'{name}' is there twice", "each surface once")
            if not isinstance(robot.wrap_surface(name).geometry, Sphere | Cylinder) or not (
                closed.get(name, True)
            ):
                raise item["surface"].error(
                    f"the radius of '{name}' cannot be fitted",
                    "a sphere or cylinder, between two via points wherever a muscle wraps over it",
                )
            low, high = item["range"].vector(2, "least and largest radius")
            if not 0.0 < low < high:
                raise item["range"].error(f"goes from {low:g} to {high:g}", "0 < least < largest")
            self._check_sides(item["range"], name, float(high))
            out.append(FittedRadius(name, float(low), float(high)))
        return out

    def _check_sides(self, item: Field, surface: str, radius: float) -> None:
        """Refuse a radius with which the side point of a wrap would be within the surface."""
        largest = with_radius(self._robot.wrap_surface(surface), radius)
        for muscle in self._robot.muscles:
            for wrap in muscle.path:
                if not isinstance(wrap, Wrap) or wrap.surface != surface or wrap.side is None:
                    continue
                depth = depth_inside(largest, wrap.side)
                if depth > 0.0 and not wrap.inside:
                    raise item.error(
                        f"with {radius:g} m the side point of muscle '{muscle.name}' is "
                        f"{1e3 * depth:.3g} mm inside",
                        f"at most {radius - depth:g}",
                    )

    # What is wanted ------------------------------------------------------------------------------

    def _moment_arms(self) -> list[ArmGoal]:
        out: list[ArmGoal] = []
        for item in self._items("moment_arms"):
            if item.has("like"):
                out += self._like(item)
                continue
            muscle, coordinate, poses, wanted, tolerance = self._path_goal(item)
            if coordinate is None:
                raise item.error("has no 'joint'", "the key 'joint'")
            out.append(
                ArmGoal(
                    self._arm_name(muscle, coordinate),
                    muscle,
                    coordinate,
                    poses,
                    wanted,
                    tolerance,
                    _weight(item),
                )
            )
        return out

    def _lengths(self) -> list[LengthGoal]:
        out: list[LengthGoal] = []
        for item in self._items("lengths"):
            muscle, coordinate, poses, wanted, tolerance = self._path_goal(item)
            if coordinate is not None and not item.has("at"):
                raise item["joint"].error("'joint' without 'at'", "'joint' with 'at', or 'poses'")
            if (wanted <= 0.0).any():
                raise item["values"].error("has a length of 0 or less", "lengths > 0")
            name = f"length of {self._robot.muscles[muscle].name}"
            if coordinate is not None:
                name += f" over {coordinate.name}"
            out.append(
                LengthGoal(name, muscle, coordinate, poses, wanted, tolerance, _weight(item))
            )
        return out

    def _path_goal(self, item: Field) -> tuple[int, Coordinate | None, Indices, Array, Array]:
        """Return muscle, coordinate, poses, what is wanted there, and tolerances."""
        item.mapping(("muscle", "joint", "at", "fix", "poses", "values", "tolerance", "weight"))
        names = [m.name for m in self._robot.muscles]
        muscle = names.index(item["muscle"].text(names))
        coordinate = self._poses.coordinate(item["joint"]) if item.has("joint") else None
        if item.has("at"):
            if coordinate is None:
                raise item.error("has 'at' without 'joint'", "the key 'joint'")
            rows = self._poses.curve(item, coordinate)
        elif item.has("fix"):
            raise item["fix"].error("'fix' without 'at'", "'fix' within 'poses', or with 'at'")
        else:
            rows = self._poses.rows(item)
        wanted = self._per_pose(item["values"], len(rows))
        tolerance = np.full(len(rows), PATH_TOLERANCE)
        if item.has("tolerance"):
            tolerance = self._per_pose(item["tolerance"], len(rows))
            if not (tolerance > 0.0).all():
                raise item["tolerance"].error("is not above 0", "tolerances > 0")
        return muscle, coordinate, rows, wanted, tolerance

    def _arm_name(self, muscle: int, coordinate: Coordinate) -> str:
        return f"moment arm of {self._robot.muscles[muscle].name} about {coordinate.name}"

    def _per_pose(self, item: Field, count: int) -> Array:
        if not isinstance(item.value, list):
            return np.full(count, item.number())
        values = item.vector()
        if len(values) != count:
            raise item.error(
                f"has {len(values)} values", f"one for each of {count} poses, or one for all"
            )
        return values

    def _like(self, item: Field) -> list[ArmGoal]:
        item.mapping(("like", "muscles", "joints", "poses", "tolerance", "weight"))
        given = item["like"].text()
        beside = self._folder / given
        is_path = "/" in given or given.endswith(".sdf")  # a folder may have the name of a model
        try:
            other = load(beside if is_path and beside.exists() else given)
        except CardsError as error:
            raise item["like"].error(str(error)) from None
        robot = self._robot
        if other.tree.position_names != robot.tree.position_names:
            raise item["like"].error(
                f"'{other.name}' has the coordinates {', '.join(other.tree.position_names)}",
                f"those of this robot: {', '.join(robot.tree.position_names)}",
            )
        names = [m.name for m in robot.muscles]
        theirs = [m.name for m in other.muscles]
        both = [name for name in names if name in theirs]
        if item.has("muscles"):
            chosen = [one.text(both) for one in item["muscles"].items()]
        else:
            chosen = both
        if not chosen:
            raise item["like"].error(
                f"'{other.name}' has no muscle of a name that this robot has", "common names"
            )
        if item.has("joints"):
            coordinates = [self._poses.coordinate(one) for one in item["joints"].items()]
        else:
            coordinates = list(self._poses.coordinates.all)
        tolerance = PATH_TOLERANCE
        if item.has("tolerance"):
            tolerance = item["tolerance"].number(above=0.0)
        rows = self._poses.rows(item)
        q = self._poses.q[rows]
        arms = -NumericDynamics(other).batch(q).muscle_jacobian
        return [
            ArmGoal(
                self._arm_name(names.index(name), coordinate),
                names.index(name),
                coordinate,
                rows,
                arms[:, theirs.index(name), coordinate.v],
                np.full(len(rows), tolerance),
                _weight(item),
            )
            for name in chosen
            for coordinate in coordinates
        ]

    def _torques(self) -> list[TorqueGoal]:
        out: list[TorqueGoal] = []
        if self._top.has("torques"):
            self._check_muscles(self._top["torques"])
        for item in self._items("torques"):
            item.mapping(("joint", "range", "others", "gravity", "poses", "tolerance", "weight"))
            low, high = item["range"].vector(2, "least and largest torque")
            if not low <= high or low == high == 0.0:
                raise item["range"].error(f"goes from {low:g} to {high:g}", "least <= largest")
            gravity = item["gravity"].flag() if item.has("gravity") else False
            ligaments = [m.name for m in self._robot.muscles if isinstance(m.actuator, Ligament)]
            if gravity and ligaments:
                raise item["gravity"].error(
                    f"the robot has ligaments ({', '.join(ligaments)}), whose load is not known "
                    "to a fit",
                    "false",
                )
            others = item["others"].text(("zero", "free")) if item.has("others") else "zero"
            tolerance = SHARE * max(abs(low), abs(high))
            if item.has("tolerance"):
                tolerance = item["tolerance"].number(above=0.0)
            rows = self._poses.rows(item)
            given = item["joint"]
            several = given.items() if isinstance(given.value, list) else [given]
            for one in several:
                coordinate = self._poses.coordinate(one)
                out.append(
                    TorqueGoal(
                        f"torque at {coordinate.name}",
                        coordinate,
                        float(low),
                        float(high),
                        others == "zero",
                        gravity,
                        rows,
                        tolerance,
                        _weight(item),
                    )
                )
        return out

    def _check_muscles(self, item: Field) -> None:
        if not any(muscle.takes_tension for muscle in self._robot.muscles):
            raise item.error("no muscle of the robot takes a tension", "'moment_arms' alone")

    def _closure(self) -> list[ClosureGoal]:
        if not self._top.has("closure"):
            return []
        item = self._top["closure"]
        item.mapping(("margin", "length", "poses", "tolerance", "weight"))
        margin = item["margin"].number(above=0.0)
        length = item["length"].number(above=0.0) if item.has("length") else None
        tolerance = SHARE * margin
        if item.has("tolerance"):
            tolerance = item["tolerance"].number(above=0.0)
            if tolerance >= margin:
                raise item["tolerance"].error(f"is {tolerance:g}", f"less than {margin:g}")
        sliding = [c.name for c in self._poses.coordinates.all if c.unit == "m"]
        turning = [c.name for c in self._poses.coordinates.all if c.unit == "rad"]
        if sliding and turning and length is None:
            raise item.error(
                f"the robot slides ({sliding[0]}) and turns ({turning[0]})",
                "a 'length' that makes moment arms of both",
            )
        self._check_muscles(item)
        actuation = Actuation(NumericDynamics(self._robot), motors=False)
        count, rows = len(actuation.coordinates), actuation.muscles
        if not count:
            raise item.error("all joints have motors of their own", "a robot that muscles move")
        if most_facets(rows, count) > MAX_FACETS:
            raise item.error(
                f"{rows} muscles at {count} coordinates may have {most_facets(rows, count):,} "
                "facets",
                f"a robot with at most {MAX_FACETS:,}, e.g. 40 muscles at 6 coordinates",
            )
        unit = "m" if turning else ""
        return [
            ClosureGoal(
                margin, length, self._poses.rows(item), tolerance, _weight(item), unit=unit
            )
        ]


def _weight(item: Field) -> float:
    return item["weight"].number(above=0.0) if item.has("weight") else 1.0
