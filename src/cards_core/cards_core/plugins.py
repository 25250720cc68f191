"""What other installed packages offer by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cards_core.errors import CardsError


def offered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name; nothing is loaded."""
    return {entry.name: entry for entry in entry_points(group=group)}


def load_offered(noun: str, entry: EntryPoint, problem: Callable[[Any], str]) -> Any:
    """Return what an entry point names.

    Args:
        noun: What it should be, for messages.
        entry: The entry point.
        problem: Returns what keeps the loaded object from being one; empty if nothing does.

    Raises:
        CardsError: It cannot be loaded, or there is a problem.
    """
    where = f"{noun} '{entry.name}' ({entry.value})"
    try:
        found = entry.load()
    except Exception as error:
        raise CardsError(f"{where} cannot be loaded: {type(error).__name__}: {error}") from error
    if text := problem(found):
        raise CardsError(f"{where} {text}")
    return found
