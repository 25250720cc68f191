"""Units of the coordinates that controllers track, and of the entries of their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from cards_core.control.interface import Controller
from cards_core.errors import UnknownNameError
from cards_core.robot.model import Tree

Units: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Of the coordinates and of the entries of the error: ``m``, ``rad``, or empty for components of
quaternions, which only coordinates are."""

POSITIONS = ("x", "y", "z")
"""Operational coordinates that are lengths; all others are components of a quaternion."""


def joint_units(tree: Tree) -> Units:
    """Return the units of a task in joint space: coordinates q, error in the tangent space."""
    units: list[str] = []
    error_units: list[str] = []
    for node in tree.nodes:
        unit = "m" if node.kind == "prismatic" else "rad"
        units += [unit] if node.nq == 1 else [""] * node.nq
        error_units += [unit] * node.nv
    return tuple(units), tuple(error_units)


def operational_units(names: Sequence[str]) -> Units:
    """Return the units of a task in operational space.

    Args:
        names: Of the coordinates: some of x, y, z, then those of a quaternion, if any.
    """
    units = tuple("m" if name in POSITIONS else "" for name in names)
    positions = units.count("m")
    rotations = 3 if len(names) > positions else 0
    return units, ("m",) * positions + ("rad",) * rotations


def units_of(controller: Controller) -> Units:
    """Return the units of what a controller tracks.

    Raises:
        UnknownNameError: The controller has references in a space that is not known here.
    """
    if controller.space == "joint":
        return joint_units(controller.model.dynamics.tree)
    if controller.space == "operational":
        return operational_units(controller.reference_names)
    raise UnknownNameError("space of references", controller.space, ("joint", "operational"))
