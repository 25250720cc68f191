"""A serial port made of a pseudo-terminal that forgets what is sent while nobody has it open."""

from __future__ import annotations

import contextlib
import os
import select
import termios
import threading
import tty
from pathlib import Path

SWEEP_PERIOD = 0.01
"""Time [s] between sweeps of a port that nobody has open."""

LOOK_PERIOD = 200
"""Time [ms] after which the sweeper of an open port looks whether it shall end."""

_CHUNK = 4096


class PseudoPort:
    """A pty in raw mode.

    The kernel keeps what a program writes to its master while the other side is closed, up to
    68 kB, and would give a second of stale states to the next who opens it. A wire does not do
    that, so a thread throws it away.

    Args:
        link: Path at which the port appears, a symbolic link.

    Attributes:
        master: The board's end, a file descriptor that does not block.
    """

    def __init__(self, link: Path) -> None:
        self.master, slave = os.openpty()
        try:
            tty.setraw(slave)  # the mode stays when it is closed
            link.symlink_to(os.ttyname(slave))
        finally:
            os.close(slave)
        os.set_blocking(self.master, False)
        self._end = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, name="port sweeper", daemon=True)
        self._sweeper.start()

    def drop_received(self) -> None:
        """Throw away what was sent to a board that was off, and could not hear it."""
        with contextlib.suppress(OSError):  # nothing more, or nobody there
            while os.read(self.master, _CHUNK):
                pass

    def _sweep(self) -> None:
        watch = select.poll()
        watch.register(self.master, 0)  # hang-ups are always told
        while not self._end.is_set():
            if watch.poll(LOOK_PERIOD):
                with contextlib.suppress(termios.error):
                    termios.tcflush(self.master, termios.TCOFLUSH)
                self._end.wait(SWEEP_PERIOD)

    def close(self) -> None:
        """Take the port away; who has it open sees it hang up."""
        self._end.set()
        self._sweeper.join()
        os.close(self.master)
