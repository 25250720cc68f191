"""Random robots for property tests: trees of every joint kind with muscles between any links."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from cards_core.errors import ParameterError
from cards_core.formats.sdf.checks import home_poses
from cards_core.formats.sdf.muscle_path import depth_inside, inside_problem, pulley_problem, spans
from cards_core.parameters.declaration import Group, Parameter, groups_of, parameters_of
from cards_core.robot.actuators import ACTUATORS
from cards_core.robot.elements import (
    WORLD,
    Cylinder,
    Ellipsoid,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    Link,
    Muscle,
    PathElement,
    Pulley,
    Sphere,
    Torus,
    ViaPoint,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, quaternion_matrix

SURFACES = ("sphere", "cylinder", "ellipsoid", "torus")
KINDS = ("fixed", "revolute", "prismatic", "universal", "ball", "planar", "free")


def random_rotation(rng: np.random.Generator) -> np.ndarray:
    return quaternion_matrix(rng.normal(size=4))


def random_pose(rng: np.random.Generator) -> Pose:
    return Pose(random_rotation(rng), rng.uniform(-0.4, 0.4, 3))


def random_inertia(rng: np.random.Generator) -> Inertia:
    """A box with random density: always physical."""
    size = rng.uniform(0.05, 0.4, 3) ** 2
    mass = rng.uniform(0.2, 3.0)
    principal = mass / 12.0 * (size.sum() - size)
    rotation = random_rotation(rng)
    return Inertia(mass, rng.uniform(-0.2, 0.2, 3), rotation @ np.diag(principal) @ rotation.T)


def random_joint(rng: np.random.Generator, kind: str, parent: str, child: str, name: str) -> Joint:
    unit = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    count = {"revolute": 1, "prismatic": 1, "universal": 2, "planar": 3}.get(kind, 0)
    axes = tuple(JointAxis(unit[:, i]) for i in range(count))
    # a free body's coordinates are relative to its placement: keep that general too
    return Joint(name, kind, parent, child, random_pose(rng), random_pose(rng), axes)


def random_robot(
    seed: int,
    *,
    n_links: int = 5,
    n_muscles: int = 4,
    kinds: tuple[str, ...] = KINDS,
    surfaces: tuple[str, ...] = (),
    chains: bool = False,
    pulleys: bool = False,
    friction: float = 0.0,
    types: tuple[str, ...] = ("cable",),
) -> Robot:
    """Return a robot of ``n_links`` links joined at random; first joint is never fixed.

    Args:
        seed: The same seed gives the same links and joints whatever the other options.
        n_links: How many links.
        n_muscles: How many muscles.
        kinds: Kinds of joints.
        surfaces: Kinds of wrap surfaces (of `SURFACES`) that muscles wrap over; each muscle has
            one wrap or more. No end of a wrap lies in a surface at the home pose.
        chains: Also wraps right after each other.
        pulleys: Every other muscle starts at a pulley.
        friction: Largest capstan coefficient.
        types: Types of muscles, with random parameters.
    """
    rng = np.random.default_rng(seed)
    links = tuple(Link(f"link{i}", random_inertia(rng)) for i in range(n_links))
    joints = []
    for i in range(n_links):
        parent = WORLD if i == 0 else links[rng.integers(i)].name
        if i > 1 and rng.random() < 0.15:
            parent = WORLD
        choice = [k for k in kinds if i or k != "fixed"]
        kind = choice[rng.integers(len(choice))]
        joints.append(random_joint(rng, kind, parent, links[i].name, f"joint{i}"))
    names = [WORLD, *(link.name for link in links)]
    muscles = []
    for i in range(n_muscles):
        count = int(rng.integers(2, 5))
        path = tuple(
            ViaPoint(names[rng.integers(len(names))], rng.uniform(-0.5, 0.5, 3))
            for _ in range(count)
        )
        muscles.append(Muscle(f"muscle{i}", path, 1.0, 100.0))
    robot = Robot(
        name=f"random{seed}",
        links=links,
        joints=tuple(joints),
        muscles=tuple(muscles),
        frames=(Frame("tool", links[-1].name, random_pose(rng)),),
        operational_frame="tool",
    )
    rng = np.random.default_rng([seed, 1])
    if surfaces or pulleys:
        robot = _with_wraps(rng, robot, surfaces, chains=chains, pulleys=pulleys)
    if friction:
        robot = _with_friction(rng, robot, friction)
    muscles = [_with_type(rng, m, str(rng.choice(types))) for m in robot.muscles]
    return dataclasses.replace(robot, muscles=tuple(muscles))


# Wraps ---------------------------------------------------------------------------------------


def random_geometry(rng: np.random.Generator, kind: str) -> WrapGeometry:
    """Return a shape of a few centimetres."""
    radius = float(rng.uniform(0.02, 0.08))
    match kind:
        case "sphere":
            return Sphere(radius)
        case "cylinder":
            return Cylinder(radius, math.inf if rng.random() < 0.5 else float(rng.uniform(0.2, 1)))
        case "ellipsoid":
            return Ellipsoid(rng.uniform(0.03, 0.1, 3))
        case "torus":
            return Torus(0.06 + radius, 0.3 * radius)
    raise ValueError(kind)


def _with_wraps(
    rng: np.random.Generator,
    robot: Robot,
    surfaces: tuple[str, ...],
    *,
    chains: bool,
    pulleys: bool,
) -> Robot:
    names = [WORLD, *(link.name for link in robot.links)]
    made = tuple(
        WrapSurface(f"surface{i}", str(rng.choice(names)), random_geometry(rng, kind), pose)
        for i, (kind, pose) in enumerate(
            (str(rng.choice(surfaces)), random_pose(rng)) for _ in range(4 if surfaces else 0)
        )
    )
    robot = dataclasses.replace(robot, wrap_surfaces=made)
    poses = home_poses(dataclasses.replace(robot, muscles=()))
    muscles = []
    for i, muscle in enumerate(robot.muscles):
        while True:
            path = _random_path(rng, names, made, chains=chains, pulley=pulleys and i % 2 == 0)
            if _possible(path, made, poses):
                break
        muscles.append(dataclasses.replace(muscle, path=path))
    return dataclasses.replace(robot, muscles=tuple(muscles))


def _random_path(
    rng: np.random.Generator,
    names: list[str],
    surfaces: tuple[WrapSurface, ...],
    *,
    chains: bool,
    pulley: bool,
) -> tuple[PathElement, ...]:
    def point() -> ViaPoint:
        return ViaPoint(str(rng.choice(names)), rng.uniform(-0.5, 0.5, 3))

    path: list[PathElement] = [point()]
    if pulley:
        axis = rng.normal(size=3)
        path = [
            Pulley(
                path[0].link,
                path[0].position,
                axis / np.linalg.norm(axis),
                float(rng.uniform(0.01, 0.05)),
            ),
            point(),
        ]
    for _ in range(int(rng.integers(1, 3))):
        if surfaces:
            count = int(rng.integers(1, 4)) if chains else 1
            chosen = rng.choice(len(surfaces), size=count, replace=False)
            path += [_random_wrap(rng, surfaces[k]) for k in chosen]
        path.append(point())
    return tuple(path)


def _random_wrap(rng: np.random.Generator, surface: WrapSurface) -> Wrap:
    side = None
    if rng.random() < 0.5:
        side = surface.pose.translation + rng.normal(size=3)
        if depth_inside(surface, side) > 0.0:
            side = None
    return Wrap(surface.name, side)


def _possible(
    path: tuple[PathElement, ...], surfaces: tuple[WrapSurface, ...], poses: dict[str, Pose]
) -> bool:
    by_name = {surface.name: surface for surface in surfaces}
    for span in spans(path):
        ends = [path[span[0]], path[span[-1]]]
        places = [poses[end.link].apply(end.position) for end in ends]
        if float(np.linalg.norm(places[1] - places[0])) < 0.05:
            return False
        for wrap in (path[k] for k in span[1:-1]):
            surface = by_name[wrap.surface]
            to_surface = poses[surface.link].inverse()
            if any(inside_problem(wrap, surface, to_surface.apply(place)) for place in places):
                return False
        if isinstance(ends[0], Pulley):
            local = poses[ends[0].link].inverse().apply(places[1])
            if pulley_problem(ends[0], local):
                return False
    return True


def _with_friction(rng: np.random.Generator, robot: Robot, largest: float) -> Robot:
    muscles = []
    for muscle in robot.muscles:
        path = tuple(
            item
            if isinstance(item, Pulley)
            else dataclasses.replace(item, friction=float(rng.uniform(0.0, largest)))
            for item in muscle.path
        )
        # nothing slides at origin and insertion
        path = tuple(
            dataclasses.replace(item, friction=0.0)
            if k in {0, len(path) - 1} and not isinstance(item, Pulley)
            else item
            for k, item in enumerate(path)
        )
        speed = float(rng.uniform(0.005, 0.05))
        muscles.append(dataclasses.replace(muscle, path=path, friction_speed=speed))
    return dataclasses.replace(robot, muscles=tuple(muscles))


# Types ---------------------------------------------------------------------------------------


def _with_type(rng: np.random.Generator, muscle: Muscle, kind: str) -> Muscle:
    if kind == "cable":
        return muscle
    actuator = random_parameters(rng, ACTUATORS[kind])
    if actuator.commands:
        return dataclasses.replace(muscle, actuator=actuator)
    return dataclasses.replace(muscle, actuator=actuator, tension_min=0.0, tension_max=math.inf)


def random_parameters(rng: np.random.Generator, cls):
    """Return an actuator with random parameters near their defaults, all within their ranges."""
    while True:
        values = {spec.name: _random_value(rng, spec) for spec in parameters_of(cls)}
        groups = {group.name: _random_group(rng, group) for group in groups_of(cls)}
        made = cls(**values, **groups)
        try:
            made.check()
        except ParameterError:
            continue
        return made


def _random_group(rng: np.random.Generator, group: Group):
    if not group.required and rng.random() < 0.3:
        return group.default
    return random_parameters(rng, group.kind)


def _random_value(rng: np.random.Generator, spec: Parameter):
    if not spec.required and rng.random() < 0.5:
        return spec.default
    if spec.scalar_type is bool:
        return bool(rng.random() < 0.5)
    if spec.scalar_type is str:
        return str(rng.choice(spec.choices))
    low, high = max(spec.above, spec.lower), spec.upper
    centre = spec.default if not spec.required and spec.default else max(low, 0.0) + 0.3
    value = centre * float(rng.uniform(0.8, 1.25))
    value = min(max(value, low + 1e-3 if low > 0 else low), high)
    return round(value) if spec.scalar_type is int else value
