"""Robots as data, read from SDF or CASPR XML.

`load` is the way in: ``load("roboy_arm")`` or ``load("path/to/model.sdf")`` gives a `Robot`.
"""

from cards_core.description.inertia import (
    InertiaRepair,
    InertiaReport,
    inertia_problem,
    mass_matrix_change,
    repair_inertia,
    repair_robot,
)
from cards_core.description.locate import find_model, known_models, load
from cards_core.description.model import (
    AXES_PER_KIND,
    WORLD,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Ellipsoid,
    Frame,
    Geometry,
    Inertia,
    Joint,
    JointAxis,
    JointKind,
    Link,
    Mesh,
    Muscle,
    Plane,
    Robot,
    Sphere,
    ViaPoint,
    Visual,
)
from cards_core.description.muscle_block import MuscleBlock, parse_muscle_block
from cards_core.description.sdf_reader import read_sdf
from cards_core.description.sdf_writer import to_sdf, write_model

__all__ = [
    "AXES_PER_KIND",
    "WORLD",
    "Box",
    "Capsule",
    "Collision",
    "Cylinder",
    "Ellipsoid",
    "Frame",
    "Geometry",
    "Inertia",
    "InertiaRepair",
    "InertiaReport",
    "Joint",
    "JointAxis",
    "JointKind",
    "Link",
    "Mesh",
    "Muscle",
    "MuscleBlock",
    "Plane",
    "Robot",
    "Sphere",
    "ViaPoint",
    "Visual",
    "find_model",
    "inertia_problem",
    "known_models",
    "load",
    "mass_matrix_change",
    "parse_muscle_block",
    "read_sdf",
    "repair_inertia",
    "repair_robot",
    "to_sdf",
    "write_model",
]
