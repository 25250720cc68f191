"""``./cards demo --set NODE.NAME=VALUE``: single parameters in place of those of the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cards_core.errors import CardsError, UnknownNameError
from cards_core.parameters.parameter_file import given_value

NodeParameters = dict[str, dict[str, Any]]
"""Full name of a node to its parameters."""


def settings(texts: Sequence[str], nodes: Iterable[str]) -> NodeParameters:
    """Read what ``--set`` was given.

    Args:
        texts: ``NODE.NAME=VALUE`` each, the value in YAML; NODE is a full name, or the last part
            of it where only one node has that.
        nodes: Full names of all nodes of the run.

    Raises:
        CardsError: One has another form, is given twice, or names more than one node.
        UnknownNameError: No such node.
    """
    out: NodeParameters = {}
    everything = list(nodes)
    for text in texts:
        target, separator, value = text.partition("=")
        node, dot, name = target.partition(".")
        if not (separator and dot and node and name):
            raise CardsError(f"--set {text} (expected: NODE.NAME=VALUE, e.g. simulator.dt=0.0005)")
        node = node.strip("/")
        found = [full for full in everything if node in (full, full.rpartition("/")[2])]
        if not found:
            raise UnknownNameError("node", node, everything)
        if len(found) > 1:
            raise CardsError(f"--set {text}: {len(found)} nodes (expected: {' or '.join(found)})")
        content = given_value(value, f"--set {text}")
        values = out.setdefault(found[0], {})
        if name in values:
            raise CardsError(f"--set {text}: {node}.{name} is given twice (expected: once)")
        values[name] = content
    return out


def merge(overrides: NodeParameters, given: NodeParameters) -> None:
    """Add what was given to what the demo tells its nodes.

    Raises:
        CardsError: The demo sets such a parameter itself.
    """
    for node, values in given.items():
        own = overrides.setdefault(node, {})
        for name, value in values.items():
            if name in own:
                raise CardsError(
                    f"--set {node}.{name}: the demo sets it itself (expected: an option such as "
                    "--duration, --out, --port, see --help)"
                )
            own[name] = value
