"""Which file a folder was imported from: its path and SHA-256 in the report of the import."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from cards_core.errors import CardsError
from cards_core.files import file_digest
from cards_core.foreign_files import read_json

REPORT = "import_report"
"""File name of the report, without its ending. A folder that has one was made by an import."""

KEY = "source_file"
"""Key of the report: the path of the source, relative to the folder, and its SHA-256."""

Relation = Literal["same", "changed", "other", "unknown"]
"""What a file is to a folder: what was imported, a later content of it, or another file. Unknown:
an import of old, which has kept the name of the file only, and that is the same."""


def source_entry(source: Path, folder: Path) -> dict[str, str] | None:
    """Return what a report says of the file that is imported; None for what is no file, a text.

    Args:
        source: The file.
        folder: That the import makes.

    Raises:
        OSError: It cannot be read.
    """
    if not source.is_file():
        return None
    path = os.path.relpath(source.resolve(), folder.resolve())
    return {"path": Path(path).as_posix(), "sha256": file_digest(source)}


def relation_to(folder: Path, source: Path) -> Relation:
    """Return what a file is to the folder of an import.

    A file that was imported, but is no longer where it was, may be the one of this name.

    Args:
        folder: With a report.
        source: The file.

    Raises:
        OSError: A file cannot be read.
    """
    report = _report(folder)
    entry = report.get(KEY)
    if not isinstance(entry, dict):
        named = report.get("source")
        if not isinstance(named, str) or Path(named).name == source.name:
            return "unknown"
        return "other"
    path, digest = str(entry.get("path")), entry.get("sha256")
    if digest == file_digest(source):
        return "same"
    before = folder.resolve() / path
    if before.exists():
        return "changed" if before.samefile(source) else "other"
    return "changed" if before.name == source.name else "other"


def source_name(folder: Path) -> str:
    """Return the name of the file that a folder was imported from, as its report says it."""
    report = _report(folder)
    entry = report.get(KEY)
    named = entry.get("path") if isinstance(entry, dict) else report.get("source")
    return Path(str(named)).name


def _report(folder: Path) -> dict[str, Any]:
    try:
        report = read_json(folder / f"{REPORT}.json")
    except CardsError:
        return {}
    return report if isinstance(report, dict) else {}
