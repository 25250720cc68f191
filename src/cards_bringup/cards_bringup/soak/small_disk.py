"""A small disk that can be full: a tmpfs where this process may mount one."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from pathlib import Path

SIZE = "64m"


class SmallDisk:
    """A folder on a file system of its own, if that is permitted.

    Args:
        folder: Where it is mounted; made if it is not there.

    Attributes:
        mounted: Whether it is a file system of its own.
        problem: Why it is not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.mounted, self.problem = False, ""
        if os.geteuid() != 0:
            self.problem = "only root may mount a small disk"
            return
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "soak", str(folder)],
            capture_output=True,
            text=True,
            check=False,
        )
        self.mounted = done.returncode == 0
        self.problem = "" if self.mounted else f"no small disk here: {done.stderr.strip()}"

    @property
    def _filler(self) -> Path:
        return self.folder / ".filler"

    def fill(self) -> int:
        """Fill it to the last byte; return how many that took."""
        block, written = b"\0" * (1 << 20), 0
        with self._filler.open("ab", buffering=0) as file:
            while block:
                try:
                    written += file.write(block)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    block = block[: len(block) // 2]
        return written

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Unmount it; what was in it is gone."""
        if self.mounted:
            with contextlib.suppress(OSError):
                subprocess.run(["umount", "-l", str(self.folder)], check=False)
            self.mounted = False
