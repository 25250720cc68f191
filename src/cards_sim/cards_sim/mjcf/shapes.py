"""Visuals and collisions from geoms; meshes become OBJ files.

A geom that MuJoCo draws (group 0 to 2) is a visual, one that can touch a collision, and many are
both. MuJoCo turns and moves meshes into their principal axes; the file that is written has the
vertices in those axes, as the geom's pose demands.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from cards_core.formats.imports.findings import NameTable
from cards_core.robot.elements import (
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Geometry,
    Mesh,
    Plane,
    Sphere,
    Visual,
)
from cards_sim.mjcf.names import Names, pose_of

DRAWN_GROUPS = 3
"""Groups 0, 1, 2 are drawn by MuJoCo's viewer."""

ENDLESS = 20.0
"""Drawn size of a plane without end, [m]."""

GREY = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo's colour of a geom that has none; its material counts then."""


class Shapes:
    """Makes the shapes of links.

    Args:
        names: Of the model; gets remarks.

    Attributes:
        files: Mesh files: path in the folder of the model to content.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._model = names.compiled.model
        self._mesh_names = NameTable()
        self._meshes: dict[int, str] = {}
        self.files: dict[str, str] = {}

    def of(self, body: int) -> tuple[tuple[Visual, ...], tuple[Collision, ...]]:
        """Return the visuals and the collisions of a body."""
        model = self._model
        visuals: list[Visual] = []
        collisions: list[Collision] = []
        visual_names, collision_names = NameTable(), NameTable()
        first = int(model.body_geomadr[body])
        for geom in range(first, first + int(model.body_geomnum[body])):
            drawn = model.geom_group[geom] < DRAWN_GROUPS
            touching = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
            if not drawn and not touching:
                continue
            geometry = self._geometry(geom)
            if geometry is None:
                continue
            name = self._names.name("geom", geom) or f"geom_{geom}"
            pose = pose_of(model.geom_pos[geom], model.geom_quat[geom])
            line = self._names.line("geom", geom)
            if drawn:
                colour = self._colour(geom)
                visuals.append(Visual(visual_names.claim(name), geometry, pose, colour, line))
            if touching:
                # the friction of two bodies is a product here, of like ones the same as MuJoCo's
                friction = math.sqrt(max(0.0, float(model.geom_friction[geom, 0])))
                name = collision_names.claim(name)
                collisions.append(Collision(name, geometry, pose, friction, line))
        return tuple(visuals), tuple(collisions)

    def _colour(self, geom: int) -> tuple[float, float, float, float]:
        model = self._model
        rgba = tuple(float(value) for value in model.geom_rgba[geom])
        material = int(model.geom_matid[geom])
        if material >= 0 and np.allclose(rgba, GREY):
            rgba = tuple(float(value) for value in model.mat_rgba[material])
        red, green, blue, alpha = (min(max(round(value, 6), 0.0), 1.0) for value in rgba)
        return red, green, blue, alpha

    def _geometry(self, geom: int) -> Geometry | None:
        model, kinds = self._model, mujoco.mjtGeom
        size = [float(value) for value in model.geom_size[geom]]
        match int(model.geom_type[geom]):
            case kinds.mjGEOM_PLANE:
                x, y = (2.0 * value if value > 0.0 else ENDLESS for value in size[:2])
                return Plane(np.array([0.0, 0.0, 1.0]), (x, y))
            case kinds.mjGEOM_SPHERE:
                return Sphere(size[0])
            case kinds.mjGEOM_CAPSULE:
                return Capsule(size[0], 2.0 * size[1])
            case kinds.mjGEOM_ELLIPSOID:
                return Ellipsoid(np.array(size))
            case kinds.mjGEOM_CYLINDER:
                return Cylinder(size[0], 2.0 * size[1])
            case kinds.mjGEOM_BOX:
                return Box(2.0 * np.array(size))
            case kinds.mjGEOM_MESH | kinds.mjGEOM_SDF if model.geom_dataid[geom] >= 0:
                return Mesh(self._mesh(int(model.geom_dataid[geom])))
            case kinds.mjGEOM_HFIELD:
                self._names.warn("hfield", "geom", geom, "height field left out")
            case _:
                self._names.warn("shape", "geom", geom, "shape left out: there is none like it")
        return None

    def _mesh(self, mesh: int) -> str:
        if mesh not in self._meshes:
            name = self._mesh_names.claim(self._names.name("mesh", mesh) or f"mesh_{mesh}")
            self._meshes[mesh] = f"meshes/{name}.obj"
            self.files[self._meshes[mesh]] = self._obj(mesh)
        return self._meshes[mesh]

    def _obj(self, mesh: int) -> str:
        model = self._model
        first = int(model.mesh_vertadr[mesh])
        vertices = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])]
        first = int(model.mesh_faceadr[mesh])
        faces = model.mesh_face[first : first + int(model.mesh_facenum[mesh])] + 1
        lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices.tolist()]
        lines += [f"f {a} {b} {c}" for a, b, c in faces.tolist()]
        return "\n".join(lines) + "\n"
