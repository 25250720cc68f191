"""The ground of a scene: a plane of lines that fades out, and a lattice for slow pages.

The plane fills most of a picture, and each of its points takes much arithmetic: without a graphics
processor as much time as a whole robot. Pages without one get some straight lines instead, which
move on with a robot that walks.
"""

from __future__ import annotations

import numpy as np
import viser

from cards_core.typing import Array, Vector3

CELL_COLOR, SECTION_COLOR = (226, 228, 231), (204, 207, 212)
LATTICE_COLOR = (205, 209, 214)

CELL = 0.35
"""Cells have the power of ten below this part of the size of what stands on the ground, [m]."""

REACH = 0.8
"""Half the width of a lattice at least, relative to that size."""


def cell_size(size: float) -> float:
    """Return the edge of the cells for what has this size, a power of ten, [m]."""
    return float(10.0 ** np.floor(np.log10(CELL * size)))


def cells_across(width: float, cell: float) -> int:
    """Return how many cells a lattice has across, an even number, for what is so wide, [m]."""
    return 2 * int(np.ceil(REACH * width / cell))


def lattice(count: int) -> Array:
    """Return the lines of ``count`` by ``count`` unit squares about the origin, (L, 2, 3)."""
    end = 0.5 * count
    at = np.arange(count + 1) - end
    lines = np.zeros((2, count + 1, 2, 3))
    lines[0, :, :, 0] = lines[1, :, :, 1] = at[:, None]
    lines[0, :, :, 1] = lines[1, :, :, 0] = (-end, end)
    return lines.reshape(-1, 2, 3)


class Ground:
    """The ground of one scene.

    Args:
        server: Of the page.
        name: Of its node.
        center: Where it is, shape (3,), [m].
        size: Of what stands on it, [m].

    Attributes:
        height: Above the origin, [m].
    """

    def __init__(self, server: viser.ViserServer, name: str, center: Vector3, size: float) -> None:
        self._name, self._size = name, size
        self.height = float(center[2])
        self._cell = cell_size(size)
        self._count = cells_across(size, self._cell)
        self._plane = server.scene.add_grid(
            name,
            infinite_grid=True,
            cell_size=self._cell,
            section_size=10.0 * self._cell,
            cell_color=CELL_COLOR,
            section_color=SECTION_COLOR,
            fade_distance=9.0 * size,
            fade_strength=2.0,
            shadow_opacity=0.16,
            position=tuple(center),
        )
        self._lattices: dict[int, viser.LineSegmentsHandle] = {}
        self._place = self._on_lines(center)
        server.on_client_disconnect(lambda client: self._lattices.pop(client.client_id, None))

    def _on_lines(self, point: Vector3) -> Vector3:
        """Return the corner of cells nearest to a point, on the ground, shape (3,), [m]."""
        corner = self._cell * np.round(np.asarray(point) / self._cell)
        corner[2] = self.height
        return corner

    def make_plain(self, client: viser.ClientHandle) -> None:
        """Show a lattice in one page instead of the plane."""
        # a node of the same name is what this page shows; thin lines on white need a darker grey
        self._lattices[client.client_id] = client.scene.add_line_segments(
            self._name,
            self._cell * lattice(self._count),
            LATTICE_COLOR,
            thickness=1.0,
            thickness_units="screen",
            position=tuple(self._place),
            visible=self.visible,
        )

    def follow(self, point: Vector3) -> None:
        """Move the lattices on with a robot, by whole cells; ``point`` is its middle, [m]."""
        place = self._on_lines(point)
        if np.abs(place - self._place).max() < 0.25 * REACH * self._size:
            return
        self._place = place
        for handle in list(self._lattices.values()):
            handle.position = place

    @property
    def visible(self) -> bool:
        """Whether the ground is shown."""
        return bool(self._plane.visible)

    @visible.setter
    def visible(self, visible: bool) -> None:
        for handle in (self._plane, *list(self._lattices.values())):
            handle.visible = visible
