"""Robots with model errors, to test how robust a controller is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cards_core.checks import finite_array
from cards_core.errors import ShapeError
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    PathElement,
    Pulley,
    Sphere,
    Torus,
    Wrap,
    WrapGeometry,
)
from cards_core.robot.model import Robot
from cards_core.typing import Array

TURNING: Mapping[str, tuple[int, ...]] = {
    "revolute": (0,),
    "universal": (0, 1),
    "planar": (2,),
    "ball": (),
    "free": (),
}
"""Rotational axes of a joint by its kind; a ball joint turns about all axes through its origin."""


def perturbed(
    robot: Robot,
    *,
    mass_factor: float = 1.0,
    attachment_offset: float = 0.0,
    moment_arm_error: float = 0.0,
    seed: int = 0,
) -> Robot:
    """Return a robot with scaled masses and inertias and other muscle paths.

    Args:
        robot: The description.
        mass_factor: Multiplies every mass and inertia tensor, > 0.
        attachment_offset: Every via point and pulley moves by this distance [m] in a random
            direction.
        moment_arm_error: Every via point and pulley moves away from the nearest of the axes that
            its link turns about, or towards it, at random, by this share of its distance from it;
            radii of wrap surfaces and pulleys grow or shrink likewise, and points beside a surface
            go with it, so that none gets inside; < 1.
        seed: Of the directions.

    Raises:
        ShapeError: A factor that is not positive, an offset that is not finite and >= 0, or a
            share outside 0 to 1.
    """
    if not (np.isfinite(mass_factor) and mass_factor > 0):
        raise ShapeError(f"mass_factor is {mass_factor}, expected a number > 0")
    if not (np.isfinite(attachment_offset) and attachment_offset >= 0):
        raise ShapeError(f"attachment_offset is {attachment_offset}, expected a length >= 0 in m")
    if not 0.0 <= moment_arm_error < 1.0:
        raise ShapeError(f"moment_arm_error is {moment_arm_error}, expected a share >= 0 and < 1")
    rng = np.random.default_rng(seed)

    def moved(position: np.ndarray) -> np.ndarray:
        direction = rng.normal(size=3)
        return np.asarray(position + attachment_offset * direction / np.linalg.norm(direction))

    links = tuple(
        replace(
            link,
            inertia=replace(
                link.inertia,
                mass=mass_factor * link.inertia.mass,
                tensor=mass_factor * link.inertia.tensor,
            ),
        )
        for link in robot.links
    )
    muscles = tuple(
        replace(
            muscle,
            path=tuple(
                item if isinstance(item, Wrap) else replace(item, position=moved(item.position))
                for item in muscle.path
            ),
        )
        for muscle in robot.muscles
    )
    other = replace(robot, links=links, muscles=muscles)
    if moment_arm_error == 0.0:
        return other
    # numbers of its own: the displacements of a seed stay what they are
    return _with_moment_arms(other, moment_arm_error, np.random.default_rng([seed, 1]))


def _with_moment_arms(robot: Robot, share: float, rng: np.random.Generator) -> Robot:
    axes = _axes(robot)

    def factor() -> float:
        return float(1.0 + share * rng.choice((-1.0, 1.0)))

    radii = {surface.name: factor() for surface in robot.wrap_surfaces}

    def scaled(path: tuple[PathElement, ...], index: int) -> PathElement:
        item = path[index]
        if isinstance(item, Wrap):
            return item
        beside = [
            radii[other.surface]
            for other in path[max(index - 1, 0) : index + 2]
            if isinstance(other, Wrap)
        ]
        size = beside[0] if beside else factor()
        arm = _arm(item.position, axes.get(item.link, []))
        moved = replace(item, position=item.position + (size - 1.0) * arm)
        return replace(moved, radius=size * moved.radius) if isinstance(moved, Pulley) else moved

    muscles = tuple(
        replace(muscle, path=tuple(scaled(muscle.path, i) for i in range(len(muscle.path))))
        for muscle in robot.muscles
    )
    surfaces = tuple(
        replace(surface, geometry=_scaled(surface.geometry, radii[surface.name]))
        for surface in robot.wrap_surfaces
    )
    return replace(robot, muscles=muscles, wrap_surfaces=surfaces)


Axis = tuple[Array, Array | None]
"""A point of an axis and its direction, in link coordinates; None: every direction."""


def _axes(robot: Robot) -> dict[str, list[Axis]]:
    """Return the axes that each link turns about, with the joints at their zero positions."""
    found: dict[str, list[Axis]] = {}
    for joint in robot.joints:
        if joint.kind not in TURNING:
            continue
        turning = TURNING[joint.kind]
        directions: list[Array | None] = [joint.axes[i].axis for i in turning]
        directions = directions or [None]
        on_child = joint.joint_to_child.inverse()
        for link, pose in ((joint.parent, joint.parent_to_joint), (joint.child, on_child)):
            found.setdefault(link, []).extend(
                (pose.translation, None if axis is None else pose.rotation @ axis)
                for axis in directions
            )
    return found


def _arm(position: Array, axes: list[Axis]) -> Array:
    """Return the way from the nearest axis to a point; zero without axes."""
    arms = []
    for origin, axis in axes:
        away = position - origin
        arms.append(away if axis is None else away - (away @ axis) * axis)
    return min(arms, key=lambda arm: float(arm @ arm), default=np.zeros(3))


def _scaled(geometry: WrapGeometry, factor: float) -> WrapGeometry:
    """Return a surface with other radii; a cylinder keeps its length."""
    match geometry:
        case Sphere() | Cylinder():
            return replace(geometry, radius=factor * geometry.radius)
        case Ellipsoid():
            return replace(geometry, radii=factor * geometry.radii)
        case Torus():
            return replace(geometry, tube_radius=factor * geometry.tube_radius)
        case Mesh():
            return replace(geometry, scale=factor * geometry.scale)


def with_payload(robot: Robot, link: str, mass: float, position: npt.ArrayLike) -> Robot:
    """Return a robot that carries a point mass.

    Args:
        robot: The description.
        link: Name of the link that carries it.
        mass: [kg], > 0.
        position: In link coordinates, [m].

    Raises:
        UnknownNameError: No such link.
        ShapeError: A mass that is not positive, or a position that is no finite vector.
    """
    if not (np.isfinite(mass) and mass > 0.0):
        raise ShapeError(f"the mass of the payload is {mass}, expected a number > 0")
    place = finite_array(position, "position of the payload", (3,))
    carrier = robot.link(link)
    own = carrier.inertia
    total = own.mass + mass
    com = (own.mass * own.com + mass * place) / total
    tensor = own.tensor.copy()
    for part, centre in ((own.mass, own.com), (mass, place)):
        arm = centre - com
        tensor += part * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    loaded = replace(carrier, inertia=replace(own, mass=total, com=com, tensor=tensor))
    links = tuple(loaded if one.name == link else one for one in robot.links)
    return replace(robot, links=links)
