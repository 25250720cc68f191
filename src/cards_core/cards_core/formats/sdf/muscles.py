"""Give the muscle blocks of a model and its nested models to the robot as a whole.

Names in a block are those of the model that holds it; in the robot they get the prefix of that
model, as the names of its links do.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cards_core.formats.sdf.frames import FrameNode, Scope
from cards_core.formats.sdf.muscle_block import MuscleBlock, is_muscle_plugin, read_muscle_block
from cards_core.formats.sdf.muscle_path import path_elements
from cards_core.formats.sdf.values import unknown_name
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import WORLD, Joint, Muscle, PathElement, Wrap, WrapSurface

_COORDINATES = {"fixed": 0, "revolute": 1, "prismatic": 1, "universal": 2, "ball": 4}


@dataclass
class Blocks:
    """The blocks of a robot together, with full names; see `MuscleBlock`.

    Attributes:
        muscle_elements: ``<muscle>`` of every muscle, for messages.
    """

    muscles: list[Muscle] = field(default_factory=list)
    wrap_surfaces: list[WrapSurface] = field(default_factory=list)
    muscle_elements: dict[str, XmlElement] = field(default_factory=dict)
    operational_frame: str | None = None
    home: dict[str, tuple[float, ...]] = field(default_factory=dict)
    motors: set[str] = field(default_factory=set)


def read_blocks(
    model: FrameNode,
    links: Collection[str],
    joints: Mapping[str, Joint],
    line_of: Callable[[XmlElement], int | None],
    folder_of: Callable[[XmlElement], Path | None],
) -> Blocks:
    """Read the muscle plugins of a model and of its nested models.

    Args:
        model: The robot's model.
        links: Full names of all links.
        joints: All joints by full name.
        line_of: Gives the line to record for an element.
        folder_of: Gives the folder of the file an element stands in.

    Raises:
        DescriptionError: A block is wrong, or names something that its model does not have.
    """
    out = Blocks()
    for scope in model_scopes(model):
        plugins = [plugin for plugin in scope.plugins if is_muscle_plugin(plugin)]
        if len(plugins) > 1:
            raise plugins[1].error(
                f"a second muscle plugin; the first is in line {plugins[0].line}",
                "one muscle plugin per model",
            )
        if plugins:
            block = read_muscle_block(
                plugins[0],
                links=_local(links, scope.prefix),
                base=folder_of(plugins[0]),
            )
            _Attacher(scope, block, joints, out).attach(line_of)
    return out


@dataclass
class _Attacher:
    """Adds one block to those of the robot."""

    scope: Scope
    block: MuscleBlock
    joints: Mapping[str, Joint]
    out: Blocks

    def attach(self, line_of: Callable[[XmlElement], int | None]) -> None:
        prefix, elements = self.scope.prefix, self.block.elements
        taken = {surface.name for surface in self.out.wrap_surfaces}
        for surface in self.block.wrap_surfaces:
            element = elements["wrap_surface", surface.name]
            name, link = prefix + surface.name, _full(surface.link, prefix)
            if name in taken:
                raise element.error(f"an outer model has a surface '{name}'", "unique names")
            self.out.wrap_surfaces.append(
                dataclasses.replace(surface, name=name, link=link, line=line_of(element))
            )
        for muscle in self.block.muscles:
            element = elements["muscle", muscle.name]
            self.out.muscle_elements[prefix + muscle.name] = element
            path = zip(muscle.path, path_elements(element), strict=True)
            self.out.muscles.append(
                dataclasses.replace(
                    muscle,
                    name=prefix + muscle.name,
                    path=tuple(_in_robot(item, prefix, line_of(e)) for item, e in path),
                    line=line_of(element),
                )
            )
        for name, values in self.block.home.items():
            element = elements["home", name]
            joint = self.joint(name, element)
            _check_home(joint, values, element)
            self.out.home[joint.name] = values
        for name in self.block.motors:
            element = elements["motor", name]
            joint = self.joint(name, element)
            if not joint.axes:
                raise element.error(f"a motor at a {joint.kind} joint", "a joint with axes")
            self.out.motors.add(joint.name)
        frame = self.block.operational_frame
        # the outermost model decides; it comes first
        if frame is not None and self.out.operational_frame is None:
            if not _is_frame(self.scope, frame):
                raise unknown_name(
                    elements["operational_frame", frame],
                    "frame or link",
                    frame,
                    (name for name in self.scope.visible() if _is_frame(self.scope, name)),
                )
            self.out.operational_frame = prefix + frame

    def joint(self, name: str, element: XmlElement) -> Joint:
        joint = self.joints.get(self.scope.prefix + name)
        if joint is None:
            raise unknown_name(element, "joint", name, _local(self.joints, self.scope.prefix))
        return joint


def _check_home(joint: Joint, values: tuple[float, ...], element: XmlElement) -> None:
    if joint.kind == "free":
        raise element.error(
            "the home of a link without a joint is its <pose>", "a joint of this model"
        )
    count = _COORDINATES[joint.kind]
    if len(values) != count:
        meaning = "quaternion w x y z" if joint.kind == "ball" else "one for each axis"
        raise element.error(
            f"{len(values)} values for a {joint.kind} joint", f"{count} ({meaning})"
        )
    if joint.kind == "ball" and math.hypot(*values) < 1e-9:
        raise element.error("the quaternion is zero", "a unit quaternion w x y z")
    for value, axis in zip(values, joint.axes, strict=False):
        if not axis.lower <= value <= axis.upper:
            raise element.error(
                f"{value:g} is outside the limits of the joint",
                f"{axis.lower:g} to {axis.upper:g}",
            )


def model_scopes(model: FrameNode) -> Iterator[Scope]:
    """Yield the scope of a model and of its nested models, outer ones first."""
    level = [model]
    while level:
        inner = [node.inner for node in level if node.inner is not None]
        yield from inner
        level = [item for scope in inner for item in scope.items if item.kind == "model"]


def _local(names: Collection[str], prefix: str) -> set[str]:
    """Return the names as the model with this prefix sees them."""
    return {name[len(prefix) :] for name in names if name.startswith(prefix)}


def _full(link: str, prefix: str) -> str:
    return link if link == WORLD else prefix + link


def _in_robot(item: PathElement, prefix: str, line: int | None) -> PathElement:
    """Return a path element with the names that the robot as a whole has for its link."""
    if isinstance(item, Wrap):
        return dataclasses.replace(item, surface=prefix + item.surface, line=line)
    return dataclasses.replace(item, link=_full(item.link, prefix), line=line)


def _is_frame(scope: Scope, name: str) -> bool:
    node = scope.lookup(name)
    return node is not None and node.kind in ("frame", "link")
