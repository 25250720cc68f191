"""A robot that differs a little from its file: what does a controller make of it?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cards_core.errors import ShapeError
from cards_core.robot.elements import Wrap
from cards_core.robot.model import Robot


def perturbed(
    robot: Robot, *, mass_factor: float = 1.0, attachment_offset: float = 0.0, seed: int = 0
) -> Robot:
    """Return a robot with scaled masses and inertias and displaced via points and pulleys.

    Args:
        robot: The description.
        mass_factor: Multiplies every mass and inertia tensor, > 0.
        attachment_offset: Every via point and pulley moves by this distance [m] in a random
            direction.
        seed: Of the directions.

    Raises:
        ShapeError: A factor that is not positive, or an offset that is not finite and >= 0.
    """
    if not (np.isfinite(mass_factor) and mass_factor > 0):
        raise ShapeError(f"mass_factor is {mass_factor}, expected a number > 0")
    if not (np.isfinite(attachment_offset) and attachment_offset >= 0):
        raise ShapeError(f"attachment_offset is {attachment_offset}, expected a length >= 0 in m")
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
    return replace(robot, links=links, muscles=muscles)


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
    place = np.asarray(position, dtype=float)
    if not (np.isfinite(mass) and mass > 0.0):
        raise ShapeError(f"the mass of the payload is {mass}, expected a number > 0")
    if place.shape != (3,) or not np.all(np.isfinite(place)):
        raise ShapeError(f"position of the payload is {place}, expected three finite numbers")
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
