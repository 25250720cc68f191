"""Read ROS 2 parameter files without ROS, with the precedence that ROS has."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from cards_core.errors import DescriptionError

PARAMETER_KEY = "ros__parameters"


def load_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters of one node, nested keys joined by dots.

    ``/**`` applies to every node, the node's own section wins.

    Args:
        path: YAML file keyed by node name.
        node: Node name without a leading slash.

    Raises:
        DescriptionError: The file cannot be read or is not a parameter file.
    """
    sections = read_sections(path, ["/**", node, f"/{node}"])
    merged: dict[str, Any] = {}
    for name in ("/**", node, f"/{node}"):
        merged |= sections.get(name, {})
    return merged


def read_sections(path: str | Path, names: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return those sections of a parameter file that have one of the names, in the file's order.

    Raises:
        DescriptionError: As `load_parameters`.
    """
    source = str(path)
    try:
        document = yaml.safe_load(Path(path).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"cannot be read: {error}", source=source) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = None if mark is None else mark.line + 1
        problem = getattr(error, "problem", None) or str(error)
        raise DescriptionError(f"not valid YAML: {problem}", source=source, line=line) from error
    if not isinstance(document, dict):
        raise DescriptionError(
            "no nodes in it", source=source, expected=f"'<node>: {{{PARAMETER_KEY}: ...}}'"
        )
    found: dict[str, dict[str, Any]] = {}
    for name, section in document.items():
        if name not in names or section is None:
            continue
        if not isinstance(section, dict) or not isinstance(section.get(PARAMETER_KEY), dict):
            raise DescriptionError(
                "section without parameters",
                source=source,
                element=f"node '{name}'",
                expected=f"'{PARAMETER_KEY}:' followed by names and values",
            )
        found[name] = _flat(section[PARAMETER_KEY])
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            out.update(_flat(value, f"{name}."))
        else:
            out[name] = value
    return out
