"""Our names of MuJoCo's bodies, joints, sites and geoms, and where the file has them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import mujoco
import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FilePlace, FindingList, NameTable
from cards_core.robot.elements import WORLD
from cards_core.spatial import Pose, quaternion_matrix
from cards_core.typing import Array
from cards_sim.mjcf.files import CompiledMjcf

SCALAR_JOINTS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
"""Joints of one coordinate."""

WIDEST = 1e3
"""Limits of a joint as far as this are none where poses are drawn at random, [rad] or [m]."""

_TYPES = {
    "body": (mujoco.mjtObj.mjOBJ_BODY, "body"),
    "joint": (mujoco.mjtObj.mjOBJ_JOINT, "joint freejoint"),
    "geom": (mujoco.mjtObj.mjOBJ_GEOM, "geom"),
    "site": (mujoco.mjtObj.mjOBJ_SITE, "site"),
    "mesh": (mujoco.mjtObj.mjOBJ_MESH, "mesh"),
    "tendon": (mujoco.mjtObj.mjOBJ_TENDON, "spatial fixed"),
    "actuator": (
        mujoco.mjtObj.mjOBJ_ACTUATOR,
        "motor position velocity intvelocity damper cylinder muscle general adhesion dcmotor",
    ),
    "equality": (mujoco.mjtObj.mjOBJ_EQUALITY, "joint tendon weld connect flex"),
}
"""What has a name: MuJoCo's type, and the elements that make one."""


@dataclass(eq=False)
class Names:
    """Names in the file and ours, and what is remarked about them.

    Attributes:
        compiled: The model.
        findings: Remarks.
        table: Names of links, joints and frames, which share one name space.
        links: Our link of every body, by MuJoCo's index.
        muscles: Names of muscles.
        surfaces: Names of wrap surfaces.
        joints: Our joint of every joint that moves, by MuJoCo's index.
        surroundings: Link that is the world's frame and has what is fixed there, if there is one.
    """

    compiled: CompiledMjcf
    findings: FindingList = field(default_factory=FindingList)
    table: NameTable = field(default_factory=lambda: NameTable(reserved=(WORLD,)))
    links: dict[int, str] = field(default_factory=lambda: {0: WORLD})
    joints: dict[int, str] = field(default_factory=dict)
    muscles: NameTable = field(default_factory=NameTable)
    surfaces: NameTable = field(default_factory=NameTable)
    surroundings: str | None = None

    def name(self, kind: str, index: int) -> str:
        """Return the name in the file, empty if it has none."""
        return mujoco.mj_id2name(self.compiled.model, _TYPES[kind][0], index) or ""

    def label(self, kind: str, index: int) -> str:
        """Return what a remark calls it, e.g. ``tendon 'SF'`` or ``geom 3``."""
        name = self.name(kind, index)
        return f"{kind} '{name}'" if name else f"{kind} {index}"

    def warn(self, code: str, kind: str, index: int, message: str) -> None:
        """Add a warning about one thing of the file.

        Args:
            code: Stable identifier, see ``docs/import_mujoco.md``.
            kind: What it is about, e.g. ``tendon``.
            index: MuJoCo's index of it.
            message: What was found and what was done.
        """
        source, line = self.place(kind, index)
        self.findings.warn(code, self.label(kind, index), message, at=FilePlace(source, line))

    def note(self, code: str, kind: str, index: int, message: str) -> None:
        """Add a note about one thing of the file; arguments as of `warn`."""
        source, line = self.place(kind, index)
        self.findings.note(code, self.label(kind, index), message, at=FilePlace(source, line))

    def error(self, kind: str, index: int, problem: str, expected: str) -> DescriptionError:
        """Return (not raise) an error about one thing of the file.

        Args:
            kind: What it is about, e.g. ``joint``.
            index: MuJoCo's index of it.
            problem: What is wrong.
            expected: What would be right.
        """
        source, line = self.place(kind, index)
        return DescriptionError(
            problem, source=source, line=line, element=self.label(kind, index), expected=expected
        )

    def place(self, kind: str, index: int) -> tuple[str, int | None]:
        """Return the file that states one thing, and the line, None where it is not known.

        Args:
            kind: What it is, e.g. ``tendon``.
            index: MuJoCo's index of it.
        """
        compiled = self.compiled
        name = self.name(kind, index)
        if name:
            return compiled.source.place(_TYPES[kind][1], name)
        lists = {"body": "bodies", "mesh": "meshes", "equality": "equalities"}
        items = getattr(compiled.spec, lists.get(kind, f"{kind}s"))
        found = re.search(r"line (\d+)", items[index].info) if index < len(items) else None
        # a line alone does not say of which file
        known = found is not None and len(compiled.source.roots) == 1
        return str(compiled.source.path), int(found[1]) if known and found else None

    def line(self, kind: str, index: int) -> int | None:
        """Return the line of one thing in the model's own file; None if an included one has it.

        Args:
            kind: What it is, e.g. ``tendon``.
            index: MuJoCo's index of it.
        """
        source, line = self.place(kind, index)
        return line if source == str(self.compiled.source.path) else None


def pose_of(position: Array, quaternion: Array) -> Pose:
    """Return a pose from MuJoCo's arrays.

    Args:
        position: Shape (3,), [m].
        quaternion: (w, x, y, z), shape (4,).
    """
    return Pose(quaternion_matrix(quaternion), np.array(position, dtype=float))


def joint_range(model: mujoco.MjModel, joint: int) -> tuple[float, float] | None:
    """Return the limits of a joint, [rad] or [m]; None without, or as far as `WIDEST`.

    Args:
        model: The model.
        joint: MuJoCo's index.
    """
    low, high = model.jnt_range[joint].tolist()
    limited = bool(model.jnt_limited[joint]) and low > -WIDEST and high < WIDEST
    return (low, high) if limited else None
