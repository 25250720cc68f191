"""Read ROS 2 parameter files without ROS, with the precedence that ROS has.

A key of the file is the full name of a node, without namespaces or in nested mappings, or a
pattern: ``*`` stands for one part of a name, ``**`` for any number of them. ``/**`` is every node.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from cards_core.errors import CardsError, DescriptionError
from cards_core.foreign_files import read_text
from cards_core.yaml_fields import MAX_BYTES, Document, Place, parse_yaml, yaml_value

PARAMETER_KEY = "ros__parameters"

EVERY_NODE = "/**"

_STANDARD = ("use_sim_time", "start_type_description_service")
_STANDARD_PREFIX = "qos_overrides."

IN_GAZEBO: Mapping[str, tuple[str, ...]] = {
    "simulator": ("world", "headless", "physics_engine"),
    "rod_solver": (
        "world",
        "headless",
        "physics_engine",
        "mode",
        "dt",
        "speed",
        "clock_rate",
        "coupling",
        "base_joints",
        "joint_speed",
        "theta",
    ),
}
"""Parameters that only the node of this name in Gazebo has; both read the same section."""


@dataclass(frozen=True)
class Section:
    """Parameters of one key of a parameter file.

    Attributes:
        name: The key; nested ones joined by ``/``.
        values: Parameters by name, nested keys joined by dots.
        lines: Line of each of them.
        source: The file.
        line: Line of the key.
        typed: Given on the command line.
    """

    name: str
    values: Mapping[str, Any]
    lines: Mapping[str, int | None] = field(default_factory=dict)
    source: str = ""
    line: int | None = None
    typed: bool = False

    @property
    def node(self) -> str:
        """Last part of the key: the name of a node, or ``*`` or ``**``."""
        return self.name.rpartition("/")[2]

    @property
    def any_node(self) -> bool:
        """Whether the section is for nodes of any name, so that not all need all of it."""
        return "*" in self.node

    def concerns(self, full_name: str) -> bool:
        """Tell whether ROS gives these parameters to a node, e.g. ``/left_arm/simulator``."""
        return _pattern(self.name).fullmatch("/" + full_name.strip("/")) is not None


def is_standard(name: str) -> bool:
    """Tell whether a parameter is one that every node of ROS has or may have."""
    return name in _STANDARD or name.startswith(_STANDARD_PREFIX)


def load_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters of one node, nested keys joined by dots.

    ``/**`` applies to every node, the node's own section wins.

    Args:
        path: YAML file keyed by node name.
        node: Node name without a leading slash.

    Raises:
        DescriptionError: The file cannot be read or is not a parameter file.
    """
    return {**_merged(path, node, any_node=True), **own_parameters(path, node)}


def own_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Like `load_parameters`, without what applies to nodes of any name."""
    return _merged(path, node, any_node=False)


def _merged(path: str | Path, node: str, *, any_node: bool) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for section in read_file(path):
        if section.any_node is any_node and section.concerns(node):
            out |= section.values
    return out


def read_file(path: str | Path) -> list[Section]:
    """Return all sections of a parameter file, in the file's order.

    Raises:
        DescriptionError: The file cannot be read or is not a parameter file; names the line.
    """
    source = str(path)
    text = read_text(path, "a parameter file in UTF-8", most=MAX_BYTES)
    places = parse_yaml(text, source)  # knows lines, and refuses a key that is there twice
    try:
        values = yaml_value(text)  # knows integers from floats, as ROS does
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        raise DescriptionError(
            f"not valid YAML: {getattr(error, 'problem', None) or error}",
            source=source,
            line=None if mark is None else mark.line + 1,
        ) from error
    if not isinstance(values, dict):
        raise DescriptionError(
            "no nodes in it", source=source, expected=f"'<node>: {{{PARAMETER_KEY}: ...}}'"
        )
    out: list[Section] = []
    _collect(values, (), "", places, out)
    return out


def _collect(
    values: Mapping[Any, Any], place: Place, prefix: str, document: Document, out: list[Section]
) -> None:
    for key, content in values.items():
        here = (*place, str(key))
        name = f"{prefix}{key}"
        if content is None:
            continue
        line = document.line(here)
        if not isinstance(content, dict) or not content:
            raise _no_parameters(name, document.source, line)
        if PARAMETER_KEY not in content:
            if not all(isinstance(inner, dict) for inner in content.values()):
                raise _no_parameters(name, document.source, line)
            _collect(content, here, f"{name.rstrip('/')}/", document, out)
            continue
        own = content[PARAMETER_KEY]
        others = [str(other) for other in content if other != PARAMETER_KEY]
        if not isinstance(own, dict) or others:
            where = here if not others else (*here, others[0])
            raise _no_parameters(name, document.source, document.line(where))
        flat = dict(_flat(own, (*here, PARAMETER_KEY)))
        out.append(
            Section(
                name,
                {key: value for key, (value, _) in flat.items()},
                {key: document.line(at) for key, (_, at) in flat.items()},
                document.source,
                line,
            )
        )


def _no_parameters(name: str, source: str, line: int | None) -> DescriptionError:
    return DescriptionError(
        "section without parameters",
        source=source,
        line=line,
        element=f"node '{name}'",
        expected=f"'{PARAMETER_KEY}:' followed by names and values",
    )


def _flat(
    values: Mapping[Any, Any], place: Place, prefix: str = ""
) -> Iterable[tuple[str, tuple[Any, Place]]]:
    for key, value in values.items():
        name, here = f"{prefix}{key}", (*place, str(key))
        if isinstance(value, dict):
            yield from _flat(value, here, f"{name}.")
        else:
            yield name, (value, here)


def _pattern(name: str) -> re.Pattern[str]:
    """Return the full names that a key of a parameter file stands for."""
    parts = []
    for part in name.strip("/").split("/"):
        words = {"**": r"(/[^/]+)*", "*": r"/[^/]+"}
        parts.append(words.get(part, "/" + re.escape(part)))
    return re.compile("".join(parts))


def check_nodes(path: str | Path, nodes: Iterable[str]) -> None:
    """Refuse a parameter file with a section for a node that there is not.

    Namespaces do not count: a launch may move the nodes.

    Args:
        path: The file.
        nodes: Names of the nodes that there may be.

    Raises:
        DescriptionError: Names file and line, and the node that may be meant.
    """
    known = list(dict.fromkeys(nodes))
    for section in read_file(path):
        if not section.any_node and section.node not in known:
            raise DescriptionError(
                f"there is no such node{_meant(section.node, known)}",
                source=section.source,
                line=section.line,
                element=f"node '{section.name}'",
                expected=f"one of {', '.join(known)}, or {EVERY_NODE}",
            )


def command_line_sections(arguments: Sequence[str]) -> list[Section]:
    """Return the parameters of a command line: those of its files, and of every ``-p``.

    What ``-p`` sets is a section whose source is the option itself. It is never one for nodes of
    any name, because it was typed for the nodes of this process.

    Args:
        arguments: Of a process; counted is what stands behind ``--ros-args``.

    Raises:
        DescriptionError: A file cannot be read or is no parameter file.
        CardsError: A ``-p`` without ``name:=value``.
    """
    out: list[Section] = []
    inside = False
    given = iter(arguments)
    for token in given:
        if token == "--ros-args":
            inside = True
        elif token == "--" and inside:
            inside = False
        elif inside and token == "--params-file":
            out += read_file(next(given, ""))
        elif inside and token in ("-p", "--param"):
            out.append(_assignment(next(given, "")))
    return out


def _assignment(text: str) -> Section:
    """Return the section of ``node:name:=value``, where the node may be left out."""
    target, separator, value = text.partition(":=")
    node, _, name = target.rpartition(":")
    if not separator or not name:
        raise CardsError(f"-p {text} (expected: name:=value)")
    content = given_value(value, f"-p {text}")
    return Section(node or EVERY_NODE, {name: content}, source=f"-p {text}", typed=True)


def given_value(text: str, option: str) -> Any:
    """Return the value of a parameter that was given on a command line, in YAML.

    Args:
        text: The value.
        option: The whole option, for the message.

    Raises:
        CardsError: It is not YAML.
    """
    try:
        return yaml_value(text)
    except (yaml.YAMLError, ValueError) as error:
        raise CardsError(f"{option}: the value is not YAML") from error


def check_parameters(
    node: str, names: Iterable[str], known: Iterable[str], sections: Iterable[Section]
) -> None:
    """Refuse parameters that a node was given and does not have.

    Those of ROS itself may be given to every node. Those of sections for nodes of any name may be
    meant for others.

    Args:
        node: Full name of the node.
        names: Of the parameters that it was given.
        known: Of those that it has.
        sections: Where they may have been given.

    Raises:
        DescriptionError: Names file, line and the parameter that may be meant.
    """
    declared = set(known)
    own = node.rpartition("/")[2]
    for name in names:
        if name in declared or is_standard(name):
            continue
        places = [one for one in sections if one.concerns(node) and name in one.values]
        meant = [one for one in places if one.typed or not one.any_node]
        if not meant and places:
            continue
        if name in IN_GAZEBO.get(own, ()) and not any(one.typed for one in meant):
            continue
        listed = sorted(one for one in declared if not is_standard(one))
        place = meant[-1] if meant else Section("", {}, source="parameter overrides")
        raise DescriptionError(
            f"no parameter '{name}'{_meant(name, listed)}",
            source=place.source,
            line=place.lines.get(name),
            element=f"node '{own}'",
            expected=f"one of {', '.join(listed)}",
        )


def where_given(node: str, name: str, value: Any, sections: Iterable[Section]) -> str:
    """Say where a node was given a value, as the beginning of a message.

    Args:
        node: Full name of the node.
        name: Of the parameter.
        value: What the node was given.
        sections: Where it may have been given.

    Returns:
        File and line, or option, and node, e.g. ``"a.yaml:3: node 'simulator': "``; empty if the
        value is in none of the sections.
    """
    found = [
        one
        for one in sections
        if one.concerns(node) and name in one.values and _shown(one.values[name]) == _shown(value)
    ]
    if not found:
        return ""
    # the same value in several: the section of the node itself wins over those of any name
    place = max(found, key=lambda one: not one.any_node)
    line = place.lines.get(name)
    source = place.source if line is None else f"{place.source}:{line}"
    return f"{source}: node '{node.rpartition('/')[2]}': "


def _shown(value: Any) -> str:
    # ROS hands over lists as arrays; texts because NaN is not equal to itself
    return repr(value if isinstance(value, str) or not isinstance(value, Iterable) else [*value])


def _meant(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
