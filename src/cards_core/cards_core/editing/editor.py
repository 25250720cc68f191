"""A robot under edit: its muscles now and before, and its file.

The file is written in place (`cards_core.formats.sdf.muscle_text`), whole or not at all, and never
without a copy of what was there. What is not saved is kept in a file of its own beside it, for a
later run to go on with; it says which content of the file the changes were made to.

A robot that is saved in another folder takes its meshes along, see
`cards_core.formats.sdf.moved_text`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cards_core.editing.block_checks import check_block, drafts, without_drafts
from cards_core.errors import CardsError
from cards_core.files import back_up, write_atomically
from cards_core.formats.locate import find_model, has_rods
from cards_core.formats.mesh_copies import MeshCopies
from cards_core.formats.sdf.moved_text import moved_text
from cards_core.formats.sdf.muscle_text import EditedBlock, MuscleText, with_block, written
from cards_core.formats.sdf.reader import read_sdf
from cards_core.robot.model import Robot

Operation = Callable[[EditedBlock], EditedBlock]
"""Makes a block of a block; see `cards_core.editing.operations`."""

UNSAVED = ".unsaved"
"""Added to the name of a file for what was not saved."""

_BASE = re.compile(rb"\n<!-- ./cards edit: changes of a file with SHA-256 ([0-9a-z]+) -->\n\Z")
_NO_FILE = "none"


@dataclass(frozen=True, eq=False)
class Step:
    """A state of the muscles, and what led to it."""

    text: str
    block: EditedBlock


@dataclass(frozen=True)
class Saved:
    """What was written.

    Attributes:
        file: The file.
        backup: Copy of what was there before; None if nothing was.
        foreign: Whether the copy has changes of another program that the file does not have.
        meshes: Number of meshes that were copied into the folder of the file.
    """

    file: Path
    backup: Path | None
    foreign: bool = False
    meshes: int = 0


def unsaved_file(file: Path) -> Path:
    """Return where changes of a file are kept that were not saved."""
    return file.with_name(file.name + UNSAVED)


class MuscleEditor:
    """Muscles and wrap surfaces of one robot, with undo and redo.

    Args:
        source: Name of a robot, or the path of an SDF file or of its folder.
        model: Which model of a file that holds several.
        output: File that is saved to; the robot's own without it.
        recover: Go on with what an earlier run did not save; without it, such changes are an
            error: they would be lost.

    Attributes:
        file: What is saved to.
        base: The robot as it was read.
        links: Names of its links.
        foreign: Another program has changed the file since the changes that are recovered were
            made, or may have: `save` keeps a copy of that, and says so.

    Raises:
        UnknownNameError: There is no such robot.
        DescriptionError: It cannot be read, or is a robot of rods.
        CardsError: There are unsaved changes of an earlier run, or none to recover; or the robot
            cannot be saved in the folder of the output, see `moved_text`.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        model: str | None = None,
        output: Path | None = None,
        recover: bool = False,
    ) -> None:
        found = find_model(source)
        if has_rods(found):
            raise CardsError(
                f"{found} is a robot of rods; it has no muscles (expected: a robot with links)"
            )
        self.file = found if output is None else Path(output)
        kept = unsaved_file(self.file)
        if kept.exists() and not recover:
            raise CardsError(
                f"{kept} holds changes that were not saved (expected: --recover to go on with "
                "them, or --discard to delete them)"
            )
        if recover and not kept.exists():
            raise CardsError(f"{kept} does not exist: there is nothing to recover")
        self._on_disk = self.file.read_bytes() if self.file.is_file() else None
        self._based_on = _digest(self._on_disk)
        data = kept.read_bytes() if recover else found.read_bytes()
        self.foreign = False
        if recover:
            data, self._based_on = _without_base(data)
            self.foreign = self._based_on != _digest(self._on_disk)
        self._source = found.resolve()
        self._text = MuscleText(data, found, model)
        self._model = model
        self._moved(data)  # what cannot be saved there is said now
        self.base = self._text.robot
        self.links = tuple(link.name for link in self.base.links)
        self._past = [Step("as read", self._text.block)]
        self._future: list[Step] = []
        self._saved: EditedBlock | None = None if recover else self._text.block
        self._kept: EditedBlock | None = self._text.block if recover else None
        self._preview: EditedBlock | None = None
        self._robots: tuple[EditedBlock | None, Robot] = (None, self.base)

    # What is ------------------------------------------------------------------------------------

    @property
    def block(self) -> EditedBlock:
        """Muscles and surfaces now, drafts and what is being dragged included."""
        return self._past[-1].block if self._preview is None else self._preview

    @property
    def robot(self) -> Robot:
        """The robot with these muscles, without drafts."""
        block = self.block
        if self._robots[0] is not block:
            elsewhere = self._text.elsewhere
            self._robots = block, with_block(self.base, without_drafts(block), elsewhere)
        return self._robots[1]

    @property
    def fixed(self) -> tuple[str, ...]:
        """Names of muscles and surfaces that stand in other files and cannot be changed here."""
        return self._text.elsewhere

    @property
    def unsaved(self) -> bool:
        """Whether there is something to save."""
        return self._past[-1].block is not self._saved

    @property
    def undoable(self) -> str | None:
        """What `undo` would take back; None if there is nothing."""
        return self._past[-1].text if len(self._past) > 1 else None

    @property
    def redoable(self) -> str | None:
        """What `redo` would do again; None if there is nothing."""
        return self._future[-1].text if self._future else None

    # Changes ------------------------------------------------------------------------------------

    def change(self, text: str, operation: Operation) -> None:
        """Do something that can be undone.

        Args:
            text: What is done, in words.
            operation: Does it.

        Raises:
            CardsError: It is refused; nothing has changed.
        """
        before = self._past[-1].block
        block = operation(before)
        if block is before:
            self._preview = None
            return
        check_block(block, self.links, before)
        self._preview = None
        self._past.append(Step(text, block))
        self._future.clear()

    def preview(self, operation: Operation) -> None:
        """Show what an operation would do, until the next change, undo, redo or `keep`.

        Raises:
            CardsError: It is refused; what was shown before still is.
        """
        before = self._past[-1].block
        block = operation(before)
        check_block(block, self.links, before)
        self._preview = block

    def keep(self, text: str) -> None:
        """Make what is shown a step that can be undone.

        Args:
            text: What was done, in words.
        """
        if (block := self._preview) is not None:
            self.change(text, lambda _: block)

    def undo(self) -> str | None:
        """Take back the last step; return what it was, None if there is none."""
        self._preview = None
        if len(self._past) < 2:
            return None
        step = self._past.pop()
        self._future.append(step)
        return step.text

    def redo(self) -> str | None:
        """Do again what was undone last; return what it was, None if there is nothing."""
        self._preview = None
        if not self._future:
            return None
        step = self._future.pop()
        self._past.append(step)
        return step.text

    # Files --------------------------------------------------------------------------------------

    def text(self) -> bytes:
        """Return the text of the robot with its muscles now, without drafts.

        Raises:
            CardsError: The text does not read back, e.g. because a point lies inside a surface at
                the home pose; the message names the place.
        """
        data = self._text.rewritten(without_drafts(self._past[-1].block))
        again = replace(self._read(data, self._source.parent), source=self.base.source)
        block = without_drafts(self._past[-1].block)
        if written(again) != written(with_block(self.base, block, self._text.elsewhere)):
            raise CardsError(
                f"{self.file}: the muscles do not read back as they are; nothing is written "
                "(please report the file)"
            )
        return data

    def _read(self, data: bytes, folder: Path) -> Robot:
        return read_sdf(data, model=self._model, base=folder, name=str(self.file))

    def _moved(self, data: bytes) -> tuple[bytes, MeshCopies | None]:
        """Return a text of the robot for the folder of the file, and the meshes that go there."""
        folder = self.file.resolve().parent
        if folder == self._source.parent:
            return data, None
        return moved_text(data, self._source, folder)

    def save(self) -> Saved:
        """Write the file, and meshes that it names; what was there is copied first.

        Raises:
            CardsError: A muscle is not finished, the robot would not read back, or another
                program has changed the file.
            OSError: It cannot be written; what was there is untouched.
        """
        self._preview = None
        block = self._past[-1].block
        if unfinished := drafts(block):
            raise CardsError(
                f"not saved: muscle {', '.join(unfinished)} is not finished (expected: a via "
                "point at both ends, or remove it)"
            )
        data, copies = self._moved(self.text())
        there = self.file.read_bytes() if self.file.is_file() else None
        if there != self._on_disk:
            raise CardsError(
                f"{self.file} was changed by another program since it was opened (expected: end "
                "with Ctrl-C, then --recover, which keeps both: Save makes a copy of that file)"
            )
        backup = None if there is None or there == data else back_up(self.file)
        try:
            with contextlib.nullcontext() if copies is None else copies.made():
                if copies is not None:
                    self._read(data, self.file.resolve().parent)
                write_atomically(self.file, data)
        except BaseException:
            if backup is not None:
                backup.unlink(missing_ok=True)
            raise
        foreign = self.foreign and backup is not None
        self._on_disk, self._saved, self._based_on = data, block, _digest(data)
        self.foreign = False
        unsaved_file(self.file).unlink(missing_ok=True)
        self._kept = None
        return Saved(self.file, backup, foreign, 0 if copies is None else len(copies.new))

    def keep_unsaved(self) -> Path | None:
        """Write what is not saved beside the file, once for each state; return where, or None.

        Drafts are left out: they are no muscles yet.

        Raises:
            OSError: It cannot be written.
        """
        block, kept = self._past[-1].block, unsaved_file(self.file)
        if not self.unsaved:
            if self._kept is not None:
                kept.unlink(missing_ok=True)
                self._kept = None
            return None
        if block is not self._kept:
            data = self._text.rewritten(without_drafts(block))
            write_atomically(kept, data + _base_line(self._based_on))
            self._kept = block
        return kept


def _digest(data: bytes | None) -> str:
    return _NO_FILE if data is None else hashlib.sha256(data).hexdigest()


def _base_line(digest: str) -> bytes:
    return f"\n<!-- ./cards edit: changes of a file with SHA-256 {digest} -->\n".encode()


def _without_base(data: bytes) -> tuple[bytes, str]:
    """Return unsaved text, and the SHA-256 of what it changes; empty if it does not say."""
    found = _BASE.search(data)
    return (data, "") if found is None else (data[: found.start()], found[1].decode())


def discard(source: str | os.PathLike[str], output: Path | None = None) -> Path:
    """Delete what an earlier run did not save; return the file it was in.

    Args:
        source: Name of the robot, or a path.
        output: As of `MuscleEditor`.

    Raises:
        CardsError: There is nothing.
    """
    kept = unsaved_file(find_model(source) if output is None else output)
    if not kept.exists():
        raise CardsError(f"{kept} does not exist: there is nothing to discard")
    kept.unlink()
    return kept
