"""Write a robot as SDFormat 1.11, for Gazebo and for `read_sdf`.

`prepare_for_sdf` first rewrites what SDFormat cannot state: planar and free joints, links without
mass. Poses are written the way they are stored: a joint relative to its parent link, a link
relative to its joint. Numbers have all digits, so that reading gives the same robot.
"""

from __future__ import annotations

import dataclasses
import math
import os
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.files import writing_together
from cards_core.formats.sdf.elements import (
    add_axis,
    add_collision,
    add_inertia,
    add_muscle,
    add_pose,
    add_visual,
    add_wrap_surface,
    numbers,
)
from cards_core.formats.sdf.muscle_block import MODULE, PLUGIN_FILENAME, PLUGIN_NAME
from cards_core.formats.sdf.reader import GRAVITY, read_sdf
from cards_core.robot.elements import (
    WORLD,
    Frame,
    Inertia,
    Joint,
    JointAxis,
    JointKind,
    Link,
    Muscle,
)
from cards_core.robot.inertia import inertia_problem
from cards_core.robot.model import Robot
from cards_core.spatial import Pose, quaternion_matrix

# Preparation -----------------------------------------------------------------------------------


DUMMY_RATIO = 1e-6
"""Mass and moments of an added link, relative to those of the link it carries."""

_FALLBACK = Inertia(1.0, np.zeros(3), 1e-2 * np.eye(3))  # a robot without any mass


def prepare_for_sdf(robot: Robot) -> Robot:
    """Return an equivalent robot that SDFormat can state and simulators accept.

    * ``planar`` becomes prismatic, prismatic, revolute; ``free`` between links becomes three
      prismatic joints and a ball joint. The joints carry the names that `Tree` gives to the
      coordinates, so q keeps its layout and its names.
    * The links between them, and links without mass, get `DUMMY_RATIO` of the mass and of the mean
      principal moment of the next link below with mass: M changes by about this ratio.
    * ``free`` from the world stays: SDFormat states it by the absence of a joint.

    Raises:
        DescriptionError: A link has mass, but not the inertia of a rigid body.
    """
    links = list(robot.links)
    joints: list[Joint] = []
    home = dict(robot.home)
    taken = {link.name for link in links} | {joint.name for joint in robot.joints}
    for joint in robot.joints:
        steps = _steps(joint)
        if not steps:
            joints.append(joint)
            continue
        values = home.pop(joint.name, None)
        parent = joint.parent
        for index, (name, kind, axis, count) in enumerate(steps):
            last = index == len(steps) - 1
            child = joint.child if last else _unused(f"{name}_link", taken)
            if not last:
                links.insert(_position(links, joint.child), Link(child))
            joints.append(
                dataclasses.replace(
                    joint,
                    name=name,
                    kind=kind,
                    parent=parent,
                    child=child,
                    parent_to_joint=joint.parent_to_joint if index == 0 else Pose(),
                    joint_to_child=joint.joint_to_child if last else Pose(),
                    axes=() if axis is None else (axis,),
                    motor=joint.motor and axis is not None,
                )
            )
            if values is not None:
                home[name], values = tuple(values[:count]), values[count:]
            parent = child
    ready = dataclasses.replace(robot, joints=tuple(joints), links=tuple(links), home=home)
    return dataclasses.replace(ready, links=_with_mass(ready))


def _steps(joint: Joint) -> list[tuple[str, JointKind, JointAxis | None, int]]:
    """Return (name, kind, axis, number of coordinates) of the joints that replace one."""
    name = joint.name
    if joint.kind == "planar":
        kinds: tuple[JointKind, ...] = ("prismatic", "prismatic", "revolute")
        return [
            (f"{name}_{i + 1}", kind, axis, 1)
            for i, (kind, axis) in enumerate(zip(kinds, joint.axes, strict=True))
        ]
    if joint.kind == "free" and joint.parent != WORLD:
        linear: list[tuple[str, JointKind, JointAxis | None, int]] = [
            (name + suffix, "prismatic", JointAxis(axis), 1)
            for suffix, axis in zip(("_x", "_y", "_z"), np.eye(3), strict=True)
        ]
        return [*linear, (name, "ball", None, 4)]
    return []


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _position(links: list[Link], name: str) -> int:
    return next(i for i, link in enumerate(links) if link.name == name)


def _with_mass(robot: Robot) -> tuple[Link, ...]:
    """Return the links; those without mass get a small part of what they carry."""
    below: dict[str, list[str]] = {}
    above: dict[str, str] = {}
    for joint in robot.joints:
        below.setdefault(joint.parent, []).append(joint.child)
        above[joint.child] = joint.parent
    inertias = {link.name: link.inertia for link in robot.links}
    out = []
    for link in robot.links:
        inertia = link.inertia
        if inertia.is_massless:
            carried = _carried(link.name, inertias, below, above)
            mean = float(np.trace(carried.tensor)) / 3.0 or 1e-2 * carried.mass
            inertia = Inertia(
                DUMMY_RATIO * carried.mass, np.zeros(3), DUMMY_RATIO * mean * np.eye(3)
            )
        problem = inertia_problem(inertia)
        if problem is not None:
            raise robot.error(
                link,
                f"not the inertia of a rigid body: {problem}",
                "a valid inertia; repair_robot() gives the nearest",
            )
        out.append(dataclasses.replace(link, inertia=inertia))
    return tuple(out)


def _carried(
    name: str,
    inertias: Mapping[str, Inertia],
    below: Mapping[str, list[str]],
    above: Mapping[str, str],
) -> Inertia:
    """Return the inertia of the next link with mass: below (breadth first), else above."""
    level, seen = list(below.get(name, [])), {name}
    while level:
        for child in level:
            if inertias[child].mass > 0.0:
                return inertias[child]
        seen.update(level)
        level = [g for child in level for g in below.get(child, []) if g not in seen]
    here = above.get(name)
    while here is not None and here in inertias and here not in seen:
        if inertias[here].mass > 0.0:
            return inertias[here]
        seen.add(here)
        here = above.get(here)
    return _FALLBACK


# Text and files --------------------------------------------------------------------------------


VERSION = "1.11"
_TYPES = {"fixed", "revolute", "prismatic", "universal", "ball"}


def to_sdf(robot: Robot, *, base: str | os.PathLike[str] | None = None) -> str:
    """Return a robot as SDF text.

    `prepare_for_sdf` rewrites what SDFormat has no words for. A free joint from the world is
    stated by the pose of its link at home; its name and placement are not part of the text.
    Gravity other than 9.81 m/s^2 along -z needs a ``<world>`` around the model.

    Args:
        robot: The robot; its inertias must be valid (`repair_robot`).
        base: Folder the file will be in; meshes below it get relative paths.

    Raises:
        DescriptionError: The robot cannot be stated: invalid inertia, unlimited tension, names
            that SDFormat forbids or that are used twice, joints that are no tree.
        UnknownNameError: A joint, frame or muscle names a link that does not exist.
    """
    _ = robot.tree  # refuses loops and unknown names
    return _Writer(prepare_for_sdf(robot), Path(base) if base is not None else None).text()


def write_model(robot: Robot, folder: str | os.PathLike[str], *, description: str = "") -> Path:
    """Write ``model.sdf`` and ``model.config`` into a folder; return the path of ``model.sdf``.

    Args:
        robot: The robot.
        folder: Receives the files; created if missing.
        description: Text for ``model.config``.

    Raises:
        DescriptionError: As `to_sdf`; nothing is written then.
        UnknownNameError: As `to_sdf`.
    """
    target = Path(folder)
    text = to_sdf(robot, base=target)
    # nothing is written that we would not read: a muscle may still be wrong
    read_sdf(text, base=target, name=str(target / "model.sdf"))
    config = ET.Element("model")
    ET.SubElement(config, "name").text = robot.name
    ET.SubElement(config, "version").text = "1.0"
    ET.SubElement(config, "sdf", version=VERSION).text = "model.sdf"
    ET.SubElement(config, "description").text = description or f"{robot.name} with muscles"
    with writing_together(target) as work:
        (work / "model.config").write_text(_serialise(config), encoding="utf-8")
        (work / "model.sdf").write_text(text, encoding="utf-8")
    return target / "model.sdf"


def _serialise(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


class _Writer:
    """Builds the document of one robot.

    Links, joints and frames with names ``a::b`` go into nested ``<model name="a">``; the muscle
    block is that of the outermost model.
    """

    def __init__(self, robot: Robot, base: Path | None) -> None:
        self.robot = robot
        self.base = base
        self.joint_of = {joint.child: joint for joint in robot.joints}
        self.root = ET.Element("sdf", version=VERSION)
        top = self.root
        if not np.array_equal(robot.gravity, GRAVITY):
            top = ET.SubElement(self.root, "world", name=f"{robot.name}_world")
            ET.SubElement(top, "gravity").text = numbers(*robot.gravity)
        self.models = {"": ET.SubElement(top, "model", name=robot.name)}
        self.names: set[str] = set()

    def text(self) -> str:
        for item in self._in_order():
            if isinstance(item, Link):
                self._link(item)
            else:
                self._joint(item)
        for frame in self.robot.frames:
            self._frame(frame)
        self._block()
        return _serialise(self.root)

    def _in_order(self) -> Iterator[Link | Joint]:
        """Yield links and joints so that each joint follows its child and reading keeps q.

        A reader inserts the free joint of a link without joint where the link stands, so such a
        link must not come before the joints that precede its free joint.
        """
        waiting = {joint.child for joint in self.robot.joints if joint.kind == "free"}
        links = list(self.robot.links)
        for joint in self.robot.joints:
            waiting.discard(joint.child)
            names = [link.name for link in links]
            if joint.child in names:
                stop = names.index(joint.child) + 1
                if joint.kind != "free":
                    held = [i for i, name in enumerate(names) if name in waiting]
                    stop = min([stop, *held])
                yield from links[:stop]
                del links[:stop]
            if joint.kind != "free":
                yield joint
        yield from links

    # Names -----------------------------------------------------------------------------------

    def _scope(self, name: str, kind: str) -> tuple[ET.Element, str, str]:
        """Return (model element, prefix, local name) of a full name; make the model if new."""
        *path, local = name.split("::")
        prefix = ""
        for part in path:
            above, prefix = prefix, f"{prefix}{part}::"
            if prefix not in self.models:
                self._take(prefix[:-2], "model", part)
                self.models[prefix] = ET.SubElement(self.models[above], "model", name=part)
        self._take(name, kind, local)
        return self.models[prefix], prefix, local

    def _take(self, name: str, kind: str, local: str) -> None:
        if name in self.names:
            raise self._error(
                kind, name, "the name is used twice", "names unique among links, joints and frames"
            )
        if not local.strip() or local == WORLD or local.startswith("__"):
            raise self._error(kind, name, "not a name for SDFormat", "not empty, world or __...")
        self.names.add(name)

    def _error(self, kind: str, name: str, problem: str, expected: str) -> DescriptionError:
        return DescriptionError(
            problem, source=self.robot.source, element=f"{kind} '{name}'", expected=expected
        )

    def _local(self, name: str, prefix: str, kind: str, of: str) -> str:
        """Return a link's name as seen in the model with this prefix."""
        if not name.startswith(prefix):
            raise self._error(
                kind, of, f"link '{name}' is outside its model '{prefix[:-2]}'", "a link within"
            )
        return name[len(prefix) :]

    # Links, joints, frames -------------------------------------------------------------------

    def _link(self, link: Link) -> None:
        parent, prefix, local = self._scope(link.name, "link")
        element = ET.SubElement(parent, "link", name=local)
        joint = self.joint_of[link.name]
        if joint.kind != "free" and joint.name.startswith(prefix):
            add_pose(element, joint.joint_to_child, relative_to=joint.name[len(prefix) :])
        else:  # no joint, or one that is not visible inside the link's model
            add_pose(element, self._zero_pose(link.name))
        add_inertia(element, link.inertia)
        for kind, shapes in (("visual", link.visuals), ("collision", link.collisions)):
            for name, count in Counter(shape.name for shape in shapes).items():
                if count > 1 or not name.strip():
                    raise self._error(
                        kind, name, f"{count} in link '{link.name}'", "one of each name"
                    )
        for visual in link.visuals:
            add_visual(element, visual, self.base)
        for collision in link.collisions:
            add_collision(element, collision, self.base)

    def _zero_pose(self, link: str) -> Pose:
        """Return the pose of a link in the world with free links at home, all else at zero."""
        pose = Pose()
        while link != WORLD:
            joint = self.joint_of[link]
            motion = Pose()
            if joint.kind == "free":
                x, y, z, *quaternion = self.robot.home.get(joint.name, (0, 0, 0, 1, 0, 0, 0))
                motion = Pose(quaternion_matrix(quaternion), np.array([x, y, z], dtype=float))
            pose = joint.parent_to_joint @ motion @ joint.joint_to_child @ pose
            link = joint.parent
        return pose

    def _joint(self, joint: Joint) -> None:
        if joint.kind not in _TYPES:
            raise self._error("joint", joint.name, f"kind {joint.kind}", ", ".join(_TYPES))
        outer, prefix, local = self._scope(joint.name, "joint")
        endless = [math.isinf(a.lower) and math.isinf(a.upper) for a in joint.axes]
        kind = "continuous" if joint.kind == "revolute" and endless[0] else joint.kind
        element = ET.SubElement(outer, "joint", name=local, type=kind)
        parent = WORLD
        if joint.parent != WORLD:
            parent = self._local(joint.parent, prefix, "joint", joint.name)
        child = self._local(joint.child, prefix, "joint", joint.name)
        # models are written without a pose: their frame is the world's
        frame = "__model__" if joint.parent == WORLD else parent
        add_pose(element, joint.parent_to_joint, relative_to=frame, always=True)
        ET.SubElement(element, "parent").text = parent
        ET.SubElement(element, "child").text = child
        for tag, axis in zip(("axis", "axis2"), joint.axes, strict=False):
            add_axis(element, tag, axis)

    def _frame(self, frame: Frame) -> None:
        parent, prefix, local = self._scope(frame.name, "frame")
        link, pose = frame.link, frame.pose
        if link == WORLD:
            link, pose = self._on_fixed_link(frame)
        name = self._local(link, prefix, "frame", frame.name)
        element = ET.SubElement(parent, "frame", name=local, attached_to=name)
        add_pose(element, pose)

    def _on_fixed_link(self, frame: Frame) -> tuple[str, Pose]:
        """Return a link fixed to the world and the pose there of a frame given in the world."""
        for joint in self.robot.joints:
            if joint.kind == "fixed" and joint.parent == WORLD:
                placed = joint.parent_to_joint @ joint.joint_to_child
                return joint.child, placed.inverse() @ frame.pose
        raise self._error(
            "frame", frame.name, "fixed to the world", "a link that is fixed to the world"
        )

    # Muscles ---------------------------------------------------------------------------------

    def _block(self) -> None:
        robot = self.robot
        free = {joint.name for joint in robot.joints if joint.kind == "free"}
        home = {name: values for name, values in robot.home.items() if name not in free}
        motors = [joint.name for joint in robot.joints if joint.motor]
        said = (robot.muscles, robot.wrap_surfaces, robot.operational_frame, home, motors)
        if not any(said):
            return
        plugin = ET.SubElement(
            self.models[""], "plugin", filename=PLUGIN_FILENAME, name=PLUGIN_NAME
        )
        ET.SubElement(plugin, "module_name").text = MODULE
        if robot.operational_frame:
            ET.SubElement(plugin, "operational_frame").text = robot.operational_frame
        for name, values in home.items():
            ET.SubElement(plugin, "home", joint=name).text = numbers(*values)
        for name in motors:
            ET.SubElement(plugin, "motor", joint=name)
        for surface in robot.wrap_surfaces:
            add_wrap_surface(plugin, surface, self.base)
        for muscle in robot.muscles:
            self._muscle(plugin, muscle)

    def _muscle(self, plugin: ET.Element, muscle: Muscle) -> None:
        commands = muscle.actuator.commands
        limited = math.isfinite(muscle.tension_min) and math.isfinite(muscle.tension_max)
        unlimited = muscle.tension_min == 0.0 and muscle.tension_max == math.inf
        if not limited and ("force" in commands or not unlimited):
            raise self._error("muscle", muscle.name, "unlimited tension", "finite limits [N]")
        if not commands and not unlimited:
            raise self._error(
                "muscle", muscle.name, f"limits of a {muscle.kind}", "0 and infinite tension"
            )
        add_muscle(plugin, muscle)
