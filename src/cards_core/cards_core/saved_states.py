"""States of a robot by name, in memory and, if wanted, in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cards_core.errors import CardsError, DescriptionError, UnknownNameError
from cards_core.files import write_atomically
from cards_core.foreign_files import read_json

LONGEST_NAME = 64

State = Mapping[str, Any]
"""A state; with a file: objects, arrays, texts and numbers of JSON."""


class SavedStates:
    """States by name.

    Args:
        robot: Name of the robot; a file of another one is refused.
        file: Where they are kept; read now, written at each change. None: in memory only.

    Raises:
        CardsError: The file is damaged, or of another robot.
    """

    def __init__(self, robot: str, file: Path | None = None) -> None:
        self._robot = robot
        self._file = file
        self._states: dict[str, State] = {}
        if file is not None and file.exists():
            self._states = self._read(file)

    def _read(self, file: Path) -> dict[str, State]:
        try:
            content = read_json(file)
            robot, states = content["robot"], dict(content["states"])
        except (DescriptionError, ValueError, TypeError, KeyError) as error:
            raise CardsError(
                f"{file}: no saved states ({error!r}) "
                '(expected: {"robot": name, "states": {name: state}}, or no such file)'
            ) from error
        if robot != self._robot:
            raise CardsError(f"{file}: states of robot '{robot}' (expected: '{self._robot}')")
        return states

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the order in which they were saved."""
        return tuple(self._states)

    def __getitem__(self, name: str) -> State:
        """Return a state. Raises `UnknownNameError`."""
        try:
            return self._states[name]
        except KeyError:
            raise UnknownNameError("saved state", name, self._states) from None

    def save(self, name: str, state: State) -> None:
        """Save a state, in place of one of the same name.

        Raises:
            CardsError: The name is empty, too long or not printable.
            OSError: The file cannot be written; the state is kept in memory.
        """
        if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
            raise CardsError(
                f"state name {name!r} (expected: 1 to {LONGEST_NAME} printable characters)"
            )
        self._states[name] = state
        self._write()

    def delete(self, name: str) -> None:
        """Forget a state. Raises `UnknownNameError`, or OSError as `save`."""
        self[name]
        del self._states[name]
        self._write()

    def text(self) -> str:
        """Return all states as one JSON object by name."""
        return json.dumps(self._states, allow_nan=False)

    def _write(self) -> None:
        if self._file is None:
            return
        content = {"robot": self._robot, "states": self._states}
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps(content, allow_nan=False) + "\n")
