"""The result of a job as one file, made of its chunks in order and of nothing else.

No time, no machine and no number of workers is in it, and Parquet and NPZ are written with fixed
settings, so equal jobs give equal bytes. Both are streamed: one chunk is in memory at a time.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cards_core
from cards_core.analysis.conditions.base import STATUS, Column, Results
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.chunks import Worker
from cards_core.analysis.workspace.folder import SUMMARY, JobFolder
from cards_core.analysis.workspace.job import Job
from cards_core.analysis.workspace.point_file import pyarrow_module
from cards_core.analysis.workspace.rays import BoundRays
from cards_core.analysis.workspace.summary import PointSummary, RaySummary
from cards_core.files import file_digest, replacing, write_atomically

METADATA_KEY = "cards"
"""Of the JSON in a Parquet file's schema, and of the array in an NPZ file."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip file knows."""


def metadata(job: Job, columns: Sequence[Column], fixed: dict[str, float]) -> dict[str, Any]:
    """Return what a reader of a result file needs to know, as plain data.

    Args:
        job: The job.
        columns: Columns of the result, with units.
        fixed: Coordinates that have one value at all points, [rad] or [m].
    """
    return {
        "cards_version": cards_core.__version__,
        "job": job.key,
        "robot": job.robot.name,
        "robot_hash": job.robot.robot_hash,
        "condition": job.condition,
        "options": dict(job.options),
        "points": job.points.to_json(),
        "within_limits": job.within_limits,
        "fixed": fixed,
        "statuses": {str(int(status)): status.name for status in PointStatus},
        "columns": {c.name: {"unit": c.unit, "text": c.text} for c in columns},
    }


def write_result(
    path: Path,
    columns: Sequence[Column],
    chunks: Callable[[], Iterator[Results]],
    about: dict[str, Any],
) -> None:
    """Write a result, synchronised to the disk, under its name only when it is complete.

    Args:
        path: ``.parquet`` or ``.npz``.
        columns: Name and type of every column.
        chunks: Gives all chunks in order, each time it is called.
        about: From `metadata`.

    Raises:
        OSError: It cannot be written.
    """
    write = _write_parquet if path.suffix == ".parquet" else _write_npz
    with replacing(path) as temporary:
        write(temporary, columns, chunks, about)


def _write_parquet(
    path: Path,
    columns: Sequence[Column],
    chunks: Callable[[], Iterator[Results]],
    about: dict[str, Any],
) -> None:
    """One row group per chunk; zstd; coordinates and status as dictionaries."""
    pa = pyarrow_module()
    fields = [
        pa.field(
            c.name,
            pa.from_numpy_dtype(np.dtype(c.dtype)),
            nullable=False,
            metadata={"unit": c.unit, "text": c.text},
        )
        for c in columns
    ]
    text = json.dumps(about)
    schema = pa.schema(fields, metadata={METADATA_KEY: text})
    few_values = [c.name for c in columns if c.text == "coordinate" or c.name == "status"]
    with pa.parquet.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=few_values,
        version="2.6",
        data_page_version="1.0",
        write_statistics=True,
    ) as writer:
        for chunk in chunks():
            arrays = [
                pa.array(chunk[c.name], field.type)
                for c, field in zip(columns, fields, strict=True)
            ]
            batch = pa.record_batch(arrays, schema=schema)
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=max(len(batch), 1))


def _write_npz(
    path: Path,
    columns: Sequence[Column],
    chunks: Callable[[], Iterator[Results]],
    about: dict[str, Any],
) -> None:
    """Stored, not deflated: bytes then do not depend on the zlib of the machine."""
    rows = sum(len(next(iter(chunk.values()))) for chunk in chunks())
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for column in columns:
            kind = np.dtype(column.dtype).newbyteorder("<")
            with archive.open(_entry(column.name), "w", force_zip64=True) as stream:
                stream.write(_head(kind, (rows,)))
                for chunk in chunks():
                    stream.write(np.ascontiguousarray(chunk[column.name], kind).tobytes())
        text = np.array(json.dumps(about))
        with archive.open(_entry(METADATA_KEY), "w", force_zip64=True) as stream:
            stream.write(_head(text.dtype, ()) + text.tobytes())


def _entry(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(f"{name}.npy", _EPOCH)


def _head(kind: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream,
        {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape},
    )
    return stream.getvalue()


def read_result(path: Path, names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of a result file.

    Args:
        path: ``.parquet`` or ``.npz``.
        names: Which.
    """
    if path.suffix == ".parquet":
        table = pyarrow_module().parquet.read_table(path, columns=list(names))
        return {name: table.column(name).to_numpy() for name in names}
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in names}


def read_rows(
    path: Path, names: Sequence[str], rows: npt.NDArray[np.intp]
) -> dict[str, npt.NDArray[Any]]:
    """Return some rows of some columns, without the whole file in memory (Parquet).

    Args:
        path: ``.parquet`` or ``.npz``.
        names: Columns.
        rows: Which rows, in ascending order.
    """
    if path.suffix != ".parquet":
        return {name: column[rows] for name, column in read_result(path, names).items()}
    parts: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in names}
    file = pyarrow_module().parquet.ParquetFile(path)
    first = 0
    for group in range(file.num_row_groups):
        stop = first + file.metadata.row_group(group).num_rows
        here = rows[np.searchsorted(rows, first) : np.searchsorted(rows, stop)] - first
        if len(here) or group == 0:
            table = file.read_row_group(group, columns=list(names))
            for name in names:
                parts[name].append(table.column(name).to_numpy()[here])
        first = stop
    return {name: np.concatenate(some) if some else np.zeros(0) for name, some in parts.items()}


def read_metadata(path: Path) -> dict[str, Any]:
    """Return what `metadata` put into a result file."""
    if path.suffix == ".parquet":
        text = pyarrow_module().parquet.read_schema(path).metadata[METADATA_KEY.encode()].decode()
    else:
        with np.load(path, allow_pickle=False) as archive:
            text = str(archive[METADATA_KEY])
    about: dict[str, Any] = json.loads(text)
    return about


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

    def chunks() -> Iterator[Results]:
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
            "sha256": file_digest(folder.result),
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
