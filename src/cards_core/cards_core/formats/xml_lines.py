"""XML elements that remember where they stood: file, line, parent.

A thin layer over expat (standard library only). Nothing is fetched and nothing is expanded: a
DOCTYPE is tolerated because CASPR files carry one, declared entities are refused.
"""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TypeAlias, cast
from xml.parsers import expat

from cards_core.errors import DescriptionError
from cards_core.foreign_files import read_bytes

XmlSource: TypeAlias = str | bytes | os.PathLike[str] | IO[bytes] | IO[str]
"""Where XML comes from: text (``str``, ``bytes``), a path object, or an open file."""

MAX_DEPTH = 100
"""Deepest accepted nesting of elements; a robot needs about ten."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest accepted document."""

MAX_ELEMENTS = 500_000
"""Most elements of a document; they take a kilobyte each, and a robot has some thousand."""

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_DECLARATION = re.compile(r"<!ENTITY\b")
_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)[^#\s;&<>\"']+;")


class XmlElement(ET.Element):
    """An `xml.etree` element with the place it came from.

    Attributes:
        line: Line of the start tag, 1-based.
        source: File name, or a name such as ``<string>``.
        parent: Enclosing element, None for the root.
        begin, end: Of the element in the document, from its start tag to behind its end tag,
            [bytes]; a document that was given as text counts as UTF-8.
    """

    line: int = 0
    source: str = "<string>"
    parent: XmlElement | None = None
    begin: int = 0
    end: int = 0

    def __iter__(self) -> Iterator[XmlElement]:
        """Iterate over the children in document order."""
        return cast(Iterator[XmlElement], iter(self[:]))

    def __bool__(self) -> bool:
        """Return True: unlike in the base class, an element without children is not nothing."""
        return True

    @property
    def label(self) -> str:
        """The element in words, e.g. ``joint 'elbow'`` or ``<mass> of <inertial> of link 'a'``."""
        name = self.get("name")
        if name is not None:
            own = f"{self.tag} '{shorten(name)}'"
            # a shape says little without its link, the other names are unique in their file
            if self.tag not in ("visual", "collision"):
                return own
        else:
            own = f"<{shorten(self.tag)}>"
        above = self.parent
        if above is None or above.tag in ("sdf", "plugin"):
            return own
        return f"{own} of {above.label}"

    def another(self, tag: str, attributes: Mapping[str, str]) -> XmlElement:
        """Return an element that stands where this one stands.

        Args:
            tag: Its name.
            attributes: Its attributes.
        """
        element = XmlElement(tag, dict(attributes))
        element.line, element.source = self.line, self.source
        return element

    def error(
        self, problem: str, expected: str | None = None, *, element: str | None = None
    ) -> DescriptionError:
        """Return (not raise) an error that names this element's file, line and label.

        Args:
            problem: What is wrong.
            expected: What would be right.
            element: Label in place of this element's own.
        """
        return DescriptionError(
            problem,
            source=self.source,
            line=self.line or None,
            element=element or self.label,
            expected=expected,
        )

    def child(self, tag: str) -> XmlElement | None:
        """Return the first child element ``tag``, or None."""
        return next(self.children(tag), None)

    def children(self, *tags: str) -> Iterator[XmlElement]:
        """Iterate over the child elements with one of the tags."""
        return (item for item in self if item.tag in tags)


def shorten(text: str, limit: int = 60) -> str:
    """Return ``text`` cut to ``limit`` characters, for messages."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def parse_xml(source: XmlSource, *, name: str | None = None) -> XmlElement:
    """Parse a document.

    Args:
        source: XML text, a path, or an open file.
        name: Name of the document for messages; default the path, or ``<string>``.

    Raises:
        DescriptionError: The file cannot be read, the XML is malformed, nested deeper than
            `MAX_DEPTH`, longer than `MAX_BYTES`, of more than `MAX_ELEMENTS`, or declares or uses
            entities of its own.
    """
    data, title = _read(source)
    title = name or title
    if len(data) > MAX_BYTES:
        raise DescriptionError(
            f"more than {MAX_BYTES} bytes long", source=title, expected="a shorter document"
        )
    if not data.strip():
        raise DescriptionError("is empty", source=title, line=1, expected="an XML document")
    parser = None
    try:
        encoded = data.encode("utf-8") if isinstance(data, str) else data
        # text that was decoded already is UTF-8 here, whatever its declaration says
        parser = expat.ParserCreate("utf-8" if isinstance(data, str) else None)
        return _Builder(parser, title).run(encoded)
    except expat.ExpatError as error:
        raise DescriptionError(
            f"malformed XML: {expat.ErrorString(error.code)} in column {error.offset + 1}",
            source=title,
            line=error.lineno,
            expected="well-formed XML",
        ) from None
    except (UnicodeError, LookupError, ValueError) as error:
        raise DescriptionError(
            f"the text cannot be decoded: {error}",
            source=title,
            line=parser.CurrentLineNumber if parser else None,
            expected="UTF-8",
        ) from None


def tag_end(data: bytes, begin: int) -> int:
    """Return where a tag ends that begins at an index: behind its ``>``, which no quotes hold."""
    found = _TAG.match(data, begin)
    return len(data) if found is None else found.end()


_TAG = re.compile(rb"<(?:[^>\"']|\"[^\"]*\"|'[^']*')*>")


def _read(source: XmlSource) -> tuple[str | bytes, str]:
    if isinstance(source, str | bytes):
        return source, "<string>"
    if isinstance(source, os.PathLike):
        path = Path(source)
        return read_bytes(path, "the path of an XML file", most=MAX_BYTES), str(path)
    title = getattr(source, "name", None)
    return source.read(MAX_BYTES + 1), title if isinstance(title, str) else "<stream>"


def _blank(comment: re.Match[str]) -> str:
    """Return as many line ends as the comment has, to keep the line numbers."""
    return "\n" * comment[0].count("\n")


class _Builder:
    """Collects expat's events into a tree of `XmlElement`."""

    def __init__(self, parser: expat.XMLParserType, source: str) -> None:
        self.parser = parser
        self.source = source
        self.data = b""
        self.open: list[XmlElement] = []
        self.count = 0
        self.tree = ET.TreeBuilder(element_factory=XmlElement)
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.tree.data
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.entity
        parser.SkippedEntityHandler = self.skipped

    def run(self, data: bytes) -> XmlElement:
        self.data = data
        self.parser.Parse(data, True)
        return cast(XmlElement, self.tree.close())

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= MAX_DEPTH:
            raise self.error(f"elements nested more than {MAX_DEPTH} deep", "a flatter document")
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.error(f"more than {MAX_ELEMENTS} elements", "a smaller document")
        element = cast(XmlElement, self.tree.start(tag, attributes))
        element.line = self.parser.CurrentLineNumber
        element.source = self.source
        element.parent = self.open[-1] if self.open else None
        element.begin = self.parser.CurrentByteIndex
        self.open.append(element)

    def end(self, tag: str) -> None:
        element = self.open.pop()
        first = tag_end(self.data, element.begin)
        if self.data[first - 2 : first - 1] == b"/":  # <tag/>: there is no end tag
            element.end = first
        else:
            element.end = tag_end(self.data, self.parser.CurrentByteIndex)
        self.tree.end(tag)

    def doctype(self, *_: object) -> None:
        # behind a DOCTYPE, expat drops unknown entities in attribute values without a word
        text = _COMMENT.sub(_blank, self.data.decode("utf-8", "ignore"))
        found = _ENTITY.search(text)
        if found and not _DECLARATION.search(text):
            raise DescriptionError(
                f"uses the entity '{shorten(found[0])}'",
                source=self.source,
                line=text.count("\n", 0, found.start()) + 1,
                expected="the text itself",
            )

    def entity(self, name: str, *_: object) -> None:
        raise self.error(f"declares the entity '{shorten(name)}'", "no entity declarations")

    def skipped(self, name: str, *_: object) -> None:
        raise self.error(f"uses the entity '&{shorten(name)};'", "the text itself")

    def error(self, problem: str, expected: str) -> DescriptionError:
        return DescriptionError(
            problem, source=self.source, line=self.parser.CurrentLineNumber, expected=expected
        )
