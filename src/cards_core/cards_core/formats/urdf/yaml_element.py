"""Elements of XML that stand for values of a YAML file: their errors name keys, not tags."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cards_core.errors import DescriptionError
from cards_core.formats.xml_lines import XmlElement
from cards_core.yaml_fields import Field, describe

_KEYS = {"via_point": "point", "motor": "motors", "attached_to": "link"}
"""Tags and attributes whose key is another one."""


class YamlElement(XmlElement):
    """An element whose errors name the key and the line of the YAML file.

    Attributes:
        field: The value that it stands for; None in a document without any.
    """

    field: Field | None = None

    @property
    def label(self) -> str:
        """The place in the file, e.g. ``muscles.biceps.path[0]``."""
        return "the file" if self.field is None else describe(self.field.place) or "the file"

    def another(self, tag: str, attributes: Mapping[str, str]) -> XmlElement:
        """Return an element that stands for the same value.

        Args:
            tag: Its name.
            attributes: Its attributes.
        """
        element = YamlElement(tag, dict(attributes))
        element.line, element.source, element.field = self.line, self.source, self.field
        return element

    def error(
        self, problem: str, expected: str | None = None, *, element: str | None = None
    ) -> DescriptionError:
        """Return (not raise) an error in the words of YAML, at the key that it is about.

        Args:
            problem: What is wrong.
            expected: What would be right.
            element: Label in place of this element's own.
        """
        field = self._key(problem)
        line = self.line if field is None else field.document.line(field.place)
        label = element or (self.label if field is None else describe(field.place))
        return DescriptionError(
            _in_yaml(problem),
            source=self.source,
            line=line or None,
            element=label,
            expected=None if expected is None else _in_yaml(expected),
        )

    def _key(self, problem: str) -> Field | None:
        """Return the key of this mapping that a problem begins with, or calls unknown."""
        field = self.field
        if field is None or not isinstance(field.value, Mapping):
            return field
        if unknown := re.match(r"unknown (\w+) '([^']*)'", problem):
            word = unknown[2] if unknown[1] == "attribute" else unknown[1]
        else:
            word = re.split(r"[ :]", problem, maxsplit=1)[0]
        word = _KEYS.get(word, word)
        return field[word] if word in field.value else field


def _in_yaml(text: str) -> str:
    """Return a text that speaks of XML in the words of YAML."""

    def key(found: re.Match[str]) -> str:
        return f"'{_KEYS.get(found[1], found[1])}'"

    text = re.sub(r"one <(\w+)> element", r"<\1>", text)
    text = re.sub(r"<(\w+)>", key, text)
    text = re.sub(r'(\w+)="([^"]*)"', r"\1: \2", text)
    text = re.sub(r"^attached_to ", "link ", text)
    text = text.replace("numbers x y z, separated by blanks", "numbers in a list: [x, y, z]")
    text = text.replace(", separated by blanks", ", in a list")
    return text.replace("attribute", "key")
