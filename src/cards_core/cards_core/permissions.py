"""Who may change or read files of this user, and where he has a folder that is his alone.

What is loaded as a program, or unpickled, must come from this user: who can write it runs code as
this user. `check_private` refuses what others can write, see ``docs/security.md``.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path

from cards_core.errors import CardsError


def check_private(path: Path, *, make: bool = False) -> None:
    """Refuse a file or folder that others than this user, or root, can write or replace.

    Looked at are owner and permissions of all that its path leads through, links and what they
    lead to included. Others may write in a folder above it where each can rename only what is his
    own, as in ``/tmp``. A group may write if it is the user's own, without other members, as on
    systems whose new files are writable for the group. Access control lists are not looked at.

    Args:
        path: A file or folder.
        make: Make what is missing: folders for this user alone.

    Raises:
        PermissionError: Others can write it; the message says how, and what helps.
        OSError: It does not exist, or cannot be made or looked at.
    """
    user = os.geteuid()
    # in a sandbox, whose users have other numbers, root's may be another one
    owners = {user, 0, os.lstat("/").st_uid}
    for place, last in _steps(path):
        if make and not os.path.lexists(place):
            place.mkdir(mode=0o700, exist_ok=True)
        found = place.lstat()
        if found.st_uid not in owners:
            what = "it" if last else f"{place}, which leads to it,"
            raise _error(f"{what} belongs to {_user(found.st_uid)}, not {_user(user)}", path)
        if stat.S_ISLNK(found.st_mode):
            place.stat()  # it leads to something, and not round
            continue
        if not last and found.st_mode & stat.S_ISVTX:
            continue
        what = f"write it (chmod go-w {path})" if last else f"rename what {place} holds"
        if found.st_mode & stat.S_IWOTH:
            raise _error(f"all users can {what}", path)
        if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid):
            raise _error(f"its group can {what}", path)


def private_folder() -> Path:
    """Return a folder that this user alone can enter, for locks and links of running processes.

    That is ``cards`` in ``XDG_RUNTIME_DIR``, else ``cards-UID`` in ``TMPDIR`` or ``/tmp``, else
    one in the home folder: others can keep him from having the second, but not from having one.

    Raises:
        CardsError: None of them can be had, or each can be entered by others.
    """
    user, problems = os.geteuid(), []
    for base, name in (
        (os.environ.get("XDG_RUNTIME_DIR", ""), "cards"),
        (os.environ.get("TMPDIR") or "/tmp", f"cards-{user}"),
        (os.path.expanduser("~"), ".cache/cards/run"),
    ):
        folder = Path(base, name)
        if not (os.path.isabs(base) and os.path.isdir(base)):
            continue
        try:
            check_private(folder, make=True)
            found = folder.lstat()
            if found.st_uid == user and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                return folder
            problems.append(f"{folder} is not a folder of {_user(user)} with mode 0700")
        except OSError as error:
            problems.append(f"{folder}: {error.strerror}")
    raise CardsError(
        f"no folder for locks and links: {'; '.join(problems)} (expected: XDG_RUNTIME_DIR that "
        f"names a folder of {_user(user)} with mode 0700)"
    )


def _steps(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield what a path leads through, links too, from the root; whether it is the end."""
    place, left = Path("/"), list(path.absolute().parts[1:])
    yield place, not left
    while left:
        part = left.pop(0)
        place = place.parent if part == ".." else place / part
        yield place, not left
        if place.is_symlink():
            target = place.readlink()
            left = [*target.parts[target.is_absolute() :], *left]
            place = Path("/") if target.is_absolute() else place.parent


def _error(reason: str, path: Path) -> PermissionError:
    return PermissionError(errno.EPERM, f"not trusted: {reason}", str(path))


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _own_group(number: int) -> bool:
    """Tell whether nobody but this user, and root, is in a group."""
    try:
        members = set(grp.getgrgid(number).gr_mem)
    except KeyError:  # without a name it can have members that nobody knows
        return False
    members |= {entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == number}
    return members <= {_user(os.geteuid()), "root"}
