"""Typed access to the elements of a CASPR file; every refusal names file, line and element."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FindingList
from cards_core.formats.sdf.values import attribute, parse_number, required
from cards_core.formats.xml_lines import XmlElement, parse_xml, shorten
from cards_core.typing import Array

MAX_VALUES = 100_000
"""Longest vector that is read; a damaged file must not exhaust the memory."""


class Node:
    """An element of a CASPR file; elements that may occur once are refused when given twice."""

    def __init__(self, element: XmlElement) -> None:
        self._element = element

    @property
    def tag(self) -> str:
        """Element name."""
        return str(self._element.tag)

    @property
    def line(self) -> int:
        """Line of the start tag, 1-based."""
        return self._element.line

    @property
    def source(self) -> str:
        """File, for messages."""
        return self._element.source

    @property
    def label(self) -> str:
        """Description of the element, for messages."""
        return self._element.label

    @property
    def text(self) -> str:
        """Text before the first child, stripped."""
        return (self._element.text or "").strip()

    def error(self, problem: str, expected: str | None = None) -> DescriptionError:
        """Return an error about this element."""
        return self._element.error(problem, expected)

    # Children --------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Node]:
        return (Node(element) for element in self._element)

    def find(self, tag: str) -> Node | None:
        """Return the only child ``tag``, or None. Raises `DescriptionError` if there are more."""
        found = list(self._element.children(tag))
        if len(found) > 1:
            raise found[1].error(
                f"second <{tag}>", f"at most one, the first is in line {found[0].line}"
            )
        return Node(found[0]) if found else None

    def child(self, tag: str) -> Node:
        """Return the only child ``tag``. Raises `DescriptionError` if there is not just one."""
        return self.find(tag) or Node(required(self._element, tag))

    def warn_unknown(
        self,
        findings: FindingList,
        *,
        children: Collection[str] = (),
        attributes: Collection[str] = (),
    ) -> None:
        """Warn of every child element and attribute that the importer does not read.

        Args:
            findings: Takes the warnings.
            children: Tags of child elements that are read.
            attributes: Names of attributes that are read.
        """
        for child in self:
            if child.tag not in children:
                findings.warn(
                    "unknown-element",
                    f"<{self.tag}>",
                    f"<{shorten(child.tag)}> is not part of the format and was ignored",
                    at=child,
                )
        for name in self._element.attrib:
            if name not in attributes:
                findings.warn(
                    "unknown-attribute",
                    f"<{self.tag}>",
                    f"attribute '{shorten(name)}' is not part of the format and was ignored",
                    at=self,
                )

    # Attributes ------------------------------------------------------------------------------

    def get(self, name: str) -> str | None:
        """Return an attribute, stripped, or None."""
        value = self._element.get(name)
        return None if value is None else value.strip()

    def attribute(self, name: str) -> str:
        """Return an attribute. Raises `DescriptionError` if it is missing or empty."""
        return attribute(self._element, name)

    def attribute_vector(self, name: str) -> Array:
        """Return an attribute of blank-separated numbers (infinities allowed), shape (k,)."""
        return self._numbers(self.attribute(name), what=name, infinite=True)

    def attribute_number(self, name: str) -> float:
        """Return an attribute that is one finite number."""
        return parse_number(self.attribute(name), self._element, what=name)

    def attribute_integer(self, name: str) -> int:
        """Return an attribute that is an integer."""
        return self._integer(self.attribute_number(name), name)

    # Text ------------------------------------------------------------------------------------

    def vector(self, size: int | None = None) -> Array:
        """Return the text as finite numbers, shape (size,).

        Raises:
            DescriptionError: Not numbers, not finite, or not ``size`` of them.
        """
        values = self._numbers(self.text)
        if size is not None and len(values) != size:
            raise self.error(f"{len(values)} numbers", f"{size} numbers separated by blanks")
        return values

    def number(self, *, infinite: bool = False) -> float:
        """Return the text as one number."""
        return parse_number(self.text, self._element, infinite=infinite)

    def integer(self) -> int:
        """Return the text as an integer."""
        return self._integer(self.number(), "")

    def _integer(self, value: float, what: str) -> int:
        if value != int(value):
            raise self.error(f"{what} {value:g} is not an integer".strip(), "e.g. 1")
        return int(value)

    def _numbers(self, text: str, *, what: str = "", infinite: bool = False) -> Array:
        words = text.split(maxsplit=MAX_VALUES)
        if len(words) > MAX_VALUES:
            raise self.error(f"more than {MAX_VALUES} numbers", "a shorter vector")
        return np.array(
            [parse_number(word, self._element, what=what, infinite=infinite) for word in words]
        )


def read_root(path: Path, tags: Collection[str]) -> Node:
    """Parse a file and check its root element.

    Raises:
        DescriptionError: Not readable, not XML, or the root is none of ``tags``.
    """
    root = Node(parse_xml(path))
    if root.tag not in tags:
        raise root.error(
            "is not the root element of this kind of file",
            " or ".join(f"<{tag}>" for tag in tags),
        )
    return root
