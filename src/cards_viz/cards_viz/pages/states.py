"""The panel *States* of all pages: states of a robot by name, saved and restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import viser

from cards_viz.pages.widgets import Guard


class StateCommands(Protocol):
    """What the panel does; commands are refused as others of their page."""

    def save(self, name: str) -> None:
        """Save the present state under a name."""
        ...

    def load(self, name: str) -> None:
        """Restore a saved state."""
        ...

    def delete(self, name: str) -> None:
        """Forget a saved state."""
        ...


class StatesPanel:
    """Saved states by name.

    Args:
        gui: Where to add it.
        commands: What the buttons do.
        run: How.
    """

    def __init__(self, gui: viser.GuiApi, commands: StateCommands, run: Guard) -> None:
        self._names: tuple[str, ...] = ()
        self._reason = ""
        self._note = gui.add_markdown("", visible=False)
        self._name = gui.add_text("name", "state 1", hint="Name of the state to save")
        self._save = gui.add_button("Save", icon=viser.Icon.DEVICE_FLOPPY, color="blue")
        self._choice = gui.add_dropdown("saved", ("–",), disabled=True)
        self._load = gui.add_button("Restore", icon=viser.Icon.RESTORE, disabled=True)
        self._delete = gui.add_button("Delete", icon=viser.Icon.TRASH, color="gray", disabled=True)

        def keep() -> None:
            text = self._name.value.strip() or "state"
            commands.save(text)
            self._name.value = next_name(text)

        self._save.on_click(lambda _: run(keep))
        self._load.on_click(lambda _: run(lambda: commands.load(self._choice.value)))
        self._delete.on_click(lambda _: run(lambda: commands.delete(self._choice.value)))

    def draw(self, names: Sequence[str], reason: str = "") -> None:
        """Show the names of the saved states.

        Args:
            names: In the order in which they were saved.
            reason: Why states cannot be saved; empty: they can.
        """
        if reason != self._reason:
            self._reason = reason
            self._note.content, self._note.visible = f"_{reason}_", bool(reason)
            self._name.disabled = self._save.disabled = bool(reason)
        if tuple(names) == self._names:
            return
        added = [name for name in names if name not in self._names]
        self._names = tuple(names)
        self._choice.options = self._names or ("–",)
        if added:
            self._choice.value = added[-1]
        for control in (self._choice, self._load, self._delete):
            control.disabled = not names


def next_name(name: str) -> str:
    """Return a name with its number increased by one, ``start`` -> ``start 2``."""
    stem, _, number = name.rpartition(" ")
    return f"{stem} {int(number) + 1}" if stem and number.isdigit() else f"{name} 2"
