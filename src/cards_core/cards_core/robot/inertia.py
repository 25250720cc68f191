"""Physical validity of inertia tensors: check, repair by the least change, report.

A tensor about the centre of mass belongs to a rigid body if and only if its principal moments
are positive and none exceeds the sum of the other two (``I1 + I2 - I3 = 2 sum m z^2 >= 0``).
Simulators refuse others or diverge; robot descriptions in the wild are full of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.robot.elements import Inertia, Link
from cards_core.robot.model import Robot
from cards_core.typing import Array, Matrix3

TOLERANCE = 1e-12
"""Accepted violation relative to the largest moment: rounding, not a statement about mass."""

SMALLEST_RATIO = 1e-6
"""A repaired moment is at least this part of the largest one ..."""

POINT_RADIUS = 1e-3
"""... and a body with all moments zero becomes a solid sphere of this radius, [m]."""

_MARGIN = 1e-9  # repaired moments satisfy the triangle inequality with room for rounding


def inertia_problem(inertia: Inertia) -> str | None:
    """Return what is wrong with an inertia in one phrase, or None if it is valid."""
    tensor = np.asarray(inertia.tensor, dtype=float)
    if not np.isfinite(inertia.mass) or inertia.mass <= 0.0:
        return f"mass {inertia.mass:g} kg is not positive"
    if not np.isfinite(tensor).all() or not np.isfinite(inertia.com).all():
        return "not finite"
    if np.abs(tensor - tensor.T).max() > TOLERANCE * np.abs(tensor).max():
        return "the tensor is not symmetric"
    a, b, c = np.linalg.eigvalsh(tensor)
    shown = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m^2"
    if a <= TOLERANCE * max(abs(a), abs(c)):
        return f"{shown}: not all positive"
    if a + b < c * (1.0 - TOLERANCE):
        return f"{shown}: the largest exceeds the sum of the others"
    return None


def repair_inertia(inertia: Inertia) -> Inertia:
    """Return the nearest valid inertia; a valid one comes back unchanged.

    Mass, centre of mass, principal axes and the largest moment stay; the two smaller moments
    change by the least Euclidean norm such that both are at least `SMALLEST_RATIO` of the largest
    and together not less than it.

    Raises:
        DescriptionError: The mass is not positive or a number is not finite: nothing to go by.
    """
    if inertia_problem(inertia) is None:
        return inertia
    tensor = np.asarray(inertia.tensor, dtype=float)
    if not (np.isfinite(inertia.mass) and inertia.mass > 0.0 and np.isfinite(tensor).all()):
        raise DescriptionError(
            f"inertia with mass {inertia.mass:g} kg cannot be repaired",
            expected="a positive mass and finite numbers",
        )
    tensor = (tensor + tensor.T) / 2.0
    moments, axes = np.linalg.eigh(tensor)
    change = _valid_moments(moments, inertia.mass) - moments
    # added, not rebuilt: entries that need no change keep their digits
    return dataclasses.replace(inertia, tensor=tensor + (axes * change) @ axes.T)


def _valid_moments(moments: Array, mass: float) -> Array:
    """Return the nearest valid moments, sorted, with the same largest one."""
    small, middle, large = moments.tolist()
    if large <= 0.0:
        return np.full(3, 0.4 * mass * POINT_RADIUS**2)
    floor = SMALLEST_RATIO * large
    missing = large - small - middle
    if missing < -_MARGIN * large:
        return np.array([max(small, floor), max(middle, floor), large])
    missing += _MARGIN * large
    if small + missing / 2.0 >= floor:
        return np.array([small + missing / 2.0, middle + missing / 2.0, large])
    return np.array([floor, max(middle, (1.0 + _MARGIN) * large - floor), large])


@dataclass(frozen=True, eq=False)
class InertiaRepair:
    """One repaired link.

    Attributes:
        link: Name of the link.
        problem: What was wrong.
        before, after: Tensors about the centre of mass, shape (3, 3), [kg m^2].
    """

    link: str
    problem: str
    before: Matrix3
    after: Matrix3

    @property
    def change(self) -> float:
        """Largest change of a principal moment relative to the largest moment."""
        moments = np.linalg.eigvalsh(self.after)
        return float(np.abs(moments - np.linalg.eigvalsh(self.before)).max() / moments[2])

    def __str__(self) -> str:
        before, after = (np.linalg.eigvalsh(t) for t in (self.before, self.after))
        shown = [", ".join(f"{m:.6g}" for m in moments) for moments in (before, after)]
        return f"link '{self.link}': {self.problem}; principal moments now {shown[1]} kg m^2"


def repair_robot(robot: Robot) -> tuple[Robot, tuple[InertiaRepair, ...]]:
    """Return the robot with valid inertias, and what was changed.

    Links without any mass and inertia are left alone: they are intermediate frames of joints.

    Raises:
        DescriptionError: A link has a negative mass, or inertia without mass.
    """
    return repair_links(robot, lambda link: repair_inertia(link.inertia))


def repair_links(
    robot: Robot, repair: Callable[[Link], Inertia]
) -> tuple[Robot, tuple[InertiaRepair, ...]]:
    """Return the robot with every invalid inertia replaced, and what was changed.

    A robot without any comes back itself.

    Args:
        robot: The robot; links without any mass and inertia are left alone.
        repair: Gives the inertia that a link shall have.

    Raises:
        DescriptionError: From ``repair``, with the place of the link.
    """
    links, repairs = [], []
    for link in robot.links:
        problem = inertia_problem(link.inertia)
        if problem is None or link.inertia.is_massless:
            links.append(link)
            continue
        try:
            after = repair(link)
        except DescriptionError as error:
            raise robot.error(link, error.problem, error.expected) from None
        repairs.append(InertiaRepair(link.name, problem, link.inertia.tensor, after.tensor))
        links.append(dataclasses.replace(link, inertia=after))
    if not repairs:
        return robot, ()
    return dataclasses.replace(robot, links=tuple(links)), tuple(repairs)
