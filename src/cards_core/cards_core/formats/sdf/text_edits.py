"""Change elements in the text of an XML file; every other byte of the file stays as it is.

Comments, blanks, line ends, quotes and the order of attributes survive. Where a value is a row of
numbers, the digits of those that changed are replaced, and the others keep theirs.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from cards_core.formats.xml_lines import XmlElement, tag_end

INDENT = "  "
"""Of a child that is new, relative to its parent."""

_COMMENTS = re.compile(rb"(?:[ \t]*<!--(?:(?!-->)[^\n])*-->)*[ \t]*(?=\r?\n)")
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
_NO_NUMBER = re.compile(rb"<!--.*?-->|<!\[CDATA\[|\]\]>", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Item:
    """What is to stand in a sequence: where it stood, and how it is written anew."""

    origin: int | None
    fresh: ET.Element


class TextEdits:
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
        items: Sequence[Item],
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
        self, element: XmlElement, change: Callable[[int, ET.Element], None], item: Item
    ) -> str:
        """Return the text of an element with its changes, which are taken out of the list."""
        assert item.origin is not None
        before = self._edits
        self._edits = []
        change(item.origin, item.fresh)
        inner, self._edits = self._edits, before
        part = TextEdits(self._data[element.begin : element.end])
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
                self._set_attribute(element, name, old.get(name), new.get(name))
        if (old.text or "") != (new.text or ""):
            self._set_text(element, old.text or "", new.text or "")
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

    def _set_attribute(
        self, element: XmlElement, name: str, old: str | None, value: str | None
    ) -> None:
        begin, end = element.begin, tag_end(self._data, element.begin)
        pattern = rb"\s+" + re.escape(name.encode("utf-8")) + rb"\s*=\s*(\"[^\"]*\"|'[^']*')"
        found = next(self._outside_quotes(pattern, begin, end), None)
        if value is None:
            if found is not None:
                self._put(found.start(), found.end(), "")
            return
        quoted = '"' + escape(value, {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"}) + '"'
        if found is not None:
            if not self._set_numbers(found.start(1) + 1, found.end(1) - 1, old or "", value):
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

    def _set_text(self, element: XmlElement, old: str, text: str) -> None:
        begin = tag_end(self._data, element.begin)
        end = self._data.rfind(b"</", begin, element.end)
        if end < 0:  # <via_point .../>, which reading refuses
            raise element.error("holds no text", "its value")
        if self._set_numbers(begin, end, old, text):
            return
        comments = b"".join(_COMMENT.findall(self._data, begin, end)).decode("utf-8")
        self._put(begin, end, escape(text) + comments)

    def _set_numbers(self, begin: int, end: int, old: str, new: str) -> bool:
        """Replace the numbers that changed, if a place holds the old ones and as many come."""
        blank = _NO_NUMBER.sub(lambda found: b" " * len(found[0]), self._data[begin:end])
        tokens, olds, news = list(re.finditer(rb"\S+", blank)), old.split(), new.split()
        found = [token[0] for token in tokens]
        if not len(tokens) == len(olds) == len(news):
            return False
        try:
            there, before, _ = ([float(v) for v in row] for row in (found, olds, news))
        except ValueError:  # names
            return False
        if there != before:
            return False
        for token, was, now in zip(tokens, olds, news, strict=True):
            if was != now:
                self._put(begin + token.start(), begin + token.end(), now)
        return True


def _child(parent: XmlElement, index: int) -> XmlElement | None:
    children = list(parent)
    return children[index] if children else None


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
