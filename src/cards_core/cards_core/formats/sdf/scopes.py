"""Turn the elements of a file, and of the files it includes, into scopes of frame nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cards_core.errors import DescriptionError
from cards_core.formats.imports.next_command import wrong_root
from cards_core.formats.locate import include_file
from cards_core.formats.sdf.frames import MODEL_FRAME, FrameNode, Scope
from cards_core.formats.sdf.schema import VERSIONS, check
from cards_core.formats.sdf.values import (
    attribute,
    boolean,
    flag,
    parse_pose,
    required,
    text_of,
)
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten

MAX_INCLUDES = 500
"""Files that one description may include, counting repetitions."""


@dataclass
class _Include:
    """What an ``<include>`` says about the model it includes."""

    element: XmlElement
    file: Path
    name: str | None = None
    static: bool | None = None
    placement: str | None = None


@dataclass
class ScopeBuilder:
    """Builds scopes; one instance per description.

    Attributes:
        base: Folder of the main file; None for text without one.
        bases: Folder of every file read, by the name its elements carry.
        included: Called with the root and the folder of every included file, before it is read.
    """

    base: Path | None
    bases: dict[str, Path | None] = field(default_factory=dict)
    included: Callable[[XmlElement, Path], None] | None = None
    _count: int = 0
    _open: list[Path] = field(default_factory=list)

    def folder_of(self, element: XmlElement) -> Path | None:
        """Return the folder of the file that holds an element."""
        return self.bases.get(element.source, self.base)

    # Models ----------------------------------------------------------------------------------

    def add_lone_model(self, element: XmlElement, world: Scope) -> FrameNode:
        """Declare the model of a file without a world.

        Args:
            element: The ``<model>`` element.
            world: Scope around it.

        Raises:
            DescriptionError: Its pose is relative to something.
        """
        node = self.add_model(element, world)
        if node.relative_to:
            raise node.pose_element.error(
                "relative_to in the pose of a model that stands alone", "a pose in the world"
            )
        return node

    def add_model(
        self,
        element: XmlElement,
        outer: Scope,
        include: _Include | None = None,
        *,
        static: bool = False,
    ) -> FrameNode:
        """Declare a model in a scope, with everything in it.

        Args:
            element: The ``<model>`` element.
            outer: Scope that declares it.
            include: The ``<include>`` it comes from, which may override name, pose and more.
            static: True if the model around it is static.
        """
        check(element)
        name = attribute(element, "name") if include is None else include.name
        name = name or attribute(element, "name")
        placed = element if include is None else include.element
        if placed.child("pose") is None:
            placed = element
        node = FrameNode(
            outer.prefix + name,
            "model",
            outer,
            element if include is None else include.element,
            relative_to=_relative_to(placed),
            raw=parse_pose(placed.child("pose")),
            attached_to=element.get("canonical_link", "").strip(),
            placement=element.get("placement_frame", "").strip(),
            static=static or flag(element, "static"),
            model=element,
        )
        if include is not None:
            if include.placement is not None:
                node.placement = include.placement
            if include.static is not None:
                node.static = static or include.static
        outer.add(node, name)
        # names inside a robot start at the robot: its own name is not part of them
        inner = Scope("" if outer.is_world else node.name + "::")
        inner.owner = node
        node.inner = inner
        self._fill(element, inner, node.static)
        if include is not None:
            inner.plugins += include.element.children("plugin")
        return node

    def _fill(self, element: XmlElement, scope: Scope, static: bool) -> None:
        """Declare the children of a model in its scope."""
        for child in element:
            match child.tag:
                case "link":
                    self._declare("link", child, scope)
                case "joint":
                    target = required(child, "child")
                    self._declare("joint", child, scope, text_of(target))
                case "frame":
                    check(child)
                    self._declare("frame", child, scope, child.get("attached_to", "").strip())
                case "model":
                    self.add_model(child, scope, static=static)
                case "include":
                    self.add_include(child, scope, static=static)
                case "plugin":
                    scope.plugins.append(child)

    def _declare(
        self,
        kind: Literal["link", "joint", "frame"],
        element: XmlElement,
        scope: Scope,
        attached_to: str = "",
    ) -> None:
        name = attribute(element, "name")
        node = FrameNode(
            scope.prefix + name,
            kind,
            scope,
            element,
            relative_to=_relative_to(element),
            raw=parse_pose(element.child("pose")),
            attached_to=attached_to,
        )
        scope.add(node, name)

    # World -----------------------------------------------------------------------------------

    def world_scope(self, element: XmlElement) -> Scope:
        """Return an empty scope of a world, or of a file without one."""
        scope = Scope("")
        scope.owner = FrameNode("world", "world", scope, element)
        return scope

    def add_world(self, element: XmlElement, scope: Scope, *, strict: bool = False) -> None:
        """Declare the models, joints and frames of a ``<world>``.

        Args:
            element: The ``<world>``.
            scope: Its scope.
            strict: Refuse includes that cannot be found. Else they are remembered in
                ``scope.missing``: a world often includes scenery from a server, which no robot
                needs.
        """
        check(element)
        for child in element:
            match child.tag:
                case "model":
                    self.add_model(child, scope)
                case "include":
                    try:
                        include = self._include(child)
                    except DescriptionError:
                        if strict:
                            raise
                        uri = child.child("uri")
                        scope.missing.append(shorten(text_of(uri)) if uri is not None else "?")
                        continue
                    self._add_included(child, include, scope, static=False)
                case "joint":
                    self._declare("joint", child, scope, text_of(required(child, "child")))
                case "frame":
                    check(child)
                    self._declare("frame", child, scope, child.get("attached_to", "").strip())

    # Includes --------------------------------------------------------------------------------

    def add_include(self, element: XmlElement, outer: Scope, *, static: bool) -> None:
        """Declare the model that an ``<include>`` names, or merge it into the scope.

        Args:
            element: The ``<include>``.
            outer: Scope that it stands in.
            static: Whether what contains it is static.

        Raises:
            DescriptionError: The model is not found or cannot be read.
        """
        self._add_included(element, self._include(element), outer, static=static)

    def _include(self, element: XmlElement) -> _Include:
        check(element)
        include = _Include(element, include_file(element, self.folder_of(element)))
        name, static, placement = map(element.child, ("name", "static", "placement_frame"))
        if name is not None and text_of(name):
            include.name = text_of(name)
        if static is not None:
            include.static = boolean(text_of(static), static)
        if placement is not None and text_of(placement):
            include.placement = text_of(placement)
            if element.child("pose") is None:
                raise placement.error("a placement_frame without <pose>", "a <pose> beside it")
        return include

    def _add_included(
        self, element: XmlElement, include: _Include, outer: Scope, *, static: bool
    ) -> None:
        self._count += 1
        if self._count > MAX_INCLUDES:
            raise element.error("too many includes", f"at most {MAX_INCLUDES}")
        if include.file in self._open:
            chain = " -> ".join(p.name for p in [*self._open, include.file])
            raise element.error(f"files include each other: {chain}", "no circle of includes")
        self._open.append(include.file)
        try:
            model = self._load(include)
            if boolean(element.get("merge", "false"), element, what="merge"):
                self._merge(model, include, outer, static)
            else:
                self.add_model(model, outer, include, static=static)
        finally:
            self._open.pop()

    def _load(self, include: _Include) -> XmlElement:
        root = parse_xml(include.file)
        folder = self.bases[root.source] = include.file.resolve().parent
        check_root(root)
        if self.included is not None:
            self.included(root, folder)
        models = list(root.children("model"))
        if len(models) != 1:
            raise root.error(f"holds {len(models)} models", "one model in an included file")
        return models[0]

    def _merge(self, model: XmlElement, include: _Include, outer: Scope, static: bool) -> None:
        """Declare the content of a model in the scope around it, as ``merge="true"`` wants.

        A proxy frame stands for the model's own frame; names in the content that mean it resolve
        to the proxy.
        """
        element = include.element
        check(model)
        if outer.is_world:
            raise element.error('merge="true" in a world', "merge inside a model")
        if include.static or flag(model, "static"):
            raise element.error(
                "a static model cannot be merged", "a model that moves, or no merge"
            )
        placed = element if element.child("pose") is not None else model
        name = include.name or attribute(model, "name")
        proxy = FrameNode(
            f"{outer.prefix}_merged__{name}__",
            "frame",
            outer,
            element,
            relative_to=_relative_to(placed) or MODEL_FRAME,
            raw=parse_pose(placed.child("pose")),
            attached_to=model.get("canonical_link", "").strip(),
            placement=include.placement or model.get("placement_frame", "").strip(),
        )
        inner = Scope(outer.prefix, merged_into=outer)
        inner.owner = proxy
        proxy.inner = inner
        first = len(outer.items)
        self._fill(model, inner, static)
        inner.plugins += element.children("plugin")
        if not proxy.attached_to:
            added = outer.items[first:]
            canonical = next((n for n in added if n.kind == "link"), None) or next(
                (n for n in added if n.kind == "model"), None
            )
            if canonical is None:
                raise element.error("merges a model without links", "a model with a link")
            proxy.attached_to = canonical.name[len(outer.prefix) :]


def _relative_to(element: XmlElement) -> str:
    pose = element.child("pose")
    if pose is None:
        return ""
    check(pose)
    return pose.get("relative_to", "").strip()


def check_root(root: XmlElement) -> None:
    """Check that a document is SDFormat of a version that we read. Raises `DescriptionError`."""
    if root.tag != "sdf":
        seems = "a plugin only" if root.tag == "plugin" else ""
        raise wrong_root(root, "an SDF document", '<sdf version="1.11"> as root', seems=seems)
    check(root)
    version = root.get("version", "").strip()
    if version not in VERSIONS:
        shown = f"SDF version '{shorten(version)}'" if version else "no version"
        known = f'version="..." one of {", ".join(VERSIONS)}'
        older = version.startswith("1.") and version[2:].isdecimal() and int(version[2:]) < 9
        remedy = "; gz sdf -p FILE > NEW, of SDFormat, converts older ones" if older else ""
        raise root.error(shown, known + remedy)
