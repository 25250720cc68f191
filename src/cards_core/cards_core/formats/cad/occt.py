"""Shapes of Open CASCADE as plain data; used only in the process that reads CAD files.

Open CASCADE's lengths are millimetres here; what leaves this module is in SI units.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from OCP.BRep import BRep_Tool
from OCP.BRepAdaptor import BRepAdaptor_Surface
from OCP.BRepCheck import BRepCheck_Analyzer
from OCP.BRepGProp import BRepGProp
from OCP.BRepMesh import BRepMesh_IncrementalMesh
from OCP.GeomAbs import GeomAbs_SurfaceType
from OCP.GProp import GProp_GProps
from OCP.TopAbs import TopAbs_Orientation, TopAbs_ShapeEnum
from OCP.TopExp import TopExp_Explorer
from OCP.TopLoc import TopLoc_Location
from OCP.TopoDS import TopoDS

from cards_core.formats.cad.assembly import PLACE, Face, Solid
from cards_core.spatial import Pose
from cards_core.typing import Array

MM = 1e-3
"""[m]."""

ANGULAR_TOLERANCE = 0.35
"""Largest angle between neighbouring facets of a mesh, [rad]."""


def working_on(element: str) -> None:
    """Leave word of what is being read, for the message if Open CASCADE crashes or hangs."""
    Path(tempfile.gettempdir(), PLACE).write_text(element, encoding="utf-8")


def explore(shape: Any, kind: TopAbs_ShapeEnum, avoid: Any = None) -> list[Any]:
    """Return the sub-shapes of a kind, without those inside the kind ``avoid``.

    Args:
        shape: A shape of Open CASCADE.
        kind: What is looked for.
        avoid: A kind of shape that is not entered.
    """
    explorer = (
        TopExp_Explorer(shape, kind) if avoid is None else TopExp_Explorer(shape, kind, avoid)
    )
    found = []
    while explorer.More():
        found.append(explorer.Current())
        explorer.Next()
    return found


def solids_of(shape: Any) -> list[Any]:
    """Return the solids of a shape."""
    return explore(shape, TopAbs_ShapeEnum.TopAbs_SOLID)


def shells_of(shape: Any) -> int:
    """Return how many shells, or faces without one, are in no solid."""
    shells = explore(shape, TopAbs_ShapeEnum.TopAbs_SHELL, TopAbs_ShapeEnum.TopAbs_SOLID)
    faces = explore(shape, TopAbs_ShapeEnum.TopAbs_FACE, TopAbs_ShapeEnum.TopAbs_SHELL)
    return len(shells) + len(faces)


def points_of(shape: Any) -> Array:
    """Return the vertices of a shape without faces, shape (n, 3), [m]."""
    points: list[Array] = []
    for vertex in explore(shape, TopAbs_ShapeEnum.TopAbs_VERTEX, TopAbs_ShapeEnum.TopAbs_FACE):
        point = _vector(BRep_Tool.Pnt_s(TopoDS.Vertex(vertex))) * MM
        if not any(np.array_equal(point, other) for other in points):
            points.append(point)
    return np.array(points).reshape(-1, 3)


def pose_of(location: TopLoc_Location) -> Pose:
    """Return a location as a pose, [m]; Open CASCADE's locations have no scale."""
    matrix = location.Transformation()
    values = np.array([[matrix.Value(i, j) for j in range(1, 5)] for i in range(1, 4)])
    return Pose(values[:, :3], values[:, 3] * MM)


def measure(
    shape: Any,
    tolerance: float,
    *,
    name: str = "",
    rgba: tuple[float, float, float, float] | None = None,
    density: float | None = None,
) -> Solid:
    """Return mass properties, mesh and faces of a solid.

    Args:
        shape: A solid of Open CASCADE.
        tolerance: Largest distance of the mesh from the surface, [m].
        name: Of the solid.
        rgba: Its colour.
        density: What the file says, [kg/m^3].
    """
    properties = GProp_GProps()
    BRepGProp.VolumeProperties_s(shape, properties)
    tensor = properties.MatrixOfInertia()
    second = np.array([[tensor.Value(i, j) for j in (1, 2, 3)] for i in (1, 2, 3)])
    vertices, triangles = _mesh(shape, tolerance)
    faces = [
        face
        for item in explore(shape, TopAbs_ShapeEnum.TopAbs_FACE)
        if (face := _face(TopoDS.Face(item))) is not None
    ]
    return Solid(
        name=name,
        volume=properties.Mass() * MM**3,
        centroid=_vector(properties.CentreOfMass()) * MM,
        second_moment=second * MM**5,
        vertices=vertices,
        triangles=triangles,
        faces=tuple(faces),
        rgba=rgba,
        density=density,
        valid=bool(BRepCheck_Analyzer(shape).IsValid()),
    )


def _mesh(shape: Any, tolerance: float) -> tuple[Array, Array]:
    """Return vertices [m] and triangles."""
    BRepMesh_IncrementalMesh(shape, tolerance / MM, False, ANGULAR_TOLERANCE, False)
    vertices: list[Array] = []
    triangles: list[Array] = []
    count = 0
    for item in explore(shape, TopAbs_ShapeEnum.TopAbs_FACE):
        face = TopoDS.Face(item)
        location = TopLoc_Location()
        mesh = BRep_Tool.Triangulation_s(face, location)
        if mesh is None or mesh.NbTriangles() == 0:
            continue
        place = location.Transformation()
        nodes = [_vector(mesh.Node(i + 1).Transformed(place)) for i in range(mesh.NbNodes())]
        corners = np.array([mesh.Triangle(i + 1).Get() for i in range(mesh.NbTriangles())]) - 1
        if face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED:
            corners = corners[:, ::-1]
        vertices.append(np.array(nodes) * MM)
        triangles.append(corners + count)
        count += len(nodes)
    if not vertices:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int32)
    return np.concatenate(vertices), np.concatenate(triangles).astype(np.int32)


def _face(face: Any) -> Face | None:
    surface = BRepAdaptor_Surface(face, True)
    reversed_face = face.Orientation() == TopAbs_Orientation.TopAbs_REVERSED
    angle = min(abs(surface.LastUParameter() - surface.FirstUParameter()), 2.0 * math.pi)
    match surface.GetType():
        case GeomAbs_SurfaceType.GeomAbs_Cylinder:
            shape = surface.Cylinder()
            frame = shape.Position()
            low, high = surface.FirstVParameter(), surface.LastVParameter()
            axis = _vector(frame.Direction())
            middle = _vector(frame.Location()) + 0.5 * (low + high) * axis
            inside_out = not frame.Direct()
            return Face(
                kind="cylinder",
                centre=middle * MM,
                axis=axis,
                radius=shape.Radius() * MM,
                length=abs(high - low) * MM,
                angle=angle,
                concave=reversed_face != inside_out,
            )
        case GeomAbs_SurfaceType.GeomAbs_Sphere:
            ball = surface.Sphere()
            return Face(
                kind="sphere",
                centre=_vector(ball.Location()) * MM,
                axis=_vector(ball.Position().Direction()),
                radius=ball.Radius() * MM,
                angle=angle,
                concave=reversed_face != (not ball.Position().Direct()),
            )
        case GeomAbs_SurfaceType.GeomAbs_Torus:
            ring = surface.Torus()
            return Face(
                kind="torus",
                centre=_vector(ring.Location()) * MM,
                axis=_vector(ring.Position().Direction()),
                radius=ring.MajorRadius() * MM,
                tube_radius=ring.MinorRadius() * MM,
                angle=angle,
                concave=reversed_face != (not ring.Position().Direct()),
            )
        case _:  # planes and free-form surfaces carry no feature
            return None


def _vector(item: Any) -> Array:
    return np.array([item.X(), item.Y(), item.Z()])
