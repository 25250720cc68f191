"""Where the files are that users edit: models, config, launch, worlds.

In a checkout they are its top-level folders. A workspace built by colcon has them in
``share/cards_bringup`` of its prefix, an installation by pip in ``cards_share`` beside our
packages.
"""

from __future__ import annotations

import os
from pathlib import Path

from cards_core.errors import CardsError, UnknownNameError

PACKAGE = "cards_bringup"
"""ROS package that installs them."""

# src/cards_core/cards_core/shared_files.py -> the checkout; site-packages -> cards_share
_CHECKOUT = Path(__file__).resolve().parents[3]
_INSTALLED = Path(__file__).resolve().parents[1] / "cards_share"


def checkout() -> Path | None:
    """Return the top folder of the repository if the code runs from one."""
    found = (_CHECKOUT / "config").is_dir() and (_CHECKOUT / "src" / PACKAGE).is_dir()
    return _CHECKOUT if found else None


def shared_folders(*below: str) -> list[Path]:
    """Return the existing shared folders, in the order of search.

    That of the checkout if the code runs from one, ``share/cards_bringup`` of every prefix in
    ``AMENT_PREFIX_PATH``, and what pip installed.

    Args:
        *below: Parts of a path within each, e.g. ``models``.
    """
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    top = checkout()
    tops = [
        *([] if top is None else [top]),
        *(Path(prefix, "share", PACKAGE) for prefix in prefixes if prefix),
        _INSTALLED,
    ]
    folders = dict.fromkeys(folder.joinpath(*below) for folder in tops)
    return [folder for folder in folders if folder.is_dir()]


def shared_folder() -> Path:
    """Return the first folder with ``config``, ``launch``, ``worlds`` and ``models``.

    Raises:
        CardsError: There is none.
    """
    folders = shared_folders("config")
    if folders:
        return folders[0].parent
    raise CardsError(
        f"no share folder of {PACKAGE} found; source install/setup.bash or run from the repository"
    )


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
