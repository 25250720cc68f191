"""The folder of an imported robot: all of it or nothing, and never in place of something else."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from cards_core.errors import CardsError
from cards_core.files import inside, making

REPORT = "import_report"
"""File name of the report, without its ending. A folder that has one was made by an import."""


def write_import_folder(
    out_dir: str | os.PathLike[str],
    name: str,
    fill: Callable[[Path], None],
    *,
    force: bool = False,
) -> Path:
    """Write ``<out_dir>/<name>/`` and return its path.

    The files are written to a temporary folder beside the target, which gets its name when
    everything is there.

    Args:
        out_dir: Folder that gets the model's folder; made if need be.
        name: Name of the model.
        fill: Writes the files into the folder that it is given, `REPORT` among them, and reads
            back what must load.
        force: Replace the folder of an earlier import.

    Raises:
        CardsError: The target exists, or cannot be written.
    """
    parent = Path(out_dir)
    target = inside(parent, name)
    _check_target(target, force=force)
    try:
        with making(parent):  # a folder that nothing could be written to is gone again
            work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
            _put(fill, work, target)
    except OSError as error:
        raise CardsError(f"{parent}: cannot be written: {error.strerror or error}") from None
    return target


def _put(fill: Callable[[Path], None], work: Path, target: Path) -> None:
    try:
        fresh = work / target.name
        fresh.mkdir()
        fill(fresh)
        if os.path.lexists(target):
            os.rename(target, work / "replaced")
        os.rename(fresh, target)
    except OSError as error:
        # an earlier import that was moved aside must not get lost
        if (work / "replaced").exists() and not os.path.lexists(target):
            os.rename(work / "replaced", target)
        raise CardsError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.lexists(target) or not (work / "replaced").exists():
            shutil.rmtree(work, ignore_errors=True)


def _check_target(target: Path, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise CardsError(f"{target} exists already (expected: another folder, or --force)")
    if target.is_symlink() or not (target / f"{REPORT}.json").is_file():
        raise CardsError(
            f"{target} was not made by an import and is not replaced (expected: another folder, "
            f"or one with {REPORT}.json)"
        )
