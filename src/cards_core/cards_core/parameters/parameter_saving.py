"""Write parameters of a node into its parameter file, whose comments and order stay."""

from __future__ import annotations

import datetime
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cards_core.errors import CardsError, DescriptionError
from cards_core.files import replacing
from cards_core.parameters.parameter_file import PARAMETER_KEY, own_parameters, read_file

SHARED = "standard"
"""Folder of files that all robots share."""


def parameter_file_of(arguments: Sequence[str]) -> Path | None:
    """Return the first parameter file on the command line of a node; None without one.

    Launch files put parameters of their own into further, temporary ones.
    """
    given = iter(arguments)
    for token in given:
        if token == "--params-file":
            return Path(next(given, ""))
    return None


def save_parameters(path: str | Path, node: str, values: Mapping[str, Any]) -> Path:
    """Set parameters in the section of a node, and keep the file as it was beside it.

    Only the values change: those that are there are replaced where they stand, others come first
    in the section, which is added at the end if there is none.

    Args:
        path: YAML file keyed by node name.
        node: Node name without a leading slash.
        values: By name: numbers, booleans, texts, or lists of numbers.

    Returns:
        The copy of the file before, ``NAME.TIME.bak``.

    Raises:
        DescriptionError: The file is no parameter file.
        CardsError: It cannot be written, or is written in a way in which a value cannot be
            replaced, with anchors for example; it has not been changed then.
    """
    file = Path(path)
    if file.parent.name == SHARED:
        raise CardsError(
            f"not saved in {file}: all robots share it (expected: a parameter file of the robot, "
            "config/ROBOT.yaml or parameters.yaml beside its SDF)"
        )
    before = read_file(file)
    # as it is: no translation of the ends of lines
    text = file.read_bytes().decode("utf-8")
    changed = text
    for name, value in values.items():
        changed = _with(changed, node, name, _written(name, value))
    stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    backup = file.with_name(f"{file.name}.{stamp}.bak")
    try:
        with replacing(file) as draft:
            draft.write_bytes(changed.encode("utf-8"))
            _check(before, draft, node, values)
            shutil.copy2(file, backup)
    except OSError as error:
        raise CardsError(
            f"{file} cannot be written: {error.strerror or error} (expected: a file of yours)"
        ) from error
    return backup


def _check(before: list[Any], draft: Path, node: str, values: Mapping[str, Any]) -> None:
    """Refuse a draft that does not say what was meant, and nothing else."""
    problem = ""
    try:
        own = own_parameters(draft, node)
        if {name: own.get(name) for name in values} != dict(values):
            problem = f"the values of '{node}' cannot be replaced there"
        after = {one.name: dict(one.values) for one in read_file(draft)}
        for section in before:
            was, now = dict(section.values), after.get(section.name, {})
            if section.node == node:
                was, now = ({k: v for k, v in d.items() if k not in values} for d in (was, now))
            if was != now:
                problem = f"that would change '{section.name}' too"
    except DescriptionError as error:
        problem = str(error)
    if problem:
        raise CardsError(f"not saved: {problem} (expected: plain YAML, one section for the node)")


def _written(name: str, value: Any) -> str:
    """Return a value in one line of YAML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_written(name, one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float) and math.isfinite(value):
        digits, e, power = repr(value).partition("e")
        return f"{digits}{'' if '.' in digits else '.0'}{e}{power}"  # 1e16 is a text in YAML
    if isinstance(value, str):
        return str(yaml.safe_dump(value, default_style='"')).strip()
    raise CardsError(
        f"'{name}' not saved: {value!r:.60} (expected: numbers, true, false or a text)"
    )


def _with(text: str, node: str, name: str, value: str) -> str:
    """Return a file with one parameter set."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    section = None if root is None else _child(root, node) or _child(root, f"/{node}")
    parameters = None if section is None else _child(section[1], PARAMETER_KEY)
    if parameters is None or not isinstance(parameters[1], yaml.MappingNode):
        if section is not None:
            raise CardsError(f"not saved: '{node}' has no '{PARAMETER_KEY}' (expected: some)")
        gap = "" if text.endswith("\n") or not text else "\n"
        return f"{text}{gap}\n{node}:\n  {PARAMETER_KEY}:\n    {name}: {value}\n"
    found = _child(parameters[1], name)
    if found is None:
        first = parameters[1].value[0][0].start_mark
        if parameters[1].flow_style:
            return f"{text[: first.index]}{name}: {value}, {text[first.index :]}"
        return f"{text[: first.index]}{name}: {value}\n{' ' * first.column}{text[first.index :]}"
    begin, end = found[1].start_mark.index, found[1].end_mark.index
    if isinstance(found[1], yaml.CollectionNode) and not found[1].flow_style:
        # a block ends where the next token begins: the blanks before that stay
        rest = text[begin:end]
        tail = rest[len(rest.rstrip()) :]
        begin = found[0].end_mark.index
        return f"{text[:begin]}: {value}{tail}{text[end:]}"
    return f"{text[:begin]}{value}{text[end:]}"


def _child(node: yaml.Node, key: str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return key and value of an entry; None without it."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return next(((k, v) for k, v in node.value if k.value == key), None)
