"""What the forms of the editor share: fields of numbers, groups of controls that follow.

What is typed is applied by *Apply* or Enter, as one step that can be undone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import viser

from cards_core.errors import ParameterError
from cards_viz.editor.session import EditorSession
from cards_viz.pages.widgets import Guard

NONE = "-"
"""Of a list: nothing is selected."""


def number_of(text: str, name: str) -> float:
    """Return the number that a text says. Raises `ParameterError`, which names the field."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(f"{name} is '{text}' (expected: a number)")
    return value


def shown(value: float | None) -> str:
    """Return a number as it stands in a field."""
    return "" if value is None else f"{value:z.9g}"


class FormGroup:
    """Controls that are made anew when their structure changes, else only follow values."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        self._gui, self._session, self._run = gui, session, run
        self._folder = gui.add_folder(None)
        self._parts: list[Any] = []
        self._key: Any = None
        self._told: list[str] = []

    def _rebuilt(self, key: Any) -> bool:
        """Return whether the controls have to be made anew; the old ones are gone then."""
        if key == self._key:
            return False
        self._key, self._told = key, []
        for part in reversed(self._parts):  # what is in a folder before the folder
            part.remove()
        self._parts = []
        return True

    def _tell(self, fields: Sequence[tuple[Any, str]]) -> None:
        """Write values into fields, if they are others than last time.

        What somebody types meanwhile stays: it is applied later, or not.
        """
        texts = [text for _, text in fields]
        if texts != self._told:
            self._told = texts
            for field, text in fields:
                field.value = text

    def _keep(self, part: Any) -> Any:
        self._parts.append(part)
        return part

    def _user(self, control: Any, action: Callable[[Any], None]) -> Any:
        """Let a control act when a user has moved it, not when it follows."""

        def moved(event: Any) -> None:
            if event.client is not None:
                self._run(lambda: action(event.target.value))

        control.on_update(moved)
        return self._keep(control)

    def _buttons(self, label: str, actions: dict[str, Callable[[], None]]) -> None:
        group = self._keep(self._gui.add_button_group(label, list(actions)))
        group.on_click(lambda event: self._run(actions[event.target.value]))


def note(text: str) -> str:
    """Return a line of help."""
    return f'<div style="padding:0 12px;font-size:12px;color:#555">{text}</div>'
