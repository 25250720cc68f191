"""What an editor can do to wrap surfaces; see `cards_core.editing.operations`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cards_core.checks import check_choice
from cards_core.editing.block_checks import check_new_name
from cards_core.errors import CardsError, UnknownNameError
from cards_core.formats.sdf.muscle_text import EditedBlock, EditedSurface
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Muscle,
    Sphere,
    Torus,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.spatial import Pose

SHAPES = ("sphere", "cylinder", "ellipsoid", "torus")
"""Shapes that can be made; meshes stay as they are."""


def first_shape(kind: str, radius: float) -> WrapGeometry:
    """Return a shape of a size.

    Args:
        kind: Of `SHAPES`.
        radius: Of a sphere or cylinder, or around the hole of a torus, [m].

    Raises:
        UnknownNameError: There is no such shape.
    """
    match kind:
        case "sphere":
            return Sphere(radius)
        case "cylinder":
            return Cylinder(radius, 4.0 * radius)
        case "ellipsoid":
            return Ellipsoid(np.array([radius, radius, 1.5 * radius]))
        case "torus":
            return Torus(radius, 0.3 * radius)
        case _:
            raise UnknownNameError("shape", kind, SHAPES)


def resized(geometry: WrapGeometry, radius: float) -> WrapGeometry:
    """Return a shape with another radius; an ellipsoid keeps its proportions.

    Args:
        geometry: The shape.
        radius: Along its x axis, from its middle, [m].

    Raises:
        CardsError: It is a mesh, which has none, or the radius is not a positive number.
    """
    if not (math.isfinite(radius) and radius > 0.0):
        raise CardsError(f"radius {radius:g} m (expected: greater than 0)")
    match geometry:
        case Sphere() | Cylinder():
            return replace(geometry, radius=radius)
        case Ellipsoid(radii):
            return Ellipsoid(radii * (radius / radii[0]))
        case Torus(_, tube_radius):
            if radius <= tube_radius:
                raise CardsError(
                    f"radius {radius:g} m with a tube of {tube_radius:g} m leaves no hole "
                    "(expected: a radius greater than the tube's)"
                )
            return Torus(radius, tube_radius)
        case Mesh():
            raise CardsError("a mesh has no radius (expected: a sphere, cylinder, ...)")


def radius_of(geometry: WrapGeometry) -> float | None:
    """Return what `resized` sets, [m]; None of a mesh."""
    match geometry:
        case Ellipsoid(radii):
            return float(radii[0])
        case Mesh():
            return None
        case _:
            return geometry.radius


def surface_index(block: EditedBlock, name: str) -> int:
    """Return the index of a wrap surface. Raises `UnknownNameError`."""
    names = [edited.surface.name for edited in block.surfaces]
    check_choice(name, "wrap surface", names)
    return names.index(name)


def add_surface(block: EditedBlock, surface: WrapSurface) -> EditedBlock:
    """Add a wrap surface.

    Raises:
        CardsError: Its name cannot be one, or is taken.
    """
    check_new_name("wrap surface", surface.name, (e.surface.name for e in block.surfaces))
    return replace(block, surfaces=(*block.surfaces, EditedSurface(surface)))


def change_surface(
    block: EditedBlock,
    name: str,
    *,
    geometry: WrapGeometry | None = None,
    pose: Pose | None = None,
    link: str | None = None,
) -> EditedBlock:
    """Change shape, place or link of a wrap surface; what is None stays.

    Args:
        block: The block.
        name: Of the surface.
        geometry: Its shape.
        pose: Surface to link.
        link: Its link, or ``world``.

    Raises:
        UnknownNameError: There is no such surface.
    """
    index = surface_index(block, name)
    surfaces = list(block.surfaces)
    old = surfaces[index].surface
    same = geometry in (None, old.geometry) and pose in (None, old.pose)
    if same and link in (None, old.link):
        return block
    new = replace(
        old,
        geometry=old.geometry if geometry is None else geometry,
        pose=old.pose if pose is None else pose,
        link=old.link if link is None else link,
    )
    surfaces[index] = replace(surfaces[index], surface=new)
    return replace(block, surfaces=tuple(surfaces))


def rename_surface(block: EditedBlock, name: str, new: str) -> EditedBlock:
    """Give a wrap surface another name, in the paths over it too.

    Args:
        block: The block.
        name: Of the surface.
        new: Its new name.

    Raises:
        CardsError: There is no such surface, or the new name cannot be one or is taken.
    """
    if new == name:
        return block
    check_new_name("wrap surface", new, (e.surface.name for e in block.surfaces))
    index = surface_index(block, name)
    surfaces = list(block.surfaces)
    surfaces[index] = replace(surfaces[index], surface=replace(surfaces[index].surface, name=new))
    muscles = tuple(
        replace(edited, muscle=_over_renamed(edited.muscle, name, new)) for edited in block.muscles
    )
    return replace(block, muscles=muscles, surfaces=tuple(surfaces))


def remove_surface(block: EditedBlock, name: str) -> EditedBlock:
    """Remove a wrap surface.

    Raises:
        CardsError: Muscles wrap over it; the message names them.
    """
    index = surface_index(block, name)
    users = [
        edited.muscle.name
        for edited in block.muscles
        if any(isinstance(item, Wrap) and item.surface == name for item in edited.muscle.path)
    ]
    if users:
        raise CardsError(
            f"wrap surface '{name}' is wrapped over by {', '.join(users)} (expected: remove it "
            "from their paths first)"
        )
    return replace(block, surfaces=block.surfaces[:index] + block.surfaces[index + 1 :])


def _over_renamed(muscle: Muscle, name: str, new: str) -> Muscle:
    """Return a muscle with a surface of its path renamed; itself if it does not use it."""
    used = [isinstance(item, Wrap) and item.surface == name for item in muscle.path]
    if not any(used):
        return muscle
    path = (
        replace(item, surface=new) if isinstance(item, Wrap) and item.surface == name else item
        for item in muscle.path
    )
    return replace(muscle, path=tuple(path))
