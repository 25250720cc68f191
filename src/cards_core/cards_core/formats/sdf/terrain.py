"""Terrains as SDF: planes and boxes as they are, height fields as meshes in files of their own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np

from cards_core.formats.sdf.elements import add_collision, add_visual
from cards_core.robot.elements import Geometry, HeightField, Mesh
from cards_core.robot.height_field import field_triangles
from cards_core.robot.model import Robot
from cards_core.robot.terrain import NAME


def terrain_sdf(model: Robot, folder: Path, friction: float | None = None) -> str:
    """Return a static SDF model of a terrain.

    Args:
        model: See `cards_core.robot.terrain.terrain_model`.
        folder: Where meshes are written to, as OBJ; exists.
        friction: mu that is written in place of the terrain's, for simulators whose rule for two
            bodies is another.
    """
    element = ET.Element("model", name=NAME)
    ET.SubElement(element, "static").text = "true"
    (source,) = model.links
    link = ET.SubElement(element, "link", name=source.name)
    files: dict[int, str] = {}

    def written(item: Geometry) -> Geometry:
        if not isinstance(item, HeightField):
            return item
        if id(item) not in files:
            path = folder.resolve() / f"{NAME}_{len(files)}.obj"
            path.write_text(obj_text(item))
            files[id(item)] = str(path)
        return Mesh(files[id(item)])

    for visual in source.visuals:
        add_visual(link, replace(visual, geometry=written(visual.geometry)), None)
    for collision in source.collisions:
        mu = collision.friction if friction is None else friction
        shape = replace(collision, geometry=written(collision.geometry), friction=mu)
        add_collision(link, shape, None)
    ET.indent(element)
    return ET.tostring(element, encoding="unicode")


def obj_text(field: HeightField) -> str:
    """Return the surface of a height field as an OBJ file.

    With a normal at every vertex, the mean of its triangles' by area: Gazebo leaves out a mesh
    without, and falls through it.
    """
    vertices, faces = field_triangles(field)
    corners = vertices[faces]
    doubled = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals = np.zeros_like(vertices)
    for corner in faces.T:
        np.add.at(normals, corner, doubled)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in vertices.tolist()]
    lines += [f"vn {x!r} {y!r} {z!r}" for x, y, z in normals.tolist()]
    lines += [f"f {a}//{a} {b}//{b} {c}//{c}" for a, b, c in (faces + 1).tolist()]
    return "\n".join(lines) + "\n"
