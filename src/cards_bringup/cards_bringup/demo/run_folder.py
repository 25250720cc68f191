"""The folder of a demonstration run: named, created, and kept from other runs."""

from __future__ import annotations

import contextlib
import fcntl
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from cards_bringup.resources import runs_folder
from cards_core.errors import CardsError
from cards_core.files import inside, making

RESULTS = (
    "summary.json",
    "simulator.npz",
    "controller.npz",
    "hardware.npz",
    "hil.npz",
    "rod_solver.npz",
)
"""Files that a run leaves in its folder; one of them is there if a run has ended in it."""

LOCK_FILE = ".running"
"""File in a run folder that is locked during a run, and removed afterwards."""


def new_run_folder(robot: str, controller: str) -> Path:
    """Return a run folder that does not exist yet, named after robot, controller and time."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = runs_folder()
    out = inside(folder, f"{robot}_{controller}_{stamp}")
    count = 1
    while out.exists():
        count += 1
        out = inside(folder, f"{robot}_{controller}_{stamp}_{count}")
    return out


@contextlib.contextmanager
def preparing() -> Iterator[Callable[[Path], None]]:
    """Yield a function that creates the run folder and refuses one that holds parts of a run.

    If the run fails before it has written anything, the folder is removed again.
    """
    with contextlib.ExitStack() as stack:

        def prepare(out: Path) -> None:
            _check_empty(out)
            try:
                stack.enter_context(making(out))
                with tempfile.TemporaryFile(dir=out):
                    pass
                stack.enter_context(_locked(out))
            except OSError as error:
                raise CardsError(f"--out {out} cannot be written: {error}") from error
            _check_empty(out)  # a run may have ended in there since

        yield prepare


def _check_empty(out: Path) -> None:
    rows = [path.name for path in out.glob(".*.rows")]  # of a log that was not written
    for name in (*RESULTS, *rows):
        if (out / name).exists():
            raise CardsError(
                f"--out {out} holds a run already: {name} (expected: a new or empty folder)"
            )


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Keep other runs out of a run folder; the lock of a process ends with the process.

    Raises:
        CardsError: Another run uses the folder.
        OSError: The folder cannot be written.
    """
    path = out / LOCK_FILE
    with path.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CardsError(
                f"--out {out} is in use by another run (expected: a folder of its own)"
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
