"""What is in a CAD file, as plain data in SI units: components, solids, named frames, faces.

The process that reads the file writes this with `save`, ours reads it with `load`: JSON, and the
triangles in a file of arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cards_core.errors import CardsError
from cards_core.spatial import Pose
from cards_core.typing import Array, Matrix3, Vector3

DATA, ARRAYS, PLACE = "assembly.json", "triangles.npz", "place.txt"


@dataclass(frozen=True, eq=False)
class Face:
    """A cylindrical, spherical or toroidal face of a solid.

    Attributes:
        kind: Its surface.
        centre: Of the sphere or torus; of a cylinder the middle of its axis, in component
            coordinates, shape (3,), [m].
        axis: Unit vector, component axes; of a sphere z.
        radius: Of a torus that of its centre line, [m].
        tube_radius: Of a torus, [m]; 0 else.
        length: Of a cylinder along its axis, [m]; 0 else.
        angle: Covered around the axis, [rad]; 2 pi for a whole one.
        concave: True if the material is outside, as around a hole.
    """

    kind: Literal["cylinder", "sphere", "torus"]
    centre: Vector3
    axis: Vector3
    radius: float
    tube_radius: float = 0.0
    length: float = 0.0
    angle: float = 2.0 * np.pi
    concave: bool = False


@dataclass(frozen=True, eq=False)
class Solid:
    """A solid of a component.

    Attributes:
        name: What the file calls it; empty if nothing.
        volume: [m^3]. Negative if its faces point inwards.
        centroid: Component coordinates, shape (3,), [m].
        second_moment: Inertia about the centroid for a density of 1 kg/m^3, component axes,
            shape (3, 3), [m^5].
        vertices: Of its mesh, component coordinates, shape (n, 3), [m].
        triangles: Indices, shape (k, 3), counter-clockwise seen from outside.
        faces: Those that joints, holes, eyelets and wrap surfaces are found from.
        rgba: Colour, or None.
        density: What the file says, [kg/m^3], or None.
        valid: False if Open CASCADE finds faults in its topology.
    """

    name: str
    volume: float
    centroid: Vector3
    second_moment: Matrix3
    vertices: Array
    triangles: Array
    faces: tuple[Face, ...] = ()
    rgba: tuple[float, float, float, float] | None = None
    density: float | None = None
    valid: bool = True


@dataclass(frozen=True, eq=False)
class Component:
    """A node of the assembly: an assembly, a part, or a named frame or point.

    Attributes:
        path: Names from the top, joined by ``/``; unique.
        name: The last of them, as the file has it.
        parent: Index of the component around it; -1 at the top.
        pose: Of its frame in the frame of the assembly.
        solids: Of a part.
        points: Loose vertices of a part without solids, component coordinates, shape (n, 3), [m].
        assembly: True if it has components.
        shells: Number of shells without a solid: surfaces, which have no mass.
    """

    path: str
    name: str
    parent: int
    pose: Pose
    solids: tuple[Solid, ...] = ()
    points: Array = field(default_factory=lambda: np.zeros((0, 3)))
    assembly: bool = False
    shells: int = 0


@dataclass(frozen=True, eq=False)
class GivenLink:
    """A link that the file itself declares (CROSS for FreeCAD).

    Attributes:
        name: Its name.
        members: Indices of the components that make it up.
        pose: Of its frame in the frame of the assembly.
        mass, com, tensor: Its inertia as the file states it, in its frame, or None.
    """

    name: str
    members: tuple[int, ...]
    pose: Pose
    mass: float | None = None
    com: Vector3 | None = None
    tensor: Matrix3 | None = None


@dataclass(frozen=True, eq=False)
class GivenJoint:
    """A joint that the file itself declares; about or along z of its frame.

    Attributes:
        name, kind, parent, child: As in a robot.
        origin: Joint frame in the parent link's frame, at zero.
        lower, upper, effort, velocity: Limits in SI; infinite where there are none.
    """

    name: str
    kind: str
    parent: str
    child: str
    origin: Pose
    lower: float = -np.inf
    upper: float = np.inf
    effort: float = np.inf
    velocity: float = np.inf


@dataclass(frozen=True, eq=False)
class Assembly:
    """The content of a CAD file.

    Attributes:
        name: Of the document, or of its top component.
        program: ``STEP`` or ``FreeCAD``.
        unit: Unit of length of the file, in words.
        components: Parents before children.
        links, joints: Declared in the file.
        remarks: (code, subject, message) of what reading left out or changed.
    """

    name: str
    program: str
    unit: str
    components: tuple[Component, ...]
    links: tuple[GivenLink, ...] = ()
    joints: tuple[GivenJoint, ...] = ()
    remarks: tuple[tuple[str, str, str], ...] = ()


def unique_path(taken: set[str], parent: str, name: str) -> str:
    """Return a path that is not taken, and take it: ``parent/name``, ``parent/name_2``, ...

    Args:
        taken: Paths that there are; the new one is added.
        parent: Path of the component around it; empty at the top.
        name: Of the component; slashes become underscores.
    """
    base = name.strip().replace("/", "_") or "unnamed"
    base = f"{parent}/{base}" if parent else base
    path, count = base, 1
    while path in taken:
        count += 1
        path = f"{base}_{count}"
    taken.add(path)
    return path


# Between the two processes ---------------------------------------------------------------------


def save(assembly: Assembly, folder: Path) -> None:
    """Write an assembly into a folder."""
    arrays: dict[str, Array] = {}
    numbers: dict[int, int] = {}  # a part that is used often is one object, and one mesh

    def plain(value: Any) -> Any:
        if isinstance(value, Pose):
            return {"rotation": plain(value.rotation), "translation": plain(value.translation)}
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, tuple | list):
            return [plain(item) for item in value]
        if isinstance(value, Solid):
            number = numbers.setdefault(id(value), len(numbers))
            arrays[f"vertices_{number}"] = value.vertices
            arrays[f"triangles_{number}"] = value.triangles
            rest = {**value.__dict__, "vertices": number, "triangles": number}
            return {key: plain(item) for key, item in rest.items()}
        if hasattr(value, "__dataclass_fields__"):
            return {key: plain(item) for key, item in value.__dict__.items()}
        return value

    data = plain(assembly)
    np.savez(folder / ARRAYS, **arrays)  # type: ignore[arg-type]  # its stub takes the names for options
    (folder / DATA).write_text(json.dumps(data), encoding="utf-8")


def load(folder: Path) -> Assembly:
    """Read what `save` wrote.

    Raises:
        CardsError: It is not complete.
    """
    try:
        data = json.loads((folder / DATA).read_text(encoding="utf-8"))
        with np.load(folder / ARRAYS, allow_pickle=False) as arrays:
            return _assembly(data, {name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CardsError(f"the process that reads CAD files wrote nonsense: {error}") from None


def _assembly(data: Mapping[str, Any], arrays: Mapping[str, Array]) -> Assembly:
    def solid(item: dict[str, Any]) -> Solid:
        number = item["vertices"]
        return Solid(
            **{
                **item,
                "centroid": np.array(item["centroid"], dtype=float),
                "second_moment": np.array(item["second_moment"], dtype=float),
                "vertices": arrays[f"vertices_{number}"],
                "triangles": arrays[f"triangles_{number}"],
                "faces": tuple(
                    Face(**{**f, "centre": np.array(f["centre"]), "axis": np.array(f["axis"])})
                    for f in item["faces"]
                ),
                "rgba": None if item["rgba"] is None else tuple(item["rgba"]),
            }
        )

    def component(item: dict[str, Any]) -> Component:
        return Component(
            **{
                **item,
                "pose": _pose(item["pose"]),
                "points": np.array(item["points"], dtype=float).reshape(-1, 3),
                "solids": tuple(solid(s) for s in item["solids"]),
            }
        )

    def link(item: dict[str, Any]) -> GivenLink:
        arrays_of = {key: None if item[key] is None else np.array(item[key]) for key in _ARRAYS}
        return GivenLink(
            **{
                **item,
                **arrays_of,
                "members": tuple(item["members"]),
                "pose": _pose(item["pose"]),
            }
        )

    return Assembly(
        **{
            **data,
            "components": tuple(component(item) for item in data["components"]),
            "links": tuple(link(item) for item in data["links"]),
            "joints": tuple(
                GivenJoint(**{**item, "origin": _pose(item["origin"])}) for item in data["joints"]
            ),
            "remarks": tuple((a, b, c) for a, b, c in data["remarks"]),
        }
    )


_ARRAYS = ("com", "tensor")


def _pose(data: Mapping[str, Any]) -> Pose:
    return Pose(
        np.array(data["rotation"], dtype=float), np.array(data["translation"], dtype=float)
    )
