"""Units and axes of a structure file: from there to metres and to z up, once, while reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cards_core.typing import Array, Matrix3, Vector3
from cards_core.yaml_fields import Field

LENGTHS: Mapping[str, float] = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001}
"""Units of length that a file may be written in, [m]."""

_UP: Mapping[str, Matrix3] = {
    "x": np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "y": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "z": np.eye(3),
}
"""Rotation from the axes of a file to the world, by the axis that points up in the file."""


@dataclass(frozen=True, eq=False)
class Convention:
    """How a file states places.

    Attributes:
        length: Its unit of length, [m].
        axes: Rotation from its axes to those of the world, shape (3, 3).
    """

    length: float
    axes: Matrix3

    def point(self, values: Array) -> Vector3:
        """Return a place or a distance of the file in world axes, [m]."""
        return self.direction(values) * self.length

    def direction(self, values: Array) -> Vector3:
        """Return a direction of the file in world axes."""
        # entries are picked, not multiplied: no rounding, no -0.0
        return np.array([float(row @ values) + 0.0 for row in self.axes])


def nasa(length: str = "cm") -> Convention:
    """Return the convention of NASA's files: y up, lengths in cm or in another unit."""
    return Convention(LENGTHS[length], _UP["y"])


def read_convention(root: Field) -> Convention:
    """Return the convention of one of our files. Raises `DescriptionError`."""
    length, up = "m", "z"
    if root.has("units"):
        units = root["units"]
        units.mapping(("length",))
        length = units["length"].text(LENGTHS)
    if root.has("up"):
        up = root["up"].text(_UP)
    return Convention(LENGTHS[length], _UP[up])
