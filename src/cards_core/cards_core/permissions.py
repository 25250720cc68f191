"""Who may change a file or folder that this process is about to trust.

What is loaded as a program, or unpickled, must come from this user: who can write it runs code as
this user. `check_private` refuses what others can write, see ``docs/security.md``.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
from pathlib import Path


def check_private(path: Path) -> None:
    """Refuse a file or folder that others than this user, or root, can write or replace.

    Looked at are its owner and permissions, and whether a folder above it lets everybody rename
    what it holds. A group may write if it is the user's own, without other members, as on
    systems whose new files are writable for the group. Links are followed. Access control lists
    are not looked at.

    Args:
        path: An existing file or folder.

    Raises:
        PermissionError: Others can write it; the message says how, and what helps.
        OSError: It does not exist or cannot be looked at.
    """
    real = Path(os.path.realpath(path))
    found = real.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise _error(f"it belongs to {_user(found.st_uid)}, not {_user(os.geteuid())}", path)
    if found.st_mode & stat.S_IWOTH:
        raise _error(f"all users can write it (chmod go-w {path})", path)
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid):
        raise _error(f"its group can write it (chmod go-w {path})", path)
    for folder in real.parents:
        mode = folder.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _error(f"all users can rename what {folder} holds", path)


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
