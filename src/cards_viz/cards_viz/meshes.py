"""Triangles of the shapes of a description."""

from __future__ import annotations

import logging
import math
from pathlib import Path

import numpy as np

from cards_core.paths.wrapping.mesh import mesh_path
from cards_core.robot.elements import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    HeightField,
    Mesh,
    Plane,
    Sphere,
    Torus,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.height_field import field_triangles
from cards_core.spatial import Pose
from cards_core.typing import Array

Faces = np.ndarray

BEYOND = 3.0
"""How far a cylinder without ends is drawn beyond the muscles on it, in radii."""


LOG = logging.getLogger(__name__)

_TOLD: set[str] = set()
"""Warnings that were given: shapes are made more than once."""


def triangles(
    geometry: Geometry | WrapGeometry, source: str | None = None, *, coarse: bool = False
) -> tuple[Array, Faces] | None:
    """Return the surface of a shape in its own frame.

    Args:
        geometry: The shape; of finite size.
        source: File of the description; mesh paths are relative to its folder.
        coarse: Take fewer triangles for cylinders and spheres: for what is drawn small.

    Returns:
        Vertices, shape (V, 3), [m], and triangles, shape (F, 3); None, with a warning in the log,
        for a mesh file that is missing, damaged, or of a format that is not read.
    """
    # imported here so that those who draw no shapes need no trimesh
    import trimesh

    create = trimesh.creation
    match geometry:
        case Box():
            mesh = create.box(geometry.size)
        case Sphere():
            mesh = create.icosphere(subdivisions=1 if coarse else 3, radius=geometry.radius)
        case Cylinder():
            sections = 12 if coarse else 40
            mesh = create.cylinder(geometry.radius, geometry.length, sections=sections)
        case Capsule():
            mesh = create.capsule(geometry.length, geometry.radius, count=[32, 24])
        case Ellipsoid():
            mesh = create.icosphere(subdivisions=3)
            mesh.apply_scale(geometry.radii)
        case Plane():
            mesh = create.box((*geometry.size, 1e-3))
            mesh.apply_translation((0.0, 0.0, -5e-4))
            mesh.apply_transform(trimesh.geometry.align_vectors((0.0, 0.0, 1.0), geometry.normal))
        case Torus():
            mesh = create.torus(
                geometry.radius, geometry.tube_radius, major_sections=40, minor_sections=16
            )
        case HeightField():
            return field_triangles(geometry)
        case Mesh():
            return _from_file(geometry, source)
    return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)


def _from_file(geometry: Mesh, source: str | None) -> tuple[Array, Faces] | None:
    path = _existing(geometry, source)
    if path is None:
        return None
    from cards_core.robot.mesh_file import load_triangles

    try:
        vertices, faces = load_triangles(path)
    except Exception as error:  # each format of trimesh raises exceptions of its own
        _warn(f"mesh '{path}': cannot be read ({error}), not drawn")
        return None
    if not len(faces):
        _warn(f"mesh '{path}': holds no triangles, not drawn")
        return None
    return vertices * geometry.scale, faces


def _existing(geometry: Mesh, source: str | None) -> Path | None:
    path = mesh_path(geometry.uri, source)
    if path is None:
        place = f"{source}: " if source else ""
        _warn(f"{place}mesh '{geometry.uri}': no such file, not drawn")
    return path


def _warn(text: str) -> None:
    if text not in _TOLD:
        _TOLD.add(text)
        LOG.warning("warning: %s", text)


def surface_triangles(
    geometry: WrapGeometry, source: str | None = None
) -> tuple[Array, Faces] | None:
    """Return a wrap surface as `triangles`; for a mesh, the smooth body that muscles wrap over."""
    if not isinstance(geometry, Mesh):
        return triangles(geometry, source)
    path = _existing(geometry, source)
    if path is None:
        return None
    import trimesh

    from cards_core.paths.wrapping.mesh import mesh_vertices, smooth_hull

    try:
        body = smooth_hull(mesh_vertices(path.read_bytes(), path.name) * geometry.scale)
    except (OSError, ValueError) as error:
        _warn(f"mesh '{path}': cannot be wrapped ({error}), not drawn")
        return None
    ball = trimesh.creation.icosphere(subdivisions=3)
    around = body.centre + (ball.vertices * body.radii) @ body.rotation.T
    return np.array([body.project(point) for point in around]), np.asarray(ball.faces)


def drawn_surface(surface: WrapSurface, met: Array) -> tuple[WrapGeometry, Pose]:
    """Return a shape of finite size for a wrap surface, and its pose in the surface's link.

    An infinite cylinder is drawn over the length that muscles use.

    Args:
        surface: The surface.
        met: Where muscles meet it, in coordinates of its link, shape (k, 3), [m].
    """
    geometry = surface.geometry
    if not isinstance(geometry, Cylinder) or math.isfinite(geometry.length):
        return geometry, surface.pose
    along = surface.pose.inverse().apply(met)[:, 2] if len(met) else np.zeros(1)
    low, high = float(along.min()), float(along.max())
    length = high - low + 2.0 * BEYOND * geometry.radius
    middle = Pose(translation=np.array([0.0, 0.0, 0.5 * (low + high)]))
    return Cylinder(geometry.radius, length), surface.pose @ middle
