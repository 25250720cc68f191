"""Files that a description of a robot names, and where they may lie.

A description comes from anybody; what it names is read with the rights of the user, and an import
copies it. So a file that it names has to lie

- in its own folder, or in the nearest folder above that is marked as that of a model or a package
  (`MARKS`); for an import also in the checkout that this is part of,
- in a folder of the model path: `model_folders` and ``GZ_SIM_RESOURCE_PATH``, for an import also
  ``ROS_PACKAGE_PATH`` and ``share`` of ``AMENT_PREFIX_PATH``,
- in the folder of the model or package that its URI names, if that folder is marked as one,
- in one that the user named,
- or, for an import, where a relative name leads without links, if it is of the format's kinds.

Links are followed first: what counts is where the file is. What a user names on the command line
or a program in a call is not confined.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cards_core.shared_files import shared_folders

MODEL_PATH = "CARDS_MODEL_PATH"
"""Environment variable: folders with models, separated like PATH."""

RESOURCE_PATH = "GZ_SIM_RESOURCE_PATH"
"""The same of Gazebo."""

PACKAGE_PATH = "ROS_PACKAGE_PATH"
"""Environment variable: folders with packages, as ROS has it; ``AMENT_PREFIX_PATH`` too."""

MARKS = ("model.config", "package.xml")
"""Files that mark the folder of a model or of a package."""

MODEL_FILE = "model.sdf"
"""What is in the folder of a model that has no ``model.config``."""

CHECKOUT = ".git"
"""What marks the top of a checkout."""

LONGEST_SHOWN = 60
"""Characters of a name in a message."""

LARGEST_FOLLOWED = 256 * 1024 * 1024
"""Longest file that a relative name may lead to outside of a package, [bytes]."""

UPWARDS = 4
"""How far above a description the folder of its package may be."""


def is_folder(path: Path) -> bool:
    """Return True for an existing folder, False for anything else, without raising."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def variable_folders(name: str, *below: str) -> Iterator[Path]:
    """Yield the folders of an environment variable like PATH.

    Args:
        name: Of the variable.
        *below: Parts of a path within each.
    """
    for entry in os.environ.get(name, "").split(os.pathsep):
        if entry:
            yield Path(entry, *below)


def model_folders() -> list[Path]:
    """Return the existing folders that hold one folder per model, in the order of search.

    ``CARDS_MODEL_PATH``, then ``models`` of the shared folders (`cards_core.shared_files`).
    """
    folders = [*variable_folders(MODEL_PATH), *shared_folders("models")]
    return [folder for folder in dict.fromkeys(folders) if is_folder(folder)]


def resource_folders() -> list[Path]:
    """Return `model_folders` and the folders of ``GZ_SIM_RESOURCE_PATH``."""
    extra = [p for p in variable_folders(RESOURCE_PATH) if is_folder(p)]
    return list(dict.fromkeys([*model_folders(), *extra]))


@dataclass(frozen=True)
class Confinement:
    """Folders in which files may lie that a description names.

    Attributes:
        top: Of the description's own model or package, resolved.
        others: Further ones, resolved.
        packages: Folders that the user gave for the names of packages.
        kinds: Endings of files that a relative name may lead to wherever they are, in lower case.
    """

    top: Path
    others: tuple[Path, ...]
    packages: Mapping[str, Path] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()

    def holds(self, path: Path, named: Path | None = None) -> bool:
        """Return whether a file lies in one of them, links followed.

        Args:
            path: Of a file; it need not exist.
            named: Folder of the model or package that the URI names, if it names one.
        """
        try:
            found = path.resolve()
            if named is not None and _is_marked(named):
                own = named.resolve()
                if own not in _shared_places() and found.is_relative_to(own):
                    return True
        except (OSError, ValueError, RuntimeError):  # no path, or links in a circle
            return False
        return any(found.is_relative_to(folder) for folder in (self.top, *self.others))

    def follows(self, folder: Path, name: str) -> bool:
        """Return whether a relative name leads to a file of `kinds`, without links on its way.

        The file is a regular one of at most `LARGEST_FOLLOWED` bytes, or does not exist.

        Args:
            folder: That the name is relative to.
            name: As a description says it.
        """
        if os.path.isabs(name) or Path(name).suffix.lower() not in self.kinds:
            return False
        try:
            file = Path(os.path.normpath(folder.resolve() / name))
            if (folder / name).resolve() != file:
                return False
            found = file.stat()
        except FileNotFoundError:
            return True
        except (OSError, ValueError, RuntimeError):
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_FOLLOWED

    @property
    def expected(self) -> str:
        """What would be right, for an error about a file that they do not hold."""
        relative = f"a relative path without links to {'/'.join(sorted(self.kinds))} of at most "
        relative += f"{LARGEST_FOLLOWED >> 20} MiB, or "
        place = f"a file in '{self.top}', or in a folder of {MODEL_PATH} or {RESOURCE_PATH}"
        return relative + place if self.kinds else place


def confinement(folder: Path) -> Confinement:
    """Return where files may lie that a description in a folder names.

    Args:
        folder: Of the description.
    """
    return Confinement(_top(folder.resolve(), MARKS), _resolved(resource_folders()))


def import_confinement(
    folder: Path, kinds: Iterable[str] = (), packages: Mapping[str, Path] | None = None
) -> Confinement:
    """Return where files may lie that an import reads or copies.

    Args:
        folder: Of the description.
        kinds: Endings of files that a relative name may lead to, see `Confinement.follows`.
        packages: Name of a package to its folder, as the user gave them.
    """
    given = dict(packages or {})
    others = [
        *resource_folders(),
        *variable_folders(PACKAGE_PATH),
        *variable_folders("AMENT_PREFIX_PATH", "share"),
        *given.values(),
    ]
    top = _top(folder.resolve(), (*MARKS, CHECKOUT))
    return Confinement(top, _resolved(others), given, frozenset(kinds))


def outside(named: str, file: Path, of: str) -> str:
    """Return in words that a file is outside of something, with its place where that is not said.

    Args:
        named: The file as a description names it.
        file: Its path; links are followed.
        of: What it is outside of.
    """
    place = str(file.resolve())
    shown = named if len(named) <= LONGEST_SHOWN else f"{named[: LONGEST_SHOWN - 3]}..."
    return (
        f"'{place}' is outside of {of}"
        if named == place
        else (f"'{shown}' is '{place}', outside of {of}")
    )


def _is_marked(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in (*MARKS, MODEL_FILE))


def named_folder(base: Path, name: str) -> Path | None:
    """Return the folder of a model or package beside others, None for what is no name of one.

    Args:
        base: Folder that holds those.
        name: As a URI says it.
    """
    return None if name in ("", ".", "..") or "/" in name else base / name


def _shared_places() -> set[Path]:
    """Return the folders that are no model's: a mark there would open all that the user has."""
    shared = {Path("/")}
    with contextlib.suppress(OSError, RuntimeError):  # a user without one
        home = Path.home().resolve()
        shared |= {home, *home.parents}
    with contextlib.suppress(OSError, RuntimeError):  # there is none
        shared.add(Path(tempfile.gettempdir()).resolve())
    return shared


def _top(folder: Path, marks: tuple[str, ...]) -> Path:
    """Return the highest of a folder and those above it that has a mark, else the folder."""
    shared = _shared_places()
    top = folder
    for above in [folder, *folder.parents][: UPWARDS + 1]:
        if above in shared:
            break
        if any(os.path.lexists(above / mark) for mark in marks):
            top = above
    return top


def _resolved(folders: Iterable[Path]) -> tuple[Path, ...]:
    out: dict[Path, None] = {}
    for folder in folders:
        try:
            out[folder.resolve()] = None
        except (OSError, RuntimeError):
            continue
    return tuple(out)
