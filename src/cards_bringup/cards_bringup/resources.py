"""Where files are found that users edit, and where runs are stored."""

from __future__ import annotations

from pathlib import Path

from cards_core.errors import UnknownNameError
from cards_core.shared_files import shared_folder


def runs_folder() -> Path:
    """Return the default folder of results: ``runs/`` of the current folder.

    As for every other path on a command line, what counts is where the command was given, and not
    where CARDS is installed.
    """
    return Path("runs")


def find_file(name: str | Path, *, folder: str, suffix: str = "") -> Path:
    """Return a file of one of the shared folders, by name or path.

    Args:
        name: A path, or the name of a file in the folder, with or without its suffix.
        folder: ``config``, ``launch``, ``worlds`` or ``models``.
        suffix: Suffix that may be left out, e.g. ``.yaml``.

    Raises:
        UnknownNameError: No such file; the message lists those there are.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path
    home = shared_folder() / folder
    for candidate in (home / path, home / f"{name}{suffix}"):
        if candidate.is_file():
            return candidate
    known = sorted(file.name.removesuffix(suffix) for file in home.glob(f"*{suffix}"))
    raise UnknownNameError(f"file in {home}", str(name), known)
