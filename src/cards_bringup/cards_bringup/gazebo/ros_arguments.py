"""The ROS arguments of a command line, read without ROS.

The process that starts Gazebo is started as the executable of a node, but the node runs inside
Gazebo: parameters that concern the world are read here, the rest is passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cards_core.errors import CardsError
from cards_core.parameters.parameter_file import Section, command_line_sections


@dataclass(frozen=True)
class RosArguments:
    """What stands behind ``--ros-args``.

    Attributes:
        node: Node name, from ``-r __node:=``.
        namespace: From ``-r __ns:=``, without slashes at its ends.
        log_level: From ``--log-level``; empty if not given.
        parameters: Parameters of this node, from files and ``-p``.
        rest: All other tokens, remappings included, as they were.
        sections: Where the parameters come from.
    """

    node: str
    namespace: str = ""
    log_level: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    rest: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


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
    own = tuple(one for one in command_line_sections(arguments) if one.concerns(full))
    merged: dict[str, dict[str, Any]] = {}
    for section in own:
        merged.setdefault(section.name.lstrip("/"), {}).update(section.values)
    parameters: dict[str, Any] = {}
    for values in merged.values():
        parameters |= values
    return RosArguments(node, namespace, log_level, parameters, tuple(rest), own)


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
