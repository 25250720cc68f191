"""From the chunks of a folder to its result and summary."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from cards_core.analysis.conditions.base import STATUS, Column
from cards_core.analysis.workspace.chunk_file import Columns
from cards_core.analysis.workspace.evaluate import Worker
from cards_core.analysis.workspace.folder import SUMMARY, JobFolder
from cards_core.analysis.workspace.rays import BoundRays
from cards_core.analysis.workspace.result_file import metadata, write_result
from cards_core.analysis.workspace.summary import PointSummary, RaySummary
from cards_core.files import write_atomically


def result_columns(worker: Worker) -> tuple[Column, ...]:
    """Return the columns of a job's result file."""
    condition = worker.columns
    if not isinstance(worker.points, BoundRays):
        return (*worker.points.columns, *condition)
    out = [
        Column("ray", "int64", "", "index of the ray"),
        *worker.points.columns,
        Column("begin", "float64", "", "where the interval begins, s"),
        Column("end", "float64", "", "where it ends, s"),
        STATUS,
    ]
    for column in condition[1:]:
        for suffix, what in (("min", "least"), ("max", "largest")):
            text = f"{what} value at points of the scan: {column.text}"
            out.append(Column(f"{column.name}_{suffix}", "float64", column.unit, text))
    return tuple(out)


def assemble(folder: JobFolder, worker: Worker) -> dict[str, Any]:
    """Write result and summary of a folder whose chunks are all there, then remove the chunks.

    Returns:
        The summary.

    Raises:
        CardsError: The folder cannot be written.
        DamagedChunkError: A chunk was damaged since it was looked at.
    """
    job = folder.job
    columns = result_columns(worker)
    points = worker.points

    def chunks() -> Iterator[Columns]:
        for index in range(job.chunks):
            found = folder.read_chunk(index)
            if isinstance(points, BoundRays):
                yield found
            else:
                values = points.values(*job.span(index))
                names = [c.name for c in points.columns]
                yield dict(zip(names, values.T, strict=True)) | found

    try:
        write_result(folder.result, columns, chunks, metadata(job, columns, points.fixed))
        summary = {
            "job": folder.key,
            "robot": job.robot.name,
            "condition": job.condition,
            "options": dict(job.options),
            "kind": job.points.kind,
            "fixed": points.fixed,
            **_summarise(folder, worker),
            "result": folder.result.name,
            "sha256": _digest(folder),
        }
        write_atomically(folder.path / SUMMARY, json.dumps(summary, indent=1) + "\n")
    except OSError as error:
        raise folder.unwritable(error) from error
    folder.discard_chunks()
    return summary


def _summarise(folder: JobFolder, worker: Worker) -> dict[str, Any]:
    job, points = folder.job, worker.points
    if isinstance(points, BoundRays):
        rays = RaySummary(points.rays.length)
        for index in range(job.chunks):
            rays.add(folder.read_chunk(index))
        return rays.result()
    summary = PointSummary(points, worker.columns)
    for index in range(job.chunks):
        start, stop = job.span(index)
        summary.add(start, points.values(start, stop), folder.read_chunk(index))
    return summary.result()


def _digest(folder: JobFolder) -> str:
    with folder.result.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
