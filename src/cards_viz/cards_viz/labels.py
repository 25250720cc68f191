"""Names and units of what controllers track."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cards_core.loop.task_units import POSITIONS, joint_units, operational_units
from cards_core.robot.model import Tree


@dataclass(frozen=True)
class Labels:
    """Names and units of controlled coordinates and of the entries of their error.

    Units are ``rad``, ``m`` or empty (components of quaternions have none).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    error_names: tuple[str, ...]
    error_units: tuple[str, ...]


def joint_labels(tree: Tree) -> Labels:
    """Return the labels of a joint-space controller: coordinates q, error in the tangent space."""
    units, error_units = joint_units(tree)
    return Labels(tree.position_names, units, tree.velocity_names, error_units)


def operational_labels(names: Sequence[str]) -> Labels:
    """Return the labels of an operational controller with these reference names."""
    units, error_units = operational_units(names)
    positions = [name for name in names if name in POSITIONS]
    rotations = [f"rotation_{c}" for c in "xyz"][: error_units.count("rad")]
    return Labels(tuple(names), units, (*positions, *rotations), error_units)


def numbered(width: int, error_width: int) -> Labels:
    """Return labels for coordinates that nobody has named."""
    names = tuple(f"y{i + 1}" for i in range(width))
    error_names = tuple(f"e{i + 1}" for i in range(error_width))
    return Labels(names, ("",) * width, error_names, ("",) * error_width)
