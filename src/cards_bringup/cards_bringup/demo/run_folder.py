"""The folder of a demonstration run: named, created, kept from other runs, split at resets.

A run that was reset has parts, and each part its own run folder. The run folder holds the last
part that is long enough to be evaluated. What was recorded before its first reset is in
``before_reset_1``, before the second in ``before_reset_2``, and so on; what came after it, if it
is too short, is in ``after_reset_N``.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cards_core.errors import CardsError
from cards_core.files import locked, making
from cards_core.foreign_files import read_arrays
from cards_core.loop.run_log import CONTROLLER_LOG, SIMULATOR_LOG, begun, part_paths

RESULTS = (
    "summary.json",
    SIMULATOR_LOG,
    CONTROLLER_LOG,
    "hardware.npz",
    "hil.npz",
    "rod_solver.npz",
)
"""Files that a run leaves in its folder; one of them is there if a run has ended in it."""

LOCK_FILE = ".running"
"""File in a run folder that is locked during a run, and removed afterwards."""

LEAST_TIME = 0.1
"""Minimum simulated time of a part for which plots and a recording are made, [s]."""


@contextlib.contextmanager
def preparing() -> Iterator[Callable[[Path], None]]:
    """Yield a function that creates the run folder and refuses one that holds parts of a run.

    If the run ends before it has written anything, the folder is removed again.
    """
    with contextlib.ExitStack() as stack:

        def prepare(out: Path) -> None:
            _check_empty(out)
            try:
                stack.enter_context(making(out))
                with tempfile.TemporaryFile(dir=out):
                    pass
                refusal = f"--out {out} is in use by another run (expected: a folder of its own)"
                stack.enter_context(locked(out / LOCK_FILE, refusal))
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


@dataclass(frozen=True)
class RunPart:
    """What was recorded between two resets.

    Attributes:
        folder: Where its logs are now.
        name: Name of the folder below the run folder; empty: the run folder itself.
        time: Simulated time, [s].
        begun: When it began, on the monotonic clock, [s].
    """

    folder: Path
    name: str
    time: float
    begun: float

    @property
    def useful(self) -> bool:
        """Whether plots and a recording are made; always true for the run folder itself."""
        return not self.name or self.time >= LEAST_TIME


@dataclass(frozen=True)
class _Log:
    path: Path
    begun: float
    time: float

    @classmethod
    def of(cls, path: Path) -> _Log | None:
        """Read start and duration of a log; None if it has no rows. Raises `CardsError`."""
        try:
            time = read_arrays(path, "time".__eq__, "a log")["time"]
            start = begun(path)
        except (OSError, KeyError) as error:
            raise CardsError(f"{path} cannot be read: {error} (expected: a log)") from error
        early = -np.inf if np.isnan(start) else start
        return cls(path, early, float(time[-1])) if len(time) else None


def arrange(folder: Path) -> list[RunPart]:
    """Move every part of a run to its folder; return the parts in order of time.

    Logs without rows are removed; if the last part has none, it is returned with time 0. A
    controller's part belongs to the part of the simulator during which it began: the controller
    learns of a reset from the first state after it.

    Args:
        folder: Run folder with the logs (`cards_core.loop.run_log`) of simulator and controller.

    Raises:
        CardsError: A log is damaged; nothing was moved then.
        OSError: A folder cannot be made.
    """
    hosts = _logs(folder / SIMULATOR_LOG)
    if not hosts:
        return []
    empty = not (folder / SIMULATOR_LOG).exists()  # after the last reset
    controllers = _logs(folder / CONTROLLER_LOG)
    long = [i for i, log in enumerate(hosts) if log.time >= LEAST_TIME]
    main = long[-1] if long else len(hosts) - 1
    # temporary names first: parts may exchange their places
    parts = []
    moves: list[tuple[Path, Path]] = []
    for i, host in enumerate(hosts):
        name = "" if i == main else f"before_reset_{i + 1}" if i < main else f"after_reset_{i}"
        place = folder / name
        parts.append(RunPart(place, name, host.time, host.begun))
        moves.append((host.path, place / SIMULATOR_LOG))
        since = -np.inf if i == 0 else host.begun
        until = hosts[i + 1].begun if i + 1 < len(hosts) else np.inf
        own = [log for log in controllers if since <= log.begun < until]
        # the longest is the part's; one that was too late for its own has a row or two
        own.sort(key=lambda log: log.time, reverse=True)
        for k, log in enumerate(own):
            moves.append(
                (
                    log.path,
                    place / (f"{Path(CONTROLLER_LOG).stem}.{k}.npz" if k else CONTROLLER_LOG),
                )
            )
    if empty:
        name = f"after_reset_{len(hosts)}"
        parts.append(RunPart(folder / name, name, 0.0, np.inf))
    for number, (source, _target) in enumerate(moves):
        source.rename(folder / f".part.{number}.npz")
    for number, (_source, target) in enumerate(moves):
        target.parent.mkdir(exist_ok=True)
        (folder / f".part.{number}.npz").rename(target)
    return parts


def _logs(path: Path) -> list[_Log]:
    files = part_paths(path)
    found = [_Log.of(file) for file in files]
    for file, log in zip(files, found, strict=True):
        if log is None:
            file.unlink()
    return [log for log in found if log is not None]
