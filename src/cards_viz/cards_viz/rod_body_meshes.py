"""The rigid bodies of a rod robot on the page: alike ones in one batch, the others one by one.

A robot of six limbs has six times the same bodies. Drawn one by one, each costs a computer without
graphics processor as much as a rod.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import viser

from cards_core.spatial import matrix_quaternion
from cards_core.typing import Array
from cards_viz.colormap import linear_light
from cards_viz.rod_bodies import BodyShape, RodBodies

SAME = 1e-9
"""Vertices that differ by less are the same, [m]."""


class BodyMeshes:
    """Meshes of bodies, and their places.

    Args:
        api: Scene of the page.
        bodies: The bodies.
        unit: Units of the page by metre.
    """

    def __init__(self, api: viser.SceneApi, bodies: RodBodies, unit: float) -> None:
        self._unit = unit
        self._frames: list[tuple[viser.FrameHandle, int]] = []
        self._batches: list[tuple[viser.BatchedMeshHandle, list[int]]] = []
        for number, alike in enumerate(_alike(bodies.shapes)):
            shape, groups = alike[0], [shape.group for shape in alike]
            vertices = unit * shape.vertices
            opacity = None if shape.rgba[3] >= 1.0 else shape.rgba[3]
            color = tuple(round(255 * c) for c in shape.rgba[:3])
            if len(alike) == 1:
                name = f"/robot/{bodies.names[shape.group]}/{number}"
                frame = api.add_frame(name, show_axes=False)
                api.add_mesh_simple(
                    f"{name}/mesh",
                    vertices,
                    shape.faces,
                    color=color,
                    opacity=opacity,
                    cast_shadow=opacity is None,
                )
                self._frames.append((frame, shape.group))
                continue
            batch = api.add_batched_meshes_simple(
                f"/robot/alike/{number}",
                vertices,
                shape.faces,
                batched_wxyzs=np.tile((1.0, 0.0, 0.0, 0.0), (len(groups), 1)),
                batched_positions=np.zeros((len(groups), 3)),
                batched_colors=linear_light(np.array(color, dtype=np.uint8)),
                opacity=opacity,
                cast_shadow=opacity is None,
                lod="off",
            )
            self._batches.append((batch, groups))
        self._poses = np.tile(np.eye(4), (len(bodies.names), 1, 1))

    def draw(self, poses: Array) -> None:
        """Move all bodies; poses of `RodBodies.poses`."""
        moved = (poses != self._poses).any(axis=(1, 2))  # most bases stay where they are
        positions = self._unit * poses[:, :3, 3]
        for frame, group in self._frames:
            if moved[group]:
                frame.wxyz = matrix_quaternion(poses[group, :3, :3])
                frame.position = positions[group]
        for batch, groups in self._batches:
            if moved[groups].any():
                turns = [matrix_quaternion(poses[group, :3, :3]) for group in groups]
                batch.batched_wxyzs = np.array(turns, dtype=np.float32)
                batch.batched_positions = positions[groups].astype(np.float32)
        self._poses = poses


def _alike(shapes: Sequence[BodyShape]) -> list[list[BodyShape]]:
    """Group shapes that differ in nothing but what they move with."""
    found: dict[tuple[object, ...], list[BodyShape]] = {}
    for shape in shapes:
        corners = np.round(shape.vertices / SAME).astype(np.int64)
        key = (shape.rgba, shape.faces.tobytes(), corners.tobytes())
        found.setdefault(key, []).append(shape)
    return list(found.values())
