"""Change the muscles in the text of an SDF file; every other byte of the file stays as it is.

Comments, elements of other programs, the order of attributes and the way numbers are written
survive: of an element that changed, only the attributes and texts that changed are written. What
changed is what `cards_core.formats.sdf.elements` would write differently.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape

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
from cards_core.formats.xml_lines import MAX_BYTES, XmlElement, tag_end
from cards_core.robot.elements import Muscle, WrapSurface
from cards_core.robot.model import Robot

INDENT = "  "
"""Of a child that is new, relative to its parent."""

_COMMENTS = re.compile(rb"(?:[ \t]*<!--(?:(?!-->)[^\n])*-->)*[ \t]*(?=\r?\n)")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


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
        elsewhere: Names of muscles and surfaces of other files or of nested models: they cannot be
            changed here.

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
        folder = Path(self.name).resolve().parent
        document = read_sdf_document(data, model=model, base=folder, name=self.name)
        self.robot: Robot = document.robot
        self._model = self._find_model(document.root)
        self._plugin = next(
            (p for p in document.plugins if p.parent is self._model and is_muscle_plugin(p)), None
        )
        own = [] if self._plugin is None else list(self._plugin)
        self._muscles = [element for element in own if element.tag == "muscle"]
        self._surfaces = [element for element in own if element.tag == "wrap_surface"]
        muscles = {muscle.name: muscle for muscle in self.robot.muscles}
        surfaces = {surface.name: surface for surface in self.robot.wrap_surfaces}
        names = [element.get("name", "") for element in self._muscles]
        surface_names = [element.get("name", "") for element in self._surfaces]
        self._old_muscles = [muscles[name] for name in names]
        self._old_surfaces = [surfaces[name] for name in surface_names]
        self.elsewhere = tuple(
            [name for name in muscles if name not in names]
            + [name for name in surfaces if name not in surface_names]
        )
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
        base = Path(self.name).resolve().parent
        edits = _Edits(self._data)
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
            [_Item(e.origin, f) for e, f in zip(block.surfaces, fresh_surfaces, strict=True)],
            change_surface,
        )
        edited_by_origin = {e.origin: e for e in block.muscles if e.origin is not None}

        def change_muscle(index: int, fresh: ET.Element) -> None:
            self._change_muscle(edits, index, edited_by_origin[index], fresh)

        edits.sequence(
            plugin,
            _last_before(plugin, {"muscle"}),
            self._muscles,
            [_Item(e.origin, f) for e, f in zip(block.muscles, fresh_muscles, strict=True)],
            change_muscle,
        )
        return edits.applied()

    def _change_muscle(
        self, edits: _Edits, index: int, edited: EditedMuscle, fresh: ET.Element
    ) -> None:
        element = self._muscles[index]
        old = _muscle(self._old_muscles[index])
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
            [_Item(o, item) for o, item in zip(edited.path_origin, items, strict=True)],
            change,
        )

    def _add_plugin(self, edits: _Edits, children: Sequence[ET.Element]) -> None:
        plugin = ET.Element("plugin", filename=PLUGIN_FILENAME, name=PLUGIN_NAME)
        ET.SubElement(plugin, "module_name").text = MODULE
        plugin.extend(children)
        edits.append_child(self._model, plugin)


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


def _child(parent: XmlElement, index: int) -> XmlElement | None:
    children = list(parent)
    return children[index] if children else None


@dataclass(frozen=True, eq=False)
class _Item:
    """What is to stand in a sequence: where it stood, and how it is written anew."""

    origin: int | None
    fresh: ET.Element


class _Edits:
    """Replacements in a text, collected, then made at once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._edits: list[tuple[int, int, bytes]] = []

    def applied(self) -> bytes:
        """Return the text with all replacements; insertions at one place in order."""
        out, here = [], 0
        for begin, end, text in sorted(self._edits, key=lambda edit: (edit[0], edit[1] > edit[0])):
            assert begin >= here, "replacements overlap"
            out += [self._data[here:begin], text]
            here = end
        out.append(self._data[here:])
        return b"".join(out)

    def _put(self, begin: int, end: int, text: str) -> None:
        self._edits.append((begin, end, text.encode("utf-8")))

    # Sequences --------------------------------------------------------------------------------

    def sequence(
        self,
        parent: XmlElement,
        start: XmlElement | None,
        elements: Sequence[XmlElement],
        items: Sequence[_Item],
        change: Callable[[int, ET.Element], None],
    ) -> None:
        """Make a sequence of children another one: some go, some come, some change places.

        Args:
            parent: Element that holds them.
            start: What stands before the first of them; None: the start tag.
            elements: As they stand in the text.
            items: As they are to be.
            change: Writes what is different of an element that keeps its place.
        """
        origins = [item.origin for item in items]
        kept = set(_longest_rising(origins))  # indices of items
        staying = {origins[k] for k in kept}
        for index, element in enumerate(elements):
            if index not in staying:
                self._remove(element)
        indent = self._indent(elements[0] if elements else start, parent)
        place = self._after(start, parent)
        for k, item in enumerate(items):
            if k in kept:
                assert item.origin is not None
                change(item.origin, item.fresh)
                place = self._after(elements[item.origin], parent)
                continue
            if item.origin is None:
                text = _text(item.fresh, indent)
            else:  # it moves: with what it has inside
                text = self._moved(elements[item.origin], change, item)
            self._put(place, place, self._line(indent, text))

    def _moved(
        self, element: XmlElement, change: Callable[[int, ET.Element], None], item: _Item
    ) -> str:
        """Return the text of an element with its changes, which are taken out of the list."""
        assert item.origin is not None
        before = self._edits
        self._edits = []
        change(item.origin, item.fresh)
        inner, self._edits = self._edits, before
        part = _Edits(self._data[element.begin : element.end])
        part._edits = [(a - element.begin, b - element.begin, text) for a, b, text in inner]
        return part.applied().decode("utf-8")

    def append_child(self, parent: XmlElement, child: ET.Element) -> None:
        """Add a child behind all others."""
        closing = self._data.rfind(b"</", parent.begin, parent.end)
        last = _child(parent, -1)
        indent = self._indent(last, parent)
        if closing < 0:  # <model ... />, which reading refuses: a model has links
            raise parent.error("holds nothing", "at least one <link>")
        # the closing tag keeps its line
        line = self._data.rfind(b"\n", 0, closing) + 1
        alone = line > parent.begin and not self._data[line:closing].strip()
        place = line if alone else closing
        text = _text(child, indent)
        self._put(place, place, f"\n{indent}{text}\n" if alone else text)

    def _remove(self, element: XmlElement) -> None:
        begin = element.begin
        line = self._data.rfind(b"\n", 0, begin) + 1
        if line and not self._data[line:begin].strip():
            begin = line - 1
            if self._data[begin - 1 : begin] == b"\r":
                begin -= 1
        self._put(begin, element.end, "")

    def _after(self, element: XmlElement | None, parent: XmlElement) -> int:
        """Return where something new goes behind an element, and behind comments beside it."""
        end = tag_end(self._data, parent.begin) if element is None else element.end
        found = _COMMENTS.match(self._data, end)
        return end if found is None else found.end()

    def _indent(self, sibling: XmlElement | None, parent: XmlElement) -> str:
        if sibling is not None:
            found = self._own_indent(sibling)
            if found is not None:
                return found
        found = self._own_indent(parent)
        return INDENT if found is None else found + INDENT

    def _own_indent(self, element: XmlElement) -> str | None:
        line = self._data.rfind(b"\n", 0, element.begin) + 1
        before = self._data[line : element.begin].decode("utf-8", "replace")
        return before if not before.strip() else None

    def _line(self, indent: str, text: str) -> str:
        return f"\n{indent}{text}"

    # One element ------------------------------------------------------------------------------

    def patch(
        self,
        element: XmlElement,
        old: ET.Element,
        new: ET.Element,
        renewed: Collection[str] = (),
    ) -> None:
        """Write what is different between two ways an element could be written.

        Args:
            element: As it stands in the text; it may state defaults that neither states.
            old: As it would be written unchanged.
            new: As it would be written now.
            renewed: Children that are written anew as a whole.
        """
        for name in dict.fromkeys([*old.attrib, *new.attrib]):
            if old.get(name) != new.get(name):
                self._set_attribute(element, name, new.get(name))
        if (old.text or "") != (new.text or ""):
            self._set_text(element, new.text or "")
        old_children = {child.tag: child for child in old}
        new_children = {child.tag: child for child in new}
        last: XmlElement | None = None
        missing: list[tuple[XmlElement | None, ET.Element]] = []
        for there in element.children(*renewed):
            self._remove(there)
        for tag in dict.fromkeys([*old_children, *new_children]):
            present = None if tag in renewed else element.child(tag)
            if tag not in new_children:
                if present is not None:
                    self._remove(present)
                continue
            if present is not None:
                self.patch(present, old_children.get(tag, ET.Element(tag)), new_children[tag])
                last = present
            else:
                missing.append((last, new_children[tag]))
        end = tag_end(self._data, element.begin)
        if missing and self._data[end - 2 : end - 1] == b"/":  # <parameters .../> gets an end tag
            inner = "".join(_text(child, "") for _, child in missing)
            self._put(end - 2, end, f">{inner}</{element.tag}>")
            return
        for before, child in missing:
            indent = self._indent(before or _child(element, 0), element)
            place = self._after(before, element)
            self._put(place, place, self._line(indent, _text(child, indent)))

    def _set_attribute(self, element: XmlElement, name: str, value: str | None) -> None:
        begin, end = element.begin, tag_end(self._data, element.begin)
        pattern = rb"\s+" + re.escape(name.encode("utf-8")) + rb"\s*=\s*(\"[^\"]*\"|'[^']*')"
        found = next(self._outside_quotes(pattern, begin, end), None)
        if value is None:
            if found is not None:
                self._put(found.start(), found.end(), "")
            return
        quoted = '"' + escape(value, {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"}) + '"'
        if found is not None:
            self._put(found.start(1), found.end(1), quoted)
            return
        place = end - 2 if self._data[end - 2 : end - 1] == b"/" else end - 1
        while self._data[place - 1 : place].isspace():
            place -= 1
        self._put(place, place, f" {name}={quoted}")

    def _outside_quotes(self, pattern: bytes, begin: int, end: int) -> Iterator[re.Match[bytes]]:
        """Yield matches that do not begin within the value of an attribute."""
        quoted = [
            (m.start(1), m.end(1))
            for m in re.compile(rb"=\s*(\"[^\"]*\"|'[^']*')").finditer(self._data, begin, end)
        ]
        for match in re.compile(pattern).finditer(self._data, begin, end):
            if not any(a < match.start() < b for a, b in quoted):
                yield match

    def _set_text(self, element: XmlElement, text: str) -> None:
        begin = tag_end(self._data, element.begin)
        end = self._data.rfind(b"</", begin, element.end)
        if end < 0:  # <via_point .../>, which reading refuses
            raise element.error("holds no text", "its value")
        comments = b"".join(_COMMENT.findall(self._data, begin, end)).decode("utf-8")
        self._put(begin, end, escape(text) + comments)


def _longest_rising(origins: Sequence[int | None]) -> list[int]:
    """Return the indices of a longest subsequence whose values rise; None is none of them."""
    tails: list[int] = []  # values
    places: list[int] = []  # indices of these
    before: dict[int, int | None] = {}
    for index, value in enumerate(origins):
        if value is None:
            continue
        k = bisect_left(tails, value)
        before[index] = places[k - 1] if k else None
        tails[k : k + 1] = [value]
        places[k : k + 1] = [index]
    out: list[int] = []
    here = places[-1] if places else None
    while here is not None:
        out.append(here)
        here = before[here]
    return out[::-1]


def _text(element: ET.Element, indent: str) -> str:
    """Return a new element as text whose first line is not indented."""
    ET.indent(element, INDENT)
    # in values the writer escapes what ends a tag
    text = ET.tostring(element, encoding="unicode").strip().replace(" />", "/>")
    return text.replace("\n", f"\n{indent}")
