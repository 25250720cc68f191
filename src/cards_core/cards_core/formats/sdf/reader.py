"""Read a robot from SDFormat (1.9 to 1.12): `read_sdf` a file or text, `load` by name or path.

The frame semantics are in `cards_core.formats.sdf.frames`, what is read, ignored and refused in
`cards_core.formats.sdf.schema`, our plugin block in `cards_core.formats.sdf.muscle_block`. Where
SDFormat and our model differ:

* every link is the child of one joint here: a link without one becomes the child of a ``free``
  joint ``<link>_free`` from the world whose home is the link's pose; the links of a static model
  are fixed to the world by ``<link>_static``;
* nested models are dissolved: their links, joints, frames and muscles get the names ``a::b``.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.sdf.checks import check_home, unit_warning
from cards_core.formats.sdf.frames import (
    FrameNode,
    Scope,
    absolute_pose,
    body_of,
    finite,
    relative_pose,
)
from cards_core.formats.sdf.joints import joint_ends, read_joint
from cards_core.formats.sdf.links import read_link
from cards_core.formats.sdf.muscle_block import is_muscle_plugin
from cards_core.formats.sdf.muscles import model_scopes, read_blocks
from cards_core.formats.sdf.scopes import ScopeBuilder, check_root
from cards_core.formats.sdf.values import known_names, numbers, unknown_name
from cards_core.formats.xml_lines import XmlElement, XmlSource, parse_xml
from cards_core.robot.elements import WORLD, Frame, Joint, Link
from cards_core.robot.model import Robot
from cards_core.spatial import matrix_quaternion
from cards_core.typing import Vector3

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity of a model file, which cannot state it, [m/s^2]."""

WORLD_GRAVITY = (0.0, 0.0, -9.8)
"""SDFormat's default for a ``<world>`` without ``<gravity>``, [m/s^2]."""


def read_sdf(
    source: XmlSource | XmlElement,
    *,
    model: str | None = None,
    base: str | os.PathLike[str] | None = None,
    name: str | None = None,
    included: Callable[[XmlElement, Path], None] | None = None,
    locked: bool = False,
) -> Robot:
    """Read one model as a robot.

    Args:
        source: SDF text (``str`` or ``bytes``), a path object, an open file, or the ``<sdf>``
            element of a document that was parsed.
        model: Which model, where a world holds several. Default: the only one, else the only one
            with muscles, else the only one that is not static.
        base: Folder that relative paths in text start from; for files it is the file's folder.
        name: Name of the document in messages; default its path or ``<string>``.
        included: Called with the root and the folder of every included file, before it is read.
        locked: Take joints whose lower and upper limits are equal; for importers, which fix them
            (`cards_core.formats.imports.locked_joints`).

    Raises:
        DescriptionError: The description is wrong or not supported; the message names file, line
            and element and says what would be accepted.
    """
    declared = declare_models(source, base=base, name=name, included=included)
    return _read(declared, model, locked=locked)[0]


def _read(
    declared: DeclaredModels, model: str | None, *, locked: bool = False
) -> tuple[Robot, FrameNode]:
    root = declared.root
    node = _pick(root, declared.world, model)
    reader = ModelReader(declared.builder, root.source, declared.world, node, locked=locked)
    return reader.read(declared.gravity), node


@dataclass(frozen=True, eq=False)
class SdfDocument:
    """A robot with the document it was read from.

    Attributes:
        robot: The robot.
        root: The ``<sdf>`` element.
        plugins: ``<plugin>`` elements of the model and its nested models, outer ones first.
    """

    robot: Robot
    root: XmlElement
    plugins: tuple[XmlElement, ...]


def read_sdf_document(
    source: XmlSource | XmlElement,
    *,
    model: str | None = None,
    base: str | os.PathLike[str] | None = None,
    name: str | None = None,
) -> SdfDocument:
    """Like `read_sdf`; returns the XML and the plugins too, for readers of other blocks.

    Args:
        source: SDF text, or a path.
        model: Name of the model; None: the only one.
        base: Folder that relative paths start from.
        name: Name of the source, for messages.
    """
    declared = declare_models(source, base=base, name=name)
    robot, node = _read(declared, model)
    plugins = tuple(plugin for scope in model_scopes(node) for plugin in scope.plugins)
    return SdfDocument(robot, declared.root, plugins)


@dataclass(frozen=True, eq=False)
class DeclaredModels:
    """The models of a document by name, not yet read as robots.

    Attributes:
        root: The ``<sdf>`` element.
        builder: Has declared them.
        world: Scope that holds them.
        gravity: In the world's axes, shape (3,), [m/s^2].
    """

    root: XmlElement
    builder: ScopeBuilder
    world: Scope
    gravity: Vector3


def declare_models(
    source: XmlSource | XmlElement,
    *,
    base: str | os.PathLike[str] | None = None,
    name: str | None = None,
    strict: bool = False,
    included: Callable[[XmlElement, Path], None] | None = None,
) -> DeclaredModels:
    """Parse a document and declare its models.

    Args:
        source: As of `read_sdf`.
        base: As of `read_sdf`.
        name: As of `read_sdf`.
        strict: Refuse includes of a world that cannot be found, instead of leaving them out.
        included: As of `read_sdf`.

    Raises:
        DescriptionError: The document is no SDF, or a name in it is wrong.
    """
    root = source if isinstance(source, XmlElement) else parse_xml(source, name=name)
    folder = Path(base) if base is not None else None
    if folder is None and isinstance(source, os.PathLike):
        folder = Path(source).resolve().parent
    check_root(root)
    builder = ScopeBuilder(folder, included=included)
    builder.bases[root.source] = folder
    world, gravity = _declare(root, builder, strict=strict)
    return DeclaredModels(root, builder, world, gravity)


def _declare(root: XmlElement, builder: ScopeBuilder, *, strict: bool) -> tuple[Scope, Vector3]:
    """Return the scope with the file's models, and gravity."""
    element = root.child("world")
    if element is not None:
        if root.child("model") is not None:
            raise root.error("holds a world and a model beside it", "one world, or one model")
        scope = builder.world_scope(element)
        builder.add_world(element, scope, strict=strict)
        item = element.child("gravity")
        gravity = np.array(WORLD_GRAVITY) if item is None else numbers(item, 3)
        return scope, gravity
    scope = builder.world_scope(root)
    for item in root.children("model"):
        builder.add_lone_model(item, scope)
    return scope, np.array(GRAVITY)


def _pick(root: XmlElement, world: Scope, name: str | None) -> FrameNode:
    models = {key: node for key, node in world.names.items() if node.kind == "model"}
    missing = f"; not loaded: {', '.join(world.missing[:5])}" if world.missing else ""
    if name is not None:
        if name not in models:
            error = unknown_name(root, "model", name, models)
            raise root.error(error.problem + missing, error.expected)
        return models[name]
    if not models:
        raise world.owner.element.error(f"holds no model{missing}", "a <model>")
    candidates = list(models.values())
    for condition in (lambda n: True, has_muscles, lambda n: not n.static):
        chosen = [node for node in candidates if condition(node)]
        if len(chosen) == 1:
            return chosen[0]
    raise root.error(f"holds {len(candidates)} models", f"the name of one: {known_names(models)}")


def has_muscles(node: FrameNode) -> bool:
    """Return whether a model, or one nested in it, has our plugin."""
    inner = node.inner
    if inner is None:
        return False
    if any(is_muscle_plugin(plugin) for plugin in inner.plugins):
        return True
    return any(has_muscles(item) for item in inner.items)


@dataclass
class ModelReader:
    """Turns the frame nodes of one model into a `Robot`.

    Attributes:
        builder: Has declared the model.
        source: Name of the main file.
        world: Scope of the world that the model stands in.
        model: The model.
        alone: Joints of the world between this and another model are errors; False: they are left
            out.
        locked: As of `read_sdf`.
    """

    builder: ScopeBuilder
    source: str
    world: Scope
    model: FrameNode
    alone: bool = True
    locked: bool = False
    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    home: dict[str, tuple[float, ...]] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)
    _given: dict[int, Joint] = field(default_factory=dict)
    _parents: dict[str, Joint] = field(default_factory=dict)

    def read(self, gravity: Vector3) -> Robot:
        """Return the model as a robot. Raises `DescriptionError`."""
        nodes = list(_nodes(self.model))
        self.own = {id(node) for node in nodes}
        links = [node for node in nodes if node.kind == "link"]
        if not links:
            raise self.model.element.error("has no link", "at least one <link>")
        body_of(self.model)  # refuses a canonical link that does not exist
        for node in links:
            self.links[node.name] = read_link(
                node, base=self.builder.folder_of(node.element), line=self.line(node.element)
            )
        nodes += self._world_joints()
        for node in nodes:
            if node.kind == "joint":
                self._add_joint(node)
        self._add_roots(links)
        # the order of the file, in which a link without joint stands for the joint it is given
        given = [self._given[id(node)] for node in nodes if id(node) in self._given]
        self.joints = {joint.name: joint for joint in given}
        frames = tuple(self._frame(node) for node in nodes if node.kind == "frame")
        blocks = read_blocks(
            self.model, self.links, self.joints, self.line, self.builder.folder_of
        )
        robot = Robot(
            name=self.model.name,
            links=tuple(self.links.values()),
            joints=tuple(
                dataclasses.replace(joint, motor=joint.name in blocks.motors)
                for joint in self.joints.values()
            ),
            muscles=tuple(blocks.muscles),
            frames=frames,
            operational_frame=blocks.operational_frame,
            gravity=gravity,
            home=self.home | blocks.home,
            source=self.source,
            wrap_surfaces=tuple(blocks.wrap_surfaces),
        )
        check_home(robot, blocks.muscle_elements)
        return robot

    def line(self, element: XmlElement) -> int | None:
        """Line for messages of others, who know the main file only."""
        return element.line if element.source == self.source else None

    # Joints ----------------------------------------------------------------------------------

    def _world_joints(self) -> Iterator[FrameNode]:
        """Yield the joints of the world that hold this model."""
        for node in self.world.items:
            if node.kind == "joint" and id(body_of(node)) in self.own:
                parent, _ = joint_ends(node)
                if self.alone or parent.kind == "world" or id(parent) in self.own:
                    yield node

    def _add_joint(self, node: FrameNode) -> None:
        parent, child = joint_ends(node)
        if not all(end.kind == "world" or id(end) in self.own for end in (parent, child)):
            raise node.element.error("connects two models", "joints within one model")
        joint = read_joint(node, parent, child, line=self.line(node.element), locked=self.locked)
        if _static(child):
            if parent.kind == "world" or _static(parent):
                return  # nothing moves there
            raise node.element.error(
                f"its child '{child.name}' belongs to a static model", "a child that can move"
            )
        self._insert(joint, node)

    def _insert(self, joint: Joint, node: FrameNode) -> None:
        other = self._parents.setdefault(joint.child, joint)
        if other is not joint:
            raise node.element.error(
                f"link '{joint.child}' is already the child of joint '{other.name}'",
                "a tree: every link is the child of one joint (closed loops are not supported)",
            )
        if joint.name in self.joints:
            raise node.element.error("another joint has this name", "unique names")
        self.joints[joint.name] = self._given[id(node)] = joint

    def _add_roots(self, links: list[FrameNode]) -> None:
        """Give every link without a joint one from the world, then check the tree."""
        for node in links:
            if node.name in self._parents:
                continue
            pose = absolute_pose(node)
            if not finite(pose):
                raise node.pose_element.error("the pose is not finite", "smaller numbers")
            line = self.line(node.element)
            if _static(node):
                name = self._unused(f"{node.name}_static")
                joint = Joint(name, "fixed", WORLD, node.name, pose, line=line)
            else:
                name = self._unused(f"{node.name}_free")
                joint = Joint(name, "free", WORLD, node.name, line=line)
                quaternion = matrix_quaternion(pose.rotation)
                self.home[name] = (*pose.translation.tolist(), *quaternion.tolist())
            self._insert(joint, node)
        self._check_connected(links)

    def _unused(self, name: str) -> str:
        while name in self.joints:
            name += "_"
        return name

    def _check_connected(self, links: list[FrameNode]) -> None:
        below: dict[str, list[str]] = {}
        for joint in self.joints.values():
            below.setdefault(joint.parent, []).append(joint.child)
        reached, stack = set(), [WORLD]
        while stack:
            for child in below.get(stack.pop(), []):
                reached.add(child)
                stack.append(child)
        for node in links:
            if node.name not in reached:
                raise node.element.error(
                    "its joints form a loop that is not connected to the world",
                    "a tree of joints that starts at the world or at a free link",
                )

    def _frame(self, node: FrameNode) -> Frame:
        body = body_of(node)
        if body.kind != "world" and id(body) not in self.own:
            raise node.element.error("is attached to another model", "a frame of this model")
        pose = relative_pose(node, body)
        if not finite(pose):
            raise node.pose_element.error("the pose is not finite", "smaller numbers")
        return Frame(node.name, body.name, pose, self.line(node.element))


def _nodes(model: FrameNode) -> Iterator[FrameNode]:
    """Yield everything in a model and its nested models, in document order."""
    stack = [model]
    while stack:
        node = stack.pop()
        if node is not model and node.kind != "model":
            yield node
        if node.kind == "model" and node.inner is not None:
            stack += reversed(node.inner.items)


def _static(link: FrameNode) -> bool:
    owner = link.scope.owner
    while owner.kind == "frame":  # stands for a merged model
        owner = owner.scope.owner
    return owner.static


# By name or path -------------------------------------------------------------------------------


LOG = logging.getLogger(__name__)

_TOLD: set[str] = set()
"""Warnings of `load` that were given: commands read a robot more than once."""


def load(name_or_path: str | os.PathLike[str], *, model: str | None = None) -> Robot:
    """Read a robot; warn, once, if points of its muscles look as if they were in millimetres.

    Args:
        name_or_path: Name of a folder in `model_folders`, or path of an SDF file or a folder.
        model: Which model of a file that holds several.

    Raises:
        UnknownNameError: No such model; the message lists those there are.
        DescriptionError: The description is wrong; the message names file, line and element. Or
            it is that of a robot of rods, which `cards_core.rods.read_rod_robot` reads.
    """
    file = find_model(name_or_path)
    if has_rods(file):
        raise DescriptionError(
            "is a robot of rods; it has no muscles, and its joints are no tree",
            source=str(file),
            expected="a robot with muscles here; robots of rods: './cards demo', './cards analyse "
            "ik, fk, stiffness, workspace, force-sensing', './cards bench rods', "
            "cards_core.rods.read_rod_robot (docs/rod_robots.md)",
        )
    robot = read_sdf(file, model=model)
    warning = unit_warning(robot)
    if warning is not None:
        place = str(file) if warning.line is None else f"{file}:{warning.line}"
        text = f"{place}: muscle '{warning.muscle}': {warning.text}"
        if text not in _TOLD:
            _TOLD.add(text)
            LOG.warning("warning: %s", text)
    return robot
