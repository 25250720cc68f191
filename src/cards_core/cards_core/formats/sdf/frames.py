"""Frame semantics of SDFormat: names, scopes, ``relative_to`` and ``attached_to``.

Every link, joint, frame and model of a file is a `FrameNode` in the `Scope` of the model (or
world) that declares it. Each node points to one other node that its pose is given in, and to one
that it moves with, so both graphs are forests of single parents and are walked upwards without
recursion. The rules are those of SDFormat's pose frame semantics:

* a pose without ``relative_to`` is given in the enclosing model's frame; that of a joint in its
  child's frame; that of a frame in the frame it is attached to;
* ``__model__`` is the frame of the enclosing model, ``a::b`` the frame ``b`` of the nested model
  ``a``; names of enclosing scopes are not visible;
* with a placement frame, the pose of a model places that frame instead of the model's origin;
* a model moves with its canonical link: the one named, the first link, or that of the first nested
  model; a static model moves with the world.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from cards_core.formats.sdf.values import known_names, unknown_name
from cards_core.formats.xml_lines import XmlElement, shorten
from cards_core.names import EXPECTED, name_problem
from cards_core.robot.elements import WORLD
from cards_core.spatial import Pose

MODEL_FRAME = "__model__"
_NEAR = 16  # how far up a common ancestor is looked for, see `relative_pose`


@dataclass(eq=False)
class FrameNode:
    """Something with a frame: a link, joint, named frame, model or the world.

    Attributes:
        name: Full name with the names of nested models, ``a::b``.
        kind: What it is.
        scope: Scope that its ``relative_to`` and ``attached_to`` names are looked up in.
        element: Element that declares it.
        raw: Pose as written, in the frame `relative_to`.
        relative_to: Name as written; empty for the default.
        attached_to: A frame's ``attached_to``, a joint's child, a model's canonical link.
        placement: A model's placement frame.
        static: The model does not move.
        inner: A model's own scope.
        model: A model's ``<model>``, which for an included one is not `element`.
    """

    name: str
    kind: Literal["link", "joint", "frame", "model", "world"]
    scope: Scope
    element: XmlElement
    raw: Pose = field(default_factory=Pose)
    relative_to: str = ""
    attached_to: str = ""
    placement: str = ""
    static: bool = False
    inner: Scope | None = None
    model: XmlElement | None = None
    _local: Pose | None = None
    _absolute: Pose | None = None

    @property
    def pose_element(self) -> XmlElement:
        """The ``<pose>`` element if there is one, else the declaration; for messages."""
        return self.element.child("pose") or self.element


class Scope:
    """The names that one model (or the world) declares.

    Attributes:
        owner: The model or world; its frame is the default of poses in this scope.
        prefix: What full names start with, ``""`` or ``"a::"``.
        names: Local name to node. A merged model shares the names of the model it is merged into.
        items: What is declared, in document order, with the scope to resolve its names in.
    """

    def __init__(self, prefix: str, merged_into: Scope | None = None) -> None:
        self.prefix = prefix
        self.owner: FrameNode
        self.names: dict[str, FrameNode] = {} if merged_into is None else merged_into.names
        self.items: list[FrameNode] = [] if merged_into is None else merged_into.items
        self.plugins: list[XmlElement] = [] if merged_into is None else merged_into.plugins
        self.missing: list[str] = []

    @property
    def is_world(self) -> bool:
        """True for the scope of a world (or of a file without one)."""
        return self.owner.kind == "world"

    def add(self, node: FrameNode, name: str) -> None:
        """Declare a name.

        Raises:
            DescriptionError: The name is none (`cards_core.names`), reserved, contains ``::`` or
                is taken.
        """
        if not name:
            raise node.element.error("has no name", 'name="..."')
        if problem := name_problem(name):
            raise node.element.error(problem, EXPECTED)
        if name == WORLD or (len(name) >= 4 and name.startswith("__") and name.endswith("__")):
            raise node.element.error(
                f"the name '{shorten(name)}' is reserved", "another name (not world, not __...__)"
            )
        if "::" in name:
            raise node.element.error(
                "'::' in a name", "a name without '::', which separates the names of nested models"
            )
        if name in self.names:
            other = self.names[name].element
            raise node.element.error(
                f"the name is taken by the {other.tag} in line {other.line}",
                "names that are unique among the links, joints, frames and models of a model",
            )
        self.names[name] = node
        self.items.append(node)

    def lookup(self, name: str) -> FrameNode | None:
        """Return the node of a name as seen from this scope, or None."""
        head, separator, rest = name.partition("::")
        if separator:
            node = self.names.get(head)
            return node.inner.lookup(rest) if node is not None and node.inner else None
        if name == (WORLD if self.is_world else MODEL_FRAME):
            return self.owner
        return self.names.get(name)

    def find(self, name: str, element: XmlElement, role: str) -> FrameNode:
        """Return the node of a name. Raises `DescriptionError` that lists the names there are.

        Args:
            name: Name of a model, link, joint or frame in this scope.
            element: Element that has the name, for the error.
            role: What the name is for, for the error.
        """
        node = self.lookup(name)
        if node is not None:
            return node
        if name == WORLD:
            raise element.error(
                f"{role} 'world': the world's frame is not visible inside a model",
                f"one of {known_names(self.visible())}",
            )
        error = unknown_name(element, role, name, self.visible())
        if self.missing:
            error = element.error(
                f"{error.problem} (not loaded: {', '.join(self.missing[:5])})", error.expected
            )
        raise error

    def visible(self, depth: int = 2) -> list[str]:
        """Return the names that can be used in this scope."""
        names = [WORLD if self.is_world else MODEL_FRAME, *self.names]
        if depth:
            for name, node in self.names.items():
                if node.inner is not None:
                    names += [f"{name}::{inner}" for inner in node.inner.visible(depth - 1)]
        return names


# Poses ---------------------------------------------------------------------------------------


def _pose_parent(node: FrameNode) -> FrameNode | None:
    """Return the node that the pose of ``node`` is given in; None for the world."""
    if node.kind == "world":
        return None
    if node.relative_to:
        return node.scope.find(node.relative_to, node.pose_element, "relative_to")
    if node.attached_to and node.kind == "joint":
        return node.scope.find(node.attached_to, node.element.child("child") or node.element,
                               "child")  # fmt: skip
    if node.attached_to and node.kind == "frame":
        return node.scope.find(node.attached_to, node.element, "attached_to")
    return node.scope.owner


def _local(node: FrameNode) -> Pose:
    """Return the pose of a node in the frame of `_pose_parent`."""
    if node._local is None:
        node._local = node.raw
        if node.placement and node.inner is not None:
            place = node.inner.find(node.placement, node.element, "placement_frame")
            node._local = node.raw @ _pose_up_to(place, node).inverse()
    return node._local


def _pose_up_to(node: FrameNode, stop: FrameNode) -> Pose:
    """Return the pose of ``node`` in ``stop``, which must lie on its way up."""
    pose = Pose()
    seen: set[int] = set()
    here: FrameNode | None = node
    while here is not None and here is not stop:
        _refuse_cycle(here, seen, "relative_to")
        pose = _local(here) @ pose
        here = _pose_parent(here)
    if here is None:
        raise stop.element.error(
            f"placement_frame '{shorten(stop.placement)}' is not placed within its model",
            "a frame, link or joint of this model",
        )
    return pose


def absolute_pose(node: FrameNode) -> Pose:
    """Return the pose of a node in the world.

    Raises:
        DescriptionError: A name does not exist, or poses are given in a circle.
    """
    path: list[FrameNode] = []
    seen: set[int] = set()
    here: FrameNode | None = node
    while here is not None and here._absolute is None:
        _refuse_cycle(here, seen, "relative_to")
        path.append(here)
        here = _pose_parent(here)
    pose = Pose() if here is None or here._absolute is None else here._absolute
    for item in reversed(path):
        pose = pose @ _local(item)
        item._absolute = pose
    return pose


def relative_pose(node: FrameNode, base: FrameNode) -> Pose:
    """Return the pose of ``node`` in the frame ``base``.

    A near common ancestor is used where there is one, so that a pose written relative to ``base``
    comes back digit by digit.
    """
    absolute_pose(node)  # refuses circles, so that the walks below end
    absolute_pose(base)
    up_base = _ancestors(base)
    index = {id(item): k for k, item in enumerate(up_base)}
    up_node = _ancestors(node)
    for k, item in enumerate(up_node):
        if id(item) in index:
            down = _product(up_node[:k])
            above = up_base[: index[id(item)]]
            return _product(above).inverse() @ down if above else down
    return absolute_pose(base).inverse() @ absolute_pose(node)


def _ancestors(node: FrameNode) -> list[FrameNode]:
    out: list[FrameNode] = []
    here: FrameNode | None = node
    while here is not None and len(out) < _NEAR:
        out.append(here)
        here = _pose_parent(here)
    return out


def _product(nodes: list[FrameNode]) -> Pose:
    if not nodes:
        return Pose()
    pose = _local(nodes[-1])
    for item in reversed(nodes[:-1]):
        pose = pose @ _local(item)
    return pose


# Attachment ----------------------------------------------------------------------------------


def body_of(node: FrameNode) -> FrameNode:
    """Return the link (or the world) that a node moves with.

    Raises:
        DescriptionError: A name does not exist, frames are attached in a circle, or a model has
            no link.
    """
    seen: set[int] = set()
    here = node
    while here.kind not in ("link", "world"):
        _refuse_cycle(here, seen, "attached_to")
        here = _carrier(here)
    return here


def _carrier(node: FrameNode) -> FrameNode:
    """Return the node that ``node`` (a joint, frame or model) is attached to."""
    if node.kind == "joint":
        return node.scope.find(node.attached_to, node.element, "child")
    if node.kind == "frame":
        if node.attached_to:
            return node.scope.find(node.attached_to, node.element, "attached_to")
        return node.scope.owner
    inner = node.inner
    assert inner is not None
    if node.static:
        return world_of(node)
    if node.attached_to:
        found = inner.find(node.attached_to, node.element, "canonical_link")
        if found.kind != "link":
            raise node.element.error(
                f"canonical_link '{shorten(node.attached_to)}' is a {found.kind}", "a link"
            )
        return found
    for kind in ("link", "model"):
        for item in inner.items:
            if item.kind == kind:
                return item
    raise node.element.error("has no link", "at least one link")


def world_of(node: FrameNode) -> FrameNode:
    """Return the world that a node stands in."""
    while node.kind != "world":
        node = node.scope.owner
    return node


def _refuse_cycle(node: FrameNode, seen: set[int], attribute: str) -> None:
    if id(node) in seen:
        raise node.element.error(
            f"{attribute} leads in a circle back to '{shorten(node.name)}'",
            "a chain that ends at a link or at the model's own frame",
        )
    seen.add(id(node))


def finite(pose: Pose) -> bool:
    """Return True if all entries are finite numbers."""
    return bool(np.isfinite(pose.rotation).all() and np.isfinite(pose.translation).all())
