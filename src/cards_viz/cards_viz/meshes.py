"""Triangles of the shapes of a description."""

from __future__ import annotations

import warnings
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

from cards_core.description.model import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Sphere,
)
from cards_core.typing import Array

Faces = np.ndarray


class MeshWarning(UserWarning):
    """A mesh file that cannot be drawn; the rest of the robot is."""


def triangles(geometry: Geometry, source: str | None = None) -> tuple[Array, Faces] | None:
    """Return the surface of a shape in its own frame.

    Args:
        geometry: The shape.
        source: File of the description; mesh paths are relative to its folder.

    Returns:
        Vertices, shape (V, 3), [m], and triangles, shape (F, 3); None, with a `MeshWarning`, for
        a mesh file that is missing or damaged.
    """
    # imported here so that those who draw no shapes need no trimesh
    import trimesh

    create = trimesh.creation
    match geometry:
        case Box():
            mesh = create.box(geometry.size)
        case Sphere():
            mesh = create.icosphere(subdivisions=3, radius=geometry.radius)
        case Cylinder():
            mesh = create.cylinder(geometry.radius, geometry.length, sections=40)
        case Capsule():
            mesh = create.capsule(geometry.length, geometry.radius, count=[32, 24])
        case Ellipsoid():
            mesh = create.icosphere(subdivisions=3)
            mesh.apply_scale(geometry.radii)
        case Plane():
            mesh = create.box((*geometry.size, 1e-3))
            mesh.apply_translation((0.0, 0.0, -5e-4))
            mesh.apply_transform(trimesh.geometry.align_vectors((0.0, 0.0, 1.0), geometry.normal))
        case Mesh():
            return _from_file(geometry, source)
    return np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)


def _from_file(geometry: Mesh, source: str | None) -> tuple[Array, Faces] | None:
    path = mesh_path(geometry.uri, source)
    if path is None:
        warnings.warn(f"mesh '{geometry.uri}': no such file, not drawn", MeshWarning, stacklevel=3)
        return None
    import trimesh

    try:
        mesh = trimesh.load(path, force="mesh")
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)
    except Exception as error:  # each format of trimesh raises exceptions of its own
        text = f"mesh '{path}': cannot be read ({error}), not drawn"
        warnings.warn(text, MeshWarning, stacklevel=3)
        return None
    if not len(faces):
        warnings.warn(f"mesh '{path}': holds no triangles, not drawn", MeshWarning, stacklevel=3)
        return None
    return vertices * geometry.scale, faces


def mesh_path(uri: str, source: str | None) -> Path | None:
    """Return the file that a mesh URI names, or None if there is none.

    Plain paths and ``file://`` are taken as they are or relative to the description's folder;
    ``model://robot/meshes/hand.stl`` and ``package://...`` are searched from that folder upwards.
    """
    parts = urlparse(uri)
    text = unquote(parts.netloc + parts.path)
    folder = Path(source).resolve().parent if source else Path.cwd()
    if parts.scheme in ("", "file"):
        candidates = [folder / unquote(parts.path if parts.scheme else uri)]
    else:
        candidates = [base / text for base in (folder, *folder.parents)]
        candidates.append(folder / Path(text).relative_to(Path(text).parts[0]))
    return next((path for path in candidates if path.is_file()), None)
