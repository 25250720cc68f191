"""Files that are whole or not there at all: written beside their place, named when complete.

Whatever a full disk, a signal or a loss of power cuts short leaves the file that was there before,
or none. What cannot be renamed into, a device or a pipe such as ``/dev/stdout``, is written as it
is.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cards_core.errors import CardsError
from cards_core.names import EXPECTED, name_problem
from cards_core.permissions import private_folder

PART = ".part"
"""Ending of a file that is being written; its name begins with a dot."""

BACKUPS = 10_000
"""Most copies of one file that are kept beside it."""

LONGEST_FILE_NAME = 255
"""Of the usual file systems."""

RUNS = Path("runs")
"""Default folder of results. It is below the current folder: as for every other path on a command
line, what counts is where the command was given, and not where CARDS is installed."""


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to; what was written gets its name when the block ends well.

    Links are followed, and an existing file keeps its permissions.

    Args:
        path: The file; its folder exists.

    Raises:
        OSError: It cannot be written; what was there is untouched.
    """
    target = Path(path)
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    real = Path(os.path.realpath(target))
    if old is not None and not (stat.S_ISREG(old.st_mode) and real.exists()):
        yield target
        return
    if old is not None and not os.access(real, os.W_OK):
        raise PermissionError(13, os.strerror(13), str(target))
    # a name that nobody can guess: in a shared folder, another user could put a link there
    temporary = real.with_name(f".{real.name}.{secrets.token_hex(4)}{PART}")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode | stat.S_IWUSR))
    try:
        yield temporary
        if old is not None:
            temporary.chmod(mode)
        _synchronise(temporary)
        commit(temporary, real)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file that is old or new at any moment, also when power fails; text as UTF-8.

    Raises:
        OSError: It cannot be written; what was there is untouched.
    """
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


@contextlib.contextmanager
def writing_together(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a folder to write files in that belong together; they move when the block ends well.

    Folders that are missing are made, and are gone again when the block fails.

    Args:
        folder: Where the files go; those of the same names are replaced.

    Raises:
        OSError: The folder cannot be written; what was there is untouched.
    """
    target = Path(folder)
    with making(target):
        work = Path(tempfile.mkdtemp(prefix=".writing-", dir=target))
        try:
            yield work
            files = sorted(work.iterdir())
            for file in files:
                if (target / file.name).is_dir():
                    raise IsADirectoryError(21, os.strerror(21), str(target / file.name))
                _synchronise(file)
            for file in files:
                commit(file, target / file.name)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def making(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Make a folder with its parents; those that are empty after the block are gone again.

    Raises:
        OSError: It cannot be made.
    """
    target = Path(folder)
    missing = [item for item in (target, *target.parents) if not item.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for item in missing:
            with contextlib.suppress(OSError):  # it holds something, or was not made
                item.rmdir()


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], refusal: str, *, keep: bool = False) -> Iterator[None]:
    """Keep other processes out; the lock of a process ends with the process.

    Args:
        path: The file that is locked; made if there is none.
        refusal: Said if another process has it.
        keep: Leave the file where it is afterwards.

    Raises:
        CardsError: Another process has it.
        OSError: The file cannot be written.
    """
    # who may read a file may lock it, and keep its owner out
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o660)
    with open(descriptor, "a", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CardsError(refusal) from None
        try:
            yield
        finally:
            if not keep:
                Path(path).unlink(missing_ok=True)


def claim(name: str, *, shared: bool = False) -> int | None:
    """Take a lock that all processes of this user on this machine know by its name.

    Args:
        name: Of the lock.
        shared: Others may have it too, if they share it.

    Returns:
        A descriptor: closing it, or the end of the process, gives the lock back. None if another
        process has it.

    Raises:
        CardsError, OSError: There is no place for it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(private_folder() / name, flags, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold a folder of this user, so that his other processes know that it is in use.

    Raises:
        BlockingIOError: Another process holds it.
        OSError: It is not a folder, or another user's.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():  # root can open those of all users
            raise PermissionError(1, os.strerror(1), str(folder))
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


class ProcessFolder:
    """A folder of this process, for this user alone, in a place that he shares with others.

    A process that is killed leaves its folder, but no lock on it, which needs this object: the
    next one of this user that makes a folder of the same kind removes it.

    Args:
        kind: Part of its name.
        parent: Where it is made; default the folder of temporary files.

    Attributes:
        path: The folder.
        close: Removes it with all that it holds.
    """

    def __init__(self, kind: str, parent: str | None = None) -> None:
        base, stack = Path(parent or tempfile.gettempdir()), contextlib.ExitStack()
        for left in base.glob(f"cards-{kind}-*-*"):
            with contextlib.suppress(OSError), locked_folder(left):
                shutil.rmtree(left, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".cards-{kind}-{os.getpid()}-", dir=base))
        stack.enter_context(locked_folder(fresh))
        # others look for it only by the name that it has from here on, when it is locked
        self.path = fresh.rename(base / fresh.name.removeprefix("."))
        stack.callback(shutil.rmtree, self.path, ignore_errors=True)
        self.close = stack.close


def is_part(name: str) -> bool:
    """Return True for the name of a file that a process which was killed left unfinished."""
    return name.startswith(".") and name.endswith(PART)


def commit(temporary: Path, path: Path) -> None:
    """Give a finished file its name, and make the name last."""
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_new(file: Path, *, force: bool) -> None:
    """Refuse to write over a file, before anything is computed for it.

    What can be written to and is no file of the user, ``/dev/stdout`` say, is no matter of names.

    Args:
        file: Where a result goes.
        force: Whether a file that is there may be replaced.

    Raises:
        CardsError: There is a file, or a folder.
    """
    if file.is_dir():
        raise CardsError(f"{file} is a folder (expected: the name of a file)")
    if file.is_file() and not force and file.parts[:2] not in (("/", "dev"), ("/", "proc")):
        raise CardsError(f"{file} exists already (expected: another name, or --force)")


def check_writable(file: Path) -> None:
    """Refuse a file that cannot be written, before anything is done that it is to tell of.

    Args:
        file: Where a result goes.

    Raises:
        CardsError: It is a folder, or it or its folder cannot be written.
    """
    check_new(file, force=True)
    try:
        with making(file.parent), tempfile.TemporaryFile(dir=file.parent):
            if file.exists() and not os.access(file, os.W_OK):
                raise PermissionError(13, os.strerror(13))
    except OSError as error:
        hint = "expected: a file in a folder that you can write to"
        raise CardsError(f"{file} cannot be written: {error.strerror} ({hint})") from None


def file_problem(path: Path) -> str | None:
    """Return why a path cannot be read as a file, in a few words; None if it can be one.

    Raises:
        OSError, ValueError: Nothing can have this path.
    """
    if path.is_file():
        return None
    if path.is_dir():
        return "is a folder"
    return "is not a regular file" if path.exists() else "no such file"


def file_digest(file: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits. Raises `OSError`."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def back_up(file: Path) -> Path:
    """Copy a file beside itself, under a name that nothing has; return the copy.

    Raises:
        CardsError: There are too many copies.
        OSError: It cannot be copied.
    """
    for copy in backup_names(file):
        try:
            # a name is taken by making the file, or not at all
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        os.close(descriptor)
        try:
            write_atomically(copy, file.read_bytes())
        except BaseException:
            copy.unlink(missing_ok=True)
            raise
        return copy
    raise AssertionError(file)


def backup_names(path: Path) -> Iterator[Path]:
    """Iterate over the names of copies beside a file: ``NAME.~1~``, ``NAME.~2~``, ...

    Raises:
        CardsError: They are used up.
    """
    for number in range(1, BACKUPS):
        yield path.with_name(f"{path.name}.~{number}~")
    raise CardsError(f"{path} has {BACKUPS} copies (expected: delete some)")


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """Return the path of something directly in a folder, whatever its name is made of.

    Args:
        folder: The folder.
        name: Of a file or folder in it.

    Raises:
        CardsError: The name would lead elsewhere, or nowhere.
    """
    if problem := name_problem(name, LONGEST_FILE_NAME):
        raise CardsError(f"'{name}' is no name in {folder}: {problem} (expected: {EXPECTED})")
    return Path(folder, name)


def new_run_folder(name: str) -> Path:
    """Return a folder in `RUNS` that does not exist yet, of a name with the time after it."""
    stem = f"{name}_{datetime.now():%Y%m%d-%H%M%S}"
    out, count = inside(RUNS, stem), 1
    while out.exists():
        count += 1
        out = inside(RUNS, f"{stem}_{count}")
    return out


def _synchronise(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())
