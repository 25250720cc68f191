"""Rods as many short lit tubes, each coloured by curvature, bending stress or strain.

A page moves a batch of instances of one shape far faster than it rebuilds a bent mesh. Neighbours
overlap by as much as the sharpest bend opens, so the rods look smooth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.status import RodStatus
from cards_core.typing import Array
from cards_viz.colors import TensionScale, linear_light
from cards_viz.rods.interface import CURVATURE, STRAIN, STRESS, RodSnapshot

SIDES = 5
"""Corners of a tube."""

PIECES = 20
"""Pieces of a rod, at most: a computer without graphics processor draws every corner by itself."""

OVERLAP = 0.35
"""How far a piece reaches into its neighbours, in radii: hides the gap of bends to 40 degrees."""

ALARM = np.array([224.0, 30.0, 30.0])
"""Colour of rods that something is wrong with."""


@dataclass(frozen=True, eq=False)
class Tubes:
    """Instances of `unit_tube`, N pieces.

    Attributes:
        positions: Middles, shape (N, 3), [m].
        wxyzs: Orientations, shape (N, 4).
        scales: Radius, radius, length, shape (N, 3), [m].
    """

    positions: npt.NDArray[np.float32]
    wxyzs: npt.NDArray[np.float32]
    scales: npt.NDArray[np.float32]


def unit_tube() -> tuple[Array, npt.NDArray[np.int64]]:
    """Return vertices, shape (V, 3), and triangles of an open tube of radius and length 1."""
    angle = 2.0 * np.pi * np.arange(SIDES) / SIDES
    ring = np.stack([np.cos(angle), np.sin(angle), np.full(SIDES, -0.5)], axis=1)
    vertices = np.concatenate([ring, ring + np.array([0.0, 0.0, 1.0])])
    a = np.arange(SIDES)
    b = (a + 1) % SIDES
    lower = np.stack([a, b, b + SIDES], axis=1)
    upper = np.stack([a, b + SIDES, a + SIDES], axis=1)
    return vertices, np.concatenate([lower, upper])


def tubes(points: Array, radii: Array) -> Tubes:
    """Cut rods into pieces.

    Args:
        points: Along each rod, shape (n, k, 3), [m].
        radii: Of each rod, shape (n,), [m].
    """
    start, end = points[:, :-1].reshape(-1, 3), points[:, 1:].reshape(-1, 3)
    along = end - start
    lengths = np.linalg.norm(along, axis=1)
    direction = along / np.maximum(lengths, 1e-12)[:, None]
    radius = np.repeat(radii, points.shape[1] - 1)
    scales = np.stack([radius, radius, lengths + OVERLAP * radius], axis=1)
    return Tubes(
        (0.5 * (start + end)).astype(np.float32),
        quaternions_z_to(direction).astype(np.float32),
        scales.astype(np.float32),
    )


def quaternions_z_to(directions: Array) -> Array:
    """Return the shortest rotations that take the z axis to unit vectors.

    ``(1 + z, -y, x, 0)``, normalised; for z = -1, where any axis would do, a half turn about x.

    Args:
        directions: Shape (N, 3).

    Returns:
        Quaternions (w, x, y, z), shape (N, 4).
    """
    x, y, z = np.asarray(directions, dtype=float).T
    found = np.stack([1.0 + z, -y, x, np.zeros_like(z)], axis=1)
    norm = np.linalg.norm(found, axis=1, keepdims=True)
    back = norm[:, 0] < 1e-7
    found[back], norm[back] = (0.0, 1.0, 0.0, 0.0), 1.0
    return np.asarray(found / norm)


def thinned(lines: Array) -> Array:
    """Leave points out where there are more than `PIECES` need; bends keep most of theirs.

    The new points divide ``length / whole length + angle / (1 rad)`` evenly, so that a piece turns
    by little however the rod is bent.

    Args:
        lines: k points along each of n rods with their position in the first three columns,
            shape (n, k, c).

    Returns:
        Shape (n, l, c), l <= `PIECES` + 1, with both ends of each rod.
    """
    if lines.shape[1] <= PIECES + 1:
        return lines
    along = np.diff(lines[:, :, :3], axis=1)
    lengths = np.linalg.norm(along, axis=2)
    direction = along / np.maximum(lengths, 1e-12)[:, :, None]
    cosine = np.einsum("nki,nki->nk", direction[:, 1:], direction[:, :-1])
    bend = np.arccos(np.clip(cosine, -1.0, 1.0))
    bend = 0.5 * (np.pad(bend, ((0, 0), (1, 0))) + np.pad(bend, ((0, 0), (0, 1))))
    measure = lengths / np.maximum(lengths.sum(axis=1, keepdims=True), 1e-12) + bend
    place = np.pad(np.cumsum(measure, axis=1), ((0, 0), (1, 0)))
    found = np.empty((len(lines), PIECES + 1, lines.shape[2]))
    for rod, at, new in zip(lines, place, found, strict=True):
        wanted = np.linspace(0.0, at[-1], PIECES + 1)
        for column in range(lines.shape[2]):
            new[:, column] = np.interp(wanted, at, rod[:, column])
    return found


def _piece_values(values: Array) -> Array:
    """Return the value of every piece, shape (n, k - 1), from those at points, shape (n, k)."""
    return 0.5 * (values[:, :-1] + values[:, 1:])


def _alarmed(colors: npt.NDArray[np.uint8], alarm: Array) -> npt.NDArray[np.uint8]:
    """Turn rods red.

    Args:
        colors: Of the pieces, 0..255, shape (n, k - 1, 3).
        alarm: How much of each rod's colour is the alarm's, 0..1, shape (n,).
    """
    part = np.asarray(alarm, dtype=float)[:, None, None]
    mixed = (1.0 - part) * colors + part * ALARM
    return np.asarray(np.rint(mixed), dtype=np.uint8)


@dataclass(frozen=True)
class Quantity:
    """Something that rods are coloured by.

    Attributes:
        title: As in the choice and the legend.
        unit: Of the legend.
        factor: Legend value by SI value.
        column: Of `RodSnapshot.lines`.
        first: Upper end of the scale to begin with, in the legend's unit.
    """

    title: str
    unit: str
    factor: float
    column: int
    first: float


QUANTITIES = {
    "curvature": Quantity("Curvature", "1/m", 1.0, CURVATURE, 0.5),
    "stress": Quantity("Bending stress", "MPa", 1e-6, STRESS, 50.0),
    "strain": Quantity("Largest strain", "‰", 1e3, STRAIN, 0.2),
}
"""By the name that the choice has."""

RED = {
    RodStatus.NEAR_LIMIT: 0.85,
    RodStatus.UNSTABLE: 1.0,
    RodStatus.UNREACHABLE: 1.0,
    RodStatus.NOT_CONVERGED: 1.0,
    RodStatus.HELD: 1.0,
    RodStatus.SINGULAR: 1.0,
    RodStatus.YIELD: 0.85,
}
"""How red rods turn, 0..1, by status; all others keep their colours."""


class RodColors:
    """Colours of all pieces of all rods.

    Args:
        robot: The robot.

    Attributes:
        chosen: Key of `QUANTITIES`.
        scales: Range of each quantity, in the unit of its legend; grows with what it sees.
    """

    def __init__(self, robot: RodRobot) -> None:
        self.names = [limb.name for limb in robot.limbs]
        self.chosen = "curvature"
        self.scales = {
            name: TensionScale(high=quantity.first) for name, quantity in QUANTITIES.items()
        }

    @property
    def quantity(self) -> Quantity:
        """The chosen one."""
        return QUANTITIES[self.chosen]

    @property
    def scale(self) -> TensionScale:
        """Range of the chosen one."""
        return self.scales[self.chosen]

    def reset(self) -> None:
        """Let the ranges start again."""
        for name, quantity in QUANTITIES.items():
            self.scales[name].high = quantity.first

    def values(self, lines: Array) -> Array:
        """Return the chosen quantity at all points, shape (n, k), in the legend's unit.

        Args:
            lines: As `RodSnapshot.lines`.
        """
        return np.asarray(self.quantity.factor * lines[:, :, self.quantity.column])

    def colors(self, snapshot: RodSnapshot, lines: Array) -> npt.NDArray[np.uint8]:
        """Return the colours of all pieces in linear light and widen the scale.

        Args:
            snapshot: Tells which rods are red.
            lines: The points between which the pieces lie, shape (n, l, 6).

        Returns:
            Shape (n (l - 1), 3).
        """
        self.scale.include(self.values(snapshot.lines))
        plain = self.scale.colors(_piece_values(self.values(lines)))
        # viser takes the colours of instances as linear light
        return linear_light(_alarmed(plain, self.alarm(snapshot)).reshape(-1, 3))

    def alarm(self, snapshot: RodSnapshot) -> Array:
        """Return how red every rod is, 0..1, shape (n,): those that it is about, or all."""
        level = RED.get(snapshot.status, 0.0)
        about = {snapshot.limb, *snapshot.limbs}
        if level and about & set(self.names):
            return np.array([level if name in about else 0.0 for name in self.names])
        return np.full(len(self.names), level)
