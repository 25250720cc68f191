"""CASPR's order of the joint coordinates and ours.

CASPR concatenates the coordinates of the joints in the order of the links in the file. We order
them as the tree is walked (`cards_core.robot.Tree`): depth first, and the chain of an
``S_FIXED_XYZ`` joint is g, b, a. The values are the same, only their places differ, so positions,
velocities, accelerations and generalised forces all use one permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cards_core.errors import ShapeError
from cards_core.formats.caspr.bodies import Body
from cards_core.robot.elements import Joint
from cards_core.robot.model import Robot
from cards_core.typing import Array


@dataclass(frozen=True, eq=False)
class CoordinateMap:
    """Permutation between CASPR's q and ours.

    Attributes:
        names: Our coordinate name for each of CASPR's coordinates, in CASPR's order.
        labels: CASPR's view of the same, ``<link name in the file>.<letter>``.
        index: ``q_ours[index] = q_caspr``, shape (n,).
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    index: npt.NDArray[np.intp]

    @property
    def is_identity(self) -> bool:
        """True if both orders are the same."""
        return bool(np.all(self.index == np.arange(len(self.index))))

    def from_caspr_q(self, q: Array) -> Array:
        """Return our vector for a vector (or rows of vectors) in CASPR's order, shape (..., n)."""
        values = self._checked(q)
        out = np.empty_like(values)
        out[..., self.index] = values
        return out

    def to_caspr_q(self, q: Array) -> Array:
        """Return the vector in CASPR's order for one of ours, shape (..., n)."""
        out: Array = self._checked(q)[..., self.index]
        return out

    def _checked(self, q: Array) -> Array:
        values = np.asarray(q, dtype=float)
        if values.ndim == 0 or values.shape[-1] != len(self.index):
            raise ShapeError(
                f"q has shape {values.shape}, expected (..., {len(self.index)}): "
                f"{', '.join(self.labels)}"
            )
        return values


def coordinate_names(joint: Joint) -> tuple[str, ...]:
    """Return the names that `Tree` gives to the coordinates of a joint with axes."""
    if len(joint.axes) == 1:
        return (joint.name,)
    return tuple(f"{joint.name}_{i + 1}" for i in range(len(joint.axes)))


def coordinate_map(robot: Robot, bodies: list[Body]) -> CoordinateMap:
    """Return the map for an imported robot.

    The tree is asked where it puts each coordinate: joint k of CASPR gets the home value k.
    """
    marked: dict[str, list[float]] = {}
    labels: list[str] = []
    for body in bodies:
        for letter, (joint, slot) in zip(body.joint_type.coordinates, body.slots, strict=True):
            values = marked.setdefault(joint, [0.0] * len(robot.joint(joint).axes))
            values[slot] = float(len(labels))
            labels.append(f"{body.original_name}.{letter}")
    tree = replace(robot, home={name: tuple(v) for name, v in marked.items()}).tree
    ours = [int(value) for value in tree.home]
    index = np.empty(len(labels), dtype=np.intp)
    index[ours] = np.arange(len(labels))
    return CoordinateMap(tuple(tree.position_names[i] for i in index), tuple(labels), index)
