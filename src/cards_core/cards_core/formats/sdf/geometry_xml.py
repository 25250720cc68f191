"""What the MJCF and URDF writers share: numbers as text, mesh files, orientation of planes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cards_core.robot.model import Robot
from cards_core.typing import Matrix3, Vector3

THIN = 1e-3
"""Thickness of the box that is drawn where a format has no plane, [m]."""


def numbers(*values: float) -> str:
    """Return values separated by blanks, with all digits (reading gives the same floats)."""
    # adding 0.0 turns -0.0 into 0.0; repr is the shortest text that reads back exactly
    return " ".join(repr(float(v) + 0.0).removesuffix(".0") for v in values)


def mesh_path(uri: str, robot: Robot) -> str:
    """Return the file of a mesh.

    ``file://`` is removed, ``model://<name>/..`` is looked up beside the folder of the robot's
    own file, and relative paths are relative to that file. Other schemes (``package://``,
    ``https://``) are left as they are: nothing is resolved or downloaded here.
    """
    folder = Path(robot.source).resolve().parent if robot.source else Path()
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return str(folder / uri)
    if scheme == "file":
        return rest
    if scheme == "model":
        return str(folder.parent / rest)
    return uri


def rotation_to(normal: Vector3) -> Matrix3:
    """Return a rotation that takes the z axis to the direction of ``normal``."""
    z = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    helper = np.eye(3)[int(np.argmin(np.abs(z)))]
    x = np.cross(helper, z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
