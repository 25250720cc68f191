"""Where the files are that users edit: config, launch, worlds, models."""

from __future__ import annotations

import os
from pathlib import Path

from cards_core.errors import CardsError, UnknownNameError

PACKAGE = "cards_bringup"


def checkout() -> Path | None:
    """Return the top folder of the repository if the code runs from one."""
    # src/cards_bringup/cards_bringup/resources.py -> the checkout
    top = Path(__file__).resolve().parents[3]
    return top if (top / "config").is_dir() and (top / "src" / PACKAGE).is_dir() else None


def share_folder() -> Path:
    """Return the folder with ``config``, ``launch``, ``worlds`` and ``models``.

    The checkout if the code runs from one, else ``share/cards_bringup`` of the install prefix.

    Raises:
        CardsError: Neither is there.
    """
    if (top := checkout()) is not None:
        return top
    prefixes = [Path(p) for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    for prefix in prefixes:
        if (prefix / "share" / PACKAGE / "config").is_dir():
            return prefix / "share" / PACKAGE
    raise CardsError(
        f"no share folder of {PACKAGE} found; source install/setup.bash or run from the repository"
    )


def runs_folder() -> Path:
    """Return where results go that were not told where: ``runs/`` of the current folder.

    As for every other path on a command line, what counts is where the command was given, and not
    where CARDS is installed.
    """
    return Path("runs")


def find_file(name: str | Path, *, folder: str, suffix: str = "") -> Path:
    """Return a file of one of our folders, by name or path.

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
    home = share_folder() / folder
    for candidate in (home / path, home / f"{name}{suffix}"):
        if candidate.is_file():
            return candidate
    known = sorted(file.name.removesuffix(suffix) for file in home.glob(f"*{suffix}"))
    raise UnknownNameError(f"file in {home}", str(name), known)
