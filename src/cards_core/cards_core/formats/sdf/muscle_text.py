"""Change the muscles in the text of an SDF file; every other byte of the file stays as it is.

Comments, elements of other programs, the order of attributes and the way numbers are written
survive: of an element that changed, only the attributes and texts that changed are written. What
changed is what `cards_core.formats.sdf.elements` would write differently.
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cards_core.errors import DescriptionError
from cards_core.formats.sdf.elements import add_muscle, add_wrap_surface
from cards_core.formats.sdf.muscle_block import (
    MODULE,
    PLUGIN_FILENAME,
    PLUGIN_NAME,
    is_muscle_plugin,
)
from cards_core.formats.sdf.muscle_path import PATH_ELEMENTS, path_elements
from cards_core.formats.sdf.reader import read_sdf_document
from cards_core.formats.sdf.text_edits import Item, TextEdits
from cards_core.formats.xml_lines import MAX_BYTES, XmlElement
from cards_core.robot.elements import Muscle, WrapSurface
from cards_core.robot.model import Robot


@dataclass(frozen=True, eq=False)
class EditedMuscle:
    """A muscle, and which one of the file it was.

    Attributes:
        muscle: The muscle.
        origin: Index among the muscles of the block in the file; None for a new one.
        path_origin: The same of its path elements, within the path of that muscle.
    """

    muscle: Muscle
    origin: int | None = None
    path_origin: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        if len(self.path_origin) != len(self.muscle.path):
            raise ValueError("path_origin does not fit the path")


@dataclass(frozen=True, eq=False)
class EditedSurface:
    """A wrap surface, and which one of the block in the file it was; None for a new one."""

    surface: WrapSurface
    origin: int | None = None


@dataclass(frozen=True, eq=False)
class EditedBlock:
    """The muscles and wrap surfaces that a block is to hold."""

    muscles: tuple[EditedMuscle, ...] = ()
    surfaces: tuple[EditedSurface, ...] = ()


class MuscleText:
    """The text of an SDF file with the places of its muscles.

    Args:
        data: Content of the file.
        name: Path of the file, for messages and for relative paths in it.
        model: Which model, as of `read_sdf`.

    Attributes:
        robot: As read.
        block: Muscles and surfaces of the model's own block.
        elsewhere: Names of muscles and surfaces of other files or of nested models: `rewritten`
            leaves them as they are.

    Raises:
        DescriptionError: The text cannot be read, is not UTF-8, or the model stands in a file that
            this one includes.
    """

    def __init__(
        self, data: bytes, name: str | os.PathLike[str], model: str | None = None
    ) -> None:
        self.name = os.fspath(name)
        self._data = data
        if len(data) <= MAX_BYTES:
            try:
                data.decode("utf-8")
            except UnicodeDecodeError as error:
                line = data.count(b"\n", 0, error.start) + 1
                raise DescriptionError(
                    "the text is not UTF-8", source=self.name, line=line, expected="UTF-8"
                ) from None
        self._base = Path(self.name).resolve().parent
        document = read_sdf_document(data, model=model, base=self._base, name=self.name)
        self.robot: Robot = document.robot
        self._model = self._find_model(document.root)
        self._plugin = next(
            (p for p in document.plugins if p.parent is self._model and is_muscle_plugin(p)), None
        )
        # the robot has the blocks in the same order, and so the elements within
        blocks = [plugin for plugin in document.plugins if is_muscle_plugin(plugin)]
        self._all_muscles = [e for block in blocks for e in block.children("muscle")]
        self._all_surfaces = [e for block in blocks for e in block.children("wrap_surface")]
        muscles = list(zip(self._all_muscles, self.robot.muscles, strict=True))
        surfaces = list(zip(self._all_surfaces, self.robot.wrap_surfaces, strict=True))
        self._muscles = [e for e in self._all_muscles if e.parent is self._plugin]
        self._surfaces = [e for e in self._all_surfaces if e.parent is self._plugin]
        self._old_muscles = [muscle for e, muscle in muscles if e.parent is self._plugin]
        self._old_surfaces = [surface for e, surface in surfaces if e.parent is self._plugin]
        everything: list[tuple[XmlElement, Muscle | WrapSurface]] = [*muscles, *surfaces]
        self.elsewhere = tuple(item.name for e, item in everything if e.parent is not self._plugin)
        self.block = EditedBlock(
            tuple(
                EditedMuscle(muscle, i, tuple(range(len(muscle.path))))
                for i, muscle in enumerate(self._old_muscles)
            ),
            tuple(EditedSurface(surface, i) for i, surface in enumerate(self._old_surfaces)),
        )

    def _find_model(self, root: XmlElement) -> XmlElement:
        for parent in (root, root.child("world")):
            for model in () if parent is None else parent.children("model"):
                if model.get("name") == self.robot.name:
                    return model
        raise root.error(
            f"model '{self.robot.name}' stands in a file that this one includes",
            "the file with the <model> itself",
        )

    def rewritten(self, block: EditedBlock) -> bytes:
        """Return the text with other muscles and surfaces.

        Raises:
            UnknownNameError: A surface of an unknown kind.
        """
        base = self._base
        edits = TextEdits(self._data)
        fresh_surfaces = [_surface(edited.surface, base) for edited in block.surfaces]
        fresh_muscles = [_muscle(edited.muscle) for edited in block.muscles]
        plugin = self._plugin
        if plugin is None:
            if fresh_surfaces or fresh_muscles:
                self._add_plugin(edits, [*fresh_surfaces, *fresh_muscles])
            return edits.applied()

        def change_surface(index: int, fresh: ET.Element) -> None:
            edits.patch(self._surfaces[index], _surface(self._old_surfaces[index], base), fresh)

        edits.sequence(
            plugin,
            _last_before(plugin, {"wrap_surface"} if self._surfaces else {"muscle"}),
            self._surfaces,
            [Item(e.origin, f) for e, f in zip(block.surfaces, fresh_surfaces, strict=True)],
            change_surface,
        )
        edited_by_origin = {e.origin: e for e in block.muscles if e.origin is not None}

        def change_muscle(index: int, fresh: ET.Element) -> None:
            old, path_origin = self._old_muscles[index], edited_by_origin[index].path_origin
            _change_muscle(edits, self._muscles[index], old, fresh, path_origin)

        edits.sequence(
            plugin,
            _last_before(plugin, {"muscle"}),
            self._muscles,
            [Item(e.origin, f) for e, f in zip(block.muscles, fresh_muscles, strict=True)],
            change_muscle,
        )
        return edits.applied()

    def with_values(self, before: Robot, after: Robot) -> bytes:
        """Return the text with other values of the same muscles and surfaces.

        Those of nested models are changed too, in the block of their model.

        Args:
            before: A robot that was read from the file.
            after: The same with muscles and surfaces that have other numbers, but the same names,
                links and path elements.

        Raises:
            DescriptionError: The file has other muscles than the robot had, or what changed stands
                in a file that this one includes.
        """
        if written(self.robot) != written(before):
            raise DescriptionError(
                f"the muscles of model '{self.robot.name}' have changed",
                source=self.name,
                expected="the file unchanged since it was read",
            )
        edits = TextEdits(self._data)
        muscles = zip(self._all_muscles, before.muscles, after.muscles, strict=True)
        for element, old, new in muscles:
            fresh = _muscle(new)
            if ET.tostring(_muscle(old)) != ET.tostring(fresh):
                self._check_here(element)
                _change_muscle(edits, element, old, fresh, range(len(old.path)))
        surfaces = zip(self._all_surfaces, before.wrap_surfaces, after.wrap_surfaces, strict=True)
        for element, *pair in surfaces:
            was, now = (_surface(surface, self._base) for surface in pair)
            if ET.tostring(was) != ET.tostring(now):
                self._check_here(element)
                edits.patch(element, was, now)
        return edits.applied()

    def _check_here(self, element: XmlElement) -> None:
        if element.source != self.name:
            raise element.error(
                f"stands in a file that '{self.name}' includes", "muscles in the file itself"
            )

    def _add_plugin(self, edits: TextEdits, children: Sequence[ET.Element]) -> None:
        plugin = ET.Element("plugin", filename=PLUGIN_FILENAME, name=PLUGIN_NAME)
        ET.SubElement(plugin, "module_name").text = MODULE
        plugin.extend(children)
        edits.append_child(self._model, plugin)


def _change_muscle(
    edits: TextEdits,
    element: XmlElement,
    before: Muscle,
    fresh: ET.Element,
    path_origin: Sequence[int | None],
) -> None:
    old = _muscle(before)
    items, old_items = ([e for e in m if e.tag in PATH_ELEMENTS] for m in (fresh, old))
    plain, old_plain = _without_path(fresh), _without_path(old)
    # what is at its default means something else, or nothing, for another actuator
    other = old.get("type") != fresh.get("type")
    edits.patch(element, old_plain, plain, {"parameters", "control"} if other else set())
    elements = path_elements(element)

    def change(number: int, item: ET.Element) -> None:
        edits.patch(elements[number], old_items[number], item)

    edits.sequence(
        element,
        _last_before(element, set(PATH_ELEMENTS)),
        elements,
        [Item(o, item) for o, item in zip(path_origin, items, strict=True)],
        change,
    )


def with_block(robot: Robot, block: EditedBlock, elsewhere: Sequence[str]) -> Robot:
    """Return a robot with the muscles and surfaces of a block, and those of other blocks.

    Args:
        robot: As it was read.
        block: What its own block is to hold.
        elsewhere: `MuscleText.elsewhere`.
    """
    kept = set(elsewhere)
    return replace(
        robot,
        muscles=(
            *(edited.muscle for edited in block.muscles),
            *(muscle for muscle in robot.muscles if muscle.name in kept),
        ),
        wrap_surfaces=(
            *(edited.surface for edited in block.surfaces),
            *(surface for surface in robot.wrap_surfaces if surface.name in kept),
        ),
    )


def written(robot: Robot) -> dict[str, bytes]:
    """Return how muscles and wrap surfaces of a robot would be written, by kind and name."""
    base = Path(robot.source or ".").resolve().parent
    return {f"muscle {m.name}": ET.tostring(_muscle(m)) for m in robot.muscles} | {
        f"surface {s.name}": ET.tostring(_surface(s, base)) for s in robot.wrap_surfaces
    }


def _muscle(muscle: Muscle) -> ET.Element:
    parent = ET.Element("plugin")
    add_muscle(parent, muscle)
    return parent[0]


def _surface(surface: WrapSurface, base: Path) -> ET.Element:
    parent = ET.Element("plugin")
    add_wrap_surface(parent, surface, base)
    return parent[0]


def _without_path(muscle: ET.Element) -> ET.Element:
    plain = ET.Element(muscle.tag, muscle.attrib)
    plain.extend(child for child in muscle if child.tag not in PATH_ELEMENTS)
    return plain


def _last_before(parent: XmlElement, tags: set[str]) -> XmlElement | None:
    """Return the last child before the first one with one of the tags; None if there is none."""
    last = None
    for child in parent:
        if child.tag in tags:
            break
        last = child
    return last
