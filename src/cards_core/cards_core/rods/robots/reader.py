"""Read a rod robot: rigid bodies from its SDF, rods from the YAML file that the SDF names.

The SDF names the file in the block that Gazebo hands to the rod plugin::

    <plugin filename="gz-sim-python-system-loader-system"
            name="gz::sim::systems::PythonSystemLoader">
      <module_name>cards_rod_plugin.system</module_name>
      <rods>rods.yaml</rods>
    </plugin>

Without the block, ``rods.yaml`` beside the SDF is read. docs/rod_robots.md has the format.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.locate import find_model, rods_file
from cards_core.formats.sdf.reader import read_sdf_document
from cards_core.formats.xml_lines import XmlElement
from cards_core.rods.robots.description_checks import (
    TURN,
    check_free_plate,
    check_limb_sets,
    check_plane,
    check_tip_direction,
    check_units_of_frames,
    dimension_warnings,
    document_warnings,
)
from cards_core.rods.robots.mechanism import Mechanism
from cards_core.rods.robots.robot import BaseKind, Limb, Plate, RodRobot
from cards_core.rods.robots.yaml_rods import RodEntry, number, rod_entries, solver_settings, vector
from cards_core.spatial import Pose, axis_rotation, quaternion_matrix
from cards_core.typing import Array, Vector3
from cards_core.yaml_fields import Document, Field, read_yaml

UNIT = 1e-3
"""How far the norm of a quaternion may be from 1."""


def read_rod_robot(name_or_path: str | os.PathLike[str], *, model: str | None = None) -> RodRobot:
    """Read a robot of rods.

    Args:
        name_or_path: Name of a model, path of an SDF file, or of its folder.
        model: Which model, where a world holds several.

    Raises:
        UnknownNameError: There is no such model; the message lists those there are.
        DescriptionError: SDF or YAML is wrong; the message names file, line and element or key.
    """
    file = find_model(name_or_path)
    document = read_sdf_document(file, model=model)
    yaml_file = rods_file(file, document.plugins)
    if document.robot.muscles:
        raise DescriptionError(
            f"has {len(document.robot.muscles)} muscles beside its rods",
            source=str(file),
            element=f"model '{document.robot.name}'",
            expected="a robot of rods or a robot with muscles",
        )
    check_units_of_frames(document.root)
    return _Reader(Mechanism(document), read_yaml(yaml_file), file, document.root).read()


class _Reader:
    """Combines the two files."""

    def __init__(
        self, mechanism: Mechanism, document: Document, file: Path, root: XmlElement
    ) -> None:
        self.mechanism = mechanism
        self.document = document
        self.top = Field(document, (), document.data)
        self.file = file
        self.root = root
        self.planar = False

    def read(self) -> RodRobot:
        mechanism, top = self.mechanism, self.top
        entries = rod_entries(self.document)
        self.planar = top["planar"].flag() if top.has("planar") else False
        check_limb_sets(mechanism, entries, top["rods"])
        tips = [mechanism.end(entry.tip) for entry in entries]
        plate = self._plate(mechanism.plate(mechanism.plate_link(tips)))
        limbs = tuple(self._limb(entry, plate.link) for entry in entries)
        robot = RodRobot(
            name=mechanism.robot.name,
            limbs=limbs,
            plate=plate,
            gravity=self._gravity(),
            planar=self.planar,
            controlled=self._controlled(limbs),
            initial_pose=self._initial_pose(plate),
            initial_q=self._initial_q(limbs),
            settings=solver_settings(top),
            description=mechanism.robot,
            source=str(self.file),
            rods_source=self.document.source,
        )
        if top.has("wrench"):
            wrench, frame = self._wrench(top["wrench"], plate.link)
            robot = dataclasses.replace(robot, wrench=wrench, wrench_frame=frame)
        ends = _tips_at_home(robot)
        for entry, limb, pose in zip(entries, limbs, ends, strict=True):
            check_tip_direction(robot, limb, pose, entry.field)
        if self.planar:
            check_plane(robot, top)
        check_free_plate(robot, top["rods"])
        notes = [
            *_unit_warnings(entries),
            *dimension_warnings(robot, ends),
            *self._numbers_as_text(),
        ]
        weighed = set() if top.has("plate_mass") else mechanism.moved_with(plate.link)
        notes += [*self._angles(), *document_warnings(self.root, weighed)]
        return dataclasses.replace(robot, notes=tuple(notes))

    def _limb(self, entry: RodEntry, plate: str) -> Limb:
        mechanism = self.mechanism
        start, end = mechanism.end(entry.start), mechanism.end(entry.tip)
        base = mechanism.base(start, plate, entry.base)
        tip = mechanism.tip(end, plate, entry.plate, planar=self.planar)
        for key, said, found in (
            ("base", entry.base_joint, base.joint),
            ("plate", entry.plate_joint, tip.joint),
        ):
            if said is not None and said != found:
                raise entry.field.error(
                    f"'{key}' names joint '{said}', but the rod "
                    f"{'starts' if key == 'base' else 'ends'} at a body of joint "
                    f"'{found or 'none'}'",
                    f"'{found}', or another '{'start' if key == 'base' else 'tip'}' frame",
                )
        length = entry.length
        if base.kind is BaseKind.EXTENSIBLE:
            assert entry.limits is not None
            lower, upper = entry.limits
            name = f"{entry.name}_length"
            base = dataclasses.replace(base, lower=lower, upper=upper, joint=name)
            if length is None:
                length = 0.5 * (lower + upper)
        elif length is None:  # limits of an extensible rod came from 'defaults'
            raise entry.field.error(f"rod '{entry.name}' has no 'length'", "its length, [m]")
        return Limb(
            entry.name, entry.rod, length, base, tip, entry.bulge, entry.force, entry.moment
        )

    # The robot as a whole --------------------------------------------------------------------

    def _plate(self, plate: Plate) -> Plate:
        """Return the plate with the mass that the YAML states, if it does."""
        if not self.top.has("plate_mass"):
            return plate
        mass = number(self.top["plate_mass"], at_least=0.0)
        return dataclasses.replace(plate, mass=mass, inertia=plate.inertia * (mass / plate.mass))

    def _gravity(self) -> Vector3:
        gravity = self.mechanism.robot.gravity.copy()
        if self.top.has("gravity"):
            gravity = vector(self.top["gravity"], 3, "in world axes, [m/s^2]")
        # what keeps a planar robot in its plane carries the weight normal to it
        return gravity * (1.0, 1.0, 0.0) if self.planar else gravity

    def _controlled(self, limbs: tuple[Limb, ...]) -> tuple[str, ...]:
        names = ("x", "y", "rz") if self.planar else ("x", "y", "z", "rx", "ry", "rz")
        actuators = sum(limb.base.kind is not BaseKind.FIXED for limb in limbs)
        if actuators == 0:
            raise self.top["rods"].error(
                "no rod has an actuator", "a prismatic, revolute or extensible base"
            )
        if not self.top.has("controlled_dof"):
            if actuators < len(names):
                raise self.top.error(
                    f"{actuators} actuators cannot control all {len(names)} coordinates of the "
                    "plate, and there is no 'controlled_dof'",
                    f"'controlled_dof' with {actuators} of {', '.join(names)}",
                )
            return names
        field = self.top["controlled_dof"]
        chosen = tuple(item.text(names) for item in field.items())
        if len(set(chosen)) < len(chosen):
            raise field.error("names a coordinate twice", "each coordinate once")
        if len(chosen) > actuators or (len(chosen) < min(actuators, len(names))):
            count = min(actuators, len(names))
            raise field.error(
                f"{len(chosen)} coordinates for {actuators} actuators",
                f"{count} of {', '.join(names)}",
            )
        return tuple(name for name in names if name in chosen)

    def _initial_pose(self, plate: Plate) -> Array | None:
        if not (self.top.has("initial") and self._initial().has("pose")):
            return None
        field = self._initial()["pose"]
        if isinstance(field.value, dict):
            field.mapping(("position", "quaternion"))
            position = vector(field["position"], 3, "x y z, [m]")
            quaternion = vector(field["quaternion"], 4, "w x y z")
            norm = float(np.linalg.norm(quaternion))
            if abs(norm - 1.0) > UNIT:
                raise field["quaternion"].error(f"has the norm {norm:g}", "a unit quaternion")
            return Pose(quaternion_matrix(quaternion), position).matrix
        if self.planar:
            x, y, angle = vector(field, 3, "x y [m], angle [rad] in the plane")
            turn = axis_rotation((0.0, 0.0, 1.0), float(angle))
            return Pose(turn, np.array([x, y, plate.pose[2, 3]])).matrix
        values = vector(field, 6, "x y z [m], roll pitch yaw [rad]")
        return Pose.from_xyz_rpy(values[:3], values[3:]).matrix

    def _angles(self) -> list[str]:
        """Return a warning if an angle of the initial pose is more than a turn."""
        if not (self.top.has("initial") and self._initial().has("pose")):
            return []
        field = self._initial()["pose"]
        if isinstance(field.value, dict):
            return []
        angle = max(abs(number(item)) for item in field.items()[2 if self.planar else 3 :])
        if angle <= TURN:
            return []
        return [f"{field.error(f'an angle of {angle:g} rad is more than a turn: degrees?')}"]

    def _initial_q(self, limbs: tuple[Limb, ...]) -> Array | None:
        if not (self.top.has("initial") and self._initial().has("q")):
            return None
        field = self._initial()["q"]
        q = vector(field, len(limbs), "one per rod, [m] or [rad]")
        for limb, value, item in zip(limbs, q, field.items(), strict=True):
            if not limb.base.lower <= value <= limb.base.upper:
                raise item.error(
                    f"limb '{limb.name}': {value:g} is outside its limits",
                    f"{limb.base.lower:g} to {limb.base.upper:g} {_unit(limb.base.kind)}",
                )
        return q

    def _initial(self) -> Field:
        field = self.top["initial"]
        field.mapping(("pose", "q"))
        return field

    def _wrench(self, field: Field, plate: str) -> tuple[Array, str]:
        field.mapping(("force", "moment", "frame"))
        parts = [
            vector(field[key], 3, f"the {key}, [{unit}]") if field.has(key) else np.zeros(3)
            for key, unit in (("force", "N"), ("moment", "N m"))
        ]
        frames = ("world", "plate") if plate == "plate" else ("world", "plate", plate)
        frame = field["frame"].text(frames) if field.has("frame") else "world"
        return np.concatenate(parts), "world" if frame == "world" else "plate"

    def _numbers_as_text(self) -> list[str]:
        # a default is looked up once for each rod
        places = list(dict.fromkeys(self.document.texts_elsewhere))
        if not places:
            return []
        value = Field(self.document, places[0], None)
        line = self.document.line(places[0])
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        return [
            f"{self.document.source}:{line}: {value.error('').element}{more}: a number without "
            "point or with an exponent without sign, such as 200e9, is a text to YAML "
            "1.1; it is read as the number it spells"
        ]


def _unit(kind: BaseKind) -> str:
    return "rad" if kind is BaseKind.REVOLUTE else "m"


def _unit_warnings(entries: list[RodEntry]) -> list[str]:
    """Return each warning once, with the rods that it concerns."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        for warning in entry.warnings:
            found.setdefault(warning, []).append(entry.name)
    return [f"rods {', '.join(names)}: {warning}" for warning, names in found.items()]


def _tips_at_home(robot: RodRobot) -> list[Array]:
    """Return the pose of each rod's tip with the plate at its home pose, joints at zero."""
    plate = robot.home_pose
    return [plate @ limb.tip.joint_pose @ limb.tip.attach for limb in robot.limbs]
