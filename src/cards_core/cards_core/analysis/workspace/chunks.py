"""One chunk of a job: how a worker computes it, and the bytes that it hands back.

A worker is a thread, a process, or on another machine. Layout of the bytes: ``CARDSCH1``, sha256
of everything after it, length of the head as 8 bytes, the head (JSON: job, chunk, columns with
type and length), the columns as little-endian arrays.
"""

from __future__ import annotations

import hashlib
import json
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.analysis.conditions.base import Column, Condition, Results
from cards_core.analysis.conditions.registry import make_condition
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.job import Job, code_hash
from cards_core.analysis.workspace.points import BoundPoints
from cards_core.analysis.workspace.rays import BoundRays
from cards_core.dynamics import make_dynamics
from cards_core.errors import CardsError
from cards_core.robot.model import Tree
from cards_core.typing import Array

MAGIC = b"CARDSCH1"
_START = len(MAGIC) + 32


class DamagedChunkError(Exception):
    """A chunk whose bytes are not what was written; it is computed again."""


@dataclass(frozen=True)
class Chunk:
    """A chunk that was read.

    Attributes:
        job: Key of the job it belongs to.
        index: Which chunk of the job.
        columns: Name to array.
    """

    job: str
    index: int
    columns: Results


def pack(job: str, index: int, columns: Results) -> bytes:
    """Return a chunk as bytes; equal columns give equal bytes (every NaN becomes the same).

    Args:
        job: Key of the job.
        index: Number of the chunk, from 0.
        columns: Values of its points by column, one-dimensional arrays.
    """
    arrays = []
    layout = []
    for name, column in columns.items():
        array = np.ascontiguousarray(column)
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), np.array(np.nan, array.dtype), array)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        layout.append([name, array.dtype.str, len(array)])
        arrays.append(array.tobytes())
    head = json.dumps({"job": job, "chunk": index, "columns": layout}).encode()
    body = len(head).to_bytes(8, "little") + head + b"".join(arrays)
    return MAGIC + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Chunk:
    """Read what `pack` returned.

    Raises:
        DamagedChunkError: The bytes are not complete or not the same.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < _START + 8:
        raise DamagedChunkError("no chunk, or cut off")
    body = memoryview(data)[_START:]
    if hashlib.sha256(body).digest() != data[len(MAGIC) : _START]:
        raise DamagedChunkError("checksum differs")
    size = int.from_bytes(body[:8], "little")
    head = json.loads(bytes(body[8 : 8 + size]))
    columns: Results = {}
    position = 8 + size
    for name, dtype, length in head["columns"]:
        columns[name] = np.frombuffer(body, np.dtype(dtype), length, position)
        position += columns[name].nbytes
    return Chunk(head["job"], head["chunk"], columns)


def read_chunk(path: Path, job: str, index: int) -> Results:
    """Return the columns of a chunk's file.

    Args:
        path: The file.
        job: Key of the job that it must belong to.
        index: Number that it must have.

    Returns:
        The columns, one-dimensional arrays.

    Raises:
        DamagedChunkError: It is damaged, or belongs to something else.
        OSError: It cannot be read.
    """
    chunk = unpack(path.read_bytes())
    if (chunk.job, chunk.index) != (job, index):
        raise DamagedChunkError(f"chunk {chunk.index} of job {chunk.job[:12]}")
    return chunk.columns


CACHED_JOBS = 4
"""Conditions that a worker's thread keeps, for jobs that take turns."""

_local = threading.local()


@dataclass(frozen=True)
class Worker:
    """What a thread needs for the chunks of a job.

    Attributes:
        job: The job.
        key: Of the job.
        tree: Of its robot.
        points: Its points or rays.
        condition: Its condition, used by this thread only.
    """

    job: Job
    key: str
    tree: Tree
    points: BoundPoints | BoundRays
    condition: Condition

    @classmethod
    def of(cls, job: Job) -> Worker:
        """Build the condition of a job.

        Raises:
            CardsError: The robot or the options do not allow it, or the job was made by different
                code.
        """
        if job.code != code_hash():
            raise CardsError(
                f"the job was made by code {job.code[:12]}, here is {code_hash()[:12]} "
                "(expected: the same version of CARDS on all machines and until the job is "
                "complete; --restart computes all of it with this one)"
            )
        dynamics = make_dynamics(job.robot.load())
        condition = make_condition(dynamics, job.condition, job.options)
        return cls(job, job.key, dynamics.tree, job.points.bind(dynamics.tree), condition)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the condition."""
        return self.condition.columns

    def chunk(self, index: int, values: Array | None = None) -> bytes:
        """Compute a chunk.

        Args:
            index: Which one.
            values: What varies in its points; None: from their index.

        Returns:
            The chunk as `pack` writes it.
        """
        start, stop = self.job.span(index)
        if values is None:
            values = self.points.values(start, stop)
        if isinstance(self.points, BoundRays):
            columns = self.points.cut(start, values, self.evaluate)
        else:
            columns = self.evaluate(self.points.q(values))
        return pack(self.key, index, columns)

    def evaluate(self, q: Array) -> Results:
        """Evaluate the condition where that has a meaning; see `evaluate_points`."""
        return evaluate_points(self.condition, self.tree, q, self.job.within_limits)


def evaluate_points(
    condition: Condition, tree: Tree, q: Array, within_limits: bool = False
) -> Results:
    """Evaluate a condition at points of which some may be none.

    Args:
        condition: What to ask.
        tree: Of the robot.
        q: Coordinates, shape (n, nq); rows that are not finite become ``NOT_FINITE``.
        within_limits: Points outside the joint limits become ``OUTSIDE_LIMITS``.

    Returns:
        The condition's columns; numbers of points that were not asked for are NaN.

    Raises:
        TypeError: The condition returned something else than its columns say.
    """
    status = np.full(len(q), PointStatus.FEASIBLE, np.uint8)
    if within_limits:
        status[((q < tree.lower) | (q > tree.upper)).any(axis=1)] = PointStatus.OUTSIDE_LIMITS
    status[~np.isfinite(q).all(axis=1)] = PointStatus.NOT_FINITE
    asked = status == PointStatus.FEASIBLE
    everything = bool(asked.all())
    rows = np.ascontiguousarray(q if everything else q[asked])
    found = condition.evaluate(rows) if len(rows) else {}
    out: Results = {}
    for column in condition.columns:
        part = np.asarray(found.get(column.name, np.zeros(0)))
        if part.shape != (len(rows),):
            raise TypeError(
                f"condition '{condition.name}' returned the shape {part.shape} for "
                f"'{column.name}' (expected: ({len(rows)},))"
            )
        part = part.astype(column.dtype)
        if everything:
            out[column.name] = part
        else:
            out[column.name] = _blank(column, status)
            out[column.name][asked] = part
    return out


def _blank(column: Column, status: Any) -> Any:
    if column.name == "status":
        return status.copy()
    kind = np.dtype(column.dtype)
    return np.full(len(status), np.nan if kind.kind == "f" else 0, kind)


def pack_job(job: Job) -> bytes:
    """Return a job as few bytes, for the way to a worker."""
    return zlib.compress(json.dumps(job.to_json()).encode())


def compute_chunk(job: bytes, index: int, values: bytes | None = None) -> bytes:
    """Compute a chunk of a packed job; the entry for threads, processes and Dask alike.

    Each thread makes the condition once and keeps it.

    Args:
        job: From `pack_job`.
        index: Which chunk.
        values: What varies in its points as little-endian doubles, where the worker cannot
            know; None: from their index.

    Raises:
        CardsError: As `Worker.of`.
    """
    workers: dict[bytes, Worker] = _local.__dict__.setdefault("workers", {})
    worker = workers.pop(job, None)
    if worker is None:
        worker = Worker.of(Job.from_json(json.loads(zlib.decompress(job))))
    workers[job] = worker  # the newest is the last
    while len(workers) > CACHED_JOBS:
        del workers[next(iter(workers))]
    table = None
    if values is not None:
        table = np.frombuffer(values, "<f8").reshape(-1, len(worker.points.columns))
    return worker.chunk(index, table)
