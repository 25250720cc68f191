"""Typed access to a YAML file; every complaint names file, line, trajectory and key."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import yaml

from cards_core.checks import LARGEST
from cards_core.errors import DescriptionError
from cards_core.foreign_files import read_text
from cards_core.names import EXPECTED, name_problem
from cards_core.typing import Array

Place: TypeAlias = tuple[str | int, ...]
"""Keys and list indices from the top of the document."""

MAX_DEPTH = 30
MAX_VALUES = 200_000
"""Guards against aliases that expand without end."""

_MOST_EVENTS = 3 * MAX_VALUES
"""PyYAML has at most three for a value: the key, the begin and the end."""

MAX_BYTES = 16_000_000
"""Largest file: more than `MAX_VALUES` take, and a guard against devices that never end."""

_HINTS = {
    "mapping values are not allowed": "the keys of a block one below the other in one column",
    "could not find expected ':'": "'key: value', with a blank behind the colon",
    "expected <block end>": "the keys of a block one below the other in one column",
    r"'\t'": "blanks, not tabs, before a key",
}
"""What PyYAML complains of, and what would be right."""

_YAML = "tag:yaml.org,2002:"

_TAGS = frozenset(
    _YAML + kind
    for kind in (
        *("map", "seq", "str", "int", "float", "bool", "null"),
        *("timestamp", "value", "merge"),  # which PyYAML finds in plain texts such as 2026-01-01
    )
)
"""Kinds of values; all others would stand for objects of some program."""

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


@dataclass
class Document:
    """Plain data and where it came from.

    Attributes:
        data: Nested dicts, lists and scalars.
        source: File name, for messages.
        lines: 1-based line of every place, as far as known.
        texts_elsewhere: Places of numbers such as ``200e9`` that YAML 1.1, and so PyYAML, reads
            as texts; here they are numbers.
        written: What is in the file where the value is no text: ``007`` of the number 7.
    """

    data: Any
    source: str
    lines: dict[Place, int] = field(default_factory=dict)
    texts_elsewhere: list[Place] = field(default_factory=list)
    written: dict[Place, str] = field(default_factory=dict)

    def line(self, place: Place) -> int | None:
        """Return the line of a place, or of the nearest place around it."""
        for end in range(len(place), -1, -1):
            if place[:end] in self.lines:
                return self.lines[place[:end]]
        return None


def read_yaml(path: str | Path) -> Document:
    """Read a YAML file of mappings, lists, numbers, texts and true/false.

    Raises:
        DescriptionError: It cannot be read, is not YAML, or has a key twice.
    """
    return parse_yaml(read_text(path, "a YAML file in UTF-8", most=MAX_BYTES), str(path))


_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Ten times as fast, with messages that are harder to understand."""

_LARGE = 100_000
"""Texts that `_Fast` reads, [characters]."""

_Numbers: Any = type("_Numbers", (_Fast,), {})  # its own table of resolvers
_Numbers.add_implicit_resolver(
    _YAML + "float", re.compile(rf"(?:{_NUMBER.pattern})\Z"), list("-+.0123456789")
)


def yaml_value(text: str) -> Any:
    """Return the plain value of a text, with integers apart from floats, as ROS does.

    Numbers such as ``1e4``, which YAML 1.1, and so PyYAML, reads as texts, are numbers.

    Raises:
        yaml.YAMLError, ValueError: It is not YAML.
    """
    return _Numbers(text).get_single_data()


def parse_yaml(text: str, source: str = "<string>") -> Document:
    """Like `read_yaml` for a text."""
    try:
        loader = yaml.SafeLoader if len(text) <= _LARGE else _Fast
        if loader is _Fast:  # looked through before a tree is made of it
            depth = 0
            for count, event in enumerate(yaml.parse(text, Loader=loader)):
                depth += isinstance(event, yaml.CollectionStartEvent)
                depth -= isinstance(event, yaml.CollectionEndEvent)
                if depth > MAX_DEPTH:  # the C library would run out of stack
                    raise RecursionError
                if count > _MOST_EVENTS:
                    raise DescriptionError(
                        "is too large", source=source, expected=f"at most {MAX_VALUES} values"
                    )
        node = yaml.compose(text, Loader=loader)
        document = Document(None, source)
        if node is not None:
            document.data = _Plain(document).convert(node, (), 0)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context)
        hints = [hint for words, hint in _HINTS.items() if words in problem]
        raise DescriptionError(
            f"not valid YAML: {problem}",
            source=source,
            line=None if mark is None else mark.line + 1,
            expected=hints[0] if hints else None,
        ) from None
    except yaml.reader.ReaderError as error:
        raise DescriptionError(
            f"not valid YAML: character #x{error.character:04x}",
            source=source,
            line=text.count("\n", 0, error.position) + 1,
            expected="printable characters",
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # ValueError: PyYAML passes an impossible \U escape on to chr()
        problem = " ".join(str(error).split())  # PyYAML's own has lines, with the place again
        raise DescriptionError(f"not valid YAML: {problem}", source=source) from None
    except RecursionError:
        raise DescriptionError(
            "nested too deeply", source=source, expected=f"at most {MAX_DEPTH} levels"
        ) from None
    return document


class _Plain:
    """Turns a YAML node into plain data and remembers lines."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._count = 0

    def convert(self, node: Any, place: Place, depth: int) -> Any:
        """Return dicts, lists, str, float, bool, None."""
        line = node.start_mark.line + 1
        self._document.lines.setdefault(place, line)
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise self._wrong(
                "nested too deeply or too large (an alias that contains itself?)",
                f"at most {MAX_DEPTH} levels and {MAX_VALUES} values",
                line,
            )
        if node.tag not in _TAGS:
            tag = node.tag.replace(_YAML, "!!")[:60]
            raise self._wrong(f"tag '{tag}'", "plain values; objects are not made", line)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, depth)
        if isinstance(node, yaml.SequenceNode):
            children = enumerate(node.value)
            return [self.convert(child, (*place, i), depth + 1) for i, child in children]
        value = _scalar(node)
        if not isinstance(value, str):
            self._document.written[place] = node.value
        if isinstance(value, float) and node.tag == "tag:yaml.org,2002:str":
            self._document.texts_elsewhere.append(place)
        return value

    def _mapping(self, node: Any, place: Place, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise self._wrong("a key is a list or mapping", "a name", line)
            name = key.value
            if name == "<<":
                instead = "all keys written out, or an alias in place of the whole mapping"
                raise self._wrong("merge key '<<'", instead, line)
            if name in out:
                raise self._wrong(f"key '{name}' appears twice", "unique keys", line)
            self._document.lines.setdefault((*place, name), line)
            out[name] = self.convert(value, (*place, name), depth + 1)
        return out

    def _wrong(self, problem: str, expected: str, line: int) -> DescriptionError:
        return DescriptionError(
            problem, source=self._document.source, line=line, expected=expected
        )


def _scalar(node: Any) -> str | float | bool | None:
    text: str = node.value
    if node.style:
        return text
    # PyYAML (YAML 1.1) takes 1e-3 for a text and 1:30 for the number 90: decide here
    if _NUMBER.fullmatch(text):
        return float(text)
    if text in ("true", "True", "false", "False"):
        return text.lower() == "true"
    return None if text in ("", "~", "null") else text


class Field:
    """A value in a document, with accessors that check.

    Args:
        document: Where it is.
        place: Keys and indices that lead to it.
        value: The plain value.

    All accessors raise `DescriptionError` with file, line, trajectory, key and what is accepted.
    """

    def __init__(self, document: Document, place: Place, value: Any) -> None:
        self.document = document
        self.place = place
        self.value = value

    def error(self, problem: str, expected: str | None = None) -> DescriptionError:
        """Return an error that names this place."""
        return DescriptionError(
            problem,
            source=self.document.source,
            line=self.document.line(self.place),
            element=describe(self.place),
            expected=expected,
        )

    def has(self, key: str) -> bool:
        """Tell whether a mapping has a key."""
        return isinstance(self.value, Mapping) and key in self.value

    def __getitem__(self, key: str) -> Field:
        """Return the value of a key that is required."""
        self.mapping()
        if key not in self.value:
            raise self.error(f"has no '{key}'", f"the key '{key}'")
        return Field(self.document, (*self.place, key), self.value[key])

    def mapping(self, allowed: Iterable[str] | None = None) -> list[str]:
        """Check that this is a mapping (with no keys but ``allowed``) and return its keys."""
        if not isinstance(self.value, Mapping):
            raise self.error(f"is {_show(self.value)}", "a mapping of keys and values")
        keys = [str(key) for key in self.value]
        if allowed is not None:
            known = list(allowed)
            for key in keys:
                if key not in known:
                    close = get_close_matches(key, known, n=1)
                    hint = f", did you mean '{close[0]}'?" if close else ""
                    raise Field(self.document, (*self.place, key), None).error(
                        f"unknown key '{key}'{hint}", f"one of {', '.join(known)}"
                    )
        return keys

    def items(self, *, at_least: int = 1) -> list[Field]:
        """Return the elements of a list."""
        value = self.value.tolist() if isinstance(self.value, np.ndarray) else self.value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.error(f"is {_show(value)}", "a list")
        if len(value) < at_least:
            raise self.error(f"has {len(value)} elements", f"at least {at_least}")
        return [Field(self.document, (*self.place, i), item) for i, item in enumerate(value)]

    def number(self, *, above: float = -math.inf, at_least: float = -math.inf) -> float:
        """Return a finite number below `LARGEST` in magnitude."""
        value = self.value
        wanted = "a finite number"
        if above > -math.inf:
            wanted += f" > {above:g}"
        if at_least > -math.inf:
            wanted += f" >= {at_least:g}"
        numeric = isinstance(value, int | float | np.integer | np.floating)
        if isinstance(value, bool) or not numeric:
            raise self.error(f"is {_show(value)}", wanted)
        try:
            out = float(value)
        except OverflowError:
            out = math.inf
        if math.isfinite(out) and abs(out) >= LARGEST:
            raise self.error(f"is {out:g}", f"a magnitude below {LARGEST:g}")
        if not math.isfinite(out) or out <= above or out < at_least:
            raise self.error(f"is {out:g}", wanted)
        return out

    def whole(self, *, at_least: int = 0, at_most: int | None = None) -> int:
        """Return a whole number within bounds."""
        out = self.number()
        if out != int(out) or out < at_least or (at_most is not None and out > at_most):
            bounds = f">= {at_least}" if at_most is None else f"{at_least} .. {at_most}"
            # 15 digits: what is one above a bound must not look like the bound
            raise self.error(f"is {out:.15g}", f"a whole number {bounds}")
        return int(out)

    def text(self, choices: Iterable[str] | None = None) -> str:
        """Return a text, one of ``choices`` if given."""
        if not isinstance(self.value, str) or not self.value:
            raise self._no_text(None if choices is None else list(choices))
        if choices is not None:
            known = list(choices)
            if self.value not in known:
                close = get_close_matches(self.value, known, n=1)
                hint = f", did you mean '{close[0]}'?" if close else ""
                raise self.error(f"is {_show(self.value)}{hint}", f"one of {', '.join(known)}")
        return self.value

    def _no_text(self, choices: Sequence[str] | None) -> DescriptionError:
        written = self.document.written.get(self.place)
        if choices is not None and written in choices:
            return self.error(f"is {written} without quotes, no text", f'"{written}"')
        wanted = "a text" if choices is None else f"one of {', '.join(choices)}"
        return self.error(f"is {written or _show(self.value)}", wanted)

    def label(self) -> str:
        """Return a text, or what is written where YAML makes something else of a name: ``007``."""
        written = self.document.written.get(self.place)
        return written or self.text()

    def name(self) -> str:
        """Return a text that is a name (`cards_core.names`)."""
        text = self.text()
        if problem := name_problem(text):
            raise self.error(f"is {_show(text)}: {problem}", EXPECTED)
        return text

    def flag(self) -> bool:
        """Return true or false."""
        if not isinstance(self.value, bool):
            raise self.error(f"is {_show(self.value)}", "true or false")
        return self.value

    def vector(self, size: int | None = None, what: str = "") -> Array:
        """Return a list of finite numbers; ``what`` says what the ``size`` numbers stand for."""
        values = [item.number() for item in self.items()]
        if size is not None and len(values) != size:
            wanted = f"{size}: {what}" if what else f"{size}"
            raise self.error(f"has {len(values)} values", wanted)
        return np.array(values)


def describe(place: Place) -> str | None:
    """Return a place in words, e.g. ``trajectory 'flower', points[2].time``."""
    if not place:
        return None
    rest: Place = place
    words = ""
    if place[0] == "trajectories" and len(place) > 1:
        words = f"trajectory '{place[1]}'"
        rest = place[2:]
    keys = ""
    for step in rest:
        keys += f"[{step}]" if isinstance(step, int) else f".{step}" if keys else step
    return ", ".join(part for part in (words, keys) if part)


def _show(value: Any) -> str:
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple | np.ndarray):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value!r}"[:60]
