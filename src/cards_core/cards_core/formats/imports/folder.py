"""The folder of an imported robot: all of it or nothing, and never in place of something else.

``import_report.json`` lists the files of the import with their SHA-256. An import that replaces an
earlier one replaces and removes those that are as they were written. What somebody changed is kept
beside the new file as ``NAME.~1~``, and what somebody put there stays.

A new folder is made beside the old one, with links to what stays, and the two change places. A
process that is killed leaves the old folder, the new one, or, between two system calls, the old
one under another name; the next import puts it back.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from cards_core.errors import CardsError
from cards_core.files import backup_names, inside, locked_folder, making
from cards_core.foreign_files import read_json
from cards_core.formats.imports.source_file import (
    KEY,
    REPORT,
    relation_to,
    source_entry,
    source_name,
)

_FILES = "files"  # key of the report: path within the folder to SHA-256
_WORK = ".importing-"  # of the folder beside the target: .NAME.importing-xxxxxxxx
_REPLACED = "replaced"  # in it: the old folder, for as long as the new one gets its name


def write_import_folder(
    out_dir: str | os.PathLike[str],
    name: str,
    fill: Callable[[Path], None],
    *,
    force: bool = False,
    on_kept: Callable[[Path], None] = lambda path: None,
    source: Path | None = None,
    other_name: str = "",
) -> Path:
    """Write ``<out_dir>/<name>/`` and return its path.

    Args:
        out_dir: Folder that gets the model's folder; made if need be.
        name: Name of the model.
        fill: Writes the files into the folder that it is given, `REPORT` among them, and reads
            back what must load.
        force: Replace the files of an earlier import.
        on_kept: Called with the place of each file that was changed since that import.
        source: File that is imported; an import of another file is not replaced.
        other_name: Option of the import that gives the robot another name, for messages.

    Raises:
        CardsError: The target exists, with `force`: is no import of that file; the place is no
            folder, or it cannot be written.
    """
    parent = Path(out_dir)
    check_folder(parent)
    target = inside(parent, name)
    kept: list[Path] = []
    try:
        with making(parent):  # a folder that nothing could be written to is gone again
            _mend(parent, target)
            _check_target(target, source, force=force, other_name=other_name)
            work = Path(tempfile.mkdtemp(prefix=f".{name}{_WORK}", dir=parent))
            with locked_folder(work):
                _put(fill, work, target, kept, source)
    except OSError as error:
        raise CardsError(f"{parent}: cannot be written: {error.strerror or error}") from None
    for path in kept:
        on_kept(target / path)
    return target


def check_folder(parent: Path) -> None:
    """Refuse a place for folders that is something else, or in something else.

    Args:
        parent: Folder that gets the model's folder.

    Raises:
        CardsError: It is no folder.
    """
    for path in (parent, *parent.parents):
        if os.path.lexists(path):
            if not path.is_dir():
                raise CardsError(f"{path} is no folder (expected: a folder, or a new name)")
            return


def _put(
    fill: Callable[[Path], None], work: Path, target: Path, kept: list[Path], source: Path | None
) -> None:
    fresh, replaced = work / target.name, work / _REPLACED
    try:
        fresh.mkdir()
        fill(fresh)
        _list_files(fresh, None if source is None else source_entry(source, target))
        if os.path.lexists(target):
            shutil.copymode(target, fresh)
            kept += _take_over(target, fresh, _unchanged(target))
            os.rename(target, replaced)
        os.rename(fresh, target)
    except OSError as error:
        raise CardsError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        _clear(work, target)


# Files of the import, and others ---------------------------------------------------------------


def _list_files(folder: Path, source: Mapping[str, str] | None) -> None:
    """Add the source and the files of a folder to the report in it."""
    report = folder / f"{REPORT}.json"
    data = json.loads(report.read_bytes())
    if source is not None:
        data[KEY] = source
    files = {
        path.relative_to(folder).as_posix(): _digest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    files[report.name] = _digest(_report_text(data))  # as it is without this list
    report.write_bytes(_report_text({**data, _FILES: files}))


def _report_text(data: Mapping[str, object]) -> bytes:
    return (json.dumps(data, indent=2, allow_nan=False) + "\n").encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unchanged(folder: Path) -> frozenset[str]:
    """Return the files of an earlier import that are as it wrote them, by their paths within."""
    report = folder / f"{REPORT}.json"
    try:
        data = read_json(report)
        files = data.pop(_FILES)
        own = _digest(_report_text(data))
        found = set()
        for name, digest in files.items():
            path = folder / name
            if path.is_symlink() or not path.is_file():
                continue
            if (own if name == report.name else _digest(path.read_bytes())) == digest:
                found.add(name)
        return frozenset(found)
    except (CardsError, ValueError, AttributeError, KeyError, TypeError):
        return frozenset()  # an import of old has no list; nobody knows then what was changed


def _take_over(old: Path, new: Path, unchanged: frozenset[str]) -> list[Path]:
    """Link what stays of an old folder into the new one; return what is kept under another name.

    Args:
        old: Folder of an earlier import.
        new: Folder that replaces it.
        unchanged: Files that need not stay, from `_unchanged`.
    """
    kept: list[Path] = []
    for folder, folders, files in os.walk(old):
        here = Path(folder).relative_to(old)
        for name in [*folders, *files]:
            place = here / name
            source, target = old / place, new / place
            real_folder = source.is_dir() and not source.is_symlink()
            if place.as_posix() in unchanged:
                continue
            if real_folder and (target.is_dir() or not os.path.lexists(target)):
                if not any(source.iterdir()):
                    _make_folders(place, old, new)
                continue
            if os.path.lexists(target):
                if _same(source, target):
                    continue
                target = new / _free_name(place, old, new)
                kept.append(target.relative_to(new))
            if real_folder:
                folders.remove(name)
                shutil.copytree(source, target, symlinks=True, copy_function=_link)
            else:
                _make_folders(place.parent, old, new)
                _link(source, target)
    return kept


def _free_name(place: Path, old: Path, new: Path) -> Path:
    return next(
        name
        for name in backup_names(place)
        if not os.path.lexists(old / name) and not os.path.lexists(new / name)
    )


def _make_folders(place: Path, old: Path, new: Path) -> None:
    """Make a folder like the old one, with its parents."""
    for part in reversed([place, *place.parents]):
        if not (new / part).exists():
            (new / part).mkdir()
            shutil.copymode(old / part, new / part)


def _same(one: Path, other: Path) -> bool:
    return (
        not one.is_symlink()
        and one.is_file()
        and other.is_file()
        and one.read_bytes() == other.read_bytes()
    )


def _link(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Give a file a second name; copy it where that cannot be."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


# What a killed process left --------------------------------------------------------------------


def _mend(parent: Path, target: Path) -> None:
    """Put back a folder that a killed import had moved aside, and delete what it left."""
    form = re.compile(re.escape(f".{target.name}{_WORK}") + "[a-z0-9_]{8}")
    for work in [path for path in parent.iterdir() if form.fullmatch(path.name)]:
        # not those of an import that runs, nor what another user put there
        with contextlib.suppress(BlockingIOError, PermissionError), locked_folder(work):
            _clear(work, target)


def _clear(work: Path, target: Path) -> None:
    """Delete a folder of work; the old folder in it goes back where there is no new one."""
    replaced = work / _REPLACED
    if replaced.exists() and not os.path.lexists(target):
        os.rename(replaced, target)
    shutil.rmtree(work, ignore_errors=True)


def _check_target(target: Path, source: Path | None, *, force: bool, other_name: str) -> None:
    if not os.path.lexists(target):
        return
    other = f"{other_name}, " if other_name else ""
    if not force:
        raise CardsError(f"{target} exists already (expected: {other}another folder, or --force)")
    if target.is_symlink() or not (target / f"{REPORT}.json").is_file():
        raise CardsError(
            f"{target} was not made by an import and is not replaced (expected: another folder, "
            f"or one with {REPORT}.json)"
        )
    if source is not None and source.is_file() and relation_to(target, source) == "other":
        raise CardsError(
            f"{target} was imported from another file, {source_name(target)}, and is not replaced "
            f"by {source} (expected: {other}another folder, or delete that one)"
        )
