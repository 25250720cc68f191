"""Muscle paths as polylines to draw, with arcs sampled."""

from __future__ import annotations

import numpy as np

from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.arcs import arc_points, pulley_arc_points
from cards_core.robot.elements import Pulley
from cards_core.typing import Array

ARC_POINTS = 9
"""Points per arc, its ends included: a half circle is then within 2 % of its radius."""


def drawn_paths(paths: Paths, poses: Array) -> list[Array]:
    """Return the path of every muscle in the world, arrays of shape (k, 3), [m].

    Args:
        paths: Solved for these poses.
        poses: Frames in the world, the world itself last, shape (F + 1, 4, 4).
    """
    layout = paths.layout
    geodesic_arcs = iter(paths.geodesics.arc_points(ARC_POINTS) if paths.geodesics else ())
    arcs: dict[int, Array] = {}
    for i, contact in enumerate(layout.contacts):
        if contact.closed:
            place = contact.placement
            points = _closed_arc(paths, i)
        else:
            place = contact.offset
            points = next(geodesic_arcs)
        local = points @ place.rotation.T + place.translation
        pose = poses[contact.frame]
        arcs[contact.point] = local @ pose[:3, :3].T + pose[:3, 3]
    out = []
    for a, b in zip(layout.bounds, layout.bounds[1:], strict=False):
        parts = []
        k = a
        while k < b:
            if k in arcs:
                parts.append(arcs[k])
                k += 2
            else:
                parts.append(paths.points[k : k + 1])
                k += 1
        out.append(np.concatenate(parts) if parts else np.zeros((0, 3)))
    return out


def _closed_arc(paths: Paths, i: int) -> Array:
    spec = paths.layout.contacts[i]
    if isinstance(spec.element, Pulley):
        return pulley_arc_points(spec.element, paths.found[i], ARC_POINTS)
    assert spec.surface is not None
    return arc_points(
        spec.surface.geometry, paths.found[i], ARC_POINTS, inside=spec.element.inside
    )
