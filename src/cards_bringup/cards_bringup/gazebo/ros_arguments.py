"""The ROS arguments of a command line, read without ROS.

The process that starts Gazebo is a node's executable for everybody who starts nodes, but the node
lives inside Gazebo: parameters that concern the world are read here, the rest is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from cards_bringup.parameters import read_sections
from cards_core.errors import CardsError


@dataclass(frozen=True)
class RosArguments:
    """What stands behind ``--ros-args``.

    Attributes:
        node: Node name, from ``-r __node:=``.
        namespace: From ``-r __ns:=``, without slashes at its ends.
        log_level: From ``--log-level``; empty if not given.
        parameters: Of this node, from files and ``-p``.
        rest: All other tokens, remappings included, as they were.
    """

    node: str
    namespace: str = ""
    log_level: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    rest: tuple[str, ...] = ()


def read_ros_arguments(arguments: Sequence[str], node: str) -> RosArguments:
    """Read a command line.

    Args:
        arguments: Without the program.
        node: Node name where the arguments give none.

    Raises:
        CardsError: A token without its value, a parameter that is no ``name:=value``, a file that
            cannot be read, or an argument outside ``--ros-args``.
    """
    tokens = _pairs(arguments)
    namespace, log_level = "", ""
    rest: list[str] = []
    for flag, value in tokens:
        if flag in ("-r", "--remap"):
            rule, _, target = value.partition(":=")
            if rule == "__node":
                node = target
            elif rule == "__ns":
                namespace = target.strip("/")
                if not namespace:
                    continue  # `/` is for nodes that have none; it would undo one of their own
            rest += [flag, value]
        elif flag == "--log-level":
            log_level = value
            rest += [flag, value]
        elif flag not in ("-p", "--param", "--params-file"):
            rest += [flag, value] if value else [flag]
    # as in ROS: a section counts if it has the node's full name, the section that was named first
    # is read first, and the last one wins, not the one with more in its name
    full = f"{namespace}/{node}" if namespace else node
    names = ["/**", full, f"/{full}"]
    sections: dict[str, dict[str, Any]] = {}
    for flag, value in tokens:
        if flag == "--params-file":
            for name, values in read_sections(value, names).items():
                sections.setdefault(_section(name), {}).update(values)
        elif flag in ("-p", "--param"):
            meant, name, given = _assignment(value)
            if meant in names:
                sections.setdefault(_section(meant), {})[name] = given
    parameters: dict[str, Any] = {}
    for values in sections.values():
        parameters |= values
    return RosArguments(node, namespace, log_level, parameters, tuple(rest))


_WITH_VALUE = ("-r", "--remap", "-p", "--param", "--params-file", "--log-level", "-e", "--enclave")


def _pairs(arguments: Sequence[str]) -> list[tuple[str, str]]:
    out = []
    inside = False
    given = iter(arguments)
    for token in given:
        if token == "--ros-args":
            inside = True
        elif token == "--" and inside:
            inside = False
        elif not inside:
            raise CardsError(f"argument '{token}' (expected: --ros-args, then ROS arguments)")
        elif token in _WITH_VALUE:
            value = next(given, None)
            if value is None:
                raise CardsError(f"{token} without a value")
            out.append((token, value))
        else:
            out.append((token, ""))
    return out


def _section(name: str) -> str:
    return name if name == "/**" else name.lstrip("/")


def _assignment(text: str) -> tuple[str, str, Any]:
    """Return section, name and value of ``node:name:=value``, where the node may be left out."""
    target, separator, value = text.partition(":=")
    node, _, name = target.rpartition(":")
    if not separator or not name:
        raise CardsError(f"-p {text} (expected: name:=value)")
    try:
        return node or "/**", name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise CardsError(f"-p {text}: the value is not YAML") from error
