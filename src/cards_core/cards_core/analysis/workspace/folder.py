"""The folder of a job: what is in it, who may write to it, which chunks are done.

========================== ==================================================================
``job.json``               the job
``points.f8``              values of a point file, little-endian doubles, row by row
``chunks/000000.chunk``    results so far; gone when the job is complete
``result.parquet``/``npz`` the result
``summary.json``           counts, volume, extremes, sha256 of the result; made last
``run.json``               times and machines; not part of the result
========================== ==================================================================
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.analysis.conditions.base import Results
from cards_core.analysis.workspace.chunks import (
    DamagedChunkError,
    read_chunk,
)
from cards_core.analysis.workspace.job import Job
from cards_core.analysis.workspace.point_file import PointTable
from cards_core.analysis.workspace.points import PointSet
from cards_core.analysis.workspace.rays import Rays
from cards_core.errors import CardsError
from cards_core.files import (
    PART,
    file_digest,
    is_part,
    locked,
    making,
    replacing,
    write_atomically,
)
from cards_core.foreign_files import read_json
from cards_core.typing import Array

JOB, POINTS, CHUNKS, SUMMARY, RUN, LOCK, PLOTS = (
    "job.json",
    "points.f8",
    "chunks",
    "summary.json",
    "run.json",
    ".lock",
    "plots",
)
_BEFORE_JOB = {LOCK, CHUNKS, POINTS}
"""What a folder may hold, besides unfinished files, whose process was killed before it had written
the job."""

_OURS = {JOB, POINTS, CHUNKS, SUMMARY, RUN, LOCK, "result.parquet", "result.npz"}


class JobFolder:
    """The files of one job.

    Args:
        path: The folder.
        job: What is computed in it.
    """

    def __init__(self, path: str | os.PathLike[str], job: Job) -> None:
        self.path = Path(path)
        self.job = job
        self.key = job.key
        self.chunks = self.path / CHUNKS
        self.result = self.path / f"result.{job.format}"
        self._discarded = False

    def prepare(self) -> None:
        """Make the folder, or check that it holds this job; point files move in.

        Raises:
            CardsError: It holds something else, or cannot be written.
        """
        self.check_ours()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if (self.path / JOB).exists():
                self._check_same()
            self._remove_unfinished()
            self.chunks.mkdir(exist_ok=True)
            self._store_points()
            # last: a folder with a job has everything that resuming needs
            if not (self.path / JOB).exists():
                text = json.dumps(self.job.to_json(), indent=1)
                write_atomically(self.path / JOB, text + "\n")
        except OSError as error:
            raise self.unwritable(error) from error

    def check_ours(self) -> None:
        """Refuse a folder that others keep their files in; nothing is written.

        Raises:
            CardsError: It holds files but no job.
        """
        if self._discarded:  # it was ours; what others put beside the job is still there
            return
        try:
            names = {item.name for item in self.path.iterdir()} if self.path.exists() else set()
        except OSError as error:
            raise self.unwritable(error) from error
        others = {name for name in names - _BEFORE_JOB if not is_part(name)}
        if JOB not in names and others:
            raise CardsError(
                f"{self.path} holds other files, e.g. '{min(others)}' "
                "(expected: a new or empty folder, or one of the same job)"
            )

    def _check_same(self) -> None:
        other = read_job(self.path)
        if other.key != self.key:
            differences = ", ".join(_differences(other.to_json(), self.job.to_json()))
            raise CardsError(
                f"{self.path} holds another job: {differences} (expected: the same job to go on "
                "with it, another folder, or --restart to discard what is there)"
            )

    def _store_points(self) -> None:
        table = point_table(self.job.points)
        target = self.path / POINTS
        if table is None or (target.exists() and file_digest(target) == table.sha256):
            return
        digest = hashlib.sha256()
        with replacing(target) as temporary:
            with temporary.open("wb") as stream:
                data = np.zeros((0, 1)) if table.data is None else table.data
                for start in range(0, len(data), 65536):
                    content = data[start : start + 65536].astype("<f8").tobytes()
                    digest.update(content)
                    stream.write(content)
            if digest.hexdigest() != table.sha256:
                # the values came from this folder's own, damaged file, or from nowhere
                raise CardsError(
                    f"{target} is missing or damaged (expected: the points with sha256 "
                    f"{table.sha256[:12]}; start the job again with the file of points)"
                )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes out of the folder while this one writes to it.

        Raises:
            CardsError: Another process has it. A process that was killed has none.
        """
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(making(self.path))
                refusal = f"{self.path} is in use by another process (expected: one run at a time)"
                stack.enter_context(locked(self.path / LOCK, refusal, keep=True))
            except OSError as error:
                raise self.unwritable(error) from error
            try:
                yield
            except BaseException:
                if [item.name for item in self.path.iterdir()] == [LOCK]:
                    (self.path / LOCK).unlink()  # nothing was written: leave no trace
                raise

    def check_space(self, bytes_each: int) -> None:
        """Refuse a job whose results will not fit on the disk.

        Args:
            bytes_each: Size of the results of a point or ray, [bytes].

        Raises:
            CardsError: There is not enough space.
        """
        try:
            free = shutil.disk_usage(self.path).free
            there = sum(item.stat().st_size for item in self.chunks.glob("*.chunk"))
        except OSError as error:
            raise self.unwritable(error) from error
        count = self.job.points.count
        if bytes_each * count - there > free:
            raise CardsError(
                f"{count:.4g} points or rays take {1e-9 * bytes_each * count:.4g} GB in "
                f"{self.path}, where {1e-9 * free:.4g} GB are free (expected: at most "
                f"{free // max(bytes_each, 1)} of them, or a folder on another disk)"
            )

    def unwritable(self, error: OSError) -> CardsError:
        """Return the error of a folder that cannot be written."""
        return CardsError(
            f"{self.path} cannot be written: {error.strerror or error} (expected: a folder with "
            "space and permission; what was computed is kept, the same command goes on with it)"
        )

    def chunk_path(self, index: int) -> Path:
        """Return the file of a chunk."""
        return self.chunks / f"{index:06d}.chunk"

    def write_chunk(self, index: int, data: bytes) -> None:
        """Store a chunk.

        Raises:
            CardsError: The folder cannot be written.
        """
        try:
            write_atomically(self.chunk_path(index), data)
        except OSError as error:
            raise self.unwritable(error) from error

    def read_chunk(self, index: int) -> Results:
        """Return a chunk's columns.

        Raises:
            DamagedChunkError: It is damaged or belongs to something else.
            OSError: It is not there.
        """
        return read_chunk(self.chunk_path(index), self.key, index)

    def missing(self) -> Iterator[int]:
        """Yield the chunks that are not there or are damaged; the latter are removed."""
        there = {item.name for item in self.chunks.glob("*.chunk")}
        for index in range(self.job.chunks):
            if self.chunk_path(index).name in there:
                try:
                    self.read_chunk(index)
                    continue
                except DamagedChunkError:
                    self.chunk_path(index).unlink(missing_ok=True)
            yield index

    def complete(self) -> dict[str, Any] | None:
        """Return the summary if the result is there and is what was written."""
        try:
            summary: dict[str, Any] = read_json(self.path / SUMMARY)
            good = summary["job"] == self.key and summary["sha256"] == file_digest(self.result)
        except (OSError, CardsError, KeyError, TypeError):
            return None
        return summary if good else None

    def discard_chunks(self) -> None:
        """Remove the chunks of a complete job."""
        shutil.rmtree(self.chunks, ignore_errors=True)

    def discard(self) -> None:
        """Remove everything that a job puts into its folder, and nothing else.

        Raises:
            CardsError: The folder holds no job: its files are somebody else's.
        """
        self.check_ours()
        if (self.path / JOB).exists():
            read_job(self.path)  # refuses what is no job of ours
        self.discard_chunks()
        for name in _OURS - {LOCK, CHUNKS, JOB}:
            (self.path / name).unlink(missing_ok=True)
        self._remove_unfinished()
        for picture in (self.path / PLOTS).glob("*.*"):
            if picture.suffix in (".png", ".svg", ".html"):  # they show what is gone
                picture.unlink()
        (self.path / JOB).unlink(missing_ok=True)
        self._discarded = True

    def _remove_unfinished(self) -> None:
        """Remove what a process that was killed was writing; the folder must be locked."""
        for name in _OURS:
            for item in self.path.glob(f".{name}.*{PART[1:]}"):
                item.unlink()

    def add_run(self, entry: dict[str, Any]) -> None:
        """Append to ``run.json``, one entry for each time that the job was worked on."""
        path = self.path / RUN
        try:
            runs = list(read_json(path)["runs"])
        except (CardsError, KeyError, TypeError):
            runs = []
        write_atomically(path, json.dumps({"runs": [*runs, entry]}, indent=1) + "\n")


def read_job(path: str | os.PathLike[str]) -> Job:
    """Return the job of a folder, with the points of its point file.

    Raises:
        CardsError: There is none, or it cannot be read.
    """
    file = Path(path) / JOB
    job = Job.from_json(read_json(file, "a workspace job"))
    return dataclasses.replace(job, points=_attach(job.points, Path(path) / POINTS))


def point_table(points: PointSet) -> PointTable | None:
    """Return the table of a point file that a point set needs, if any."""
    if isinstance(points, Rays):
        return point_table(points.starts)
    return points if isinstance(points, PointTable) else None


def _attach(points: PointSet, file: Path) -> PointSet:
    if isinstance(points, Rays):
        return dataclasses.replace(points, starts=_attach(points.starts, file))
    if not isinstance(points, PointTable) or not file.exists():
        return points
    shape = (points.rows, len(points.names))
    size = 8 * shape[0] * shape[1]
    if file.stat().st_size != size:
        return points
    data: Array = np.memmap(file, "<f8", "r", shape=shape) if size else np.zeros(shape)
    return dataclasses.replace(points, data=data)


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Say in words in what two jobs differ."""
    out = []
    for key, value in new.items():
        if old.get(key) == value:
            continue
        if key == "robot":
            same = old[key]["name"] == value["name"]
            names = f"another version of {value['name']}" if same else f"robot {old[key]['name']}"
            if {**old[key], "base": ""} != {**value, "base": ""}:
                out.append(names)
        elif key == "code":
            out.append("computed by another version of the code")
        elif key in ("options", "points"):
            out.append(f"other {key}")
        else:
            out.append(f"{key} {old.get(key)}")
    return out
