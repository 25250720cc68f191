"""Run a job in a folder, and read what a folder holds."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cards_core
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.chunks import DamagedChunkError, Worker, pack_job
from cards_core.analysis.workspace.execute import Task, run_locally, run_on_dask
from cards_core.analysis.workspace.folder import JobFolder, point_table, read_job
from cards_core.analysis.workspace.job import Job
from cards_core.analysis.workspace.points import Grid
from cards_core.analysis.workspace.result_file import (
    assemble,
    read_metadata,
    read_result,
    read_rows,
)
from cards_core.checks import check_choice
from cards_core.cores import available_cores
from cards_core.errors import CardsError
from cards_core.typing import Array

Progress = Callable[[int, int], None]
"""Called with the number of points (or rays) that are done, and of all."""

ASSEMBLY_ATTEMPTS = 2
"""A chunk that is damaged between its check and the assembly is computed once more."""


@dataclass(frozen=True)
class Result:
    """What a folder holds when its job is complete.

    Attributes:
        path: The folder.
        job: Its job.
        summary: As in ``summary.json``.
    """

    path: Path
    job: Job
    summary: dict[str, Any] = field(repr=False)

    @property
    def file(self) -> Path:
        """The result file."""
        return self.path / str(self.summary["result"])

    @property
    def metadata(self) -> dict[str, Any]:
        """What the result file says about itself: columns with units, names of statuses."""
        return read_metadata(self.file)

    def columns(self, *names: str) -> dict[str, npt.NDArray[Any]]:
        """Return columns by name; all without names.

        Raises:
            UnknownNameError: There is no such column.
        """
        return read_result(self.file, self._chosen(names))

    def rows(self, indices: npt.NDArray[np.intp], *names: str) -> dict[str, npt.NDArray[Any]]:
        """Return some rows, in ascending order of index, of columns (all without names).

        Raises:
            UnknownNameError: There is no such column.
        """
        return read_rows(self.file, self._chosen(names), np.asarray(indices))

    def _chosen(self, names: Sequence[str]) -> Sequence[str]:
        known = list(self.metadata["columns"])
        for name in names:
            check_choice(name, "column", known)
        return names or known

    def on_grid(self, name: str) -> npt.NDArray[Any]:
        """Return a column in the shape of the grid.

        Raises:
            CardsError: The points are no grid.
        """
        points = self.job.points
        if not isinstance(points, Grid):
            raise CardsError(f"the points are of kind '{points.kind}' (expected: a grid)")
        return self.columns(name)[name].reshape(points.shape)

    def feasible(self) -> npt.NDArray[np.bool_]:
        """Return where the condition holds, one entry per row."""
        return np.asarray(self.columns("status")["status"] == PointStatus.FEASIBLE)

    def q(self, start: int, stop: int) -> Array:
        """Return coordinates of points start..stop-1, shape (n, nq); starts, for rays."""
        points = self.job.points.bind(self.job.robot.load().tree)
        return points.q(points.values(start, stop))


def load(path: str | os.PathLike[str]) -> Result:
    """Return the result in a folder.

    Raises:
        CardsError: There is no complete and undamaged result in it.
    """
    job = read_job(path)
    folder = JobFolder(path, job)
    summary = folder.complete()
    if summary is None:
        done = len(list(folder.chunks.glob("*.chunk")))
        raise CardsError(
            f"{folder.path} has no complete result: {done} of {job.chunks} chunks are there "
            "(expected: a job that ran to its end; --resume goes on with it)"
        )
    return Result(folder.path, job, summary)


def run(
    job: Job,
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    processes: bool = False,
    scheduler: Any = None,
    progress: Progress | None = None,
    restart: bool = False,
) -> Result:
    """Compute what is missing of a job and assemble the result.

    The folder can be resumed after any interruption: call this again. The result file has the
    same bytes whatever the number of workers and interruptions.

    Args:
        job: From `make_job`.
        folder: New, empty, or of the same job.
        workers: Threads on this machine; default: one per core that this process may use.
        processes: Use processes instead of threads.
        scheduler: Address of a Dask scheduler, or a `distributed.Client`; then its workers
            compute.
        progress: Called in this thread after every chunk.
        restart: Discard what the folder holds of any job.

    Raises:
        CardsError: The folder holds something else, is in use, or cannot be written; the job was
            made by other code; the scheduler cannot be reached; the condition cannot be
            made for this robot.
        KeyboardInterrupt: Ctrl-C; what was computed is in the folder.
    """
    if workers is not None and workers < 1:
        raise CardsError(f"{workers} workers (expected: at least 1)")
    count = workers or available_cores()
    store = JobFolder(folder, job)
    store.check_ours()
    with store.locked():
        if restart:
            store.discard()
        summary = store.complete()
        if summary is None:
            # refuses what cannot work before anything is written
            worker = Worker.of(job)
            store.check_space(sum(np.dtype(column.dtype).itemsize for column in worker.columns))
            store.prepare()
            summary = _compute(
                store,
                worker,
                workers=count,
                processes=processes,
                scheduler=scheduler,
                progress=progress,
            )
        else:
            store.discard_chunks()
            if progress is not None:
                progress(job.points.count, job.points.count)
    # the job as the folder has it: with points that outlast the file they came from
    return Result(store.path, read_job(store.path), summary)


def resume(path: str | os.PathLike[str], **arguments: Any) -> Result:
    """Go on with the job of a folder; arguments as of `run`.

    Raises:
        CardsError: There is no job, and as `run`.
    """
    return run(read_job(path), path, **arguments)


def _compute(
    store: JobFolder,
    worker: Worker,
    *,
    workers: int,
    processes: bool,
    scheduler: Any,
    progress: Progress | None,
) -> dict[str, Any]:
    job = store.job
    run_entry: dict[str, Any] = {
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "workers": "dask" if scheduler is not None else workers,
        "kind": _kind(processes, scheduler),
    }
    for attempt in range(ASSEMBLY_ATTEMPTS):
        clock = time.perf_counter()
        missing = list(store.missing())
        done = before = job.points.count - sum(_size(job, index) for index in missing)
        if progress is not None:
            progress(done, job.points.count)
        tasks = _tasks(store, worker, missing)
        packed = pack_job(job)
        if scheduler is not None:
            results = run_on_dask(packed, tasks, scheduler)
        else:
            results = run_locally(packed, tasks, workers, processes=processes)
        computed = None
        complete = False
        try:
            with contextlib.closing(results):
                for index, data in results:
                    store.write_chunk(index, data)
                    done += _size(job, index)
                    if progress is not None:
                        progress(done, job.points.count)
            computed = time.perf_counter() - clock
            summary = assemble(store, worker)
            complete = True
            return summary
        except DamagedChunkError:
            if attempt + 1 == ASSEMBLY_ATTEMPTS:
                raise
        finally:
            elapsed = time.perf_counter() - clock
            compute_s = elapsed if computed is None else computed
            run_entry |= {
                "points": done - before,
                "compute_s": round(compute_s, 3),
                "points_per_s": round((done - before) / max(compute_s, 1e-9), 1),
                "assemble_s": round(elapsed - compute_s, 3),
                "complete": complete,
            }
            # where the disk is full, the error that says so matters more than this note
            with contextlib.suppress(OSError):
                store.add_run({**run_entry, **machine()})
    raise AssertionError("unreachable: the last attempt returns or raises")


def _tasks(store: JobFolder, worker: Worker, missing: list[int]) -> Iterator[Task]:
    """Say which chunks to compute; rows of point files go along."""
    rows = None
    if point_table(store.job.points) is not None:
        stored = read_job(store.path)
        rows = stored.points.bind(worker.tree)
    for index in missing:
        if rows is None:
            yield index, None
        else:
            yield index, np.ascontiguousarray(rows.values(*store.job.span(index)), "<f8").tobytes()


def _size(job: Job, index: int) -> int:
    start, stop = job.span(index)
    return stop - start


def _kind(processes: bool, scheduler: Any) -> str:
    if scheduler is not None:
        return "dask"
    return "processes" if processes else "threads"


def machine() -> dict[str, Any]:
    """Return facts about this machine and process for ``run.json``."""
    return {
        "cards": cards_core.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cores": available_cores(),
        "peak_memory_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }
